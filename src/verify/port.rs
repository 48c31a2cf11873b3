// SPDX-License-Identifier: MIT OR Apache-2.0
//! A connected UDP or ICMP socket for probes, with the kernel's time of arrival.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::ipproto::{ICMP, ICMPV6};
use rustix::net::{AddressFamily, SendFlags, SocketType, bind, connect, getsockname, send, socket};

use super::VerifyError;
use crate::host::datagram::{self, Stamp};
use crate::host::{now_ns, wall_ns};
use crate::socket_option;

/// Size of the socket buffers: the prober itself must not drop a packet.
const BUFFER_BYTES: libc::c_int = 64 << 20;
/// Longest time until a receiver checks whether to end.
pub const PATIENCE: Duration = Duration::from_millis(50);

pub struct Port {
    fd: OwnedFd,
}

/// A received packet, without the IP header.
pub struct Received {
    pub len: usize,
    /// When the kernel took it from the device, ns of CLOCK_MONOTONIC.
    pub arrived_ns: u64,
}

fn failed(what: &'static str) -> impl Fn(rustix::io::Errno) -> VerifyError {
    move |e| VerifyError::Socket {
        what,
        source: e.into(),
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    }
}

impl Port {
    /// Opens a UDP socket on a port that the kernel selects: each run is a separate flow with
    /// separate random draws.
    ///
    /// # Errors
    /// The address does not belong to this namespace.
    pub fn udp(address: IpAddr) -> Result<Self, VerifyError> {
        let fd = socket(family(address), SocketType::DGRAM, None).map_err(failed("UDP socket"))?;
        let port = Self { fd }.prepared()?;
        bind(&port.fd, &SocketAddr::new(address, 0)).map_err(failed("bind"))?;
        Ok(port)
    }

    /// Opens a socket for ICMP or ICMPv6, without the IP header.
    ///
    /// # Errors
    /// The process may not open raw sockets.
    pub fn icmp(peer: IpAddr) -> Result<Self, VerifyError> {
        let protocol = if peer.is_ipv4() { ICMP } else { ICMPV6 };
        let fd = socket(family(peer), SocketType::RAW, Some(protocol));
        Self {
            fd: fd.map_err(failed("ICMP socket"))?,
        }
        .prepared()
    }

    fn prepared(self) -> Result<Self, VerifyError> {
        self.set(libc::SO_RCVBUFFORCE, &BUFFER_BYTES, "receive buffer")?;
        self.set(libc::SO_SNDBUFFORCE, &BUFFER_BYTES, "send buffer")?;
        self.set(libc::SO_TIMESTAMPNS, &1i32, "time stamps")?;
        let time = libc::timeval {
            tv_sec: 0,
            tv_usec: PATIENCE.as_micros() as _,
        };
        self.set(libc::SO_RCVTIMEO, &time, "time-out")?;
        Ok(self)
    }

    /// Sends by this interface, independent of the routes.
    ///
    /// # Errors
    /// There is no interface of that name.
    pub fn by(&self, interface: &str) -> Result<(), VerifyError> {
        let mut name = [0u8; libc::IFNAMSIZ];
        for (to, from) in name.iter_mut().zip(interface.bytes()) {
            *to = from;
        }
        self.set(libc::SO_BINDTODEVICE, &name, "bind to the interface")
    }

    /// Connects the socket.
    ///
    /// # Errors
    /// There is no route.
    pub fn connect(&self, to: SocketAddr) -> Result<(), VerifyError> {
        connect(&self.fd, &to).map_err(failed("connect"))
    }

    /// Returns the local address.
    pub fn local(&self) -> Result<SocketAddr, VerifyError> {
        let address = getsockname(&self.fd).map_err(failed("getsockname"))?;
        SocketAddr::try_from(address).map_err(failed("getsockname"))
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// The kernel rejects the packet.
    pub fn send(&self, payload: &[u8]) -> Result<(), VerifyError> {
        match send(&self.fd, payload, SendFlags::empty()) {
            // An ICMP error for an earlier packet: the receiver is not open yet or already closed.
            Ok(_) | Err(rustix::io::Errno::CONNREFUSED) => Ok(()),
            Err(e) => Err(failed("send")(e)),
        }
    }

    /// Receives a packet; `None`: none arrived within [`PATIENCE`].
    ///
    /// # Errors
    /// The kernel does not stamp the packet, or returns an error.
    pub fn receive(&self, payload: &mut [u8]) -> Result<Option<Received>, VerifyError> {
        let datagram = match datagram::receive::<Stamp>(&self.fd, payload) {
            Ok(datagram) => datagram,
            Err(e) => return nothing(e),
        };
        let Some(stamp) = datagram.control else {
            return Err(VerifyError::Socket {
                what: "read the time of arrival",
                source: io::Error::other("the kernel did not stamp the packet"),
            });
        };
        Ok(Some(Received {
            len: datagram.len,
            arrived_ns: monotonic(stamp.wall_ns()),
        }))
    }

    fn set<T>(&self, option: i32, value: &T, what: &'static str) -> Result<(), VerifyError> {
        let done = socket_option::set(&self.fd, libc::SOL_SOCKET, option, value);
        done.map_err(|source| VerifyError::Socket { what, source })
    }
}

fn nothing(error: io::Error) -> Result<Option<Received>, VerifyError> {
    match error.kind() {
        // ECONNREFUSED: as for send.
        io::ErrorKind::WouldBlock
        | io::ErrorKind::Interrupted
        | io::ErrorKind::ConnectionRefused => Ok(None),
        _ => Err(VerifyError::Socket {
            what: "receive",
            source: error,
        }),
    }
}

/// Converts a time of the wall clock to CLOCK_MONOTONIC. The thread may lose its CPU between the
/// readings of the two clocks, so the closest of several readings counts.
fn monotonic(real_ns: u64) -> u64 {
    let mut best = (u64::MAX, 0);
    for _ in 0..3 {
        let before = now_ns();
        let real = wall_ns();
        let gap = now_ns() - before;
        if gap < best.0 {
            best = (
                gap,
                (before + gap / 2).saturating_sub(real.saturating_sub(real_ns)),
            );
        }
    }
    best.1
}
