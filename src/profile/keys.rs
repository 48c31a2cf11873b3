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
use crate::text::{Located, Mistake, Section, Vocabulary};

pub(super) const TOP: Section = Section {
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
};
pub(super) const LINK: Section = Section {
    keys: &[
        LinkDraft::KEYS,
        // `rate` is in both.
        TABLES.split_at(1).1,
    ],
    place: "of a link",
    belongs: "under [link], [up], [down] or [links.NAME]",
};
pub(super) const DELAY: Section = Section {
    keys: &[DelayDraft::KEYS, OTHER_KEYS, JitterDraft::KEYS],
    place: "of a delay",
    belongs: "inside `delay`, as in delay = { mean = \"50ms\", jitter = \"5ms\" }",
};
pub(super) const DISTANCE: Section = Section {
    keys: &[DistanceDraft::KEYS],
    place: "of a distance",
    belongs: "inside `distance`, as in distance = { length = \"300km\", velocity-factor = \"100%\" }",
};
pub(super) const LOSS: Section = Section {
    keys: &[FiguresDraft::KEYS, LossDraft::KEYS],
    place: "of a loss",
    belongs: "inside `loss`, as in loss = { model = \"burst\", probability = \"1%\", length = 5 }",
};
pub(super) const DUPLICATE: Section = Section {
    keys: &[DuplicateDraft::KEYS],
    place: "of a duplicate",
    belongs: "inside `duplicate`, as in duplicate = { probability = \"1%\", correlation = \"25%\" }",
};
pub(super) const CORRUPT: Section = Section {
    keys: &[CorruptDraft::KEYS],
    place: "of a corrupt",
    belongs: "inside `corrupt`, as in corrupt = { probability = \"1%\", bits = 2 }",
};
pub(super) const TRACE: Section = Section {
    keys: &[SOURCES, TraceDraft::KEYS],
    place: "of a trace",
    belongs: "inside `trace`, as in trace = { file = \"cell.csv\", offset = \"5s\" }",
};
pub(super) const SLOT: Section = Section {
    keys: &[SlotDraft::KEYS],
    place: "of a slot",
    belongs: "inside `slot`, as in slot = { min = \"10ms\", max = \"20ms\", packets = 32 }",
};
pub(super) const BACKGROUND: Section = Section {
    keys: &[BackgroundDraft::KEYS],
    place: "of a background",
    belongs: "inside `background`, as in background = { load = \"40%\", sources = 10 }",
};
pub(super) const PHASE: Section = Section {
    keys: &[&["for", "link", "name", "ramp", "whole", "up", "down"]],
    place: "of a phase",
    belongs: "under [[phase]]",
};
pub(super) const STATE: Section = Section {
    keys: &[&["dwell", "link", "name", "next", "whole", "up", "down"]],
    place: "of a state",
    belongs: "under [[state]]",
};
pub(super) const PHASES: Section = Section {
    keys: &[&["loop", "offset"]],
    place: "of `phases`",
    belongs: "at the top, as in phases = { loop = true, offset = \"10s\" }",
};

pub(super) const REORDER: Section = Section {
    keys: &[ReorderDraft::KEYS],
    place: "of `reorder`",
    belongs: "inside `reorder`, as in reorder = { probability = \"1%\", gap = 5 }",
};

pub(super) const RULE: Section = Section {
    keys: &[&["match"], RuleDraft::KEYS],
    place: "of a rule",
    belongs: "under [[rule]]",
};
pub(super) const MATCH: Section = Section {
    keys: &[MatchDraft::KEYS],
    place: "of a match",
    belongs: "inside `match` of a [[rule]], as in match = { protocol = \"tcp\" }",
};
pub(super) const MATRIX: Section = Section {
    keys: &[&["file"], MatrixDraft::KEYS],
    place: "of a matrix",
    belongs: "under [matrix]",
};
pub(super) const RATE: Section = Section {
    keys: &[LINK_KEYS, WireDraft::KEYS],
    place: "of a rate",
    belongs: "inside `rate`, as in rate = { rate = \"10Mbit\", burst = \"32kB\" }",
};
pub(super) const CELL: Section = Section {
    keys: &[&["size", "overhead"]],
    place: "of a cell",
    belongs: "inside `cell`, as in cell = { size = 48, overhead = 5 }",
};
pub(super) const QUEUE: Section = Section {
    keys: &[QueueDraft::KEYS, queueing::OTHER_KEYS, aqm::KEYS],
    place: "of a queue",
    belongs: "inside `queue`, as in queue = { limit = \"1000p\", time = \"200ms\" }",
};

pub(super) const BOTTLENECK: Section = Section {
    keys: &[BottleneckDraft::KEYS, &["queue", "class"]],
    place: "of a bottleneck",
    belongs: "under [bottleneck.NAME]",
};
pub(super) const SERVICE_CLASS: Section = Section {
    keys: &[ClassDraft::KEYS, &["queue"]],
    place: "of a class",
    belongs: "under [bottleneck.NAME.class.CLASS]",
};

const PROFILE: &str = "a named link may begin with a profile: [links.x] with profile = \"lte\", to \
    which link = \"x\" of a [[rule]] or [[phase]] refers; to use a profile as it is: --profile lte";

const VOCABULARY: Vocabulary = Vocabulary {
    sections: &[
        TOP,
        LINK,
        DELAY,
        DISTANCE,
        RATE,
        CELL,
        QUEUE,
        LOSS,
        DUPLICATE,
        CORRUPT,
        REORDER,
        RULE,
        MATCH,
        MATRIX,
        TRACE,
        SLOT,
        BACKGROUND,
        PHASE,
        PHASES,
        BOTTLENECK,
        SERVICE_CLASS,
    ],
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

/// What is said of a key that `section` has not.
pub(super) fn unknown(key: &Located<String>, section: &Section) -> Mistake {
    VOCABULARY.unknown(key, section)
}
