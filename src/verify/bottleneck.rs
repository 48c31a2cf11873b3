// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue that a train saturates, and the effect of losses before and after it: losses before it
//! reduce its load, which a busy queue does not show; losses after it reduce what arrives.

use super::probe::Sent;
use super::splitmix::Random;
use super::theory::Asked;

/// A train must exceed the rate by this factor to load the queue.
pub const SATURATES: f64 = 1.1;
/// Number of simulated packets: losses before the queue average out over a longer train.
const SIMULATED: usize = 2000;

pub struct Bottleneck<'a> {
    pub way: &'a Asked,
    /// Share of the packets that reaches its queue.
    pub ahead: f64,
    /// Share of the packets from its queue that arrives at the end.
    pub behind: f64,
    /// The queue of another direction empties and fills because of the losses in between, so
    /// neither is saturated.
    pub rival: bool,
}

impl<'a> Bottleneck<'a> {
    /// Returns the direction that passes the fewest packets, in the order in which packets pass them;
    /// `None`: no direction has a rate.
    pub fn of(ways: &[&'a Asked], bytes: usize) -> Option<Self> {
        let kept = |ways: &[&Asked]| ways.iter().map(|w| 1.0 - w.loss).product::<f64>();
        let queues: Vec<Queue> = (0..ways.len())
            .filter(|i| ways[*i].rate_bit_s.is_some())
            .map(|i| {
                let all = kept(&ways[..=i]);
                let (before, after) = match ways[i].loss_before {
                    true => (all, 1.0),
                    false => (kept(&ways[..i]), 1.0 - ways[i].loss),
                };
                Queue {
                    place: i,
                    ahead: before,
                    behind: after * kept(&ways[i + 1..]),
                    per_s: 1e9 / ways[i].serialisation_ns(bytes).max(1e-3),
                }
            })
            .collect();
        let narrowest = queues.iter().min_by(|a, b| a.ends().total_cmp(&b.ends()))?;
        Some(Self {
            way: ways[narrowest.place],
            ahead: narrowest.ahead,
            behind: narrowest.behind,
            rival: queues.iter().any(|q| q.rivals(narrowest)),
        })
    }

    /// Returns the largest share of the time for which this queue may be idle while the train is sent, with
    /// all the pauses of the sender; the losses before it are simulated `runs` times.
    pub fn idle(&self, sent: &[Sent], bytes: usize, runs: usize) -> f64 {
        let each = self.way.serialisation_ns(bytes);
        let paused = idle(sent, each, self.way.queue_packets, || true);
        if self.ahead >= 1.0 {
            return paused;
        }
        let sent = &sent[..sent.len().min(SIMULATED)];
        let mut random = Random::new(1);
        let worst = (0..runs)
            .map(|_| {
                idle(sent, each, self.way.queue_packets, || {
                    random.uniform() < self.ahead
                })
            })
            .fold(0.0, f64::max);
        paused + worst
    }
}

struct Queue {
    place: usize,
    ahead: f64,
    behind: f64,
    per_s: f64,
}

impl Queue {
    /// Packets per second that arrive at the end if this queue is never empty.
    fn ends(&self) -> f64 {
        self.per_s * self.behind
    }

    fn rivals(&self, narrowest: &Self) -> bool {
        // Packets that a slower queue has spaced never wait in a later one that is as fast.
        let spaced = self.place > narrowest.place && self.per_s >= narrowest.per_s;
        let losses_between = self.behind != narrowest.behind;
        self.place != narrowest.place
            && losses_between
            && !spaced
            && self.ends() < SATURATES * narrowest.ends()
    }
}

/// Returns the share of the time from the first packet to the last departure in which a queue with room for
/// `room` packets, `each_ns` apart, is empty (Lindley's recursion).
fn idle(sent: &[Sent], each_ns: f64, room: f64, mut comes: impl FnMut() -> bool) -> f64 {
    let mut first = None;
    let (mut free, mut idle) = (0f64, 0.0);
    for at in sent.iter().map(|s| s.at_ns as f64) {
        if !comes() {
            continue;
        }
        if first.is_none() {
            (first, free) = (Some(at), at);
        }
        if free - at > (room - 1.0) * each_ns {
            continue;
        }
        idle += (at - free).max(0.0);
        free = free.max(at) + each_ns;
    }
    idle / (free - first.unwrap_or(0.0)).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(rate: f64, loss: f64, loss_before: bool) -> Asked {
        Asked {
            rate_bit_s: Some(rate),
            loss,
            loss_before,
            ..Asked::nothing()
        }
    }

    fn shares(ways: &[&Asked]) -> (f64, f64, f64, bool) {
        let b = Bottleneck::of(ways, 1442).unwrap();
        (b.way.rate_bit_s.unwrap(), b.ahead, b.behind, b.rival)
    }

    #[test]
    fn losses_are_ahead_of_the_slowest_queue_or_behind_it() {
        let (before, after) = (way(1e6, 0.1, true), way(1e6, 0.1, false));
        assert_eq!(shares(&[&before]), (1e6, 0.9, 1.0, false));
        assert_eq!(shares(&[&after]), (1e6, 1.0, 0.9, false));
        let fast = way(9e6, 0.2, false);
        assert_eq!(shares(&[&before, &fast]), (1e6, 0.9, 0.8, false));
        assert_eq!(shares(&[&fast, &after]), (1e6, 0.8, 0.9, false));
        assert_eq!(shares(&[&fast, &before]), (1e6, 0.8 * 0.9, 1.0, false));
        let lossy = Asked {
            loss: 0.2,
            ..Asked::nothing()
        };
        assert_eq!(shares(&[&lossy, &after]), (1e6, 0.8, 0.9, false));
        assert!(Bottleneck::of(&[&lossy], 1442).is_none());
    }

    #[test]
    fn where_losses_make_two_queues_alike_neither_is_saturated() {
        let slow = way(1e6, 0.0, false);
        assert!(shares(&[&way(1.15e6, 0.1, false), &slow]).3);
        assert!(shares(&[&way(1.05e6, 0.1, false), &slow]).3);
        // The same rate in both directions: the return direction receives packets that are already
        // spaced.
        assert_eq!(
            shares(&[&way(1e6, 0.1, false), &slow]),
            (1e6, 1.0, 0.9, false)
        );
        assert!(
            !shares(&[&way(1.05e6, 0.0, false), &slow]).3,
            "no losses, no gaps"
        );
    }

    #[test]
    fn a_queue_is_idle_while_the_sender_pauses_longer_than_it_lasts() {
        let at = |ns: u64| Sent {
            at_ns: ns,
            vague: false,
        };
        let mut sent: Vec<Sent> = (0..100).map(|i| at(i * 10)).collect();
        assert_eq!(idle(&sent, 13.0, 5.0, || true), 0.0);
        // 1000 ns later the five packets of the queue have long left.
        sent.extend((200..300).map(|i| at(i * 10)));
        let share = idle(&sent, 13.0, 5.0, || true);
        assert!((share - 950.0 / 3050.0).abs() < 0.01, "{share}");
        assert_eq!(idle(&sent, 13.0, f64::INFINITY, || true), 700.0 / 3300.0);
    }
}
