// SPDX-License-Identifier: MIT OR Apache-2.0
//! The theory of a link: the packets' fates, drawn by the published recurrences.
//!
//! Two methods for one link: that of netem (net/sched/sch_netem.c, Linux 6.18), and that of the
//! configuration, which emud implements (docs/profile.md). Where they give other figures, netem and
//! emud differ; where they do not, they must not.

use std::f64::consts::PI;

use statrs::distribution::{ContinuousCDF, Normal};

use support::chance::Random;
use support::probe::{Arrival, Arrivals};

/// A link in netem's terms. Shares and correlations are 0 .. 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Link {
    pub delay_ms: f64,
    pub jitter_ms: f64,
    /// The jitter is a standard deviation, not the half-width of a uniform one.
    pub normal: bool,
    pub delay_correlation: f64,
    pub loss: Loss,
    pub duplicate: f64,
    pub corrupt: f64,
    pub reorder: f64,
    pub reorder_correlation: f64,
    /// 0: 1.
    pub gap: u32,
    /// From one slot to the next; 0: no slots.
    pub slot_ms: f64,
}

#[derive(Debug, Clone, Copy, Default)]
pub enum Loss {
    #[default]
    None,
    Random {
        p: f64,
        correlation: f64,
    },
    GilbertElliott {
        p: f64,
        r: f64,
        bad: f64,
        good: f64,
    },
    FourState {
        p13: f64,
        p31: f64,
        p32: f64,
        p23: f64,
        p14: f64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Netem,
    Emud,
}

/// The share of single wrong bits that a receiver notices: netem may hit the source's hardware
/// address, which is not checked, as one of Ethernet header, IP packet and nothing else.
const NOTICED: f64 = 1.0 - 6.0 / 106.0;

/// netem's generator: 32 bits, the last number mixed in.
#[derive(Default)]
struct Mixed {
    last: Option<u32>,
}

impl Mixed {
    fn next(&mut self, random: &mut Random, correlation: f64) -> u32 {
        let value = (random.bits() >> 32) as u32;
        let rho = (correlation * f64::from(u32::MAX)).round() as u64;
        if rho == 0 {
            return value;
        }
        let rho = rho + 1;
        let last = u64::from(self.last.unwrap_or(value));
        let mixed =
            (u128::from(value) * u128::from((1u64 << 32) - rho) + u128::from(last * rho)) >> 32;
        self.last = Some(mixed as u32);
        mixed as u32
    }
}

/// Normal values, each mixed with the last, which stay normal.
#[derive(Default)]
struct Normals {
    last: Option<f64>,
}

impl Normals {
    fn next(&mut self, random: &mut Random, correlation: f64) -> f64 {
        let value = Normal::standard().inverse_cdf(random.uniform());
        let mixed = match self.last {
            Some(last) => correlation * last + (1.0 - correlation * correlation).sqrt() * value,
            None => value,
        };
        self.last = Some(mixed);
        mixed
    }
}

/// One link, packet after packet.
struct Fate<'a> {
    link: &'a Link,
    who: Who,
    random: Random,
    delay: (Mixed, Normals),
    loss: (Mixed, Normals),
    reorder: (Mixed, Option<bool>),
    /// netem's counter: delayed packets since one was sent at once.
    delayed: u32,
    /// Gilbert-Elliott 1 good, 2 bad; the four states by number.
    state: u8,
}

impl Fate<'_> {
    fn lost(&mut self) -> bool {
        match self.link.loss {
            Loss::None => false,
            Loss::Random { p, correlation } => match self.who {
                Who::Netem => share_of(self.loss.0.next(&mut self.random, correlation)) < p,
                Who::Emud => {
                    let z = self.loss.1.next(&mut self.random, correlation);
                    z < Normal::standard().inverse_cdf(p)
                }
            },
            Loss::GilbertElliott { p, r, bad, good } => {
                let (turns, lost, other) = match self.state {
                    2 => (r, bad, 1),
                    _ => (p, good, 2),
                };
                if self.random.below(turns) {
                    self.state = other;
                }
                self.random.below(lost)
            }
            Loss::FourState {
                p13,
                p31,
                p32,
                p23,
                p14,
            } => {
                let x = self.random.uniform();
                self.state = match self.state {
                    2 if x < p23 => 3,
                    2 => 2,
                    3 if x < p32 => 2,
                    3 if x < p32 + p31 => 1,
                    3 => 3,
                    4 => 1,
                    _ if x < p14 => 4,
                    _ if x < p14 + p13 => 3,
                    _ => 1,
                };
                self.state >= 3
            }
        }
    }

    fn damaged(&mut self) -> bool {
        let noticed = match self.who {
            Who::Netem => NOTICED,
            Who::Emud => 1.0,
        };
        self.random.below(self.link.corrupt * noticed)
    }

    fn at_once(&mut self) -> bool {
        let Link { reorder, gap, .. } = *self.link;
        if reorder == 0.0 {
            return false;
        }
        let at_once = self.delayed + 1 >= gap && {
            let correlation = self.link.reorder_correlation;
            match self.who {
                Who::Netem => {
                    share_of(self.reorder.0.next(&mut self.random, correlation)) <= reorder
                }
                Who::Emud => {
                    let last = self.reorder.1.filter(|_| self.random.below(correlation));
                    last.unwrap_or_else(|| self.random.below(reorder))
                }
            }
        };
        if self.delayed + 1 >= gap {
            self.reorder.1 = Some(at_once);
        }
        self.delayed = if at_once { 0 } else { self.delayed + 1 };
        at_once
    }

    fn delay_ms(&mut self) -> f64 {
        let Link {
            delay_ms,
            jitter_ms,
            normal,
            delay_correlation,
            ..
        } = *self.link;
        if jitter_ms == 0.0 {
            return delay_ms;
        }
        let off = match self.who {
            Who::Netem => {
                let drawn = self.delay.0.next(&mut self.random, delay_correlation);
                if normal {
                    assert_eq!(delay_correlation, 0.0, "not modelled");
                    Normal::standard()
                        .inverse_cdf(share_of(drawn))
                        .clamp(-4.0, 4.0)
                } else {
                    let half_ns = (jitter_ms * 1e6) as u32;
                    f64::from(drawn % (2 * half_ns)) / f64::from(half_ns) - 1.0
                }
            }
            // Two uniform values made of normal ones of correlation r have 6/pi asin(r/2).
            Who::Emud if !normal => {
                let r = 2.0 * (PI / 6.0 * delay_correlation).sin();
                let z = self.delay.1.next(&mut self.random, r);
                2.0 * Normal::standard().cdf(z) - 1.0
            }
            Who::Emud => self.delay.1.next(&mut self.random, delay_correlation),
        };
        (delay_ms + jitter_ms * off).max(0.0)
    }
}

fn share_of(drawn: u32) -> f64 {
    (f64::from(drawn) + 0.5) / (1u64 << 32) as f64
}

/// The fates of `count` packets, one each `interval_ms`.
pub fn simulate(link: &Link, who: Who, count: u32, interval_ms: f64) -> Arrivals {
    let mut fate = Fate {
        link,
        who,
        random: Random(1),
        delay: Default::default(),
        loss: Default::default(),
        reorder: Default::default(),
        delayed: 0,
        state: 1,
    };
    let mut came = vec![];
    for number in 0..count {
        let copied = fate.random.below(link.duplicate);
        if fate.lost() || fate.damaged() {
            continue;
        }
        let sent_ns = (f64::from(number) * interval_ms * 1e6) as u64;
        for _ in 0..=u32::from(copied) {
            let ms = if fate.at_once() { 0.0 } else { fate.delay_ms() };
            came.push(Arrival {
                number,
                sent_ns,
                arrived_ns: sent_ns + (ms * 1e6) as u64,
            });
        }
    }
    came.sort_by_key(|arrival| arrival.arrived_ns);
    if link.slot_ms > 0.0 {
        into_slots(&mut came, who, (link.slot_ms * 1e6) as u64);
    }
    Arrivals(came)
}

/// emud's slots follow one another; netem's next one begins when there is a packet for it
/// (get_slot_next() in netem_dequeue()).
fn into_slots(came: &mut [Arrival], who: Who, slot_ns: u64) {
    let mut next_ns = 0;
    for arrival in came {
        let ready_ns = arrival.arrived_ns;
        if next_ns < ready_ns {
            next_ns = match who {
                Who::Netem => ready_ns + slot_ns,
                Who::Emud => ready_ns.next_multiple_of(slot_ns),
            };
        }
        arrival.arrived_ns = next_ns;
    }
}

/// The theory is right where there is a formula for it.
pub fn closed_forms() {
    use super::measure::{Sample, What};
    use support::lab::Verdict;

    const COUNT: u32 = 1 << 16;
    let mut verdict = Verdict::default();
    let jitter = Link {
        delay_ms: 100.0,
        jitter_ms: 10.0,
        delay_correlation: 0.25,
        ..Link::default()
    };
    let sd = 10.0 / 3f64.sqrt();
    let gilbert = Link {
        loss: Loss::GilbertElliott {
            p: 0.01,
            r: 0.1,
            bad: 0.7,
            good: 0.001,
        },
        ..Link::default()
    };
    let bad = 0.01 / 0.11;
    let reorder = Link {
        delay_ms: 10.0,
        reorder: 0.25,
        gap: 5,
        ..Link::default()
    };
    // Four delayed ones, and three more on average until one is not.
    let at_once = 1.0 / 8.0;
    for (who, link, what, asked) in [
        (Who::Netem, &jitter, What::DelayMean, 100.0),
        (Who::Emud, &jitter, What::DelayMean, 100.0),
        (Who::Netem, &jitter, What::DelaySd, sd),
        (Who::Emud, &jitter, What::DelaySd, sd),
        (Who::Netem, &jitter, What::Correlation, 0.0),
        (Who::Emud, &jitter, What::Correlation, 0.25),
        (
            Who::Netem,
            &gilbert,
            What::Lost,
            bad * 0.7 + (1.0 - bad) * 0.001,
        ),
        (
            Who::Netem,
            &reorder,
            What::DelayMean,
            10.0 * (1.0 - at_once),
        ),
        (Who::Emud, &reorder, What::DelayMean, 10.0 * (1.0 - at_once)),
    ] {
        let arrivals = simulate(link, who, COUNT, 1.0);
        let sample = Sample::new(&arrivals, COUNT, 1.0, 0.0);
        let got = sample.figure(what).expect("enough packets");
        let name = format!("{who:?}: {}", what.name());
        verdict.near(&name, asked, got.value, 3.0 * got.error);
    }
    verdict.end();
}
