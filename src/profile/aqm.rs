// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active queue management: RED, CoDel and PIE, their keys and defaults.

use super::check::value;
use crate::text::is_none;
use crate::text::{
    At, Entry, Located, Mistake, Percent, Reader, Time, Value, Word, duration, number, quantity,
    word,
};

/// Who drops or marks before the queue is full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aqm {
    Red(Red),
    CoDel(CoDel),
    Pie(Pie),
}

/// Floyd and Jacobson 1993.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Average backlog from which packets are dropped.
    pub min: Length,
    /// Average backlog from which all are; in the same unit as `min`, and more.
    pub max: Length,
    /// Share dropped just below `max`, 0.0..=1.0.
    pub probability: f64,
    /// Of the newest length in the average, above 0.0, at most 1.0.
    pub weight: f64,
    /// Mark instead of dropping where the sender understands it.
    pub ecn: bool,
}

/// RFC 8289.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// Sojourn time to stay below, ns.
    pub target_ns: u64,
    /// Time it may be above that, ns.
    pub interval_ns: u64,
    pub ecn: bool,
}

/// RFC 8033.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pie {
    /// Delay to aim at, ns, at most 8 s.
    pub target_ns: u64,
    /// Between two updates of the probability, ns.
    pub tupdate_ns: u64,
    /// Change of the probability for each second above the target, 0.0..=10.0.
    pub alpha: f64,
    /// And for each second that the delay has grown, 0.0..=10.0.
    pub beta: f64,
    pub ecn: bool,
}

/// Length of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// On the wire.
    Bytes(u64),
    /// ns to serialise it.
    Time(u64),
}

/// tc-red(8)'s.
const RED_PROBABILITY: f64 = 0.02;
/// The paper's.
const RED_WEIGHT: f64 = 0.002;
/// RFC 8289's.
const CODEL_TARGET_NS: u64 = 5_000_000;
const CODEL_INTERVAL_NS: u64 = 100_000_000;
/// RFC 8033's.
const PIE_TARGET_NS: u64 = 15_000_000;
const PIE_TUPDATE_NS: u64 = 15_000_000;
const PIE_ALPHA: f64 = 0.125;
const PIE_BETA: f64 = 1.25;

/// What the classifier's fixed point has room for.
const PIE_TARGET_MAX_NS: u64 = 8_000_000_000;
const PIE_GAIN_MAX: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Red,
    CoDel,
    Pie,
}

impl Word for Kind {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("red", Self::Red),
        ("codel", Self::CoDel),
        ("pie", Self::Pie),
    ];
}

impl Kind {
    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Red => &["min", "max", "probability", "weight"],
            Self::CoDel => &["target", "interval"],
            Self::Pie => &["target", "tupdate", "alpha", "beta"],
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct AqmDraft {
    pub kind: Option<Located<Kind>>,
    min: Option<Located<Length>>,
    max: Option<Located<Length>>,
    probability: Option<Located<f64>>,
    weight: Option<Located<f64>>,
    target: Option<Located<u64>>,
    interval: Option<Located<u64>>,
    tupdate: Option<Located<u64>>,
    alpha: Option<Located<f64>>,
    beta: Option<Located<f64>>,
}

impl AqmDraft {
    /// The keys given, with their places.
    fn given(&self) -> impl Iterator<Item = (&'static str, &At)> {
        fn at<T>(slot: &Option<Located<T>>) -> Option<&At> {
            slot.as_ref().map(|located| &located.at)
        }
        [
            ("min", at(&self.min)),
            ("max", at(&self.max)),
            ("probability", at(&self.probability)),
            ("weight", at(&self.weight)),
            ("target", at(&self.target)),
            ("interval", at(&self.interval)),
            ("tupdate", at(&self.tupdate)),
            ("alpha", at(&self.alpha)),
            ("beta", at(&self.beta)),
        ]
        .into_iter()
        .filter_map(|(key, at)| Some((key, at?)))
    }
}

impl Reader {
    /// The key `aqm`; true if it is another one than before, whose keys are gone then.
    pub(super) fn aqm_kind(&mut self, draft: &mut AqmDraft, value: &Located<Value>) -> bool {
        if is_none(value) {
            *draft = AqmDraft::default();
            return true;
        }
        let Some(kind) = self.read(value, |v| word(v, "aqm")) else {
            return false;
        };
        let other = draft.kind.as_ref().map(|k| k.value) != Some(kind.value);
        if other {
            *draft = AqmDraft::default();
        }
        draft.kind = Some(kind);
        other
    }

    /// One key of a manager; false if it is none.
    pub(super) fn aqm_key(&mut self, draft: &mut AqmDraft, entry: &Entry) -> bool {
        const LENGTH: &str = "\"30kB\" or \"20ms\"";
        let value = &entry.value;
        match entry.key.value.as_str() {
            "min" => self.put_or_remove(&mut draft.min, value, |v| quantity(v, "min", LENGTH)),
            "max" => self.put_or_remove(&mut draft.max, value, |v| quantity(v, "max", LENGTH)),
            "probability" => self.put_or_remove(&mut draft.probability, value, |v| {
                quantity(v, "probability", "\"2%\"").map(|Percent(p)| p)
            }),
            "weight" => self.put_or_remove(&mut draft.weight, value, |v| {
                let help = "write a number above 0, at most 1, such as weight = 0.002";
                number(v, "weight", f64::MIN_POSITIVE..=1.0, help)
            }),
            "target" => self.put_or_remove(&mut draft.target, value, |v| time(v, "target")),
            "interval" => self.put_or_remove(&mut draft.interval, value, |v| time(v, "interval")),
            "tupdate" => self.put_or_remove(&mut draft.tupdate, value, |v| time(v, "tupdate")),
            "alpha" => self.put_or_remove(&mut draft.alpha, value, |v| gain(v, "alpha")),
            "beta" => self.put_or_remove(&mut draft.beta, value, |v| gain(v, "beta")),
            _ => return false,
        }
        true
    }

    /// The finished manager; meaningless if that adds a mistake.
    pub(super) fn finish_aqm(&mut self, draft: &AqmDraft, ecn: bool) -> Option<Aqm> {
        self.keys_go_with(draft);
        let kind = draft.kind.as_ref()?;
        match kind.value {
            Kind::Red => self.finish_red(draft, &kind.at, ecn).map(Aqm::Red),
            Kind::CoDel => Some(Aqm::CoDel(CoDel {
                target_ns: value(&draft.target).unwrap_or(CODEL_TARGET_NS),
                interval_ns: value(&draft.interval).unwrap_or(CODEL_INTERVAL_NS),
                ecn,
            })),
            Kind::Pie => Some(Aqm::Pie(self.finish_pie(draft, ecn))),
        }
    }

    fn keys_go_with(&mut self, draft: &AqmDraft) {
        for (key, at) in draft.given() {
            let (title, help) = match &draft.kind {
                None => (
                    format!("`{key}` without `aqm`"),
                    "say whose it is: aqm = \"red\", \"codel\" or \"pie\"".to_owned(),
                ),
                Some(kind) if kind.value.keys().contains(&key) => continue,
                Some(kind) => (
                    format!("`{key}` does not go with aqm = \"{}\"", kind.value.word()),
                    format!("its keys are {}, ecn", kind.value.keys().join(", ")),
                ),
            };
            self.mistakes.push(Mistake::new(at, title, help));
        }
    }

    fn finish_red(&mut self, draft: &AqmDraft, at: &At, ecn: bool) -> Option<Red> {
        let (Some(min), Some(max)) = (&draft.min, &draft.max) else {
            let help = "say from which average backlog packets are dropped, and from which all: \
                        min = \"30kB\", max = \"90kB\"";
            let title = "aqm = \"red\" without `min` and `max`";
            // One that could not be read has been answered.
            if self.mistakes.is_empty() {
                self.mistakes.push(Mistake::new(at, title, help));
            }
            return None;
        };
        let above = match (min.value, max.value) {
            (Length::Bytes(min), Length::Bytes(max)) | (Length::Time(min), Length::Time(max)) => {
                max > min
            }
            _ => {
                let help = "write both as bytes or both as times";
                let title = "`min` and `max` are in different units";
                self.mistakes.push(Mistake::new(&max.at, title, help));
                return None;
            }
        };
        if !above {
            let title = format!("a `max` of {} is not above `min`", max.value);
            let help = format!(
                "`min` is {}; the paper takes at least twice that",
                min.value
            );
            self.mistakes.push(Mistake::new(&max.at, title, help));
        }
        Some(Red {
            min: min.value,
            max: max.value,
            probability: value(&draft.probability).unwrap_or(RED_PROBABILITY),
            weight: value(&draft.weight).unwrap_or(RED_WEIGHT),
            ecn,
        })
    }

    fn finish_pie(&mut self, draft: &AqmDraft, ecn: bool) -> Pie {
        if let Some(target) = draft
            .target
            .as_ref()
            .filter(|t| t.value > PIE_TARGET_MAX_NS)
        {
            let title = format!("a `target` of {} is too long for pie", Time(target.value));
            let help = format!("it is at most \"{}\"", Time(PIE_TARGET_MAX_NS));
            self.mistakes.push(Mistake::new(&target.at, title, help));
        }
        Pie {
            target_ns: value(&draft.target).unwrap_or(PIE_TARGET_NS),
            tupdate_ns: value(&draft.tupdate).unwrap_or(PIE_TUPDATE_NS),
            alpha: value(&draft.alpha).unwrap_or(PIE_ALPHA),
            beta: value(&draft.beta).unwrap_or(PIE_BETA),
            ecn,
        }
    }
}

/// A time that is not zero.
fn time(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
    match duration(value, key)? {
        0 => Err(Mistake::new(
            &value.at,
            format!("`{key}` is zero"),
            "give it some time, such as \"5ms\", or leave it out for the usual",
        )),
        ns => Ok(ns),
    }
}

fn gain(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
    let help = format!(
        "write a number from 0 to {PIE_GAIN_MAX}: the change of the probability a second, such \
         as alpha = 0.125, beta = 1.25"
    );
    number(value, key, 0.0..=PIE_GAIN_MAX, &help)
}

impl Aqm {
    /// The keys of a queue that make it.
    pub(super) fn keys(&self) -> String {
        let (keys, ecn) = match self {
            Self::Red(red) => (
                format!(
                    "aqm = \"red\", min = \"{}\", max = \"{}\", probability = \"{}\", weight = {}",
                    red.min,
                    red.max,
                    Percent(red.probability),
                    red.weight
                ),
                red.ecn,
            ),
            Self::CoDel(codel) => (
                format!(
                    "aqm = \"codel\", target = \"{}\", interval = \"{}\"",
                    Time(codel.target_ns),
                    Time(codel.interval_ns)
                ),
                codel.ecn,
            ),
            Self::Pie(pie) => (
                format!(
                    "aqm = \"pie\", target = \"{}\", tupdate = \"{}\", alpha = {}, beta = {}",
                    Time(pie.target_ns),
                    Time(pie.tupdate_ns),
                    pie.alpha,
                    pie.beta
                ),
                pie.ecn,
            ),
        };
        if ecn { keys + ", ecn = true" } else { keys }
    }
}
