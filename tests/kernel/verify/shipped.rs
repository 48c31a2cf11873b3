// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every shipped profile agrees, and fails after a change.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use emud::profile::shipped::{SHIPPED, find};
use emud::profile::{Bottleneck, Link, Rate, ServiceClass};

use super::space::{Space, sh};
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

/// A sender to the other end: ToS, address, and load as a share of the rate of the server.
type Stream = (&'static str, &'static str, f64);

const BY_DSCP: [Stream; 4] = [
    ("0xc0", Space::B4, 0.1),
    ("0xb8", Space::B4, 1.2),
    ("0", Space::B4, 1.2),
    ("0x4", Space::B4, 0.5),
];
const BY_ADDRESS: [Stream; 3] = [("0", NEAR, 0.1), ("0", FAR, 0.2), ("0", Space::B4, 1.1)];
const NEAR: &str = "10.0.1.1";
const FAR: &str = "10.0.2.1";

/// Profiles with classes, changes of these, and a load that shows it. A ceiling shows only if another class leaves it
/// something to borrow.
const CLASSES: [(&str, &str, &[Stream]); 6] = [
    ("diffserv-fair", "assured.weight=2", &BY_DSCP),
    ("diffserv-priority", "assured.priority=6", &BY_DSCP),
    (
        "diffserv-tbf",
        "assured.ceil=3Mbit other.rate=7Mbit",
        &BY_DSCP,
    ),
    ("diffserv-weights", "assured.weight=400", &BY_DSCP),
    ("dscp-bands", "lower-effort.priority=1", &BY_DSCP),
    ("tiainen-tree", "near.rate=10Mbit", &BY_ADDRESS),
];

/// Its classes under a load agree, and not after a change.
fn classes_agree(name: &str, bottleneck: &Bottleneck) -> Option<String> {
    let found = CLASSES.iter().find(|(of, ..)| *of == name);
    let (_, change, load) = found.unwrap_or_else(|| panic!("{name}: what shows its classes?"));
    let rate = bottleneck.rate.unwrap() as f64;
    let class = format!("bottleneck.{}.class", bottleneck.name);
    let space = Space::new();
    sh(&format!(
        "ip -n {b} addr add {NEAR}/32 dev vb; ip -n {b} addr add {FAR}/32 dev vb
         ip -n {a} route add 10.0.0.0/16 via {b4}",
        a = space.a,
        b = space.b,
        b4 = Space::B4
    ));
    space.attach(name);
    // A class is judged if it never has less than 0.15 s of the rate.
    let packets = rate * 0.4 / 8.0 / 1512.0;
    for ServiceClass { name, .. } in &bottleneck.classes {
        space.emud(&["set", "va", &format!("{class}.{name}.queue={packets:.0}p")]);
    }
    let senders = load.iter().map(|(tos, to, share)| {
        let (to, rate) = (format!("{to}:6001"), share * rate);
        let packets = rate * 60.0 / 8.0 / 1470.0;
        let (rate, packets) = (format!("{rate:.0}bit"), format!("{packets:.0}"));
        let mut emud = Command::new("ip");
        emud.args(["netns", "exec", &space.a]);
        emud.arg(support::emud_path());
        emud.args([
            "traffic",
            "send",
            &to,
            "--rate",
            &rate,
            "--packets",
            &packets,
        ]);
        // Nothing listens there.
        emud.args(["--tos", tos, "--patient"]);
        emud.stdin(Stdio::null()).stdout(Stdio::null());
        emud.spawn().unwrap()
    });
    let senders: Vec<_> = senders.collect();
    let verify = || {
        sleep(Duration::from_secs(3));
        let of = ["--duration", "3s", "--against", name];
        let out = space.try_emud(&[&["verify", "va", "--classes"], &of[..]].concat());
        let text = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        println!("{name}: {text}");
        (out.status.code(), text)
    };
    let (agrees, before) = verify();
    for change in change.split(' ') {
        space.emud(&["set", "va", &format!("{class}.{change}")]);
    }
    let (differs, after) = verify();
    for mut sender in senders {
        sender.kill().unwrap();
        sender.wait().unwrap();
    }
    let good = (agrees, differs) == (Some(0), Some(1));
    (!good).then(|| format!("{name}: {agrees:?}, {before}\n{change}: {differs:?}, {after}"))
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
        let name = shipped.name;
        if let [bottleneck] = &profile.bottlenecks[..] {
            // Of a direction with rules, nothing but its classes is judged.
            assert!(!profile.rules.is_empty());
            wrong.extend(classes_agree(name, bottleneck));
            continue;
        }
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
