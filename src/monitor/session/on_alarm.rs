// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that run at alarms, one after the other.

use std::io;
use std::os::fd::AsFd;
use std::process::Stdio;

use crate::text::to_stderr;
use emud_monitor::log::OnAlarm;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// Maximum number of alarms that wait for running commands.
pub const QUEUE: usize = 64;

/// Runs commands.
#[derive(Debug)]
pub struct Runner {
    command: String,
    alarms: mpsc::Receiver<String>,
    running: Option<Child>,
    pub counts: OnAlarm,
}

impl Runner {
    /// Runs `sh -c command` for each of `alarms`, with the alarm on the standard input.
    pub fn new(command: String, alarms: mpsc::Receiver<String>) -> Self {
        Self {
            command,
            alarms,
            running: None,
            counts: OnAlarm::default(),
        }
    }

    /// Runs commands until the command of the last alarm has ended. Cancel safe: a new call
    /// continues.
    pub async fn serve(&mut self) {
        loop {
            if let Some(child) = &mut self.running {
                let status = child.wait().await;
                self.running = None;
                match status {
                    Ok(status) if status.success() => self.counts.succeeded += 1,
                    Ok(status) => self.failed(&status.to_string()),
                    Err(e) => self.failed(&e.to_string()),
                }
            }
            let Some(alarm) = self.alarms.recv().await else {
                return;
            };
            match self.spawn(alarm) {
                Ok(child) => self.running = Some(child),
                Err(e) => self.failed(&e.to_string()),
            }
        }
    }

    fn spawn(&self, alarm: String) -> io::Result<Child> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", &self.command])
            .stdin(Stdio::piped())
            // The standard output is used for the log.
            .stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?))
            // The monitor handles Ctrl-C; and a group can be killed with all its processes.
            .process_group(0)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            tokio::spawn(async move {
                // A command need not read it.
                let _ = stdin.write_all(alarm.as_bytes()).await;
            });
        }
        Ok(child)
    }

    fn failed(&mut self, how: &str) {
        self.counts.failed += 1;
        to_stderr(format_args!("emud: the command for an alarm failed: {how}"));
    }

    /// Kills the running command, and drops waiting alarms.
    pub async fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
            if let Some(group) = group {
                // It may have ended just now.
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait().await;
            self.counts.killed += 1;
        }
        while self.alarms.try_recv().is_ok() {
            self.counts.killed += 1;
        }
        if self.counts.killed > 0 {
            to_stderr(format_args!(
                "emud: {} commands for alarms were killed or not run at the end",
                self.counts.killed
            ));
        }
    }
}
