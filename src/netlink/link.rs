// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::HashMap;
use std::ffi::CStr;
use std::path::Path;

use netlink_bindings::rt_link::{self, Ifinfomsg, IterableLinkAttrs};
use netlink_bindings::traits::NetlinkRequest;
use serde::{Deserialize, Serialize};

use super::{Netlink, NetlinkError, OWN_KIND, OsFailure, Result, signed};

const RTEXT_FILTER_SKIP_STATS: u32 = 1 << 3;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
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
    /// Index.
    pub index: u32,
    /// Name.
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
}

/// Options of a new ifb.
#[derive(Debug, Clone, Copy)]
pub struct IfbOptions {
    /// Largest packet in bytes, without the link header.
    pub mtu: u32,
    /// Length of the transmit queue in packets.
    pub txqlen: u32,
    /// `None` keeps the kernel's defaults.
    pub gso: Option<Gso>,
}

/// What an interface is called, and the packets dropped there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Name of the interface.
    pub name: String,
    /// By its qdiscs fq and those of emud.
    pub by_engine: u64,
    /// By all its qdiscs except clsact.
    pub by_qdiscs: u64,
    /// By the device on transmit.
    pub on_transmit: u64,
}

fn text(s: &CStr) -> String {
    s.to_string_lossy().into_owned()
}

fn index(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

fn flag(bit: i32) -> u32 {
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
        mac: attrs.get_address().map(<[u8]>::to_vec).unwrap_or_default(),
        qdisc: attrs.get_qdisc().ok().map(text),
        master: attrs.get_master().ok().filter(|&i| i != 0),
        peer,
        xdp,
    }
}

fn header(ifindex: u32) -> Ifinfomsg {
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
    ///
    /// # Errors
    /// The kernel returns an error.
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

    /// Returns the number of packets that the device has dropped on transmit.
    ///
    /// # Errors
    /// [`NetlinkError::NoInterface`] if there is none.
    pub fn tx_dropped(&mut self, ifindex: u32) -> Result<u64> {
        let request = rt_link::Request::new().op_getlink_do(&header(ifindex));
        let mut dropped = 0;
        let what = || format!("read the counters of interface {ifindex}");
        self.exchange(&request, what, |(_, attrs)| {
            dropped = attrs.get_stats64().map_or(0, |stats| stats.tx_dropped);
        })?;
        Ok(dropped)
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

    /// Returns the name and the drops of every interface of the namespace, by index.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn dropped(&mut self) -> Result<HashMap<u32, Dropped>> {
        let request = rt_link::Request::new().op_getlink_dump(&Default::default());
        let mut found = HashMap::new();
        let what = || "list interfaces".into();
        self.exchange(&request, what, |(header, attrs)| {
            let device = Dropped {
                name: attrs.get_ifname().map(text).unwrap_or_default(),
                on_transmit: attrs.get_stats64().map_or(0, |stats| stats.tx_dropped),
                ..Dropped::default()
            };
            found.insert(index(header.ifi_index), device);
        })?;
        self.each_qdisc(|ifindex, kind, drops| {
            let Some(device) = found.get_mut(&ifindex) else {
                return;
            };
            if kind == "fq" || kind.starts_with(OWN_KIND) {
                device.by_engine += drops;
            }
            if kind != "clsact" {
                device.by_qdiscs += drops;
            }
        })?;
        Ok(found)
    }

    /// Sets the limits of segmentation offload.
    pub fn set_gso(&mut self, ifindex: u32, gso: &Gso) -> Result<()> {
        // Not in one message with max_size: max_size also sets ipv4_max_size (up to 64 KiB), and
        // the kernel determines the order.
        let mut request = rt_link::Request::new().op_setlink_do(&header(ifindex));
        request
            .encode()
            .push_gso_max_segs(gso.max_segs)
            .push_gso_max_size(gso.max_size);
        let name = self.name_of(ifindex);
        let what = || format!("set gso_max_segs {} on {name}", gso.max_segs);
        self.ack(&request, what)?;
        let Some(size) = gso.ipv4_max_size else {
            return Ok(());
        };
        let mut request = rt_link::Request::new().op_setlink_do(&header(ifindex));
        request.encode().push_gso_ipv4_max_size(size);
        self.ack(&request, || {
            format!("set gso_ipv4_max_size {size} on {name}")
        })
    }

    fn set_flags(&mut self, ifindex: u32, flags: u32, change: u32, what: &str) -> Result<()> {
        let request = rt_link::Request::new().op_setlink_do(&Ifinfomsg {
            ifi_flags: flags,
            ifi_change: change,
            ..header(ifindex)
        });
        let name = self.name_of(ifindex);
        self.ack(&request, || format!("{what} {name}"))
    }

    /// Brings the interface up or down.
    ///
    /// # Errors
    /// The answer of the kernel.
    pub fn set_up(&mut self, ifindex: u32, up: bool) -> Result<()> {
        let bit = flag(libc::IFF_UP);
        let (flags, what) = if up {
            (bit, "bring up")
        } else {
            (0, "bring down")
        };
        self.set_flags(ifindex, flags, bit, what)
    }

    /// Sets the link-layer address.
    ///
    /// # Errors
    /// The answer of the kernel.
    pub fn set_mac(&mut self, ifindex: u32, mac: &[u8; 6]) -> Result<()> {
        let mut request = rt_link::Request::new().op_setlink_do(&header(ifindex));
        request.encode().push_address(mac);
        let name = self.name_of(ifindex);
        self.ack(&request, || format!("set the address of {name}"))
    }

    /// Sets the number of packets that a device's queue holds.
    ///
    /// # Errors
    /// The answer of the kernel.
    pub fn set_txqlen(&mut self, ifindex: u32, packets: u32) -> Result<()> {
        let mut request = rt_link::Request::new().op_setlink_do(&header(ifindex));
        request.encode().push_txqlen(packets);
        let name = self.name_of(ifindex);
        self.ack(&request, || format!("set txqueuelen {packets} on {name}"))
    }

    /// Sets the size of the largest packet in bytes, without the link header.
    ///
    /// # Errors
    /// The answer of the kernel.
    pub fn set_mtu(&mut self, ifindex: u32, mtu: u32) -> Result<()> {
        let mut request = rt_link::Request::new().op_setlink_do(&header(ifindex));
        request.encode().push_mtu(mtu);
        let name = self.name_of(ifindex);
        self.ack(&request, || format!("set mtu {mtu} on {name}"))
    }

    /// Keeps a device that emud created from sending packets: no ARP and no IPv6 address, and
    /// therefore no neighbour discovery and no multicast reports. Call it before the device goes
    /// up.
    pub fn silence(&mut self, ifindex: u32) -> Result<()> {
        let name = self.link_by_index(ifindex)?.name;
        self.set_flags(
            ifindex,
            flag(libc::IFF_NOARP),
            flag(libc::IFF_NOARP),
            "set noarp on",
        )?;
        // No IPv6 in the kernel or on a device with an MTU below 1280.
        let conf = Path::new("/proc/sys/net/ipv6/conf").join(&name);
        if !conf.exists() {
            return Ok(());
        }
        let file = conf.join("disable_ipv6");
        std::fs::write(&file, "1")
            .map_err(|e| NetlinkError::io(format!("write 1 to {}", file.display()), &e))?;
        let mut request = rt_link::Request::new().op_setlink_do(&header(ifindex));
        request
            .encode()
            .nested_af_spec()
            .nested_inet6()
            .push_addr_gen_mode(IN6_ADDR_GEN_MODE_NONE)
            .end_nested()
            .end_nested();
        self.ack(&request, || format!("set addrgenmode none on {name}"))
    }

    /// Adds an ifb with one queue, silenced and down, and returns its index.
    ///
    /// # Errors
    /// [`NetlinkError::Unavailable`] if the kernel has no ifb.
    pub fn add_ifb(&mut self, name: &str, options: &IfbOptions) -> Result<u32> {
        let mut request = rt_link::Request::new()
            .set_create()
            .set_excl()
            .op_newlink_do(&header(0));
        let mut attrs = request
            .encode()
            .push_ifname_bytes(name.as_bytes())
            .push_mtu(options.mtu)
            .push_txqlen(options.txqlen)
            .push_num_tx_queues(1)
            .push_num_rx_queues(1);
        if let Some(gso) = options.gso {
            attrs = attrs
                .push_gso_max_segs(gso.max_segs)
                .push_gso_max_size(gso.max_size);
            if let Some(size) = gso.ipv4_max_size {
                attrs = attrs.push_gso_ipv4_max_size(size);
            }
        }
        attrs.nested_linkinfo().push_kind(c"ifb").end_nested();
        self.ack(&request, || format!("add ifb {name}"))?;
        let made = self.link(name)?;
        if let Err(err) = self.silence(made.index) {
            self.delete_link(made.index)?;
            return Err(err);
        }
        Ok(made.index)
    }

    /// Adds a plain device of `kind`; with `ifindex` 0 the kernel picks an index.
    pub(super) fn add_plain(&mut self, kind: &CStr, like: &Link, ifindex: u32) -> Result<()> {
        let mut request = rt_link::Request::new()
            .set_create()
            .set_excl()
            .op_newlink_do(&header(ifindex));
        request
            .encode()
            .push_ifname_bytes(like.name.as_bytes())
            .push_mtu(like.mtu)
            .push_txqlen(like.txqlen)
            .push_num_tx_queues(like.num_tx_queues)
            .push_num_rx_queues(1)
            .nested_linkinfo()
            .push_kind(kind)
            .end_nested();
        self.ack(&request, || {
            format!("add {} {}", kind.to_string_lossy(), like.name)
        })
    }

    /// Deletes the interface.
    ///
    /// # Errors
    /// The answer of the kernel.
    pub fn delete_link(&mut self, ifindex: u32) -> Result<()> {
        if ifindex == 0 {
            return Err(NetlinkError::Os(OsFailure {
                attempted: "delete interface 0".into(),
                errno: libc::EINVAL,
                message: String::new(),
            }));
        }
        let name = self.name_of(ifindex);
        let request = rt_link::Request::new().op_dellink_do(&header(ifindex));
        self.ack(&request, || format!("delete {name}"))
    }
}
