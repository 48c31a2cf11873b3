// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metrics of the monitor: of its resources and programs, beside those of the links.

use std::sync::atomic::AtomicU64;

use emud_monitor::event::Resource;
use emud_monitor::log::PerResource;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::{mpsc, oneshot};

use super::{Measures, Request};
use crate::datapath::survey::Snapshot;
use crate::metrics::{Media, Sampling, Source, links, registry};

type Labels = Vec<(&'static str, String)>;

/// The figures of the observation, and the links of the host.
#[derive(Clone)]
pub struct Served {
    pub requests: mpsc::Sender<Request>,
    pub links: Sampling,
    pub media: Media,
}

impl Source for Served {
    async fn measure(&self) -> Result<Registry, String> {
        let ending = || "the monitor is ending".to_owned();
        let (answer, answered) = oneshot::channel();
        let sent = self.requests.send(Request::Measure(answer)).await;
        sent.map_err(|_| ending())?;
        let measures = answered.await.map_err(|_| ending())??;
        let mut registry = registry();
        resources(&mut registry, &measures);
        programs(&mut registry, &measures);
        let lost = Counter::<u64>::default();
        lost.inc_by(measures.ring_full);
        let help = "Records of the kernel's programs that found the ring buffer full";
        registry.register("records_lost", help, lost);
        let help = "Events for which the kernel did not run a program of the monitor";
        registry.register("skipped_events", help, counters(&measures.skipped));
        // The figures of the host do not depend on the links.
        let links = self.links.snapshot().await;
        let links = links.unwrap_or_else(|why| Snapshot {
            unreadable: vec![why],
            ..Snapshot::default()
        });
        links::register(&mut registry, links);
        self.media.register(&mut registry);
        Ok(registry)
    }

    async fn healthy(&self) -> Result<(), String> {
        match self.requests.is_closed() {
            true => Err("the monitor is ending".to_owned()),
            false => self.links.healthy(),
        }
    }
}

fn resources(registry: &mut Registry, measures: &Measures) {
    let help = "Alarms raised, lines in the log";
    registry.register("alarms", help, counters(&measures.alarms));
    let help = "Alarms beyond the limit, only counted";
    registry.register("alarms_suppressed", help, counters(&measures.suppressed));
    let going_on = Family::<Labels, Gauge>::default();
    for (resource, episodes) in &measures.in_contention {
        let gauge = going_on.get_or_create(&vec![("resource", name(resource))]);
        gauge.set(episodes.cast_signed());
    }
    let help = "Open contention episodes, of those with an alarm line";
    registry.register("in_contention", help, going_on);
    let watched = Family::<Labels, Gauge>::default();
    for (resource, state) in &measures.watched {
        for each in ["yes", "no", "unknown"] {
            let labels = vec![("resource", name(resource)), ("state", each.to_owned())];
            watched
                .get_or_create(&labels)
                .set(i64::from(word(state) == each));
        }
    }
    let help = "Whether a resource is watched: 1 for the current state; \
                unknown is configured, but has no supported hook";
    registry.register("watched", help, watched);
}

fn counters(of: &PerResource<u64>) -> Family<Labels, Counter> {
    let counters = Family::<Labels, Counter>::default();
    for (resource, n) in of {
        let labels = vec![("resource", name(resource))];
        counters.get_or_create(&labels).inc_by(*n);
    }
    counters
}

fn programs(registry: &mut Registry, measures: &Measures) {
    let events = Family::<Labels, Counter>::default();
    let timed = Family::<Labels, Counter>::default();
    let timed_s = Family::<Labels, Counter<f64, AtomicU64>>::default();
    for cost in &measures.costs {
        let labels = vec![
            ("program", cost.program.clone()),
            ("hook", cost.hook.clone()),
        ];
        events.get_or_create(&labels).inc_by(cost.events);
        // Not the time of all: with each new mean that could fall, and no counter may.
        timed.get_or_create(&labels).inc_by(cost.timed);
        let seconds = cost.timed_ns as f64 / 1e9;
        timed_s.get_or_create(&labels).inc_by(seconds);
    }
    let help = "Runs of a program in the kernel";
    registry.register("bpf_events", help, events);
    let help = "Runs of which the kernel has measured the time, in 100 ms of every 10 s";
    registry.register("bpf_timed_events", help, timed);
    let help = "Time of these runs";
    registry.register_with_unit("bpf_timed", help, Unit::Seconds, timed_s);
}

fn name(resource: &Resource) -> String {
    resource.name().into()
}

/// Returns the name in the log.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}
