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
    keys: &[
        "rate",
        "overhead",
        "queue",
        "delay",
        "loss",
        "neighbours",
        "reorder",
    ],
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
        "correlation",
        "share",
        "samples",
    ],
    place: "of a delay",
    belongs: "inside `delay`, as in delay = { mean = \"50ms\", jitter = \"5ms\" }",
};

pub(super) const REORDER: Section = Section {
    keys: &["probability", "correlation", "gap"],
    place: "of `reorder`",
    belongs: "inside `reorder`, as in reorder = { probability = \"1%\", gap = 5 }",
};

const VOCABULARY: Vocabulary = Vocabulary {
    sections: &[TOP, LINK, DELAY, REORDER],
    aliases: &[
        ("bandwidth", "rate"),
        ("buffer", "queue"),
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
