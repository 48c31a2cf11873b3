// SPDX-License-Identifier: GPL-2.0-only
//! Which program goes to which hook: for every kind of record a ladder of rungs, of which
//! the first that loads and attaches as a whole is taken.

use aya::programs::{BtfTracePoint, FEntry, ProgramError};
use aya::{Btf, Ebpf};

use super::RecordError;
use super::header::{CpuBasis, WatchedKinds};
use crate::event::{Hook, Watched};

#[derive(Clone, Copy)]
enum Site {
    Tracepoint(&'static str),
    Function(&'static str),
}

impl Site {
    fn hook(self) -> String {
        match self {
            Self::Tracepoint(name) => format!("tp_btf/{name}"),
            Self::Function(name) => format!("fentry/{name}"),
        }
    }
}

/// A program of bpf/record.bpf.c and where it belongs.
type Probe = (&'static str, Site);

/// Probes that make sense together only.
struct Rung {
    probes: Vec<Probe>,
    caveat: Option<String>,
}

impl Rung {
    fn new(probes: &[Probe]) -> Self {
        Self {
            probes: probes.to_vec(),
            caveat: None,
        }
    }

    fn caveat(mut self, caveat: impl Into<String>) -> Self {
        self.caveat = Some(caveat.into());
        self
    }
}

/// What of the host decides between rungs.
pub struct Circumstances {
    pub cpu_basis: CpuBasis,
    pub swap_files: Vec<String>,
    pub disks_without_statistics: Vec<String>,
}

/// The hooks that were tried, and what is recorded through them.
pub struct Attached {
    pub hooks: Vec<Hook>,
    pub watched: WatchedKinds,
}

/// Attaches what this kernel takes.
///
/// # Errors
/// It takes nothing at all.
pub fn attach(bpf: &mut Ebpf, btf: &Btf, on: &Circumstances) -> Result<Attached, RecordError> {
    let mut climber = Climber {
        bpf,
        btf,
        hooks: vec![],
    };
    let cpu = climber.climb("cpu", &cpu(on.cpu_basis));
    if cpu == Watched::Yes {
        climber.climb("cpu", &[cpu_from_before()]);
    }
    let watched = WatchedKinds {
        cpu,
        network: climber.climb("network", &network()),
        page_ins: climber.climb("page-in", &page_ins(&on.swap_files)),
        page_outs: climber.climb("page-out", &page_outs(&on.swap_files)),
        disk_requests: climber.climb("disk", &disk_requests(&on.disks_without_statistics)),
        disk_bios: climber.climb("disk", &disk_bios()),
    };
    let hooks = climber.hooks;
    if hooks.iter().all(|h| h.refused.is_some()) {
        let reasons = hooks.iter().filter_map(|h| h.refused.clone());
        return Err(RecordError::NoHook(reasons.take(1).collect()));
    }
    Ok(Attached { hooks, watched })
}

fn cpu(basis: CpuBasis) -> Vec<Rung> {
    vec![match basis {
        CpuBasis::Task => Rung::new(&[("emud_rec_switch", Site::Tracepoint("sched_switch"))]),
        CpuBasis::Idle => Rung::new(&[("emud_rec_idle", Site::Tracepoint("cpu_idle"))]),
    }]
}

fn cpu_from_before() -> Rung {
    let site = Site::Tracepoint("sched_stat_runtime");
    Rung::new(&[("emud_rec_runtime", site)])
        .caveat("only to notice a CPU that was busy before the recording and stays so")
}

fn network() -> Vec<Rung> {
    let site = Site::Tracepoint("net_dev_xmit");
    vec![Rung::new(&[("emud_rec_xmit", site)])]
}

fn page_ins(swap_files: &[String]) -> Vec<Rung> {
    let bios: &[Probe] = &[("emud_rec_swap_in_bio", Site::Tracepoint("block_bio_queue"))];
    vec![
        Rung::new(&[(
            "emud_rec_swap_read_folio",
            Site::Function("swap_read_folio"),
        )]),
        Rung::new(&[("emud_rec_swap_readpage", Site::Function("swap_readpage"))]),
        Rung::new(bios).caveat(format!(
            "reads of swap devices, without pages that zswap or a note of an empty page \
             answers{}",
            unseen(swap_files)
        )),
    ]
}

fn page_outs(swap_files: &[String]) -> Vec<Rung> {
    let reclaim = Site::Tracepoint("mm_vmscan_write_folio");
    let bios: &[Probe] = &[("emud_rec_swap_out_bio", Site::Tracepoint("block_bio_queue"))];
    vec![
        Rung::new(&[("emud_rec_write_folio", reclaim)]),
        Rung::new(bios).caveat(format!("writes to swap devices{}", unseen(swap_files))),
    ]
}

/// A file's blocks cannot be told from others of its device.
fn unseen(swap_files: &[String]) -> String {
    match swap_files {
        [] => String::new(),
        files => format!("; swap files are not seen: {}", files.join(", ")),
    }
}

fn disk_requests(without_statistics: &[String]) -> Vec<Rung> {
    let queued = Rung::new(&[
        ("emud_rec_io_start", Site::Tracepoint("block_io_start")),
        ("emud_rec_io_done", Site::Tracepoint("block_io_done")),
        ("emud_rec_rq_merge", Site::Tracepoint("block_rq_merge")),
    ]);
    let issued = Rung::new(&[
        ("emud_rec_rq_issue", Site::Tracepoint("block_rq_issue")),
        ("emud_rec_rq_requeue", Site::Tracepoint("block_rq_requeue")),
        (
            "emud_rec_rq_complete",
            Site::Tracepoint("block_rq_complete"),
        ),
    ]);
    let from_driver = "a request counts from when the driver takes it";
    match without_statistics {
        [] => vec![queued, issued.caveat(from_driver)],
        disks => vec![issued.caveat(format!(
            "{from_driver}: block_io_done does not tell the end on devices with iostats 0 ({})",
            disks.join(", ")
        ))],
    }
}

fn disk_bios() -> Vec<Rung> {
    vec![Rung::new(&[
        ("emud_rec_bio_queue", Site::Tracepoint("block_bio_queue")),
        (
            "emud_rec_bio_complete",
            Site::Tracepoint("block_bio_complete"),
        ),
    ])]
}

struct Climber<'a> {
    bpf: &'a mut Ebpf,
    btf: &'a Btf,
    hooks: Vec<Hook>,
}

impl Climber<'_> {
    fn climb(&mut self, criterion: &str, rungs: &[Rung]) -> Watched {
        for rung in rungs {
            let refused = self.step(rung);
            let taken = refused.is_none();
            self.note(criterion, rung, refused);
            if taken {
                return Watched::Yes;
            }
        }
        Watched::Unknown
    }

    /// Attaches the whole rung, or nothing of it: then the probe that failed, and why.
    fn step(&mut self, rung: &Rung) -> Option<(&'static str, String)> {
        for (i, (program, site)) in rung.probes.iter().enumerate() {
            if let Err(e) = self.load_and_attach(program, *site) {
                for (attached, site) in &rung.probes[..=i] {
                    self.unload(attached, *site);
                }
                return Some((program, reason(&e)));
            }
        }
        None
    }

    fn note(&mut self, criterion: &str, rung: &Rung, refused: Option<(&'static str, String)>) {
        for (program, site) in &rung.probes {
            let refused = refused.as_ref().map(|(failed, why)| {
                if failed == program {
                    why.clone()
                } else {
                    "of no use without the others".into()
                }
            });
            self.hooks.push(Hook {
                criterion: criterion.into(),
                hook: site.hook(),
                caveat: rung.caveat.clone().filter(|_| refused.is_none()),
                refused,
            });
        }
    }

    fn load_and_attach(&mut self, program: &'static str, site: Site) -> Result<(), ProgramError> {
        let program = self
            .bpf
            .program_mut(program)
            .ok_or(ProgramError::NotLoaded)?;
        match site {
            Site::Tracepoint(name) => {
                let program: &mut BtfTracePoint = program.try_into()?;
                program.load(name, self.btf)?;
                program.attach()?;
            }
            Site::Function(name) => {
                let program: &mut FEntry = program.try_into()?;
                program.load(name, self.btf)?;
                program.attach()?;
            }
        }
        Ok(())
    }

    /// Detaches too.
    fn unload(&mut self, program: &'static str, site: Site) {
        let Some(program) = self.bpf.program_mut(program) else {
            return;
        };
        // It may not have been loaded, which is as good.
        let _ = match site {
            Site::Tracepoint(_) => {
                TryInto::<&mut BtfTracePoint>::try_into(program).and_then(BtfTracePoint::unload)
            }
            Site::Function(_) => TryInto::<&mut FEntry>::try_into(program).and_then(FEntry::unload),
        };
    }
}

/// Without the log of the verifier, of which the last lines say why.
fn reason(e: &ProgramError) -> String {
    match e {
        ProgramError::LoadError {
            io_error,
            verifier_log,
        } => {
            let log = verifier_log.to_string();
            let last = log
                .lines()
                .rev()
                .find(|l| !l.is_empty() && !l.starts_with("processed"));
            match last {
                Some(line) => format!("{io_error}: {line}"),
                None => io_error.to_string(),
            }
        }
        ProgramError::Btf(e) => e.to_string(),
        ProgramError::SyscallError(e) => format!("{}: {}", e.call, e.io_error),
        other => other.to_string(),
    }
}
