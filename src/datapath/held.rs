// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that engine hold needs to buffer the packets of a link.

use std::fs;

use super::LinkError;
use super::engine::fq;
use super::engine::hold::holder::DEFAULT_LIMIT_BYTES;
use super::stage::compile::Compiled;
use crate::abi::{DIRECTIONS, direction_name};

/// The holder stores a frame, with up to 36 bytes in front, in a buffer whose size is a power of
/// two.
const BUFFER_SHARE: f64 = 2.2;
/// The rate up to which a link without a configured rate should not drop, bit/s.
const RATE_WITHOUT: f64 = 1e9;
/// The share of the free memory that a link may use.
const SHARE_OF_MEMORY: f64 = 0.5;

/// Indexed by direction; 0 for a direction that is not emulated.
fn needs(both: &[Vec<Compiled>; 2], directions: [bool; 2]) -> [u64; 2] {
    let one = |direction: u32| match directions[direction as usize] {
        true => (fq::promised(&both[direction as usize]).0 * BUFFER_SHARE) as u64,
        false => 0,
    };
    DIRECTIONS.map(one)
}

/// Returns the bytes per direction that the rates and delays of these links need, at least the
/// default.
///
/// # Errors
/// [`LinkError::NoMemory`].
pub(crate) fn limit(
    interface: &str,
    both: &[Vec<Compiled>; 2],
    directions: [bool; 2],
    notes: &mut Vec<String>,
) -> Result<u64, LinkError> {
    let needed = needs(both, directions);
    let room = (available()? as f64 * SHARE_OF_MEMORY) as u64;
    let beyond: u64 = needed
        .iter()
        .filter(|n| **n > DEFAULT_LIMIT_BYTES as u64)
        .sum();
    if beyond > room {
        return Err(LinkError::NoMemory {
            interface: interface.to_owned(),
            needed: mib(beyond),
            room: mib(room),
        });
    }
    let limit = needed[0].max(needed[1]).max(DEFAULT_LIMIT_BYTES as u64);
    for direction in DIRECTIONS.into_iter().filter(|d| directions[*d as usize]) {
        let longest_s = fq::promised(&both[direction as usize]).1;
        let rate = 8.0 * limit as f64 / BUFFER_SHARE / longest_s;
        if rate < RATE_WITHOUT {
            notes.push(format!(
                "{}: engine hold buffers {} MiB: at a delay of {longest_s:.3} s and without a rate, \
                 packets beyond {:.0} Mbit/s are dropped",
                direction_name(direction),
                mib(limit),
                rate / 1e6
            ));
        }
    }
    Ok(limit)
}

/// Checks whether a changed link still fits into the holder's limit.
///
/// # Errors
/// [`LinkError::NoMemory`].
pub(crate) fn fits(
    interface: &str,
    both: &[Vec<Compiled>; 2],
    directions: [bool; 2],
    limit: u64,
) -> Result<(), LinkError> {
    let [up, down] = needs(both, directions);
    let needed = up.max(down);
    if needed <= limit {
        return Ok(());
    }
    Err(LinkError::NoMemory {
        interface: interface.to_owned(),
        needed: mib(needed),
        room: mib(limit),
    })
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Returns the memory that is available without swapping.
fn available() -> Result<u64, LinkError> {
    let text = fs::read_to_string("/proc/meminfo").map_err(LinkError::Memory)?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib << 10)
        .ok_or_else(|| LinkError::Memory(std::io::ErrorKind::InvalidData.into()))
}
