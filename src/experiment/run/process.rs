// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program: starts it in its node, copies its output, waits for it, ends it.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use emud_monitor::log::{ExitLine, OutputStream, PhaseName};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::experiment::scenario::Program;
use crate::host::now_ns;
use crate::host::{open_files, spawn};

use super::User;
use super::folders::works_in;
use super::location::RunLocation;
use super::output::{Copying, Sink, copy};
use super::terminal::Terminal;

/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// The exit of a program, and its time.
type Ended = (io::Result<ExitStatus>, u64);

/// A program to start, and where.
#[derive(Debug)]
pub struct Start<'a> {
    pub node: &'a str,
    pub phase: PhaseName,
    pub program: &'a Program,
    pub env: Vec<(String, String)>,
    /// Its working directory; `None`: emud's.
    pub working: Option<PathBuf>,
    /// The base of a program's relative path.
    pub from: &'a Path,
    /// The user that it runs as; `None`: root.
    pub user: Option<&'a User>,
    /// Whether it gets a separate terminal, connected with emud's.
    pub terminal: bool,
    /// Whether it gets emud's standard input; otherwise it has none.
    pub input: bool,
    /// The sink of the stream "stdout", from which those of the others are derived.
    pub sink: Sink,
}

/// A started program.
#[derive(Debug)]
pub struct Process {
    exit: ExitLine,
    handle: Handle,
    ended: oneshot::Receiver<Ended>,
    copying: Vec<Copying>,
    pub terminal: Option<Rc<Terminal>>,
}

/// Ends a program, independent of the task that waits for it.
#[derive(Debug, Clone)]
pub struct Handle {
    pid: Pid,
    /// Whether it leads a process group.
    group: bool,
    /// Whether it has ended: its number may soon belong to another process.
    over: Arc<Mutex<bool>>,
    asked: Rc<Cell<bool>>,
}

impl Process {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started; NotFound if there is no such program.
    pub fn start(place: &RunLocation, start: Start<'_>) -> io::Result<Self> {
        let argv = argv(start.program, start.user);
        let mut command = command(&argv, &start)?;
        let terminal = match start.terminal {
            true => Some(Terminal::open(&mut command)?),
            false => None,
        };
        // After the terminal, whose owner becomes the user.
        if let Some(user) = start.user {
            user.runs(&mut command);
        }
        let started_mono_ns = now_ns();
        let mut child = place.spawn(start.node, &mut command)?;
        // The program's end of a terminal is closed with it.
        drop(command);
        let pid = Pid::from_child(&child);
        let copying = take_output(&mut child, terminal.as_ref(), &start.sink)?;
        let over = Arc::new(Mutex::new(false));
        let ended = wait_for(child, over.clone())?;
        Ok(Self {
            exit: ExitLine {
                mono_ns: 0,
                node: start.node.to_owned(),
                phase: start.phase,
                command: argv,
                started_mono_ns,
                code: None,
                signal: None,
                ended_by_emud: false,
            },
            handle: Handle {
                pid,
                group: start.terminal || !shares_terminal(start.input),
                over,
                asked: Rc::default(),
            },
            ended,
            copying,
            terminal: terminal.map(Rc::new),
        })
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits for its end, and for the rest of its output.
    pub async fn wait(mut self) -> ExitLine {
        let (status, mono_ns) = match (&mut self.ended).await {
            Ok(ended) => ended,
            Err(_) => (Err(io::ErrorKind::Other.into()), now_ns()),
        };
        for stream in &self.copying {
            stream.ended().await;
        }
        let status = status.ok();
        ExitLine {
            mono_ns,
            code: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            ended_by_emud: self.handle.asked.get(),
            ..self.exit
        }
    }
}

impl Handle {
    /// Sends it a signal, with all processes of its group.
    pub fn ask(&self, signal: Signal) {
        // The lock keeps its number from being reused meanwhile.
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        if !*over {
            // One that had ended by itself was not ended by emud. Its group may go on.
            self.asked.set(self.asked.get() || !has_exited(self.pid));
            let _ = match self.group {
                true => kill_process_group(self.pid, signal),
                // It is in emud's group, which has the terminal: one from there has reached both.
                false if matches!(signal, Signal::INT | Signal::HUP) => Ok(()),
                false => kill_process(self.pid, signal),
            };
        }
    }

    /// Returns whether it has ended, also if the thread that waits for it has not noticed yet.
    pub fn is_over(&self) -> bool {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock keeps its number from being reused meanwhile.
        *over || has_exited(self.pid)
    }

    /// Waits until it has ended; after [`GRACE`] it is killed.
    pub async fn end(&self) {
        self.ask(Signal::TERM);
        let over = async {
            while !self.is_over() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(GRACE, over).await.is_err() {
            self.ask(Signal::KILL);
        }
    }
}

/// Returns whether a child that has not been reaped has ended.
fn has_exited(pid: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    matches!(waitid(WaitId::Pid(pid), look), Ok(Some(_)))
}

/// Reports its exit, and marks it as ended before it is reaped.
fn wait_for(mut child: Child, over: Arc<Mutex<bool>>) -> io::Result<oneshot::Receiver<Ended>> {
    let (tell, ended) = oneshot::channel();
    let waiting = move || {
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let pid = WaitId::Pid(Pid::from_child(&child));
        while let Err(Errno::INTR) = waitid(pid.clone(), exited) {}
        let mono_ns = now_ns();
        *over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        // After the end of the run there is no receiver.
        let _ = tell.send((child.wait(), mono_ns));
    };
    spawn("emud-wait", waiting)?;
    Ok(ended)
}

/// Returns the argument vector, for the log.
pub fn argv(program: &Program, user: Option<&User>) -> Vec<String> {
    match program {
        Program::Argv(argv) => argv.clone(),
        Program::Shell(text) => ["sh", "-c", text].map(str::to_owned).to_vec(),
        Program::Interactive => {
            let shell = || std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
            let of = |user: &User| user.shell.to_string_lossy().into_owned();
            vec![user.map_or_else(shell, of)]
        }
    }
}

fn command(argv: &[String], start: &Start<'_>) -> io::Result<Command> {
    let (name, arguments) = match argv.split_first() {
        Some((name, arguments)) => (name.as_str(), arguments),
        None => ("/bin/sh", argv),
    };
    let mut command = match &start.working {
        Some(working) => {
            // Without a slash it is searched in PATH.
            let path = match name.contains('/') {
                true => start.from.join(name),
                false => name.into(),
            };
            let mut command = Command::new(path);
            command.arg0(name);
            works_in(&mut command, working.clone())?;
            command
        }
        None => Command::new(name),
    };
    command.args(arguments).envs(start.env.iter().cloned());
    open_files::as_before(&mut command);
    if !start.terminal {
        let input = if start.input {
            Stdio::inherit()
        } else {
            Stdio::null()
        };
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !shares_terminal(start.input) {
            command.process_group(0);
        }
    }
    Ok(command)
}

/// Returns whether it reads from emud's terminal, which only emud's process group may do.
fn shares_terminal(input: bool) -> bool {
    input && io::stdin().is_terminal()
}

fn take_output(
    child: &mut Child,
    terminal: Option<&Terminal>,
    sink: &Sink,
) -> io::Result<Vec<Copying>> {
    let of = |stream| Sink {
        stream,
        ..sink.clone()
    };
    let mut copying = vec![];
    if let Some(terminal) = terminal {
        copying.push(copy(terminal.reader()?, of(OutputStream::Terminal))?);
    }
    if let Some(out) = child.stdout.take() {
        copying.push(copy(out, of(OutputStream::Stdout))?);
    }
    if let Some(err) = child.stderr.take() {
        copying.push(copy(err, of(OutputStream::Stderr))?);
    }
    Ok(copying)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread that waits for it has not noticed yet.
    #[test]
    fn a_program_that_failed_was_not_ended_by_emud() {
        let mut child = Command::new("false").process_group(0).spawn().unwrap();
        let handle = Handle {
            pid: Pid::from_child(&child),
            group: true,
            over: Arc::default(),
            asked: Rc::default(),
        };
        let exited = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(handle.pid), exited).unwrap();
        handle.ask(Signal::TERM);
        assert!(!handle.asked.get());
        child.wait().unwrap();
    }
}
