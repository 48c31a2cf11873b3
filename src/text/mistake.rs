// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors that show the line, underline the text and print the correction.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::UnitError;

/// More mistakes would only hide the first.
const SHOWN: usize = 20;

/// All mistakes in one file or one set of arguments.
#[derive(Debug)]
pub struct Mistakes {
    sources: Vec<Source>,
    list: Vec<Mistake>,
}

/// The text of an input.
#[derive(Debug)]
pub(crate) struct Source {
    /// File name, or "argument 2".
    pub origin: String,
    pub text: String,
}

/// The position of a value; by default the start of the first source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct At {
    /// Index of the source; later ones override earlier ones.
    pub source: usize,
    pub span: Range<usize>,
}

impl At {
    /// The start of the first source.
    pub const START: Self = Self {
        source: 0,
        span: 0..0,
    };
}

/// A value and its position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub value: T,
    pub at: At,
}

/// A single mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    at: At,
    /// The mistake as a phrase.
    pub title: String,
    /// The valid values or the correction.
    pub help: String,
    /// Another position that is involved, and its description.
    beside: Option<(At, String)>,
}

impl Mistake {
    pub(crate) fn new(at: &At, title: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            at: at.clone(),
            title: title.into(),
            help: help.into(),
            beside: None,
        }
    }

    /// Adds another position.
    pub(crate) fn beside(self, at: &At, label: impl Into<String>) -> Self {
        Self {
            beside: Some((at.clone(), label.into())),
            ..self
        }
    }

    pub(crate) fn unit(at: &At, error: UnitError) -> Self {
        Self::new(at, error.problem, error.help)
    }
}

impl Mistakes {
    /// Sorts `list` in the order of the text and removes duplicates.
    pub(crate) fn new(sources: Vec<Source>, mut list: Vec<Mistake>) -> Self {
        list.sort_by_key(|m| (m.at.source, m.at.span.start, m.at.span.end));
        list.dedup();
        Self { sources, list }
    }

    /// Returns the mistakes in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.list.iter()
    }

    /// Returns the line of `mistake`, from 1.
    pub fn line(&self, mistake: &Mistake) -> usize {
        let start = mistake.at.span.start;
        self.text_of(mistake)
            .bytes()
            .take(start)
            .filter(|b| *b == b'\n')
            .count()
            + 1
    }

    /// Returns the name of the text that contains `mistake`.
    pub fn origin(&self, mistake: &Mistake) -> &str {
        self.sources
            .get(mistake.at.source)
            .map_or("", |source| &source.origin)
    }

    /// Returns the text that is underlined for `mistake`.
    pub fn underlined(&self, mistake: &Mistake) -> &str {
        self.text_of(mistake)
            .get(mistake.at.span.clone())
            .unwrap_or_default()
    }

    fn text_of(&self, mistake: &Mistake) -> &str {
        self.sources
            .get(mistake.at.source)
            .map_or("", |source| &source.text)
    }

    pub(super) fn render(&self, renderer: &Renderer) -> String {
        let mut parts: Vec<_> = self
            .list
            .iter()
            .take(SHOWN)
            .map(|m| self.one(renderer, m))
            .collect();
        if self.list.len() > SHOWN {
            parts.push(format!("and {} more mistakes", self.list.len() - SHOWN));
        }
        parts.join("\n\n")
    }

    fn one(&self, renderer: &Renderer, mistake: &Mistake) -> String {
        let origin = self.origin(mistake);
        let span = mistake.at.span.clone();
        let snippet = Snippet::source(self.text_of(mistake)).path(origin);
        let mut snippet = snippet.annotation(AnnotationKind::Primary.span(span));
        let mut other = None;
        if let Some((at, label)) = &mistake.beside {
            let span = AnnotationKind::Context.span(at.span.clone()).label(label);
            match self.sources.get(at.source) {
                _ if at.source == mistake.at.source => snippet = snippet.annotation(span),
                Some(source) => {
                    let place = Snippet::source(&source.text).path(&source.origin);
                    other = Some(place.annotation(span));
                }
                None => {}
            }
        }
        let mut group = Level::ERROR.primary_title(&mistake.title).element(snippet);
        if let Some(other) = other {
            group = group.element(other);
        }
        renderer.render(&[group.element(Level::HELP.message(&mistake.help))])
    }
}

/// Returns the beginning of a text from a file, which may have any length.
pub(crate) fn clipped(word: &str) -> String {
    const MOST: usize = 60;
    match word.char_indices().nth(MOST) {
        None => word.escape_debug().to_string(),
        Some((end, _)) => format!("{}...", word[..end].escape_debug()),
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Renderer::plain()))
    }
}
