// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which program records through which hook.

use aya::{Btf, Ebpf};

use super::RecordError;
use super::header::{CpuBasis, WatchedKinds};
use crate::event::{Hook, Watched};
use crate::hooks::{Hooks, Rung, Way, part};
use crate::host;

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
pub fn attach(bpf: &mut Ebpf, btf: Btf, on: &Circumstances) -> Result<Attached, RecordError> {
    let mut hooks = Hooks::new(btf, vec![]);
    let mut climb = |criterion, ladder: &[Rung]| {
        if hooks.climb(bpf, criterion, ladder) {
            Watched::Yes
        } else {
            Watched::Unknown
        }
    };
    let watched = WatchedKinds {
        cpu: climb("cpu", &cpu(on.cpu_basis)),
        network: climb(
            "network",
            &[tracepoints(&[("emud_rec_xmit", "net_dev_xmit")])],
        ),
        page_ins: climb("page-in", &page_ins(&on.swap_files)),
        page_outs: climb("page-out", &page_outs(&on.swap_files)),
        disk_requests: climb("disk", &disk_requests(&on.disks_without_statistics)),
        disk_bios: climb("disk", &disk_bios()),
    };
    if hooks.attached.is_empty() {
        let refused = hooks.tried.into_iter().next().and_then(|h| h.refused);
        return Err(RecordError::NoHook(refused.unwrap_or_default()));
    }
    if watched.cpu == Watched::Yes {
        hooks.climb(bpf, "cpu", &[cpu_from_before()]);
    }
    Ok(Attached {
        hooks: hooks.tried,
        watched,
    })
}

fn tracepoints(programs: &[(&'static str, &'static str)]) -> Rung {
    let parts = programs.iter();
    Rung::of(parts.map(|(program, name)| part(program, Way::Tracepoint(name), None)))
}

fn cpu(basis: CpuBasis) -> Vec<Rung> {
    vec![match basis {
        CpuBasis::Task => tracepoints(&[("emud_rec_switch", "sched_switch")]),
        CpuBasis::Idle => tracepoints(&[("emud_rec_idle", "cpu_idle")]),
    }]
}

/// Only to notice a CPU that was busy before the recording and stays so.
fn cpu_from_before() -> Rung {
    tracepoints(&[("emud_rec_runtime", "sched_stat_runtime")])
}

fn page_ins(swap_files: &[String]) -> Vec<Rung> {
    let function = |program, name| Rung::of([part(program, Way::Fentry(name), None)]);
    let bios = tracepoints(&[("emud_rec_swap_in_bio", "block_bio_queue")]);
    vec![
        function("emud_rec_swap_read_folio", "swap_read_folio"),
        function("emud_rec_swap_readpage", "swap_readpage"),
        bios.but(format!(
            "reads of swap devices: without pages that come from zswap or were all zeros{}",
            unseen(swap_files)
        )),
    ]
}

fn page_outs(swap_files: &[String]) -> Vec<Rung> {
    let bios = tracepoints(&[("emud_rec_swap_out_bio", "block_bio_queue")]);
    vec![
        tracepoints(&[("emud_rec_write_folio", "mm_vmscan_write_folio")]),
        bios.but(format!("writes to swap devices{}", unseen(swap_files))),
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
    let queued = tracepoints(&[
        ("emud_rec_io_start", "block_io_start"),
        ("emud_rec_io_done", "block_io_done"),
        ("emud_rec_rq_merge", "block_rq_merge"),
    ]);
    let issued = tracepoints(&[
        ("emud_rec_rq_issue", "block_rq_issue"),
        ("emud_rec_rq_requeue", "block_rq_requeue"),
        ("emud_rec_rq_complete", "block_rq_complete"),
    ]);
    let endless = host::endless_requests(without_statistics);
    vec![
        queued.unless(endless),
        issued.but("a request counts from when the driver takes it"),
    ]
}

fn disk_bios() -> Vec<Rung> {
    vec![tracepoints(&[
        ("emud_rec_bio_queue", "block_bio_queue"),
        ("emud_rec_bio_complete", "block_bio_complete"),
    ])]
}
