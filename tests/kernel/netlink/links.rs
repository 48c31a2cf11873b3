// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interfaces, qdiscs, offloads, namespaces, the lock.

use std::process::Command;
use std::time::{Duration, Instant};

use emud::host::interface;
use emud::host::lock::{About, Lock, Range, Sharing};
use emud::netlink::{self, *};
use support::guest;

use super::{Space, index, shell};

fn fq() -> FqOptions {
    FqOptions {
        limit: 10_000,
        flow_limit: 1_000,
        timer_slack_ns: 1_000,
        horizon_us: 10_000_000,
        horizon_drop: true,
        orphan_mask: Some(1023),
        buckets_log: None,
        pacing: None,
        ce_threshold_us: None,
    }
}

#[test]
fn links_are_read_as_ip_shows_them() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    shell("ip link set v0 mtu 1400 txqueuelen 77 gso_max_segs 9 address 02:00:00:00:00:07");
    let v0 = nl.link("v0").unwrap();
    let v1 = nl.link("v1").unwrap();
    assert_eq!(v0.kind.as_deref(), Some("veth"));
    assert_eq!(
        (v0.mtu, v0.txqlen, v0.num_tx_queues, v0.gso.max_segs),
        (1400, 77, 4, 9)
    );
    // A veth has a queue for each possible CPU, and uses one unless it was made with a number of queues.
    shell("ip link add w0 type veth peer name w1");
    let w0 = nl.link("w0").unwrap();
    let lo = nl.link("lo").unwrap();
    assert_eq!(
        [&v0, &w0, &lo].map(|link| nl.transmit_queues(link)),
        [4, 1, 1]
    );
    assert_eq!(v0.mac, [2, 0, 0, 0, 0, 7]);
    assert_eq!(
        (v0.arphrd, v0.up, v0.loopback, v0.xdp),
        (1, true, false, None)
    );
    assert_eq!(
        v0.peer,
        Some(Peer {
            ifindex: v1.index,
            netnsid: None
        })
    );
    assert_eq!(nl.link_by_index(v0.index).unwrap(), v0);
    assert_eq!((lo.arphrd, lo.loopback, lo.kind), (772, true, None));
    let names: Vec<String> = nl.links().unwrap().into_iter().map(|l| l.name).collect();
    for name in ["lo", "v0", "v1"] {
        assert!(names.iter().any(|n| n == name), "{name} in {names:?}");
    }
    shell("ip link property add dev v0 altname a-rather-long-alternative-name");
    assert_eq!(
        nl.link("a-rather-long-alternative-name").unwrap().name,
        "v0"
    );
    shell("ethtool -L v0 tx 3 rx 1");
    for missing in ["v2", "", "a/b", "a-rather-long-name-of-nothing"] {
        let err = nl.link(missing).unwrap_err();
        assert!(
            matches!(err, NetlinkError::NoInterface(_)),
            "{missing}: {err}"
        );
        assert_eq!(err.exit_code(), 66);
    }
}

#[test]
fn the_peer_in_another_namespace_has_its_id() {
    let near = Space::new();
    let here = netlink::identity().unwrap();
    shell(&format!("ip netns add {}-far", near.name));
    shell(&format!("ip link set v1 netns {}-far", near.name));
    let peer = Netlink::open().unwrap().link("v0").unwrap().peer;
    assert!(netlink::enter(&format!("{}-far", near.name)).is_ok());
    let there = netlink::identity().unwrap();
    netlink::enter(&format!("/run/netns/{}", near.name)).unwrap();
    let back = netlink::identity().unwrap();
    shell(&format!("ip netns del {}-far", near.name));
    assert!(peer.unwrap().netnsid.is_some());
    assert_ne!(here, there);
    assert_eq!(here, back);
}

#[test]
fn a_missing_namespace_is_no_input() {
    for spec in ["no-such-name", "4194305", "/no/such/path", "", ".."] {
        let err = netlink::enter(spec).unwrap_err();
        assert!(matches!(err, NetlinkError::NoNamespace(_)), "{spec}: {err}");
        assert_eq!(err.exit_code(), 66);
    }
    let here = netlink::identity().unwrap();
    netlink::enter(&std::process::id().to_string()).unwrap();
    assert_eq!(netlink::identity().unwrap(), here);
}

#[test]
fn gso_is_capped_and_restored() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let before = shell("ip -d link show v0");
    let v0 = nl.link("v0").unwrap();
    let capped = Gso {
        max_segs: 1,
        ..v0.gso
    };
    nl.set_gso(v0.index, &capped).unwrap();
    assert!(shell("ip -d link show v0").contains("gso_max_segs 1 "));
    let small = Gso {
        max_segs: 1,
        max_size: 2000,
        ipv4_max_size: v0.gso.ipv4_max_size,
    };
    nl.set_gso(v0.index, &small).unwrap();
    assert_eq!(nl.link("v0").unwrap().gso, small);
    nl.set_gso(v0.index, &v0.gso).unwrap();
    assert_eq!(shell("ip -d link show v0"), before);
}

#[test]
fn a_link_is_changed() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    nl.set_mtu(v0, 1300).unwrap();
    nl.set_txqlen(v0, 42).unwrap();
    nl.set_up(v0, false).unwrap();
    let now = nl.link("v0").unwrap();
    assert_eq!((now.mtu, now.txqlen, now.up), (1300, 42, false));
    nl.set_up(v0, true).unwrap();
    assert!(nl.link("v0").unwrap().up);
    let err = nl.set_mtu(v0, 1).unwrap_err();
    assert!(err.to_string().contains("set mtu 1 on v0"), "{err}");
    assert!(
        err.to_string().contains("mtu less than device minimum"),
        "{err}"
    );
}

#[test]
fn an_ifb_is_silent() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let like = nl.link("v0").unwrap().gso;
    let gso = Gso {
        max_segs: 1,
        ..like
    };
    let options = IfbOptions {
        mtu: 1500,
        txqlen: 1000,
        gso: Some(gso),
    };
    let ifb = nl.add_ifb("emud-test", &options).unwrap();
    let link = nl.link_by_index(ifb).unwrap();
    assert_eq!(
        (link.name.as_str(), link.kind.as_deref()),
        ("emud-test", Some("ifb"))
    );
    assert_eq!((link.num_tx_queues, link.noarp, link.up), (1, true, false));
    assert_eq!(link.gso, gso);
    nl.set_up(ifb, true).unwrap();
    let shown = shell("ip -d link show emud-test");
    assert!(shown.contains("addrgenmode none"), "{shown}");
    assert_eq!(shell("ip -6 addr show dev emud-test"), "");
    assert_eq!(
        shell("cat /proc/sys/net/ipv6/conf/emud-test/disable_ipv6"),
        "1\n"
    );
    assert!(matches!(
        nl.add_ifb("emud-test", &options),
        Err(NetlinkError::Exists(_))
    ));
    nl.delete_link(ifb).unwrap();
    assert!(matches!(
        nl.link("emud-test"),
        Err(NetlinkError::NoInterface(_))
    ));
}

#[test]
fn a_root_by_hand_is_told_from_a_default() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    assert_eq!(nl.root_by_hand(v0).unwrap(), None);
    assert!(!nl.delete_root(v0).unwrap());
    shell("tc qdisc add dev v0 clsact");
    assert_eq!(nl.root_by_hand(v0).unwrap(), None);
    shell("tc qdisc add dev v0 root handle 5: pfifo limit 9");
    let root = nl.root_by_hand(v0).unwrap().unwrap();
    assert_eq!(
        (root.kind.as_str(), show_handle(root.handle).as_str()),
        ("pfifo", "5:")
    );
    assert_eq!(root.options, Some(9u32.to_ne_bytes().to_vec()));
    assert!(nl.delete_root(v0).unwrap());
    assert_eq!(nl.root_by_hand(v0).unwrap(), None);
    assert_eq!(nl.ingress_qdisc(v0).unwrap(), IngressQdisc::Clsact);
    nl.delete_clsact(v0).unwrap();
    assert_eq!(nl.ingress_qdisc(v0).unwrap(), IngressQdisc::None);
    shell("tc qdisc add dev v0 ingress");
    assert_eq!(nl.ingress_qdisc(v0).unwrap(), IngressQdisc::Ingress);
}

#[test]
fn mq_is_added() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    nl.add_mq(v0, 0xe0000).unwrap();
    assert!(shell("tc qdisc show dev v0").contains("qdisc mq e: root"));
    shell("ip link add d0 numtxqueues 1 type veth peer name d1");
    let d0 = index(&mut nl, "d0");
    assert!(matches!(
        nl.add_mq(d0, 0xe0000),
        Err(NetlinkError::Unavailable(_))
    ));
}

/// Tests the kernel, without a list of kernels: if sch_fq exists it must work.
#[test]
fn fq_works_or_is_unavailable() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let there = Command::new("tc")
        .args("qdisc add dev v1 root fq".split(' '))
        .output()
        .unwrap();
    let added = nl.add_fq(v0, ROOT, 0xe0000, &fq());
    if there.status.success() {
        added.unwrap();
        let shown = shell("tc qdisc show dev v0");
        assert!(shown.contains("qdisc fq e: root"), "{shown}");
        assert!(shown.contains("limit 10000p flow_limit 1000p"), "{shown}");
        assert!(
            shown.contains("timer_slack 1us horizon 10s horizon_drop"),
            "{shown}"
        );
        // The kernel reads the map back from Linux 6.7 on.
        let raw = nl.root_by_hand(v0).unwrap().unwrap().options.unwrap();
        if let Some(map) = netlink_bindings::utils::find_attr(&raw, 16) {
            assert_eq!(map[4..20], [0; 16]);
        }
        return;
    }
    assert!(!guest(), "guests have fq");
    let err = added.unwrap_err();
    assert!(matches!(err, NetlinkError::Unavailable(_)), "{err:?}");
    assert_eq!(err.exit_code(), 69);
    assert!(err.to_string().contains("add qdisc fq at root"), "{err}");
    nl.add_mq(v0, 0xe0000).unwrap();
    let err = nl
        .add_fq(v0, classid(0xe0000, 1), 0xe10000, &fq())
        .unwrap_err();
    assert!(matches!(err, NetlinkError::Unavailable(_)), "{err:?}");
    let err = nl.add_fq(v0, 0xdead_0001, 0xe10000, &fq()).unwrap_err();
    assert!(
        matches!(err, NetlinkError::Os(_)),
        "a parent is missing, not fq: {err:?}"
    );
    let err = nl.add_fq(999_999, ROOT, 0xe0000, &fq()).unwrap_err();
    assert!(matches!(err, NetlinkError::NoInterface(_)), "{err:?}");
}

#[test]
fn offloads_go_off_and_come_back() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    shell("ethtool -K v0 gro on rx-udp-gro-forwarding on");
    let before = shell("ethtool -k v0");
    let merging = |name: &str| RECEIVE_MERGING.contains(&name);
    let taken = Offloads::snapshot(&mut nl, v0, merging).unwrap();
    let names: Vec<&str> = taken.changeable.iter().map(String::as_str).collect();
    assert_eq!(names, ["rx-gro", "rx-udp-gro-forwarding"]);
    assert!(taken.cap(&mut nl, v0).unwrap().is_empty());
    let capped = shell("ethtool -k v0");
    assert!(capped.contains("generic-receive-offload: off"), "{capped}");
    assert!(capped.contains("rx-udp-gro-forwarding: off"), "{capped}");
    let kept = serde_json::to_vec(&taken).unwrap();
    let taken: Offloads = serde_json::from_slice(&kept).unwrap();
    assert!(taken.restore(&mut nl, v0).unwrap().is_empty());
    assert_eq!(shell("ethtool -k v0"), before);
    // Off stays off.
    shell("ethtool -K v0 gro off rx-udp-gro-forwarding off");
    let before = shell("ethtool -k v0");
    let taken = Offloads::snapshot(&mut nl, v0, merging).unwrap();
    assert_eq!(taken, Offloads::default());
    taken.cap(&mut nl, v0).unwrap();
    taken.restore(&mut nl, v0).unwrap();
    assert_eq!(shell("ethtool -k v0"), before);
    // Features that cannot be switched are reported.
    let lo = Offloads::snapshot(&mut nl, 1, |name| name == "loopback").unwrap();
    assert_eq!(lo.cap(&mut nl, 1).unwrap(), ["loopback"]);
}

#[test]
fn an_interface_that_has_gone_is_none() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v1 = index(&mut nl, "v1");
    shell("ip link del v1");
    for failed in [nl.set_up(v1, true), nl.delete_link(v1)] {
        let err = failed.unwrap_err();
        assert!(err.is_no_device(), "{err:?}");
        assert_eq!(err.exit_code(), 66, "{err}");
    }
}

#[test]
fn a_lock_belongs_to_one_namespace_and_one_holder() {
    let space = Space::new();
    let held = interface::lock(7, interface::PATIENCE).unwrap();
    let err = interface::lock(7, interface::PATIENCE).unwrap_err();
    assert!(matches!(err, NetlinkError::Busy(_)), "{err:?}");
    assert_eq!(err.exit_code(), 75);
    let _other_interface = interface::lock(8, interface::PATIENCE).unwrap();
    let second = Space::new();
    let _other_namespace = interface::lock(7, interface::PATIENCE).unwrap();
    drop(second);
    netlink::enter(&space.name).unwrap();
    drop(held);
    interface::lock(7, interface::PATIENCE).unwrap();
}

#[test]
fn a_lock_is_held_once_or_shared() {
    let _space = Space::new();
    let open = || Lock::open(About::Interface).unwrap();
    let (a, b, c) = (open(), open(), open());
    let range = |first, count| Range::here(first, count).unwrap();
    let (all, part) = (range(8, 8), range(12, 1));
    assert!(a.try_take(all, Sharing::Exclusive).unwrap());
    assert!(!b.try_take(part, Sharing::Shared).unwrap());
    assert!(b.try_take(range(16, 1), Sharing::Exclusive).unwrap());
    assert!(a.try_take(all, Sharing::Shared).unwrap());
    assert!(b.try_take(part, Sharing::Shared).unwrap());
    assert!(!a.try_take(all, Sharing::Exclusive).unwrap());
    drop(b);
    assert!(a.take(all, Sharing::Exclusive, Duration::ZERO).unwrap());
    let start = Instant::now();
    let patience = Duration::from_millis(20);
    assert!(!c.take(part, Sharing::Exclusive, patience).unwrap());
    assert!(start.elapsed() >= patience);
    // Like the process that restores forwarding.
    let kept = a.for_another().unwrap();
    drop(a);
    assert!(!c.try_take(part, Sharing::Exclusive).unwrap());
    drop(kept);
    assert!(c.try_take(part, Sharing::Exclusive).unwrap());
}

#[test]
fn a_table_of_flows_is_seen_in_this_namespace() {
    let space = Space::new();
    assert!(!steers_flows("v0") && !steers_flows("missing"));
    // /sys of `ip netns exec` is that of the namespace.
    let file = "/sys/class/net/v0/queues/rx-0/rps_flow_cnt";
    let name = &space.name;
    shell(&format!("ip netns exec {name} sh -c 'echo 32 >{file}'"));
    assert!(steers_flows("v0") && !steers_flows("v1"));
}
