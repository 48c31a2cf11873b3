// SPDX-License-Identifier: MIT OR Apache-2.0
//! The laboratory: two network namespaces joined by a veth, and the programs run in them.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

pub use crate::emud_path;
use crate::number_from;
use crate::site::unique;

/// Where packets wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Fq,
    Hold,
    Qdisc,
}

impl Engine {
    /// Whether packets wait in a qdisc.
    pub fn is_stamped(self) -> bool {
        self != Self::Hold
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Fq => "fq",
            Self::Hold => "hold",
            Self::Qdisc => "qdisc",
        }
    }

    /// How much before its time a packet may depart. As docs/limits.md says of engine qdisc: EMUD_EARLY_NS of
    /// bpf/qdisc.bpf.c, and EMUD_LEAD_NS.
    pub fn early_ms(self) -> f64 {
        if self == Self::Qdisc { 0.011_392 } else { 0.0 }
    }
}

/// The output of a program.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Ends the test if the code is not `code`.
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "exit code\nout: {}\nerr: {}",
            self.out, self.err
        );
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("JSON")
    }
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> Said {
    let done = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    Said {
        // None: ended by a signal, which no test expects.
        code: done.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&done.stdout).into_owned(),
        err: String::from_utf8_lossy(&done.stderr).into_owned(),
    }
}

/// Runs a line of shell; ends the test if it fails.
pub fn sh(script: &str) -> String {
    let said = run(Command::new("sh").args(["-ec", script]));
    assert_eq!(said.code, 0, "{script}: {}{}", said.out, said.err);
    said.out
}

/// The emud under test, without a network namespace.
pub fn emud(args: &[&str]) -> Said {
    run(Command::new(emud_path()).args(args))
}

/// The share of the full number of probes to send (`EMUD_LIVE_SCALE`, at most 1).
pub fn scaled(full: u32) -> u32 {
    let share: f64 = number_from("EMUD_LIVE_SCALE").unwrap_or(1.0);
    (f64::from(full) * share.min(1.0)).ceil() as u32
}

/// The share of a time for which something is measured, but at least that which it takes.
pub fn scaled_s(full_s: f64, least_s: f64) -> Duration {
    let share: f64 = number_from("EMUD_LIVE_SCALE").unwrap_or(1.0);
    Duration::from_secs_f64((full_s * share.min(1.0)).max(least_s))
}

/// The highest packet rate that this machine can send (`EMUD_LIVE_PPS_MAX`).
pub fn packets_per_s(wanted: u32) -> u32 {
    number_from("EMUD_LIVE_PPS_MAX").map_or(wanted, |max| wanted.min(max as u32))
}

/// Returns whether an environment variable contains this name: features that the caller expects.
pub fn promised(variable: &str, word: &str) -> bool {
    std::env::var(variable).is_ok_and(|words| words.split_whitespace().any(|w| w == word))
}

/// Two network namespaces, `a` with the interface `va` and `b` with `vb`, joined by a veth. emud is
/// attached to `va`. Everything is deleted with the value.
pub struct Lab {
    pub a: String,
    pub b: String,
    profiles: AtomicU32,
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}

impl Lab {
    pub const A4: &'static str = "10.77.0.1";
    pub const B4: &'static str = "10.77.0.2";
    pub const A6: &'static str = "fd77::1";
    pub const B6: &'static str = "fd77::2";

    pub fn new() -> Self {
        Self::with_queues(1)
    }

    /// A veth with this number of transmit and receive queues on both sides.
    pub fn with_queues(queues: u32) -> Self {
        let lab = Self::empty();
        let of = format!("numtxqueues {queues} numrxqueues {queues}");
        sh(&format!(
            "ip link add va netns {a} {of} type veth peer name vb netns {b} {of}",
            a = lab.a,
            b = lab.b
        ));
        for (space, device, address) in [(&lab.a, "va", Self::A4), (&lab.b, "vb", Self::B4)] {
            // IPv6 sends packets by itself, which would be counted.
            sh(&format!(
                "ip netns exec {space} sh -c 'echo 1 >/proc/sys/net/ipv6/conf/{device}/disable_ipv6'
                 ip -n {space} addr add {address}/24 dev {device}
                 ip -n {space} link set dev {device} up
                 ip -n {space} link set dev lo up"
            ));
        }
        lab.wait_for_carrier();
        // Resolves the neighbours, and warms up the code.
        lab.ping("-c 3 -i 0.01");
        lab
    }

    /// The kernel reports a carrier some time after it is there, which would differ from a snapshot.
    pub fn wait_for_carrier(&self) {
        wait_until("the carrier", Duration::from_secs(10), || {
            self.in_a("ip -o link show va").contains("state UP")
        });
    }

    /// IPv6 addresses, too.
    pub fn add_ipv6(&self) {
        for (space, device, address) in [(&self.a, "va", Self::A6), (&self.b, "vb", Self::B6)] {
            sh(&format!(
                "ip -n {space} link set dev {device} addrgenmode none
                 ip netns exec {space} sh -c 'echo 0 >/proc/sys/net/ipv6/conf/{device}/disable_ipv6'
                 ip -n {space} addr add {address}/64 dev {device} nodad"
            ));
        }
        // The kernel joins the group of an address some time after it has been given.
        wait_until("IPv6 works", Duration::from_secs(10), || {
            let ping = format!("ip netns exec {} ping -q -c 1 -W 1 {}", self.a, Self::B6);
            run(Command::new("sh").args(["-c", &ping])).code == 0
        });
    }

    /// Keeps answers of the neighbours from passing the link.
    pub fn know_each_other(&self) {
        for (space, device, other, address) in [
            (&self.a, "va", (&self.b, "vb"), Self::B4),
            (&self.b, "vb", (&self.a, "va"), Self::A4),
        ] {
            sh(&format!(
                "mac=$(ip -n {} -br link show dev {} | awk '{{ print $3 }}')
                 ip -n {space} neigh replace {address} lladdr $mac dev {device} nud permanent",
                other.0, other.1
            ));
        }
    }

    /// The two namespaces, with nothing in them.
    pub fn empty() -> Self {
        let lab = Self {
            a: unique("a"),
            b: unique("b"),
            profiles: AtomicU32::new(0),
        };
        sh(&format!("ip netns add {}; ip netns add {}", lab.a, lab.b));
        lab
    }

    /// A command in namespace `a`.
    pub fn in_a(&self, script: &str) -> String {
        sh(&format!("ip netns exec {} sh -ec '{script}'", self.a))
    }

    /// A command in namespace `b`.
    pub fn in_b(&self, script: &str) -> String {
        sh(&format!("ip netns exec {} sh -ec '{script}'", self.b))
    }

    /// `ping` from a to b; numeric output.
    pub fn ping(&self, options: &str) -> String {
        run(Command::new("sh").args([
            "-c",
            &format!(
                "LC_ALL=C ip netns exec {} ping -n {options} {}",
                self.a,
                Self::B4
            ),
        ]))
        .out
    }

    /// Runs emud in namespace `a`.
    pub fn emud(&self, args: &[&str]) -> Said {
        run(Command::new(emud_path())
            .args(["--netns", &self.a])
            .args(args))
    }

    /// A profile file with this text; its path.
    pub fn profile(&self, text: &str) -> String {
        let number = self.profiles.fetch_add(1, Ordering::Relaxed);
        let path = format!("{}/{number}.toml", self.folder().display());
        std::fs::create_dir_all(self.folder()).expect("make a folder for profiles");
        std::fs::write(&path, text).expect("write a profile");
        path
    }

    fn folder(&self) -> PathBuf {
        std::env::temp_dir().join(&self.a)
    }

    /// Attaches a profile, given as its text or as a shipped one's name, to `va`.
    pub fn attach(&self, engine: Engine, profile: &str, more: &[&str]) -> Said {
        self.try_attach(engine, profile, more).expect(0)
    }

    pub fn try_attach(&self, engine: Engine, profile: &str, more: &[&str]) -> Said {
        let shipped = !profile.contains(['=', '\n']);
        let profile = if shipped {
            profile.to_owned()
        } else {
            self.profile(profile)
        };
        let mut args = vec!["attach", "va", "--engine", engine.name()];
        args.extend(["--profile", &profile]);
        args.extend(more);
        self.emud(&args)
    }

    /// Under engine hold, with a delay of at least 1 s: a frame leaves late, because its holder is
    /// stopped beyond the frame's time, whatever the load of the machine.
    pub fn hold_late(&self) {
        let holder = self.shown("/up/holder/pid");
        let before = self.shown("/up/counters/packets");
        let ping = inside(&self.a, || {
            run(Command::new("ping").args(["-q", "-c", "1", "-W", "3", Self::B4]))
        });
        wait_until("a frame waits", Duration::from_secs(10), || {
            self.shown("/up/counters/packets") > before
        });
        sh(&format!(
            "kill -STOP {holder}; sleep 1.2; kill -CONT {holder}"
        ));
        ping.join().expect("ping");
    }

    pub fn detach(&self) {
        self.emud(&["detach", "va"]).expect(0);
    }

    /// `emud show va --json`, the interface's part.
    pub fn show(&self) -> Value {
        let mut shown = self.emud(&["show", "va", "--json"]).expect(0).json();
        shown["interfaces"][0].take()
    }

    /// A number that `emud show` gives, by JSON pointer: `/up/counters/lost`.
    pub fn shown(&self, pointer: &str) -> u64 {
        let shown = self.show();
        shown
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("{pointer} in {shown}"))
    }

    /// Everything that attach changes and detach must restore, as ip, tc and ethtool print it.
    pub fn snapshot(&self) -> String {
        // An interface that has a carrier and is not in operation yet: the kernel notices within a second
        // (linkwatch).
        wait_until("links are in operation", Duration::from_secs(10), || {
            !(self.in_a("ip -o link show").lines())
                .any(|line| line.contains("NO-CARRIER") && line.contains("LOWER_UP"))
        });
        self.in_a(
            "ip -d link show
             tc qdisc show
             for device in $(ls /proc/sys/net/ipv4/conf); do
                 case $device in all | default) continue ;; esac
                 echo \"== $device\"
                 for hook in ingress egress; do
                     tc filter show dev $device $hook 2>/dev/null || true
                 done
                 ethtool -k $device 2>&1 || true
             done",
        )
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for space in [&self.a, &self.b] {
            // No panic here: it would hide the test's own message.
            let _ = Command::new("ip").args(["netns", "del", space]).status();
        }
        let _ = std::fs::remove_dir_all(self.folder());
    }
}

/// Runs `work` in a separate thread, inside a network namespace.
pub fn inside<T: Send + 'static>(
    namespace: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let namespace = namespace.to_owned();
    thread::spawn(move || {
        crate::enter(&namespace);
        work()
    })
}

/// Waits until a condition is true; returns the time that took.
pub fn wait_until(what: &str, longest: Duration, so: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < longest, "not within {longest:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

/// Collects failures, so that one figure does not hide the others.
#[derive(Default)]
pub struct Verdict {
    wrong: Vec<String>,
}

impl Verdict {
    /// Prints a figure; records it if it is off by more than `at_most`.
    pub fn near(&mut self, what: &str, asked: f64, got: f64, at_most: f64) {
        let line = format!("{what}: expected {asked:.4}, got {got:.4}, allowed +-{at_most:.4}");
        self.judge(&line, (got - asked).abs() <= at_most);
    }

    pub fn at_least(&mut self, what: &str, least: f64, got: f64) {
        self.judge(
            &format!("{what}: at least {least:.4}, got {got:.4}"),
            got >= least,
        );
    }

    pub fn at_most(&mut self, what: &str, most: f64, got: f64) {
        self.judge(
            &format!("{what}: at most {most:.4}, got {got:.4}"),
            got <= most,
        );
    }

    pub fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, asked: T, got: T) {
        self.judge(
            &format!("{what}: expected {asked:?}, got {got:?}"),
            asked == got,
        );
    }

    fn judge(&mut self, line: &str, good: bool) {
        println!("    {}{line}", if good { "" } else { "WRONG " });
        if !good {
            self.wrong.push(line.to_owned());
        }
    }

    pub fn end(self) {
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
    }
}
