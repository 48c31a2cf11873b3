// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tells the running monitors of the holder's failures.
//!
//! A monitor listens on a stream socket /run/emud/root/monitor*.sock, to which only
//! root can connect; each failure is one line of JSON. Nobody is waited for: a monitor that does not take the line
//! at once does not get it. Sockets are looked for only when there is something
//! to tell, so a holder in time costs a monitor, and costs without one, nothing.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde_json::json;

use super::failure::{Failure, Kind};
use crate::abi;

/// Where monitors listen.
pub const MONITORS: &str = crate::host::runtime::ROOT_FOLDER;

/// The link of the failing frames, as its user knows it.
#[derive(Debug, Clone)]
pub struct Link {
    pub name: String,
    pub ifindex: u32,
    /// Inode number of its network namespace.
    pub netns: u64,
}

/// One line: value and threshold are ns for late frames, packets for dropped ones.
pub fn line(link: &Link, failure: &Failure) -> String {
    let (kind, value, threshold) = match failure.kind {
        Kind::Late => ("late", failure.worst_late_ns, u64::from(abi::EMUD_LATE_NS)),
        Kind::Dropped => ("dropped", failure.frames, 1),
    };
    let line = json!({
        "type": "emulator",
        "failure": kind,
        "name": link.name,
        "ifindex": link.ifindex,
        "netns": link.netns,
        "value": value,
        "threshold": threshold,
        "since_mono_ns": failure.since_ns,
        "mono_ns": failure.seen_ns,
        "count": failure.frames,
    });
    format!("{line}\n")
}

/// The line for a link that somebody else has changed or taken apart; `what` has a sentence each.
pub fn tampered_line(link: &Link, what: &[String], now_ns: u64) -> String {
    let line = json!({
        "type": "emulator",
        "failure": "tampered",
        "what": what.join("; "),
        "name": link.name,
        "ifindex": link.ifindex,
        "netns": link.netns,
        "value": what.len(),
        "threshold": 1,
        "since_mono_ns": now_ns,
        "mono_ns": now_ns,
    });
    format!("{line}\n")
}

/// Sends a line to the monitors whose sockets are in `folder`.
pub fn send_all(folder: &Path, line: &str) {
    for monitor in monitors(folder) {
        // One that has died leaves its socket behind, which refuses.
        let _ = send(&monitor, line);
    }
}

/// Passes failures on to the monitors whose sockets are in `folder`, until
/// nobody can send any more.
pub fn pass_on(failures: &Receiver<Failure>, folder: &Path, link: impl Fn() -> Option<Link>) {
    while let Ok(first) = failures.recv() {
        // A device that is gone has no name to tell.
        let Some(link) = link() else { continue };
        let batch = std::iter::once(first).chain(failures.try_iter());
        let lines: String = batch.map(|failure| line(&link, &failure)).collect();
        send_all(folder, &lines);
    }
}

fn monitors(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let is_monitor = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("monitor") && name.ends_with(".sock")
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_monitor)
        .collect()
}

/// All of the lines, without waiting.
fn send(monitor: &Path, lines: &str) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(monitor)?)?;
    UnixStream::from(socket).write_all(lines.as_bytes())
}
