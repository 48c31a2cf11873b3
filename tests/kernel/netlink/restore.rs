// SPDX-License-Identifier: MIT OR Apache-2.0
//! A root qdisc that a user configured is removed and restored.

use std::process::Command;

use emud::netlink::*;
use support::guest;

use super::{Space, index, shell};

fn shown(parents: &[&str]) -> String {
    let mut all = shell("tc qdisc show dev v0; tc filter show dev v0");
    // Classes are listed in the order of a hash table that grows meanwhile.
    all += &shell("tc class show dev v0 | sort");
    for parent in parents {
        all += &shell(&format!("tc filter show dev v0 parent {parent}"));
    }
    all
}

/// A deleted filter releases its actions a moment later, and tc prints their reference counts.
fn settles_at(expected: &str, parents: &[&str]) {
    for _ in 0..100 {
        if shown(parents) == expected {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(shown(parents), expected);
}

/// Saves the result of `setup`, deletes it, restores it from bytes, compares.
fn comes_back(setup: &str, parents: &[&str]) {
    let _space = Space::new();
    shell(setup);
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let before = shown(parents);
    let taken = RootSnapshot::take(&mut nl, v0).unwrap_or_else(|e| panic!("{setup}: {e}"));
    let taken = taken.expect("a root by hand");
    assert_eq!(shown(parents), before, "taking changes nothing");
    let bytes = taken.to_bytes();
    // Like emud: a different root instead.
    shell("tc qdisc del dev v0 root; tc qdisc add dev v0 root handle e: pfifo");
    assert_ne!(shown(parents), before);
    RootSnapshot::from_bytes(&bytes)
        .unwrap()
        .restore(&mut nl, v0)
        .unwrap();
    settles_at(&before, parents);
}

#[test]
fn fifos_come_back() {
    comes_back("tc qdisc add dev v0 root pfifo limit 123", &[]);
    comes_back("tc qdisc add dev v0 root handle 7: bfifo limit 54321", &[]);
    comes_back(
        "tc qdisc add dev v0 root handle 7: pfifo_head_drop limit 3",
        &[],
    );
    comes_back("tc qdisc add dev v0 root handle 7: pfifo_fast", &[]);
    comes_back("tc qdisc replace dev v0 root handle 7: noqueue", &[]);
}

#[test]
fn tbf_comes_back() {
    comes_back(
        "tc qdisc add dev v0 root tbf rate 1mbit burst 1514 latency 50ms",
        &[],
    );
    comes_back(
        "tc qdisc add dev v0 root tbf rate 10gbit burst 1514 limit 90000",
        &[],
    );
    comes_back(
        "tc qdisc add dev v0 root handle 3: tbf rate 50gbit burst 64k limit 1m \
                peakrate 60gbit mtu 9000
         tc qdisc add dev v0 parent 3:1 handle 30: bfifo limit 1000",
        &[],
    );
    comes_back(
        "tc qdisc add dev v0 root tbf rate 1mbit burst 2000 limit 9000 overhead 8 linklayer atm",
        &[],
    );
    comes_back(
        "tc qdisc add dev v0 root stab overhead 24 tbf rate 1mbit burst 5000 limit 9000",
        &[],
    );
}

/// A burst of one full frame must still let one full frame through.
#[test]
fn a_restored_tbf_still_passes_its_burst() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    // tbf immediately drops packets longer than its burst.
    shell("tc qdisc add dev v0 root handle 3: tbf rate 10gbit burst 1514 limit 90000");
    let taken = RootSnapshot::take(&mut nl, v0).unwrap().unwrap();
    taken.restore(&mut nl, v0).unwrap();
    shell("ip addr add 10.9.0.1/24 dev v0; ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:09 dev v0");
    // 1472 + 8 + 20 + 14 = 1514 bytes. Nobody answers.
    let ping = "-c 3 -i 0.01 -W 0.1 -s 1472 10.9.0.2";
    Command::new("ping").args(ping.split(' ')).output().unwrap();
    let stats = shell("tc -s qdisc show dev v0");
    assert!(
        stats.contains("Sent 4542 bytes 3 pkt (dropped 0,"),
        "{stats}"
    );
}

#[test]
fn htb_comes_back_with_classes_and_u32() {
    comes_back(
        "tc qdisc add dev v0 root handle 1: htb default 30 r2q 7 direct_qlen 55
         tc class add dev v0 parent 1: classid 1:1 htb rate 100mbit ceil 100mbit
         tc class add dev v0 parent 1:1 classid 1:10 htb rate 1mbit ceil 100mbit prio 1 burst 20k
         tc class add dev v0 parent 1:1 classid 1:20 htb rate 10mbit ceil 100mbit quantum 9000
         tc class add dev v0 parent 1:1 classid 1:30 htb rate 89mbit ceil 100mbit
         tc class add dev v0 parent 1:20 classid 1:21 htb rate 5mbit ceil 8mbit
         tc class add dev v0 parent 1: classid 1:2 htb rate 40gbit ceil 50gbit
         tc qdisc add dev v0 parent 1:10 handle 10: pfifo limit 11
         tc qdisc add dev v0 parent 1:21 handle 21: tbf rate 1mbit burst 5k latency 9ms
         tc filter add dev v0 parent 1: pref 20 protocol ip u32 \
                match ip dst 10.0.2.0/24 flowid 1:20
         tc filter add dev v0 parent 1: pref 10 protocol ip u32 \
                match ip dst 10.0.1.0/24 match ip dport 80 0xffff flowid 1:10
         tc filter add dev v0 parent 1: pref 10 protocol ip u32 \
                match ip dst 10.0.3.0/24 match mark 7 0xff classid 1:30
         tc filter add dev v0 parent 1:20 pref 5 protocol all u32 match u32 0 0 flowid 1:21",
        &["1:", "1:20"],
    );
}

#[test]
fn u32_hash_tables_come_back() {
    comes_back(
        "tc qdisc add dev v0 root handle 1: htb
         tc class add dev v0 parent 1: classid 1:1 htb rate 1mbit
         tc class add dev v0 parent 1: classid 1:2 htb rate 2mbit
         f='tc filter add dev v0 parent 1: pref'
         $f 9 protocol ip u32 match ip dst 1.2.3.4 flowid 1:1
         $f 9 handle 5: protocol ip u32 divisor 256
         $f 9 handle 6: protocol ip u32 divisor 16
         $f 9 protocol ip u32 ht 5:1a: match ip dst 10.0.0.26 flowid 1:2
         $f 9 protocol ip u32 ht 5:1a: match ip dst 10.0.1.26 flowid 1:1
         $f 9 protocol ip u32 ht 800:: match ip dst 10.0.0.0/16 \
                hashkey mask 0xff at 16 link 5:
         $f 3 protocol ipv6 u32 match ip6 dst fe80::/10 flowid 1:1",
        &["1:"],
    );
}

#[test]
fn an_action_comes_back_with_its_target() {
    comes_back(
        "tc qdisc add dev v0 root handle 1: htb
         f='tc filter add dev v0 parent 1: pref 9 protocol ip u32 match ip dst'
         $f 1.2.3.4 action mirred egress redirect dev v1 index 44
         $f 1.2.3.5 action mirred egress redirect dev v1 index 44
         $f 1.2.3.6 indev v1 action mirred egress mirror dev lo",
        &["1:"],
    );
}

#[test]
fn mq_by_hand_comes_back_with_its_children() {
    comes_back(
        "ethtool -L v0 tx 3
         tc qdisc add dev v0 root handle 1: mq
         tc qdisc add dev v0 parent 1:1 handle 11: pfifo limit 7
         tc qdisc add dev v0 parent 1:4 handle 14: htb default 1
         tc class add dev v0 parent 14: classid 14:1 htb rate 7mbit
         tc qdisc add dev v0 parent 14:1 handle 141: bfifo limit 5000",
        &["14:"],
    );
}

#[test]
fn many_classes_come_back() {
    let _space = Space::new();
    let mut setup = "tc qdisc add dev v0 root handle 1: htb\n".to_string();
    let class = "tc class add dev v0 parent 1: classid 1:";
    // More than fits into one message of a dump.
    for n in 1..=200 {
        setup += &format!("{class}{n:x} htb rate {n}mbit\n");
    }
    shell(&setup);
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let before = shown(&[]);
    let taken = RootSnapshot::take(&mut nl, v0).unwrap().unwrap();
    let size = taken.to_bytes().len();
    assert!(size < 64 << 10, "{size} bytes do not fit into the map");
    taken.restore(&mut nl, v0).unwrap();
    assert_eq!(shown(&[]), before);
}

/// Returns whether this kernel has a qdisc, filter or action, by trying it with tc. Guests have all kinds.
fn kernel_has(probe: &str) -> bool {
    let _space = Space::new();
    let tried = Command::new("sh").args(["-ec", probe]).output().unwrap();
    let has = tried.status.success();
    if !has {
        let why = String::from_utf8_lossy(&tried.stderr);
        assert!(!guest(), "{probe}: {why}");
        println!("not in this kernel: {probe}: {why}");
    }
    has
}

/// The same of a filter.
fn kernel_has_filter(filter: &str) -> bool {
    kernel_has(&format!("{FILTER}{filter}"))
}

const FILTER: &str =
    "tc qdisc add dev v0 root handle 1: htb; tc filter add dev v0 parent 1: pref 4 ";

/// Kinds that not every kernel has are restored on kernels that have them.
#[test]
fn other_kinds_come_back() {
    let kinds = [
        (
            "fq",
            "limit 7000 flow_limit 70 quantum 3000 maxrate 5mbit orphan_mask 255",
        ),
        (
            "fq",
            "horizon 2s horizon_cap timer_slack 500 ce_threshold 3ms nopacing",
        ),
        (
            "fq_codel",
            "limit 900 flows 64 target 4ms interval 90ms noecn ce_threshold 2ms",
        ),
        ("codel", "limit 900 target 4ms interval 90ms ecn"),
        ("sfq", "limit 100 perturb 10 divisor 256 depth 20 headdrop"),
        ("prio", "bands 4 priomap 1 2 3 0 1 2 0 0 1 1 1 1 1 1 1 1"),
        (
            "cake",
            "bandwidth 10mbit diffserv4 overhead 18 mpu 64 ack-filter wash",
        ),
        ("cake", "unlimited besteffort flowblind raw split-gso nat"),
        (
            "netem",
            "delay 10ms limit 2000 loss gemodel 1% 10% 70% 0.1% duplicate 1% rate 5mbit 20",
        ),
        ("netem", "delay 1ms reorder 25% 50% gap 5 corrupt 0.1% 25%"),
        ("netem", "slot 1ms 2ms packets 10 bytes 20000"),
    ];
    for (kind, options) in kinds {
        if kernel_has(&format!("tc qdisc add dev v0 root {kind}")) {
            comes_back(
                &format!("tc qdisc add dev v0 root handle 1: {kind} {options}"),
                &["1:"],
            );
        }
    }
    if kernel_has("tc qdisc add dev v0 root prio") {
        comes_back(
            "tc qdisc add dev v0 root handle 1: prio
             tc qdisc add dev v0 parent 1:1 handle 11: tbf rate 1mbit burst 1514 latency 9ms
             tc qdisc add dev v0 parent 1:3 handle 13: htb
             tc filter add dev v0 parent 1: protocol ip u32 match ip dst 1.2.3.4 flowid 1:3",
            &["1:"],
        );
    }
    if kernel_has("tc qdisc add dev v0 root drr") {
        comes_back(
            "tc qdisc add dev v0 root handle 1: drr
             tc class add dev v0 parent 1: classid 1:1 drr quantum 600
             tc class add dev v0 parent 1: classid 1:2 drr
             tc qdisc add dev v0 parent 1:2 handle 2: pfifo limit 4",
            &["1:"],
        );
    }
}

#[test]
fn other_filters_come_back() {
    // The least that needs the same of a kernel, and the filter.
    let (matchall, flower) = ("matchall classid 1:1", "protocol ip flower classid 1:1");
    let (fw, gact) = ("handle 6 fw classid 1:1", "matchall action drop");
    let filters = [
        (matchall, "matchall classid 1:1"),
        (
            flower,
            "protocol ip flower dst_ip 10.0.0.0/8 ip_proto tcp dst_port 80 classid 1:1",
        ),
        (
            flower,
            "protocol ipv6 flower dst_ip fe80::/10 skip_hw classid 1:1",
        ),
        (fw, "handle 6 fw classid 1:1"),
        (fw, "handle 6/0xff fw classid 1:1"),
        (gact, "matchall action drop"),
        (
            "matchall action pass random determ drop 7",
            "matchall action pass random determ drop 7 index 12 cookie 1234",
        ),
        (gact, "chain 3 matchall action goto chain 3"),
        (
            "matchall action skbedit mark 7",
            "matchall action skbedit priority 1:2 mark 7 pipe action mirred egress mirror dev v1",
        ),
    ];
    for (least, filter) in filters {
        if kernel_has_filter(least) {
            comes_back(&format!("{FILTER}{filter}"), &["1:"]);
        }
    }
}

/// A restoring that was killed has made the first of these; another process may have made the last ones.
#[test]
fn a_part_is_not_another_root() {
    const STEPS: [&str; 8] = [
        "tc qdisc add dev v0 root handle 1: htb default 20",
        "tc class add dev v0 parent 1: classid 1:1 htb rate 50mbit ceil 80mbit",
        "tc class add dev v0 parent 1:1 classid 1:10 htb rate 20mbit ceil 80mbit prio 1",
        "tc class add dev v0 parent 1:1 classid 1:20 htb rate 30mbit",
        "tc filter add dev v0 parent 1: pref 7 protocol ip u32 match ip dst 10.77.0.9 flowid 1:10",
        "tc filter add dev v0 parent 1: pref 8 protocol ip u32 match ip dst 10.77.0.8 flowid 1:20",
        "tc qdisc add dev v0 parent 1:10 handle 10: pfifo limit 33",
        "tc filter add dev v0 parent 1:1 pref 1 protocol ip u32 match ip dst 10.77.0.7 flowid 1:10",
    ];
    let _space = Space::new();
    STEPS.iter().for_each(|step| drop(shell(step)));
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let whole = RootSnapshot::take(&mut nl, v0).unwrap().unwrap();
    let parents = ["1:", "1:1"];
    let before = shown(&parents);
    let mut standing = || whole.standing(&mut nl, v0).unwrap();
    assert_eq!(standing(), Standing::All);
    for (more, undo) in [
        (
            "tc class change dev v0 classid 1:20 htb rate 31mbit",
            "tc class change dev v0 classid 1:20 htb rate 30mbit",
        ),
        (
            "tc class add dev v0 parent 1:1 classid 1:30 htb rate 1mbit",
            "tc class del dev v0 classid 1:30",
        ),
        (
            "tc filter add dev v0 parent 1: pref 9 protocol ip u32 match ip dst 10.77.0.7 flowid 1:10",
            "tc filter del dev v0 parent 1: pref 9",
        ),
    ] {
        shell(more);
        assert_eq!(standing(), Standing::Another, "{more}");
        shell(undo);
        assert_eq!(standing(), Standing::All, "{undo}");
    }
    shell("tc qdisc del dev v0 root");
    assert_eq!(standing(), Standing::Nothing);
    for handle in ["2:", "1: stab overhead 24"] {
        shell(&format!(
            "tc qdisc add dev v0 root handle {handle} htb default 20"
        ));
        assert_eq!(standing(), Standing::Another, "{handle}");
        shell("tc qdisc del dev v0 root");
    }
    for step in &STEPS[..7] {
        shell(step);
        assert_eq!(standing(), Standing::Part, "{step}");
    }
    whole.restore(&mut nl, v0).unwrap();
    settles_at(&before, &parents);
}

/// A qdisc that cannot be restored is rejected with its name and not changed.
fn refused(setup: &str, named: &str) {
    let _space = Space::new();
    shell(setup);
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let before = shown(&["1:"]);
    let err = RootSnapshot::take(&mut nl, v0).unwrap_err();
    assert!(matches!(err, NetlinkError::CannotRestore { .. }), "{err:?}");
    assert_eq!(err.exit_code(), 73);
    assert!(err.to_string().contains(named), "{err}");
    assert_eq!(shown(&["1:"]), before);
}

#[test]
fn what_cannot_come_back_is_refused() {
    refused(
        "tc qdisc add dev v0 root handle 1: stab mtu 2048 tsize 512 mpu 64 linklayer atm htb",
        "stab",
    );
    refused(
        "tc qdisc add dev v0 root handle 1: estimator 1sec 8sec htb",
        "estimator",
    );
    refused(
        "tc qdisc add dev v0 root handle 1: htb
         tc class add dev v0 parent 1: classid 1:1 estimator 1sec 8sec htb rate 1mbit",
        "class 1:1 has a rate estimator",
    );
    // Its program would be lost.
    refused(
        "tc qdisc add dev v0 root handle 1: htb
         tc filter add dev v0 parent 1: bpf bytecode '1,6 0 0 4294967295,' flowid 1:1",
        "bpf",
    );
    if kernel_has("tc qdisc add dev v0 root netem") {
        refused(
            "tc qdisc add dev v0 root handle 1: netem delay 9ms 1ms",
            "distribution",
        );
    }
    if kernel_has("tc qdisc add dev v0 root red limit 9000 avpkt 500") {
        refused(
            "tc qdisc add dev v0 root handle 1: red limit 9000 avpkt 500",
            "red",
        );
    }
    // Its dump lacks a key without which the kernel ignores this one.
    let vlan = "tc qdisc add dev v0 root handle 1: htb
                tc filter add dev v0 parent 1: protocol 802.1q flower vlan_id 7 classid 1:1";
    if kernel_has_filter("protocol ip flower classid 1:1") {
        refused(vlan, "flower");
    }
    // The first priority is gone, so its number would be assigned again.
    refused(
        "tc qdisc add dev v0 root handle 1: htb
         f='tc filter add dev v0 parent 1: protocol ip'
         $f pref 9 u32 match ip dst 1.2.3.4 flowid 1:1
         $f pref 3 u32 match ip dst 1.2.3.4 flowid 1:1
         tc filter del dev v0 parent 1: pref 9",
        "copy",
    );
}

/// Traffic in between must not look like a change.
#[test]
fn a_snapshot_holds_no_counters() {
    let _space = Space::new();
    shell(
        "ip addr add 10.9.0.1/24 dev v0; ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:09 dev v0
         tc qdisc add dev v0 root handle 1: htb default 2
         tc class add dev v0 parent 1: classid 1:1 htb rate 8mbit
         tc class add dev v0 parent 1: classid 1:2 htb rate 8mbit
         tc qdisc add dev v0 parent 1:1 handle 11: tbf rate 1mbit burst 5000 limit 9000
         tc filter add dev v0 parent 1: pref 2 protocol ip u32 match ip dst 10.9.0.2 \
                match mark 0 0xff action mirred egress mirror dev v1
         tc filter add dev v0 parent 1: pref 3 protocol ip u32 match ip dst 10.9.0.2 flowid 1:1",
    );
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let before = RootSnapshot::take(&mut nl, v0).unwrap();
    let ping = "-c 3 -i 0.01 -W 0.1 10.9.0.2";
    Command::new("ping").args(ping.split(' ')).output().unwrap();
    let hits = shell("tc -s filter show dev v0 parent 1:");
    assert!(hits.contains("Sent 294 bytes 3 pkt"), "{hits}");
    assert_eq!(RootSnapshot::take(&mut nl, v0).unwrap(), before);
}

#[test]
fn nothing_by_hand_is_nothing_to_keep() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    shell("tc qdisc add dev v0 clsact");
    assert_eq!(RootSnapshot::take(&mut nl, v0).unwrap(), None);
}

#[test]
fn a_snapshot_of_another_format_is_refused() {
    for bytes in [
        &b""[..],
        b"{}",
        br#"{"format":2,"qdiscs":[],"classes":[],"filters":[]}"#,
    ] {
        let err = RootSnapshot::from_bytes(bytes).unwrap_err();
        assert!(matches!(err, NetlinkError::BadSnapshot(_)), "{err:?}");
    }
}
