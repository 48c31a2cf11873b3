// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block device that always has a request.

use std::collections::BTreeMap;
use std::time::Duration;

use super::table::{Conflict, Device, HOUR, Key, Kind, MS, Of, Table as _, Usual, Values, ns, table};
use super::{Attempt, GroupBy, Measured, Recorded, Settings, Watch, name, text};
use crate::abi::{self, emud_alarm};
use crate::terms::{Scope, Unit};
use crate::candidates::Point::Tracepoint;
use crate::candidates::{Candidate, part, tracepoints};
use crate::host;

table! {
    /// A block device that always has a request.
    Disk = "disk", On;

    /// Time without an empty queue that makes a disk contended, or `off`
    "theta" theta: Duration = Duration::from_millis(100),
        Key::new(Kind::Time(MS, HOUR), "theta_ns").threshold().flag("disk-theta", "TIME");

    /// Theta for a single disk, or `ignored`
    "device" devices: BTreeMap<String, Option<Duration>> = BTreeMap::new(),
        Key::new(Kind::Named(Device::Disk, Of::Time(MS, HOUR)), "device_theta_ns")
            .flag("disk", "NAME=TIME");

    impl {
        const ALSO: &'static [&'static str] = &["block"];

        fn conflicts(values: &Values) -> Vec<Conflict> {
            if values.number("theta").is_some() {
                return vec![];
            }
            let devices = values.named::<u64>("device").into_keys();
            let one = |name: String| Conflict {
                title: format!("`{name}` has a threshold, but disks are off"),
                between: vec![("device", Some(name)), ("theta", None)],
                gives_way: true,
                help: "give [disk] a theta; single disks can be \"ignored\"",
            };
            devices.map(one).collect()
        }
    }
}

impl Watch for Disk {
    const MEASURED: &'static [Measured] = &[Measured::new(
        "disk",
        &Disk::KEYS[0],
        "disk: never empty",
        &["disk-requests", "disk-bios"],
    )];
    const RECORDED: &'static [Recorded] = &[
        Recorded::new("disk-requests", "block devices with requests", "disk", |_| {
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
            vec![
                queued.unless(host::endless_requests()),
                issued.but("a request counts from its issue to the driver"),
            ]
        }),
        Recorded::new(
            "disk-bios",
            "block devices without requests (zram, md, dm)",
            "disk",
            |_| {
                vec![tracepoints(&[
                    ("emud_rec_bio_queue", "block_bio_queue"),
                    ("emud_rec_bio_complete", "block_bio_complete"),
                ])]
            },
        ),
    ];

    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        kernel.global("emud_disk_theta_ns", ns(self.theta));
        kernel.global("emud_flush_seq", host::flush_seq());
        for (disk, theta) in &self.devices {
            kernel.disk_rules.push((name(disk)?, theta.map_or(0, ns)));
        }
        Ok(())
    }

    fn hooks(&self, _: GroupBy) -> Vec<Attempt> {
        let all = |end, merge: Option<_>, start| {
            let parts = [Some(end), merge, Some(start)].into_iter().flatten();
            Candidate::of(parts.map(|(program, tracepoint, hook)| {
                part(program, Tracepoint(tracepoint), hook)
            }))
        };
        let queued = all(
            ("emud_io_done", "block_io_done", abi::EMUD_HOOK_DISK_END),
            Some(("emud_io_merge", "block_rq_merge", abi::EMUD_HOOK_DISK_MERGE)),
            ("emud_io_start", "block_io_start", abi::EMUD_HOOK_DISK_START),
        );
        let issued = all(
            ("emud_rq_complete", "block_rq_complete", abi::EMUD_HOOK_DISK_END),
            Some(("emud_rq_requeue", "block_rq_requeue", abi::EMUD_HOOK_DISK_MERGE)),
            ("emud_rq_issue", "block_rq_issue", abi::EMUD_HOOK_DISK_START),
        );
        let bios = all(
            ("emud_bio_complete", "block_bio_complete", abi::EMUD_HOOK_BIO_END),
            None,
            ("emud_bio_queue", "block_bio_queue", abi::EMUD_HOOK_BIO_START),
        );
        let unqueued = "a request counts from its issue to the driver, without its time in the queue";
        let requests = [queued.unless(host::endless_requests()), issued.but(unqueued)];
        vec![Attempt::of("disk: requests", requests), Attempt::of("disk: bios", [bios])]
    }

    fn scope(alarm: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        let disk = Scope::Disk {
            name: text(&alarm.name),
            major: alarm.a,
            minor: alarm.b,
        };
        (disk, Unit::Ns)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        let Scope::Disk { name, major, minor } = scope else {
            return None;
        };
        let short = match name.as_str() {
            "" => format!("{major}:{minor}"),
            name => name.to_owned(),
        };
        Some([format!("{name} never empty"), short])
    }
}
