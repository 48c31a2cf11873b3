// SPDX-License-Identifier: MIT OR Apache-2.0
//! All outcomes of crowded media in one number each, as an event loop has them that starts each
//! station's countdown by itself: a faster one decides the same.

use std::sync::Arc;

use emud::abi::mix;
use emud::medium::air::{Access, Air, Frame, Outcome, Plan, To};
use emud::medium::phy::{
    Disk, Geometry, Matrix, PathLoss, Position, Radio, Spread, Standard, ratio,
};

use super::traffic::{MS, S, plan};

fn unit(n: u64) -> f64 {
    (mix(n) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Stations in a square, at an instant; they move by up to 10 m/s.
fn positions(stations: u64, side_m: f64, step: u64) -> Vec<Position> {
    let axis = |n: u64| unit(n) * side_m + (unit(n ^ 0xff00_0000) - 0.5) * step as f64;
    (0..stations)
        .map(|n| [axis(2 * n), axis(2 * n + 1)])
        .collect()
}

#[derive(Debug)]
struct Folded(u64);

impl Folded {
    fn add(&mut self, values: &[u64]) {
        for value in values {
            self.0 = mix(self.0.rotate_left(7) ^ value);
        }
    }
}

/// Every station sends at random instants, to a random one in turn or to all; geometry changes every
/// 50 ms, and what is handed over is read in portions.
fn run(plan: Plan, matrices: &[Arc<Matrix>], mean_gap_ns: u64, until_ns: u64) -> u64 {
    let stations = matrices[0].stations() as u64;
    let modes: Vec<usize> = (0..stations)
        .map(|n| (mix(n) % (plan.timing.fastest() as u64 + 1)) as usize)
        .collect();
    let access = plan.access;
    let mut air = Air::new(plan, Arc::clone(&matrices[0]), &modes);
    air.set_promiscuous(1, true);
    let mut folded = Folded(0);
    let (mut now_ns, mut drawn) = (0, 0);
    let mut next_ns = vec![0; stations as usize];
    let mut step = 0;
    while now_ns < until_ns {
        now_ns += 5 * MS;
        for station in 0..stations {
            let at_ns = &mut next_ns[station as usize];
            while *at_ns < now_ns {
                drawn += 1;
                let to = (station + 1 + mix(drawn) % (stations - 1)) % stations;
                let to = match mix(drawn ^ 1 << 40) % 8 {
                    0 => To::All,
                    _ => To::Station(to as u16),
                };
                let bytes = 40 + (mix(drawn ^ 2 << 40) % 1460) as u32;
                let token = drawn;
                assert!(air.arrive(*at_ns, station as usize, Frame { to, bytes, token }));
                *at_ns += 1 + (unit(drawn ^ 3 << 40) * 2.0 * mean_gap_ns as f64) as u64;
            }
        }
        while let Some(outcome) = air.next(now_ns - 1) {
            match outcome {
                Outcome::Delivered {
                    at_ns,
                    from,
                    to,
                    token,
                } => folded.add(&[at_ns, from as u64, to as u64, token]),
                Outcome::Finished {
                    at_ns,
                    station,
                    token,
                    fate,
                } => folded.add(&[at_ns, station as u64, token, fate as u64]),
            }
        }
        if access == Access::Dcf {
            folded.add(&[air.next_delivery_ns().unwrap_or(0)]);
        }
        if now_ns % (50 * MS) == 0 {
            step += 1;
            air.move_at(now_ns, Arc::clone(&matrices[step % matrices.len()]));
        }
    }
    for station in 0..stations as usize {
        let c = air.count(station);
        // Without carrier sensing there is only its own.
        let carrier_ns = match access {
            Access::Dcf => c.busy_ns,
            Access::None => c.busy_ns - c.air_ns,
        };
        folded.add(&[
            c.attempts,
            c.sent,
            c.sent_bytes,
            c.failed,
            c.given_up,
            c.full,
        ]);
        folded.add(&[
            c.received,
            c.received_bytes,
            c.duplicates,
            c.air_ns,
            carrier_ns,
            c.waiting,
        ]);
    }
    folded.add(&[air.events()]);
    folded.0
}

fn moving(geometry: &Geometry, stations: u64, side_m: f64) -> Vec<Arc<Matrix>> {
    let matrix = |step| Arc::new(geometry.matrix(&positions(stations, side_m, step)));
    (0..6).map(matrix).collect()
}

fn radio(standard: &str, ber: f64) -> Geometry {
    let path = PathLoss::LogDistance { exponent: 3.5 };
    let spread = Spread::Radio(Radio::new(Standard::named(standard).unwrap(), path));
    Geometry { spread, ber }
}

fn disk(ber: f64) -> Geometry {
    let spread = Spread::Disk(Disk::default());
    Geometry { spread, ber }
}

fn full(stations: usize) -> Vec<Arc<Matrix>> {
    vec![Arc::new(Matrix::full(stations))]
}

#[test]
fn crowded_media_have_the_outcomes_of_the_plain_loop() {
    let b = |seed| plan("802.11b", seed);
    let g = |seed| plan("802.11g", seed);
    let rts = |plan: Plan| Plan {
        rts_bytes: Some(500),
        ..plan
    };
    let loud = |plan: Plan| Plan {
        noise: 300,
        capture: ratio(3.0),
        ..plan
    };
    let equal = |plan: Plan| Plan {
        capture: ratio(0.0),
        ..plan
    };
    let plain = |plan: Plan| Plan {
        access: Access::None,
        ..plan
    };
    let rows = [
        (
            "full",
            run(b(1), &full(70), 30 * MS, S),
            0xfe6a_60f0_f416_0ac1,
        ),
        (
            "full, RTS",
            run(rts(g(2)), &full(130), 20 * MS, S / 2),
            0x33d2_113f_ab49_5b7a,
        ),
        (
            "full, idle",
            run(b(3), &full(40), S, 2 * S),
            0xcd0a_0224_e327_8307,
        ),
        (
            "full, 0 dB",
            run(equal(b(4)), &full(30), 20 * MS, S / 2),
            0x6128_9656_113a_0781,
        ),
        (
            "disk",
            run(b(5), &moving(&disk(0.0), 100, 2000.0), 50 * MS, S),
            0x2c0d_0262_085c_8345,
        ),
        (
            "disk, errors",
            run(rts(b(6)), &moving(&disk(1e-5), 50, 1000.0), 40 * MS, S),
            0x560d_b5b8_e30b_6c12,
        ),
        (
            "radio",
            run(b(7), &moving(&radio("802.11b", 0.0), 90, 400.0), 50 * MS, S),
            0x68c6_695a_27de_2043,
        ),
        (
            "radio, noise",
            run(
                loud(g(8)),
                &moving(&radio("802.11g", 1e-6), 64, 120.0),
                20 * MS,
                S,
            ),
            0xc65d_80a4_0e67_5b80,
        ),
        (
            "radio, RTS",
            run(
                rts(loud(b(9))),
                &moving(&radio("802.11b", 1e-5), 65, 300.0),
                50 * MS,
                S,
            ),
            0xc555_4e7f_f553_9497,
        ),
        (
            "none",
            run(
                plain(b(10)),
                &moving(&disk(1e-5), 30, 1000.0),
                5 * MS,
                S / 2,
            ),
            0x1c09_bae9_0dcc_cc04,
        ),
    ];
    for (name, found, _) in rows {
        println!("{name}: {found:#018x}");
    }
    for (name, found, expected) in rows {
        assert_eq!(found, expected, "{name}");
    }
}
