// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes that take effect on all hosts at one time.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;
use support::runs::log;

use super::hosts::Hosts;

/// Two links on two hosts, each with a ping every 2 ms, and a third one between the hosts.
fn scenario() -> String {
    let link = |name: &str, [one, two]: [&str; 2]| {
        format!("[link.{name}]\nbetween = [\"{one}\", \"{two}\"]\nprofile.link.delay = \"2ms\"\n")
    };
    let ping = |to: &str| format!("command = \"exec ping -D -i 0.002 -w 6 {to}\"\n");
    format!(
        "[node.one]\nhost = \"a\"\n{}[node.two]\nhost = \"a\"\n[node.three]\nhost = \"c\"\n{}\
         [node.four]\nhost = \"c\"\n{}{}[link.between]\nbetween = [\"two\", \"four\"]\n\
         profile.link.delay = \"5ms\"\n[node.five]\nhost = \"b\"\n[link.far]\n\
         between = [\"four\", \"five\"]\nprofile.link.delay = \"5ms\"\n",
        ping("two"),
        ping("four"),
        link("left", ["one", "two"]),
        link("right", ["three", "four"])
    )
}

/// When each answered ping of a node was sent, in s of the day, and its round trip in ms:
/// "[1700000000.123456] 64 bytes from ... time=2.1 ms".
pub fn pings(path: &str, node: &str) -> Vec<(f64, f64)> {
    let of = |line: &Value| {
        let text = line["text"].as_str().filter(|_| line["node"] == node)?;
        let received: f64 = text.strip_prefix('[')?.split(']').next()?.parse().ok()?;
        let rtt: f64 = text
            .split("time=")
            .nth(1)?
            .split(' ')
            .next()?
            .parse()
            .ok()?;
        Some((received - rtt / 1e3, rtt))
    };
    log(path).iter().filter_map(of).collect()
}

/// Between which pings the round trip changed.
pub fn turned(all: &[(f64, f64)], ms: f64) -> [f64; 2] {
    let first = all
        .iter()
        .position(|(_, rtt)| *rtt >= ms)
        .expect("no change");
    assert!(first > 0, "changed from the start");
    [all[first - 1].0, all[first].0]
}

pub fn on_all_hosts_at_one_time() {
    let hosts = Hosts::new(1).agents(&[]);
    let path = hosts.folder.path("set.log");
    let mut run = hosts.start_with(&scenario(), &["--log", &path]);
    let refused = hosts.emud(&["set", "left,right", "up.delay=20ms", "trace.restart"]);
    assert!(refused.contains("no link has changed"), "{refused}");
    let refused = hosts.emud(&["set", "between", "reorder=1%"]);
    assert!(refused.contains("is between hosts"), "{refused}");
    let refused = hosts.emud(&["set", "between", "delay=1ns"]);
    assert!(refused.contains("smallest possible one"), "{refused}");
    // A file that the programs, which run as nobody, cannot read.
    let secret = hosts.folder.file("secret", "only root reads this\n");
    fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
    let refused = hosts.emud(&["set", "left", &format!("up.trace={{file=\"{secret}\"}}")]);
    assert!(refused.contains("ermission denied"), "{refused}");
    assert!(!refused.contains("only root"), "{refused}");
    let unknown = hosts.emud(&["set", "left,rite", "up.delay=20ms"]);
    assert!(
        unknown.contains("no link is called `rite`: the links are between, far, left, right"),
        "{unknown}"
    );
    let done = hosts.emud(&["set", "left,right", "up.delay=20ms", "down.delay=7ms"]);
    let seconds: f64 = (done.strip_prefix("in effect at "))
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{done}"));
    assert!((1.0..6.0).contains(&seconds), "{done}");
    let status = run.wait().unwrap();
    let printed = std::fs::read_to_string(hosts.printed()).unwrap();
    println!("{printed}");
    // 4: packets may leave late on a busy machine, but the change must not.
    assert!([0, 3, 4].contains(&status.code().unwrap()), "{status}");
    assert!(!printed.contains("change of links"), "{printed}");
    let [left, right] = ["one", "three"].map(|node| pings(&path, node));
    let [a, b] = [&left, &right].map(|pings| turned(pings, 26.9));
    println!(
        "    left within {:.3} ms, right within {:.3} ms, apart at most {:.3} ms",
        (a[1] - a[0]) * 1e3,
        (b[1] - b[0]) * 1e3,
        (a[1].max(b[1]) - a[0].min(b[0])) * 1e3
    );
    assert!(a[0] <= b[1] && b[0] <= a[1], "left {a:?}, right {b:?}");
    // Before only the old link, after only the new one, in both directions.
    for (pings, turned) in [(&left, a), (&right, b)] {
        assert!(
            pings
                .iter()
                .all(|(at, rtt)| (*at < turned[1]) == (*rtt < 26.9))
        );
    }
    let changed: Vec<_> = (log(&path).iter())
        .filter(|line| line["type"] == "link" && line["event"] == "changed")
        .map(|line| line["link"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert!(changed.iter().any(|l| l == "left") && changed.iter().any(|l| l == "right"));
    assert!(
        hosts
            .emud(&["set", "left", "loss=1%"])
            .contains("no run is in its measured phase")
    );
}

/// The first phase begins with the change, not when the host prepared it, a second before.
pub fn phases_restart_at_the_time() {
    const FIRST: f64 = 2.5;
    let hosts = Hosts::new(1).agents(&[]);
    let path = hosts.folder.path("set.log");
    let text = format!(
        "[node.one]\nhost = \"a\"\ncommand = \"exec ping -D -i 0.005 -w 9 two\"\n\
         [node.two]\nhost = \"a\"\n[node.three]\nhost = \"c\"\n[link.left]\n\
         between = [\"one\", \"two\"]\n[[link.left.profile.phase]]\nfor = \"{FIRST}s\"\n\
         delay = \"2ms\"\n[[link.left.profile.phase]]\ndelay = \"20ms\"\n\
         [link.other]\nbetween = [\"two\", \"three\"]\nprofile.link.delay = \"5ms\"\n\
         [node.four]\nhost = \"b\"\n[link.far]\nbetween = [\"two\", \"four\"]\n\
         profile.link.delay = \"5ms\"\n"
    );
    let mut run = hosts.start_with(&text, &["--log", &path, "--verdict-first"]);
    std::thread::sleep(std::time::Duration::from_millis(2000));
    let done = hosts.emud(&["set", "left", "trace.restart"]);
    assert!(done.starts_with("in effect at "), "{done}");
    let status = run.wait().unwrap();
    println!("{}", fs::read_to_string(hosts.printed()).unwrap());
    assert!([0, 3, 4].contains(&status.code().unwrap()), "{status}");
    // Into the second phase, back into the first one, and again into the second.
    let all = pings(&path, "one");
    let is_second = |(_, rtt): &(f64, f64)| *rtt > 30.0;
    let turns: Vec<f64> = (all.windows(2))
        .filter(|two| is_second(&two[0]) != is_second(&two[1]))
        .map(|two| two[1].0)
        .collect();
    println!("    turns at {turns:?}");
    assert_eq!(turns.len(), 3, "{turns:?}");
    // A second less if it began with the preparation.
    assert!((turns[2] - turns[1] - FIRST).abs() < 0.1, "{turns:?}");
}

/// Peers of one class on three hosts have one new delay.
pub fn delay_of_a_star_between_hosts() {
    let hosts = Hosts::new(1).agents(&[]);
    let path = hosts.folder.path("set.log");
    let peer = |name: &str, host: &str| {
        format!("[node.{name}]\nhost = \"{host}\"\ncommand = \"exec ping -D -i 0.01 -w 8 hub\"\n")
    };
    let text = format!(
        "[topology]\nkind = \"star\"\n[topology.class.far]\npeers = 3\n\
         [topology.class.far.profile.link]\ndelay = \"10ms\"\n[node.hub]\nhost = \"a\"\n{}{}{}",
        peer("far1", "a"),
        peer("far2", "b"),
        peer("far3", "c")
    );
    support::host::ip(&format!(
        "netns exec {} {} attach eth0 --profile {}",
        hosts.netns("c"),
        support::emud_path().display(),
        hosts.folder.file("slow.toml", "[link]\ndelay = \"2ms\"\n")
    ));
    let mut run = hosts.start_with(&text, &["--log", &path, "--clock-bound", "10ms"]);
    let refused = hosts.emud(&["set", "star", "links.far.delay=1ms"]);
    assert!(refused.contains("cannot be met"), "{refused}");
    let done = hosts.emud(&["set", "star", "links.far.delay=20ms"]);
    assert!(done.starts_with("in effect at "), "{done}");
    let status = run.wait().unwrap();
    println!("{}", fs::read_to_string(hosts.printed()).unwrap());
    assert!([0, 3, 4].contains(&status.code().unwrap()), "{status}");
    for node in ["far1", "far2", "far3"] {
        let [before, after] = before_and_after(&path, node);
        println!("    {node}: {before:.3} ms, then {after:.3} ms");
        assert!((19.5..21.0).contains(&before), "{node}: {before}");
        assert!((39.5..41.0).contains(&after), "{node}: {after}");
    }
}

/// The smallest round trip in ms of all pings of a node, and of those of its last second: before, they
/// may meet the new link in one direction only.
fn before_and_after(path: &str, node: &str) -> [f64; 2] {
    let all: Vec<f64> = pings(path, node).iter().map(|(_, rtt)| *rtt).collect();
    let last = all.len().saturating_sub(100);
    let least = |some: &[f64]| some.iter().copied().fold(f64::INFINITY, f64::min);
    [least(&all), least(&all[last..])]
}

/// The round trip is the requested one, also of a link that crosses the network between the hosts.
pub fn delay_of_a_link_between_hosts() {
    let hosts = Hosts::new(1).agents(&[]);
    let path = hosts.folder.path("set.log");
    let text = "[node.one]\nhost = \"a\"\ncommand = \"exec ping -D -i 0.01 -w 8 two\"\n\
                [node.two]\nhost = \"c\"\n[node.three]\nhost = \"b\"\n\
                [link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"5ms\"\n\
                [link.m]\nbetween = [\"two\", \"three\"]\nprofile.link.delay = \"5ms\"\n";
    let eth0 = hosts.netns("c");
    // 1 ms on the way there and back.
    support::host::ip(&format!(
        "netns exec {eth0} {} attach eth0 --profile {}",
        support::emud_path().display(),
        hosts.folder.file("slow.toml", "[link]\ndelay = \"1ms\"\n")
    ));
    let mut run = hosts.start_with(text, &["--log", &path, "--clock-bound", "10ms"]);
    let done = hosts.emud(&["set", "l", "delay=20ms"]);
    assert!(done.starts_with("in effect at "), "{done}");
    let status = run.wait().unwrap();
    println!("{}", std::fs::read_to_string(hosts.printed()).unwrap());
    assert!([0, 3, 4].contains(&status.code().unwrap()), "{status}");
    let [before, after] = before_and_after(&path, "one");
    println!("    {before:.3} ms, then {after:.3} ms");
    assert!((9.5..11.0).contains(&before), "{before}");
    assert!((39.5..41.0).contains(&after), "{after}");
}
