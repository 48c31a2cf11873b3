// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must not happen: remaining attachments, alarms lost silently, leaks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use super::bandwidth;
use support::lab::{Engine, Lab, Verdict, emud_path, run, wait_until};
use support::load::Load;
use support::nobody::{self, Nobody};
use support::site::{Group, Wires, hierarchies, unique};
use support::watch::{Line, SEEN, Watch};
use support::{bpf, full};

/// Longer than a slow kernel takes to verify the programs.
const PATIENCE: Duration = Duration::from_secs(20);
const MS: u64 = 1_000_000;

/// kill -9, idle and in the middle of alarms, leaves no objects in the kernel.
pub fn killed() {
    let mut verdict = Verdict::default();
    let wires = Wires::external("mphys");
    let mut load = wires.load(&[]);
    for &case in if full() {
        &["in alarms", "idle", "at once"][..]
    } else {
        &["in alarms"]
    } {
        let before = bpf::all();
        let watch = Watch::start(&["--class", "mphys=external", "--external", "1Mbit/s"]);
        let loaded = bpf::of(watch.pid());
        match case {
            "idle" => sleep(Duration::from_millis(300)),
            "in alarms" => {
                load.ask("bursts 20 200 2000000");
            }
            _ => {}
        }
        // Without links of others, which it opens for a moment when it searches for them.
        let during = &(&loaded & &bpf::of(watch.pid())) - &before;
        verdict.same(
            &format!("{case}: programs and maps are there"),
            [true, true],
            ["program", "map"].map(|kind| during.iter().any(|(k, _)| *k == kind)),
        );
        let socket = watch.socket.clone();
        watch.kill();
        // The kernel frees after a grace period: 0.03 s, but once 5.6 s beside BPF_PROG_TEST_RUN of
        // other jobs.
        let took = wait_until("all of it is gone", 15 * PATIENCE, || {
            bpf::all().is_disjoint(&during)
        });
        println!("    {case}: {} gone after {took:?}", during.len());
        // A new one may use the same socket, whatever the dead one left there.
        let again = Watch::spawn_at(
            std::process::Command::new(support::lab::emud_path()),
            socket,
            &["--duration", "100ms"],
        );
        let ended = again.wait(PATIENCE);
        verdict.same(
            &format!("{case}: another starts"),
            1,
            ended.of("start").len(),
        );
    }
    verdict.end();
}

/// Takes all the connections that a user can have, and keeps them.
const FILL: &str = "\
import glob, socket
taken = []
for path in PATHS + glob.glob('/run/emud/monitor*.sock'):
    for n in range(300):
        s = socket.socket(socket.AF_UNIX)
        try: s.connect(path)
        except OSError: break  # another monitor of this host has just ended
        taken.append(s)
";

/// A user without rights can neither keep the holder's reports from a monitor nor report.
pub fn hostile_user() {
    let lab = Lab::new();
    lab.attach(Engine::Hold, "[up]\ndelay = \"1s\"\n", &[]);
    let watch = Watch::start(&["--only", "emulator"]);
    let fill = FILL.replace("PATHS", &format!("[{:?}]", watch.socket));
    let _nobody = Nobody::does(&fill);
    lab.hold_late();
    let late = |line: &Line| line.is("alarm") && line.resource() == "emulator";
    assert!(watch.next(0, PATIENCE, late).is_some(), "no alarm came");
    let ended = watch.end();
    assert_eq!(ended.code, SEEN, "{ended:?}");

    let report = "\
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
try: s.sendall(b'{\"name\":\"x\"}\\n')
except BrokenPipeError: pass
print(s.recv(1000).decode())
";
    // 64 at once get an answer, and the next one another.
    let many = "\
import socket, sys
taken = []
for n in range(65):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    taken.append(s)
for s in taken[:64]: s.sendall(b'{}\\n')
print(sum(b'name' in s.recv(1000) for s in taken[:64]), taken[64].recv(1000).decode())
";
    let uid = nobody::UID.to_string();
    for (options, sudo, answer) in [
        (&[][..], None, "\"denied\":true"),
        (&["--reporters", "root"], Some(&uid), "\"denied\":true"),
        (&[], Some(&uid), "\"ok\":true"),
        (&["--reporters", "all"], None, "\"ok\":true"),
    ] {
        let mut emud = Command::new(emud_path());
        emud.env_remove("SUDO_UID");
        emud.envs(sudo.map(|uid| ("SUDO_UID", uid)));
        let only = ["--only", "emulator"];
        let watch = Watch::start_as(emud, &[&only[..], options].concat());
        let socket = watch.socket.display().to_string();
        let said = run(nobody::command("python3").args(["-c", report, &socket]));
        assert!(said.out.contains(answer), "{options:?} {sudo:?}: {said:?}");
        let root = run(Command::new(emud_path()).args(["alarm", "y", "--socket", &socket]));
        assert_eq!(root.code, 0, "{root:?}");
        if options.contains(&"all") {
            let said = run(nobody::command("python3").args(["-c", many, &socket]));
            assert!(said.out.starts_with("64 "), "{said:?}");
            assert!(said.out.contains("too many connections"), "{said:?}");
        }
        // Changes of links in other tests are reported to every monitor.
        let names: Vec<String> = (watch.end().of("alarm").iter())
            .map(|line| line.text("/scope/name").to_owned())
            .filter(|name| ["x", "y"].contains(&name.as_str()))
            .collect();
        let expected: &[&str] = match answer.contains("ok") {
            true => &["x", "y"],
            false => &["y"],
        };
        assert_eq!(names, expected, "{options:?} {sudo:?}");
    }
}

/// Cgroups that exist or that something in the kernel still holds.
fn cgroups_held() -> u64 {
    let v1 = fs::read_to_string("/proc/cgroups").expect("/proc/cgroups");
    let v1: u64 = v1
        .lines()
        .filter_map(|line| line.split('\t').nth(2)?.parse::<u64>().ok())
        .sum();
    let v2 = hierarchies()
        .iter()
        .filter_map(|root| fs::read_to_string(root.join("cgroup.stat")).ok())
        .flat_map(|text| {
            let numbers = text.lines().filter_map(|line| line.split(' ').nth(1));
            numbers.filter_map(|n| n.parse().ok()).collect::<Vec<u64>>()
        })
        .sum::<u64>();
    v1 + v2
}

/// Resident memory of a process, bytes.
fn resident(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).expect("its memory");
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// One of this many cgroups has a process, which sends.
const SENDS_EVERY: usize = 100;

/// Makes and removes a cgroup in every hierarchy; one in [`SENDS_EVERY`] has a process for a while.
fn come_and_go(number: usize, sender: &mut Load) {
    let name = unique(&format!("passing-{number}"));
    let folders: Vec<PathBuf> = hierarchies().iter().map(|root| root.join(&name)).collect();
    for folder in &folders {
        fs::create_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    }
    let enter = |folder: &PathBuf, pid: u32| {
        fs::write(folder.join("cgroup.procs"), pid.to_string()).expect("enter a cgroup");
    };
    if number.is_multiple_of(SENDS_EVERY) {
        folders
            .iter()
            .for_each(|folder| enter(folder, sender.pid()));
        sender.ask("burst 2 1");
        hierarchies()
            .iter()
            .for_each(|root| enter(root, sender.pid()));
    }
    for folder in &folders {
        fs::remove_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    }
}

/// Ten thousand cgroups are created and removed; no alarm is lost, none of them stays, and two new
/// ones still get their shares.
pub fn cgroups_come_and_go() {
    const COUNT: usize = 10_000;
    const BURSTS: usize = 50;
    let mut verdict = Verdict::default();
    let wires = Wires::external("mphys");
    let rate = bandwidth(8_000_000);
    let watch = Watch::alone(&[
        "--only",
        "cpu,network",
        "--cpu-theta",
        "10s",
        "--class",
        "mphys=external",
        "--external",
        &format!("{rate}bit/s"),
        "--network-window",
        "50ms",
        "--group-by",
        "cgroup",
        "--limit",
        "1000",
    ]);
    // This number of frames fills a window.
    const LEN: u64 = 150;
    let frames = (rate / 20 / 8).div_ceil(LEN);
    let burst = format!("burst {} 1", frames * 3 / 2);
    let len = [("len", &*LEN.to_string())];
    let (mut passing, mut load) = (wires.load(&[("len", "60")]), wires.load(&len));
    let held = cgroups_held();
    let (mut early, mut drawn_out) = (0, 0);
    for number in 0..COUNT {
        come_and_go(number, &mut passing);
        if number == COUNT / 10 {
            early = resident(watch.pid());
        }
        if number.is_multiple_of(COUNT / BURSTS) {
            sleep(Duration::from_millis(120));
            let sent = load.ask(&burst);
            // One that a busy machine has drawn out need not fill a window.
            drawn_out += usize::from(sent[2] - sent[0] > 50 * MS / 2);
        }
    }
    drop((passing, load));
    sleep(Duration::from_millis(120));
    let alarms = watch.alarms_since(0);
    let alarms = alarms.iter().filter(|a| a.resource() == "network").count();
    let sure = BURSTS - drawn_out;
    println!("    {alarms} alarms of {BURSTS} bursts, {drawn_out} of them drawn out");
    verdict.same("alarms", true, (sure..=BURSTS).contains(&alarms));
    verdict.at_least("bursts at once", BURSTS as f64 / 2.0, sure as f64);
    // A name alone would need more than this for each of them.
    let grown = resident(watch.pid()).saturating_sub(early);
    verdict.at_most(
        "resident memory more after 9,000 cgroups, bytes a cgroup",
        29.0,
        grown as f64 / 9000.0,
    );
    // The kernel keeps a removed cgroup for as long as memory is charged to it, with or without a
    // monitor, and others on the machine make theirs: one more than before was seen of an idle one.
    // What the monitor kept would be each of the hundred that sent, or all.
    let others = (COUNT / SENDS_EVERY / 10) as u64;
    let took = wait_until(
        "the kernel holds at most a tenth of those that sent",
        PATIENCE,
        || cgroups_held() <= held + others,
    );
    let more = cgroups_held().saturating_sub(held);
    println!("    {more} cgroups more than before, of {COUNT}, after {took:?}");
    let groups = [Group::new("seventy"), Group::new("thirty")];
    let mark = watch.mark();
    let mut loads = groups
        .iter()
        .map(|group| wires.load(&[len[0], ("cgroups", &group.folders())]));
    let (mut seventy, mut thirty) = (loads.next().unwrap(), loads.next().unwrap());
    // A tenth more than the threshold, which is met at seventy.
    thirty.ask(&format!("burst {} 1", frames * 3 / 10));
    seventy.ask(&format!("burst {} 1", frames * 8 / 10));
    let alarm = watch.alarm(mark, "network", PATIENCE).expect("an alarm");
    println!("    {}", alarm.json["shares"]);
    verdict.near(
        "share after all that",
        0.7,
        alarm.share_of(&groups[0].name),
        0.05,
    );
    let ended = watch.end();
    verdict.same("ring full", 0, ended.end().number("/ring_full"));
    verdict.same("suppressed", 0, ended.end().number("/suppressed/network"));
    verdict.end();
}

/// A monitor that cannot read for a while: records without room are counted.
pub fn ring_full() {
    const DEVICES: u64 = 8;
    const BURSTS: u64 = 400;
    let mut verdict = Verdict::default();
    let names: Vec<String> = (0..DEVICES).map(|i| format!("mveth{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wires = Wires::new(&names);
    let mut options: Vec<String> = [
        "--only",
        "network",
        "--limit",
        "1000000",
        "--network-window",
        "1ms",
    ]
    .map(str::to_owned)
    .to_vec();
    options.extend(["--internal".into(), "1Mbit/s".into()]);
    for name in &names {
        options.extend(["--device".into(), format!("{name}=1Mbit/s")]);
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let watch = Watch::alone(&options);
    let mut load = wires.load(&[("len", "1500")]);
    watch.signal(libc::SIGSTOP);
    // A frame on each device is 12 Mbit/s in a window of 1 ms. An episode ends at the second tick after at the latest.
    let pause_ns = MS + 2 * watch.tick_ns() + MS;
    // An episode ends at a tick, and a machine that is idle between the bursts has none.
    let mut busy = Load::start("cpu", &[]);
    busy.say("shell");
    load.ask(&format!("bursts {BURSTS} {DEVICES} {pause_ns}"));
    drop(busy);
    watch.signal(libc::SIGCONT);
    sleep(Duration::from_secs(2));
    let ended = watch.end();
    let full = ended.end().number("/ring_full");
    let read = (ended.of("alarm").len() + ended.of("clear").len()) as u64;
    // Each device and their class began and ended an episode at each burst.
    let planted = 2 * BURSTS * (DEVICES + 1);
    println!("    {planted} records planted, {read} read, {full} found the ring full");
    verdict.same("the ring was full", true, full > 0);
    verdict.at_least(
        "records read or counted",
        planted as f64,
        (read + full) as f64,
    );
    let drops = ended.of("drops");
    verdict.same(
        "a drops line said so",
        Some(full),
        drops.last().map(|line| line.number("/ring_full")),
    );
    verdict.same("exit code", SEEN, ended.code);
    verdict.end();
}
