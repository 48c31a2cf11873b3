// SPDX-License-Identifier: GPL-2.0-only
//! The keys of a profile.

use crate::text::{Located, Mistake, Section, Vocabulary};

pub(super) const TOP: Section = Section {
    keys: &[
        "name",
        "description",
        "source",
        "seed",
        "offload",
        "neighbours",
        "link",
        "up",
        "down",
    ],
    place: "at the top of a profile",
    belongs: "at the top of the file, above the first [header]",
};
pub(super) const LINK: Section = Section {
    keys: &["rate", "overhead", "queue", "delay", "loss", "neighbours"],
    place: "of a link",
    belongs: "under [link], [up] or [down]",
};
pub(super) const DELAY: Section = Section {
    keys: &[
        "mean",
        "jitter",
        "sd",
        "distribution",
        "reorder",
        "coherence",
    ],
    place: "of a delay",
    belongs: "inside `delay`, as in delay = { mean = \"50ms\", jitter = \"5ms\" }",
};

pub(super) const RATE: Section = Section {
    keys: &["rate", "burst", "overhead", "mpu", "cell"],
    place: "of a rate",
    belongs: "inside `rate`, as in rate = { rate = \"10Mbit\", burst = \"32kB\" }",
};
pub(super) const CELL: Section = Section {
    keys: &["size", "overhead"],
    place: "of a cell",
    belongs: "inside `cell`, as in cell = { size = 48, overhead = 5 }",
};
pub(super) const QUEUE: Section = Section {
    keys: &[
        "limit",
        "bytes",
        "time",
        "ecn",
        "aqm",
        "min",
        "max",
        "probability",
        "weight",
        "target",
        "interval",
        "tupdate",
        "alpha",
        "beta",
    ],
    place: "of a queue",
    belongs: "inside `queue`, as in queue = { limit = \"1000p\", time = \"200ms\" }",
};

const VOCABULARY: Vocabulary = Vocabulary {
    sections: &[TOP, LINK, DELAY, RATE, CELL, QUEUE],
    aliases: &[
        ("bandwidth", "rate"),
        ("buffer", "queue"),
        ("correlation", "coherence"),
        ("download", "down"),
        ("downlink", "down"),
        ("downstream", "down"),
        ("drop", "loss"),
        ("egress", "up"),
        ("ingress", "down"),
        ("latency", "delay"),
        ("limit", "queue"),
        ("sigma", "sd"),
        ("speed", "rate"),
        ("stddev", "sd"),
        ("upload", "up"),
        ("uplink", "up"),
        ("upstream", "up"),
        ("variation", "jitter"),
    ],
};

/// What is said of a key that `section` has not.
pub(super) fn unknown(key: &Located<String>, section: &Section) -> Mistake {
    VOCABULARY.unknown(key, section)
}
