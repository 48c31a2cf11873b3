// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's notifications of changes of interfaces, qdiscs and filters.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use super::socket::{HEADER_LEN, Message};
use super::{NetlinkError, Result, attr};
use crate::socket_option;

/// A notification has up to a page; some are larger.
const BUFFER_LEN: usize = 32 << 10;
/// struct ifinfomsg; struct tcmsg has its index at the same offset.
const IFINFO_LEN: usize = 16;
/// Behind the header.
const INDEX_OFFSET: usize = 4;
/// The flags of struct ifinfomsg, and those of them that have changed.
const FLAGS_OFFSET: usize = 8;
const CHANGE_OFFSET: usize = 12;

/// Notifications of one network namespace since the socket was opened.
#[derive(Debug)]
pub struct Notices {
    socket: OwnedFd,
}

/// The changes since the last call, by ifindex.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Changes {
    /// Interfaces that are new or have changed.
    pub changed: BTreeSet<u32>,
    /// Interfaces that were deleted.
    pub deleted: BTreeSet<u32>,
    /// Interfaces moved to a different network namespace.
    pub moved: BTreeSet<u32>,
    /// Set down: the packets that waited there are lost. It may be up again.
    pub set_down: BTreeSet<u32>,
    /// Lost a qdisc, with the packets in it. It may have another one now.
    pub lost_qdisc: BTreeSet<u32>,
    /// The socket overflowed: anything may have changed.
    pub lost: bool,
}

impl Notices {
    /// Opens a socket in the network namespace of the calling thread.
    pub fn open() -> Result<Self> {
        let failed = |e: Errno| NetlinkError::io("listen for changes of interfaces", &e.into());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None);
        let socket = socket.map_err(failed)?;
        let groups = (libc::RTMGRP_LINK | libc::RTMGRP_TC).cast_unsigned();
        bind(&socket, &SocketAddrNetlink::new(0, groups)).map_err(failed)?;
        Ok(Self { socket })
    }

    /// Limits the notices to these interfaces: no other one wakes the thread that waits. Of 1,000
    /// links in a namespace, each holder would read the changes of all.
    ///
    /// # Errors
    /// The kernel does not take the filter, and all are received as before.
    pub fn only(&self, indexes: &[u32]) -> Result<()> {
        let mut filter = filter(indexes);
        let program = libc::sock_fprog {
            len: filter.len() as u16,
            filter: filter.as_mut_ptr(),
        };
        // It points to the vector, which lives until the kernel has copied it.
        let option = libc::SO_ATTACH_FILTER;
        socket_option::set(&self.socket, libc::SOL_SOCKET, option, &program)
            .map_err(|error| NetlinkError::io("filter changes of interfaces", &error))
    }

    /// Returns all pending changes without waiting.
    pub fn take(&mut self) -> Changes {
        let mut changes = Changes::default();
        let mut buffer = vec![0; BUFFER_LEN];
        loop {
            match recv(&self.socket, &mut buffer[..], RecvFlags::TRUNC) {
                Ok((len, whole)) => {
                    changes.read(&buffer[..len]);
                    // An interface with hundreds of alternative names.
                    changes.lost |= whole > len;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return changes,
                // ENOBUFS is the only known error.
                Err(_) => {
                    changes.lost = true;
                    return changes;
                }
            }
        }
    }
}

impl AsFd for Notices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Changes {
    /// Returns whether one of these interfaces may have changed.
    pub fn concern(&self, indexes: &[u32]) -> bool {
        self.lost || indexes.iter().any(|index| self.changed.contains(index))
    }

    fn read(&mut self, mut messages: &[u8]) {
        while let Some(message) = Message::first(messages) {
            if let Some(index) = attr::u32_at(message.body, INDEX_OFFSET) {
                self.changed.insert(index);
                match message.kind {
                    libc::RTM_DELLINK => {
                        let attrs = message.body.get(IFINFO_LEN..).unwrap_or_default();
                        match attr::find(attrs, libc::IFLA_NEW_IFINDEX) {
                            Some(_) => self.moved.insert(index),
                            None => self.deleted.insert(index),
                        };
                    }
                    libc::RTM_NEWLINK if is_set_down(message.body) => {
                        self.set_down.insert(index);
                    }
                    libc::RTM_DELQDISC => {
                        self.lost_qdisc.insert(index);
                    }
                    _ => {}
                }
            }
            messages = messages.get(message.len..).unwrap_or_default();
        }
    }
}

/// Returns whether an interface was up before. For a new one, which is down, the kernel says that all
/// flags have changed.
fn is_set_down(body: &[u8]) -> bool {
    let up = libc::IFF_UP.cast_unsigned();
    let has = |offset| attr::u32_at(body, offset).filter(|flags| *flags != u32::MAX);
    has(FLAGS_OFFSET).is_some_and(|flags| flags & up == 0)
        && has(CHANGE_OFFSET).is_some_and(|change| change & up != 0)
}

/// Returns the classic BPF program that accepts messages of these interfaces.
fn filter(indexes: &[u32]) -> Vec<libc::sock_filter> {
    let step = |code: u32, jt: usize, k: u32| libc::sock_filter {
        code: code as u16,
        jt: jt as u8,
        jf: 0,
        k,
    };
    let load = step(
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        0,
        (HEADER_LEN + INDEX_OFFSET) as u32,
    );
    // It loads four bytes as the network orders them.
    let equals = (indexes.iter().enumerate()).map(|(i, index)| {
        let to_accept = indexes.len() - i;
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            to_accept,
            index.to_be(),
        )
    });
    let ignore = step(libc::BPF_RET | libc::BPF_K, 0, 0);
    let accept = step(libc::BPF_RET | libc::BPF_K, 0, u32::MAX);
    [load]
        .into_iter()
        .chain(equals)
        .chain([ignore, accept])
        .collect()
}
