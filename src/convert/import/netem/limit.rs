// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts netem's limit to a queue.

use super::Netem;
use super::rate::slower_shaper;
use crate::convert::import::writer::{Writer, quoted};
use crate::convert::netem::{MOST_QUEUED, NO_LIMIT, USUAL_LIMIT, on_their_way};
use crate::profile::PACKET_BYTES;

/// Writes the limit of the queue: netem's limit counts every packet it holds, emud's queue only those before the rate.
pub(super) fn limit(out: &mut Writer, netem: &Netem, rate: Option<u64>) {
    let limit = (netem.limit.as_ref()).map_or(USUAL_LIMIT, |limit| limit.value);
    if limit == 0 {
        out.note("With a limit of 0 netem loses every packet.");
        out.key("state", quoted("down"));
        return;
    }
    let most = f64::from(limit) / (netem.latency_ns as f64 / 1e9);
    let Some(rate) = rate.or(netem.class_rate) else {
        if netem.latency_ns > 0 && limit < NO_LIMIT {
            let text = format!(
                "netem's limit of {limit} packets includes packets in flight: above about \
                 {most:.0} packets per second it loses some; emud loses none"
            );
            // The default limit is rarely intended, and tc always prints it.
            match limit {
                USUAL_LIMIT => out.note(&text),
                _ => out.warning(text),
            }
        } else if limit != USUAL_LIMIT && netem.latency_ns == 0 && netem.jitter_ns == 0 {
            out.note(
                "Without a delay and a rate no packet stays in netem: its limit has no effect.",
            );
        }
        return;
    };
    if let Some(bytes) = slower_shaper(netem).and_then(|shaper| shaper.limit) {
        let bytes = out.room(bytes);
        return out.key("queue", quoted(format!("{bytes}B")));
    }
    let on_their_way = on_their_way(rate, netem.latency_ns);
    let queue = u64::from(limit).saturating_sub(on_their_way);
    if queue == 0 {
        out.warning(format!(
            "netem's limit of {limit} packets includes packets in flight, and at this rate and \
             delay {on_their_way} of {PACKET_BYTES} bytes are: netem carries about {most:.0} \
             packets per second; emud carries the whole rate, with the shortest possible queue"
        ));
    }
    if netem.class_rate.is_some() {
        out.note("The packets of its class wait in netem: its limit, without those in flight, is that of the class.");
        return;
    }
    if queue > 0 && on_their_way > 0 {
        out.note(&format!(
            "netem's limit ({limit}) includes packets in flight, at this rate and delay \
             {on_their_way} of {PACKET_BYTES} bytes; emud's queue is the rest."
        ));
    }
    if queue > u64::from(MOST_QUEUED) {
        out.note(&format!(
            "netem would hold {limit} packets, emud's longest queue is {MOST_QUEUED}."
        ));
    }
    let queue = queue.clamp(1, MOST_QUEUED.into());
    if queue != u64::from(USUAL_LIMIT) {
        out.key("queue", quoted(format!("{queue}p")));
    }
}
