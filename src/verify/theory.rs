// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a direction is asked to do to a probe, from the numbers that the classifier runs.

use super::judge::What::{
    self, DelayDistribution, DelayMean, DelaySd, Duplicates, Loss, Overtaken, Rate,
};
use crate::abi;
use crate::datapath::show::loss::expected;
use crate::datapath::show::report::moments;
use crate::profile::quantile::{normal_cdf, normal_quantile, table_x};

/// Points of a distribution function: fine against any sample's Kolmogorov distance.
const GRID: usize = 8192;
/// The grid ends where one delay in 30,000 lies beyond: a pareto's last ones would take all of it.
const GRID_TAIL: f64 = 4.0;

/// How a delay comes about.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    Constant,
    /// In order: a process in time with this distance between knots.
    Process {
        table_ns: Vec<f64>,
        coherence_ns: f64,
    },
    /// Drawn for each packet.
    Independent {
        table_ns: Vec<f64>,
    },
}

/// One direction as asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub rate_bit_s: Option<f64>,
    /// Bytes a packet on the wire beside itself.
    pub overhead: i32,
    /// Packets that may wait, of the longest that probes use.
    pub queue_packets: f64,
    /// Probability; in the long run, where losses are not independent.
    pub loss: f64,
    /// It strikes ahead of the queue, so that a packet lost has taken no time of the link.
    pub loss_before: bool,
    /// Of propagation; without serialisation.
    pub mean_ns: f64,
    pub sd_ns: f64,
    pub source: Source,
    /// What is not known by the above.
    pub unjudged: Vec<Unjudged>,
}

/// A part of a link that has no theory here, and the checks that it makes meaningless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unjudged {
    pub why: &'static str,
    pub what: &'static [What],
}

/// Why the losses of a link are not judged.
pub const DEPENDENT_LOSS: &str = "losses that are not independent";

/// Every check.
pub const ALL: [What; 7] = [
    DelayMean,
    DelaySd,
    DelayDistribution,
    Loss,
    Duplicates,
    Overtaken,
    Rate,
];

impl Asked {
    /// A direction that is not emulated: it does nothing.
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

    /// From what the classifier runs; `longest` bytes is the longest probe on the wire.
    pub fn of(link: &abi::emud_link, table: &abi::emud_table, longest: usize) -> Self {
        let rate_bit_s = (link.rate_mult != 0)
            .then(|| 8e9 * 2f64.powi(link.rate_shift as i32) / link.rate_mult as f64);
        let (mean_ns, sd_ns) = match link.flags & abi::EMUD_F_JITTER {
            0 => (link.delay_ns as f64, 0.0),
            _ => moments(&table.delay_ns),
        };
        let (mean_ns, sd_ns) = of_share(delayed_share(link), mean_ns, sd_ns);
        let mut asked = Self {
            rate_bit_s,
            overhead: link.overhead,
            queue_packets: f64::INFINITY,
            loss: expected(link, None).unwrap_or_default(),
            loss_before: link.flags & abi::EMUD_F_LOSS_BEFORE != 0,
            mean_ns,
            sd_ns,
            source: source(link, table, sd_ns),
            unjudged: Self::left_out(link),
        };
        asked.queue_packets = asked.room(link, longest);
        asked
    }

    /// What of a direction [`Asked`] leaves out, so that judging it would be wrong.
    pub fn left_out(link: &abi::emud_link) -> Vec<Unjudged> {
        let queueing = &link.queueing;
        let flag = |flag| link.flags & flag != 0;
        let known = [abi::EMUD_LOSS_NONE, abi::EMUD_LOSS_BERNOULLI].contains(&link.loss_model);
        let per_packet = flag(abi::EMUD_F_PER_PACKET);
        let by_time: &[What] = match per_packet {
            true => &[DelayMean, DelaySd, DelayDistribution, Loss, Overtaken, Rate],
            false => &[DelayMean, DelaySd, DelayDistribution, Loss, Rate],
        };
        let delay_and_order: &[What] = &[DelayMean, DelaySd, DelayDistribution, Overtaken];
        let delay_and_rate: &[What] = &[DelayMean, DelaySd, DelayDistribution, Rate];
        [
            (
                DEPENDENT_LOSS,
                &[Loss, Rate][..],
                !known || link.loss.correlation != 0,
            ),
            (
                "duplicates",
                &[Duplicates, Rate],
                link.duplicate.probability != 0,
            ),
            ("corruption", &ALL, link.corrupt.probability != 0),
            ("`state = \"down\"`", &ALL, flag(abi::EMUD_F_DOWN)),
            (
                "a share of packets that is delayed in order",
                delay_and_order,
                flag(abi::EMUD_F_SHARE) && flag(abi::EMUD_F_JITTER) && !per_packet,
            ),
            ("`reorder`", delay_and_order, flag(abi::EMUD_F_REORDER)),
            (
                "correlated delays",
                delay_and_order,
                flag(abi::EMUD_F_CORRELATED),
            ),
            (
                "a class of a bottleneck",
                &[DelayMean, DelaySd, DelayDistribution, Loss, Rate],
                link.service != 0,
            ),
            ("a burst", delay_and_rate, queueing.burst_ns != 0),
            (
                "framing (`mpu`, `cell`)",
                delay_and_rate,
                queueing.mpu != 0 || queueing.cell_size != 0,
            ),
            ("an AQM", &[Rate], queueing.aqm != 0),
            ("a trace or phases", by_time, link.timeline.count != 0),
            ("`slot`", delay_and_rate, link.tdma.span_ns != 0),
            ("rules", &ALL, flag(abi::EMUD_F_RULES)),
            ("a matrix", &ALL, flag(abi::EMUD_F_MATRIX)),
        ]
        .into_iter()
        .filter_map(|(why, what, there)| there.then_some(Unjudged { why, what }))
        .collect()
    }

    /// Why that is not judged; none: it is.
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

    /// How long a packet of so many bytes is on its way onto the wire.
    pub fn serialisation_ns(&self, bytes: usize) -> f64 {
        let on_the_wire = (bytes as f64 + f64::from(self.overhead)).max(0.0);
        self.rate_bit_s.map_or(0.0, |rate| on_the_wire * 8e9 / rate)
    }

    /// The delay at a standard normal value.
    pub fn delay_ns(&self, z: f64) -> f64 {
        match &self.source {
            Source::Constant => self.mean_ns,
            Source::Process { table_ns, .. } | Source::Independent { table_ns } => at(table_ns, z),
        }
    }

    /// Whether packets may overtake.
    pub fn reorders(&self) -> bool {
        matches!(self.source, Source::Independent { .. })
    }

    /// How many independent values the mean over so long a time is worth; `None` where the delay
    /// does not vary, or each packet draws its own.
    ///
    /// Between two knots at distance T each value weighs c = sqrt(2) asinh(1) T on its time
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

/// Of the packets, how many are delayed.
fn delayed_share(link: &abi::emud_link) -> f64 {
    match link.flags & abi::EMUD_F_SHARE {
        0 => 1.0,
        _ => link.share as f64 / 2f64.powi(64),
    }
}

/// Mean and standard deviation where only a share of the values is not zero.
fn of_share(share: f64, mean: f64, sd: f64) -> (f64, f64) {
    let square = share * (sd.powi(2) + mean.powi(2));
    let mean = share * mean;
    (mean, (square - mean.powi(2)).max(0.0).sqrt())
}

/// The table of the same delays where only a share of the packets has them: the highest values.
fn mixed(table_ns: &[f64], share: f64) -> Vec<f64> {
    let of = |i: usize| match normal_cdf(-table_x(i)) {
        above if above < share => at(table_ns, -normal_quantile(above / share)),
        _ => 0.0,
    };
    (0..table_ns.len()).map(of).collect()
}

fn source(link: &abi::emud_link, table: &abi::emud_table, sd_ns: f64) -> Source {
    if sd_ns == 0.0 {
        return Source::Constant;
    }
    let table_ns: Vec<f64> = match link.flags & abi::EMUD_F_JITTER {
        0 => vec![link.delay_ns as f64; table.delay_ns.len()],
        _ => table.delay_ns.iter().map(|ns| *ns as f64).collect(),
    };
    if link.flags & abi::EMUD_F_SHARE != 0 {
        let table_ns = mixed(&table_ns, delayed_share(link));
        return Source::Independent { table_ns };
    }
    if link.flags & abi::EMUD_F_PER_PACKET != 0 {
        Source::Independent { table_ns }
    } else {
        let coherence_ns = link.coherence_ns.max(1) as f64;
        Source::Process {
            table_ns,
            coherence_ns,
        }
    }
}

fn at(table_ns: &[f64], z: f64) -> f64 {
    let per_sd = 1.0 / (table_x(1) - table_x(0));
    let last = table_ns.len() - 1;
    let place = ((z - table_x(0)) * per_sd).clamp(0.0, last as f64);
    let i = (place as usize).min(last - 1);
    table_ns[i] + (table_ns[i + 1] - table_ns[i]) * (place - i as f64)
}

/// Distribution function of the delay that probes are asked to have.
#[derive(Debug, Clone)]
pub struct Cdf {
    low_ns: f64,
    step_ns: f64,
    below: Vec<f64>,
}

impl Cdf {
    /// Of the sum of independent delays: one direction's, or both for a round trip.
    pub fn of(ways: &[&Asked]) -> Self {
        let mut delays = vec![0.0];
        let points = if ways.len() > 1 { 600 } else { 65_536 };
        for way in ways {
            let each: Vec<f64> = match way.source {
                Source::Constant => vec![way.mean_ns],
                _ => (0..points)
                    .map(|i| {
                        way.delay_ns(normal_quantile((f64::from(i) + 0.5) / f64::from(points)))
                    })
                    .collect(),
            };
            delays = delays
                .iter()
                .flat_map(|a| each.iter().map(move |b| a + b))
                .collect();
        }
        delays.sort_by(f64::total_cmp);
        Self::of_sorted(&delays)
    }

    fn of_sorted(delays: &[f64]) -> Self {
        let tail = (delays.len() as f64 * normal_cdf(-GRID_TAIL)) as usize;
        let (low_ns, high) = (delays[0], delays[delays.len() - 1 - tail]);
        let step_ns = ((high - low_ns) / GRID as f64).max(f64::MIN_POSITIVE);
        let below = (0..=GRID)
            .map(|i| {
                let x = low_ns + i as f64 * step_ns;
                delays.partition_point(|d| *d <= x) as f64 / delays.len() as f64
            })
            .collect();
        Self {
            low_ns,
            step_ns,
            below,
        }
    }

    /// The share of delays up to this one.
    pub fn at(&self, ns: f64) -> f64 {
        let place = (ns - self.low_ns) / self.step_ns;
        if place < 0.0 {
            return 0.0;
        }
        let i = place as usize;
        match (self.below.get(i), self.below.get(i + 1)) {
            (Some(a), Some(b)) => a + (b - a) * (place - i as f64),
            _ => 1.0,
        }
    }

    /// The share that has the shortest delay: more than nothing where only some are delayed.
    pub fn atom(&self) -> f64 {
        self.below[0]
    }

    /// The delay below which this share lies.
    pub fn quantile(&self, share: f64) -> f64 {
        let i = self.below.partition_point(|b| *b < share);
        let Some((a, b)) = i.checked_sub(1).map(|h| (self.below[h], self.below.get(i))) else {
            return self.low_ns;
        };
        let part = b.map_or(0.0, |b| (share - a) / (b - a));
        self.low_ns + (i as f64 - 1.0 + part) * self.step_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi;
    use crate::datapath::stage::compile::{Place, compile};
    use crate::profile::Profile;

    fn asked(profile: &str) -> Asked {
        let profile = Profile::parse(profile, "test").unwrap();
        let place = Place {
            release: abi::EMUD_RELEASE_NONE,
            ifindex: 0,
            l3: false,
        };
        let compiled = compile(&profile.up, 1, abi::EMUD_UP, 0, place).unwrap();
        Asked::of(&compiled.link, &compiled.table, 1442)
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
    fn thirty_seconds_of_hsdpa_are_worth_few_values() {
        let up = asked("[link]\ndelay={mean=\"198ms\",sd=\"69.296ms\",distribution=\"normal\"}");
        let worth = up.independent_values(30e9).unwrap();
        assert!((65.0..80.0).contains(&worth), "{worth}");
    }
}
