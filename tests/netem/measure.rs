// SPDX-License-Identifier: GPL-2.0-only
//! Figures of a sample, each with its standard error.

use super::probe::Arrivals;
use super::stats::{quantile, share_error};

/// So many means of consecutive packets say how well the mean of all is known, whatever the
/// packets' correlation (batch means).
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

    /// A share of which there may be so few that no batch says anything; `theory` then does.
    pub fn known(self, theory: f64, n: f64) -> Self {
        const FEW: f64 = 50.0;
        if theory * n > FEW {
            return self;
        }
        Self {
            error: self.error.max(share_error(theory, n)),
            ..self
        }
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

    pub fn is_share(self) -> bool {
        matches!(self, Self::Lost | Self::Doubled | Self::Overtaken)
    }

    pub fn is_time(self) -> bool {
        matches!(self, Self::DelayMean | Self::DelaySd)
    }
}

/// Packets and what came of them.
pub struct Sample<'a> {
    pub arrivals: &'a Arrivals,
    pub count: u32,
    pub interval_ms: f64,
    /// What the machine adds to a delay.
    pub added_ms: f64,
}

impl Sample<'_> {
    /// `None`: there is nothing to measure.
    pub fn figure(&self, what: What) -> Option<Figure> {
        match what {
            What::DelayMean => Some(Figure::mean(&self.delays_ms())),
            What::DelaySd => Some(sd(&self.delays_ms())),
            What::Correlation => self.correlation(),
            What::Lost => Some(self.share(|copies| copies == 0)),
            What::Doubled => Some(self.share(|copies| copies == 2)),
            What::Overtaken => Some(Figure::mean(&self.overtaken())),
        }
    }

    /// In the order of sending.
    fn delays_ms(&self) -> Vec<f64> {
        let delays = self.arrivals.of_each_ms(self.count).concat();
        delays.iter().map(|delay| delay - self.added_ms).collect()
    }

    fn share(&self, of: impl Fn(usize) -> bool) -> Figure {
        let each = self.arrivals.of_each_ms(self.count);
        let hits: Vec<f64> = each
            .iter()
            .map(|delays| f64::from(of(delays.len())))
            .collect();
        Figure::mean(&hits)
    }

    /// Of a packet's delay and the next one's, where both came once.
    fn correlation(&self) -> Option<Figure> {
        let delays = self.delays_ms();
        let sd = sd(&delays).value;
        let mean = average(&delays);
        let each = self.arrivals.of_each_ms(self.count);
        let products: Vec<f64> = each
            .windows(2)
            .filter(|pair| pair[0].len() == 1 && pair[1].len() == 1)
            .map(|pair| (pair[0][0] - self.added_ms - mean) * (pair[1][0] - self.added_ms - mean))
            .map(|product| product / (sd * sd))
            .collect();
        (sd > 0.0).then(|| Figure::mean(&products))
    }

    /// For each packet that came, in the order of sending, 1 if one sent later came before it.
    /// The last ones, behind which too few were sent, are left out.
    fn overtaken(&self) -> Vec<f64> {
        let longest = quantile(&self.arrivals.delays_ms(), 1.0);
        let behind = (longest / self.interval_ms).ceil() as u32 + 1;
        let counted = self.count.saturating_sub(behind);
        let mut latest = 0;
        let mut overtaken = vec![None; self.count as usize];
        for arrival in &self.arrivals.0 {
            overtaken[arrival.number as usize].get_or_insert(f64::from(arrival.number < latest));
            latest = latest.max(arrival.number);
        }
        overtaken
            .into_iter()
            .take(counted as usize)
            .flatten()
            .collect()
    }
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
