// SPDX-License-Identifier: MIT OR Apache-2.0
//! What devices and their qdiscs dropped.

use std::net::UdpSocket;

use emud::datapath::engine::hold::tap;
use emud::netlink::Netlink;

use super::{Space, index, shell};

#[test]
fn drops_of_all_interfaces_are_those_of_each() {
    let _space = Space::new();
    // Nobody reads from it.
    let tap = tap::create("emud-test%d", 1500).unwrap();
    let device = &tap.name;
    shell(&format!(
        "ip link set {device} txqueuelen 10 up
         ip addr add 10.70.0.1/24 dev {device}
         ip neigh add 10.70.0.2 lladdr 02:00:00:00:00:02 dev {device}
         tc qdisc add dev v0 root pfifo limit 7"
    ));
    let socket = UdpSocket::bind("10.70.0.1:0").unwrap();
    for _ in 0..100 {
        socket.send_to(b"lost", "10.70.0.2:9").unwrap();
    }
    let mut nl = Netlink::open().unwrap();
    let all = nl.dropped().unwrap();
    let of_tap = &all[&tap.ifindex];
    assert_eq!(of_tap.on_transmit, nl.tx_dropped(tap.ifindex).unwrap());
    assert!(of_tap.on_transmit + of_tap.by_qdiscs >= 80, "{of_tap:?}");
    assert!(of_tap.on_transmit > 0, "{of_tap:?}");
    let of_v0 = &all[&index(&mut nl, "v0")];
    assert_eq!(
        (of_v0.on_transmit, of_v0.by_qdiscs, of_v0.by_engine),
        (0, 0, 0)
    );
    assert_eq!(all.len(), nl.links().unwrap().len());
}
