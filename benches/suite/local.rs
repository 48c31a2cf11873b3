// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of a program on the sending host. They have a socket, by which engine fq decides whether
//! a packet waits itself or as a clone without one (`emud_keeps_socket()` in bpf/core.h).

use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use super::pktgen::LEN;
use super::site::Site;
use support::lab::{Lab, inside};
use support::probe::{HEADERS, set_buffer, set_dscp};

/// Of the first flow.
pub const PORT: u16 = 2000;
/// Packets of one system call.
const BATCH: usize = 64;

/// What decides whether engine fq clones its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Socket {
    /// Not connected, with room for all packets that wait: never.
    Roomy,
    /// Not connected, with the kernel's default buffer: from half of it in flight on.
    DefaultBuffer,
    /// Connected, with room: always.
    Connected,
}

pub struct Sender {
    socket: UdpSocket,
    connected: bool,
    flows: u16,
}

impl Sender {
    /// The same path through the kernel for one flow as for many: one socket. A connected one has
    /// one flow.
    pub fn new(site: &Site, kind: Socket, flows: u16) -> Self {
        Self::inside(&site.lab, kind, flows)
    }

    fn inside(lab: &Lab, kind: Socket, flows: u16) -> Self {
        let open = || UdpSocket::bind((Lab::A4, 0)).expect("bind");
        let socket = inside(&lab.a, open).join().expect("a socket");
        // Otherwise packets in flight block the sender, unless they are clones.
        if kind != Socket::DefaultBuffer {
            set_buffer(&socket, libc::SO_SNDBUFFORCE);
        }
        let connected = kind == Socket::Connected;
        if connected {
            assert_eq!(flows, 1, "flows of a connected socket");
            socket.connect((Lab::B4, PORT)).expect("connect");
        }
        Self {
            socket,
            connected,
            flows,
        }
    }

    /// One flow with this DSCP, to [`PORT`].
    pub fn with_dscp(lab: &Lab, dscp: u8) -> Self {
        let sender = Self::inside(lab, Socket::Roomy, 1);
        set_dscp(&sender.socket, dscp);
        sender
    }

    /// As fast as the kernel accepts them.
    pub fn send(&self, packets: u64) {
        let payload = vec![0u8; LEN as usize - HEADERS];
        let mut part = libc::iovec {
            iov_base: payload.as_ptr().cast_mut().cast(),
            iov_len: payload.len(),
        };
        let mut sent = 0;
        while sent < packets {
            let batch = (packets - sent).min(BATCH as u64) as usize;
            let mut addresses: Vec<_> = (0..batch as u64).map(|n| self.address(sent + n)).collect();
            let mut messages: Vec<_> = addresses
                .iter_mut()
                .map(|address| message((!self.connected).then_some(address), &mut part))
                .collect();
            // SAFETY: the number of messages is right, and their addresses and payload outlive the
            // call.
            let done = unsafe {
                libc::sendmmsg(
                    self.socket.as_raw_fd(),
                    messages.as_mut_ptr(),
                    batch as libc::c_uint,
                    0,
                )
            };
            assert!(done > 0, "sendmmsg: {}", io::Error::last_os_error());
            sent += done as u64;
        }
    }

    fn address(&self, number: u64) -> libc::sockaddr_in {
        let port = PORT + (number % u64::from(self.flows)) as u16;
        let to = SocketAddrV4::new(Lab::B4.parse().unwrap(), port);
        libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: to.port().to_be(),
            sin_addr: libc::in_addr {
                s_addr: u32::from(*to.ip()).to_be(),
            },
            sin_zero: [0; 8],
        }
    }
}

/// Without an address: to that of the connection.
fn message(to: Option<&mut libc::sockaddr_in>, part: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: all zero is a valid mmsghdr.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    if let Some(to) = to {
        message.msg_hdr.msg_namelen = size_of_val(to) as libc::socklen_t;
        message.msg_hdr.msg_name = (&raw mut *to).cast();
    }
    message.msg_hdr.msg_iov = part;
    message.msg_hdr.msg_iovlen = 1;
    message
}
