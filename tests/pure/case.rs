// SPDX-License-Identifier: MIT OR Apache-2.0
//! A text with one mistake.

use emud::text::Mistakes;

/// The text, the mistake's line, what is underlined, and parts of title and help.
#[derive(Clone, Copy)]
pub struct Case(
    pub &'static str,
    pub usize,
    pub &'static str,
    pub &'static str,
    pub &'static str,
);

impl Case {
    /// Returns the difference to what was found, if any.
    pub fn differs(&self, found: &Mistakes) -> Option<String> {
        let Self(text, line, underlined, title, help) = *self;
        let shown = found.to_string();
        let all: Vec<_> = found.iter().collect();
        let same = all.len() == 1
            && found.line(all[0]) == line
            && found.underlined(all[0]) == underlined
            && all[0].title.contains(title)
            && all[0].help.contains(help)
            && shown.contains(&all[0].title);
        let wanted = || format!("{text}\nwanted line {line}: {underlined}: {title}: {help}");
        (!same).then(|| format!("{}\n{shown}\n", wanted()))
    }
}

/// Compares all cases with what is found in their texts.
pub fn compare<'a>(cases: impl IntoIterator<Item = &'a Case>, found: impl Fn(&str) -> Mistakes) {
    let wrong = cases
        .into_iter()
        .filter_map(|case| case.differs(&found(case.0)));
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
