// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles with one mistake in each.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// A profile that must not be accepted.
pub struct Malformed {
    pub kind: &'static str,
    pub bytes: Vec<u8>,
}

/// A way to break a `key = value` line; whatever the letter, the line is wrong after it.
type Breaks = fn(&str, char) -> Vec<u8>;

const KINDS: &[(&str, Breaks)] = &[
    ("key misspelt", |line, letter| {
        format!("{letter}q{line}").into()
    }),
    ("no equals sign", |line, letter| {
        line.replacen('=', &letter.to_string(), 1).into()
    }),
    ("two equals signs", |line, _| {
        line.replacen('=', "==", 1).into()
    }),
    ("no value", |line, _| {
        line.split('=').next().unwrap_or("").to_owned().into()
    }),
    ("value not quoted", |line, letter| {
        format!("{}= {letter}x5", key(line)).into()
    }),
    ("quote not closed", |line, letter| {
        format!("{}= \"{letter}", key(line)).into()
    }),
    ("line twice", |line, _| format!("{line}\n{line}").into()),
    ("a date", |line, _| {
        format!("{}= 1979-05-27", key(line)).into()
    }),
    ("an array", |line, letter| {
        format!("{}= [\"{letter}\"]", key(line)).into()
    }),
    ("true", |line, _| format!("{}= true", key(line)).into()),
    ("minus five", |line, _| format!("{}= -5", key(line)).into()),
    ("an unknown key in a table", |line, letter| {
        format!("{}= {{ {letter}q = \"5ms\" }}", key(line)).into()
    }),
    ("a control character", |line, _| {
        format!("{}= \"5\u{1b}\"", key(line)).into()
    }),
    ("not UTF-8", |line, letter| {
        [
            line.as_bytes(),
            b" # ",
            letter.to_string().as_bytes(),
            &[0xff],
        ]
        .concat()
    }),
    ("rest after the value", |line, letter| {
        format!("{line} {letter}").into()
    }),
    ("an open table", |line, letter| {
        format!("{line}\n[{letter}").into()
    }),
    ("an unknown table", |line, letter| {
        format!("{line}\n[{letter}q]").into()
    }),
];

/// Methods to break a value that is a quantity.
const QUANTITIES: &[(&str, Breaks)] = &[
    ("unknown unit", |line, letter| {
        value(line, &format!("5{letter}q"))
    }),
    ("no unit", |line, _| value(line, "5")),
    ("negative", |line, _| value(line, "-5ms")),
    ("negative percentage", |line, _| value(line, "-5%")),
    ("more than everything", |line, _| value(line, "1e30%")),
    ("two points", |line, _| value(line, "5.5.5ms")),
    ("no number", |line, letter| {
        value(line, &format!("{letter}ms"))
    }),
    ("empty", |line, _| value(line, "")),
    ("an exponent too many", |line, _| value(line, "5e999s")),
];

fn key(line: &str) -> &str {
    line.split('=').next().unwrap_or("")
}

fn value(line: &str, value: &str) -> Vec<u8> {
    format!("{}= \"{value}\"", key(line)).into()
}

/// The same `count` of them every time, made of these profiles.
pub fn malformed(profiles: &[&str], count: usize) -> Vec<Malformed> {
    let choice = (0..profiles.len(), any::<usize>(), any::<usize>(), "[a-z]");
    let mut runner = TestRunner::deterministic();
    let mut draw = || choice.new_tree(&mut runner).expect("no filter").current();
    (0..count)
        .map(|_| {
            let (profile, line, kind, letter) = draw();
            broken(
                profiles[profile],
                line,
                kind,
                letter.chars().next().unwrap_or('q'),
            )
        })
        .collect()
}

fn broken(text: &str, line: usize, kind: usize, letter: char) -> Malformed {
    let lines: Vec<&str> = text.lines().collect();
    let settings: Vec<usize> = (0..lines.len())
        .filter(|&i| lines[i].contains('=') && !lines[i].starts_with('#'))
        .collect();
    let at = settings[line % settings.len()];
    let quantity = matches!(key(lines[at]).trim(), "rate" | "queue" | "delay" | "loss");
    let kinds: Vec<_> = match quantity {
        true => KINDS.iter().chain(QUANTITIES).collect(),
        false => KINDS.iter().collect(),
    };
    let (kind, breaks) = kinds[kind % kinds.len()];
    let mut bytes = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        match i == at {
            true => bytes.extend(breaks(line, letter)),
            false => bytes.extend(line.as_bytes()),
        }
        bytes.push(b'\n');
    }
    Malformed { kind, bytes }
}
