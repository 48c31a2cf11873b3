// SPDX-License-Identifier: GPL-2.0-only
//! Errors that show the line, underline the text and say what would be right.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::units::UnitError;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The text has mistakes; all of them.
    #[error("{0}")]
    Mistakes(Mistakes),
    #[error("{origin}: a profile of more than {limit} bytes is not read")]
    TooLarge { origin: String, limit: usize },
    #[error("{}: {error}", .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("no profile named `{name}` is shipped with emud\n{help}")]
    UnknownName { name: String, help: String },
}

impl ProfileError {
    /// Exit code after sysexits: 66 where there is nothing to read, 65 where it is not a profile.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Mistakes(_) | Self::TooLarge { .. } => 65,
            Self::Unreadable { .. } | Self::UnknownName { .. } => 66,
        }
    }

    /// The message, with colours if it goes to a terminal; `Display` gives it without.
    pub fn render(&self, terminal: bool) -> String {
        match self {
            Self::Mistakes(mistakes) if terminal => mistakes.render(&Renderer::styled()),
            other => other.to_string(),
        }
    }
}

/// More than that would only hide the first.
const SHOWN: usize = 20;

/// Everything that is wrong with one profile or one set of changes.
#[derive(Debug)]
pub struct Mistakes {
    sources: Vec<Source>,
    list: Vec<Mistake>,
}

/// A text that was read.
#[derive(Debug)]
pub(super) struct Source {
    /// File name, or "argument 2".
    pub origin: String,
    pub text: String,
}

/// Where something is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct At {
    /// Index of the source; later ones override earlier ones.
    pub source: usize,
    pub span: Range<usize>,
}

/// A value and where it is written.
#[derive(Debug, Clone)]
pub(super) struct Located<T> {
    pub value: T,
    pub at: At,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    at: At,
    /// What is wrong.
    pub title: String,
    /// What would be right.
    pub help: String,
}

impl Mistake {
    pub(super) fn new(at: &At, title: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            at: at.clone(),
            title: title.into(),
            help: help.into(),
        }
    }

    pub(super) fn unit(at: &At, error: UnitError) -> Self {
        Self::new(at, error.problem, error.help)
    }
}

impl Mistakes {
    /// `list` in the order of the text, each once.
    pub(super) fn new(sources: Vec<Source>, mut list: Vec<Mistake>) -> Self {
        list.sort_by_key(|m| (m.at.source, m.at.span.start, m.at.span.end));
        list.dedup();
        Self { sources, list }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.list.iter()
    }

    /// Line, from 1, where `mistake` is.
    pub fn line(&self, mistake: &Mistake) -> usize {
        let start = mistake.at.span.start;
        self.text_of(mistake)
            .bytes()
            .take(start)
            .filter(|b| *b == b'\n')
            .count()
            + 1
    }

    /// The text that `mistake` is about.
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

    fn render(&self, renderer: &Renderer) -> String {
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
        let origin = self
            .sources
            .get(mistake.at.source)
            .map_or("", |source| &source.origin);
        let span = mistake.at.span.clone();
        let snippet = Snippet::source(self.text_of(mistake)).path(origin);
        let group = Level::ERROR
            .primary_title(&mistake.title)
            .element(snippet.annotation(AnnotationKind::Primary.span(span)))
            .element(Level::HELP.message(&mistake.help));
        renderer.render(&[group])
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(&Renderer::plain()))
    }
}
