// SPDX-License-Identifier: MIT OR Apache-2.0
//! V: a transfer by TCP and one by UDP with its own retransmission, over a network that loses or
//! delays a share of the packets.

mod model;

use model::Channel;

use super::counts::worst;
use super::live::Variant;
use super::{Bench, Experiment, Figure, ReproduceError, Tolerance};
use crate::experiment::traffic::window::Window;

pub(super) const LOSS: Experiment = Experiment {
    name: "v-loss",
    description: "Transfers by TCP and by UDP with its own retransmission, with 0 to 10 % loss",
    source: SOURCE,
    method: METHOD,
    scenarios: &[SCENARIO],
    thresholds: None,
    measure: |bench| measure(bench, &BY_LOSS),
};

pub(super) const LATENCY: Experiment = Experiment {
    name: "v-latency",
    description: "Transfers by TCP and by UDP with its own retransmission, with 0 to 20 % of the packets delayed",
    source: SOURCE,
    method: METHOD,
    scenarios: &[SCENARIO],
    thresholds: None,
    measure: |bench| measure(bench, &BY_SHARE),
};

const SOURCE: &str =
    "Uni-Verse project, \"Addition to D3.4 Protocol Testing\", 2006 (the badnet plug-in)";
const METHOD: &str = "acknowledged data of TCP Reno and of `emud traffic blocks`, one after the other, 20 s each \
                      (--quick: 5 s, and 20 s where timeouts take most of the time), through the scenario v-badnet; theory of UDP in virtual time";
const SCENARIO: &str = "v-badnet";

const TCP: u16 = 6001;
const UDP: u16 = 6002;
/// Data of TCP in a frame with all that it takes on the wire.
const TCP_DATA: f64 = 1448.0 / 1538.0;
/// Of the wire, bytes/s.
const WIRE: f64 = 12.5e6;

// The transfer by UDP of the scenario. The source describes neither. Its rate is the published one
// without loss; window and timeout fit the published ones with most loss and most delays.
const BLOCK: f64 = 1400.0;
const WINDOW: usize = 9;
const TIMEOUT_NS: u64 = 15_000_000;
/// 1,504 bytes at 100 Mbit/s, 0.12 ms, and the host.
const ROUND_TRIP_NS: u64 = 250_000;
/// A round trip takes 0.1 to 0.4 ms here, 4 % with most delays; the standard error with most losses is
/// 1 % in 20 s and 2 % in 5 s.
const UDP_TOLERANCE: f64 = 0.06;
const QUICK_TOLERANCE: f64 = 0.1;

/// A TCP of today and that of 2006 are not the same, but of the same kind.
const FACTOR: f64 = 2.0;
/// Below this rate, 10^6 bytes/s, TCP waits for timeouts of 200 ms and more most of the time: in 5 s they are
/// some ten, and the rate varied from 0.92 to 1.46.
const TIMED_OUT: f64 = 3.0;
const MOST: f64 = 5.0;

struct Points {
    profile: &'static str,
    key: &'static str,
    what: &'static str,
    /// Percent, and published data rates of TCP and UDP, 10^6 bytes/s.
    points: &'static [(f64, f64, f64)],
    quick: &'static [f64],
    channel: fn(f64) -> Channel,
    /// Why TCP of today may be faster.
    today: &'static str,
}

const BY_LOSS: Points = Points {
    profile: "badnet-loss",
    key: "loss",
    what: "lost",
    points: &[
        (0.0, 11.21, 7.130),
        (1.0, 10.88, 6.667),
        (2.0, 9.41, 6.168),
        (3.0, 5.73, 6.271),
        (4.0, 3.11, 5.418),
        (5.0, 1.93, 6.440),
        (6.0, 0.898, 5.296),
        (7.0, 0.529, 3.668),
        (8.0, 0.382, 5.218),
        (9.0, 0.174, 3.093),
        (10.0, 0.156, 3.364),
    ],
    quick: &[0.0, 1.0, 3.0, 5.0, 10.0],
    channel: |share| Channel {
        loss: share,
        ..CHANNEL
    },
    today: "TCP of 2006 waited for its timeout where RACK and tail loss probes (RFC 8985) do not",
};

const BY_SHARE: Points = Points {
    profile: "badnet-latency",
    key: "delay.share",
    what: "delayed",
    points: &[
        (0.0, 11.21, 6.591),
        (1.0, 11.06, 6.557),
        (2.0, 10.28, 6.502),
        (3.0, 9.61, 6.300),
        (4.0, 7.54, 6.405),
        (5.0, 7.02, 5.591),
        (10.0, 2.90, 5.398),
        (15.0, 1.71, 4.474),
        (20.0, 1.15, 3.118),
    ],
    quick: &[0.0, 5.0, 10.0, 20.0],
    channel: |share| Channel { share, ..CHANNEL },
    today: "TCP of 2006 took packets that were overtaken for lost; RACK (RFC 8985) waits for them",
};

/// That of the profiles.
const CHANNEL: Channel = Channel {
    round_trip_ns: ROUND_TRIP_NS,
    loss: 0.0,
    share: 0.0,
    delay_ms: [10.0, 5.0],
};

impl Channel {
    /// Data rate of blocks that are sent at up to `rate` bytes/s, bytes/s.
    fn goodput(self, rate: f64) -> f64 {
        let interval_ns = (BLOCK / rate * 1e9) as u64;
        BLOCK * self.blocks(Window::new(WINDOW, interval_ns, TIMEOUT_NS), 60)
    }
}

fn measure(bench: &Bench<'_>, of: &Points) -> Result<Vec<Figure>, ReproduceError> {
    let rate = of.points[0].2 * 1e6;
    let tolerance = match bench.quick {
        true => QUICK_TOLERANCE,
        false => UDP_TOLERANCE,
    };
    let (mut figures, mut ratios) = (vec![], vec![]);
    let mut runs = vec![];
    for &(percent, tcp, udp) in of.points {
        if bench.quick && !of.quick.contains(&percent) {
            continue;
        }
        let title = format!("{percent} % {}", of.what);
        let time = match bench.quick && tcp > TIMED_OUT {
            true => "5s",
            false => "20s",
        };
        let counts = bench.run(&Variant {
            title: &title,
            scenario: SCENARIO,
            profile: Some(of.profile),
            set: &[
                "rate=100Mbit",
                "overhead=24",
                "queue=100p",
                &format!("{}={percent}%", of.key),
            ],
            env: &[
                ("TIME", time.to_owned()),
                ("RATE", format!("{:.3}", rate * 8e-6)),
            ],
            ..Variant::default()
        })?;
        let run = Some(counts.verdict);
        let [by_tcp, by_udp] = [TCP, UDP].map(|port| counts.goodput(port).map(|rate| rate / 1e6));
        figures.push(of.tcp(&title, tcp, percent).measured(by_tcp, run));
        let theory = (of.channel)(percent / 100.0).goodput(rate) / 1e6;
        let figure = Figure::new(format!("{title}: UDP"), MEGABYTES).published(udp);
        let figure = figure.theory(theory).within(Tolerance::Share(tolerance));
        figures.push(figure.measured(by_udp, run));
        if let (Some(tcp), Some(udp)) = (by_tcp, by_udp) {
            ratios.push((percent, tcp / udp));
        }
        runs.push(counts);
    }
    let published = of
        .points
        .iter()
        .map(|&(percent, tcp, udp)| (percent, tcp / udp));
    let (is_faster, share) = faster(&ratios);
    let which = match is_faster {
        true => "is faster from",
        false => "is not faster up to",
    };
    let figure = Figure::new(format!("UDP {which} this share {}", of.what), "%");
    let figure = match crossing(published) {
        Some(at) => of.near(figure.published(at), at),
        None => figure,
    };
    figures.push(figure.measured(share, worst(&runs)));
    Ok(figures)
}

/// Returns whether UDP is faster from a share on, and that share, otherwise the largest one; `None`: no share has a
/// ratio of TCP to UDP.
fn faster(ratios: &[(f64, f64)]) -> (bool, Option<f64>) {
    let [first, last] = [ratios.first(), ratios.last()];
    match (crossing(ratios.iter().copied()), last) {
        (None, Some((share, ratio))) if *ratio > 1.0 => (false, Some(*share)),
        // Without a crossing it is faster at all points.
        (crossing, _) => (true, crossing.or(first.map(|(share, _)| *share))),
    }
}

/// Returns where a ratio falls to 1, between two points on a logarithmic scale.
fn crossing(ratios: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let points: Vec<_> = ratios
        .into_iter()
        .map(|(at, ratio)| (at, ratio.ln()))
        .collect();
    points.windows(2).find_map(|pair| {
        let [(from, above), (to, below)] = [pair[0], pair[1]];
        (above > 0.0 && below <= 0.0).then(|| from + (to - from) * above / (above - below))
    })
}

const MEGABYTES: &str = "MB/s";

impl Points {
    fn tcp(&self, title: &str, published: f64, percent: f64) -> Figure {
        let figure = Figure::new(format!("{title}: TCP"), MEGABYTES).published(published);
        match percent {
            0.0 => figure.theory(WIRE * TCP_DATA / 1e6),
            _ => self.near(figure, published),
        }
    }

    fn near(&self, figure: Figure, published: f64) -> Figure {
        let [least, most] = [published / FACTOR, published * FACTOR];
        let figure = figure.within(Tolerance::Range(least, most));
        figure.known(most, published * MOST, self.today)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fit of window and timeout: the published figures with most loss and most delays.
    #[test]
    fn the_model_fits_the_ends() {
        for of in [&BY_LOSS, &BY_SHARE] {
            let rate = of.points[0].2;
            let at = |percent: f64| (of.channel)(percent / 100.0).goodput(rate * 1e6) / 1e6;
            let (most, _, published) = of.points[of.points.len() - 1];
            assert!((at(0.0) / rate - 1.0).abs() < 0.001);
            assert!((at(most) / published - 1.0).abs() < 0.03, "{}", at(most));
        }
    }

    #[test]
    fn where_a_ratio_falls_to_one() {
        assert_eq!(crossing([(0.0, 2.0), (2.0, 0.5), (3.0, 2.0)]), Some(1.0));
        assert_eq!(crossing([(0.0, 2.0), (2.0, 1.5)]), None);
        let published = |of: &Points| {
            let points = of.points.iter();
            crossing(points.map(|&(percent, tcp, udp)| (percent, tcp / udp))).unwrap()
        };
        assert!((2.8..2.9).contains(&published(&BY_LOSS)));
        assert!((6.3..6.4).contains(&published(&BY_SHARE)));
    }

    /// A row without a value would be one that was not measured.
    #[test]
    fn udp_that_is_faster_nowhere_or_everywhere_has_a_share() {
        let of = |[a, b, c]: [f64; 3]| faster(&[(0.0, a), (2.0, b), (3.0, c)]);
        assert_eq!(of([2.0, 0.5, 0.4]), (true, Some(1.0)));
        assert_eq!(of([2.0, 1.5, 1.2]), (false, Some(3.0)));
        assert_eq!(of([0.9, 0.5, 0.4]), (true, Some(0.0)));
        // At first by chance.
        assert_eq!(of([0.9, 1.5, 1.2]), (false, Some(3.0)));
        assert_eq!(of([0.9, 2.0, 0.5]), (true, Some(2.5)));
        assert_eq!(faster(&[]), (true, None));
    }
}
