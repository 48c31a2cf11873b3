// SPDX-License-Identifier: MIT OR Apache-2.0
//! A terminal for an interactive program. With a pipe, shells would show no prompt, and programs
//! would buffer their output.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use tokio::signal::unix::{SignalKind, signal};

use crate::host::spawn;

/// Returns whether emud runs at a terminal.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Passes each new size of the window on to the program.
pub async fn follow_size(terminal: &Terminal) {
    // Without the signal the size does not change.
    if let Ok(mut changed) = signal(SignalKind::window_change()) {
        while changed.recv().await.is_some() {
            terminal.resize();
        }
    }
}

/// The program's terminal from outside; emud's terminal is in raw mode for its lifetime.
#[derive(Debug)]
pub struct Terminal {
    controller: OwnedFd,
    before: Termios,
    /// Closing it ends the thread that copies the input.
    _typing: OwnedFd,
}

impl Terminal {
    /// Gives `command` a terminal with the size of emud's.
    pub fn open(command: &mut Command) -> io::Result<Self> {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&controller)?;
        unlockpt(&controller)?;
        let name = ptsname(&controller, vec![])?;
        let program = open(
            name,
            OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let before = tcgetattr(io::stdin())?;
        tcsetattr(&program, OptionalActions::Now, &before)?;
        command.stdin(program.try_clone()?);
        command.stdout(program.try_clone()?);
        command.stderr(program);
        // SAFETY: system calls only.
        unsafe { command.pre_exec(take_terminal) };
        let (ended, typing) = pipe_with(PipeFlags::CLOEXEC)?;
        copy_typed(controller.try_clone()?, ended)?;
        let terminal = Self {
            controller,
            before,
            _typing: typing,
        };
        terminal.resize();
        terminal.raw()?;
        Ok(terminal)
    }

    /// Returns a reader of the program's output.
    ///
    /// # Errors
    /// No descriptor is available.
    pub fn reader(&self) -> io::Result<impl Read + Send + 'static + use<>> {
        Ok(File::from(self.controller.try_clone()?))
    }

    /// Sets the size after a change of the window.
    pub fn resize(&self) {
        // A terminal without a size is not an error.
        if let Ok(size) = tcgetwinsize(io::stdin()) {
            let _ = tcsetwinsize(&self.controller, size);
        }
    }

    /// Passes all input on to the program, including Ctrl-C.
    fn raw(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &raw)?)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // An error cannot be reported any more.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
    }
}

/// Runs in the new process: starts a session with the standard input as the terminal.
fn take_terminal() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(rustix::process::ioctl_tiocsctty(io::stdin())?)
}

fn copy_typed(controller: OwnedFd, ended: OwnedFd) -> io::Result<()> {
    let mut to = File::from(controller);
    let copying = move || {
        let mut buffer = [0; 1024];
        while let Ok(true) = typed(&ended) {
            // Without std's buffer, which poll() does not see.
            match rustix::io::read(io::stdin(), &mut buffer) {
                Ok(len @ 1..) if to.write_all(&buffer[..len]).is_ok() => {}
                _ => break,
            }
        }
    };
    spawn("emud-typing", copying).map(drop)
}

/// Waits for input; returns false if the end is reached first.
fn typed(ended: &OwnedFd) -> io::Result<bool> {
    let stdin = io::stdin();
    loop {
        let mut fds = [
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Ok(_) => return Ok(fds[1].revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}
