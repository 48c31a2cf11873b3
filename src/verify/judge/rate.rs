// SPDX-License-Identifier: MIT OR Apache-2.0
//! The check of the rate, by a train that is faster than the link.

use super::{Judge, LEAST_PROBES};
use crate::profile::Time;
use crate::verify::binomial::clopper_pearson;
use crate::verify::bottleneck::{Bottleneck, SATURATES};
use crate::verify::cdf::Cdf;
use crate::verify::check::{Check, CheckVerdict, PER_CHECK, Unit, What, z_power};
use crate::verify::probe::{Plan, Stream};
use crate::verify::simulate::{Pace, Spread, latest_ns, simulate, stretch};
use crate::verify::thinning::{relative_sd, slots};

/// Largest error of a rate besides chance: emud's is exact, the ends of the train are not.
const RATE_SHARE: f64 = 0.01;
/// A queue that was idle for more than this share of the train was not saturated.
const MOST_IDLE: f64 = 0.1;

impl Judge<'_> {
    /// Returns the rate of a link whose rate is not judged, for which no train is sent.
    pub fn rate_unjudged(&self) -> Option<Check> {
        let queue = Bottleneck::of(&self.ways, self.train_bytes)?;
        let check = self.check(What::Rate, Unit::BitS, queue.way.rate_bit_s?);
        Some(self.judged(check)).filter(|check| check.verdict == CheckVerdict::NotJudged)
    }

    /// Returns the rate, from a train that is faster than it; of a round trip, the rate of the direction
    /// that limits it. The `paced` probes show how much is lost on the way.
    pub fn train(&self, plan: Plan, stream: &Stream, paced: &Stream) -> Option<Check> {
        let queue = Bottleneck::of(&self.ways, self.train_bytes)?;
        let rate = queue.way.rate_bit_s?;
        let mut check = self.check(What::Rate, Unit::BitS, rate);
        let bits = 8.0 * (self.train_bytes as f64 + f64::from(queue.way.overhead)).max(1.0);
        let idle = match self.idle(plan, stream, &queue, bits) {
            Ok(idle) => idle,
            Err(why) => {
                check.why = Some(why);
                return Some(check);
            }
        };
        let (n, span_ns) = (stream.came.len(), stream.span_ns().max(1.0));
        let slope = self.slope(&queue, n, span_ns);
        // A gap counts up to 1.5 fold in the slope: in the middle.
        let machine = RATE_SHARE + 2.0 * self.resolution_ns / span_ns + 1.5 * idle;
        let raw = stream.came_per_s() * bits;
        let (asked, lost) = thinned(&queue, paced);
        let slots = slots(n, lost, PER_CHECK / 2.0);
        // A delay that grows by s a second spreads the packets by 1 + s.
        let around = (
            raw * slots.0 * (1.0 + slope.low) / (1.0 + machine),
            raw * slots.1 * (1.0 + slope.high) * (1.0 + machine),
        );
        check.decide(raw * (1.0 + slope.mean()) / (1.0 - asked), around);
        let highest = slots.1 * (1.0 - asked) * (1.0 + slope.high);
        // The loss is known only from the paced probes, whose chance is independent.
        let sd = slope.sd().hypot(relative_sd(n, asked));
        let sd = sd.hypot(relative_loss_sd(paced.sent.len(), asked));
        let least = (1.0 - machine) * (1.0 - z_power() * sd) / highest;
        check.notices = (least > 0.0).then_some(rate * least);
        Some(check)
    }

    /// Returns the share by which delays lengthen a train of which `n` packets arrived.
    fn slope(&self, queue: &Bottleneck, n: usize, span_ns: f64) -> Spread {
        let pace = |interval_ns| Pace {
            count: n,
            interval_ns,
        };
        let by_number = || {
            let (pace, cdf) = (pace(span_ns / n as f64), Cdf::of(&self.ways));
            simulate(&self.ways, pace, &vec![true; n], &cdf, self.runs()).slope
        };
        if !self.reorders() || self.unjudged(What::Overtaken).is_some() {
            return by_number();
        }
        // As requested: the measured distances contain what is simulated.
        let each_ns = queue.way.serialisation_ns(self.train_bytes);
        let each_ns = each_ns / queue.behind.max(f64::EPSILON);
        let by_arrival = stretch(&self.ways, pace(each_ns), self.runs());
        if self.ways.len() == 1 {
            return by_arrival;
        }
        // A queue behind the delays of the other direction spaces the packets again.
        let mut both = by_number();
        both.low = both.low.min(by_arrival.low);
        both.high = both.high.max(by_arrival.high);
        both
    }

    /// `Err`: why the train does not show the rate.
    fn idle(
        &self,
        plan: Plan,
        stream: &Stream,
        queue: &Bottleneck,
        bits: f64,
    ) -> Result<f64, String> {
        let came = stream.different();
        // A single packet has no rate.
        if came < LEAST_PROBES.min(plan.count as usize / 2).max(2) {
            return Err(format!("only {came} of the train arrived"));
        }
        if queue.way.queue_packets < 2.0 {
            // Such a queue is empty again before the next packet arrives.
            return Err("the queue holds one packet at a time".to_owned());
        }
        if queue.rival {
            return Err("with these losses both directions limit the rate alternately".to_owned());
        }
        let offered = stream.offered_per_s() * bits;
        if offered * queue.ahead < SATURATES * queue.way.rate_bit_s.unwrap_or_default() {
            let offered = crate::profile::Rate(offered as u64);
            return Err(format!("this machine sends no more than {offered}"));
        }
        let idle = queue.idle(&stream.sent, self.train_bytes, self.runs);
        if idle > MOST_IDLE {
            let share = idle * 100.0;
            return Err(format!(
                "the queue may have been empty for {share:.0} % of the train"
            ));
        }
        Ok(idle + self.moved(stream)?)
    }

    /// Returns the share of the train by which packets may be out of order where their order is not judged: the longest
    /// delay.
    fn moved(&self, stream: &Stream) -> Result<f64, String> {
        if self.unjudged(What::Overtaken).is_none() {
            return Ok(0.0);
        }
        let longest_ns = latest_ns(&self.ways);
        let share = longest_ns / (stream.span_ns() - longest_ns).max(1.0);
        if share > MOST_IDLE {
            let longest = Time(longest_ns as u64);
            return Err(format!(
                "packets may be out of order by {longest}: the train is too short"
            ));
        }
        Ok(share)
    }
}

/// Returns the reduction of the saturated stream by losses: the requested one, and its interval. A wrong
/// share of lost packets is reported by the check of the loss, at whatever point they are lost, and
/// is not a wrong rate. For a correct link this fails together with that check, so it needs no
/// separate probability.
fn thinned(queue: &Bottleneck, paced: &Stream) -> (f64, (f64, f64)) {
    let asked = 1.0 - queue.behind;
    let (n, lost) = (paced.sent.len() as u64, paced.lost() as u64);
    if n == 0 {
        return (asked, (asked, asked));
    }
    let (low, high) = clopper_pearson(lost, n, PER_CHECK);
    let behind = |all: f64| (1.0 - (1.0 - all) / queue.ahead).clamp(0.0, 1.0);
    (asked, (behind(low).min(asked), behind(high).max(asked)))
}

/// Returns the standard deviation of the share of packets that arrive according to `n` probes, as a share of
/// it.
fn relative_loss_sd(n: usize, lost: f64) -> f64 {
    (lost / (1.0 - lost) / n.max(1) as f64).sqrt()
}
