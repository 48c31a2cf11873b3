// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a scenario: those of the tables of [`model`](super::model) and
//! [`plan`](super::plan), and those that are tables themselves.

use super::medium::{MediumTableDraft, SegmentTableDraft};
use super::model::{ClassDraft, LinkDraft, TopDraft, TopologyDraft};
use super::plan::NodeDraft;
use crate::text::{Located, Mistake, Section, Vocabulary, sections};

sections! { pub(crate)
    TOP {
        keys: &[
            TopDraft::KEYS,
            &["topology", "node", "link", "medium", "segment"],
        ],
        place: "at the top of a scenario",
        belongs: "at the top of the file, above the first [header]",
    }
    NODE {
        keys: &[NodeDraft::KEYS],
        place: "of a node",
        belongs: "under [node.NAME]",
    }
    LINK {
        keys: &[LinkDraft::KEYS],
        place: "of a link between nodes",
        belongs: "under [link.NAME]",
    }
    TOPOLOGY {
        keys: &[TopologyDraft::KEYS],
        place: "of a topology",
        belongs: "under [topology]",
    }
    CLASS {
        keys: &[ClassDraft::KEYS],
        place: "of a class of peers",
        belongs: "under [topology.class.NAME]",
    }
    MEDIUM {
        keys: &[MediumTableDraft::KEYS],
        place: "of a medium",
        belongs: "under [medium.NAME]",
    }
    SEGMENT {
        keys: &[SegmentTableDraft::KEYS],
        place: "of a segment",
        belongs: "under [segment.NAME]",
    }
}

const VOCABULARY: Vocabulary = Vocabulary {
    sections: SECTIONS,
    hints: &[],
    aliases: &[
        ("after", "waits-for"),
        ("artifacts", "artefacts"),
        ("cleanup", "clean-up"),
        ("cmd", "command"),
        ("depends_on", "waits-for"),
        ("duration", "measure"),
        ("exec", "command"),
        ("forward", "forwards"),
        ("internet", "outside"),
        ("run", "command"),
        ("setup", "prepare"),
        ("subnet", "network"),
        ("teardown", "clean-up"),
        ("timeout", "ready-within"),
        ("type", "kind"),
    ],
};

/// Returns the mistake for a key that `section` does not have.
pub(crate) fn unknown(key: &Located<String>, section: &Section) -> Mistake {
    VOCABULARY.unknown(key, section)
}
