// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hooks of each criterion, best first. What the kernels have was found by
//! trying 6.1, 6.12, 6.18 and 7.2.

use crate::config::{Basis, GroupBy};
use crate::hooks::Way::{Fentry, Kprobe, MajorFaults, Timer, Tracepoint};
use crate::hooks::{Rung, part};
use crate::{abi, host};

/// What has no event of its own: a task that never yields, a stuck device, an end.
pub fn tick() -> Vec<Rung> {
    let raises = Some(abi::EMUD_HOOK_TICK);
    vec![
        Rung::of([part("emud_tick", Timer, raises)]),
        Rung::of([part(
            "emud_tick_stat",
            Tracepoint("sched_stat_runtime"),
            raises,
        )])
        .but("comes on busy CPUs only: a stuck device, or an end, may be seen late"),
    ]
}

pub fn cpu(basis: Basis) -> Vec<Rung> {
    let switch = |raises| part("emud_switch", Tracepoint("sched_switch"), raises);
    match basis {
        Basis::Task => vec![
            Rung::of([switch(Some(abi::EMUD_HOOK_SWITCH))])
                .but("softirqs on top of the idle task count as idle (--cpu-basis idle)"),
        ],
        Basis::Idle => {
            let idle = part(
                "emud_idle",
                Tracepoint("cpu_idle"),
                Some(abi::EMUD_HOOK_IDLE),
            );
            vec![Rung::of([idle, switch(None)])]
        }
    }
}

pub fn network(group_by: GroupBy) -> Vec<Rung> {
    let raises = Some(abi::EMUD_HOOK_XMIT);
    let taken = Rung::of([part("emud_xmit", Tracepoint("net_dev_xmit"), raises)]);
    let offered = Rung::of([part(
        "emud_start_xmit",
        Tracepoint("net_dev_start_xmit"),
        raises,
    )]);
    let twice = "a packet that a busy driver refuses counts each time it is offered";
    match group_by {
        GroupBy::Netns => vec![taken, offered.but(twice)],
        GroupBy::Cgroup => vec![offered.but(
            "the cgroup is that of the socket (unified hierarchy), else of the running task; \
             a packet that a busy driver refuses counts each time it is offered",
        )],
        GroupBy::Command => vec![offered.but(
            "a packet sent in softirq is counted for the task that was interrupted; \
             a packet that a busy driver refuses counts each time it is offered",
        )],
    }
}

pub fn page_out() -> Vec<Rung> {
    vec![Rung::of([part(
        "emud_page_out",
        Tracepoint("mm_vmscan_write_folio"),
        Some(abi::EMUD_HOOK_PAGE_OUT),
    )])]
}

/// `swap_file`: a swap area that is not a block device.
pub fn page_in(swap_file: Option<&str>) -> Vec<Rung> {
    let one = |program, way| Rung::of([part(program, way, Some(abi::EMUD_HOOK_PAGE_IN))]);
    let single = "a page of many (a large folio) counts as one";
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
            .unless(
                swap_file
                    .map(|path| format!("{path} is a swap file: its reads are not told apart")),
            ),
        one("emud_page_in_fault", MajorFaults)
            .but("all major faults: demand paging of files counts, too"),
    ]
}

/// `without_statistics`: disks whose queue/iostats is 0.
pub fn requests(without_statistics: &[String]) -> Vec<Rung> {
    let start = Some(abi::EMUD_HOOK_DISK_START);
    let end = Some(abi::EMUD_HOOK_DISK_END);
    vec![
        Rung::of([
            part("emud_io_done", Tracepoint("block_io_done"), end),
            part("emud_io_merge", Tracepoint("block_rq_merge"), None),
            part("emud_io_start", Tracepoint("block_io_start"), start),
        ])
        .unless(host::endless_requests(without_statistics)),
        Rung::of([
            part("emud_rq_complete", Tracepoint("block_rq_complete"), end),
            part("emud_rq_requeue", Tracepoint("block_rq_requeue"), None),
            part("emud_rq_issue", Tracepoint("block_rq_issue"), start),
        ])
        .but("a request counts from when the driver gets it, not while it is queued"),
    ]
}

pub fn bios() -> Vec<Rung> {
    vec![Rung::of([
        part(
            "emud_bio_complete",
            Tracepoint("block_bio_complete"),
            Some(abi::EMUD_HOOK_BIO_END),
        ),
        part(
            "emud_bio_queue",
            Tracepoint("block_bio_queue"),
            Some(abi::EMUD_HOOK_BIO_START),
        ),
    ])]
}

pub fn late() -> Vec<Rung> {
    vec![Rung::of([part(
        "emud_late",
        Tracepoint("net_dev_start_xmit"),
        Some(abi::EMUD_HOOK_LATE),
    )])]
}

pub fn drop() -> Vec<Rung> {
    vec![Rung::of([part(
        "emud_drop",
        Tracepoint("kfree_skb"),
        Some(abi::EMUD_HOOK_DROP),
    )])]
}
