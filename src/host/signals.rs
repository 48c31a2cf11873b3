// SPDX-License-Identifier: MIT OR Apache-2.0
//! What asks a command that goes on to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT, SIGTERM and SIGHUP, the last one unless it was ignored from the start.
#[derive(Debug)]
pub struct Signals([Option<Signal>; 3]);

impl Signals {
    /// From now on they end nothing by themselves. Call it within a runtime.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new() -> io::Result<Self> {
        let mut signals = Self::without_hangup()?;
        // nohup means it.
        if !ignored(libc::SIGHUP)? {
            signals.0[2] = Some(signal(SignalKind::hangup())?);
        }
        Ok(signals)
    }

    /// The same but for SIGHUP.
    ///
    /// # Errors
    /// The kernel's.
    pub fn without_hangup() -> io::Result<Self> {
        let take = |kind| signal(kind).map(Some);
        Ok(Self([
            take(SignalKind::interrupt())?,
            take(SignalKind::terminate())?,
            None,
        ]))
    }

    /// Waits for the next one; its number. Cancel safe.
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
    // SAFETY: a sigaction of zeros is one; nothing is set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        match libc::sigaction(signal, std::ptr::null(), &mut action) {
            0 => Ok(action.sa_sigaction == libc::SIG_IGN),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
