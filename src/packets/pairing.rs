// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the packets of one capture in a later one.

use std::collections::{HashMap, HashSet};

use super::capture::{Capture, Flow, Seen};

/// The longest packet of an interface with the usual MTU.
const USUAL_MTU: u32 = 1500;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is in both captures.
    Arrived {
        /// Time between them.
        delay_ns: u64,
    },
    /// One more packet in the second capture, equal to one that arrived.
    Copied {
        /// Time since the packet was in the first one.
        delay_ns: u64,
    },
    /// It is in the first capture only.
    Lost,
    /// So it is, but the second one begins too late or ends too early to say.
    Open,
}

/// A packet of the first capture, or a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The packet in the first capture.
    pub packet: &'a Seen,
    /// What became of it.
    pub fate: Fate,
}

/// All packets of the first capture and their copies, in the order of the first capture.
#[derive(Debug, Default)]
pub struct Listing<'a> {
    /// The packets.
    pub packets: Vec<Listed<'a>>,
    /// Packets in the second capture only.
    pub of_elsewhere: u64,
    /// Packets of flows that the second capture mostly saw earlier than the first one, as those of the other direction
    /// are, and single ones that it saw earlier. They are not listed.
    pub earlier: u64,
}

/// A packet of one capture that the other one has in several parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merged<'a> {
    /// The packet.
    pub packet: &'a Seen,
    /// Whether it is in the first capture.
    pub is_first: bool,
}

/// Finds each packet of `first` in `second`. Equal packets are taken in their order.
///
/// # Errors
/// A capture has super-packets, which the other one has in parts: a comparison would find losses that are none.
pub fn pair<'a>(first: &'a Capture, second: &'a Capture) -> Result<Listing<'a>, Merged<'a>> {
    let cut = [first.cut, second.cut].into_iter().flatten().min();
    let key = |seen: &'a Seen| {
        let end = cut.unwrap_or(usize::MAX).min(seen.content.len());
        (seen.bytes, &seen.content[..end])
    };
    let mut groups: HashMap<_, [Vec<&Seen>; 2]> = HashMap::new();
    for (group, capture) in [first, second].into_iter().enumerate() {
        for seen in &capture.packets {
            groups.entry(key(seen)).or_default()[group].push(seen);
        }
    }
    let turned = turned(groups.values());
    let mut listing = Listing::default();
    let mut alone = [vec![], vec![]];
    for [sent, came] in groups.values() {
        let one = sent.first().or(came.first());
        match one.is_some_and(|one| turned.contains(&one.flow())) {
            true => {
                listing.earlier += sent.len() as u64;
                alone[1].extend(came.iter().skip(sent.len()));
            }
            false => listing.group(sent, came, &mut alone),
        }
    }
    if let Some(merged) = super_packet(&alone, [first, second]) {
        return Err(merged);
    }
    listing.of_elsewhere = alone[1].len() as u64;
    listing.leave_open(second);
    // Equal times: the packet before its copy.
    listing.packets.sort_by_key(|listed| {
        (
            listed.packet.time_ns,
            matches!(listed.fate, Fate::Copied { .. }),
        )
    });
    Ok(listing)
}

/// Returns the flows of which more packets pass from the second capture to the first one than in reverse.
fn turned<'a>(groups: impl Iterator<Item = &'a [Vec<&'a Seen>; 2]>) -> HashSet<Flow> {
    let mut counts: HashMap<Flow, [usize; 2]> = HashMap::new();
    for [sent, came] in groups {
        if let (Some(one), false) = (sent.first(), came.is_empty()) {
            let count = counts.entry(one.flow()).or_default();
            count[0] += pass(sent, came);
            count[1] += pass(came, sent);
        }
    }
    let turned = counts.into_iter().filter(|(_, [to, back])| back > to);
    turned.map(|(flow, _)| flow).collect()
}

/// Returns how many of some equal packets can be among later ones.
fn pass(from: &[&Seen], to: &[&Seen]) -> usize {
    let mut to = to.iter();
    let passes = |seen: &&&Seen| to.any(|later| later.time_ns >= seen.time_ns);
    from.iter().filter(passes).count()
}

impl<'a> Listing<'a> {
    /// Lists equal packets, those in the first capture and those in the second.
    fn group(&mut self, sent: &[&'a Seen], came: &[&'a Seen], alone: &mut [Vec<&'a Seen>; 2]) {
        let mut taken = vec![false; came.len()];
        let mut next = 0;
        for &packet in sent {
            // What came before this one is of none that follows either.
            while came
                .get(next)
                .is_some_and(|seen| seen.time_ns < packet.time_ns)
            {
                next += 1;
            }
            let fate = match came.get(next) {
                Some(seen) => {
                    taken[next] = true;
                    next += 1;
                    Fate::Arrived {
                        delay_ns: seen.time_ns - packet.time_ns,
                    }
                }
                None => {
                    alone[0].push(packet);
                    Fate::Lost
                }
            };
            self.packets.push(Listed { packet, fate });
        }
        for (&seen, _) in came.iter().zip(taken).filter(|(_, taken)| !taken) {
            let before = sent.partition_point(|packet| packet.time_ns <= seen.time_ns);
            match before.checked_sub(1) {
                Some(of) => self.packets.push(Listed {
                    packet: sent[of],
                    fate: Fate::Copied {
                        delay_ns: seen.time_ns - sent[of].time_ns,
                    },
                }),
                None if sent.is_empty() => alone[1].push(seen),
                None => self.earlier += 1,
            }
        }
    }

    /// A packet that the second capture could not have seen is not lost.
    fn leave_open(&mut self, second: &Capture) {
        let longest = (self.packets.iter())
            .filter_map(|listed| match listed.fate {
                Fate::Arrived { delay_ns } => Some(delay_ns),
                _ => None,
            })
            .max()
            .unwrap_or(0);
        let begin = second.packets.first().map(|seen| seen.time_ns);
        let end = second.packets.last().map(|seen| seen.time_ns);
        for listed in &mut self.packets {
            let at = listed.packet.time_ns;
            let is_watched = begin.is_some_and(|begin| at >= begin.saturating_sub(longest))
                && end.is_some_and(|end| at + longest <= end);
            if listed.fate == Fate::Lost && !is_watched {
                listed.fate = Fate::Open;
            }
        }
    }
}

/// Returns a packet without its like that is longer than any other of its flow in the other capture.
fn super_packet<'a>(alone: &[Vec<&'a Seen>; 2], captures: [&'a Capture; 2]) -> Option<Merged<'a>> {
    for (of, packets) in alone.iter().enumerate() {
        let large: Vec<_> = (packets.iter())
            .filter(|seen| seen.bytes > USUAL_MTU)
            .collect();
        if large.is_empty() {
            continue;
        }
        let mut longest: HashMap<_, u32> = HashMap::new();
        for seen in &captures[1 - of].packets {
            let longest = longest.entry(seen.flow()).or_default();
            *longest = (*longest).max(seen.bytes);
        }
        for &packet in large {
            if longest
                .get(&packet.flow())
                .is_some_and(|most| *most < packet.bytes)
            {
                let is_first = of == 0;
                return Some(Merged { packet, is_first });
            }
        }
    }
    None
}
