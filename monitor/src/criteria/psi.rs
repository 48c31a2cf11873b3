// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pressure stall information: tasks stalled for `stall` within `window`.

use std::time::Duration;

use super::table::{Conflict, Key, Kind, MS, SECOND, US, Usual, Value, Values, table};

table! {
    /// Pressure stall information, a second opinion from the kernel.
    #[derive(Copy)]
    Psi = "psi", Unset;

    // The kernel counts stalls in us.
    /// Stall time of tasks within a window that is contention, or `off`
    "stall" stall: Duration = Duration::from_millis(150),
        Key::new(Kind::Time(US, 10 * SECOND), "stall_ns").threshold();

    // The range that the kernel accepts (kernel/sched/psi.c).
    /// Window in which stall times are added up
    "window" window: Duration = Duration::from_secs(1),
        Key::new(Kind::Time(500 * MS, 10 * SECOND), "window_ns");

    impl {
        const ALSO: &'static [&'static str] = &["pressure"];
        const PAIR: Option<super::table::Flag> = Some(super::table::Flag {
            name: "psi",
            value: "STALL/WINDOW",
        });

        fn conflicts(values: &Values) -> Vec<Conflict> {
            let conflict = |between: &[&'static str], title: &str, help| Conflict {
                between: between.iter().map(|key| (*key, None)).collect(),
                gives_way: false,
                title: title.into(),
                help,
            };
            let both = "set both, such as stall = \"150ms\" and window = \"1s\"";
            let window = values.number("window");
            match (values.0.get("stall"), window) {
                (Some(Value::Number(_)), None) => {
                    vec![conflict(&["stall"], "`stall` without `window`", both)]
                }
                (None, Some(_)) => vec![conflict(&["window"], "`window` without `stall`", both)],
                (Some(Value::Number(stall)), Some(window)) if *stall > window => vec![conflict(
                    &["stall", "window"],
                    "stall is longer than window",
                    "stall is the time within a window in which tasks wait",
                )],
                _ => vec![],
            }
        }
    }
}
