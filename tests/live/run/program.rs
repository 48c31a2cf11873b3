// SPDX-License-Identifier: MIT OR Apache-2.0
//! One program behind one link.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use support::full;
use support::host::soon;
use support::runs::{Folder, log, rtt_ms};

/// 2 x 15 ms, 10 % lost each way.
const LINK: &str = "[link]\ndelay = \"15ms\"\n";

pub fn sees_the_link() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let ping = ["sh", "-c", "ping -n -q -c 50 -i 0.02 $EMUD_HOST"];
    let ran = folder.run("--profile ./p.toml", &ping).expect(0);
    let [min, avg, ..] = rtt_ms(&ran.out);
    assert!(min >= 30.0, "{}", ran.out);
    assert!(!full() || avg < 32.0, "{}", ran.out);
    assert!(ran.err.contains("engine "), "{}", ran.err);
    assert!(ran.err.contains("exit code 0: client"), "{}", ran.err);
}

pub fn exit_code_is_passed_on() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let run = |script: &str| folder.run("--profile ./p.toml", &["sh", "-c", script]);
    run("exit 7").expect(7);
    let ran = run("kill -TERM $$").expect(143);
    let exit = ran.one("exit");
    assert_eq!(
        (&exit["code"], exit["signal"].as_i64()),
        (&serde_json::Value::Null, Some(15))
    );
    assert_eq!(ran.one("end")["exit_code"], 143);
}

pub fn that_cannot_be_started() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let ran = folder
        .run("--profile ./p.toml", &["no-such-program"])
        .expect(127);
    assert!(ran.err.contains("no-such-program"), "{}", ran.err);
    assert_eq!(ran.one("end")["verdict"], "invalid");
    let file = folder.file("not-executable", "");
    folder.run("--profile ./p.toml", &[&file]).expect(126);
    folder
        .run("--profile no-such-profile", &["true"])
        .expect(66);
    folder.run("", &["true"]).expect(64);
}

pub fn output_is_whole() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let script = "seq 300000; echo problem >&2; printf 'no end'";
    let ran = folder
        .run("--profile ./p.toml", &["sh", "-c", script])
        .expect(0);
    let numbers: String = (1..=300_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(ran.out, numbers + "no end");
    assert!(ran.err.lines().any(|line| line == "problem"));
    let of = |stream: &str| {
        let lines = ran.of("output").filter(|line| line["stream"] == *stream);
        lines.cloned().collect::<Vec<_>>()
    };
    let (out, err) = (of("stdout"), of("stderr"));
    assert_eq!((out.len(), err.len()), (300_001, 1));
    assert_eq!(
        (&out[299_999]["text"], &out[299_999]["partial"]),
        (&"300000".into(), &false.into())
    );
    assert_eq!(
        (&out[300_000]["text"], &out[300_000]["partial"]),
        (&"no end".into(), &true.into())
    );
    // A reader that closes the pipe ends the program, as without emud.
    let mut head = folder
        .command("--profile ./p.toml", &["yes"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(head.stdout.take());
    assert_eq!(head.wait().unwrap().code(), Some(128 + 13));
}

/// More than the pipes hold, and the program has ended long before it is read.
pub fn a_slow_reader_gets_all() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let numbers: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    let mut emud = folder.command("--profile ./p.toml", &["seq", "20000"]);
    let emud = emud.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = emud.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(4));
    let ran = folder.ran(&child.wait_with_output().unwrap()).expect(0);
    assert_eq!(ran.out, numbers);
    assert_eq!(ran.of("output").count(), 20_000);
}

/// After the end of the program, too.
pub fn a_signal_ends_the_wait_for_a_reader() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let (_reader, mut out) = std::io::pipe().unwrap();
    out.write_all(&[b'x'; 61 << 10]).unwrap();
    // What is printed before it takes less than the rest, and the verdict more.
    let fill = "yes | head -c 4000; yes | head -c 4000 >&2";
    let mut emud = folder.command("--profile ./p.toml", &["sh", "-c", fill]);
    let err = out.try_clone().unwrap();
    let child = emud.stdout(out).stderr(err).spawn().unwrap();
    drop(emud);
    soon("the program ends", || {
        let log = std::fs::read_to_string(folder.path("run.log")).unwrap_or_default();
        log.contains("\"type\":\"output\"")
    });
    std::thread::sleep(Duration::from_millis(500));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let child = RefCell::new(child);
    let over = || child.borrow_mut().try_wait().unwrap().is_some();
    soon("emud ends", over);
}

/// `emud run ... 2>&1 | less`: neither samples nor a signal wait for the reader.
pub fn a_reader_that_stops_holds_nothing_up() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let (_reader, mut out) = std::io::pipe().unwrap();
    // A pipe holds 64 KiB, and emud prints less than 4 before the program starts.
    out.write_all(&[b'x'; 60 << 10]).unwrap();
    let mut emud = folder.command("--profile ./p.toml --sample 20ms", &["yes"]);
    let err = out.try_clone().unwrap();
    let child = emud.stdout(out).stderr(err).spawn().unwrap();
    // It has the other ends of the pipe.
    drop(emud);
    soon("samples", || {
        let log = std::fs::read_to_string(folder.path("run.log")).unwrap_or_default();
        log.matches("\"type\":\"sample\"").count() >= 40
    });
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let child = RefCell::new(child);
    let over = || child.borrow_mut().try_wait().unwrap().is_some();
    soon("emud ends", over);
    let log = log(&folder.path("run.log"));
    assert_eq!(log.last().unwrap()["exit_code"], 143, "{log:?}");
}

pub fn input_is_passed_on() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let mut cat = folder.command("--profile ./p.toml", &["cat"]);
    let mut cat = cat
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    cat.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let ran = folder.ran(&cat.wait_with_output().unwrap()).expect(0);
    assert_eq!(ran.out, "one\ntwo\n");
}

pub fn shell_at_a_terminal() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let typed = "test -t 0 && test -t 1 && echo at a $((40 + 2)) terminal\nexit 9\n";
    let ran = folder.at_a_terminal("--profile ./p.toml", typed);
    assert!(ran.out.contains("at a 42 terminal"), "{}", ran.out);
    let logged = ran.of("output").any(|line| {
        line["stream"] == "terminal" && line["text"].as_str().unwrap().contains("at a 42 terminal")
    });
    assert!(logged);
    assert_eq!(ran.one("exit")["code"], 9);
}

pub fn progress_at_a_terminal() {
    let folder = Folder::new();
    let text = "[node.a]\ncommand = \"ping -n -q -c 32 -i 0.1 b\"\n[node.b]\n\
        [link.w]\nbetween = [\"a\", \"b\"]\nprofile.link.delay = \"1ms\"\n";
    let scenario = folder.file("s.toml", text);
    let ran = folder.at_a_terminal(&format!("--scenario {scenario}"), "");
    // It continues; the scheduler determines which seconds are shown.
    let shown = ran.out.split("measurement: ").skip(1);
    let seconds: BTreeSet<&str> = shown.filter_map(|rest| rest.split(' ').next()).collect();
    assert!(seconds.len() > 1, "{}", ran.out);
    assert!(ran.out.contains("packets, 0 alarms"), "{}", ran.out);
    // In a pipe there is no progress line.
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(0);
    assert!(!ran.err.contains("packets, "), "{}", ran.err);
}

pub fn finds_names_and_its_host() {
    let folder = Folder::new();
    folder.file("p.toml", LINK);
    let script = "ping -n -c 1 client; echo $EMUD_NODE $EMUD_SEED $EMUD_REPEAT; ls /sys/class/net";
    let ran = folder
        .run("--profile ./p.toml --seed 5", &["sh", "-c", script])
        .expect(0);
    assert!(ran.out.contains("client 5 1"), "{}", ran.out);
    assert!(ran.out.contains("1 received"), "{}", ran.out);
    assert!(ran.out.contains("link0"), "{}", ran.out);
    // This host has no default route.
    assert!(ran.err.contains("no default route"), "{}", ran.err);
}
