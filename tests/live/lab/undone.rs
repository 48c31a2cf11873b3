// SPDX-License-Identifier: MIT OR Apache-2.0
//! A failed step is reverted completely.

use emud::experiment::lab::{Lab, LabError};
use emud::experiment::scenario::Bridge;

use super::bench::{self, files, lab, ping, shell};
use support::host::{interfaces, ip};

pub fn wire() {
    let mut lab = lab(&["a", "b"]);
    ip("link add taken type veth peer name other");
    let add = |lab: &mut Lab, near: &str, far: &str| lab.wire(&bench::wire(near, far));
    // The far end's name is in use, then the near end's.
    let far = add(&mut lab, "a:eth0 10.0.0.1/24", ":taken 10.0.0.2/24").unwrap_err();
    assert_eq!(far.exit_code(), 73, "{far}");
    let near = add(&mut lab, ":taken 10.0.0.2/24", "a:eth0 10.0.0.1/24").unwrap_err();
    assert_eq!(near.exit_code(), 73, "{near}");
    // A name that no interface can have, which the kernel detects late; at either end.
    add(&mut lab, "a:eth0 10.0.0.1/24", "b:default 10.0.0.2/24").unwrap_err();
    add(&mut lab, ":default 10.0.0.2/24", "b:eth0 10.0.0.1/24").unwrap_err();
    assert_eq!(interfaces(), ["lo", "other", "taken"]);
    for node in ["a", "b"] {
        assert_eq!(shell(&lab, node, "ls /sys/class/net"), "lo");
    }
    add(&mut lab, "a:eth0 10.0.0.1/24", "b:eth0 10.0.0.2/24").unwrap();
    assert!(ping(&lab, "a", "10.0.0.2"));
    lab.close().unwrap();
    ip("link del taken");
}

pub fn bridge() {
    let mut lab = lab(&["a"]);
    let bridge = |ports: &[&str]| Bridge {
        interface: "br0".into(),
        address: None,
        ports: ports.iter().map(|&port| port.to_owned()).collect(),
    };
    lab.wire(&bench::wire("a:port0", "a:port1")).unwrap();
    lab.bridge("a", &bridge(&["port0", "nowhere"])).unwrap_err();
    let list = shell(&lab, "a", "ls /sys/class/net");
    assert_eq!(
        list.split_whitespace().collect::<Vec<_>>(),
        ["lo", "port0", "port1"]
    );
    lab.bridge("a", &bridge(&["port0"])).unwrap();
    lab.close().unwrap();
}

pub fn node() {
    let mut lab = lab(&["a"]);
    let again = lab.add_node("a", &files());
    assert!(matches!(again, Err(LabError::Taken(name)) if name == "a"));
    drop(lab);
}
