// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers of the queue: from the profile to what the classifier runs, and back.

use schemars::JsonSchema;
use serde::Serialize;

use super::rate::ns;
use crate::abi;
use crate::bottleneck::aqm::{Gains, pie_gain, probability};
use crate::profile::aqm::{Ared, PACKET_BYTES, PIE_PACKET_BYTES};
use crate::profile::{self, Aqm, Length};

const Q32: f64 = 4_294_967_296.0;
/// The classifier shifts lengths of RED's queue by 20.
const RED_LENGTH_MAX_NS: u64 = (1 << 42) - 1;
const LENGTH_MAX_NS: u64 = (1 << abi::EMUD_LENGTH_SHIFT) - 1;

/// Fills in the manager of a queue in front of this rate (bit/s); its number, and whether it marks.
pub(super) fn encode(
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
    let red = |min, max, share, weight: f64| abi::emud_red {
        min_ns: length(min).min(RED_LENGTH_MAX_NS),
        max_ns: length(max).min(RED_LENGTH_MAX_NS),
        packet_ns,
        probability: probability(share),
        weight: ((weight * Q32).round() as u64).max(1),
    };
    match aqm {
        Aqm::Red(it) => {
            q.red = red(it.min, it.max, it.probability, it.weight);
            (abi::EMUD_AQM_RED, it.ecn)
        }
        Aqm::Ared(it) => {
            let target_ns = length(it.target).min(RED_LENGTH_MAX_NS);
            let [min, max] = Ared::between(target_ns, packet_ns).map(Length::Time);
            q.red = red(min, max, it.probability, it.weight(packet_ns));
            q.ared = abi::emud_ared {
                interval_ns: it.interval_ns,
                alpha: probability(it.alpha),
                beta: probability(it.beta),
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
                gains: gains(it.gains(), packet_ns),
            };
            (abi::EMUD_AQM_PI, it.ecn)
        }
        Aqm::Rem(it) => {
            q.rem = abi::emud_rem {
                target_ns: length(it.target).min(LENGTH_MAX_NS),
                tupdate_ns: it.tupdate_ns,
                packet_ns,
                gains: gains(it.gains(), packet_ns),
            };
            (abi::EMUD_AQM_REM, it.ecn)
        }
    }
}

fn gains(per_packet: [f64; 2], packet_ns: u64) -> abi::emud_gains {
    let Gains { mult, shift } = Gains::of(per_packet.map(|gain| gain / packet_ns as f64));
    abi::emud_gains {
        mult,
        shift,
        reserved: 0,
    }
}

/// Returns the gains per packet.
fn gains_of(gains: &abi::emud_gains, packet_ns: u64) -> [f64; 2] {
    let scale = packet_ns as f64 / 2f64.powi(32 + gains.shift as i32);
    gains.mult.map(|mult| mult as f64 * scale)
}

/// Decodes the manager of a queue: the inverse of [`encode`], with lengths in ns. Of REM, `gamma`
/// contains the logarithm of `phi`, which is e.
pub(super) fn decode(q: &abi::emud_queueing) -> Option<Aqm> {
    let ecn = q.ecn != 0;
    let share = |fraction: u64| fraction as f64 / Q32;
    let red = &q.red;
    Some(match q.aqm {
        abi::EMUD_AQM_RED => Aqm::Red(profile::Red {
            min: Length::Time(red.min_ns),
            max: Length::Time(red.max_ns),
            probability: share(red.probability),
            weight: share(red.weight),
            ecn,
        }),
        abi::EMUD_AQM_ARED => Aqm::Ared(profile::Ared {
            target: Length::Time(2 * red.min_ns),
            weight: Some(share(red.weight)),
            probability: share(red.probability),
            interval_ns: q.ared.interval_ns,
            alpha: share(q.ared.alpha),
            beta: share(q.ared.beta),
            ecn,
        }),
        abi::EMUD_AQM_RIO => Aqm::Rio(profile::Rio {
            min: Length::Time(red.min_ns),
            max: Length::Time(red.max_ns),
            probability: share(red.probability),
            assured_min: Length::Time(q.rio.assured.min_ns),
            assured_max: Length::Time(q.rio.assured.max_ns),
            assured_probability: share(q.rio.assured.probability),
            assured: q.rio.codes,
            weight: share(red.weight),
            ecn,
        }),
        abi::EMUD_AQM_CODEL => Aqm::CoDel(profile::CoDel {
            target_ns: q.codel.target_ns,
            interval_ns: q.codel.interval_ns,
            ecn,
        }),
        abi::EMUD_AQM_PIE => {
            let shift = abi::EMUD_PIE_SHIFT + abi::EMUD_PIE_GAIN_SHIFT;
            let gain = |fixed: u64| fixed as f64 * 1e9 / 2f64.powi(shift as i32);
            Aqm::Pie(profile::Pie {
                target_ns: q.pie.target_ns,
                tupdate_ns: q.pie.tupdate_ns,
                alpha: gain(q.pie.alpha),
                beta: gain(q.pie.beta),
                ecn,
            })
        }
        abi::EMUD_AQM_PI => {
            let [integral, b] = gains_of(&q.pi.gains, q.pi.packet_ns);
            Aqm::Pi(profile::Pi {
                target: Length::Time(q.pi.target_ns),
                tupdate_ns: q.pi.tupdate_ns,
                a: integral + b,
                b,
                ecn,
            })
        }
        abi::EMUD_AQM_REM => {
            let [backlog, gamma] = gains_of(&q.rem.gains, q.rem.packet_ns);
            Aqm::Rem(profile::Rem {
                target: Length::Time(q.rem.target_ns),
                tupdate_ns: q.rem.tupdate_ns,
                gamma,
                alpha: if gamma > 0.0 { backlog / gamma } else { 0.0 },
                phi: std::f64::consts::E,
                ecn,
            })
        }
        _ => return None,
    })
}

/// Packets dropped by queue managers although the queue had room.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AqmDropped {
    /// By RED.
    pub red: u64,
    /// By CoDel.
    pub codel: u64,
    /// By PIE.
    pub pie: u64,
    /// By A-RED.
    pub ared: u64,
    /// By RIO.
    pub rio: u64,
    /// By PI.
    pub pi: u64,
    /// By REM.
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

    /// Returns each manager's name and its drops.
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

    /// Returns the drops of all managers together.
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
        let (number, ecn) = encode(&mut link.queueing, &aqm, 8_000_000, |bytes| {
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
                let back = gains_of(&gains([integral, b], packet_ns), packet_ns);
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
    fn what_runs_is_what_was_configured() {
        let decoded = |aqm| decode(&compiled(aqm).queueing);
        let pi = decoded(Aqm::Pi(profile::Pi::default()));
        let Some(Aqm::Pi(pi)) = pi else {
            panic!("{pi:?}");
        };
        assert_eq!(pi.target, Length::Time(50_000_000));
        assert!((pi.a - 1.822e-5).abs() < 1e-11 && (pi.b - 1.816e-5).abs() < 1e-11);
        let rem = decoded(Aqm::Rem(profile::Rem::default()));
        let Some(Aqm::Rem(rem)) = rem else {
            panic!("{rem:?}");
        };
        assert!((rem.gamma / (0.001 * 1.001f64.ln()) - 1.0).abs() < 1e-6);
        assert!((rem.alpha - 0.1).abs() < 1e-6);
        let wanted = profile::Rio {
            min: Length::Time(3),
            max: Length::Time(9),
            assured_min: Length::Bytes(100_000),
            assured_max: Length::Time(7),
            probability: 0.25,
            assured_probability: 0.5,
            weight: 0.125,
            ecn: true,
            ..profile::Rio::default()
        };
        let rio = profile::Rio {
            assured_min: Length::Time(100_000_000),
            ..wanted
        };
        assert_eq!(decoded(Aqm::Rio(wanted)), Some(Aqm::Rio(rio)));
    }
}
