// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario on three hosts measures what it measures on one.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::chance::Random;
use support::emud_path;
use support::runs::{log, rtt_ms};

use super::hosts::{HOSTS, Hosts, Setup};
use super::set::pings;

/// A host may add 100 us at each link between hosts and direction (--tolerance), of which at most
/// two are crossed here; the rest is the time of processes on a busy machine.
const CLOSE_MS: f64 = 0.6;

/// Smallest round trips in ms of each node, from a log.
fn rtts(path: &str) -> Vec<(String, f64)> {
    let of = |line: &Value| {
        let (node, text) = (line["node"].as_str()?, line["text"].as_str()?);
        text.contains("mdev = ")
            .then(|| (node.to_owned(), rtt_ms(text)[0]))
    };
    let mut all: Vec<_> = log(path).iter().filter_map(of).collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all
}

/// Runs a scenario on three hosts and on one, and compares the round trips.
fn same(scenario: &str, nodes: usize) {
    let hosts = Hosts::new(1).agents(&[]);
    let (code, text) = hosts.run(scenario, &["--seed", "7"]);
    assert!([0, 3].contains(&code), "{code}: {text}");
    let three = rtts(&hosts.folder.path("fleet.log"));
    let (path, own) = (
        hosts.folder.path("scenario.toml"),
        hosts.folder.path("one.log"),
    );
    let mut one = Command::new("ip");
    one.args(["netns", "exec", &hosts.netns("a")])
        .arg(emud_path());
    one.args(["run", "--scenario", &path, "--seed", "7", "--log", &own]);
    let status = one
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!([0, 3].contains(&status.code().unwrap()), "{status}");
    let one = rtts(&own);
    println!("    three hosts {three:?}\n    one host    {one:?}");
    assert_eq!((three.len(), one.len()), (nodes, nodes));
    for ((node, three), (same, one)) in three.iter().zip(&one) {
        assert_eq!(node, same);
        assert!(
            (three - one).abs() < CLOSE_MS,
            "{node}: {three} ms, on one host {one} ms"
        );
    }
    // All three took part.
    let lines = log(&hosts.folder.path("fleet.log"));
    for host in HOSTS {
        assert!(
            lines
                .iter()
                .any(|line| line["host"] == host && line["phase"] == "measurement"),
            "{host}"
        );
    }
    let times: Vec<u64> = lines
        .iter()
        .map(|line| line["reference_ns"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted());
    hosts.all_clean(&HOSTS);
}

pub fn chain() {
    same(
        "[topology]\nkind = \"chain\"\nrouters = 7\n[topology.profile.link]\nrate = \"100Mbit\"\n\
         delay = \"2ms\"\n[node.client]\ncommand = \"ping -q -c 40 -i 0.05 server\"\n",
        1,
    );
}

pub fn star() {
    same(
        "[topology]\nkind = \"star\"\n[topology.class.far]\npeers = 6\n\
         [topology.class.far.profile.link]\ndelay = \"20ms\"\n\
         [topology.class.near]\npeers = 5\n[topology.class.near.profile.link]\ndelay = \"5ms\"\n\
         [node.\"far*\"]\ncommand = \"ping -q -c 30 -i 0.1 near$(((EMUD_INDEX - 1) % 5 + 1))\"\n",
        6,
    );
}

pub fn dumbbell() {
    same(
        "[topology]\nkind = \"dumbbell\"\npairs = 3\n[topology.profile.link]\nrate = \"20Mbit\"\n\
         delay = \"10ms\"\nqueue = \"50ms\"\n[topology.access.link]\nrate = \"100Mbit\"\n\
         delay = \"5ms\"\n\
         [node.\"sender*\"]\ncommand = \"ping -q -c 30 -i 0.1 receiver$EMUD_INDEX\"\n",
        3,
    );
}

/// 60 nodes in a tree of random shape, and 20 links more between any two. Each node of a tenth of
/// them pings another one; the hosts have 20 nodes each.
pub fn sixty_nodes() {
    const NODES: usize = 60;
    let mut random = Random(60);
    let mut links = BTreeSet::new();
    for node in 1..NODES {
        links.insert((random.index(node), node));
    }
    while links.len() < NODES - 1 + 20 {
        let (one, two) = (random.index(NODES), random.index(NODES));
        if one != two {
            links.insert((one.min(two), one.max(two)));
        }
    }
    let mut text = String::new();
    for node in 0..NODES {
        text += &format!("[node.n{node}]\n");
        if node % 10 == 0 {
            // Not all at one time: a machine of 2 CPUs has to keep up.
            text += &format!(
                "command = \"sleep {}; ping -q -c 30 -i 0.1 n{}\"\n",
                node / 10,
                (node + 31) % NODES
            );
        }
    }
    for (n, (one, two)) in links.iter().enumerate() {
        text += &format!(
            "[link.l{n}]\nbetween = [\"n{one}\", \"n{two}\"]\nprofile.link.delay = \"{}ms\"\n",
            3 + n % 5
        );
    }
    same(&text, NODES / 10);
}

const PAIR: &str = "[link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"5ms\"\n";

/// A service is ready, and a program ends, on another host.
pub fn waits_across_hosts() {
    let hosts = Hosts::new(1).agents(&[]);
    let text = format!(
        "[node.one]\nhost = \"a\"\ncommand = \"sleep 1; echo one\"\n\
         [node.two]\nhost = \"c\"\ncommand = \"echo two\"\nwaits-for = [\"one\"]\n{PAIR}"
    );
    let (code, text) = hosts.run(&text, &[]);
    assert!([0, 3].contains(&code), "{text}");
    let lines = log(&hosts.folder.path("fleet.log"));
    let line = |word: &str| {
        lines
            .iter()
            .position(|line| line["text"] == word)
            .expect("a line")
    };
    assert!(line("one") < line("two"));
    assert_eq!(lines[line("two")]["host"], "c");
}

/// The CPUs are all hosts' here, so a program reports the cause, of which only one host knows.
pub fn contended_host_is_named() {
    let hosts = Hosts::new(1).agents(&[]);
    let text = format!(
        "[node.one]\nhost = \"a\"\ncommand = \"sleep 2; $EMUD alarm --socket $EMUD_MONITOR_SOCKET too-hot; sleep 1\"\n\
         [node.two]\nhost = \"c\"\ncommand = \"sleep 3\"\n{PAIR}"
    );
    let (code, text) = hosts.run(&text, &[]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("emud: contended"), "{text}");
    let reasons: Vec<_> = text
        .lines()
        .filter(|line| line.contains("too-hot"))
        .collect();
    assert!(
        !reasons.is_empty()
            && reasons
                .iter()
                .all(|line| line.trim_start().starts_with("a:")),
        "{text}"
    );
}

/// 3 ms on the underlay, 5 ms configured: met. 2 ms: rejected before the start, with the link.
pub fn slow_underlay_is_refused() {
    let hosts = Hosts::new(1).agents(&[]);
    let slow = [
        "netns",
        "exec",
        &hosts.netns("c"),
        &emud_path().to_string_lossy(),
        "attach",
        "eth0",
    ]
    .map(str::to_owned);
    let profile = hosts.folder.file("slow.toml", "[link]\ndelay = \"3ms\"\n");
    let status = Command::new("ip")
        .args(&slow)
        .args(["--profile", &profile])
        .status()
        .unwrap();
    assert!(status.success());
    let text = |delay: &str| {
        format!(
            "[node.one]\nhost = \"a\"\ncommand = \"ping -q -c 20 -i 0.1 two\"\n[node.two]\nhost = \"c\"\n\
             [link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"{delay}\"\n"
        )
    };
    let bound = ["--clock-bound", "10ms"];
    let (code, said) = hosts.run(&text("5ms"), &bound);
    assert!([0, 3].contains(&code), "{said}");
    let rtt = rtts(&hosts.folder.path("fleet.log"))[0].1;
    assert!((rtt - 10.0).abs() < CLOSE_MS, "{rtt} ms");
    let (code, said) = hosts.run(&text("2ms"), &bound);
    assert_eq!(code, 69, "{said}");
    assert!(
        said.contains("link l between") && said.contains("2ms") && said.contains("same `host`"),
        "{said}"
    );
    // The clocks are known to 3 ms only.
    let (code, said) = hosts.run(&text("5ms"), &[]);
    assert_eq!(code, 69, "{said}");
    assert!(said.contains("--clock-bound"), "{said}");
}

pub fn narrow_underlay_is_refused() {
    let hosts = Hosts::with(&Setup {
        mtu: 1500,
        ..Setup::default()
    })
    .agents(&[]);
    let text = format!(
        "[node.one]\nhost = \"a\"\ncommand = \"ping -q -c 2 -i 0.1 -M do -s 1422 two\"\n\
         [node.two]\nhost = \"c\"\n{PAIR}"
    );
    let (code, said) = hosts.run(&text, &[]);
    assert_eq!(code, 69, "{said}");
    assert!(
        said.contains("1550 bytes") && said.contains("--mtu 1450"),
        "{said}"
    );
    let (code, said) = hosts.run(&text, &["--mtu", "1450", "--port", "4790"]);
    assert!([0, 3].contains(&code), "{said}");
}

/// The hosts are one kernel here, so the true offset of their clocks is 0: what is measured is the
/// error, and the skew of the start in the kernel.
pub fn starts_together() {
    let hosts = Hosts::new(1).agents(&[]);
    let text = format!(
        "[node.one]\nhost = \"a\"\ncommand = \"true\"\n[node.two]\nhost = \"c\"\ncommand = \"true\"\n{PAIR}"
    );
    let mut errors = vec![];
    for _ in 0..5 {
        let (code, said) = hosts.run(&text, &[]);
        assert!([0, 3].contains(&code), "{said}");
        let words = said.split("the clock of a is ").nth(1).expect("a note");
        let figures: Vec<i64> = (words.split(' '))
            .filter_map(|word| word.parse().ok())
            .collect();
        let [offset, bound] = figures[..2] else {
            panic!("{words}")
        };
        assert!(offset.abs() <= bound, "{offset} {bound}");
        errors.push(Duration::from_nanos(offset.unsigned_abs()));
    }
    println!("    {errors:?}");
    assert!(
        errors.iter().all(|error| *error < Duration::from_millis(1)),
        "{errors:?}"
    );
}

/// Two links on two hosts lose all packets for 1 s from the start: the first replies arrive at the
/// same time.
pub fn phases_count_from_one_time() {
    let hosts = Hosts::new(1).agents(&[]);
    let link = |name: &str, [one, two]: [&str; 2]| {
        format!(
            "[link.{name}]\nbetween = [\"{one}\", \"{two}\"]\n[[link.{name}.profile.phase]]\nfor = \"1s\"\n\
             up.loss = \"100%\"\n[[link.{name}.profile.phase]]\nup.delay = \"2ms\"\n"
        )
    };
    let ping = |to: &str| format!("command = \"exec ping -D -i 0.002 -c 800 {to}\"\n");
    let text = format!(
        "[node.one]\nhost = \"a\"\n{}[node.two]\nhost = \"a\"\n[node.three]\nhost = \"c\"\n{}\
         [node.four]\nhost = \"c\"\n{}{}[link.between]\nbetween = [\"two\", \"four\"]\n\
         profile.link.delay = \"5ms\"\n",
        ping("two"),
        ping("four"),
        link("left", ["one", "two"]),
        link("right", ["three", "four"])
    );
    let mut skews = vec![];
    for _ in 0..5 {
        let (code, said) = hosts.run(&text, &[]);
        assert!([0, 1, 3].contains(&code), "{said}");
        let path = hosts.folder.path("fleet.log");
        let sent = |node: &str| pings(&path, node).first().expect("a reply").0 * 1e3;
        skews.push((sent("one") - sent("three")).abs());
    }
    skews.sort_by(f64::total_cmp);
    println!("    {skews:?} ms");
    // A packet every 2 ms on either side, by processes that wait for a CPU.
    assert!(skews[2] < 6.0, "{skews:?}");
}
