// SPDX-License-Identifier: MIT OR Apache-2.0
//! `queue` of a medium: a limit, or a table with a discipline.

use super::kinds::{number, unknown};
use crate::bottleneck::aqm::Choice;
use crate::medium::air::Discipline;
use crate::profile::aqm::choice;
use crate::profile::kinds::{Share, SomeBytes, SomePackets};
use crate::profile::{Aqm, Length, Red};
use crate::text::{Kind, Located, Mistake, Reader, Value, Word, kinds, table, words};

/// The queue of each station.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueueChoice {
    /// Packets.
    pub limit: u32,
    pub kind: QueueDiscipline,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum QueueDiscipline {
    Fifo,
    /// By ToS, as pfifo_fast.
    Priority,
    Red(Red),
    /// Access categories by DSCP.
    Edca,
}

impl Default for QueueChoice {
    fn default() -> Self {
        Self {
            limit: StationQueue::default().limit,
            kind: QueueDiscipline::Fifo,
        }
    }
}

impl QueueChoice {
    /// Returns the discipline for radios that send at `kbit` kbit/s.
    pub fn discipline(&self, kbit: u32) -> Discipline {
        let rate = u64::from(kbit) * 1000;
        match self.kind {
            QueueDiscipline::Fifo => Discipline::Fifo,
            QueueDiscipline::Priority => Discipline::Priority,
            QueueDiscipline::Edca => Discipline::Edca,
            QueueDiscipline::Red(red) => match choice(&Aqm::Red(red), rate) {
                Choice::Red(figures) => Discipline::Red(figures),
                _ => Discipline::Fifo,
            },
        }
    }
}

table! {
    /// The keys of a queue.
    #[derive(Debug, Clone, PartialEq)]
    pub struct StationQueue {
        limit: u32 = 50, "limit" as SomePackets;
        kind: QueueName = QueueName::Fifo, "kind" as QueueNameKind;
        min: Option<u32> = None, "min" as SomeBytes;
        max: Option<u32> = None, "max" as SomeBytes;
        probability: Option<f64> = None, "probability" as Share;
        weight: Option<f64> = None, "weight" as RedWeight;
    }
    struct StationQueueDraft {}
}

words! {
    pub enum QueueName {
        Fifo = "fifo",
        Priority = "priority",
        Red = "red",
        Edca = "edca",
    }
}

kinds! {
    /// The name of a discipline.
    QueueNameKind: QueueName = queue_name, |name| format!("\"{}\"", name.word());
    /// Of the newest length in the average.
    RedWeight: f64 = |value, key| number(value, key, "", 1e-6..=1.0), |weight| weight.to_string();
}

/// A limit in packets, or a table.
pub(crate) struct QueueKind;

const RED_KEYS: [&str; 4] = ["min", "max", "probability", "weight"];
const HELP: &str = "write queue = 50, or queue = { limit = 50, kind = \"priority\" }, or \
                    queue = { limit = 100, kind = \"red\", min = \"30kB\", max = \"90kB\" }";

fn queue_name(value: &Located<Value>, key: &str) -> Result<QueueName, Mistake> {
    let name = match &value.value {
        Value::Text(text) => QueueName::from_word(text),
        _ => None,
    };
    name.ok_or_else(|| {
        let title = format!("`{key}` is \"fifo\", \"priority\", \"red\", or \"edca\"");
        Mistake::new(&value.at, title, HELP)
    })
}

impl StationQueueDraft {
    /// Returns the discipline; meaningless if that adds a mistake.
    fn discipline(&self, reader: &mut Reader, value: &Located<Value>) -> QueueDiscipline {
        let queue = self.values();
        let kind = match queue.kind {
            QueueName::Fifo => QueueDiscipline::Fifo,
            QueueName::Priority => QueueDiscipline::Priority,
            QueueName::Edca => QueueDiscipline::Edca,
            QueueName::Red => return red(&queue, reader, value),
        };
        for (key, at) in self.places().filter(|(key, _)| RED_KEYS.contains(key)) {
            reader.mistake(at, format!("`{key}` is a key of RED"), HELP);
        }
        kind
    }
}

fn red(queue: &StationQueue, reader: &mut Reader, value: &Located<Value>) -> QueueDiscipline {
    match (queue.min, queue.max) {
        (Some(min), Some(max)) if min < max => {}
        (Some(_), Some(_)) => reader.mistake(&value.at, "`min` is not below `max`", HELP),
        _ => reader.mistake(&value.at, "RED without `min` and `max`", HELP),
    }
    let bytes = |bytes: Option<u32>| Length::Bytes(bytes.unwrap_or_default().into());
    let usual = Red::default();
    QueueDiscipline::Red(Red {
        min: bytes(queue.min),
        max: bytes(queue.max),
        probability: queue.probability.unwrap_or(usual.probability),
        weight: queue.weight.unwrap_or(usual.weight),
        ..usual
    })
}

impl Kind for QueueKind {
    type Value = QueueChoice;

    fn read_all(reader: &mut Reader, value: &Located<Value>, key: &str) -> Option<QueueChoice> {
        let mut draft = StationQueueDraft::default();
        let unknown = |key: &Located<String>| unknown(key, "a queue", StationQueueDraft::KEYS);
        reader.table(&mut draft, value, (key, "limit"), unknown);
        if draft.broken {
            return None;
        }
        let before = reader.mistakes.len();
        let kind = draft.discipline(reader, value);
        let limit = draft.values().limit;
        (reader.mistakes.len() == before).then_some(QueueChoice { limit, kind })
    }

    fn text(queue: &QueueChoice) -> String {
        let limit = queue.limit;
        match &queue.kind {
            QueueDiscipline::Fifo => limit.to_string(),
            QueueDiscipline::Priority => format!("{{ limit = {limit}, kind = \"priority\" }}"),
            QueueDiscipline::Edca => format!("{{ limit = {limit}, kind = \"edca\" }}"),
            QueueDiscipline::Red(red) => {
                let keys = red.keys_text();
                format!("{{ limit = {limit}, kind = \"red\", {} }}", keys.join(", "))
            }
        }
    }
}
