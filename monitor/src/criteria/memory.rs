// SPDX-License-Identifier: MIT OR Apache-2.0
//! Swap traffic in a sliding window.

use std::time::Duration;

use super::table::{Key, Kind, MS, SECOND, Table as _, Usual, Values, table};
use super::{Attempt, GroupBy, Measured, Recorded, Settings, Watch};
use crate::abi::{self, emud_alarm};
use crate::terms::{Scope, Unit};
use crate::candidates::Point::{Fentry, Kprobe, MajorFaults, Tracepoint};
use crate::candidates::{Candidate, part, tracepoints};
use crate::{host, swaps};

table! {
    /// Swap traffic in a sliding window.
    #[derive(Copy)]
    Memory = "memory", On;

    /// Window in which pages read from and written to swap are counted
    "window" window: Duration = Duration::from_millis(10),
        Key::new(Kind::Time(MS, 10 * SECOND), "window_ns").flag("memory-window", "TIME");

    /// Pages read from swap in a window that are contention, or `off`
    "page-ins" page_ins: Option<u64> = Some(1),
        Key::new(Kind::Count("pages", u64::MAX), "page_ins").threshold().flag("page-ins", "N")
            .also(&["page_ins", "swap-in"]);

    /// Pages written to swap in a window that are contention, or `off`
    "page-outs" page_outs: Option<u64> = Some(1),
        Key::new(Kind::Count("pages", u64::MAX), "page_outs").threshold().flag("page-outs", "N")
            .also(&["page_outs", "swap-out"]);

    impl { const ALSO: &'static [&'static str] = &["paging", "swap"]; }
}

impl Watch for Memory {
    const SLIDING: Option<Unit> = Some(Unit::Pages);
    const MEASURED: &'static [Measured] = &[
        Measured::new("page-in", &Memory::KEYS[1], "page-ins in", &["page-ins"]).usually_none(),
        Measured::new("page-out", &Memory::KEYS[2], "page-outs in", &["page-outs"]).usually_none(),
    ];
    const RECORDED: &'static [Recorded] = &[
        Recorded::new("page-ins", "page-ins", "page-in", |_| {
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
        }),
        Recorded::new("page-outs", "page-outs", "page-out", |_| {
            let bios = tracepoints(&[("emud_rec_swap_out_bio", "block_bio_queue")]);
            vec![
                tracepoints(&[("emud_rec_write_folio", "mm_vmscan_write_folio")]),
                bios.but(format!("writes to swap devices{}", unseen())),
            ]
        }),
    ];

    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        kernel.window(abi::EMUD_WINDOW_PAGE_IN, self.window, self.page_ins);
        kernel.window(abi::EMUD_WINDOW_PAGE_OUT, self.window, self.page_outs);
        let page_shift = host::page_bytes().trailing_zeros();
        kernel.global("emud_page_shift", page_shift.into());
        Ok(())
    }

    fn hooks(&self, _: GroupBy) -> Vec<Attempt> {
        let written = part(
            "emud_page_out",
            Tracepoint("mm_vmscan_write_folio"),
            abi::EMUD_HOOK_PAGE_OUT,
        );
        let outs = Attempt::of("memory: page-out", [Candidate::of([written])]);
        let outs = self.page_outs.map(|_| outs).into_iter();
        outs.chain(self.page_ins.map(|_| page_ins())).collect()
    }

    fn scope(alarm: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        let direction = match alarm.what {
            abi::EMUD_WINDOW_PAGE_IN => "page-in",
            _ => "page-out",
        };
        (Scope::Paging { direction }, Unit::Pages)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        match scope {
            Scope::Paging { direction } => Some([direction, direction].map(|&way| way.into())),
            _ => None,
        }
    }
}

fn page_ins() -> Attempt {
    let one = |program, point| Candidate::of([part(program, point, abi::EMUD_HOOK_PAGE_IN)]);
    let single = "a folio of several pages counts as one page";
    let file = swap_files().into_iter().next();
    let file = file.map(|path| format!("{path} is a swap file: its reads are not identified"));
    let candidates = [
        one("emud_page_in", Fentry("swap_read_folio")),
        one("emud_page_in_old", Fentry("swap_readpage")),
        one("emud_page_in_probe", Kprobe("swap_read_folio")).but(single),
        one("emud_page_in_probe_old", Kprobe("swap_readpage")).but(single),
        one("emud_page_in_bio", Tracepoint("block_bio_queue"))
            .but(
                "reads of swap devices: reads by other programs count, too; \
                 a swap file is not seen, nor zram before Linux 6.3",
            )
            .unless(file),
        one("emud_page_in_fault", MajorFaults)
            .but("all major faults: demand paging of files counts, too"),
    ];
    Attempt::of("memory: page-in", candidates)
}

/// Returns a caveat: the blocks of a swap file cannot be distinguished from others on its device.
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
