// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that run at alarms.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use emud::monitor::session::SideParts;
use serde_json::{Value, json};
use support::host::soon;

use super::run::{Running, Wanted, cpu, run};

fn with(command: &str) -> Running {
    let mut running = run(Wanted {
        parts: SideParts {
            on_alarm: Some(command.to_owned()),
            ..SideParts::default()
        },
        ..Wanted::default()
    });
    running.line();
    running
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("emud-on-alarm-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn end(running: &mut Running) -> Value {
    running.stop();
    running.rest().pop().unwrap()["on_alarm"].clone()
}

#[test]
fn each_alarm_has_its_command_one_after_the_other() {
    let file = Scratch::new("each");
    let path = file.0.display();
    let mut running = with(&format!(
        "echo begin >> {path}; sleep 0.05; cat >> {path}; echo end >> {path}"
    ));
    (1..=5).for_each(|episode| running.feed(cpu(episode)));
    // Waiting commands are run at the end.
    let ran = end(&mut running);
    let all = json!({"succeeded": 5, "failed": 0, "killed": 0, "overflowed": 0});
    assert_eq!(ran, all);
    let lines = file.lines();
    assert_eq!(lines.len(), 15);
    for (n, three) in lines.chunks(3).enumerate() {
        assert_eq!((three[0].as_str(), three[2].as_str()), ("begin", "end"));
        let alarm: Value = serde_json::from_str(&three[1]).unwrap();
        assert_eq!(
            (&alarm["type"], &alarm["episode"]),
            (&json!("alarm"), &json!(n + 1))
        );
    }
}

#[test]
fn commands_that_fail_or_do_not_read_are_counted() {
    let mut running = with("exit 3");
    (1..=3).for_each(|episode| running.feed(cpu(episode)));
    assert_eq!(end(&mut running)["failed"], 3);
}

#[test]
fn alarms_beyond_the_queue_run_nothing_and_are_counted() {
    let file = Scratch::new("queue");
    let path = file.0.display().to_string();
    let mut running = with(&format!(
        "echo >> {path}; while ! [ -e {path}.go ]; do sleep 0.01; done"
    ));
    running.feed(cpu(0));
    running.line();
    soon("the command runs", || !file.lines().is_empty());
    // One runs, 64 are waiting.
    (1..=70).for_each(|episode| running.feed(cpu(episode)));
    (1..=70).for_each(|_| drop(running.line()));
    std::fs::write(format!("{path}.go"), "").unwrap();
    let ran = end(&mut running);
    std::fs::remove_file(format!("{path}.go")).unwrap();
    assert_eq!(
        (&ran["failed"], &ran["overflowed"]),
        (&json!(0), &json!(6)),
        "{ran}"
    );
    // On a machine without time for 65 shells, the last ones are killed at the end.
    let count = |what: &str| ran[what].as_u64().unwrap();
    assert_eq!(count("succeeded") + count("killed"), 65, "{ran}");
    assert!(file.lines().len() as u64 >= count("succeeded"));
}

#[test]
fn a_command_without_end_is_killed_with_what_it_started() {
    let file = Scratch::new("endless");
    let path = file.0.display();
    let mut running = with(&format!("sleep 1000 & echo $! > {path}; wait"));
    running.feed(cpu(1));
    running.feed(cpu(2));
    (0..2).for_each(|_| drop(running.line()));
    soon("the command runs", || !file.lines().is_empty());
    let begin = Instant::now();
    let ran = end(&mut running);
    // The running one, and the waiting one.
    assert_eq!(ran["killed"], 2);
    assert!(begin.elapsed() >= Duration::from_secs(10));
    let pid = &file.lines()[0];
    // A killed process takes a moment to end; a surviving one runs for 1000 s.
    while runs(pid) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{pid} still runs"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.starts_with(" Z"))
}
