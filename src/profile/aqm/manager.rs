// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the profile to a manager of a queue whose packets wait, lengths in bytes.

use super::{Aqm, Ared, PACKET_BYTES, PIE_PACKET_BYTES};
use crate::bottleneck::aqm::{
    AredFigures, AverageFigures, Choice, CoDelFigures, Gains, PiFigures, PieFigures, RedFigures,
    RemFigures, RioFigures, pie_gain, probability,
};
use crate::profile::{self, Length};

/// Returns the manager of a queue that is served at this rate (bit/s).
pub(crate) fn choice(aqm: &Aqm, rate: u64) -> Choice {
    let bytes = |ns: u64| (u128::from(ns) * u128::from(rate) / 8_000_000_000) as u64;
    let ns = |bytes: u64| (u128::from(bytes) * 8_000_000_000 / u128::from(rate.max(1))) as u64;
    let length = |length| match length {
        Length::Bytes(bytes) => bytes,
        Length::Time(ns) => bytes(ns),
    };
    let packet_ns = ns(PACKET_BYTES.into()).max(1);
    let red = |min, max, share, weight| RedFigures {
        min,
        max,
        probability: probability(share),
        average: AverageFigures {
            weight: probability(weight).max(1),
            packet_ns,
        },
    };
    let gains = |gains: [f64; 2]| Gains::of(gains.map(|gain| gain / f64::from(PACKET_BYTES)));
    match aqm {
        Aqm::Red(it) => Choice::Red(red(
            length(it.min),
            length(it.max),
            it.probability,
            it.weight,
        )),
        Aqm::Ared(it) => {
            let [min, max] = Ared::between(length(it.target), PACKET_BYTES.into());
            let figures = AredFigures {
                red: red(min, max, it.probability, it.weight(packet_ns)),
                interval_ns: it.interval_ns,
                alpha: probability(it.alpha),
                beta: probability(it.beta),
            };
            Choice::Ared(figures)
        }
        Aqm::Rio(it) => {
            let (min, max) = (length(it.assured_min), length(it.assured_max));
            Choice::Rio(RioFigures {
                best_effort: red(length(it.min), length(it.max), it.probability, it.weight),
                assured: red(min, max, it.assured_probability, it.weight),
                codes: it.assured,
            })
        }
        Aqm::CoDel(it) => Choice::CoDel(CoDelFigures {
            target_ns: it.target_ns,
            interval_ns: it.interval_ns,
            packet: profile::PACKET_BYTES.into(),
        }),
        Aqm::Pie(it) => {
            let figures = PieFigures {
                target_ns: it.target_ns,
                tupdate_ns: it.tupdate_ns,
                alpha: pie_gain(it.alpha),
                beta: pie_gain(it.beta),
                packets: 2 * u64::from(PIE_PACKET_BYTES),
                unit_ns: u64::try_from((8_000_000_000u128 << 32) / u128::from(rate.max(1)))
                    .unwrap_or(u64::MAX),
            };
            Choice::Pie(figures)
        }
        Aqm::Pi(it) => {
            let figures = PiFigures {
                target: length(it.target),
                tupdate_ns: it.tupdate_ns,
                gains: gains(it.gains()),
            };
            Choice::Pi(figures)
        }
        Aqm::Rem(it) => {
            let figures = RemFigures {
                target: length(it.target),
                tupdate_ns: it.tupdate_ns,
                capacity: bytes(it.tupdate_ns),
                gains: gains(it.gains()),
            };
            Choice::Rem(figures)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bottleneck::aqm::{Aqm as _, AqmVerdict, Packet, catch_up};

    const MANAGERS: [profile::Aqm; 7] = {
        use profile::Aqm;
        let (from, to) = (Length::Bytes(20_000), Length::Time(60_000_000));
        [
            Aqm::Red(profile::Red {
                min: from,
                max: to,
                probability: 0.1,
                weight: 0.05,
                ecn: false,
            }),
            Aqm::Rio(profile::Rio {
                min: from,
                max: to,
                probability: 0.1,
                assured_min: from,
                assured_max: to,
                assured_probability: 0.02,
                assured: 2,
                weight: 0.05,
                ecn: false,
            }),
            Aqm::Ared(profile::Ared {
                target: from,
                weight: None,
                probability: 0.1,
                interval_ns: 500_000_000,
                alpha: 0.01,
                beta: 0.9,
                ecn: false,
            }),
            Aqm::CoDel(profile::CoDel {
                target_ns: 5_000_000,
                interval_ns: 100_000_000,
                ecn: false,
            }),
            Aqm::Pie(profile::Pie {
                target_ns: 15_000_000,
                tupdate_ns: 15_000_000,
                alpha: 0.125,
                beta: 1.25,
                ecn: false,
            }),
            Aqm::Pi(profile::Pi {
                target: to,
                tupdate_ns: 5_000_000,
                a: 1e-3,
                b: 9.9e-4,
                ecn: false,
            }),
            Aqm::Rem(profile::Rem {
                target: from,
                tupdate_ns: 2_000_000,
                gamma: 0.001,
                alpha: 0.1,
                phi: 1.01,
                ecn: false,
            }),
        ]
    };

    /// A queue of 200 kB at 8 Mbit/s for 20 s: above all targets, so each drops; one of 2 kB: none.
    #[test]
    fn each_manager_drops_from_a_long_queue_only() {
        for aqm in MANAGERS {
            let drops = |backlog: u64| {
                let mut manager = choice(&aqm, 8_000_000).start(0);
                let mut drops = 0;
                for ms in 1..20_000u64 {
                    let packet = Packet {
                        now_ns: ms * 1_000_000,
                        size: 1_000,
                        sojourn_ns: backlog * 1_000,
                        draw: crate::abi::mix(ms),
                        ..Packet::default()
                    };
                    catch_up(&mut manager, packet.now_ns, |_| backlog);
                    let verdicts = [
                        manager.arrive(&packet, backlog),
                        manager.depart(&packet, backlog),
                    ];
                    drops += u32::from(verdicts.contains(&AqmVerdict::Drop));
                }
                drops
            };
            assert!(drops(200_000) > 100, "{aqm:?}: {}", drops(200_000));
            assert_eq!(drops(2_000), 0, "{aqm:?}");
            assert!(!aqm.marks());
        }
    }
}
