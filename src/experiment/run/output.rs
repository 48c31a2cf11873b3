// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies what programs print: to the terminal immediately, and by line into the log.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use emud_monitor::log::{Line, OutputLine, OutputStream};

use emud_monitor::log::LineSender;
use tokio::time::{Instant, sleep};

use super::Progress;
use crate::host::now_ns;
use crate::host::spawn;

/// A longer line is split, so that a program without line feeds is logged, too.
const MAX_LINE: usize = 8192;
/// Interval of checks whether everything has been copied.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// After this time without output the output is complete, even if a child in the background keeps
/// the pipe open.
const QUIET: Duration = Duration::from_millis(500);
/// The rest of a program's output is at most what its pipe holds; what comes later is a child's.
const LONGEST: Duration = Duration::from_secs(2);

/// The destination of one stream of one program.
#[derive(Debug, Clone)]
pub struct Sink {
    pub node: String,
    pub stream: OutputStream,
    /// `None`: the stream is not logged.
    pub log: Option<LineSender>,
    /// Whether it is not printed.
    pub quiet: bool,
    /// Prefix of each line on the terminal; `None`: bytes are passed on immediately.
    pub prefix: Option<String>,
    pub progress: Progress,
    pub failed: Failed,
    /// Whether emud ends programs: it does not wait for a reader any more.
    pub ending: Arc<AtomicBool>,
}

/// Why emud's output could not be written, if it could not. A reader that has gone is not a
/// failure.
#[derive(Debug, Clone, Default)]
pub struct Failed(Arc<OnceLock<io::Error>>);

impl Failed {
    fn note(&self, error: io::Error) {
        if error.kind() != io::ErrorKind::BrokenPipe {
            // The first error is kept.
            let _ = self.0.set(error);
        }
    }

    /// Returns a sentence for the user.
    pub fn sentence(&self) -> Option<String> {
        let error = self.0.get()?;
        Some(format!("cannot write the output of a program: {error}"))
    }
}

/// Copies until the end of the stream, or until emud's output has no reader any more: then the
/// program's pipe is closed, as it would be without emud.
pub fn copy(mut from: impl Read + Send + 'static, sink: Sink) -> io::Result<Copying> {
    let state = Arc::new(State {
        taken: AtomicU64::new(0),
        passing_on: AtomicBool::new(false),
        failed: sink.failed.clone(),
        ending: sink.ending.clone(),
    });
    let shared = state.clone();
    let copying = move || {
        let mut lines = Lines::default();
        let mut buffer = [0; 16384];
        loop {
            let len = match from.read(&mut buffer) {
                Ok(0) => break,
                // The terminal of a program that has ended.
                Err(e) if e.raw_os_error() == Some(libc::EIO) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
                Ok(len) => len,
            };
            shared.passing_on.store(true, Ordering::Relaxed);
            shared.taken.fetch_add(len as u64, Ordering::Relaxed);
            // Into the log first, which does not wait for a reader.
            let passed = lines.push(&buffer[..len], now_ns(), |line| sink.line(line));
            if let Err(e) = passed {
                sink.failed.note(e);
                return;
            }
            if let Err(e) = sink.raw(&buffer[..len]) {
                sink.failed.note(e);
                break;
            }
            shared.passing_on.store(false, Ordering::Relaxed);
        }
        // The reader that closed the output does not get the rest.
        let _ = lines.rest(|line| sink.line(line));
    };
    let thread = spawn("emud-output", copying)?;
    Ok(Copying { thread, state })
}

#[derive(Debug)]
struct State {
    /// Number of bytes so far.
    taken: AtomicU64,
    /// Whether some of them are being logged or printed, which waits for the reader of emud's output.
    passing_on: AtomicBool,
    failed: Failed,
    ending: Arc<AtomicBool>,
}

/// A stream that is being copied.
#[derive(Debug)]
pub struct Copying {
    thread: JoinHandle<()>,
    state: Arc<State>,
}

impl Copying {
    /// Waits for the end of a program's output, after the end of the program. A child in the
    /// background may keep the pipe open: then until there has been no output for [`QUIET`]. While
    /// a slow reader takes what there is, no time passes, unless emud ends the program.
    pub async fn ended(&self) {
        let mut before = None;
        let mut looked = Instant::now();
        let [mut quiet, mut waited] = [Duration::ZERO; 2];
        while !self.thread.is_finished() {
            let passing_on = self.state.passing_on.load(Ordering::Relaxed);
            let ending = self.state.ending.load(Ordering::Relaxed);
            let passed = looked.elapsed();
            looked = Instant::now();
            if ending || !passing_on {
                quiet += passed;
                waited += passed;
            }
            let now = Some(self.state.taken.load(Ordering::Relaxed));
            if now != before {
                (before, quiet) = (now, Duration::ZERO);
            }
            if quiet > QUIET || waited > LONGEST {
                if passing_on {
                    let why = "its reader did not take the end";
                    self.state.failed.note(io::Error::other(why));
                }
                return;
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

impl Sink {
    fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        match self.prefix {
            None => self.print(bytes),
            Some(_) => Ok(()),
        }
    }

    fn line(&self, line: Piece<'_>) -> io::Result<()> {
        let text = line.bytes.strip_suffix(b"\r").unwrap_or(line.bytes);
        let text = String::from_utf8_lossy(text);
        if let Some(prefix) = &self.prefix {
            self.print(format!("{prefix}{text}\n").as_bytes())?;
        }
        if let Some(log) = &self.log {
            log.line(Line::Output(OutputLine {
                mono_ns: line.mono_ns,
                node: self.node.clone(),
                stream: self.stream,
                text: text.into_owned(),
                partial: line.partial,
            }));
        }
        Ok(())
    }

    fn print(&self, bytes: &[u8]) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        self.progress.aside(|| match self.stream {
            OutputStream::Stderr => io::stderr().lock().write_all(bytes),
            OutputStream::Stdout | OutputStream::Terminal => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
        })
    }
}

/// A line, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece<'a> {
    bytes: &'a [u8],
    /// Time of its first byte.
    mono_ns: u64,
    partial: bool,
}

/// The incomplete line so far.
#[derive(Debug, Default)]
struct Lines {
    pending: Vec<u8>,
    since: u64,
}

impl Lines {
    fn push(
        &mut self,
        bytes: &[u8],
        now: u64,
        mut each: impl FnMut(Piece) -> io::Result<()>,
    ) -> io::Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.pending.is_empty() {
                self.since = now;
            }
            match part.strip_suffix(b"\n") {
                Some(end) => {
                    self.pending.extend_from_slice(end);
                    self.emit(false, &mut each)?;
                }
                None => self.pending.extend_from_slice(part),
            }
            if self.pending.len() >= MAX_LINE {
                let rest = self.pending.split_off(whole(&self.pending));
                self.emit(true, &mut each)?;
                (self.pending, self.since) = (rest, now);
            }
        }
        Ok(())
    }

    fn rest(&mut self, mut each: impl FnMut(Piece) -> io::Result<()>) -> io::Result<()> {
        match self.pending.is_empty() {
            true => Ok(()),
            false => self.emit(true, &mut each),
        }
    }

    fn emit(
        &mut self,
        partial: bool,
        each: &mut impl FnMut(Piece) -> io::Result<()>,
    ) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.pending);
        each(Piece {
            bytes: &bytes,
            mono_ns: self.since,
            partial,
        })
    }
}

/// Returns the length without a character at the end that is not complete: neither piece would have it.
fn whole(text: &[u8]) -> usize {
    match std::str::from_utf8(text) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        _ => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&str]) -> Vec<(String, u64, bool)> {
        let mut all = vec![];
        let mut keep = |piece: Piece| {
            let text = String::from_utf8(piece.bytes.to_vec()).unwrap();
            all.push((text, piece.mono_ns, piece.partial));
            Ok(())
        };
        let mut lines = Lines::default();
        for (now, chunk) in (1..).zip(chunks) {
            lines.push(chunk.as_bytes(), now, &mut keep).unwrap();
        }
        lines.rest(&mut keep).unwrap();
        all
    }

    #[test]
    fn a_line_has_the_time_of_its_first_byte() {
        let all = split(&["a", "b\nc", "\n\nrest"]);
        let expected = [
            ("ab", 1, false),
            ("c", 2, false),
            ("", 3, false),
            ("rest", 3, true),
        ];
        assert_eq!(
            all,
            expected.map(|(text, at, part)| (text.to_owned(), at, part))
        );
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let long = "x".repeat(MAX_LINE + 5);
        let all = split(&[&long[..MAX_LINE], &long[MAX_LINE..], "\n"]);
        let lengths: Vec<_> = all.iter().map(|(text, ..)| text.len()).collect();
        assert_eq!(lengths, [MAX_LINE, 5]);
        assert_eq!(
            all.iter().map(|line| line.2).collect::<Vec<_>>(),
            [true, false]
        );
    }

    #[test]
    fn no_character_is_cut() {
        let bytes = format!("x{}", "\u{20ac}".repeat(MAX_LINE)).into_bytes();
        let mut all = String::new();
        let mut lines = Lines::default();
        let mut keep = |piece: Piece| {
            all += std::str::from_utf8(piece.bytes).unwrap();
            Ok(())
        };
        for part in bytes.chunks(MAX_LINE) {
            lines.push(part, 1, &mut keep).unwrap();
        }
        lines.rest(&mut keep).unwrap();
        assert_eq!(all.as_bytes(), bytes);
    }
}
