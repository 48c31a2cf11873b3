// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules, named links, instances and pairs in force.

use serde::Serialize;

use super::link::{LinkReport, Reader};
use super::overlap::hidden;
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::datapath::maps::{DatapathError, Maps};
use crate::datapath::saved::Saved;
use crate::profile::{Matrix, Profile, Rule, Target};

/// Which link a packet takes, and how many did.
#[derive(Debug, Default, Serialize)]
pub struct Matching {
    /// The first that matches wins.
    pub rules: Vec<RuleReport>,
    /// The named ones.
    pub links: Vec<NamedReport>,
    /// Absent: no rule has `per`.
    pub instances: Option<InstancesReport>,
    pub matrix: Option<MatrixReport>,
}

/// A rule in force.
#[derive(Debug, Serialize)]
pub struct RuleReport {
    /// As in a profile.
    pub text: String,
    pub packets: u64,
    /// Rules before it that take packets it would match.
    pub hidden_by: Vec<HiddenBy>,
}

/// A rule that comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HiddenBy {
    /// From 1.
    pub rule: usize,
    /// Nothing is left.
    pub wholly: bool,
}

/// A link beside the profile's own.
#[derive(Debug, Serialize)]
pub struct NamedReport {
    pub name: String,
    pub up: Option<LinkReport>,
    pub down: Option<LinkReport>,
}

/// Flows, sources and so on with a queue of their own.
#[derive(Debug, Serialize)]
pub struct InstancesReport {
    pub used: u32,
    pub capacity: u32,
    /// For others, because a set of the table was full.
    pub given_up: u64,
}

/// Pairs of addresses with figures of their own.
#[derive(Debug, Serialize)]
pub struct MatrixReport {
    /// What they are based on; `link`: the profile's own.
    pub link: String,
    pub pairs: usize,
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

fn pairs(maps: &Maps, matrix: &Matrix) -> Result<MatrixReport, DatapathError> {
    Ok(MatrixReport {
        link: matrix.link.clone().unwrap_or_else(|| "link".to_owned()),
        pairs: maps.pairs_in_force()?.len(),
        capacity: maps.pairs_capacity(),
    })
}

/// A rule on one line.
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
