// SPDX-License-Identifier: MIT OR Apache-2.0
//! Labs, and helpers to inspect them.

use std::fs;
use std::process::{Command, Output, Stdio};

use emud::experiment::lab::{Files, Lab};
use emud::experiment::scenario::{PlannedEnd, Route, Wire};

pub fn lab(nodes: &[&str]) -> Lab {
    let mut lab = Lab::new().unwrap();
    for name in nodes {
        lab.add_node(name, &files()).unwrap();
    }
    lab
}

pub fn files() -> Files {
    Files {
        resolv_conf: Some("nameserver 192.0.2.53\n".into()),
        hosts: "127.0.0.1 localhost\n192.0.2.7 peer\n".into(),
        scratch: None,
    }
}

/// "node:interface address", without node for the host, without address for a port.
pub fn end(text: &str) -> PlannedEnd {
    let (place, address) = text.split_once(' ').unwrap_or((text, ""));
    let (node, interface) = place.split_once(':').unwrap();
    PlannedEnd {
        node: Some(node.to_owned()).filter(|node| !node.is_empty()),
        interface: interface.to_owned(),
        address: (!address.is_empty()).then(|| address.parse().unwrap()),
    }
}

pub fn wire(near: &str, far: &str) -> Wire {
    Wire {
        ends: [end(near), end(far)],
        tunnel: None,
    }
}

pub fn route(to: &str, via: &str, interface: &str) -> Route {
    Route {
        to: to.parse().unwrap(),
        via: Some(via.parse().unwrap()),
        interface: interface.into(),
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns the output of a shell command in the node; it must succeed.
pub fn shell(lab: &Lab, node: &str, script: &str) -> String {
    let output = try_shell(lab, node, script);
    assert!(output.status.success(), "{node}: {script}: {output:?}");
    stdout(&output)
}

pub fn try_shell(lab: &Lab, node: &str, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = lab.spawn(node, &mut command).unwrap();
    child.wait_with_output().unwrap()
}

pub fn ping(lab: &Lab, node: &str, to: &str) -> bool {
    try_shell(lab, node, &format!("ping -n -c 2 -i 0.05 -W 2 {to}"))
        .status
        .success()
}

pub fn read(file: &str) -> String {
    fs::read_to_string(file).unwrap().trim().to_owned()
}
