// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bottlenecks of a link that changes.

use super::LinkError;
use super::attachment::Attachment;
use super::engine::Engine;
use super::saved::Saved;
use super::stage::service;
use crate::abi::{self, DIRECTIONS};
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
    if !saved.has_server() {
        let is_hold = saved.engine == Engine::Hold && saved.directions == [true; 2];
        let why = if after.blocks() {
            "`full = \"block\"` needs engine qdisc"
        } else if is_hold && moves(before, after) {
            "a [bottleneck] would move from one direction to the other"
        } else {
            return Ok(());
        };
        return not_served(link, Err(why.to_owned()));
    }
    let [before, after] = [before, after].map(|p| service::compile(p, saved.directions));
    let (before, after) = (not_served(link, before)?, not_served(link, after)?);
    let differs = |(a, b): (&abi::emud_plan, &abi::emud_plan)| {
        a.nodes > 0 && b.nodes > 0 && a.first != b.first
    };
    let fails = before.iter().zip(&after).any(differs);
    let why = "packets of a direction would wait in another [bottleneck]";
    not_served(link, if fails { Err(why.to_owned()) } else { Ok(()) })
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
fn moves(before: &Profile, after: &Profile) -> bool {
    if before.joins_directions() || after.joins_directions() {
        return false;
    }
    let [had, has] = [before, after].map(|p| DIRECTIONS.map(|d| p.bottlenecks_of(d)));
    let takes = |to: usize| has[to].iter().any(|name| had[1 - to].contains(name));
    takes(0) || takes(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bottleneck_stays_with_its_direction() {
        let rule = "[[rule]]\nclass = \"c\"\ndirection = \"up\"\n";
        let profile = |up: &str, down: &str, rule: &str| {
            let links = format!("[up]\nclass = \"{up}\"\n[down]\nclass = \"{down}\"\n");
            let links = links.replace("class = \"\"\n", "");
            let rest = "[bottleneck.b]\nrate = \"1Mbit\"\n[bottleneck.c]\nrate = \"1Mbit\"\n";
            Profile::parse(&format!("{links}{rest}{rule}"), "x").unwrap_or_else(|e| panic!("{e}"))
        };
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
            assert_eq!(moves(&old, &new), is_moved, "{before:?} {after:?}");
        }
    }
}
