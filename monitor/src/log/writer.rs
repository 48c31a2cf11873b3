// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where lines go: the standard output, and a file beside it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::stream::Stream;
use super::text::Text;
use super::{Clock, FileLog, Line, SortedLog};

/// How lines look on the standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Text,
}

/// One destination.
#[derive(Debug)]
pub enum Outlet {
    Stream(Stream),
    File(FileLog),
    /// Of an experiment: others write to it, too.
    Sorted(SortedLog),
}

/// The log of a run.
#[derive(Debug)]
pub struct Log {
    clock: Clock,
    text: Option<Text>,
    out: Outlet,
    beside: Option<FileLog>,
}

impl Outlet {
    /// What is behind a descriptor: a file is written by a thread.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let copy = fd.try_clone()?;
        match Stream::new(fd) {
            Ok(stream) => Ok(Self::Stream(stream)),
            // epoll has no files.
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                Ok(Self::File(FileLog::new(File::from(copy))?))
            }
            Err(e) => Err(e),
        }
    }

    /// `text`: of the line.
    fn line(&mut self, line: &Line, text: &str) -> io::Result<()> {
        match self {
            Self::Stream(stream) => return stream.line(text),
            Self::File(file) => file.line(text),
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

impl Log {
    /// `out` gets the lines in `format`, `beside` as JSON.
    pub fn new(clock: Clock, format: Format, out: Outlet, beside: Option<FileLog>) -> Self {
        let text = (format == Format::Text).then(Text::default);
        Self {
            clock,
            text,
            out,
            beside,
        }
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Writes a line at once, and returns it as JSON. A reader that does not keep up is
    /// not waited for.
    ///
    /// # Errors
    /// BrokenPipe: nobody reads the output any more. Others: it cannot be written.
    pub fn write(&mut self, line: &Line) -> io::Result<String> {
        let json = line.json(&self.clock)?;
        // The file also has the line that found the output closed.
        if let Some(beside) = &mut self.beside {
            beside.line(&json);
        }
        match &mut self.text {
            Some(text) => self.out.line(line, &text.render(line, &self.clock))?,
            None => self.out.line(line, &json)?,
        }
        Ok(json)
    }

    /// Goes on with lines that a slow reader did not take yet; for ever, if there is
    /// nothing to do. Cancel safe.
    ///
    /// # Errors
    /// As [`Log::write`], also without any line to write.
    pub async fn progress(&mut self) -> io::Result<()> {
        match &mut self.out {
            Outlet::Stream(stream) => stream.progress().await,
            Outlet::File(_) | Outlet::Sorted(_) => std::future::pending().await,
        }
    }

    /// Lines that were never written, of both destinations.
    pub fn lost(&self) -> u64 {
        self.out.lost() + self.beside.as_ref().map_or(0, FileLog::lost)
    }

    /// Writes what is left, for at most `patience` per destination.
    ///
    /// # Errors
    /// What was not written: of the output, and of the file beside.
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
