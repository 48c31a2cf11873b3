// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packets of flows, judged by the positions of the stations.

use super::graphs::{Graphs, STEP_NS};
use super::{HELLO_S, S};
use crate::experiment::traffic::Sent;
use crate::medium::motion::Track;

/// Of the radios.
const RANGE_M: f64 = 250.0;
/// Of a packet that no relay has forwarded.
const TTL: u64 = 64;
/// The motion of two stations in two steps: one of the medium, and what it begins before the phase.
const STEPS_APART: f64 = 4.0;
/// After this time babeld has a new route in place of a broken one.
const REACTS_NS: u64 = 8 * HELLO_S * S;

/// Connectivity that the positions allow.
pub(super) struct Reach {
    exact: Graphs,
    /// With the largest error of the positions.
    wide: Graphs,
    pub moves: bool,
}

impl Reach {
    pub fn new(tracks: &[Track], speed_m_s: f64, until_ns: u64) -> Self {
        let within =
            |track: &Track| (track.waypoints().get(1)).is_some_and(|(ns, _)| *ns < until_ns);
        let moves = tracks.iter().any(within);
        let step_m = speed_m_s * STEP_NS as f64 / 1e9;
        let more_m = if moves { STEPS_APART * step_m } else { 0.0 };
        Self {
            exact: Graphs::new(tracks, RANGE_M, until_ns),
            wide: Graphs::new(tracks, RANGE_M + more_m, until_ns),
            moves,
        }
    }
}

pub(super) struct Flow<'a> {
    pub from: usize,
    pub to: usize,
    pub sent: &'a Sent,
    /// As in [`crate::experiment::traffic::Received::each`].
    pub arrived: &'a [[u64; 3]],
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub sent: u64,
    /// Sent while there was a path.
    pub connected: u64,
    /// Sent while the path of some time ago existed.
    pub lasting: u64,
    pub arrived: u64,
    /// Without a path, or over fewer hops than it has.
    pub impossible: u64,
    /// Arrived over one of these hops more than the shortest path when they were sent.
    pub detour_hops: i64,
    /// Arrived, and there was a path when they were sent.
    pub with_path: u64,
}

impl Tally {
    /// Adds the packets of a flow. The motion began at `began_ns`.
    pub fn add(&mut self, flow: &Flow<'_>, reach: &Reach, began_ns: u64) {
        let Flow {
            from,
            to,
            sent,
            arrived,
        } = *flow;
        let since = |ns: u64| ns.saturating_sub(began_ns);
        let span_ns = sent.last_ns - sent.first_ns;
        let gaps = sent.packets.saturating_sub(1).max(1);
        for n in 0..sent.packets {
            let at_ns = since(sent.first_ns + span_ns * n / gaps);
            let then_ns = at_ns.saturating_sub(REACTS_NS);
            self.connected += u64::from(reach.exact.hops(at_ns, from, to).is_some());
            self.lasting += u64::from(reach.exact.lasts(then_ns, at_ns, from, to));
        }
        for [sent_ns, arrived_ns, ttl] in arrived {
            let [sent_ns, arrived_ns] = [*sent_ns, *arrived_ns].map(since);
            let hops = (TTL + 1).saturating_sub(*ttl);
            let fewest = reach.wide.carried(sent_ns, arrived_ns, from, to);
            self.impossible += u64::from(fewest.is_none_or(|fewest| hops < fewest as u64));
            if let Some(shortest) = reach.exact.hops(sent_ns, from, to) {
                self.detour_hops += hops as i64 - shortest as i64;
                self.with_path += 1;
            }
        }
        self.sent += sent.packets;
        self.arrived += arrived.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn still(x: f64) -> Track {
        Track::still([x, 0.0])
    }

    fn sent(packets: u64) -> Sent {
        Sent {
            port: 6001,
            packets,
            unroutable: 0,
            bytes: 64 * packets,
            first_ns: 5 * S,
            last_ns: 25 * S,
        }
    }

    #[test]
    fn packets_are_judged_by_the_positions() {
        // The last of three leaves the second at 10.08 s. The motion began at 5 s.
        let mut leaves = Track::still([400.0, 0.0]);
        leaves.push(10 * S, [400.0, 0.0]);
        leaves.push(11 * S, [1000.0, 0.0]);
        let reach = Reach::new(&[still(0.0), still(200.0), leaves], 20.0, 20 * S);
        let of = |arrived: &[[u64; 3]]| {
            let arrived = arrived
                .iter()
                .map(|[from, to, ttl]| [5 * S + from, 5 * S + to, *ttl]);
            let arrived: Vec<_> = arrived.collect();
            let mut tally = Tally::default();
            let flow = Flow {
                from: 0,
                to: 2,
                sent: &sent(81),
                arrived: &arrived,
            };
            tally.add(&flow, &reach, 5 * S);
            tally
        };
        // Two hops; of the others, one has one, one no path, one a relay that kept it until after 10 s.
        let ms = S / 1000;
        let found = of(&[
            [S, S + ms, 63],
            [2 * S, 2 * S + ms, 62],
            [3 * S, 3 * S + ms, 64],
            [12 * S, 12 * S + ms, 63],
            [99 * S / 10, 12 * S, 63],
        ]);
        let wanted = Tally {
            sent: 81,
            connected: 41,
            lasting: 41,
            arrived: 5,
            impossible: 2,
            detour_hops: 0,
            with_path: 4,
        };
        assert_eq!(found, wanted);
    }
}
