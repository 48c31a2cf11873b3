// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP flows from station 1 to station 0 of a medium, in virtual time: a window of segments clocked
//! by acknowledgements, which contend with the data. A segment that the medium gives up is sent again
//! at once.

use std::sync::Arc;

use crate::medium::air::{Air, Fate, Frame, Outcome, Plan, To};
use crate::medium::phy::Matrix;

const SEGMENT: u32 = 1500;
const PAYLOAD: u64 = 1448;
const ACKNOWLEDGEMENT: u32 = 52;
const WINDOW: u64 = 40;
/// Applications write every ms.
const TICK_NS: u64 = 1_000_000;

#[derive(Debug)]
struct Flow {
    ds: u8,
    /// Between two segments of the application; 0: it has always one.
    gap_ns: u64,
    next_ns: u64,
    sent: u64,
    received: u64,
    acknowledged: u64,
}

#[derive(Debug)]
pub(super) struct Flows {
    pub air: Air<u64>,
    flows: Vec<Flow>,
    /// Segments for each acknowledgement.
    every: u64,
}

impl Flows {
    /// Creates a flow for each DS field, with an application that writes `rate` bit/s; none: it writes as
    /// much as it can. One of `every` segments is acknowledged.
    pub fn new(plan: Plan, matrix: Matrix, ds: &[u8], rate: Option<f64>, every: u64) -> Self {
        let gap_ns = rate.map_or(0, |rate| (PAYLOAD as f64 * 8e9 / rate) as u64);
        let flow = |ds: &u8| Flow {
            ds: *ds,
            gap_ns,
            next_ns: 0,
            sent: 0,
            received: 0,
            acknowledged: 0,
        };
        Self {
            air: Air::new(plan, Arc::new(matrix), &[]),
            flows: ds.iter().map(flow).collect(),
            every,
        }
    }

    pub fn run(&mut self, until_ns: u64) {
        while self.air.now_ns() < until_ns {
            let now_ns = self.air.now_ns();
            (0..self.flows.len()).for_each(|n| self.fill(n, now_ns));
            let tick_ns = (now_ns + TICK_NS).min(until_ns);
            while let Some(outcome) = self.air.next(tick_ns) {
                self.happens(outcome);
            }
        }
    }

    /// Returns the bytes that each flow has received.
    pub fn received(&self) -> Vec<u64> {
        let bytes = |flow: &Flow| flow.received * PAYLOAD;
        self.flows.iter().map(bytes).collect()
    }

    fn fill(&mut self, n: usize, at_ns: u64) {
        loop {
            let flow = &mut self.flows[n];
            if flow.sent >= flow.acknowledged + WINDOW || flow.next_ns > at_ns {
                return;
            }
            flow.sent += 1;
            flow.next_ns += flow.gap_ns;
            self.send(n, at_ns, 1, SEGMENT, 0);
        }
    }

    fn send(&mut self, n: usize, at_ns: u64, from: usize, bytes: u32, number: u64) {
        let frame = Frame {
            to: To::Station(1 - from as u16),
            bytes,
            token: (n as u64) << 32 | number,
        };
        let ds = self.flows[n].ds;
        self.air.arrive_with(at_ns, from, frame, ds);
    }

    fn happens(&mut self, outcome: Outcome<u64>) {
        match outcome {
            Outcome::Delivered {
                at_ns,
                to: 0,
                token,
                ..
            } => {
                let n = (token >> 32) as usize;
                let flow = &mut self.flows[n];
                flow.received += 1;
                let received = flow.received;
                if received.is_multiple_of(self.every) {
                    self.send(n, at_ns, 0, ACKNOWLEDGEMENT, received);
                }
            }
            Outcome::Delivered { at_ns, token, .. } => {
                let n = (token >> 32) as usize;
                let flow = &mut self.flows[n];
                flow.acknowledged = flow.acknowledged.max(token & 0xffff_ffff);
                self.fill(n, at_ns);
            }
            Outcome::Finished {
                at_ns,
                station: 1,
                token,
                fate: Fate::GivenUp,
            } => self.send((token >> 32) as usize, at_ns, 1, SEGMENT, 0),
            Outcome::Finished { .. } => {}
        }
    }
}
