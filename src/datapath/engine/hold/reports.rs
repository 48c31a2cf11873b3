// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports the holder's failures to the running monitors.
//!
//! A monitor listens on a stream socket /run/emud/root/monitor*.sock, to which only root can
//! connect; each failure is one line of JSON. Sending never blocks: a monitor that does not accept
//! the line immediately misses it. Sockets are searched only for a report, so a punctual holder has
//! no cost, with or without a monitor.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde_json::json;

use super::failure::{Failure, FailureKind};
use crate::abi;

/// Folder of the monitors' sockets.
pub const MONITORS: &str = crate::host::runtime::ROOT_FOLDER;

/// The link of the failed frames, as its user knows it.
#[derive(Debug, Clone)]
pub struct LinkName {
    /// Name of the interface.
    pub name: String,
    /// Index of the interface.
    pub ifindex: u32,
    /// Inode number of its network namespace.
    pub netns: u64,
}

/// Formats one line: value and threshold are ns for late frames, packets for dropped ones.
pub fn line(link: &LinkName, failure: &Failure) -> String {
    let (kind, value, threshold) = match failure.kind {
        FailureKind::Late => ("late", failure.worst_late_ns, u64::from(abi::EMUD_LATE_NS)),
        FailureKind::Dropped => ("dropped", failure.frames, 1),
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

/// Formats the line for a link that another process changed or removed in part; `what` has one
/// sentence per part.
pub fn tampered_line(link: &LinkName, what: &[String], now_ns: u64) -> String {
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
        // A monitor that died leaves its socket behind, which rejects connections.
        let _ = send(&monitor, line);
    }
}

/// Passes failures on to the monitors whose sockets are in `folder`, until all senders are gone.
pub fn pass_on(failures: &Receiver<Failure>, folder: &Path, link: impl Fn() -> Option<LinkName>) {
    while let Ok(first) = failures.recv() {
        // A deleted device has no name to report.
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

/// Sends all of the lines without blocking.
fn send(monitor: &Path, lines: &str) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(monitor)?)?;
    UnixStream::from(socket).write_all(lines.as_bytes())
}
