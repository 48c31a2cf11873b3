// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which stations are connected at all, from their tracks and a range alone: what no routing can
//! exceed.

use crate::medium::motion::Track;

pub(super) const STEP_NS: u64 = 100_000_000;
/// A station is a bit of a set.
const MOST_STATIONS: usize = 64;

/// Stations, a bit each.
type Set = u64;

#[derive(Debug)]
pub(super) struct Graphs {
    /// Neighbours of each station, for each step.
    steps: Vec<Vec<Set>>,
}

impl Graphs {
    /// Computes the graphs of up to 64 stations, from the beginning of the motion to `until_ns`.
    pub fn new(tracks: &[Track], range_m: f64, until_ns: u64) -> Self {
        assert!(tracks.len() <= MOST_STATIONS, "{} stations", tracks.len());
        let graph = |step: u64| {
            let at: Vec<_> = tracks.iter().map(|t| t.at(step * STEP_NS)).collect();
            let near = |from: usize| {
                let within = |to: &usize| {
                    let [x, y] = [0, 1].map(|axis| at[from][axis] - at[*to][axis]);
                    *to != from && x * x + y * y <= range_m * range_m
                };
                (0..at.len()).filter(within).map(bit).sum()
            };
            (0..at.len()).map(near).collect()
        };
        Self {
            steps: (0..=until_ns / STEP_NS).map(graph).collect(),
        }
    }

    /// Returns the smallest number of transmissions over stations that are connected at a time; none:
    /// they are not.
    pub fn hops(&self, at_ns: u64, from: usize, to: usize) -> Option<usize> {
        self.carried(at_ns, at_ns, from, to)
    }

    /// Returns the smallest number of transmissions with which a packet gets from one station to
    /// the other between two times, if relays may keep it; none: it cannot.
    pub fn carried(&self, sent_ns: u64, arrived_ns: u64, from: usize, to: usize) -> Option<usize> {
        let having = self.spread(sent_ns, arrived_ns, from);
        having.iter().position(|set| set & bit(to) != 0)
    }

    /// Returns whether each link of the shortest path of an earlier time still exists; of several paths, those
    /// over stations with the lowest numbers.
    pub fn lasts(&self, then_ns: u64, now_ns: u64, from: usize, to: usize) -> bool {
        let [then, now] = [then_ns, now_ns].map(|ns| &self.steps[self.step(ns)]);
        let near = self.spread(then_ns, then_ns, to);
        let Some(hops) = near.iter().position(|set| set & bit(from) != 0) else {
            return false;
        };
        let mut here = from;
        near[..hops].iter().rev().all(|nearer| {
            let next = (then[here] & nearer).trailing_zeros() as usize;
            let exists = now[here] & bit(next) != 0;
            here = next;
            exists
        })
    }

    /// Returns which stations a packet can have reached after no transmission, after one at most, after
    /// two at most, and so on.
    fn spread(&self, sent_ns: u64, arrived_ns: u64, from: usize) -> Vec<Set> {
        let mut having = vec![bit(from)];
        for graph in &self.steps[self.step(sent_ns)..=self.step(arrived_ns)] {
            let mut hops = 0;
            while let Some(before) = having.get(hops).copied() {
                let senders = (0..graph.len()).filter(|station| before & bit(*station) != 0);
                let after = senders.fold(before, |set, station| set | graph[station]);
                hops += 1;
                match having.get_mut(hops) {
                    Some(set) => *set |= after,
                    None if after != before => having.push(after),
                    None => {}
                }
            }
        }
        having
    }

    /// After the last step the last one applies.
    fn step(&self, ns: u64) -> usize {
        let last = self.steps.len() - 1;
        usize::try_from(ns / STEP_NS).map_or(last, |step| step.min(last))
    }
}

fn bit(station: usize) -> Set {
    1 << station
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Straight from [200, 0] along the axis, from second 1 to second 5.
    fn ferry(to_m: f64) -> Track {
        let mut track = Track::still([200.0, 0.0]);
        track.push(S, [200.0, 0.0]);
        track.push(5 * S, [to_m, 0.0]);
        track
    }

    fn still(x: f64) -> Track {
        Track::still([x, 0.0])
    }

    #[test]
    fn a_relay_that_moves_connects_for_a_time() {
        // 100 m/s: station 2 hears 0 up to 250 m, 3 from 350 m on, and 1 up to 450 m.
        let tracks = [still(0.0), still(200.0), ferry(600.0), still(600.0)];
        let graphs = Graphs::new(&tracks, 250.0, 10 * S);
        let hops = |step: u64| graphs.hops(step * STEP_NS, 0, 3);
        let of = [0, 24, 25, 35, 36, 100, 1000].map(hops);
        assert_eq!(of, [None, None, Some(3), Some(3), None, None, None]);
        assert_eq!(graphs.hops(0, 0, 1), Some(1));
        assert_eq!(graphs.hops(16 * STEP_NS, 0, 2), Some(2));
        assert_eq!(graphs.hops(0, 2, 2), Some(0));
    }

    #[test]
    fn a_relay_that_keeps_a_packet_carries_it() {
        // 200 m/s: station 1 hears 0 up to 250 m, so until 1.2 s, and 2 from 650 m on, so from 3.3 s.
        let tracks = [still(0.0), ferry(1000.0), still(900.0)];
        let graphs = Graphs::new(&tracks, 250.0, 10 * S);
        assert!((0..100).all(|step| graphs.hops(step * STEP_NS, 0, 2).is_none()));
        let carried = |from, to| graphs.carried(from * STEP_NS, to * STEP_NS, 0, 2);
        let of = [(12, 33), (0, 100), (13, 100), (0, 32)].map(|(from, to)| carried(from, to));
        assert_eq!(of, [Some(2), Some(2), None, None]);
        assert_eq!(graphs.carried(0, 10 * S, 2, 0), None);
    }

    #[test]
    fn a_path_lasts_until_its_first_link_breaks() {
        // Over station 1, which leaves both at 1.2 s; station 3 stands beside it.
        let mut leaves = ferry(1000.0);
        leaves.push(6 * S, [200.0, 0.0]);
        let tracks = [still(0.0), leaves, still(400.0), still(190.0)];
        let graphs = Graphs::new(&tracks, 250.0, 10 * S);
        let lasts = |then, now| graphs.lasts(then * STEP_NS, now * STEP_NS, 0, 2);
        let of = [(0, 12), (0, 13), (13, 14), (0, 100)].map(|(then, now)| lasts(then, now));
        assert_eq!(of, [true, false, true, true]);
        // There was none.
        let apart = Graphs::new(&[still(0.0), still(300.0)], 250.0, 10 * S);
        assert!(!apart.lasts(0, S, 0, 1) && apart.lasts(0, S, 1, 1));
    }
}
