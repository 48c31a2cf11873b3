// SPDX-License-Identifier: MIT OR Apache-2.0
//! Different settings of two experiments.

use std::collections::{BTreeMap, BTreeSet};

use emud_monitor::log::{AskedFor, Run as About, RunLink};
use schemars::JsonSchema;
use serde::Serialize;

use super::kept::{WIDTH, shorten};
use super::{Run, rate, share, time};

/// A difference of the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Setting that differs, as a phrase.
    pub what: String,
    /// Text of the first side.
    pub a: String,
    /// Text of the second side.
    pub b: String,
}

const NONE: &str = "none";
/// Characters of a long value that are shown before those that differ.
const BEFORE: usize = 40;

/// Returns the differences in what determines an experiment: its text, its programs, its links, the machine.
pub fn differences(a: &Run, b: &Run) -> Vec<Difference> {
    let mut found = Differences([a, b], Vec::new());
    found.compare("name", |run| run.about.name.clone());
    found.compare("seed", |run| run.about.seed.to_string());
    found.compare("emud", |run| run.version.clone());
    found.compare("kernel", |run| run.host.kernel.clone());
    found.compare("host", |run| run.host.hostname.clone());
    found.compare("CPUs", |run| run.host.cpus.to_string());
    found.compare("interface", |run| or_none(run.about.in_place.clone()));
    found.compare("sample", |run| {
        or_none(run.about.sample_ns.map(|ns| time(ns as f64)))
    });
    for name in names([a, b], |about| &about.nodes, |node| &node.name) {
        found.compare(&format!("command of {name}"), |run| command(run, &name));
    }
    for name in names([a, b], |about| &about.links, |link| &link.name) {
        found.link(&name);
    }
    found.compare_tables("scenario", |run| {
        run.about.scenario.clone().unwrap_or_default()
    });
    found.1
}

/// Returns a sentence if runs that are taken for repeats of one experiment differ in more than the seed: their mean is
/// that of no experiment. `side`: its name, if there are several.
pub(super) fn mixed(side: Option<&str>, runs: &[Run]) -> Option<String> {
    let (first, others) = runs.split_first()?;
    let settings = |run| {
        let differing = differences(first, run).into_iter().map(|found| found.what);
        let settings: Vec<String> = differing.filter(|what| what != "seed").collect();
        (!settings.is_empty()).then(|| settings.join(", "))
    };
    let (other, settings) = others.iter().find_map(|run| Some((run, settings(run)?)))?;
    let side = side.map_or(String::new(), |name| format!("{name}: "));
    Some(format!(
        "{side}{} and {} differ in {settings}, and the figures are of both",
        first.path.display(),
        other.path.display()
    ))
}

/// Of two runs, so far.
struct Differences<'a>([&'a Run; 2], Vec<Difference>);

impl Differences<'_> {
    fn compare(&mut self, what: &str, of: impl Fn(&Run) -> String) {
        let [a, b] = self.0.map(of);
        if a != b {
            let what = what.to_owned();
            self.1.push(Difference { what, a, b });
        }
    }

    /// Compares two tables key by key, in any order; by the first line that differs
    /// if a text is no table.
    fn compare_tables(&mut self, what: &str, of: impl Fn(&Run) -> String) {
        let texts = self.0.map(of);
        let [Some(a), Some(b)] = [&texts[0], &texts[1]].map(|text| keys(text)) else {
            let [a, b] = first_line(&texts[0], &texts[1]);
            self.1.push(Difference {
                what: format!("{what}: text"),
                a,
                b,
            });
            return;
        };
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let value = |of: &BTreeMap<String, String>, key| or_none(of.get(key).cloned());
        let differ = names.into_iter().filter(|key| a.get(*key) != b.get(*key));
        self.1.extend(differ.map(|key| {
            let [a, b] = where_they_differ([value(&a, key), value(&b, key)]);
            let what = format!("{what}: {key}");
            Difference { what, a, b }
        }));
    }

    fn link(&mut self, name: &str) {
        let of = |run: &Run, get: fn(&RunLink) -> String| {
            or_none(run.about.links.iter().find(|l| l.name == name).map(get))
        };
        self.compare(&format!("{name}: profile"), |run| {
            of(run, |l| l.profile.clone())
        });
        self.compare(&format!("{name}: engine"), |run| {
            of(run, |l| l.engine.clone())
        });
        self.compare(&format!("{name}: up"), |run| {
            of(run, |l| asked(l.up.as_ref()))
        });
        self.compare(&format!("{name}: down"), |run| {
            of(run, |l| asked(l.down.as_ref()))
        });
        self.compare_tables(&format!("{name}: profile"), |run| {
            of(run, |l| l.toml.clone())
        });
    }
}

/// Returns the names of both, each once, in the order of the first.
fn names<T>(runs: [&Run; 2], items: fn(&About) -> &Vec<T>, name: fn(&T) -> &String) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for item in runs.iter().flat_map(|run| items(&run.about)) {
        if !names.contains(name(item)) {
            names.push(name(item).clone());
        }
    }
    names
}

fn command(run: &Run, node: &str) -> String {
    let node = run.about.nodes.iter().find(|n| n.name == node);
    let command = node.and_then(|node| node.command.as_ref());
    or_none(command.map(|words| words.join(" ")))
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

/// Returns values such as "rate 8Mbit, delay 20ms, jitter 2ms, loss 1%".
fn asked(asked: Option<&AskedFor>) -> String {
    let Some(a) = asked else {
        return NONE.to_owned();
    };
    let rate = a
        .rate_bit_s
        .map_or("unlimited".to_owned(), |r| rate(r as f64));
    format!(
        "rate {rate}, delay {}, jitter {}, loss {}{}",
        time(a.delay_ns as f64),
        time(a.jitter_ns as f64),
        share(a.loss),
        if a.varies { ", by time" } else { "" }
    )
}

/// Returns each value of a TOML text by its path; `None`: it is not TOML.
fn keys(text: &str) -> Option<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let table: toml::Table = text.parse().ok()?;
    for (key, value) in table {
        // They say what a profile is called, not what it does.
        if !["name", "description", "source"].contains(&key.as_str()) {
            put(&mut found, key, value);
        }
    }
    Some(found)
}

fn put(found: &mut BTreeMap<String, String>, path: String, value: toml::Value) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                put(found, format!("{path}.{key}"), value);
            }
        }
        value => {
            found.insert(path, value.to_string());
        }
    }
}

/// Returns two values to print. Long ones, such as the rows of a trace, begin a little before they differ.
fn where_they_differ(texts: [String; 2]) -> [String; 2] {
    let pairs = texts[0].chars().zip(texts[1].chars());
    let same = pairs.take_while(|(a, b)| a == b).count();
    texts.map(|mut text| {
        if same + BEFORE > WIDTH {
            let skipped = same - BEFORE;
            let rest: String = text.chars().skip(skipped).collect();
            text = format!("({skipped} characters are the same) …{rest}");
        }
        shorten(&mut text);
        text
    })
}

/// Returns the first lines in which two texts differ.
fn first_line(a: &str, b: &str) -> [String; 2] {
    let (mut a, mut b) = (a.lines(), b.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return [NONE.to_owned(), "other line ends".to_owned()],
            (x, y) if x != y => return [x, y].map(|l| l.unwrap_or("(ends)").to_owned()),
            _ => {}
        }
    }
}
