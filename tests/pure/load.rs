// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud load`: how it ends, what it prints, and what remains.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::host::soon;
use support::lab::emud;
use support::site::unique;

/// Returns the report of a load that ended by itself.
fn load(args: &[&str]) -> Value {
    let said = emud(&[&["load"], args].concat()).expect(0);
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    said.json()
}

/// A test that fails leaves it behind for 2 min at most.
fn start(args: &[&str]) -> Child {
    let mut command = Command::new(support::emud_path());
    command.arg("load").args(args).args(["--for", "2min"]);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// Ends a load, and returns its report.
fn end(mut load: Child) -> Value {
    kill_process(Pid::from_child(&load), Signal::TERM).unwrap();
    let mut out = String::new();
    let mut report = load.stdout.take().unwrap();
    report.read_to_string(&mut out).unwrap();
    assert!(load.wait().unwrap().success());
    serde_json::from_str(&out).unwrap()
}

/// Returns the report of a load that ended when its process had used 0.2 s of a CPU. Beside other load a process can get
/// no CPU for 0.3 s.
fn worked(args: &[&str]) -> Value {
    let load = start(args);
    let tasks = format!("/proc/{}/task", load.id());
    let used = || -> u64 {
        let tasks = fs::read_dir(&tasks).unwrap();
        let times = tasks.filter_map(|task| {
            let times = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            times.split(' ').next()?.parse::<u64>().ok()
        });
        times.sum()
    };
    soon("0.2 s of a CPU", || used() >= 200_000_000);
    end(load)
}

#[test]
fn each_reports_what_it_did() {
    let cpu = &worked(&["cpu", "--threads", "2", "--share", "20%"])["cpu"];
    let [cpu_ns, duration] = ["cpu_ns", "duration_ns"].map(|key| cpu[key].as_f64().unwrap());
    assert_eq!(cpu["threads"], 2);
    assert!(cpu_ns > 0.0 && cpu_ns / duration < 2.0 * 0.25, "{cpu}");
    let memory = &worked(&["memory", "64KiB"])["memory"];
    assert_eq!(memory["size"], 64 << 10);
    let written = memory["written"].as_u64().unwrap();
    assert!(written > 64 << 10, "over and over: {memory}");
    let kept = &load(&["memory", "64KiB", "--keep", "--for", "200ms"])["memory"];
    assert_eq!(kept["written"], 64 << 10);
    let network = &worked(&["network", "--size", "100"])["network"];
    let of = |key: &str| network[key].as_u64().unwrap();
    assert!(
        of("received") > 0 && of("packets") >= of("received"),
        "{network}"
    );
    assert_eq!(of("bytes"), 100 * of("packets"));
}

/// A folder beside the tests, so on a disk.
fn on_disk() -> PathBuf {
    let name = unique("load");
    let folder = std::env::current_exe().unwrap().with_file_name(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_signal_ends_it() {
    let folder = on_disk();
    let path = folder.to_str().unwrap();
    let disk = start(&[
        "disk", "--size", "1MiB", "--block", "64KiB", "--rate", "8Mbit", path,
    ]);
    let files = format!("/proc/{}/fd", disk.id());
    let is_open = || {
        let mut files = fs::read_dir(&files).unwrap().flatten();
        files.any(|file| fs::read_link(file.path()).is_ok_and(|file| file.starts_with(path)))
    };
    soon("the file is open", is_open);
    // It writes.
    sleep(Duration::from_millis(200));
    // The file has no name, so that not even SIGKILL would leave it.
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let since = Instant::now();
    let done = end(disk);
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}",
        since.elapsed()
    );
    fs::remove_dir(&folder).unwrap();
    assert_eq!(done["disk"]["operation"], "write", "{done}");
    let (bytes, ns) = (&done["disk"]["bytes"], &done["disk"]["duration_ns"]);
    let most = ns.as_f64().unwrap() / 1e9 * 1e6 + 131_072.0;
    assert!(bytes.as_f64().unwrap() < most, "1 MB/s: {done}");
}

#[test]
fn mistakes_have_a_remedy() {
    for (args, code, wanted) in [
        (&["memory", "60"][..], 64, "did you mean \"60MB\"?"),
        (
            &["memory", "900TB", "--swap"],
            69,
            "the kernel would end processes",
        ),
        (
            &["cpu", "--share", "0%"],
            64,
            "use at least 1 thread and a share above 0 %",
        ),
        (
            &["disk", "--block", "1000B"],
            64,
            "use a multiple of 4096 bytes",
        ),
        (
            &["disk", "/nowhere"],
            73,
            "/nowhere: No such file or directory",
        ),
        (&["network", "--size", "0"], 64, "use 1 to 65507"),
    ] {
        let said = emud(&[&["load"], args].concat()).expect(code);
        assert!(said.err.contains(wanted), "{args:?}: {}", said.err);
    }
}
