// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario on three hosts measures what it measures on one.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use support::chance::Random;
use support::clock::spare_cpu;
use support::emud_path;
use support::load::Load;
use support::runs::{log, rtt_ms};
use support::site::Group;

use super::clean::ended;
use super::hosts::{HOSTS, Hosts, Setup, completed};
use super::set::{pings, turned};

/// The smallest round trip of each node in ms, and how far others are from it: their mean, plus their mean
/// deviation.
fn rtts(path: &str) -> Vec<(String, [f64; 2])> {
    let of = |line: &Value| {
        let (node, text) = (line["node"].as_str()?, line["text"].as_str()?);
        let figures = text.contains("mdev = ").then(|| rtt_ms(text));
        figures
            .map(|[least, mean, _, deviation]| (node.to_owned(), [least, mean - least + deviation]))
    };
    let mut all: Vec<_> = log(path).iter().filter_map(of).collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all
}

/// The longest one-way delay of the network between the hosts in ms, as they have measured it: "one way
/// to b the network takes 38.1 to 41.7 us".
fn underlay_ms(said: &str) -> f64 {
    let most_us = |line: &str| {
        let (_, figures) = line.split_once(" the network takes ")?;
        figures.split(' ').nth(2)?.parse::<f64>().ok()
    };
    let most_us = said.lines().filter_map(most_us).reduce(f64::max);
    most_us.unwrap_or_else(|| panic!("no delay: {said}")) / 1e3
}

/// Runs a scenario on three hosts with three members of etcd, and on one host. Returns both logs, and what
/// the first run printed.
fn both(hosts: &Hosts, scenario: &str) -> ([String; 2], String) {
    let (code, text) = hosts.run(scenario, &["--seed", "7"]);
    completed(code, &text);
    let (path, own) = (
        hosts.folder.path("scenario.toml"),
        hosts.folder.path("one.log"),
    );
    let mut one = Command::new("ip");
    one.args(["netns", "exec", &hosts.netns("a")])
        .arg(emud_path());
    one.args(["run", "--scenario", &path, "--seed", "7", "--log", &own]);
    let output = one.args(["--exit-code", "verdict"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    completed(output.status.code().unwrap_or(-1), &said);
    ([hosts.folder.path("fleet.log"), own], text)
}

/// Compares the round trips of a scenario on three hosts and on one. `crossings`: the most links between
/// hosts on a way.
///
/// A link between hosts is shorter by half the median round trip of the probes. A ping meets another delay
/// of the network: at least none, and at most, as it is longer than a probe by the headers of a tunnel and
/// the machine has more to do, twice as much. So a link is wrong by up to that delay in each direction. And the smallest
/// of some round trips is random on one host, too: by less than most of them are above it, on a machine that
/// may have more to do in one of the two runs.
fn same(scenario: &str, nodes: usize, crossings: usize) {
    let hosts = Hosts::new(3).agents(&[]);
    let (logs, said) = both(&hosts, scenario);
    let [three, one] = logs.each_ref().map(|path| rtts(path));
    let underlay_ms = 2.0 * crossings as f64 * underlay_ms(&said);
    println!(
        "    three hosts {three:?}\n    one host    {one:?}\n    networks    {underlay_ms} ms"
    );
    assert_eq!((three.len(), one.len()), (nodes, nodes));
    for ((node, [three, spread]), (same, [one, own])) in three.iter().zip(&one) {
        assert_eq!(node, same);
        assert!(
            (three - one).abs() < underlay_ms + spread.max(*own),
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
    // No monitor was killed.
    for host in HOSTS {
        let sockets = hosts.sockets(host);
        assert!(sockets.is_empty(), "{host}: {sockets:?}");
    }
}

pub fn chain() {
    same(
        "[topology]\nkind = \"chain\"\nrouters = 7\n[topology.profile.link]\nrate = \"100Mbit\"\n\
         delay = \"2ms\"\n[node.client]\ncommand = \"ping -q -c 40 -i 0.05 server\"\n",
        1,
        2,
    );
}

pub fn star() {
    same(
        "[topology]\nkind = \"star\"\n[topology.class.far]\npeers = 6\n\
         [topology.class.far.profile.link]\ndelay = \"20ms\"\n\
         [topology.class.near]\npeers = 5\n[topology.class.near.profile.link]\ndelay = \"5ms\"\n\
         [node.\"far*\"]\ncommand = \"sleep 0.0$EMUD_INDEX; ping -q -c 30 -i 0.1 near$(((EMUD_INDEX - 1) % 5 + 1))\"\n",
        6,
        2,
    );
}

/// The pings follow one another: a packet waits 34 us for another one at the bottleneck, and if all programs begin at
/// the same time, the same one waits in the whole run.
pub fn dumbbell() {
    same(
        "[topology]\nkind = \"dumbbell\"\npairs = 3\n[topology.profile.link]\nrate = \"20Mbit\"\n\
         delay = \"10ms\"\nqueue = \"50ms\"\n[topology.access.link]\nrate = \"100Mbit\"\n\
         delay = \"5ms\"\n\
         [node.\"sender*\"]\ncommand = \"sleep 0.0$((EMUD_INDEX * 3)); ping -q -c 30 -i 0.1 receiver$EMUD_INDEX\"\n",
        3,
        3,
    );
}

/// Mbit/s of each node whose iperf3 is a server, of the whole seconds after the first one: "[  5]   1.00-2.00   sec
/// 1.15 MBytes  9660 Kbits/sec  0.290 ms". Its total is over a longer time: until the client's end message is there, which
/// is lost in a full queue and sent again 0.2 s later.
fn rates(path: &str) -> BTreeMap<String, f64> {
    let mut all: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for line in log(path) {
        let second = |line: &Value| {
            let (interval, rest) = line["text"].as_str()?.split_once(" sec ")?;
            let (begin, end) = interval
                .rsplit(' ')
                .find(|word| !word.is_empty())?
                .split_once('-')?;
            let [begin, end] = [begin, end].map(|time| time.parse::<f64>());
            let whole = begin.as_ref().ok()? >= &1.0 && end.ok()? - begin.ok()? == 1.0;
            let kbit = rest.split_once(" Kbits/sec")?.0.rsplit(' ').next()?;
            whole.then(|| kbit.parse::<f64>().ok())?
        };
        if let (Some(node), Some(kbit)) = (line["node"].as_str(), second(&line)) {
            all.entry(node.to_owned()).or_default().push(kbit / 1e3);
        }
    }
    let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
    all.into_iter()
        .map(|(node, all)| (node, mean(all)))
        .collect()
}

const SERVER: &str = "command = \"iperf3 -s -f k\"\nservice = true\n\
                      ready = \"grep -q ':1451 .* 0A ' /proc/net/tcp /proc/net/tcp6\"\n";
/// More than a link takes.
const FLOOD: &str = "-u -b 15M -l 1200 -t 8";
/// Of the wire, payload.
const UDP: f64 = 1200.0 / 1242.0;

/// Compares rates through 10 Mbit/s between hosts: of receivers, and the share of the wire that they count.
///
/// A second counts its packets to one, of 1006, and its own length to a millisecond.
fn same_rates(scenario: &str, shares: &[(&str, f64)]) {
    let hosts = Hosts::new(3).agents(&[]);
    let (logs, _) = both(&hosts, scenario);
    let [three, one] = logs.each_ref().map(|path| rates(path));
    println!("    three hosts {three:?}\n    one host    {one:?}");
    for &(node, share) in shares {
        let close = |a: f64, b: f64| (a - b).abs() < 0.01 * b;
        let (three, one) = (three[node], one[node]);
        assert!(
            close(three, one),
            "{node}: {three} Mbit/s, on one host {one} Mbit/s"
        );
        assert!(close(three, 10.0 * share), "{node}: {three} Mbit/s");
    }
    hosts.all_clean(&HOSTS);
}

/// A flood of UDP, and then TCP, of whose packets 1448 of 1514 bytes are payload. Half of a window of 90 ms, to
/// which Reno falls, is more than the 40 ms of the way: the link is never idle.
pub fn rates_of_a_dumbbell() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\npairs = 2\n[topology.profile.link]\nrate = \"10Mbit\"\n\
         delay = \"10ms\"\nqueue = \"50ms\"\n[topology.access.link]\nrate = \"100Mbit\"\n\
         delay = \"5ms\"\n[node.\"receiver*\"]\n{SERVER}\
         [node.sender1]\ncommand = \"iperf3 -c receiver1 {FLOOD}\"\n\
         [node.sender2]\ncommand = \"iperf3 -c receiver2 -C reno -O 3 -t 10\"\n\
         waits-for = [\"sender1\"]\n"
    );
    same_rates(&text, &[("receiver1", UDP), ("receiver2", 1448.0 / 1514.0)]);
}

pub fn rate_of_a_chain() {
    let text = format!(
        "[topology]\nkind = \"chain\"\nrouters = 7\n[topology.profile.link]\nrate = \"10Mbit\"\n\
         delay = \"2ms\"\nqueue = \"50ms\"\n[node.server]\n{SERVER}\
         [node.client]\ncommand = \"iperf3 -c server {FLOOD}\"\n"
    );
    same_rates(&text, &[("server", UDP)]);
}

/// From the class with the slower link to a peer on another host.
pub fn rate_of_a_star() {
    let text = format!(
        "[topology]\nkind = \"star\"\n[topology.class.far]\npeers = 1\n\
         [topology.class.far.profile.link]\ndelay = \"20ms\"\nrate = \"10Mbit\"\nqueue = \"50ms\"\n\
         [topology.class.near]\npeers = 1\n\
         [topology.class.near.profile.link]\ndelay = \"5ms\"\nrate = \"20Mbit\"\n\
         [node.near1]\nhost = \"c\"\n{SERVER}\
         [node.far1]\nhost = \"b\"\ncommand = \"iperf3 -c near1 {FLOOD}\"\n\
         [node.hub]\nhost = \"a\"\n"
    );
    same_rates(&text, &[("near1", UDP)]);
}

const NODES: usize = 60;

/// A tree of random shape, and 20 links more between any two nodes.
fn graph() -> BTreeSet<(usize, usize)> {
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
    links
}

/// Its nodes, whose keys `of` returns, and its links, with more keys of their profile.
fn text(links: &BTreeSet<(usize, usize)>, of: impl Fn(usize) -> String, more: &str) -> String {
    let mut text = String::new();
    for node in 0..NODES {
        text += &format!("[node.n{node}]\n{}", of(node));
    }
    for (n, (one, two)) in links.iter().enumerate() {
        text += &format!(
            "[link.l{n}]\nbetween = [\"n{one}\", \"n{two}\"]\n\
             profile.link = {{ delay = \"{}ms\"{more} }}\n",
            3 + n % 5
        );
    }
    text
}

/// Each node of a tenth of them pings another one; the hosts have 20 nodes each.
pub fn sixty_nodes() {
    let links = graph();
    let pings = |node: usize| match node % 10 {
        // Not all at one time: a machine of 2 CPUs has to keep up.
        0 => format!(
            "command = \"sleep {0}.0{0}; ping -q -c 30 -i 0.1 n{1}\"\n",
            node / 10,
            (node + 31) % NODES
        ),
        _ => String::new(),
    };
    let text = text(&links, pings, "");
    let most = (0..NODES)
        .step_by(10)
        .map(|node| hops(&links, node, (node + 31) % NODES));
    same(&text, NODES / 10, most.max().unwrap());
}

pub fn rate_of_sixty_nodes() {
    let flood = |node: usize| match node {
        0 => format!("command = \"iperf3 -c n31 {FLOOD}\"\n"),
        31 => SERVER.to_owned(),
        _ => String::new(),
    };
    let more = ", rate = \"10Mbit\", queue = \"50ms\"";
    same_rates(&text(&graph(), flood, more), &[("n31", UDP)]);
}

/// The number of links on a shortest way.
fn hops(links: &BTreeSet<(usize, usize)>, from: usize, to: usize) -> usize {
    let mut near = BTreeSet::from([from]);
    for hops in 0.. {
        if near.contains(&to) {
            return hops;
        }
        let next = |(one, two): &(usize, usize)| match (near.contains(one), near.contains(two)) {
            (true, _) => Some(*two),
            (_, true) => Some(*one),
            _ => None,
        };
        let next: Vec<usize> = links.iter().filter_map(next).collect();
        near.extend(next);
    }
    unreachable!()
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
    completed(code, &text);
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

/// What one host alone knows: a program reports it. The hosts share their CPUs, devices and kernel here, so
/// each monitor sees any load of any host ([`a_hog_is_named_on_every_host`]).
pub fn contended_host_is_named() {
    let hosts = Hosts::new(1).agents(&[]);
    let text = format!(
        "[node.one]\nhost = \"a\"\ncommand = \"sleep 2; $EMUD alarm --socket $EMUD_MONITOR_SOCKET too-hot; sleep 1\"\n\
         [node.two]\nhost = \"c\"\ncommand = \"sleep 3\"\n{PAIR}"
    );
    let (code, text) = hosts.run(&text, &["--monitor", "shared"]);
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
    // So does the report on the log of all hosts, whose clocks are one here.
    let log = hosts.folder.path("fleet.log");
    let report = Command::new(emud_path())
        .args(["report", &log, "--text"])
        .output()
        .unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains(": contended\n"), "{report}");
    let of = |host: &str, what: &str| {
        let line = |line: &&str| line.starts_with(&format!("  {host} ")) && line.contains(what);
        report.lines().filter(line).count()
    };
    // A busy machine makes all hosts contended, but this is known of one.
    assert_eq!(of("a", "contended"), 1, "{report}");
    assert_eq!([of("a", "too-hot"), of("c", "too-hot")], [1, 0], "{report}");
    assert!(of("a", "l up ") + of("c", "l up ") > 0, "{report}");
}

/// A process in a separate control group takes a CPU. All hosts are contended, since it is a CPU of all of
/// them: of the criteria, only reports of programs, and failures of the links of a host, are those of one
/// network namespace. Each names the group.
pub fn a_hog_is_named_on_every_host() {
    let hosts = Hosts::new(3).agents(&[]);
    let node = |name: &str, host: &str| {
        format!("[node.{name}]\nhost = \"{host}\"\ncommand = \"sleep 10\"\n")
    };
    let text = format!(
        "{}{}{}{PAIR}[link.m]\nbetween = [\"two\", \"three\"]\nprofile.link.delay = \"5ms\"\n",
        node("one", "a"),
        node("two", "b"),
        node("three", "c")
    );
    let mut run = hosts.start_with(&text, &["--verdict-first"]);
    let group = Group::new("hog");
    // Whatever else this machine does.
    group.cpu_weight(10_000);
    let (cpu, folders) = (spare_cpu(), group.folders());
    let mut hog = Load::start("cpu", &[("cpu", &cpu), ("cgroups", &folders)]);
    hog.ask("spin 4000000000");
    drop(hog);
    let (code, said) = ended(&hosts, &mut run);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("emud: contended"), "{said}");
    for host in HOSTS {
        let begin = format!("{host}: cpu, cpu {cpu}: ");
        let mut lines = said.lines().map(str::trim_start);
        assert!(
            lines.any(|line| line.starts_with(&begin) && line.contains(&group.name)),
            "{begin}{}: {said}",
            group.name
        );
    }
    hosts.all_clean(&HOSTS);
}

/// 3 ms on the underlay, 5 ms configured: met. 2 ms: rejected before the start, with the link.
pub fn slow_underlay_is_refused() {
    let hosts = Hosts::new(1).agents(&[]);
    hosts.attach("c", "[link]\ndelay = \"3ms\"\n");
    let text = |delay: &str| {
        format!(
            "[node.one]\nhost = \"a\"\ncommand = \"ping -q -c 20 -i 0.1 two\"\n[node.two]\nhost = \"c\"\n\
             [link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"{delay}\"\n"
        )
    };
    let bound = ["--clock-bound", "10ms"];
    // The slow network is a process here, which is later while the machine is busy.
    let more = ["--tolerance", "500us"];
    let (code, said) = hosts.run(&text("5ms"), &[bound, more].concat());
    completed(code, &said);
    let rtt = rtts(&hosts.folder.path("fleet.log"))[0].1[0];
    // Twice --tolerance, and the time of processes on a busy machine.
    assert!((rtt - 10.0).abs() < 0.6, "{rtt} ms");
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

/// Two nodes on two hosts; the first one sends packets of 1450 bytes, which nothing may fragment.
fn long_packets() -> String {
    format!(
        "[node.one]\nhost = \"a\"\ncommand = \"ping -q -c 2 -i 0.1 -M do -s 1422 two\"\n\
         [node.two]\nhost = \"c\"\n{PAIR}"
    )
}

pub fn narrow_underlay_is_refused() {
    let hosts = Hosts::with(&Setup {
        mtu: 1500,
        ..Setup::default()
    })
    .agents(&[]);
    let text = long_packets();
    let (code, said) = hosts.run(&text, &[]);
    assert_eq!(code, 69, "{said}");
    assert!(
        said.contains("1550 bytes") && said.contains("--mtu 1450"),
        "{said}"
    );
    let (code, said) = hosts.run(&text, &["--mtu", "1450", "--port", "4790"]);
    completed(code, &said);
}

/// A switch that drops long frames reports nothing: interfaces and routes have the MTU that is needed.
pub fn narrow_switch_is_refused() {
    let hosts = Hosts::with(&Setup {
        mtu: 1500,
        ..Setup::default()
    })
    .agents(&[]);
    for host in HOSTS {
        support::host::ip(&format!("-n {} link set eth0 mtu 1600", hosts.netns(host)));
    }
    let text = long_packets();
    let (code, said) = hosts.run(&text, &[]);
    assert_eq!(code, 69, "{said}");
    assert!(
        said.contains(" does not answer packets of 1550 bytes from ") && said.contains("--mtu"),
        "{said}"
    );
    // It names both hosts, and the third one is not concerned.
    let names = |host: &str| said.contains(&format!("{host} does not answer packets"));
    assert!((names("a") || names("c")) && !names("b"), "{said}");
    let (code, said) = hosts.run(&text, &["--mtu", "1450"]);
    completed(code, &said);
    assert!(said.contains(" 2 received"), "{said}");
}

/// A sender on the hub's host knows the MTU of the tunnel behind it: otherwise the first packet would be lost.
pub fn mtu_of_a_star() {
    let hosts = Hosts::with(&Setup {
        mtu: 1500,
        ..Setup::default()
    })
    .agents(&[]);
    let text = "[topology]\nkind = \"star\"\n[topology.class.far]\npeers = 1\n\
                [topology.class.far.profile.link]\ndelay = \"5ms\"\n\
                [topology.class.near]\npeers = 1\n[topology.class.near.profile.link]\ndelay = \"5ms\"\n\
                [node.hub]\nhost = \"a\"\n[node.far1]\nhost = \"c\"\n[node.near1]\nhost = \"a\"\n\
                command = \"ping -q -c 5 -i 0.1 -W 2 -s 1472 -M want far1\"\n";
    let (code, said) = hosts.run(text, &["--mtu", "1400"]);
    completed(code, &said);
    assert!(said.contains(" 5 received"), "{said}");
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
        completed(code, &said);
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

/// The delay of two links on two hosts changes 1 s after the start: between the pings of one of them
/// around the change lies that of the other one.
pub fn phases_count_from_one_time() {
    change_from_one_time(
        "[[link.LINK.profile.phase]]\nfor = \"1s\"\nup.delay = \"2ms\"\n\
         [[link.LINK.profile.phase]]\nup.delay = \"12ms\"\n",
        5,
    );
}

/// As [`phases_count_from_one_time`].
pub fn traces_count_from_one_time() {
    change_from_one_time(
        "profile.up.trace = { rows = \"time_s,delay_ms;0,2;1,12\", loop = false }\n",
        3,
    );
}

fn change_from_one_time(change: &str, runs: usize) {
    let hosts = Hosts::new(1).agents(&[]);
    let link = |name: &str, [one, two]: [&str; 2]| {
        let change = change.replace("LINK", name);
        format!("[link.{name}]\nbetween = [\"{one}\", \"{two}\"]\n{change}")
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
    for _ in 0..runs {
        let (code, said) = hosts.run(&text, &[]);
        completed(code, &said);
        let path = hosts.folder.path("fleet.log");
        let [a, b] = ["one", "three"].map(|node| turned(&pings(&path, node), 12.0));
        println!(
            "    within {:.3} and {:.3} ms",
            (a[1] - a[0]) * 1e3,
            (b[1] - b[0]) * 1e3
        );
        assert!(a[0] <= b[1] && b[0] <= a[1], "{a:?} {b:?}");
    }
}

/// A station leaves 3 s after the start, which is 2 s and more after its medium was made.
pub fn motion_counts_from_the_start() {
    let hosts = Hosts::new(1).agents(&[]);
    let text = "[medium.air]\nnodes = [\"one\", \"two\"]\n\
                radio = { standard = \"802.11b\", power = \"20dBm\", basic = \"1Mbit\" }\n\
                [node.one]\nhost = \"c\"\nat = [0, 0]\ncommand = \"exec ping -D -i 0.05 -w 6 two\"\n\
                [node.two]\npath = [{ at = [10, 0] }, { at = [11, 0], after = \"3s\" }, \
                { at = [9000, 0], after = \"1s\" }]\n\
                [node.far]\nhost = \"a\"\n[link.l]\nbetween = [\"two\", \"far\"]\n\
                profile.link.delay = \"5ms\"\n";
    let (code, said) = hosts.run(text, &[]);
    completed(code, &said);
    let all = pings(&hosts.folder.path("fleet.log"), "one");
    let [first, last] = [all.first(), all.last()].map(|ping| ping.expect("a ping").0);
    let lasted = last - first;
    println!("    {lasted:.3} s");
    assert!((2.7..3.3).contains(&lasted), "{lasted} s");
}
