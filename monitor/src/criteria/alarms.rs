// SPDX-License-Identifier: MIT OR Apache-2.0
//! How alarms are raised.

use super::table::{Key, Kind, Usual, Values, Word as _, table, words};

table! {
    /// How alarms are raised.
    #[derive(Copy)]
    Alarms = "alarms", On;

    /// Alarms of one resource before the rest is only counted
    "limit" limit: u32 = 3,
        Key::new(Kind::Count("alarms", u32::MAX as u64), "").flag("limit", "N");

    /// Whose shares an alarm carries: netns, cgroup, command
    "group-by" group_by: GroupBy = GroupBy::Netns,
        Key::new(Kind::Word(GroupBy::WORDS), "").flag("group-by", "GROUP")
            .also(&["group_by", "groups"]);

    /// Who may report contention of programs: root, own (root and the user who called sudo), all
    "reporters" reporters: Reporters = Reporters::Own,
        Key::new(Kind::Word(Reporters::WORDS), "").flag("reporters", "USERS");

    impl { const ALSO: &'static [&'static str] = &["alarm"]; }
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
