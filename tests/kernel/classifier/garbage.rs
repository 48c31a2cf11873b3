// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that no stack would send: whatever comes, each packet meets exactly one fate.

use emud::profile::{Delay, Jitter, Profile};

use super::*;

/// SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// One of a kind that the parser knows, to be damaged.
fn sound(chance: &mut Chance) -> Vec<u8> {
    let len = 64 + chance.below(1450);
    let mut frame = match chance.below(4) {
        0 => ip6([0, 43, 44, 50, 58, 60, 132][chance.below(7)], 0),
        1 => chance.next().to_ne_bytes().repeat(len / 8),
        _ => udp4(len, chance.next() as u16),
    };
    for _ in 0..chance.below(4) {
        let tag = [[0x81, 0x00], [0x88, 0xa8]][chance.below(2)];
        frame.splice(12..12, [tag[0], tag[1], 0, chance.next() as u8]);
    }
    frame
}

fn damaged(chance: &mut Chance) -> Vec<u8> {
    let mut frame = sound(chance);
    for _ in 0..chance.below(6) {
        // The headers more often than the rest.
        let reach = [60, frame.len()][chance.below(2)].min(frame.len());
        let at = chance.below(reach);
        frame[at] = chance.next() as u8;
    }
    // BPF_PROG_TEST_RUN takes no less than the headers that it looks at itself. Behind a tag it does
    // not look.
    let least = match frame[12..14] {
        [0x08, 0x00] => 14 + 20,
        [0x86, 0xdd] => 14 + 40,
        _ => 15,
    };
    if chance.below(4) == 0 && frame.len() > least {
        frame.truncate(least + chance.below(frame.len() - least));
    }
    frame
}

#[test]
fn every_frame_meets_one_fate() {
    let text = r#"
        rate = "20Mbit"
        queue = "12p"
        loss = { model = "gilbert-elliott", p = "2%", r = "30%" }
        duplicate = "3%"
        corrupt = { probability = "20%", bits = 3 }
        delay = { mean = "5ms", sd = "2ms", distribution = "normal", reorder = "jitter" }
    "#;
    let everything = Profile::parse(&format!("[up]\n{text}"), "everything").unwrap();
    let plain = link(|l| {
        l.delay = Delay {
            mean_ns: 5 * MS,
            jitter: Some(Jitter::default()),
            share: None,
        };
    });
    for (nth, (link, l3)) in [
        (&everything.up, false),
        (&everything.up, true),
        (&plain, false),
    ]
    .into_iter()
    .enumerate()
    {
        let b = Bench::with(
            link,
            42,
            Place {
                l3,
                ..stamp_place()
            },
        );
        let mut chance = Chance(nth as u64);
        for n in 0..u64::from(support::cases(400_000)) {
            let frame = damaged(&mut chance);
            let gso_size = match chance.below(8) {
                0 => chance.below(2_000) as u32,
                _ => 0,
            };
            let fate = b.send_gso(&frame, n * 100_000, gso_size);
            assert!(
                [TC_ACT_UNSPEC, TC_ACT_STOLEN].contains(&fate.verdict),
                "{n}: {fate:?} of {frame:02x?}"
            );
        }
        let c = b.counters();
        let sum = |counts: &[u64]| counts.iter().sum::<u64>();
        let fates = c.lost
            + c.queue_dropped
            + c.down
            + sum(&c.aqm_dropped)
            + sum(&c.passed)
            + sum(&c.delay_hist);
        assert_eq!(c.packets, fates, "link {nth}");
        let met = [c.lost > 0, c.queue_dropped > 0, c.corrupted > 0];
        assert_eq!(met, [nth < 2; 3], "link {nth}: every stage has had some");
    }
}
