// SPDX-License-Identifier: GPL-2.0-only
//! Names and networks that nobody on the host uses.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use rustix::rand::{GetRandomFlags, getrandom};

use super::LabError;
use crate::netlink::{Netlink, NetlinkError};

/// Shared address space (RFC 6598), which hardly anybody routes inside of a
/// host, and where a VPN has taken all of it, that for benchmarks (RFC 2544).
const RANGES: [(Ipv4Addr, u8); 2] = [
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
];
const TRIES: usize = 256;

/// A network for a wire to the host, at random, so that two emuds that ask at
/// the same time get two; it overlaps with no address or route of the host's
/// but a default route. `prefix_len` from 16 to 30.
///
/// # Errors
/// [`LabError::NoFreeNetwork`] if none was found.
pub fn free_network(prefix_len: u8) -> Result<Ipv4Net, LabError> {
    let mut netlink = Netlink::open()?;
    let routes = netlink.routes()?.into_iter().map(|route| route.to);
    let mut taken: Vec<Ipv4Net> = routes.filter(|to| to.prefix_len() > 0).collect();
    taken.extend(netlink.addresses()?);
    for (start, range) in RANGES {
        for _ in 0..TRIES {
            let network = within(start, range, prefix_len, random()?)
                .ok_or(LabError::NoFreeNetwork(prefix_len))?;
            if !taken.iter().any(|other| overlap(*other, network)) {
                return Ok(network);
            }
        }
    }
    Err(LabError::NoFreeNetwork(prefix_len))
}

/// A name for the host's end of a wire: `emud-` and four digits.
///
/// # Errors
/// The kernel's, if it does not say whether there is such an interface.
pub fn free_interface() -> Result<String, LabError> {
    let mut netlink = Netlink::open()?;
    loop {
        let name = format!("emud-{:04x}", random()? >> 16);
        match netlink.link(&name) {
            Ok(_) => {}
            Err(NetlinkError::NoInterface(_)) => return Ok(name),
            Err(e) => return Err(e.into()),
        }
    }
}

fn random() -> Result<u32, LabError> {
    let mut bytes = [0; 4];
    getrandom(&mut bytes, GetRandomFlags::empty())
        .map_err(|e| LabError::system("get a random number", e))?;
    Ok(u32::from_ne_bytes(bytes))
}

/// The network that `number` picks; none for an unsuitable length.
fn within(start: Ipv4Addr, range: u8, prefix_len: u8, number: u32) -> Option<Ipv4Net> {
    if !(16..=30).contains(&prefix_len) {
        return None;
    }
    let address = start.to_bits() | (number >> range);
    Some(Ipv4Net::new(address.into(), prefix_len).ok()?.trunc())
}

fn overlap(a: Ipv4Net, b: Ipv4Net) -> bool {
    a.contains(&b.network()) || b.contains(&a.network())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_range() {
        let (start, range) = RANGES[0];
        let all = Ipv4Net::new(start, range).unwrap();
        for number in [0, 1, 0x8000_0000, u32::MAX] {
            for len in [16, 24, 30] {
                let network = within(start, range, len, number).unwrap();
                assert!(all.contains(&network), "{network}");
                assert_eq!(network, network.trunc());
            }
        }
        assert_eq!(within(start, range, 31, 0), None);
        assert_eq!(within(start, range, 9, 0), None);
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
