// SPDX-License-Identifier: MIT OR Apache-2.0
//! `queue`: a limit, or a table of limits, marking and management.

use std::fmt;

use super::aqm::AqmDraft;
use super::check::value;
use super::draft::LinkDraft;
use super::queue::{Bytes, Packets};
use super::{Aqm, Limit, Wire, keys};
use crate::abi;
use crate::text::is_none;
use crate::text::{At, Entry, Located, Mistake, Reader, Time, Value, duration, quantity};

/// Packets in front of the link where the profile does not say: tc-netem's limit.
pub const DEFAULT_QUEUE_PACKETS: u32 = 1000;

/// The backlog in front of the link. All limits given hold; without any it is 1000 packets.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Queue {
    /// As [`Limit::Packets`].
    pub packets: Option<u32>,
    /// As [`Limit::Bytes`].
    pub bytes: Option<u64>,
    /// As [`Limit::Time`].
    pub time_ns: Option<u64>,
    /// Packets that wait for longer than so many ns are marked; only without `aqm`.
    pub ecn_above_ns: Option<u64>,
    pub aqm: Option<Aqm>,
}

impl Queue {
    /// Whether a limit is given; without any there is a usual one.
    pub fn is_limited(&self) -> bool {
        self.packets.is_some() || self.bytes.is_some() || self.time_ns.is_some()
    }
}

impl From<Limit> for Queue {
    fn from(limit: Limit) -> Self {
        let none = Self::default();
        match limit {
            Limit::Packets(packets) => Self {
                packets: Some(packets),
                ..none
            },
            Limit::Bytes(bytes) => Self {
                bytes: Some(bytes),
                ..none
            },
            Limit::Time(ns) => Self {
                time_ns: Some(ns),
                ..none
            },
        }
    }
}

impl Queue {
    /// The limit in packets in front of a link with a rate; 0: none.
    pub fn limit_packets(&self) -> u32 {
        let usual = if self.is_limited() {
            0
        } else {
            DEFAULT_QUEUE_PACKETS
        };
        self.packets.unwrap_or(usual).min(abi::EMUD_RING_LEN)
    }

    fn limits(&self) -> impl Iterator<Item = (&'static str, Limit)> + use<> {
        [
            ("limit", self.packets.map(Limit::Packets)),
            ("bytes", self.bytes.map(Limit::Bytes)),
            ("time", self.time_ns.map(Limit::Time)),
        ]
        .into_iter()
        .filter_map(|(key, limit)| Some((key, limit?)))
    }
}

/// As the value of the key: the short form where it says all.
impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut limits = self.limits();
        if let (Some((_, limit)), None, None, None) =
            (limits.next(), limits.next(), self.ecn_above_ns, self.aqm)
        {
            return write!(f, "\"{limit}\"");
        }
        let mut parts: Vec<String> = self
            .limits()
            .map(|(key, limit)| format!("{key} = \"{limit}\""))
            .collect();
        parts.extend(
            self.ecn_above_ns
                .map(|ns| format!("ecn = \"{}\"", Time(ns))),
        );
        parts.extend(self.aqm.map(|aqm| aqm.keys()));
        write!(f, "{{ {} }}", parts.join(", "))
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct QueueDraft {
    packets: Option<Located<u32>>,
    pub bytes: Option<Located<u64>>,
    time_ns: Option<Located<u64>>,
    ecn: Option<Located<Ecn>>,
    aqm: AqmDraft,
}

impl QueueDraft {
    /// Where something is said of the queue.
    pub fn at(&self) -> Option<&At> {
        let packets = self.packets.as_ref().map(|p| &p.at);
        packets
            .or(self.bytes.as_ref().map(|b| &b.at))
            .or(self.time_ns.as_ref().map(|t| &t.at))
            .or(self.aqm.kind.as_ref().map(|k| &k.at))
            .or(self.ecn.as_ref().map(|e| &e.at))
    }
}

/// What `ecn` says: from when, or to a manager whether.
#[derive(Debug, Clone, Copy)]
enum Ecn {
    AboveNs(u64),
    Wanted(bool),
}

impl Reader {
    /// A plain limit replaces all that was said of the queue.
    pub(super) fn queue(&mut self, draft: &mut QueueDraft, value: &Located<Value>) {
        if is_none(value) {
            *draft = QueueDraft::default();
            return;
        }
        if let Value::Table(entries) = &value.value {
            self.queue_table(draft, entries);
            return;
        }
        let example = "\"1000p\", \"256KiB\" or \"200ms\"";
        let Some(limit) = self.read(value, |v| quantity::<Limit>(v, "queue", example)) else {
            return;
        };
        *draft = QueueDraft::default();
        let at = limit.at;
        match limit.value {
            Limit::Packets(value) => draft.packets = Some(Located { value, at }),
            Limit::Bytes(value) => draft.bytes = Some(Located { value, at }),
            Limit::Time(value) => draft.time_ns = Some(Located { value, at }),
        }
    }

    fn queue_table(&mut self, draft: &mut QueueDraft, entries: &[Entry]) {
        // First: another manager takes the keys of the former away, not its own.
        if let Some(entry) = entries.iter().find(|entry| entry.key.value == "aqm")
            && self.aqm_kind(&mut draft.aqm, &entry.value)
        {
            draft.ecn = None;
        }
        for entry in entries {
            let value = &entry.value;
            match entry.key.value.as_str() {
                "aqm" => {}
                "limit" => self.put_or_remove(&mut draft.packets, value, |v| {
                    quantity(v, "limit", "\"1000p\"").map(|Packets(n)| n)
                }),
                "bytes" => self.put_or_remove(&mut draft.bytes, value, |v| {
                    quantity(v, "bytes", "\"256KiB\"").map(|Bytes(n)| n)
                }),
                "time" => self.put_or_remove(&mut draft.time_ns, value, |v| {
                    not_zero(v, duration(v, "time")?)
                }),
                "ecn" => self.put_or_remove(&mut draft.ecn, value, ecn),
                _ if self.aqm_key(&mut draft.aqm, entry) => {}
                _ => self.mistakes.push(keys::unknown(&entry.key, &keys::QUEUE)),
            }
        }
    }

    /// The finished queue; meaningless if that adds a mistake.
    pub(super) fn finish_queue(&mut self, link: &LinkDraft, wire: &Wire) -> Queue {
        self.holds_a_packet(link, wire);
        let draft = &link.queue;
        let (above_ns, wanted) = self.finish_ecn(draft);
        Queue {
            packets: value(&draft.packets),
            bytes: value(&draft.bytes),
            time_ns: value(&draft.time_ns),
            ecn_above_ns: above_ns,
            aqm: self.finish_aqm(&draft.aqm, wanted),
        }
    }

    fn finish_ecn(&mut self, draft: &QueueDraft) -> (Option<u64>, bool) {
        let Some(Located { value: ecn, at }) = &draft.ecn else {
            return (None, false);
        };
        match (*ecn, draft.aqm.kind.is_some()) {
            (Ecn::AboveNs(ns), false) => (Some(ns), false),
            (Ecn::Wanted(wanted), true) => (None, wanted),
            (Ecn::Wanted(false), false) => (None, false),
            (Ecn::Wanted(true), false) => {
                let help = "say above which sojourn time packets are marked, ecn = \"20ms\", or \
                            who marks, aqm = \"codel\"";
                self.mistakes
                    .push(Mistake::new(at, "`ecn = true` without `aqm`", help));
                (None, false)
            }
            (Ecn::AboveNs(_), true) => {
                let help = "write ecn = true: the manager says when to mark; a threshold is for a \
                            queue without `aqm`";
                self.mistakes
                    .push(Mistake::new(at, "an `ecn` threshold beside `aqm`", help));
                (None, false)
            }
        }
    }
}

fn not_zero(value: &Located<Value>, ns: u64) -> Result<u64, Mistake> {
    if ns > 0 {
        return Ok(ns);
    }
    let help = "a queue in packets can be as short as \"1p\"";
    Err(Mistake::new(&value.at, "a queue of no time", help))
}

/// A time, or true or false; as text too, which is what `emud set` gives.
fn ecn(value: &Located<Value>) -> Result<Ecn, Mistake> {
    match &value.value {
        Value::Flag(wanted) => Ok(Ecn::Wanted(*wanted)),
        Value::Text(text) if text == "true" => Ok(Ecn::Wanted(true)),
        Value::Text(text) if text == "false" => Ok(Ecn::Wanted(false)),
        _ => duration(value, "ecn").map(Ecn::AboveNs),
    }
}
