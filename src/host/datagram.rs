// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams with what the kernel adds in a control message.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

/// A control message of the kernel about a datagram.
///
/// # Safety
/// A control message of this level and type has such a value after its header.
pub(crate) unsafe trait Control: Copy {
    const LEVEL: libc::c_int;
    const TYPE: libc::c_int;
}

/// The TTL that it has left, after IP_RECVTTL.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Ttl(pub libc::c_int);

// SAFETY: ip_cmsg_recv_ttl() of the kernel puts an int.
unsafe impl Control for Ttl {
    const LEVEL: libc::c_int = libc::IPPROTO_IP;
    const TYPE: libc::c_int = libc::IP_TTL;
}

/// When the kernel took it from the device, after SO_TIMESTAMPNS.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Stamp(libc::timespec);

// SAFETY: put_cmsg_scm_timestampns() of the kernel puts a timespec.
unsafe impl Control for Stamp {
    const LEVEL: libc::c_int = libc::SOL_SOCKET;
    const TYPE: libc::c_int = libc::SCM_TIMESTAMPNS;
}

impl Stamp {
    /// Returns the time of day in ns, as [`super::wall_ns`].
    pub(crate) fn wall_ns(self) -> u64 {
        self.0.tv_sec as u64 * 1_000_000_000 + self.0.tv_nsec as u64
    }
}

/// A received datagram.
pub(crate) struct Datagram<C> {
    pub len: usize,
    /// `None`: the kernel did not say it.
    pub control: Option<C>,
    pub from: libc::sockaddr_storage,
    pub from_len: libc::socklen_t,
}

impl<C> Datagram<C> {
    /// Returns the sender's address; `None`: not IPv4.
    pub fn sender(&self) -> Option<SocketAddr> {
        if i32::from(self.from.ss_family) != libc::AF_INET {
            return None;
        }
        // SAFETY: of this family, the kernel has written a sockaddr_in, for which there is room.
        let from = unsafe { (&raw const self.from).cast::<libc::sockaddr_in>().read() };
        let address = Ipv4Addr::from(from.sin_addr.s_addr.to_ne_bytes());
        Some((address, u16::from_be(from.sin_port)).into())
    }
}

/// Receives a datagram.
pub(crate) fn receive<C: Control>(socket: impl AsFd, data: &mut [u8]) -> io::Result<Datagram<C>> {
    // SAFETY: all of these are valid if they are zero.
    let (mut from, mut message): (libc::sockaddr_storage, libc::msghdr) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    // As the kernel aligns the headers.
    let mut control = [0_u64; 16];
    let mut part = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    message.msg_name = (&raw mut from).cast();
    message.msg_namelen = size_of_val(&from) as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: all buffers outlive the call, and have the given lengths.
    let len = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, 0) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has filled in the message.
    let control = unsafe { control_of(&message) };
    Ok(Datagram {
        len,
        control,
        from,
        from_len: message.msg_namelen,
    })
}

/// # Safety
/// `message` is the result of recvmsg, and its control buffer still exists.
unsafe fn control_of<C: Control>(message: &libc::msghdr) -> Option<C> {
    // SAFETY: as promised; the kernel's headers are within the control buffer, and the implementation of
    // `C` guarantees the value after them.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if ((*header).cmsg_level, (*header).cmsg_type) == (C::LEVEL, C::TYPE) {
                return Some(libc::CMSG_DATA(header).cast::<C>().read_unaligned());
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}
