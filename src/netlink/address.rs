// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPv4 addresses of interfaces.

use std::net::IpAddr;

use ipnet::Ipv4Net;
use netlink_bindings::rt_addr::{self, Ifaddrmsg};

use super::{Netlink, Result};

const AF_INET: u8 = libc::AF_INET as u8;

impl Netlink {
    /// Adds an address to an interface, which includes the route to its network.
    ///
    /// # Errors
    /// [`super::NetlinkError::Exists`] if the interface already has it.
    pub fn add_address(&mut self, ifindex: u32, address: Ipv4Net) -> Result<()> {
        let header = Ifaddrmsg {
            ifa_family: AF_INET,
            ifa_prefixlen: address.prefix_len(),
            ifa_index: ifindex,
            ..Default::default()
        };
        let mut request = rt_addr::Request::new()
            .set_create()
            .set_excl()
            .op_newaddr_do(&header);
        request
            .encode()
            .push_local(IpAddr::V4(address.addr()))
            .push_address(IpAddr::V4(address.addr()));
        let name = self.name_of(ifindex);
        self.ack(&request, || format!("add the address {address} to {name}"))
    }

    /// Returns the IPv4 addresses of all interfaces of the namespace.
    pub fn addresses(&mut self) -> Result<Vec<Ipv4Net>> {
        let request = rt_addr::Request::new().op_getaddr_dump(&Ifaddrmsg {
            ifa_family: AF_INET,
            ..Default::default()
        });
        let mut found = Vec::new();
        let what = || "list addresses".into();
        self.exchange(&request, what, |(header, attrs)| {
            // On a link between two points IFA_ADDRESS is the other end's.
            for address in [attrs.get_local(), attrs.get_address()] {
                if let Ok(IpAddr::V4(address)) = address
                    && let Ok(net) = Ipv4Net::new(address, header.ifa_prefixlen)
                {
                    found.push(net);
                }
            }
        })?;
        Ok(found)
    }
}
