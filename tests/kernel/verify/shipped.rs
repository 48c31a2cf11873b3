// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every shipped profile agrees, and fails after a change.

use emud::profile::shipped::{SHIPPED, find};
use emud::profile::{Link, Rate};

use super::space::Space;
use super::with_verdict;

/// A change of `down`, and the checks of which one must fail.
struct Change {
    set: String,
    tells: &'static [&'static str],
    /// No other check may fail: the other direction is unchanged.
    alone: bool,
}

/// No machine sends more, bit/s, packet by packet: it is not measured.
const MOST_SENT: u64 = 2_000_000_000;

/// Half the rate, 1 % more loss, twice the jitter or four times the share of the packets that have a
/// delay, as far as the link has them.
fn changes(down: &Link) -> Vec<Change> {
    let change = |set, tells, alone| Change { set, tells, alone };
    let sent = down.rate.filter(|rate| *rate < MOST_SENT);
    let rate = sent.map(|rate| {
        let half = Rate(rate / 2);
        change(format!("down.rate={half}"), &["down rate"], false)
    });
    let percent = 100.0 * down.loss.share().unwrap() + 1.0;
    let loss = change(format!("down.loss={percent}%"), &["down loss"], true);
    let jitter = down.delay.jitter.as_ref().map(|jitter| {
        // The jitter of a few per cent of the packets is below what `verify` notices.
        if let Some(share) = down.delay.share {
            let tells = &["down delay_mean", "down overtaken"];
            return change(format!("down.delay.share={}%", 400.0 * share), tells, false);
        }
        let sd_us = 2.0 * jitter.sd_ns / 1e3;
        // If the delay may reorder packets, it does so more often.
        let tells = &["down delay_sd", "down delay_distribution", "down overtaken"];
        change(format!("down.delay.sd={sd_us:.0}us"), tells, false)
    });
    [rate, Some(loss), jitter].into_iter().flatten().collect()
}

/// Twice the jitter is more than their mean allows.
const REJECTED: [(&str, &str); 3] = [
    ("pinger-north-america", "down.delay.sd=58408us"),
    ("tiainen-landline", "down.delay.sd=15011us"),
    ("wifi", "down.delay.sd=16620us"),
];

/// bit/s. A link with more, or without a limit, needs the whole machine.
const FAST: u64 = 50_000_000;

/// `None`: correct. A rate that this machine cannot send is not measured, and everything else must
/// be.
fn agrees(profile: &str) -> Option<String> {
    let space = Space::new();
    space.attach(profile);
    let (code, answer) = space.verify(&["--peer-netns", &space.b]);
    let unmeasured = with_verdict(&answer, "not_measured");
    println!("{profile}: exit {code}, not measured {unmeasured:?}");
    let only_rates = unmeasured.iter().all(|what| what.ends_with(" rate"));
    let good = code == 0 || code == 2 && only_rates;
    (!good).then(|| format!("{profile}: {answer:#}"))
}

fn is_found(change: &Change, profile: &str) -> Option<String> {
    let space = Space::new();
    space.attach(profile);
    let set = space.try_emud(&["set", "va", &change.set]);
    if !set.status.success() {
        let why = String::from_utf8_lossy(&set.stderr);
        let known = REJECTED.contains(&(profile, &change.set));
        return (!known).then(|| format!("{profile} {}: {why}", change.set));
    }
    let (_, answer) = space.verify(&["--peer-netns", &space.b, "--against", profile]);
    let wrong = with_verdict(&answer, "disagrees");
    println!("{profile} {}: {wrong:?}", change.set);
    let tells = |what: &String| change.tells.contains(&what.as_str());
    let found = wrong.iter().any(tells) && (!change.alone || wrong.iter().all(tells));
    (!found).then(|| format!("{profile} {}: {answer:#}", change.set))
}

/// Runs them at the same time: they mostly wait. Returns what is wrong.
fn together(checks: Vec<Check>) -> Vec<String> {
    std::thread::scope(|scope| {
        let started: Vec<_> = checks.into_iter().map(|c| scope.spawn(c)).collect();
        let ended = started.into_iter().filter_map(|t| t.join().unwrap());
        ended.collect()
    })
}

/// Returns what is wrong.
type Check = Box<dyn FnOnce() -> Option<String> + Send>;

/// Slow profiles at the same time.
const AT_ONCE: usize = 3;

#[test]
#[ignore = "ten minutes"]
fn every_shipped_profile() {
    let mut wrong = Vec::new();
    let mut slow = Vec::new();
    for shipped in SHIPPED {
        let profile = find(shipped.name).unwrap();
        if !profile.bottlenecks.is_empty() {
            continue; // The delay, loss and rate of a class are not judged.
        }
        let name = shipped.name;
        let found = changes(&profile.down).into_iter();
        let mut checks: Vec<Check> = found
            .map(|change| Box::new(move || is_found(&change, name)) as Check)
            .collect();
        let rates = [&profile.up, &profile.down].map(|link| link.rate);
        if rates.contains(&None) || rates.iter().flatten().any(|rate| *rate > FAST) {
            wrong.extend(agrees(name));
            wrong.extend(together(checks));
        } else {
            checks.push(Box::new(move || agrees(name)));
            slow.push(checks);
        }
    }
    while !slow.is_empty() {
        let next = slow.drain(..AT_ONCE.min(slow.len()));
        wrong.extend(together(next.flatten().collect()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
