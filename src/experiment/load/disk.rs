// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads or writes of a file past the page cache.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::{DiskLoaded, LoadError, failed, sleep_until};
use crate::host::now_ns;

/// Alignment that every disk accepts, bytes.
const ALIGN: usize = 4096;

/// Read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operation {
    Read,
    Write,
}

/// Which file, and how.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The file is made there, without a name, so that it ends with the process.
    pub folder: PathBuf,
    /// Whether to read or to write.
    pub operation: Operation,
    /// Size of the file, bytes; at its end the position returns to its start.
    pub size: u64,
    /// Size of an operation, bytes: a multiple of 4096.
    pub block: u64,
    /// Highest rate, bit/s; `None`: as fast as possible.
    pub rate: Option<u64>,
}

impl Disk {
    /// Reads or writes until `stop` is set.
    ///
    /// # Errors
    /// The block does not fit, there is not enough space, the file system has no direct I/O, or an
    /// operation fails.
    pub fn run(&self, stop: &AtomicBool) -> Result<DiskLoaded, LoadError> {
        let block = usize::try_from(self.block).unwrap_or(usize::MAX);
        if !block.is_multiple_of(ALIGN) || self.block > self.size {
            let message = format!(
                "a block of {} bytes: use a multiple of {ALIGN} bytes up to the size of the file, {} bytes",
                self.block, self.size
            );
            return Err(LoadError::Usage(message));
        }
        let file = self.file()?;
        let mut room = vec![0x5a; block + ALIGN];
        let at = room.as_ptr().align_offset(ALIGN);
        let data = &mut room[at..at + block];
        let blocks = self.size / self.block;
        let at = |n: u64| n % blocks * self.block;
        let failed_at = |error| failed(self.folder.display().to_string())(error);
        if self.operation == Operation::Read {
            for n in (0..blocks).take_while(|_| !stop.load(Ordering::Relaxed)) {
                file.write_all_at(data, at(n)).map_err(failed_at)?;
            }
        }
        let begin = now_ns();
        let (mut operations, mut longest_ns) = (0, 0);
        let mut now = begin;
        while !stop.load(Ordering::Relaxed) {
            if let Some(rate) = self.rate {
                let bits = u128::from(operations) * u128::from(self.block) * 8_000_000_000;
                let due = u64::try_from(bits / u128::from(rate)).unwrap_or(u64::MAX);
                sleep_until(begin.saturating_add(due), stop);
                now = now_ns();
            }
            match self.operation {
                Operation::Read => file.read_exact_at(data, at(operations)),
                Operation::Write => file.write_all_at(data, at(operations)),
            }
            .map_err(failed_at)?;
            let end = now_ns();
            longest_ns = longest_ns.max(end - now);
            now = end;
            operations += 1;
        }
        Ok(DiskLoaded {
            operation: self.operation,
            operations,
            bytes: operations * self.block,
            longest_ns,
            duration_ns: now_ns() - begin,
        })
    }

    /// Makes the file; its name is removed at once.
    fn file(&self) -> Result<File, LoadError> {
        let folder = self.folder.display();
        let no_disk = || {
            LoadError::File(format!(
                "{folder}: its file system is in memory or has no direct I/O, so no disk would be \
                 loaded: use a folder on a disk"
            ))
        };
        let path = unused(&self.folder)?;
        let mut open = OpenOptions::new();
        open.read(true).write(true).create_new(true).mode(0o600);
        let file = open.custom_flags(libc::O_DIRECT).open(&path);
        // The kernel makes the file before it finds that direct I/O is missing.
        let removed = fs::remove_file(&path);
        let file = file.map_err(|e| match e.kind() {
            ErrorKind::InvalidInput => no_disk(),
            _ => LoadError::File(format!("{folder}: {e}")),
        })?;
        removed.map_err(failed(folder.to_string()))?;
        let system = fstatfs(&file).map_err(|e| failed(folder.to_string())(e.into()))?;
        if system.f_type == libc::TMPFS_MAGIC {
            return Err(no_disk());
        }
        match fallocate(&file, FallocateFlags::empty(), 0, self.size) {
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(file),
            Err(Errno::NOSPC | Errno::FBIG) => Err(LoadError::File(format!(
                "{folder}: no space for a file of {} bytes",
                self.size
            ))),
            Err(e) => Err(failed(folder.to_string())(e.into())),
        }
    }
}

/// Returns a path in the folder that nothing has.
fn unused(folder: &Path) -> Result<PathBuf, LoadError> {
    let random = crate::host::random::<8>().map_err(failed("random numbers"))?;
    Ok(folder.join(format!(".emud-load-{:016x}", u64::from_ne_bytes(random))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::load::tests::for_a_while;

    /// A folder beside the test, so on a disk; deleted with the value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("{name}-{}", std::process::id());
            let path = std::env::current_exe().unwrap().with_file_name(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn files(&self) -> usize {
            fs::read_dir(&self.0).unwrap().count()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn load(folder: &Path, operation: Operation) -> Disk {
        Disk {
            folder: folder.into(),
            operation,
            size: 1 << 20,
            block: 64 << 10,
            rate: Some(8 * (64 << 10) * 50),
        }
    }

    /// At most 50 operations a second, and no file remains.
    #[test]
    fn reads_and_writes_at_a_rate() {
        let folder = Folder::new("load-disk");
        for operation in [Operation::Read, Operation::Write] {
            let load = load(&folder.0, operation);
            let loaded = for_a_while(300, |stop| load.run(stop)).unwrap();
            let most = loaded.duration_ns / 20_000_000 + 2;
            assert!((1..=most).contains(&loaded.operations), "{loaded:?}");
            assert_eq!(loaded.bytes, loaded.operations << 16);
            assert!(loaded.longest_ns > 0 && loaded.duration_ns >= loaded.longest_ns);
            assert_eq!(folder.files(), 0);
        }
    }

    #[test]
    fn what_cannot_be_is_said() {
        let folder = Folder::new("load-rejected");
        let stop = AtomicBool::new(true);
        let good = load(&folder.0, Operation::Write);
        let odd = Disk {
            block: 1000,
            ..good.clone()
        };
        assert_eq!(odd.run(&stop).unwrap_err().exit_code(), 64);
        let large = Disk {
            size: 1 << 50,
            ..good.clone()
        };
        let error = large.run(&stop).unwrap_err();
        assert_eq!(error.exit_code(), 73, "{error}");
        let shm = Disk {
            folder: "/dev/shm".into(),
            ..good.clone()
        };
        let error = shm.run(&stop).unwrap_err().to_string();
        assert!(error.contains("in memory"), "{error}");
        let nowhere = Disk {
            folder: "/nowhere".into(),
            ..good
        };
        assert_eq!(nowhere.run(&stop).unwrap_err().exit_code(), 73);
        assert_eq!(folder.files(), 0);
    }
}
