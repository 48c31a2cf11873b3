// SPDX-License-Identifier: MIT OR Apache-2.0
//! Is the verdict reliable? These tests need an otherwise idle machine.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use support::lab::wait_until;
use support::load::numbers;
use support::runs::{DEAF, Folder, Ran};
use support::watch::Line;
use support::witness::Witness;
use support::{clock, emud_path, full, load};

/// Number of trials for each; the issue requires 20 of 20.
fn trials() -> u32 {
    if full() { 20 } else { 3 }
}

/// Runs in which other load of this machine had a share show nothing about emud. This many may be
/// discarded per run that counts.
const DISTURBED: u32 = 10;
/// Names in alarms of a test's own load.
const HOG: &str = "emud-test-hog";
/// Required precision of the interval.
const WITHIN_NS: u64 = 50_000_000;

/// A busy loop for a second, bound to the CPU on which it is; it
/// prints when it began and ended, on CLOCK_MONOTONIC.
const BUSY: &str = r#"
import os, time
open("/proc/self/comm", "w").write("emud-test-hog")
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
began = time.monotonic_ns()
while time.monotonic_ns() < began + 1_000_000_000:
    pass
print("hog", began, time.monotonic_ns(), flush=True)
time.sleep(1)
"#;

fn run(folder: &Folder, script: &str) -> Ran {
    run_with(folder, &[], script)
}

fn run_with(folder: &Folder, options: &[&str], script: &str) -> Ran {
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let mut emud = Command::new(emud_path());
    emud.args(["run", "--profile", "./p.toml", "--log", "run.log"]);
    emud.args(options).args(["--", "sh", "-c", script]);
    emud.current_dir(&folder.0).stdin(Stdio::null());
    folder.ran(&emud.output().unwrap())
}

/// Returns whether another program or the hypervisor of this machine had a share. The kernel's counters must say
/// so, too, as far as they can: none counts late packets, or what is sent in other network namespaces.
fn disturbed(ran: &Ran, witness: &Witness) -> bool {
    let began = ran.phase("measurement");
    let of_others = |share: &Value| share["share"].as_f64() > Some(0.05) && share["group"] != HOG;
    let over = |alarm: &Value| {
        let mut clears = ran.of("clear");
        clears.any(|end| end["episode"] == alarm["episode"] && at(&end["mono_ns"]) < began)
    };
    let others = ran.of("alarm").filter(|alarm| {
        let shares = alarm["shares"].as_array().unwrap();
        !over(alarm) && (alarm["resource"] == "emulator" || shares.iter().any(of_others))
    });
    let mut disturbed = false;
    for alarm in others {
        disturbed = true;
        let alarm = Line {
            readable_ns: 0,
            json: alarm.clone(),
        };
        let counted = !["emulator", "network"].contains(&alarm.resource());
        let right = !counted || witness.confirms(&alarm);
        assert!(right, "the kernel counted no such load: {}", alarm.json);
    }
    disturbed
}

/// The first undisturbed run of `script`.
fn undisturbed(script: &str) -> (Folder, Ran) {
    for _ in 0..DISTURBED {
        let folder = Folder::new();
        let witness = Witness::start();
        let ran = run(&folder, script);
        if !disturbed(&ran, &witness) {
            return (folder, ran);
        }
        let alarms: Vec<String> = ran
            .of("alarm")
            .map(|alarm| format!("{} {}", alarm["resource"], alarm["shares"]))
            .collect();
        println!("    disturbed: {alarms:?}");
        sleep(Duration::from_secs(1));
    }
    panic!("this machine is never quiet enough: run it with nothing beside");
}

fn at(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

pub fn a_hog_is_named() {
    for _ in 0..trials() {
        // Second 0 stays clean, since the interval may begin up to WITHIN_NS before the load.
        let (_folder, ran) = undisturbed(&format!("sleep 1.2; /usr/bin/python3 -c '{BUSY}'"));
        let ran = ran.expect(3);
        let line = ran
            .out
            .lines()
            .find(|line| line.starts_with("hog"))
            .unwrap();
        let truth: Vec<u64> = line
            .split(' ')
            .skip(1)
            .map(|text| text.parse().unwrap())
            .collect();
        let end = ran.one("end");
        assert_eq!(end["verdict"], "contended");
        let [span] = &end["contention"].as_array().unwrap()[..] else {
            panic!("one interval: {end}");
        };
        assert_eq!(
            (&span["resource"], &span["by"][0]["group"]),
            (&"cpu".into(), &HOG.into())
        );
        let errors = [
            at(&span["since_mono_ns"]).abs_diff(truth[0]),
            at(&span["until_mono_ns"]).abs_diff(truth[1]),
        ];
        println!(
            "    off by {} and {} us",
            errors[0] / 1000,
            errors[1] / 1000
        );
        assert!(errors.iter().all(|error| *error < WITHIN_NS), "{errors:?}");
        let seconds: Vec<u64> = end["contended_seconds"]
            .as_array()
            .unwrap()
            .iter()
            .map(at)
            .collect();
        assert!(seconds.contains(&1) && !seconds.contains(&0), "{seconds:?}");
        assert!(ran.err.contains(HOG), "{}", ran.err);
    }
}

pub fn without_it_the_run_is_clean() {
    for _ in 0..trials() {
        let (_folder, ran) = undisturbed("ping -n -q -c 100 -i 0.02 $EMUD_HOST");
        let ran = ran.expect(0);
        assert_eq!(ran.one("end")["verdict"], "clean");
    }
}

/// Reports of the program are contention, whatever the machine's state.
pub fn contention_by_report() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    // Where every user may run it.
    let emud = folder.path("emud");
    std::fs::copy(emud_path(), &emud).unwrap();
    let report = format!("{emud} alarm 'frames dropped'");
    for user in ["", "--user nobody"] {
        let words = format!("--profile ./p.toml {user}");
        let ran = folder.run(&words, &["sh", "-c", &report]).expect(3);
        let end = ran.one("end");
        assert_eq!(end["verdict"], "contended");
        assert_eq!(end["contention"][0]["resource"], "application");
        assert_eq!(end["contention"][0]["what"], "frames dropped");
    }
}

/// What a program reports belongs to its run, not to others on this host.
pub fn reports_stay_in_their_run() {
    let (other, mine) = (Folder::new(), Folder::new());
    for folder in [&other, &mine] {
        folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    }
    let script = "touch begun; until [ -e over ]; do sleep 0.05; done";
    let other_run = other
        .command("--profile ./p.toml", &["sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = other.path("begun");
    wait_until("the other run measures", Duration::from_secs(60), || {
        Path::new(&begun).exists()
    });
    let report = "\"$EMUD\" metric stalls=3 && \"$EMUD\" alarm 'frames dropped'";
    let mine = mine.run("--profile ./p.toml", &["sh", "-c", report]);
    other.file("over", "");
    let other = other.ran(&other_run.wait_with_output().unwrap());
    for (ran, metrics, verdict) in [(mine.expect(3), 1, "contended"), (other, 0, "unwatched")] {
        assert_eq!(ran.of("metric").count(), metrics, "{verdict}");
        assert_eq!(ran.one("end")["verdict"], verdict);
    }
}

/// Contention does not hide that a program failed, or vice versa.
pub fn a_failed_program_is_said() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let report = format!("{} alarm 'frames dropped'; exit 7", emud_path().display());
    for (words, code) in [("", 7), ("--exit-code verdict", 3)] {
        let words = format!("--profile ./p.toml {words}");
        let ran = folder.run(&words, &["sh", "-c", &report]).expect(code);
        assert_eq!(ran.one("end")["verdict"], "contended");
        assert_eq!(ran.one("end")["exit_code"], code);
        assert!(ran.err.contains("exit code 7: client"), "{}", ran.err);
        assert!(ran.err.contains("contended:"), "{}", ran.err);
    }
    // Ending it because the others are done does not make it successful.
    let scenario = folder.file(
        "s.toml",
        "measure = \"500ms\"\n[node.a]\ncommand = \"sleep 99\"\n\
         [node.b]\ncommand = \"exit 8\"\n[link.w]\nbetween = [\"a\", \"b\"]\n",
    );
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(8);
    assert!(ran.err.contains("by emud: a"), "{}", ran.err);
    assert!(ran.err.contains("exit code 8: b"), "{}", ran.err);
}

/// Before a run that measures for long.
pub fn a_busy_host_is_said_at_the_start() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let load = folder.file("loadavg", "99.00 50.00 40.00 2/345 6789\n");
    let monitor = folder.file("monitor.toml", DEAF);
    let emud = emud_path();
    let script = format!(
        "mount --bind {load} /proc/loadavg && exec {} run --monitor {monitor} --profile ./p.toml -- true",
        emud.display()
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", &script]);
    let out = unshare.current_dir(&folder.0).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{said}"));
    assert!(at("emud: note: this host is busy (load 99 on ") < at("emud: unwatched: "));
}

/// A verdict only covers what was watched.
pub fn names_what_was_watched() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let ran = folder.run("--profile ./p.toml", &["true"]).expect(0);
    assert_eq!(ran.one("end")["verdict"], "unwatched");
    assert!(ran.err.contains("emud: unwatched:"), "{}", ran.err);
    assert!(!ran.err.contains("clean"), "{}", ran.err);
    let page = folder.path("page.html");
    let report = |log: &str| {
        let mut emud = Command::new(emud_path());
        emud.args(["report", log, "-o", &page]);
        assert!(emud.status().unwrap().success());
        std::fs::read_to_string(&page).unwrap()
    };
    let said = report(&folder.path("run.log"));
    assert!(said.contains("verdict unwatched") && !said.contains("kept its times"));
    let words = "--profile ./p.toml --repeat 2 --require-clean";
    folder.run(words, &["true"]).expect(64);
    let ran = folder.watched("--profile ./p.toml", &["true"]).expect(0);
    let watched =
        "clean: no contention was seen; watched: cpu, disk; not watched: network, memory, emulator";
    assert!(ran.err.contains(watched), "{}", ran.err);
    let said = report(&folder.path("run.log"));
    assert!(said.contains("Watched: cpu, disk."), "{said}");
    assert!(
        said.contains("Not watched: emulator, memory, network, steal."),
        "{said}"
    );
    assert!(!said.contains("kept its times"), "{said}");
}

/// A program that keeps a CPU for a second, ahead of all others.
pub fn a_busy_cpu_is_contention() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let only = "network = \"off\"\nmemory = \"off\"\ndisk = \"off\"\n\
                [alarms]\ngroup-by = \"command\"\n";
    folder.file("m.toml", only);
    let own = std::env::current_exe().unwrap();
    let hog = format!(
        "echo 'spin 1000000000' | {} {} cpu cpu={} policy=rr name={HOG}",
        own.display(),
        load::ARGUMENT,
        clock::spare_cpu(),
    );
    let mut emud = Command::new(emud_path());
    emud.args(["run", "--profile", "./p.toml", "--log", "run.log"]);
    emud.args(["--monitor", "m.toml", "--", "sh", "-c", &hog]);
    emud.current_dir(&folder.0).stdin(Stdio::null());
    let ran = folder.ran(&emud.output().unwrap()).expect(3);
    let end = ran.one("end");
    assert_eq!(end["verdict"], "contended");
    let spun = ran.out.lines().find(|line| line.starts_with("spun"));
    let used_ns = numbers(spun.unwrap())[2] as f64;
    let spans = end["contention"].as_array().unwrap();
    let of_cpus = spans.iter().filter(|span| span["resource"] == "cpu");
    let by_it = of_cpus.flat_map(|span| {
        let ns = span["duration_ns"].as_f64().unwrap();
        let shares = span["by"].as_array().unwrap().iter();
        let its = shares.filter(|share| share["group"] == HOG);
        its.map(move |share| share["share"].as_f64().unwrap() * ns)
    });
    // Others may have left that CPU no idle time for longer. Interrupts and the hypervisor take some.
    let by_it: f64 = by_it.sum();
    assert!(
        (by_it / used_ns - 1.0).abs() < 0.25,
        "{by_it} ns of {used_ns}: {end}"
    );
}

/// A holder that is stopped, and loses its lease, makes packets pass without emulation.
/// Also in a node, which has another network namespace than the process that checks.
pub fn a_link_without_its_filters_is_said() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let script = "sleep 0.3; tc qdisc del dev link0 clsact; sleep 0.7";
    let ran = folder.run(
        "--profile ./p.toml --engine hold --root",
        &["sh", "-c", script],
    );
    let ran = ran.expect(4);
    let said = "link link (link0 of client) was tampered with: qdisc clsact was deleted";
    assert!(ran.err.contains(said), "{}", ran.err);
    let found = |line: &&Value| line["event"] == "tampered";
    assert_eq!(ran.of("link").filter(found).count(), 1, "{:?}", ran.log);
}

/// As in a container with /run for reading only: no socket receives what holders report.
pub fn a_holder_that_cannot_report_is_said() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let monitor = "cpu = \"off\"\nnetwork = \"off\"\nmemory = \"off\"\ndisk = \"off\"\n";
    folder.file("emulator.toml", monitor);
    let script = format!(
        "mkdir -p /run/emud/root && mount -t tmpfs -o ro none /run/emud/root &&
         exec {} run --profile ./p.toml --engine hold --monitor emulator.toml --log run.log -- sleep 0.5",
        emud_path().display()
    );
    let mut emud = Command::new("unshare");
    emud.args(["-m", "sh", "-c", &script]);
    emud.current_dir(&folder.0).stdin(Stdio::null());
    let ran = folder.ran(&emud.output().unwrap()).expect(4);
    let end = ran.one("end");
    assert_eq!(end["resources"]["emulator"], "unknown");
    assert!(
        ran.err.contains("emulator CANNOT BE WATCHED"),
        "{}",
        ran.err
    );
}

pub fn the_emulators_own_failure() {
    let folder = Folder::new();
    // Engine hold has a process, which is found by its name in the node.
    let started = folder.path("started");
    let script = format!("touch {started}; ping -n -q -c 20 -i 0.05 $EMUD_HOST; exit 0");
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let mut emud = folder.command("--profile ./p.toml --engine hold", &["sh", "-c", &script]);
    let emud = emud
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = emud.id();
    let mut held = None;
    // Stopped before it was ready, it would fail the preparation instead.
    support::host::soon("the program", || Path::new(&started).exists());
    for holder in support::host::pids(|holder| is_holder(holder, pid)) {
        held = rustix::process::Pid::from_raw(holder.cast_signed());
    }
    rustix::process::kill_process(held.unwrap(), rustix::process::Signal::STOP).unwrap();
    let ran = folder.ran(&emud.wait_with_output().unwrap()).expect(4);
    assert_eq!(ran.one("end")["verdict"], "invalid");
    // Nothing continues it, but it does not outlive the run.
    assert!(rustix::process::test_kill_process(held.unwrap()).is_err());
    assert!(ran.err.contains("passed without emulation"), "{}", ran.err);
}

fn is_holder(pid: u32, of: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name == "emud-hold\n") && support::host::parent(pid) == Some(of)
}

/// Contention of the preparation that ends before the measured phase neither ends the run nor
/// counts.
pub fn what_was_before_ends_nothing() {
    let folder = Folder::new();
    let report = format!("{} alarm early", emud_path().display());
    let scenario = folder.file(
        "s.toml",
        &format!(
            "[node.a]\nprepare = [\"{report}\"]\ncommand = \"sleep 0.3; echo whole\"\n\
             [node.b]\n[link.w]\nbetween = [\"a\", \"b\"]\n"
        ),
    );
    let words = format!("--scenario {scenario} --abort-on-contention");
    let ran = folder.run(&words, &[]).expect(0);
    assert!(ran.out.contains("whole"), "{}", ran.out);
    assert_eq!(ran.one("end")["alarms"]["application"], 1);
    assert_eq!(ran.one("end")["verdict"], "unwatched");
}

pub fn ends_the_run() {
    let folder = Folder::new();
    folder.file("m.toml", "[alarms]\ngroup-by = \"command\"\n");
    let options = ["--monitor", "m.toml", "--abort-on-contention"];
    let ran = run_with(&folder, &options, "while :; do :; done");
    assert!([3, 4].contains(&ran.code), "{ran:?}");
    // On a host that is contended from the beginning, the program is not started.
    let mut ends = ran.of("exit");
    assert!(ends.all(|end| end["ended_by_emud"] == true), "{ran:?}");
    let lasted = ran.phase("clean-up") - ran.phase("measurement");
    // The loop does not end by itself.
    assert!(
        lasted < if full() { 2 } else { 20 } * 1_000_000_000,
        "{lasted}"
    );
}
