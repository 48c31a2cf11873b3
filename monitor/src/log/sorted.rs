// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of an experiment: lines of several threads, sorted by time, in a file that a separate
//! thread writes. No sender waits for the disk, which may be contended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use super::{Clock, Line, Lost, mono_ns};

/// Alarms leave a ring buffer and output leaves a pipe some time after the event. A line waits this
/// long for earlier ones.
const WAIT_NS: u64 = 300_000_000;
/// Maximum size of the waiting lines, including overhead per line: several times what the fastest
/// program prints in 300 ms.
const MAX_BEHIND: usize = if cfg!(test) { 16 } else { 256 } << 20;
const LINE_COST: usize = 128;
/// Number of lines that are written before new ones are taken.
const BATCH: usize = 1024;

/// Accepts lines for the log of an experiment; never blocks.
#[derive(Debug, Clone)]
pub struct LineSender {
    clock: Clock,
    /// `None`: there is no log.
    lines: Option<Sender<Sent>>,
    count: Arc<Count>,
}

/// The file for the lines of [`LineSender`].
#[derive(Debug)]
pub struct SortedLog {
    sender: LineSender,
    done: Option<Receiver<io::Result<()>>>,
}

#[derive(Debug, Default)]
struct Count {
    behind: AtomicUsize,
    output_lines: AtomicU64,
    samples: AtomicU64,
}

#[derive(Debug)]
enum Sent {
    Line(Waiting),
    /// The end line, which is written after all waiting lines.
    Last(String),
}

/// A line of the heap.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    mono_ns: u64,
    /// Keeps the order of lines with the same time.
    number: u64,
    text: String,
}

impl LineSender {
    /// Passes a line on. If too much is waiting, output and samples are counted and dropped, and a
    /// [`Lost`] line follows when there is room; other lines are always kept. Nothing is written
    /// after the end line.
    pub fn line(&self, line: Line) {
        if self.lines.is_none() {
            return;
        }
        match line.json(&self.clock) {
            Ok(text) => self.text(&line, text),
            // Every line can be represented in JSON.
            Err(e) => debug_assert!(false, "{e}"),
        }
    }

    /// Passes on a line that is already JSON.
    pub(super) fn text(&self, line: &Line, text: String) {
        let Some(lines) = &self.lines else { return };
        if let Line::End(_) = line {
            // The thread runs until it gets this line.
            let _ = lines.send(Sent::Last(text));
            return;
        }
        let cost = text.len() + LINE_COST;
        let behind = self.count.behind.fetch_add(cost, Ordering::Relaxed) + cost;
        let dropped = match line {
            _ if behind <= MAX_BEHIND => None,
            Line::Output(_) => Some(&self.count.output_lines),
            Line::Sample(_) | Line::Class(_) | Line::Station(_) | Line::Host(_) => {
                Some(&self.count.samples)
            }
            _ => None,
        };
        if let Some(dropped) = dropped {
            self.count.behind.fetch_sub(cost, Ordering::Relaxed);
            dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let waiting = Waiting {
            mono_ns: line.mono_ns(),
            number: 0,
            text,
        };
        // Fails only after the end line.
        let _ = lines.send(Sent::Line(waiting));
    }

    /// Returns the number of lines dropped so far.
    pub fn lost(&self) -> u64 {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        of(&self.count.output_lines) + of(&self.count.samples)
    }
}

impl SortedLog {
    /// Starts the thread for an open file; without a file all lines are discarded.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn new(clock: Clock, file: Option<File>) -> io::Result<Self> {
        let count = Arc::new(Count::default());
        let mut log = Self {
            sender: LineSender {
                clock,
                lines: None,
                count: count.clone(),
            },
            done: None,
        };
        let Some(file) = file else { return Ok(log) };
        let (lines, sent) = channel();
        let (tell, done) = sync_channel(1);
        let mut writer = Writer {
            file: BufWriter::with_capacity(1 << 16, file),
            waiting: BinaryHeap::new(),
            taken: 0,
            first_ns: None,
            clock,
            count,
            told: (0, 0),
        };
        thread::Builder::new()
            .name("emud-log".into())
            .spawn(move || {
                // The receiver waits in finish(), or has given up.
                let _ = tell.send(writer.run(&sent));
            })?;
        log.sender.lines = Some(lines);
        log.done = Some(done);
        Ok(log)
    }

    /// Returns the sender, which other threads may clone.
    pub fn sender(&self) -> &LineSender {
        &self.sender
    }

    /// Waits up to `patience` after the end line until every line is written.
    ///
    /// # Errors
    /// The first error of the file; TimedOut.
    pub fn finish(&mut self, patience: Duration) -> io::Result<()> {
        let Some(done) = self.done.take() else {
            return Ok(());
        };
        match done.recv_timeout(patience) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(ErrorKind::TimedOut.into()),
            Err(RecvTimeoutError::Disconnected) => Err(ErrorKind::BrokenPipe.into()),
        }
    }
}

/// The state of the thread.
struct Writer {
    file: BufWriter<File>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    taken: u64,
    /// The start line is the first one, whatever the time of a report.
    first_ns: Option<u64>,
    clock: Clock,
    count: Arc<Count>,
    /// Counts in the last [`Lost`] line: output lines, samples.
    told: (u64, u64),
}

impl Writer {
    /// Runs until the end line, or until all senders are gone.
    fn run(&mut self, sent: &Receiver<Sent>) -> io::Result<()> {
        loop {
            // Read before the lines are taken: all lines due by then have arrived.
            let due = mono_ns().saturating_sub(WAIT_NS);
            let last = self.take(sent.try_iter());
            if let Some(last) = last {
                return self.end(&last);
            }
            if self.write(due)? {
                continue;
            }
            self.tell_lost();
            self.file.flush()?;
            let received = match self.waiting.peek() {
                Some(Reverse(next)) => {
                    let at = next.mono_ns + WAIT_NS;
                    let wait = Duration::from_nanos(at.saturating_sub(mono_ns()));
                    sent.recv_timeout(wait)
                }
                None => sent.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(one) => {
                    if let Some(last) = self.take([one].into_iter()) {
                        return self.end(&last);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.end(""),
            }
        }
    }

    /// Queues lines; returns the end line if it arrived.
    fn take(&mut self, sent: impl Iterator<Item = Sent>) -> Option<String> {
        for one in sent {
            match one {
                Sent::Line(line) => self.put(line),
                Sent::Last(text) => return Some(text),
            }
        }
        None
    }

    fn put(&mut self, mut line: Waiting) {
        let first_ns = *self.first_ns.get_or_insert(line.mono_ns);
        line.mono_ns = line.mono_ns.max(first_ns);
        line.number = self.taken;
        self.taken += 1;
        self.waiting.push(Reverse(line));
    }

    /// Writes the lines that are due. Returns true if more of them remain.
    fn write(&mut self, due: u64) -> io::Result<bool> {
        for _ in 0..BATCH {
            if self
                .waiting
                .peek()
                .is_none_or(|Reverse(next)| next.mono_ns > due)
            {
                return Ok(false);
            }
            if let Some(Reverse(line)) = self.waiting.pop() {
                self.file.write_all(line.text.as_bytes())?;
                let cost = line.text.len() + LINE_COST;
                self.count.behind.fetch_sub(cost, Ordering::Relaxed);
            }
        }
        Ok(true)
    }

    fn end(&mut self, last: &str) -> io::Result<()> {
        self.tell_lost();
        while self.write(u64::MAX)? {}
        self.file.write_all(last.as_bytes())?;
        self.file.flush()
    }

    /// Writes a line if more was lost than the last one reported.
    fn tell_lost(&mut self) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let now = (of(&self.count.output_lines), of(&self.count.samples));
        if now == self.told {
            return;
        }
        let lost = Line::Lost(Lost {
            mono_ns: mono_ns(),
            output_lines: now.0 - self.told.0,
            samples: now.1 - self.told.1,
        });
        let Ok(text) = lost.json(&self.clock) else {
            return;
        };
        self.told = now;
        self.count
            .behind
            .fetch_add(text.len() + LINE_COST, Ordering::Relaxed);
        self.put(Waiting {
            mono_ns: lost.mono_ns(),
            number: 0,
            text,
        });
    }
}

#[cfg(test)]
mod tests;
