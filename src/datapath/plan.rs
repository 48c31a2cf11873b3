// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plans what attach will change, and reads the current state, before anything is changed.

use std::net::IpAddr;
use std::path::Path;
use std::thread::available_parallelism;
use std::time::Duration;

use super::compiled::Origin;
use super::engine::{Chosen, Engine, EngineChoice, Kernel, Needs, fq, qdisc};
use super::maps::DatapathError;
use super::programs::uses_clsact;
use super::saved::Saved;
use super::stage::compile::Compiled;
use super::stage::service;
use super::stage::sizes::Sizes;
use super::stage::timeline;
use super::{LinkError, devices, engine, notes, segments, sweep};
use crate::abi::{DIRECTIONS, EMUD_UP};
use crate::host::{btf, cgroup, now_ns, random_seed};
use crate::netlink::{self, Hook, Link, Netlink, RootSnapshot};
use crate::profile::{self, Profile};

/// A request to attach a profile to an interface.
#[derive(Debug, Clone)]
pub struct Request {
    /// Name of the interface.
    pub interface: String,
    /// The profile in the direction of the interface.
    pub profile: Profile,
    /// Seed of random decisions; `None`: the profile's, or a random one.
    pub seed: Option<u64>,
    /// Indexed by `EMUD_UP`, `EMUD_DOWN`; at least one.
    pub directions: [bool; 2],
    /// Whether `profile` is already reversed, for the record.
    pub reversed: bool,
    /// The engine requested.
    pub engine: EngineChoice,
    /// Whether to remove a root qdisc that a user configured; detach restores it.
    pub replace: bool,
    /// Time after which the link ends by itself; `None`: it does not.
    pub lasts: Option<Duration>,
    /// When it ends instead, in ns of CLOCK_MONOTONIC: that of the link before it.
    pub ends_at: Option<u64>,
    /// Whether the interface may outlive the link: what detach restores is then kept in a file, too.
    pub outlives: bool,
    /// The resolvers of a container, whose answers count beside those of the resolvers of this host;
    /// `None`: no container.
    pub resolvers: Option<Vec<IpAddr>>,
}

/// Returns the seed and the time with which a link begins.
pub(super) fn origin(request: &Request) -> Origin {
    let seed = request.seed.or(request.profile.seed);
    Origin {
        // The time since boot cannot fail; it is sufficient as a seed.
        seed: seed.unwrap_or_else(|| random_seed().unwrap_or_else(|_| now_ns() & 0xffff_ffff)),
        epoch_ns: now_ns(),
        restarted_ns: None,
    }
}

/// Returns what the links of a profile need of the engine on an interface.
pub(super) fn needs(
    nl: &mut Netlink,
    link: &Link,
    request: &Request,
    links: &[Vec<Compiled>; 2],
) -> Needs {
    let profile = &request.profile;
    let directions = request.directions;
    let queues = match directions[EMUD_UP as usize] && !fq::in_order(&links[EMUD_UP as usize]) {
        true => nl.transmit_queues(link).min(cpus()),
        false => 1,
    };
    let instances = Sizes::of(profile).instances;
    let (plans, unserved) = match service::compile(profile, directions) {
        Ok(plans) => (plans, None),
        Err(why) => (Default::default(), Some(why)),
    };
    Needs {
        classes: profile.services() as u32,
        unserved,
        queues,
        waiting: qdisc::waiting(links, &plans, directions, instances, profile.pairs()),
        longest_ns: (links.iter().zip(directions))
            .filter(|(_, emulated)| *emulated)
            .map(|(links, _)| fq::longest_ns(links, instances, profile.pairs()))
            .max()
            .unwrap_or(0),
    }
}

fn cpus() -> u32 {
    // Unknown: there may be several.
    available_parallelism().map_or(u32::MAX, |cpus| cpus.get() as u32)
}

/// Returns the engine, and rejects what it or this kernel cannot do for the profile.
pub(super) fn choose(
    link: &Link,
    request: &Request,
    needs: &Needs,
    kernel: &mut Kernel,
) -> Result<Chosen, LinkError> {
    let chosen =
        engine::choose(request.engine, needs, kernel).map_err(|why| match request.engine {
            EngineChoice::Qdisc => LinkError::NoQdisc(why),
            _ => LinkError::NoFq(why),
        })?;
    if request.profile.blocks() && chosen.engine != Engine::Qdisc {
        return Err(LinkError::CannotBlock {
            interface: link.name.clone(),
            engine: chosen.engine,
            reason: chosen.reason(),
        });
    }
    if chosen.engine == Engine::Hold && link.loopback {
        return Err(LinkError::HeldLoopback {
            interface: link.name.clone(),
        });
    }
    can_change_packets(link, &request.profile)?;
    can_match_cgroups(link, &request.profile, request.directions)?;
    Ok(chosen)
}

/// Plans the changes and reads the current state. Changes nothing.
pub(super) fn plan(
    nl: &mut Netlink,
    link: &Link,
    request: &Request,
    origin: Origin,
    needs: &Needs,
    kernel: &mut Kernel,
) -> Result<Saved, LinkError> {
    if let Some(of) = devices::serves(link) {
        return Err(LinkError::OwnDevice {
            interface: link.name.clone(),
            of,
        });
    }
    let l3 = layer3(link)?;
    let chosen = choose(link, request, needs, kernel)?;
    let engine = chosen.engine;
    let mut notes = swept(nl)?;
    let [up, down] = request.directions;
    let devices = devices::names(engine, request.directions, link.index);
    free(nl, devices.iter().flatten())?;
    let root_taken = up && (engine.is_stamped() || nl.root_by_hand(link.index)?.is_some());
    let root = if up {
        root(nl, link, request.replace)?
    } else {
        None
    };
    if root.is_some() {
        notes.push("the root qdisc configured by hand is removed; detach restores it".to_owned());
    }
    notes::others(nl, link, engine, request.directions, &mut notes)?;
    notes.extend(notes::not_ip(nl, link, engine, request.directions)?);
    notes.extend(notes::steering(link, engine, request.directions));
    let qdisc_room = match engine {
        Engine::Qdisc => qdisc::room(needs.waiting),
        Engine::Fq | Engine::Hold => 0,
    };
    if engine == Engine::Qdisc {
        notes.extend(qdisc::lacks_room(qdisc_room, needs.waiting));
    }
    let mut saved = Saved {
        profile: timeline::kept(&request.profile).to_toml(),
        seed: origin.seed,
        engine,
        reason: chosen.reason(),
        directions: request.directions,
        sizes: Sizes::of(&request.profile),
        reversed: request.reversed,
        notes,
        epoch_ns: origin.epoch_ns,
        attached_ns: None,
        restarted_ns: origin.restarted_ns,
        l3,
        mtu: Some(link.mtu),
        txqlen_zero: link.txqlen == 0,
        clsact_created: uses_clsact(engine, request.directions)
            && nl.ingress_qdisc(link.index)? == netlink::IngressQdisc::None,
        devices,
        mirred_pref: match chosen.to_ifb {
            fq::ToIfb::Mirred if engine == Engine::Fq && down => Some(mirred_pref(nl, link)?),
            _ => None,
        },
        ahead: Default::default(),
        hold_limits: [0; 2],
        outlives: request.outlives,
        bottlenecks: Default::default(),
        root_taken,
        root,
        gso: None,
        offloads: None,
        lro_below: vec![],
        fq_room: Default::default(),
        qdisc_room,
        segmenter: None,
    };
    segments::plan(nl, link, &request.profile, &mut saved)?;
    let segmenter = saved.segmenter.iter().flat_map(|s| &s.ends);
    free(nl, segmenter)?;
    let effects = notes::effects(link, &request.profile, &saved);
    saved.notes.extend(effects);
    Ok(saved)
}

/// Rejects what this kernel does not support instead of ignoring it.
pub(crate) fn can_change_packets(link: &Link, profile: &Profile) -> Result<(), LinkError> {
    match changes_packets(profile) {
        Some(key) if !Path::new(btf::KERNEL).exists() => Err(LinkError::NoBtf {
            interface: link.name.clone(),
            key,
        }),
        _ => Ok(()),
    }
}

/// Rejects control groups that do not exist, and whose packets the classifier could not find.
pub(crate) fn can_match_cgroups(
    link: &Link,
    profile: &Profile,
    directions: [bool; 2],
) -> Result<(), LinkError> {
    if !profile.names_cgroups() {
        return Ok(());
    }
    let interface = link.name.clone();
    if !directions[EMUD_UP as usize] {
        return Err(LinkError::CgroupsNeedUp { interface });
    }
    // Without it, a packet of the kernel would be one of the process that created the namespace.
    if btf::FIELDS.kernel_sock.is_none() {
        let key = "match.cgroup";
        return Err(LinkError::NoBtf { interface, key });
    }
    let groups = profile
        .rules
        .iter()
        .filter_map(|rule| rule.matches.cgroup.clone());
    cgroup::open(&groups.collect::<Vec<_>>()).map_err(DatapathError::from)?;
    Ok(())
}

/// Returns the key by which the profile changes or copies packets: the classifier only changes
/// packets without further references, which it detects with the kernel's BTF (bpf/core.h).
fn changes_packets(profile: &Profile) -> Option<&'static str> {
    let mut links = DIRECTIONS.into_iter().flat_map(|d| profile.links_of(d));
    links.find_map(|link| {
        let corrupts = link.corrupt.probability > 0.0;
        let copies = link.duplicate.probability > 0.0;
        corrupts
            .then_some("corrupt")
            .or(copies.then_some("duplicate"))
            .or((link.reset > 0.0).then_some("reset"))
    })
}

/// Rejects names that other devices have: undo deletes by name.
fn free<'a>(
    nl: &mut Netlink,
    names: impl IntoIterator<Item = &'a String>,
) -> Result<(), LinkError> {
    for name in names {
        if nl.find_link(name)?.is_some() {
            return Err(LinkError::NameTaken { name: name.clone() });
        }
    }
    Ok(())
}

fn swept(nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
    let names = sweep::sweep(nl)?;
    let note = |name| format!("deleted {name}, which a deleted device left behind");
    Ok(names.into_iter().map(note).collect())
}

/// Returns the preference directly after the classifier, which is after all other filters.
fn mirred_pref(nl: &mut Netlink, link: &Link) -> Result<u16, LinkError> {
    let last = nl.free_pref(link.index, Hook::Ingress, netlink::FilterOrder::Last)?;
    last.and_then(|pref| pref.checked_add(1))
        .ok_or_else(|| LinkError::NoPlace {
            interface: link.name.clone(),
            hook: Hook::Ingress.name(),
        })
}

/// Phases are separate links: a change of the profile's own link, except `state`, would never be
/// active.
pub(super) fn only_phases_change(
    link: &Link,
    before: &Profile,
    after: &Profile,
) -> Result<(), LinkError> {
    if after.phases.list.is_empty() {
        return Ok(());
    }
    let same = |before: &profile::Link, after: &profile::Link| {
        let state = profile::Link {
            state: after.state,
            ..before.clone()
        };
        state == *after
    };
    let named = before.links == after.links || !after.rules.is_empty();
    if named && same(&before.up, &after.up) && same(&before.down, &after.down) {
        return Ok(());
    }
    Err(LinkError::Phased(link.name.clone()))
}

/// Returns the root qdisc to restore, if a user configured one.
fn root(nl: &mut Netlink, link: &Link, replace: bool) -> Result<Option<RootSnapshot>, LinkError> {
    let Some(root) = nl.root_by_hand(link.index)? else {
        return Ok(None);
    };
    if !replace {
        return Err(LinkError::ByHand {
            interface: link.name.clone(),
            kind: root.kind,
            handle: netlink::show_handle(root.handle),
        });
    }
    Ok(RootSnapshot::take(nl, link.index)?)
}

/// Returns whether the device's packets begin with IP; the list is dev_is_mac_header_xmit().
fn layer3(link: &Link) -> Result<bool, LinkError> {
    // Missing in libc.
    const ARPHRD_RAWIP: u16 = 519;
    const ARPHRD_IP6GRE: u16 = 823;
    match link.arphrd {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(false),
        libc::ARPHRD_NONE
        | libc::ARPHRD_TUNNEL
        | libc::ARPHRD_TUNNEL6
        | libc::ARPHRD_SIT
        | libc::ARPHRD_IPGRE
        | libc::ARPHRD_PPP
        | ARPHRD_RAWIP
        | ARPHRD_IP6GRE => Ok(true),
        arphrd => Err(LinkError::UnknownLayer {
            interface: link.name.clone(),
            arphrd,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_packets_is_found_in_every_link() {
        let changes = |text: &str| changes_packets(&Profile::parse(text, "x").unwrap());
        assert_eq!(changes("[up]\ndelay = \"1ms\"\n"), None);
        assert_eq!(changes("[down]\ncorrupt = \"1%\"\n"), Some("corrupt"));
        assert_eq!(changes("[up]\nduplicate = \"1%\"\n"), Some("duplicate"));
        assert_eq!(changes("[up]\nreset = \"1%\"\n"), Some("reset"));
    }
}
