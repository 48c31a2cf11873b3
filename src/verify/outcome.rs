// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a verification.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::Request;
use super::cdf::Cdf;
use super::check::{Check, CheckVerdict, FALSE_ALARM, PER_CHECK, What};
use super::judge::Judge;
use super::probe::{Plan, Stream};
use super::requested::Links;

/// How the link was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// UDP, both ends on the clock of this machine.
    OneWay,
    /// ICMP echo: both directions together.
    RoundTrip,
}

/// The number increases when a key is removed or changes its meaning.
pub const VERIFY_SCHEMA: &str = "emud-verify/1";

/// The configuration of a link and what was measured.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outcome {
    /// Version of the format.
    #[schemars(extend("const" = VERIFY_SCHEMA))]
    pub schema: &'static str,
    /// Name of the interface.
    #[schemars(length(min = 1))]
    pub interface: String,
    /// Name of the profile that the link was compared with.
    pub profile: String,
    /// The profile was given with --against; otherwise it is the one in force, as the kernel runs it.
    pub against: bool,
    /// How the link was measured.
    pub method: Method,
    /// Address of the other end.
    #[schemars(length(min = 1))]
    pub peer: IpAddr,
    /// Duration of sending probes in s (--duration).
    #[schemars(range(min = 1))]
    pub duration_s: f64,
    /// Delay that machine and path may add in ns (--resolution).
    pub resolution_ns: u64,
    /// Share of runs with "disagrees" on links that are as configured, at most.
    pub false_alarm: f64,
    /// Confidence level of each interval.
    pub confidence: f64,
    /// "disagrees" if a check does or a direction with a link is not emulated, otherwise "not_measured" if a check could not be measured,
    /// otherwise "not_judged" if a check or a direction could not be judged.
    pub verdict: CheckVerdict,
    /// One check for each direction and quantity.
    pub checks: Vec<Check>,
    /// Sentences on the machine and on the precision of the measurement.
    pub notes: Vec<String>,
    /// Delays of each direction.
    #[serde(skip)]
    pub curves: Vec<Curve>,
    /// Whether a direction was left out.
    #[serde(skip)]
    unjudged: bool,
    /// Whether a direction with a link is not emulated.
    #[serde(skip)]
    absent: bool,
}

/// Delays to plot, ns.
#[derive(Debug, Clone)]
pub struct Curve {
    /// `up` or `down`.
    pub direction: &'static str,
    /// Measured delays, ascending.
    pub measured: Vec<f64>,
    /// The distribution requested.
    pub asked: Cdf,
    /// Serialisation of a probe, which is added to `asked`.
    pub serialisation_ns: f64,
}

impl Outcome {
    pub(super) fn new(request: &Request, links: &Links, method: Method, peer: IpAddr) -> Self {
        let (mut notes, mut unjudged, mut absent) = (Vec::new(), false, false);
        let profile = &links.profile;
        let both = [("up", &links.up), ("down", &links.down)];
        for ((name, asked), running) in both.into_iter().zip(&links.running) {
            let Some(asked) = asked else {
                notes.push(format!("{name}: not emulated, so not judged"));
                continue;
            };
            match running {
                // Probes need not notice a loss of 0.01 %.
                None => {
                    notes.push(format!("{name}: not emulated, but {profile} has a link"));
                    absent = true;
                }
                // Without a rate to exceed there is no train, and probes do not fill a queue.
                Some(running) if running.may_limit() && !asked.may_limit() => {
                    notes.push(format!(
                        "{name}: the rate is not judged: the link can limit it, {profile} does not"
                    ));
                    unjudged = true;
                }
                Some(_) => {}
            }
            if asked.nothing_judged() {
                let why: Vec<_> = asked.unjudged.iter().map(|u| u.why).collect();
                notes.push(format!("{name}: not judged: it has {}", why.join(", ")));
                unjudged = true;
            } else if let Some(part) = asked.unjudged.iter().find(|u| u.limits) {
                notes.push(format!(
                    "{name}: packets may wait in {}: its rate and its queue are not judged",
                    part.why
                ));
            }
        }
        Self {
            schema: VERIFY_SCHEMA,
            interface: links.interface.clone(),
            profile: links.profile.clone(),
            against: request.against.is_some(),
            method,
            peer,
            duration_s: request.duration_ns as f64 / 1e9,
            resolution_ns: request.resolution_ns,
            false_alarm: FALSE_ALARM,
            confidence: 1.0 - PER_CHECK,
            verdict: CheckVerdict::NotMeasured,
            checks: Vec::new(),
            notes,
            curves: Vec::new(),
            unjudged,
            absent,
        }
    }

    pub(super) fn conclude(&mut self) {
        let any = |verdict| self.checks.iter().any(|c| c.verdict == verdict);
        self.verdict = if any(CheckVerdict::Disagrees) || self.absent {
            CheckVerdict::Disagrees
        } else if any(CheckVerdict::NotMeasured) || self.checks.is_empty() {
            CheckVerdict::NotMeasured
        } else if any(CheckVerdict::NotJudged) || self.unjudged {
            CheckVerdict::NotJudged
        } else {
            CheckVerdict::Agrees
        };
    }
}

impl Judge<'_> {
    pub(super) fn curve(&self, stream: &Stream) -> Curve {
        let each = self
            .ways
            .iter()
            .map(|w| w.serialisation_ns(self.probe_bytes));
        let mut measured = stream.delays_ns();
        measured.sort_by(f64::total_cmp);
        Curve {
            direction: self.direction,
            measured,
            asked: Cdf::of(&self.ways),
            serialisation_ns: each.sum(),
        }
    }

    pub(super) fn note(&self, plan: Plan, stream: &Stream) -> Vec<String> {
        let mut notes = Vec::new();
        let mut delays = stream.delays_ns();
        delays.sort_by(f64::total_cmp);
        let duration_ns = f64::from(plan.count) * plan.interval_ns as f64;
        let worth = self
            .ways
            .iter()
            .filter_map(|w| w.independent_values(duration_ns));
        if let Some(worth) = worth.reduce(f64::min) {
            let worth = worth.min(delays.len() as f64);
            notes.push(format!(
                "{}: {} of {} probes have a known delay; in order, these count as {worth:.0} independent values",
                self.direction,
                delays.len(),
                plan.count
            ));
        }
        let judged = self
            .ways
            .iter()
            .all(|w| w.unjudged(What::DelayMean).is_none());
        let beyond = self.beyond(&delays, &Cdf::of(&self.ways));
        if judged && beyond > 0 {
            notes.push(format!(
                "{}: {beyond} probes were later than the link can make them and are excluded as pauses of this machine",
                self.direction
            ));
        }
        let vague = stream.sent.iter().filter(|s| s.vague).count();
        if vague > 0 {
            notes.push(format!(
                "{}: this machine paused while it sent {vague} of {} probes; their delays are not counted",
                self.direction, plan.count
            ));
        }
        notes
    }
}
