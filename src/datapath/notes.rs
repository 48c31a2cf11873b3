// SPDX-License-Identifier: MIT OR Apache-2.0
//! What attach and `set` say about a link: what it does not do on this device, and what others do there.

use std::{fs, iter};

use super::engine::Engine;
use super::programs::{is_by_tcx, place_of};
use super::saved::Saved;
use super::{LinkError, hook, segmenter, segments};
use crate::abi::{DIRECTIONS, EMUD_DOWN, direction_name};
use crate::netlink::{self, Link, Netlink, Peer, tcx_programs};
use crate::profile::{self, Profile};

/// Notes the effect of other programs on the device.
pub(super) fn others(
    nl: &mut Netlink,
    link: &Link,
    engine: Engine,
    directions: [bool; 2],
    notes: &mut Vec<String>,
) -> Result<(), LinkError> {
    for direction in DIRECTIONS.into_iter().filter(|d| directions[*d as usize]) {
        let hook = hook(direction);
        let later = is_by_tcx(engine, direction);
        let programs = tcx_programs(link.index, hook)?;
        for program in programs.into_iter().filter(|_| !later) {
            notes.push(format!(
                "{}: the tcx program {} (id {}) runs before emud: a packet that it passes with TCX_PASS is not emulated",
                direction_name(direction), program.name, program.id
            ));
        }
        if place_of(engine, hook) == netlink::FilterOrder::Last
            && !nl.filters(link.index, hook)?.is_empty()
        {
            notes.push(format!(
                "{}: other filters run before emud: a packet that they accept with TC_ACT_OK is not emulated",
                direction_name(direction)
            ));
        }
    }
    Ok(())
}

/// Notes what a profile does not do on this device.
pub(super) fn effects(link: &Link, profile: &Profile, saved: &Saved) -> Vec<String> {
    let notes = [
        segments::note(link, profile, saved),
        damage_note(
            (&link.name, link.loopback),
            saved.l3,
            saved.engine,
            saved.directions,
            profile,
        ),
        copies_note(profile, saved.mirred_pref.is_some(), saved.l3),
        neighbours_note(profile, saved.directions).filter(|_| !saved.l3),
    ];
    notes.into_iter().flatten().collect()
}

/// Replaces the notes on the effects of one profile by those of the next one.
pub(super) fn renew_effects(link: &Link, [from, to]: [&Profile; 2], saved: &mut Saved) {
    let old = effects(link, from, saved);
    let new = effects(link, to, saved);
    saved.notes.retain(|note| !old.contains(note));
    saved.notes.extend(new);
}

/// Notes protocols on the device that engines fq and qdisc do not see as IP, as far as its other devices and its
/// settings show them.
pub(super) fn not_ip(
    nl: &mut Netlink,
    link: &Link,
    engine: Engine,
    [up, down]: [bool; 2],
) -> Result<Option<String>, LinkError> {
    if !engine.is_stamped() {
        return Ok(None);
    }
    let links = nl.links()?;
    let tagged = |below: u32| {
        let is_below = move |peer: &Peer| peer.ifindex == below && peer.netnsid.is_none();
        (links.iter())
            .filter(|upper| upper.kind.as_deref() == Some("vlan"))
            .filter(move |upper| upper.peer.as_ref().is_some_and(is_below))
    };
    let tagged_twice = tagged(link.index).flat_map(|outer| tagged(outer.index));
    let mut kinds: Vec<_> = tagged_twice
        .map(|inner| format!("two VLAN tags ({})", inner.name))
        .collect();
    // Behind a tag they are not IP, either. A kernel without these protocols has no such files.
    let sessions = fs::read_to_string("/proc/thread-self/net/pppoe").unwrap_or_default();
    for device in iter::once(link).chain(tagged(link.index)) {
        if has_pppoe(&sessions, &device.name) {
            kinds.push(format!("PPPoE ({})", device.name));
        }
        let mpls = format!("/proc/sys/net/mpls/conf/{}/input", device.name);
        if fs::read_to_string(mpls).is_ok_and(|input| input.trim() != "0") {
            kinds.push(format!("MPLS ({})", device.name));
        }
    }
    if kinds.is_empty() {
        return Ok(None);
    }
    let effects = [
        (down, "down: packets pass without emulation"),
        (
            up,
            "up: a local TCP sender has about two packets of each flow in flight",
        ),
    ];
    let effects = effects.into_iter().filter(|(concerned, _)| *concerned);
    let effects: Vec<_> = effects.map(|(_, what)| what).collect();
    Ok(Some(format!(
        "{} on {}: not IP to engine {engine}; {}; `emud show` counts them; use --engine hold",
        kinds.join(", "),
        link.name,
        effects.join("; ")
    )))
}

/// Notes receive flow steering on the device: the classifier's hash (bpf/release_stamp.h) is also that of get_rps_cpu().
pub(super) fn steering(link: &Link, engine: Engine, [_, down]: [bool; 2]) -> Option<String> {
    let name = &link.name;
    (down && engine.is_stamped() && netlink::steers_flows(name)).then(|| {
        format!(
            "down: RFS is enabled on {name}: engine {engine} gives all flows of a link in order the same lower half of \
             the hash, so RFS steers all of them to one CPU; write 0 to /sys/class/net/{name}/queues/rx-*/rps_flow_cnt, \
             or use --engine hold"
        )
    })
}

/// Returns whether /proc/net/pppoe lists a session of the device: an id, an address, and the device.
fn has_pppoe(sessions: &str, device: &str) -> bool {
    let sessions = sessions.lines().skip(1);
    let mut devices = sessions.filter_map(|line| line.split_whitespace().nth(2));
    devices.any(|name| name == device)
}

/// Notes copies that this kernel never makes: a second pass of ingress would remove the header that the
/// ifb needs.
fn copies_note(profile: &Profile, by_mirred: bool, l3: bool) -> Option<String> {
    let copied = (profile.links_of(EMUD_DOWN)).any(|link| link.duplicate.probability > 0.0);
    (by_mirred && l3 && copied).then(|| {
        "duplicate: on this kernel engine fq cannot copy what a device without an Ethernet header receives \
         (`emud show` counts it, and a run with such packets is invalid); use --engine hold"
            .to_owned()
    })
}

/// Notes that ARP has no rule: what is spared has no connection without the address of its neighbour.
fn neighbours_note(profile: &Profile, directions: [bool; 2]) -> Option<String> {
    let mut links = DIRECTIONS
        .into_iter()
        .filter(|d| directions[*d as usize])
        .flat_map(|d| profile.links_of(d));
    let emulated = links.any(|link| link.neighbours == profile::Neighbours::Emulate);
    (emulated && profile.spares()).then(|| {
        "spare: ARP and neighbour discovery go through the link (neighbours = \"emulate\"), so traffic that is spared \
         ends if they are lost; use neighbours = \"pass\""
            .to_owned()
    })
}

/// Notes what corrupt does not damage on a device without a segmenter.
fn damage_note(
    (name, loopback): (&str, bool),
    l3: bool,
    engine: Engine,
    directions: [bool; 2],
    profile: &Profile,
) -> Option<String> {
    let [up, down] = segments::damaged(profile, directions);
    if segmenter::serves(loopback, l3) || !(up || down) {
        return None;
    }
    // As bpf/alter.h has it (emud_unnoticed()).
    let which = match engine.is_stamped() && (down || loopback) {
        true => "what this host sends is not damaged",
        false => "SCTP, and what this host sends in a tunnel (VXLAN, Geneve, GRE), is not damaged",
    };
    let instead = match loopback {
        true => "use a veth (`emud run`)",
        false => "run on the device that it is sent to: ethtool -K DEVICE tx off",
    };
    Some(format!(
        "corrupt: {which} if its checksum is computed after {name} or never, so that no receiver would notice \
         (`emud show` counts it, and a run with such packets is invalid); {instead}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_pppoe_are_found_by_their_device() {
        let sessions = "Id       Address              Device\n\
                        00000100 02:00:00:00:00:01     va\n";
        assert!(has_pppoe(sessions, "va"));
        assert!(!has_pppoe(sessions, "Device") && !has_pppoe("", "va"));
    }

    #[test]
    fn copies_that_are_never_made_are_noted() {
        let noted = |text: &str, by_mirred, l3| {
            let profile = Profile::parse(text, "x").unwrap();
            copies_note(&profile, by_mirred, l3).is_some()
        };
        let down = "[down]\nduplicate = \"10%\"\n";
        assert!(noted(down, true, true));
        assert!(!noted(down, true, false) && !noted(down, false, true));
        assert!(!noted("[up]\nduplicate = \"10%\"\n", true, true));
    }

    #[test]
    fn neighbours_of_spared_traffic_are_noted() {
        let noted = |text: &str, spare: bool, directions| {
            let mut profile = Profile::parse(text, "x").unwrap();
            if spare {
                profile.spare("192.0.2.7".parse().unwrap());
            }
            neighbours_note(&profile, directions).is_some()
        };
        let up = "[up]\nneighbours = \"emulate\"\n";
        assert!(noted(up, true, [true, false]));
        assert!(!noted(up, true, [false, true]) && !noted(up, false, [true; 2]));
        assert!(!noted("[link]\nloss = \"100%\"\n", true, [true; 2]));
    }

    #[test]
    fn damage_that_no_receiver_notices_is_noted_for_each_engine_and_device() {
        let note = |text: &str, (l3, loopback), engine, directions| {
            let profile = Profile::parse(text, "x").unwrap();
            damage_note(("va", loopback), l3, engine, directions, &profile)
        };
        let (ethernet, l3, lo) = ((false, false), (true, false), (false, true));
        let up = "[up]\ncorrupt = \"1%\"\n";
        let down = "[down]\ncorrupt = \"1%\"\n";
        let mended = "[link]\ncorrupt = { probability = \"1%\", checksum = \"mend\" }\n";
        let (tunnels, all) = (Some("corrupt: SCTP"), Some("corrupt: what this host"));
        for (text, device, engine, directions, wanted) in [
            (up, ethernet, Engine::Fq, [true; 2], None),
            (down, ethernet, Engine::Qdisc, [true; 2], None),
            (up, ethernet, Engine::Hold, [true; 2], None),
            (up, l3, Engine::Fq, [true; 2], tunnels),
            (down, l3, Engine::Fq, [true; 2], all),
            (down, l3, Engine::Hold, [true; 2], tunnels),
            (up, lo, Engine::Qdisc, [true; 2], all),
            (up, l3, Engine::Fq, [false, true], None),
            (mended, l3, Engine::Fq, [true; 2], None),
        ] {
            let found = note(text, device, engine, directions);
            let right = match wanted {
                Some(begin) => found.as_ref().is_some_and(|note| note.starts_with(begin)),
                None => found.is_none(),
            };
            assert!(right, "{text}{device:?} {engine:?}: {found:?}");
        }
    }
}
