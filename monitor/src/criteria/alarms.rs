// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration of alarms.

use super::table::{Key, Kind, Usual, Values, Word as _, table, words};

table! {
    /// The configuration of alarms.
    #[derive(Copy)]
    Alarms = "alarms", On;

    /// Maximum number of reported alarms per resource; further alarms are only counted
    "limit" limit: u32 = 3,
        Key::new(Kind::Count("alarms", u32::MAX as u64), "").flag("limit", "N");

    /// Attribute the shares of an alarm to: netns, cgroup, command
    "group-by" group_by: GroupBy = GroupBy::Netns,
        Key::new(Kind::Word(GroupBy::WORDS), "").flag("group-by", "GROUP")
            .also(&["group_by", "groups"]);

    /// Users whose programs may report contention: root, own (root and the user who called sudo),
    /// all
    "reporters" reporters: Reporters = Reporters::Own,
        Key::new(Kind::Word(Reporters::WORDS), "").flag("reporters", "USERS");

    impl { const ALSO: &'static [&'static str] = &["alarm"]; }
}

words! {
    /// Groups to which the shares of an alarm are attributed.
    GroupBy {
        /// By network namespace.
        Netns = "netns",
        /// Group by the cgroup of the cause.
        Cgroup = "cgroup",
        /// Group by the command name of the cause.
        Command = "command",
    }
}

words! {
    /// Users whose programs may report contention.
    Reporters {
        /// Root only.
        Root = "root",
        /// Root and the user of the programs under test.
        Own = "own",
        /// All users.
        All = "all",
    }
}
