// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stations that send to one in their middle, and hear each other or not, with and without RTS.

use emud::medium::air::Plan;
use emud::medium::phy::{Matrix, Reach};
use support::count;

use super::traffic::{Cell, S, hidden, near, plan, saturated};

fn goodput(senders: usize, kbit: u32, matrix: Matrix, rts: bool) -> f64 {
    let plan = Plan {
        rts_bytes: rts.then_some(0),
        ..plan("802.11b", 5)
    };
    let cell = saturated(plan, matrix, &vec![kbit; senders + 1], count(100) * S);
    cell.sent_mbit().iter().sum()
}

#[test]
fn hidden_stations_destroy_each_other() {
    let rows = [(2, 11_000, 6.48, 3.86, 4.49), (4, 2_000, 1.64, 0.014, 1.46)];
    for (n, kbit, hearing, without_rts, with_rts) in rows {
        near(
            "hear each other",
            goodput(n, kbit, Matrix::full(n + 1), false),
            hearing,
            0.02,
        );
        let found = goodput(n, kbit, hidden(n), false);
        match n {
            2 => near("hidden", found, without_rts, 0.02),
            // A dozen packets a minute get through.
            _ => assert!(
                (0.004..0.03).contains(&found),
                "{found} instead of {without_rts}"
            ),
        }
        near(
            "hidden, RTS",
            goodput(n, kbit, hidden(n), true),
            with_rts,
            0.02,
        );
    }
}

/// Two hidden senders, the first stronger at the receiver by `times`.
fn captured(times: f64) -> Cell {
    let weak = Reach::full(0);
    let strong = Reach {
        power: (weak.power as f64 * times) as u64,
        ..weak
    };
    let matrix = Matrix::new(3, |from, to| match (from, to) {
        (1, 0) => Some(strong),
        (2, 0) => Some(weak),
        (0, _) => Some(Reach::full(to)),
        _ => None,
    });
    saturated(plan("802.11b", 5), matrix, &[11_000; 3], count(60) * S)
}

/// What a station counts says why its frames failed: others at the receiver, or bit errors.
#[test]
fn failures_have_their_cause() {
    let cell = saturated(plan("802.11b", 5), hidden(2), &[11_000; 3], 20 * S);
    for count in &cell.counts()[1..] {
        // Answers of the middle reach both: no failure but by the other one.
        assert!(count.failed > 1000 && count.damaged == 0, "{count:?}");
        let undecided = count.failed.abs_diff(count.collided);
        assert!(undecided <= 1, "{count:?}");
    }
    // 14.2 % of full frames at 1.27e-5; an ACK of 14 bytes has 0.14 %.
    let lossy = Matrix::new(2, |_, to| Some(Reach::full(to).with_ber(1.27e-5)));
    let cell = saturated(plan("802.11b", 5), lossy, &[11_000; 2], count(60) * S);
    let count = cell.counts()[1];
    assert_eq!(count.collided, 0);
    let expected = 1.0 - (1.0 - 1.27e-5_f64).powi(8 * 1536);
    let share = count.damaged as f64 / count.attempts as f64;
    // Four standard errors of some 25,000 attempts.
    let error = 4.0 * (expected * (1.0 - expected) / count.attempts as f64).sqrt();
    assert!((share - expected).abs() < error, "{share} {expected}");
    // Out of range: neither.
    let deaf = Matrix::new(2, |from, to| (from == 0).then(|| Reach::full(to)));
    let count = saturated(plan("802.11b", 5), deaf, &[11_000; 2], S).counts()[1];
    assert!(
        count.failed > 100 && count.collided + count.damaged == 0,
        "{count:?}"
    );
}

#[test]
fn the_stronger_one_captures_the_receiver() {
    // 12 dB, beyond the threshold of 10 dB.
    let sent = captured(15.85).sent_mbit();
    near("the stronger one", sent[1], 6.22, 0.02);
    assert!(sent[2] < 0.01, "{sent:?}");
    // 9 dB: both lose.
    let sent = captured(7.94).sent_mbit();
    assert!(sent[1] < 3.0, "{sent:?}");
}
