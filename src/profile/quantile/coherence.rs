// SPDX-License-Identifier: MIT OR Apache-2.0
//! How fast a delay in order may wander.
//!
//! The normal value z between two knots, at fraction w, moves at a speed that is itself normal,
//! independent of z, with a standard deviation of 1/(w^2 + (1-w)^2) a coherence time. A delay q(z)
//! that falls faster than time passes is held back by the clamp; how much it falls in excess, per
//! time, is E max(0, -dq/dt - 1), and the shape of q decides how slowly z must move to keep that
//! small. A delay with two levels needs several times the coherence of a bell.

use super::{TABLE_STEP, TABLE_STEPS, density, normal_cdf, table_x};

/// Excess per time that is let pass: it moves the distribution by no more than about twice this.
const EXCESS: f64 = 0.003;
/// Instants between two knots that are evaluated; the rest is their mirror image.
const INSTANTS: [f64; 4] = [0.0625, 0.1875, 0.3125, 0.4375];

/// Returns E max(0, -s N - 1) with N standard normal.
fn excess_at(s: f64) -> f64 {
    if s < 0.1 {
        return 0.0; // 1e-25 and less
    }
    s * density(1.0 / s) - normal_cdf(-1.0 / s)
}

fn excess(table: &[u64], coherence_ns: f64) -> f64 {
    (0..TABLE_STEPS)
        .map(|i| {
            let slope = (table[i + 1] - table[i]) as f64 / TABLE_STEP / coherence_ns;
            let weight = density(table_x(i) + 0.5 * TABLE_STEP) * TABLE_STEP;
            let speed = |w: f64| 1.0 / (w * w + (1.0 - w) * (1.0 - w));
            let mean = INSTANTS
                .iter()
                .map(|w| excess_at(slope * speed(*w)))
                .sum::<f64>();
            weight * mean / INSTANTS.len() as f64
        })
        .sum()
}

/// Returns the shortest coherence time in ns that keeps the clamp rare, whatever the shape of `table`.
pub fn coherence_ns(table: &[u64]) -> f64 {
    let (mut low, mut high) = (0f64, 60f64);
    // Bisection of the logarithm, 1 ns to 2^60 ns.
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if excess(table, middle.exp2()) > EXCESS {
            low = middle;
        } else {
            high = middle;
        }
    }
    high.exp2()
}
