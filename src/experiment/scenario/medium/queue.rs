// SPDX-License-Identifier: MIT OR Apache-2.0
//! `queue` of a medium: a limit, or a table with a discipline.

use super::kinds::{number, unknown};
use crate::bottleneck::aqm::Choice;
use crate::medium::air::Discipline;
use crate::profile::aqm::choice;
use crate::profile::kinds::{Share, SomeBytes, SomePackets};
use crate::profile::{Aqm, Length, Red};
use crate::text::{Kind, Located, Mistake, Value};

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
            limit: 50,
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

pub(crate) struct QueueKind;

const RED_KEYS: [&str; 4] = ["min", "max", "probability", "weight"];
const HELP: &str = "write queue = 50, or queue = { limit = 50, kind = \"priority\" }, or \
                    queue = { limit = 100, kind = \"red\", min = \"30kB\", max = \"90kB\" }";

impl Kind for QueueKind {
    type Value = QueueChoice;

    fn read(value: &Located<Value>, key: &str) -> Result<QueueChoice, Mistake> {
        let mut queue = QueueChoice::default();
        let Value::Table(entries) = &value.value else {
            queue.limit = SomePackets::read(value, key)?;
            return Ok(queue);
        };
        let wrong = |title: &str| Mistake::new(&value.at, title, HELP);
        let (mut is_red, mut min, mut max) = (false, None, None);
        let mut red = Red::default();
        let mut of_red = None;
        for entry in entries {
            let (value, key) = (&entry.value, entry.key.value.as_str());
            match key {
                "limit" => queue.limit = SomePackets::read(value, key)?,
                "kind" => match &value.value {
                    Value::Text(text) if text == "fifo" => {}
                    Value::Text(text) if text == "priority" => {
                        queue.kind = QueueDiscipline::Priority;
                    }
                    Value::Text(text) if text == "edca" => queue.kind = QueueDiscipline::Edca,
                    Value::Text(text) if text == "red" => is_red = true,
                    _ => {
                        let title = "`kind` is \"fifo\", \"priority\", \"red\", or \"edca\"";
                        return Err(Mistake::new(&value.at, title, HELP));
                    }
                },
                "min" => min = Some(SomeBytes::read(value, key)?),
                "max" => max = Some(SomeBytes::read(value, key)?),
                "probability" => red.probability = Share::read(value, key)?,
                "weight" => red.weight = number(value, key, "", 1e-6..=1.0)?,
                _ => {
                    let keys = ["limit", "kind", "min", "max", "probability", "weight"];
                    return Err(unknown(&entry.key, "a queue", &keys));
                }
            }
            if RED_KEYS.contains(&key) {
                of_red.get_or_insert(&entry.key);
            }
        }
        match (is_red, min.zip(max), of_red) {
            (false, _, None) => {}
            (false, _, Some(key)) => {
                let title = format!("`{}` is a key of RED", key.value);
                return Err(Mistake::new(&key.at, title, HELP));
            }
            (true, None, _) => return Err(wrong("RED without `min` and `max`")),
            (true, Some((min, max)), _) if min >= max => {
                return Err(wrong("`min` is not below `max`"));
            }
            (true, Some((min, max)), _) => {
                red.min = Length::Bytes(min.into());
                red.max = Length::Bytes(max.into());
                queue.kind = QueueDiscipline::Red(red);
            }
        }
        Ok(queue)
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
