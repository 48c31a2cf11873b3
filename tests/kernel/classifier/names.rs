// SPDX-License-Identifier: MIT OR Apache-2.0
//! `match.answer`: addresses of names, learned from DNS answers.

use std::net::{IpAddr, Ipv4Addr};

use emud::profile::Profile;

use super::rules::{bench_of, send, set};
use super::*;

const LINKS: &str =
    "[link]\ndelay = \"1ms\"\n[links.a]\ndelay = \"10ms\"\n[links.b]\ndelay = \"20ms\"\n";
const OWN: &str = "[[rule]]\nmatch = { answer = \"Api.example.org\" }\nlink = \"a\"\n";
/// The source of `udp4`.
const RESOLVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

fn profile(rules: &str) -> Profile {
    Profile::parse(&format!("{LINKS}{rules}"), "x").unwrap_or_else(|error| panic!("{error}"))
}

fn bench(rules: &str) -> Bench {
    let mut b = bench_of(&profile(rules));
    b.maps.set_resolvers(&[RESOLVER.into()]).unwrap();
    b
}

fn name(text: &str) -> Vec<u8> {
    let label = |label: &str| [&[label.len() as u8], label.as_bytes()].concat();
    let labels: Vec<_> = text.split('.').map(label).collect();
    [labels.concat(), vec![0]].concat()
}

fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let fixed = [kind, 1, 0, 300, data.len() as u16].map(u16::to_be_bytes);
    [&[0xc0, 12], fixed.as_flattened(), data].concat()
}

/// The message of an answer.
fn message(asked: &str, records: &[Vec<u8>]) -> Vec<u8> {
    let count = records.len() as u16;
    let header = [7, 0x8180, 1, count, 0, 0].map(u16::to_be_bytes);
    let question = [name(asked), vec![0, 1, 0, 1]].concat();
    [header.as_flattened(), &question, &records.concat()].concat()
}

/// A UDP packet from the resolver.
fn packet(message: &[u8]) -> Vec<u8> {
    let mut frame = udp4(42, 53);
    frame.extend(message);
    let len = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&len.to_be_bytes());
    frame
}

fn answer(asked: &str, records: &[Vec<u8>]) -> Vec<u8> {
    packet(&message(asked, records))
}

fn took(b: &Bench, direction: u32, frame: &[u8]) -> u64 {
    send(b, direction, frame, 0, 0).departure / MS
}

/// The link of a packet to, or from, an address.
fn link_of(b: &Bench, direction: u32, ip: [u8; 4]) -> u64 {
    let mut frame = udp4(100, 1000);
    let at = if direction == abi::EMUD_UP { 30 } else { 26 };
    frame[at..at + 4].copy_from_slice(&ip);
    took(b, direction, &frame)
}

fn learned(b: &Bench) -> Vec<IpAddr> {
    b.maps.addresses_of("api.example.org").unwrap()
}

#[test]
fn addresses_are_learned_from_answers() {
    let b = bench(OWN);
    let ip6: std::net::Ipv6Addr = "2001:db8::7".parse().unwrap();
    assert_eq!(link_of(&b, abi::EMUD_UP, [192, 0, 2, 7]), 1, "not yet");
    let alias = record(CNAME, &name("cdn.example.net"));
    let records = [
        alias,
        record(A, &[192, 0, 2, 7]),
        record(A, &[192, 0, 2, 8]),
        record(AAAA, &ip6.octets()),
    ];
    took(&b, abi::EMUD_DOWN, &answer("aPI.Example.org", &records));
    for last in [7, 8] {
        assert_eq!(link_of(&b, abi::EMUD_UP, [192, 0, 2, last]), 10);
        assert_eq!(link_of(&b, abi::EMUD_DOWN, [192, 0, 2, last]), 10);
    }
    assert_eq!(link_of(&b, abi::EMUD_UP, [192, 0, 2, 9]), 1);
    let mut frame = ip6_udp();
    assert_eq!(took(&b, abi::EMUD_UP, &frame), 1);
    frame[38..54].copy_from_slice(&ip6.octets());
    assert_eq!(took(&b, abi::EMUD_UP, &frame), 10);
    let all: Vec<_> = learned(&b).iter().map(ToString::to_string).collect();
    assert_eq!(all, ["192.0.2.7", "192.0.2.8", "2001:db8::7"]);
}

fn ip6_udp() -> Vec<u8> {
    ip6(17, 0)
}

/// Everything that is not the answer of a resolver to this question.
#[test]
fn nothing_else_is_learned() {
    let b = bench(OWN);
    let records = [record(A, &[192, 0, 2, 7])];
    let right = answer("api.example.org", &records);
    let changed = |at: usize, byte: u8| {
        let mut frame = right.clone();
        frame[at] = byte;
        frame
    };
    let dns = 42;
    let wrong = [
        ("another host", changed(29, 9)),
        ("another port", changed(35, 54)),
        ("TCP", changed(23, 6)),
        ("a fragment", changed(20, 0x20)),
        ("a query", changed(dns + 2, 1)),
        ("another operation", changed(dns + 2, 0x89)),
        ("an error", changed(dns + 3, 0x83)),
        ("two questions", changed(dns + 5, 2)),
        ("no answer", changed(dns + 7, 0)),
        ("cut off", right[..right.len() - 1].to_vec()),
        ("a header", right[..dns + 12].to_vec()),
        ("half a header", right[..dns + 6].to_vec()),
        ("another name", answer("api.example.com", &records)),
        ("a name above", answer("example.org", &records)),
        ("a name below", answer("x.api.example.org", &records)),
        ("other lengths", answer("apiexample.org", &records)),
        (
            "a long address",
            answer("api.example.org", &[record(A, &[1; 5])]),
        ),
        (
            "another type",
            answer("api.example.org", &[record(2, &[1; 4])]),
        ),
    ];
    for (what, frame) in wrong {
        took(&b, abi::EMUD_DOWN, &frame);
        assert_eq!(learned(&b), Vec::<IpAddr>::new(), "{what}");
    }
    took(&b, abi::EMUD_DOWN, &right);
    assert_eq!(learned(&b).len(), 1);
    // A router passes answers on to its hosts.
    let b = bench(OWN);
    took(&b, abi::EMUD_UP, &right);
    assert_eq!(learned(&b).len(), 1);
}

#[test]
fn names_are_told_apart_and_outlive_a_change() {
    let rules = format!("{OWN}[[rule]]\nmatch = {{ answer = \"b.example.org\" }}\nlink = \"b\"\n");
    let before = profile(&rules);
    let mut b = bench(&rules);
    let ip = [192, 0, 2, 7];
    took(
        &b,
        abi::EMUD_DOWN,
        &answer("b.example.org", &[record(A, &ip)]),
    );
    assert_eq!(link_of(&b, abi::EMUD_UP, ip), 20);
    let slower = ["links.b.delay=40ms".to_owned()];
    set(&mut b, &before.with_changes(&slower).unwrap());
    assert_eq!(link_of(&b, abi::EMUD_UP, ip), 40);
    took(
        &b,
        abi::EMUD_DOWN,
        &answer("api.example.org", &[record(A, &ip)]),
    );
    assert_eq!(link_of(&b, abi::EMUD_UP, ip), 10, "the first rule");
}

/// The table has a bound, and keeps the addresses of late.
#[test]
fn a_full_table_forgets() {
    let b = bench(OWN);
    let most = abi::EMUD_ADDRESSES_MAX;
    for n in 0..2 * most / 16 {
        let one = |k: u32| record(A, &(0x0a00_0000 + n * 16 + k).to_be_bytes());
        let records: Vec<_> = (0..16).map(one).collect();
        took(&b, abi::EMUD_DOWN, &answer("api.example.org", &records));
    }
    let all = learned(&b);
    assert!(
        all.len() > most as usize / 2 && all.len() <= most as usize,
        "{}",
        all.len()
    );
    let last = (0x0a00_0000 + 2 * most - 1).to_be_bytes();
    assert!(all.contains(&last.into()));
}

/// Random messages neither stop the classifier nor teach it a wrong address.
#[test]
fn garbage_is_harmless() {
    let b = bench(OWN);
    let right = message("api.example.org", &[record(A, &[192, 0, 2, 7])]);
    let mut random = support::chance::Random(5);
    for _ in 0..2000 {
        let mut message = right.clone();
        // Behind the question.
        let at = 33 + random.bits() as usize % (right.len() - 33);
        message[at] = random.bits() as u8;
        message.truncate(right.len() - random.bits() as usize % 4);
        took(&b, abi::EMUD_DOWN, &packet(&message));
    }
    for ip in learned(&b) {
        let IpAddr::V4(ip) = ip else { panic!("{ip}") };
        let (octets, right) = (ip.octets(), [192, 0, 2, 7]);
        let differs = (0..4).filter(|n| octets[*n] != right[*n]);
        assert!(differs.count() <= 1, "{ip}");
    }
}
