// SPDX-License-Identifier: MIT OR Apache-2.0
//! The destinations of lines: the standard output, and a file beside it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::stream::Stream;
use super::text::Text;
use super::{Clock, FileLog, Line, SortedLog};

/// The format of lines on the standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines of JSON.
    Json,
    /// Lines for people.
    Text,
}

/// One destination.
#[derive(Debug)]
pub enum Outlet {
    /// A pipe, terminal or socket.
    Stream(Stream),
    /// A file.
    File(FileLog),
    /// The log of an experiment, to which other threads write, too.
    Sorted(SortedLog),
}

/// The log of a run.
#[derive(Debug)]
pub struct Log {
    clock: Clock,
    text: Option<Text>,
    /// Whether the verdict of a contended resource is red.
    colour: bool,
    out: Outlet,
    beside: Option<FileLog>,
}

impl Outlet {
    /// Detects the kind of a descriptor: a thread writes to a file.
    ///
    /// # Errors
    /// The descriptor cannot be polled.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let copy = fd.try_clone()?;
        match Stream::new(fd) {
            Ok(stream) => Ok(Self::Stream(stream)),
            // epoll does not support files.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                Ok(Self::File(FileLog::new(File::from(copy))?))
            }
            Err(e) => Err(e),
        }
    }

    /// Writes a line; `text` is its text in the format of the output.
    fn line(&mut self, line: &Line, text: &str) -> io::Result<()> {
        match self {
            Self::Stream(stream) if is_last(line) => return stream.last(text),
            Self::Stream(stream) => return stream.line(text),
            Self::File(file) => to_file(file, line, text),
            Self::Sorted(log) => log.sender().text(line, text.to_owned()),
        }
        Ok(())
    }

    fn lost(&self) -> u64 {
        match self {
            Self::Stream(stream) => stream.lost(),
            Self::File(file) => file.lost(),
            Self::Sorted(log) => log.sender().lost(),
        }
    }
}

fn is_last(line: &Line) -> bool {
    matches!(line, Line::End(_))
}

fn to_file(file: &mut FileLog, line: &Line, text: &str) {
    match is_last(line) {
        true => file.last(text),
        false => file.line(text),
    }
}

impl Log {
    /// Creates a log. `out` gets the lines in `format`, `beside` gets them as JSON.
    pub fn new(clock: Clock, format: Format, out: Outlet, beside: Option<FileLog>) -> Self {
        let text = (format == Format::Text).then(Text::default);
        let terminal = matches!(&out, Outlet::Stream(stream) if stream.is_terminal());
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            clock,
            text,
            colour: terminal && !plain,
            out,
            beside,
        }
    }

    /// Returns the clock offsets of the log.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Writes a line without waiting for a slow reader, and returns it as JSON.
    ///
    /// # Errors
    /// BrokenPipe: the output has no reader any more. Others: the write failed.
    pub fn write(&mut self, line: &Line) -> io::Result<String> {
        let json = line.json(&self.clock)?;
        // The file also gets the line whose write found the output closed.
        if let Some(beside) = &mut self.beside {
            to_file(beside, line, &json);
        }
        match &mut self.text {
            Some(text) if self.colour => {
                let red = "\x1b[1;31mCONTENDED\x1b[0m";
                let text = text.render(line, &self.clock).replace("CONTENDED", red);
                self.out.line(line, &text)?;
            }
            Some(text) => self.out.line(line, &text.render(line, &self.clock))?,
            None => self.out.line(line, &json)?,
        }
        Ok(json)
    }

    /// Writes lines that a slow reader has not accepted yet. Never returns if there are none.
    /// Cancel safe.
    ///
    /// # Errors
    /// As [`Log::write`], also without a line to write.
    pub async fn progress(&mut self) -> io::Result<()> {
        match &mut self.out {
            Outlet::Stream(stream) => stream.progress().await,
            Outlet::File(_) | Outlet::Sorted(_) => std::future::pending().await,
        }
    }

    /// Returns the number of lines that were never written, of both destinations.
    pub fn lost(&self) -> u64 {
        self.out.lost() + self.beside.as_ref().map_or(0, FileLog::lost)
    }

    /// Writes the rest, for up to `patience` per destination.
    ///
    /// # Errors
    /// The errors of the output and of the file beside it.
    pub fn finish(&mut self, patience: Duration) -> [io::Result<()>; 2] {
        let out = match &mut self.out {
            Outlet::Stream(stream) => match stream.finish(patience) {
                Ok(0) => Ok(()),
                Ok(_) => Err(io::ErrorKind::TimedOut.into()),
                Err(e) => Err(e),
            },
            Outlet::File(file) => file.finish(patience),
            Outlet::Sorted(log) => log.finish(patience),
        };
        let beside = self.beside.as_mut();
        [out, beside.map_or(Ok(()), |file| file.finish(patience))]
    }
}
