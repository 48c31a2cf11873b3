// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wire packets instead of super-packets: switches off features of the device so that the link sees
//! each packet as a wire does.
//!
//! tc-netem loses a whole super-packet of 64 KiB for one packet: at a loss of 0.2 % and 5 ms one
//! TCP flow got 567 Mbit/s with segmentation offload and 42.6 without, where theory says 50. A link
//! that only delays treats all packets of one instant alike, so there a super-packet has the same
//! effect as its packets, and costs much less.

use super::engine::Engine;
use super::maps::Maps;
use super::saved::Saved;
use super::{LinkError, segmenter};
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::netlink::{Gso, Link, Netlink, Offloads, Peer, RECEIVE_MERGING};
use crate::profile::{self, Offload, Profile, Reorder};

/// Returns whether segmentation must be off. The TAP splits super-packets in any case, after the
/// classifier.
fn one_by_one(engine: Engine, link: &profile::Link) -> bool {
    engine == Engine::Hold || decides(link)
}

/// Returns whether the link makes a separate decision for each packet.
pub(super) fn decides(link: &profile::Link) -> bool {
    let delay = &link.delay;
    let per_packet = delay.share.is_some()
        || link.reorder.is_some()
        || (delay.jitter.as_ref()).is_some_and(|j| j.reorder == Reorder::Jitter);
    let alters =
        link.duplicate.probability > 0.0 || link.corrupt.probability > 0.0 || link.reset > 0.0;
    let by_time = link.trace.is_some() || link.slot.is_some();
    by_time || link.rate.is_some() || !link.loss.is_none() || alters || per_packet
}

/// Returns in which directions a link damages packets and keeps their checksums.
pub(super) fn damaged(profile: &Profile, directions: [bool; 2]) -> [bool; 2] {
    DIRECTIONS.map(|direction| {
        let mut links = profile.links_of(direction);
        directions[direction as usize] && links.any(|link| link.corrupt.keeps_checksums())
    })
}

/// Records in `saved` what has to be capped for `profile` and is not yet; returns true if there is
/// a change to make. Changes nothing on the device.
///
/// # Errors
/// The device's features cannot be read.
pub(crate) fn plan(
    nl: &mut Netlink,
    link: &Link,
    profile: &Profile,
    saved: &mut Saved,
) -> Result<bool, LinkError> {
    let sums = damaged(profile, saved.directions);
    if profile.offload == Offload::Keep {
        // The kernel computes checksums of packets, which it has to segment for that.
        return Ok(segmenter::plan(link, [sums, sums], saved));
    }
    let [up, down] = DIRECTIONS.map(|d| {
        let any = profile
            .links_of(d)
            .any(|link| one_by_one(saved.engine, link));
        // A class decides on each packet. Pairs may get a rate and a loss at any time.
        let any = any || !profile.bottlenecks_of(d).is_empty();
        saved.directions[d as usize] && (any || profile.matrix.is_some())
    });
    let mut more = false;
    if up && saved.gso.is_none() && link.gso.max_segs > 1 {
        saved.gso = Some(link.gso);
        more = true;
    }
    if down && saved.offloads.is_none() {
        let merging = |name: &str| RECEIVE_MERGING.contains(&name);
        saved.offloads = Some(Offloads::snapshot(nl, link.index, merging)?);
        saved.lro_below = lro_below(nl, link)?;
        more = true;
    }
    Ok(segmenter::plan(link, [[up, down], sums], saved) || more)
}

/// Returns which members of a bond or team, or devices below a macvlan, have LRO, from the upper ones to the lower: the
/// kernel switches it off with that of the device (netdev_sync_lower_features()), and does not switch it on again.
fn lro_below(nl: &mut Netlink, link: &Link) -> Result<Vec<(u32, Offloads)>, LinkError> {
    let (mut with_lro, mut uppers) = (vec![], vec![link.clone()]);
    while let Some(upper) = uppers.pop() {
        let kind = upper.kind.as_deref();
        let is_bond = ["bond", "team"].map(Some).contains(&kind);
        if !is_bond && !["macvlan", "macvtap"].map(Some).contains(&kind) {
            continue;
        }
        for lower in nl.links()? {
            let is_peer = |peer: &Peer| peer.ifindex == lower.index && peer.netnsid.is_none();
            let is_below = match is_bond {
                true => lower.master == Some(upper.index),
                false => upper.peer.as_ref().is_some_and(is_peer),
            };
            if is_below {
                let lro = Offloads::snapshot(nl, lower.index, |name| name == "rx-lro")?;
                if lro != Offloads::default() {
                    with_lro.push((lower.index, lro));
                }
                uppers.push(lower);
            }
        }
    }
    Ok(with_lro)
}

/// Caps what is recorded, and adds to the notes what cannot be capped.
pub(crate) fn cap(
    nl: &mut Netlink,
    link: &Link,
    maps: &mut Maps,
    saved: &mut Saved,
) -> Result<(), LinkError> {
    segmenter::set_up(nl, link, maps, saved)?;
    if saved.gso.is_some() {
        // Another process may have changed the sizes since they were saved.
        let now = nl.link_by_index(link.index)?.gso;
        nl.set_gso(link.index, &Gso { max_segs: 1, ..now })?;
    }
    if let Some(offloads) = &saved.offloads {
        for still_on in offloads.cap(nl, link.index)? {
            let note = format!(
                "{still_on} cannot be switched off: all packets that it merged have the same fate"
            );
            if !saved.notes.contains(&note) {
                saved.notes.push(note);
            }
        }
    }
    Ok(())
}

/// Notes the effect of segmentation on this device.
pub(crate) fn note(link: &Link, profile: &Profile, saved: &Saved) -> Option<String> {
    let serves = segmenter::serves(link.loopback, saved.l3);
    if profile.offload == Offload::Keep {
        let sums = damaged(profile, saved.directions).contains(&true);
        return Some(format!(
            "offload keep: a super-packet of up to 64 KiB is lost, delayed and queued as one \
             (a [bottleneck] queues each of its packets); TCP under loss can be more than 10 times too fast{}",
            match serves && sums {
                true =>
                    "; not in a direction with `corrupt` that keeps checksums: there it is segmented",
                false => "",
            }
        ));
    }
    match serves {
        true => None,
        false => one_fate(profile, saved.directions),
    }
}

/// Notes in which directions a link without a segmenter decides packet by packet.
fn one_fate(profile: &Profile, directions: [bool; 2]) -> Option<String> {
    let is_one_by_one = |direction: &u32| {
        let any = profile.matrix.is_some() || profile.links_of(*direction).any(decides);
        directions[*direction as usize] && any
    };
    let which: Vec<_> = (DIRECTIONS.into_iter().filter(is_one_by_one))
        .map(abi::direction_name)
        .collect();
    (!which.is_empty()).then(|| {
        format!(
            "{}: a device without an Ethernet header, or loopback: all packets of a super-packet (UDP GSO, or merged by \
             another device) have one fate (`emud show` counts them, and a run with such packets is invalid)",
            which.join(" and ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_a_segmenter_is_noted_for_each_direction() {
        let note = |text: &str, directions| {
            let profile = Profile::parse(text, "x").unwrap();
            let note = one_fate(&profile, directions)?;
            Some(note.split_once(':').unwrap().0.to_owned())
        };
        let (up, both) = ("[up]\nloss = \"1%\"\n", "[link]\nrate = \"8Mbit\"\n");
        let of_a_rule = "[links.x.down]\nloss = \"1%\"\n[[rule]]\nmatch = { protocol = \"udp\" }\nlink = \"x\"\n";
        for (text, directions, wanted) in [
            (up, [true; 2], Some("up")),
            (up, [false, true], None),
            (both, [true; 2], Some("up and down")),
            (both, [true, false], Some("up")),
            (both, [false, true], Some("down")),
            (of_a_rule, [true; 2], Some("down")),
            ("[link]\ndelay = \"5ms\"\n", [true; 2], None),
        ] {
            assert_eq!(
                note(text, directions).as_deref(),
                wanted,
                "{text}{directions:?}"
            );
        }
    }
}
