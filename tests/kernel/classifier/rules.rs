// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which link a packet takes: every kind of match, instances, shared bottlenecks.

use emud::datapath::compiled::{compile_rules, matching};
use emud::datapath::stage::compile::of_number;
use emud::profile::Profile;

use super::*;

/// Offsets in `struct __sk_buff`.
const SKB_MARK: usize = 8;
pub const SKB_CB: usize = 48;

/// The classifier as attach sets it up for a profile.
pub fn bench(text: &str) -> Bench {
    let profile = Profile::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}"));
    bench_of(&profile)
}

pub fn bench_of(profile: &Profile) -> Bench {
    let mut bench = Bench::empty(&Sizes::of(profile));
    set(&mut bench, profile);
    if let Some(matrix) = &profile.matrix {
        bench
            .maps
            .apply_pairs(&matrix.pairs, true)
            .unwrap()
            .unwrap();
    }
    bench
}

/// As `emud set` does.
pub fn set(bench: &mut Bench, profile: &Profile) {
    let direction = |direction: u32| {
        let links = (0..).zip(profile.links_of(direction));
        let mut links: Vec<Compiled> = links
            .map(|(n, link)| bench.compile(link, of_number(42, n), direction, bench.place))
            .collect();
        matching(profile, direction, &mut links);
        links
    };
    let (up, down) = (direction(abi::EMUD_UP), direction(abi::EMUD_DOWN));
    let rules = compile_rules(profile).unwrap();
    bench.apply_with([&up, &down], &rules).unwrap();
}

pub fn send(b: &Bench, direction: u32, frame: &[u8], at: u64, mark: u32) -> Fate {
    let mut ctx = arriving(b.start + at);
    ctx[SKB_MARK..][..4].copy_from_slice(&mark.to_ne_bytes());
    ctx[SKB_CB..][..4].copy_from_slice(&direction.to_ne_bytes());
    run(&b.loaded, frame, &ctx).fate(b.start)
}

/// Returns the delay in ms of the link that an egress packet took; 0: it passed without emulation.
fn took(b: &Bench, frame: &[u8]) -> u64 {
    send(b, abi::EMUD_UP, frame, 0, 0).departure / MS
}

/// Rules whose links are identified by their delays: `own` 1 ms, a 10 ms, b 20 ms.
fn rules(rules: &str) -> String {
    format!(
        "[link]\ndelay = \"1ms\"\n[links.a]\ndelay = \"10ms\"\n[links.b]\ndelay = \"20ms\"\n{rules}"
    )
}

/// One rule to link a.
fn one(matches: &str) -> Bench {
    bench(&rules(&format!(
        "[[rule]]\nmatch = {{ {matches} }}\nlink = \"a\"\n"
    )))
}

/// [`udp4`] from 10.0.0.1 port 1000 to 10.0.0.2 port 9, changed.
fn udp(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut f = udp4(100, 1000);
    change(&mut f);
    f
}

fn tcp6(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut f = ip6(6, 0);
    f[22..38].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    f[38..54].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    f[54..58].copy_from_slice(&[0x30, 0x39, 0, 80]);
    change(&mut f);
    f
}

/// Tags in the data.
fn tagged(frame: &[u8], tags: &[[u8; 4]]) -> Vec<u8> {
    [&frame[..12], &tags.concat(), &frame[12..]].concat()
}

#[test]
fn every_part_of_a_match_is_looked_at() {
    let yes = udp(|_| {});
    let with = |at: usize, byte: u8| udp(move |f| f[at] = byte);
    for (matches, no) in [
        ("source = \"10.0.0.0/24\"", with(28, 1)),
        ("source = \"10.0.0.1\"", with(29, 3)),
        ("source = \"10.0.0.0/31\"", with(29, 2)),
        ("destination = \"10.0.0.2/32\"", with(33, 3)),
        ("destination = \"0.0.0.0/1\"", with(30, 128)),
        ("protocol = \"udp\"", with(23, 6)),
        ("protocol = 17", with(23, 1)),
        ("source-port = 1000", with(35, 0xe9)),
        ("destination-port = 9", with(37, 8)),
        ("tos = 0", with(15, 1)),
        ("tos = \"0x0/0x18\"", with(15, 8)),
        ("dscp = \"be\"", with(15, 4)),
        ("source-mac = \"02:00:00:00:00:01\"", with(11, 2)),
        ("destination-mac = \"02:00:00:00:00:02\"", with(0, 3)),
    ] {
        let b = one(matches);
        assert_eq!(took(&b, &yes), 10, "{matches}");
        assert_eq!(took(&b, &no), 1, "not {matches}");
        assert_eq!(
            took(&b, &tagged(&yes, &[[0x81, 0, 0, 7]])),
            10,
            "{matches}, tagged"
        );
        assert_eq!(b.maps.rule_hits(0).unwrap(), 2);
        assert_eq!(b.maps.counters_of(1, abi::EMUD_UP).unwrap().packets, 2);
        assert_eq!(b.counters().packets, 1);
    }
    // The DSCP is without the bits of ECN.
    assert_eq!(took(&one("dscp = \"ef\""), &with(15, 46 << 2 | 3)), 10);
    assert_eq!(took(&one("dscp = \"af41\""), &with(15, 34 << 2)), 10);
    // AF12 and CE are interactive for the kernel's prio.
    assert_eq!(
        took(&one("tos = \"0x10/0x18\""), &with(15, 12 << 2 | 3)),
        10
    );
}

#[test]
fn ip6_is_matched_as_ip4_is() {
    let yes = tcp6(|_| {});
    let with = |at: usize, byte: u8| tcp6(move |f| f[at] = byte);
    for (matches, no) in [
        ("source = \"2001:db8::/32\"", with(25, 0xb9)),
        ("source = \"2001:db8::1\"", with(37, 0)),
        ("destination = \"2001:db8::2/127\"", with(53, 4)),
        ("protocol = \"tcp\"", with(20, 17)),
        ("source-port = 12345", with(55, 0x38)),
        ("destination-port = \"80\"", with(57, 81)),
        ("dscp = 0", with(15, 0x40)),
        ("tos = \"0x00\"", with(14, 0x61)),
    ] {
        let b = one(matches);
        assert_eq!(took(&b, &yes), 10, "{matches}");
        assert_eq!(took(&b, &no), 1, "not {matches}");
    }
    // Up to four extension headers of any length are before the matched fields, and tags before them.
    let b = one("protocol = \"tcp\", destination-port = 80");
    for headers in 1..=4 {
        let mut frame = tcp6(|f| f[20] = 0);
        let mut chain = Vec::new();
        for (next, eights) in [(60, 0), (43, 9), (60, 2), (6, 1)][4 - headers..].iter() {
            chain.extend([*next, *eights, 1, 4 + eights * 8, 0, 0, 0, 0]);
            chain.resize(chain.len() + usize::from(*eights) * 8, 0);
        }
        frame[20] = [43, 60, 43, 0][headers - 1];
        frame.splice(54..54, chain);
        assert_eq!(took(&b, &frame), 10, "{headers} headers");
        frame.splice(12..12, [0x81, 0, 0, 7]);
        assert_eq!(took(&b, &frame), 10, "{headers} headers, tagged");
    }
    // 0/0 is every packet of its family, and no other.
    assert_eq!(took(&one("source = \"::/0\""), &yes), 10);
    assert_eq!(took(&one("source = \"::/0\""), &udp(|_| {})), 1);
    assert_eq!(took(&one("source = \"0.0.0.0/0\""), &yes), 1);
    // ::a00:1 has the bytes of 10.0.0.1 elsewhere.
    let low =
        tcp6(|f| f[22..38].copy_from_slice(&[10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(took(&one("source = \"10.0.0.1\""), &low), 1);
}

#[test]
fn icmp_marks_and_what_is_not_ip() {
    let echo = |kind: u8| {
        udp(move |f| {
            f[23] = 1;
            f[34] = kind;
        })
    };
    assert_eq!(took(&one("icmp-type = 8"), &echo(8)), 10);
    assert_eq!(took(&one("icmp-type = 8"), &echo(0)), 1);
    assert_eq!(took(&one("icmp-type = 128"), &ip6(58, 128)), 10);
    assert_eq!(
        took(&one("protocol = \"icmp\", icmp-type = 128"), &ip6(58, 128)),
        1
    );
    // An echo reply is of type 0; UDP has none.
    assert_eq!(took(&one("icmp-type = 0"), &udp(|_| {})), 1);

    let b = one("mark = \"0x10/0xf0\"");
    for (mark, want) in [(0x10, 10), (0xff1f, 10), (0x20, 1), (0, 1)] {
        let fate = send(&b, abi::EMUD_UP, &udp(|_| {}), 0, mark);
        assert_eq!(fate.departure / MS, want, "mark {mark:#x}");
    }
    let mut lldp = vec![0u8; 60];
    lldp[12..14].copy_from_slice(&0x88ccu16.to_be_bytes());
    for (matches, want) in [
        ("protocol = 0", 1),
        ("tos = 0", 1),
        ("source-port = 0", 1),
        ("vlan = 0", 1),
        ("mark = 0", 10),
        ("source-mac = \"0:0:0:0:0:0\"", 10),
    ] {
        assert_eq!(took(&one(matches), &lldp), want, "{matches}");
    }
    let all = bench(&rules("[[rule]]\nlink = \"a\"\n"));
    assert_eq!(took(&all, &lldp), 10, "no match at all is every packet");
}

#[test]
fn the_outer_tag_is_matched() {
    let frame = udp(|_| {});
    let b = one("vlan = 7");
    assert_eq!(took(&b, &frame), 1);
    // With a priority.
    assert_eq!(took(&b, &tagged(&frame, &[[0x81, 0, 0xa0, 7]])), 10);
    assert_eq!(
        took(&b, &tagged(&frame, &[[0x88, 0xa8, 0, 7], [0x81, 0, 0, 8]])),
        10
    );
    assert_eq!(
        took(&b, &tagged(&frame, &[[0x88, 0xa8, 0, 8], [0x81, 0, 0, 7]])),
        1
    );
}

#[test]
fn ranges_of_ports_are_exact_at_their_edges() {
    for (range, first, last) in [
        ("1000-2000", 1000, 2000),
        ("0-0", 0, 0),
        ("1-65534", 1, 65534),
        ("0-65535", 0, 65535),
        ("32768-32769", 32768, 32769),
    ] {
        let b = one(&format!("source-port = \"{range}\""));
        for port in [
            0u16, 1, 999, 1000, 1001, 2000, 2001, 32767, 32768, 32769, 32770, 65534, 65535,
        ] {
            let want = if (first..=last).contains(&port) {
                10
            } else {
                1
            };
            assert_eq!(took(&b, &udp4(100, port)), want, "{range}: {port}");
        }
    }
}

#[test]
fn a_fragment_has_a_protocol_and_no_ports() {
    let first = udp(|f| f[20] = 0x20);
    let later = udp(|f| f[21] = 1);
    for frame in [&first, &later] {
        assert_eq!(took(&one("protocol = \"udp\""), frame), 10);
        assert_eq!(took(&one("destination-port = 9"), frame), 1);
        assert_eq!(took(&one("source-port = \"0-65535\""), frame), 1);
    }
    let mut ip6 = tcp6(|f| f[20] = 44);
    ip6.splice(54..54, [6, 0, 0, 1, 0, 0, 0, 9]);
    assert_eq!(took(&one("protocol = \"tcp\""), &ip6), 10);
    assert_eq!(took(&one("protocol = 44"), &ip6), 1);
    assert_eq!(took(&one("destination-port = 80"), &ip6), 1);
}

#[test]
fn the_first_rule_wins() {
    let wide = "[[rule]]\nmatch = { source = \"10.0.0.0/8\" }\nlink = \"a\"\n";
    let narrow =
        "[[rule]]\nmatch = { source = \"10.0.0.1\", destination-port = 9 }\nlink = \"b\"\n";
    let frame = udp(|_| {});
    assert_eq!(took(&bench(&rules(&format!("{wide}{narrow}"))), &frame), 10);
    assert_eq!(took(&bench(&rules(&format!("{narrow}{wide}"))), &frame), 20);
    // The same match twice.
    let again = wide.replace("\"a\"", "\"b\"");
    let b = bench(&rules(&format!("{wide}{again}")));
    assert_eq!(took(&b, &frame), 10);
    assert_eq!(
        (b.maps.rule_hits(0).unwrap(), b.maps.rule_hits(1).unwrap()),
        (1, 0)
    );
}

#[test]
fn a_rule_may_name_the_own_link_none_and_a_direction() {
    let b = bench(&rules(
        "[[rule]]\nmatch = { source-port = 1 }\nlink = \"link\"\n\
         [[rule]]\nmatch = { source-port = 2 }\nlink = \"none\"\n\
         [[rule]]\nmatch = { source-port = 3 }\nlink = \"a\"\ndirection = \"down\"\n\
         [[rule]]\nlink = \"b\"\n",
    ));
    let took = |direction, port| send(&b, direction, &udp4(100, port), 0, 0).departure / MS;
    assert_eq!(
        [1, 2, 3, 4].map(|port| took(abi::EMUD_UP, port)),
        [1, 0, 20, 20]
    );
    assert_eq!(b.counters().passed[abi::EMUD_PASS_RULE as usize], 1);
    assert_eq!(b.maps.rule_hits(1).unwrap(), 1);
}

#[test]
fn set_turns_rules_with_links_and_leaves_nothing_behind() {
    let text = |extra: &str| {
        rules(&format!(
            "[[rule]]\nmatch = {{ source-port = \"1000-2000\" }}\nlink = \"a\"\n{extra}"
        ))
    };
    let profile = |text: &str| Profile::parse(text, "x").unwrap();
    let first = profile(&text(""));
    let mut b = bench_of(&first);
    let keys = b.maps.rule_keys().unwrap();
    assert!(keys > 0);
    assert_eq!(took(&b, &udp(|_| {})), 10);
    let slower = first
        .with_changes(&["links.a.delay=40ms".to_owned()])
        .unwrap();
    set(&mut b, &slower);
    assert_eq!(took(&b, &udp(|_| {})), 40);
    assert_eq!(b.maps.rule_keys().unwrap(), keys, "the old ones are gone");
    let other = slower
        .with_changes(&["rule=[{match={source-port=1000},link=\"b\"}]".to_owned()])
        .unwrap();
    set(&mut b, &other);
    // In order: after the one of 40 ms, which is a different link.
    assert_eq!(took(&b, &udp(|_| {})), 20);
    assert_eq!(b.maps.rule_keys().unwrap(), 2, "one key a direction");
    set(
        &mut b,
        &other.with_changes(&["rule=none".to_owned()]).unwrap(),
    );
    assert_eq!(took(&b, &udp(|_| {})), 1);
    assert_eq!(b.maps.rule_keys().unwrap(), 0);
}

#[test]
fn links_that_share_a_bottleneck_wait_for_each_other() {
    let b = bench(
        "[link]\nrate = \"8Mbit\"\ndelay = \"1ms\"\nshared = \"x\"\nqueue = \"5p\"\n\
         [links.a]\ndelay = \"10ms\"\nshared = \"x\"\n\
         [links.b]\nrate = \"8Mbit\"\ndelay = \"20ms\"\n\
         [[rule]]\nmatch = { source-port = 1 }\nlink = \"a\"\n\
         [[rule]]\nmatch = { source-port = 2 }\nlink = \"b\"\n",
    );
    let send = |port| b.send(&udp4(1000, port), 0);
    let got = [9, 1, 1, 9, 2, 1].map(|port| send(port).departure);
    assert_eq!(got, [2, 12, 13, 5, 21, 15].map(|ms| ms * MS), "to the ns");
    assert_eq!(
        send(9).verdict,
        TC_ACT_STOLEN,
        "five packets of both are waiting"
    );
    assert_eq!(send(1).verdict, TC_ACT_STOLEN);
    assert_eq!(send(2).departure, 22 * MS, "another queue");
    assert_eq!(b.counters().queue_dropped, 1);
    assert_eq!(
        b.maps.counters_of(1, abi::EMUD_UP).unwrap().queue_dropped,
        1
    );
}

const PER: &str = "[links.a]\nrate = \"8Mbit\"\nqueue = \"3p\"\n";

#[test]
fn instances_have_queues_of_their_own() {
    for (per, same, other) in [
        ("flow", udp4(1000, 1000), udp4(1000, 1001)),
        ("source", udp(|f| f[37] = 8), udp(|f| f[29] = 9)),
        ("destination", udp(|f| f[29] = 9), udp(|f| f[33] = 9)),
        ("pair", udp(|f| f[37] = 8), udp(|f| f[33] = 9)),
    ] {
        let long = |mut frame: Vec<u8>| {
            frame.resize(1000, 0);
            frame
        };
        let (same, other) = (long(same), long(other));
        let b = bench(&format!(
            "[link]\n{PER}[[rule]]\nlink = \"a\"\nper = \"{per}\"\n"
        ));
        let first = long(udp(|_| {}));
        assert_eq!(b.send(&first, 0).departure, MS, "{per}");
        assert_eq!(b.send(&same, 0).departure, 2 * MS, "{per}, the same");
        assert_eq!(b.send(&other, 0).departure, MS, "{per}, another");
        assert_eq!(b.send(&first, 0).departure, 3 * MS);
        assert_eq!(
            b.send(&first, 0).verdict,
            TC_ACT_STOLEN,
            "{per}: it is full"
        );
        assert_eq!(b.send(&other, 0).departure, 2 * MS);
        assert_eq!(b.send(&first, MS).departure, 4 * MS, "{per}: one has left");
        let sizes = Sizes::of(&Profile::parse("[link]", "").unwrap());
        assert_eq!(b.maps.instances(&sizes).unwrap().0, 2);
    }
}

/// Rates of a trace or of a phase make a queue as that of a link does.
#[test]
fn instances_have_room_for_the_queue_of_any_time() {
    let trace = "trace = { rows = \"time_s,rate_mbit;0,8;100,8\" }";
    let b = bench(&format!(
        "[link]\nqueue = \"3p\"\n{trace}\n[[rule]]\nlink = \"link\"\nper = \"flow\"\n"
    ));
    let fates = [(); 4].map(|()| b.send(&udp4(1000, 1), 0));
    assert_eq!(
        [0, 1, 2].map(|n| fates[n].departure),
        [1, 2, 3].map(|ms| ms * MS)
    );
    assert_eq!(fates[3].verdict, TC_ACT_STOLEN, "three packets wait");
    let with_phases = |own: &str, phase: &str| {
        let text = format!(
            "[link]\n{own}\n[[rule]]\nlink = \"link\"\nper = \"flow\"\n\
             [[phase]]\nfor = \"1s\"\n[[phase]]\n{phase}\n"
        );
        Profile::parse(&text, "x.toml")
    };
    for (own, phase) in [
        ("queue = \"100p\"", "rate = \"8Mbit\""),
        ("rate = \"8Mbit\"\nqueue = \"3p\"", "queue = \"100p\""),
    ] {
        let sizes = Sizes::of(&with_phases(own, phase).unwrap());
        assert!(sizes.instance_rings * abi::EMUD_RING_STEP >= 100, "{phase}");
    }
    let error = with_phases("queue = \"1025p\"", "rate = \"8Mbit\"").unwrap_err();
    assert!(error.to_string().contains("at most 1024"), "{error}");
}

#[test]
fn a_full_table_gives_up_the_instance_unused_for_longest() {
    let b = bench(&format!(
        "instances = 4\n[link]\n{PER}[[rule]]\nlink = \"a\"\nper = \"flow\"\n"
    ));
    // One set of four.
    for port in 1..=4 {
        assert_eq!(b.send(&udp4(1000, port), 0).departure, MS);
    }
    assert_eq!(b.send(&udp4(1000, 1), 0).departure, 2 * MS);
    let forgotten = || {
        b.maps
            .counters_of(1, abi::EMUD_UP)
            .unwrap()
            .instances_forgotten
    };
    assert_eq!(forgotten(), 0);
    // Replaces port 2, but with an empty queue.
    assert_eq!(b.send(&udp4(1000, 5), 0).departure, MS);
    assert_eq!(forgotten(), 1);
    assert_eq!(
        b.send(&udp4(1000, 1), 0).departure,
        3 * MS,
        "port 1 is still there"
    );
    assert_eq!(
        b.send(&udp4(1000, 2), 0).departure,
        MS,
        "port 2 begins again"
    );
    // Its ring, too: three fit independent of the old content.
    let fits = (0..5).filter(|_| b.send(&udp4(1000, 2), 0).verdict == TC_ACT_UNSPEC);
    assert_eq!(fits.count(), 2);
}

#[test]
fn instances_lose_and_order_for_themselves() {
    let b = bench(
        "[link]\n[links.a]\nloss = { model = \"every\", n = 3 }\n\
         [[rule]]\nlink = \"a\"\nper = \"source\"\n",
    );
    let from = |host: u8| udp(move |f| f[29] = host);
    for n in 1..=9 {
        for host in [1, 2] {
            let lost = b.send(&from(host), n * 1000).verdict == TC_ACT_STOLEN;
            assert_eq!(lost, n % 3 == 0, "packet {n} of host {host}");
        }
    }
}

#[test]
fn a_limit_in_packets_is_exact_with_two_senders_at_once() {
    // At the boundary of the ring's pieces, one sender finds that the other has advanced the queue.
    for limit in [64usize, 1000, 5000] {
        let b = bench(&format!("[link]\nrate = \"8Mbit\"\nqueue = \"{limit}p\"\n"));
        let sender = || {
            let fits = (0..limit).filter(|_| b.send(&udp4(100, 1), FAR).verdict == TC_ACT_UNSPEC);
            fits.count()
        };
        let admitted = std::thread::scope(|scope| {
            let other = scope.spawn(sender);
            sender() + other.join().unwrap()
        });
        assert_eq!(admitted, limit);
    }
}
