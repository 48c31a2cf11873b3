// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a command of tc runs: the network namespace, container or host that the text names.

use std::ops::Range;

use super::shell::Word;

/// Programs that run a command elsewhere.
const LAUNCHERS: [&str; 9] = [
    "docker", "podman", "nerdctl", "crictl", "lxc", "incus", "kubectl", "nsenter", "ssh",
];

/// Returns where the tokens in front of tc, and the namespace of its options, say that it runs; empty: where the script does.
pub(super) fn place<'a>(before: impl Iterator<Item = &'a str>, netns: Option<&str>) -> String {
    let words: Vec<_> = before
        .map(|word| word.trim_start_matches(['(', '{', '!', '$', '`']))
        .collect();
    let executes = |i: usize| words[i] == "netns" && words.get(i + 1) == Some(&"exec");
    let launches = |i: usize| {
        let name = words[i].rsplit('/').next().unwrap_or_default();
        LAUNCHERS.contains(&name)
    };
    let start = (0..words.len()).find(|i| executes(*i) || launches(*i));
    let mut place: Vec<&str> = Vec::new();
    let mut i = start.unwrap_or(words.len());
    while i < words.len() {
        let word = words[i];
        if executes(i) {
            place.pop_if(|ip| ip.rsplit('/').next() == Some("ip"));
            place.push(word);
            i += 1;
        } else if !is_of_no_place(word) {
            place.push(word);
        }
        i += 1;
    }
    place.extend(netns.map(|_| "netns"));
    place.extend(netns);
    place.join(" ")
}

/// Returns whether a token does not say where: an option without a value, or what runs the command there.
fn is_of_no_place(word: &str) -> bool {
    let has_value = word.contains(|c: char| c == '=' || c.is_ascii_digit());
    (word.starts_with('-') && !has_value)
        || matches!(word, "" | "sudo" | "sh" | "bash" | "/bin/sh" | "/bin/bash")
}

/// Returns the spans between quotes, in order; a comment has none.
pub(super) fn quoted(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut open: Option<(usize, char)> = None;
    let mut chars = text.char_indices();
    let mut before = ' ';
    while let Some((i, c)) = chars.next() {
        match (open, c) {
            (Some((start, quote)), c) if c == quote => {
                all.push(start..i);
                open = None;
            }
            (Some((_, '\'')), _) => {}
            (_, '\\') => drop(chars.next()),
            (None, '"' | '\'') => open = Some((i, c)),
            (None, '#') if before.is_whitespace() => {
                before = '\n';
                chars.by_ref().find(|(_, c)| *c == '\n');
                continue;
            }
            _ => {}
        }
        before = c;
    }
    all
}

/// Returns the tokens in front of the quotes in which a command begins, which may hold several commands.
pub(super) fn outside<'c, 'a>(
    commands: &'c [Vec<Word<'a>>],
    quotes: &[Range<usize>],
    start: usize,
) -> &'c [Word<'a>] {
    let begin = |command: &[Word]| command.first().map_or(0, |word| word.at.span.start);
    let quote = quotes.get(quotes.partition_point(|quote| quote.end <= start));
    let Some(quote) = quote.filter(|quote| quote.contains(&start)) else {
        return &[];
    };
    let behind = commands.partition_point(|command| begin(command) < quote.start);
    let outer = commands[..behind].last().map_or(&[][..], Vec::as_slice);
    &outer[..outer.partition_point(|word| word.at.span.start < quote.start)]
}
