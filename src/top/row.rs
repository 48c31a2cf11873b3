// SPDX-License-Identifier: MIT OR Apache-2.0
//! A direction of a link over an interval: the difference of two readings.

use schemars::JsonSchema;
use serde::Serialize;

use crate::datapath::engine::Engine;
use crate::datapath::show::counters::Counters;
use crate::datapath::survey::{DirectionSample, LinkSample, Snapshot, StreamSample};
use crate::histogram::Delays;

/// A direction of a link, or of a named link.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopRow {
    /// Network namespace, as `--netns` takes it; empty: that of emud.
    pub netns: String,
    /// Names of the containers in the namespace, joined by `+`; empty: none.
    pub container: String,
    /// Name of the interface.
    pub interface: String,
    /// "up" or "down".
    pub direction: &'static str,
    /// Named link; empty: the profile's own.
    pub class: String,
    /// Name of the profile.
    pub profile: String,
    /// Where packets wait.
    pub engine: Engine,
    /// Seed of the random decisions.
    pub seed: u64,
    /// `up` and `down` of the profile were exchanged at attach.
    pub reversed: bool,
    /// The other direction of the interface is emulated, too.
    pub both: bool,
    /// Why its profile cannot be exchanged, and what to do instead; `None`: it can.
    #[serde(skip)]
    pub irreplaceable: Option<&'static str>,
    /// Rate in force in bit/s, 0 in an outage; null: no limit.
    #[schemars(range(min = 0))]
    pub limit_bit_s: Option<f64>,
    /// Time until the last packet of the queue has left the wire, in ns; null: not known, since the link has
    /// several queues (`per`, a matrix), or its packets wait in a class of a bottleneck.
    pub backlog_ns: Option<u64>,
    /// Figures of the interval; null: no earlier reading.
    pub measured: Option<Measured>,
    /// Problems of the link, such as "TAMPERED"; empty: none.
    pub trouble: Vec<String>,
    /// Every packet is lost, as configured.
    pub down: bool,
}

/// Figures of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// Bits of packets that the link sent, per s.
    #[schemars(range(min = 0))]
    pub sent_bit_s: f64,
    /// Packets that reached the link, per s.
    #[schemars(range(min = 0))]
    pub arrived_packets_s: f64,
    /// Share of the packets that reached the link that it lost or dropped; null: none reached it.
    #[schemars(range(min = 0, max = 1))]
    pub lost: Option<f64>,
    /// Median of the assigned delay in ns; null: no packet has one.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the assigned delay in ns.
    pub p99_ns: Option<u64>,
    /// Packets that the holder sent more than 1 ms late; null: engine fq, which does not count
    /// them, or a named link.
    pub late: Option<u64>,
    /// Packets that the host dropped, or that passed without emulation because the holder did not run or
    /// the kernel could not redirect them; null: the namespace could not be entered.
    pub failed: Option<u64>,
}

type Stream<'a> = (&'a LinkSample, &'a DirectionSample, &'a StreamSample);

fn streams(snapshot: &Snapshot) -> impl Iterator<Item = Stream<'_>> {
    let directions = (snapshot.links.iter()).flat_map(|l| l.directions.iter().map(move |d| (l, d)));
    directions.flat_map(|(l, d)| d.streams.iter().map(move |s| (l, d, s)))
}

/// Returns the rows of a reading, measured since an earlier one.
pub(super) fn rows(now: &Snapshot, before: Option<&Snapshot>) -> Vec<TopRow> {
    let interval_s = before.map_or(0.0, |b| now.mono_ns.saturating_sub(b.mono_ns) as f64 / 1e9);
    let earlier = |(l, d, s): Stream<'_>| {
        let before = before.filter(|_| interval_s > 0.0)?;
        // A link that was attached again counts from 0.
        let same = |(link, direction, stream): &Stream<'_>| {
            link.id == l.id && direction.name == d.name && stream.class == s.class
        };
        streams(before).find(same)
    };
    let row = |stream: Stream<'_>| {
        let (l, d, s) = stream;
        TopRow {
            netns: l.netns.clone(),
            container: l.container.clone(),
            interface: l.interface.clone(),
            direction: d.name,
            class: s.class.clone(),
            profile: l.profile.clone(),
            engine: l.engine,
            seed: l.seed,
            reversed: l.reversed,
            both: l.directions.len() > 1,
            irreplaceable: l.irreplaceable,
            limit_bit_s: s.rate_bit_s,
            backlog_ns: s.backlog_ns,
            measured: earlier(stream).map(|before| measured(stream, before, interval_s)),
            trouble: trouble(l, d),
            down: s.down,
        }
    };
    streams(now).map(row).collect()
}

fn measured((_, d, s): Stream<'_>, (_, before_d, before): Stream<'_>, interval_s: f64) -> Measured {
    let (now, before) = (&s.counters, &before.counters);
    let grown = |of: fn(&Counters) -> u64| of(now).saturating_sub(of(before));
    let arrived = grown(|c| c.packets);
    let lost = grown(|c| c.lost + c.down + c.dropped());
    let delays = Delays::since(
        (&before.delay_histogram, before.delay_ns),
        (&now.delay_histogram, now.delay_ns),
    );
    let of_engine =
        |d: &DirectionSample| Some(d.engine_dropped? + d.holder.as_ref().map_or(0, |h| h.dropped));
    let own = s.class.is_empty();
    let dropped = match own {
        true => {
            (of_engine(d).zip(of_engine(before_d))).map(|(now, before)| now.saturating_sub(before))
        }
        false => Some(0),
    };
    let late = |d: &DirectionSample| d.holder.as_ref().map(|h| h.late);
    Measured {
        sent_bit_s: 8.0 * grown(|c| c.sent_bytes) as f64 / interval_s,
        arrived_packets_s: arrived as f64 / interval_s,
        lost: (arrived > 0).then(|| (lost as f64 / arrived as f64).min(1.0)),
        p50_ns: delays.quantile_ns(0.5).map(|ns| ns as u64),
        p99_ns: delays.quantile_ns(0.99).map(|ns| ns as u64),
        late: late(d)
            .zip(late(before_d))
            .filter(|_| own)
            .map(|(now, before)| now.saturating_sub(before)),
        // Other packets pass as documented, however good host and emulator are.
        failed: dropped.map(|n| n + grown(|c| c.passed.no_holder + c.passed.failed)),
    }
}

fn trouble(link: &LinkSample, direction: &DirectionSample) -> Vec<String> {
    let mut found = vec![];
    if link.ends_in_s == Some(0.0) {
        found.push("ENDED".to_owned());
    }
    if link
        .tampered
        .as_ref()
        .is_some_and(|parts| !parts.is_empty())
    {
        found.push("TAMPERED".to_owned());
    }
    if direction
        .holder
        .as_ref()
        .is_some_and(|holder| !holder.alive)
    {
        found.push("NO HOLDER".to_owned());
    }
    found
}
