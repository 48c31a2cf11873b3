// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tc command line as words with their places.

use crate::text::{At, Located, Mistake};

pub(super) type Word<'a> = Located<&'a str>;

/// The words not yet read.
pub(super) struct Words<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    /// Behind the last word.
    end: At,
}

impl<'a> Words<'a> {
    /// Splits at blanks; a backslash before a line's end is one.
    pub fn of(text: &'a str) -> Result<Self, Mistake> {
        let mut words = Vec::new();
        for value in text.split_whitespace().filter(|word| *word != "\\") {
            let start = value.as_ptr() as usize - text.as_ptr() as usize;
            let span = start..start + value.len();
            let at = At { source: 0, span };
            if value.contains([';', '|', '&', '<', '>', '`', '"', '\'']) {
                let help = "give one command as the shell would run it, without quotes or pipes";
                return Err(Mistake::new(
                    &at,
                    format!("`{value}` is for the shell"),
                    help,
                ));
            }
            words.push(Located { value, at });
        }
        let end = At {
            source: 0,
            span: text.trim_end().len()..text.trim_end().len(),
        };
        Ok(Self {
            words,
            next: 0,
            end,
        })
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).map(|word| word.value)
    }

    pub fn next(&mut self) -> Option<Word<'a>> {
        let word = self.words.get(self.next).cloned();
        self.next += usize::from(word.is_some());
        word
    }

    /// The word after `option`, which needs one.
    pub fn argument(&mut self, option: &str, example: &str) -> Result<Word<'a>, Mistake> {
        self.next().ok_or_else(|| {
            Mistake::new(
                &self.end,
                format!("`{option}` needs a value"),
                format!("write {option} {example}"),
            )
        })
    }

    /// The next word if tc would take it for a number: it looks at the first character only.
    pub fn number(&mut self) -> Option<Word<'a>> {
        let digit = self.peek()?.starts_with(|c: char| c.is_ascii_digit());
        digit.then(|| self.next()).flatten()
    }

    /// The same where a sign may stand in front.
    pub fn signed_number(&mut self) -> Option<Word<'a>> {
        let digit = self
            .peek()?
            .starts_with(|c: char| c.is_ascii_digit() || c == '-');
        digit.then(|| self.next()).flatten()
    }

    /// Where the last word that was read ends.
    pub fn read_up_to(&self) -> usize {
        let last = self.next.checked_sub(1).and_then(|i| self.words.get(i));
        last.map_or(0, |word| word.at.span.end)
    }

    pub fn end(&self) -> &At {
        &self.end
    }
}

/// tc takes every beginning of a word for the word; the first in its list wins.
pub(super) fn begins(word: &str, whole: &str) -> bool {
    !word.is_empty() && whole.starts_with(word)
}

/// What stands in front of netem's options.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub device: Option<String>,
    /// The class that netem is below, if it is not at the root.
    pub parent: Option<String>,
}

/// Reads up to netem's first option.
pub(super) fn place(words: &mut Words) -> Result<Place, Mistake> {
    let mut place = Place::default();
    while words
        .peek()
        .is_some_and(|word| matches!(word, "#" | "$" | "sudo"))
    {
        words.next();
    }
    match words.peek() {
        Some(word) if word == "tc" || word.ends_with("/tc") => {
            words.next();
            qdisc(words)?;
            target(words, &mut place)?;
        }
        Some("netem") => {
            words.next();
        }
        // Options alone.
        _ => {}
    }
    Ok(place)
}

/// `qdisc add`, with tc's own options in front.
fn qdisc(words: &mut Words) -> Result<(), Mistake> {
    while words.peek().is_some_and(|word| word.starts_with('-')) {
        let option = words.next();
        if option.is_some_and(|option| matches!(option.value, "-n" | "-net" | "-netns")) {
            words.next();
        }
    }
    let help = "write tc qdisc add dev eth0 root netem ..., or the part from netem on";
    let object = words.argument("tc", "qdisc add dev eth0 root netem ...")?;
    if !begins(object.value, "qdisc") {
        let title = format!("`{}` is no qdisc", object.value);
        return Err(Mistake::new(&object.at, title, help));
    }
    let verb = words.argument("qdisc", "add dev eth0 root netem ...")?;
    if !["add", "change", "replace", "link"]
        .iter()
        .any(|known| begins(verb.value, known))
    {
        let title = format!("`{}` sets nothing", verb.value);
        return Err(Mistake::new(&verb.at, title, help));
    }
    Ok(())
}

/// `dev eth0 root handle 1: netem`.
fn target(words: &mut Words, place: &mut Place) -> Result<(), Mistake> {
    let help = "write dev eth0 root netem ..., or the part from netem on";
    loop {
        let Some(word) = words.next() else {
            return Err(Mistake::new(words.end(), "there is no `netem`", help));
        };
        match word.value {
            "netem" => return Ok(()),
            "root" => {}
            "dev" => place.device = Some(words.argument("dev", "eth0")?.value.to_owned()),
            "parent" => place.parent = Some(words.argument("parent", "1:1")?.value.to_owned()),
            "handle" => {
                words.argument("handle", "1:")?;
            }
            other => {
                let title = format!("`{other}` is not netem");
                let help = "only netem is imported: write dev eth0 root netem ..., or the part \
                            from netem on";
                return Err(Mistake::new(&word.at, title, help));
            }
        }
    }
}
