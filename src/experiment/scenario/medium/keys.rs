// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a medium.

use super::super::kinds::{Later, Names, NodeNames};
use super::kinds::{Bytes, RadioChoice, RadioKind};
use super::propagation::{Propagation, SpreadKind};
use super::queue::{QueueChoice, QueueDiscipline, QueueKind};
use super::rate::{RateChoice, RateKind};
use crate::medium::air::{Access, MOST_PACKETS};
use crate::profile::kinds::{BitErrorRate, Count, Flag, OneOf, Text};
use crate::text::{At, Located, Value, is_none, table, words};

table! {
    /// The figures of a medium.
    #[derive(Debug, Clone, PartialEq)]
    pub struct MediumTable {
        /// Names of its stations, or patterns; none: all nodes.
        nodes: Option<NodeNames> = None, "nodes" as Names;
        radio: RadioChoice = RadioChoice::default(), "radio" as RadioKind;
        access: AccessChoice = AccessChoice::Dcf, "access" as OneOf<AccessChoice>;
        /// Of unicast data; none: the highest of the radio.
        rate: Option<RateChoice> = None, "rate" as RateKind;
        propagation: Propagation = Propagation::default(), "propagation" as SpreadKind;
        /// The share of wrong bits of every frame that is strong enough.
        ber: f64 = 0.0, "ber" as BitErrorRate;
        /// Packets of this many bytes and more are sent after RTS and CTS.
        rts: Option<u32> = None, "rts" as Bytes;
        /// Transmissions of a frame before it is given up.
        attempts: u32 = 7, "attempts" as Count<1, 255>;
        /// Packets in one frame at most; none: as many as the radio can.
        aggregate: Option<u32> = None, "aggregate" as Count<1, MOST_PACKETS>;
        /// Of each station.
        queue: QueueChoice = QueueChoice::default(), "queue" as QueueKind;
        /// Read by [`super::Mobility`].
        mobility: Option<Value> = None, "mobility" as Later;
        routes: RouteChoice = RouteChoice::Static, "routes" as OneOf<RouteChoice>;
        /// Whether stations have a link-local IPv6 address.
        ipv6: bool = true, "ipv6" as Flag;
        /// File for the arrivals, for `emud medium replay`.
        record: Option<String> = None, "record" as Text;
    }
    struct MediumTableDraft {}
}

pub(super) fn put<T>(slot: &mut Option<Located<T>>, choice: T, at: &At) {
    let at = at.clone();
    *slot = Some(Located { value: choice, at });
}

impl MediumTable {
    /// Returns how many packets a frame has at most.
    pub fn packets_per_frame(&self) -> u32 {
        let most = match self.radio.standard.aggregates() {
            true => MOST_PACKETS,
            false => 1,
        };
        self.aggregate.unwrap_or(most)
    }

    /// Returns figures that do not go together, and what to write.
    pub fn contradictions(&self) -> impl Iterator<Item = (String, &'static str)> {
        let standard = &self.radio.standard;
        let aggregates = self.packets_per_frame() > 1;
        let contends = self.access != AccessChoice::None;
        let controls = self.rate.is_some_and(|rate| rate.bits().is_none());
        let is_edca = self.queue.kind == QueueDiscipline::Edca;
        let is_plain = self.queue.kind == QueueDiscipline::Fifo;
        let radio = &self.radio;
        let receives = radio.watts.is_some_and(|watts| watts.receive > 0.0);
        let alone = [
            ("rts", self.rts.is_some_and(|bytes| bytes < u32::MAX)),
            ("attempts", self.attempts != Self::default().attempts),
            ("aggregate", self.aggregate.is_some_and(|most| most > 1)),
            ("radio.basic", radio.basic.is_some()),
            ("radio.watts.receive", receives),
        ];
        let alone = alone.into_iter().filter(move |(_, is)| *is && !contends);
        let alone = alone.map(|(key, _)| {
            let title = format!("`{key}` has no effect with access = \"none\"");
            (true, title, "remove it, or write access = \"dcf\"")
        });
        let all = [
            (
                is_edca && !contends,
                "access = \"none\" has no contention".to_owned(),
                "write another `kind` of `queue` than \"edca\"",
            ),
            (
                aggregates && !standard.aggregates(),
                format!("{} puts one packet into a frame", standard.name),
                "remove `aggregate`, or write radio = \"802.11n\"",
            ),
            (
                aggregates && standard.aggregates() && !is_plain && !is_edca,
                "its queue gives the radio one packet at a time".to_owned(),
                "write aggregate = 1, or queue = { kind = \"fifo\" } or \"edca\"",
            ),
            (
                controls && !contends,
                "its rate depends on acknowledgements".to_owned(),
                "write a rate of the radio: there are none with access = \"none\"",
            ),
        ];
        let all = all.into_iter().chain(alone).filter(|(is, ..)| *is);
        all.map(|(_, title, help)| (title, help))
    }
}

impl MediumTableDraft {
    /// Applies `none` where it is a value; elsewhere it removes one.
    pub fn none(&mut self, key: &str, value: &Located<Value>) -> bool {
        match key {
            _ if !is_none(value) => return false,
            "access" => put(&mut self.access, AccessChoice::None, &value.at),
            "routes" => put(&mut self.routes, RouteChoice::None, &value.at),
            _ => return false,
        }
        true
    }
}

words! {
    /// How stations get to the medium.
    pub(crate) enum AccessChoice {
        /// They contend by carrier sensing.
        Dcf = "dcf",
        /// Each has the rate for itself, without collisions.
        None = "none",
    }
}

impl From<AccessChoice> for Access {
    fn from(choice: AccessChoice) -> Self {
        match choice {
            AccessChoice::Dcf => Self::Dcf,
            AccessChoice::None => Self::None,
        }
    }
}

words! {
    /// The routes between stations that emud adds.
    pub(crate) enum RouteChoice {
        /// Shortest paths over stations that decode each other.
        Static = "static",
        /// All stations are on-link: those out of range are unreachable.
        OnLink = "on-link",
        /// None: a routing daemon adds them.
        None = "none",
    }
}
