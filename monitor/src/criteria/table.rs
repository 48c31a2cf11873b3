// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of a table of the configuration: its keys, of which the reader of files, the
//! flags, the TOML that is printed and the log's start line are made.

use std::collections::BTreeMap;
use std::time::Duration;

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// It can be `"off"`; a table without any threshold is off.
    pub threshold: bool,
    /// Its name in the log's start line; empty: it has a place of its own there.
    pub log: &'static str,
    /// The flag that is short for it.
    pub flag: Option<Flag>,
    /// Words that people write instead.
    pub also: &'static [&'static str],
}

/// A flag of the command line.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub name: &'static str,
    pub value: &'static str,
    pub help: &'static str,
}

/// What a value is, and what its number counts.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// ns, from and to.
    Time(u64, u64),
    /// bit/s.
    Rate,
    /// Millionths, from and to.
    Share(u64, u64),
    /// How many of what, from 1 to the largest.
    Count(&'static str, u64),
    Word(&'static [&'static str]),
    /// One value for each device, by its name.
    Named(Device, Of),
}

/// What kind of device has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    Interface,
    Disk,
}

/// The value of a single device.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    Word(&'static [&'static str]),
    /// Or `"off"`, which is as if the device had not been named.
    Rate,
    /// Or `"ignored"`; from and to.
    Time(u64, u64),
}

/// A value; what a number counts, its [`Kind`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A threshold that is off, a disk that is ignored.
    Off,
    Number(u64),
    Word(&'static str),
    Named(BTreeMap<String, Value>),
}

/// The values of a table, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values(pub BTreeMap<&'static str, Value>);

/// Keys that do not go together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Key and, in a table of devices, name. Where the mistake is: the one that was written last.
    pub between: Vec<(&'static str, Option<String>)>,
    /// The first one gives way without a word if it is of the file and the second is not.
    pub gives_way: bool,
    pub title: String,
    pub help: &'static str,
}

/// A table of the configuration.
pub trait Table: Sized {
    const NAME: &'static str;
    const KEYS: &'static [Key];
    /// Words that people write instead of its name.
    const ALSO: &'static [&'static str] = &[];
    /// One flag for the first two keys, as A/B.
    const PAIR: Option<Flag> = None;

    /// None: it is off.
    fn read(values: &Values) -> Option<Self>;

    /// What [`Self::read`] reads.
    fn write(&self) -> Values;

    /// What holds where the user says nothing.
    fn usual() -> Values;

    /// Of values that are right, each by itself.
    fn conflicts(_values: &Values) -> Vec<Conflict> {
        vec![]
    }
}

/// A value that is one word of a few.
pub trait Word: Copy + PartialEq + 'static {
    const ALL: &'static [Self];
    const WORDS: &'static [&'static str];

    fn word(self) -> &'static str {
        let index = Self::ALL.iter().position(|one| *one == self);
        index.map_or("", |index| Self::WORDS[index])
    }

    fn of(word: &str) -> Option<Self> {
        let index = Self::WORDS.iter().position(|known| *known == word)?;
        Self::ALL.get(index).copied()
    }
}

/// An enum whose variants are words of a file.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)+
        }

        impl $crate::criteria::table::Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            const WORDS: &'static [&'static str] = &[$($word),+];
        }
    };
}
pub(crate) use words;

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000 * US;
pub(crate) const SECOND: u64 = 1_000 * MS;
pub(crate) const HOUR: u64 = 3600 * SECOND;

impl Key {
    pub(crate) const fn new(name: &'static str, kind: Kind, log: &'static str) -> Self {
        Self {
            name,
            kind,
            threshold: false,
            log,
            flag: None,
            also: &[],
        }
    }

    pub(crate) const fn threshold(mut self) -> Self {
        self.threshold = true;
        self
    }

    pub(crate) const fn flag(
        mut self,
        name: &'static str,
        value: &'static str,
        help: &'static str,
    ) -> Self {
        self.flag = Some(Flag { name, value, help });
        self
    }

    pub(crate) const fn also(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }
}

impl Values {
    pub(crate) fn of<const N: usize>(pairs: [(&'static str, Value); N]) -> Self {
        Self(pairs.into())
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match self.0.get(key)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn time(&self, key: &str) -> Option<Duration> {
        self.number(key).map(Duration::from_nanos)
    }

    pub(crate) fn word<W: Word>(&self, key: &str) -> Option<W> {
        self.0.get(key).and_then(Value::word)
    }

    /// The devices named under a key; `read` says nothing of those that are not to be there.
    pub(crate) fn named<T>(
        &self,
        key: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let Some(Value::Named(devices)) = self.0.get(key) else {
            return BTreeMap::new();
        };
        let one = |(name, value): (&String, &Value)| Some((name.clone(), read(value)?));
        devices.iter().filter_map(one).collect()
    }
}

impl Value {
    pub(crate) fn number(number: impl Into<Option<u64>>) -> Self {
        number.into().map_or(Self::Off, Self::Number)
    }

    pub(crate) fn time(time: Duration) -> Self {
        Self::Number(ns(time))
    }

    pub(crate) fn of<W: Word>(word: W) -> Self {
        Self::Word(word.word())
    }

    pub(crate) fn word<W: Word>(&self) -> Option<W> {
        match self {
            Self::Word(word) => W::of(word),
            _ => None,
        }
    }

    pub(crate) fn named<T>(devices: &BTreeMap<String, T>, value: impl Fn(&T) -> Self) -> Self {
        let one = |(name, of): (&String, &T)| (name.clone(), value(of));
        Self::Named(devices.iter().map(one).collect())
    }
}

/// ns, as many as a u64 has.
pub(crate) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
