// SPDX-License-Identifier: MIT OR Apache-2.0
//! `match.cgroup`: BPF_PROG_TEST_RUN gives a packet a socket of the group of this process. Below the
//! root every group is; nothing is in a new one.

use emud::profile::Profile;
use support::site::Group;

use super::rules::{bench_of, send, set};
use super::*;

const LINKS: &str =
    "[link]\ndelay = \"1ms\"\n[links.a]\ndelay = \"10ms\"\n[links.b]\ndelay = \"20ms\"\n";
const OWN: &str = "[[rule]]\nmatch = { cgroup = \"/\" }\nlink = \"a\"\n";

fn profile(rules: &str) -> Profile {
    Profile::parse(&format!("{LINKS}{rules}"), "x").unwrap_or_else(|error| panic!("{error}"))
}

/// The delay in ms of the link that a packet took.
fn took(b: &Bench, direction: u32, frame: &[u8]) -> u64 {
    send(b, direction, frame, 0, 0).departure / MS
}

/// The answer to an IPv4 frame with ports.
fn answer(frame: &[u8]) -> Vec<u8> {
    let mut back = frame.to_vec();
    for (a, b, len) in [(26, 30, 4), (34, 36, 2)] {
        let (from, to) = (frame[a..a + len].to_vec(), frame[b..b + len].to_vec());
        back[a..a + len].copy_from_slice(&to);
        back[b..b + len].copy_from_slice(&from);
    }
    back
}

#[test]
fn a_flow_is_learned_from_what_is_sent() {
    let other = Group::new("other");
    let b = bench_of(&profile(&format!(
        "[[rule]]\nmatch = {{ cgroup = \"/{}\" }}\nlink = \"b\"\n{OWN}",
        other.name
    )));
    let flow = udp4(100, 1000);
    assert_eq!(took(&b, abi::EMUD_DOWN, &answer(&flow)), 1, "not sent yet");
    assert_eq!(took(&b, abi::EMUD_UP, &flow), 10);
    assert_eq!(took(&b, abi::EMUD_DOWN, &answer(&flow)), 10);
    assert_eq!(took(&b, abi::EMUD_DOWN, &flow), 1, "not reversed");
    for at in [29, 33, 35, 37, 23] {
        let mut near = answer(&flow);
        near[at] ^= if at == 23 { 17 ^ 6 } else { 1 };
        assert_eq!(took(&b, abi::EMUD_DOWN, &near), 1, "byte {at}");
    }
    assert_eq!(
        b.maps.rule_hits(0).unwrap(),
        0,
        "the group without a process"
    );
    assert_eq!(b.maps.rule_hits(1).unwrap(), 2);
    let down = b.maps.counters(abi::EMUD_DOWN).unwrap();
    assert_eq!(down.unattributed, 0, "flows of others are no failure");
}

#[test]
fn an_echo_is_a_flow_by_its_identifier() {
    let b = bench_of(&profile(OWN));
    let echo = |kind: u8, id: u8| {
        let mut frame = udp4(100, 1000);
        (frame[23], frame[34], frame[39]) = (1, kind, id);
        frame
    };
    let reply = |id| {
        let mut frame = echo(0, id);
        frame[26..34].rotate_left(4);
        frame
    };
    assert_eq!(took(&b, abi::EMUD_UP, &echo(8, 7)), 10);
    assert_eq!(took(&b, abi::EMUD_DOWN, &reply(7)), 10);
    assert_eq!(took(&b, abi::EMUD_DOWN, &reply(8)), 1, "another ping");
}

#[test]
fn other_conditions_count_too() {
    let b = bench_of(&profile(
        "[[rule]]\nmatch = { cgroup = \"/\", destination-port = 9 }\nlink = \"a\"\ndirection = \"up\"\n\
         [[rule]]\nmatch = { cgroup = \"/\", source-port = 9 }\nlink = \"b\"\ndirection = \"down\"\n",
    ));
    let flow = udp4(100, 1000);
    assert_eq!(took(&b, abi::EMUD_UP, &flow), 10);
    assert_eq!(took(&b, abi::EMUD_DOWN, &answer(&flow)), 20);
    let mut elsewhere = flow;
    elsewhere[37] = 8;
    assert_eq!(took(&b, abi::EMUD_UP, &elsewhere), 1);
    assert_eq!(took(&b, abi::EMUD_DOWN, &answer(&elsewhere)), 1);
}

/// Egress has no rule and learns nevertheless.
#[test]
fn a_rule_for_ingress_alone() {
    let b = bench_of(&profile(
        &OWN.replace("link = \"a\"", "link = \"a\"\ndirection = \"down\""),
    ));
    assert_eq!(took(&b, abi::EMUD_UP, &udp4(100, 1000)), 1);
    assert_eq!(took(&b, abi::EMUD_DOWN, &answer(&udp4(100, 1000))), 10);
}

#[test]
fn what_has_no_ports_is_counted() {
    let b = bench_of(&profile(OWN));
    let mut gre = udp4(100, 1000);
    gre[23] = 47;
    let mut fragment = udp4(100, 1000);
    fragment[20] = 0x20;
    for frame in [gre, fragment] {
        assert_eq!(took(&b, abi::EMUD_UP, &frame), 10, "its socket is known");
        assert_eq!(took(&b, abi::EMUD_DOWN, &answer(&frame)), 1);
    }
    let unattributed = |direction| b.maps.counters(direction).unwrap().unattributed;
    assert_eq!(unattributed(abi::EMUD_UP), 0);
    assert_eq!(unattributed(abi::EMUD_DOWN), 2);
}

#[test]
fn a_full_table_forgets_the_flow_unused_for_longest() {
    let profile = profile(OWN);
    let mut b = Bench::empty(&Sizes {
        learned: 4,
        ..Sizes::of(&profile)
    });
    set(&mut b, &profile);
    let sent = |port| took(&b, abi::EMUD_UP, &udp4(100, port));
    let answered = |port| took(&b, abi::EMUD_DOWN, &answer(&udp4(100, port)));
    assert_eq!([1, 2, 3, 4].map(sent), [10; 4]);
    // Answers keep a flow, too.
    assert_eq!(answered(1), 10);
    let forgotten = || b.maps.counters(abi::EMUD_UP).unwrap().learned_forgotten;
    assert_eq!(forgotten(), 0);
    assert_eq!(sent(5), 10);
    assert_eq!(forgotten(), 1);
    assert_eq!([1, 2, 3, 4, 5].map(answered), [10, 1, 10, 10, 10]);
}

#[test]
fn a_change_keeps_flows_unless_it_changes_the_groups() {
    let other = Group::new("other");
    let before = profile(OWN);
    let mut b = bench_of(&before);
    let back = answer(&udp4(100, 1000));
    assert_eq!(took(&b, abi::EMUD_UP, &udp4(100, 1000)), 10);
    let slower = ["links.a.delay=40ms".to_owned()];
    set(&mut b, &before.with_changes(&slower).unwrap());
    assert_eq!(took(&b, abi::EMUD_DOWN, &back), 40);
    // The same number is another group now.
    let rules = format!("rule=[{{match={{cgroup=\"/{}\"}},link=\"b\"}}]", other.name);
    set(&mut b, &before.with_changes(&[rules]).unwrap());
    assert_eq!(took(&b, abi::EMUD_DOWN, &back), 1);
    assert_eq!(b.maps.cgroups().unwrap().len(), 1);
}

#[test]
fn a_group_that_does_not_exist_is_an_error() {
    let profile = profile("[[rule]]\nmatch = { cgroup = \"/no/such\" }\nlink = \"a\"\n");
    let mut b = Bench::empty(&Sizes::of(&profile));
    let rules = emud::datapath::compiled::compile_rules(&profile).unwrap();
    let error = b.apply_with([&[], &[]], &rules).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("cannot open control group \"/no/such\""),
        "{text}"
    );
    assert_eq!(error.exit_code(), 66);
}
