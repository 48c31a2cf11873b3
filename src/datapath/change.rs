// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud set`: change a running link.

use super::attachment::Attachment;
use super::compiled::{compile_rules, compile_there};
use super::engine::{Engine, fq, qdisc};
use super::maps::{DatapathError, Loaded, Prepared};
use super::saved::Saved;
use super::stage::compile::Compiled;
use super::stage::sizes::Sizes;
use super::stage::{features, timeline};
use super::{LinkError, attachment, filters, held, notes, plan, programs, segments, served, undo};
use crate::abi::{DIRECTIONS, direction_name};
use crate::host::{interface, now_ns};
use crate::netlink::{Link, Netlink};
use crate::profile::{self, Pair, Profile};

/// Restarts the time of all traces and phases now.
const RESTART: &str = "trace.restart";

/// Applies `[up.|down.]KEY=VALUE` assignments, all at once: a packet sees either the old or the new
/// link. Counters, the queue and packets in flight are kept. `trace.restart` is a command and not
/// an assignment, applied with them. Returns the notes that the link did not have before.
///
/// # Errors
/// Nothing is attached, or an assignment is invalid; nothing changes then.
pub fn change(interface: &str, assignments: &[String]) -> Result<Vec<String>, LinkError> {
    Change::prepare(interface, assignments, |before, all| {
        Ok(before.with_changes(all)?)
    })?
    .apply()
}

/// A change that is written into the kernel and not yet active. The link has its lock until then.
pub struct Change {
    nl: Netlink,
    link: Link,
    there: Attachment,
    both: [Vec<Compiled>; 2],
    prepared: Prepared,
    before: Profile,
    after: Profile,
    /// Whether traces and phases restart with the change.
    restarts: bool,
    /// What a failed change puts back.
    restarted_before: Option<u64>,
    new_rules: bool,
    caps: bool,
    _lock: interface::InterfaceLock,
}

impl Change {
    /// Examines and writes assignments of [`change`]; if the value is dropped, nothing changes.
    /// `changed` applies them to the profile, and reads the files that they name.
    ///
    /// # Errors
    /// As [`change`], and those of `changed`.
    pub fn prepare(
        interface: &str,
        assignments: &[String],
        changed: impl FnOnce(&Profile, &[String]) -> Result<Profile, LinkError>,
    ) -> Result<Self, LinkError> {
        let mut nl = Netlink::open()?;
        let link = nl.link(interface)?;
        let lock = interface::lock(link.index, interface::PATIENCE)?;
        let mut there = attachment::running(&mut nl, &link)?;
        let before = Profile::parse(&there.saved.profile, "the profile in the kernel")?;
        let restarted_before = there.saved.restarted_ns;
        let (restarts, assignments): (Vec<_>, Vec<_>) =
            (assignments.iter().cloned()).partition(|a| a.trim() == RESTART);
        if !restarts.is_empty() {
            if !before.is_timed() {
                return Err(LinkError::NoTime(link.name));
            }
            there.saved.restarted_ns = Some(now_ns());
        }
        let after = changed(&before, &assignments)?;
        has_room(&link, &there.saved, &before, &after)?;
        are_emulated(&link, &there.saved, &assignments)?;
        plan::only_phases_change(&link, &before, &after)?;
        plan::can_change_packets(&link, &after)?;
        plan::can_match_cgroups(&link, &after, there.saved.directions)?;
        let both = compile_there(&there.maps, &after, &there.saved)?;
        if there.saved.engine == Engine::Hold {
            let needed = held::needs(&after, &both, there.saved.directions);
            for (needed, limit) in needed.into_iter().zip(there.saved.hold_limits) {
                held::fits(&link.name, needed, limit)?;
            }
        }
        let caps = segments::plan(&mut nl, &link, &after, &mut there.saved)?;
        // Reservations that can fail come before anything is active.
        let prepared = prepare(&mut nl, &link, &mut there, &both, &after)?;
        Ok(Self {
            new_rules: before.rules != after.rules,
            restarts: !restarts.is_empty(),
            restarted_before,
            before,
            after,
            nl,
            link,
            there,
            both,
            prepared,
            caps,
            _lock: lock,
        })
    }

    /// Activates it. Returns the notes that the link did not have before.
    ///
    /// # Errors
    /// The kernel returns an error; nothing changes then, except with
    /// [`DatapathError::GracePeriod`]: the link is the new one.
    pub fn apply(mut self) -> Result<Vec<String>, LinkError> {
        let known = self.there.saved.notes.clone();
        let done = self.enforce(None);
        let counted = match &done {
            Err(error) if !is_in_force(error) => Ok(()),
            _ => self.counted_anew(),
        };
        done.and(counted)?;
        let mut notes = self.there.saved.notes;
        notes.retain(|note| !known.contains(note));
        Ok(notes)
    }

    /// Activates it with the first packet at or after `at_ns` of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn schedule(mut self, at_ns: u64) -> Result<Scheduled, LinkError> {
        if self.restarts {
            // It was prepared when that time was not known.
            self.there.saved.restarted_ns = Some(at_ns);
            self.both = compile_there(&self.there.maps, &self.after, &self.there.saved)?;
            self.prepared = prepare(
                &mut self.nl,
                &self.link,
                &mut self.there,
                &self.both,
                &self.after,
            )?;
        }
        self.enforce(Some(at_ns))?;
        Ok(Scheduled(self))
    }

    fn enforce(&mut self, at_ns: Option<u64>) -> Result<(), LinkError> {
        let there = &mut self.there;
        served::remember(&mut there.saved, &self.before);
        // The record lists what detach has to revert before it is done.
        record(&self.link, there, [&self.before, &self.after])?;
        let new = (self.prepared, at_ns);
        let done = put_in_force(&mut self.nl, &self.link, there, &self.both, new, self.caps);
        if done.as_ref().is_err_and(|e| !is_in_force(e)) {
            there.saved.restarted_ns = self.restarted_before;
            record(&self.link, there, [&self.after, &self.before])?;
        }
        done
    }

    fn counted_anew(&mut self) -> Result<(), LinkError> {
        if self.new_rules {
            self.there.maps.clear_hits()?;
        }
        Ok(())
    }
}

/// Records the second profile in place of the first one.
fn record(link: &Link, there: &mut Attachment, profiles: [&Profile; 2]) -> Result<(), LinkError> {
    notes::renew_effects(link, profiles, &mut there.saved);
    there.saved.profile = timeline::kept(profiles[1]).to_toml();
    there.saved.write(&mut there.maps)
}

/// Returns whether only what follows the activation has failed.
fn is_in_force(error: &LinkError) -> bool {
    matches!(error, LinkError::Datapath(DatapathError::GracePeriod(_)))
}

/// A change that the kernel makes at its time, whether or not this process is there.
pub struct Scheduled(Change);

impl Scheduled {
    /// Completes it after its time, for which it does not wait.
    ///
    /// # Errors
    /// The kernel returns an error; the link is the new one nevertheless.
    pub fn settle(mut self) -> Result<(), LinkError> {
        self.0.there.maps.settle()?;
        self.0.counted_anew()
    }
}

/// Checks that the changed profile fits into the maps, which were made for the link of the attach.
fn has_room(
    link: &Link,
    saved: &Saved,
    before: &Profile,
    after: &Profile,
) -> Result<(), LinkError> {
    served::check(link, saved, before, after)?;
    let joins = after.joins_directions() && !before.joins_directions();
    let joins = joins.then_some("a bottleneck that both directions share");
    match saved.sizes.lacks(&Sizes::of(after)).or(joins) {
        Some(what) => Err(LinkError::NoRoom {
            interface: link.name.clone(),
            what,
        }),
        None => Ok(()),
    }
}

/// Rejects an assignment to a direction that is not emulated, which would have no effect.
fn are_emulated(link: &Link, saved: &Saved, assignments: &[String]) -> Result<(), LinkError> {
    for argument in assignments {
        if let Some(direction) = profile::direction_of(argument)
            && !saved.directions[direction as usize]
        {
            return Err(LinkError::NotEmulated {
                argument: argument.clone(),
                direction: direction_name(direction),
                interface: link.name.clone(),
            });
        }
    }
    Ok(())
}

/// Makes the time of all traces, phases and jitter begin at `mono_ns` of CLOCK_MONOTONIC, which may
/// be in the future: until then the first row, phase and knot hold. From there on the kernel counts,
/// and no process has to be punctual.
///
/// # Errors
/// Nothing is attached, or the kernel returns an error; nothing changes then.
pub fn begin_at(interface: &str, mono_ns: u64) -> Result<(), LinkError> {
    let mut nl = Netlink::open()?;
    let link = nl.link(interface)?;
    let _lock = interface::lock(link.index, interface::PATIENCE)?;
    let mut there = attachment::running(&mut nl, &link)?;
    let profile = Profile::parse(&there.saved.profile, "the profile in the kernel")?;
    (there.saved.attached_ns).get_or_insert(there.saved.epoch_ns);
    there.saved.epoch_ns = mono_ns;
    there.saved.restarted_ns = None;
    let both = compile_there(&there.maps, &profile, &there.saved)?;
    let prepared = prepare(&mut nl, &link, &mut there, &both, &profile)?;
    put_in_force(&mut nl, &link, &mut there, &both, (prepared, None), false)
}

/// Writes the links. Before that, if they need more than the classifier was loaded for, another one
/// replaces it, which treats the active links alike.
fn prepare(
    nl: &mut Netlink,
    link: &Link,
    there: &mut Attachment,
    both: &[Vec<Compiled>; 2],
    profile: &Profile,
) -> Result<Prepared, LinkError> {
    let rules = compile_rules(profile)?;
    let both = [&both[0][..], &both[1][..]];
    let has = there.maps.control()?.features;
    let needed = has | features::of(both);
    if needed != has {
        let saved = &there.saved;
        let emulating = programs::emulating(saved.engine, saved.directions);
        let mut again = Loaded::load_again(there.program_id, &emulating, &saved.sizes, needed)?;
        replace_classifier(nl, link, saved, &again)?;
        there.program_id = again.main_id()?;
        // Last: a change that was interrupted is repeated. With the maps of the new features.
        there.maps = again.maps()?;
    }
    served::hand_over(link, there, profile)?;
    Ok(there.maps.prepare(both, &rules)?)
}

/// Replaces the classifier in all filters that keep it: the kernel then frees the previous one.
fn replace_classifier(
    nl: &mut Netlink,
    link: &Link,
    saved: &Saved,
    again: &Loaded,
) -> Result<(), LinkError> {
    for ours in attachment::filters(nl, link.index)? {
        filters::replace(nl, link.index, &ours, saved.engine, again)?;
    }
    for device in saved.devices.iter().flatten() {
        if let Some(device) = nl.find_link(device)? {
            nl.replace_bpf_filter(device.index, &filters::keeper(again)?)?;
        }
    }
    Ok(())
}

/// Reserves space, then activates the links.
fn put_in_force(
    nl: &mut Netlink,
    link: &Link,
    there: &mut Attachment,
    both: &[Vec<Compiled>; 2],
    (prepared, at_ns): (Prepared, Option<u64>),
    caps: bool,
) -> Result<(), LinkError> {
    make_room(nl, link, there, both, &[])?;
    if caps && there.saved.outlives {
        undo::keep(link, &there.maps, &mut there.saved);
    }
    // All that the record has: an earlier change may have failed behind it.
    segments::cap(nl, link, &mut there.maps, &mut there.saved)?;
    // With the room, and notes on what could not be capped.
    there.saved.write(&mut there.maps)?;
    match at_ns {
        None => there.maps.enforce(prepared)?,
        Some(at_ns) => there.maps.enforce_at(prepared, at_ns)?,
    }
    Ok(())
}

/// Makes room in the engine for changed links and new pairs before the first packet uses them.
pub(crate) fn make_room(
    nl: &mut Netlink,
    link: &Link,
    there: &mut Attachment,
    both: &[Vec<Compiled>; 2],
    new: &[Pair],
) -> Result<(), LinkError> {
    if there.saved.engine == Engine::Hold {
        return Ok(());
    }
    // Removed pairs may have packets in flight: include space for them.
    let mut pairs = there.maps.pairs_in_force()?;
    pairs.extend(new);
    match there.saved.engine {
        Engine::Qdisc => note_room(there, both, &pairs)?,
        _ => resize_fq(nl, link, &mut there.saved, both, &pairs)?,
    }
    Ok(())
}

/// Reserves space in fq for a longer delay or queue. The space is never released: packets of the previous link are still in fq, which would drop new ones because
/// of them.
fn resize_fq(
    nl: &mut Netlink,
    link: &Link,
    saved: &mut Saved,
    both: &[Vec<Compiled>; 2],
    pairs: &[Pair],
) -> Result<(), LinkError> {
    saved.notes.retain(|old| !old.starts_with(fq::TOO_LONG));
    for direction in DIRECTIONS
        .into_iter()
        .filter(|d| saved.directions[*d as usize])
    {
        let longest_ns = fq::longest_ns(&both[direction as usize], saved.sizes.instances, pairs);
        saved.notes.extend(fq::too_long(longest_ns));
        let options = fq::options(&both[direction as usize], saved.sizes.instances, pairs);
        let options = saved.fq_room[direction as usize].make(options);
        match &saved.devices[direction as usize] {
            Some(ifb) => {
                let ifb = nl.link(ifb)?;
                fq::resize(nl, &ifb, &options)?;
            }
            None => {
                let several = fq::resize(nl, link, &options)?;
                let notes = &mut saved.notes;
                notes.retain(|old| !old.starts_with(fq::OVERTAKES));
                notes.extend(fq::overtakes(several, &both[direction as usize]));
            }
        }
    }
    Ok(())
}

/// Notes whether changed links may need more room than the qdisc was made with.
fn note_room(
    there: &mut Attachment,
    links: &[Vec<Compiled>; 2],
    pairs: &[Pair],
) -> Result<(), LinkError> {
    let (saved, plans) = (&mut there.saved, there.maps.next_plans()?);
    let instances = saved.sizes.instances;
    let waiting = qdisc::waiting(links, &plans, saved.directions, instances, pairs);
    let notes = &mut saved.notes;
    notes.retain(|old| !old.starts_with(qdisc::LACKS_ROOM));
    notes.extend(qdisc::lacks_room(saved.qdisc_room, waiting));
    Ok(())
}
