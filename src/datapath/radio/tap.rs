// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TAP of a station, in the network namespace of the calling thread.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;

use ipnet::Ipv4Net;

use super::{RadioError, Stamp};
use crate::datapath::engine::hold::tap;
use crate::netlink::{Gso, Netlink, setting};

/// Bytes from the IP header on.
pub const MTU: u32 = 1500;
/// Frames that may wait for the thread. Far more than a station sends during a late wake-up: the
/// TAP drops what exceeds it, which makes the run invalid.
const TX_QUEUE_LEN: u32 = 4_096;

/// A station's TAP.
#[derive(Debug)]
pub struct Tap {
    pub(super) fd: OwnedFd,
    /// Index of the interface.
    pub ifindex: u32,
    /// Why packets are stamped when they are read instead of when they are sent.
    pub unstamped: Option<String>,
}

/// Settings of a station's TAP.
#[derive(Debug)]
pub struct TapSetup<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// MAC address.
    pub mac: [u8; 6],
    /// IPv4 address with the length of its prefix.
    pub address: Option<Ipv4Net>,
    /// Whether it has a link-local IPv6 address.
    pub ipv6: bool,
}

/// Creates a TAP and brings it up. Without `stamp`, packets are stamped when they are read.
///
/// # Errors
/// The kernel returns an error; no device exists then.
pub fn create(setup: &TapSetup<'_>, stamp: Option<&mut Stamp>) -> Result<Tap, RadioError> {
    let name = setup.name;
    let (fd, _) = tap::open(name)?;
    let mut nl = Netlink::open()?;
    let link = nl.link(name)?;
    let ifindex = link.index;
    nl.set_mtu(ifindex, MTU)?;
    nl.set_mac(ifindex, &setup.mac)?;
    nl.set_txqlen(ifindex, TX_QUEUE_LEN)?;
    // A frame on air is a packet, so TCP makes no super-packets, which would have to be segmented first.
    let wire_packets = Gso {
        max_segs: 1,
        ..link.gso
    };
    nl.set_gso(ifindex, &wire_packets)?;
    for (name_of, value) in settings(setup.ipv6) {
        let file = format!("ipv6/conf/{name}/{name_of}");
        match setting::write(&file, value) {
            // A kernel without IPv6.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(RadioError::system(format!("write /proc/sys/net/{file}"), e)),
            Ok(()) => {}
        }
    }
    let unstamped = match stamp {
        Some(stamp) => stamp.attach(&mut nl, ifindex).err().map(|e| e.to_string()),
        None => Some("the kernel rejects the program".to_owned()),
    };
    if let Some(address) = setup.address {
        nl.add_address(ifindex, address)?;
    }
    nl.set_up(ifindex, true)?;
    Ok(Tap {
        fd,
        ifindex,
        unstamped,
    })
}

/// Returns the sysctls of a TAP. With IPv6, routing daemons use the link-local address at once: no duplicate address
/// detection, and no router solicitations, which would be unexpected frames on air.
fn settings(ipv6: bool) -> &'static [(&'static str, &'static str)] {
    match ipv6 {
        true => &[
            ("accept_dad", "0"),
            ("router_solicitations", "0"),
            ("disable_ipv6", "0"),
        ],
        false => &[("disable_ipv6", "1")],
    }
}
