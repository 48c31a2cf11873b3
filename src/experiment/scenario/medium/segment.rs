// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[segment.NAME]`: a wire that several nodes share, as a medium without access control.

use std::collections::BTreeMap;

use super::super::kinds::{Names, NodeNames, is_meant};
use super::keys::{AccessChoice, MediumTable, RouteChoice, put};
use super::kinds::unknown;
use super::queue::{QueueChoice, QueueKind};
use crate::medium::phy::{Line, Wire};
use crate::profile::kinds::{BitErrorRate, BitRate, Duration, Flag, OneOf, Share, Text};
use crate::text::{Kind, Located, Mistake, Value, is_none, table};

table! {
    /// The figures of a segment.
    #[derive(Debug, Clone, PartialEq)]
    pub struct SegmentTable {
        /// Names of its stations, or patterns; none: all nodes.
        nodes: Option<NodeNames> = None, "nodes" as Names;
        /// bit/s of each station.
        rate: u64 = 100_000_000, "rate" as BitRate;
        /// ns, from the last bit sent to the last bit received.
        delay: u64 = 0, "delay" as Duration;
        /// Of frames, at each receiver.
        loss: f64 = 0.0, "loss" as Share;
        /// The share of wrong bits.
        ber: f64 = 0.0, "ber" as BitErrorRate;
        /// What is different between some stations; later ones override earlier ones.
        pairs: Vec<Pair> = Vec::new(), "pairs" as Pairs;
        /// Of each station.
        queue: QueueChoice = QueueChoice::default(), "queue" as QueueKind;
        routes: RouteChoice = RouteChoice::Static, "routes" as OneOf<RouteChoice>;
        /// Whether stations have a link-local IPv6 address.
        ipv6: bool = true, "ipv6" as Flag;
        /// File for the arrivals, for `emud medium replay`.
        record: Option<String> = None, "record" as Text;
    }
    struct SegmentTableDraft {}
}

/// What is different from some stations to others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pair {
    /// None: all stations.
    from: Option<NodeNames>,
    to: Option<NodeNames>,
    delay_ns: Option<u64>,
    loss: Option<f64>,
    ber: Option<f64>,
}

pub(crate) struct Pairs;

const HELP: &str = "write pairs = [{ from = \"a\", to = [\"b\", \"c*\"], loss = \"5%\" }], \
                    with `loss`, `delay` or `ber`";

impl Kind for Pairs {
    type Value = Vec<Pair>;

    fn read(value: &Located<Value>, key: &str) -> Result<Vec<Pair>, Mistake> {
        match &value.value {
            Value::List(items) => items.iter().map(|item| pair(item, key)).collect(),
            _ => Ok(vec![pair(value, key)?]),
        }
    }

    fn text(pairs: &Vec<Pair>) -> String {
        let one = |pair: &Pair| {
            let keys = [
                ("from", pair.from.as_ref().map(Names::text)),
                ("to", pair.to.as_ref().map(Names::text)),
                ("delay", pair.delay_ns.as_ref().map(Duration::text)),
                ("loss", pair.loss.as_ref().map(Share::text)),
                ("ber", pair.ber.as_ref().map(BitErrorRate::text)),
            ];
            let keys = keys.into_iter();
            let keys: Vec<_> = keys
                .filter_map(|(key, text)| Some(format!("{key} = {}", text?)))
                .collect();
            format!("{{ {} }}", keys.join(", "))
        };
        format!("[{}]", pairs.iter().map(one).collect::<Vec<_>>().join(", "))
    }
}

fn pair(value: &Located<Value>, key: &str) -> Result<Pair, Mistake> {
    let Value::Table(entries) = &value.value else {
        return Err(Mistake::wrong_kind(value, key, HELP));
    };
    let mut pair = Pair::default();
    for entry in entries {
        let (value, key) = (&entry.value, entry.key.value.as_str());
        match key {
            "from" => pair.from = Some(Names::read(value, key)?),
            "to" => pair.to = Some(Names::read(value, key)?),
            "delay" => pair.delay_ns = Some(Duration::read(value, key)?),
            "loss" => pair.loss = Some(Share::read(value, key)?),
            "ber" => pair.ber = Some(BitErrorRate::read(value, key)?),
            _ => {
                let keys = ["from", "to", "loss", "delay", "ber"];
                return Err(unknown(&entry.key, "a pair", &keys));
            }
        }
    }
    match (pair.delay_ns, pair.loss, pair.ber) {
        (None, None, None) => Err(Mistake::new(&value.at, "a pair without a figure", HELP)),
        _ => Ok(pair),
    }
}

impl SegmentTableDraft {
    /// Applies `none` where it is a value; elsewhere it removes one.
    pub fn none(&mut self, key: &str, value: &Located<Value>) -> bool {
        let is = key == "routes" && is_none(value);
        if is {
            put(&mut self.routes, RouteChoice::None, &value.at);
        }
        is
    }

    /// Returns the segment, and the figures that it has as a medium.
    ///
    /// # Errors
    /// A rate that is not in whole kbit/s, in which the air counts.
    pub fn finish(&self) -> Result<(SegmentTable, MediumTable), Mistake> {
        let segment = self.values();
        if let Some(rate) = self.rate.as_ref().filter(|_| segment.kbit().is_none()) {
            let help = "write whole kbit/s, from \"1kbit\" to \"1Tbit\"";
            return Err(Mistake::new(
                &rate.at,
                "a segment cannot have this rate",
                help,
            ));
        }
        let medium = MediumTable {
            nodes: segment.nodes.clone(),
            access: AccessChoice::None,
            queue: segment.queue,
            routes: segment.routes,
            ipv6: segment.ipv6,
            record: segment.record.clone(),
            ..MediumTable::default()
        };
        Ok((segment, medium))
    }
}

impl SegmentTable {
    /// Returns the rate in kbit/s; none: it has none.
    pub fn kbit(&self) -> Option<u32> {
        let kbit = u32::try_from(self.rate / 1000).ok();
        kbit.filter(|kbit| *kbit > 0 && self.rate.is_multiple_of(1000))
    }

    /// Returns the lines between the stations of these nodes.
    pub fn wire(&self, nodes: &[&str]) -> Wire {
        let line = Line {
            delay_ns: self.delay,
            loss: self.loss,
            ber: self.ber,
        };
        let mut pairs = BTreeMap::new();
        for pair in &self.pairs {
            let to = members(pair.to.as_ref(), nodes);
            for from in members(pair.from.as_ref(), nodes) {
                for to in to.iter().filter(|to| **to != from) {
                    let line = pairs.entry([from, *to]).or_insert(line);
                    line.delay_ns = pair.delay_ns.unwrap_or(line.delay_ns);
                    line.loss = pair.loss.unwrap_or(line.loss);
                    line.ber = pair.ber.unwrap_or(line.ber);
                }
            }
        }
        let pairs = pairs.into_iter().collect();
        Wire { line, pairs }
    }

    /// Reports pairs of nodes that are not on the segment, or of a single one.
    pub fn check(&self, name: &str, nodes: &[&str], mistakes: &mut Vec<Mistake>) {
        for pair in &self.pairs {
            let names = pair.from.iter().chain(&pair.to);
            let before = mistakes.len();
            for wanted in names.flat_map(|names| &names.0) {
                if !nodes.iter().any(|node| is_meant(&wanted.value, node)) {
                    let title = format!("segment `{name}` has no station `{}`", wanted.value);
                    let help = "write one of its `nodes`, or a pattern such as \"n*\"";
                    mistakes.push(Mistake::new(&wanted.at, title, help));
                }
            }
            let [from, to] = [&pair.from, &pair.to].map(|ends| members(ends.as_ref(), nodes));
            let first = pair.from.as_ref().or(pair.to.as_ref());
            if let Some(first) = first.and_then(|names| names.0.first())
                && mistakes.len() == before
                && from.len() == 1
                && from == to
            {
                let title = format!("a pair of `{}` and itself", nodes[usize::from(from[0])]);
                mistakes.push(Mistake::new(&first.at, title, HELP));
            }
        }
    }
}

/// Returns the numbers of the stations that are meant.
fn members(wanted: Option<&NodeNames>, nodes: &[&str]) -> Vec<u16> {
    let meant = |node: &str| wanted.is_none_or(|names| names.iter().any(|w| is_meant(w, node)));
    let numbered = (0..).zip(nodes).filter(|(_, node)| meant(node));
    numbered.map(|(number, _)| number).collect()
}
