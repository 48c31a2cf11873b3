// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media of a plan: their stations with positions and addresses, and the routes between them.

use std::collections::VecDeque;
use std::sync::Arc;

use ipnet::Ipv4Net;

use super::cells;
use super::kinds::{CAPTURE_DB, its_rates};
use super::propagation::Propagation;
use super::queue::QueueDiscipline;
use super::rate::RateChoice;
use super::{MediumDraft, MediumTable, RouteChoice, SegmentTable, word};
use crate::experiment::scenario::expand::is_meant;
use crate::experiment::scenario::graph::Graph;
use crate::experiment::scenario::limits::MAX_STATIONS;
use crate::experiment::scenario::plan::{Node, Route};
use crate::medium::air::{self, RateControl};
use crate::medium::motion::Track;
use crate::medium::phy::{
    Geometry, Loss, Matrix, Position, Radio, Spread, Timing, Watts, attowatts, ratio,
};
use crate::text::{Located, Mistake};

/// A medium of a plan, or a segment.
#[derive(Debug, Clone)]
pub struct Medium {
    /// The interface of its stations.
    pub interface: String,
    /// Position among the media of the whole experiment, from which its seed and its MAC addresses are
    /// derived.
    pub number: usize,
    /// The nodes on it.
    pub stations: Vec<Station>,
    /// Whether stations have a link-local IPv6 address.
    pub ipv6: bool,
    /// File for the arrivals.
    pub record: Option<String>,
    pub(super) table: MediumTable,
    pub(super) segment: Option<SegmentTable>,
}

/// A node on a medium.
#[derive(Debug, Clone)]
pub struct Station {
    /// Name of the node.
    pub node: String,
    /// Address of its interface.
    pub address: Ipv4Net,
    /// Where it is over time.
    pub track: Track,
    /// Whether it receives frames for others.
    pub promiscuous: bool,
}

impl Medium {
    /// Returns the plan of the air.
    pub fn air(&self, seed: u64) -> air::Plan {
        let radio = &self.table.radio;
        // Signals of the disk model have no level that noise can be compared with, and none is stronger
        // than another one.
        let (noise_dbm, capture_db) = match self.table.propagation {
            Propagation::Disk(_) => (None, CAPTURE_DB),
            Propagation::Radio(..) | Propagation::Grid { .. } => {
                (radio.noise_dbm, radio.capture_db)
            }
        };
        let timing = self.timing();
        let kbit = timing.kbit(self.mode(&timing));
        air::Plan {
            timing,
            access: self.table.access.into(),
            rts_bytes: self.table.rts,
            attempts: self.table.attempts,
            aggregate: self.table.packets_per_frame(),
            queue_packets: self.table.queue.limit as usize,
            discipline: self.table.queue.discipline(kbit),
            rate: self.rate_control(),
            capture: ratio(capture_db),
            noise: noise_dbm.map_or(0, attowatts),
            seed,
        }
    }

    fn timing(&self) -> Timing {
        if let Some(kbit) = self.segment.as_ref().and_then(SegmentTable::kbit) {
            return Timing::wire(kbit);
        }
        let radio = &self.table.radio;
        let timing = Timing::new(radio.standard, radio.basic.as_deref());
        match self.table.queue.kind {
            QueueDiscipline::Edca => timing.with_qos(),
            _ => timing,
        }
    }

    fn rate_control(&self) -> RateControl {
        self.table
            .rate
            .map_or(RateControl::Fixed, RateChoice::control)
    }

    /// Returns each station's mode of unicast data.
    pub fn modes(&self) -> Vec<usize> {
        vec![self.mode(&self.timing()); self.stations.len()]
    }

    /// Returns the mode of unicast data; with rate control the lowest, in which a station reaches all
    /// that it can reach.
    fn mode(&self, timing: &Timing) -> usize {
        let kbit = self.table.rate.and_then(RateChoice::bits);
        let kbit = kbit.and_then(|rate| u32::try_from(rate / 1000).ok());
        let mode = match self.rate_control() {
            RateControl::Fixed => kbit.and_then(|kbit| timing.mode(kbit)),
            RateControl::Arf | RateControl::Ideal | RateControl::Minstrel => Some(timing.slowest()),
        };
        mode.unwrap_or_else(|| timing.fastest())
    }

    /// Returns the signals between stations at the start.
    pub fn matrix(&self) -> Matrix {
        let at = |station: &Station| station.track.at(0);
        let positions: Vec<Position> = self.stations.iter().map(at).collect();
        self.geometry().matrix(&positions)
    }

    /// Returns the geometry that computes the signals from positions.
    pub fn geometry(&self) -> Geometry {
        if let Some(segment) = &self.segment {
            let nodes: Vec<_> = self.stations.iter().map(|s| s.node.as_str()).collect();
            let spread = Spread::Wire(segment.wire(&nodes));
            return Geometry { spread, ber: 0.0 };
        }
        let ber = self.table.ber;
        let (loss, shadowing_db) = match &self.table.propagation {
            Propagation::Disk(disk) => {
                let spread = Spread::Disk(*disk);
                return Geometry { spread, ber };
            }
            Propagation::Radio(path, shadowing_db) => (Loss::Path(*path), *shadowing_db),
            Propagation::Grid { grid, .. } => (Loss::Grid(Arc::clone(grid)), 0.0),
        };
        let choice = &self.table.radio;
        let mut radio = Radio::new(choice.standard, loss);
        radio.shadowing_db = shadowing_db;
        radio.noise_dbm = choice.noise_dbm;
        radio.capture_db = choice.capture_db;
        radio.power_dbm = choice.power_dbm.unwrap_or(radio.power_dbm);
        // What is received is sensed. The default may be above it.
        let sense_dbm = choice.sense_dbm.unwrap_or(radio.sense_dbm);
        radio.sense_dbm = sense_dbm.min(choice.weakest_dbm());
        if let Some(dbm) = choice.sensitivity_dbm {
            radio.sensitivity_dbm.fill(dbm);
        }
        let spread = Spread::Radio(radio);
        Geometry { spread, ber }
    }

    /// Returns what each radio draws; none: energy is not counted.
    pub fn watts(&self) -> Option<Watts> {
        self.table.radio.watts
    }

    /// Returns whether it is a wired segment, for which positions have no meaning.
    pub fn is_wired(&self) -> bool {
        self.segment.is_some()
    }

    /// Returns what messages call it, "medium" or "segment".
    pub fn word(&self) -> &'static str {
        word(self.segment.as_ref())
    }

    /// Describes it in a line.
    pub fn line(&self) -> String {
        let keys = match &self.segment {
            Some(segment) => segment.keys_text(),
            None => self.table.keys_text(),
        };
        let keys = if keys.is_empty() {
            vec!["defaults".to_owned()]
        } else {
            keys
        };
        format!(
            "{}: {} stations, {}",
            self.interface,
            self.stations.len(),
            keys.join(", ")
        )
    }

    /// Returns the routes of each station, neighbours first: the gateways of the others. `nodes`: those
    /// of the plan.
    pub fn routes(&self, nodes: &[Node]) -> Vec<Vec<Route>> {
        let count = self.stations.len();
        let route = |to: usize, via: Option<usize>| Route {
            to: self.stations[to].address,
            via: via.map(|via| self.stations[via].address.addr()),
            interface: self.interface.clone(),
        };
        let neighbours = match self.table.routes {
            RouteChoice::None => return vec![Vec::new(); count],
            RouteChoice::OnLink => vec![(0..count).collect(); count],
            RouteChoice::Static => self.matrix().neighbours(&self.modes()),
        };
        let mut routes: Vec<Vec<Route>> = Vec::with_capacity(count);
        for (station, own) in neighbours.iter().enumerate() {
            let others = own.iter().filter(|other| **other != station);
            routes.push(others.map(|other| route(*other, None)).collect());
        }
        if self.table.routes == RouteChoice::Static {
            let forwards = |station: &Station| {
                let mut nodes = nodes.iter();
                nodes.any(|node| node.name == station.node && node.forwards())
            };
            let forwards: Vec<bool> = self.stations.iter().map(forwards).collect();
            for to in 0..count {
                let next = next_hops(&neighbours, &forwards, to);
                for (station, next) in next.into_iter().enumerate() {
                    let via = next.filter(|next| station != to && *next != to);
                    routes[station].extend(via.map(|via| route(to, Some(via))));
                }
            }
        }
        routes
    }
}

/// Returns each station's next hop of a shortest path through stations that forward, of equal ones the
/// first station.
fn next_hops(neighbours: &[Vec<usize>], forwards: &[bool], to: usize) -> Vec<Option<usize>> {
    let mut next = vec![None; neighbours.len()];
    let mut distance = vec![usize::MAX; neighbours.len()];
    distance[to] = 0;
    let mut queue = VecDeque::from([to]);
    while let Some(station) = queue.pop_front() {
        if station != to && !forwards[station] {
            continue;
        }
        for other in &neighbours[station] {
            if distance[*other] == usize::MAX {
                distance[*other] = distance[station] + 1;
                next[*other] = Some(station);
                queue.push_back(*other);
            }
        }
    }
    next
}

/// Adds the stations of the file's media to the graph.
pub(crate) fn connect(drafts: &[MediumDraft], graph: &mut Graph, mistakes: &mut Vec<Mistake>) {
    for draft in drafts {
        let what = word(draft.segment.as_ref());
        let meant = |name: &str| match &draft.table.nodes {
            None => true,
            Some(nodes) => nodes.iter().any(|wanted| is_meant(wanted, name)),
        };
        let names = graph.nodes.iter().map(|spot| spot.node.name.as_str());
        let members: Vec<usize> = (0..)
            .zip(names)
            .filter(|(_, name)| meant(name))
            .map(|(n, _)| n)
            .collect();
        for wanted in draft.table.nodes.iter().flat_map(|nodes| &nodes.0) {
            let mut names = graph.nodes.iter().map(|spot| &spot.node.name);
            if !names.any(|name| is_meant(&wanted.value, name)) {
                let title = format!("there is no node `{}`", wanted.value);
                mistakes.push(Mistake::new(&wanted.at, title, "write [node.NAME]"));
            }
        }
        if members.len() < 2 {
            let title = format!("{what} `{}` has fewer than two stations", draft.name.value);
            let help = "write nodes = [\"...\", \"...\"], or add nodes";
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        let most = MAX_STATIONS as usize;
        if members.len() > most {
            let (name, count) = (&draft.name.value, members.len());
            let title = format!("{what} `{name}` has {count} stations");
            let help = format!("a {what} has up to {most}: write nodes = [\"...\", \"...\"]");
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        if let Some(segment) = &draft.segment {
            let nodes = members.iter().map(|n| graph.nodes[*n].node.name.as_str());
            segment.check(&draft.name.value, &nodes.collect::<Vec<_>>(), mistakes);
        }
        let standard = draft.table.radio.standard;
        let has = |bits: u64| {
            let mut rates = standard.data_rates();
            rates.any(|kbit| u64::from(kbit) * 1000 == bits)
        };
        let bits = draft.table.rate.and_then(RateChoice::bits);
        if bits.is_some_and(|bits| !has(bits)) {
            let title = format!(
                "medium `{}`: {} does not have this rate",
                draft.name.value, standard.name
            );
            let help = its_rates(standard.data_rates());
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        for (title, help) in draft.table.contradictions() {
            let title = format!("{what} `{}`: {title}", draft.name.value);
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        for (n, member) in members.iter().enumerate() {
            let Some(mobility) = &draft.mobility else {
                break;
            };
            let spot = &mut graph.nodes[*member];
            let node = &spot.node;
            if node.position.is_some() || node.path.is_some() {
                continue;
            }
            let track = mobility.track(n, &node.name);
            let (title, help) = match (&track, &spot.motion) {
                (None, _) => (
                    format!("the trace has no node `{}`, and no number {n}", node.name),
                    "each station of the medium without `at` and `path` needs a track",
                ),
                (_, Some(other)) if track.as_ref() != Some(other) => (
                    format!("`{}` has another `mobility` on another medium", node.name),
                    "a node is in one position: use the same trace, or write its `path`",
                ),
                _ => {
                    spot.motion = track;
                    continue;
                }
            };
            mistakes.push(Mistake::new(&draft.name.at, title, help));
            break;
        }
        graph.media.push(members);
    }
}

/// Checks that the media, segments and links of each node have different names.
pub(crate) fn interfaces_are_apart(
    drafts: &[MediumDraft],
    graph: &Graph,
    mistakes: &mut Vec<Mistake>,
) {
    for (n, draft) in drafts.iter().enumerate() {
        if drafts[..n].iter().any(|d| d.name.value == draft.name.value) {
            let title = format!("there are a medium and a segment `{}`", draft.name.value);
            let help = "use a different name: their interfaces are named after them";
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        if graph.edges.iter().any(|edge| edge.name == draft.name.value) {
            let title = format!("there is a link `{}`", draft.name.value);
            let what = word(draft.segment.as_ref());
            let help = format!("use a different name: a {what}'s interfaces are named after it");
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
    }
}

/// Returns the media with addresses: each the last free block of the network.
///
/// # Errors
/// The network is too small, or a grid has no losses of a station.
pub(crate) fn media(
    drafts: &[MediumDraft],
    graph: &Graph,
    network: &Located<Ipv4Net>,
    taken: impl Iterator<Item = Ipv4Net>,
) -> Result<Vec<Medium>, Mistake> {
    let behind = taken.map(|net| net.broadcast()).max();
    let mut next = u32::from(network.value.broadcast());
    let mut media = Vec::new();
    for (draft, members) in drafts.iter().zip(&graph.media) {
        // As the addresses of a network: neither the first nor the last.
        let size = (members.len() as u32 + 2).next_power_of_two();
        let first = next.checked_sub(size - 1);
        let free = |first: u32| {
            first >= u32::from(network.value.network())
                && behind.is_none_or(|behind| first > u32::from(behind))
        };
        let Some(first) = first.filter(|first| free(*first)) else {
            let title = format!(
                "the network {} is too small for {} `{}`",
                network.value,
                word(draft.segment.as_ref()),
                draft.name.value
            );
            let help =
                "use a larger one at the top of the file, such as network = \"10.77.0.0/16\"";
            return Err(Mistake::new(&network.at, title, help));
        };
        next = first.saturating_sub(1);
        let station = |(n, node): (u32, &usize)| Station {
            node: graph.nodes[*node].node.name.clone(),
            address: Ipv4Net::from(std::net::Ipv4Addr::from(first + n)),
            track: graph.nodes[*node].track(),
            promiscuous: graph.nodes[*node].node.promiscuous,
        };
        let stations: Vec<Station> = (1..).zip(members).map(station).collect();
        cells::check(draft, &stations)?;
        media.push(Medium {
            interface: draft.name.value.clone(),
            number: media.len(),
            stations,
            ipv6: draft.table.ipv6,
            record: draft.table.record.clone(),
            table: draft.table.clone(),
            segment: draft.segment.clone(),
        });
    }
    Ok(media)
}
