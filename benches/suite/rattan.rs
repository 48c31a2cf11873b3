// SPDX-License-Identifier: GPL-2.0-only
//! Rattan (crates.io), a path emulator that, like engine hold, carries packets through user space:
//! packet sockets on veths, and async cells between them.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::lab::{Lab, run, sh, wait_until};

/// The emulator and the namespace that it makes for its sender; gone with the value.
pub struct Rattan(Child);

/// Its namespace `a` is Rattan's to make, so there is none yet.
pub fn lab() -> Lab {
    let lab = Lab::empty();
    sh(&format!(
        "ip -n {b} addr add {}/32 dev lo; ip -n {b} link set dev lo up",
        Lab::B4,
        b = lab.b
    ));
    lab
}

pub fn lacks() -> Option<String> {
    let found = run(Command::new("sh").args(["-c", "command -v rattan"]));
    (found.code != 0).then(|| "not installed (cargo install rattan)".to_owned())
}

impl Rattan {
    /// From its own namespace to `b`, which takes the place of the host.
    pub fn start(lab: &mut Lab, delay_ms: f64) -> Self {
        let before = namespaces();
        // Not `ip netns exec`: what Rattan mounts under /run/netns would stay in there.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", lab.b));
        command.args(["rattan", "link", "--uplink-delay"]);
        command.arg(format!("{delay_ms}ms"));
        command.args(["--", "sleep", "3600"]).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let rattan = Self(command.stderr(Stdio::null()).spawn().expect("rattan"));
        wait_until("Rattan carries", Duration::from_secs(10), || {
            sender(&before).is_some_and(|left| carries(&left))
        });
        // Of the first start, the laboratory's own, which is empty.
        let left = sender(&before).expect("its namespace");
        let own = std::mem::replace(&mut lab.a, left);
        let _ = run(Command::new("ip").args(["netns", "del", &own]));
        rattan
    }
}

fn namespaces() -> Vec<String> {
    let said = sh("ip netns list");
    let names = said.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

fn sender(before: &[String]) -> Option<String> {
    let new = namespaces().into_iter();
    let mut new = new.filter(|name| name.starts_with("ns-left-"));
    new.find(|name| !before.contains(name))
}

fn carries(left: &str) -> bool {
    let ping = ["netns", "exec", left, "ping", "-q", "-c", "1", "-W", "1"];
    run(Command::new("ip").args(ping).arg(Lab::B4)).code == 0
}

impl Drop for Rattan {
    fn drop(&mut self) {
        // SAFETY: no pointers; the group is of the child, which has not been waited for. Rattan
        // puts its namespaces away on this signal.
        unsafe { libc::kill(-(self.0.id() as libc::pid_t), libc::SIGINT) };
        let _ = self.0.wait();
    }
}
