// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of interfaces: their parameters, new ones, and their removal.

use std::ffi::CStr;

use netlink_bindings::rt_link::{self, Ifinfomsg, PushLinkAttrs};

use super::link::{Gso, Link, flag, header};
use super::{Netlink, NetlinkError, OsFailure, Result, setting};

const IN6_ADDR_GEN_MODE_NONE: u8 = 1;

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

impl Netlink {
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
    pub fn set_up(&mut self, ifindex: u32, up: bool) -> Result<()> {
        let bit = flag(libc::IFF_UP);
        let (flags, what) = if up {
            (bit, "bring up")
        } else {
            (0, "bring down")
        };
        self.set_flags(ifindex, flags, bit, what)
    }

    fn set(
        &mut self,
        ifindex: u32,
        encode: impl FnOnce(PushLinkAttrs<&mut Vec<u8>>),
        what: impl Fn(&str) -> String,
    ) -> Result<()> {
        let mut request = rt_link::Request::new().op_setlink_do(&header(ifindex));
        encode(request.encode());
        let name = self.name_of(ifindex);
        self.ack(&request, || what(&name))
    }

    /// Sets the link-layer address.
    pub fn set_mac(&mut self, ifindex: u32, mac: &[u8; 6]) -> Result<()> {
        let what = |name: &str| format!("set the address of {name}");
        self.set(ifindex, |attrs| drop(attrs.push_address(mac)), what)
    }

    /// Sets the alias of the interface.
    pub fn set_alias(&mut self, ifindex: u32, alias: &str) -> Result<()> {
        let what = |name: &str| format!("set the alias of {name}");
        let encode = |attrs: PushLinkAttrs<&mut Vec<u8>>| {
            drop(attrs.push_ifalias_bytes(alias.as_bytes()));
        };
        self.set(ifindex, encode, what)
    }

    /// Sets the number of packets that a device's queue holds.
    pub fn set_txqlen(&mut self, ifindex: u32, packets: u32) -> Result<()> {
        let what = |name: &str| format!("set txqueuelen {packets} on {name}");
        self.set(ifindex, |attrs| drop(attrs.push_txqlen(packets)), what)
    }

    /// Sets the size of the largest packet in bytes, without the link header.
    pub fn set_mtu(&mut self, ifindex: u32, mtu: u32) -> Result<()> {
        let what = |name: &str| format!("set mtu {mtu} on {name}");
        self.set(ifindex, |attrs| drop(attrs.push_mtu(mtu)), what)
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
        let disabled = setting::disable_ipv6(&name)
            .map_err(|e| NetlinkError::io(format!("disable IPv6 on {name}"), &e))?;
        if !disabled {
            return Ok(());
        }
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
