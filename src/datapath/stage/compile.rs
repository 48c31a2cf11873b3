// SPDX-License-Identifier: MIT OR Apache-2.0
//! A direction of a profile, in the user's units, to what the classifier runs.

pub use super::direction::Compiled;
use super::rate::{bit_s, ns_per_byte};
use super::{alter, background, delay, loss, queueing, slot, timeline};
use crate::abi::{self, mix};
use crate::histogram;
use crate::profile::{self, LinkState, Neighbours, quantile};

/// Where the classifier sends the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketTarget {
    /// How the engine gets packets: `EMUD_RELEASE_*`.
    pub release: abi::emud_release,
    /// The ifb or TAP to redirect to; 0 where there is none.
    pub ifindex: u32,
    /// The device has no Ethernet header.
    pub l3: bool,
}

/// Compiles one direction (`EMUD_UP` or `EMUD_DOWN`).
///
/// `epoch_ns` (CLOCK_MONOTONIC) is the origin of the in-order jitter.
///
/// # Errors
/// The delay's mean and standard deviation cannot both be had with delays >= 0.
pub fn compile(
    link: &profile::Link,
    seed: u64,
    direction: u32,
    epoch_ns: u64,
    place: PacketTarget,
) -> Result<Compiled, quantile::SpreadError> {
    let mut out = abi::emud_link {
        seed: mix(seed ^ mix(u64::from(direction) + 1)),
        epoch_ns,
        overhead: link.overhead,
        queue_wait_ns: u64::MAX,
        queue_busy_ns: u64::MAX,
        queue_bytes: link.queue.bytes.map_or(0, |bytes| bytes as u32),
        ..Default::default()
    };
    put(&mut out, place);
    out.flags |= if link.neighbours == Neighbours::Emulate {
        abi::EMUD_F_NEIGHBOURS
    } else {
        0
    };
    if let Some(rate) = profile::rate_with_trace(link) {
        (out.rate_mult, out.rate_shift) = ns_per_byte(rate);
        queueing::compile(&mut out, link, rate);
    }
    queueing::of_pairs(&mut out, &link.queue);
    if link.state == LinkState::Down {
        out.flags |= abi::EMUD_F_DOWN;
    }
    let pattern = loss::encode(&mut out, &link.loss);
    alter::encode(&mut out, link);
    let table = delay::encode(&mut out, &profile::delay_with_trace(link))?;
    out.delay_class = histogram::number(out.delay_ns) as u32;
    if let Some(reordering) = &link.reorder {
        delay::encode_reorder(&mut out, reordering);
    }
    if let Some(slot) = &link.slot {
        out.tdma = slot::encode(slot, &link.queue);
    }
    let timeline = timeline::compile(&mut out, link, epoch_ns);
    let traffic = link.rate.zip(link.background.as_ref());
    let stretches = traffic.map(|(rate, traffic)| background::encode(&mut out, traffic, rate));
    let mut compiled = Compiled {
        link: out,
        table,
        pattern,
        timeline,
        stretches,
    };
    compiled.link.fq_shift = fq_shift(compiled.longest_delay_ns());
    Ok(compiled)
}

/// Sets where a link sends its packets, whatever was set before.
pub fn put(link: &mut abi::emud_link, place: PacketTarget) {
    link.release = place.release;
    link.ifindex = place.ifindex;
    link.flags &= !(abi::EMUD_F_L3 | abi::EMUD_F_CLONE);
    link.flags |= if place.l3 { abi::EMUD_F_L3 } else { 0 };
    let cloned = [abi::EMUD_RELEASE_STAMP, abi::EMUD_RELEASE_QDISC];
    link.flags |= if cloned.contains(&place.release) {
        abi::EMUD_F_CLONE
    } else {
        0
    };
}

/// Tables that belong to a link besides its figures.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    /// The delays in force; absent: they are all `mean_ns`.
    pub delays: Option<&'a [u64]>,
    /// The mean of the delays, ns.
    pub mean_ns: u64,
    /// Bits of a recorded loss pattern.
    pub pattern: Option<&'a abi::emud_pattern>,
    /// The link of the profile: names, and what a table was made of, are in no map.
    pub wanted: Option<&'a profile::Link>,
}

/// Returns a direction in the user's units, as the classifier runs it: the inverse of [`compile`], except for
/// figures that change with time.
pub fn decode(link: &abi::emud_link, beside: Beside<'_>) -> profile::Link {
    let rate = (link.rate_mult != 0).then(|| bit_s(link.rate_mult, link.rate_shift));
    let rate = rate.map(|rate| rate.round() as u64);
    let wanted = beside.wanted;
    let (duplicate, corrupt, reset) = alter::decode(link);
    let event = |probability: f64| probability > 0.0;
    // Of rows alone, too, whose link has no jitter.
    let delay_wanted = wanted.map(profile::delay_with_trace);
    profile::Link {
        rate,
        overhead: link.overhead,
        neighbours: match link.flags & abi::EMUD_F_NEIGHBOURS {
            0 => Neighbours::Pass,
            _ => Neighbours::Emulate,
        },
        shared: wanted.and_then(|wanted| wanted.shared.clone()),
        state: match link.flags & abi::EMUD_F_DOWN {
            0 => LinkState::Up,
            _ => LinkState::Down,
        },
        wire: rate.map_or_else(profile::Wire::default, |rate| {
            queueing::decode_wire(link, rate)
        }),
        queue: queueing::decode_queue(link),
        delay: delay::decode(link, beside.mean_ns, beside.delays, delay_wanted.as_ref()),
        loss: loss::decode(link, beside.pattern),
        reorder: delay::decode_reorder(link),
        duplicate: match event(duplicate.probability) {
            true => duplicate,
            false => profile::Duplicate::default(),
        },
        corrupt: match event(corrupt.probability) {
            true => corrupt,
            false => profile::Corrupt::default(),
        },
        reset,
        trace: wanted.and_then(|wanted| wanted.trace.clone()),
        slot: slot::decode(&link.tdma),
        background: wanted.and_then(|wanted| wanted.background),
        class: wanted.and_then(|wanted| wanted.class.clone()),
    }
}

/// Delays up to this one need at most as many flows of fq as it can distinguish.
fn fq_shift(longest_ns: u64) -> u32 {
    let flows = u64::from(abi::EMUD_FQ_OTHERS);
    (abi::EMUD_FQ_SHIFT_MIN..63)
        .find(|shift| longest_ns >> shift < flows)
        .unwrap_or(63)
}

/// Returns the seed of a link: two of a profile decide independently. Mixed again, since the direction is
/// mixed in next: otherwise link 1 up would decide as link 2 down.
pub fn of_number(seed: u64, number: u64) -> u64 {
    match number {
        0 => seed,
        number => mix(seed ^ mix(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_links_of_a_profile_have_one_seed() {
        let plain = profile::Link::default();
        let seed = |number, direction| {
            let place = PacketTarget {
                release: abi::EMUD_RELEASE_NONE,
                ifindex: 0,
                l3: false,
            };
            let compiled = compile(&plain, of_number(7, number), direction, 0, place);
            compiled.unwrap().link.seed
        };
        let all = (0..64).flat_map(|number| [0, 1].map(|direction| seed(number, direction)));
        let all: std::collections::BTreeSet<u64> = all.collect();
        assert_eq!(all.len(), 128);
    }

    #[test]
    fn one_packet_of_a_million_takes_longer() {
        let profile = profile::Profile::parse(
            "[link]\ndelay = { mean = \"100ms\", sd = \"10ms\", distribution = \"normal\" }",
            "test",
        );
        let place = PacketTarget {
            release: abi::EMUD_RELEASE_STAMP,
            ifindex: 0,
            l3: false,
        };
        let link = profile.expect("a profile").up;
        let compiled = compile(&link, 1, abi::EMUD_UP, 0, place).expect("a link");
        // Phi^-1(1 - 1.017e-6) = 4.75
        assert!(compiled.millionth_delay_ns().abs_diff(147_500_000) < 10_000);
        assert!(compiled.longest_delay_ns() > 170_000_000);
    }
}
