// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file, written by a separate thread: the disk may be contended, and a slow write must not block
//! the monitor.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of lines that wait for the disk.
const QUEUE: usize = 4096;
/// Longest delay until a request to reopen the file is served.
const LOOK: Duration = Duration::from_millis(200);

/// Set if the file was moved away: its name must be opened again.
pub type Moved = Arc<AtomicBool>;

/// The log file and its thread.
#[derive(Debug)]
pub struct FileLog {
    lines: Option<SyncSender<String>>,
    done: Receiver<io::Result<()>>,
    /// The last line of all, until there is room for it.
    last: Option<String>,
    lost: u64,
}

impl FileLog {
    /// Starts the thread for an open file.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn new(file: File) -> io::Result<Self> {
        Self::start(
            file,
            || Err(ErrorKind::Unsupported.into()),
            Moved::default(),
        )
    }

    /// Writes to the file that `open` returns, and calls it again when `moved` is set. Opened with
    /// O_APPEND, writes of other processes, or a truncated file, leave no gap.
    ///
    /// # Errors
    /// The file cannot be opened, or the thread cannot be started.
    pub fn append<O>(open: O, moved: Moved) -> io::Result<Self>
    where
        O: Fn() -> io::Result<File> + Send + 'static,
    {
        Self::start(open()?, open, moved)
    }

    fn start<O>(file: File, open: O, moved: Moved) -> io::Result<Self>
    where
        O: Fn() -> io::Result<File> + Send + 'static,
    {
        let (lines, queue) = sync_channel(QUEUE);
        let (tell, done) = sync_channel(1);
        thread::Builder::new()
            .name("emud-log".into())
            .spawn(move || {
                // The receiver waits in finish(), or has given up.
                let _ = tell.send(write_all(file, &queue, open, &moved));
            })?;
        Ok(Self {
            lines: Some(lines),
            done,
            last: None,
            lost: 0,
        })
    }

    /// Passes a line to the thread. The line is lost, and counted, if too many are waiting.
    pub fn line(&mut self, text: &str) {
        let sent = self.lines.as_ref().map(|lines| lines.try_send(text.into()));
        if let Some(Err(TrySendError::Full(_) | TrySendError::Disconnected(_))) = sent {
            self.lost += 1;
        }
    }

    /// Passes the last line of all: [`FileLog::finish`] waits for room for it.
    pub fn last(&mut self, text: &str) {
        self.last = Some(text.to_owned());
    }

    /// Returns the number of lines that were never written.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Waits up to `patience` until every line is written.
    ///
    /// # Errors
    /// The first error of the file; TimedOut.
    pub fn finish(&mut self, patience: Duration) -> io::Result<()> {
        let give_up = Instant::now() + patience;
        while let (Some(lines), Some(last)) = (&self.lines, self.last.take()) {
            if let Err(TrySendError::Full(last)) = lines.try_send(last) {
                if Instant::now() >= give_up {
                    return Err(ErrorKind::TimedOut.into());
                }
                self.last = Some(last);
                thread::sleep(Duration::from_millis(5));
            }
        }
        self.lines = None;
        let left = give_up.saturating_duration_since(Instant::now());
        match self.done.recv_timeout(left) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(ErrorKind::TimedOut.into()),
            Err(RecvTimeoutError::Disconnected) => Err(ErrorKind::BrokenPipe.into()),
        }
    }
}

fn write_all(
    mut file: File,
    lines: &Receiver<String>,
    open: impl Fn() -> io::Result<File>,
    moved: &Moved,
) -> io::Result<()> {
    loop {
        let line = lines.recv_timeout(LOOK);
        if moved.swap(false, Ordering::Relaxed) {
            // If the new file cannot be opened, the old one gets the lines.
            file = open().unwrap_or(file);
        }
        match line {
            Ok(line) => file.write_all(line.as_bytes())?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_said_at_the_end() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut log = FileLog::new(full).unwrap();
        log.line("{}\n");
        let error = log.finish(Duration::from_secs(5)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn a_file_that_was_moved_away_is_opened_again() {
        let path = std::env::temp_dir().join(format!("emud-moved-log-{}", std::process::id()));
        let old = path.with_extension("1");
        std::fs::write(&path, "before\n").unwrap();
        let moved = Moved::default();
        let at = path.clone();
        let open = move || File::options().append(true).create(true).open(&at);
        let mut log = FileLog::append(open, moved.clone()).unwrap();
        log.line("one\n");
        while std::fs::read_to_string(&path).unwrap() != "before\none\n" {
            thread::yield_now();
        }
        std::fs::rename(&path, &old).unwrap();
        moved.store(true, Ordering::Relaxed);
        log.line("two\n");
        log.finish(Duration::from_secs(5)).unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "before\none\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
        let _ = [path, old].map(std::fs::remove_file);
    }

    /// The disk stands still while more lines come than can wait.
    #[test]
    fn the_last_line_is_not_lost() {
        let path = std::env::temp_dir().join(format!("emud-slow-log-{}", std::process::id()));
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        let at = path.clone();
        let (go, wait) = sync_channel::<()>(1);
        let reader = thread::spawn(move || {
            let mut slow = File::open(&at).unwrap();
            wait.recv().unwrap();
            thread::sleep(Duration::from_millis(100));
            std::io::read_to_string(&mut slow).unwrap()
        });
        let mut log = FileLog::new(File::options().write(true).open(&path).unwrap()).unwrap();
        let line = "x".repeat(99) + "\n";
        (0..2 * QUEUE).for_each(|_| log.line(&line));
        assert!(log.lost() > 0);
        log.last("end\n");
        go.send(()).unwrap();
        log.finish(Duration::from_secs(60)).unwrap();
        drop(log);
        assert!(reader.join().unwrap().ends_with("\nend\n"));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn all_lines_are_there_at_the_end() {
        let path = std::env::temp_dir().join(format!("emud-file-log-{}", std::process::id()));
        let mut log = FileLog::new(File::create(&path).unwrap()).unwrap();
        let lines: Vec<String> = (0..1000).map(|n| format!("{n}\n")).collect();
        lines.iter().for_each(|line| log.line(line));
        log.finish(Duration::from_secs(5)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), lines.concat());
        std::fs::remove_file(path).unwrap();
    }
}
