// SPDX-License-Identifier: MIT OR Apache-2.0
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;

use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{NetlinkError, Result};

/// Identity of a network namespace: device and inode of its nsfs file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetnsId {
    pub dev: u64,
    pub inode: u64,
}

fn path_of(spec: &str) -> PathBuf {
    if spec.contains('/') {
        spec.into()
    } else if spec.bytes().all(|b| b.is_ascii_digit()) {
        format!("/proc/{spec}/ns/net").into()
    } else {
        format!("/run/netns/{spec}").into()
    }
}

/// Moves the calling thread into a network namespace: a name created by `ip netns add`, a process
/// id (all digits), or a path. Called before any other thread starts, it applies to the whole
/// process.
///
/// # Errors
/// [`NetlinkError::NoNamespace`] if there is none, or the error of the kernel.
pub fn enter(spec: &str) -> Result<()> {
    if spec.is_empty() || spec == "." || spec == ".." {
        return Err(NetlinkError::NoNamespace(format!("{spec:?}")));
    }
    let path = path_of(spec);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(NetlinkError::NoNamespace(format!(
                "{spec} ({})",
                path.display()
            )));
        }
        Err(e) => return Err(NetlinkError::io(format!("open {}", path.display()), &e)),
    };
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|e| match e {
        // A file that is not a namespace.
        Errno::INVAL => NetlinkError::NoNamespace(format!("{spec} ({})", path.display())),
        e => NetlinkError::io(format!("enter network namespace {spec}"), &e.into()),
    })
}

/// Runs `work` in the network namespace with this inode number, in a separate thread. Returns
/// `None` if no process and no name of this mount namespace refers to it.
pub fn within<T: Send>(inode: u64, work: impl FnOnce() -> T + Send) -> Option<T> {
    let file = find(inode)?;
    let inside = || {
        let entered = move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network));
        entered.is_ok().then(work)
    };
    thread::scope(|scope| scope.spawn(inside).join().ok().flatten())
}

/// Opens a network namespace: the one of this thread, one with a name, or one of a process.
fn find(inode: u64) -> Option<File> {
    let list = |folder: &str| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let own = std::iter::once(PathBuf::from("/proc/thread-self/ns/net"));
    let named = list("/run/netns").map(|entry| entry.path());
    let process = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
    };
    let of_processes = list("/proc")
        .filter(process)
        .map(|entry| entry.path().join("ns/net"));
    let mut all = own.chain(named).chain(of_processes);
    let path = all.find(|path| std::fs::metadata(path).is_ok_and(|meta| meta.ino() == inode))?;
    let file = File::open(path).ok()?;
    // The process may have ended in between.
    (file.metadata().ok()?.ino() == inode).then_some(file)
}

/// Returns the network namespace of the calling thread.
pub fn identity() -> Result<NetnsId> {
    let path = "/proc/thread-self/ns/net";
    let meta = std::fs::metadata(path).map_err(|e| NetlinkError::io(format!("read {path}"), &e))?;
    Ok(NetnsId {
        dev: meta.dev(),
        inode: meta.ino(),
    })
}
