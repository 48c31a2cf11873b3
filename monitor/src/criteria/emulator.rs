// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failures of the emulator: links whose packets leave late or are dropped while they wait, and
//! links that another process changed. User space reports what the kernel part cannot detect.

use std::time::Duration;

use super::table::{HOUR, Key, Kind, US, Usual, Values, ns, table};
use super::{Attempt, Settings, Watch, text};
use crate::abi::{self, emud_alarm};
use crate::terms::{Scope, Unit};
use crate::candidates::Point::Tracepoint;
use crate::candidates::{Candidate, part};

table! {
    /// Failures of the emulator.
    #[derive(Copy)]
    Emulator = "emulator", On;

    // fq's timer and the holder's clock are not accurate below 1 us.
    /// Lateness of a packet of an emulated link that is contention, or `off`
    "late" late: Duration = Duration::from_millis(1),
        Key::new(Kind::Time(US, HOUR), "late_ns").threshold().flag("late", "TIME")
            .also(&["lateness"]);
}

impl Watch for Emulator {
    fn set(&self, kernel: &mut Settings) -> Result<(), String> {
        kernel.global("emud_late_ns", ns(self.late));
        Ok(())
    }

    fn scope(alarm: &emud_alarm, _: &[String]) -> (Scope, Unit) {
        let (failure, unit) = match alarm.what {
            abi::EMUD_LATE => ("late", Unit::Ns),
            _ => ("dropped", Unit::Packets),
        };
        let link = Scope::Link {
            failure,
            what: None,
            name: text(&alarm.name),
            ifindex: alarm.a,
            netns: alarm.b,
        };
        (link, unit)
    }

    fn words(scope: &Scope) -> Option<[String; 2]> {
        let Scope::Link {
            failure,
            what,
            name,
            netns,
            ..
        } = scope
        else {
            return None;
        };
        let what = what.as_ref().map_or(String::new(), |what| format!(": {what}"));
        let line = format!("{failure} on {name} in netns {netns}{what}");
        Some([line, format!("{name} {failure}")])
    }
}

/// Returns the hooks, which the first link attaches: hosts without a link do not pay for them.
pub(crate) fn with_links() -> [Attempt; 2] {
    let one = |program, tracepoint, hook| {
        let candidate = Candidate::of([part(program, Tracepoint(tracepoint), hook)]);
        Attempt::of("emulator", [candidate])
    };
    [
        one("emud_late", "net_dev_start_xmit", abi::EMUD_HOOK_LATE),
        one("emud_drop", "kfree_skb", abi::EMUD_HOOK_DROP),
    ]
}
