// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line that shows the progress of a run.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::host::spawn;

/// Interval of drawing the line.
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// How long the end of a run waits for a terminal that has been stopped.
const CLEARS_WITHIN: Duration = Duration::from_secs(1);

/// A line at the bottom of a terminal; nothing without a terminal. Copies refer to the same line.
///
/// Only a thread for it and [`Progress::aside`] write, and wait for a reader that has stopped: a
/// sample or a signal must not.
#[derive(Debug, Clone)]
pub struct Progress {
    shown: Arc<Shown>,
    /// `None`: no terminal, or another program has it.
    line: Option<Arc<Line>>,
}

#[derive(Debug, Default)]
struct Shown {
    of: (u32, u32),
    phase: Mutex<&'static str>,
    packets: AtomicU64,
    alarms: AtomicU64,
}

#[derive(Debug)]
struct Line {
    bar: ProgressBar,
    end: Sender<Sender<()>>,
}

impl Progress {
    /// Creates the line for run `of.0` of `of.1`; hidden if the program has exclusive use of the
    /// terminal.
    pub fn new(of: (u32, u32), hidden: bool) -> Self {
        let shown = Arc::new(Shown {
            of,
            phase: Mutex::new("preparation"),
            ..Shown::default()
        });
        let visible = !hidden && io::stderr().is_terminal();
        // Without a thread a run has no line.
        let line = visible.then(|| Line::draw(shown.clone()).ok()).flatten();
        Self {
            shown,
            line: line.map(Arc::new),
        }
    }

    /// Starts a phase.
    pub fn phase(&self, phase: &'static str) {
        *(self.shown.phase.lock()).unwrap_or_else(PoisonError::into_inner) = phase;
    }

    /// Sets the number of packets on the links so far.
    pub fn packets(&self, packets: u64) {
        self.shown.packets.store(packets, Ordering::Relaxed);
    }

    /// Shows this number of alarms.
    pub fn alarms(&self, alarms: u64) {
        self.shown.alarms.store(alarms, Ordering::Relaxed);
    }

    /// Prints something else in between.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.line {
            Some(line) => line.bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the line.
    pub fn end(&self) {
        let (tell, cleared) = channel();
        if let Some(line) = &self.line
            && line.end.send(tell).is_ok()
        {
            let _ = cleared.recv_timeout(CLEARS_WITHIN);
        }
    }
}

impl Line {
    fn draw(shown: Arc<Shown>) -> io::Result<Self> {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
        if let Ok(style) = ProgressStyle::with_template("[{elapsed_precise}] {msg}") {
            bar.set_style(style);
        }
        let (end, ended) = channel();
        let drawn = bar.clone();
        spawn("emud-progress", move || follow(&drawn, &shown, &ended))?;
        Ok(Self { bar, end })
    }
}

/// Draws until the end.
fn follow(bar: &ProgressBar, shown: &Shown, ended: &Receiver<Sender<()>>) {
    loop {
        bar.set_message(shown.text());
        match ended.recv_timeout(DRAW_EVERY) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(tell) => {
                bar.finish_and_clear();
                // The end may not have waited.
                let _ = tell.send(());
                return;
            }
        }
    }
}

impl Shown {
    fn text(&self) -> String {
        let run = match self.of {
            (_, 1) => String::new(),
            (n, all) => format!("run {n} of {all}, "),
        };
        let phase = *self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (packets, alarms) = (of(&self.packets), of(&self.alarms));
        format!("{run}{phase}: {packets} packets, {alarms} alarms")
    }
}
