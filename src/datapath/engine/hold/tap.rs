// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creates a TAP device.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::HoldError;
use super::frame::{FRONT_LEN, VNET_LEN};
use crate::netlink::setting;

const TUN: &str = "/dev/net/tun";
/// Frames that may wait for the holder. The kernel drops further ones and counts them (tx_dropped), so this
/// is far more than accumulates during a late wake-up.
pub(super) const TX_QUEUE_LEN: i32 = 16384;
/// The kernel's limit for a TAP: 65535 less the Ethernet header.
const MAX_MTU: u32 = 65521;
/// Room for emud's header and tags in addition to the device's frames.
const MTU_ROOM: u32 = 64;
const _: () = assert!(MTU_ROOM as usize >= FRONT_LEN + 2 * 4);

/// A TAP; it lives as long as its descriptor, unless it was made persistent.
#[derive(Debug)]
pub struct Tap {
    /// Reads and writes frames as [`crate::datapath::engine::hold::frame`] describes them, non-blocking.
    pub fd: OwnedFd,
    /// Index of the interface.
    pub ifindex: u32,
    /// Name of the interface.
    pub name: String,
}

impl Tap {
    /// Sets whether the device outlives its descriptor.
    pub fn persist(fd: BorrowedFd<'_>, persistent: bool) -> Result<(), HoldError> {
        let argument = usize::from(persistent);
        // SAFETY: TUNSETPERSIST has its flag as the argument itself.
        unsafe {
            ioctl(
                fd,
                IntegerSetter::<{ libc::TUNSETPERSIST as Opcode }>::new_usize(argument),
            )
        }
        .map_err(|error| HoldError::system("TUNSETPERSIST", error))
    }
}

/// Creates a TAP in the network namespace of the calling thread and sets it up.
///
/// `name` may hold one `%d`, which the kernel replaces by a free number;
/// `device_mtu` is that of the device whose frames it shall carry.
///
/// Only packets that the classifier redirects pass it: no ARP, no IPv6, no address. Without
/// segmentation offload the kernel splits super-packets into wire packets; checksums may stay
/// partial in both directions.
///
/// # Errors
/// [`HoldError::NoTun`] without `/dev/net/tun`, [`HoldError::BadName`], [`HoldError::System`] if
/// the kernel rejects a step (the TAP is deleted then).
pub fn create(name: &str, device_mtu: u32) -> Result<Tap, HoldError> {
    let (fd, name) = open(name)?;
    let ifindex = set_up_device(&name, (device_mtu + MTU_ROOM).min(MAX_MTU))?;
    Ok(Tap { fd, ifindex, name })
}

/// Creates a TAP in the network namespace of the calling thread, which lives as long as the
/// descriptor, and returns its name. Reads and writes are non-blocking, with a virtio header in
/// front of each frame; no write fails because earlier frames have not been delivered yet.
///
/// # Errors
/// As [`create`].
pub(crate) fn open(name: &str) -> Result<(OwnedFd, String), HoldError> {
    let fd: OwnedFd = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(TUN)
        .map_err(|source| HoldError::NoTun { path: TUN, source })?
        .into();
    let mut request = named(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    // SAFETY: TUNSETIFF reads a struct ifreq and writes the name back into it.
    unsafe {
        ioctl(
            &fd,
            Updater::<{ libc::TUNSETIFF as Opcode }, _>::new(&mut request),
        )
    }
    .map_err(|error| HoldError::system(format!("TAP {name}"), error))?;
    let name = name_of(&request);
    set_up_descriptor(fd.as_fd())
        .map_err(|error| HoldError::system(format!("TAP {name}: offloads"), error))?;
    Ok((fd, name))
}

fn set_up_descriptor(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ and TUNSETSNDBUF read an int, TUNSETOFFLOAD takes
    // its flags as the argument itself.
    unsafe {
        let len = VNET_LEN as i32;
        ioctl(
            fd,
            Setter::<{ libc::TUNSETVNETHDRSZ as Opcode }, i32>::new(len),
        )?;
        let csum = libc::TUN_F_CSUM as usize;
        ioctl(
            fd,
            IntegerSetter::<{ libc::TUNSETOFFLOAD as Opcode }>::new_usize(csum),
        )?;
        // A write must never fail because earlier frames have not been delivered yet.
        ioctl(
            fd,
            Setter::<{ libc::TUNSETSNDBUF as Opcode }, i32>::new(i32::MAX),
        )?;
    }
    Ok(())
}

fn set_up_device(name: &str, mtu: u32) -> Result<u32, HoldError> {
    let failed = |what: &'static str| {
        let name = name.to_owned();
        move |error: io::Error| HoldError::system(format!("TAP {name}: {what}"), error)
    };
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|error| HoldError::system("socket", error))?;
    let fd = socket.as_fd();
    let mut request = named(name)?;

    set::<{ libc::SIOCGIFINDEX as Opcode }>(fd, &mut request).map_err(failed("index"))?;
    // SAFETY: every member of the union is plain integers; SIOCGIFINDEX wrote this one.
    let ifindex = unsafe { request.ifr_ifru.ifru_ifindex } as u32;
    request.ifr_ifru.ifru_mtu = mtu as i32;
    set::<{ libc::SIOCSIFMTU as Opcode }>(fd, &mut request).map_err(failed("MTU"))?;
    // ifr_qlen is the same int as ifr_mtu.
    request.ifr_ifru.ifru_mtu = TX_QUEUE_LEN;
    set::<{ libc::SIOCSIFTXQLEN as Opcode }>(fd, &mut request).map_err(failed("queue length"))?;
    // With IPv6 it would send router solicitations, which arrive at the holder.
    setting::disable_ipv6(name).map_err(failed("disable_ipv6"))?;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_NOARP) as i16;
    set::<{ libc::SIOCSIFFLAGS as Opcode }>(fd, &mut request).map_err(failed("up"))?;
    Ok(ifindex)
}

fn set<const OPCODE: Opcode>(fd: BorrowedFd<'_>, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: only used with the SIOC*IF* requests, which all read and write a struct ifreq.
    unsafe { ioctl(fd, Updater::<OPCODE, _>::new(request)) }?;
    Ok(())
}

fn named(name: &str) -> Result<libc::ifreq, HoldError> {
    let bad = name.is_empty()
        || name.len() >= libc::IFNAMSIZ
        || name
            .bytes()
            .any(|byte| !byte.is_ascii_graphic() || byte == b'/' || byte == b':');
    if bad {
        return Err(HoldError::BadName(name.to_owned()));
    }
    // SAFETY: struct ifreq is integers and a pointer, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn name_of(request: &libc::ifreq) -> String {
    let bytes = request
        .ifr_name
        .iter()
        .map(|&char| char as u8)
        .take_while(|&byte| byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}
