// SPDX-License-Identifier: MIT OR Apache-2.0

/// A value written as a name.
pub trait Word: Copy + PartialEq + 'static {
    /// The available names.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the name.
    fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }

    /// Returns the value of a name.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, value)| *value)
    }
}

/// Declares an enum whose values users write as names: `VARIANT = "name"` is the whole declaration.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident {
            $( $(#[$doc:meta])* $Variant:ident = $word:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
        #[allow(missing_docs, reason = "the name describes it")]
        $vis enum $Name {
            $( $(#[$doc])* #[serde(rename = $word)] $Variant, )*
        }

        impl $crate::text::Word for $Name {
            const WORDS: &'static [(&'static str, Self)] = &[$( ($word, Self::$Variant) ),*];
        }
    };
}

pub(crate) use words;
