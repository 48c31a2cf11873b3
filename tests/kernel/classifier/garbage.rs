// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that no stack would send: each packet is counted exactly once, whatever its content.

use emud::profile::{Delay, Jitter, Profile};
use support::chance::Random;

use super::*;

/// A frame of a kind that the parser supports, to be damaged.
fn sound(chance: &mut Random) -> Vec<u8> {
    let len = 64 + chance.index(1450);
    let mut frame = match chance.index(4) {
        0 => ip6([0, 43, 44, 50, 58, 60, 132][chance.index(7)], 0),
        1 => chance.bits().to_ne_bytes().repeat(len / 8),
        _ => udp4(len, chance.bits() as u16),
    };
    for _ in 0..chance.index(4) {
        let tag = [[0x81, 0x00], [0x88, 0xa8]][chance.index(2)];
        frame.splice(12..12, [tag[0], tag[1], 0, chance.bits() as u8]);
    }
    frame
}

pub(super) fn damaged(chance: &mut Random) -> Vec<u8> {
    let mut frame = sound(chance);
    for _ in 0..chance.index(6) {
        // The headers more often than the rest.
        let reach = [60, frame.len()][chance.index(2)].min(frame.len());
        let at = chance.index(reach);
        frame[at] = chance.bits() as u8;
    }
    // BPF_PROG_TEST_RUN requires the headers that it parses itself. It does not parse after a tag.
    let least = match frame[12..14] {
        [0x08, 0x00] => 14 + 20,
        [0x86, 0xdd] => 14 + 40,
        _ => 15,
    };
    if chance.index(4) == 0 && frame.len() > least {
        frame.truncate(least + chance.index(frame.len() - least));
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
            ..Delay::default()
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
            PacketTarget {
                l3,
                ..stamp_place()
            },
        );
        let mut chance = Random(nth as u64);
        for n in 0..u64::from(support::cases(400_000)) {
            let frame = damaged(&mut chance);
            let gso_size = match chance.index(8) {
                0 => chance.index(2_000) as u32,
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
