// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames as a station's TAP hands them over: a virtio header, Ethernet, the packet, and the stamp.

use crate::datapath::engine::hold::frame::VNET_LEN;

/// Ethernet addresses, without VLAN tag, and the type.
const ETHERNET_LEN: usize = 14;
const STAMP_LEN: usize = 8;
/// A stamp older than this is none: packets do not wait between their node and the TAP.
pub(super) const OLDEST_STAMP_NS: u64 = 10_000_000_000;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;

/// Returns the address of a station: locally administered, the same in every run.
pub fn address(medium: u8, station: u16) -> [u8; 6] {
    let [high, low] = station.to_be_bytes();
    [0x02, 0x65, 0x6d, medium, high, low]
}

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    All,
    Station(u16),
}

/// Why a frame never gets on air.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reject {
    /// Its source is not the station.
    Foreign,
    /// No station of the medium has its destination.
    Unknown,
    /// Too short, too long, or with a VLAN tag.
    Malformed,
}

/// A frame that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    pub to: Destination,
    /// Bytes to hand over to receivers, from the virtio header on.
    pub len: usize,
    /// Bytes from the IP header on.
    pub packet: u32,
    /// DS field; 0 without IP.
    pub ds: u8,
    pub stamp_ns: Option<u64>,
}

/// Reads a frame of station `from` of `stations`.
///
/// # Errors
/// Why it is dropped.
pub(super) fn read(
    raw: &[u8],
    (medium, from, stations): (u8, u16, u16),
    now_ns: u64,
) -> Result<Received, Reject> {
    let frame = raw.get(VNET_LEN..).ok_or(Reject::Malformed)?;
    let (ethernet, behind) = frame
        .split_at_checked(ETHERNET_LEN)
        .ok_or(Reject::Malformed)?;
    let kind = u16::from_be_bytes([ethernet[12], ethernet[13]]);
    if kind == VLAN || kind == SERVICE_VLAN {
        return Err(Reject::Malformed);
    }
    if ethernet[6..12] != address(medium, from) {
        return Err(Reject::Foreign);
    }
    let (packet, stamp_ns) = apart(kind, behind, now_ns);
    if packet > super::MTU as usize {
        return Err(Reject::Malformed);
    }
    Ok(Received {
        to: destination(&ethernet[..6], (medium, from, stations))?,
        len: VNET_LEN + ETHERNET_LEN + packet,
        packet: packet as u32,
        ds: ds(kind, behind),
        stamp_ns,
    })
}

fn ds(kind: u16, packet: &[u8]) -> u8 {
    match (kind, packet) {
        (IPV4, [_, ds, ..]) => *ds,
        (IPV6, [first, second, ..]) => first << 4 | second >> 4,
        _ => 0,
    }
}

fn destination(to: &[u8], (medium, from, stations): (u8, u16, u16)) -> Result<Destination, Reject> {
    if to[0] & 1 == 1 {
        return Ok(Destination::All);
    }
    let station = u16::from_be_bytes([to[4], to[5]]);
    let known = station < stations && station != from && to == address(medium, station);
    match known {
        true => Ok(Destination::Station(station)),
        false => Err(Reject::Unknown),
    }
}

/// Returns the length of the packet without the stamp, and the stamp. What bypasses the program has
/// none. The length in the packet decides where there is one; elsewhere, and after padding,
/// whether the last 8 bytes can be a time.
fn apart(kind: u16, behind: &[u8], now_ns: u64) -> (usize, Option<u64>) {
    let said = |at: usize| {
        let field = behind.get(at..at + 2)?;
        Some(usize::from(u16::from_be_bytes([field[0], field[1]])))
    };
    let inside = match kind {
        IPV4 => said(2),
        IPV6 => said(4).map(|payload| payload + 40),
        ARP => Some(28),
        _ => None,
    };
    let unstamped = behind.len().checked_sub(STAMP_LEN);
    let Some(len) = unstamped.filter(|len| *len >= inside.unwrap_or(0)) else {
        return (behind.len(), None);
    };
    let mut stamp = [0; STAMP_LEN];
    stamp.copy_from_slice(&behind[len..]);
    let stamp_ns = u64::from_ne_bytes(stamp);
    let recent = stamp_ns <= now_ns && stamp_ns > now_ns.saturating_sub(OLDEST_STAMP_NS);
    match recent && stamp_ns > 0 {
        true => (len, Some(stamp_ns)),
        false => (behind.len(), None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    const NOW: u64 = 50_000_000_000;
    const ME: (u8, u16, u16) = (1, 3, 5);

    fn frame(to: [u8; 6], from: [u8; 6], kind: u16, packet: &[u8], stamp: Option<u64>) -> Vec<u8> {
        let mut raw = vec![0; VNET_LEN];
        raw.extend(to);
        raw.extend(from);
        raw.extend(kind.to_be_bytes());
        raw.extend(packet);
        raw.extend(stamp.into_iter().flat_map(u64::to_ne_bytes));
        raw
    }

    fn ipv4(len: usize) -> Vec<u8> {
        let mut packet = vec![0x45; len];
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet
    }

    #[test]
    fn the_stamp_is_taken_off() {
        let of = |raw: &[u8]| {
            let received = read(raw, ME, NOW).unwrap();
            (received.packet, received.stamp_ns)
        };
        let (to, from) = (address(1, 0), address(1, 3));
        let stamp = Some(NOW - 700);
        assert_eq!(of(&frame(to, from, IPV4, &ipv4(84), stamp)), (84, stamp));
        // What bypassed the program; and one whose last bytes happen to be a time.
        assert_eq!(of(&frame(to, from, IPV4, &ipv4(84), None)), (84, None));
        let mut packet = ipv4(84);
        packet[76..].copy_from_slice(&(NOW - 1).to_ne_bytes());
        assert_eq!(of(&frame(to, from, IPV4, &packet, None)), (84, None));
        assert_eq!(
            of(&frame([0xff; 6], from, ARP, &[1; 28], stamp)),
            (28, stamp)
        );
        // Padded; of a type without a length; from the future.
        let padded = [ipv4(28), vec![0; 18]].concat();
        assert_eq!(of(&frame(to, from, IPV4, &padded, stamp)), (46, stamp));
        assert_eq!(of(&frame(to, from, 0x88cc, &[1; 50], stamp)), (50, stamp));
        assert_eq!(
            of(&frame(to, from, 0x88cc, &[1; 50], Some(NOW + 1))),
            (58, None)
        );
    }

    #[test]
    fn the_ds_field_is_that_of_ip() {
        let of = |kind, packet: &[u8]| {
            let frame = frame(address(1, 0), address(1, 3), kind, packet, None);
            read(&frame, ME, NOW).unwrap().ds
        };
        let mut packet = ipv4(84);
        packet[1] = 0x10;
        assert_eq!(of(IPV4, &packet), 0x10);
        assert_eq!(of(IPV6, &[0x6b, 0x80]), 0xb8);
        assert_eq!(of(IPV6, &[0x6b]), 0);
        assert_eq!(of(ARP, &packet), 0);
    }

    #[test]
    fn what_is_not_the_stations_is_dropped() {
        let of = |to, from, kind, len| read(&frame(to, from, kind, &ipv4(len), None), ME, NOW);
        let (to, own) = (address(1, 0), address(1, 3));
        assert_eq!(of(to, own, IPV4, 84).unwrap().to, Destination::Station(0));
        let group = [0x33, 0x33, 0, 0, 0, 1];
        assert_eq!(of(group, own, IPV6, 84).unwrap().to, Destination::All);
        assert_eq!(of(to, address(1, 2), IPV4, 84), Err(Reject::Foreign));
        assert_eq!(of(to, address(0, 3), IPV4, 84), Err(Reject::Foreign));
        for to in [address(1, 5), own, address(2, 0), [0x02, 1, 2, 3, 0, 0]] {
            assert_eq!(of(to, own, IPV4, 84), Err(Reject::Unknown));
        }
        assert_eq!(of(to, own, VLAN, 84), Err(Reject::Malformed));
        assert_eq!(of(to, own, IPV4, 1501), Err(Reject::Malformed));
        assert!(of(to, own, IPV4, 1500).is_ok());
        for len in 0..VNET_LEN + ETHERNET_LEN {
            assert_eq!(read(&vec![0; len], ME, NOW), Err(Reject::Malformed));
        }
    }

    /// Some of them are nearly frames of the station.
    fn garbage() -> impl Strategy<Value = Vec<u8>> {
        let to = prop_oneof![any::<[u8; 6]>(), (0..8_u16).prop_map(|n| address(1, n))];
        let from = prop_oneof![any::<[u8; 6]>(), Just(address(1, 3))];
        let kind = prop_oneof![
            any::<u16>(),
            proptest::sample::select(vec![IPV4, ARP, IPV6, VLAN, SERVICE_VLAN]),
        ];
        let rest = proptest::collection::vec(any::<u8>(), 0..1600);
        let stamp = proptest::option::of(NOW - 20_000_000_000..NOW + 5);
        let whole = (to, from, kind, rest, stamp)
            .prop_map(|(to, from, kind, rest, stamp)| frame(to, from, kind, &rest, stamp));
        prop_oneof![proptest::collection::vec(any::<u8>(), 0..1600), whole]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 1024,
            rng_seed: RngSeed::Fixed(1),
            ..ProptestConfig::default()
        })]

        /// What gets on air is a packet of the station, for another one.
        #[test]
        fn garbage_is_dropped(raw in garbage()) {
            let Ok(received) = read(&raw, ME, NOW) else {
                return Ok(());
            };
            prop_assert_eq!(&raw[VNET_LEN + 6..VNET_LEN + 12], address(1, 3));
            prop_assert!(received.packet <= crate::datapath::radio::MTU && received.len <= raw.len());
            prop_assert_eq!(received.len, VNET_LEN + ETHERNET_LEN + received.packet as usize);
            let stamp = received.stamp_ns.map_or(0, |_| STAMP_LEN);
            prop_assert_eq!(received.len + stamp, raw.len());
            if let Destination::Station(to) = received.to {
                prop_assert!(to < ME.2 && to != ME.1);
                prop_assert_eq!(&raw[VNET_LEN..VNET_LEN + 6], address(1, to));
            }
        }
    }
}
