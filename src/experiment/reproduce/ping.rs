// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ping says at its end, and how far it may be from theory.

use super::counts::Counts;
use super::figure::{Figure, Tolerance};
use crate::convert::import::ping::counts;

/// Most that the host adds to a round trip, ms.
const HOST_MS: f64 = 0.5;
/// A correct link is outside this number of standard errors in 1 of 15,000 runs.
const ERRORS: f64 = 4.0;

/// An experiment without ping has no figures.
pub(super) const LACKS: &str =
    "round trips need the program ping: install the Debian package iputils-ping";

/// The summary of a ping of iputils.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Echoed {
    pub node: String,
    pub sent: u64,
    pub answered: u64,
    pub mean_ms: f64,
    /// Standard deviation, which ping calls mdev.
    pub sd_ms: f64,
}

impl Echoed {
    /// Reads the output of ping; `None`: it is that of another program.
    pub fn parse(node: &str, output: &str) -> Option<Self> {
        let (sent, answered) = output.lines().find_map(counts)?;
        let mut lines = output.lines();
        let times = lines.find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "))?;
        let mut times = times.split(['/', ' ']).map(str::parse);
        Some(Self {
            node: node.to_owned(),
            sent,
            answered,
            mean_ms: times.nth(1)?.ok()?,
            sd_ms: times.nth(1)?.ok()?,
        })
    }
}

/// A round trip over two links of a class: uniform delays, independent from packet to packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    /// Delay of each direction, ms.
    pub delay_ms: f64,
    /// Most difference from it.
    pub jitter_ms: f64,
    /// Share lost in each direction.
    pub loss: f64,
}

/// Published figures of a round trip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Published {
    pub loss_percent: f64,
    pub mean_ms: f64,
    pub sd_ms: Option<f64>,
}

impl Class {
    /// Returns loss, mean and standard deviation of a node's pings.
    pub fn figures(
        self,
        title: &str,
        published: Published,
        counts: &Counts,
        node: &str,
    ) -> [Figure; 3] {
        let pings = counts.echoed(node);
        let of = |n: fn(&Echoed) -> f64| pings.map(n);
        let sent = of(|p| p.sent as f64).unwrap_or(1.0);
        let loss = 1.0 - (1.0 - self.loss).powi(2);
        // The sum of two uniform delays has a kurtosis of 2.4.
        let sd = self.jitter_ms * (2.0f64 / 3.0).sqrt();
        let of_loss = (loss * (1.0 - loss) / sent).sqrt();
        let of_mean = sd / sent.sqrt();
        let of_sd = sd * (1.4 / (4.0 * sent)).sqrt();
        let figure = |name: &str, unit, theory: f64, within: f64, measured| {
            let figure = Figure::new(format!("{title}: {name}"), unit).theory(theory);
            let figure = figure.within(Tolerance::Absolute(within));
            figure.measured(measured, Some(counts.verdict))
        };
        let lost = of(|p| 100.0 * (p.sent.saturating_sub(p.answered)) as f64 / p.sent as f64);
        let lost = figure("loss", "%", 100.0 * loss, 100.0 * ERRORS * of_loss, lost);
        let within = ERRORS * of_mean + HOST_MS;
        let mean = figure("mean", "ms", 2.0 * self.delay_ms, within, of(|p| p.mean_ms));
        let sd = figure(
            "standard deviation",
            "ms",
            sd,
            ERRORS * of_sd + HOST_MS,
            of(|p| p.sd_ms),
        );
        [
            // All echo requests between two addresses are one flow, and losses do not depend on times.
            lost.published(published.loss_percent).seeded(),
            mean.published(published.mean_ms),
            match published.sd_ms {
                Some(ms) => sd.published(ms),
                None => sd,
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read() {
        let output = "PING server (10.77.0.2) 1422(1450) bytes of data.\n\n\
                      --- server ping statistics ---\n\
                      500 packets transmitted, 493 received, 1.4% packet loss, time 12135ms\n\
                      rtt min/avg/max/mdev = 311.453/400.164/492.192/40.103 ms, pipe 22\n";
        let read = Echoed::parse("client", output).unwrap();
        let wanted = Echoed {
            node: "client".into(),
            sent: 500,
            answered: 493,
            mean_ms: 400.164,
            sd_ms: 40.103,
        };
        assert_eq!(read, wanted);
        let with_errors = output.replace("received,", "received, +3 errors,");
        assert_eq!(Echoed::parse("client", &with_errors), Some(wanted));
        assert_eq!(
            Echoed::parse("client", "ping: server: Name unknown\n"),
            None
        );
        // Nothing was answered.
        let none = output.lines().filter(|line| !line.starts_with("rtt"));
        let none: Vec<&str> = none.collect();
        assert_eq!(Echoed::parse("client", &none.join("\n")), None);
    }
}
