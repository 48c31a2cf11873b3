// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notifications of changes.

use std::collections::BTreeSet;

use emud::netlink::{Netlink, Notices};

use super::{Space, index, shell};

fn set(indexes: &[u32]) -> BTreeSet<u32> {
    indexes.iter().copied().collect()
}

#[test]
fn only_the_named_interfaces_are_heard_of() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let [lo, v0, v1] = ["lo", "v0", "v1"].map(|name| index(&mut nl, name));
    let mut all = Notices::open().unwrap();
    let mut some = Notices::open().unwrap();
    some.only(&[lo, v0]).unwrap();
    let mut heard = |change: &str| {
        shell(change);
        let [all, some] = [&mut all, &mut some].map(Notices::take);
        (all.changed, some.changed)
    };
    let changed = heard("ip link set v1 txqueuelen 50");
    assert_eq!(changed, (set(&[v1]), set(&[])));
    let changed = heard("ip link set v0 txqueuelen 50");
    assert_eq!(changed, (set(&[v0]), set(&[v0])));
    let (qdisc, filtered) = heard("tc qdisc add dev v1 clsact; tc qdisc add dev lo clsact");
    assert_eq!((qdisc, filtered), (set(&[lo, v1]), set(&[lo])));
    // A veth takes its other end along, which is set down before.
    shell("ip link del v0");
    let deleted = [&mut all, &mut some].map(|notices| notices.take().deleted);
    assert_eq!(deleted, [set(&[v0, v1]), set(&[v0])]);
}

/// Both are undone before the notifications are read.
#[test]
fn an_interface_that_was_down_and_a_qdisc_that_was_deleted_are_heard_of() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let [v0, v1] = ["v0", "v1"].map(|name| index(&mut nl, name));
    shell("tc qdisc add dev v0 clsact");
    let mut all = Notices::open().unwrap();
    let mut heard = |change: &str| {
        shell(change);
        let changes = all.take();
        (changes.set_down, changes.lost_qdisc)
    };
    let none = || set(&[]);
    assert_eq!(
        heard("ip link set v0 mtu 1400 txqueuelen 7"),
        (none(), none())
    );
    assert_eq!(heard("tc qdisc add dev v1 clsact"), (none(), none()));
    // A new one was never up; one that is down stays so.
    let new = "ip link add w0 type veth peer name w1; ip link set w0 arp off; ip link set w0 down";
    assert_eq!(heard(new), (none(), none()));
    assert_eq!(
        heard("ip link set w0 up; ip link set w1 up"),
        (none(), none())
    );
    let again = "ip link set v1 down; ip link set v1 up";
    assert_eq!(heard(again), (set(&[v1]), none()));
    let again = "tc qdisc del dev v0 clsact; tc qdisc add dev v0 clsact";
    assert_eq!(heard(again), (none(), set(&[v0])));
}
