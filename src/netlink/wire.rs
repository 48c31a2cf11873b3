// SPDX-License-Identifier: MIT OR Apache-2.0
//! veth pairs and bridges between network namespaces.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_bindings::rt_link::{self, Ifinfomsg};
use netlink_bindings::traits::Pusher;

use super::{Netlink, Result, attr, signed};

pub(super) const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// One end of a new veth pair.
#[derive(Debug, Clone, Copy)]
pub struct WireEnd<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// The network namespace of the end; `None`: that of the socket.
    pub netns: Option<BorrowedFd<'a>>,
}

/// Writes IFLA_IFNAME and IFLA_NET_NS_FD, as for a separate device.
pub(super) fn push_end(buf: &mut Vec<u8>, end: &WireEnd<'_>) {
    attr::push(
        buf,
        libc::IFLA_IFNAME,
        false,
        &[end.name.as_bytes(), b"\0"].concat(),
    );
    if let Some(netns) = end.netns {
        attr::push(
            buf,
            libc::IFLA_NET_NS_FD,
            false,
            &netns.as_raw_fd().to_ne_bytes(),
        );
    }
}

impl Netlink {
    /// Adds a veth pair with each end in its final namespace, so that it never has settings of
    /// another one. Both ends are down.
    ///
    /// # Errors
    /// [`super::NetlinkError::Exists`] if a name is in use; neither end is created then.
    /// [`super::NetlinkError::Unavailable`] if the kernel has no veth.
    pub fn add_veth(&mut self, near: &WireEnd<'_>, far: &WireEnd<'_>) -> Result<()> {
        // The peer is a link message inside the message, which the crate does not support.
        let mut peer = Ifinfomsg::default().as_slice().to_vec();
        push_end(&mut peer, far);
        let mut data = Vec::new();
        attr::push(&mut data, VETH_INFO_PEER, true, &peer);
        let mut request = rt_link::Request::new()
            .set_create()
            .set_excl()
            .op_newlink_do(&Default::default());
        let mut attrs = request.encode();
        push_end(attrs.as_vec_mut(), near);
        let mut info = attrs.nested_linkinfo().push_kind(c"veth");
        attr::push(info.as_vec_mut(), IFLA_INFO_DATA, true, &data);
        info.end_nested();
        let what = || format!("add veth {} and {}", near.name, far.name);
        self.ack(&request, what).map_err(|e| e.kind_missing(true))
    }

    /// Adds a bridge without spanning tree and multicast snooping, so that it sends no packets of
    /// its own. It is down.
    ///
    /// # Errors
    /// [`super::NetlinkError::Unavailable`] if the kernel has no bridges.
    pub fn add_bridge(&mut self, name: &str) -> Result<()> {
        let mut request = rt_link::Request::new()
            .set_create()
            .set_excl()
            .op_newlink_do(&Default::default());
        request
            .encode()
            .push_ifname_bytes(name.as_bytes())
            .nested_linkinfo()
            .nested_data_bridge()
            .push_stp_state(0)
            .push_mcast_snooping(0);
        self.ack(&request, || format!("add bridge {name}"))
            .map_err(|e| e.kind_missing(true))
    }

    /// Makes an interface a port of a bridge.
    pub fn set_master(&mut self, ifindex: u32, bridge: u32) -> Result<()> {
        let mut request = rt_link::Request::new().op_setlink_do(&Ifinfomsg {
            ifi_index: signed(ifindex),
            ..Default::default()
        });
        request.encode().push_master(bridge);
        let (port, of) = (self.name_of(ifindex), self.name_of(bridge));
        self.ack(&request, || format!("make {port} a port of {of}"))
    }
}
