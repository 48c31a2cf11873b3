// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events as records of the file: 32 bytes, little-endian.

use std::mem::offset_of;

use super::abi::{self, emud_rec};
use super::event::{Event, Interval, Kind, NetClass};
use crate::criteria::table::Word as _;

/// Length of one record.
pub const RECORD_BYTES: usize = size_of::<emud_rec>();

pub type Record = [u8; RECORD_BYTES];

pub(super) const ID: usize = offset_of!(emud_rec, id);
const TIME: usize = 8;
pub(super) const VALUE: usize = TIME + 8;
pub(super) const NETNS: usize = offset_of!(emud_rec, netns);
pub(super) const EXTRA: usize = offset_of!(emud_rec, extra);

/// Codes in the file, in the order of [`Kind`].
const CODES: [u32; KINDS] = [
    abi::EMUD_REC_CPU_BUSY,
    abi::EMUD_REC_PACKET,
    abi::EMUD_REC_PAGE_IN,
    abi::EMUD_REC_PAGE_OUT,
    abi::EMUD_REC_DISK_BUSY,
    abi::EMUD_REC_NETDEV,
    abi::EMUD_REC_DISK,
    abi::EMUD_REC_LOST,
];

/// Number of kinds.
pub(super) const KINDS: usize = Kind::ALL.len();

impl Kind {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied()
    }

    pub(super) fn code(self) -> u8 {
        CODES[self as usize] as u8
    }

    pub(super) fn of_code(code: u8) -> Option<Self> {
        Self::all().find(|k| k.code() == code)
    }
}

impl Event {
    /// Decodes a little-endian record.
    ///
    /// # Errors
    /// The record holds an impossible value.
    pub(super) fn decode(r: &Record) -> Result<Self, String> {
        let kind =
            Kind::of_code(r[0]).ok_or_else(|| format!("unknown kind of record \"{}\"", r[0]))?;
        let (id, netns) = (u32_at(r, ID), u32_at(r, NETNS));
        let time_ns = u64_at(r, TIME);
        Ok(match kind {
            Kind::CpuBusy => Self::CpuBusy {
                cpu: u16::from_le_bytes([r[2], r[3]]),
                interval: interval(r)?,
            },
            Kind::Packet => Self::Packet {
                time_ns,
                bytes: amount(r)?,
                ifindex: id,
                netns,
                class: class(r[1])?,
            },
            Kind::PageIn => Self::PageIn {
                time_ns,
                pages: amount(r)?,
            },
            Kind::PageOut => Self::PageOut {
                time_ns,
                pages: amount(r)?,
            },
            Kind::DiskBusy => Self::DiskBusy {
                device: id,
                interval: interval(r)?,
            },
            Kind::Interface => Self::Interface {
                ifindex: id,
                netns,
                name: name(r),
            },
            Kind::Disk => Self::Disk {
                device: id,
                name: name(r),
            },
            Kind::Lost => Self::Lost {
                time_ns,
                kind: lost_kind(u32_at(r, EXTRA))?,
                count: u64_at(r, VALUE),
            },
        })
    }

    /// Encodes the little-endian record that `decode` reads.
    pub fn encode(&self) -> Record {
        let mut r = [0; RECORD_BYTES];
        r[0] = self.kind().code();
        match self {
            Self::CpuBusy { cpu, interval } => {
                r[2..4].copy_from_slice(&cpu.to_le_bytes());
                put_interval(&mut r, interval);
            }
            Self::Packet {
                time_ns,
                bytes,
                ifindex,
                netns,
                class,
            } => {
                if *class == NetClass::Internal {
                    r[1] = abi::EMUD_REC_VIRTUAL as u8;
                }
                put_id(&mut r, *ifindex, *netns);
                put_times(&mut r, *time_ns, u64::from(*bytes));
            }
            Self::PageIn { time_ns, pages } | Self::PageOut { time_ns, pages } => {
                put_times(&mut r, *time_ns, u64::from(*pages));
            }
            Self::DiskBusy { device, interval } => {
                put_id(&mut r, *device, 0);
                put_interval(&mut r, interval);
            }
            Self::Interface {
                ifindex,
                netns,
                name,
            } => {
                put_id(&mut r, *ifindex, *netns);
                put_name(&mut r, name);
            }
            Self::Disk { device, name } => {
                put_id(&mut r, *device, 0);
                put_name(&mut r, name);
            }
            Self::Lost {
                time_ns,
                kind,
                count,
            } => {
                put_times(&mut r, *time_ns, *count);
                r[EXTRA..].copy_from_slice(&u32::from(kind.code()).to_le_bytes());
            }
        }
        r
    }
}

/// Converts from the byte order of this machine, in which the kernel's programs write.
pub(super) fn to_little_endian(mut r: Record) -> Record {
    if cfg!(target_endian = "big") {
        let named = [Kind::Interface, Kind::Disk]
            .map(Kind::code)
            .contains(&r[0]);
        let numbers = [(2, 2), (ID, 4), (NETNS, 4), (EXTRA, 4)];
        let times = if named {
            &[][..]
        } else {
            &[(TIME, 8), (VALUE, 8)][..]
        };
        for (at, length) in numbers.iter().chain(times) {
            r[*at..at + length].reverse();
        }
    }
    r
}

/// Clips a little-endian record to the time of the recording: its setup and its end are not part of
/// the measured load. Returns `None` if nothing remains.
pub(super) fn clip(mut r: Record, start_ns: u64, end_ns: u64) -> Option<Record> {
    let kind = Kind::of_code(r[0])?;
    if matches!(kind, Kind::Interface | Kind::Disk) {
        return Some(r);
    }
    let (time, value) = (u64_at(&r, TIME), u64_at(&r, VALUE));
    if !matches!(kind, Kind::CpuBusy | Kind::DiskBusy) {
        return (start_ns..=end_ns).contains(&time).then_some(r);
    }
    if time < start_ns || value > end_ns {
        return None;
    }
    if value < start_ns {
        r[1] |= abi::EMUD_REC_OPEN_BEGIN as u8;
    }
    if time > end_ns {
        r[1] |= abi::EMUD_REC_OPEN_END as u8;
    }
    put_times(&mut r, time.min(end_ns), value.max(start_ns));
    Some(r)
}

pub(super) fn u32_at(r: &Record, at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| r[at + i]))
}

pub(super) fn u64_at(r: &Record, at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| r[at + i]))
}

pub(super) fn put_id(r: &mut Record, id: u32, netns: u32) {
    r[ID..ID + 4].copy_from_slice(&id.to_le_bytes());
    r[NETNS..NETNS + 4].copy_from_slice(&netns.to_le_bytes());
}

pub(super) fn put_times(r: &mut Record, time: u64, value: u64) {
    r[TIME..VALUE].copy_from_slice(&time.to_le_bytes());
    r[VALUE..NETNS].copy_from_slice(&value.to_le_bytes());
}

fn put_interval(r: &mut Record, i: &Interval) {
    if i.open_begin {
        r[1] |= abi::EMUD_REC_OPEN_BEGIN as u8;
    }
    if i.open_end {
        r[1] |= abi::EMUD_REC_OPEN_END as u8;
    }
    put_times(r, i.end_ns, i.begin_ns);
}

fn put_name(r: &mut Record, name: &str) {
    let bytes = name.as_bytes();
    let n = bytes.len().min(NETNS - TIME);
    r[TIME..TIME + n].copy_from_slice(&bytes[..n]);
}

fn name(r: &Record) -> String {
    let bytes = &r[TIME..NETNS];
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn interval(r: &Record) -> Result<Interval, String> {
    let (begin_ns, end_ns) = (u64_at(r, VALUE), u64_at(r, TIME));
    if begin_ns > end_ns {
        return Err(format!(
            "an interval ends before it begins, from {begin_ns} to {end_ns} ns"
        ));
    }
    let known = (abi::EMUD_REC_OPEN_BEGIN | abi::EMUD_REC_OPEN_END) as u8;
    if r[1] & !known != 0 {
        return Err(format!("unknown flags {:#x} of an interval", r[1]));
    }
    Ok(Interval {
        begin_ns,
        end_ns,
        open_begin: r[1] & abi::EMUD_REC_OPEN_BEGIN as u8 != 0,
        open_end: r[1] & abi::EMUD_REC_OPEN_END as u8 != 0,
    })
}

fn amount(r: &Record) -> Result<u32, String> {
    let value = u64_at(r, VALUE);
    u32::try_from(value).map_err(|_| format!("{value} bytes or pages at once"))
}

fn class(flags: u8) -> Result<NetClass, String> {
    let internal = (abi::EMUD_REC_VIRTUAL | abi::EMUD_REC_LOOPBACK) as u8;
    match flags {
        0 => Ok(NetClass::External),
        f if f & !internal == 0 => Ok(NetClass::Internal),
        f => Err(format!("unknown flags {f:#x} of a packet")),
    }
}

fn lost_kind(code: u32) -> Result<Kind, String> {
    u8::try_from(code)
        .ok()
        .and_then(Kind::of_code)
        .ok_or_else(|| format!("lost records have unknown kind \"{code}\""))
}
