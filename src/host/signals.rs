// SPDX-License-Identifier: MIT OR Apache-2.0
//! The signals that end a running command.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

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

    /// The same without SIGHUP.
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
