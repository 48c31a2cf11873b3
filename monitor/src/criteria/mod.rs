// SPDX-License-Identifier: MIT OR Apache-2.0
//! The criteria: what is watched, and when it is contention. Each has one file, a header in bpf/,
//! and a line in the list below, over which all other code iterates.

mod alarms;
mod psi;
mod settings;
pub mod table;
pub(crate) mod tick;

use schemars::JsonSchema;
use serde::Serialize;

pub use self::alarms::{Alarms, GroupBy, Reporters};
pub use self::cpu::Basis;
pub(crate) use self::emulator::with_links;
pub use self::network::Class;
pub use self::psi::Psi;
pub(crate) use self::settings::{Settings, name};
use self::table::{Conflict, Flag, Key, Table, Values};
pub(crate) use crate::abi::text;

use crate::abi::emud_alarm;
use crate::candidates::{Attempt, Candidate};
use crate::terms::{Scope, Unit};

// In the order of `enum emud_resource`.
criteria! {
    cpu: Cpu,
    network: Network,
    memory: Memory,
    disk: Disk,
    application: Application,
    emulator: Emulator,
    steal: Steal,
}

/// A table with the thresholds of a resource.
pub(crate) trait Watch: Table {
    /// Unit of the sum in a window; `None`: busy intervals.
    const SLIDING: Option<Unit> = None;
    /// Whether the criterion requires the tick.
    const TICKS: bool = false;
    const RECORDED: &'static [Recorded] = &[];
    const MEASURED: &'static [Measured] = &[];

    /// Sets up the programs in the kernel.
    ///
    /// # Errors
    /// The configuration is invalid.
    fn set(&self, _kernel: &mut Settings) -> Result<(), String> {
        Ok(())
    }

    /// Returns the hooks, all of which must attach when the monitor starts.
    fn hooks(&self, _group_by: GroupBy) -> Vec<Attempt> {
        vec![]
    }

    /// Returns the scope and unit of an alarm from the kernel; `devices` are the network devices
    /// with separate windows.
    fn scope(alarm: &emud_alarm, devices: &[String]) -> (Scope, Unit);

    /// Describes a scope in a line of the log for people, and briefly.
    fn words(scope: &Scope) -> Option<[String; 2]>;
}

/// A kind of record that `emud monitor record` writes for a criterion.
pub struct Recorded {
    /// Key in the header of the file, which shows whether it was watched.
    pub key: &'static str,
    /// Description for people.
    pub what: &'static str,
    pub(crate) label: &'static str,
    pub(crate) candidates: fn(Basis) -> Vec<Candidate>,
    /// An additional candidate, tried when one of the others works.
    pub(crate) beside: Option<fn() -> Candidate>,
}

/// A threshold for which a recording has values, as used by `emud monitor calibrate`.
#[derive(Debug)]
pub struct Measured {
    /// Name of the measure.
    pub name: &'static str,
    /// Key of the threshold.
    pub key: &'static Key,
    /// Description for people; the length of a window is appended.
    pub title: &'static str,
    /// Keys of the record kinds that are required.
    pub shown_by: &'static [&'static str],
    /// Whether good load usually has no such value.
    pub none_is_usual: bool,
}

impl Recorded {
    const fn new(
        key: &'static str,
        what: &'static str,
        label: &'static str,
        candidates: fn(Basis) -> Vec<Candidate>,
    ) -> Self {
        Self {
            key,
            what,
            label,
            candidates,
            beside: None,
        }
    }

    const fn beside(self, beside: fn() -> Candidate) -> Self {
        let beside = Some(beside);
        Self { beside, ..self }
    }
}

impl Measured {
    const fn new(
        name: &'static str,
        key: &'static Key,
        title: &'static str,
        shown_by: &'static [&'static str],
    ) -> Self {
        Self {
            name,
            key,
            title,
            shown_by,
            none_is_usual: false,
        }
    }

    const fn usually_none(self) -> Self {
        let none_is_usual = true;
        Self {
            none_is_usual,
            ..self
        }
    }

    /// Returns all of them, in the order of a file.
    pub fn all() -> impl Iterator<Item = (&'static Criterion, &'static Self)> {
        let of = |criterion: &'static Criterion| {
            let measured = criterion.measured.iter();
            measured.map(move |measured| (criterion, measured))
        };
        CRITERIA.iter().flat_map(of)
    }
}

/// A table of the configuration, independent of its type.
pub struct Section {
    /// Name of the table in a file.
    pub name: &'static str,
    /// Keys of the table.
    pub keys: &'static [Key],
    /// Other names that users write for the table.
    pub also: &'static [&'static str],
    /// One flag for the first two keys.
    pub pair: Option<Flag>,
    /// Returns the values without user settings.
    pub usual: fn() -> Values,
    /// Returns the conflicts between values.
    pub conflicts: fn(&Values) -> Vec<Conflict>,
    /// Returns the values; `None` if the table is off.
    pub get: fn(&Config) -> Option<Values>,
    /// Sets the values of the table in a configuration.
    pub set: fn(&mut Config, &Values),
}

/// A criterion, independent of its type.
pub struct Criterion {
    /// Resource of the criterion.
    pub resource: Resource,
    /// Table of the criterion.
    pub section: Section,
    /// Kinds of records for the criterion.
    pub recorded: &'static [Recorded],
    /// Thresholds for which recordings have values.
    pub measured: &'static [Measured],
    /// Describes a scope in a line of the log for people, and briefly.
    pub words: fn(&Scope) -> Option<[String; 2]>,
    /// Unit of the sum in a window; `None`: busy intervals.
    pub sliding: Option<Unit>,
    pub(crate) ticks: bool,
    pub(crate) tell: fn(&Config, &mut Settings) -> Result<(), String>,
    /// Returns the hooks; `None` if the criterion is off.
    pub(crate) hooks: fn(&Config) -> Option<Vec<Attempt>>,
    pub(crate) scope: fn(&emud_alarm, &[String]) -> (Scope, Unit),
}

macro_rules! criteria {
    ($($module:ident: $Type:ident,)+) => {
        $(mod $module;)+
        $(pub use self::$module::$Type;)+

        /// A resource that can be contended, or emulation that can fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(rename_all = "lowercase")]
        pub enum Resource {
            $(#[allow(missing_docs, reason = "a criterion each")] $Type,)+
        }

        /// The definition of contention. A criterion that is `None` is not watched.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Config {
            $(#[allow(missing_docs, reason = "a criterion each")] pub $module: Option<$Type>,)+
            /// Pressure stall information, a second opinion from the kernel; off by default.
            pub psi: Option<Psi>,
            /// How alarms are reported.
            pub alarms: Alarms,
        }

        impl Default for Config {
            /// Returns the thresholds of S. D. Maier, "Scalable Computer Network Emulation Using
            /// Node Virtualization and Resource Monitoring" (2011): CPU 200 ms, network 490 Mbit/s
            /// external and 1 Gbit/s internal over 10 ms, any swapping over 10 ms, disk 100 ms.
            fn default() -> Self {
                Self {
                    $($module: $Type::read(&$Type::usual()),)+
                    psi: None,
                    alarms: Alarms::default(),
                }
            }
        }

        impl Resource {
            /// All resources, in the order of the kernel part.
            pub const ALL: [Self; [$($Type::NAME),+].len()] = [$(Self::$Type),+];
        }

        /// All criteria, in the order of [`Resource::ALL`].
        pub static CRITERIA: [Criterion; Resource::ALL.len()] = [$(Criterion {
            resource: Resource::$Type,
            section: Section::of::<$Type>(
                |config| config.$module.as_ref().map(Table::write),
                |config, values| config.$module = $Type::read(values),
            ),
            recorded: $Type::RECORDED,
            measured: $Type::MEASURED,
            words: $Type::words,
            sliding: $Type::SLIDING,
            ticks: $Type::TICKS,
            tell: |config, kernel| config.$module.as_ref().map_or(Ok(()), |on| on.set(kernel)),
            hooks: |config| config.$module.as_ref().map(|on| on.hooks(config.alarms.group_by)),
            scope: $Type::scope,
        }),+];
    };
}
use criteria;

/// Tables that are not criteria.
static OTHERS: [Section; 2] = [
    Section::of::<Psi>(
        |config| config.psi.as_ref().map(Table::write),
        |config, values| config.psi = Psi::read(values),
    ),
    Section::of::<Alarms>(
        |config| Some(config.alarms.write()),
        |config, values| config.alarms = Alarms::read(values).unwrap_or_default(),
    ),
];

/// Returns all tables of the configuration, in the order of a file.
pub fn sections() -> impl Iterator<Item = &'static Section> {
    let criteria = CRITERIA.iter().map(|criterion| &criterion.section);
    criteria
        .filter(|section| !section.keys.is_empty())
        .chain(&OTHERS)
}

impl Resource {
    /// Returns the name in the log.
    pub fn name(self) -> &'static str {
        self.criterion().section.name
    }

    /// Returns the criterion of the resource.
    pub fn criterion(self) -> &'static Criterion {
        &CRITERIA[self as usize]
    }

    /// Describes a scope in a line of the log for people, and briefly.
    pub fn words(self, scope: &Scope) -> [String; 2] {
        if let Scope::Psi { of } = scope {
            return [format!("tasks stalled for {of}"), format!("pressure {of}")];
        }
        (self.criterion().words)(scope).unwrap_or_default()
    }
}

impl Section {
    const fn of<T: Table>(
        get: fn(&Config) -> Option<Values>,
        set: fn(&mut Config, &Values),
    ) -> Self {
        Self {
            name: T::NAME,
            keys: T::KEYS,
            also: T::ALSO,
            pair: T::PAIR,
            usual: T::usual,
            conflicts: T::conflicts,
            get,
            set,
        }
    }

    /// Returns whether the criterion can be switched off.
    pub fn is_optional(&self) -> bool {
        self.keys.iter().any(|key| key.threshold)
    }

    /// Returns whether any key has a threshold.
    pub fn is_on(&self, config: &Config) -> bool {
        self.is_optional() && (self.get)(config).is_some()
    }
}

impl Config {
    /// Returns whether anything except reports of programs is watched.
    pub fn is_anything_on(&self) -> bool {
        sections().any(|section| section.is_on(self))
    }
}
