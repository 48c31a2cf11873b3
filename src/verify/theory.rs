// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requested effect of a direction on a probe, from the numbers that the classifier runs.

use std::net::IpAddr;

use super::check::What;
use super::probe::{SHORT_PAYLOAD, wire_bytes};
use super::unjudged::{Unjudged, left_out};
use crate::abi;
use crate::datapath::stage::compile::{Beside, decode};
use crate::profile::quantile::{
    TABLE_MIN, TABLE_STEP, normal_cdf, normal_quantile, of_share, table_x,
};
use crate::profile::{self, Reorder, Stage};

/// The source of a delay.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    Constant,
    /// In order: a process in time with this distance between knots.
    Process {
        table_ns: Vec<f64>,
        coherence_ns: f64,
    },
    /// Independent for each packet.
    Independent {
        table_ns: Vec<f64>,
    },
}

/// One requested direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Rate of the link; `None`: no limit.
    pub rate_bit_s: Option<f64>,
    /// Overhead of a packet on the wire in bytes.
    pub overhead: i32,
    /// Number of waiting packets of the longest length that probes use.
    pub queue_packets: f64,
    /// Probability; the long-run share if losses are not independent, of small probes with IPv4 if
    /// it depends on the length.
    pub loss: f64,
    /// Whether losses happen before the queue, so that a lost packet takes no time of the link.
    pub loss_before: bool,
    /// Mean of the propagation delay, without serialisation.
    pub mean_ns: f64,
    /// Standard deviation of the propagation delay.
    pub sd_ns: f64,
    /// Where the delays come from.
    pub source: Source,
    /// The parts that the fields above do not cover.
    pub unjudged: Vec<Unjudged>,
}

impl Asked {
    /// Returns a direction without emulation: it has no effect.
    pub fn nothing() -> Self {
        Self {
            rate_bit_s: None,
            overhead: 0,
            queue_packets: f64::INFINITY,
            loss: 0.0,
            loss_before: false,
            mean_ns: 0.0,
            sd_ns: 0.0,
            source: Source::Constant,
            unjudged: Vec::new(),
        }
    }

    pub(super) fn has_effect(&self) -> bool {
        let limits = self.rate_bit_s.is_some();
        limits || self.loss > 0.0 || self.mean_ns > 0.0 || !self.unjudged.is_empty()
    }

    pub(super) fn may_limit(&self) -> bool {
        self.rate_bit_s.is_some() || self.unjudged.iter().any(|u| u.limits)
    }

    /// Decodes what the classifier runs; `longest` is the length of the longest probe on the wire
    /// in bytes, `pattern` a recorded one of losses.
    pub fn of(
        figures: &abi::emud_link,
        table: &abi::emud_table,
        pattern: Option<&abi::emud_pattern>,
        longest: usize,
    ) -> Self {
        let jitter = figures.flags & abi::EMUD_F_JITTER != 0;
        let beside = Beside {
            delays: jitter.then_some(&table.delay_ns[..]),
            mean_ns: figures.delay_ns,
            pattern,
            wanted: None,
        };
        let link = decode(figures, beside);
        let sd_ns = (link.delay.jitter.as_ref()).map_or(0.0, |jitter| jitter.sd_ns);
        let share = link.delay.share.unwrap_or(1.0);
        let (mean_ns, sd_ns) = of_share(share, link.delay.mean_ns as f64, sd_ns);
        let l3 = figures.flags & abi::EMUD_F_L3 != 0;
        let any = IpAddr::from([0, 0, 0, 0]);
        let probe = wire_bytes(SHORT_PAYLOAD, any, l3) as i32 + link.overhead;
        let mut asked = Self {
            rate_bit_s: link.rate.map(|rate| rate as f64),
            overhead: link.overhead,
            queue_packets: f64::INFINITY,
            loss: link.loss.share_of(probe.max(0).unsigned_abs()),
            loss_before: link.loss.stage == Stage::BeforeQueue,
            mean_ns,
            sd_ns,
            source: source(&link.delay, table, sd_ns),
            unjudged: left_out(&link, figures),
        };
        asked.queue_packets = asked.room(figures, longest);
        asked
    }

    /// Returns why a check is not judged; `None` if it is.
    pub fn unjudged(&self, what: What) -> Option<&'static str> {
        let mut reasons = self.unjudged.iter();
        Some(reasons.find(|u| u.what.contains(&what))?.why)
    }

    fn room(&self, link: &abi::emud_link, longest: usize) -> f64 {
        let each_ns = self.serialisation_ns(longest);
        let time = |ns: u64| match ns {
            u64::MAX => f64::INFINITY,
            ns => ns as f64 / each_ns,
        };
        let packets = match link.queue_packets {
            0 => f64::INFINITY,
            packets => f64::from(packets),
        };
        time(link.queue_wait_ns)
            .min(time(link.queue_busy_ns))
            .min(packets)
    }

    /// Returns how long a packet of this length takes to be put on the wire.
    pub fn serialisation_ns(&self, bytes: usize) -> f64 {
        let on_the_wire = (bytes as f64 + f64::from(self.overhead)).max(0.0);
        self.rate_bit_s.map_or(0.0, |rate| on_the_wire * 8e9 / rate)
    }

    /// Returns the delay at a standard normal value.
    pub fn delay_ns(&self, z: f64) -> f64 {
        match &self.source {
            Source::Constant => self.mean_ns,
            Source::Process { table_ns, .. } | Source::Independent { table_ns } => at(table_ns, z),
        }
    }

    /// Returns whether packets may overtake.
    pub fn reorders(&self) -> bool {
        matches!(self.source, Source::Independent { .. })
    }

    /// Returns the number of independent values that are equivalent to a mean over this time;
    /// `None` if the delay is constant or independent for each packet.
    ///
    /// Between two knots at distance T each value has the weight c = sqrt(2) asinh(1) T on its time
    /// average, so the variance of the mean over D is 2 asinh(1)^2 T/D.
    pub fn independent_values(&self, duration_ns: f64) -> Option<f64> {
        match &self.source {
            Source::Process { coherence_ns, .. } => {
                Some(duration_ns / (2.0 * 1f64.asinh().powi(2) * coherence_ns))
            }
            _ => None,
        }
    }
}

/// Returns the table of the same delays if only a share of the packets has them: the highest values.
fn mixed(table_ns: &[f64], share: f64) -> Vec<f64> {
    let of = |i: usize| match normal_cdf(-table_x(i)) {
        above if above < share => at(table_ns, -normal_quantile(above / share)),
        _ => 0.0,
    };
    (0..table_ns.len()).map(of).collect()
}

fn source(delay: &profile::Delay, table: &abi::emud_table, sd_ns: f64) -> Source {
    if sd_ns == 0.0 {
        return Source::Constant;
    }
    let table_ns: Vec<f64> = match &delay.jitter {
        None => vec![delay.mean_ns as f64; table.delay_ns.len()],
        Some(_) => table.delay_ns.iter().map(|ns| *ns as f64).collect(),
    };
    if let Some(share) = delay.share {
        let table_ns = mixed(&table_ns, share);
        return Source::Independent { table_ns };
    }
    match &delay.jitter {
        Some(profile::Jitter {
            reorder: Reorder::Never,
            coherence_ns,
            ..
        }) => Source::Process {
            table_ns,
            coherence_ns: coherence_ns.unwrap_or(1).max(1) as f64,
        },
        _ => Source::Independent { table_ns },
    }
}

fn at(table_ns: &[f64], z: f64) -> f64 {
    let last = table_ns.len() - 1;
    let place = (z - TABLE_MIN) * (1.0 / TABLE_STEP);
    let i = place as usize;
    match place >= 0.0 {
        true if i < last => table_ns[i] + (table_ns[i + 1] - table_ns[i]) * (place - i as f64),
        true => table_ns[last],
        false => table_ns[0],
    }
}

/// Returns why a check of probes that pass all these directions is not judged; `None` if it is.
pub(super) fn unjudged(ways: &[&Asked], what: What) -> Option<&'static str> {
    let of = |what| ways.iter().find_map(|w| w.unjudged(what));
    let reorders = ways.iter().any(|w| w.reorders());
    let all: &[What] = match what {
        // Losses and copies change how many packets meet one that overtakes them.
        What::Overtaken if reorders => &[what, What::Loss, What::Duplicates],
        _ => &[what],
    };
    all.iter().find_map(|what| of(*what))
}

/// Returns whether no check of probes that pass all these directions is valid.
pub(super) fn nothing_judged(ways: &[&Asked]) -> bool {
    let is_left_out = |what: &What| unjudged(ways, *what).is_some();
    What::ALL.iter().all(is_left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::stage::compile::{PacketTarget, compile};
    use crate::profile::Profile;
    use crate::verify::cdf::Cdf;

    fn asked(profile: &str) -> Asked {
        let profile = Profile::parse(profile, "test").unwrap();
        let place = PacketTarget {
            release: abi::EMUD_RELEASE_NONE,
            ifindex: 0,
            l3: false,
        };
        let compiled = compile(&profile.up, 1, abi::EMUD_UP, 0, place).unwrap();
        let pattern = compiled.pattern.as_deref();
        Asked::of(&compiled.link, &compiled.table, pattern, 1442)
    }

    #[test]
    fn a_uniform_delay_is_a_straight_line() {
        let up = asked("[link]\ndelay={mean=\"200ms\",jitter=\"50ms\"}");
        let cdf = Cdf::of(&[&up]);
        for share in [0.1f64, 0.25, 0.5, 0.9] {
            let ns = 150e6 + 100e6 * share;
            assert!((cdf.at(ns) - share).abs() < 1e-3, "{share}");
            assert!((cdf.quantile(share) - ns).abs() < 1e5, "{share}");
        }
        assert_eq!((cdf.at(149e6), cdf.at(251e6)), (0.0, 1.0));
    }

    #[test]
    fn a_round_trip_of_two_uniform_delays_is_a_triangle() {
        let up = asked("[link]\ndelay={mean=\"200ms\",jitter=\"50ms\"}");
        let cdf = Cdf::of(&[&up, &up]);
        // Below the peak: (x - 300)^2 / (2 * 100^2).
        for ms in [320.0f64, 350.0, 390.0] {
            let share = (ms - 300.0).powi(2) / 2e4;
            assert!((cdf.at(ms * 1e6) - share).abs() < 3e-3, "{ms}");
        }
    }

    #[test]
    fn a_share_of_delayed_packets_is_a_mixture() {
        let up = asked(
            "[link]\ndelay={mean=\"10ms\",sd=\"2ms\",distribution=\"normal\",reorder=\"jitter\",share=\"5%\"}",
        );
        let square: f64 = 0.05 * (4.0 + 100.0);
        assert!((up.mean_ns - 0.5e6).abs() < 500.0, "{}", up.mean_ns);
        assert!((up.sd_ns - 1e6 * (square - 0.25).sqrt()).abs() < 2e3);
        let cdf = Cdf::of(&[&up]);
        assert!((cdf.atom() - 0.95).abs() < 1e-3, "{}", cdf.atom());
        assert!((cdf.at(5e6) - 0.95).abs() < 2e-3);
        assert!((cdf.at(10e6) - 0.975).abs() < 1e-3);
        assert!((cdf.quantile(0.975) - 10e6).abs() < 1e5);
        assert!(up.reorders());
        let constant = asked("[link]\ndelay={mean=\"10ms\",share=\"20%\"}");
        assert!((constant.mean_ns - 2e6).abs() < 1.0 && (constant.sd_ns - 4e6).abs() < 1.0);
        assert_eq!(
            (constant.delay_ns(0.0), constant.delay_ns(1.0)),
            (0.0, 10e6)
        );
    }

    #[test]
    fn a_probe_is_serialised_with_its_overhead() {
        let up = asked("[link]\nrate=\"1Mbit\"\noverhead=34\nqueue=\"100ms\"");
        assert!((up.serialisation_ns(66) - 800_000.0).abs() < 1.0);
        // 1442 + 34 bytes take 11.808 ms.
        assert!((up.queue_packets - 100.0 / 11.808).abs() < 1e-3);
    }

    #[test]
    fn losses_that_depend_on_packets_are_those_of_probes() {
        let loss = |model: &str| {
            let link = "[link]\nrate=\"1Mbit\"\noverhead=24\n";
            asked(&format!("{link}loss={{{model}}}")).loss
        };
        let pattern = loss("model=\"pattern\",pattern=\"1011001\"");
        assert!((pattern - 4.0 / 7.0).abs() < 1e-12, "{pattern}");
        let once = loss("model=\"pattern\",pattern=\"1011001\",loop=false");
        assert!(once.abs() < 1e-12, "{once}");
        // 66 bytes, and 24.
        let bits = loss("model=\"bit-error\",ber=1e-5");
        let of_theory = 1.0 - (1.0 - 1e-5f64).powi(8 * 90);
        assert!((bits - of_theory).abs() < 1e-7, "{bits}");
    }

    #[test]
    fn thirty_seconds_of_hsdpa_are_worth_few_values() {
        let up = asked("[link]\ndelay={mean=\"198ms\",sd=\"69.296ms\",distribution=\"normal\"}");
        let worth = up.independent_values(30e9).unwrap();
        assert!((65.0..80.0).contains(&worth), "{worth}");
    }
}
