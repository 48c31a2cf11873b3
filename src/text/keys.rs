// SPDX-License-Identifier: MIT OR Apache-2.0
//! The known keys, and suggestions for unknown ones.

use super::{Located, Mistake, closest};

/// A table and its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    /// The keys of its parts.
    pub keys: &'static [&'static [&'static str]],
    /// "of a link".
    pub place: &'static str,
    /// Where a key of this table belongs: `under [link]`.
    pub belongs: &'static str,
}

impl Section {
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.keys.iter().copied().flatten().copied()
    }

    pub fn has(&self, key: &str) -> bool {
        self.all().any(|known| known == key)
    }
}

/// Defines the tables of a format as constants, and `SECTIONS`, which has all of them.
macro_rules! sections {
    ($vis:vis $( $NAME:ident { $($field:tt)* } )*) => {
        $( $vis const $NAME: Section = Section { $($field)* }; )*

        const SECTIONS: &[Section] = &[$($NAME),*];
    };
}
pub(crate) use sections;

/// All tables of a format.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub sections: &'static [Section],
    /// Other names for the same things.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Keys with a different meaning than expected: the section's `place`, the key, what to write.
    pub hints: &'static [(&'static str, &'static str, &'static str)],
}

impl Vocabulary {
    /// Returns the mistake for a key that `section` does not have.
    pub fn unknown(&self, key: &Located<String>, section: &Section) -> Mistake {
        let word = key.value.as_str();
        let title = format!("there is no key `{word}` {}", section.place);
        let mut hints = self.hints.iter();
        if let Some((.., help)) =
            hints.find(|(place, key, _)| *place == section.place && *key == word)
        {
            return Mistake::new(&key.at, title, *help);
        }
        let all: Vec<_> = section.all().collect();
        let all = format!("the keys are {}", all.join(", "));
        let help = match (self.meant(word, section), self.elsewhere(word, section)) {
            (_, Some(others)) => format!("`{word}` belongs {others}"),
            (Some(meant), None) => match self.elsewhere(meant, section) {
                Some(others) => format!("did you mean `{meant}`? It belongs {others}"),
                None => format!("did you mean `{meant}`? ({all})"),
            },
            (None, None) => all,
        };
        Mistake::new(&key.at, title, help)
    }

    /// Returns the key that `word` stands for: another name of it, or a misspelling, of this section first.
    fn meant(&self, word: &str, section: &Section) -> Option<&'static str> {
        let by_alias = |word: &str| {
            self.aliases
                .iter()
                .find(|(alias, _)| *alias == word)
                .map(|(_, key)| *key)
        };
        let others = || self.sections.iter().flat_map(Section::all);
        by_alias(word)
            .or_else(|| closest(word, section.all()))
            .or_else(|| closest(word, others()))
            .or_else(|| by_alias(closest(word, self.aliases.iter().map(|(alias, _)| *alias))?))
    }

    /// Returns where else `word` is a key, unless it is one here.
    fn elsewhere(&self, word: &str, section: &Section) -> Option<String> {
        let others: Vec<_> = self.sections.iter().filter(|s| s.has(word)).collect();
        if others.is_empty() || others.contains(&section) {
            return None;
        }
        let places: Vec<_> = others.iter().map(|section| section.belongs).collect();
        Some(places.join(" or "))
    }
}
