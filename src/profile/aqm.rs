// SPDX-License-Identifier: MIT OR Apache-2.0
//! Active queue management: RED, CoDel and PIE, their keys and defaults.

use serde::{Serialize, Serializer};

use super::kinds::{Share, SomeTime};
use crate::text::{
    At, Draft, Entry, Located, Mistake, Reader, Time, Value, Word, is_none, number, quantity,
    table, word,
};

/// Who drops or marks before the queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum Aqm {
    Red(Red),
    CoDel(CoDel),
    Pie(Pie),
}

table! {
    /// Floyd and Jacobson 1993.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize)]
    pub struct Red {
        /// Average backlog from which packets are dropped.
        #[serde(rename = "min_ns", serialize_with = "on_the_wire")]
        min: Length = Length::Bytes(0), "min" as Backlog;
        /// Average backlog from which all are; in the same unit as `min`, and more.
        #[serde(rename = "max_ns", serialize_with = "on_the_wire")]
        max: Length = Length::Bytes(0), "max" as Backlog;
        /// Share dropped just below `max`, 0.0..=1.0; tc-red(8)'s.
        probability: f64 = 0.02, "probability" as Share;
        /// Of the newest length in the average, above 0.0, at most 1.0; the paper's.
        weight: f64 = 0.002, "weight" as Weight;
    }
    beside {
        /// Mark instead of dropping where the sender understands it.
        ecn: bool = false;
    }
    struct RedDraft {}
}

table! {
    /// RFC 8289.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub struct CoDel {
        /// Sojourn time to stay below, ns.
        target_ns: u64 = 5_000_000, "target" as SomeTime;
        /// Time it may be above that, ns.
        interval_ns: u64 = 100_000_000, "interval" as SomeTime;
    }
    beside {
        ecn: bool = false;
    }
    struct CoDelDraft {}
}

table! {
    /// RFC 8033.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

/// Length of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// On the wire.
    Bytes(u64),
    /// ns to serialise it.
    Time(u64),
}

/// As ns, which is how the classifier has it.
fn on_the_wire<S: Serializer>(length: &Length, to: S) -> Result<S::Ok, S::Error> {
    match length {
        Length::Time(ns) => to.serialize_u64(*ns),
        Length::Bytes(_) => Err(serde::ser::Error::custom(
            "bytes take no time without a rate",
        )),
    }
}

/// What the classifier's fixed point has room for.
const PIE_TARGET_MAX_NS: u64 = 8_000_000_000;
const PIE_GAIN_MAX: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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

/// A manager's keys, of which another manager has others.
#[derive(Debug, Clone)]
pub(crate) enum Manager {
    Red(RedDraft),
    CoDel(CoDelDraft),
    Pie(PieDraft),
}

impl Manager {
    fn kind(&self) -> Kind {
        match self {
            Self::Red(_) => Kind::Red,
            Self::CoDel(_) => Kind::CoDel,
            Self::Pie(_) => Kind::Pie,
        }
    }

    fn keys(&self) -> &'static [&'static str] {
        match self {
            Self::Red(_) => RedDraft::KEYS,
            Self::CoDel(_) => CoDelDraft::KEYS,
            Self::Pie(_) => PieDraft::KEYS,
        }
    }

    fn key(&mut self, reader: &mut Reader, entry: &Entry) -> bool {
        match self {
            Self::Red(draft) => draft.key(reader, entry),
            Self::CoDel(draft) => draft.key(reader, entry),
            Self::Pie(draft) => draft.key(reader, entry),
        }
    }
}

/// The keys of all managers, each once.
pub(super) const KEYS: &[&str] = &[
    "min",
    "max",
    "probability",
    "weight",
    "target",
    "interval",
    "tupdate",
    "alpha",
    "beta",
];

pub(crate) type AqmDraft = Option<Located<Manager>>;

impl Reader {
    /// The key `aqm`; true if it is another one than before, whose keys are gone then.
    pub(super) fn aqm_kind(&mut self, draft: &mut AqmDraft, value: &Located<Value>) -> bool {
        if is_none(value) {
            *draft = None;
            return true;
        }
        let Some(kind) = self.read(value, |v| word(v, "aqm")) else {
            return false;
        };
        let manager = match (draft.take(), kind.value) {
            (Some(same), kind) if same.value.kind() == kind => {
                *draft = Some(same);
                return false;
            }
            (_, Kind::Red) => Manager::Red(RedDraft::default()),
            (_, Kind::CoDel) => Manager::CoDel(CoDelDraft::default()),
            (_, Kind::Pie) => Manager::Pie(PieDraft::default()),
        };
        *draft = Some(Located {
            value: manager,
            at: kind.at,
        });
        true
    }

    /// One key of a manager; false if none has it.
    pub(super) fn aqm_key(&mut self, draft: &mut AqmDraft, entry: &Entry) -> bool {
        let key = &entry.key.value;
        if !KEYS.contains(&key.as_str()) {
            return false;
        }
        let (title, help) = if let Some(Located { value: manager, .. }) = draft {
            if manager.key(self, entry) {
                return true;
            }
            (
                format!(
                    "`{key}` does not go with aqm = \"{}\"",
                    manager.kind().word()
                ),
                format!("its keys are {}, ecn", manager.keys().join(", ")),
            )
        } else {
            (
                format!("`{key}` without `aqm`"),
                "say whose it is: aqm = \"red\", \"codel\" or \"pie\"".to_owned(),
            )
        };
        (self.mistakes).push(Mistake::new(&entry.value.at, title, help));
        true
    }

    /// The finished manager; meaningless if that adds a mistake.
    pub(super) fn finish_aqm(&mut self, draft: &AqmDraft, ecn: bool) -> Option<Aqm> {
        let Located { value, at } = draft.as_ref()?;
        match value {
            Manager::Red(draft) => self.finish_red(draft, at, ecn).map(Aqm::Red),
            Manager::CoDel(draft) => Some(Aqm::CoDel(CoDel {
                ecn,
                ..draft.values()
            })),
            Manager::Pie(draft) => Some(Aqm::Pie(self.finish_pie(draft, ecn))),
        }
    }

    fn finish_red(&mut self, draft: &RedDraft, at: &At, ecn: bool) -> Option<Red> {
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
            ecn,
            ..draft.values()
        })
    }

    fn finish_pie(&mut self, draft: &PieDraft, ecn: bool) -> Pie {
        let target = draft.target_ns.as_ref();
        if let Some(target) = target.filter(|target| target.value > PIE_TARGET_MAX_NS) {
            let title = format!("a `target` of {} is too long for pie", Time(target.value));
            let help = format!("it is at most \"{}\"", Time(PIE_TARGET_MAX_NS));
            self.mistakes.push(Mistake::new(&target.at, title, help));
        }
        Pie {
            ecn,
            ..draft.values()
        }
    }
}

/// A length in bytes or in time.
pub(crate) struct Backlog;
/// A number above 0, at most 1.
pub(crate) struct Weight;
/// The change of a probability a second.
pub(crate) struct Gain;

impl crate::text::Kind for Backlog {
    type Value = Length;

    fn read(value: &Located<Value>, key: &str) -> Result<Length, Mistake> {
        quantity(value, key, "\"30kB\" or \"20ms\"")
    }

    fn text(length: &Length) -> String {
        format!("\"{length}\"")
    }
}

impl crate::text::Kind for Weight {
    type Value = f64;

    fn read(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
        let help = "write a number above 0, at most 1, such as weight = 0.002";
        number(value, key, f64::MIN_POSITIVE..=1.0, help)
    }

    fn text(weight: &f64) -> String {
        weight.to_string()
    }
}

impl crate::text::Kind for Gain {
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

impl Aqm {
    /// Whether it marks instead of dropping.
    pub fn ecn(&self) -> bool {
        match self {
            Self::Red(red) => red.ecn,
            Self::CoDel(codel) => codel.ecn,
            Self::Pie(pie) => pie.ecn,
        }
    }

    /// Its name and all its keys: `codel target 5ms interval 100ms`.
    pub fn summary(&self) -> String {
        let (kind, keys) = match self {
            Self::Red(red) => (Kind::Red, red.plain_text_of_all()),
            Self::CoDel(codel) => (Kind::CoDel, codel.plain_text_of_all()),
            Self::Pie(pie) => (Kind::Pie, pie.plain_text_of_all()),
        };
        let ecn = if self.ecn() { " ecn" } else { "" };
        format!("{}{keys}{ecn}", kind.word())
    }

    /// The keys of a queue that make it.
    pub(super) fn keys(&self) -> String {
        let (kind, mut keys) = match self {
            Self::Red(red) => (Kind::Red, red.keys_text()),
            Self::CoDel(codel) => (Kind::CoDel, codel.keys_text()),
            Self::Pie(pie) => (Kind::Pie, pie.keys_text()),
        };
        let ecn = self.ecn();
        keys.insert(0, format!("aqm = \"{}\"", kind.word()));
        if ecn {
            keys.push("ecn = true".to_owned());
        }
        keys.join(", ")
    }
}
