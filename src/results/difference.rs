// SPDX-License-Identifier: GPL-2.0-only
//! What was asked differently of two experiments.

use emud_monitor::log::{AskedFor, Run as About};
use serde::Serialize;

use super::{Run, rate, share, time};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    pub what: String,
    pub a: String,
    pub b: String,
}

const NONE: &str = "none";

/// By what decides an experiment: its text, its programs, its links, the machine.
pub fn differences(a: &Run, b: &Run) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |what: &str, a: String, b: String| {
        if a != b {
            let what = what.to_owned();
            found.push(Difference { what, a, b });
        }
    };
    compare("name", a.about.name.clone(), b.about.name.clone());
    compare("seed", a.about.seed.to_string(), b.about.seed.to_string());
    compare("emud", a.version.clone(), b.version.clone());
    compare("kernel", a.host.kernel.clone(), b.host.kernel.clone());
    compare("host", a.host.hostname.clone(), b.host.hostname.clone());
    compare("CPUs", a.host.cpus.to_string(), b.host.cpus.to_string());
    compare(
        "interface",
        or_none(&a.about.in_place),
        or_none(&b.about.in_place),
    );
    compare("sample", sample(&a.about), sample(&b.about));
    for name in names(&a.about, &b.about, |about| &about.nodes, |node| &node.name) {
        let command = |about| command(about, &name);
        compare(
            &format!("command of {name}"),
            command(&a.about),
            command(&b.about),
        );
    }
    for name in names(&a.about, &b.about, |about| &about.links, |link| &link.name) {
        let link = |about: &About| about.links.iter().find(|l| l.name == name).cloned();
        let (x, y) = (link(&a.about), link(&b.about));
        let of = |get: fn(&emud_monitor::log::RunLink) -> String| {
            let text = |l: &Option<_>| l.as_ref().map_or(NONE.to_owned(), get);
            (text(&x), text(&y))
        };
        let profile = of(|l| l.profile.clone());
        let texts = of(|l| l.toml.clone());
        let same_name = profile.0 == profile.1;
        for (what, (x, y)) in [
            ("profile", profile),
            ("engine", of(|l| l.engine.clone())),
            ("up", of(|l| asked(l.up.as_ref()))),
            ("down", of(|l| asked(l.down.as_ref()))),
        ] {
            compare(&format!("{name}: {what}"), x, y);
        }
        if same_name && texts.0 != texts.1 {
            let [x, y] = first_line(&texts.0, &texts.1);
            compare(&format!("{name}: text of the profile"), x, y);
        }
    }
    let texts = [&a.about.scenario, &b.about.scenario].map(|t| t.clone().unwrap_or_default());
    if texts[0] != texts[1] {
        let [x, y] = first_line(&texts[0], &texts[1]);
        compare("text of the scenario", x, y);
    }
    found
}

/// Of both, each once, in the order of a.
fn names<T>(
    a: &About,
    b: &About,
    items: fn(&About) -> &Vec<T>,
    name: fn(&T) -> &String,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for item in items(a).iter().chain(items(b)) {
        if !names.contains(name(item)) {
            names.push(name(item).clone());
        }
    }
    names
}

fn command(about: &About, node: &str) -> String {
    let node = about.nodes.iter().find(|n| n.name == node);
    let command = node.and_then(|node| node.command.as_ref());
    command.map_or(NONE.to_owned(), |words| words.join(" "))
}

fn or_none(text: &Option<String>) -> String {
    text.clone().unwrap_or_else(|| NONE.to_owned())
}

fn sample(about: &About) -> String {
    about
        .sample_ns
        .map_or(NONE.to_owned(), |ns| time(ns as f64))
}

/// "rate 8Mbit, delay 20ms, jitter 2ms, loss 1%".
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

/// The first lines in which two texts differ.
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
