// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets that devices and their qdiscs dropped.

use std::collections::HashMap;

use netlink_bindings::rt_link::{self, IfStatsMsg};

use super::link::header;
use super::{Netlink, OWN_KIND, Result};

/// include/uapi/linux/if_link.h, as a bit.
const IFLA_STATS_LINK_64: u32 = 1;

/// The packets dropped at an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// By its qdiscs fq and those of emud.
    pub by_engine: u64,
    /// By all its qdiscs except clsact.
    pub by_qdiscs: u64,
    /// By the device on transmit.
    pub on_transmit: u64,
}

impl Netlink {
    /// Returns the number of packets that the device has dropped on transmit.
    ///
    /// # Errors
    /// [`super::NetlinkError::NoInterface`] if there is none.
    pub fn tx_dropped(&mut self, ifindex: u32) -> Result<u64> {
        self.device_dropped(ifindex).map(|[_, tx]| tx)
    }

    /// Returns the number of packets that the device has dropped on receive and on transmit.
    ///
    /// # Errors
    /// [`super::NetlinkError::NoInterface`] if there is none.
    pub(crate) fn device_dropped(&mut self, ifindex: u32) -> Result<[u64; 2]> {
        let request = rt_link::Request::new().op_getlink_do(&header(ifindex));
        let mut dropped = [0; 2];
        let what = || format!("read the counters of interface {ifindex}");
        self.exchange(&request, what, |(_, attrs)| {
            if let Ok(stats) = attrs.get_stats64() {
                dropped = [stats.rx_dropped, stats.tx_dropped];
            }
        })?;
        Ok(dropped)
    }

    /// Returns the drops of every interface of the namespace, by index.
    pub fn dropped(&mut self) -> Result<HashMap<u32, Dropped>> {
        // A list of links takes three times as long.
        let wanted = IfStatsMsg {
            filter_mask: IFLA_STATS_LINK_64,
            ..Default::default()
        };
        let request = rt_link::Request::new().op_getstats_dump(&wanted);
        let mut found = HashMap::new();
        let what = || "read the counters of all interfaces".into();
        self.exchange(&request, what, |(header, attrs)| {
            let device = Dropped {
                on_transmit: attrs.get_link_64().map_or(0, |stats| stats.tx_dropped),
                ..Dropped::default()
            };
            found.insert(header.ifindex, device);
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
}
