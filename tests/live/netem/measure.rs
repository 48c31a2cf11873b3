// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a sample, each with its standard error.

use support::probe::Arrivals;
use support::stats::quantile;

/// This many means of consecutive packets show the error of the mean of all, whatever the packets'
/// correlation (batch means).
const BATCHES: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    pub value: f64,
    /// Standard error.
    pub error: f64,
}

impl Figure {
    /// Of values in the order of sending.
    fn mean(values: &[f64]) -> Self {
        let value = average(values);
        let size = (values.len() / BATCHES).max(1);
        let batches: Vec<f64> = values.chunks_exact(size).map(average).collect();
        let n = batches.len() as f64;
        let squares: f64 = batches.iter().map(|mean| (mean - value).powi(2)).sum();
        Self {
            value,
            error: (squares / (n - 1.0) / n).sqrt(),
        }
    }

    /// The standard error of a sample of `n`, where this figure is one of `of`. A long sample knows
    /// it better than the short one itself: rare events, long bursts.
    pub fn error_of(self, n: f64, of: f64) -> f64 {
        self.error * (of / n).sqrt()
    }
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    DelayMean,
    DelaySd,
    Correlation,
    Lost,
    Doubled,
    Overtaken,
}

impl What {
    pub const ALL: [Self; 6] = [
        Self::DelayMean,
        Self::DelaySd,
        Self::Correlation,
        Self::Lost,
        Self::Doubled,
        Self::Overtaken,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::DelayMean => "delay mean, ms",
            Self::DelaySd => "delay sd, ms",
            Self::Correlation => "delay correlation",
            Self::Lost => "lost",
            Self::Doubled => "doubled",
            Self::Overtaken => "overtaken",
        }
    }

    pub fn is_time(self) -> bool {
        matches!(self, Self::DelayMean | Self::DelaySd)
    }
}

/// Packets and their fates.
pub struct Sample {
    /// Delays of each packet, in the order of sending.
    each_ms: Vec<Vec<f64>>,
    /// For each packet that came, in the order of sending, 1 if one sent later came before it.
    overtaken: Vec<f64>,
}

impl Sample {
    /// `added_ms` is the machine's part of a delay.
    pub fn new(arrivals: &Arrivals, count: u32, interval_ms: f64, added_ms: f64) -> Self {
        let mut each_ms = arrivals.of_each_ms(count);
        each_ms
            .iter_mut()
            .flatten()
            .for_each(|delay| *delay -= added_ms);
        Self {
            each_ms,
            overtaken: overtaken(arrivals, count, interval_ms),
        }
    }

    /// `None`: there is nothing to measure.
    pub fn figure(&self, what: What) -> Option<Figure> {
        match what {
            What::DelayMean => Some(Figure::mean(&self.each_ms.concat())),
            What::DelaySd => Some(sd(&self.each_ms.concat())),
            What::Correlation => self.correlation(),
            What::Lost => Some(self.share(|copies| copies == 0)),
            What::Doubled => Some(self.share(|copies| copies == 2)),
            What::Overtaken => (!self.overtaken.is_empty()).then(|| Figure::mean(&self.overtaken)),
        }
    }

    fn share(&self, of: impl Fn(usize) -> bool) -> Figure {
        let hits = self.each_ms.iter().map(|delays| of(delays.len()));
        Figure::mean(&hits.map(f64::from).collect::<Vec<_>>())
    }

    /// Of a packet's delay and the next one's, where both came once.
    fn correlation(&self) -> Option<Figure> {
        let delays = self.each_ms.concat();
        let (mean, sd) = (average(&delays), sd(&delays).value);
        let products: Vec<f64> = self
            .each_ms
            .windows(2)
            .filter(|pair| pair[0].len() == 1 && pair[1].len() == 1)
            .map(|pair| (pair[0][0] - mean) * (pair[1][0] - mean) / (sd * sd))
            .collect();
        (sd > 0.0).then(|| Figure::mean(&products))
    }
}

/// The last ones, behind which too few were sent, are left out.
fn overtaken(arrivals: &Arrivals, count: u32, interval_ms: f64) -> Vec<f64> {
    let longest = quantile(&arrivals.delays_ms(), 1.0);
    let behind = (longest / interval_ms).ceil() as u32 + 1;
    let counted = count.saturating_sub(behind);
    let mut latest = 0;
    let mut overtaken = vec![None; count as usize];
    for arrival in &arrivals.0 {
        overtaken[arrival.number as usize].get_or_insert(f64::from(arrival.number < latest));
        latest = latest.max(arrival.number);
    }
    let counted = overtaken.into_iter().take(counted as usize);
    counted.flatten().collect()
}

fn sd(values: &[f64]) -> Figure {
    let mean = average(values);
    let squares: Vec<f64> = values.iter().map(|v| (v - mean).powi(2)).collect();
    let variance = Figure::mean(&squares);
    let value = variance.value.sqrt();
    Figure {
        value,
        error: if value > 0.0 {
            variance.error / (2.0 * value)
        } else {
            0.0
        },
    }
}
