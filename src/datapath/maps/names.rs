// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses that DNS answers on the path gave for names of rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{DatapathError, Maps, at};
use crate::abi;
use crate::profile::hosts;

impl Maps {
    /// Sets whose answers count.
    pub fn set_resolvers(&mut self, all: &[IpAddr]) -> Result<(), DatapathError> {
        let mut value = abi::emud_resolvers::default();
        for (address, slot) in all.iter().zip(&mut value.resolver) {
            *slot = of_ip(*address);
            value.count += 1;
        }
        (self.resolvers.set(0, value, 0)).map_err(at("emud_resolvers"))
    }

    /// Returns whose answers count.
    pub fn resolvers(&self) -> Result<Vec<IpAddr>, DatapathError> {
        let value = self.resolvers.get(&0, 0).map_err(at("emud_resolvers"))?;
        let all = value.resolver.iter().take(value.count as usize);
        Ok(all.map(ip_of).collect())
    }

    /// Returns the addresses that answers gave for a name, in order.
    pub fn addresses_of(&self, name: &str) -> Result<Vec<IpAddr>, DatapathError> {
        let hash = hosts::hash(name).unwrap_or(0);
        let mut found = vec![];
        for address in self.addresses.keys() {
            let address = address.map_err(at("emud_addresses"))?;
            if address.name & !1 == hash {
                found.push(ip_of(&address));
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

fn of_ip(ip: IpAddr) -> abi::emud_address {
    let mut bytes = [0; 16];
    match ip {
        IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes = ip.octets(),
    }
    abi::emud_address {
        ip: abi::address_words(bytes),
        name: ip.is_ipv6().into(),
    }
}

fn ip_of(address: &abi::emud_address) -> IpAddr {
    let bytes = abi::address_bytes(address.ip);
    match address.name & 1 {
        0 => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
        _ => Ipv6Addr::from(bytes).into(),
    }
}
