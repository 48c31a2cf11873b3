// SPDX-License-Identifier: MIT OR Apache-2.0
//! The values that are one word of a few.

use emud_monitor::config::{Basis, Class, GroupBy, Reporters};

use crate::text::Word;

impl Word for Basis {
    const WORDS: &'static [(&'static str, Self)] = &[("task", Self::Task), ("idle", Self::Idle)];
}

impl Word for Class {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("external", Self::External),
        ("internal", Self::Internal),
        ("ignored", Self::Ignored),
    ];
}

impl Word for GroupBy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("netns", Self::Netns),
        ("cgroup", Self::Cgroup),
        ("command", Self::Command),
    ];
}

impl Word for Reporters {
    const WORDS: &'static [(&'static str, Self)] =
        &[("root", Self::Root), ("own", Self::Own), ("all", Self::All)];
}
