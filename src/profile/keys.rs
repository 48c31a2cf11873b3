// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a profile.

use super::alter::{CorruptDraft, DuplicateDraft};
use super::background::BackgroundDraft;
use super::bottleneck::{BottleneckDraft, ClassDraft};
use super::delay::{DelayDraft, JitterDraft, OTHER_KEYS};
use super::distance::DistanceDraft;
use super::draft::{LinkDraft, TABLES};
use super::loss::{FiguresDraft, LossDraft};
use super::matrix::MatrixDraft;
use super::queueing::QueueDraft;
use super::reordering::ReorderDraft;
use super::rules::{MatchDraft, RuleDraft};
use super::slot::SlotDraft;
use super::trace_read::{SOURCES, TraceDraft};
use super::wire::{LINK_KEYS, WireDraft};
use super::{aqm, queueing};
use crate::text::{Located, Mistake, Section, Vocabulary, sections};

sections! { pub(super)
    TOP {
        keys: &[&[
            "name",
            "description",
            "source",
            "seed",
            "offload",
            "neighbours",
            "link",
            "up",
            "down",
            "links",
            "bottleneck",
            "rule",
            "instances",
            "matrix",
            "phase",
            "phases",
            "state",
        ]],
        place: "at the top of a profile",
        belongs: "at the top of the file, above the first [header]",
    }
    LINK {
        keys: &[
            LinkDraft::KEYS,
            // `rate` is in both.
            TABLES.split_at(1).1,
        ],
        place: "of a link",
        belongs: "under [link], [up], [down] or [links.NAME]",
    }
    DELAY {
        keys: &[DelayDraft::KEYS, OTHER_KEYS, JitterDraft::KEYS],
        place: "of a delay",
        belongs: "inside `delay`, as in delay = { mean = \"50ms\", jitter = \"5ms\" }",
    }
    DISTANCE {
        keys: &[DistanceDraft::KEYS],
        place: "of a distance",
        belongs: "inside `distance`, as in distance = { length = \"300km\", velocity-factor = \"100%\" }",
    }
    RATE {
        keys: &[LINK_KEYS, WireDraft::KEYS],
        place: "of a rate",
        belongs: "inside `rate`, as in rate = { rate = \"10Mbit\", burst = \"32kB\" }",
    }
    CELL {
        keys: &[&["size", "overhead"]],
        place: "of a cell",
        belongs: "inside `cell`, as in cell = { size = 48, overhead = 5 }",
    }
    QUEUE {
        keys: &[QueueDraft::KEYS, queueing::OTHER_KEYS, aqm::KEYS],
        place: "of a queue",
        belongs: "inside `queue`, as in queue = { limit = \"1000p\", time = \"200ms\" }",
    }
    LOSS {
        keys: &[FiguresDraft::KEYS, LossDraft::KEYS],
        place: "of a loss",
        belongs: "inside `loss`, as in loss = { model = \"burst\", probability = \"1%\", length = 5 }",
    }
    DUPLICATE {
        keys: &[DuplicateDraft::KEYS],
        place: "of a duplicate",
        belongs: "inside `duplicate`, as in duplicate = { probability = \"1%\", correlation = \"25%\" }",
    }
    CORRUPT {
        keys: &[CorruptDraft::KEYS],
        place: "of a corrupt",
        belongs: "inside `corrupt`, as in corrupt = { probability = \"1%\", bits = 2 }",
    }
    REORDER {
        keys: &[ReorderDraft::KEYS],
        place: "of `reorder`",
        belongs: "inside `reorder`, as in reorder = { probability = \"1%\", gap = 5 }",
    }
    RULE {
        keys: &[&["match"], RuleDraft::KEYS],
        place: "of a rule",
        belongs: "under [[rule]]",
    }
    MATCH {
        keys: &[MatchDraft::KEYS],
        place: "of a match",
        belongs: "inside `match` of a [[rule]], as in match = { protocol = \"tcp\" }",
    }
    MATRIX {
        keys: &[&["file"], MatrixDraft::KEYS],
        place: "of a matrix",
        belongs: "under [matrix]",
    }
    TRACE {
        keys: &[SOURCES, TraceDraft::KEYS],
        place: "of a trace",
        belongs: "inside `trace`, as in trace = { file = \"cell.csv\", offset = \"5s\" }",
    }
    SLOT {
        keys: &[SlotDraft::KEYS],
        place: "of a slot",
        belongs: "inside `slot`, as in slot = { min = \"10ms\", max = \"20ms\", packets = 32 }",
    }
    BACKGROUND {
        keys: &[BackgroundDraft::KEYS],
        place: "of a background",
        belongs: "inside `background`, as in background = { load = \"40%\", sources = 10 }",
    }
    PHASE {
        keys: &[&["for", "link", "name", "ramp", "whole", "up", "down"]],
        place: "of a phase",
        belongs: "under [[phase]]",
    }
    STATE {
        keys: &[&["dwell", "link", "name", "next", "whole", "up", "down"]],
        place: "of a state",
        belongs: "under [[state]]",
    }
    PHASES {
        keys: &[&["loop", "offset"]],
        place: "of `phases`",
        belongs: "at the top, as in phases = { loop = true, offset = \"10s\" }",
    }
    BOTTLENECK {
        keys: &[BottleneckDraft::KEYS, &["queue", "class"]],
        place: "of a bottleneck",
        belongs: "under [bottleneck.NAME]",
    }
    SERVICE_CLASS {
        keys: &[ClassDraft::KEYS, &["queue"]],
        place: "of a class",
        belongs: "under [bottleneck.NAME.class.CLASS]",
    }
}

const PROFILE: &str = "a named link may begin with a profile: [links.x] with profile = \"lte\", to \
    which link = \"x\" of a [[rule]] or [[phase]] refers; to use a profile as it is: --profile lte";

const VOCABULARY: Vocabulary = Vocabulary {
    sections: SECTIONS,
    aliases: &[
        ("bandwidth", "rate"),
        ("buffer", "queue"),
        ("download", "down"),
        ("downlink", "down"),
        ("downstream", "down"),
        ("drop", "loss"),
        ("duration", "for"),
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
    hints: &[
        (
            LOSS.place,
            "burst",
            "loss in bursts is a model: loss = { model = \"burst\", probability = \"0.1%\", length = 3 }",
        ),
        (LINK.place, "profile", PROFILE),
        (TOP.place, "profile", PROFILE),
        (PHASE.place, "profile", PROFILE),
    ],
};

/// Returns the mistake of a key that `section` does not have.
pub(super) fn unknown(key: &Located<String>, section: &Section) -> Mistake {
    VOCABULARY.unknown(key, section)
}
