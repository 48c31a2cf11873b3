// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules, shared queues and matrices as written.

use std::net::IpAddr;

use emud::profile::{Match, Pair, Per, Ports, Profile, Rule, Target};
use proptest::prelude::*;

use super::mistakes::mistakes;
use super::{parse, set};

#[test]
fn a_rule_means_what_it_says() {
    let profile = parse(
        "instances = 100\n[link]\n[links.lte]\n\
         [[rule]]\nlink = \"lte\"\ndirection = \"down\"\nper = \"pair\"\n\
         match = { source = \"10.0.0.0/8\", destination = \"10.1.2.3\", protocol = \"TCP\", cgroup = \"/app.slice/x/\", \
         source-port = 80, destination-port = \"1000-2000\", dscp = \"af41\", mark = \"0x10/0xff\", \
         vlan = 7, source-mac = \"2:0:0:0:0:1\", destination-mac = \"02-00-00-00-00-0A\" }\n\
         [[rule]]\nmatch = { protocol = 58, icmp-type = \"128\", tos = \"0x10\" }\nlink = \"none\"\n\
         [[rule]]\nlink = \"link\"\n",
    );
    assert_eq!(profile.instances, 100);
    let all = Match {
        source: Some("10.0.0.0/8".parse().unwrap()),
        destination: Some("10.1.2.3/32".parse().unwrap()),
        host: None,
        answer: None,
        cgroup: Some("app.slice/x".to_owned()),
        protocol: Some(6),
        source_port: Some(Ports {
            first: 80,
            last: 80,
        }),
        destination_port: Some(Ports {
            first: 1000,
            last: 2000,
        }),
        dscp: Some(34),
        tos: None,
        mark: Some((0x10, 0xff)),
        vlan: Some(7),
        icmp_type: None,
        source_mac: Some([2, 0, 0, 0, 0, 1]),
        destination_mac: Some([2, 0, 0, 0, 0, 10]),
    };
    let icmp = Match {
        protocol: Some(58),
        icmp_type: Some(128),
        tos: Some((0x10, 0xff)),
        ..Match::default()
    };
    let rule = |matches, target| Rule {
        class: None,
        matches,
        target,
        direction: None,
        per: None,
    };
    let first = Rule {
        class: None,
        direction: Some(emud::abi::EMUD_DOWN),
        per: Some(Per::Pair),
        ..rule(all, Target::Named("lte".to_owned()))
    };
    assert_eq!(
        profile.rules,
        [
            first,
            rule(icmp, Target::Untouched),
            rule(Match::default(), Target::Own)
        ]
    );
    assert_eq!(Profile::parse(&profile.to_toml(), "x").unwrap(), profile);
    let reversed = profile.clone().reversed();
    assert_eq!(reversed.rules[0].direction, Some(emud::abi::EMUD_UP));
    let changed = set(&profile, &["rule=[{link=\"lte\"}]"]).unwrap();
    assert_eq!(
        changed.rules,
        [rule(Match::default(), Target::Named("lte".to_owned()))]
    );
    assert_eq!(set(&changed, &["rule=none"]).unwrap().rules, []);
}

#[test]
fn what_is_wrong_with_a_rule_is_shown_where_it_is() {
    for (matches, underlined, title, help) in [
        (
            "source = \"10.0.0.1/8\"",
            "\"10.0.0.1/8\"",
            "has host bits set",
            "10.0.0.0/8",
        ),
        (
            "source = \"10.0.0\"",
            "\"10.0.0\"",
            "not an address",
            "10.0.0.0/8",
        ),
        ("protocol = \"tpc\"", "\"tpc\"", "no protocol", "\"tcp\""),
        ("protocol = 256", "256", "no protocol", "0 to 255"),
        ("source-port = \"9-5\"", "\"9-5\"", "end before", "5-9"),
        ("source-port = 65536", "65536", "not a port", "65535"),
        ("dscp = \"af14\"", "\"af14\"", "no DSCP", "af43"),
        ("dscp = 64", "64", "no DSCP", "0 to 63"),
        ("dscp = 1, tos = 4", "tos", "both", "keep one"),
        (
            "mark = \"0x11/0xf0\"",
            "\"0x11/0xf0\"",
            "outside of its mask",
            "0x10/0xf0",
        ),
        (
            "tos = \"0x11/0x10\"",
            "\"0x11/0x10\"",
            "outside of its mask",
            "0x10/0x10",
        ),
        ("tos = 256", "256", "cannot be", "all bits are 0xff"),
        ("vlan = 4096", "4096", "cannot be", "4095"),
        ("source-mac = \"1:2\"", "\"1:2\"", "Ethernet", "02:00"),
        (
            "protocol = \"icmp\", source-port = 1",
            "source-port",
            "no `source-port`",
            "tcp",
        ),
        (
            "protocol = \"tcp\", icmp-type = 1",
            "icmp-type",
            "no `icmp-type`",
            "icmp",
        ),
        (
            "source = \"10.0.0.0/8\", destination = \"::/0\"",
            "\"::/0\"",
            "IPv4 and an IPv6",
            "two rules",
        ),
        (
            "cgroup = \"app\"",
            "\"app\"",
            "not the path",
            "/proc/PID/cgroup",
        ),
        (
            "cgroup = \"/a/../b\"",
            "\"/a/../b\"",
            "not the path",
            "root of cgroup v2",
        ),
        (
            "cgroup = \"/sys/fs/cgroup/unified/a/b\"",
            "\"/sys/fs/cgroup/unified/a/b\"",
            "begins with a mount point",
            "cgroup = \"/a/b\"",
        ),
        ("sorce = \"10.0.0.0/8\"", "sorce", "no key", "source"),
    ] {
        let text = format!("[link]\n[[rule]]\nmatch = {{ {matches} }}\nlink = \"link\"\n");
        shown(&text, underlined, title, help);
    }
    let rule = |keys: &str| format!("[link]\n[links.lte]\n[[rule]]\n{keys}\n");
    shown(&rule("link = \"ltd\""), "\"ltd\"", "no link", "lte");
    shown(&rule("match = {}"), "[[rule]]", "without `link`", "none");
    shown(
        &rule("link = \"none\"\nper = \"flow\""),
        "\"flow\"",
        "`per`",
        "leave it out",
    );
    shown(
        &rule("link = \"lte\"\ndirection = \"left\""),
        "\"left\"",
        "direction",
        "up",
    );
    shown(
        &rule("link = \"lte\"\nper = \"host\""),
        "\"host\"",
        "cannot be",
        "source",
    );
    shown("rule = 1\n[link]\n", "1", "cannot be", "[[rule]]");
    shown(
        "[link]\n[links.none]\n",
        "none",
        "cannot be called",
        "another name",
    );
    shown("instances = 0\n[link]\n", "0", "instances", "65536");
    shown(
        "[link]\nrate = \"1Mbit\"\nqueue = \"2000p\"\n[[rule]]\nlink = \"link\"\nper = \"flow\"\n",
        "\"flow\"",
        "2000 packets",
        "bytes or time",
    );
    let groups =
        (0..17).map(|n| format!("[[rule]]\nmatch = {{ cgroup = \"/{n}\" }}\nlink = \"link\"\n"));
    let text = format!("[link]\n{}", groups.collect::<String>());
    shown(
        &text,
        "[[rule]]",
        "more than 16 control groups",
        "common parent",
    );
    let names =
        (0..17).map(|n| format!("[[rule]]\nmatch = {{ host = \"h{n}\" }}\nlink = \"link\"\n"));
    let text = format!("[link]\n{}", names.collect::<String>());
    shown(
        &text,
        "[[rule]]",
        "more than 16 control groups and names",
        "counts as one name",
    );
    let rule = |matches| format!("[link]\n[[rule]]\nmatch = {{ {matches} }}\nlink = \"link\"\n");
    for name in ["192.0.2.1", "a..b", "ä.example.org", ""] {
        let text = rule(format!("answer = \"{name}\""));
        shown(
            &text,
            &format!("\"{name}\""),
            "is not a name of DNS",
            "xn--",
        );
    }
    let both = "answer = \"a.example.org\", source = \"10.0.0.1\"".to_owned();
    shown(&rule(both), "answer", "beside `source`", "keep one");
    // Each range has masks that differ from the previous one's.
    let ranges = (0..4).map(|n| {
        format!(
            "[[rule]]\nmatch = {{ source-port = \"{}-65534\", vlan = {n} }}\nlink = \"link\"\n",
            2 * n + 1
        )
    });
    let many: String = ranges.collect();
    let many = many
        .replace("vlan = 1", "dscp = 1")
        .replace("vlan = 2", "mark = 2");
    let found = mistakes(Profile::parse(&format!("[link]\n{many}"), "x"));
    let first = found.iter().next().unwrap();
    assert!(first.title.contains("32"), "{found}");
    assert!(first.help.contains("power of two"), "{found}");
}

#[track_caller]
fn shown(text: &str, underlined: &str, title: &str, help: &str) {
    let found = mistakes(Profile::parse(text, "x.toml"));
    let one = found.iter().next().unwrap();
    assert_eq!(found.iter().count(), 1, "{found}");
    assert!(found.underlined(one).contains(underlined), "{found}");
    assert!(
        one.title.contains(title) && one.help.contains(help),
        "{found}"
    );
    assert!(found.to_string().contains("x.toml:"));
}

#[test]
fn links_that_share_a_queue_take_what_one_of_them_gives() {
    let text = "[up]\nshared = \"x\"\ndelay = \"1ms\"\n[down]\nrate = \"9Mbit\"\n\
                [links.a]\nshared = \"x\"\n[links.b]\nshared = \"x\"\n\
                rate = { rate = \"1Mbit\", mpu = 64 }\nqueue = \"50p\"\n";
    let profile = parse(text);
    for link in [&profile.up, &profile.links[0].up, &profile.links[1].down] {
        assert_eq!(
            (link.rate, link.wire.mpu, link.queue.packets),
            (Some(1_000_000), 64, Some(50))
        );
    }
    assert_eq!(profile.down.rate, Some(9_000_000));
    // In the down direction the profile's own link is not one of them.
    assert_eq!(
        [0, 1, 2].map(|n| profile.bottleneck(emud::abi::EMUD_UP, n)),
        [0, 0, 0]
    );
    assert_eq!(
        [0, 1, 2].map(|n| profile.bottleneck(emud::abi::EMUD_DOWN, n)),
        [0, 1, 1]
    );
    assert_eq!(Profile::parse(&profile.to_toml(), "x").unwrap(), profile);
    // It is changed where it is printed: at the first of them.
    let faster = set(&profile, &["up.rate=2Mbit"]).unwrap();
    assert_eq!(faster.links[1].up.rate, Some(2_000_000));
    let wrong = format!("{text}[links.c]\nrate = \"2Mbit\"\nshared = \"x\"\n");
    let found = mistakes(Profile::parse(&wrong, "x.toml"));
    let both = found.to_string();
    assert!(both.contains("have different `rate`"), "{both}");
    assert!(
        both.contains("\"2Mbit\"") && both.contains("\"1Mbit\""),
        "both positions: {both}"
    );
}

#[test]
fn names_are_written_as_they_are_read() {
    for path in [
        "system-serial\\x2dgetty.slice",
        "a\\u0041",
        "a\"b",
        "a'\\\"b",
        "a\tb",
    ] {
        let text = toml::Value::String(format!("/system.slice/{path}"));
        let profile = parse(&format!(
            "[link]\n[[rule]]\nmatch = {{ cgroup = {text} }}\nlink = \"link\"\n\
             [[rule]]\nmatch = {{ host = 'a\\b' }}\nlink = \"link\"\n"
        ));
        let read = profile.rules[0].matches.cgroup.as_deref();
        assert_eq!(read, Some(format!("system.slice/{path}").as_str()));
        assert_eq!(Profile::parse(&profile.to_toml(), "x").unwrap(), profile);
    }
}

#[test]
fn a_link_that_leaves_a_shared_queue_takes_nothing_from_the_others() {
    let own = "rate = \"10Mbit\"\nqueue = \"50p\"\n";
    let profile = parse(&format!(
        "[link]\n{own}shared = \"u\"\n[links.a]\nshared = \"u\"\n[links.b]\nshared = \"u\"\n\
         [links.c]\nrate = \"2Mbit\"\nqueue = \"9p\"\nshared = \"v\"\n[links.d]\nshared = \"v\"\n"
    ));
    let after = |changes: &[&str]| {
        let links = set(&profile, changes).unwrap();
        let up = links.links_of(emud::abi::EMUD_UP);
        let all = up.map(|link| (link.rate.unwrap_or(0) / 1_000_000, link.queue.packets));
        all.map(|(rate, packets)| (rate, packets.unwrap_or(0)))
            .collect::<Vec<_>>()
    };
    let (u, v) = ((10, 50), (2, 9));
    for leaves in ["shared=none", "links.a.shared=none", "links.b.shared=none"] {
        assert_eq!(after(&[leaves]), [u, u, u, v, v], "{leaves}");
    }
    // The rest is still one queue, and a link takes that of the queue it enters.
    assert_eq!(
        after(&["shared=none", "links.a.rate=20Mbit"]),
        [u, (20, 50), (20, 50), v, v]
    );
    assert_eq!(
        after(&["links.b.shared=none", "rate=20Mbit"]),
        [(20, 50), (20, 50), u, v, v]
    );
    assert_eq!(after(&["links.b.shared=v"]), [u, u, v, v, v]);
    assert_eq!(
        after(&["links.a.rate=5Mbit", "links.a.shared=none"])[1],
        (5, 50)
    );
}

#[test]
fn pairs_are_read_from_csv_and_printed_as_such() {
    let parse = |text: &str| Pair::parse(text.as_bytes(), "p.csv");
    let pair = Pair {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        rate: Some(10_000_000),
        delay_ns: Some(20_000_000),
        loss: Some(0.01),
    };
    let bare = Pair {
        source: "2001:db8::1".parse().unwrap(),
        destination: "2001:db8::2".parse().unwrap(),
        rate: None,
        delay_ns: None,
        loss: None,
    };
    let want = vec![pair, bare];
    let rows = "10.0.0.1,10.0.0.2,10Mbit,20ms,1%\n2001:db8::1, 2001:db8::2,,,\n";
    assert_eq!(parse(rows).unwrap(), want);
    let named = format!("# mine\nsource,destination,rate,delay,loss\n{rows}");
    assert_eq!(parse(&named).unwrap(), want);
    let other = "loss,destination,source\n1%,10.0.0.2,10.0.0.1\n";
    assert_eq!(
        parse(other).unwrap(),
        [Pair {
            rate: None,
            delay_ns: None,
            ..pair
        }]
    );
    assert_eq!(parse("2001:db8::1,2001:db8::2\n").unwrap(), [bare]);
    let printed: String = want.iter().map(Pair::to_csv).collect();
    assert_eq!(parse(&(Pair::csv_header() + &printed)).unwrap(), want);
    for (text, place, title) in [
        (
            "10.0.0.1,10.0.0.2\n10.0.0.1,10.0.0\n",
            "p.csv:2:",
            "not an address",
        ),
        ("10.0.0.1,10.0.0.2,5\n", "p.csv:1:", "unit"),
        ("10.0.0.1,10.0.0.2,,1ms,2%,3\n", "p.csv:1:", "6 fields"),
        (
            "10.0.0.1,10.0.0.2\n\n10.0.0.1,10.0.0.2\n",
            "p.csv:3:",
            "twice",
        ),
        ("10.0.0.1,::1\n", "p.csv:1:", "IPv6"),
        ("::,::1\n::,::\n", "p.csv:2:", "both addresses are `::`"),
        ("source,rate\n10.0.0.1,1Mbit\n", "p.csv:1:", "destination"),
        ("source,destination,jitter\n", "p.csv:1:", "jitter"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(
            error.contains(place) && error.contains(title),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_matrix_has_room_or_says_why_not() {
    let profile = parse("[link]\n[links.a]\n[matrix]\nlink = \"a\"\ncapacity = 70\n");
    let matrix = profile.matrix.clone().unwrap();
    assert_eq!((matrix.link.as_deref(), matrix.capacity), (Some("a"), 70));
    assert_eq!(Profile::parse(&profile.to_toml(), "x").unwrap(), profile);
    let with = |queue: &str, capacity: u32| {
        let text = format!("[link]\nqueue = \"{queue}\"\n[matrix]\ncapacity = {capacity}\n");
        Profile::parse(&text, "x.toml")
    };
    with("256p", 32_768).unwrap();
    with("128p", 65_536).unwrap();
    with("1MB", 65_536).unwrap();
    for (queue, capacity, help) in [("257p", 1, "256p"), ("256p", 65_536, "128p")] {
        let found = mistakes(with(queue, capacity));
        assert!(found.iter().next().unwrap().help.contains(help), "{found}");
        assert!(found.to_string().contains("x.toml:3:"), "{found}");
    }
    for queue in ["{ aqm = \"codel\" }", "{ ecn = \"5ms\" }"] {
        let text = format!("[link]\nqueue = {queue}\n[matrix]\ncapacity = 1\n");
        shown(&text, "matrix", "without `rate`", "give it a `rate`");
        parse(&text.replace("[link]", "[link]\nrate = \"1Mbit\""));
    }
    // RIO remembers a thousand packets, if the queue does not say how many.
    let rio = |limit: &str, capacity: u32| {
        let queue = "aqm = \"rio\", min = \"10kB\", max = \"30kB\", assured-min = \"20kB\", assured-max = \"60kB\"";
        let link = format!("[link]\nrate = \"9Mbit\"\nqueue = {{ {queue}{limit} }}\n");
        Profile::parse(
            &format!("{link}[matrix]\ncapacity = {capacity}\n"),
            "x.toml",
        )
    };
    rio(", limit = \"128p\"", 65_536).unwrap();
    let found = mistakes(rio("", 1)).to_string();
    assert!(found.contains("a queue of 1000 packets"), "{found}");
    shown(
        "[link]\n[matrix]\n",
        "matrix",
        "without pairs",
        "emud apply",
    );
    shown(
        "[link]\n[matrix]\ncapacity = 65537\n",
        "65537",
        "capacity",
        "65536",
    );
    shown(
        "[link]\n[matrix]\nlink = \"b\"\ncapacity = 1\n",
        "\"b\"",
        "no link",
        "[links.NAME]",
    );
    shown(
        "[link]\n[matrix]\nfile = \"/nowhere.csv\"\n",
        "nowhere",
        "/nowhere.csv",
        "folder",
    );
}

/// Delays below zero do not exist: to cut them makes the mean another one.
#[test]
fn a_pairs_delay_is_as_long_as_the_jitter_goes_below() {
    let pair = |ms: u64| Pair {
        source: IpAddr::from([10, 0, 0, 1]),
        destination: IpAddr::from([10, 0, 0, 2]),
        rate: None,
        delay_ns: Some(ms * 1_000_000),
        loss: None,
    };
    for (jitter, short, long) in [
        ("jitter = \"10ms\"", 9, 10),
        ("sd = \"10ms\"", 29, 31),
        ("sd = \"10ms\", distribution = \"pareto\"", 5, 6),
        ("share = \"50%\"", 0, 0),
    ] {
        let delay = format!("delay = {{ mean = \"100ms\", {jitter} }}");
        let profile = parse(&format!(
            "[link]\n[links.a]\n{delay}\n[matrix]\nlink = \"a\"\ncapacity = 9\n"
        ));
        assert_eq!(profile.too_short(&[pair(long)]), None, "{jitter}");
        let wrong = [pair(long), pair(short)];
        let found = profile.too_short(&wrong).map(|(pair, _)| *pair);
        assert_eq!(found, (short < long).then(|| pair(short)), "{jitter}");
    }
}

/// Rules to one of these links.
pub fn rules(links: Vec<String>) -> impl Strategy<Value = Vec<Rule>> {
    let mut targets = vec![Target::Own, Target::Untouched];
    targets.extend(links.into_iter().map(Target::Named));
    let per = prop::sample::select(vec![Per::Flow, Per::Source, Per::Destination, Per::Pair]);
    let direction = prop::sample::select(vec![emud::abi::EMUD_UP, emud::abi::EMUD_DOWN]);
    let rule = (
        matches(),
        prop::sample::select(targets),
        prop::option::of(direction),
        prop::option::of(per),
    );
    let rule = rule.prop_map(|(matches, target, direction, per)| Rule {
        class: None,
        matches,
        per: per.filter(|_| target != Target::Untouched),
        target,
        direction,
    });
    prop::collection::vec(rule, 0..4)
}

fn matches() -> impl Strategy<Value = Match> {
    let nets = (any::<bool>(), any::<[u8; 16]>(), 0..=32u8).prop_map(|(v6, bytes, length)| {
        let [a, b, c, d, ..] = bytes;
        let (address, length) = match v6 {
            true => (IpAddr::from(bytes), 4 * length),
            false => (IpAddr::from([a, b, c, d]), length),
        };
        ipnet::IpNet::new(address, length).unwrap().trunc()
    });
    // With two ranges there are too many masks.
    let ports = (0..=65_535u16).prop_map(|p| Ports { first: p, last: p });
    (
        prop::option::of(nets),
        any::<bool>(),
        prop::option::of(ports),
        prop::option::of(prop_oneof![
            any::<(u8, u8)>().prop_map(|(v, m)| (None, Some((v & m, m)))),
            (0..64u8).prop_map(|dscp| (Some(dscp), None)),
        ]),
        prop::option::of((any::<u32>(), any::<u32>()).prop_map(|(v, m)| (v & m, m))),
        prop::option::of(0..4096u16),
        prop::option::of(any::<[u8; 6]>()),
        prop::option::of(any::<u8>()),
        // systemd escapes the names of its units.
        prop::option::of("a/[a-z\\\\\"'u0-9\u{e9}]{1,9}"),
    )
        .prop_map(
            |(net, from, ports, tos, mark, vlan, mac, number, cgroup)| Match {
                source: net.filter(|_| from),
                destination: net.filter(|_| !from),
                // Beside addresses it is a mistake; src/profile/hosts.rs has its tests.
                host: None,
                answer: mac
                    .filter(|_| net.is_none())
                    .map(|_| "api.example.org".to_owned()),
                cgroup,
                protocol: number.filter(|_| ports.is_none()),
                source_port: ports.filter(|_| from),
                destination_port: ports.filter(|_| !from),
                dscp: tos.and_then(|(dscp, _)| dscp),
                tos: tos.and_then(|(_, tos)| tos),
                mark,
                vlan,
                icmp_type: None,
                source_mac: mac.filter(|_| !from),
                destination_mac: mac.filter(|_| from),
            },
        )
}
