// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers that sample the backlog: PIE, PI and REM.

use schemars::JsonSchema;
use serde::Serialize;

use super::Aqm;
use super::red::{Backlog, Length, Weight, in_ns};
use crate::profile::draft::LinkDraft;
use crate::profile::kinds::SomeTime;
use crate::profile::located::latest;
use crate::profile::{Link, rate_with_trace};
use crate::text::{Kind, Located, Mistake, Reader, Time, Value, Word, number, table};

table! {
    /// PIE as in RFC 8033.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    #[schemars(inline)]
    pub struct Pie {
        /// Delay to aim at, ns, at most 8 s.
        target_ns: u64 = 15_000_000, "target" as SomeTime;
        /// Between two updates of the probability, ns.
        tupdate_ns: u64 = 15_000_000, "tupdate" as SomeTime;
        /// Change of the probability for each second above the target, 0.0..=10.0.
        alpha: f64 = 0.125, "alpha" as Gain;
        /// And for each second that the delay has grown, 0.0..=10.0.
        beta: f64 = 1.25, "beta" as Gain;
    }
    beside {
        ecn: bool = false;
    }
    struct PieDraft {}
}

table! {
    /// Hollot, Misra, Towsley and Gong 2001; the defaults are theirs and ns-2's.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    #[schemars(inline)]
    pub struct Pi {
        /// Backlog to aim at.
        #[serde(rename = "target_ns", serialize_with = "in_ns")]
        #[schemars(with = "u64")]
        target: Length = Length::Bytes(50_000), "target" as Backlog;
        /// Between two samples, ns: 170 a second.
        tupdate_ns: u64 = 5_882_353, "tupdate" as SomeTime;
        /// Change of the probability for each packet above the target now, at most 1.0.
        a: f64 = 1.822e-5, "a" as Weight;
        /// And for each below it at the sample before; at most `a`.
        b: f64 = 1.816e-5, "b" as Weight;
    }
    beside {
        ecn: bool = false;
    }
    struct PiDraft {}
}

table! {
    /// Athuraliya, Low, Li and Yin 2001; the defaults are theirs and ns-2's.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    #[schemars(inline)]
    pub struct Rem {
        /// Backlog to aim at.
        #[serde(rename = "target_ns", serialize_with = "in_ns")]
        #[schemars(with = "u64")]
        target: Length = Length::Bytes(20_000), "target" as Backlog;
        /// Between two changes of the price, ns.
        tupdate_ns: u64 = 2_000_000, "tupdate" as SomeTime;
        /// Change of the price for each packet that arrived above the capacity, at most 1.0; in JSON
        /// times ln(phi), the rise of -ln(1 - probability).
        gamma: f64 = 0.001, "gamma" as Weight;
        /// Weight of a packet of the backlog above the target beside one of those, at most 1.0.
        alpha: f64 = 0.1, "alpha" as Weight;
        /// 1 - phi^-price is the probability; above 1.0, at most 2.0.
        #[serde(skip)]
        phi: f64 = 1.001, "phi" as Phi;
    }
    beside {
        ecn: bool = false;
    }
    struct RemDraft {}
}

/// What the classifier's fixed point has room for.
const TARGET_MAX_NS: u64 = 8_000_000_000;
const PIE_GAIN_MAX: f64 = 10.0;

/// The change of a probability a second.
pub(crate) struct Gain;
/// A number above 1, at most 2.
pub(crate) struct Phi;

impl Reader {
    pub(super) fn finish_pie(&mut self, draft: &PieDraft, ecn: bool) -> Pie {
        let target = draft.target_ns.as_ref();
        self.not_too_long("pie", target.map(|target| (target.value, target)));
        Pie {
            ecn,
            ..draft.values()
        }
    }

    pub(super) fn finish_pi(&mut self, draft: &PiDraft, ecn: bool) -> Pi {
        self.not_too_long("pi", time_of(&draft.target));
        let pi = Pi {
            ecn,
            ..draft.values()
        };
        if pi.b > pi.a
            && let Some(at) = (draft.b.as_ref().or(draft.a.as_ref())).map(|given| &given.at)
        {
            let title = format!("a `b` of {} is above `a`", pi.b);
            let help = format!("`a` is {}: the probability would never fall", pi.a);
            self.mistake(at, title, help);
        }
        pi
    }

    pub(super) fn finish_rem(&mut self, draft: &RemDraft, ecn: bool) -> Rem {
        self.not_too_long("rem", time_of(&draft.target));
        Rem {
            ecn,
            ..draft.values()
        }
    }

    /// Checks that a target in bytes is no longer at the rate of the link than one in time may be.
    pub(in crate::profile) fn target_fits(&mut self, draft: &LinkDraft, link: &Link) {
        let (Some(manager), Some(rate)) = (&draft.queue.aqm, rate_with_trace(link)) else {
            return;
        };
        let (Some(Aqm::Pi(Pi { target, .. }) | Aqm::Rem(Rem { target, .. })), name) =
            (link.queue.aqm, manager.value.kind().word())
        else {
            return;
        };
        let most = u128::from(rate) * u128::from(TARGET_MAX_NS) / 8_000_000_000;
        if let Length::Bytes(bytes) = target
            && u128::from(bytes) > most
        {
            let at = latest(&manager.at, [draft.rate.as_ref().map(|rate| &rate.at)]);
            let title = format!("a `target` of {bytes} bytes is too long for {name} at this rate");
            let longest = Time(TARGET_MAX_NS);
            let help = format!(
                "it is at most \"{longest}\" long, here {most} bytes: write target = \"{most}B\", or a time"
            );
            self.mistake(at, title, help);
        }
    }

    fn not_too_long<T>(&mut self, manager: &str, target: Option<(u64, &Located<T>)>) {
        if let Some((ns, given)) = target.filter(|(ns, _)| *ns > TARGET_MAX_NS) {
            let title = format!("a `target` of {} is too long for {manager}", Time(ns));
            let help = format!("it is at most \"{}\"", Time(TARGET_MAX_NS));
            self.mistake(&given.at, title, help);
        }
    }
}

fn time_of(target: &Option<Located<Length>>) -> Option<(u64, &Located<Length>)> {
    let given = target.as_ref()?;
    Some((given.value.ns()?, given))
}

impl Kind for Gain {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        let help = format!(
            "write a number from 0 to {PIE_GAIN_MAX}: the change of the probability a second, such \
             as alpha = 0.125, beta = 1.25"
        );
        number(value, key, 0.0..=PIE_GAIN_MAX, &help)
    }

    fn text(gain: &f64) -> String {
        gain.to_string()
    }
}

impl Kind for Phi {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        let help = format!("write a number above 1, at most 2, such as {key} = 1.001");
        number(value, key, 1.0 + f64::EPSILON..=2.0, &help)
    }

    fn text(phi: &f64) -> String {
        phi.to_string()
    }
}
