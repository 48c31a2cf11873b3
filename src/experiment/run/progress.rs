// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line that shows the progress of a run.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line at the bottom of a terminal; nothing without a terminal. Copies refer to the same line.
#[derive(Debug, Clone)]
pub struct Progress {
    bar: ProgressBar,
    counts: Arc<Counts>,
    of: (u32, u32),
}

#[derive(Debug, Default)]
struct Counts {
    packets: AtomicU64,
    alarms: AtomicU64,
}

impl Progress {
    /// Creates the line for run `of.0` of `of.1`; hidden if the program has exclusive use of the
    /// terminal.
    pub fn new(of: (u32, u32), hidden: bool) -> Self {
        let target = match !hidden && io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr_with_hz(4),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("[{elapsed_precise}] {msg}") {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Self {
            bar,
            counts: Arc::default(),
            of,
        }
    }

    /// Starts a phase.
    pub fn phase(&self, phase: &'static str) {
        self.bar.set_prefix(phase);
        self.show();
    }

    /// Sets the number of packets on the links so far.
    pub fn packets(&self, packets: u64) {
        self.counts.packets.store(packets, Ordering::Relaxed);
        self.show();
    }

    /// Shows this number of alarms.
    pub fn alarms(&self, alarms: u64) {
        self.counts.alarms.store(alarms, Ordering::Relaxed);
        self.show();
    }

    /// Prints something else in between.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Removes the line.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self) {
        let run = match self.of {
            (_, 1) => String::new(),
            (n, all) => format!("run {n} of {all}, "),
        };
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.bar.set_message(format!(
            "{run}{}: {} packets, {} alarms",
            self.bar.prefix(),
            of(&self.counts.packets),
            of(&self.counts.alarms)
        ));
    }
}
