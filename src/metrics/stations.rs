// SPDX-License-Identifier: MIT OR Apache-2.0
//! The families of stations of media, which only the process knows that runs them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::{Registry, Unit};

use super::families::{Families, Labels, with};
use crate::datapath::radio::Gauge;
use crate::medium::air::Count;
use crate::medium::phy::Watts;

/// A medium of this process.
#[derive(Debug, Clone)]
pub struct MediumSource {
    /// The interface of its stations.
    pub name: String,
    /// Nodes in the order of stations.
    pub nodes: Vec<String>,
    /// Access to its counters.
    pub gauge: Gauge,
    /// Power of each radio; `None`: energy is not counted.
    pub watts: Option<Watts>,
}

/// The media of this process; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Media(Arc<Mutex<Vec<MediumSource>>>);

impl Media {
    /// Adds a medium, for ever.
    pub fn add(&self, medium: MediumSource) {
        let mut media = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        media.push(medium);
    }

    /// Adds the stations to a registry, with their counts now.
    pub fn register(&self, registry: &mut Registry) {
        let media = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = |medium: &MediumSource| {
            let status = medium.gauge.status();
            let stations = medium.nodes.iter().zip(status.stations.iter());
            let time_ns = status.counted_ns.saturating_sub(status.began_ns);
            let station = |(node, count): (&String, &Count)| Station {
                medium: medium.name.clone(),
                node: node.clone(),
                count: *count,
                joules: medium
                    .watts
                    .map(|watts| watts.joules(count.air_ns, count.busy_ns, time_ns)),
            };
            stations.map(station).collect::<Vec<_>>()
        };
        let stations = media.iter().flat_map(counted).collect();
        registry.register_collector(Box::new(Stations(stations)));
    }
}

#[derive(Debug)]
struct Stations(Vec<Station>);

#[derive(Debug)]
struct Station {
    medium: String,
    node: String,
    count: Count,
    joules: Option<f64>,
}

fn of(station: &Station) -> Labels<'_, 2> {
    Labels([("medium", &station.medium), ("node", &station.node)])
}

impl Collector for Stations {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut out = Families(&mut encoder);
        self.frames(&mut out)?;
        self.times(&mut out)
    }
}

impl Stations {
    fn frames(&self, out: &mut Families) -> fmt::Result {
        let mut counters = |name, help, unit, count: fn(&Count) -> u64| {
            let values = self.0.iter().map(|s| (of(s), count(&s.count)));
            out.counters(name, help, unit, values)
        };
        let help = "Accesses of a station to its radio channel, each with an RTS or a data frame";
        counters("station_attempts", help, None, |c| c.attempts)?;
        let help = "Unicast data frames of a station on air, repetitions included";
        counters("station_data_frames", help, None, |c| c.data_frames)?;
        let help = "Sum of the rates of these frames: divided by their number the mean";
        counters("station_data_rates_bytes_per_second", help, None, |c| {
            c.data_kbit_s * 125
        })?;
        let help = "Attempts without an answer";
        counters("station_failed_attempts", help, None, |c| c.failed)?;
        let help = "RTS and data frames that their receiver did not decode because of others";
        counters("station_collided_frames", help, None, |c| c.collided)?;
        let help = "RTS and data frames that had bit errors at their receiver";
        counters("station_damaged_frames", help, None, |c| c.damaged)?;
        let help = "Attempts that a more urgent category of the station made instead";
        counters("station_internal_collisions", help, None, |c| c.internal)?;
        let help = "Packets of a station that were acknowledged, or broadcast";
        counters("station_sent_packets", help, None, |c| c.sent)?;
        let help = "Bytes of these packets, from the IP header on";
        counters("station_sent", help, Some(Unit::Bytes), |c| c.sent_bytes)?;
        let help = "Packets whose last attempt failed";
        counters("station_given_up_packets", help, None, |c| c.given_up)?;
        let help = "Packets that a station received, without duplicates";
        counters("station_received_packets", help, None, |c| c.received)?;
        let help = "Bytes of the packets that a station received";
        counters("station_received", help, Some(Unit::Bytes), |c| {
            c.received_bytes
        })?;
        let dropped = self.0.iter().flat_map(|station| {
            let causes = [
                ("queue", station.count.full),
                ("aqm", station.count.managed),
            ];
            causes.map(|(cause, n)| (with::<2, 3>(of(station), "cause", cause), n))
        });
        let help = "Packets dropped by the queue of a station";
        out.counters("station_dropped_packets", help, None, dropped)
    }

    fn times(&self, out: &mut Families) -> fmt::Result {
        let mut seconds = |name, help, ns: fn(&Count) -> u64| {
            let values = self.0.iter();
            let values = values.map(|s| (of(s), ns(&s.count) as f64 / 1e9));
            out.totals(name, help, Unit::Seconds, values)
        };
        let help = "Time in transmission, answers included";
        seconds("station_air", help, |c| c.air_ns)?;
        let help = "Time with a carrier, its own included";
        seconds("station_busy", help, |c| c.busy_ns)?;
        let help = "Energy of the radio; missing: the scenario has no watts";
        let energy = self.0.iter().filter_map(|s| Some((of(s), s.joules?)));
        out.totals("station_energy", help, Unit::Joules, energy)?;
        let help = "Packets in the queue of a station, the one on air included";
        let waiting = self.0.iter().map(|s| (of(s), s.count.waiting as f64));
        out.gauges("station_backlog_packets", help, None, waiting)
    }
}
