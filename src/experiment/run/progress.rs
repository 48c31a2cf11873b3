// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line that says how far a run is, for whoever watches it.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// On a terminal a line at its bottom, elsewhere nothing. Copies are the same line.
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
    /// For run `of.0` of `of.1`. None is shown where the program has the terminal for itself.
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

    /// Another phase has begun.
    pub fn phase(&self, phase: &'static str) {
        self.bar.set_prefix(phase);
        self.show();
    }

    /// What the links have seen so far.
    pub fn packets(&self, packets: u64) {
        self.counts.packets.store(packets, Ordering::Relaxed);
        self.show();
    }

    pub fn alarms(&self, alarms: u64) {
        self.counts.alarms.store(alarms, Ordering::Relaxed);
        self.show();
    }

    /// Prints something else meanwhile.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the line away.
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
