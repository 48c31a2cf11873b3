// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU without idle.

use std::time::Duration;

use super::table::{HOUR, Key, Kind, MS, Table, Value, Values, Word as _, ns, words};
use super::{Attempt, GroupBy, Measured, Recorded, Settings, Watch};
use crate::abi::{self, emud_alarm};
use crate::event::{Scope, Unit};
use crate::hooks::Point::Tracepoint;
use crate::hooks::{Candidate, part, tracepoints};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpu {
    /// Contention when busy for at least this long; 1 ms to 1 h.
    pub theta: Duration,
    pub basis: Basis,
}

words! {
    /// What counts as an idle CPU.
    Basis {
        /// The idle task is scheduled. Softirqs on top of it count as idle.
        Task = "task",
        /// The CPU has really entered an idle state: forwarding in softirq counts as busy.
        Idle = "idle",
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self {
            theta: Duration::from_millis(200),
            basis: Basis::Task,
        }
    }
}

impl Table for Cpu {
    const NAME: &'static str = "cpu";
    const ALSO: &'static [&'static str] = &["processor"];
    const KEYS: &'static [Key] = &[
        Key::new("theta", Kind::Time(MS, HOUR), "theta_ns")
            .threshold()
            .also(&["busy", "threshold"])
            .flag(
                "cpu-theta",
                "TIME",
                "A CPU is contended when without idle for this long, or `off`",
            ),
        Key::new("basis", Kind::Word(Basis::WORDS), "basis").flag(
            "cpu-basis",
            "task|idle",
            "What is idle: the idle task (task), or the CPU itself (idle), so that forwarding is work",
        ),
    ];

    fn read(values: &Values) -> Option<Self> {
        Some(Self {
            theta: values.time("theta")?,
            basis: values.word("basis")?,
        })
    }

    fn write(&self) -> Values {
        let theta = Value::time(self.theta);
        Values::of([("theta", theta), ("basis", Value::of(self.basis))])
    }

    fn usual() -> Values {
        Self::default().write()
    }
}

impl Watch for Cpu {
    const TICKS: bool = true;

    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        kernel.global("emud_cpu_theta_ns", ns(self.theta));
        let idle = self.basis == Basis::Idle;
        kernel.global("emud_cpu_idle_basis", u64::from(idle));
        Ok(())
    }

    fn hooks(&self, _: GroupBy) -> Vec<Attempt> {
        let switch = part(
            "emud_switch",
            Tracepoint("sched_switch"),
            abi::EMUD_HOOK_SWITCH,
        );
        let idle = part("emud_idle", Tracepoint("cpu_idle"), abi::EMUD_HOOK_IDLE);
        let candidate = match self.basis {
            Basis::Task => Candidate::of([switch])
                .but("softirqs on top of the idle task count as idle (--cpu-basis idle)"),
            Basis::Idle => Candidate::of([idle, switch]),
        };
        vec![Attempt {
            label: "cpu",
            candidates: vec![candidate],
        }]
    }

    fn scope(alarm: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        (Scope::Cpu { cpu: alarm.what }, Unit::Ns)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        let Scope::Cpu { cpu } = scope else {
            return None;
        };
        Some([format!("CPU {cpu} without idle"), format!("cpu {cpu}")])
    }

    const RECORDED: &'static [Recorded] = &[Recorded {
        key: "cpu",
        what: "busy CPUs",
        label: "cpu",
        candidates: |basis| {
            vec![match basis {
                Basis::Task => tracepoints(&[("emud_rec_switch", "sched_switch")]),
                Basis::Idle => tracepoints(&[("emud_rec_idle", "cpu_idle")]),
            }]
        },
        // Only to notice a CPU that was busy before the recording and stays so.
        beside: Some(|| tracepoints(&[("emud_rec_runtime", "sched_stat_runtime")])),
    }];

    const MEASURED: &'static [Measured] = &[Measured {
        name: "cpu",
        key: &Self::KEYS[0],
        title: "cpu: busy without idle",
        shown_by: &["cpu"],
        none_is_usual: false,
    }];
}
