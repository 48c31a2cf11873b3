// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the user wrote, validated, in units that carry their name.

use super::alter::{CorruptDraft, DuplicateDraft};
use super::background::BackgroundDraft;
use super::bottleneck::ClassName;
use super::delay::DelayDraft;
use super::kinds::{BitRate, OneOf, Overhead, Share};
use super::loss::LossDraft;
use super::queueing::QueueDraft;
use super::reordering::ReorderDraft;
use super::shared::SharedName;
use super::slot::SlotDraft;
use super::trace_read::TraceDraft;
use super::wire::WireDraft;
use super::{Bottleneck, Matrix, NamedLink, Neighbours, Offload, Queue, Rule, Target, Wire};
use crate::text::table;

/// A described link, both directions.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Name of the profile.
    pub name: String,
    /// What it describes, in a line.
    pub description: String,
    /// Where the figures come from.
    pub source: String,
    /// Seed of every random decision; drawn at attach where it is `None`.
    pub seed: Option<u64>,
    /// What happens to super-packets.
    pub offload: Offload,
    /// Egress of the interface.
    pub up: Link,
    /// Ingress of the interface.
    pub down: Link,
    /// By name.
    pub links: Vec<NamedLink>,
    /// Servers of packets that wait, by name.
    pub bottlenecks: Vec<Bottleneck>,
    /// The first that matches wins.
    pub rules: Vec<Rule>,
    /// Of all links that rules give to each flow or the like, 1..=65536.
    pub instances: u32,
    /// Own figures for pairs of addresses.
    pub matrix: Option<Matrix>,
    /// Links by time.
    pub phases: super::Phases,
}

/// Instances where the profile does not say.
pub const DEFAULT_INSTANCES: u32 = 4096;

impl Profile {
    /// Returns the link of a direction (`EMUD_UP`, `EMUD_DOWN`).
    pub fn direction(&self, direction: u32) -> &Link {
        if direction == crate::abi::EMUD_UP {
            &self.up
        } else {
            &self.down
        }
    }

    /// Returns both directions of the link of a rule.
    pub fn links_of_rule(&self, rule: &Rule) -> Vec<&Link> {
        let named = match &rule.target {
            Target::Own => return vec![&self.up, &self.down],
            Target::Untouched => return Vec::new(),
            Target::Named(name) => self.links.iter().find(|link| link.name == *name),
        };
        named.map_or(Vec::new(), |named| vec![&named.up, &named.down])
    }

    /// Returns the longest queue in packets that the link of a rule ever has, also in a phase.
    pub fn queue_packets_of_rule(&self, rule: &Rule) -> u32 {
        let phases: &[_] = match rule.target {
            Target::Own => &self.phases.list,
            _ => &[],
        };
        let phases = phases.iter().flat_map(|phase| [&phase.up, &phase.down]);
        let links = self.links_of_rule(rule).into_iter().chain(phases);
        links.map(Link::queue_packets).max().unwrap_or(0)
    }

    /// Returns whether packets of a link wait in more queues than its own: of instances (`per`), or of pairs.
    pub fn has_more_queues(&self, number: u32, direction: u32) -> bool {
        let named = number.checked_sub(1);
        let name = named.and_then(|n| Some(&self.links.get(n as usize)?.name));
        let has_instances = |rule: &Rule| {
            let is_its = match &rule.target {
                Target::Own => name.is_none(),
                Target::Named(target) => name == Some(target),
                Target::Untouched => false,
            };
            rule.per.is_some() && is_its && rule.direction.is_none_or(|d| d == direction)
        };
        let has_pairs = |matrix: &Matrix| matrix.link.as_ref() == name;
        self.matrix.as_ref().is_some_and(has_pairs) || self.rules.iter().any(has_instances)
    }

    /// Returns the same link seen from its other end.
    pub fn reversed(self) -> Self {
        Self {
            up: self.down,
            down: self.up,
            links: self.links.into_iter().map(NamedLink::reversed).collect(),
            rules: self.rules.into_iter().map(Rule::reversed).collect(),
            phases: self.phases.reversed(),
            ..self
        }
    }
}

impl Link {
    /// Returns the limit in packets of the queue; 0: none, or there is no rate and so no queue.
    pub fn queue_packets(&self) -> u32 {
        match super::rate_with_trace(self) {
            None => 0,
            Some(_) => self.queue.limit_packets(),
        }
    }
}

table! {
    /// One direction of the link.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Link {
        /// Rate on the wire in bit/s, at least 1; `None`: no serialisation delay.
        rate: Option<u64> = None, "rate" as BitRate;
        /// Bytes added to every packet on the wire, -64..=4096.
        overhead: i32 = 0, "overhead" as Overhead;
        /// Probability that a TCP packet becomes a reset, which ends its connection.
        reset: f64 = 0.0, "reset" as Share;
        neighbours: Neighbours = Neighbours::Pass, "neighbours" as OneOf<Neighbours>;
        /// Links of one name and direction share one queue.
        shared: Option<String> = None, "shared" as SharedName;
        /// Where packets wait that no rule puts into another class.
        class: Option<String> = None, "class" as ClassName;
        state: super::LinkState = super::LinkState::Up, "state" as OneOf<super::LinkState>;
    }
    beside {
        /// What else the wire does to a packet's length and time.
        wire: Wire = Wire::default();
        /// The backlog in front of the link.
        queue: Queue = Queue::default();
        delay: super::Delay = super::Delay::default();
        loss: super::Loss = super::Loss::default();
        /// Packets that are sent without delay, to overtake.
        reorder: Option<super::Reordering> = None;
        duplicate: super::Duplicate = super::Duplicate::default();
        corrupt: super::Corrupt = super::Corrupt::default();
        /// Rate, delay, jitter and loss by time.
        trace: Option<super::Trace> = None;
        slot: Option<super::Slot> = None;
        /// Traffic that takes its part of queue and wire.
        background: Option<super::Background> = None;
    }
    /// What has been written of a link: a table or an assignment is applied over the one before.
    struct LinkDraft {
        wire: WireDraft;
        queue: QueueDraft;
        delay: DelayDraft;
        loss: LossDraft;
        reorder: ReorderDraft;
        duplicate: DuplicateDraft;
        corrupt: CorruptDraft;
        trace: TraceDraft;
        slot: SlotDraft;
        background: BackgroundDraft;
    }
}
