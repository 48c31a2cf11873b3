// SPDX-License-Identifier: MIT OR Apache-2.0
//! VDE's wirefilter (Debian: vde2), an emulator that, like engine hold, carries frames through
//! user space: TAP, pipe, wirefilter, pipe, TAP. Most distributions have it, unlike Mahimahi, which
//! Debian dropped.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::lab::{Lab, run, sh, wait_until};

/// The processes of `dpipe`; all of them end with the value.
pub struct Wirefilter(Child);

/// As the usual laboratory, but the devices are TAPs, which nothing joins yet.
pub fn lab() -> Lab {
    let lab = Lab::empty();
    for (space, device, address) in [(&lab.a, "va", Lab::A4), (&lab.b, "vb", Lab::B4)] {
        sh(&format!(
            "ip -n {space} tuntap add dev {device} mode tap
             ip netns exec {space} sh -c 'echo 1 >/proc/sys/net/ipv6/conf/{device}/disable_ipv6'
             ip -n {space} addr add {address}/24 dev {device}
             ip -n {space} link set dev {device} txqueuelen 100000 up"
        ));
    }
    lab
}

/// The programs that it needs, and the missing ones.
pub fn lacks() -> Option<String> {
    let script = "for program in dpipe vde_plug wirefilter; do
            command -v $program >/dev/null || echo $program
        done";
    let absent = sh(script);
    let absent: Vec<&str> = absent.split_whitespace().collect();
    let why = format!("not installed: {} (Debian: vde2)", absent.join(", "));
    (!absent.is_empty()).then_some(why)
}

impl Wirefilter {
    /// From `a` to `b` only, as the other sides do it. Its queue is large enough for what a
    /// flow without loss has on its way.
    pub fn start(lab: &Lab, delay_ms: f64) -> Self {
        let plug = |space, device| format!("ip netns exec {space} vde_plug tap://{device}");
        let line = format!(
            "{} = wirefilter -d LR{delay_ms} -c 100000000 = {}",
            plug(&lab.a, "va"),
            plug(&lab.b, "vb")
        );
        let child = Command::new("dpipe")
            .args(line.split(' '))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let ping = format!("ip netns exec {} ping -q -c 1 -W 1 {}", lab.a, Lab::B4);
        let wire = Self(child.expect("dpipe"));
        wait_until("wirefilter carries", Duration::from_secs(10), || {
            run(Command::new("sh").args(["-c", &ping])).code == 0
        });
        wire
    }
}

impl Drop for Wirefilter {
    fn drop(&mut self) {
        // SAFETY: no pointers; the group is of the child, which has not been waited for.
        unsafe { libc::kill(-(self.0.id() as libc::pid_t), libc::SIGTERM) };
        let _ = self.0.wait();
    }
}
