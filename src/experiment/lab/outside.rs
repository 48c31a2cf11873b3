// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection of a node through the host to the outside.

use ipnet::Ipv4Net;

use super::forwarding::Forwarding;
use super::{LabError, forwarding};
use crate::netlink::{Link, Masquerade, Netlink, NetlinkError, Translated};

const RT_TABLE_MAIN: u8 = libc::RT_TABLE_MAIN;

/// The result of connecting to the outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outside {
    /// Sentences about what is not available.
    pub notes: Vec<String>,
    /// Whether the host has a default route and forwards packets of nodes. This does not mean that
    /// a destination replies.
    pub reachable: bool,
}

/// Changes on the host for a node's connection, until they are restored.
pub(crate) struct Uplink {
    _nat: Masquerade,
    forwarding: Forwarding,
}

impl Uplink {
    /// Waits until forwarding is restored.
    pub(crate) fn restore(self) -> Result<(), LabError> {
        self.forwarding.restore()
    }
}

/// Makes the host forward packets of `network` that arrive at its interface `ours`.
pub(crate) fn open(
    host: &mut Netlink,
    ours: &str,
    network: Ipv4Net,
) -> Result<(Option<Uplink>, Outside), LabError> {
    let Some(device) = default_device(host)? else {
        return Ok((
            None,
            unreachable("the host has no default route over one device: nodes reach only the host"),
        ));
    };
    let nat = match Masquerade::add(ours, Translated::From(network)) {
        Err(NetlinkError::Unavailable(why)) => {
            let note = format!("{why}: nodes reach only the host");
            return Ok((None, unreachable(&note)));
        }
        made => made?,
    };
    forwarding::switch_on_own(ours)?;
    let uplink = Uplink {
        _nat: nat,
        forwarding: Forwarding::switch_on(&device)?,
    };
    let outside = Outside {
        notes: firewall_notes(host, ours)?,
        reachable: true,
    };
    Ok((Some(uplink), outside))
}

fn unreachable(note: &str) -> Outside {
    Outside {
        notes: vec![note.to_owned()],
        reachable: false,
    }
}

/// Returns the device of the host's default route.
fn default_device(host: &mut Netlink) -> Result<Option<Link>, LabError> {
    let routes = host.routes()?.into_iter().filter(|route| {
        route.table == RT_TABLE_MAIN
            && route.kind == libc::RTN_UNICAST
            && route.to.prefix_len() == 0
    });
    let Some(best) = routes.min_by_key(|route| route.metric) else {
        return Ok(None);
    };
    let Some(interface) = best.interface else {
        return Ok(None);
    };
    Ok(Some(host.link_by_index(interface)?))
}

/// emud does not change the host's firewall, but warns about it.
fn firewall_notes(host: &mut Netlink, ours: &str) -> Result<Vec<String>, LabError> {
    let drops = host.forward_drops()?;
    let mut notes: Vec<String> = drops
        .iter()
        .map(|drop| {
            format!(
                "the host's firewall (nf_tables, table {}, chain {}) drops packets that no rule accepts: \
                 nodes reach the outside only if it accepts packets from and to {ours}",
                drop.table, drop.chain
            )
        })
        .collect();
    // Rules of the old iptables, which nf_tables does not list.
    let names =
        std::fs::read_to_string("/proc/thread-self/net/ip_tables_names").unwrap_or_default();
    if names.lines().any(|name| name == "filter") {
        notes.push(format!(
            "the host has rules of iptables-legacy, which emud does not check: \
             their chain FORWARD has to accept packets from and to {ours}"
        ));
    }
    Ok(notes)
}
