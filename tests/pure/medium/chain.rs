// SPDX-License-Identifier: MIT OR Apache-2.0
//! A chain of relays on one channel (Li et al., MobiCom 2001), and how far a signal gets.

use emud::medium::air::{Frame, Outcome, To};
use emud::medium::phy::{Disk, Matrix, PathLoss, Position, Radio, Standard, Watts, dbm};
use support::count;

use super::traffic::{Cell, S, megabits, near, plan};

/// Goodput over this many hops of 200 m, with a first station that always has a packet.
fn goodput(hops: usize, seconds: u64) -> f64 {
    let positions: Vec<Position> = (0..=hops).map(|i| [200.0 * i as f64, 0.0]).collect();
    let matrix = Matrix::disk(&positions, Disk::default(), 0.0);
    let mut cell = Cell::new(
        plan("802.11b", hops as u64),
        matrix,
        &vec![11_000; hops + 1],
    );
    let air = &mut cell.air;
    let packet = |to: usize| Frame {
        to: To::Station(to as u16),
        bytes: 1500,
        token: 0,
    };
    air.arrive(0, 0, packet(1));
    let mut bytes = 0;
    while let Some(outcome) = air.next(seconds * S) {
        match outcome {
            Outcome::Delivered { to, .. } if to == hops => bytes += 1500,
            Outcome::Delivered { at_ns, to, .. } => {
                air.arrive(at_ns, to, packet(to + 1));
            }
            Outcome::Finished {
                at_ns, station: 0, ..
            } => {
                air.arrive(at_ns, 0, packet(1));
            }
            Outcome::Finished { .. } => {}
        }
    }
    megabits(bytes, seconds * S)
}

/// The loss of 40,000 pairs at the same distance: mean, standard deviation, symmetry. No distance is
/// the range of all of them.
#[test]
fn shadowing_is_normal_and_symmetric() {
    let mut radio = Radio::new(Standard::named("802.11b").unwrap(), PathLoss::FreeSpace);
    assert!(radio.reach_m(-85.0).is_some());
    radio.shadowing_db = 6.0;
    assert_eq!(radio.reach_m(-85.0), None);
    let stations = 283_usize;
    let positions = vec![[0.0, 0.0]; stations];
    let matrix = Matrix::radio(&positions, &radio, 0.0);
    let own_dbm = radio.power_dbm - PathLoss::FreeSpace.db(0.0, radio.frequency_hz);
    let mut offs = Vec::new();
    for from in 0..stations as u16 {
        for to in 0..from {
            let power = |a, b| matrix.reach(a, b).unwrap().power;
            assert_eq!(power(from, to), power(to, from));
            offs.push(dbm(power(from, to)) - own_dbm);
        }
    }
    let n = offs.len() as f64;
    let mean = offs.iter().sum::<f64>() / n;
    let variance = offs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    // Four standard errors: s / sqrt(n), and s / sqrt(2 n).
    assert!(mean.abs() < 4.0 * 6.0 / n.sqrt(), "{mean}");
    assert!((variance.sqrt() - 6.0).abs() < 4.0 * 6.0 / (2.0 * n).sqrt());
    let beyond = offs.iter().filter(|x| x.abs() > 1.96 * 6.0).count() as f64 / n;
    assert!(
        (beyond - 0.05).abs() < 4.0 * (0.05_f64 * 0.95 / n).sqrt(),
        "{beyond}"
    );
}

/// 1.35 W for half a second on air, 0.9 W for a quarter with a carrier of others, 0.74 W otherwise.
#[test]
fn energy_is_power_times_time() {
    let watts = Watts {
        send: 1.35,
        receive: 0.9,
        idle: 0.74,
    };
    let joules = watts.joules(S / 2, 3 * S / 4, 2 * S);
    assert!((joules - (0.675 + 0.225 + 0.925)).abs() < 1e-12, "{joules}");
    // Without carrier sensing nothing is busy.
    let joules = watts.joules(S, 0, S);
    assert!((joules - 1.35).abs() < 1e-12, "{joules}");
}

#[test]
fn relays_share_the_channel() {
    let one = goodput(1, 20);
    let rows = [(2, 0.49), (3, 0.34), (4, 0.24), (5, 0.20), (8, 0.17)];
    for (hops, share) in rows {
        near(
            &format!("{hops} hops"),
            goodput(hops, count(40)) / one,
            share,
            0.04,
        );
    }
}

/// Stations in a line, one per metre, and the first of them sends.
fn last_that(matrix: &Matrix, does: impl Fn(&emud::medium::phy::Reach) -> bool) -> usize {
    let row = matrix.row(0).iter();
    row.filter(|reach| does(reach))
        .map(|r| usize::from(r.to))
        .max()
        .unwrap()
}

#[test]
fn a_signal_ends_where_the_formula_says() {
    let line: Vec<Position> = (0..600).map(|x| [f64::from(x), 0.0]).collect();

    let wavelan = Standard::named("wavelan-914").unwrap();
    let two_ray = PathLoss::TwoRay { height_m: 1.5 };
    near(
        "receive",
        two_ray.reach_m(24.5 + 64.374, 914e6),
        250.01,
        0.000_1,
    );
    near(
        "sense",
        two_ray.reach_m(24.5 + 78.071, 914e6),
        550.02,
        0.000_1,
    );
    let matrix = Matrix::radio(&line, &Radio::new(wavelan, two_ray), 0.0);
    assert_eq!(last_that(&matrix, |reach| reach.modes & 0b10 != 0), 250);
    assert_eq!(last_that(&matrix, |reach| reach.senses), 550);

    let b = Standard::named("802.11b").unwrap();
    let path = PathLoss::LogDistance { exponent: 3.8 };
    let rows = [(1_000, 87.6), (2_000, 73.0), (5_500, 64.7), (11_000, 50.8)];
    let matrix = Matrix::radio(&line, &Radio::new(b, path), 0.0);
    for (mode, (kbit, metres)) in rows.into_iter().enumerate() {
        assert_eq!(b.rates[mode].0, kbit);
        near(
            "log-distance",
            path.reach_m(20.0 - b.rates[mode].1, b.frequency_hz),
            metres,
            0.001,
        );
        let last = last_that(&matrix, |reach| reach.modes >> mode & 1 == 1);
        assert_eq!(last, metres as usize);
    }
    let free = PathLoss::FreeSpace.db(100.0, 2.4e9);
    near("free space over 100 m at 2.4 GHz", free, 80.05, 0.000_1);
    // 40.05 dB at 1 m, and at less.
    let reach_m = |budget_db| PathLoss::FreeSpace.reach_m(budget_db, 2.4e9);
    assert_eq!(reach_m(40.0), 0.0);
    near("free space, 40.1 dB", reach_m(40.1), 1.006, 0.001);
}
