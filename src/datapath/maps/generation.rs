// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two generations of links, of which the control word names the active one: a change writes the
//! other one, switches, and waits until no packet uses the previous one.

use std::iter;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketType, socket};

use super::{DatapathError, Maps, STRETCHES, at, batch};
use crate::abi;
use crate::datapath::stage::compile::Compiled;
use crate::datapath::stage::{alter, features, short};
use crate::profile::rule_keys;

/// Bits of the control word about the links in force.
const OF_LINKS: u32 = abi::EMUD_LINKS_GENERATION | short::ALL | alter::ALL;

/// A generation of links that is written and not yet active: its number, and what the classifier needs
/// to know of its links at once, as bits of the control word.
#[must_use]
#[derive(Debug, Clone, Copy)]
pub struct Prepared(u32);

impl Maps {
    /// Changes both directions between two packets: writes the inactive generation, switches the
    /// control word, and waits until no packet still uses the old generation (which the next change
    /// will overwrite).
    ///
    /// # Errors
    /// A map cannot be written; the active generation stays.
    pub fn apply(&mut self, both: [&[Compiled]; 2]) -> Result<(), DatapathError> {
        self.apply_with(both, &rule_keys::none())
    }

    /// Does [`Self::apply`] with the rules that choose the link of a packet.
    pub fn apply_with(
        &mut self,
        both: [&[Compiled]; 2],
        rules: &rule_keys::Compiled,
    ) -> Result<(), DatapathError> {
        let prepared = self.prepare(both, rules)?;
        self.enforce(prepared)
    }

    /// Writes the inactive generation.
    ///
    /// # Errors
    /// A map cannot be written or has no room, or the classifier lacks what the links need.
    pub fn prepare(
        &mut self,
        both: [&[Compiled]; 2],
        rules: &rule_keys::Compiled,
    ) -> Result<Prepared, DatapathError> {
        self.settle()?;
        let control = self.control()?;
        let lacks = features::of(both) & !control.features;
        if lacks != 0 {
            return Err(DatapathError::Lacks(lacks));
        }
        let next = (of_links(control) + 1) % abi::EMUD_GENERATIONS;
        let in_force = self.timelines()?;
        let all = both.into_iter().flatten();
        let mut timelines = self.rows.place(&in_force, all)?.into_iter();
        for (direction, links) in (0..).zip(both) {
            for ((number, compiled), timeline) in (0..).zip(links).zip(&mut timelines) {
                let slot = slot(direction, next) + number * abi::EMUD_SLOTS;
                self.tables
                    .set(slot, *compiled.table, 0)
                    .map_err(at("emud_tables"))?;
                if let Some(pattern) = &compiled.pattern {
                    self.patterns
                        .set(slot, **pattern, 0)
                        .map_err(at("emud_patterns"))?;
                }
                if let Some(stretches) = &compiled.stretches {
                    self.begin_background(control, number, direction)?;
                    let first = slot * abi::EMUD_STRETCHES;
                    batch::write_all(self.stretches.fd().as_fd(), first, stretches)
                        .map_err(at(STRETCHES))?;
                }
                let link = abi::emud_link {
                    timeline,
                    ..compiled.link
                };
                self.links.set(slot, link, 0).map_err(at("emud_links"))?;
            }
        }
        self.write_plans(next)?;
        self.write_rules(next, rules)?;
        let own = both.map(|links| links.first().map(|own| &own.link));
        let all = both.map(|links| links.iter().map(|one| &one.link));
        Ok(Prepared(next | short::bits(own) | alter::bits(all)))
    }

    /// Resets the background of a link that has none now: a new one begins with its first packet.
    fn begin_background(
        &mut self,
        control: abi::emud_control,
        number: u32,
        direction: u32,
    ) -> Result<(), DatapathError> {
        if self.link_at(control, number, direction)?.background.count > 0 {
            return Ok(());
        }
        let queue = number * abi::EMUD_DIRECTIONS + direction;
        let begin = abi::emud_behind::default();
        (self.behinds.set(queue, begin, 0)).map_err(at("emud_behinds"))
    }

    /// Gives these bottlenecks to the server in the kernel, from the next generation on.
    pub fn serve(&mut self, plans: [abi::emud_plan; 2]) {
        self.next_plans = Some(Box::new(plans));
    }

    /// Returns the bottlenecks of the next generation, by direction: those given to [`Self::serve`], or those in
    /// force.
    pub fn next_plans(&self) -> Result<[abi::emud_plan; 2], DatapathError> {
        if let Some(plans) = &self.next_plans {
            return Ok(**plans);
        }
        let in_force = of_links(self.control()?);
        let one = |direction| self.plans.get(&slot(direction, in_force), 0);
        Ok([
            one(abi::EMUD_UP).map_err(at("emud_plans"))?,
            one(abi::EMUD_DOWN).map_err(at("emud_plans"))?,
        ])
    }

    /// Writes the bottlenecks of a generation that is not active.
    fn write_plans(&mut self, next: u32) -> Result<(), DatapathError> {
        for (direction, plan) in (0..).zip(self.next_plans()?) {
            let written = self.plans.set(slot(direction, next), plan, 0);
            written.map_err(at("emud_plans"))?;
        }
        Ok(())
    }

    /// Activates a prepared generation, and waits until no packet still uses the previous one.
    pub fn enforce(&mut self, prepared: Prepared) -> Result<(), DatapathError> {
        let previous = before(prepared.0);
        self.turn(prepared)?;
        self.clear_rules(previous)
    }

    /// Activates a prepared generation from a time of CLOCK_MONOTONIC in ns on: the kernel compares
    /// it with each packet's, and no process has to be punctual. [`Maps::settle`] completes it.
    pub fn enforce_at(&mut self, prepared: Prepared, ns: u64) -> Result<(), DatapathError> {
        let next = self.word(prepared)?;
        self.change_control(|control| control.next = next)?;
        self.change_control(|control| control.turns_at = ns)
    }

    /// Completes [`Maps::enforce_at`], at once if its time has not come: the process that was to do
    /// it is gone then, and what the link is to be is in the record already.
    pub fn settle(&mut self) -> Result<(), DatapathError> {
        let control = self.control_word()?;
        if control.turns_at == 0 {
            return Ok(());
        }
        // Not that of `generation`: an earlier call may have ended behind the next line.
        let previous = before(control.next);
        self.change_control(|control| control.generation = control.next)?;
        let waited = grace_period();
        self.change_control(|control| control.turns_at = 0)?;
        waited?;
        self.clear_rules(previous)
    }

    /// Returns the generation of links that is not active.
    fn other_generation(&self) -> Result<u32, DatapathError> {
        Ok((of_links(self.control()?) + 1) % abi::EMUD_GENERATIONS)
    }

    /// Returns the slots of all links of a generation.
    fn slots(&self, generation: u32) -> impl Iterator<Item = u32> + use<> {
        (generation..self.links.len()).step_by(abi::EMUD_GENERATIONS as usize)
    }

    /// Returns the timelines of all active links.
    fn timelines(&self) -> Result<Vec<abi::emud_timeline>, DatapathError> {
        let slots = self.slots(of_links(self.control()?));
        let timeline = |slot| self.links.get(&slot, 0).map(|link| link.timeline);
        let all = slots.map(timeline).collect::<Result<_, _>>();
        all.map_err(at("emud_links"))
    }

    /// Does [`Self::apply`] for a profile's own links that need no table.
    pub fn apply_links(&mut self, both: [abi::emud_link; 2]) -> Result<(), DatapathError> {
        self.settle()?;
        let next = self.other_generation()?;
        for (direction, link) in (0..).zip(both) {
            self.links
                .set(slot(direction, next), link, 0)
                .map_err(at("emud_links"))?;
        }
        self.write_plans(next)?;
        let own = both.each_ref();
        let bits = short::bits(own.map(Some)) | alter::bits(own.map(iter::once));
        self.turn(Prepared(next | bits))
    }

    /// Makes all packets pass unchanged, for detach. A grace period that fails is no failure: only
    /// packets that are in the classifier at this moment still take their link.
    pub fn pass_everything(&mut self) -> Result<(), DatapathError> {
        self.segment_at([0; 2])?;
        in_force(self.settle())?;
        // Phases, rules and pairs lead to other links, which in that generation are earlier ones.
        for slot in self.slots(self.other_generation()?) {
            let mut link = self.links.get(&slot, 0).map_err(at("emud_links"))?;
            link.release = abi::EMUD_RELEASE_NONE;
            self.links.set(slot, link, 0).map_err(at("emud_links"))?;
        }
        let mut links = [self.link(abi::EMUD_UP)?, self.link(abi::EMUD_DOWN)?];
        for link in &mut links {
            link.release = abi::EMUD_RELEASE_NONE;
        }
        in_force(self.apply_links(links))
    }

    /// Activates a generation of links.
    fn turn(&mut self, prepared: Prepared) -> Result<(), DatapathError> {
        self.turn_to(self.word(prepared)?)
    }

    /// Returns the control word that activates a generation of links.
    fn word(&self, Prepared(links): Prepared) -> Result<u32, DatapathError> {
        let before = self.control()?.generation & !OF_LINKS;
        Ok(before.wrapping_add(abi::EMUD_CHANGE) | links)
    }

    /// Activates both generations.
    ///
    /// # Errors
    /// The control word cannot be written, or, if it is [`DatapathError::GracePeriod`], it is
    /// written and previous packets were not waited for.
    pub(crate) fn turn_to(&mut self, generation: u32) -> Result<(), DatapathError> {
        self.change_control(|control| control.generation = generation)?;
        grace_period()
    }

    /// Returns the slot of a direction of a link in the generation in force.
    pub(super) fn active_slot(&self, number: u32, direction: u32) -> Result<u32, DatapathError> {
        Ok(slot(direction, of_links(self.control()?)) + number * abi::EMUD_SLOTS)
    }
}

/// Returns the error of an activation. A failed grace period is none: the new generation is active.
fn in_force(done: Result<(), DatapathError>) -> Result<(), DatapathError> {
    match done {
        Err(DatapathError::GracePeriod(_)) => Ok(()),
        done => done,
    }
}

/// Returns the generation of the links.
pub(super) const fn of_links(control: abi::emud_control) -> u32 {
    control.generation & abi::EMUD_LINKS_GENERATION
}

/// Returns the generation of the links that a new control word replaces.
const fn before(new: u32) -> u32 {
    (new & abi::EMUD_LINKS_GENERATION) ^ abi::EMUD_LINKS_GENERATION
}

pub(super) const fn slot(direction: u32, generation: u32) -> u32 {
    direction * abi::EMUD_GENERATIONS + generation
}

/// Waits until no classifier uses the former maps: MEMBARRIER_CMD_GLOBAL is synchronize_rcu(), and classifiers run
/// inside an RCU read section. A kernel with nohz_full returns EINVAL, one without CONFIG_MEMBARRIER does not have it.
pub(super) fn grace_period() -> Result<(), DatapathError> {
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: passes integers only and accesses no memory of this process.
    match unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) } {
        0 => Ok(()),
        _ => grace_period_of_socket(),
    }
}

/// Waits for a grace period by closing a packet socket: packet_release() calls synchronize_net().
fn grace_period_of_socket() -> Result<(), DatapathError> {
    socket(AddressFamily::PACKET, SocketType::RAW, None)
        .map(drop)
        .map_err(|e| DatapathError::GracePeriod(e.into()))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn where_membarrier_is_refused_a_socket_waits() {
        let denied = || io::Error::from_raw_os_error(libc::EPERM);
        match grace_period_of_socket() {
            Ok(()) => {}
            // Happens only without CAP_NET_RAW.
            Err(DatapathError::GracePeriod(e)) => assert_eq!(e.kind(), denied().kind()),
            Err(e) => panic!("{e}"),
        }
    }

    /// As with nohz_full. Without the socket's wait there is no grace period, which is an error.
    #[test]
    fn a_refused_membarrier_is_no_grace_period() {
        let waited = std::thread::spawn(|| {
            let calls = [
                (libc::SYS_membarrier, libc::EINVAL),
                (libc::SYS_socket, libc::EMFILE),
            ];
            support::refusal::failing(&calls)().unwrap();
            grace_period()
        });
        match waited.join().unwrap() {
            Err(DatapathError::GracePeriod(e)) => assert_eq!(e.raw_os_error(), Some(libc::EMFILE)),
            other => panic!("{other:?}"),
        }
    }
}
