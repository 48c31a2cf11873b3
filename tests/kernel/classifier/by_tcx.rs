// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of tcx has the same results, packet by packet, as the one of clsact; only the verdict
//! by which it consumes a packet differs.

use emud::profile::{Loss, LossModel};
use support::chance::Random;

use super::garbage::damaged;
use super::*;

/// Links that take the short path, and the other one.
fn links() -> [Link; 3] {
    let constant = link(|l| l.delay.mean_ns = 2 * MS);
    let mut lossy = jitter(2 * MS, 5e5, Distribution::Normal, Reorder::Jitter);
    lossy.loss = Loss {
        model: LossModel::Bernoulli {
            probability: 0.3,
            correlation: 0.0,
        },
        ..Loss::default()
    };
    let mut limited = constant.clone();
    limited.rate = Some(10_000_000);
    [constant, lossy, limited]
}

#[test]
fn both_hooks_have_the_same_results() {
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_QDISC,
        ..stamp_place()
    };
    let mut chance = Random(11);
    for link in links() {
        let both = [Program::Classify, Program::Egress].map(|program| {
            let mut bench = Bench::of(program, &Sizes::default(), 0);
            bench.set(&link, 42, place);
            bench
        });
        let (mut now, mut consumed) = (START, 0);
        for _ in 0..support::cases(1_000) {
            now += chance.index(60_000) as u64;
            let frame = match chance.index(4) {
                0 => damaged(&mut chance),
                source => udp4(200, 40_000 + source as u16),
            };
            let ctx = arriving(now);
            let [clsact, tcx] =
                (both.each_ref()).map(|b| run_program(&b.loaded, b.program, &frame, &ctx));
            let expected = match clsact.verdict {
                TC_ACT_STOLEN => TC_ACT_REDIRECT,
                verdict => verdict,
            };
            consumed += u32::from(clsact.verdict == TC_ACT_STOLEN);
            assert_eq!(tcx.verdict, expected, "{frame:02x?}");
            assert_eq!(tcx.ctx, clsact.ctx, "{frame:02x?}");
            assert_eq!(tcx.frame, clsact.frame, "{frame:02x?}");
        }
        let [clsact, tcx] = both.each_ref().map(|b| format!("{:?}", b.counters()));
        assert_eq!(clsact, tcx);
        assert!(consumed > 0 || link.loss == Loss::default());
    }
}
