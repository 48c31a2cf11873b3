// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rattan (crates.io), a path emulator that, like engine hold, carries packets through user space:
//! packet sockets on veths, and async cells between them.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::lab::{Lab, run, sh};

/// The emulator, which creates its sender's namespace; ended with the value.
pub struct Rattan {
    child: Child,
    /// The laboratory's own namespace, which is empty meanwhile.
    own: String,
}

/// The receiver has no device yet: Rattan creates one.
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
    /// From its own namespace to `b`, which replaces the host.
    pub fn start(lab: &mut Lab, delay_ms: f64) -> Self {
        // Not `ip netns exec`: Rattan's mounts under /run/netns would stay in there.
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", lab.b));
        command.args(["rattan", "link", "--uplink-delay"]);
        command.arg(format!("{delay_ms}ms"));
        command.args(["--", "sh", "-c", "ip netns identify; exec sleep 3600"]);
        command.process_group(0).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut rattan = Self {
            child: command.spawn().expect("rattan"),
            own: lab.a.clone(),
        };
        lab.a = sender(&mut rattan.child);
        let ping = ["-q", "-c", "1", "-W", "5", Lab::B4];
        let arguments = ["netns", "exec", &lab.a, "ping"];
        let carries = run(Command::new("ip").args(arguments).args(ping));
        assert_eq!(carries.code, 0, "Rattan carries nothing: {carries:?}");
        rattan
    }

    pub fn stop(self, lab: &mut Lab) {
        lab.a.clone_from(&self.own);
    }
}

/// The namespace in which its command runs; its log takes the same path.
fn sender(child: &mut Child) -> String {
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut lines = output.lines().map_while(Result::ok);
    let left = lines.find(|line| line.starts_with("ns-left-"));
    left.expect("Rattan's namespace").trim().to_owned()
}

impl Drop for Rattan {
    fn drop(&mut self) {
        // Rattan removes its namespaces at the first signal; it may be too busy to receive it.
        for signal in [libc::SIGINT, libc::SIGKILL] {
            // SAFETY: no pointers; the group is of the child, which has not been waited for.
            unsafe { libc::kill(-(self.child.id() as libc::pid_t), signal) };
            for _ in 0..50 {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}
