// SPDX-License-Identifier: MIT OR Apache-2.0
//! A separate network namespace, and packet sockets on a TAP in it: a packet that is sent arrives
//! at the holder, and one that the holder writes is received.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use emud::abi::{EMUD_HOLD_MAGIC, emud_hold_hdr};
use emud::host::now_ns;

// Not in libc: <linux/if_packet.h>.
const PACKET_AUXDATA: i32 = 8;
const PACKET_VNET_HDR: i32 = 15;
const PACKET_IGNORE_OUTGOING: i32 = 23;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

#[repr(C)]
#[derive(Clone, Copy)]
struct Auxdata {
    status: u32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
}

pub const NEEDS_CSUM: u8 = 1;
pub const VNET_LEN: usize = 10;

/// Moves the calling thread, and what it starts, into a new network namespace.
pub fn own_network() {
    // SAFETY: no pointers; only this thread changes its namespace.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
    assert_eq!(
        result,
        0,
        "needs root: unshare: {}",
        io::Error::last_os_error()
    );
}

/// The other clock is read a moment later, so the largest difference is the best.
fn realtime_ahead_ns() -> i128 {
    let ahead = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec) - i128::from(now_ns())
    };
    (0..100).map(|_| ahead()).max().unwrap()
}

/// A frame as the classifier redirects it.
pub struct ToHolder<'a> {
    pub departure_ns: u64,
    /// (protocol, TCI).
    pub tag: Option<(u16, u16)>,
    /// (start, offset), start counted from emud's header.
    pub checksum: Option<(u16, u16)>,
    pub frame: &'a [u8],
}

impl ToHolder<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; VNET_LEN];
        if let Some((start, offset)) = self.checksum {
            bytes[0] = NEEDS_CSUM;
            bytes[6..8].copy_from_slice(&start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&offset.to_ne_bytes());
        }
        let (proto, tci) = self.tag.unwrap_or((0, 0));
        let header = bytes.len();
        bytes.extend(self.departure_ns.to_ne_bytes());
        bytes.extend(EMUD_HOLD_MAGIC.to_ne_bytes());
        bytes.extend(tci.to_ne_bytes());
        bytes.extend(proto.to_be_bytes());
        bytes.resize(header + size_of::<emud_hold_hdr>(), 0);
        bytes.extend(self.frame);
        bytes
    }
}

/// A frame that the holder wrote back.
#[derive(Debug, PartialEq, Eq)]
pub struct FromHolder {
    /// When the kernel took it, CLOCK_MONOTONIC.
    pub written_ns: i128,
    pub tag: Option<(u16, u16)>,
    pub checksum: Option<(u16, u16)>,
    pub frame: Vec<u8>,
}

/// A packet socket bound to one interface.
pub struct Packets {
    fd: OwnedFd,
    realtime_ahead_ns: i128,
}

impl Packets {
    pub fn on(ifindex: u32) -> Self {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: no pointers; the descriptor is checked and owned once.
        let fd = unsafe {
            let fd = libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                i32::from(protocol),
            );
            assert!(fd >= 0, "packet socket: {}", io::Error::last_os_error());
            OwnedFd::from_raw_fd(fd)
        };
        let packets = Self {
            fd,
            realtime_ahead_ns: realtime_ahead_ns(),
        };
        packets.set(libc::SOL_PACKET, PACKET_VNET_HDR, 1);
        packets.set(libc::SOL_PACKET, PACKET_AUXDATA, 1);
        packets.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
        packets.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1);
        packets.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 1 << 28);
        packets.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 1 << 28);
        packets.bind(ifindex, protocol);
        packets
    }

    fn set(&self, level: i32, option: i32, value: i32) {
        // SAFETY: the option reads an int.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<i32>() as u32,
            )
        };
        let error = io::Error::last_os_error();
        assert_eq!(result, 0, "setsockopt {option}: {error}");
    }

    fn bind(&self, ifindex: u32, protocol: u16) {
        // SAFETY: plain integers, for which zero is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = ifindex as i32;
        let len = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: the pointer is valid for len bytes.
        let result = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) };
        assert_eq!(result, 0, "bind: {}", io::Error::last_os_error());
    }

    pub fn send(&self, frame: &ToHolder) {
        self.send_raw(&frame.bytes());
    }

    /// Sends a vnet header and whatever comes after it.
    pub fn send_raw(&self, bytes: &[u8]) {
        let sent = rustix::io::write(&self.fd, bytes);
        assert_eq!(sent, Ok(bytes.len()));
    }

    /// The next frame, or `None` if nothing comes within `patience`.
    pub fn receive(&self, patience: Duration) -> Option<FromHolder> {
        use rustix::event::{PollFd, PollFlags, poll};
        let timeout = patience.try_into().unwrap();
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).unwrap() == 0 {
            return None;
        }
        let mut data = vec![0u8; 70_000];
        let mut control = [0u64; 32];
        let (len, header) = match self.recvmsg(&mut data, &mut control) {
            // The TAP is gone, which is reported once, before the frames that it had delivered.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                return self.receive(patience);
            }
            result => result.unwrap(),
        };
        assert!(len >= VNET_LEN);
        data.truncate(len);
        Some(self.decode(&data, &header))
    }

    fn recvmsg(&self, data: &mut [u8], control: &mut [u64]) -> io::Result<(usize, libc::msghdr)> {
        let mut part = libc::iovec {
            iov_base: data.as_mut_ptr().cast(),
            iov_len: data.len(),
        };
        // SAFETY: zero is valid for the header; its pointers are good during the
        // call, and the caller keeps the control buffer for decode().
        unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = size_of_val(control);
            match libc::recvmsg(self.fd.as_raw_fd(), &mut header, 0) {
                len if len >= 0 => Ok((len as usize, header)),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    fn decode(&self, data: &[u8], header: &libc::msghdr) -> FromHolder {
        let mut received = FromHolder {
            written_ns: 0,
            tag: None,
            checksum: (data[0] & NEEDS_CSUM != 0).then(|| {
                let at = |i: usize| u16::from_ne_bytes([data[i], data[i + 1]]);
                (at(6), at(8))
            }),
            frame: data[VNET_LEN..].to_vec(),
        };
        // SAFETY: the control buffer was filled by recvmsg and outlives the loop;
        // each message is read as the type that its kind has.
        unsafe {
            let mut message = libc::CMSG_FIRSTHDR(header);
            while !message.is_null() {
                let payload = libc::CMSG_DATA(message);
                match ((*message).cmsg_level, (*message).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time: libc::timespec =
                            payload.cast::<libc::timespec>().read_unaligned();
                        received.written_ns = i128::from(time.tv_sec) * 1_000_000_000
                            + i128::from(time.tv_nsec)
                            - self.realtime_ahead_ns;
                    }
                    (libc::SOL_PACKET, PACKET_AUXDATA) => {
                        let aux: Auxdata = payload.cast::<Auxdata>().read_unaligned();
                        let valid = TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID;
                        received.tag =
                            (aux.status & valid == valid).then_some((aux.vlan_tpid, aux.vlan_tci));
                    }
                    _ => {}
                }
                message = libc::CMSG_NXTHDR(header, message);
            }
        }
        received
    }
}
