// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of a table of the configuration: its keys, of which the reader of files, the
//! flags, the TOML that is printed and the log's start line are made.

use std::collections::BTreeMap;
use std::time::Duration;

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    pub name: &'static str,
    /// What it means: a line of `--help`.
    pub help: &'static str,
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

/// A flag of the command line: its name, and what its value is called.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub name: &'static str,
    pub value: &'static str,
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

/// What a table says where the user says nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usual {
    /// Its defaults.
    On,
    /// Its defaults, but its thresholds are off.
    Off,
    /// Nothing at all.
    Unset,
}

/// A table of the configuration; the macro `table` makes one.
pub trait Table: Default {
    const NAME: &'static str;
    const KEYS: &'static [Key];
    const USUAL: Usual;
    /// Words that people write instead of its name.
    const ALSO: &'static [&'static str] = &[];
    /// One flag for the first two keys, as A/B.
    const PAIR: Option<Flag> = None;

    /// None: a value is missing.
    fn parse(values: &Values) -> Option<Self>;

    /// What [`Self::parse`] reads.
    fn write(&self) -> Values;

    /// Of values that are right, each by itself.
    fn conflicts(_values: &Values) -> Vec<Conflict> {
        vec![]
    }

    /// None: it has thresholds, and all of them are off.
    fn read(values: &Values) -> Option<Self> {
        let thresholds: Vec<_> = Self::KEYS.iter().filter(|key| key.threshold).collect();
        let is_on = |key: &&Key| values.0.get(key.name).is_some_and(Value::is_on);
        let on = thresholds.is_empty() || thresholds.iter().any(is_on);
        on.then(|| Self::parse(values)).flatten()
    }

    fn usual() -> Values {
        let mut values = Self::default().write();
        match Self::USUAL {
            Usual::On => {}
            Usual::Off => {
                let off = Self::KEYS.iter().filter(|key| key.threshold);
                values.0.extend(off.map(|key| (key.name, Value::Off)));
            }
            Usual::Unset => values.0.clear(),
        }
        values
    }
}

/// A value of a table in Rust.
pub trait Field: Sized {
    /// None: it cannot be off, and is.
    fn read(value: &Value) -> Option<Self>;
    fn write(&self) -> Value;
}

/// A table: its name, what holds without a word of the user, and for each key its help, name, field,
/// default and description; then what else its [`Table`] has.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $Table:ident = $name:literal, $usual:ident;
        $($(#[doc = $help:literal])+ $key:literal $field:ident: $T:ty = $default:expr, $described:expr;)*
        $(impl { $($more:tt)* })?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $Table {
            $($(#[doc = $help])+ pub $field: $T,)*
        }

        impl Default for $Table {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::criteria::table::Table for $Table {
            const NAME: &'static str = $name;
            const KEYS: &'static [Key] = &[$($described.called($key, concat!($($help),+)),)*];
            const USUAL: Usual = Usual::$usual;

            fn parse(values: &Values) -> Option<Self> {
                let _ = values;
                Some(Self {
                    $($field: $crate::criteria::table::Field::read(values.0.get($key)?)?,)*
                })
            }

            fn write(&self) -> Values {
                Values([$(($key, $crate::criteria::table::Field::write(&self.$field)),)*].into())
            }

            $($($more)*)?
        }
    };
}
pub(crate) use table;

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
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $variant,)+
        }

        impl $crate::criteria::table::Word for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),+];
            const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::criteria::table::Field for $name {
            fn read(value: &$crate::criteria::table::Value) -> Option<Self> {
                match value {
                    $crate::criteria::table::Value::Word(word) => $crate::criteria::table::Word::of(word),
                    _ => None,
                }
            }

            fn write(&self) -> $crate::criteria::table::Value {
                $crate::criteria::table::Value::Word($crate::criteria::table::Word::word(*self))
            }
        }
    };
}
pub(crate) use words;

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000 * US;
pub(crate) const SECOND: u64 = 1_000 * MS;
pub(crate) const HOUR: u64 = 3600 * SECOND;

impl Key {
    /// `log`: its name in the log's start line; the macro `table` adds its own.
    pub(crate) const fn new(kind: Kind, log: &'static str) -> Self {
        Self {
            name: "",
            help: "",
            kind,
            threshold: false,
            log,
            flag: None,
            also: &[],
        }
    }

    pub(crate) const fn called(self, name: &'static str, help: &'static str) -> Self {
        Self { name, help, ..self }
    }

    pub(crate) const fn threshold(self) -> Self {
        let threshold = true;
        Self { threshold, ..self }
    }

    pub(crate) const fn flag(self, name: &'static str, value: &'static str) -> Self {
        let flag = Some(Flag { name, value });
        Self { flag, ..self }
    }

    pub(crate) const fn also(self, also: &'static [&'static str]) -> Self {
        Self { also, ..self }
    }
}

impl Values {
    /// Of a key that has a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Field::read)
    }

    /// The devices named under a key.
    pub(crate) fn named<T: Field>(&self, key: &str) -> BTreeMap<String, T> {
        self.0.get(key).and_then(Field::read).unwrap_or_default()
    }
}

impl Value {
    fn is_on(&self) -> bool {
        match self {
            Self::Off => false,
            Self::Named(devices) => devices.values().any(Self::is_on),
            Self::Number(_) | Self::Word(_) => true,
        }
    }
}

impl Field for u64 {
    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn write(&self) -> Value {
        Value::Number(*self)
    }
}

impl Field for u32 {
    fn read(value: &Value) -> Option<Self> {
        u64::read(value).and_then(|number| number.try_into().ok())
    }

    fn write(&self) -> Value {
        u64::from(*self).write()
    }
}

impl Field for Duration {
    fn read(value: &Value) -> Option<Self> {
        u64::read(value).map(Self::from_nanos)
    }

    fn write(&self) -> Value {
        ns(*self).write()
    }
}

impl<T: Field> Field for Option<T> {
    fn read(value: &Value) -> Option<Self> {
        Some(T::read(value))
    }

    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Off, T::write)
    }
}

impl<T: Field> Field for BTreeMap<String, T> {
    fn read(value: &Value) -> Option<Self> {
        let Value::Named(devices) = value else {
            return None;
        };
        let one = |(name, value): (&String, &Value)| Some((name.clone(), T::read(value)?));
        Some(devices.iter().filter_map(one).collect())
    }

    fn write(&self) -> Value {
        let one = |(name, value): (&String, &T)| (name.clone(), value.write());
        Value::Named(self.iter().map(one).collect())
    }
}

/// ns, as many as a u64 has.
pub fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
