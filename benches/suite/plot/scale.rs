// SPDX-License-Identifier: MIT OR Apache-2.0
//! Axes.

/// Where values are, in pixels.
pub struct Scale {
    log: bool,
    /// Of values, or of their decimal logarithms.
    low: f64,
    high: f64,
    from: i32,
    to: i32,
}

impl Scale {
    /// With room for all values, and the labels; `None` if there is nothing to plot.
    pub fn over(
        values: impl Iterator<Item = f64>,
        log: bool,
        (from, to): (i32, i32),
    ) -> Option<(Self, Vec<f64>)> {
        let (low, high, ticks) = if log {
            decades(values)?
        } else {
            steps(values)?
        };
        let scale = Self {
            log,
            low,
            high,
            from,
            to,
        };
        Some((scale, ticks))
    }

    /// A logarithmic one between two values.
    pub fn between((first, last): (f64, f64), (from, to): (i32, i32)) -> Self {
        let (low, high) = (first.log10(), last.log10());
        Self {
            log: true,
            low,
            high: high.max(low + 0.1),
            from,
            to,
        }
    }

    /// A value beyond an end is plotted there.
    pub fn at(&self, value: f64) -> i32 {
        let value = if self.log { value.log10() } else { value };
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + (share * f64::from(self.to - self.from)) as i32
    }
}

/// Powers of ten on both sides of the values.
fn decades(values: impl Iterator<Item = f64>) -> Option<(f64, f64, Vec<f64>)> {
    let (least, most) = values
        .filter(|v| *v > 0.0)
        .fold((f64::MAX, 0.0f64), |(l, m), v| (l.min(v), m.max(v)));
    if most == 0.0 {
        return None;
    }
    let (low, high) = (least.log10().floor() as i32, most.log10().ceil() as i32);
    let high = high.max(low + 1);
    let ticks = (low..=high).map(|n| 10f64.powi(n)).collect();
    Some((low.into(), high.into(), ticks))
}

/// From 0 on, in steps of 1, 2 or 5.
fn steps(values: impl Iterator<Item = f64>) -> Option<(f64, f64, Vec<f64>)> {
    let most = values.fold(0.0, f64::max);
    (most > 0.0).then_some(())?;
    let rough = most / 5.0;
    let decade = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|n| n * decade);
    let step = steps.into_iter().find(|s| *s >= rough)?;
    let count = (most * 1.05 / step).ceil() as u32;
    let ticks = (0..=count).map(|n| f64::from(n) * step).collect();
    Some((0.0, f64::from(count) * step, ticks))
}
