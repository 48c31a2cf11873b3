// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers of the queue: from the profile to what the classifier runs, and back for `emud show`.

use schemars::JsonSchema;
use serde::Serialize;

use super::queueing::ns;
use crate::abi;
use crate::bottleneck::aqm::{Gains, pie_gain};
use crate::profile::aqm::{ARED_PACKETS_MIN, PACKET_BYTES, PIE_PACKET_BYTES, weight_of_a_second};
use crate::profile::{self, Aqm, Length};

const Q32: f64 = 4_294_967_296.0;
/// The classifier shifts lengths of RED's queue by 20.
const RED_LENGTH_MAX_NS: u64 = (1 << 42) - 1;
const LENGTH_MAX_NS: u64 = (1 << abi::EMUD_LENGTH_SHIFT) - 1;

/// Fills in the manager of a queue in front of this rate (bit/s); its number, and whether it marks.
pub(super) fn compile(
    q: &mut abi::emud_queueing,
    aqm: &Aqm,
    rate: u64,
    wire_ns: impl Fn(u32) -> u64,
) -> (abi::emud_aqm, bool) {
    let packet_ns = wire_ns(PACKET_BYTES).max(1);
    let length = |length| match length {
        Length::Bytes(bytes) => ns(bytes, rate),
        Length::Time(ns) => ns,
    };
    let red = |min, max, probability, weight: f64| abi::emud_red {
        min_ns: length(min).min(RED_LENGTH_MAX_NS),
        max_ns: length(max).min(RED_LENGTH_MAX_NS),
        packet_ns,
        probability: fraction(probability),
        weight: ((weight * Q32).round() as u64).max(1),
    };
    match aqm {
        Aqm::Red(it) => {
            q.red = red(it.min, it.max, it.probability, it.weight);
            (abi::EMUD_AQM_RED, it.ecn)
        }
        Aqm::Ared(it) => {
            let target_ns = length(it.target).min(RED_LENGTH_MAX_NS);
            let min_ns = (target_ns / 2).max(ARED_PACKETS_MIN * packet_ns);
            let (min, max) = (Length::Time(min_ns), Length::Time(3 * min_ns));
            let weight = it.weight.unwrap_or_else(|| weight_of_a_second(packet_ns));
            q.red = red(min, max, it.probability, weight);
            q.ared = abi::emud_ared {
                interval_ns: it.interval_ns,
                alpha: fraction(it.alpha),
                beta: fraction(it.beta),
            };
            (abi::EMUD_AQM_ARED, it.ecn)
        }
        Aqm::Rio(it) => {
            q.red = red(it.min, it.max, it.probability, it.weight);
            let (min, max) = (it.assured_min, it.assured_max);
            q.rio = abi::emud_rio {
                assured: red(min, max, it.assured_probability, it.weight),
                codes: it.assured,
            };
            (abi::EMUD_AQM_RIO, it.ecn)
        }
        Aqm::CoDel(it) => {
            q.codel = abi::emud_codel {
                target_ns: it.target_ns,
                interval_ns: it.interval_ns,
                packet_ns: wire_ns(profile::PACKET_BYTES),
            };
            (abi::EMUD_AQM_CODEL, it.ecn)
        }
        Aqm::Pie(it) => {
            q.pie = abi::emud_pie {
                target_ns: it.target_ns,
                tupdate_ns: it.tupdate_ns,
                alpha: pie_gain(it.alpha),
                beta: pie_gain(it.beta),
                packets_ns: 2 * wire_ns(PIE_PACKET_BYTES),
            };
            (abi::EMUD_AQM_PIE, it.ecn)
        }
        Aqm::Pi(it) => {
            q.pi = abi::emud_pi {
                target_ns: length(it.target).min(LENGTH_MAX_NS),
                tupdate_ns: it.tupdate_ns,
                packet_ns,
                gains: gains(it.a - it.b, it.b, packet_ns),
            };
            (abi::EMUD_AQM_PI, it.ecn)
        }
        Aqm::Rem(it) => {
            let gamma = it.gamma * it.phi.ln();
            q.rem = abi::emud_rem {
                target_ns: length(it.target).min(LENGTH_MAX_NS),
                tupdate_ns: it.tupdate_ns,
                packet_ns,
                gains: gains(it.alpha * gamma, gamma, packet_ns),
            };
            (abi::EMUD_AQM_REM, it.ecn)
        }
    }
}

fn fraction(share: f64) -> u64 {
    (share * Q32) as u64
}

fn gains(first: f64, second: f64, packet_ns: u64) -> abi::emud_gains {
    let per_ns = |gain: f64| gain / packet_ns as f64;
    let Gains { mult, shift } = Gains::of([per_ns(first), per_ns(second)]);
    abi::emud_gains {
        mult,
        shift,
        reserved: 0,
    }
}

/// As a packet has it.
fn gains_of(gains: &abi::emud_gains, packet_ns: u64) -> [f64; 2] {
    let scale = packet_ns as f64 / 2f64.powi(32 + gains.shift as i32);
    gains.mult.map(|mult| mult as f64 * scale)
}

/// Who acts before the queue is full; gains and probabilities as the classifier has them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Manager {
    Red {
        #[serde(flatten)]
        red: Red,
        ecn: bool,
    },
    Ared {
        /// The probability is the one to begin with.
        #[serde(flatten)]
        red: Red,
        interval_ns: u64,
        alpha: f64,
        beta: f64,
        ecn: bool,
    },
    Rio {
        #[serde(flatten)]
        red: Red,
        assured_min_ns: u64,
        assured_max_ns: u64,
        assured_probability: f64,
        /// DSCPs.
        assured: Vec<u32>,
        ecn: bool,
    },
    Codel {
        target_ns: u64,
        interval_ns: u64,
        ecn: bool,
    },
    Pie {
        target_ns: u64,
        tupdate_ns: u64,
        alpha: f64,
        beta: f64,
        ecn: bool,
    },
    Pi {
        target_ns: u64,
        tupdate_ns: u64,
        a: f64,
        b: f64,
        ecn: bool,
    },
    Rem {
        target_ns: u64,
        tupdate_ns: u64,
        /// Times ln(phi): the rise of -ln(1 - probability).
        gamma: f64,
        alpha: f64,
        ecn: bool,
    },
}

/// The figures of RED.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Red {
    pub min_ns: u64,
    pub max_ns: u64,
    pub probability: f64,
    pub weight: f64,
}

impl Red {
    fn of(red: &abi::emud_red) -> Self {
        Self {
            min_ns: red.min_ns,
            max_ns: red.max_ns,
            probability: red.probability as f64 / Q32,
            weight: red.weight as f64 / Q32,
        }
    }
}

/// The manager of a link's queue, if it has one.
pub(crate) fn manager(link: &abi::emud_link) -> Option<Manager> {
    let q = &link.queueing;
    let ecn = q.ecn != 0;
    let red = Red::of(&q.red);
    match q.aqm {
        abi::EMUD_AQM_RED => Some(Manager::Red { red, ecn }),
        abi::EMUD_AQM_ARED => Some(Manager::Ared {
            red,
            interval_ns: q.ared.interval_ns,
            alpha: q.ared.alpha as f64 / Q32,
            beta: q.ared.beta as f64 / Q32,
            ecn,
        }),
        abi::EMUD_AQM_RIO => {
            let assured = Red::of(&q.rio.assured);
            let codes = q.rio.codes;
            Some(Manager::Rio {
                red,
                assured_min_ns: assured.min_ns,
                assured_max_ns: assured.max_ns,
                assured_probability: assured.probability,
                assured: (0..64).filter(|code| codes >> code & 1 == 1).collect(),
                ecn,
            })
        }
        abi::EMUD_AQM_CODEL => Some(Manager::Codel {
            target_ns: q.codel.target_ns,
            interval_ns: q.codel.interval_ns,
            ecn,
        }),
        abi::EMUD_AQM_PIE => {
            let shift = abi::EMUD_PIE_SHIFT + abi::EMUD_PIE_GAIN_SHIFT;
            let gain = |fixed: u64| fixed as f64 * 1e9 / 2f64.powi(shift as i32);
            Some(Manager::Pie {
                target_ns: q.pie.target_ns,
                tupdate_ns: q.pie.tupdate_ns,
                alpha: gain(q.pie.alpha),
                beta: gain(q.pie.beta),
                ecn,
            })
        }
        abi::EMUD_AQM_PI => {
            let [integral, b] = gains_of(&q.pi.gains, q.pi.packet_ns);
            Some(Manager::Pi {
                target_ns: q.pi.target_ns,
                tupdate_ns: q.pi.tupdate_ns,
                a: integral + b,
                b,
                ecn,
            })
        }
        abi::EMUD_AQM_REM => {
            let [backlog, gamma] = gains_of(&q.rem.gains, q.rem.packet_ns);
            Some(Manager::Rem {
                target_ns: q.rem.target_ns,
                tupdate_ns: q.rem.tupdate_ns,
                gamma,
                alpha: backlog / gamma,
                ecn,
            })
        }
        _ => None,
    }
}

/// Drops with room in the queue, by who decided them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AqmDropped {
    pub red: u64,
    pub codel: u64,
    pub pie: u64,
    pub ared: u64,
    pub rio: u64,
    pub pi: u64,
    pub rem: u64,
}

impl AqmDropped {
    pub(crate) fn of(c: &abi::emud_counters) -> Self {
        let by = |aqm: abi::emud_aqm| c.aqm_dropped[aqm as usize];
        Self {
            red: by(abi::EMUD_AQM_RED),
            codel: by(abi::EMUD_AQM_CODEL),
            pie: by(abi::EMUD_AQM_PIE),
            ared: by(abi::EMUD_AQM_ARED),
            rio: by(abi::EMUD_AQM_RIO),
            pi: by(abi::EMUD_AQM_PI),
            rem: by(abi::EMUD_AQM_REM),
        }
    }

    /// The managers and their drops.
    pub fn by_name(&self) -> [(&'static str, u64); 7] {
        [
            ("red", self.red),
            ("codel", self.codel),
            ("pie", self.pie),
            ("ared", self.ared),
            ("rio", self.rio),
            ("pi", self.pi),
            ("rem", self.rem),
        ]
    }

    /// By all of them.
    pub fn all(&self) -> u64 {
        self.by_name().iter().map(|(_, drops)| drops).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(aqm: Aqm) -> abi::emud_link {
        let mut link = abi::emud_link::default();
        // 1000 bytes take 1 ms.
        let (number, ecn) = compile(&mut link.queueing, &aqm, 8_000_000, |bytes| {
            u64::from(bytes) * 1000
        });
        (link.queueing.aqm, link.queueing.ecn) = (number, ecn.into());
        link
    }

    #[test]
    fn pies_gains_come_back() {
        for gain in [0.0, 0.125, 1.25, 10.0] {
            let back = pie_gain(gain) as f64 * 1e9 / 2f64.powi(54);
            assert!((back - gain).abs() <= 1e-6 * gain, "{back} for {gain}");
        }
    }

    #[test]
    fn gains_come_back_at_any_rate() {
        for packet_ns in [8, 800, 533_333, 800_000_000] {
            for (integral, b) in [(6e-8, 1.816e-5), (0.5, 1e-3), (0.0, 1.0)] {
                let back = gains_of(&gains(integral, b, packet_ns), packet_ns);
                assert!((back[0] - integral).abs() <= 1e-6 * integral, "{back:?}");
                assert!((back[1] - b).abs() <= 1e-6 * b, "{back:?}");
            }
        }
    }

    #[test]
    fn an_adaptive_red_lies_about_its_target() {
        let link = compiled(Aqm::Ared(profile::Ared {
            target: Length::Bytes(200_000),
            ..profile::Ared::default()
        }));
        let red = link.queueing.red;
        assert_eq!((red.min_ns, red.max_ns), (100_000_000, 300_000_000));
        // ln(1 - w) is -1 over 1000 packets a second.
        let weight = red.weight as f64 / Q32;
        assert!(
            ((1.0 - weight).ln() * 1000.0 + 1.0).abs() < 1e-5,
            "{weight}"
        );
        let short = compiled(Aqm::Ared(profile::Ared::default()));
        assert_eq!(short.queueing.red.min_ns, 5_000_000);
    }

    #[test]
    fn what_runs_is_what_was_asked_for() {
        let pi = manager(&compiled(Aqm::Pi(profile::Pi::default())));
        let Some(Manager::Pi {
            target_ns, a, b, ..
        }) = pi
        else {
            panic!("{pi:?}");
        };
        assert_eq!(target_ns, 50_000_000);
        assert!((a - 1.822e-5).abs() < 1e-11 && (b - 1.816e-5).abs() < 1e-11);
        let rem = manager(&compiled(Aqm::Rem(profile::Rem::default())));
        let Some(Manager::Rem { gamma, alpha, .. }) = rem else {
            panic!("{rem:?}");
        };
        assert!((gamma / (0.001 * 1.001f64.ln()) - 1.0).abs() < 1e-6);
        assert!((alpha - 0.1).abs() < 1e-6);
        let rio = manager(&compiled(Aqm::Rio(profile::Rio {
            assured_min: Length::Bytes(100_000),
            assured_max: Length::Time(7),
            ecn: true,
            ..profile::Rio::default()
        })));
        let Some(Manager::Rio {
            assured_min_ns,
            assured_max_ns,
            assured,
            ecn,
            ..
        }) = rio
        else {
            panic!("{rio:?}");
        };
        assert_eq!((assured_min_ns, assured_max_ns), (100_000_000, 7));
        assert_eq!((assured, ecn), (vec![10, 18, 26, 34], true));
    }
}
