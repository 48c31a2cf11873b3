// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a configuration of the monitor.

use crate::text::{Located, Mistake, Section, Vocabulary};

macro_rules! section {
    ($name:literal: $($key:literal),+) => {
        Section {
            keys: &[$($key),+],
            place: concat!("in [", $name, "]"),
            belongs: concat!("under [", $name, "]"),
        }
    };
}

pub(crate) const TOP: Section = Section {
    keys: &[
        "cpu", "network", "memory", "disk", "emulator", "psi", "alarms",
    ],
    place: "at the top",
    belongs: "at the top of the file, as a header: [cpu]",
};
pub(crate) const CPU: Section = section!("cpu": "theta", "basis");
pub(crate) const NETWORK: Section =
    section!("network": "window", "external", "internal", "class", "device");
pub(crate) const MEMORY: Section = section!("memory": "window", "page-ins", "page-outs");
pub(crate) const DISK: Section = section!("disk": "theta", "device");
pub(crate) const EMULATOR: Section = section!("emulator": "late");
pub(crate) const PSI: Section = section!("psi": "stall", "window");
pub(crate) const ALARMS: Section = section!("alarms": "limit", "group-by", "reporters");

/// What `--only` knows. Reports of programs are always taken.
pub(crate) const RESOURCES: [&str; 7] = [
    "cpu",
    "network",
    "memory",
    "disk",
    "emulator",
    "psi",
    "application",
];

const VOCABULARY: Vocabulary = Vocabulary {
    sections: &[TOP, CPU, NETWORK, MEMORY, DISK, EMULATOR, PSI, ALARMS],
    hints: &[],
    aliases: &[
        ("alarm", "alarms"),
        ("block", "disk"),
        ("busy", "theta"),
        ("classes", "class"),
        ("devices", "device"),
        ("disks", "device"),
        ("group_by", "group-by"),
        ("groups", "group-by"),
        ("interface", "device"),
        ("lateness", "late"),
        ("net", "network"),
        ("page_ins", "page-ins"),
        ("page_outs", "page-outs"),
        ("paging", "memory"),
        ("pressure", "psi"),
        ("processor", "cpu"),
        ("swap", "memory"),
        ("swap-in", "page-ins"),
        ("swap-out", "page-outs"),
        ("threshold", "theta"),
    ],
};

/// What is said of a key that `section` has not.
pub(crate) fn unknown(key: &Located<String>, section: &Section) -> Mistake {
    VOCABULARY.unknown(key, section)
}
