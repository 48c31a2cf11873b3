// SPDX-License-Identifier: MIT OR Apache-2.0
//! One attach: each step, and how all of them are reverted.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::thread::{CapabilitySet, capabilities};

use super::{Done, Request};
use crate::abi;
use crate::abi::DIRECTIONS;
use crate::datapath::compiled::{begin_later, compile_new, compile_rules, place};
use crate::datapath::engine::hold::Direction;
use crate::datapath::engine::{Engine, Kernel, qdisc};
use crate::datapath::maps::{Loaded, Maps};
use crate::datapath::saved::Saved;
use crate::datapath::stage::compile::Compiled;
use crate::datapath::stage::{features, service};
use crate::datapath::{
    LinkError, ahead, attachment, ending, held, pieces, plan, programs, restore, segments, undo,
};
use crate::host::{interface, now_ns};
use crate::netlink::{self, Link, Netlink};
use crate::profile::{Profile, hosts};

const NO_RESOLVER: &str = "this host has no resolver in the network (/etc/resolv.conf): no DNS answers are \
                           learned from, so `answer` matches nothing";

const LOCAL_RESOLVER: &str = "/etc/resolv.conf of the container names no resolver in the network (127.0.0.11 is one \
                              of Docker in the container itself): `answer` learns only from answers of the resolvers \
                              of this host";

pub(super) struct Session {
    pub(super) nl: Netlink,
    _lock: interface::InterfaceLock,
    pub(super) link: Link,
    pub(super) profile: Profile,
    pub(super) saved: Saved,
    pub(super) loaded: Loaded,
    pub(super) maps: Maps,
    pub(super) taps: Vec<(OwnedFd, Direction)>,
    /// Engine qdisc: what is added to devices while this process attaches.
    pub(super) qdisc: Option<qdisc::Registered>,
    /// Ifindex of the ifb or TAP, indexed by direction.
    pub(super) targets: [u32; 2],
    /// The links of both directions.
    pub(super) both: [Vec<Compiled>; 2],
    lasts: Option<Duration>,
    ends_at: Option<u64>,
}

impl Session {
    pub(super) fn begin(request: &Request) -> Result<Self, LinkError> {
        let wanted = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
        if !capabilities(None).is_ok_and(|got| got.effective.contains(wanted)) {
            return Err(LinkError::NotRoot);
        }
        let mut nl = Netlink::open()?;
        let link = nl.link(&request.interface)?;
        let lock = interface::lock(link.index, interface::PATIENCE)?;
        let mut taken_over = take_over(&mut nl, &link)?;
        taken_over.extend(ending::sweep(&mut nl)?);
        // With the limits that the user configured.
        let link = nl.link_by_index(link.index)?;
        let origin = plan::origin(request);
        // A profile that cannot be compiled fails before any change.
        let mut both = compile_new(&request.profile, origin)?;
        let needs = plan::needs(&mut nl, &link, request, &both);
        let mut kernel = Kernel::new(request.directions);
        let mut saved = plan::plan(&mut nl, &link, request, origin, &needs, &mut kernel)?;
        saved.notes.splice(0..0, taken_over);
        place(&mut both, &saved, [0; 2]);
        let needed = features::of([&both[0], &both[1]]);
        let programs = programs::of_link(saved.engine, saved.directions);
        let shares = saved.has_server();
        let mut loaded = match kernel.loaded.as_ref().filter(|_| shares) {
            Some(own) => {
                let shared = own
                    .shared()
                    .map_err(|e| LinkError::NoQdisc(e.to_string()))?;
                Loaded::load_sharing(&programs, &saved.sizes, needed, shared)?
            }
            None => Loaded::load(&programs, &saved.sizes, needed)?,
        };
        let mut maps = loaded.maps()?;
        if shares {
            let plans = service::compile(&request.profile, request.directions);
            maps.serve(plans.map_err(LinkError::NoQdisc)?);
        }
        maps.init(link.index, netlink::identity()?.inode)?;
        if request.profile.names_answers() {
            let of_container = request.resolvers.as_deref();
            let resolvers = hosts::resolvers(of_container.unwrap_or_default());
            if of_container.is_some_and(<[_]>::is_empty) {
                saved.notes.push(LOCAL_RESOLVER.to_owned());
            }
            if resolvers.is_empty() {
                saved.notes.push(NO_RESOLVER.to_owned());
            }
            maps.set_resolvers(&resolvers)?;
        }
        let mut session = Self {
            nl,
            _lock: lock,
            link,
            profile: request.profile.clone(),
            saved,
            loaded,
            maps,
            taps: Vec::new(),
            qdisc: kernel.loaded,
            targets: [0; 2],
            both,
            lasts: request.lasts,
            ends_at: request.ends_at,
        };
        if session.saved.engine == Engine::Hold {
            let (directions, notes) = (session.saved.directions, &mut session.saved.notes);
            let name = &session.link.name;
            let both = &session.both;
            let limits = held::limits(name, &session.profile, both, directions, notes)?;
            session.saved.hold_limits = limits;
        }
        Ok(session)
    }

    pub(super) fn carry_out(
        &mut self,
        start_holder: impl FnOnce(&mut Self) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        self.saved.write(&mut self.maps)?;
        for direction in DIRECTIONS {
            if self.saved.directions[direction as usize] {
                self.add_filter(direction)?;
            }
        }
        // Without the filters nothing needs it, and before the first change.
        if self.saved.outlives {
            undo::keep(&self.link, &self.maps, &mut self.saved);
        }
        match self.saved.engine {
            Engine::Fq | Engine::Qdisc => self.set_up_qdiscs()?,
            Engine::Hold => self.set_up_hold()?,
        }
        segments::cap(&mut self.nl, &self.link, &mut self.maps, &mut self.saved)?;
        if self.saved.engine == Engine::Hold {
            start_holder(self)?;
        }
        self.maps.start_pairs(&self.profile)?;
        self.saved.ahead = ahead::all(&mut self.nl, &self.link, &self.saved)?;
        self.saved.write(&mut self.maps)?;
        self.go_live()?;
        self.redirect_ingress()
    }

    /// Traces and phases start when the link becomes active. Two million rows take seconds to compile and to
    /// write, so they are in the kernel before that, in a link that passes every packet.
    fn go_live(&mut self) -> Result<(), LinkError> {
        let rules = compile_rules(&self.profile)?;
        if self.profile.is_timed() {
            for link in self.both.iter_mut().flatten() {
                link.link.release = abi::EMUD_RELEASE_NONE;
            }
            let [up, down] = &self.both;
            self.maps.apply_with([up, down], &rules)?;
            let began_ns = std::mem::replace(&mut self.saved.epoch_ns, now_ns());
            begin_later(&mut self.both, self.saved.epoch_ns - began_ns);
        }
        place(&mut self.both, &self.saved, self.targets);
        if let Some(ns) = self.ends_at.or(self.lasts.map(ending::after)) {
            self.maps.end_at(ns)?;
        }
        let [up, down] = &self.both;
        Ok(self.maps.apply_with([up, down], &rules)?)
    }

    /// Reverts everything after a failure.
    pub(super) fn end(mut self, result: Result<(), LinkError>) -> Result<Done, LinkError> {
        if let Err(cause) = result {
            return Err(match self.undo() {
                Ok(_) => cause,
                Err(undo) => LinkError::NotUndone {
                    cause: Box::new(cause),
                    undo: Box::new(undo),
                    interface: self.link.name,
                },
            });
        }
        // Notes may have been added.
        self.saved.write(&mut self.maps)?;
        Ok(Done {
            link_id: self.maps.id,
            ends_at: self.maps.ends_at()?,
            interface: self.link.name,
            ifindex: self.link.index,
            profile: self.profile.name,
            directions: match self.saved.directions {
                [true, true] => "both directions",
                [true, false] => "up only",
                _ => "down only",
            },
            engine: self.saved.engine,
            reason: self.saved.reason,
            seed: self.saved.seed,
            notes: self.saved.notes,
        })
    }

    fn undo(&mut self) -> Result<restore::Done, LinkError> {
        let ours = attachment::filters(&mut self.nl, self.link.index)?;
        restore::undo(&mut self.nl, &self.link, &mut self.maps, &self.saved, &ours)
    }

    pub(super) fn program_id(&self) -> Result<u32, LinkError> {
        Ok(self.loaded.main_id()?)
    }
}

/// Removes the remains of an incomplete link; returns the notes for the user.
///
/// # Errors
/// [`LinkError::AlreadyAttached`] if the link is complete.
fn take_over(nl: &mut Netlink, link: &Link) -> Result<Vec<String>, LinkError> {
    let Some(mut there) = attachment::find(nl, link.index)? else {
        return restore::remains(nl, link, None);
    };
    let profile = Profile::parse(&there.saved.profile, "").map(|p| p.name);
    let profile = profile.unwrap_or_default();
    let why = if there.maps.is_over()? {
        format!("removed the link {profile:?}, which had ended by itself")
    } else {
        let found = pieces::tampering(nl, link, &there)?;
        if !found.iter().any(|one| one.gone) {
            return Err(LinkError::AlreadyAttached {
                interface: link.name.clone(),
                profile,
            });
        }
        let found: Vec<String> = found.into_iter().map(|one| one.what).collect();
        format!(
            "removed the remains of the link {profile:?} and restored the state before it: {}",
            found.join("; ")
        )
    };
    let mut notes = vec![why];
    notes.extend(restore::undo_attachment(nl, link, &mut there)?.notes);
    Ok(notes)
}
