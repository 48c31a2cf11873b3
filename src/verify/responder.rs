// SPDX-License-Identifier: MIT OR Apache-2.0
//! The responder: emud's sockets in the peer's namespace, or the peer's ICMP.

use std::net::{IpAddr, SocketAddr};
use std::thread;

use super::VerifyError;
use super::port::Port;
use crate::netlink::{self, Netlink, NetnsId};

/// Both ends of the link, each connected to the other.
pub struct Ends {
    pub here: Port,
    pub there: Port,
    pub peer: IpAddr,
    /// MTU of the interface at the other end.
    pub mtu: u32,
}

/// Opens both ends. A socket stays in the namespace in which it was opened, so only a short-lived
/// thread enters it.
///
/// # Errors
/// The namespace does not exist, or has no address in a common network.
pub fn open(interface: &str, netns: &str, peer: Option<IpAddr>) -> Result<Ends, VerifyError> {
    let networks = own_networks(interface)?;
    let here = netlink::identity()?;
    let (there, peer, mtu) = inside(netns, || {
        apart(here, netlink::identity()?, interface, netns)?;
        let peer = match peer {
            Some(peer) => peer,
            None => find(&networks, &addresses(None)?).ok_or_else(|| VerifyError::NoAddress {
                netns: netns.to_owned(),
                interface: interface.to_owned(),
            })?,
        };
        Ok((Port::udp(peer)?, peer, mtu_at(peer)?))
    })?;
    let any = match peer {
        IpAddr::V4(_) => IpAddr::from([0u8; 4]),
        IpAddr::V6(_) => IpAddr::from([0u16; 8]),
    };
    let here = Port::udp(any)?;
    here.by(interface)?;
    here.connect(there.local()?)?;
    let to = here.local()?;
    inside(netns, || there.connect(to))?;
    Ok(Ends {
        here,
        there,
        peer,
        mtu,
    })
}

/// Probes to an address of the same namespace never pass the link: the kernel loops them back.
fn apart(here: NetnsId, there: NetnsId, interface: &str, netns: &str) -> Result<(), VerifyError> {
    if here != there {
        return Ok(());
    }
    Err(VerifyError::SameNamespace {
        netns: netns.to_owned(),
        interface: interface.to_owned(),
    })
}

/// Opens a socket for echo requests to the peer.
///
/// # Errors
/// Permission or a route is missing.
pub fn open_icmp(interface: &str, peer: IpAddr) -> Result<Port, VerifyError> {
    let port = Port::icmp(peer)?;
    port.by(interface)?;
    port.connect(SocketAddr::new(peer, 0))?;
    Ok(port)
}

fn inside<T: Send>(
    netns: &str,
    work: impl FnOnce() -> Result<T, VerifyError> + Send,
) -> Result<T, VerifyError> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            netlink::enter(netns)?;
            work()
        });
        thread.join().map_err(|_| VerifyError::Thread)?
    })
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Network {
    address: IpAddr,
    mask: IpAddr,
}

impl Network {
    fn has(&self, other: IpAddr) -> bool {
        match (self.address, self.mask, other) {
            (IpAddr::V4(a), IpAddr::V4(m), IpAddr::V4(b)) => {
                a != b && a.to_bits() & m.to_bits() == b.to_bits() & m.to_bits()
            }
            (IpAddr::V6(a), IpAddr::V6(m), IpAddr::V6(b)) => {
                // Link-local ones need a zone.
                !a.is_unicast_link_local()
                    && a != b
                    && a.to_bits() & m.to_bits() == b.to_bits() & m.to_bits()
            }
            _ => false,
        }
    }
}

fn own_networks(interface: &str) -> Result<Vec<Network>, VerifyError> {
    addresses(Some(interface))
}

/// Returns the first address at the other end that is in a network of this interface; IPv4 before IPv6.
fn find(ours: &[Network], theirs: &[Network]) -> Option<IpAddr> {
    let mut near: Vec<IpAddr> = theirs
        .iter()
        .map(|n| n.address)
        .filter(|a| ours.iter().any(|n| n.has(*a)))
        .collect();
    near.sort_by_key(IpAddr::is_ipv6);
    near.first().copied()
}

/// Returns the MTU of the interface in this thread's namespace that has the address.
fn mtu_at(address: IpAddr) -> Result<u32, VerifyError> {
    let mut nl = Netlink::open()?;
    for link in nl.links()? {
        let mut its = addresses(Some(&link.name))?.into_iter();
        if its.any(|n| n.address == address) {
            return Ok(link.mtu);
        }
    }
    // Bound to it nevertheless: the MTU is unknown.
    Ok(u32::MAX)
}

/// Returns all addresses of this thread's namespace, or those of one interface.
fn addresses(interface: Option<&str>) -> Result<Vec<Network>, VerifyError> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: a valid location for the list.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(VerifyError::Socket {
            what: "list addresses",
            source: std::io::Error::last_os_error(),
        });
    }
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: a list as getifaddrs makes it, ended by a null pointer; names end with a zero.
    while let Some(entry) = unsafe { next.as_ref() } {
        let name = unsafe { std::ffi::CStr::from_ptr(entry.ifa_name) };
        // Of IPv4 it is the label, in which more may follow: `eth0:1`.
        let name = name.to_bytes().split(|byte| *byte == b':').next();
        if interface.is_none_or(|i| name == Some(i.as_bytes()))
            && let (Some(address), Some(mask)) =
                unsafe { (ip(entry.ifa_addr), ip(entry.ifa_netmask)) }
        {
            found.push(Network { address, mask });
        }
        next = entry.ifa_next;
    }
    // SAFETY: from getifaddrs, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// # Safety
/// Null, or a socket address as long as its family says.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's promise.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let of = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(IpAddr::from(of.sin_addr.s_addr.to_ne_bytes()))
            }
            libc::AF_INET6 => {
                let of = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(IpAddr::from(of.sin6_addr.s6_addr))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str, mask: &str) -> Network {
        Network {
            address: address.parse().unwrap(),
            mask: mask.parse().unwrap(),
        }
    }

    #[test]
    fn a_namespace_is_no_peer_of_its_own() {
        let netns = |inode| NetnsId { dev: 4, inode };
        assert!(apart(netns(1), netns(2), "va", "b").is_ok());
        let error = apart(netns(1), netns(1), "va", "a").unwrap_err();
        assert_eq!(error.exit_code(), 66);
        assert!(error.to_string().contains("--peer "), "{error}");
    }

    #[test]
    fn the_peer_is_the_other_address_of_the_network() {
        let ours = [network("10.77.0.1", "255.255.255.0")];
        let theirs = [
            network("127.0.0.1", "255.0.0.0"),
            network("10.78.0.2", "255.255.255.0"),
            network("10.77.0.1", "255.255.255.0"),
            network("10.77.0.2", "255.255.255.0"),
        ];
        assert_eq!(find(&ours, &theirs), Some("10.77.0.2".parse().unwrap()));
        assert_eq!(find(&ours, &theirs[..3]), None);
    }
}
