// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams with the TTL that they have left.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Requests the TTL of each datagram.
pub(super) fn request(socket: &UdpSocket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the kernel reads an integer from `on`.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_RECVTTL,
            std::ptr::from_ref(&on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Receives a datagram: its length and its TTL.
pub(super) fn receive(socket: &UdpSocket, data: &mut [u8]) -> io::Result<(usize, u64)> {
    // As the kernel aligns the header.
    let mut control = [0_u64; 8];
    let mut part = libc::iovec {
        iov_base: data.as_mut_ptr().cast(),
        iov_len: data.len(),
    };
    // SAFETY: integers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the kernel writes into `data` and `control`, up to their lengths.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: what it points to lies in `control`.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message).as_ref() };
    let is_ttl = |header: &&libc::cmsghdr| {
        (header.cmsg_level, header.cmsg_type) == (libc::IPPROTO_IP, libc::IP_TTL)
    };
    let header = header.filter(is_ttl).ok_or(ErrorKind::InvalidData)?;
    // SAFETY: a control message of this type has an integer behind its header.
    let ttl = unsafe {
        libc::CMSG_DATA(header)
            .cast::<libc::c_int>()
            .read_unaligned()
    };
    Ok((len, u64::try_from(ttl).unwrap_or(0)))
}
