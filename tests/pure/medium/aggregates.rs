// SPDX-License-Identifier: MIT OR Apache-2.0
//! 802.11n: aggregates and block acknowledgements, against figures computed here from the standard.

use emud::abi::mix;
use emud::medium::air::{Air, Discipline, Fate, Frame, Outcome, Plan, RateControl, To};
use emud::medium::phy::{Matrix, Reach};

use super::bianchi::{Figures, G};
use super::traffic::{S, near, plan, saturated};

fn ht(aggregate: u32, seed: u64) -> Plan {
    Plan {
        aggregate,
        queue_packets: 200,
        ..plan("802.11n", seed)
    }
}

/// Of a frame with packets of 1500: each has 38 around it, a delimiter of 4 if it is not alone, and is filled up
/// to a multiple of 4 but for the last one.
fn octets(packets: u32) -> u32 {
    match packets {
        1 => 1538,
        _ => (packets - 1) * (4 + 1540) + 4 + 1538,
    }
}

/// 36 us of preamble, symbols of 4 us, 6 us of silence.
fn lasts_us(octets: u32, mbit: f64) -> f64 {
    let symbols = (f64::from(8 * octets + 22) / (4.0 * mbit)).ceil();
    36.0 + 4.0 * symbols + 6.0
}

/// DIFS 28 us, on average 7.5 slots of 9 us, SIFS 10 us; an answer at 24 Mbit/s in two or three symbols.
fn cycle_us(data_us: f64, answer_symbols: f64) -> f64 {
    28.0 + 7.5 * 9.0 + data_us + 10.0 + (20.0 + 4.0 * answer_symbols + 6.0)
}

/// For station 0.
fn frame(bytes: u32, token: u64) -> Frame<u64> {
    let to = To::Station(0);
    Frame { to, bytes, token }
}

/// At 65 Mbit/s an aggregate of 28 packets lasts 5,364 us, and one of 29 is longer than 5,484 us.
#[test]
fn one_sender() {
    for (kbit, aggregate, packets, answer) in [
        (65_000, 1, 1, 2.0),
        (65_000, 2, 2, 3.0),
        (65_000, 16, 16, 3.0),
        (65_000, 64, 28, 3.0),
        (39_000, 64, 17, 3.0),
        // An answer at 12 Mbit/s: 278 bits are six symbols.
        (19_500, 64, 8, 6.0),
    ] {
        let cell = saturated(ht(aggregate, 1), Matrix::full(2), &[kbit; 2], 10 * S);
        let mbit = f64::from(kbit) / 1e3;
        let data_us = lasts_us(octets(packets), mbit);
        assert!(data_us <= 5484.0, "{data_us}");
        let longer_us = lasts_us(octets(packets + 1), mbit);
        assert!(packets == aggregate || longer_us > 5484.0, "{longer_us}");
        let expected = f64::from(packets) * 12_000.0 / cycle_us(data_us, answer);
        let what = format!("{packets} packets at {mbit} Mbit/s");
        near(&what, cell.sent_mbit()[1], expected, 0.005);
        let count = cell.air.count(1);
        assert_eq!((count.failed, count.duplicates), (0, 0));
    }
}

/// Only what was damaged is sent again, and nothing is delivered twice or out of order.
#[test]
fn bit_errors_hit_single_packets() {
    let ber = 1e-5;
    let matrix = Matrix::new(2, |_, to| Some(Reach::full(to).with_ber(ber)));
    let mut air = Air::new(ht(64, 3), matrix.into(), &[10, 10]);
    let (mut sent, mut last) = (200_u64, None);
    (0..sent).for_each(|token| assert!(air.arrive(0, 1, frame(1500, token))));
    let (mut delivered, mut given_up) = (0, 0);
    while let Some(outcome) = air.next(5 * S) {
        match outcome {
            Outcome::Finished { at_ns, fate, .. } => {
                given_up += u64::from(fate == Fate::GivenUp);
                air.arrive(at_ns, 1, frame(1500, sent));
                sent += 1;
            }
            Outcome::Delivered { token, .. } => {
                assert!(last.is_none_or(|last| token > last), "{last:?} {token}");
                last = Some(token);
                delivered += 1;
            }
        }
    }
    let count = air.count(1);
    let lost = 1.0 - (1.0_f64 - ber).powi(8 * 1538);
    let tried = (count.sent + count.given_up + count.damaged) as f64;
    near("damaged", count.damaged as f64 / tried, lost, 0.03);
    // 0.116^7 of the packets, one in three million.
    assert_eq!(given_up, 0);
    assert!(delivered > 20_000, "{delivered}");
    assert!(sent - delivered <= 264, "{sent} {delivered}");
}

/// No packet is sent that is 64 or more behind one that has not arrived.
#[test]
fn a_window_of_packets_is_under_way() {
    let matrix = Matrix::new(2, |_, to| Some(Reach::full(to).with_ber(3e-4)));
    let mut air = Air::new(ht(64, 9), matrix.into(), &[10, 10]);
    (0..190).for_each(|token| assert!(air.arrive(0, 1, frame(80, token))));
    let (mut delivered, mut most) = (0_u64, 0);
    for step in 1..100_000 {
        while let Some(outcome) = air.next(step * 20_000) {
            match outcome {
                Outcome::Finished { at_ns, .. } => {
                    air.arrive(at_ns, 1, frame(80, 0));
                }
                Outcome::Delivered { .. } => delivered += 1,
            }
        }
        most = most.max(air.count(1).sent.saturating_sub(delivered));
    }
    // A quarter of the packets is lost, so some wait for their last attempt.
    println!("{most} of {delivered} acknowledged ahead of one that is missing");
    assert!((30..64).contains(&most), "{most}");
}

/// What is given up does not keep back what came behind it.
#[test]
fn a_packet_that_is_given_up_leaves_a_gap() {
    let matrix = Matrix::new(2, |_, to| Some(Reach::full(to).with_ber(6e-5)));
    let plan = Plan {
        attempts: 2,
        ..ht(64, 5)
    };
    let mut air = Air::new(plan, matrix.into(), &[10, 10]);
    for token in 0..200 {
        air.arrive(0, 1, frame(1500, token));
    }
    let (mut arrived, mut fates) = (Vec::new(), Vec::new());
    while let Some(outcome) = air.next(S) {
        match outcome {
            Outcome::Delivered { token, .. } => arrived.push(token),
            Outcome::Finished { token, fate, .. } => fates.push((token, fate)),
        }
    }
    assert_eq!(fates.len(), 200);
    assert!(arrived.is_sorted());
    let has = |token| arrived.binary_search(&token).is_ok();
    for (token, fate) in &fates {
        match fate {
            Fate::Sent => assert!(has(*token)),
            Fate::GivenUp => {}
            fate => panic!("{fate:?}"),
        }
    }
    let given_up = fates
        .iter()
        .filter(|(_, fate)| *fate == Fate::GivenUp)
        .count();
    assert!((40..160).contains(&given_up), "{given_up}");
    let air_count = air.count(1);
    assert_eq!(air_count.given_up, given_up as u64);
}

/// Packets for two receivers do not share a frame, but those for one may be anywhere in the queue.
#[test]
fn an_aggregate_has_one_receiver() {
    let mut air = Air::new(ht(64, 1), Matrix::full(3).into(), &[10; 3]);
    for token in 0..40 {
        let to = To::Station((token % 2) as u16);
        let bytes = 1000;
        air.arrive(0, 2, Frame { to, bytes, token });
    }
    let mut times = [Vec::new(), Vec::new()];
    while let Some(outcome) = air.next(S) {
        if let Outcome::Delivered {
            at_ns, to, token, ..
        } = outcome
        {
            assert_eq!(token % 2, to as u64);
            times[to].push(at_ns);
        }
    }
    // All have arrived before the gap was over.
    assert_eq!((times[0].len(), times[1].len()), (20, 20));
    for times in &mut times {
        times.dedup();
    }
    assert_eq!((times[0].len(), times[1].len()), (1, 1));
    assert_eq!(air.count(2).attempts, 2);
}

/// Aggregates of 16: a collision lasts as long as the longest frame, here all are equal.
#[test]
fn saturated_stations() {
    let data_us = lasts_us(octets(16), 65.0);
    let figures = Figures {
        standard: "802.11n",
        kbit: 65_000,
        packets: 16.0,
        success: data_us + 10.0 + 38.0 + 28.0,
        // EIFS has an ACK at 6 Mbit/s.
        collision: data_us + 10.0 + 50.0 + 28.0,
        ..G
    };
    for n in [5, 10, 20] {
        let kbit = vec![figures.kbit; n + 1];
        let cell = saturated(ht(16, n as u64), Matrix::full(n + 1), &kbit, 12 * S);
        let (expected, _) = figures.saturation(n as i32);
        let found = cell.sent_mbit().iter().sum();
        near(&format!("n = {n}"), found, expected, 0.02);
    }
}

/// The same packets get through with RTS, and a promiscuous station has each of them once.
#[test]
fn rts_and_others_that_listen() {
    let ber = |to: u16| if to == 2 { 2e-6 } else { 1e-5 };
    let matrix = Matrix::new(3, |_, to| Some(Reach::full(to).with_ber(ber(to))));
    let plan = Plan {
        rts_bytes: Some(3_000),
        ..ht(8, 1)
    };
    let mut air = Air::new(plan, matrix.into(), &[10; 3]);
    air.set_promiscuous(2, true);
    for token in 0..190 {
        air.arrive(token * 100_000, 1, frame(1400, token));
    }
    let mut seen = [Vec::new(), Vec::new(), Vec::new()];
    while let Some(outcome) = air.next(S) {
        if let Outcome::Delivered { to, token, .. } = outcome {
            seen[to].push(token);
        }
    }
    assert_eq!(seen[0], (0..190).collect::<Vec<_>>());
    let overheard = seen[2].len();
    seen[2].sort_unstable();
    seen[2].dedup();
    assert_eq!(seen[2].len(), overheard);
    assert!(overheard > 150, "{overheard}");
    assert!(air.count(0).air_ns > 0 && air.count(1).sent == 190);
}

/// ARF and ideal go over the rates of data only; broadcast has the lowest basic rate.
#[test]
fn rates_of_data_and_of_control() {
    let timing = ht(1, 1).timing;
    let rates: Vec<u32> = timing.data_modes().map(|mode| timing.kbit(mode)).collect();
    assert_eq!(
        rates,
        [
            6_500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000
        ]
    );
    let control = |kbit| timing.kbit(timing.control(timing.mode(kbit).unwrap()));
    assert_eq!(
        [6_500, 13_000, 19_500, 26_000, 65_000].map(control),
        [6_000, 12_000, 12_000, 24_000, 24_000]
    );
    assert_eq!(timing.kbit(timing.broadcast()), 6_000);
    for rate in [RateControl::Arf, RateControl::Ideal, RateControl::Minstrel] {
        let plan = Plan { rate, ..ht(1, 1) };
        let cell = saturated(plan, Matrix::full(2), &[6_500; 2], 2 * S);
        // At 65 Mbit/s a packet and its cycle take 371 us.
        assert!(
            cell.sent_mbit()[1] > 30.0,
            "{rate:?}: {}",
            cell.sent_mbit()[1]
        );
    }
}

/// Whatever an aggregate may have: the queue's discipline gives the radio one packet at a time.
#[test]
fn a_queue_with_bands_has_one_packet_for_the_radio() {
    let plan = Plan {
        discipline: Discipline::Priority,
        ..ht(64, 1)
    };
    let mut air = Air::new(plan, Matrix::full(2).into(), &[10; 2]);
    for token in 0..20 {
        let bytes = 100 + (mix(token) % 1000) as u32;
        air.arrive(0, 1, frame(bytes, token));
    }
    while air.next(S).is_some() {}
    assert_eq!((air.count(1).attempts, air.count(1).sent), (20, 20));
}

/// An attempt of 28 packets is one, and is repeated six times.
#[test]
fn an_aggregate_is_retried_as_one() {
    let mut air = Air::new(ht(28, 1), Matrix::new(2, |_, _| None).into(), &[10; 2]);
    (0..28).for_each(|token| assert!(air.arrive(0, 1, frame(1500, token))));
    while air.next(S).is_some() {}
    let count = air.count(1);
    let counted = [count.attempts, count.failed, count.given_up, count.retried];
    assert_eq!(counted, [7, 7, 28, 6]);
}
