// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bottlenecks of engine qdisc when a link changes.

use super::LinkError;
use super::attachment::Attachment;
use super::saved::Saved;
use super::stage::service;
use crate::abi;
use crate::netlink::Link;
use crate::profile::Profile;

/// Checks that the server in the kernel can serve the changed profile: the bottleneck of a direction stays.
pub(super) fn check(
    link: &Link,
    saved: &Saved,
    before: &Profile,
    after: &Profile,
) -> Result<(), LinkError> {
    if !saved.has_server() {
        let fails = after.blocks();
        let why = "`full = \"block\"` needs engine qdisc";
        return not_served(link, if fails { Err(why.to_owned()) } else { Ok(()) });
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
