// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules, named links, instances and pairs in force.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::link::{LinkReport, Reader};
use super::overlap::{HiddenBy, hidden};
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::saved::Saved;
use crate::host::cgroup;
use crate::profile::{Matrix, Profile, Rule, Target, rule_keys};

/// Which link a packet takes, and how many did.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Matching {
    /// Rules in their order; the first that matches applies.
    pub rules: Vec<RuleReport>,
    /// Links of the table `links`, with their counters.
    pub links: Vec<NamedReport>,
    /// Queues of flows, sources and so on; null: no rule has `per`.
    pub instances: Option<InstancesReport>,
    /// Control groups of rules; null: no rule has `cgroup`.
    pub cgroups: Option<CgroupsReport>,
    /// Names whose addresses are learned from DNS answers; null: no rule has `answer`.
    pub names: Option<NamesReport>,
    /// Pairs of addresses; null: none.
    pub matrix: Option<MatrixReport>,
}

/// A rule in force.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleReport {
    /// The rule on one line: what it matches, and its link.
    pub text: String,
    /// Wire packets that the rule matched.
    pub packets: u64,
    /// Earlier rules that match packets of this rule.
    pub hidden_by: Vec<HiddenBy>,
}

/// A link beside the profile's own.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NamedReport {
    /// Name of the link.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What the interface sends; null: not emulated.
    pub up: Option<LinkReport>,
    /// What the interface receives; null: not emulated.
    pub down: Option<LinkReport>,
}

/// Flows, sources and so on, each with a separate queue.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InstancesReport {
    /// Queues in use.
    pub used: u32,
    /// Largest number of queues.
    pub capacity: u32,
    /// Queues that were removed for others, because a set of the table was full.
    pub given_up: u64,
}

/// Applications by their control groups, and the flows learned from what they sent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CgroupsReport {
    /// Groups in the order of the rules.
    pub groups: Vec<CgroupReport>,
    /// Largest number of learned flows.
    pub capacity: u32,
    /// Learned flows that were forgotten for others, because a set of the table was full.
    pub forgotten: u64,
    /// Packets whose group is unknown, so that no rule with `cgroup` could match: sent without a
    /// socket of a program (forwarded, by the kernel) and not of a learned flow; received without
    /// ports (fragments, other protocols).
    pub unattributed: u64,
}

/// A control group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CgroupReport {
    /// Path below the root of cgroup v2.
    #[schemars(length(min = 1))]
    pub path: String,
    /// The group that the rules match was removed, even if there is a new one of the same path.
    pub gone: bool,
}

/// Names of rules, and the addresses that DNS answers on the path gave for them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NamesReport {
    /// Names in the order of the rules.
    pub names: Vec<NameReport>,
    /// Resolvers whose answers count.
    pub resolvers: Vec<IpAddr>,
    /// Largest number of learned addresses; then the one that was unused longest is forgotten.
    pub capacity: u32,
}

/// A name of a rule and the addresses learned for it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NameReport {
    /// Name as in the rule.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Addresses learned from DNS answers.
    pub addresses: Vec<IpAddr>,
}

/// Pairs of addresses with separate figures.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MatrixReport {
    /// Link on which the pairs are based; "link" is the profile's own.
    #[schemars(length(min = 1))]
    pub link: String,
    /// Pairs in force.
    pub pairs: usize,
    /// Largest number of pairs.
    pub capacity: u32,
}

/// Reads what of all this an interface has.
pub(crate) fn matching(reader: &Reader, saved: &Saved) -> Result<Matching, DatapathError> {
    let Some(profile) = reader.profile else {
        return Ok(Matching::default());
    };
    let maps = reader.maps;
    let rule = |(n, rule): (usize, &Rule)| {
        Ok(RuleReport {
            text: text(rule),
            packets: maps.rule_hits(n as u32)?,
            hidden_by: hidden(&profile.rules, n),
        })
    };
    let rules = profile.rules.iter().enumerate().map(rule);
    let named = (1..).zip(&profile.links).map(|(number, named)| {
        let one = |direction: u32| match saved.directions[direction as usize] {
            true => reader.link(number, direction).map(Some),
            false => Ok(None),
        };
        Ok::<_, DatapathError>(NamedReport {
            name: named.name.clone(),
            up: one(abi::EMUD_UP)?,
            down: one(abi::EMUD_DOWN)?,
        })
    });
    Ok(Matching {
        rules: rules.collect::<Result<_, DatapathError>>()?,
        links: named.collect::<Result<_, DatapathError>>()?,
        instances: instances(maps, saved, profile)?,
        cgroups: cgroups(maps, saved, profile)?,
        names: names(maps, saved, profile)?,
        matrix: match &profile.matrix {
            Some(matrix) => Some(pairs(maps, matrix)?),
            None => None,
        },
    })
}

fn instances(
    maps: &Maps,
    saved: &Saved,
    profile: &Profile,
) -> Result<Option<InstancesReport>, DatapathError> {
    if saved.sizes.instances == 0 {
        return Ok(None);
    }
    let mut given_up = 0;
    for number in 0..=profile.links.len() as u32 {
        for direction in DIRECTIONS {
            given_up += maps.counters_of(number, direction)?.instances_forgotten;
        }
    }
    let (used, capacity) = maps.instances(&saved.sizes)?;
    Ok(Some(InstancesReport {
        used,
        capacity,
        given_up,
    }))
}

fn cgroups(
    maps: &Maps,
    saved: &Saved,
    profile: &Profile,
) -> Result<Option<CgroupsReport>, DatapathError> {
    if !profile.names_cgroups() {
        return Ok(None);
    }
    let paths = rule_keys::distinct(&profile.rules, |m| m.cgroup.as_ref());
    let groups = paths.iter().zip(maps.cgroups()?).map(|(path, id)| {
        let now = cgroup::open(std::slice::from_ref(path));
        CgroupReport {
            path: format!("/{path}"),
            gone: !now.is_ok_and(|now| now.iter().all(|group| group.id == id)),
        }
    });
    let (mut forgotten, mut unattributed) = (0, 0);
    for direction in DIRECTIONS {
        let counters = maps.counters(direction)?;
        forgotten += counters.learned_forgotten;
        unattributed += counters.unattributed;
    }
    Ok(Some(CgroupsReport {
        groups: groups.collect(),
        capacity: saved.sizes.learned,
        forgotten,
        unattributed,
    }))
}

fn names(
    maps: &Maps,
    saved: &Saved,
    profile: &Profile,
) -> Result<Option<NamesReport>, DatapathError> {
    if !profile.names_answers() {
        return Ok(None);
    }
    let names = rule_keys::distinct(&profile.rules, |m| m.answer.as_ref());
    let name = |name: String| {
        let addresses = maps.addresses_of(&name)?;
        Ok(NameReport { name, addresses })
    };
    Ok(Some(NamesReport {
        names: names
            .into_iter()
            .map(name)
            .collect::<Result<_, DatapathError>>()?,
        resolvers: maps.resolvers()?,
        capacity: saved.sizes.addresses,
    }))
}

fn pairs(maps: &Maps, matrix: &Matrix) -> Result<MatrixReport, DatapathError> {
    Ok(MatrixReport {
        link: matrix.link.clone().unwrap_or_else(|| "link".to_owned()),
        pairs: maps.pairs_in_force()?.len(),
        capacity: maps.pairs_capacity(),
    })
}

/// Returns a rule on one line.
fn text(rule: &Rule) -> String {
    let link = match &rule.target {
        Target::Own => "link",
        Target::Named(name) => name,
        Target::Untouched => "none",
    };
    let matches = match rule.matches.keys() {
        keys if keys.is_empty() => "all".to_owned(),
        keys => keys.replace(" = ", " ").replace('"', ""),
    };
    let mut out = format!("{matches} -> {link}");
    if let Some(direction) = rule.direction {
        out += &format!(" ({} only)", crate::abi::direction_name(direction));
    }
    if let Some(per) = rule.per {
        out += &format!(" per {}", crate::text::Word::word(per));
    }
    if let Some(class) = &rule.class {
        out += &format!(" in {class}");
    }
    out
}
