// SPDX-License-Identifier: MIT OR Apache-2.0
//! Point-to-point VXLAN between two hosts (RFC 7348).

use std::net::IpAddr;

use netlink_bindings::rt_link;
use netlink_bindings::traits::Pusher;

use super::wire::{IFLA_INFO_DATA, push_end};
use super::{Netlink, Result, WireEnd, attr};

/// Bytes that a VXLAN over IPv4 adds: Ethernet 14, IPv4 20, UDP 8, VXLAN 8.
pub const OVERHEAD_IPV4: u32 = 50;
/// The same over IPv6.
pub const OVERHEAD_IPV6: u32 = 70;

// include/uapi/linux/if_link.h, IFLA_VXLAN_*.
const ID: u16 = 1;
const GROUP: u16 = 2;
const LOCAL: u16 = 4;
const LEARNING: u16 = 7;
const PORT: u16 = 15;
const GROUP6: u16 = 16;
const LOCAL6: u16 = 17;

/// One end of a VXLAN.
#[derive(Debug, Clone, Copy)]
pub struct Vxlan {
    /// Network identifier, 24 bits.
    pub vni: u32,
    /// Source address of the tunnel's packets.
    pub local: IpAddr,
    /// Address of the other host; of the same family.
    pub remote: IpAddr,
    /// UDP port of both.
    pub port: u16,
    /// Largest packet in bytes inside, without the link header.
    pub mtu: u32,
}

impl Netlink {
    /// Adds a VXLAN whose packets leave from the namespace of this socket, with its device in
    /// `end`'s namespace: the kernel deletes it with that. It is down.
    ///
    /// # Errors
    /// [`super::NetlinkError::Exists`] if the name, or the identifier at this port, is in use;
    /// [`super::NetlinkError::Unavailable`] if the kernel has no VXLAN.
    pub fn add_vxlan(&mut self, end: &WireEnd<'_>, vxlan: &Vxlan) -> Result<()> {
        let mut data = Vec::new();
        attr::push(&mut data, ID, false, &vxlan.vni.to_ne_bytes());
        for (address, [v4, v6]) in [
            (vxlan.remote, [GROUP, GROUP6]),
            (vxlan.local, [LOCAL, LOCAL6]),
        ] {
            match address {
                IpAddr::V4(ip) => attr::push(&mut data, v4, false, &ip.octets()),
                IpAddr::V6(ip) => attr::push(&mut data, v6, false, &ip.octets()),
            }
        }
        attr::push(&mut data, LEARNING, false, &[0]);
        attr::push(&mut data, PORT, false, &vxlan.port.to_be_bytes());
        let mut request = rt_link::Request::new()
            .set_create()
            .set_excl()
            .op_newlink_do(&Default::default());
        let mut attrs = request.encode();
        push_end(attrs.as_vec_mut(), end);
        let mut info = attrs
            .push_mtu(vxlan.mtu)
            .nested_linkinfo()
            .push_kind(c"vxlan");
        attr::push(info.as_vec_mut(), IFLA_INFO_DATA, true, &data);
        info.end_nested();
        let what = || format!("add the VXLAN {} to {}", end.name, vxlan.remote);
        self.ack(&request, what).map_err(|e| e.kind_missing(true))
    }
}
