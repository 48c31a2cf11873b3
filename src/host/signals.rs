// SPDX-License-Identifier: MIT OR Apache-2.0
//! The signals that end a running command.

use std::cell::{Cell, RefCell};
use std::io;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::single_threaded;

/// Returns the exit code of what a signal has ended, as a shell has it.
pub fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// SIGINT, SIGTERM and SIGHUP, the last one unless it was ignored at the start.
#[derive(Debug)]
pub struct Signals([Option<Signal>; 3]);

impl Signals {
    /// Catches the signals from now on. Call it within a runtime.
    pub fn new() -> io::Result<Self> {
        let mut signals = Self::without_hangup()?;
        // nohup ignores it.
        if !ignored(libc::SIGHUP)? {
            signals.0[2] = Some(signal(SignalKind::hangup())?);
        }
        Ok(signals)
    }

    /// Does the same without SIGHUP.
    pub fn without_hangup() -> io::Result<Self> {
        let take = |kind| signal(kind).map(Some);
        Ok(Self([
            take(SignalKind::interrupt())?,
            take(SignalKind::terminate())?,
            None,
        ]))
    }

    /// Waits for the next signal and returns its number. Cancel safe.
    pub async fn any(&mut self) -> i32 {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = one(interrupt) => libc::SIGINT,
            () = one(terminate) => libc::SIGTERM,
            () = one(hangup) => libc::SIGHUP,
        }
    }
}

/// The same for code that does not wait for them, such as between two runs.
#[derive(Debug, Default)]
pub struct Noted {
    caught: RefCell<Option<(Runtime, Signals)>>,
    first: Cell<Option<i32>>,
}

impl Noted {
    /// Returns the first signal of all, in each call. They are caught from the first call on.
    ///
    /// # Errors
    /// The kernel does not let them be caught.
    pub fn first(&self) -> io::Result<Option<i32>> {
        if self.first.get().is_none() {
            self.first.set(self.take()?);
        }
        Ok(self.first.get())
    }

    /// Returns a signal that came since the last call. They are caught from the first one on.
    ///
    /// # Errors
    /// The kernel does not let them be caught.
    pub fn take(&self) -> io::Result<Option<i32>> {
        let mut noted = self.caught.borrow_mut();
        let (runtime, signals) = match &mut *noted {
            Some(noted) => noted,
            none => {
                let runtime = single_threaded()?;
                let within = runtime.enter();
                let signals = Signals::new()?;
                drop(within);
                none.insert((runtime, signals))
            }
        };
        Ok(runtime.block_on(async {
            tokio::select! {
                biased;
                signal = signals.any() => Some(signal),
                () = tokio::time::sleep(Duration::ZERO) => None,
            }
        }))
    }
}

async fn one(signal: &mut Option<Signal>) {
    let came = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if came.is_none() {
        std::future::pending().await
    }
}

fn ignored(signal: i32) -> io::Result<bool> {
    // SAFETY: a sigaction of zeros is valid; nothing is set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        match libc::sigaction(signal, std::ptr::null(), &mut action) {
            0 => Ok(action.sa_sigaction == libc::SIG_IGN),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_between_two_calls_is_noted_once() {
        let noted = Noted::default();
        assert_eq!(noted.take().unwrap(), None);
        // SAFETY: it is caught since then.
        unsafe { libc::raise(libc::SIGTERM) };
        assert_eq!(noted.take().unwrap(), Some(libc::SIGTERM));
        assert_eq!(noted.take().unwrap(), None);
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGINT) };
        for _ in 0..2 {
            assert_eq!(noted.first().unwrap(), Some(libc::SIGINT));
        }
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: this process ends by them again.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}
