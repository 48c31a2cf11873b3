// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory that engine hold needs to buffer the packets of a link.

use std::fs;

use super::LinkError;
use super::engine::fq;
use super::engine::hold::holder::DEFAULT_LIMIT_BYTES;
use super::stage::compile::Compiled;
use crate::abi::{DIRECTIONS, direction_name};
use crate::bottleneck::Limits;
use crate::host::cgroup;
use crate::host::counters::memory_bytes;
use crate::profile::{Bottleneck, NamedLink, PACKET_BYTES, Profile, Target};

/// The holder keeps a frame, with up to 18 bytes more, in a buffer of a power of two.
const BUFFER_SHARE: f64 = 2.2;
/// The rate up to which a link without a configured rate should not drop, bit/s.
const RATE_WITHOUT: f64 = 1e9;
/// The share of the free memory that a link may use.
const SHARE_OF_MEMORY: f64 = 0.5;

/// Returns the bytes that the holder needs for waiting frames, by direction; 0 for one that is not emulated.
pub(crate) fn needs(
    profile: &Profile,
    both: &[Vec<Compiled>; 2],
    directions: [bool; 2],
) -> [u64; 2] {
    let queued: f64 = profile.bottlenecks.iter().map(queued).sum();
    let one = |direction: u32| match directions[direction as usize] {
        true => ((promised(profile, both, direction).0 + queued) * BUFFER_SHARE) as u64,
        false => 0,
    };
    DIRECTIONS.map(one)
}

/// Returns the bytes that links with a rate may have in their queues and in flight, and others behind their
/// bottlenecks, and the longest delay of a link with neither.
fn promised(profile: &Profile, both: &[Vec<Compiled>; 2], direction: u32) -> (f64, f64) {
    let links = both[direction as usize].iter().map(fq::promised);
    let links: Vec<_> = links.zip(profile.links_of(direction)).collect();
    let leads = profile.leads_to_bottlenecks(direction);
    // To a named link, packets come by rules alone, unless a matrix leads there.
    let by_rules = |number: usize| {
        let named = number.checked_sub(1).and_then(|n| profile.links.get(n));
        let all = |named: &NamedLink| {
            let to = Target::Named(named.name.clone());
            let rules = profile.rules.iter().filter(|rule| rule.target == to);
            let mut rules = rules.filter(|rule| rule.is_for(direction));
            rules.all(|rule| rule.class.is_some())
        };
        let leads_there = leads.iter().any(|(to, _)| *to == number);
        profile.matrix.is_none() && leads_there && named.is_some_and(all)
    };
    let (mut bytes, mut without_s) = (0.0, 0.0f64);
    for (number, ((of_link, delay_s), link)) in links.iter().enumerate() {
        bytes += of_link.unwrap_or(0.0);
        if of_link.is_none() && link.class.is_none() && !by_rules(number) {
            without_s = without_s.max(*delay_s);
        }
    }
    for bottleneck in &profile.bottlenecks {
        let leads = leads.iter().filter(|(_, name)| *name == bottleneck.name);
        let delays = leads.filter_map(|(number, _)| match links.get(*number)?.0 {
            (None, delay_s) => Some(delay_s),
            // What comes at its rate is counted.
            (Some(_), _) => None,
        });
        bytes += delays.fold(0.0, f64::max) * bottleneck.plan().rate as f64 / 8.0;
    }
    (bytes, without_s)
}

/// Bytes that wait in the classes of a bottleneck when all are full, of full packets.
fn queued(bottleneck: &Bottleneck) -> f64 {
    let plan = bottleneck.plan();
    let most = |limits: &Limits| {
        let packets = limits
            .packets
            .map(|n| f64::from(n) * f64::from(PACKET_BYTES));
        let bytes = limits.bytes.map(|bytes| bytes as f64);
        // A class may get the whole rate, and then another one.
        let time = limits.time_ns.map(|ns| ns as f64 * plan.rate as f64 / 8e9);
        let all = [packets, bytes, time].into_iter().flatten();
        all.fold(f64::INFINITY, f64::min)
    };
    plan.classes.iter().map(|class| most(&class.limits)).sum()
}

/// Bytes for each direction that is emulated: what the rates and delays of its links need, and the default if
/// there is room.
///
/// # Errors
/// [`LinkError::NoMemory`].
pub(crate) fn limits(
    interface: &str,
    profile: &Profile,
    both: &[Vec<Compiled>; 2],
    directions: [bool; 2],
    notes: &mut Vec<String>,
) -> Result<[u64; 2], LinkError> {
    let needed = needs(profile, both, directions);
    let room = (available()? as f64 * SHARE_OF_MEMORY) as u64;
    fits(interface, needed.iter().sum(), room)?;
    let limits = within(room, needed, directions);
    for direction in DIRECTIONS.into_iter().filter(|d| directions[*d as usize]) {
        let longest_s = promised(profile, both, direction).1;
        let limit = limits[direction as usize];
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
    Ok(limits)
}

/// Divides a room in which both needs fit; a direction may take all of its limit.
fn within(room: u64, needed: [u64; 2], directions: [bool; 2]) -> [u64; 2] {
    let usual = (room / 2).clamp(1 << 20, DEFAULT_LIMIT_BYTES as u64);
    let one = |direction: u32| match directions[direction as usize] {
        true => {
            let others = room.saturating_sub(needed[1 - direction as usize]);
            needed[direction as usize].max(usual.min(others))
        }
        false => 0,
    };
    DIRECTIONS.map(one)
}

/// Checks whether this many bytes fit into a room, such as those of a changed direction into the holder's limit.
///
/// # Errors
/// [`LinkError::NoMemory`].
pub(crate) fn fits(interface: &str, needed: u64, limit: u64) -> Result<(), LinkError> {
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

/// Returns the memory that is available without swapping, and without the limit of a control group, beyond which
/// the kernel ends the holder (mem_cgroup_out_of_memory()).
fn available() -> Result<u64, LinkError> {
    let text = fs::read_to_string("/proc/meminfo").map_err(LinkError::Memory)?;
    let host = memory_bytes(&text, "MemAvailable")
        .ok_or_else(|| LinkError::Memory(std::io::ErrorKind::InvalidData.into()))?;
    Ok(cgroup::memory_left().map_or(host, |left| left.min(host)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::compiled::{Origin, compile_new};

    const MIB: u64 = 1 << 20;

    #[test]
    fn both_directions_together_stay_within_the_room() {
        let both = |room, needed| within(room * MIB, needed, [true; 2]).map(|bytes| bytes / MIB);
        assert_eq!(both(2000, [0, 0]), [256, 256]);
        assert_eq!(both(300, [0, 0]), [150, 150]);
        assert_eq!(both(1000, [900 * MIB, 0]), [900, 100]);
        assert_eq!(both(1000, [20 * MIB, 900 * MIB]), [100, 900]);
        assert_eq!(both(1000, [500 * MIB, 500 * MIB]), [500, 500]);
        assert_eq!(both(1000, [900 * MIB, 100 * MIB]), [900, 100]);
        let up = within(300 * MIB, [200 * MIB, 0], [true, false]);
        assert_eq!(up, [200 * MIB, 0]);
        // Some packets always have room.
        assert_eq!(both(1, [0, 0]), [1, 1]);
    }

    #[test]
    fn packets_behind_a_bottleneck_have_room() {
        let room = |text: &str| {
            let rest = "[bottleneck.b]\nrate = \"500Mbit\"\nqueue = \"1p\"\n";
            let profile = Profile::parse(&format!("{text}{rest}"), "x");
            let profile = profile.unwrap_or_else(|e| panic!("{e}"));
            let origin = Origin {
                seed: 1,
                epoch_ns: 0,
                restarted_ns: None,
            };
            let both = compile_new(&profile, origin).unwrap();
            DIRECTIONS.map(|direction| promised(&profile, &both, direction))
        };
        let none = (0.0, 0.0);
        let of_link = "[up]\nclass = \"b\"\ndelay = \"8s\"\n";
        // 8 MB in flight, and a queue of 1000 packets.
        let rated = "[up]\nclass = \"b\"\nrate = \"8Mbit\"\ndelay = \"8s\"\n";
        let by_rule = "[link]\nclass = \"b\"\ndelay = \"1s\"\n[links.far]\ndelay = \"2s\"\n\
                       [[rule]]\nlink = \"far\"\nclass = \"b\"\ndirection = \"down\"\n";
        for (text, wanted) in [
            ("[up]\ndelay = \"8s\"\n", [(0.0, 8.0), none]),
            (of_link, [(500e6, 0.0), none]),
            (rated, [(9.538e6, 0.0), none]),
            (by_rule, [(62.5e6, 2.0), (125e6, 0.0)]),
        ] {
            for (found, wanted) in room(text).into_iter().zip(wanted) {
                let off = [(found.0 - wanted.0) / 1e6, found.1 - wanted.1];
                assert!(off.iter().all(|off| off.abs() < 0.01), "{text}: {found:?}");
            }
        }
    }
}
