// SPDX-License-Identifier: MIT OR Apache-2.0
//! The queue of a class as a qdisc: pfifo, bfifo, red, codel, pie.

use crate::convert::tc_red::{AVERAGE_PACKET, burst_for};
use crate::profile::aqm::{Aqm, CoDel, Length, Pie, Red};
use crate::profile::{DEFAULT_QUEUE_PACKETS, Queue};

/// tc's gains of pie are sixteenths, up to this.
const PIE_GAIN_MAX: f64 = 32.0;
/// tc's rates of 32 bits, in bytes per second.
const BANDWIDTH_MAX: u64 = u32::MAX as u64;

const PIE: &str = "pie computes the delay from packets that have left, emud's from the backlog and the rate; it \
                   updates with the kernel's tick";

/// A command, and what is different about it.
pub(super) struct Qdisc {
    pub command: String,
    pub note: Option<&'static str>,
}

/// Returns the qdisc of a queue. `rate`: bit/s, by which emud converts limits in time.
///
/// # Errors
/// The keys that no qdisc has, each with what to write instead.
pub(super) fn qdisc(queue: &Queue, rate: u64) -> Result<Qdisc, Vec<String>> {
    let Queue {
        packets,
        bytes,
        time_ns,
        ecn_above_ns,
        aqm,
        // What waits in a qdisc is charged to its socket.
        blocks: _,
    } = queue;
    let mut reasons = vec![];
    if time_ns.is_some() {
        reasons.push("`queue.time`: no queue of tc has it; write `bytes` or `limit`".to_owned());
    }
    if ecn_above_ns.is_some() {
        let text = "`queue.ecn` as a time: no queue of tc has it; write an `aqm` and ecn = true";
        reasons.push(text.to_owned());
    }
    if let (Some(_), Some(_)) = (packets, bytes) {
        let text = "limits in packets and in bytes: a queue of tc has one limit; leave one out";
        reasons.push(text.to_owned());
    }
    let mut note = None;
    let command = match aqm {
        None => match bytes {
            Some(bytes) => Ok(format!("bfifo limit {bytes}")),
            None => Ok(format!("pfifo {}", limit(*packets))),
        },
        Some(Aqm::Red(it)) => red(it, *packets, *bytes, rate),
        Some(Aqm::CoDel(it)) => packets_only("codel", *bytes).and_then(|()| codel(it, *packets)),
        Some(Aqm::Pie(it)) => {
            note = Some(PIE);
            packets_only("pie", *bytes).and_then(|()| pie(it, *packets))
        }
        Some(Aqm::Ared(_)) => Err(no("ared", "the rules of red's `adaptive` are others")),
        Some(Aqm::Rio(_)) => Err(no("rio", "gred, which is like it, has several queues")),
        Some(Aqm::Pi(_)) => Err(no("pi", "Linux has none")),
        Some(Aqm::Rem(_)) => Err(no("rem", "Linux has none")),
    };
    match command {
        Ok(command) if reasons.is_empty() => Ok(Qdisc { command, note }),
        Ok(_) => Err(reasons),
        Err(reason) => {
            reasons.push(reason);
            Err(reasons)
        }
    }
}

fn no(name: &str, why: &str) -> String {
    format!("aqm = \"{name}\": {why}; write \"red\", \"codel\" or \"pie\"")
}

fn limit(packets: Option<u32>) -> String {
    format!("limit {}", packets.unwrap_or(DEFAULT_QUEUE_PACKETS))
}

fn packets_only(name: &str, bytes: Option<u64>) -> Result<(), String> {
    match bytes {
        None => Ok(()),
        Some(_) => Err(format!(
            "`queue.bytes` with aqm = \"{name}\": its limit is in packets; write `limit`"
        )),
    }
}

fn ecn(ecn: bool) -> &'static str {
    if ecn { " ecn" } else { "" }
}

/// Converts to whole microseconds, tc's unit.
fn us(key: &str, ns: u64) -> Result<String, String> {
    match ns.is_multiple_of(1000) && ns / 1000 <= u64::from(u32::MAX) {
        true => Ok(format!("{}us", ns / 1000)),
        false => Err(format!(
            "`queue.{key}`: {ns} ns are not a number of microseconds up to {}",
            u32::MAX
        )),
    }
}

fn codel(it: &CoDel, packets: Option<u32>) -> Result<String, String> {
    let CoDel {
        target_ns,
        interval_ns,
        ecn: marks,
    } = it;
    let (target, interval) = (us("target", *target_ns)?, us("interval", *interval_ns)?);
    let limit = limit(packets);
    Ok(format!(
        "codel {limit} target {target} interval {interval}{}",
        ecn(*marks)
    ))
}

fn pie(it: &Pie, packets: Option<u32>) -> Result<String, String> {
    let Pie {
        target_ns,
        tupdate_ns,
        alpha,
        beta,
        ecn: marks,
    } = it;
    let (target, tupdate) = (us("target", *target_ns)?, us("tupdate", *tupdate_ns)?);
    let gain = |key: &str, gain: f64| {
        let sixteenths = gain * 16.0;
        match sixteenths.fract() == 0.0 && sixteenths <= PIE_GAIN_MAX {
            true => Ok(sixteenths),
            false => Err(format!(
                "`queue.{key}`: {gain} is not a number of sixteenths up to 2"
            )),
        }
    };
    let (alpha, beta) = (gain("alpha", *alpha)?, gain("beta", *beta)?);
    let limit = limit(packets);
    Ok(format!(
        "pie {limit} target {target} tupdate {tupdate} alpha {alpha} beta {beta}{}",
        ecn(*marks)
    ))
}

fn red(it: &Red, packets: Option<u32>, bytes: Option<u64>, rate: u64) -> Result<String, String> {
    let Red {
        min,
        max,
        probability,
        weight,
        ecn: marks,
    } = it;
    let Some(limit) = bytes.filter(|_| packets.is_none()) else {
        return Err(
            "aqm = \"red\" with a limit in packets: red's is in bytes; write `bytes`".to_owned(),
        );
    };
    // As the server counts it.
    let length = |key: &str, length: Length| {
        let bytes = match length {
            Length::Bytes(bytes) => bytes,
            Length::Time(ns) => (u128::from(ns) * u128::from(rate) / 8_000_000_000) as u64,
        };
        let fits = u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
        fits.ok_or_else(|| format!("`queue.{key}`: red's are 1 to {} bytes", u32::MAX))
    };
    let (min, max) = (length("min", *min)?, length("max", *max)?);
    let limit = length("bytes", Length::Bytes(limit))?;
    let range = max.saturating_sub(min);
    // tc_red_eval_P(): a share per byte of 2^-31 at least.
    if range == 0 || probability / f64::from(range) * 2f64.powi(31) <= 1.0 {
        return Err("`queue.probability`: too small for red's fixed point".to_owned());
    }
    let log = (1..32u32).find(|log| 0.5f64.powi(*log as i32) == *weight);
    // red_check_params() of the kernel.
    let log = log.filter(|log| 32 - max.leading_zeros() + log < 32);
    let burst = log.and_then(|log| burst_for(log, min, AVERAGE_PACKET));
    let Some(burst) = burst else {
        return Err(format!(
            "`queue.weight`: red has no {weight} with these thresholds; write a power of 1/2, such as \
             0.001953125 (1/512)"
        ));
    };
    let bandwidth = (rate / 8).clamp(1, BANDWIDTH_MAX);
    Ok(format!(
        "red limit {limit} min {min} max {max} avpkt {AVERAGE_PACKET} burst {burst} probability {probability} \
         bandwidth {}bit{}",
        8 * bandwidth,
        ecn(*marks)
    ))
}
