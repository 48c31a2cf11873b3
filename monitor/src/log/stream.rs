// SPDX-License-Identifier: MIT OR Apache-2.0
//! A pipe, terminal or socket with a reader: writes without blocking. A reader that stops must not
//! block the monitor or its handling of signals.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IsTerminal};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that polls as writable accepts this much without blocking: a pipe has a page, a
/// terminal and a socket have more. The descriptor is shared with other processes, so it cannot be
/// made non-blocking.
const CHUNK: usize = 4096;
/// Bytes by which a slow reader may lag before lines are lost; several thousand lines.
const MAX_BEHIND: usize = 1 << 20;

#[derive(Debug)]
pub struct Stream {
    fd: AsyncFd<OwnedFd>,
    behind: VecDeque<u8>,
    lost: u64,
}

impl Stream {
    /// Registers the descriptor with the runtime.
    ///
    /// # Errors
    /// EPERM: a file, which epoll does not support.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let interest = Interest::WRITABLE | Interest::ERROR;
        // SAFETY: an owned descriptor is open and the same until it is dropped.
        let fd = unsafe { AsyncFd::register_with_interest(fd, interest) }?;
        Ok(Self {
            fd,
            behind: VecDeque::new(),
            lost: 0,
        })
    }

    /// Writes as much as the reader accepts now; [`Stream::progress`] writes the rest.
    ///
    /// # Errors
    /// BrokenPipe: there is no reader any more.
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        if self.behind.len() + text.len() > MAX_BEHIND {
            self.lost += 1;
            return Ok(());
        }
        self.last(text)
    }

    /// Does the same with the last line of all, which is not lost.
    ///
    /// # Errors
    /// As [`Stream::line`].
    pub fn last(&mut self, text: &str) -> io::Result<()> {
        self.behind.extend(text.as_bytes());
        self.push(Duration::ZERO).map(drop)
    }

    /// Returns whether the reader is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.fd.get_ref().is_terminal()
    }

    /// Returns the number of lines that were never written.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Waits until more has been written, or a write fails. Without data to write it still detects
    /// that the reader is gone. Cancel safe.
    ///
    /// # Errors
    /// As [`Stream::line`].
    pub async fn progress(&mut self) -> io::Result<()> {
        let idle = self.behind.is_empty();
        let interest = if idle {
            Interest::ERROR
        } else {
            Interest::WRITABLE | Interest::ERROR
        };
        let mut guard = self.fd.ready(interest).await?;
        if guard.ready().is_error() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if !poll_writable(self.fd.get_ref(), Duration::ZERO)? {
            guard.clear_ready();
            return Ok(());
        }
        drop(guard);
        self.push(Duration::ZERO).map(drop)
    }

    /// Writes the rest for up to `patience`. Returns the number of bytes that were not written.
    ///
    /// # Errors
    /// As [`Stream::line`].
    pub fn finish(&mut self, patience: Duration) -> io::Result<usize> {
        self.push(patience)
    }

    fn push(&mut self, patience: Duration) -> io::Result<usize> {
        let give_up = Instant::now() + patience;
        while !self.behind.is_empty() {
            let left = give_up.saturating_duration_since(Instant::now());
            if !poll_writable(self.fd.get_ref(), left)? {
                break;
            }
            let (front, _) = self.behind.as_slices();
            let chunk = &front[..front.len().min(CHUNK)];
            match write(self.fd.get_ref(), chunk) {
                Ok(written) => drop(self.behind.drain(..written)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.behind.len())
    }
}

fn poll_writable(fd: &OwnedFd, patience: Duration) -> io::Result<bool> {
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    let mut fds = [PollFd::new(fd, PollFlags::OUT)];
    match poll(&mut fds, Some(&patience)) {
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
        // After an error or a hang-up the write returns the reason.
        Ok(ready) => Ok(ready > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{ioctl_fionread, read};
    use rustix::pipe::{fcntl_setpipe_size, pipe};
    use std::thread;

    #[tokio::test]
    async fn a_line_is_readable_as_soon_as_it_is_written() {
        let (reader, writer) = pipe().unwrap();
        let mut stream = Stream::new(writer).unwrap();
        stream.line("{}\n").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(read(&reader, &mut buffer).unwrap(), 3);
    }

    #[tokio::test]
    async fn a_reader_that_stands_still_gets_everything_later() {
        let (reader, writer) = pipe().unwrap();
        fcntl_setpipe_size(&writer, 4096).unwrap();
        let mut stream = Stream::new(writer).unwrap();
        let lines: Vec<String> = (0..2000).map(|n| format!("{n:0100}\n")).collect();
        for line in &lines {
            stream.line(line).unwrap();
        }
        let reading = thread::spawn(move || {
            let mut all = Vec::new();
            let mut buffer = [0; 512];
            while let n @ 1.. = read(&reader, &mut buffer).unwrap() {
                all.extend_from_slice(&buffer[..n]);
            }
            String::from_utf8(all).unwrap()
        });
        while !stream.behind.is_empty() {
            stream.progress().await.unwrap();
        }
        assert_eq!(stream.lost(), 0);
        drop(stream);
        assert_eq!(reading.join().unwrap(), lines.concat());
    }

    #[tokio::test]
    async fn whole_lines_are_lost_and_counted_when_too_many_wait() {
        let (reader, writer) = pipe().unwrap();
        fcntl_setpipe_size(&writer, 4096).unwrap();
        let mut stream = Stream::new(writer).unwrap();
        let line = "x".repeat(1023) + "\n";
        let lines = MAX_BEHIND / 1024 + 10;
        for _ in 0..lines {
            stream.line(&line).unwrap();
        }
        let behind = stream.finish(Duration::ZERO).unwrap();
        assert_eq!(behind, MAX_BEHIND);
        let piped = ioctl_fionread(&reader).unwrap();
        assert!((5..10).contains(&stream.lost()), "{}", stream.lost());
        let all = stream.lost() * 1024 + behind as u64 + piped;
        assert_eq!(all, lines as u64 * 1024);
        stream.last("end\n").unwrap();
        assert_eq!(stream.finish(Duration::ZERO).unwrap(), MAX_BEHIND + 4);
    }

    #[tokio::test]
    async fn a_reader_that_goes_is_noticed_without_a_line() {
        let (reader, writer) = pipe().unwrap();
        let mut stream = Stream::new(writer).unwrap();
        drop(reader);
        let error = stream.progress().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let error = stream.line("x\n").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
}
