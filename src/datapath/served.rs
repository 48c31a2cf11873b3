// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bottlenecks of a link that changes.

use std::collections::BTreeSet;

use super::LinkError;
use super::attachment::Attachment;
use super::engine::Engine;
use super::saved::Saved;
use super::stage::service;
use crate::abi::DIRECTIONS;
use crate::netlink::Link;
use crate::profile::Profile;

/// Checks that the servers can serve the changed profile: no bottleneck moves to the other direction, and with engine
/// qdisc that of a direction stays.
pub(super) fn check(
    link: &Link,
    saved: &Saved,
    before: &Profile,
    after: &Profile,
) -> Result<(), LinkError> {
    let had = had(saved.has_server(), &saved.bottlenecks, before);
    if !saved.has_server() {
        let is_hold = saved.engine == Engine::Hold && saved.directions == [true; 2];
        let why = if after.blocks() {
            "`full = \"block\"` needs engine qdisc"
        } else if is_hold && moves(&had, after) {
            "a [bottleneck] would move from one direction to the other"
        } else {
            return Ok(());
        };
        return not_served(link, Err(why.to_owned()));
    }
    not_served(link, service::compile(after, saved.directions))?;
    let why = "packets of a direction would wait in another [bottleneck]";
    let fails = DIRECTIONS.into_iter().any(|direction| {
        saved.directions[direction as usize] && is_exchanged(&had, after, direction)
    });
    not_served(link, if fails { Err(why.to_owned()) } else { Ok(()) })
}

/// Keeps the bottlenecks of a profile that is no longer in force: their packets may still wait.
pub(super) fn remember(saved: &mut Saved, before: &Profile) {
    saved.bottlenecks = had(saved.has_server(), &saved.bottlenecks, before);
}

/// Returns the bottlenecks in which packets of each direction may wait: with the server in the kernel the last one, with
/// a holder all that a direction had alone.
fn had(
    in_kernel: bool,
    earlier: &[BTreeSet<String>; 2],
    before: &Profile,
) -> [BTreeSet<String>; 2] {
    DIRECTIONS.map(|direction| {
        let now = bottlenecks(before, direction);
        let earlier = &earlier[direction as usize];
        match in_kernel {
            true if now.is_empty() => earlier.clone(),
            true => now,
            // One thread serves both directions.
            false if before.joins_directions() => BTreeSet::new(),
            false => &now | earlier,
        }
    })
}

fn bottlenecks(profile: &Profile, direction: u32) -> BTreeSet<String> {
    let names = profile.bottlenecks_of(direction).into_iter();
    names.map(str::to_owned).collect()
}

/// Gives the server in the kernel the bottlenecks of a profile, from the next generation of links on.
pub(super) fn hand_over(
    link: &Link,
    there: &mut Attachment,
    profile: &Profile,
) -> Result<(), LinkError> {
    if there.saved.has_server() {
        let plans = service::compile(profile, there.saved.directions);
        there.maps.serve(not_served(link, plans)?);
    }
    Ok(())
}

fn not_served<T>(link: &Link, result: Result<T, String>) -> Result<T, LinkError> {
    result.map_err(|why| LinkError::NotServed {
        interface: link.name.clone(),
        why,
    })
}

/// Returns whether a direction would have a bottleneck that only the other one had. Each has a thread then, and both
/// would write the account of that bottleneck.
fn moves(had: &[BTreeSet<String>; 2], after: &Profile) -> bool {
    let takes =
        |direction: u32| !bottlenecks(after, direction).is_disjoint(&had[1 - direction as usize]);
    !after.joins_directions() && DIRECTIONS.into_iter().any(takes)
}

/// Returns whether a direction would have another bottleneck than the one in which its packets wait.
fn is_exchanged(had: &[BTreeSet<String>; 2], after: &Profile, direction: u32) -> bool {
    let (had, has) = (&had[direction as usize], bottlenecks(after, direction));
    !had.is_empty() && !has.is_empty() && *had != has
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(up: &str, down: &str, rule: &str) -> Profile {
        let links = format!("[up]\nclass = \"{up}\"\n[down]\nclass = \"{down}\"\n");
        let links = links.replace("class = \"\"\n", "");
        let rest = "[bottleneck.b]\nrate = \"1Mbit\"\n[bottleneck.c]\nrate = \"1Mbit\"\n";
        Profile::parse(&format!("{links}{rest}{rule}"), "x").unwrap_or_else(|e| panic!("{e}"))
    }

    /// Packets of the first profile wait while the second one has no class.
    #[test]
    fn a_detour_is_no_way_out() {
        let none = profile("", "", "");
        for (first, third, [in_kernel, by_holder]) in [
            (["b", ""], ["c", ""], [true, false]),
            (["b", ""], ["b", ""], [false, false]),
            (["b", ""], ["", "b"], [false, true]),
            (["b", ""], ["", "c"], [false, false]),
        ] {
            let [first, third] = [first, third].map(|[up, down]| profile(up, down, ""));
            let had = |in_kernel| {
                let had = had(in_kernel, &Default::default(), &first);
                super::had(in_kernel, &had, &none)
            };
            let is = [
                DIRECTIONS
                    .into_iter()
                    .any(|d| is_exchanged(&had(true), &third, d)),
                moves(&had(false), &third),
            ];
            assert_eq!(is, [in_kernel, by_holder], "{had:?}", had = had(true));
        }
    }

    #[test]
    fn a_bottleneck_stays_with_its_direction() {
        let rule = "[[rule]]\nclass = \"c\"\ndirection = \"up\"\n";
        for (before, after, is_moved) in [
            (["b", "", ""], ["", "b", ""], true),
            (["b", "c", ""], ["c", "b", ""], true),
            (["b", "", rule], ["b", "c", ""], true),
            (["b", "", ""], ["c", "", ""], false),
            (["b", "", ""], ["", "c", ""], false),
            (["b", "c", ""], ["", "c", rule], false),
            (["b", "b", ""], ["", "b", ""], false),
            (["", "", ""], ["b", "c", ""], false),
        ] {
            let [old, new] = [before, after].map(|[up, down, rule]| profile(up, down, rule));
            let had = had(false, &Default::default(), &old);
            assert_eq!(moves(&had, &new), is_moved, "{before:?} {after:?}");
        }
    }
}
