// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU without idle.

use std::time::Duration;

use super::table::{HOUR, Key, Kind, MS, Table as _, Usual, Values, Word as _, ns, table, words};
use super::{Attempt, GroupBy, Measured, Recorded, Settings, Watch};
use crate::abi::{self, emud_alarm};
use crate::terms::{Scope, Unit};
use crate::candidates::Point::Tracepoint;
use crate::candidates::{Candidate, part, tracepoints};

table! {
    /// A CPU without idle.
    #[derive(Copy)]
    Cpu = "cpu", On;

    /// Busy time without idle that makes a CPU contended, or `off`
    "theta" theta: Duration = Duration::from_millis(200),
        Key::new(Kind::Time(MS, HOUR), "theta_ns").threshold().flag("cpu-theta", "TIME")
            .also(&["busy", "threshold"]);

    /// Definition of idle: the idle task (task), or an idle state of the CPU (idle), which counts
    /// forwarding as busy
    "basis" basis: Basis = Basis::Task,
        Key::new(Kind::Word(Basis::WORDS), "basis").flag("cpu-basis", "task|idle");

    impl { const ALSO: &'static [&'static str] = &["processor"]; }
}

words! {
    /// Definition of an idle CPU.
    Basis {
        /// The idle task is scheduled. Softirqs during the idle task count as idle.
        Task = "task",
        /// The CPU is in an idle state: forwarding in softirq counts as busy.
        Idle = "idle",
    }
}

impl Watch for Cpu {
    const TICKS: bool = true;
    const MEASURED: &'static [Measured] =
        &[Measured::new("cpu", &Cpu::KEYS[0], "cpu: busy without idle", &["cpu"])];
    // The additional hook only detects a CPU that was busy before the recording and stays busy.
    const RECORDED: &'static [Recorded] = &[Recorded::new("cpu", "busy CPUs", "cpu", |basis| {
        vec![match basis {
            Basis::Task => tracepoints(&[("emud_rec_switch", "sched_switch")]),
            Basis::Idle => tracepoints(&[("emud_rec_idle", "cpu_idle")]),
        }]
    })
    .beside(|| tracepoints(&[("emud_rec_runtime", "sched_stat_runtime")]))];

    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        kernel.global("emud_cpu_theta_ns", ns(self.theta));
        kernel.global("emud_cpu_idle_basis", (self.basis == Basis::Idle).into());
        Ok(())
    }

    fn hooks(&self, _: GroupBy) -> Vec<Attempt> {
        let switch = part("emud_switch", Tracepoint("sched_switch"), abi::EMUD_HOOK_SWITCH);
        let idle = part("emud_idle", Tracepoint("cpu_idle"), abi::EMUD_HOOK_IDLE);
        let candidate = match self.basis {
            Basis::Task => Candidate::of([switch])
                .but("softirqs on top of the idle task count as idle (--cpu-basis idle)"),
            Basis::Idle => Candidate::of([idle, switch]),
        };
        vec![Attempt::of("cpu", [candidate])]
    }

    fn scope(alarm: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        (Scope::Cpu { cpu: alarm.what }, Unit::Ns)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        match scope {
            Scope::Cpu { cpu } => Some([format!("CPU {cpu} without idle"), format!("cpu {cpu}")]),
            _ => None,
        }
    }
}
