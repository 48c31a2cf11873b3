// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads when probes leave the sender's device, by a packet socket there: the kernel stamps a
//! packet that it passes to a driver, and that is the departure, however long the rest of the path
//! is.

use std::ffi::CStr;
use std::io::Error;
use std::mem::size_of_val;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use support::clock;
use support::lab::{Lab, inside};
use support::probe::{Arrival, Arrivals};

/// Of IPv4 and UDP; the socket leaves out Ethernet's.
const HEADERS: usize = 28;
/// Of struct sockaddr_ll.sll_pkttype, on its way out.
const PACKET_OUTGOING: u8 = 4;
const SIOCGSTAMPNS: libc::c_ulong = 0x8907;

pub struct Tap(OwnedFd);

impl Tap {
    /// On `va`. Its data is read at the end, so that it uses no CPU meanwhile.
    pub fn open(lab: &Lab) -> Self {
        let tap = inside(&lab.a, || {
            // SAFETY: no pointers; the descriptor is new and not shared.
            let socket = unsafe {
                let socket = libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0);
                assert!(socket >= 0, "packet socket: {}", Error::last_os_error());
                Self(OwnedFd::from_raw_fd(socket))
            };
            socket.set(libc::SO_RCVBUFFORCE, 256 << 20);
            // The first request enables stamps. (SO_TIMESTAMPNS would deliver them elsewhere.)
            assert!(socket.stamp_ns().is_none(), "packets before the probes");
            socket.bind(c"va");
            socket
        });
        tap.join().expect("a packet socket")
    }

    /// From now on; hold's TAP is another device of the same namespace.
    fn bind(&self, device: &CStr) {
        // SAFETY: the name and the address live until the calls return; zero is valid for the rest.
        let done = unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = libc::if_nametoindex(device.as_ptr()) as libc::c_int;
            let len = size_of_val(&address) as libc::socklen_t;
            libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len)
        };
        assert_eq!(done, 0, "bind: {}", Error::last_os_error());
    }

    fn set(&self, option: libc::c_int, value: libc::c_int) {
        let len = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the value is an int that lives until the call returns.
        let done = unsafe {
            let value = (&raw const value).cast();
            libc::setsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, option, value, len)
        };
        assert_eq!(done, 0, "setsockopt: {}", Error::last_os_error());
    }

    /// Of all probes so far.
    pub fn departures(&self, payload_len: usize) -> Arrivals {
        // The stamps are of the wall clock; the distance to the other clock does not change.
        let apart_ns = wall_ns() - i128::from(clock::now());
        let mut all = vec![];
        while let Some((packet, stamp_ns)) = self.next() {
            if packet.len() == HEADERS + payload_len {
                let payload = &packet[HEADERS..];
                all.push(Arrival {
                    number: u32::from_ne_bytes(payload[..4].try_into().expect("4 bytes")),
                    sent_ns: u64::from_ne_bytes(payload[4..12].try_into().expect("8 bytes")),
                    arrived_ns: (stamp_ns - apart_ns) as u64,
                });
            }
        }
        Arrivals(all)
    }

    /// An outgoing packet and its stamp.
    fn next(&self) -> Option<(Vec<u8>, i128)> {
        let mut packet = vec![0; 2048];
        loop {
            // SAFETY: all zero is valid for both; sizes are those of what the pointers are of.
            let (len, from) = unsafe {
                let mut from: libc::sockaddr_ll = std::mem::zeroed();
                let mut from_len = size_of_val(&from) as libc::socklen_t;
                let len = libc::recvfrom(
                    self.0.as_raw_fd(),
                    packet.as_mut_ptr().cast(),
                    packet.len(),
                    libc::MSG_DONTWAIT,
                    (&raw mut from).cast(),
                    &raw mut from_len,
                );
                (len, from)
            };
            let len = usize::try_from(len).ok()?;
            if from.sll_pkttype == PACKET_OUTGOING {
                packet.truncate(len);
                return Some((packet, self.stamp_ns().expect("a stamp")));
            }
        }
    }

    /// Of the packet read last.
    fn stamp_ns(&self) -> Option<i128> {
        // SAFETY: all zero is a valid time, and the kernel fills it in during the call.
        let (done, time) = unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            let done = libc::ioctl(self.0.as_raw_fd(), SIOCGSTAMPNS, &raw mut time);
            (done, time)
        };
        let ns = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
        (done == 0).then_some(ns)
    }
}

fn wall_ns() -> i128 {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH);
    since.expect("a clock after 1970").as_nanos() as i128
}
