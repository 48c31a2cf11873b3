// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits a text into commands and their tokens, as the shell would.

use std::collections::HashMap;

use crate::text::{At, Located, Mistake, clipped};

pub(crate) type Word<'a> = Located<&'a str>;

/// The unread tokens of one command.
#[derive(Clone)]
pub(crate) struct Words<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    /// Position after the last token.
    pub end: At,
}

impl<'a> Words<'a> {
    pub fn new(words: Vec<Word<'a>>) -> Self {
        let end = words.last().map_or(0, |word| word.at.span.end);
        Self {
            words,
            next: 0,
            end: at(end..end),
        }
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).map(|word| word.value)
    }

    pub fn next(&mut self) -> Option<Word<'a>> {
        let word = self.words.get(self.next).cloned();
        self.next += usize::from(word.is_some());
        word
    }

    /// Returns all tokens, including those already read.
    pub fn words(&self) -> impl Iterator<Item = &'a str> {
        self.words.iter().map(|word| word.value)
    }

    /// Checks that the shell would not replace any of the unread tokens.
    pub fn check(&self) -> Result<(), Mistake> {
        let mut left = self.words.iter().skip(self.next);
        match left.find(|word| word.value.contains(['$', '`'])) {
            None => Ok(()),
            Some(word) => {
                let title = format!("`{}` has a variable of the shell", clipped(word.value));
                Err(Mistake::new(
                    &word.at,
                    title,
                    "write its value, or set it in the text: NAME=VALUE",
                ))
            }
        }
    }

    /// Reads the next token if it is this one.
    pub fn skip(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    /// Returns the token after `option`, which requires one.
    pub fn argument(&mut self, option: &str, example: &str) -> Result<Word<'a>, Mistake> {
        self.next().ok_or_else(|| {
            Mistake::new(
                &self.end,
                format!("`{option}` needs a value"),
                format!("write {option} {example}"),
            )
        })
    }

    /// Returns the next token if tc would parse it as a number: tc checks the first character only.
    pub fn number(&mut self) -> Option<Word<'a>> {
        let digit = self.peek()?.starts_with(|c: char| c.is_ascii_digit());
        digit.then(|| self.next()).flatten()
    }

    /// Returns the same with an optional sign.
    pub fn signed_number(&mut self) -> Option<Word<'a>> {
        let digit = self
            .peek()?
            .starts_with(|c: char| c.is_ascii_digit() || c == '-');
        digit.then(|| self.next()).flatten()
    }

    /// Returns the tokens at `span`.
    pub fn at(&self, span: &std::ops::Range<usize>) -> Vec<Word<'a>> {
        let is_in = |word: &&Word| span.start <= word.at.span.start && word.at.span.end <= span.end;
        self.words.iter().filter(is_in).cloned().collect()
    }

    /// Inserts in front of the unread tokens those of `before` at `span`.
    pub fn keep(&mut self, before: &Self, span: &std::ops::Range<usize>) {
        let place = self.next..self.next;
        self.words.splice(place, before.at(span));
    }

    /// Inserts a token behind another one.
    pub fn insert_behind(&mut self, other: &Word<'a>, word: Word<'a>) {
        if let Some(place) = self.words.iter().position(|word| word.at == other.at) {
            self.words.insert(place + 1, word);
        }
    }

    /// Returns the end of the last token that was read.
    pub fn read_up_to(&self) -> usize {
        let last = self.next.checked_sub(1).and_then(|i| self.words.get(i));
        last.map_or(0, |word| word.at.span.end)
    }
}

fn at(span: std::ops::Range<usize>) -> At {
    At { source: 0, span }
}

/// Returns `text` with the values of the shell variables that it sets.
pub(crate) fn expanded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // The last value that a command before has set.
    let mut known: HashMap<String, String> = HashMap::new();
    // What this command has set, and the values before: those in front of another command are only its own.
    let mut set: Vec<(String, Option<String>)> = Vec::new();
    let (mut start, mut declares, mut comment) = (true, false, false);
    // Whether it runs, whatever another command returns.
    let mut certain = true;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = word_len(rest);
        if len == 0 {
            let separator = ["\\\n", "&&", "||"]
                .into_iter()
                // The end of a line ends a comment.
                .find(|s| !comment && rest.starts_with(s));
            let separator = separator.unwrap_or(&rest[..c.len_utf8()]);
            match separator {
                "&&" => certain &= start,
                "||" => certain = false,
                "\n" => (certain, comment) = (true, false),
                ";" | "|" | "&" if !comment => certain = true,
                _ => {}
            }
            if ["\n", ";", "|", "&", "&&", "||"].contains(&separator) {
                (start, declares) = (!comment, false);
                set.clear();
            }
            out.push_str(separator);
            rest = &rest[separator.len()..];
            continue;
        }
        let from = out.len();
        substitute(&rest[..len], &known, &mut out);
        let word = &out[from..];
        rest = &rest[len..];
        comment |= word.starts_with('#');
        // Behind the name of a function.
        start |= word == "{";
        if comment || !start {
            continue;
        }
        match (word, assignment(word)) {
            (_, Some((name, value))) => {
                let value = value.trim_matches(['"', '\'']);
                let is_plain = !value.contains(['$', '`', ' ', '(', ')']) && !value.is_empty();
                // What may not run leaves the value that is there.
                if !certain && (known.contains_key(name) || !is_plain) {
                    continue;
                }
                let before = match is_plain {
                    true => known.insert(name.to_owned(), value.to_owned()),
                    // Not the value that it had before.
                    false => known.remove(name).and(None),
                };
                if !declares {
                    set.push((name.to_owned(), before));
                }
            }
            ("$" | "{" | "do", _) => {}
            ("then" | "else", _) => certain = false,
            ("export" | "local" | "readonly" | "declare" | "typeset", _) => declares = true,
            _ if declares => {}
            _ => {
                start = false;
                for (name, before) in set.drain(..).rev() {
                    match before {
                        Some(value) => known.insert(name, value),
                        None => known.remove(&name),
                    };
                }
            }
        }
    }
    out
}

/// Returns the length of the first token, with the quotes around a value; 0 if the text begins with what
/// separates tokens.
fn word_len(text: &str) -> usize {
    let quoted = || {
        let (name, value) = assignment(text)?;
        let quote = value.chars().next().filter(|c| "\"'".contains(*c))?;
        let end = value[1..].find([quote, '\n'])?;
        value[1 + end..]
            .starts_with(quote)
            .then_some(name.len() + end + 3)
    };
    let separates = |c: char| c.is_whitespace() || ";|&<>\"'".contains(c);
    match text.starts_with("\\\n") {
        true => 0,
        false => quoted().unwrap_or_else(|| text.find(separates).unwrap_or(text.len())),
    }
}

/// Returns the name, and the text after `=`.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c| !of_name(c))?;
    let value = text[end..].strip_prefix('=')?;
    (end > 0).then_some((&text[..end], value))
}

fn of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Appends `line` with the values of `$NAME` and `${NAME}`; an unknown name remains.
fn substitute(mut line: &str, known: &HashMap<String, String>, out: &mut String) {
    while let Some((before, rest)) = line.split_once('$') {
        out.push_str(before);
        let name = rest.strip_prefix('{').unwrap_or(rest);
        let end = name.find(|c| !of_name(c)).unwrap_or(name.len());
        let (name, behind) = name.split_at(end);
        let behind = match rest.starts_with('{') {
            true => behind.strip_prefix('}'),
            false => Some(behind),
        };
        match (known.get(name), behind) {
            (Some(value), Some(behind)) => {
                out.push_str(value);
                line = behind;
            }
            _ => {
                out.push('$');
                line = rest;
            }
        }
    }
    out.push_str(line);
}

/// Splits the commands of a text into tokens: quotes are blanks, redirections are removed.
pub(crate) fn commands(text: &str, comments: bool) -> Vec<Vec<Word<'_>>> {
    let mut all = vec![Vec::new()];
    let mut chars = text.char_indices().peekable();
    let mut start = None;
    let push = |all: &mut Vec<Vec<_>>, range: std::ops::Range<usize>| {
        let value = &text[range.clone()];
        if value == "\\" {
            return;
        }
        all.last_mut().into_iter().for_each(|command: &mut Vec<_>| {
            command.push(Located {
                value,
                at: at(range.clone()),
            });
        });
    };
    while let Some((i, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let boundary =
            c.is_whitespace() || ";|&<>\"'".contains(c) || (c == '\\' && next == Some('\n'));
        let begins_comment = c == '#' && start.is_none();
        if !boundary && !begins_comment {
            start.get_or_insert(i);
            continue;
        }
        if let Some(from) = start.take() {
            let redirected = "<>".contains(c) && text[from..i].bytes().all(|b| b.is_ascii_digit());
            if !redirected {
                push(&mut all, from..i);
            }
        }
        match c {
            '\n' | ';' | '|' => all.push(Vec::new()),
            '\\' => drop(chars.next()),
            '#' if comments => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            '&' if next != Some('>') => all.push(Vec::new()),
            '<' | '>' => {
                // To the end of the file's name.
                while chars.next_if(|(_, c)| "<>& \t".contains(*c)).is_some() {}
                while chars
                    .next_if(|(_, c)| !c.is_whitespace() && !";|&".contains(*c))
                    .is_some()
                {}
            }
            _ => {}
        }
    }
    if let Some(from) = start {
        push(&mut all, from..text.len());
    }
    all.retain(|command| !command.is_empty());
    all
}
