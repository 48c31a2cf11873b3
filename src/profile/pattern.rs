// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded pattern of losses: from zeros and ones, or from the indices of those lost.

use std::path::Path;

use super::file::unmarked;
use crate::text::{At, Mistake, read_file, utf8};

/// As many packets as the classifier keeps (bpf/abi/link.h).
pub const MAX_PATTERN: u32 = crate::abi::EMUD_PATTERN_LEN;

/// Which of a number of packets are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Indices, the first packet's is 0; in order, each once, all below `length`.
    lost: Vec<u32>,
    /// Packets, 1..=[`MAX_PATTERN`].
    length: u32,
}

/// A mistake in a pattern, with its correction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct PatternError {
    /// The mistake as a phrase.
    pub problem: String,
    /// How to write it.
    pub help: String,
}

impl PatternError {
    fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        let (problem, help) = (problem.into(), help.into());
        Self { problem, help }
    }

    pub(super) fn at(self, at: &At) -> Mistake {
        Mistake::new(at, self.problem, self.help)
    }
}

impl Pattern {
    /// Zeros and ones (1 is lost), blanks and line ends between them dropped.
    ///
    /// # Errors
    /// Another character, no packet, or more than [`MAX_PATTERN`].
    pub fn from_bits(text: &str) -> Result<Self, PatternError> {
        let mut lost = Vec::new();
        let mut length = 0u32;
        for bit in text.chars().filter(|c| !c.is_whitespace()) {
            match bit {
                '0' => {}
                '1' => lost.push(length),
                other => {
                    let problem = format!("`{}` is not 0 or 1", other.escape_default());
                    let help = "a pattern is a 0 for each packet that comes through and a 1 for \
                                each that is lost; for a list of packet numbers give `length` too";
                    return Err(PatternError::new(problem, help));
                }
            }
            length += 1;
            if length > MAX_PATTERN {
                return Err(too_long());
            }
        }
        Self::new(lost, length)
    }

    /// Creates a pattern from the indices of the packets lost, in any order; the first packet's is 0.
    ///
    /// # Errors
    /// An index not below `length`, or a length that is not 1..=[`MAX_PATTERN`].
    pub fn from_lost(lost: &[u64], length: u64) -> Result<Self, PatternError> {
        let Some(length) = u32::try_from(length).ok().filter(|n| *n <= MAX_PATTERN) else {
            return Err(too_long());
        };
        let index = |i: &u64| {
            let index = u32::try_from(*i).ok().filter(|i| *i < length);
            index.ok_or_else(|| {
                PatternError::new(
                    format!("packet {i} is not among {length}"),
                    format!(
                        "the first packet is 0, the last {}: or give a longer `length`",
                        length.saturating_sub(1)
                    ),
                )
            })
        };
        let mut lost = lost.iter().map(index).collect::<Result<Vec<_>, _>>()?;
        lost.sort_unstable();
        lost.dedup();
        Self::new(lost, length)
    }

    /// Creates a pattern from a bit for each packet: 1 is lost, the first packet is the lowest bit of the first number.
    pub(crate) fn of_words(words: &[u64], length: u32) -> Self {
        let is_lost = |i: &u32| {
            let word = words.get(*i as usize / 64).copied().unwrap_or(0);
            word >> (i % 64) & 1 == 1
        };
        Self {
            lost: (0..length).filter(is_lost).collect(),
            length,
        }
    }

    fn new(lost: Vec<u32>, length: u32) -> Result<Self, PatternError> {
        if length == 0 {
            let help = "write one 0 or 1 for each packet, such as \"0001000\"";
            return Err(PatternError::new("a pattern of 0 packets", help));
        }
        Ok(Self { lost, length })
    }

    /// Indices of the packets lost, in order.
    pub fn lost(&self) -> &[u32] {
        &self.lost
    }

    /// Packets until it ends.
    pub fn length(&self) -> u32 {
        self.length
    }

    /// Returns `pattern = "..."`, or `lost = [...], length = ...` where that is shorter.
    pub(super) fn keys(&self) -> String {
        let list: Vec<_> = self.lost.iter().map(ToString::to_string).collect();
        let list = format!("lost = [{}], length = {}", list.join(", "), self.length);
        if list.len() < self.length as usize {
            return list;
        }
        let mut bits = vec![b'0'; self.length as usize];
        for i in &self.lost {
            bits[*i as usize] = b'1';
        }
        format!("pattern = \"{}\"", String::from_utf8_lossy(&bits))
    }
}

fn too_long() -> PatternError {
    PatternError::new(
        "the pattern is too long",
        format!("the limit is {MAX_PATTERN} packets; it may be repeated: loop = true"),
    )
}

/// Reads a file of zeros and ones or, with `length`, of the indices of the packets lost;
/// `#` begins a comment.
pub(super) fn from_file(
    folder: &Path,
    name: &str,
    length: Option<u64>,
) -> Result<Pattern, PatternError> {
    let path = folder.join(name);
    let unreadable = |error: crate::text::TextError| {
        let help = "`file` names a file of zeros and ones, from the folder of the profile on";
        PatternError::new(error.to_string(), help)
    };
    let bytes = read_file(&path).map_err(unreadable)?;
    let text = utf8(&bytes, &path.display().to_string())
        .map_err(unreadable)?
        .text;
    let mut lost = Vec::new();
    let mut bits = String::new();
    for (number, line) in (1..).zip(unmarked(&text).lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let here = |error: PatternError| {
            let problem = format!("{}:{number}: {}", path.display(), error.problem);
            PatternError::new(problem, error.help)
        };
        match length {
            Some(length) => lost.extend(indices(line, length).map_err(here)?),
            None if line.trim().is_empty() => {}
            None => {
                Pattern::from_bits(line).map_err(here)?;
                bits.push_str(line);
            }
        }
    }
    match length {
        Some(length) => Pattern::from_lost(&lost, length),
        None => Pattern::from_bits(&bits),
    }
}

/// Returns the numbers of a line, each below `length`.
fn indices(line: &str, length: u64) -> Result<Vec<u64>, PatternError> {
    let words = line.split(|c: char| c.is_whitespace() || c == ',');
    let index = |word: &str| {
        let index = word.parse().ok().filter(|i| *i < length);
        index.ok_or_else(|| {
            PatternError::new(
                format!("`{}` is not a packet's number", word.escape_default()),
                format!("with `length`, a file holds whole numbers below it ({length})"),
            )
        })
    };
    words.filter(|word| !word.is_empty()).map(index).collect()
}
