// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the maps are made that depend on the profile. They stay so: `emud set`
//! may make of a profile only what fits.

use serde::{Deserialize, Serialize};

use super::timeline;
use crate::abi;
use crate::profile::{Profile, rule_keys};

/// Room for rules that `emud set` adds.
const RULES_MIN: u32 = 64;
const RULE_KEYS_MIN: u32 = 1024;
/// Pieces of a plain link's ring.
const PLAIN_RINGS: u32 = abi::EMUD_RING_LEN / abi::EMUD_RING_STEP;

/// Lengths of the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// The profile's own and the named ones.
    pub links: u32,
    /// Links of phases, which have no separate queue.
    pub phases: u32,
    /// Rows of traces and phases, each with one after the last.
    pub rows: usize,
    /// Rules of both directions.
    pub rules: u32,
    /// Keys of rules, of both generations.
    pub rule_keys: u32,
    /// Instances of links with `per`: a power of two, or 0.
    pub instances: u32,
    /// Pieces of an instance's ring.
    pub instance_rings: u32,
    /// Flows of control groups: a power of two, or 0.
    pub learned: u32,
    /// Addresses learned for names, or 0.
    pub addresses: u32,
    /// Pairs of the matrix.
    pub pairs: u32,
    /// Pieces of a pair's ring.
    pub pair_rings: u32,
    /// Classes of bottlenecks.
    pub classes: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            links: 1,
            phases: 0,
            rows: 0,
            rules: RULES_MIN,
            rule_keys: RULE_KEYS_MIN,
            instances: 0,
            instance_rings: 0,
            learned: 0,
            addresses: 0,
            pairs: 0,
            pair_rings: 0,
            classes: 0,
        }
    }
}

impl Sizes {
    /// Returns the sizes for a profile and for all that `emud set` may change it to.
    pub fn of(profile: &Profile) -> Self {
        let keys = rule_keys::compile(&profile.rules, |name| profile.number_of(name), |_| None);
        let keys = keys.map_or(0, |compiled| rule_keys::entries(&compiled)) as u32;
        let per = profile.rules.iter().any(|rule| rule.per.is_some());
        let matrix = profile.matrix.as_ref();
        Self {
            links: 1 + profile.links.len() as u32,
            phases: profile.phases.list.len() as u32,
            rows: timeline::rows_of(profile),
            rules: (profile.rules.len() as u32)
                .max(RULES_MIN)
                .next_power_of_two(),
            rule_keys: (2 * keys).max(RULE_KEYS_MIN).next_power_of_two(),
            instances: match per {
                true => profile
                    .instances
                    .next_power_of_two()
                    .max(abi::EMUD_INSTANCE_WAYS),
                false => 0,
            },
            instance_rings: pieces(instance_packets(profile)),
            learned: match profile.names_cgroups() {
                true => abi::EMUD_LEARNED_MAX,
                false => 0,
            },
            addresses: match profile.names_answers() {
                true => abi::EMUD_ADDRESSES_MAX,
                false => 0,
            },
            pairs: matrix.map_or(0, |matrix| matrix.capacity),
            pair_rings: pieces(pair_packets(profile)),
            classes: profile.services() as u32,
        }
    }

    /// Returns the first part of `wanted` that does not fit, as a message names it.
    pub fn lacks(&self, wanted: &Self) -> Option<&'static str> {
        [
            (self.rules, wanted.rules, "this many rules"),
            (self.rule_keys, wanted.rule_keys, "this many rules"),
            (self.instances, wanted.instances, "a rule with `per`"),
            (self.learned, wanted.learned, "a rule with `cgroup`"),
            (self.addresses, wanted.addresses, "a rule with `answer`"),
            (
                self.instance_rings,
                wanted.instance_rings,
                "this many packets in the queues of a rule with `per`",
            ),
            (
                self.pair_rings,
                wanted.pair_rings,
                "this many packets in the queues of pairs",
            ),
        ]
        .into_iter()
        .find_map(|(has, wants, what)| (has < wants).then_some(what))
    }

    pub(crate) fn layout(&self) -> abi::emud_layout {
        abi::emud_layout {
            plain: self.plain(),
            instances: self.instances,
            instance_rings: self.instance_rings,
            pair_rings: self.pair_rings,
            spare_ring: self.rings() - 1,
            learned: self.learned,
        }
    }

    /// Returns the number of links with figures, those of phases included.
    pub(crate) fn numbers(&self) -> u32 {
        self.links + self.phases
    }

    pub(crate) fn plain(&self) -> u32 {
        self.links * abi::EMUD_DIRECTIONS
    }

    pub(crate) fn states(&self) -> u32 {
        self.plain() + self.instances + self.pairs
    }

    pub(crate) fn rings(&self) -> u32 {
        self.plain() * PLAIN_RINGS
            + self.instances * self.instance_rings
            + self.pairs * self.pair_rings
            + 1
    }

    pub(crate) fn instance_sets(&self) -> u32 {
        (self.instances / abi::EMUD_INSTANCE_WAYS).max(1)
    }

    pub(crate) fn learned_sets(&self) -> u32 {
        (self.learned / abi::EMUD_LEARNED_WAYS).max(1)
    }
}

/// Returns the pieces of a ring that remembers `packets`: a power of two, or 0.
fn pieces(packets: u32) -> u32 {
    match packets {
        0 => 0,
        n => n.div_ceil(abi::EMUD_RING_STEP).next_power_of_two(),
    }
}

/// Returns the longest queue in packets of the links that rules give to each flow or the like.
fn instance_packets(profile: &Profile) -> u32 {
    let links = profile.rules.iter().filter(|rule| rule.per.is_some());
    let longest = links.map(|rule| profile.queue_packets_of_rule(rule));
    longest.max().unwrap_or(0)
}

/// Returns the longest queue in packets of the links that pairs are based on.
fn pair_packets(profile: &Profile) -> u32 {
    let Some(matrix) = &profile.matrix else {
        return 0;
    };
    let limits = profile.matrix_links(matrix);
    let limits = limits
        .into_iter()
        .map(|link| link.queue.pair_limit_packets());
    limits.max().unwrap_or(0)
}
