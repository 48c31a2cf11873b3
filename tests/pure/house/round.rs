// SPDX-License-Identifier: MIT OR Apache-2.0
//! The circles that are there.

/// Files that use each other in a circle; each is in that of its group.
pub const ROUND: [&[&str]; 3] = [
    // The table of a delay is made from it; a table from a file is part of a delay.
    &[
        "profile/delay",
        "profile/file",
        "profile/quantile",
        "profile/words",
    ],
    // A model has methods of its theory.
    &["profile/loss", "profile/loss_runs"],
    // A profile has links, and what links are written as contains each other.
    &[
        "profile/aqm",
        "profile/background",
        "profile/base",
        "profile/bottleneck",
        "profile/bottleneck_read",
        "profile/draft",
        "profile/hosts",
        "profile/keys",
        "profile/links",
        "profile/matrix",
        "profile/model",
        "profile/phase",
        "profile/phase_read",
        "profile/print",
        "profile/queueing",
        "profile/read",
        "profile/rule_keys",
        "profile/rule_kinds",
        "profile/rules",
        "profile/rules_read",
        "profile/shared",
        "profile/shipped",
        "profile/states",
        "profile/trace_figures",
        "profile/trace_read",
        "profile/wire",
    ],
];
