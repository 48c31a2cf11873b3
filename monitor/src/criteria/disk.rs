// SPDX-License-Identifier: MIT OR Apache-2.0
//! A block device that always has a request.

use std::collections::BTreeMap;
use std::time::Duration;

use super::table::{Conflict, Device, HOUR, Key, Kind, MS, Of, Table, Value, Values, ns};
use super::{Attempt, GroupBy, Measured, Recorded, Settings, Watch, name, text};
use crate::abi::{self, emud_alarm};
use crate::event::{Scope, Unit};
use crate::hooks::Point::Tracepoint;
use crate::hooks::{Candidate, part, tracepoints};
use crate::host;

#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// Contention when never empty for at least this long; 1 ms to 1 h.
    pub theta: Duration,
    /// Other values for single devices by name ("sda"); none: that device is ignored.
    pub devices: BTreeMap<String, Option<Duration>>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            theta: Duration::from_millis(100),
            devices: BTreeMap::new(),
        }
    }
}

const DEVICE: Kind = Kind::Named(Device::Disk, Of::Time(MS, HOUR));

impl Table for Disk {
    const NAME: &'static str = "disk";
    const ALSO: &'static [&'static str] = &["block"];
    const KEYS: &'static [Key] = &[
        Key::new("theta", Kind::Time(MS, HOUR), "theta_ns")
            .threshold()
            .flag(
                "disk-theta",
                "TIME",
                "A disk is contended when never without a request for this long, or `off`",
            ),
        Key::new("device", DEVICE, "device_theta_ns").flag(
            "disk",
            "NAME=TIME",
            "Another theta for one disk, or `ignored`",
        ),
    ];

    fn read(values: &Values) -> Option<Self> {
        Some(Self {
            theta: values.time("theta")?,
            devices: values.named("device", |value| match value {
                Value::Number(ns) => Some(Some(Duration::from_nanos(*ns))),
                _ => Some(None),
            }),
        })
    }

    fn write(&self) -> Values {
        let own = |theta: &Option<Duration>| Value::number(theta.map(ns));
        Values::of([
            ("theta", Value::time(self.theta)),
            ("device", Value::named(&self.devices, own)),
        ])
    }

    fn usual() -> Values {
        Self::default().write()
    }

    fn conflicts(values: &Values) -> Vec<Conflict> {
        if values.number("theta").is_some() {
            return vec![];
        }
        let judged = |value: &Value| (*value != Value::Off).then_some(());
        let devices = values.named("device", judged).into_keys();
        let one = |name: String| Conflict {
            title: format!("`{name}` has a threshold, but disks are off"),
            between: vec![("device", Some(name)), ("theta", None)],
            gives_way: true,
            help: "give [disk] a theta; single disks can be \"ignored\"",
        };
        devices.map(one).collect()
    }
}

impl Watch for Disk {

    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        kernel.global("emud_disk_theta_ns", ns(self.theta));
        for (disk, theta) in &self.devices {
            let theta_ns = theta.map_or(0, ns);
            kernel.disk_rules.push((name(disk)?, theta_ns));
        }
        Ok(())
    }

    fn hooks(&self, _: GroupBy) -> Vec<Attempt> {
        let one = |program, tracepoint, hook| part(program, Tracepoint(tracepoint), hook);
        let queued = [
            one("emud_io_done", "block_io_done", abi::EMUD_HOOK_DISK_END),
            one("emud_io_merge", "block_rq_merge", abi::EMUD_HOOK_DISK_MERGE),
            one("emud_io_start", "block_io_start", abi::EMUD_HOOK_DISK_START),
        ];
        let issued = [
            one("emud_rq_complete", "block_rq_complete", abi::EMUD_HOOK_DISK_END),
            one("emud_rq_requeue", "block_rq_requeue", abi::EMUD_HOOK_DISK_MERGE),
            one("emud_rq_issue", "block_rq_issue", abi::EMUD_HOOK_DISK_START),
        ];
        let bios = [
            one("emud_bio_complete", "block_bio_complete", abi::EMUD_HOOK_BIO_END),
            one("emud_bio_queue", "block_bio_queue", abi::EMUD_HOOK_BIO_START),
        ];
        vec![
            Attempt {
                label: "disk: requests",
                candidates: vec![
                    Candidate::of(queued).unless(host::endless_requests()),
                    Candidate::of(issued).but(
                        "a request counts from when the driver gets it, not while it is queued",
                    ),
                ],
            },
            Attempt {
                label: "disk: bios",
                candidates: vec![Candidate::of(bios)],
            },
        ]
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

    const RECORDED: &'static [Recorded] = &[
        Recorded {
            key: "disk-requests",
            what: "block devices with requests",
            label: "disk",
            candidates: |_| {
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
                    issued.but("a request counts from when the driver takes it"),
                ]
            },
            beside: None,
        },
        Recorded {
            key: "disk-bios",
            what: "block devices without requests (zram, md, dm)",
            label: "disk",
            candidates: |_| {
                vec![tracepoints(&[
                    ("emud_rec_bio_queue", "block_bio_queue"),
                    ("emud_rec_bio_complete", "block_bio_complete"),
                ])]
            },
            beside: None,
        },
    ];

    const MEASURED: &'static [Measured] = &[Measured {
        name: "disk",
        key: &Self::KEYS[0],
        title: "disk: never empty",
        shown_by: &["disk-requests", "disk-bios"],
        none_is_usual: false,
    }];
}
