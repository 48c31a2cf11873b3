// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud load`: how it ends, what it prints, and what remains.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::lab::emud;

fn load(args: &[&str]) -> Value {
    let said = emud(&[&["load"], args].concat()).expect(0);
    assert_eq!(said.out.lines().count(), 1, "{}", said.out);
    said.json()
}

#[test]
fn each_reports_what_it_did() {
    let cpu = &load(&["cpu", "--threads", "2", "--share", "20%", "--for", "300ms"])["cpu"];
    let [cpu_ns, duration] = ["cpu_ns", "duration_ns"].map(|key| cpu[key].as_f64().unwrap());
    assert_eq!(cpu["threads"], 2);
    assert!(cpu_ns > 0.0 && cpu_ns / duration < 2.0 * 0.25, "{cpu}");
    // 4 MiB took 270 ms beside other load, so little enough that it is written many times, or whole.
    let memory = &load(&["memory", "64KiB", "--for", "300ms"])["memory"];
    assert_eq!(memory["size"], 64 << 10);
    let written = memory["written"].as_u64().unwrap();
    assert!(written > 64 << 10, "over and over: {memory}");
    let kept = &load(&["memory", "64KiB", "--keep", "--for", "200ms"])["memory"];
    assert_eq!(kept["written"], 64 << 10);
    let network = &load(&["network", "--size", "100", "--for", "200ms"])["network"];
    let of = |key: &str| network[key].as_u64().unwrap();
    assert!(
        of("received") > 0 && of("packets") >= of("received"),
        "{network}"
    );
    assert_eq!(of("bytes"), 100 * of("packets"));
}

/// A folder beside the tests, so on a disk.
fn on_disk() -> PathBuf {
    let name = format!("load-signal-{}", std::process::id());
    let folder = std::env::current_exe().unwrap().with_file_name(name);
    fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn a_signal_ends_it() {
    let folder = on_disk();
    let mut disk = Command::new(support::emud_path());
    let disk = disk.args([
        "load", "disk", "--size", "1MiB", "--block", "64KiB", "--rate", "8Mbit",
    ]);
    let mut disk = disk.arg(&folder).stdout(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_millis(500));
    // The file has no name, so that not even SIGKILL would leave it.
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let since = Instant::now();
    kill_process(Pid::from_child(&disk), Signal::TERM).unwrap();
    assert!(disk.wait().unwrap().success());
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}",
        since.elapsed()
    );
    let mut out = String::new();
    disk.stdout.unwrap().read_to_string(&mut out).unwrap();
    fs::remove_dir(&folder).unwrap();
    let done: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(done["disk"]["operation"], "write", "{out}");
    let (bytes, ns) = (&done["disk"]["bytes"], &done["disk"]["duration_ns"]);
    let most = ns.as_f64().unwrap() / 1e9 * 1e6 + 131_072.0;
    assert!(bytes.as_f64().unwrap() < most, "1 MB/s: {out}");
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
