// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of the monitor's configuration.

use std::sync::LazyLock;

use emud_monitor::criteria::{self, sections};

use crate::text::{Located, Mistake, Section, Vocabulary};

/// The names for `--only`. Reports of programs are always accepted.
pub(crate) static RESOURCES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let optional = sections().filter(|section| section.is_optional());
    optional
        .map(|section| section.name)
        .chain(["application"])
        .collect()
});

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let leaked = |keys: Vec<&'static str>| -> &[&[&str]] { Vec::leak(vec![&*keys.leak()]) };
    let top = Section {
        keys: leaked(sections().map(|section| section.name).collect()),
        place: "at the top",
        belongs: "at the top of the file, as a header: [cpu]",
    };
    let tables = sections().map(|section| Section {
        keys: leaked(section.keys.iter().map(|key| key.name).collect()),
        place: String::leak(format!("in [{}]", section.name)),
        belongs: String::leak(format!("under [{}]", section.name)),
    });
    let also = |section: &'static criteria::Section| {
        let keys = section.keys.iter();
        let keys = keys.flat_map(|key| key.also.iter().map(|also| (*also, key.name)));
        section
            .also
            .iter()
            .map(|also| (*also, section.name))
            .chain(keys)
    };
    Vocabulary {
        sections: Vec::leak([top].into_iter().chain(tables).collect()),
        hints: &[],
        aliases: Vec::leak(sections().flat_map(also).collect()),
    }
});

/// Returns the mistake for an unknown key in `section`, or at the top.
pub(crate) fn unknown(key: &Located<String>, section: Option<&str>) -> Mistake {
    let place = match section {
        Some(name) => format!("in [{name}]"),
        None => "at the top".to_owned(),
    };
    let sections = VOCABULARY.sections;
    let own = sections.iter().find(|section| section.place == place);
    VOCABULARY.unknown(key, own.unwrap_or(&sections[0]))
}
