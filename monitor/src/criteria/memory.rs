// SPDX-License-Identifier: MIT OR Apache-2.0
//! Swap traffic in a sliding window.

use std::time::Duration;

use super::table::{Key, Kind, MS, SECOND, Table, Value, Values};
use super::{Attempt, GroupBy, Measured, Recorded, Settings, Watch};
use crate::abi::{self, emud_alarm};
use crate::event::{Scope, Unit};
use crate::hooks::Point::{Fentry, Kprobe, MajorFaults, Tracepoint};
use crate::hooks::{Candidate, part, tracepoints};
use crate::swaps;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Length of the window; 1 ms to 10 s.
    pub window: Duration,
    /// Contention at this many pages read from swap in a window; none: not watched.
    pub page_ins: Option<u64>,
    /// Contention at this many pages written to swap in a window; none: not watched.
    pub page_outs: Option<u64>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(10),
            page_ins: Some(1),
            page_outs: Some(1),
        }
    }
}

impl Table for Memory {
    const NAME: &'static str = "memory";
    const ALSO: &'static [&'static str] = &["paging", "swap"];
    const KEYS: &'static [Key] = &[
        Key::new("window", Kind::Time(MS, 10 * SECOND), "window_ns").flag(
            "memory-window",
            "TIME",
            "Window in which pages read from and written to swap are counted",
        ),
        Key::new("page-ins", Kind::Count("pages", u64::MAX), "page_ins")
            .threshold()
            .also(&["page_ins", "swap-in"])
            .flag(
                "page-ins",
                "N",
                "Contention at this many pages read from swap in a window, or `off`",
            ),
        Key::new("page-outs", Kind::Count("pages", u64::MAX), "page_outs")
            .threshold()
            .also(&["page_outs", "swap-out"])
            .flag(
                "page-outs",
                "N",
                "Contention at this many pages written to swap in a window, or `off`",
            ),
    ];

    fn read(values: &Values) -> Option<Self> {
        let memory = Self {
            window: values.time("window")?,
            page_ins: values.number("page-ins"),
            page_outs: values.number("page-outs"),
        };
        (memory.page_ins.is_some() || memory.page_outs.is_some()).then_some(memory)
    }

    fn write(&self) -> Values {
        Values::of([
            ("window", Value::time(self.window)),
            ("page-ins", Value::number(self.page_ins)),
            ("page-outs", Value::number(self.page_outs)),
        ])
    }

    fn usual() -> Values {
        Self::default().write()
    }
}

impl Watch for Memory {
    const SLIDING: Option<Unit> = Some(Unit::Pages);

    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        kernel.window(abi::EMUD_WINDOW_PAGE_IN, self.window, self.page_ins);
        kernel.window(abi::EMUD_WINDOW_PAGE_OUT, self.window, self.page_outs);
        Ok(())
    }

    fn hooks(&self, _: GroupBy) -> Vec<Attempt> {
        let outs = self.page_outs.map(|_| Attempt {
            label: "memory: page-out",
            candidates: vec![Candidate::of([part(
                "emud_page_out",
                Tracepoint("mm_vmscan_write_folio"),
                abi::EMUD_HOOK_PAGE_OUT,
            )])],
        });
        let ins = self.page_ins.map(|_| Attempt {
            label: "memory: page-in",
            candidates: page_ins(),
        });
        outs.into_iter().chain(ins).collect()
    }

    fn scope(alarm: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        let direction = match alarm.what {
            abi::EMUD_WINDOW_PAGE_IN => "page-in",
            _ => "page-out",
        };
        (Scope::Paging { direction }, Unit::Pages)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        let Scope::Paging { direction } = scope else {
            return None;
        };
        Some([(*direction).into(), (*direction).into()])
    }

    const RECORDED: &'static [Recorded] = &[
        Recorded {
            key: "page-ins",
            what: "page-ins",
            label: "page-in",
            candidates: |_| {
                let function =
                    |program, name| Candidate::of([part(program, Fentry(name), abi::EMUD_HOOKS)]);
                let bios = tracepoints(&[("emud_rec_swap_in_bio", "block_bio_queue")]);
                vec![
                    function("emud_rec_swap_read_folio", "swap_read_folio"),
                    function("emud_rec_swap_readpage", "swap_readpage"),
                    bios.but(format!(
                        "reads of swap devices: without pages that come from zswap or were all \
                         zeros{}",
                        unseen()
                    )),
                ]
            },
            beside: None,
        },
        Recorded {
            key: "page-outs",
            what: "page-outs",
            label: "page-out",
            candidates: |_| {
                let bios = tracepoints(&[("emud_rec_swap_out_bio", "block_bio_queue")]);
                vec![
                    tracepoints(&[("emud_rec_write_folio", "mm_vmscan_write_folio")]),
                    bios.but(format!("writes to swap devices{}", unseen())),
                ]
            },
            beside: None,
        },
    ];

    const MEASURED: &'static [Measured] = &[
        Measured {
            name: "page-in",
            key: &Self::KEYS[1],
            title: "page-ins in",
            shown_by: &["page-ins"],
            none_is_usual: true,
        },
        Measured {
            name: "page-out",
            key: &Self::KEYS[2],
            title: "page-outs in",
            shown_by: &["page-outs"],
            none_is_usual: true,
        },
    ];
}

fn page_ins() -> Vec<Candidate> {
    let one = |program, point| Candidate::of([part(program, point, abi::EMUD_HOOK_PAGE_IN)]);
    let single = "a page of many (a large folio) counts as one";
    let file = swap_files().into_iter().next();
    let file = file.map(|path| format!("{path} is a swap file: its reads are not told apart"));
    vec![
        one("emud_page_in", Fentry("swap_read_folio")),
        one("emud_page_in_old", Fentry("swap_readpage")),
        one("emud_page_in_probe", Kprobe("swap_read_folio")).but(single),
        one("emud_page_in_probe_old", Kprobe("swap_readpage")).but(single),
        one("emud_page_in_bio", Tracepoint("block_bio_queue"))
            .but(
                "reads of swap devices: reading one by hand counts, too; \
                 a swap file is not seen, nor zram before Linux 6.3",
            )
            .unless(file),
        one("emud_page_in_fault", MajorFaults)
            .but("all major faults: demand paging of files counts, too"),
    ]
}

/// A file's blocks cannot be told from others of its device.
fn unseen() -> String {
    match &swap_files()[..] {
        [] => String::new(),
        files => format!("; swap files are not seen: {}", files.join(", ")),
    }
}

fn swap_files() -> Vec<String> {
    // Without /proc/swaps the kernel has no swap.
    let swaps = swaps::now().unwrap_or_default().into_iter();
    let files = swaps.filter(|swap| swap.device.is_none());
    files.map(|swap| swap.path).collect()
}
