// SPDX-License-Identifier: MIT OR Apache-2.0
//! The weight of red as tc computes it from a burst (iproute2: tc/tc_red.c).

/// tc-red(8) recommends it.
pub(crate) const AVERAGE_PACKET: u32 = 1000;

/// Returns the exponent of the largest power of 1/2 with which the average of a queue that grows by one packet
/// at a time reaches `min` only after `burst` packets: `tc_red_eval_ewma()`.
pub(crate) fn log_of(min: u32, burst: u32, average_packet: u32) -> Option<u32> {
    let burst = f64::from(burst);
    let wanted = burst + 1.0 - f64::from(min) / f64::from(average_packet);
    let reaches = |log: &u32| {
        let weight = 0.5f64.powi(*log as i32);
        wanted <= (1.0 - (1.0 - weight).powf(burst)) / weight
    };
    match wanted < 1.0 {
        true => None,
        false => (1..32).find(reaches),
    }
}

/// Returns a burst from which tc computes this weight.
pub(crate) fn burst_for(log: u32, min: u32, average_packet: u32) -> Option<u32> {
    // The exponent grows with the burst, and without one the burst is too long.
    let (mut from, mut to) = (min.div_ceil(average_packet), u32::MAX);
    while from < to {
        let burst = from + (to - from) / 2;
        match log_of(min, burst, average_packet) {
            Some(found) if found < log => from = burst + 1,
            _ => to = burst,
        }
    }
    (log_of(min, from, average_packet) == Some(log)).then_some(from)
}

#[cfg(test)]
mod tests {
    use super::{burst_for, log_of};

    /// Of the recurrence: the average of a queue of 1, 2, 3 ... packets.
    #[test]
    fn a_burst_does_not_reach_the_lower_threshold() {
        for (min, burst) in [
            (15_000, 20),
            (30_000, 55),
            (15_360, 24),
            (1_000, 1),
            (50_000, 60),
        ] {
            let log = log_of(min, burst, 1000).unwrap();
            let weight = 0.5f64.powi(log as i32);
            let average = |weight: f64| {
                (1..=burst).fold(0.0, |average, n| {
                    average + weight * (f64::from(n) * 1000.0 - average)
                })
            };
            // tc's comparison is one packet stricter.
            assert!(average(weight) <= f64::from(min), "{min} {burst} {weight}");
            let larger = average(2.0 * weight) > f64::from(min) - 1000.0;
            assert!(larger || weight == 0.5, "{min} {burst} {weight}");
        }
        assert_eq!(log_of(15_000, 20, 1000), Some(3));
        assert_eq!(log_of(15_000, 14, 1000), None);
        for log in 1..20 {
            let burst = burst_for(log, 15_000, 1000).unwrap();
            assert_eq!(log_of(15_000, burst, 1000), Some(log));
            assert_ne!(log_of(15_000, burst - 1, 1000), Some(log));
        }
        // With a short queue one packet more is too many.
        assert_eq!(burst_for(2, 1_000, 1000), None);
    }
}
