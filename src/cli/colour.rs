// SPDX-License-Identifier: MIT OR Apache-2.0
//! Colour on a terminal: the texts that mean that a result or a link is not valid are red.

use std::borrow::Cow;
use std::io::IsTerminal;

use emud::experiment::results::VerdictMark;

/// Written in capitals, and only in these cases.
const BAD: [&str; 7] = [
    "NOT ANSWERING",
    "CONTENDED",
    "TAMPERED",
    "ENDED",
    "DISAGREES",
    "LOST",
    "NOT",
];
const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

/// Verdicts of runs whose figures are not valid.
const VERDICTS: [&str; 3] = ["contended", "invalid", "unfinished"];

/// Returns whether a stream is a terminal, and neither NO_COLOR (<https://no-color.org>) nor
/// a terminal without colours says otherwise.
pub fn is_wanted(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stream.is_terminal() && !set("NO_COLOR") && !dumb
}

/// Returns how a stream shows verdicts.
pub fn verdicts(stream: &impl IsTerminal) -> VerdictMark {
    match is_wanted(stream) {
        true => verdict,
        false => str::to_owned,
    }
}

/// Returns a text that begins with a verdict, in red if it is a bad one.
fn verdict(text: &str) -> String {
    let is_first = |word: &&str| text.starts_with(*word);
    match VERDICTS.into_iter().find(is_first) {
        Some(word) => format!("{RED}{word}{PLAIN}{}", &text[word.len()..]),
        None => text.to_owned(),
    }
}

/// Returns the text with such texts in red.
pub fn marked(text: &str) -> Cow<'_, str> {
    if !BAD.iter().any(|word| text.contains(word)) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    while let Some((at, word)) = (BAD.iter())
        .filter_map(|word| Some((rest.find(word)?, *word)))
        .min_by_key(|(at, word)| (*at, usize::MAX - word.len()))
    {
        let (before, behind) = (&rest[..at], &rest[at + word.len()..]);
        out.push_str(before);
        // A part of a name is none.
        let whole = !out.ends_with(is_part) && !behind.starts_with(is_part);
        match whole {
            true => out.extend([RED, word, PLAIN]),
            false => out.push_str(word),
        }
        rest = behind;
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_verdict_is_red() {
        let text = ": 2 of the measured seconds\n  contended: x\n";
        let wanted = format!("{RED}contended{PLAIN}{text}");
        assert_eq!(verdict(&format!("contended{text}")), wanted);
        assert_eq!(verdict("unfinished"), format!("{RED}unfinished{PLAIN}"));
        for good in ["clean: invalid", "unwatched: x", ""] {
            assert_eq!(verdict(good), good);
        }
    }

    #[test]
    fn words_are_marked_and_parts_of_names_are_not() {
        let red = |text: &str| format!("{RED}{text}{PLAIN}");
        let text = "v0: TAMPERED: x, pid 7 NOT ANSWERING\n";
        let wanted = format!(
            "v0: {}: x, pid 7 {}\n",
            red("TAMPERED"),
            red("NOT ANSWERING")
        );
        assert_eq!(marked(text), wanted);
        for plain in ["v0 NOTE, ENDED_1, pid 7", "", "tampered"] {
            assert_eq!(marked(plain), plain);
        }
    }
}
