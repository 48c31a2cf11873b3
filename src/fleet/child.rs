// SPDX-License-Identifier: MIT OR Apache-2.0
//! The agent's end of a [`super::part`].

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child as Process, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::FleetError;
use super::clock::Estimate;
use super::plan::HostPlan;
use super::protocol::{Built, FromChild, HostResult, Ready, ToChild, digest};
use crate::datapath::engine::hold::spawn::this_program;
use crate::host::now_ns;

/// How long a part may take for its clean-up before it is killed.
const CLEAN_UP: Duration = Duration::from_secs(2);

/// A running part. Dropping it kills it.
pub(super) struct Child {
    /// `None`: simulated.
    works: Option<Works>,
    tell: mpsc::UnboundedSender<String>,
    lines: mpsc::UnboundedReceiver<FromChild>,
}

struct Works {
    process: Process,
    /// In memory: a full disk does not matter.
    log: File,
}

impl Child {
    /// Starts a process and sends it its plan. `arguments`: those of `emud fleet-part`.
    pub fn start(plan: &str, arguments: &[String]) -> Result<Self, FleetError> {
        let failed = || FleetError::system("start a part");
        // Without CLOEXEC: the child has the same number.
        let log = memfd_create("emud-fleet-log", MemfdFlags::empty());
        let log = File::from(log.map_err(|e| failed()(e.into()))?);
        let mut command = this_program();
        command
            .arg("fleet-part")
            .args(["--log-fd", &log.as_raw_fd().to_string()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        ends_with_parent(&mut command);
        let mut process = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed())?;
        let (tell, told) = mpsc::unbounded_channel();
        let (each, lines) = mpsc::unbounded_channel();
        if let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) {
            tokio::spawn(write(to, told));
            tokio::spawn(read(from, each));
        }
        let child = Self {
            works: Some(Works { process, log }),
            tell,
            lines,
        };
        child.line(plan.to_owned());
        Ok(child)
    }

    /// Starts a task that answers like a part without nodes.
    pub fn simulated(plan: &str, heard: mpsc::UnboundedSender<Instant>) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        let (each, lines) = mpsc::unbounded_channel();
        tokio::spawn(part(plan.to_owned(), told, each, heard));
        Self {
            works: None,
            tell,
            lines,
        }
    }

    /// Sends a line.
    pub fn tell(&self, line: &ToChild) {
        if let Ok(text) = serde_json::to_string(line) {
            self.line(text);
        }
    }

    fn line(&self, text: String) {
        // Its end is noticed by the reader.
        let _ = self.tell.send(text + "\n");
    }

    /// Returns the next line; `None`: the process has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<FromChild> {
        self.lines.recv().await
    }

    /// Returns how the process ended.
    pub async fn status(&mut self) -> String {
        match &mut self.works {
            None => "simulated".to_owned(),
            Some(works) => match works.process.wait().await {
                Ok(status) => status.to_string(),
                Err(e) => e.to_string(),
            },
        }
    }

    /// Kills the process, also one that is stopped.
    pub fn kill(&mut self) {
        if let Some(works) = &mut self.works {
            // It may have ended.
            let _ = works.process.start_kill();
        }
    }

    /// Ends the process: first its programs and clean-up, then, after 2 s, in any case.
    pub async fn end(mut self) {
        let Some(works) = &mut self.works else { return };
        if let Some(pid) = works.pid() {
            // It may have ended.
            let _ = kill_process(pid, Signal::TERM);
        }
        if timeout(CLEAN_UP, works.process.wait()).await.is_err() {
            let _ = works.process.kill().await;
        }
    }

    /// Frees the memory of the log after its first `len` bytes. If that fails, it stays.
    pub fn cut_log(&self, len: u64) {
        if let Some(works) = &self.works {
            let _ = cut(&works.log, len);
        }
    }

    /// Returns the bytes of the log from an offset on, at most `len`.
    pub fn log(&self, offset: u64, len: usize) -> std::io::Result<Vec<u8>> {
        let Some(works) = &self.works else {
            return Ok(vec![]);
        };
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < len {
            match works
                .log
                .read_at(&mut bytes[filled..], offset + filled as u64)?
            {
                0 => break,
                more => filled += more,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

impl Works {
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.process.id()?).ok()?)
    }
}

/// Makes the kernel kill the part with the agent, and with it its nodes.
fn ends_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: a system call only.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
}

async fn write(mut to: ChildStdin, mut told: mpsc::UnboundedReceiver<String>) {
    while let Some(text) = told.recv().await {
        if to.write_all(text.as_bytes()).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

async fn read(from: ChildStdout, each: mpsc::UnboundedSender<FromChild>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        if let Ok(line) = serde_json::from_str(&line)
            && each.send(line).is_err()
        {
            return;
        }
    }
}

/// Answers like a part that builds nothing.
async fn part(
    plan: String,
    mut told: mpsc::UnboundedReceiver<String>,
    say: mpsc::UnboundedSender<FromChild>,
    heard: mpsc::UnboundedSender<Instant>,
) {
    let Ok(read) = serde_json::from_str::<HostPlan>(&plan) else {
        return;
    };
    let clock = read.reference.is_some().then_some(Estimate {
        offset_ns: 0,
        bound_ns: 0,
        delay_ns: 0,
        answers: 0,
    });
    let built = Built::Ready(Ready {
        digest: digest(plan.as_bytes()),
        mono_ns: now_ns(),
        clock,
        underlay_ns: BTreeMap::new(),
        notes: vec![],
    });
    // Its receiver ends with the agent.
    let _ = say.send(FromChild::Built(built));
    while let Some(line) = told.recv().await {
        match serde_json::from_str(&line) {
            Ok(ToChild::Start(_)) => {
                let _ = heard.send(Instant::now());
                let _ = say.send(FromChild::Complete);
            }
            Ok(ToChild::Over(_)) => {
                let result = HostResult {
                    run: String::new(),
                    judgement: None,
                    exits: vec![],
                    notes: vec![],
                    error: None,
                    mono_ns: now_ns(),
                    clock,
                    tunnels: BTreeMap::new(),
                    logs: 0,
                };
                let _ = say.send(FromChild::Result(Box::new(result)));
            }
            Ok(ToChild::Alive) => {
                let _ = say.send(FromChild::Alive);
            }
            _ => {}
        }
    }
}

/// Frees the log after its first `len` bytes: a program may print for days, and its part still appends at the end.
fn cut(log: &File, len: u64) -> std::io::Result<()> {
    let beyond = log.metadata()?.len().saturating_sub(len);
    if beyond > 0 {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(log, hole, len, beyond)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_log_takes_no_more_memory_than_is_sent_of_it() {
        const MIB: u64 = 1 << 20;
        let mut log = File::from(memfd_create("log", MemfdFlags::empty()).unwrap());
        log.write_all(&vec![b'x'; 3 * MIB as usize]).unwrap();
        cut(&log, MIB).unwrap();
        assert_eq!(log.metadata().unwrap().blocks() * 512, MIB);
        log.write_all(b"y").unwrap();
        assert_eq!(log.metadata().unwrap().len(), 3 * MIB + 1);
        let mut kept = vec![0; MIB as usize];
        log.read_exact_at(&mut kept, 0).unwrap();
        assert!(kept.iter().all(|byte| *byte == b'x'));
        cut(&log, 4 * MIB).unwrap();
    }
}
