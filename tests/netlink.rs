// SPDX-License-Identifier: GPL-2.0-only
//! The netlink layer against this kernel, in fresh network namespaces, judged
//! by what `tc`, `ip` and `ethtool` print. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use emud::netlink::{self, *};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A network namespace with a veth, v0 and v1; the calling thread is moved into it.
struct Space {
    name: String,
    home: File,
}

impl Space {
    fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("netlink-{}-{number}", std::process::id());
        let home = File::open("/proc/thread-self/ns/net").unwrap();
        shell(&format!("ip netns add {name}"));
        let space = Self { name, home };
        netlink::enter(&space.name).unwrap();
        shell("ip link set lo up");
        shell("ip link add v0 numtxqueues 4 type veth peer name v1");
        // IPv6 would talk by itself, and a counter is in what tc prints.
        shell("for v in v0 v1; do echo 1 >/proc/sys/net/ipv6/conf/$v/disable_ipv6; done");
        shell("ip link set v0 up; ip link set v1 up");
        space
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let home = format!("/proc/self/fd/{}", self.home.as_raw_fd());
        netlink::enter(&home).unwrap();
        shell(&format!("ip netns del {}", self.name));
    }
}

/// In the network namespace of the thread; fails the test if a command fails.
fn shell(script: &str) -> String {
    let out = Command::new("sh").args(["-ec", script]).output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{script}: {err}");
    String::from_utf8(out.stdout).unwrap()
}

fn index(nl: &mut Netlink, name: &str) -> u32 {
    nl.link(name).unwrap().index
}

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
    }
}

const SYS_BPF_PROG_LOAD: i64 = 5;
const SYS_BPF_PROG_ATTACH: i64 = 8;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const TC_ACT_OK: i32 = 0;
const TC_ACT_STOLEN: i32 = 4;
const TC_ACT_UNSPEC: i32 = -1;

fn try_bpf(command: i64, attr: &[u8]) -> i64 {
    // SAFETY: attr is a bpf_attr of its length; what it points to outlives the call.
    unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_ptr(), attr.len()) }
}

fn bpf(command: i64, attr: &[u8]) -> i64 {
    let fd = try_bpf(command, attr);
    assert!(
        fd >= 0,
        "bpf({command}): {}",
        std::io::Error::last_os_error()
    );
    fd
}

/// A classifier that returns `code`.
fn program(code: i32) -> OwnedFd {
    let mut insns = vec![0xb7, 0, 0, 0];
    insns.extend(code.to_ne_bytes());
    insns.extend([0x95, 0, 0, 0, 0, 0, 0, 0]);
    let license = c"GPL";
    let mut attr = Vec::new();
    attr.extend(BPF_PROG_TYPE_SCHED_CLS.to_ne_bytes());
    attr.extend(2u32.to_ne_bytes());
    attr.extend((insns.as_ptr() as u64).to_ne_bytes());
    attr.extend((license.as_ptr() as u64).to_ne_bytes());
    attr.resize(72, 0);
    let fd = bpf(SYS_BPF_PROG_LOAD, &attr);
    // SAFETY: a fresh descriptor that nobody else owns.
    unsafe { OwnedFd::from_raw_fd(fd.try_into().unwrap()) }
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
    let lo = nl.link("lo").unwrap();
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
    assert_eq!(nl.real_tx_queues(v0.index).unwrap(), Some(3));
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
    nl.add_clsact(v0).unwrap();
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
    assert!(matches!(nl.add_clsact(v0), Err(NetlinkError::Exists(_))));
}

#[test]
fn mq_and_noqueue_are_added() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    nl.add_mq(v0, 0xe0000).unwrap();
    assert!(shell("tc qdisc show dev v0").contains("qdisc mq e: root"));
    assert!(nl.delete_root(v0).unwrap());
    nl.add_noqueue(v0, 0xe0000).unwrap();
    assert!(shell("tc qdisc show dev v0").contains("qdisc noqueue e: root"));
    shell("ip link add d0 numtxqueues 1 type veth peer name d1");
    let d0 = index(&mut nl, "d0");
    assert!(matches!(
        nl.add_mq(d0, 0xe0000),
        Err(NetlinkError::Unavailable(_))
    ));
}

/// Asks the kernel, not a list of kernels: where sch_fq is there it must work.
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

fn shown(parents: &[&str]) -> String {
    let mut all = shell("tc qdisc show dev v0; tc filter show dev v0");
    // Classes are listed in the order of a hash table that grows meanwhile.
    all += &shell("tc class show dev v0 | sort");
    for parent in parents {
        all += &shell(&format!("tc filter show dev v0 parent {parent}"));
    }
    all
}

/// A filter that was deleted lets go of its actions a moment later, and their
/// reference counts are in what tc prints.
fn settles_at(expected: &str, parents: &[&str]) {
    for _ in 0..100 {
        if shown(parents) == expected {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(shown(parents), expected);
}

/// Takes what `setup` makes, destroys it, restores it from bytes, compares.
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
    // As emud does: its own root instead.
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
    // tbf drops at once what is longer than its burst.
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

/// Whether this kernel has a qdisc, filter or action: asked of tc, in passing.
fn kernel_has(probe: &str) -> bool {
    let _space = Space::new();
    Command::new("sh")
        .args(["-ec", probe])
        .output()
        .unwrap()
        .status
        .success()
}

/// What not every kernel has comes back on those that have it.
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
    let htb = "tc qdisc add dev v0 root handle 1: htb; tc filter add dev v0 parent 1: ";
    let filters = [
        "pref 4 matchall classid 1:1",
        "pref 4 protocol ip flower dst_ip 10.0.0.0/8 ip_proto tcp dst_port 80 classid 1:1",
        "pref 4 protocol ipv6 flower dst_ip fe80::/10 skip_hw classid 1:1",
        "pref 4 handle 6 fw classid 1:1",
        "pref 4 handle 6/0xff fw classid 1:1",
        "pref 4 matchall action drop",
        "pref 4 matchall action pass random determ drop 7 index 12 cookie 1234",
        "pref 4 chain 3 matchall action goto chain 3",
        "pref 4 matchall action skbedit priority 1:2 mark 7 pipe action mirred egress mirror dev v1",
    ];
    for filter in filters {
        let setup = format!("{htb}{filter}");
        if kernel_has(&setup) {
            comes_back(&setup, &["1:"]);
        }
    }
}

/// What cannot come back is refused with its name and left as it is.
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
    // Its program would be gone.
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
    if kernel_has(vlan) {
        refused(vlan, "flower");
    }
    // The first priority is gone, so its number would be given out anew.
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
    nl.add_clsact(v0).unwrap();
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

fn filter<'a>(program: &'a OwnedFd, pref: u16, handle: u32, name: &'a str) -> BpfFilter<'a> {
    BpfFilter {
        hook: Hook::Egress,
        pref,
        handle,
        program: program.as_fd(),
        name,
    }
}

#[test]
fn the_first_filter_brings_its_clsact() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let pass = program(TC_ACT_UNSPEC);
    assert!(nl.filters(v0, Hook::Egress).unwrap().is_empty());
    assert!(
        nl.attach_bpf_filter(v0, &filter(&pass, 7, 1, "emud_egress"))
            .unwrap()
    );
    assert!(
        !nl.attach_bpf_filter(v0, &filter(&pass, 8, 2, "emud_again"))
            .unwrap()
    );
    let there = nl.filters(v0, Hook::Egress).unwrap();
    let seen: Vec<_> = there
        .iter()
        .map(|f| (f.pref, f.handle, f.protocol, f.chain))
        .collect();
    assert_eq!(seen, [(7, 1, 3, 0), (8, 2, 3, 0)]);
    let bpf = there[0].bpf.clone().unwrap();
    assert_eq!(
        (bpf.name.as_str(), bpf.direct_action),
        ("emud_egress", true)
    );
    let text = shell("tc filter show dev v0 egress");
    let id = format!("id {} ", bpf.program_id);
    let tag: String = bpf.tag.iter().map(|b| format!("{b:02x}")).collect();
    assert!(text.contains(&id) && text.contains(&tag), "{text}");
    assert!(
        text.contains("pref 7 bpf chain 0 handle 0x1 emud_egress direct-action"),
        "{text}"
    );
    assert!(nl.filters(v0, Hook::Ingress).unwrap().is_empty());
    let other = program(TC_ACT_OK);
    nl.replace_bpf_filter(v0, &filter(&other, 7, 1, "emud_other"))
        .unwrap();
    let now = nl.filters(v0, Hook::Egress).unwrap();
    assert_eq!(now.len(), 2);
    assert_ne!(now[0].bpf.as_ref().unwrap().program_id, bpf.program_id);
    nl.delete_bpf_filter(v0, Hook::Egress, 7, 1).unwrap();
    assert_eq!(nl.filters(v0, Hook::Egress).unwrap().len(), 1);
}

#[test]
fn a_clsact_without_its_filter_does_not_stay() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let not_a_program: OwnedFd = File::open("/dev/null").unwrap().into();
    let err = nl
        .attach_bpf_filter(v0, &filter(&not_a_program, 1, 1, "emud"))
        .unwrap_err();
    assert!(
        err.to_string().contains("attach emud to the egress of v0"),
        "{err}"
    );
    assert_eq!(nl.ingress_qdisc(v0).unwrap(), IngressQdisc::None);
}

#[test]
fn places_hold_in_the_kernel() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let pass = program(TC_ACT_UNSPEC);
    nl.attach_bpf_filter(v0, &filter(&pass, 1, 1, "theirs"))
        .unwrap();
    shell(
        "tc filter add dev v0 egress pref 40 protocol ip u32 match u32 0 0 \
            action mirred egress mirror dev lo",
    );
    assert_eq!(
        nl.free_pref(v0, Hook::Egress, Place::First).unwrap(),
        Some(1)
    );
    assert_eq!(
        nl.free_pref(v0, Hook::Egress, Place::Last).unwrap(),
        Some(41)
    );
    nl.replace_bpf_filter(v0, &filter(&pass, 1, 0xe4d, "first"))
        .unwrap();
    nl.replace_bpf_filter(v0, &filter(&pass, 41, 0xe4d, "last"))
        .unwrap();
    let order: Vec<_> = nl.filters(v0, Hook::Egress).unwrap();
    let order: Vec<_> = order
        .iter()
        .map(|f| f.bpf.as_ref().map_or("u32", |b| &b.name))
        .collect();
    // u32 lists its table, too.
    assert_eq!(order, ["first", "theirs", "u32", "u32", "last"]);
    // Replacing one keeps its place.
    let steal = program(TC_ACT_STOLEN);
    nl.replace_bpf_filter(v0, &filter(&steal, 1, 1, "theirs"))
        .unwrap();
    let order = nl.filters(v0, Hook::Egress).unwrap();
    assert_eq!(order[0].bpf.as_ref().unwrap().name, "first");
}

/// Not only in the listing: whoever runs first decides.
#[test]
fn the_newest_at_a_pref_decides() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    shell("ip addr add 10.9.0.1/24 dev v0; ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:09 dev v0");
    let sent = || {
        let packets = || -> u64 {
            let line = shell("grep v1: /proc/thread-self/net/dev");
            line.split_whitespace().nth(2).unwrap().parse().unwrap()
        };
        let before = packets();
        let ping = "-c 2 -i 0.01 -W 0.1 10.9.0.2";
        Command::new("ping").args(ping.split(' ')).output().unwrap();
        packets() - before
    };
    let (pass, steal) = (program(TC_ACT_OK), program(TC_ACT_STOLEN));
    nl.attach_bpf_filter(v0, &filter(&pass, 1, 1, "theirs"))
        .unwrap();
    assert_eq!(sent(), 2);
    nl.replace_bpf_filter(v0, &filter(&steal, 1, 0xe4d, "first"))
        .unwrap();
    assert_eq!(sent(), 0);
}

#[test]
fn offloads_go_off_and_come_back() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    shell("ethtool -K v0 gro on rx-udp-gro-forwarding on");
    let before = shell("ethtool -k v0");
    let taken = Offloads::snapshot(&mut nl, v0, &RECEIVE_MERGING).unwrap();
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
    let taken = Offloads::snapshot(&mut nl, v0, &RECEIVE_MERGING).unwrap();
    assert_eq!(taken, Offloads::default());
    taken.cap(&mut nl, v0).unwrap();
    taken.restore(&mut nl, v0).unwrap();
    assert_eq!(shell("ethtool -k v0"), before);
    // What cannot be switched is said.
    let lo = Offloads::snapshot(&mut nl, 1, &["loopback"]).unwrap();
    assert_eq!(lo.cap(&mut nl, 1).unwrap(), ["loopback"]);
}

fn kernel_release() -> (u32, u32) {
    let release = shell("uname -r");
    let mut numbers = release.split(['.', '-']).map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn tcx_programs_are_seen() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    assert!(tcx_programs("v0", Hook::Ingress).unwrap().is_empty());
    const BPF_TCX_INGRESS: u32 = 46;
    let pass = program(TC_ACT_UNSPEC);
    let mut attr = Vec::new();
    attr.extend(v0.to_ne_bytes());
    attr.extend(pass.as_raw_fd().to_ne_bytes());
    attr.extend(BPF_TCX_INGRESS.to_ne_bytes());
    attr.resize(32, 0);
    if kernel_release() < (6, 6) {
        assert!(
            try_bpf(SYS_BPF_PROG_ATTACH, &attr) < 0,
            "tcx came with Linux 6.6"
        );
        return;
    }
    bpf(SYS_BPF_PROG_ATTACH, &attr);
    assert_eq!(tcx_programs("v0", Hook::Ingress).unwrap().len(), 1);
    assert!(tcx_programs("v0", Hook::Egress).unwrap().is_empty());
    assert!(tcx_programs("v9", Hook::Egress).is_err());
}

#[test]
fn a_lock_belongs_to_one_namespace_and_one_holder() {
    let space = Space::new();
    let held = netlink::lock(7).unwrap();
    let err = netlink::lock(7).unwrap_err();
    assert!(matches!(err, NetlinkError::Busy(_)), "{err:?}");
    assert_eq!(err.exit_code(), 75);
    let _other_interface = netlink::lock(8).unwrap();
    let second = Space::new();
    let _other_namespace = netlink::lock(7).unwrap();
    drop(second);
    netlink::enter(&space.name).unwrap();
    drop(held);
    netlink::lock(7).unwrap();
}
