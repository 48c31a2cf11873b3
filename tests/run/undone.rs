// SPDX-License-Identifier: GPL-2.0-only
//! Nothing is left, however it ends. What is left of interfaces and children is looked at after
//! every test; here also processes of emud's and namespaces.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::{Folder, emud_path};
use crate::host::{interfaces, netns, pids, soon};

/// Processes that run the emud under test, but for those that only wait to be reaped.
fn ours() -> BTreeSet<u32> {
    let emud = fs::canonicalize(emud_path()).unwrap();
    pids(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == emud))
}

fn namespaces() -> BTreeSet<u64> {
    pids(|_| true).into_iter().filter_map(netns).collect()
}

fn start(folder: &Folder) -> Child {
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let command = [
        "sh",
        "-c",
        "setsid sleep 1000 & echo started; exec sleep 1000",
    ];
    let mut emud = folder.command("--profile ./p.toml", &command);
    emud.stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn started(emud: &mut Child) {
    use std::io::{BufRead, BufReader};
    let mut line = String::new();
    BufReader::new(emud.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "started\n");
}

fn nothing_left(processes: &BTreeSet<u32>, before: &BTreeSet<u64>) {
    soon("all processes end", || ours() == *processes);
    soon("the host's end goes", || interfaces() == ["lo"]);
    soon("namespaces go", || namespaces().is_subset(before));
}

pub fn by_signals() {
    let (processes, before) = (ours(), namespaces());
    let cases = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];
    for (signal, code) in cases {
        let folder = Folder::new();
        let mut emud = start(&folder);
        started(&mut emud);
        assert_eq!(interfaces().len(), 2);
        kill_process(Pid::from_child(&emud), signal).unwrap();
        let ran = folder.ran(&emud.wait_with_output().unwrap()).expect(code);
        assert_eq!(ran.one("end")["verdict"], "clean");
        nothing_left(&processes, &before);
    }
}

/// At any moment of its life, and the next one works.
pub fn after_kill() {
    let (processes, before) = (ours(), namespaces());
    for ms in [0, 20, 40, 60, 80, 100, 130, 160, 200, 300, 500] {
        let folder = Folder::new();
        let mut emud = start(&folder);
        sleep(Duration::from_millis(ms));
        emud.kill().unwrap();
        emud.wait().unwrap();
        nothing_left(&processes, &before);
    }
    let folder = Folder::new();
    let mut emud = start(&folder);
    started(&mut emud);
    emud.kill().unwrap();
    emud.wait().unwrap();
    folder.run("--profile ./p.toml", &["true"]).expect(0);
    nothing_left(&processes, &before);
}

pub fn when_preparation_fails() {
    let (processes, before) = (ours(), namespaces());
    let folder = Folder::new();
    let head = "[link.w]\nbetween = [\"a\", \"b\"]\n[node.a]\ncommand = \"true\"\n";
    let cases = [
        ("[node.b]\nprepare = [\"exit 3\"]\n", "exit code 3"),
        (
            "[node.b]\ncommand = \"exit 4\"\nservice = true\nready = \"false\"\n",
            "exit code 4",
        ),
        (
            "[node.b]\ncommand = \"sleep 99\"\nservice = true\nready = \"false\"\n",
            "never succeeded",
        ),
    ];
    for (node, said) in cases {
        let text = format!("ready_within = \"1s\"\n{head}{node}");
        let scenario = folder.file("s.toml", &text);
        let ran = folder
            .run(&format!("--scenario {scenario}"), &[])
            .expect(69);
        assert!(ran.err.contains(said), "{}", ran.err);
        assert_eq!(ran.one("end")["verdict"], "invalid");
        nothing_left(&processes, &before);
    }
}
