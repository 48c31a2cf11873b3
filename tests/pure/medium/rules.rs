// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of access one by one, to the nanosecond. 802.11b at 11 Mbit/s: a packet of 1500 bytes
//! lasts for 1309.090909... us, its ACK for 248 us.

use std::sync::Arc;

use emud::medium::air::{Access, Air, Fate, Frame, Outcome, Plan, To};
use emud::medium::phy::{
    Disk, Matrix, Position, Reach, STANDARDS, Standard, Timing, attowatts, ratio,
};

use super::traffic::{S, plan};

const DATA: u64 = 1_309_091;
const ACK: u64 = 248_000;
const SIFS: u64 = 10_000;
const DIFS: u64 = 50_000;
const EIFS: u64 = 364_000;
const SLOT: u64 = 20_000;
const US: u64 = 1_000;

fn air(matrix: Matrix, change: impl FnOnce(&mut Plan)) -> Air<u64> {
    let mut plan = plan("802.11b", 2);
    change(&mut plan);
    Air::new(plan, Arc::new(matrix), &[])
}

fn in_a_row(metres: &[f64]) -> Matrix {
    let positions: Vec<Position> = metres.iter().map(|x| [*x, 0.0]).collect();
    Matrix::disk(&positions, Disk::default(), 0.0)
}

fn packet(to: u16) -> Frame<u64> {
    Frame {
        to: To::Station(to),
        bytes: 1500,
        token: u64::from(to),
    }
}

/// (time, from, to) of all deliveries.
fn deliveries(air: &mut Air<u64>) -> Vec<(u64, usize, usize)> {
    let mut found = Vec::new();
    while let Some(outcome) = air.next(100 * S) {
        if let Outcome::Delivered {
            at_ns, from, to, ..
        } = outcome
        {
            found.push((at_ns, from, to));
        }
    }
    found
}

/// The backoff of a delivery, if its gap began at `from_ns`.
#[track_caller]
fn slots(delivered_ns: u64, from_ns: u64) -> u64 {
    let backoff = (delivered_ns - DATA)
        .checked_sub(from_ns)
        .expect("too early");
    assert_eq!(backoff % SLOT, 0, "{backoff} ns are no slots");
    backoff / SLOT
}

#[test]
fn an_idle_medium_is_taken_at_once_and_a_backoff_follows() {
    let mut air = air(Matrix::full(2), |_| {});
    air.arrive(S, 1, packet(0));
    air.arrive(S, 1, packet(0));
    // During the first one's post-backoff, or behind it: never sooner than DIFS.
    let found = deliveries(&mut air);
    assert_eq!(found[0], (S + DATA, 1, 0));
    let acknowledged = found[0].0 + SIFS + ACK;
    assert!(slots(found[1].0, acknowledged + DIFS) <= 31);
}

#[test]
fn a_backoff_follows_even_without_another_packet() {
    let mut backoffs = Vec::new();
    for seed in 0..40 {
        let mut air = air(Matrix::full(2), |plan| plan.seed = seed);
        air.arrive(S, 1, packet(0));
        let acknowledged = S + DATA + SIFS + ACK;
        let late = acknowledged + 200 * US;
        air.arrive(late, 1, packet(0));
        let delivered = deliveries(&mut air)[1].0;
        match delivered == late + DATA {
            true => backoffs.push(0),
            false => backoffs.push(slots(delivered, acknowledged + DIFS)),
        }
    }
    // 150 us of slots have passed: 0..=7 of 32 backoffs are over, all others are waited for.
    let over = backoffs.iter().filter(|b| **b == 0).count();
    assert!((2..20).contains(&over), "{backoffs:?}");
    assert!(backoffs.iter().all(|b| *b == 0 || (8..32).contains(b)));
}

#[test]
fn who_senses_what_it_cannot_decode_waits_for_longer() {
    // C senses A, and decodes B or not, which acknowledges; D is out of B's interference.
    for (c, gap) in [(500.0, EIFS), (440.0, DIFS)] {
        let mut air = air(in_a_row(&[0.0, 200.0, c, c + 240.0]), |_| {});
        air.arrive(S, 0, packet(1));
        air.arrive(S + 500 * US, 2, packet(3));
        let found = deliveries(&mut air);
        let acknowledged = S + DATA + SIFS + ACK;
        assert_eq!(found[0], (S + DATA, 0, 1));
        assert_eq!((found[1].1, found[1].2), (2, 3));
        assert!(slots(found[1].0, acknowledged + gap) <= 31);
    }
}

/// Of two that collide, the one with the shorter frame waits for EIFS behind the longer one, which it could not
/// decode; when its own timeout ends makes no difference.
#[test]
fn slots_after_a_collision_count_from_the_end_of_the_longer_frame() {
    const SHORT: u64 = 1_294_546;
    let mut firsts = [0, 0];
    for seed in 0..40 {
        let mut air = air(Matrix::full(3), |plan| plan.seed = seed);
        let short = Frame {
            bytes: 1480,
            ..packet(0)
        };
        air.arrive(S, 1, short);
        air.arrive(S, 2, packet(0));
        let (at_ns, from, _) = deliveries(&mut air)[0];
        // They have not met twice.
        if air.count(1).failed + air.count(2).failed == 2 {
            let begun = at_ns - [SHORT, DATA][from - 1];
            assert!(slots(begun + DATA, S + DATA + EIFS) <= 63, "{seed}: {from}");
            firsts[from - 1] += 1;
        }
    }
    assert!(firsts.iter().all(|count| *count > 5), "{firsts:?}");
}

/// 2 decodes a CTS, senses the data behind it without decoding that, and the ACK not at all.
#[test]
fn a_reservation_and_a_frame_that_was_not_decoded_count_side_by_side() {
    let matrix = |acknowledges: bool| {
        Matrix::new(4, |from, to| {
            let modes = if (from, to) == (0, 2) { 0 } else { u16::MAX };
            let reach = Reach {
                modes,
                ..Reach::full(to)
            };
            ((from, to) != (1, 2) || acknowledges).then_some(reach)
        })
    };
    for seed in 0..10 {
        let mut air = air(matrix(true), |plan| {
            plan.seed = seed;
            plan.rts_bytes = Some(1000);
        });
        air.arrive(S, 0, packet(1));
        air.arrive(S + 800 * US, 2, packet(3));
        air.move_at(S + 800 * US, Arc::new(matrix(false)));
        let found = deliveries(&mut air);
        let exchange = 272 * US + SIFS + ACK + SIFS;
        assert_eq!(found[0], (S + exchange + DATA, 0, 1));
        // The reservation and DIFS end sooner.
        let second = found[1].0 - exchange;
        assert!(slots(second, found[0].0 + EIFS) <= 31);
    }
}

#[test]
fn a_cts_silences_who_cannot_hear_the_sender() {
    // 0 and 2 hear 1 only.
    let hears = |from: u16, to: u16| (from == 1 || to == 1).then(|| Reach::full(to));
    for rts in [false, true] {
        let mut air = air(Matrix::new(3, hears), |plan| {
            plan.rts_bytes = rts.then_some(1000);
        });
        air.arrive(S, 0, packet(1));
        air.arrive(S + 800 * US, 2, packet(1));
        let found = deliveries(&mut air);
        let exchange = S + 272 * US + SIFS + ACK + SIFS + DATA;
        match rts {
            // The second one destroys the first, and is destroyed.
            false => assert!(found.iter().all(|(at, ..)| *at > S + 800 * US + DATA)),
            true => {
                assert_eq!(found[0], (exchange, 0, 1));
                // Behind the ACK and DIFS, with a separate RTS and CTS.
                let second = found[1].0 - (272 * US + SIFS + ACK + SIFS);
                assert!(slots(second, exchange + SIFS + ACK + DIFS) <= 31);
            }
        }
        assert_eq!(found.len(), 2);
    }
}

#[test]
fn packets_below_the_threshold_go_without_rts() {
    let mut air = air(Matrix::full(2), |plan| plan.rts_bytes = Some(1501));
    air.arrive(S, 1, packet(0));
    assert_eq!(deliveries(&mut air), [(S + DATA, 1, 0)]);
}

/// Behind the same frame, 2 waits for DIFS and 3, which cannot decode it, for EIFS: their slots are
/// 14 us apart, or 6. Backoffs meet so in 17, or 16, of 1024 cases.
#[test]
fn an_access_within_the_sensing_time_is_not_called_off() {
    const RUNS: u64 = 2_500;
    let matrix = || {
        Matrix::new(4, |from, to| {
            let deaf = to == 3 && from < 2;
            let modes = if deaf { 0 } else { u16::MAX };
            Some(Reach {
                modes,
                ..Reach::full(to)
            })
        })
    };
    for (cca_us, share) in [(0, 0), (6, 0), (10, 16), (14, 16), (15, 33)] {
        let collides = |seed: &u64| {
            let mut air = air(matrix(), |plan| {
                plan.seed = *seed;
                plan.timing.cca_ns = cca_us * US;
            });
            air.arrive(S, 0, packet(1));
            air.arrive(S + 300 * US, 2, packet(1));
            air.arrive(S + 300 * US, 3, packet(1));
            while let Some(outcome) = air.next(2 * S) {
                if matches!(outcome, Outcome::Delivered { from: 2.., .. }) {
                    break;
                }
            }
            air.count(2).failed + air.count(3).failed > 0
        };
        let collisions = (0..RUNS).filter(collides).count() as f64;
        let expected = (RUNS * share) as f64 / 1024.0;
        assert!(
            (collisions - expected).abs() <= 4.0 * expected.sqrt(),
            "{cca_us} us: {collisions}"
        );
    }
}

/// 1 and 2 do not hear each other; 2 is 12 dB stronger at 0.
#[test]
fn a_much_stronger_frame_takes_the_receiver_from_an_earlier_one() {
    for (times, expected) in [(15.85, 2), (7.94, 0)] {
        let matrix = Matrix::new(3, |from, to| {
            let reach = Reach::full(to);
            let power = (reach.power as f64 * if from == 2 { times } else { 1.0 }) as u64;
            (from == 0 || to == 0).then_some(Reach { power, ..reach })
        });
        let mut air = air(matrix, |plan| plan.attempts = 1);
        air.arrive(S, 1, packet(0));
        air.arrive(S + 700 * US, 2, packet(0));
        let found = deliveries(&mut air);
        match expected {
            2 => assert_eq!(found, [(S + 700 * US + DATA, 2, 0)]),
            _ => assert_eq!(found, []),
        }
    }
}

/// Two interferers of 8 dB less each are 5 dB less together.
#[test]
fn interference_is_the_sum_of_all() {
    for (interferers, received) in [(1, true), (2, false)] {
        let matrix = Matrix::new(4, |from, to| {
            let reach = Reach::full(to);
            let power = match from {
                1 => reach.power * 16,
                _ => reach.power,
            };
            (to == 0).then_some(Reach { power, ..reach })
        });
        let mut air = air(matrix, |plan| plan.attempts = 1);
        air.arrive(S, 1, packet(0));
        for interferer in 0..interferers {
            air.arrive(S + 100 * US, 2 + interferer, packet(0));
        }
        let found = deliveries(&mut air);
        assert_eq!(!found.is_empty(), received, "{interferers}");
    }
}

/// All stations of a medium send at once, each of them as strong as a signal can be, and the noise is, too.
#[test]
fn the_strongest_signals_add_up() {
    let power = attowatts(200.0);
    assert_eq!(power, attowatts(17.0));
    let matrix = Matrix::new(256, |_, to| {
        Some(Reach {
            power,
            ..Reach::full(to)
        })
    });
    let mut air = air(matrix, |plan| {
        plan.capture = ratio(0.0);
        plan.noise = power;
    });
    for station in 0..256 {
        let to = To::All;
        air.arrive(S, station, Frame { to, ..packet(0) });
    }
    let found = deliveries(&mut air);
    assert_eq!(found, []);
    assert!((0..256).all(|station| air.count(station).sent == 1));
}

#[test]
fn a_frame_is_given_up_after_its_attempts() {
    for attempts in [1, 4, 7] {
        let mut air = air(Matrix::new(2, |_, _| None), |plan| plan.attempts = attempts);
        air.arrive(S, 1, packet(0));
        let Some(Outcome::Finished { at_ns, fate, .. }) = air.next(10 * S) else {
            panic!()
        };
        assert_eq!(fate, Fate::GivenUp);
        let count = air.count(1);
        assert_eq!(
            (count.attempts, count.failed),
            (u64::from(attempts), u64::from(attempts))
        );
        assert_eq!((count.given_up, count.sent), (1, 0));
        // Windows of 63, 127, ... 1023, 1023 slots behind the first attempt.
        let most: u64 = (1..attempts).map(|n| (32 << n.min(5)) - 1).sum();
        let fixed = u64::from(attempts) * (DATA + EIFS) - DIFS;
        let backoff = at_ns - S - fixed;
        assert_eq!(backoff % SLOT, 0);
        assert!(backoff / SLOT <= most, "{backoff} {most}");
        assert!(backoff > 0 || attempts == 1);
    }
}

#[test]
fn a_lost_acknowledgement_delivers_once() {
    let matrix = Matrix::new(2, |from, to| (from == 1).then(|| Reach::full(to)));
    let mut air = air(matrix, |_| {});
    air.arrive(S, 1, packet(0));
    assert_eq!(deliveries(&mut air), [(S + DATA, 1, 0)]);
    assert_eq!(air.count(1).given_up, 1);
    let count = air.count(0);
    assert_eq!((count.received, count.duplicates), (1, 6));
}

#[test]
fn a_sender_hears_nothing() {
    let mut air = air(Matrix::full(2), |plan| plan.attempts = 1);
    air.arrive(S, 0, packet(1));
    air.arrive(S, 1, packet(0));
    assert_eq!(deliveries(&mut air), []);
    // Nor is its ear left with anything: the next one gets through.
    air.arrive(101 * S, 0, packet(1));
    assert_eq!(air.next(101 * S + DATA - 1), None);
    assert!(matches!(
        air.next(102 * S),
        Some(Outcome::Delivered { to: 1, .. })
    ));
}

#[test]
fn an_exposed_station_waits() {
    // 1 sends to 0 and 2 to 3: neither would disturb the other's receiver.
    let mut air = air(in_a_row(&[0.0, 240.0, 480.0, 720.0]), |_| {});
    let disk = |sense_m, interference_m| Disk {
        range_m: 250.0,
        sense_m,
        interference_m,
    };
    let positions = [[0.0, 0.0], [240.0, 0.0], [480.0, 0.0], [720.0, 0.0]];
    for (sense_m, waits) in [(550.0, true), (239.0, false)] {
        if !waits {
            let matrix = Matrix::disk(&positions, disk(sense_m, 250.0), 0.0);
            air.move_at(200 * S, Arc::new(matrix));
        }
        let begin = if waits { S } else { 201 * S };
        air.arrive(begin, 1, packet(0));
        air.arrive(begin + 100 * US, 2, packet(3));
        let mut second = 0;
        while let Some(outcome) = air.next(begin + 100 * S) {
            if let Outcome::Delivered { at_ns, to: 3, .. } = outcome {
                second = at_ns;
            }
        }
        assert_eq!(second != begin + 100 * US + DATA, waits);
    }
}

#[test]
fn only_promiscuous_stations_overhear() {
    let mut air = air(Matrix::full(4), |_| {});
    air.set_promiscuous(3, true);
    air.arrive(S, 1, packet(0));
    air.arrive(
        2 * S,
        1,
        Frame {
            to: To::All,
            bytes: 0,
            token: 0,
        },
    );
    let broadcast = 2 * S + 192 * US + 36 * 8 * US;
    let expected = [(S + DATA, 1, 3), (S + DATA, 1, 0)];
    let found = deliveries(&mut air);
    assert!(expected.iter().all(|delivery| found.contains(delivery)));
    assert_eq!(
        found[2..],
        [(broadcast, 1, 0), (broadcast, 1, 2), (broadcast, 1, 3)]
    );
}

#[test]
fn geometry_changes_at_its_instant() {
    let far = Arc::new(in_a_row(&[0.0, 260.0]));
    for (at_ns, delivered) in [(S, 0), (S + 1, 1)] {
        let mut air = air(in_a_row(&[0.0, 200.0]), |plan| plan.attempts = 1);
        air.move_at(at_ns, Arc::clone(&far));
        air.arrive(S, 0, packet(1));
        // What is on air keeps the geometry it began with; its ACK does not.
        assert_eq!(deliveries(&mut air).len(), delivered);
        assert_eq!(air.count(0).given_up, 1);
    }
}

#[test]
fn a_full_queue_drops_what_arrives() {
    let mut air = air(Matrix::full(2), |plan| plan.queue_packets = 3);
    for token in 0..5 {
        air.arrive(S, 1, Frame { token, ..packet(0) });
    }
    let mut full = Vec::new();
    while let Some(outcome) = air.next(S) {
        if let Outcome::Finished {
            token,
            fate: Fate::QueueFull,
            ..
        } = outcome
        {
            full.push(token);
        }
    }
    assert_eq!(full, [3, 4]);
    assert_eq!((air.count(1).full, air.count(1).waiting), (2, 3));
}

/// Full duplex, no headers: 1500 bytes at 11 Mbit/s last for 1,090,909.09 ns.
#[test]
fn without_access_control_everybody_has_the_rate() {
    const LASTS: u64 = 1_090_910;
    let line: Vec<Position> = (0..4).map(|i| [f64::from(i) * 200.0, 0.0]).collect();
    let mut air = air(Matrix::disk(&line, Disk::default(), 0.0), |plan| {
        plan.access = Access::None;
    });
    for _ in 0..2 {
        air.arrive(S, 1, packet(2));
        air.arrive(S, 2, packet(1));
    }
    // 200 m are 667 ns.
    let delay = 667;
    let (first, second) = (S + LASTS + delay, S + 2 * LASTS + delay);
    let expected = [(first, 1, 2), (first, 2, 1), (second, 1, 2), (second, 2, 1)];
    assert_eq!(deliveries(&mut air), expected);
    air.arrive(
        200 * S,
        1,
        Frame {
            to: To::All,
            bytes: 1500,
            token: 0,
        },
    );
    let mut receivers = Vec::new();
    while let Some(outcome) = air.next(201 * S) {
        if let Outcome::Delivered { to, .. } = outcome {
            receivers.push(to);
        }
    }
    assert_eq!(receivers, [0, 2]);
}

#[test]
fn without_access_control_each_receiver_loses_by_itself() {
    let matrix = Matrix::new(3, |_, to| {
        // 1 - (1 - p)^12000 = 0.3 and 0.1.
        let ber = [0.0, 2.972e-5, 8.780e-6][usize::from(to)];
        Some(Reach::full(to).with_ber(ber))
    });
    let mut air = air(matrix, |plan| plan.access = Access::None);
    for n in 0..10_000 {
        air.arrive(
            n * 2_000 * US,
            0,
            Frame {
                to: To::All,
                bytes: 1500,
                token: 0,
            },
        );
    }
    let found = deliveries(&mut air);
    let received = |to| found.iter().filter(|(.., station)| *station == to).count() as f64;
    // Four standard errors.
    assert!((received(1) - 7_000.0).abs() < 184.0, "{}", received(1));
    assert!((received(2) - 9_000.0).abs() < 120.0, "{}", received(2));
    let times = |to| {
        found
            .iter()
            .filter(move |(.., s)| *s == to)
            .map(|(at, ..)| *at)
    };
    let of_both = times(1)
        .filter(|at| times(2).any(|other| other == *at))
        .count();
    assert!((of_both as f64 - 6_300.0).abs() < 193.0, "{of_both}");
}

/// Nobody has to decode an answer that is faster than what it answers, whatever the basic rates are.
#[test]
fn an_answer_is_not_faster_than_the_data() {
    for standard in STANDARDS {
        let rates: Vec<u32> = standard.control_rates().collect();
        for subset in 0..1 << rates.len() {
            let basic = (0..rates.len()).filter(|n| subset >> n & 1 == 1);
            let basic: Vec<u32> = basic.map(|n| rates[n]).collect();
            let timing = Timing::new(standard, Some(&basic));
            for mode in 0..standard.rates.len() {
                let control = timing.kbit(timing.control(mode));
                assert!(control <= timing.kbit(mode), "{} {basic:?}", standard.name);
                assert!(basic.contains(&control) || standard.mandatory.contains(&control));
            }
        }
    }
    // EIFS has an ACK at 6 Mbit/s, the lowest mandatory rate: six symbols.
    let g = Timing::new(Standard::named("802.11g").unwrap(), Some(&[24_000]));
    assert_eq!(g.eifs_ns, 10_000 + 50_000 + 28_000);
    // Short preambles announce 2 Mbit/s or more.
    let short = Standard::named("802.11b-short").unwrap();
    assert!(short.data_rates().eq([2_000, 5_500, 11_000]));
}
