// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a scenario.

use crate::text::{Located, Mistake, Section, Vocabulary};

pub(crate) const TOP: Section = Section {
    keys: &[
        "name",
        "description",
        "network",
        "measure",
        "ready_within",
        "clean_up_within",
        "topology",
        "node",
        "link",
    ],
    place: "at the top of a scenario",
    belongs: "at the top of the file, above the first [header]",
};
pub(crate) const NODE: Section = Section {
    keys: &[
        "command",
        "service",
        "ready",
        "start",
        "waits_for",
        "prepare",
        "clean_up",
        "artefacts",
        "forwards",
        "outside",
    ],
    place: "of a node",
    belongs: "under [node.NAME]",
};
pub(crate) const LINK: Section = Section {
    keys: &["between", "profile"],
    place: "of a link between nodes",
    belongs: "under [link.NAME]",
};
pub(crate) const TOPOLOGY: Section = Section {
    keys: &[
        "kind", "routers", "nodes", "pairs", "profile", "access", "class",
    ],
    place: "of a topology",
    belongs: "under [topology]",
};
pub(crate) const CLASS: Section = Section {
    keys: &["peers", "profile"],
    place: "of a class of peers",
    belongs: "under [topology.class.NAME]",
};

const VOCABULARY: Vocabulary = Vocabulary {
    sections: &[TOP, NODE, LINK, TOPOLOGY, CLASS],
    hints: &[],
    aliases: &[
        ("after", "waits_for"),
        ("artifacts", "artefacts"),
        ("cleanup", "clean_up"),
        ("cmd", "command"),
        ("depends_on", "waits_for"),
        ("duration", "measure"),
        ("exec", "command"),
        ("forward", "forwards"),
        ("internet", "outside"),
        ("run", "command"),
        ("setup", "prepare"),
        ("subnet", "network"),
        ("teardown", "clean_up"),
        ("timeout", "ready_within"),
        ("type", "kind"),
    ],
};

/// Returns the mistake for a key that `section` does not have.
pub(crate) fn unknown(key: &Located<String>, section: &Section) -> Mistake {
    VOCABULARY.unknown(key, section)
}
