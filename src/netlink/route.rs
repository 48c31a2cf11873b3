// SPDX-License-Identifier: MIT OR Apache-2.0
//! IPv4 routes.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;
use netlink_bindings::rt_route::{self, Rtmsg};

use super::{Netlink, Result};

/// A route that the kernel has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteEntry {
    /// RT_TABLE_*: 254 is the main one.
    pub table: u8,
    /// RTN_*: 1 is unicast.
    pub kind: u8,
    /// Destination network.
    pub to: Ipv4Net,
    /// Index of the interface; `None` if the route has several or none.
    pub interface: Option<u32>,
    /// The lowest metric wins.
    pub metric: u32,
}

impl Netlink {
    /// Adds a route to the main table; on-link without a gateway.
    ///
    /// # Errors
    /// [`super::NetlinkError::Exists`] if there is a route to the same network.
    pub fn add_route(&mut self, to: Ipv4Net, via: Option<Ipv4Addr>, ifindex: u32) -> Result<()> {
        let header = Rtmsg {
            rtm_family: libc::AF_INET as u8,
            rtm_dst_len: to.prefix_len(),
            rtm_table: libc::RT_TABLE_MAIN,
            rtm_protocol: libc::RTPROT_STATIC,
            rtm_scope: match via {
                Some(_) => libc::RT_SCOPE_UNIVERSE,
                None => libc::RT_SCOPE_LINK,
            },
            rtm_type: libc::RTN_UNICAST,
            ..Default::default()
        };
        let mut request = rt_route::Request::new()
            .set_create()
            .set_excl()
            .op_newroute_do(&header);
        let mut attrs = request.encode().push_oif(ifindex);
        if to.prefix_len() > 0 {
            attrs = attrs.push_dst(IpAddr::V4(to.network()));
        }
        if let Some(via) = via {
            attrs = attrs.push_gateway(IpAddr::V4(via));
        }
        drop(attrs);
        let name = self.name_of(ifindex);
        self.ack(&request, || match via {
            Some(via) => format!("add a route to {to} via {via} on {name}"),
            None => format!("add a route to {to} on {name}"),
        })
    }

    /// Returns the IPv4 routes of all tables.
    pub fn routes(&mut self) -> Result<Vec<RouteEntry>> {
        let request = rt_route::Request::new().op_getroute_dump(&Rtmsg {
            rtm_family: libc::AF_INET as u8,
            ..Default::default()
        });
        let mut found = Vec::new();
        let what = || "list routes".into();
        self.exchange(&request, what, |(header, attrs)| {
            let to = match attrs.get_dst() {
                Ok(IpAddr::V4(to)) => to,
                _ => Ipv4Addr::UNSPECIFIED,
            };
            if let Ok(to) = Ipv4Net::new(to, header.rtm_dst_len) {
                found.push(RouteEntry {
                    table: header.rtm_table,
                    kind: header.rtm_type,
                    to,
                    interface: attrs.get_oif().ok(),
                    metric: attrs.get_priority().unwrap_or(0),
                });
            }
        })?;
        Ok(found)
    }
}
