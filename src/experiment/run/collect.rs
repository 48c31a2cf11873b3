// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process that copies a node's files into its folder. It runs in the node, with the rights of
//! the node's programs: paths and `/proc` are those of the node, and files that the programs cannot
//! read are not kept. The folder is an open descriptor, independent of mounts over it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom, fstatvfs, openat, seek, statat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Space that stays free: one part in this many of the disk, up to this many bytes.
const SPARED: u64 = 20;
const MOST_SPARED: u64 = 1 << 30;
const CHUNK: usize = 256 * 1024;

/// The result for a file: a line of JSON on the standard output of the process.
#[derive(Debug, Serialize, Deserialize)]
pub struct Collected {
    /// Path of the file, or the pattern without a match.
    pub path: String,
    /// Path relative to the folder; `None`: it was not kept.
    pub stored: Option<String>,
    /// Length of the file.
    pub bytes: u64,
    pub error: Option<String>,
}

impl Collected {
    pub fn failed(path: &str, why: &str) -> Self {
        Self {
            path: path.to_owned(),
            stored: None,
            bytes: 0,
            error: Some(why.to_owned()),
        }
    }
}

/// Copies the files that match `patterns` into the folder in standard input, whose path outside the
/// node is `folder`.
///
/// # Errors
/// Standard output cannot be written.
pub fn collect(folder: &Path, patterns: &[String]) -> io::Result<()> {
    let stdin = io::stdin();
    let mut out = io::stdout().lock();
    for pattern in patterns {
        let collected = match matches(pattern) {
            Ok(paths) if paths.is_empty() => vec![Collected::failed(pattern, "no file matches")],
            Ok(paths) => (paths.iter())
                .map(|path| one(stdin.as_fd(), folder, path))
                .collect(),
            Err(e) => vec![Collected::failed(pattern, &e.to_string())],
        };
        for one in collected {
            serde_json::to_writer(&mut out, &one)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// Returns the files that match a pattern, as in the shell of the node's commands.
fn matches(pattern: &str) -> io::Result<Vec<PathBuf>> {
    let mut command = Command::new("sh");
    // Without quotes the shell expands patterns, and splits them.
    command.args([
        "-c",
        "IFS=; for f in $1; do [ -f \"$f\" ] && printf '%s\\0' \"$f\"; done; :",
        "sh",
        pattern,
    ]);
    let out = command.stdin(Stdio::null()).output()?.stdout;
    let names = out.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| OsStr::from_bytes(name).into()).collect())
}

fn one(to: BorrowedFd<'_>, folder: &Path, path: &Path) -> Collected {
    let shown = path.display().to_string();
    match store(to, folder, path) {
        Ok((stored, bytes)) => Collected {
            path: shown,
            // A name that is not UTF-8 is kept, and shown as the path is.
            stored: Some(stored.display().to_string()),
            bytes,
            error: None,
        },
        Err(e) => Collected::failed(&shown, &e.to_string()),
    }
}

fn store(to: BorrowedFd<'_>, folder: &Path, path: &Path) -> io::Result<(PathBuf, u64)> {
    // Without NONBLOCK, opening would block on a FIFO that has replaced the file since.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let from = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let file = from.metadata()?;
    if !file.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if let Some(within) = within(to, folder, path, &file) {
        return Ok((within, file.len()));
    }
    let mut room = Room::of(to)?;
    room.take(file.blocks() * 512)?;
    let (name, copy) = create(to, path)?;
    let copied = copy_sparse(&from, &copy, file.len(), &mut Room::of(to)?);
    match copied {
        Ok(bytes) => Ok((name, bytes)),
        Err(e) => {
            unlinkat(to, &name, AtFlags::empty())?;
            Err(e)
        }
    }
}

/// Returns its path in the folder, if the file is already there.
fn within(to: BorrowedFd<'_>, folder: &Path, path: &Path, file: &fs::Metadata) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    let within = path.strip_prefix(folder).ok()?;
    let there = statat(to, within, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (there.st_dev == file.dev() && there.st_ino == file.ino()).then(|| within.to_owned())
}

/// Creates a file with the same name, or with a number after it if the name is in use.
fn create(to: BorrowedFd<'_>, path: &Path) -> io::Result<(PathBuf, File)> {
    let own = path.file_name().unwrap_or(path.as_os_str());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    for n in 0_u32.. {
        let mut name = own.to_os_string();
        if n > 0 {
            name.push(format!(".{n}"));
        }
        match openat(to, &name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((name.into(), file.into())),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Number of bytes that the disk of the folder can accept.
struct Room {
    left: u64,
    all: u64,
}

impl Room {
    fn of(folder: BorrowedFd<'_>) -> io::Result<Self> {
        let disk = fstatvfs(folder)?;
        Ok(Self::within(
            disk.f_blocks * disk.f_frsize,
            disk.f_bavail * disk.f_frsize,
        ))
    }

    fn within(disk: u64, free: u64) -> Self {
        let spared = (disk / SPARED).min(MOST_SPARED);
        let left = free.saturating_sub(spared);
        Self { left, all: left }
    }

    fn take(&mut self, bytes: u64) -> io::Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(io::Error::other(format!(
                "larger than the {} MB that the disk of the folder can take (some of it stays free)",
                self.all / 1_000_000
            ))),
        }
    }
}

/// Copies the data, and keeps holes. Returns the length of the copy.
fn copy_sparse(from: &File, to: &File, mut len: u64, room: &mut Room) -> io::Result<u64> {
    let mut at = 0;
    // Files of /proc have length 0 whatever their content.
    while at < len {
        let (data, hole) = match seek(from, SeekFrom::Data(at)) {
            Ok(data) => (data, seek(from, SeekFrom::Hole(data))?),
            // The rest is a hole.
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => (at, len),
            Err(e) => return Err(e.into()),
        };
        let end = copy_range(from, to, data, hole.min(len), room)?;
        if end < hole.min(len) {
            // Files of /sys have a page as their length, and one may have been cut meanwhile.
            len = end;
            break;
        }
        at = hole;
    }
    if len == 0 {
        return copy_all(from, to, room);
    }
    to.set_len(len)?;
    Ok(len)
}

/// Returns how far there was data.
fn copy_range(from: &File, to: &File, since: u64, until: u64, room: &mut Room) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK];
    let mut at = since;
    while at < until {
        let most = buffer
            .len()
            .min(usize::try_from(until - at).unwrap_or(CHUNK));
        let read = from.read_at(&mut buffer[..most], at)?;
        if read == 0 {
            break;
        }
        room.take(read as u64)?;
        to.write_all_at(&buffer[..read], at)?;
        at += read as u64;
    }
    Ok(at)
}

fn copy_all(mut from: &File, mut to: &File, room: &mut Room) -> io::Result<u64> {
    let mut buffer = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(bytes),
            read => {
                room.take(read as u64)?;
                to.write_all(&buffer[..read])?;
                bytes += read as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_shorter_than_its_length() {
        let from = File::open("/sys/class/net/lo/mtu").unwrap();
        let memfd = rustix::fs::memfd_create("copy", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let to = File::from(memfd);
        let mut room = Room {
            left: 1 << 20,
            all: 1 << 20,
        };
        let text = fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
        let len = from.metadata().unwrap().len();
        assert_ne!(len, text.len() as u64);
        let bytes = copy_sparse(&from, &to, len, &mut room).unwrap();
        let copied = to.metadata().unwrap().len();
        assert_eq!([bytes, copied], [text.len() as u64; 2]);
    }

    #[test]
    fn a_twentieth_of_the_disk_stays_free_or_a_gibibyte() {
        const GB: u64 = 1_000_000_000;
        let left = |disk, free| Room::within(disk, free).left;
        assert_eq!(left(10 * GB, 2 * GB), 2 * GB - GB / 2);
        assert_eq!(left(10 * GB, GB / 2), 0);
        assert_eq!(left(10 * GB, GB / 4), 0);
        assert_eq!(left(100 * GB, 50 * GB), 50 * GB - (1 << 30));
    }

    #[test]
    fn a_hole_stays_a_hole() {
        let folder = std::env::temp_dir().join(format!("emud-collect-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let from = File::options();
        let from = from
            .clone()
            .read(true)
            .write(true)
            .create(true)
            .open(folder.join("from"));
        let from = from.unwrap();
        from.write_all_at(b"begin", 0).unwrap();
        from.write_all_at(b"end", 1 << 34).unwrap();
        let to = File::create(folder.join("to")).unwrap();
        let mut room = Room {
            left: 1 << 20,
            all: 1 << 20,
        };
        let len = from.metadata().unwrap().len();
        assert_eq!(
            copy_sparse(&from, &to, len, &mut room).unwrap(),
            (1 << 34) + 3
        );
        let copy = File::open(folder.join("to")).unwrap();
        let mut read = [0; 3];
        copy.read_exact_at(&mut read, 1 << 34).unwrap();
        assert_eq!(&read, b"end");
        assert!(copy.metadata().unwrap().blocks() * 512 < 1 << 20);
        // The disk has less space.
        let mut room = Room { left: 4, all: 4 };
        let refused = copy_sparse(&from, &to, len, &mut room).unwrap_err();
        assert!(refused.to_string().contains("larger than"), "{refused}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
