// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the links and rules of a profile as they are attached.

use super::LinkError;
use super::engine::Engine;
use super::maps::Maps;
use super::saved::Saved;
use super::stage::compile::{Compiled, PacketTarget, compile, of_number, put};
use super::stage::timeline;
use crate::abi;
use crate::abi::{DIRECTIONS, direction_name};
use crate::profile::{Profile, rule_keys};

/// Where the time and the random decisions of links begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub seed: u64,
    pub epoch_ns: u64,
    pub restarted_ns: Option<u64>,
}

impl From<&Saved> for Origin {
    fn from(saved: &Saved) -> Self {
        Self {
            seed: saved.seed,
            epoch_ns: saved.epoch_ns,
            restarted_ns: saved.restarted_ns,
        }
    }
}

/// Compiles both directions of a profile that is about to be attached. [`place`] completes them.
pub(super) fn compile_new(
    profile: &Profile,
    origin: Origin,
) -> Result<[Vec<Compiled>; 2], LinkError> {
    let nowhere = PacketTarget {
        release: abi::EMUD_RELEASE_NONE,
        ifindex: 0,
        l3: false,
    };
    let one = |direction: u32| compile_direction(profile, origin, direction, nowhere);
    Ok([one(abi::EMUD_UP)?, one(abi::EMUD_DOWN)?])
}

/// Sets where the links of an attachment send their packets. `targets`: ifindex of the ifb or TAP,
/// indexed by direction.
pub(super) fn place(both: &mut [Vec<Compiled>; 2], saved: &Saved, targets: [u32; 2]) {
    let release = |direction: u32| match (saved.engine, direction) {
        // Its program exists as long as this process, but no packet passes it.
        _ if !saved.directions[direction as usize] => abi::EMUD_RELEASE_NONE,
        (Engine::Hold, _) => abi::EMUD_RELEASE_HOLD,
        (Engine::Fq, abi::EMUD_UP) => abi::EMUD_RELEASE_STAMP,
        (Engine::Fq, _) if saved.mirred_pref.is_some() => abi::EMUD_RELEASE_MIRRED,
        (Engine::Fq, _) => abi::EMUD_RELEASE_IFB,
        (Engine::Qdisc, abi::EMUD_UP) => abi::EMUD_RELEASE_QDISC,
        (Engine::Qdisc, _) => abi::EMUD_RELEASE_QDISC_IFB,
    };
    for (direction, links) in DIRECTIONS.into_iter().zip(both) {
        let place = PacketTarget {
            release: release(direction),
            ifindex: targets[direction as usize],
            l3: saved.l3,
        };
        for compiled in links {
            put(&mut compiled.link, place);
        }
    }
}

/// Compiles both directions of a profile with the parameters of the attached one.
pub(super) fn compile_there(
    maps: &Maps,
    profile: &Profile,
    saved: &Saved,
) -> Result<[Vec<Compiled>; 2], LinkError> {
    let compile = |direction: u32| -> Result<Vec<Compiled>, LinkError> {
        let now = maps.link(direction)?;
        let place = PacketTarget {
            release: now.release,
            ifindex: now.ifindex,
            l3: now.flags & abi::EMUD_F_L3 != 0,
        };
        compile_direction(profile, saved.into(), direction, place)
    };
    Ok([compile(abi::EMUD_UP)?, compile(abi::EMUD_DOWN)?])
}

/// Compiles the links of a direction as they are attached, by number.
fn compile_direction(
    profile: &Profile,
    origin: Origin,
    direction: u32,
    place: PacketTarget,
) -> Result<Vec<Compiled>, LinkError> {
    let one = |(number, link)| {
        let seed = of_number(origin.seed, number);
        compile(link, seed, direction, origin.epoch_ns, place).map_err(|source| LinkError::Spread {
            direction: direction_name(direction),
            source,
        })
    };
    let links = (0..).zip(profile.links_of(direction)).map(one);
    let mut links = links.collect::<Result<Vec<Compiled>, _>>()?;
    matching(profile, direction, &mut links);
    timeline::phases(profile, direction, &mut links, origin.seed, origin.epoch_ns);
    // As if it had been attached at that time.
    let later_ns = origin.restarted_ns.unwrap_or(origin.epoch_ns);
    let later_ns = later_ns.wrapping_sub(origin.epoch_ns);
    for compiled in &mut links {
        shift(&mut compiled.link, later_ns);
    }
    Ok(links)
}

/// Shifts the start of compiled links by `later_ns`, as if they had been attached then.
pub(super) fn begin_later(both: &mut [Vec<Compiled>; 2], later_ns: u64) {
    for compiled in both.iter_mut().flatten() {
        let link = &mut compiled.link;
        link.epoch_ns = link.epoch_ns.wrapping_add(later_ns);
        shift(link, later_ns);
    }
}

/// Shifts the start of traces, phases and background by `later_ns`, but not that of jitter in order.
fn shift(link: &mut abi::emud_link, later_ns: u64) {
    timeline::shift(&mut link.timeline, later_ns);
    if link.background.count > 0 {
        link.background.epoch_ns = link.background.epoch_ns.wrapping_add(later_ns);
    }
}

/// Sets the fields of each link that depend on the other links and on the rules.
pub fn matching(profile: &Profile, direction: u32, links: &mut [Compiled]) {
    for ((number, link), of) in (0..).zip(links.iter_mut()).zip(profile.links_of(direction)) {
        link.link.bottleneck = profile.bottleneck(direction, number);
        let class = of.class.as_deref();
        link.link.service = class.and_then(|c| profile.service_word(c)).unwrap_or(0);
    }
    let Some(own) = links.first_mut() else { return };
    if profile.rules.iter().any(|rule| rule.is_for(direction)) {
        own.link.flags |= abi::EMUD_F_RULES;
    }
    // Also where no rule is for egress: there the flows are learned.
    if profile.names_cgroups() {
        own.link.flags |= abi::EMUD_F_RULES | abi::EMUD_F_CGROUPS;
    }
    // Answers may pass in the other direction.
    if profile.names_answers() {
        own.link.flags |= abi::EMUD_F_RULES | abi::EMUD_F_NAMES;
    }
    if let Some(matrix) = &profile.matrix {
        own.link.flags |= abi::EMUD_F_MATRIX;
        own.link.matrix_link = profile.matrix_link(matrix);
    }
}

/// Compiles the rules of a profile.
pub fn compile_rules(profile: &Profile) -> Result<rule_keys::Compiled, rule_keys::RulesError> {
    let number_of = |name: &str| profile.number_of(name);
    rule_keys::compile(&profile.rules, number_of, |class| {
        profile.service_word(class)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::shipped::SHIPPED;

    const PHASES: &str = "[link]\ndelay = { mean = \"20ms\", jitter = \"5ms\" }\n\
                          [links.slow]\nrate = \"1Mbit\"\n\
                          [[phase]]\nfor = \"3s\"\n[[phase]]\nlink = \"slow\"\nfor = \"2s\"\n";
    const BACKGROUND: &str = "[link]\nrate = \"8Mbit\"\nbackground = \"40%\"\n";

    #[test]
    fn to_begin_later_is_to_be_attached_later() {
        let shipped = SHIPPED.iter().map(|shipped| shipped.text);
        let mut timed = 0;
        for toml in shipped.chain([PHASES, BACKGROUND]) {
            let profile = Profile::parse(toml, "a profile").unwrap();
            timed += u32::from(profile.is_timed());
            let at = |epoch_ns| {
                let origin = Origin {
                    seed: 7,
                    epoch_ns,
                    restarted_ns: None,
                };
                compile_new(&profile, origin).unwrap()
            };
            let mut both = at(1_000);
            begin_later(&mut both, 5_000_000_000);
            let links = |both: [Vec<Compiled>; 2]| {
                let links = both.into_iter().flatten();
                links
                    .map(|compiled| format!("{:?}", compiled.link))
                    .collect::<Vec<_>>()
            };
            assert_ne!(links(at(1_000)), links(at(5_000_001_000)));
            let wanted = links(at(5_000_001_000));
            for (shifted, wanted) in links(both).iter().zip(wanted) {
                assert_eq!(*shifted, wanted, "{}", profile.name);
            }
        }
        assert!(timed > 0);
    }
}
