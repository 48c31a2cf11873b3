// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs on an existing interface.

use std::io::{BufRead as _, BufReader};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use emud::datapath::attach::HolderStart;
use emud::datapath::engine::EngineChoice;
use emud::experiment::run::{self, Settings, in_place};
use emud::experiment::scenario::Program;
use emud::host::{interface, now_ns};
use emud::monitor::settings;
use emud::netlink::Netlink;
use emud::profile::Profile;
use rustix::process::WaitOptions;
use support::host::{ip, soon};
use support::runs::{Folder, rtt_ms};
use support::{emud_path, full};

use crate::link::frames::tun;

/// A wire of this host to itself, with one end in a separate namespace; it ends with the value.
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
    attached_to("near")
}

fn attached_to(interface: &str) -> bool {
    let list = Command::new(emud_path())
        .args(["list", "--json"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&list.stdout).contains(&format!("\"{interface}\""))
}

const PING: [&str; 3] = ["sh", "-c", "ping -n -q -c 20 -i 0.02 10.9.0.2"];

pub fn link_comes_and_goes() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    let ran = folder
        .run("--profile ./p.toml --in-place near", &PING)
        .done();
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

/// A link that could not be removed is a failure, and the guard removes it.
pub fn link_that_stays_is_said() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    let words = "--profile ./p.toml --in-place near";
    let emud = started(&folder, words, "until test -f go; do sleep 0.02; done");
    let near = Netlink::open().unwrap().link("near").unwrap().index;
    let other = interface::lock(near, Duration::from_secs(2)).unwrap();
    folder.file("go", "");
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
    let seconds = format!("77.{}", std::process::id());
    let script =
        format!("setsid sleep {seconds} & cat /proc/self/cgroup; echo; exec sleep {seconds}");
    let mut emud = folder.command("--profile ./p.toml --in-place near", &["sh", "-c", &script]);
    let mut emud = emud.stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(emud.stdout.take().unwrap()).lines();
    let said: Vec<String> = (said.map(Result::unwrap))
        .take_while(|line| !line.is_empty())
        .collect();
    assert!(attached());
    emud.kill().unwrap();
    emud.wait().unwrap();
    soon("the link goes", || !attached());
    soon("the programs end", || sleeping(&seconds) == 0);
    soon("their group goes", || !is_there(group(&said.join("\n"))));
}

/// Returns the number of processes that sleep for this time.
fn sleeping(seconds: &str) -> usize {
    let words = format!("sleep\0{seconds}\0").into_bytes();
    let is = |pid| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|read| read == words);
    support::host::pids(is).len()
}

/// The control group of a run, by what a program in it reads in /proc/self/cgroup.
fn group(cgroup: &str) -> Option<&str> {
    let at = cgroup.find("emud-run-")?;
    cgroup[at..].split(['/', '\n']).next()
}

/// Without a hierarchy of version 2 a run has no group.
fn is_there(group: Option<&str>) -> bool {
    let Some(group) = group else { return false };
    let mounted = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let at = mounted.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let at = words.next()?;
        (words.next()? == "cgroup2").then_some(at)
    });
    let all = Command::new("find")
        .args([at.expect("cgroup2"), "-type", "d", "-name", group])
        .output()
        .unwrap();
    !all.stdout.is_empty()
}

/// Separate sessions, a parent that has ended, another user: no process continues behind an
/// interface without its link.
pub fn no_program_outlives_it() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    let seconds = format!("78.{}", std::process::id());
    let script = format!(
        "setsid sleep {seconds} & (setsid sh -c 'sleep {seconds} & sleep {seconds}' &) ; \
         until [ $(pgrep -xf 'sleep {seconds}' | wc -l) = 3 ]; do sleep 0.01; done; \
         cat /proc/self/cgroup"
    );
    for user in ["", "--user nobody"] {
        let words = format!("--profile ./p.toml --in-place near {user}");
        let ran = folder.run(&words, &["sh", "-c", &script]).expect(0);
        assert_eq!(sleeping(&seconds), 0);
        soon("their group goes", || !is_there(group(&ran.out)));
        assert!(!attached());
    }
}

/// Attaches a link, of another emud's, whose holder is no process of a run.
fn attach_near(folder: &Folder) {
    let mut attach = Command::new(emud_path());
    attach.args(["attach", "near", "--profile", "./p.toml"]);
    let attached = attach.current_dir(&folder.0).output().unwrap();
    assert!(attached.status.success(), "{attached:?}");
    assert!(attached_to("near"));
}

/// A run whose program has begun.
fn started(folder: &Folder, words: &str, script: &str) -> Child {
    let mut emud = folder.command(words, &["sh", "-c", &format!("echo; {script}")]);
    emud.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut emud = emud.spawn().unwrap();
    std::io::Read::read_exact(emud.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    emud
}

/// The link is removed from the interface to which it was attached, not from one that has its name
/// now.
pub fn a_renamed_interface_is_still_its_own() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    let words = "--profile ./p.toml --in-place near --exit-code verdict";
    let emud = started(&folder, words, "until test -f go; do sleep 0.02; done");
    ip("link set near down");
    ip("link set near name moved");
    ip("link add near type veth peer name near2");
    attach_near(&folder);
    folder.file("go", "");
    // A link that is missing under its name was not measured.
    folder.ran(&emud.wait_with_output().unwrap()).expect(4);
    assert!(attached_to("near") && !attached_to("moved"));
    detach_near();
    ip("link del near");
    ip("link set moved name near");
    // Nor from one to which another emud has attached its own.
    attach_near(&folder);
    folder
        .run("--profile ./p.toml --in-place near", &["true"])
        .expect(73);
    assert!(attached_to("near"));
    detach_near();
}

/// Engine hold's process, from whose start on the interface has another name.
fn moving(start: HolderStart) -> Command {
    ip("link set near down");
    ip("link set near name moved");
    let mut holder = Command::new(emud_path());
    holder.arg("hold-run");
    let mut give = |name: &str, figure: String| {
        holder.args([name, &figure]);
    };
    give("--ifindex", start.ifindex.to_string());
    give("--program", start.program_id.to_string());
    give("--ready", start.ready.to_string());
    for (name, tap) in ["--up", "--down"].into_iter().zip(start.taps) {
        if let Some(tap) = tap {
            give(name, tap.to_string());
        }
    }
    let limits = start.limit_bytes.map(|bytes| bytes.to_string());
    holder.arg("--limit-bytes").args(limits);
    holder
}

/// A link whose run ends since it cannot read it does not stay.
pub fn a_link_that_cannot_be_read_goes() {
    let _far = Far::new();
    let profile = Profile::parse("up.delay = \"20ms\"\n", "p").unwrap();
    let plan = in_place::plan(profile, "p", Program::Argv(vec!["true".to_owned()]), "near");
    let settings = Settings {
        engine: EngineChoice::Hold,
        in_place: Some("near".to_owned()),
        ..Settings::quiet(1, settings::config(None, &[]).unwrap())
    };
    let failed = run::conduct(&plan, &settings, moving, None).unwrap_err();
    assert!(failed.to_string().contains("near"), "{failed}");
    let left = attached_to("moved");
    // The holder is a child of this process, which has ended with the link.
    if !left {
        rustix::process::wait(WaitOptions::empty()).unwrap();
    }
    ip("link set moved name near");
    assert!(!left, "{failed}");
}

/// A link that another emud attached instead of that of the run stays: at the end, and if the run is killed.
pub fn a_link_of_another_stays() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    for kill in [false, true] {
        let words = "--profile ./p.toml --in-place near";
        let mut emud = started(&folder, words, "exec sleep 1");
        let guard = guard_of(emud.id());
        detach_near();
        attach_near(&folder);
        if kill {
            emud.kill().unwrap();
        }
        emud.wait().unwrap();
        soon("the guard ends", || arguments(guard).is_empty());
        assert!(attached(), "killed: {kill}");
        detach_near();
    }
}

/// Without a run, whose moments cannot be met: what a guard does that has heard this much.
pub fn a_guard_removes_what_its_run_began() {
    let _far = Far::new();
    let folder = Folder::new();
    folder.file("p.toml", "up.delay = \"20ms\"\n");
    let near = Netlink::open().unwrap().link("near").unwrap().index;
    let guard = |said: &str| {
        let mut guard = Command::new(emud_path());
        // It has no programs to end.
        guard.args(["guard", &near.to_string(), "/nosuch"]);
        let mut guard = guard.stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = guard.stdin.take().unwrap();
        std::io::Write::write_all(&mut pipe, said.as_bytes()).unwrap();
        drop(pipe);
        guard.wait().unwrap();
    };
    let before = now_ns();
    attach_near(&folder);
    let later = now_ns();
    let shown = Command::new(emud_path())
        .args(["show", "near", "--json"])
        .output()
        .unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let seed = shown["interfaces"][0]["seed"].as_u64().unwrap();
    for said in [
        String::new(),
        format!("begin {seed} {later}\n"),
        format!("begin {} {before}\n", seed ^ 1),
        format!("begin {seed} {before}\nattached 0\n"),
    ] {
        guard(&said);
        assert!(attached(), "{said}");
    }
    guard(&format!("begin {seed} {before}\n"));
    assert!(!attached());
}

/// The process that outlives a run.
fn guard_of(run: u32) -> u32 {
    let is = |pid| {
        arguments(pid).split('\0').nth(1) == Some("guard")
            && support::host::parent(pid) == Some(run)
    };
    *support::host::pids(is).first().expect("its guard")
}

/// Empty once it has ended.
fn arguments(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

fn detach_near() {
    let detach = Command::new(emud_path()).args(["detach", "near"]).status();
    assert!(detach.unwrap().success());
}

/// On a device without Ethernet header nothing segments: that packets share a fate is in the verdict,
/// unless the link treats all packets of an instant alike, or the profile has `keep`.
pub fn super_packets_are_said() {
    let folder = Folder::new();
    let tun = tun("long");
    const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
    const TUN_F_CSUM: libc::c_uint = 1;
    // SAFETY: the argument is a number. Without checksum offload the kernel drops UDP super-packets
    // whose head grows (docs/limits.md).
    let done = unsafe { libc::ioctl(tun.as_raw_fd(), TUNSETOFFLOAD, TUN_F_CSUM) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    ip("address add 10.9.1.1/24 dev long");
    ip("link set long up");
    // A train of 10 packets by UDP_SEGMENT.
    let train = "import socket\n\
                 s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                 s.setsockopt(socket.IPPROTO_UDP, 103, 1000)\n\
                 for n in range(5): s.sendto(b'x' * 10000, ('10.9.1.2', 9))\n";
    let train = ["python3", "-c", train];
    let one_fate = Some("up: 5 super-packets had one fate each");
    for (profile, wanted) in [
        ("up.loss = \"1%\"\n", one_fate),
        ("up.delay = \"1ms\"\n", None),
        ("offload = \"keep\"\nup.loss = \"1%\"\n", None),
        // No packet has that byte.
        (
            "offload = \"keep\"\nup.corrupt = { probability = \"100%\", from = 20000 }\n",
            Some("up: 50 packets were to be copied or damaged and could not be"),
        ),
        // Counted by the link that the rule chooses.
        (
            "[links.x.up]\nloss = \"1%\"\n[[rule]]\nmatch = { protocol = \"udp\" }\nlink = \"x\"\n",
            one_fate,
        ),
    ] {
        folder.file("p.toml", profile);
        let ran = folder.run("--in-place long --profile ./p.toml", &train);
        let ran = ran.expect(if wanted.is_some() { 4 } else { 0 });
        if let Some(wanted) = wanted {
            assert!(ran.err.contains(wanted), "{profile}: {}", ran.err);
        }
        // Before the first packet, too.
        let is_noted = ran
            .err
            .contains("note: up: a device without an Ethernet header");
        assert_eq!(is_noted, wanted == one_fate, "{profile}: {}", ran.err);
    }
}
