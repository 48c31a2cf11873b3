// SPDX-License-Identifier: MIT OR Apache-2.0
//! Time that the hypervisor took from a CPU of this guest, in a sliding window.

use std::time::Duration;

use super::table::{Key, Kind, MS, SECOND, Usual, Values, ns, table};
use super::{Attempt, GroupBy, Settings, Watch};
use crate::abi::{self, emud_alarm};
use crate::terms::{Scope, Unit};
use crate::candidates::Point::Timer;
use crate::candidates::{Candidate, part};

table! {
    /// Time that the hypervisor took from a CPU. Off by default: most shared hosts lose some time
    /// continuously.
    #[derive(Copy)]
    Steal = "steal", Off;

    /// Share of a CPU that the hypervisor takes in a window and that is contention (1%), or `off`
    "share" millionths: u64 = 10_000,
        Key::new(Kind::Share(100, 1_000_000), "share").threshold().flag("steal", "PERCENT")
            .also(&["stolen"]);

    /// Window in which the time that the hypervisor takes is added up
    "window" window: Duration = Duration::from_secs(1),
        Key::new(Kind::Time(100 * MS, 60 * SECOND), "window_ns").flag("steal-window", "TIME");

    impl { const ALSO: &'static [&'static str] = &["hypervisor"]; }
}

impl Steal {
    /// Returns the share as time per window; at least 1 ns, because 0 would always be reached.
    fn threshold_ns(&self) -> u64 {
        let share = u128::from(ns(self.window)) * u128::from(self.millionths) / 1_000_000;
        u64::try_from(share).unwrap_or(u64::MAX).max(1)
    }
}

impl Watch for Steal {
    const SLIDING: Option<Unit> = Some(Unit::Ns);

    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        kernel.global("emud_steal_window_ns", ns(self.window));
        kernel.global("emud_steal_threshold_ns", self.threshold_ns());
        Ok(())
    }

    fn hooks(&self, _: GroupBy) -> Vec<Attempt> {
        let timer = Candidate::of([part("emud_steal", Timer, abi::EMUD_HOOK_STEAL)])
            .but("the guest detects it at its next scheduler tick; no shares: the hypervisor causes it");
        vec![Attempt::of("steal", [timer])]
    }

    fn scope(alarm: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        (Scope::Cpu { cpu: alarm.what }, Unit::Ns)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        match scope {
            Scope::Cpu { cpu } => {
                Some([format!("CPU {cpu} taken by the hypervisor"), format!("cpu {cpu}")])
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::table::{Table as _, Value};

    fn threshold_ns(millionths: u64, window: Duration) -> u64 {
        Steal { millionths, window }.threshold_ns()
    }

    #[test]
    fn a_threshold_is_a_share_of_its_window() {
        assert_eq!(Steal::default().threshold_ns(), 10_000_000);
        assert_eq!(threshold_ns(1_000, Duration::from_secs(10)), 10_000_000);
        assert_eq!(threshold_ns(1_000_000, Duration::from_secs(60)), 60_000_000_000);
        assert_eq!(threshold_ns(0, Duration::from_secs(1)), 1);
    }

    #[test]
    fn it_is_off_unless_a_share_is_given() {
        assert_eq!(Steal::read(&Steal::usual()), None);
        let mut values = Steal::usual();
        values.0.insert("share", Value::Number(50_000));
        let window = Duration::from_secs(1);
        assert_eq!(Steal::read(&values), Some(Steal { millionths: 50_000, window }));
    }
}
