// SPDX-License-Identifier: MIT OR Apache-2.0
//! One TCP flow in one cell: a sender clocked by acknowledgements, every second segment of which is
//! acknowledged, and whose acknowledgements contend with its data.

use emud::medium::air::{Air, Fate, Frame, Outcome, Plan, To};
use emud::medium::phy::Matrix;
use support::count;

use super::traffic::{Cell, S, megabits, near, plan, timing};

const SEGMENT: u32 = 1500;
const PAYLOAD: u64 = 1448;
const ACKNOWLEDGEMENT: u32 = 52;
const WINDOW: u64 = 40;

/// A flow from station 1 to station 0. A segment that the medium gives up is sent again at once.
#[derive(Default)]
pub struct Flow {
    sent: u64,
    received: u64,
    acknowledged: u64,
}

impl Flow {
    pub fn fill(&mut self, air: &mut Air<u64>, at_ns: u64) {
        while self.sent < self.acknowledged + WINDOW {
            self.sent += 1;
            self.segment(air, at_ns);
        }
    }

    fn segment(&self, air: &mut Air<u64>, at_ns: u64) {
        let frame = Frame {
            to: To::Station(0),
            bytes: SEGMENT,
            token: 0,
        };
        assert!(air.arrive(at_ns, 1, frame));
    }

    pub fn run(&mut self, air: &mut Air<u64>, until_ns: u64) {
        while let Some(outcome) = air.next(until_ns) {
            self.happens(air, outcome);
        }
    }

    /// What has been received.
    pub fn bytes(&self) -> u64 {
        self.received * PAYLOAD
    }

    fn happens(&mut self, air: &mut Air<u64>, outcome: Outcome<u64>) {
        match outcome {
            Outcome::Delivered { at_ns, to: 0, .. } => {
                self.received += 1;
                if self.received.is_multiple_of(2) {
                    let frame = Frame {
                        to: To::Station(1),
                        bytes: ACKNOWLEDGEMENT,
                        token: self.received,
                    };
                    assert!(air.arrive(at_ns, 0, frame));
                }
            }
            Outcome::Delivered { at_ns, token, .. } => {
                self.acknowledged = self.acknowledged.max(token);
                self.fill(air, at_ns);
            }
            Outcome::Finished {
                at_ns,
                station: 1,
                fate: Fate::GivenUp,
                ..
            } => self.segment(air, at_ns),
            Outcome::Finished { .. } => {}
        }
    }
}

/// Runs a flow: the cell, and what has been received, in bytes.
pub fn flow(plan: Plan, matrix: Matrix, kbit: u32, until_ns: u64) -> (Cell, u64) {
    let mut cell = Cell::new(plan, matrix, &[kbit; 2]);
    let mut flow = Flow::default();
    flow.fill(&mut cell.air, 0);
    flow.run(&mut cell.air, until_ns);
    (cell, flow.bytes())
}

/// Bounds without collisions, in Mbit/s: the backoffs of data and acknowledgement are waited for
/// one after the other, or that of the acknowledgement passes during the data's.
fn bounds(standard: &str, kbit: u32) -> (f64, f64) {
    let timing = timing(standard);
    let mode = timing.mode(kbit).unwrap();
    let exchange = |bytes| {
        let ns = timing.data_ns(bytes, mode) + timing.ack_ns(mode);
        (ns + timing.sifs_ns + timing.difs_ns) as f64
    };
    let backoff = f64::from(timing.cw_min) / 2.0 * timing.slot_ns as f64;
    let both = exchange(SEGMENT) + exchange(ACKNOWLEDGEMENT) / 2.0;
    let goodput = |backoffs: f64| 8e3 * PAYLOAD as f64 / (both + backoffs * backoff);
    (goodput(1.5), goodput(0.75))
}

/// At 1 and 2 Mbit/s the goodput is 2 % below the lower bound, and that is right: the bounds leave
/// out that data and acknowledgement collide. Two stations with a backoff of 0..=31 each do so
/// about once in 32 acknowledgements, which costs a whole data frame and the timeout: 12.8 of
/// 26 ms for two segments at 1 Mbit/s. Where backoffs are a larger part of the time, the gap
/// between the bounds hides it. Over the time outside collisions the goodput is within them.
#[test]
fn tcp_is_below_its_bounds_by_its_collisions() {
    let rows = [
        ("802.11b", 1_000, 0.816),
        ("802.11b", 2_000, 1.529),
        ("802.11b", 5_500, 3.362),
        ("802.11b", 11_000, 5.116),
        ("802.11g", 54_000, 24.26),
    ];
    for (standard, kbit, expected) in rows {
        let until_ns = count(60) * S;
        let (cell, received) = flow(plan(standard, 7), Matrix::full(2), kbit, until_ns);
        let goodput = megabits(received, until_ns);
        near(
            &format!("{standard} at {kbit} kbit/s"),
            goodput,
            expected,
            0.02,
        );

        let timing = timing(standard);
        let mode = timing.mode(kbit).unwrap();
        let collisions = cell.counts()[1].failed;
        let each_ns = timing.data_ns(SEGMENT, mode) + timing.eifs_ns;
        let lost = (collisions * each_ns) as f64 / until_ns as f64;
        let (low, high) = bounds(standard, kbit);
        let outside = goodput / (1.0 - lost);
        println!("  {lost:.4} lost in collisions; {outside:.3} outside, {low:.3}..{high:.3}");
        assert!((low..high).contains(&outside));
        assert!(goodput < low || kbit > 2_000);
        assert!((0.01..0.06).contains(&lost), "{lost}");
    }
}
