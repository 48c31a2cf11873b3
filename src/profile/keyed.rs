// SPDX-License-Identifier: MIT OR Apache-2.0
//! A property of a link that is a table of keys: what has been written of it so far, each value
//! read and with its place. A later table overrides an earlier one key by key.

use super::draft::is_none;
use super::loss::{Model, Stage};
use super::{ChecksumAfter, keys};
use crate::text::{At, Entry, Located, Mistake, Percent, Reader, Section, Value, quantity, word};

/// How a key's value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A probability in percent.
    Share,
    /// A bare number that is not negative.
    Number,
    /// A whole number that is not negative.
    Count,
    Text,
    Flag,
    /// Whole numbers.
    List,
    Model,
    Stage,
    Checksum,
}

/// A value as read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Field {
    Share(f64),
    Number(f64),
    Count(u64),
    Text(String),
    Flag(bool),
    List(Vec<u64>),
    Model(Model),
    Stage(Stage),
    Checksum(ChecksumAfter),
}

/// A kind of table.
#[derive(Debug)]
pub(super) struct Table {
    pub section: &'static Section,
    /// For each key of the section, in its order.
    pub kinds: &'static [Kind],
    /// The property: "loss".
    pub name: &'static str,
    /// The key that a plain value stands for.
    pub plain: &'static str,
    /// A plain value: `"0.5%"`.
    pub example: &'static str,
}

/// What has been written of a property.
#[derive(Debug, Clone, Default)]
pub(super) struct Keyed {
    /// The last table or plain value.
    pub at: Option<At>,
    pub fields: Vec<(&'static str, Located<Field>)>,
    /// A value could not be read: what goes with it is not judged.
    pub broken: bool,
}

impl Keyed {
    pub fn get(&self, key: &str) -> Option<&Located<Field>> {
        let found = self.fields.iter().find(|(known, _)| *known == key);
        found.map(|(_, field)| field)
    }

    pub fn remove(&mut self, key: &str) {
        self.fields.retain(|(known, _)| *known != key);
    }

    fn put(&mut self, key: &'static str, field: Located<Field>) {
        self.remove(key);
        self.fields.push((key, field));
    }

    pub fn share(&self, key: &str) -> Option<f64> {
        match self.get(key)?.value {
            Field::Share(share) => Some(share),
            _ => None,
        }
    }

    pub fn count(&self, key: &str) -> Option<u64> {
        match self.get(key)?.value {
            Field::Count(count) => Some(count),
            _ => None,
        }
    }
}

impl Reader {
    /// Applies a plain value or a table; `none` takes it all away, or a key of it.
    pub(super) fn keyed(&mut self, draft: &mut Keyed, table: &Table, value: &Located<Value>) {
        if is_none(value) {
            *draft = Keyed::default();
            return;
        }
        let before = self.mistakes.len();
        let Value::Table(entries) = &value.value else {
            let read = self.read(value, |v| {
                quantity(v, table.name, table.example).map(|Percent(share)| Field::Share(share))
            });
            if let Some(field) = read {
                *draft = Keyed {
                    at: Some(value.at.clone()),
                    fields: vec![(table.plain, field)],
                    broken: false,
                };
            }
            return;
        };
        draft.at = Some(value.at.clone());
        for entry in entries {
            self.keyed_entry(draft, table, entry);
        }
        draft.broken |= self.mistakes.len() > before;
    }

    fn keyed_entry(&mut self, draft: &mut Keyed, table: &Table, entry: &Entry) {
        let names = table.section.keys.iter().zip(table.kinds);
        let Some((key, kind)) = names.into_iter().find(|(key, _)| **key == entry.key.value) else {
            let mistake = keys::unknown(&entry.key, table.section);
            self.mistakes.push(mistake);
            return;
        };
        if is_none(&entry.value) {
            draft.remove(key);
            return;
        }
        if let Some(field) = self.read(&entry.value, |v| field(v, key, *kind)) {
            draft.put(key, field);
        }
    }

    /// A correlation, which is below 100 %.
    pub(super) fn correlation(&mut self, draft: &Keyed) -> f64 {
        let Some(correlation) = draft.share("correlation") else {
            return 0.0;
        };
        if let (true, Some(field)) = (correlation >= 1.0, draft.get("correlation")) {
            let help = "at 100 % all packets share the fate of the first: write less, such as \
                        \"25%\"";
            let title = "a correlation is below 100 %";
            self.mistakes.push(Mistake::new(&field.at, title, help));
        }
        correlation
    }
}

fn field(value: &Located<Value>, key: &str, kind: Kind) -> Result<Field, Mistake> {
    match kind {
        Kind::Share => quantity(value, key, "\"25%\"").map(|Percent(share)| Field::Share(share)),
        Kind::Number => number(value, key).map(Field::Number),
        Kind::Count => count(value, key).map(Field::Count),
        Kind::Text => match &value.value {
            Value::Text(text) | Value::Number(text) => Ok(Field::Text(text.clone())),
            _ => Err(wrong_kind(value, key, "\"...\"")),
        },
        Kind::Flag => match &value.value {
            Value::Flag(flag) => Ok(Field::Flag(*flag)),
            Value::Text(text) if text == "true" => Ok(Field::Flag(true)),
            Value::Text(text) if text == "false" => Ok(Field::Flag(false)),
            _ => Err(wrong_kind(value, key, "true or false")),
        },
        Kind::List => match &value.value {
            Value::List(items) => {
                let items = items.iter().map(|item| count(item, key));
                items.collect::<Result<_, _>>().map(Field::List)
            }
            _ => Err(wrong_kind(value, key, "[3, 7]")),
        },
        Kind::Model => word(value, key).map(Field::Model),
        Kind::Stage => word(value, key).map(Field::Stage),
        Kind::Checksum => word(value, key).map(Field::Checksum),
    }
}

fn wrong_kind(value: &Located<Value>, key: &str, example: &str) -> Mistake {
    let title = format!("`{key}` cannot be {}", value.value.kind());
    Mistake::new(&value.at, title, format!("write {key} = {example}"))
}

fn number(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
    let (Value::Number(text) | Value::Text(text)) = &value.value else {
        return Err(wrong_kind(value, key, "1e-6"));
    };
    match text.replace('_', "").parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        Ok(_) => Err(Mistake::new(
            &value.at,
            format!("`{key}` cannot be {text}"),
            format!("it is a number from 0 on, such as {key} = 1e-6"),
        )),
        Err(_) => Err(Mistake::new(
            &value.at,
            format!("`{text}` is not a number"),
            format!("write {key} = 1e-6"),
        )),
    }
}

fn count(value: &Located<Value>, key: &str) -> Result<u64, Mistake> {
    let (Value::Number(text) | Value::Text(text)) = &value.value else {
        return Err(wrong_kind(value, key, "5"));
    };
    // As many as the classifier's figures of this kind can be.
    match text.parse::<u32>() {
        Ok(count) => Ok(count.into()),
        Err(_) => Err(Mistake::new(
            &value.at,
            format!("`{key}` cannot be {text}"),
            format!(
                "write a whole number from 0 to {}, without a unit",
                u32::MAX
            ),
        )),
    }
}
