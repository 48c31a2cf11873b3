// SPDX-License-Identifier: MIT OR Apache-2.0
//! On an interface that exists.

use std::process::{Command, Stdio};
use std::time::Duration;

use emud::netlink::{self, Netlink};
use support::host::{ip, soon};
use support::runs::{Folder, rtt_ms};
use support::{emud_path, full};

/// A wire of this host to itself, of which one end is in a namespace of its own; it ends with
/// the value.
struct Far(std::process::Child);

impl Far {
    fn new() -> Self {
        let mut far = Command::new("unshare");
        far.args(["-n", "sh", "-c", "echo there; exec sleep 1000"]);
        let mut far = far.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 6];
        std::io::Read::read_exact(far.stdout.as_mut().unwrap(), &mut line).unwrap();
        let pid = far.id();
        ip(&format!(
            "link add near type veth peer name far netns {pid}"
        ));
        ip("address add 10.9.0.1/24 dev near");
        ip("link set near up");
        let inside = format!(
            "nsenter -t {pid} -n sh -c 'ip link set far up; ip address add 10.9.0.2/24 dev far'"
        );
        assert!(
            Command::new("sh")
                .args(["-c", &inside])
                .status()
                .unwrap()
                .success()
        );
        Self(far)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "del", "near"]).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attached() -> bool {
    let list = Command::new(emud_path())
        .args(["list", "--json"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&list.stdout).contains("near")
}

const PING: [&str; 3] = ["sh", "-c", "ping -n -q -c 20 -i 0.02 10.9.0.2"];

pub fn link_comes_and_goes() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    let ran = folder
        .run("--profile ./p.toml --in-place near", &PING)
        .expect(0);
    let [min, avg, ..] = rtt_ms(&ran.out);
    assert!(min >= 20.0 && (!full() || avg < 22.0), "{}", ran.out);
    assert_eq!(ran.one("run")["in_place"], "near");
    assert!(!attached());
    let [_, avg, ..] = rtt_ms(&folder.run("--profile ./p.toml --in-place near", &PING).out);
    assert!(avg > 20.0);
    folder
        .run("--profile ./p.toml --in-place nowhere", &PING)
        .expect(66);
}

/// A link that could not be taken away is a failure, and the guard sees to it.
pub fn link_that_stays_is_said() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    let words = "--profile ./p.toml --in-place near";
    let mut emud = folder.command(words, &["sh", "-c", "echo; exec sleep 2"]);
    let mut emud = (emud.stdout(Stdio::piped()).stderr(Stdio::piped()))
        .spawn()
        .unwrap();
    std::io::Read::read_exact(emud.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    let near = Netlink::open().unwrap().link("near").unwrap().index;
    let other = netlink::lock(near, Duration::from_secs(2)).unwrap();
    let ran = folder.ran(&emud.wait_with_output().unwrap()).expect(75);
    assert!(ran.err.contains("emud detach near"), "{}", ran.err);
    assert!(attached());
    drop(other);
    soon("the guard takes it away", || !attached());
}

/// Neither the link nor the program outlives emud.
pub fn guard() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    let mut emud = folder.command(
        "--profile ./p.toml --in-place near",
        &["sh", "-c", "echo; exec sleep 77"],
    );
    let mut emud = emud.stdout(Stdio::piped()).spawn().unwrap();
    std::io::Read::read_exact(emud.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    assert!(attached());
    emud.kill().unwrap();
    emud.wait().unwrap();
    soon("the link goes", || !attached());
    let alive = |pid| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words == b"sleep\x0077\0")
    };
    soon("the program ends", || support::host::pids(alive).is_empty());
}
