// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interfaces, as the kernel reports them.

use std::ffi::CStr;

use netlink_bindings::rt_link::{self, Ifinfomsg, IterableLinkAttrs};
use netlink_bindings::traits::NetlinkRequest;
use serde::{Deserialize, Serialize};

use super::{Netlink, NetlinkError, Result, signed};

/// include/uapi/linux/rtnetlink.h.
pub(super) const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;
const MAX_NAME: usize = 15;
const XDP_ATTACHED_NONE: u8 = 0;

/// Limits of segmentation offload on transmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gso {
    /// Maximum number of packets in a super-packet.
    pub max_segs: u32,
    /// Maximum number of bytes in a super-packet (IPv6; before Linux 6.3 IPv4 too).
    pub max_size: u32,
    /// The same in bytes for IPv4; `None` before Linux 6.3.
    pub ipv4_max_size: Option<u32>,
}

/// The other end of a veth, or the lower device of a stacked device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Index of the device.
    pub ifindex: u32,
    /// Id of its network namespace in this one; `None` for this namespace.
    pub netnsid: Option<i32>,
}

/// An interface, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// ifindex, unique in its network namespace.
    pub index: u32,
    /// Interface name, up to 15 bytes.
    pub name: String,
    /// "veth", "ifb", "tun"...; `None` for hardware and lo.
    pub kind: Option<String>,
    /// ARPHRD_*: 1 is Ethernet, 772 loopback, 65534 no link header.
    pub arphrd: u16,
    /// Largest packet in bytes, without the link header.
    pub mtu: u32,
    /// IFF_UP.
    pub up: bool,
    /// IFF_LOOPBACK.
    pub loopback: bool,
    /// IFF_NOARP.
    pub noarp: bool,
    /// Number of allocated transmit queues.
    pub num_tx_queues: u32,
    /// Length of the transmit queue in packets.
    pub txqlen: u32,
    /// Limits of super-packets.
    pub gso: Gso,
    /// The largest `max_segs` that the kernel takes; `None`: Linux before 5.19.
    pub tso_max_segs: Option<u32>,
    /// Address of the link layer; empty without one.
    pub mac: Vec<u8>,
    /// Kind of the root qdisc.
    pub qdisc: Option<String>,
    /// Index of the bridge or bond that it belongs to.
    pub master: Option<u32>,
    /// The other end or the lower device.
    pub peer: Option<Peer>,
    /// Id of an attached XDP program (0: attached, id unknown).
    pub xdp: Option<u32>,
    /// Text that stays with it in another network namespace, too.
    pub alias: Option<String>,
}

pub(super) fn text(s: &CStr) -> String {
    s.to_string_lossy().into_owned()
}

pub(super) fn index(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

pub(super) fn flag(bit: i32) -> u32 {
    bit.cast_unsigned()
}

fn parse(header: &Ifinfomsg, attrs: &IterableLinkAttrs<'_>) -> Link {
    let peer = attrs
        .get_link()
        .ok()
        .filter(|&i| i != 0)
        .map(|ifindex| Peer {
            ifindex,
            netnsid: attrs.get_link_netnsid().ok(),
        });
    let xdp = attrs.get_xdp().ok().and_then(|x| {
        let attached = x.get_attached().unwrap_or(XDP_ATTACHED_NONE) != XDP_ATTACHED_NONE;
        attached.then(|| x.get_prog_id().unwrap_or(0))
    });
    Link {
        index: index(header.ifi_index),
        name: attrs.get_ifname().map(text).unwrap_or_default(),
        kind: attrs
            .get_linkinfo()
            .and_then(|i| i.get_kind())
            .ok()
            .map(text),
        arphrd: header.ifi_type,
        mtu: attrs.get_mtu().unwrap_or(0),
        up: header.ifi_flags & flag(libc::IFF_UP) != 0,
        loopback: header.ifi_flags & flag(libc::IFF_LOOPBACK) != 0,
        noarp: header.ifi_flags & flag(libc::IFF_NOARP) != 0,
        num_tx_queues: attrs.get_num_tx_queues().unwrap_or(1),
        txqlen: attrs.get_txqlen().unwrap_or(0),
        gso: Gso {
            max_segs: attrs.get_gso_max_segs().unwrap_or(0),
            max_size: attrs.get_gso_max_size().unwrap_or(0),
            ipv4_max_size: attrs.get_gso_ipv4_max_size().ok(),
        },
        tso_max_segs: attrs.get_tso_max_segs().ok(),
        mac: attrs.get_address().map(<[u8]>::to_vec).unwrap_or_default(),
        qdisc: attrs.get_qdisc().ok().map(text),
        master: attrs.get_master().ok().filter(|&i| i != 0),
        peer,
        xdp,
        alias: attrs.get_ifalias().ok().map(text),
    }
}

pub(super) fn header(ifindex: u32) -> Ifinfomsg {
    Ifinfomsg {
        ifi_index: signed(ifindex),
        ..Default::default()
    }
}

impl Netlink {
    /// Returns the interface called `name` (alternative names count).
    ///
    /// # Errors
    /// [`NetlinkError::NoInterface`] if there is none.
    pub fn link(&mut self, name: &str) -> Result<Link> {
        if name.is_empty() || name.contains(['/', '\0']) {
            return Err(NetlinkError::NoInterface(format!("{name:?}")));
        }
        let mut request = rt_link::Request::new().op_getlink_do(&Default::default());
        let attrs = request.encode().push_ext_mask(RTEXT_FILTER_SKIP_STATS);
        if name.len() <= MAX_NAME {
            attrs.push_ifname_bytes(name.as_bytes());
        } else {
            attrs.push_alt_ifname_bytes(name.as_bytes());
        }
        self.one_link(&request, name)
    }

    /// Returns the interface called `name`, or `None` if there is none.
    pub fn find_link(&mut self, name: &str) -> Result<Option<Link>> {
        match self.link(name) {
            Ok(link) => Ok(Some(link)),
            Err(NetlinkError::NoInterface(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Returns the interface with an index.
    ///
    /// # Errors
    /// [`NetlinkError::NoInterface`] if there is none.
    pub fn link_by_index(&mut self, ifindex: u32) -> Result<Link> {
        let mut request = rt_link::Request::new().op_getlink_do(&header(ifindex));
        request.encode().push_ext_mask(RTEXT_FILTER_SKIP_STATS);
        self.one_link(&request, &format!("with index {ifindex}"))
    }

    fn one_link<R>(&mut self, request: &R, wanted: &str) -> Result<Link>
    where
        R: for<'a> NetlinkRequest<ReplyType<'a> = (Ifinfomsg, IterableLinkAttrs<'a>)>,
    {
        let mut found = None;
        let what = || format!("find interface {wanted}");
        let asked = self.exchange(request, what, |(h, a)| found = Some(parse(&h, &a)));
        match asked {
            Err(e) if [libc::ENODEV, libc::ERANGE, libc::EINVAL].contains(&e.errno()) => {
                Err(NetlinkError::NoInterface(wanted.to_string()))
            }
            Err(e) => Err(e),
            Ok(()) => found.ok_or_else(|| NetlinkError::NoInterface(wanted.to_string())),
        }
    }

    /// Returns every interface of the namespace.
    pub fn links(&mut self) -> Result<Vec<Link>> {
        let mut request = rt_link::Request::new().op_getlink_dump(&Default::default());
        request.encode().push_ext_mask(RTEXT_FILTER_SKIP_STATS);
        let mut links = Vec::new();
        self.exchange(
            &request,
            || "list interfaces".into(),
            |(h, a)| links.push(parse(&h, &a)),
        )?;
        Ok(links)
    }
}
