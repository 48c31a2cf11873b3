// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a link at a moment.

use super::{Inside, Known};
use crate::abi::direction_name;
use crate::datapath::LinkError;
use crate::datapath::attach::irreplaceable;
use crate::datapath::engine::Engine;
use crate::datapath::maps::{self, DatapathError};
use crate::datapath::show::counters::{Counters, counters_of};
use crate::datapath::show::link::Reader;
use crate::datapath::show::report::{Holder, holder};
use crate::datapath::show::service::{self, BottleneckReport};
use crate::histogram::Delays;

/// A link on an interface.
#[derive(Debug)]
pub struct LinkSample {
    /// Name of the network namespace, or else a path below /proc; empty: that of this process.
    pub netns: String,
    /// Names of the containers in the namespace, joined by `+`; empty: none.
    pub container: String,
    /// Name of the interface; `#` and its index if it no longer exists.
    pub interface: String,
    /// Index of the interface.
    pub ifindex: u32,
    /// Identifies the link on the interface: another one if it is attached again.
    pub id: u32,
    /// Name of the profile.
    pub profile: String,
    /// The engine in use.
    pub engine: Engine,
    /// Seed of random decisions.
    pub seed: u64,
    /// Attached with --reverse.
    pub reversed: bool,
    /// Why its profile cannot be exchanged, and what to do instead; `None`: it can.
    pub irreplaceable: Option<&'static str>,
    /// Time since attach in s.
    pub attached_s: f64,
    /// Time in s until the link ends by itself; 0: it has ended; `None`: it does not.
    pub ends_in_s: Option<f64>,
    /// Parts that another process deleted or changed; `None`: not checked yet.
    pub tampered: Option<Vec<String>>,
    /// Time since that check in s.
    pub checked_s: Option<f64>,
    /// The emulated directions, `up` first.
    pub directions: Vec<DirectionSample>,
    /// Its bottlenecks with their classes.
    pub bottlenecks: Vec<BottleneckReport>,
}

/// A direction of a link.
#[derive(Debug)]
pub struct DirectionSample {
    /// "up" or "down".
    pub name: &'static str,
    /// The holder's account; `None`: the kernel holds the packets.
    pub holder: Option<Holder>,
    /// Packets that the queue of the engine dropped, which the link did not; `None`: its namespace
    /// cannot be entered.
    pub engine_dropped: Option<u64>,
    /// The profile's own link first, then the named ones.
    pub streams: Vec<StreamSample>,
}

/// Counts of a link, or a named link, in one direction.
#[derive(Debug)]
pub struct StreamSample {
    /// Name of the named link; empty: the profile's own.
    pub class: String,
    /// Counters of the classifier.
    pub counters: Counters,
    /// Delays of the last half minute or so; none without a reader that sets them (`metrics::recent`).
    pub recent: Delays,
    /// bit/s; 0 in an outage; `None`: no limit.
    pub rate_bit_s: Option<f64>,
    /// Time until the last packet of the queue has left the wire, in ns; `None`: it has several queues, or
    /// packets wait in a class of a bottleneck.
    pub backlog_ns: Option<u64>,
    /// Bytes in the queue; `None`: no limit, or it is not known.
    pub backlog_bytes: Option<u64>,
    /// Every packet is lost.
    pub down: bool,
}

impl LinkSample {
    /// Returns network namespace and interface, which identify a link on this host.
    pub fn key(&self) -> (&str, &str) {
        (&self.netns, &self.interface)
    }

    /// Fills in what the namespace of its interface has.
    pub(super) fn locate(&mut self, known: &Known, inside: &Inside) {
        if let Some(name) = inside.names.get(&self.ifindex) {
            self.interface.clone_from(name);
        }
        for (direction, number) in self.directions.iter_mut().zip(known.emulated()) {
            direction.engine_dropped = Some(engine_dropped(known, inside, number));
        }
    }
}

/// Reads what the maps of a link have; [`LinkSample::locate`] adds the rest.
pub(super) fn read(known: &Known, now_ns: u64) -> Result<LinkSample, LinkError> {
    let (maps, saved) = (&known.there.maps, &known.there.saved);
    let ifindex = known.control.ifindex;
    let directions = known.emulated().map(|d| direction(known, d, now_ns));
    let ends_in_s = maps::ends_in_s(known.control, now_ns);
    let (tampered, checked) = known.tampered.clone().unzip();
    Ok(LinkSample {
        netns: String::new(),
        container: String::new(),
        interface: format!("#{ifindex}"),
        ifindex,
        id: maps.id,
        profile: (known.profile.as_ref()).map_or(String::new(), |p| p.name.clone()),
        engine: saved.engine,
        seed: saved.seed,
        reversed: saved.reversed,
        irreplaceable: (known.profile.as_ref()).and_then(|p| irreplaceable(p, ends_in_s)),
        attached_s: saved.since_attach_ns(now_ns) as f64 / 1e9,
        ends_in_s,
        tampered,
        checked_s: checked.map(|at: u64| now_ns.saturating_sub(at) as f64 / 1e9),
        directions: directions.collect::<Result<_, DatapathError>>()?,
        bottlenecks: service::bottlenecks(
            maps,
            known.profile.as_ref(),
            saved.since_attach_ns(now_ns),
        )?,
    })
}

fn direction(known: &Known, direction: u32, now_ns: u64) -> Result<DirectionSample, DatapathError> {
    let (maps, saved) = (&known.there.maps, &known.there.saved);
    let reader = Reader {
        maps,
        control: known.control,
        profile: known.profile.as_ref(),
        now_ns,
    };
    let named = known.profile.iter().flat_map(|profile| &profile.links);
    let names = std::iter::once("").chain(named.map(|link| link.name.as_str()));
    let stream = |(number, name): (u32, &str)| {
        let figures = reader.figures(number, direction)?;
        Ok(StreamSample {
            class: name.to_owned(),
            counters: counters_of(maps, number, direction)?,
            recent: Delays::default(),
            rate_bit_s: figures.rate_bit_s,
            backlog_ns: figures.backlog.ns,
            backlog_bytes: figures.backlog.bytes,
            down: figures.down,
        })
    };
    Ok(DirectionSample {
        name: direction_name(direction),
        holder: match saved.engine {
            Engine::Hold => Some(holder(&maps.holder(direction)?, now_ns)),
            Engine::Fq | Engine::Qdisc => None,
        },
        engine_dropped: None,
        streams: (0..)
            .zip(names)
            .map(stream)
            .collect::<Result<_, DatapathError>>()?,
    })
}

/// Returns what was dropped where packets wait: at emud's device, or by the engine's qdisc on the interface.
fn engine_dropped(known: &Known, inside: &Inside, direction: u32) -> u64 {
    let saved = &known.there.saved;
    let index = match &saved.devices[direction as usize] {
        Some(name) => inside.devices.get(name),
        None => Some(&known.control.ifindex),
    };
    // The TAP of a dead holder is gone.
    let device = index.and_then(|index| inside.dropped.get(index));
    device.map_or(0, |device| match saved.engine {
        Engine::Fq | Engine::Qdisc => device.by_engine,
        Engine::Hold if saved.devices[direction as usize].is_none() => 0,
        Engine::Hold => device.by_qdiscs + device.on_transmit,
    })
}
