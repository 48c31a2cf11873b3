// SPDX-License-Identifier: MIT OR Apache-2.0
//! How alarms are raised.

use super::table::{Key, Kind, Table, Value, Values, Word as _, words};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alarms {
    /// Alarms of one resource before the rest is only counted.
    pub limit: u32,
    pub group_by: GroupBy,
    pub reporters: Reporters,
}

words! {
    /// Whose shares an alarm carries.
    GroupBy {
        Netns = "netns",
        Cgroup = "cgroup",
        Command = "command",
    }
}

words! {
    /// Which users may report contention of their programs.
    Reporters {
        Root = "root",
        /// Root and the user of the programs under test.
        Own = "own",
        All = "all",
    }
}

impl Default for Alarms {
    fn default() -> Self {
        Self {
            limit: 3,
            group_by: GroupBy::Netns,
            reporters: Reporters::Own,
        }
    }
}

impl Table for Alarms {
    const NAME: &'static str = "alarms";
    const ALSO: &'static [&'static str] = &["alarm"];
    const KEYS: &'static [Key] = &[
        Key::new("limit", Kind::Count("alarms", u32::MAX as u64), "").flag(
            "limit",
            "N",
            "Alarms of one resource before the rest is only counted",
        ),
        Key::new("group-by", Kind::Word(GroupBy::WORDS), "")
            .also(&["group_by", "groups"])
            .flag(
                "group-by",
                "GROUP",
                "Whose shares an alarm carries: netns, cgroup, command",
            ),
        Key::new("reporters", Kind::Word(Reporters::WORDS), "").flag(
            "reporters",
            "USERS",
            "Who may report contention of programs: root, own (root and the user who called \
             sudo), all",
        ),
    ];

    fn read(values: &Values) -> Option<Self> {
        Some(Self {
            limit: u32::try_from(values.number("limit")?).unwrap_or(u32::MAX),
            group_by: values.word("group-by")?,
            reporters: values.word("reporters")?,
        })
    }

    fn write(&self) -> Values {
        Values::of([
            ("limit", Value::number(u64::from(self.limit))),
            ("group-by", Value::of(self.group_by)),
            ("reporters", Value::of(self.reporters)),
        ])
    }

    fn usual() -> Values {
        Self::default().write()
    }
}
