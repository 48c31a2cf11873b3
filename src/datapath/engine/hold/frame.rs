// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layout of a frame on the TAP, to the holder and back.
//!
//! ```text
//! to the holder:   vnet_hdr(10) emud_hold_hdr(24) [emud_hold_service(32)] dst src type ...
//! back:            vnet_hdr(10)                                          dst src [tags] type ...
//! ```

use std::mem::offset_of;

use crate::abi::{
    EMUD_HOLD_BY_SENDER, EMUD_HOLD_MAGIC, EMUD_HOLD_MAGIC_SUM, EMUD_HOLD_TAGS,
    EMUD_SERVICE_CORRUPTED, EMUD_SERVICE_L3, EMUD_SERVICE_LOST, EMUD_SERVICE_OVERTAKES,
    EMUD_SERVICE_RESET, emud_hold_hdr, emud_hold_service,
};

/// `struct virtio_net_hdr`, legacy layout, host byte order.
pub const VNET_LEN: usize = 10;
/// `struct emud_hold_hdr`.
const HOLD_LEN: usize = size_of::<emud_hold_hdr>();
/// `struct emud_hold_service`.
const SERVICE_LEN: usize = size_of::<emud_hold_service>();
/// The most that is in front of a frame.
pub const FRONT_LEN: usize = HOLD_LEN + SERVICE_LEN;

const DEPARTURE: usize = VNET_LEN + offset_of!(emud_hold_hdr, departure_ns);
const MAGIC: usize = VNET_LEN + offset_of!(emud_hold_hdr, magic);
const TAGS: usize = VNET_LEN + offset_of!(emud_hold_hdr, tag);
const NUMBER: usize = VNET_LEN + offset_of!(emud_hold_hdr, service);
const SERVICE: usize = VNET_LEN + HOLD_LEN;

const ADDRESSES_LEN: usize = 12;
const ETHERNET_LEN: usize = 14;
const TAG_LEN: usize = 4;

const VNET_GSO_TYPE: usize = 1;
const VNET_CSUM_START: usize = 6;
const VNET_CSUM_OFFSET: usize = 8;
const VNET_F_NEEDS_CSUM: u8 = 1;

/// Why a frame cannot be sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum Malformed {
    #[error("shorter than its headers")]
    Short,
    #[error("the frame has no emud header")]
    Magic,
    #[error("the frame is a super-packet, although segmentation offload is disabled")]
    SuperPacket,
    #[error("the checksum starts inside emud's header")]
    Checksum,
}

/// A frame ready to be written back: `buffer[start..]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rewritten {
    /// When to write it, CLOCK_MONOTONIC.
    pub departure_ns: u64,
    /// Whether its sender holds it back for long (SO_TXTIME).
    pub by_sender: bool,
    /// Offset of the vnet header.
    pub start: usize,
    /// It waits in a class of a bottleneck first.
    pub service: Option<Service>,
}

/// Figures of a frame for a bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// Number of the class, from 1.
    pub number: u32,
    /// Time of arrival at the classifier, CLOCK_MONOTONIC ns.
    pub arrival_ns: u64,
    /// Departure without the wait, as [`Rewritten::departure_ns`].
    pub departure_ns: u64,
    /// The same of a copy; 0: there is none.
    pub copy_ns: u64,
    /// Number of the propagation path that the frame takes after the bottleneck.
    pub path: u32,
    /// Length on the wire.
    pub bytes: u32,
    /// Whether the link loses the frame after the bottleneck.
    pub lost: bool,
    /// Whether the frame may overtake others after the bottleneck.
    pub overtakes: bool,
    /// Whether the link damages the frame after the bottleneck.
    pub corrupted: bool,
    /// Whether the link makes a reset of it.
    pub reset: bool,
    /// Number of the link.
    pub link: u8,
    /// Length as the link counts it, without overhead.
    pub own_bytes: usize,
}

/// Reads the figures for a bottleneck. `frame_len`: length of the frame that is written back.
fn service(read: &[u8], number: u32, departure_ns: u64, frame_len: usize) -> Option<Service> {
    let long = |at: usize| array(read, SERVICE + at).map(u64::from_ne_bytes);
    let word = |at: usize| array(read, SERVICE + at).map(u32::from_ne_bytes);
    let short = |at: usize| array(read, SERVICE + at).map(u16::from_ne_bytes);
    let byte = |at: usize| read.get(SERVICE + at).copied();
    let flags = u32::from(byte(offset_of!(emud_hold_service, flags))?);
    // The TAP has copied the header of a train to each of its packets.
    let full_len = usize::from(short(offset_of!(emud_hold_service, full_len))?);
    let bytes = match frame_len < full_len {
        true => offset_of!(emud_hold_service, last_bytes),
        false => offset_of!(emud_hold_service, bytes),
    };
    Some(Service {
        number,
        arrival_ns: long(offset_of!(emud_hold_service, arrival_ns))?,
        departure_ns,
        copy_ns: long(offset_of!(emud_hold_service, copy_ns))?,
        path: word(offset_of!(emud_hold_service, path))?,
        bytes: word(bytes)?,
        lost: flags & EMUD_SERVICE_LOST != 0,
        overtakes: flags & EMUD_SERVICE_OVERTAKES != 0,
        corrupted: flags & EMUD_SERVICE_CORRUPTED != 0,
        reset: flags & EMUD_SERVICE_RESET != 0,
        link: byte(offset_of!(emud_hold_service, link))?,
        own_bytes: match flags & EMUD_SERVICE_L3 {
            0 => frame_len,
            _ => frame_len - ETHERNET_LEN,
        },
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Converts a frame read from the TAP in place to the frame that is written back: removes emud's
/// header, inserts VLAN tags into the frame, and shifts the checksum's offset.
pub fn rewrite(read: &mut [u8]) -> Result<Rewritten, Malformed> {
    if read.len() < VNET_LEN + HOLD_LEN + ETHERNET_LEN {
        return Err(Malformed::Short);
    }
    let departure_ns = array(read, DEPARTURE)
        .map(u64::from_ne_bytes)
        .ok_or(Malformed::Short)?;
    let magic = array(read, MAGIC)
        .map(u32::from_ne_bytes)
        .ok_or(Malformed::Short)?;
    let tags: [u8; EMUD_HOLD_TAGS as usize * TAG_LEN] =
        array(read, TAGS).ok_or(Malformed::Short)?;
    let by_sender = magic & EMUD_HOLD_BY_SENDER != 0;
    let magic = magic & !EMUD_HOLD_BY_SENDER;
    if magic != EMUD_HOLD_MAGIC && magic != EMUD_HOLD_MAGIC_SUM {
        return Err(Malformed::Magic);
    }
    let number = array(read, NUMBER).map(u32::from_ne_bytes);
    let number = number.ok_or(Malformed::Short)?;
    let front = match number {
        0 => HOLD_LEN,
        _ => FRONT_LEN,
    };
    if read.len() < VNET_LEN + front + ETHERNET_LEN {
        return Err(Malformed::Short);
    }
    let tags = tags.chunks_exact(TAG_LEN).filter(|tag| tag[2..] != [0, 0]);
    let grown = tags.clone().count() * TAG_LEN;
    let service = match number {
        0 => None,
        number => {
            let frame_len = read.len() - VNET_LEN - front + grown;
            service(read, number, departure_ns, frame_len)
        }
    };

    let mut vnet: [u8; VNET_LEN] = array(read, 0).ok_or(Malformed::Short)?;
    if vnet[VNET_GSO_TYPE] != 0 {
        return Err(Malformed::SuperPacket);
    }
    if vnet[0] & VNET_F_NEEDS_CSUM != 0 {
        let start = u16::from_ne_bytes([vnet[VNET_CSUM_START], vnet[VNET_CSUM_START + 1]]);
        let start = (start as usize)
            .checked_sub(front)
            .and_then(|start| u16::try_from(start + grown).ok())
            .ok_or(Malformed::Checksum)?;
        vnet[VNET_CSUM_START..VNET_CSUM_START + 2].copy_from_slice(&start.to_ne_bytes());
    }

    // Only the two headers and the addresses move, the rest stays where it is.
    let addresses = VNET_LEN + front;
    let start = front - grown;
    read.copy_within(addresses..addresses + ADDRESSES_LEN, addresses - grown);
    let behind = addresses - grown + ADDRESSES_LEN;
    for (place, tag) in read[behind..].chunks_exact_mut(TAG_LEN).zip(tags) {
        let tci = u16::from_ne_bytes([tag[0], tag[1]]);
        place[..2].copy_from_slice(&tag[2..]);
        place[2..].copy_from_slice(&tci.to_be_bytes());
    }
    read[start..start + VNET_LEN].copy_from_slice(&vnet);
    if magic == EMUD_HOLD_MAGIC_SUM && vnet[0] & VNET_F_NEEDS_CSUM != 0 {
        complete_checksum(&mut read[start..])?;
    }
    Ok(Rewritten {
        departure_ns,
        by_sender,
        start,
        service,
    })
}

/// Computes the checksum that was left to the device: a receiver on this host would treat an
/// uncomputed one as valid, whatever the data.
fn complete_checksum(frame: &mut [u8]) -> Result<(), Malformed> {
    let field = |at: usize| {
        let bytes = array(frame, at).map(u16::from_ne_bytes);
        bytes.map(usize::from).ok_or(Malformed::Short)
    };
    let start = VNET_LEN + field(VNET_CSUM_START)?;
    let at = start + field(VNET_CSUM_OFFSET)?;
    let summed = frame.get(start..).ok_or(Malformed::Checksum)?;
    let words = summed.chunks(2).map(|pair| match *pair {
        [high, low] => u64::from(u16::from_be_bytes([high, low])),
        [high] => u64::from(high) << 8,
        _ => 0,
    });
    let mut sum: u64 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // 0 would mean that there is no checksum (UDP); the two are equal in one's complement.
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    let place = frame.get_mut(at..at + 2).ok_or(Malformed::Checksum)?;
    place.copy_from_slice(&checksum.to_be_bytes());
    frame[0] &= !VNET_F_NEEDS_CSUM;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn wire(csum_start: Option<u16>, departure_ns: u64, tags: &[(u16, u16)]) -> Vec<u8> {
        let mut bytes = vec![0; VNET_LEN];
        if let Some(start) = csum_start {
            bytes[0] = VNET_F_NEEDS_CSUM;
            bytes[6..8].copy_from_slice(&start.to_ne_bytes());
            bytes[8..10].copy_from_slice(&6u16.to_ne_bytes());
        }
        bytes.extend(departure_ns.to_ne_bytes());
        bytes.extend(EMUD_HOLD_MAGIC.to_ne_bytes());
        for n in 0..EMUD_HOLD_TAGS as usize {
            let (proto, tci) = tags.get(n).copied().unwrap_or_default();
            bytes.extend(tci.to_ne_bytes());
            bytes.extend(proto.to_be_bytes());
        }
        bytes.extend([0; 4]);
        bytes.extend(1..=12); // addresses
        bytes.extend([0x08, 0x00, 0x45, 0xaa]);
        bytes
    }

    #[test]
    fn strips_the_header() {
        let mut bytes = wire(Some(24 + 34), 77, &[]);
        let done = rewrite(&mut bytes).unwrap();
        assert_eq!(done.departure_ns, 77);
        let out = &bytes[done.start..];
        assert_eq!(out[0], VNET_F_NEEDS_CSUM);
        assert_eq!(u16::from_ne_bytes([out[6], out[7]]), 34);
        assert_eq!(u16::from_ne_bytes([out[8], out[9]]), 6);
        let frame = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x08, 0, 0x45, 0xaa];
        assert_eq!(out[VNET_LEN..], frame);
    }

    #[test]
    fn puts_both_tags_back() {
        let mut bytes = wire(Some(24 + 34), 1, &[(0x88a8, 0x6123), (0x8100, 7)]);
        let done = rewrite(&mut bytes).unwrap();
        let out = &bytes[done.start..];
        assert_eq!(u16::from_ne_bytes([out[6], out[7]]), 42);
        assert_eq!(
            out[VNET_LEN..VNET_LEN + 12],
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
        );
        let behind = [0x88, 0xa8, 0x61, 0x23, 0x81, 0, 0, 7, 0x08, 0, 0x45, 0xaa];
        assert_eq!(out[VNET_LEN + 12..], behind);
    }

    #[test]
    fn puts_the_tag_back() {
        let mut bytes = wire(Some(24 + 34), 1, &[(0x88a8, 0x6123)]);
        let done = rewrite(&mut bytes).unwrap();
        let out = &bytes[done.start..];
        assert_eq!(u16::from_ne_bytes([out[6], out[7]]), 38);
        let frame = [
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x88, 0xa8, 0x61, 0x23, 0x08, 0, 0x45, 0xaa,
        ];
        assert_eq!(out[VNET_LEN..], frame);
    }

    #[test]
    fn refuses_what_it_cannot_send_back() {
        let good = wire(None, 1, &[]);
        assert_eq!(rewrite(&mut good[..47].to_vec()), Err(Malformed::Short));
        let done = rewrite(&mut good[..48].to_vec()).unwrap();
        assert!(!done.by_sender);
        let mut by_sender = good.clone();
        by_sender[MAGIC..MAGIC + 4]
            .copy_from_slice(&(EMUD_HOLD_MAGIC | EMUD_HOLD_BY_SENDER).to_ne_bytes());
        assert!(rewrite(&mut by_sender).unwrap().by_sender);
        let mut magic = good.clone();
        magic[MAGIC] ^= 1;
        assert_eq!(rewrite(&mut magic), Err(Malformed::Magic));
        let mut gso = good;
        gso[1] = 1;
        assert_eq!(rewrite(&mut gso), Err(Malformed::SuperPacket));
        assert_eq!(
            rewrite(&mut wire(Some(23), 1, &[])),
            Err(Malformed::Checksum)
        );
        let tag = [(0x8100, 1)];
        assert_eq!(
            rewrite(&mut wire(Some(u16::MAX), 1, &tag)).map(|_| ()),
            Ok(())
        );
    }

    /// UDP over IPv4 with RFC 1071's arithmetic: the sum over all of it is then 0xffff.
    #[test]
    fn computes_the_checksum_of_what_was_corrupted() {
        let mut bytes = wire(Some(24 + 14), 1, &[]);
        bytes[34 + 10..34 + 14].fill(0);
        bytes.splice(34 + 14.., [0x12, 0x34, 0x56, 0x78, 0, 9, 0xab, 0xcd, 0xff]);
        bytes[MAGIC..MAGIC + 4].copy_from_slice(&EMUD_HOLD_MAGIC_SUM.to_ne_bytes());
        let done = rewrite(&mut bytes).unwrap();
        let out = &bytes[done.start..];
        assert_eq!(out[0] & VNET_F_NEEDS_CSUM, 0);
        let sum: u32 = out[VNET_LEN + 14..]
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
            .sum();
        // The field held 0xabcd, the share of the pseudo-header: it is part of the sum and then
        // replaced.
        let without = 0x1234 + 0x5678 + 9 + 0xff00;
        let whole = without + 0xabcd;
        let folded = (whole & 0xffff) + (whole >> 16);
        assert_eq!(sum, without + (0xffff - folded));
        bytes = wire(Some(24 + 18), 1, &[]);
        bytes[MAGIC..MAGIC + 4].copy_from_slice(&EMUD_HOLD_MAGIC_SUM.to_ne_bytes());
        assert_eq!(
            rewrite(&mut bytes),
            Err(Malformed::Checksum),
            "behind the end"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

        #[test]
        fn never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = rewrite(&mut bytes);
        }

        #[test]
        fn never_panics_behind_the_magic(mut bytes in proptest::collection::vec(any::<u8>(), 34..99)) {
            bytes[1] = 0;
            bytes[MAGIC..MAGIC + 4].copy_from_slice(&EMUD_HOLD_MAGIC.to_ne_bytes());
            if let Ok(done) = rewrite(&mut bytes) {
                prop_assert!(done.start + VNET_LEN + ETHERNET_LEN <= bytes.len());
            }
        }
    }
}
