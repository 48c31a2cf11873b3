// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rate control by statistics: it finds the rate that a station with knowledge would take.

use emud::medium::air::{Air, Discipline, Frame, Outcome, Plan, RateControl, To};
use emud::medium::phy::{Matrix, Reach};

use super::traffic::{Cell, MS, S, plan};

/// DS field of CS5.
const VIDEO: u8 = 0xa0;

fn minstrel(standard: &str, aggregate: u32, seed: u64) -> Plan {
    Plan {
        rate: RateControl::Minstrel,
        aggregate,
        queue_packets: 200,
        ..plan(standard, seed)
    }
}

/// The other station decodes up to this mode.
fn up_to(mode: usize) -> Matrix {
    Matrix::new(2, |_, to| {
        Some(Reach {
            modes: (1 << (mode + 1)) - 1,
            ..Reach::full(to)
        })
    })
}

fn goodput(plan: Plan, matrix: Matrix, kbit: u32) -> f64 {
    let mut cell = Cell::new(plan, matrix, &[kbit; 2]);
    cell.saturate(1, To::Station(0), 1500);
    cell.run(S);
    let before = cell.air.count(1).sent_bytes;
    cell.run(4 * S);
    (cell.air.count(1).sent_bytes - before) as f64 * 8e-6 / 3.0
}

/// One frame in ten tries another rate: what that costs at most, and not less than nothing.
#[test]
fn it_finds_the_best_rate() {
    for (standard, aggregate, least) in [
        ("802.11b", 1, 0.93),
        ("802.11g", 1, 0.93),
        ("802.11n", 1, 0.93),
        ("802.11n", 32, 0.97),
    ] {
        let timing = plan(standard, 1).timing;
        for mode in timing.data_modes() {
            let kbit = timing.kbit(mode);
            let fixed = Plan {
                rate: RateControl::Fixed,
                ..minstrel(standard, aggregate, 1)
            };
            let best = goodput(fixed, up_to(mode), kbit);
            let slowest = timing.kbit(timing.slowest());
            let found = goodput(minstrel(standard, aggregate, 1), up_to(mode), slowest);
            let share = found / best;
            println!("{standard}, {aggregate}, {kbit} kbit/s: {found:.3} of {best:.3}, {share:.3}");
            assert!(
                (least..=1.001).contains(&share),
                "{standard} {kbit}: {share}"
            );
        }
    }
}

/// The mean rate of data frames is known: without broadcasts, and without an RTS that got no answer.
#[test]
fn the_rate_of_frames_is_counted() {
    for (rate, kbit, expected) in [
        (RateControl::Fixed, 2_000, 2.0..=2.0),
        (RateControl::Ideal, 11_000, 5.5..=5.5),
        // Now and then it tries the other rates.
        (RateControl::Minstrel, 1_000, 4.5..=6.5),
    ] {
        let plan = Plan {
            rate,
            rts_bytes: Some(0),
            ..plan("802.11b", 1)
        };
        let mut cell = Cell::new(plan, up_to(2), &[kbit; 2]);
        cell.saturate(0, To::All, 500);
        cell.saturate(1, To::Station(0), 1500);
        cell.run(5 * S);
        let [broadcast, unicast] = [0, 1].map(|station| cell.air.count(station));
        assert_eq!((broadcast.data_frames, broadcast.data_kbit_s), (0, 0));
        assert!((100..unicast.attempts).contains(&unicast.data_frames));
        let mbit = unicast.data_kbit_s as f64 / 1e3 / unicast.data_frames as f64;
        assert!(expected.contains(&mbit), "{rate:?}: {mbit}");
    }
}

/// A packet that does not fit into a TXOP takes no sample along.
#[test]
fn it_finds_the_best_rate_of_a_short_time() {
    let goodput = |rate: RateControl| {
        let plan = minstrel("802.11n", 64, 1);
        let timing = plan.timing.with_qos();
        let mode = |kbit| timing.mode(kbit).unwrap();
        let (slow, fast) = (mode(26_000), mode(65_000));
        let begin = match rate {
            RateControl::Fixed => fast,
            _ => timing.slowest(),
        };
        let plan = Plan {
            discipline: Discipline::Edca,
            timing: timing.clone(),
            rate,
            ..plan
        };
        let mut air = Air::new(plan, up_to(slow).into(), &[begin; 2]);
        let frame = Frame {
            to: To::Station(0),
            bytes: 1500,
            token: (),
        };
        (0..128).for_each(|_| assert!(air.arrive_with(0, 1, frame, VIDEO)));
        air.move_at(S, up_to(fast).into());
        let mut sent = 0;
        while let Some(outcome) = air.next(4 * S) {
            if let Outcome::Finished { at_ns, .. } = outcome {
                air.arrive_with(at_ns, 1, frame, VIDEO);
                sent += u32::from(at_ns > 3 * S);
            }
        }
        f64::from(sent)
    };
    let share = goodput(RateControl::Minstrel) / goodput(RateControl::Fixed);
    println!("{share:.3} of the best");
    assert!((0.9..=1.01).contains(&share), "{share}");
}

/// When the receiver comes nearer or leaves, the rate follows within a few intervals of 50 ms.
#[test]
fn it_follows_a_station_that_moves() {
    let plan = minstrel("802.11g", 1, 1);
    let timing = plan.timing.clone();
    let slowest = timing.kbit(timing.slowest());
    let mut cell = Cell::new(plan, up_to(7), &[slowest; 2]);
    cell.saturate(1, To::Station(0), 1500);
    cell.run(S);
    let sent = |cell: &mut Cell, until_ns| {
        let before = cell.air.count(1).sent;
        cell.run(until_ns);
        cell.air.count(1).sent - before
    };
    let near = sent(&mut cell, 2 * S);
    cell.air.move_at(2 * S, up_to(2).into());
    cell.run(2 * S + 500 * MS);
    let far = sent(&mut cell, 3 * S + 500 * MS);
    cell.air.move_at(3 * S + 500 * MS, up_to(7).into());
    cell.run(4 * S + 500 * MS);
    let again = sent(&mut cell, 5 * S + 500 * MS);
    println!("{near} packets/s, {far} at 12 Mbit/s, {again}");
    // 54 and 12 Mbit/s: 2,541 and 811 packets/s at the best.
    assert!((2_000..2_560).contains(&near), "{near}");
    assert!((650..830).contains(&far), "{far}");
    assert!((2_000..2_560).contains(&again), "{again}");
}
