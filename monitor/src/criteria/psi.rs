// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pressure stall information: tasks stalled for `stall` within `window`.

use std::time::Duration;

use super::table::{Conflict, Flag, Key, Kind, MS, SECOND, Table, US, Value, Values};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Psi {
    pub stall: Duration,
    /// 500 ms to 10 s, as the kernel allows.
    pub window: Duration,
}

impl Table for Psi {
    const NAME: &'static str = "psi";
    const ALSO: &'static [&'static str] = &["pressure"];
    const KEYS: &'static [Key] = &[
        // The kernel counts stalls in us.
        Key::new("stall", Kind::Time(US, 10 * SECOND), "stall_ns").threshold(),
        // What the kernel takes (kernel/sched/psi.c).
        Key::new("window", Kind::Time(500 * MS, 10 * SECOND), "window_ns"),
    ];
    const PAIR: Option<Flag> = Some(Flag {
        name: "psi",
        value: "STALL/WINDOW",
        help: "Pressure stall information: contention when tasks stall this long within a window, \
               or `off`",
    });

    fn read(values: &Values) -> Option<Self> {
        Some(Self {
            stall: values.time("stall")?,
            window: values.time("window")?,
        })
    }

    fn write(&self) -> Values {
        let window = Value::time(self.window);
        Values::of([("stall", Value::time(self.stall)), ("window", window)])
    }

    fn usual() -> Values {
        Values::default()
    }

    fn conflicts(values: &Values) -> Vec<Conflict> {
        let conflict = |between: &[&'static str], title: &str, help| Conflict {
            between: between.iter().map(|key| (*key, None)).collect(),
            gives_way: false,
            title: title.into(),
            help,
        };
        let both = "give both, such as stall = \"150ms\" and window = \"1s\"";
        let window = values.number("window");
        match (values.0.get("stall"), window) {
            (Some(Value::Number(_)), None) => {
                vec![conflict(&["stall"], "`stall` without `window`", both)]
            }
            (None, Some(_)) => vec![conflict(&["window"], "`window` without `stall`", both)],
            (Some(Value::Number(stall)), Some(window)) if *stall > window => vec![conflict(
                &["stall", "window"],
                "the stall is longer than its window",
                "stall is the part of window in which tasks stand still",
            )],
            _ => vec![],
        }
    }
}
