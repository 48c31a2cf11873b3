// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of the command line as keys of the file: every flag is a shorthand for a key.

use super::keys;
use super::value::OFF;
use crate::text::{At, Entry, Located, Mistake, Source, Value, closest};

/// Name of the command line in messages.
pub const COMMAND_LINE: &str = "command line";

/// One argument of the monitor's configuration.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Text as typed.
    text: String,
    /// Offset of its value in `text`.
    value: usize,
    meaning: Meaning,
}

/// A key: its section and its name in the section.
type Path = (&'static str, &'static str);

#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// The value is KEY=VALUE.
    Set,
    /// The value of this key.
    Key(Path),
    /// The value is NAME=VALUE in this table.
    Named(Path),
    /// The value is STALL/WINDOW.
    Psi,
    /// The value lists all watched resources.
    Only,
}

/// The meaning of an argument.
pub(crate) enum Said {
    Keys(Vec<Entry>),
    Only(Only),
}

/// The resources that `--only` keeps.
pub(crate) struct Only {
    pub whole: At,
    pub resources: Vec<Located<String>>,
}

impl Argument {
    fn new(flag: &str, value: &str, meaning: Meaning) -> Self {
        Self {
            text: format!("{flag} {value}"),
            value: flag.len() + 1,
            meaning,
        }
    }

    /// Creates `--set KEY=VALUE`; the key is dotted, as in cpu.theta, network.device.eth0.
    pub fn set(assignment: &str) -> Self {
        Self::new("--set", assignment, Meaning::Set)
    }

    /// Creates an argument whose `flag` is a shorthand for the key `path`.
    pub fn key(flag: &str, path: Path, value: &str) -> Self {
        Self::new(flag, value, Meaning::Key(path))
    }

    /// Creates an argument whose `flag` is a shorthand for a user-defined key in the table `path`:
    /// NAME=VALUE.
    pub fn named(flag: &str, path: Path, assignment: &str) -> Self {
        Self::new(flag, assignment, Meaning::Named(path))
    }

    /// Creates `--psi STALL/WINDOW` or `--psi off`.
    pub fn psi(value: &str) -> Self {
        Self::new("--psi", value, Meaning::Psi)
    }

    /// Creates `--only cpu,disk`, which switches everything else off.
    pub fn only(resources: &str) -> Self {
        Self::new("--only", resources, Meaning::Only)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn source(&self) -> Source {
        Source {
            origin: COMMAND_LINE.to_owned(),
            text: self.text.clone(),
        }
    }

    /// Reads the argument like a line of a file; `source` is the number of [`Self::source`].
    pub(crate) fn read(&self, source: usize) -> Result<Said, Vec<Mistake>> {
        let whole = Excerpt {
            source,
            start: self.value,
            text: &self.text[self.value..],
        };
        let said = match self.meaning {
            Meaning::Only => return only(&whole).map(Said::Only),
            Meaning::Key(path) => Ok(vec![whole.entry(path)]),
            Meaning::Named(path) => named(&whole, path),
            Meaning::Set => set(&whole),
            Meaning::Psi => psi(&whole),
        };
        said.map(Said::Keys).map_err(|mistake| vec![mistake])
    }
}

/// A part of an argument.
struct Excerpt<'a> {
    source: usize,
    start: usize,
    text: &'a str,
}

impl<'a> Excerpt<'a> {
    fn at(&self) -> At {
        At {
            source: self.source,
            span: self.start..self.start + self.text.len(),
        }
    }

    /// Splits at byte `at`, which is dropped.
    fn split(&self, at: usize) -> (Excerpt<'a>, Excerpt<'a>) {
        let part = |start: usize, text| Excerpt {
            source: self.source,
            start: self.start + start,
            text,
        };
        (
            part(0, &self.text[..at]),
            part(at + 1, &self.text[at + 1..]),
        )
    }

    fn text(&self) -> Located<String> {
        Located {
            value: self.text.trim().to_owned(),
            at: self.at(),
        }
    }

    fn value(&self) -> Located<Value> {
        let text = self.text.trim().to_owned();
        let value = match text.parse::<f64>() {
            Ok(_) => Value::Number(text),
            Err(_) => Value::Text(text),
        };
        Located {
            value,
            at: self.at(),
        }
    }

    /// Returns a key with the position of its value.
    fn key(&self, key: &str) -> Located<String> {
        Located {
            value: key.to_owned(),
            at: self.at(),
        }
    }

    /// Returns the value, under a key without a position.
    fn entry(&self, (section, key): Path) -> Entry {
        nest(self.key(section), vec![self.key(key)], self.value())
    }

    fn mistake(&self, title: &str, help: &str) -> Mistake {
        Mistake::new(&self.at(), title, help)
    }
}

/// Converts `a.b` = v to `a` = { b = v }.
fn nest(first: Located<String>, rest: Vec<Located<String>>, value: Located<Value>) -> Entry {
    let value = rest.into_iter().rev().fold(value, |value, key| {
        let at = key.at.clone();
        let value = Value::Table(vec![Entry { key, value }]);
        Located { value, at }
    });
    Entry { key: first, value }
}

fn set(whole: &Excerpt) -> Result<Vec<Entry>, Mistake> {
    let Some(equals) = whole.text.find('=') else {
        let help = "write KEY=VALUE, such as cpu.theta=50ms";
        return Err(whole.mistake("there is no `=`", help));
    };
    let (key, value) = whole.split(equals);
    if value.text.trim().is_empty() {
        let help = "give a value; `off` switches a threshold off";
        return Err(whole.mistake("there is no value", help));
    }
    let Some(dot) = key.text.find('.') else {
        return Ok(vec![nest(key.text(), vec![], value.value())]);
    };
    let (section, rest) = key.split(dot);
    // The part after the second dot is the name of a device, which may contain dots.
    let rest = match rest.text.find('.') {
        Some(dot) => {
            let (table, name) = rest.split(dot);
            vec![table.text(), name.text()]
        }
        None => vec![rest.text()],
    };
    Ok(vec![nest(section.text(), rest, value.value())])
}

fn named(whole: &Excerpt, (section, table): Path) -> Result<Vec<Entry>, Mistake> {
    // A value never contains an equals sign, a name may.
    let Some(equals) = whole.text.rfind('=') else {
        return Err(whole.mistake("there is no `=`", "write NAME=VALUE"));
    };
    let (name, value) = whole.split(equals);
    let path = vec![whole.key(table), name.text()];
    Ok(vec![nest(whole.key(section), path, value.value())])
}

fn psi(whole: &Excerpt) -> Result<Vec<Entry>, Mistake> {
    if whole.text == OFF {
        return Ok(vec![nest(whole.key("psi"), vec![], whole.value())]);
    }
    let Some(slash) = whole.text.find('/') else {
        let help = "write STALL/WINDOW, such as 150ms/1s, or off";
        return Err(whole.mistake("there is no `/`", help));
    };
    let (stall, window) = whole.split(slash);
    Ok(vec![
        stall.entry(("psi", "stall")),
        window.entry(("psi", "window")),
    ])
}

fn only(whole: &Excerpt) -> Result<Only, Vec<Mistake>> {
    let mut resources = Vec::new();
    let mut mistakes = Vec::new();
    let mut start = 0;
    for word in whole.text.split(',') {
        let part = Excerpt {
            source: whole.source,
            start: whole.start + start,
            text: word,
        };
        start += word.len() + 1;
        let word = word.trim();
        if keys::RESOURCES.contains(&word) {
            resources.push(part.text());
            continue;
        }
        let all = format!("there are {}", keys::RESOURCES.join(", "));
        let help = match closest(word, keys::RESOURCES.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? ({all})"),
            None => all,
        };
        mistakes.push(part.mistake(&format!("`{word}` is not a resource"), &help));
    }
    let only = Only {
        whole: whole.at(),
        resources,
    };
    if mistakes.is_empty() {
        Ok(only)
    } else {
        Err(mistakes)
    }
}
