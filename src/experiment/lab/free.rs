// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds unused names and networks on the host.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::LabError;
use crate::experiment::scenario::overlap;
use crate::host::lock::{About, Lock, Range, Sharing};
use crate::host::random;
use crate::netlink::Netlink;

/// Shared address space (RFC 6598), which is rarely routed inside a host; and if a VPN has taken
/// all of it, the range for benchmarks (RFC 2544).
const RANGES: [(Ipv4Addr, u8); 2] = [
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
];
/// Maximum number of candidates: more than the number of simultaneous wires to a host.
const TRIES: u32 = 256;

/// A network reserved against other emud processes on this host for the lifetime of this value.
#[derive(Debug)]
pub struct Reserved {
    /// Network of the wire, with a prefix of 16 to 30 bits.
    pub network: Ipv4Net,
    /// Whether this is the network that every run gets if nothing uses it. Random decisions depend
    /// on the addresses of a flow, so a run in a different network loses other packets.
    pub usual: bool,
    /// The kernel releases it when this process ends.
    _held: Lock,
}

/// Returns a network for a wire to the host: the first one that overlaps with no address or route
/// of the host except a default route. `prefix_len` is from 16 to 30.
///
/// # Errors
/// [`LabError::NoFreeNetwork`] if none was found.
pub fn free_network(prefix_len: u8) -> Result<Reserved, LabError> {
    let tries = RANGES
        .into_iter()
        .flat_map(|(start, _)| (0..TRIES).map_while(move |n| nth(start, prefix_len, n)));
    let first = |taken: &[Ipv4Net]| {
        let mut tries = tries.clone();
        Ok::<_, LabError>(tries.find(|network| overlapping(taken, *network).is_none()))
    };
    reserve_first(first)?.ok_or(LabError::NoFreeNetwork(prefix_len))
}

/// Reserves the network that a plan has for its wire to the host.
///
/// # Errors
/// [`LabError::NetworkInUse`] if it overlaps with an address or route of the host except a default
/// route, or another emud process has it.
pub fn this_network(network: Ipv4Net) -> Result<Reserved, LabError> {
    let in_use = |other| LabError::NetworkInUse { network, other };
    let first = |taken: &[Ipv4Net]| match overlapping(taken, network) {
        Some(other) => Err(in_use(other)),
        None => Ok(Some(network)),
    };
    reserve_first(first)?.ok_or(in_use(network))
}

/// Reserves what `first` returns as the first network that overlaps with none of these. It is
/// called again if another emud process has that one; `None` ends the search.
///
/// # Errors
/// Those of `first`; the kernel does not report what the host uses.
pub fn reserve_first<E: From<LabError>>(
    mut first: impl FnMut(&[Ipv4Net]) -> Result<Option<Ipv4Net>, E>,
) -> Result<Option<Reserved>, E> {
    let Some(usual) = first(&[])? else {
        return Ok(None);
    };
    let mut taken = in_use()?;
    while let Some(network) = first(&taken)? {
        if let Some(held) = reserve(network)? {
            return Ok(Some(Reserved {
                network,
                usual: network == usual,
                _held: held,
            }));
        }
        taken.push(network);
    }
    Ok(None)
}

fn in_use() -> Result<Vec<Ipv4Net>, LabError> {
    let mut netlink = Netlink::open()?;
    let routes = netlink.routes()?.into_iter().map(|route| route.to);
    let mut taken: Vec<Ipv4Net> = routes.filter(|to| to.prefix_len() > 0).collect();
    taken.extend(netlink.addresses()?);
    Ok(taken)
}

fn overlapping(taken: &[Ipv4Net], network: Ipv4Net) -> Option<Ipv4Net> {
    let mut others = taken.iter().copied();
    others.find(|other| overlap(*other, network))
}

/// Returns `None` if another emud process has it.
fn reserve(network: Ipv4Net) -> Result<Option<Lock>, LabError> {
    let taken = || {
        let lock = Lock::open(About::Network)?;
        let addresses = 1 << (32 - network.prefix_len());
        // No two networks of RANGES differ only in the first bit, which a range ignores.
        let range = Range::here(network.network().to_bits(), addresses)?;
        let taken = lock.try_take(range, Sharing::Exclusive)?;
        Ok(taken.then_some(lock))
    };
    taken().map_err(|e: std::io::Error| LabError::system(format!("reserve {network}"), e))
}

/// Returns a name for the host's end of a wire: `emud-` and four digits.
///
/// # Errors
/// The kernel does not report whether the interface exists.
pub fn free_interface() -> Result<String, LabError> {
    let mut netlink = Netlink::open()?;
    loop {
        let bytes = random().map_err(|e| LabError::system("get a random number", e))?;
        let name = format!("emud-{:04x}", u16::from_ne_bytes(bytes));
        if netlink.find_link(&name)?.is_none() {
            return Ok(name);
        }
    }
}

/// Returns the networks of a range in order; `None` for an unsuitable length.
fn nth(start: Ipv4Addr, prefix_len: u8, number: u32) -> Option<Ipv4Net> {
    if !(16..=30).contains(&prefix_len) {
        return None;
    }
    let address = start.to_bits() + (number << (32 - u32::from(prefix_len)));
    Ipv4Net::new(address.into(), prefix_len).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_follow_one_another_in_their_range() {
        for (start, range) in RANGES {
            let all = Ipv4Net::new(start, range).unwrap();
            for len in [24, 30] {
                let network = |number| nth(start, len, number).unwrap();
                assert_eq!(network(0).network(), start);
                assert!(!overlap(network(0), network(1)));
                assert!(all.contains(&network(TRIES - 1)));
            }
            assert_eq!((nth(start, 31, 0), nth(start, 9, 0)), (None, None));
        }
    }

    #[test]
    fn overlap_is_mutual() {
        let net = |text: &str| text.parse::<Ipv4Net>().unwrap();
        let small = net("100.64.8.4/30");
        for (other, expected) in [
            ("100.64.0.0/10", true),
            ("100.64.8.5/32", true),
            ("100.64.8.8/30", false),
        ] {
            assert_eq!(overlap(small, net(other)), expected, "{other}");
            assert_eq!(overlap(net(other), small), expected, "{other}");
        }
    }
}
