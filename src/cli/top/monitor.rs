// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monitor of `emud top`: `emud monitor` as a child.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde_json::Value;

use emud::host::spawn;

/// A message of the monitor's thread.
pub enum Said {
    Watches,
    /// The number of its episode, if that has an end, and a sentence.
    Alarm(Option<u64>, String),
    /// A sentence on a link that failed.
    Failure(String),
    /// The episode of this number has ended.
    Clear(u64),
    /// Events of the kernel were lost.
    Missed,
    /// The reason why it does not watch the host, or not all resources.
    Unwatched(String),
}

/// A running monitor; it ends when this is dropped.
pub struct Monitor {
    child: Child,
    said: Receiver<Said>,
}

impl Monitor {
    /// Starts the monitor.
    ///
    /// # Errors
    /// The kernel permits no further process or thread.
    pub fn start() -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        // Every episode has a mark, not the first three only.
        let limit = u32::MAX.to_string();
        command.args(["monitor", "--json", "--limit", &limit]);
        command.stdin(Stdio::null());
        ends_with_parent(&mut command);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (say, said) = channel();
        let output = (child.stdout.take()).zip(child.stderr.take());
        spawn("emud-top", move || {
            if let Some((lines, errors)) = output {
                listen(lines, errors, &say);
            }
        })?;
        Ok(Self { child, said })
    }

    /// Returns what it has said since the last call.
    pub fn take(&self) -> Vec<Said> {
        self.said.try_iter().collect()
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let pid = Pid::from_child(&self.child);
        // So that it removes its socket.
        let _ = kill_process(pid, Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Makes the monitor end with this process: one without output would not notice that it was killed.
fn ends_with_parent(command: &mut Command) {
    // SAFETY: a system call only.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
    }
}

fn listen(lines: ChildStdout, mut errors: ChildStderr, say: &Sender<Said>) {
    let mut lost = 0;
    for line in BufReader::new(lines).lines().map_while(Result::ok) {
        let line = serde_json::from_str::<Value>(&line).ok();
        let Some(said) = line.and_then(|line| read(&line, &mut lost)) else {
            continue;
        };
        if say.send(said).is_err() {
            return;
        }
    }
    let mut why = String::new();
    // What cannot be read is not shown.
    let _ = errors.read_to_string(&mut why);
    let why = why.lines().last().unwrap_or("emud monitor has ended");
    let _ = say.send(Said::Unwatched(why.trim_start_matches("emud: ").to_owned()));
}

/// Reads a line; `lost`: the events that have been lost so far.
fn read(line: &Value, lost: &mut u64) -> Option<Said> {
    Some(match line["type"].as_str()? {
        // Hooks of emulated links come with the first of these.
        "start" | "hooks" => match unknown(line) {
            None => Said::Watches,
            Some(why) => Said::Unwatched(why),
        },
        "alarm" => match line["resource"].as_str() {
            Some("emulator") => Said::Failure(sentence(line)),
            // A report of a program has no end.
            Some("application") => Said::Alarm(None, sentence(line)),
            _ => Said::Alarm(Some(episode(line)), sentence(line)),
        },
        "clear" => Said::Clear(episode(line)),
        "drops" => {
            let before = std::mem::replace(lost, line["ring_full"].as_u64().unwrap_or_default());
            return (*lost > before).then_some(Said::Missed);
        }
        _ => return None,
    })
}

/// Returns which resources no hook of this kernel watches.
fn unknown(start: &Value) -> Option<String> {
    let watched = start["watched"].as_object().into_iter().flatten();
    let unknown = watched.filter(|(_, state)| *state == "unknown");
    let names: Vec<&str> = unknown.map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| format!("no hook of this kernel for {}", names.join(", ")))
}

/// Episodes have numbers from 1 on.
fn episode(line: &Value) -> u64 {
    line["episode"].as_u64().unwrap_or_default()
}

/// Returns the resource, where, and by which cause.
fn sentence(line: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let scope = line["scope"].as_object().into_iter().flatten();
    let scope: Vec<String> = scope
        .filter(|(key, value)| *key != "type" && *key != "kind" && !value.is_null())
        .map(|(key, value)| format!("{key} {}", text(value)))
        .collect();
    let shares = line["shares"].as_array().into_iter().flatten();
    let first = shares
        .map(|share| &share["group"])
        .find(|group| !group.is_null());
    let by = first.map_or(String::new(), |group| format!(", most by {}", text(group)));
    format!("{} {}{by}", text(&line["resource"]), scope.join(" "))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_watched_or_was_missed_is_no_silence() {
        let mut lost = 0;
        let mut read = |line| read(&line, &mut lost);
        let hooks = json!({"type": "hooks", "watched": {"cpu": "yes", "emulator": "unknown"}});
        assert!(matches!(read(hooks), Some(Said::Unwatched(why)) if why.contains("emulator")));
        let drops =
            |ring_full: u64| json!({"type": "drops", "ring_full": ring_full, "suppressed": 3});
        assert!(read(drops(0)).is_none());
        assert!(matches!(read(drops(2)), Some(Said::Missed)));
        assert!(read(drops(2)).is_none());
        // Such as of tampering: no `clear` follows.
        let alarm = json!({"type": "alarm", "resource": "emulator", "episode": 4});
        assert!(matches!(read(alarm), Some(Said::Failure(_))));
    }

    /// To the kernel the thread that has started a process is its parent.
    #[test]
    fn a_child_ends_with_its_parent() {
        let started = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            ends_with_parent(command.arg("20"));
            command.spawn().unwrap()
        });
        let ended = started.join().unwrap().wait().unwrap();
        assert_eq!(ended.signal(), Some(libc::SIGTERM));
    }
}
