// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arrivals, and what a server makes of them.

use emud::bottleneck::{Arrival, Decision, Dropped, Plan, Served, Server};

pub const SECOND: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    pub at: u64,
    pub class: usize,
    pub bytes: u32,
}

impl Packet {
    /// Every fifth is assured, and the sender of every third understands marks.
    pub fn arrival(&self, index: usize) -> Arrival {
        let dscp = if index.is_multiple_of(5) { 10 } else { 0 };
        Arrival {
            at_ns: self.at,
            class: self.class,
            bytes: self.bytes,
            ds: dscp << 2 | u8::from(index.is_multiple_of(3)),
        }
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0..n.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// Packets of one size at a constant rate in bit/s, from `from` to `to`.
pub fn constant(class: usize, bytes: u32, rate: u64, from: u64, to: u64) -> Vec<Packet> {
    let at = |n: u64| {
        from + (u128::from(n) * u128::from(bytes) * 8_000_000_000 / u128::from(rate)) as u64
    };
    (0..)
        .map(|n| Packet {
            at: at(n),
            class,
            bytes,
        })
        .take_while(|packet| packet.at < to)
        .collect()
}

/// All arrivals in their order.
pub fn merge(parts: impl IntoIterator<Item = Vec<Packet>>) -> Vec<Packet> {
    let mut all: Vec<Packet> = parts.into_iter().flatten().collect();
    all.sort_by_key(|packet| packet.at);
    all
}

/// Everything decided; a packet's token is its index.
pub fn decisions(plan: &Plan, packets: &[Packet]) -> Vec<Decision<usize>> {
    let mut server = Server::new(plan);
    for (index, packet) in packets.iter().enumerate() {
        assert!(server.arrive(packet.arrival(index), index));
    }
    std::iter::from_fn(|| server.decide(u64::MAX)).collect()
}

pub struct Outcome {
    pub served: Vec<Served<usize>>,
    pub dropped: Vec<Dropped<usize>>,
}

pub fn serve(plan: &Plan, packets: &[Packet]) -> Outcome {
    let (mut served, mut dropped) = (Vec::new(), Vec::new());
    for decision in decisions(plan, packets) {
        match decision {
            Decision::Served(s) => served.push(s),
            Decision::Dropped(d) => dropped.push(d),
        }
    }
    assert_eq!(served.len() + dropped.len(), packets.len());
    Outcome { served, dropped }
}

impl Outcome {
    /// bit/s of a class on the wire, by what has finished in a span of time.
    pub fn rate(&self, packets: &[Packet], class: usize, from: u64, to: u64) -> f64 {
        let of = self.served.iter();
        let of = of.filter(|s| s.class == class && s.finish_ns > from && s.finish_ns <= to);
        let bytes: u64 = of.map(|s| u64::from(packets[s.token].bytes)).sum();
        bytes as f64 * 8e9 / (to - from) as f64
    }

    pub fn lost(&self, class: usize) -> usize {
        self.dropped.iter().filter(|d| d.class == class).count()
    }
}

/// Within a share of what is wanted.
pub fn assert_near(what: &str, got: f64, want: f64, tolerance: f64) {
    assert!(
        (got - want).abs() <= tolerance * want.abs(),
        "{what}: {got}, for {want} within {tolerance}"
    );
}
