// SPDX-License-Identifier: MIT OR Apache-2.0
//! The transfer of blocks in virtual time, over a channel as the published one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::f64::consts::TAU;

use crate::abi::{self, mix};
use crate::experiment::traffic::window::{Step, Window};

const S: u64 = 1_000_000_000;
const SEED: u64 = 1;

/// Losses and delays of packets, in both directions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Channel {
    /// Round trip of a packet that is neither lost nor delayed.
    pub round_trip_ns: u64,
    pub loss: f64,
    /// Share of packets with a delay.
    pub share: f64,
    /// Mean and standard deviation of their normal delay, ms; a negative one is none.
    pub delay_ms: [f64; 2],
}

impl Channel {
    /// Returns the blocks acknowledged per second, over `seconds`.
    pub fn blocks(self, mut window: Window, seconds: u64) -> f64 {
        let mut random = Random { draws: 0 };
        let mut coming = BinaryHeap::new();
        let mut now = 0;
        while now < seconds * S {
            match window.step(now) {
                Step::Send(number) => {
                    let directions = [0; 2].map(|_| self.direction(&mut random));
                    if let [Some(there), Some(back)] = directions {
                        let at = now + self.round_trip_ns + there + back;
                        coming.push(Reverse((at, number)));
                    }
                }
                Step::Wait(until) => {
                    now = until;
                    if let Some(&Reverse((at, number))) = coming.peek()
                        && at <= until
                    {
                        now = at;
                        coming.pop();
                        window.acknowledge(number);
                    }
                }
            }
        }
        window.acknowledged() as f64 / seconds as f64
    }

    /// Delay of a packet, ns; `None`: lost.
    fn direction(self, random: &mut Random) -> Option<u64> {
        if random.uniform() < self.loss {
            return None;
        }
        if random.uniform() >= self.share {
            return Some(0);
        }
        let [mean, sd] = self.delay_ms;
        let ms = mean + sd * random.normal();
        Some((ms.max(0.0) * 1e6) as u64)
    }
}

struct Random {
    draws: u64,
}

impl Random {
    /// From 0 to 1, without 0.
    fn uniform(&mut self) -> f64 {
        self.draws += 1;
        abi::uniform(mix(mix(SEED) ^ mix(self.draws))) + f64::EPSILON / 2.0
    }

    /// By the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn channel(loss: f64, share: f64) -> Channel {
        Channel {
            round_trip_ns: MS / 4,
            loss,
            share,
            delay_ms: [10.0, 0.0],
        }
    }

    /// Within 2 %, four standard errors of the worst case, a window that losses empty.
    fn near(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 0.02, "{got} instead of {want}");
    }

    /// A wide window: each transmission of a round trip without loss is one block.
    #[test]
    fn the_rate_limits() {
        let window = || Window::new(1_000, MS / 5, 50 * MS);
        near(channel(0.0, 0.0).blocks(window(), 20), 5_000.0);
        let q = 1.0 - 0.9f64.powi(2);
        near(channel(0.1, 0.0).blocks(window(), 20), 5_000.0 * (1.0 - q));
    }

    /// A high rate: a position of the window takes a round trip, and a timeout for each loss, of
    /// which there are q / (1 - q) on average.
    #[test]
    fn the_window_limits() {
        let window = || Window::new(10, MS / 1_000, 20 * MS);
        let q = 1.0 - 0.95f64.powi(2);
        let ms = 0.25 + 20.0 * q / (1.0 - q);
        near(channel(0.05, 0.0).blocks(window(), 100), 10.0 / ms * 1e3);
        // A fifth of the packets with 10 ms more, each way; the longest round trip is 20.25 ms.
        let window = Window::new(10, MS / 1_000, 30 * MS);
        near(channel(0.0, 0.2).blocks(window, 30), 10.0 / 4.25 * 1e3);
    }
}
