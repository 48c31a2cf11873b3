// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times the programs in the kernel during short moments only: run statistics read the clock twice
//! per event, which costs more than most of the programs that they time.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{io, thread};

use aya::sys::{Stats, enable_stats};

/// One of each `EVERY`, the first at the start.
const MOMENT: Duration = Duration::from_millis(100);
const EVERY: Duration = Duration::from_secs(10);

/// Times the programs during its lifetime.
#[derive(Debug)]
pub(crate) struct Moments(#[expect(dead_code, reason = "closing it ends the thread")] Sender<()>);

impl Moments {
    /// Starts the thread. It does nothing on a kernel without run statistics.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start() -> io::Result<Self> {
        let (sender, ended) = channel::<()>();
        let goes_on = move |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
        thread::Builder::new()
            .name("emud-moments".into())
            .spawn(move || {
                while let Ok(statistics) = enable_stats(Stats::RunTime) {
                    let goes_on = goes_on(MOMENT) && {
                        drop(statistics);
                        goes_on(EVERY - MOMENT)
                    };
                    if !goes_on {
                        return;
                    }
                }
            })?;
        Ok(Self(sender))
    }
}
