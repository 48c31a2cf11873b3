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
    // A veth takes its other end along.
    shell("ip link del v0");
    let deleted = [&mut all, &mut some].map(|notices| notices.take().deleted);
    assert_eq!(deleted, [set(&[v0, v1]), set(&[v0])]);
}
