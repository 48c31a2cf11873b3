// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scripts of tc with classes, filters and changes as profiles.

use emud::abi::EMUD_UP;
use emud::convert::import::{self, Header, Imported};
use emud::profile::{Rule, Target};

use super::import_netem::import;
use super::parse;

/// The direction, the keys and the target of its rules.
fn rules(imported: &Imported) -> Vec<String> {
    let rules = parse(&imported.toml).rules;
    let line = |rule: &Rule| {
        let to = match &rule.target {
            Target::Named(name) => name,
            Target::Own => "link",
            Target::Untouched => "none",
        };
        let direction = match rule.direction {
            Some(EMUD_UP) => "up",
            Some(_) => "down",
            None => "both",
        };
        format!("{direction}: {}: {to}", rule.matches.keys())
    };
    rules.iter().map(line).collect()
}

fn filter(rest: &str) -> String {
    format!("tc filter add dev eth0 protocol ip {rest}\n")
}

const PRIO: &str = "tc qdisc add dev eth0 root handle 1: prio\n\
    tc qdisc add dev eth0 parent 1:3 handle 30: netem delay 200ms\n";
/// Of the ToS that prio sends to its third band.
const BULK: &str = "up: source = \"0.0.0.0/0\", tos = \"0x8/0x18\": class-1-3";
const SSH: &str = "source = \"0.0.0.0/0\", destination-port = \"22\"";

/// In the kernel the first filter that matches wins, also one to a class that has no netem.
#[test]
fn a_filter_to_a_class_without_a_netem_is_a_rule() {
    let script = [
        PRIO,
        &filter("parent 1: prio 1 u32 match ip dport 22 0xffff flowid 1:1"),
        &filter("parent 1: prio 2 u32 match ip dst 10.0.0.0/8 flowid 1:3"),
        &filter("parent 1: prio 3 u32 match ip dport 80 0xffff flowid 1:2"),
    ];
    let imported = import(&script.concat());
    assert_eq!(imported.warnings, [""; 0]);
    let want = [
        format!("up: {SSH}: none"),
        "up: destination = \"10.0.0.0/8\": class-1-3".to_owned(),
        format!("up: {}: none", SSH.replace("22", "80")),
        BULK.to_owned(),
    ];
    assert_eq!(rules(&imported), want);
    // The last one has no effect where nothing of the rest is emulated.
    let htb = script.concat().replace("handle 1: prio", "handle 1: htb");
    let imported = import(&htb);
    assert_eq!(rules(&imported), want[..2]);
}

/// prio_classify() sends what no filter takes to the band of its priority, which is that of its ToS.
#[test]
fn prio_without_a_filter() {
    let netem = |class: &str, ms: u32| {
        format!("tc qdisc add dev eth0 parent {class} handle {ms}: netem delay {ms}ms\n")
    };
    let bands = |options: &str| format!("tc qdisc add dev eth0 root handle 1: prio {options}\n");
    let of = |script: &[String]| {
        let imported = import(&script.concat());
        assert_eq!(imported.warnings, [""; 0]);
        let up = parse(&imported.toml).up;
        (up.delay.mean_ns / 1_000_000, rules(&imported))
    };
    let tos =
        |bits: &str, to: &str| format!("up: source = \"0.0.0.0/0\", tos = \"{bits}/0x18\": {to}");
    let ssh = filter("parent 1: u32 match ip dport 22 0xffff flowid 1:1");
    // Best effort is in the second band, so only that one is the link.
    let (delay, found) = of(&[bands(""), netem("1:2", 20), ssh.clone()]);
    let none = format!("up: {SSH}: none");
    assert_eq!(
        (delay, found),
        (20, vec![none, tos("0x10", "none"), tos("0x8", "none")])
    );
    let (delay, found) = of(&[bands(""), netem("1:3", 30), netem("1:1", 10), ssh.clone()]);
    let first = format!("up: {SSH}: class-1-1");
    let (fast, bulk) = (tos("0x10", "class-1-1"), tos("0x8", "class-1-3"));
    assert_eq!((delay, found), (0, vec![first, fast, bulk]));
    let all_first = bands("bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1");
    let (delay, found) = of(&[all_first, netem("1:1", 10)]);
    assert_eq!((delay, found), (10, vec![]));
    // The first number of a flowid has no effect, nor has one above the bands.
    let http = |class: &str| {
        filter(&format!(
            "parent 1: u32 match ip dport 80 0xffff flowid {class}"
        ))
    };
    for (class, to) in [
        ("2:1", "none"),
        ("7:2", "link"),
        ("1:9", "link"),
        ("1:0", "link"),
    ] {
        let script = [
            bands(""),
            netem("1:2", 20),
            http(class),
            ssh.replace("u32", "prio 1 u32"),
        ];
        let (_, found) = of(&script);
        let want = format!("up: {}: {to}", SSH.replace("22", "80"));
        assert_eq!(found[1], want, "{class}: {found:?}");
        assert_eq!(found.len(), 4, "{class}: {found:?}");
    }
}

/// A class that cannot take packets leaves them to the default one.
#[test]
fn filters_beside_a_default_class_with_a_netem() {
    let script = [
        "tc qdisc add dev eth0 root handle 1: htb default 30\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:30 htb rate 95mbit\n\
         tc qdisc add dev eth0 parent 1:30 handle 30: netem delay 20ms\n",
        &filter("parent 1: prio 1 u32 match ip dport 22 0xffff flowid 1:10"),
        &filter("parent 1: prio 2 u32 match ip dst 10.1.0.0/16 flowid 1:1"),
        &filter("parent 1: prio 3 u32 match ip dst 10.2.0.0/16 flowid 1:30"),
        &filter("parent 1: prio 4 u32 match ip dst 10.0.0.0/8 flowid 1:10"),
        &filter("parent 1: prio 5 u32 match ip dst 11.0.0.0/8 flowid 1:30"),
    ];
    let imported = import(&script.concat());
    assert_eq!(
        imported.warnings,
        ["the htb of 5000000 bit/s in class 1:10, which has no netem"]
    );
    let want = [
        format!("up: {SSH}: none"),
        "up: destination = \"10.1.0.0/16\": link".to_owned(),
        "up: destination = \"10.2.0.0/16\": link".to_owned(),
        "up: destination = \"10.0.0.0/8\": none".to_owned(),
    ];
    assert_eq!(rules(&imported), want);
    assert_eq!(parse(&imported.toml).up.delay.mean_ns, 20_000_000);
}

/// What no filter takes passes without an emulated link: its limiter is not lost in silence.
#[test]
fn a_default_class_with_a_rate_and_no_netem_is_said() {
    let of = |default: &str| {
        let script = [
            &format!("tc qdisc add dev eth0 root handle 1: htb default {default}\n"),
            "tc class add dev eth0 parent 1: classid 1:2 htb rate 9mbit\n\
             tc class add dev eth0 parent 1: classid 1:3 htb rate 2mbit\n\
             tc qdisc add dev eth0 parent 1:2 netem delay 20ms\n",
            &filter("parent 1: prio 1 u32 match ip dport 22 0xffff flowid 1:2"),
        ];
        let imported = import(&script.concat());
        assert_eq!(rules(&imported), [format!("up: {SSH}: class-1-2")]);
        imported.warnings
    };
    assert_eq!(
        of("3"),
        ["the htb of 2000000 bit/s in class 1:3, which has no netem"]
    );
    // No packet goes there.
    assert_eq!(of("4"), [""; 0]);
}

/// Its packets have met another filter before.
#[test]
fn a_filter_of_an_inner_qdisc_is_not_a_rule() {
    let script = [
        "tc qdisc add dev eth0 root handle 1: prio\n\
         tc qdisc add dev eth0 parent 1:3 handle 30: prio\n\
         tc qdisc add dev eth0 parent 30:1 handle 31: netem delay 200ms\n",
        &filter("parent 1: prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:3"),
        &filter("parent 30: prio 1 u32 match ip dport 22 0xffff flowid 30:1"),
    ];
    let imported = import(&script.concat());
    assert_eq!(rules(&imported), [""; 0]);
    for said in [
        "a filter to class 1:3: ",
        "a filter to class 30:1: it is of 30:, not of the root",
    ] {
        let found = imported.warnings.iter().any(|w| w.starts_with(said));
        assert!(found, "{said}: {:?}", imported.warnings);
    }
    // A bucket between a class and its netem has one class itself.
    let script = [
        "tc qdisc add dev eth0 root handle 1: prio\n\
         tc qdisc add dev eth0 parent 1:3 handle 30: tbf rate 1mbit burst 10k latency 50ms\n\
         tc qdisc add dev eth0 parent 30:1 handle 31: netem delay 200ms\n",
        &filter("parent 1: prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:3"),
    ];
    let imported = import(&script.concat());
    assert_eq!(
        rules(&imported),
        ["up: destination = \"10.0.0.0/8\": class-1-3", BULK]
    );
    let profile = parse(&imported.toml);
    assert_eq!(
        (profile.up.rate, profile.links[0].up.rate),
        (None, Some(1_000_000))
    );
}

/// What filters a qdisc goes with it.
#[test]
fn filters_go_with_their_qdisc() {
    let http = |parent: &str, class: &str| {
        filter(&format!(
            "{parent} prio 5 u32 match ip dport 80 0xffff flowid {class}"
        ))
    };
    let ssh = filter("parent 1: prio 1 u32 match ip dport 22 0xffff flowid 1:3");
    let to_netem = format!("up: {SSH}: class-1-3");
    for parent in ["parent 1:", "root", "parent 7:"] {
        let script = [
            "tc qdisc add dev eth0 root handle 1: htb\n",
            &http(parent, "1:3"),
            // Of another device.
            &ssh.replace("eth0", "eth1"),
            "tc qdisc del dev eth0 root\n",
            PRIO,
            &ssh,
        ];
        let imported = import(&script.concat());
        assert_eq!(imported.warnings, [""; 0], "{parent}");
        assert_eq!(rules(&imported), [&to_netem, BULK], "{parent}");
    }
    // An option that changes leaves them.
    let changed = PRIO.to_owned() + &ssh + "tc qdisc change dev eth0 root handle 1: prio bands 4\n";
    assert_eq!(rules(&import(&changed)), [&to_netem, BULK]);
    // Of an inner qdisc only its own.
    let inner = "tc qdisc add dev eth0 parent 1:1 handle 10: prio\n";
    let script = [
        PRIO,
        &ssh,
        inner,
        &http("parent 10:", "10:1"),
        &inner.replace("10:", "20:"),
    ];
    let imported = import(&script.concat());
    assert_eq!(imported.warnings, [""; 0]);
    assert_eq!(rules(&imported), [&to_netem, BULK]);
    // A tree forgets them, too.
    let tree = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                tc class add dev eth0 parent 1: classid 1:2 htb rate 1mbit\n";
    let to_second = ssh.replace("1:3", "1:2");
    let script = [tree, &http("parent 1:", "1:2"), tree, &to_second].concat();
    let imported = import::tc(&script, "x", Header::Up, None, Some(9_000_000), &|_| None).unwrap();
    assert_eq!(rules(&imported), [format!("up: {SSH}: class-1-2")]);
}

/// Which filters one that is deleted leaves depends on the kernel.
#[test]
fn a_deleted_filter_is_said() {
    let ssh = filter("parent 1: prio 1 u32 match ip dport 22 0xffff flowid 1:3");
    let of = |before: &str, del: &str| import(&[before, PRIO, &ssh, del].concat()).warnings;
    let said = "`tc filter del`: the filters of eth0 in front of it are still there";
    assert_eq!(of("", "tc filter del dev eth0 parent 1: prio 1\n"), [said]);
    assert_eq!(of("", "tc f d dev eth0\n"), [said]);
    for (before, del) in [
        ("tc filter del dev eth0\n", ""),
        ("", "tc filter del dev eth1\n"),
        ("", "tc filter del dev eth0 parent ffff:\n"),
        ("", "tc filter del dev eth0 ingress\n"),
    ] {
        assert_eq!(of(before, del), [""; 0], "{before}{del}");
    }
}

/// A change without a handle, or by its handle alone, leaves the qdisc with those below it.
#[test]
fn a_change_keeps_the_handle() {
    let add = "tc qdisc add dev eth0 root handle 1: netem delay 5ms\n\
               tc qdisc add dev eth0 parent 1:1 handle 2: tbf rate 1mbit burst 10k latency 50ms\n";
    for (change, rate) in [
        ("change dev eth0 root netem delay 9ms", Some(1_000_000)),
        ("replace dev eth0 root netem delay 9ms", Some(1_000_000)),
        ("change dev eth0 handle 1: netem delay 9ms", Some(1_000_000)),
        // A new netem.
        ("replace dev eth0 root handle 3: netem delay 9ms", None),
        ("add dev eth0 root handle 1: netem delay 9ms", None),
    ] {
        let up = parse(&import(&format!("{add}tc qdisc {change}\n")).toml).up;
        assert_eq!((up.delay.mean_ns, up.rate), (9_000_000, rate), "{change}");
    }
    // What was below a qdisc goes with it.
    let script = "tc qdisc add dev eth0 root handle 1: prio\n\
                  tc qdisc add dev eth0 parent 1:3 handle 30: tbf rate 1mbit burst 10k latency 50ms\n\
                  tc qdisc add dev eth0 parent 30:1 netem delay 200ms\n\
                  tc qdisc replace dev eth0 root netem delay 9ms\n";
    let up = parse(&import(script).toml).up;
    assert_eq!((up.delay.mean_ns, up.rate), (9_000_000, None));
}

/// tc turns `latency` into bytes: those of this time at the rate, and the burst.
#[test]
fn the_latency_of_a_bucket_is_a_limit_in_bytes() {
    let queue = |bucket: &str| {
        let imported = import(&format!(
            "tc qdisc add dev eth0 root handle 1: netem delay 1ms\n\
             tc qdisc add dev eth0 parent 1:1 tbf {bucket}"
        ));
        (parse(&imported.toml).up.queue.bytes, imported.warnings)
    };
    let (bytes, warnings) = queue("rate 8mbit burst 10000 latency 50ms");
    assert_eq!((bytes, warnings), (Some(60_000), vec![]));
    // In any order, and the limit wins.
    let (bytes, _) = queue("latency 50ms limit 9000 burst 10000 rate 8mbit");
    assert_eq!(bytes, Some(9_000));
    // The least of both buckets.
    let (bytes, _) = queue("rate 8mbit burst 20000 latency 10ms peakrate 16mbit mtu 1500");
    assert_eq!(bytes, Some(21_500));
    let (bytes, warnings) = queue("rate 80kbit burst 100 latency 10ms");
    assert_eq!(bytes, Some(1514));
    let said = "a limit of 200 bytes: this queue has room for one packet";
    assert_eq!(warnings, [said]);
}

/// netem_change() of the kernel: what tc does not send stays.
#[test]
fn a_change_keeps_distribution_slots_and_marks() {
    let add = "tc qdisc add dev eth0 root netem delay 100ms 10ms dist normal slot 5ms 10ms loss 1% ecn corr 1%\n";
    for (change, normal, slot_ns, marks, corrupts, kept) in [
        ("delay 50ms 5ms loss 2%", true, 10_000_000, true, 0.01, 4),
        // Without a jitter a table has no effect, without a loss there is nothing to mark.
        ("delay 50ms", false, 10_000_000, false, 0.01, 2),
        (
            "delay 50ms 5ms dist pareto corr 2% slot 1ms",
            false,
            1_000_000,
            false,
            0.02,
            0,
        ),
    ] {
        let imported = import(&format!(
            "{add}tc qdisc change dev eth0 root netem {change}\n"
        ));
        let warnings = &imported.warnings;
        assert_eq!(warnings.len(), kept, "{change}: {warnings:?}");
        let up = parse(&imported.toml).up;
        let is_normal = imported.toml.contains("distribution = \"normal\"");
        let slot = up.slot.map(|slot| slot.max_ns);
        assert_eq!((is_normal, slot), (normal, Some(slot_ns)), "{change}");
        assert_eq!((up.loss.ecn, up.corrupt.probability), (marks, corrupts));
    }
    // A slot with the name of another option.
    let add =
        "tc qdisc add dev eth0 root netem delay 9ms slot distribution normal 9ms 1ms packets 3\n";
    let imported = import(&format!(
        "{add}tc qdisc change dev eth0 root netem delay 50ms\n"
    ));
    let slot = "`slot distribution normal 9ms 1ms packets 3`";
    let said = imported.warnings.iter().any(|w| w.starts_with(slot));
    assert!(said, "{:?}", imported.warnings);
}

/// The netems of an ifb are for the other direction, also those in classes.
#[test]
fn classes_of_a_device_and_its_ifb() {
    let ifb = |classid: &str| {
        format!(
            "tc qdisc add dev ifb0 root handle {classid}: prio\n\
             tc qdisc add dev ifb0 parent {classid}:3 netem delay 9ms\n\
             tc filter add dev ifb0 parent {classid}: protocol ip u32 match ip sport 80 0xffff flowid {classid}:3\n"
        )
    };
    let http = "source = \"0.0.0.0/0\", source-port = \"80\"";
    let own = "tc qdisc add dev eth0 root netem delay 5ms\n".to_owned() + &ifb("2");
    let imported = import(&own);
    let profile = parse(&imported.toml);
    let delays = (profile.up.delay.mean_ns, profile.down.delay.mean_ns);
    assert_eq!(delays, (5_000_000, 0));
    let bulk = |class: &str| BULK.replace("up", "down").replace("class-1-3", class);
    assert_eq!(
        rules(&imported),
        [format!("down: {http}: class-2-3"), bulk("class-2-3")],
        "{}",
        imported.toml
    );
    // Both have a class of this number.
    let far = filter("parent 1: prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:3");
    let imported = import(&[PRIO, &ifb("1"), &far].concat());
    let mut found = rules(&imported);
    found.sort();
    let mut want = [
        format!("down: {http}: class-1-3-down"),
        bulk("class-1-3-down"),
        "up: destination = \"10.0.0.0/8\": class-1-3".to_owned(),
        BULK.to_owned(),
    ];
    want.sort();
    assert_eq!(found, want);
    let profile = parse(&imported.toml);
    let delay = |name: &str| {
        let link = profile.links.iter().find(|link| link.name == name);
        link.unwrap().up.delay.mean_ns
    };
    assert_eq!(
        (delay("class-1-3"), delay("class-1-3-down")),
        (200_000_000, 9_000_000)
    );
    // Two other devices are two profiles.
    let two = own.replace("ifb0", "eth1");
    let error = import::netem(&two, Header::Up, &|_| None).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("netems on eth0, eth1"), "{error}");
}

/// A device of another namespace, container or host is another one, whatever its name.
#[test]
fn devices_of_one_name_in_two_places() {
    let netem = |before: &str, ms: u32| {
        format!("{before} qdisc add dev eth0 root handle 1: netem delay {ms}ms\n")
    };
    let refused = |script: &str| match import::netem(script, Header::Up, &|_| None) {
        Err(error) => error.to_string(),
        Ok(imported) => panic!("{script}: {}", imported.toml),
    };
    for (one, other, said) in [
        (
            "ip netns exec a tc",
            "ip netns exec b tc",
            "netems on eth0 of netns a, eth0 of netns b",
        ),
        ("tc -n a", "tc", "netems on eth0 of netns a, eth0"),
        (
            "sudo -E docker exec -it c1 tc",
            "[ -n x ] && docker exec c2 tc",
            "netems on eth0 of docker exec c1, eth0 of docker exec c2",
        ),
        (
            "tc -force -netns a",
            "ssh -p 22 root@h1 /sbin/tc",
            "netems on eth0 of netns a, eth0 of ssh 22 root@h1",
        ),
        (
            "nsenter -t 5 -n tc",
            "(kubectl exec pod -- tc",
            "netems on eth0 of nsenter 5, eth0 of kubectl exec pod",
        ),
        (
            "ssh h1 'true; tc",
            "'; ssh h1 \"ip netns exec a tc",
            "netems on eth0 of ssh h1, eth0 of ssh h1 netns a",
        ),
    ] {
        let error = refused(&(netem(one, 10) + &netem(other, 50)));
        assert!(error.contains(said), "{said}: {error}");
        assert!(
            error.contains("network namespace, container or host"),
            "{error}"
        );
    }
    for (one, other, end) in [
        ("ip netns exec a tc", "sudo -E tc -net a", ""),
        ("sudo docker exec -i c1 tc", "docker exec c1 sh -c 'tc", "'"),
        ("ssh h1 'modprobe ifb; tc", "'; ssh h1 tc", ""),
        ("docker exec c1 sh -c \"tc", "tc", "\""),
        ("ip netns exec a tc", "tc -n a", "# don't\n# don't\ntrue"),
        ("{ tc", "if sudo tc", ""),
        // Lines of a batch, and what tc prints.
        ("ip netns exec a tc", "tc -n a -b - <<E\n", "E"),
        (
            "docker exec c1 tc",
            "",
            "docker exec c1 tc -s qdisc show\nqdisc netem 1: dev eth0 root limit 9 delay 50ms",
        ),
    ] {
        let up = parse(&import(&(netem(one, 10) + &netem(other, 50) + end)).toml).up;
        assert_eq!(up.delay.mean_ns, 50_000_000, "{one}");
    }
    // What limits a device of the same name elsewhere is not beside the netem.
    let elsewhere = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
                     tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                     tc filter add dev eth0 parent 1: protocol arp u32 flowid 1:1\n";
    let own = netem("ip netns exec a tc", 10)
        + "ip netns exec a tc qdisc add dev eth0 parent 1:1 pfifo\n";
    let imported = import(&(elsewhere.to_owned() + &own));
    let up = parse(&imported.toml).up;
    assert_eq!((up.delay.mean_ns, up.rate), (10_000_000, None));
    // A tree is in one of them, too.
    let script = elsewhere.replace("arp u32", "ip matchall");
    let both = script.clone() + &script.replace("tc ", "tc -n a ");
    let error = import::tc(&both, "x.sh", Header::Up, Some("eth0"), None, &|_| None).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("qdiscs on eth0, eth0 of netns a"), "{error}");
}

/// tc prints the times of a slot's distribution without the name of its table.
#[test]
fn slots_of_a_distribution_as_tc_prints_them() {
    for slot in [
        "slot distribution 5ms 1ms packets 3",
        "slot distribution 3gpp 5ms 1ms packets 3",
    ] {
        let imported = import(&format!(
            "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 {slot} seed 5"
        ));
        let said = format!("`{slot}`: ");
        assert!(
            imported.warnings[0].starts_with(&said),
            "{:?}",
            imported.warnings
        );
    }
}

/// `source` has a longest value.
#[test]
fn a_script_with_a_netem_in_each_of_many_classes() {
    let class = |n: u32| {
        format!(
            "tc qdisc add dev eth0 parent 1:{n:x} handle {n:x}0: netem delay {n}ms {n}us distribution normal loss 0.{n}% rate {n}mbit\n\
             tc filter add dev eth0 parent 1: prio {n} u32 match ip dst 10.0.{n}.0/24 flowid 1:{n:x}\n"
        )
    };
    for n in [60, 73] {
        let classes: String = (10..n).map(class).collect();
        let imported = import(&format!(
            "tc qdisc add dev eth0 root handle 1: htb\n{classes}"
        ));
        let profile = parse(&imported.toml);
        assert_eq!(profile.links.len(), n as usize - 10);
        let source = profile.source;
        assert!(
            source.starts_with("imported: netem delay 10ms 10us"),
            "{source}"
        );
        assert_eq!(source.ends_with("..."), n == 73, "{source}");
    }
}
