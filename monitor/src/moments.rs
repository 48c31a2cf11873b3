// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes the time of the programs in the kernel, for moments only: run statistics cost two reads of
//! the clock an event, and so more than most of what they time.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{io, thread};

use aya::sys::{Stats, enable_stats};

/// Of each `EVERY`, the first right at the start.
const MOMENT: Duration = Duration::from_millis(100);
const EVERY: Duration = Duration::from_secs(10);

/// As long as it is there.
#[derive(Debug)]
pub(crate) struct Moments(#[expect(dead_code, reason = "closed, it ends the thread")] Sender<()>);

impl Moments {
    /// Does nothing on a kernel without run statistics.
    ///
    /// # Errors
    /// No thread can be had.
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
