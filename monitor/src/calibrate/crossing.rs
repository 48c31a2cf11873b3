// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds where episodes of contention begin: a sum reaches a threshold.

#[derive(Debug)]
pub struct Crossing {
    /// `None`: nothing is judged.
    threshold: Option<u64>,
    window_ns: u64,
    /// When the sum was last at the threshold.
    over_ns: Option<u64>,
}

impl Crossing {
    pub fn new(window_ns: u64, threshold: Option<u64>) -> Self {
        Self {
            threshold,
            window_ns,
            over_ns: None,
        }
    }

    /// Returns whether an episode of contention begins at this event. As in the kernel, one ends when the threshold was
    /// not reached for a window.
    pub fn begins(&mut self, time_ns: u64, sum: u64) -> bool {
        if self.threshold.is_none_or(|threshold| sum < threshold) {
            return false;
        }
        let last = self.over_ns.replace(time_ns);
        last.is_none_or(|last| time_ns.saturating_sub(last) >= self.window_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::window::SlidingSum;
    use super::*;

    /// A load at the limit that pauses: for less than a window it is one episode.
    #[test]
    fn an_episode_ends_after_a_window_without() {
        let begun = |pause_ms: u64| {
            let mut sum = SlidingSum::new(10);
            let mut crossing = Crossing::new(10, Some(90));
            let (times, mut count) = ((0..100).filter(|ms| ms % 20 >= pause_ms), 0);
            for ms in times {
                let sum = sum.push(ms, 12);
                count += u32::from(crossing.begins(ms, sum));
            }
            count
        };
        assert_eq!([begun(0), begun(2), begun(4)], [1, 1, 5]);
    }
}
