// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::{Duration, Instant};

use emud::experiment::lab::Files;
use emud::experiment::scenario::Bridge;

use super::bench::{end, lab, ping, route, shell, wire};

pub fn pair() {
    let mut lab = lab(&["a", "b"]);
    lab.wire(&wire("a:eth0 10.0.0.1/24", "b:eth0 10.0.0.2/24"))
        .unwrap();
    assert!(ping(&lab, "a", "10.0.0.2"));
    assert!(ping(&lab, "b", "10.0.0.1"));
    assert!(ping(&lab, "b", "127.0.0.1"));
    lab.close().unwrap();
}

pub fn chain() {
    let mut lab = lab(&["a", "r", "b"]);
    lab.wire(&wire("a:eth0 10.0.1.1/24", "r:left 10.0.1.2/24"))
        .unwrap();
    lab.wire(&wire("r:right 10.0.2.2/24", "b:eth0 10.0.2.1/24"))
        .unwrap();
    lab.route("a", &route("10.0.2.0/24", "10.0.1.2", "eth0"))
        .unwrap();
    lab.route("b", &route("10.0.1.0/24", "10.0.2.2", "eth0"))
        .unwrap();
    assert!(!ping(&lab, "a", "10.0.2.1"), "r does not forward yet");
    lab.forward("r").unwrap();
    assert!(ping(&lab, "a", "10.0.2.1"));
    let settings =
        "cd /proc/sys/net/ipv4/conf && cat all/rp_filter all/send_redirects left/send_redirects";
    assert_eq!(shell(&lab, "r", settings), "2\n0\n0");
    // Whatever the host's are.
    let settings = "cd /proc/sys/net/ipv4/conf && cat all/rp_filter default/rp_filter eth0/rp_filter \
                    all/arp_ignore eth0/arp_ignore";
    assert_eq!(shell(&lab, "a", settings), "0\n0\n0\n0\n0");
    lab.close().unwrap();
}

pub fn star() {
    let mut lab = lab(&["hub", "p1", "p2", "p3"]);
    for peer in 1..=3 {
        let theirs = format!("p{peer}:eth0 10.0.0.{peer}/24");
        lab.wire(&wire(&theirs, &format!("hub:port{peer}")))
            .unwrap();
    }
    let bridge = Bridge {
        interface: "br0".into(),
        address: Some("10.0.0.254/24".parse().unwrap()),
        ports: (1..=3).map(|peer| format!("port{peer}")).collect(),
    };
    lab.bridge("hub", &bridge).unwrap();
    assert!(ping(&lab, "p1", "10.0.0.2"));
    assert!(ping(&lab, "p3", "10.0.0.1"));
    assert!(ping(&lab, "p3", "10.0.0.254"));
    lab.close().unwrap();
}

/// Only programs send packets.
pub fn silent() {
    let mut lab = lab(&["a"]);
    let (host, theirs) = (":emud-test 10.0.0.1/30", "a:eth0 10.0.0.2/30");
    lab.wire(&wire(host, theirs)).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let counters =
        "cat /sys/class/net/eth0/statistics/tx_packets /sys/class/net/eth0/statistics/rx_packets";
    assert_eq!(shell(&lab, "a", counters), "0\n0");
    drop(lab);
}

/// A star of 32 peers; in the full run within 3 s.
pub fn many() {
    const PEERS: usize = 32;
    let start = Instant::now();
    let mut lab = lab(&["hub"]);
    for peer in 1..=PEERS {
        let name = format!("p{peer}");
        lab.add_node(&name, &Files::default()).unwrap();
        let near = end(&format!("{name}:eth0 10.0.{peer}.2/24"));
        let far = end(&format!("hub:p{peer} 10.0.{peer}.1/24"));
        lab.wire(&emud::experiment::scenario::Wire {
            ends: [near, far],
            tunnel: None,
        })
        .unwrap();
        let gateway = format!("10.0.{peer}.1");
        lab.route(&name, &route("0.0.0.0/0", &gateway, "eth0"))
            .unwrap();
    }
    lab.forward("hub").unwrap();
    let made = start.elapsed();
    assert!(ping(&lab, "p1", "10.0.32.2"));
    let end = Instant::now();
    lab.close().unwrap();
    let gone = end.elapsed();
    println!("{PEERS} peers: made in {made:?}, taken away in {gone:?}");
    assert!(
        !support::full() || made + gone < Duration::from_secs(3),
        "{made:?}, {gone:?}"
    );
}
