// SPDX-License-Identifier: MIT OR Apache-2.0
//! Neighbours: the link-layer addresses of IPv4 addresses.

use std::net::{IpAddr, Ipv4Addr};

use netlink_bindings::rt_neigh::{self, Ndmsg};

use super::{Netlink, Result, signed};

/// include/uapi/linux/neighbour.h.
const NUD_PERMANENT: u16 = 0x80;

impl Netlink {
    /// Adds a neighbour that stays as long as its interface. It does not count towards the kernel's
    /// limit (`gc_thresh3`), as those do that ARP finds.
    ///
    /// # Errors
    /// [`super::NetlinkError::Exists`] if the address is known already.
    pub fn add_neighbour(&mut self, ifindex: u32, address: Ipv4Addr, mac: &[u8]) -> Result<()> {
        let header = Ndmsg {
            ndm_family: libc::AF_INET as u8,
            ndm_ifindex: signed(ifindex),
            ndm_state: NUD_PERMANENT,
            ..Default::default()
        };
        let mut request = rt_neigh::Request::new()
            .set_create()
            .set_excl()
            .op_newneigh_do(&header);
        (request.encode())
            .push_dst(IpAddr::V4(address))
            .push_lladdr(mac);
        let name = self.name_of(ifindex);
        self.ack(&request, || {
            format!("add the neighbour {address} of {name}")
        })
    }
}
