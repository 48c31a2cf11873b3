// SPDX-License-Identifier: MIT OR Apache-2.0
//! What no server can promise: all orders of packets of one length, of classes that always have some.

use emud::bottleneck::QUANTUM;

const FRAME: i64 = 1514;
/// Of one transmission each.
const SLOTS: i64 = 400;

/// In packets times the sum of all shares, so all figures are whole.
#[derive(Clone, Copy)]
struct Class {
    share: i64,
    sent: i64,
    /// The most that it was ahead of its rate, at the end of a packet.
    ahead: i64,
    /// The most that it may be behind its rate in an interval.
    bound: i64,
}

impl Class {
    /// The last slot in which its next packet keeps the bound in all intervals.
    fn latest(&self, sum: i64) -> i64 {
        (self.bound - self.ahead + self.sent * sum) / self.share
    }
}

/// Returns whether an order of all slots keeps the bounds. The search stops where no continuation could.
fn exists(classes: [Class; 3], slot: i64) -> bool {
    if slot == SLOTS {
        return true;
    }
    let sum = classes.iter().map(|class| class.share).sum();
    let latest = classes.map(|class| class.latest(sum));
    // The most urgent first: that finds an order at once, if there is one.
    let mut order = [0, 1, 2];
    order.sort_by_key(|at| latest[*at]);
    order.into_iter().any(|next| {
        let begins = |at: usize| slot + i64::from(at != next);
        let mut after = classes;
        let class = &mut after[next];
        class.sent += 1;
        let ahead = class.sent * sum - class.share * (slot + 1);
        class.ahead = class.ahead.max(ahead);
        (0..3).all(|at| begins(at) <= latest[at]) && exists(after, slot + 1)
    })
}

/// docs/queues.md. The server is never idle, so a transmission begins in each slot. The shares are close to numbers in
/// no rational relation.
#[test]
fn no_order_keeps_every_interval_within_a_quantum() {
    let shares = [41_421, 31_783, 26_796];
    let sum: i64 = shares.iter().sum();
    let within = |bound: fn(i64, i64) -> i64| {
        let class = |share| Class {
            share,
            sent: 0,
            ahead: 0,
            bound: bound(share, sum),
        };
        exists(shares.map(class), 0)
    };
    assert!(!within(|_, sum| sum), "a packet");
    assert!(!within(|_, sum| sum * QUANTUM as i64 / FRAME), "a quantum");
    // What emud's server keeps: some order does.
    assert!(within(|share, sum| 2 * sum - share));
}
