// SPDX-License-Identifier: MIT OR Apache-2.0
//! `queue`: a limit, or a table of limits, marking and management.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::aqm::AqmDraft;
use super::draft::LinkDraft;
use super::queue::{Bytes, Packets};
use super::{Aqm, Limit, Wire, keys};
use crate::abi;
use crate::text::{
    At, Draft, Entry, Kind, Located, Mistake, Reader, Time, Value, duration, is_none, quantity,
    table,
};

/// Packets in front of the link where the profile does not say: tc-netem's limit.
pub const DEFAULT_QUEUE_PACKETS: u32 = 1000;

table! {
    /// The backlog in front of the link. All limits given hold; without any it is 1000 packets.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
    #[schemars(extend("minProperties" = 1))]
    pub struct Queue {
        /// Largest number of packets, the one on the wire included.
        #[schemars(with = "u32", range(min = 1, max = abi::EMUD_RING_LEN))]
        #[serde(skip_serializing_if = "Option::is_none")]
        packets: Option<u32> = None, "limit" as PacketLimit;
        /// Largest number of bytes on the wire not yet sent, the arriving packet included.
        #[schemars(with = "u64")]
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64> = None, "bytes" as ByteLimit;
        /// Longest waiting time in ns.
        #[schemars(with = "u64")]
        #[serde(skip_serializing_if = "Option::is_none")]
        time_ns: Option<u64> = None, "time" as TimeLimit;
    }
    beside {
        /// Packets that wait for longer than this, in ns, are marked; only without `aqm`.
        #[serde(skip)]
        ecn_above_ns: Option<u64> = None;
        #[serde(skip)]
        aqm: Option<Aqm> = None;
        /// A full queue holds back senders of this host instead of dropping their packets; only of a class.
        #[serde(skip)]
        blocks: bool = false;
    }
    struct QueueDraft {
        ecn: Option<Located<Ecn>>;
        blocks: Option<Located<bool>>;
        aqm: AqmDraft;
    }
}

/// The keys of `queue` that the table does not read.
pub(super) const OTHER_KEYS: &[&str] = &["ecn", "aqm", "full"];

impl Queue {
    /// Returns whether a limit is given; without any there is a usual one.
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
    /// Returns the limit in packets in front of a link with a rate; 0: none. RIO has one always: the classifier
    /// knows the assured ones of the packets that it remembers.
    pub fn limit_packets(&self) -> u32 {
        let usual = match (self.is_limited(), self.aqm) {
            (false, _) | (true, Some(Aqm::Rio(_))) => DEFAULT_QUEUE_PACKETS,
            (true, _) => 0,
        };
        self.packets.unwrap_or(usual).min(abi::EMUD_RING_LEN)
    }

    /// Returns the same in front of a pair of addresses, whose limit is usually one in bytes.
    pub fn pair_limit_packets(&self) -> u32 {
        let usual = match self.aqm {
            Some(Aqm::Rio(_)) => DEFAULT_QUEUE_PACKETS,
            _ => 0,
        };
        self.packets.unwrap_or(usual)
    }
}

/// As the value of the key: the short form where it says all.
impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut keys = self.keys_text();
        if let ([one], None, None, false) = (&keys[..], self.ecn_above_ns, self.aqm, self.blocks)
            && let Some((_, limit)) = one.split_once(" = ")
        {
            return f.write_str(limit);
        }
        keys.extend(
            self.ecn_above_ns
                .map(|ns| format!("ecn = \"{}\"", Time(ns))),
        );
        keys.extend(self.aqm.map(|aqm| aqm.keys()));
        keys.extend(self.blocks.then(|| "full = \"block\"".to_owned()));
        write!(f, "{{ {} }}", keys.join(", "))
    }
}

impl QueueDraft {
    /// Returns where the queue is described.
    pub fn place(&self) -> Option<&At> {
        let limits = self.places().next().map(|(_, at)| at);
        limits
            .or(self.aqm.as_ref().map(|aqm| &aqm.at))
            .or(self.ecn.as_ref().map(|ecn| &ecn.at))
            .or(self.blocks.as_ref().map(|blocks| &blocks.at))
    }
}

/// What `ecn` says: from when, or to a manager whether.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ecn {
    AboveNs(u64),
    Wanted(bool),
}

impl Reader {
    /// Reads the value of `queue`: a table, or a limit, which replaces all keys of the queue.
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
            match entry.key.value.as_str() {
                "aqm" => {}
                "full" => self.put_or_remove(&mut draft.blocks, &entry.value, blocks),
                "ecn" => self.put_or_remove(&mut draft.ecn, &entry.value, ecn),
                _ if draft.key(self, entry) || self.aqm_key(&mut draft.aqm, entry) => {}
                _ => self.mistakes.push(keys::unknown(&entry.key, &keys::QUEUE)),
            }
        }
    }

    /// Returns the finished queue; meaningless if that adds a mistake.
    pub(super) fn finish_queue(&mut self, link: &LinkDraft, wire: &Wire) -> Queue {
        self.holds_a_packet(link.queue.bytes.as_ref(), link, wire);
        if let Some(Located { value: true, at }) = &link.queue.blocks {
            let help = "the queue of a link decides when a packet arrives, and never holds one: put the packets in a \
                        class of a [bottleneck] (docs/queues.md#senders-that-wait)";
            self.mistake(at, "`full = \"block\"` of a link", help);
        }
        self.managed_queue(&link.queue)
    }

    /// Returns the queue with its manager, without a check of its limits.
    pub(super) fn managed_queue(&mut self, draft: &QueueDraft) -> Queue {
        let (above_ns, wanted) = self.finish_ecn(draft);
        let queue = Queue {
            ecn_above_ns: above_ns,
            aqm: self.finish_aqm(&draft.aqm, wanted),
            blocks: draft.blocks.as_ref().is_some_and(|blocks| blocks.value),
            ..draft.values()
        };
        self.can_block(draft, &queue);
        queue
    }

    fn can_block(&mut self, draft: &QueueDraft, queue: &Queue) {
        let Some(Located { value: true, at }) = &draft.blocks else {
            return;
        };
        let beside = match queue {
            _ if draft.aqm.is_some() => "`aqm`",
            _ if draft.ecn.is_some() => "`ecn`",
            Queue {
                time_ns: Some(_), ..
            } => "a limit in time",
            _ => return,
        };
        let title = format!("`full = \"block\"` beside {beside}");
        let help = "its senders wait until there is room in packets or bytes: give it a limit such as \"100p\" alone";
        self.mistake(at, title, help);
    }

    fn finish_ecn(&mut self, draft: &QueueDraft) -> (Option<u64>, bool) {
        let Some(Located { value: ecn, at }) = &draft.ecn else {
            return (None, false);
        };
        match (*ecn, draft.aqm.is_some()) {
            (Ecn::AboveNs(ns), false) => (Some(ns), false),
            (Ecn::Wanted(wanted), true) => (None, wanted),
            (Ecn::Wanted(false), false) => (None, false),
            (Ecn::Wanted(true), false) => {
                let help = "give the sojourn time above which packets are marked, ecn = \"20ms\", or \
                            a manager that marks, aqm = \"codel\"";
                self.mistake(at, "`ecn = true` without `aqm`", help);
                (None, false)
            }
            (Ecn::AboveNs(_), true) => {
                let help = "write ecn = true: the manager says when to mark; a threshold is for a \
                            queue without `aqm`";
                self.mistake(at, "an `ecn` threshold beside `aqm`", help);
                (None, false)
            }
        }
    }
}

/// Packets.
pub(crate) struct PacketLimit;
/// Bytes on the wire.
pub(crate) struct ByteLimit;
/// ns, 1 at least.
pub(crate) struct TimeLimit;

impl Kind for PacketLimit {
    type Value = u32;

    fn read(value: &Located<Value>, key: &str) -> Result<u32, Mistake> {
        quantity(value, key, "\"1000p\"").map(|Packets(packets)| packets)
    }

    fn text(packets: &u32) -> String {
        format!("\"{}\"", Limit::Packets(*packets))
    }
}

impl Kind for ByteLimit {
    type Value = u64;

    fn read(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
        quantity(value, key, "\"256KiB\"").map(|Bytes(bytes)| bytes)
    }

    fn text(bytes: &u64) -> String {
        format!("\"{}\"", Bytes(*bytes))
    }
}

impl Kind for TimeLimit {
    type Value = u64;

    fn read(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
        match duration(value, key)? {
            0 => {
                let help = "a queue in packets can be as short as \"1p\"";
                Err(Mistake::new(&value.at, "a queue with time 0", help))
            }
            ns => Ok(ns),
        }
    }

    fn text(ns: &u64) -> String {
        format!("\"{}\"", Time(*ns))
    }
}

/// Reads whether a full queue holds back senders.
fn blocks(value: &Located<Value>) -> Result<bool, Mistake> {
    match &value.value {
        Value::Text(text) if text == "drop" => Ok(false),
        Value::Text(text) if text == "block" => Ok(true),
        _ => {
            let help = "a packet that finds no room is dropped, or its sender waits";
            Err(Mistake::new(
                &value.at,
                "`full` is \"drop\" or \"block\"",
                help,
            ))
        }
    }
}

/// Reads a time, or true or false, also as text, which `emud set` gives.
fn ecn(value: &Located<Value>) -> Result<Ecn, Mistake> {
    match &value.value {
        Value::Flag(wanted) => Ok(Ecn::Wanted(*wanted)),
        Value::Text(text) if text == "true" => Ok(Ecn::Wanted(true)),
        Value::Text(text) if text == "false" => Ok(Ecn::Wanted(false)),
        _ => duration(value, "ecn").map(Ecn::AboveNs),
    }
}
