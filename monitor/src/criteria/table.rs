// SPDX-License-Identifier: MIT OR Apache-2.0
//! The description of a table of the configuration: its keys, from which the reader of files, the
//! flags, the printed TOML and the log's start line are derived.

use std::collections::BTreeMap;
use std::time::Duration;

/// A key of a table.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name of the key in its table.
    pub name: &'static str,
    /// Description for `--help`, one line.
    pub help: &'static str,
    /// Kind of the value.
    pub kind: Kind,
    /// Whether the value can be `"off"`; a table without any threshold is off.
    pub threshold: bool,
    /// Name in the log's start line; empty if it has a separate key there.
    pub log: &'static str,
    /// Shorthand on the command line.
    pub flag: Option<Flag>,
    /// Other names that users write for this key.
    pub also: &'static [&'static str],
}

/// A flag of the command line: its name, and the name of its value.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Name of the flag, without the dashes.
    pub name: &'static str,
    /// Name of the flag's value in `--help`.
    pub value: &'static str,
}

/// The kind of a value, and the unit of its number.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Minimum and maximum in ns.
    Time(u64, u64),
    /// bit/s.
    Rate,
    /// Minimum and maximum in millionths.
    Share(u64, u64),
    /// Unit and maximum of a number from 1 on.
    Count(&'static str, u64),
    /// One of several names.
    Word(&'static [&'static str]),
    /// One value for each device, by its name.
    Named(Device, Of),
}

/// The kind of device that a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// A network interface.
    Interface,
    /// A block device.
    Disk,
}

/// The value for a single device.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    /// One of several names.
    Word(&'static [&'static str]),
    /// A rate, or `"off"`, which removes the device.
    Rate,
    /// Minimum and maximum in ns, or `"ignored"`.
    Time(u64, u64),
    /// Minimum and maximum in ns, or `"off"`, which removes the device.
    Window(u64, u64),
}

/// A value; the [`Kind`] determines the unit of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The threshold is off, or the disk is ignored.
    Off,
    /// A number in the unit of the kind.
    Number(u64),
    /// A name.
    Word(&'static str),
    /// Values by the name of a device.
    Named(BTreeMap<String, Value>),
}

/// The values of a table, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values(pub BTreeMap<&'static str, Value>);

/// Keys that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Key and, in a table of devices, name. The error is reported at the one that was written
    /// last.
    pub between: Vec<(&'static str, Option<String>)>,
    /// Whether the first key is silently dropped if it is from the file and the second is a flag.
    pub gives_way: bool,
    /// The conflict in one phrase.
    pub title: String,
    /// How to resolve it.
    pub help: &'static str,
}

/// The state of a table without user settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usual {
    /// Its defaults apply.
    On,
    /// Its defaults apply, but its thresholds are off.
    Off,
    /// It has no values.
    Unset,
}

/// A table of the configuration, implemented by the macro `table`.
pub trait Table: Default {
    /// Name of the table in a file.
    const NAME: &'static str;
    /// Keys of the table.
    const KEYS: &'static [Key];
    /// State without user settings.
    const USUAL: Usual;
    /// Other names that users write for this table.
    const ALSO: &'static [&'static str] = &[];
    /// One flag for the first two keys, as A/B.
    const PAIR: Option<Flag> = None;

    /// Reads the values; returns `None` if one is missing.
    fn parse(values: &Values) -> Option<Self>;

    /// Returns the values that [`Self::parse`] reads.
    fn write(&self) -> Values;

    /// Returns the conflicts between values that are valid separately.
    fn conflicts(_values: &Values) -> Vec<Conflict> {
        vec![]
    }

    /// Reads the values; returns `None` if the table has thresholds and all of them are off.
    fn read(values: &Values) -> Option<Self> {
        let thresholds: Vec<_> = Self::KEYS.iter().filter(|key| key.threshold).collect();
        let is_on = |key: &&Key| values.0.get(key.name).is_some_and(Value::is_on);
        let on = thresholds.is_empty() || thresholds.iter().any(is_on);
        on.then(|| Self::parse(values)).flatten()
    }

    /// Returns the values without user settings.
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

/// A Rust type for values of a table.
pub trait Field: Sized {
    /// Converts a value; returns `None` if it is off and the type has no such state.
    fn read(value: &Value) -> Option<Self>;
    /// Converts to a value of a table.
    fn write(&self) -> Value;
}

/// Defines a table: its name, its state without user settings, and for each key its help, name,
/// field, default and description, then further items of its [`Table`].
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

/// A value that is one of a few names.
pub trait Word: Copy + PartialEq + 'static {
    /// All variants, in the order of [`Self::WORDS`].
    const ALL: &'static [Self];
    /// Names of the variants.
    const WORDS: &'static [&'static str];

    /// Returns the name of the variant.
    fn word(self) -> &'static str {
        let index = Self::ALL.iter().position(|one| *one == self);
        index.map_or("", |index| Self::WORDS[index])
    }

    /// Returns the variant with a name.
    fn of(word: &str) -> Option<Self> {
        let index = Self::WORDS.iter().position(|known| *known == word)?;
        Self::ALL.get(index).copied()
    }
}

/// Defines an enum whose variants are names in a file.
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
    /// Returns a key. `log` is its name in the log's start line; the macro `table` adds the name of
    /// the key.
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
    /// Returns the number of a key.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Field::read)
    }

    /// Returns the devices named under a key.
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

/// Converts to ns, up to the maximum of a u64.
pub fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
