// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attach: inspect the interface, plan, save the plan in the kernel, carry it out.
//!
//! The order makes an interruption at any moment reversible, including kill -9. First the filters,
//! still inactive, with the record of everything that is about to change; then the changes; the
//! link becomes active last. At any point detach finds the filters and reverts what the record
//! lists.

use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::time::Duration;

use rustix::thread::{CapabilitySet, capabilities};

use super::engine::hold::{Direction, Tap};
use super::engine::{Engine, EngineChoice, fq, hold, qdisc};
use super::maps::{Loaded, Maps, Program};
use super::plan::{place_of, plan};
use super::saved::Saved;
use super::stage::compile::{Compiled, Place, compile, of_number};
use super::stage::timeline;
use super::{
    FILTER_HANDLE, KEEPER_CHAIN, KEEPER_NAME, LinkError, ORPHAN_HANDLE, attachment, detach, ending,
    filter_classid, filter_name, held, hook, pieces, segments, serve,
};
use crate::abi;
use crate::abi::{DIRECTIONS, direction_name};
use crate::host::{interface, now_ns};
use crate::netlink::{self, BpfFilter, FqOptions, Hook, Link, Netlink};
use crate::profile::{Profile, rule_keys};

/// Time limit for the start of the holder. It usually takes 0.1 s; on two CPUs with two builds and
/// three guests, and time stolen by the hypervisor, it took more than 10 s once. A holder that ends
/// is detected immediately.
const HOLDER_START: Duration = Duration::from_secs(60);

/// What to attach, and where.
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
}

/// The result of an attach.
#[derive(Debug)]
pub struct Done {
    /// Name of the interface.
    pub interface: String,
    /// The classifier.
    pub program_id: u32,
    /// Name of the profile.
    pub profile: String,
    /// What is emulated, for people: both directions, or one of them.
    pub directions: &'static str,
    /// The engine in use.
    pub engine: Engine,
    /// Reason for this engine.
    pub reason: String,
    /// Seed of random decisions.
    pub seed: u64,
    /// Sentences on what differs from what was requested.
    pub notes: Vec<String>,
}

/// Arguments of the holder's command line.
#[derive(Debug, Clone, Copy)]
pub struct HolderStart {
    /// Index of the interface.
    pub ifindex: u32,
    /// A program that refers to the maps of the link.
    pub program_id: u32,
    /// TAP descriptors by direction.
    pub taps: [Option<i32>; 2],
    /// Maximum number of buffered bytes per direction.
    pub limit_bytes: u64,
    /// Descriptor for the holder's report.
    pub ready: i32,
}

/// Attaches and returns; with engine hold, a process started by `holder` keeps running.
///
/// # Errors
/// Every step so far is reverted.
pub fn background(
    request: &Request,
    holder: impl Fn(HolderStart) -> Command,
) -> Result<Done, LinkError> {
    // Ctrl-C is handled after everything is done or reverted.
    let _stop = hold::signal::stop_signals().map_err(LinkError::Signal)?;
    let mut session = Session::begin(request)?;
    let result = session.carry_out(|s| s.start_holder(&holder));
    session.end(result)
}

/// Attaches, calls `ready`, waits for SIGINT, SIGTERM or SIGHUP, and detaches.
///
/// # Errors
/// Every step so far is reverted.
pub fn foreground(request: &Request, ready: impl FnOnce(&Done)) -> Result<(), LinkError> {
    // Before anything is changed: from here on Ctrl-C waits until the end.
    let stop = hold::signal::stop_signals().map_err(LinkError::Signal)?;
    let mut session = Session::begin(request)?;
    let ifindex = session.link.index;
    let maps = Maps::of_program(session.program_id()?)?;
    let result = session.carry_out(|session| {
        session.spare(std::process::id());
        Ok(())
    });
    let taps = std::mem::take(&mut session.taps);
    let limit_bytes = session.saved.hold_limit;
    let done = session.end(result)?;
    ready(&done);
    let held = serve::serve(ifindex, maps, (taps, limit_bytes), stop.as_fd(), || Ok(()));
    detach::at_end(&request.interface)?;
    Ok(held?)
}

/// Removes the remains of an incomplete link; returns the notes for the user.
///
/// # Errors
/// [`LinkError::AlreadyAttached`] if the link is complete.
fn take_over(nl: &mut Netlink, link: &Link) -> Result<Vec<String>, LinkError> {
    let Some(mut there) = attachment::find(nl, link.index)? else {
        return detach::remains(nl, link);
    };
    let profile = Profile::parse(&there.saved.profile, "").map(|p| p.name);
    let profile = profile.unwrap_or_default();
    let why = if ending::is_over(&there.maps)? {
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
    notes.extend(detach::undo_attachment(nl, link, &mut there)?.notes);
    Ok(notes)
}

struct Session {
    nl: Netlink,
    _lock: interface::InterfaceLock,
    link: Link,
    profile: Profile,
    saved: Saved,
    loaded: Loaded,
    maps: Maps,
    taps: Vec<(OwnedFd, Direction)>,
    /// Engine qdisc: what is added to devices while this process attaches.
    qdisc: Option<qdisc::Registered>,
    /// Ifindex of the ifb or TAP, indexed by direction.
    targets: [u32; 2],
    lasts: Option<Duration>,
}

impl Session {
    fn begin(request: &Request) -> Result<Self, LinkError> {
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
        let mut saved = plan(&mut nl, &link, request)?;
        saved.notes.splice(0..0, taken_over);
        let mut loaded = Loaded::load(&saved.sizes)?;
        let mut maps = loaded.maps()?;
        maps.init(link.index, netlink::identity()?.inode)?;
        let mut session = Self {
            nl,
            _lock: lock,
            link,
            profile: request.profile.clone(),
            saved,
            loaded,
            maps,
            taps: Vec::new(),
            qdisc: None,
            targets: [0; 2],
            lasts: request.lasts,
        };
        // A profile that cannot be compiled fails before any change.
        let both = session.compile_both()?;
        if session.saved.engine == Engine::Hold {
            let (directions, notes) = (session.saved.directions, &mut session.saved.notes);
            let name = &session.link.name;
            let limit = held::limit(name, &session.profile, &both, directions, notes)?;
            session.saved.hold_limit = limit;
        }
        if session.saved.engine == Engine::Qdisc {
            let room = session.qdisc_room(&both);
            let registered = qdisc::Registered::new(room, session.saved.directions);
            session.qdisc = Some(registered.map_err(|e| LinkError::NoQdisc(e.to_string()))?);
            session.saved.qdisc_room = room;
        }
        Ok(session)
    }

    fn carry_out(
        &mut self,
        start_holder: impl FnOnce(&mut Self) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        self.saved.write(&mut self.maps)?;
        for direction in DIRECTIONS {
            if self.saved.directions[direction as usize] {
                self.add_filter(direction)?;
            }
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
        self.go_live()?;
        self.redirect_ingress()
    }

    /// Traces and phases start when the link becomes active. Two million rows take seconds to
    /// write, so they are written to the kernel before that, into a link that passes every packet.
    fn go_live(&mut self) -> Result<(), LinkError> {
        let rules = compile_rules(&self.profile)?;
        if self.profile.is_timed() {
            let mut both = self.compile_both()?;
            for link in both.iter_mut().flatten() {
                link.link.release = abi::EMUD_RELEASE_NONE;
            }
            self.maps.apply_with([&both[0], &both[1]], &rules)?;
            self.saved.epoch_ns = now_ns();
        }
        let [up, down] = self.compile_both()?;
        if let Some(time) = self.lasts {
            self.maps.end_at(ending::after(time))?;
        }
        Ok(self.maps.apply_with([&up, &down], &rules)?)
    }

    /// Reverts everything after a failure.
    fn end(mut self, result: Result<(), LinkError>) -> Result<Done, LinkError> {
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
            program_id: self.program_id()?,
            interface: self.link.name,
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

    fn undo(&mut self) -> Result<detach::Done, LinkError> {
        let ours = attachment::filters(&mut self.nl, self.link.index)?;
        detach::undo(&mut self.nl, &self.link, &mut self.maps, &self.saved, &ours)
    }

    fn add_filter(&mut self, direction: u32) -> Result<(), LinkError> {
        let hook = hook(direction);
        let filter = BpfFilter {
            hook,
            pref: self.free_pref(hook, place_of(self.saved.engine, hook))?,
            handle: FILTER_HANDLE,
            program: self.loaded.program_fd(Program::Classify)?,
            name: filter_name(direction),
            classid: filter_classid(direction),
            chain: 0,
        };
        self.nl.attach_bpf_filter(self.link.index, &filter)?;
        Ok(())
    }

    fn free_pref(&mut self, hook: Hook, place: netlink::Place) -> Result<u16, LinkError> {
        let pref = self.nl.free_pref(self.link.index, hook, place)?;
        pref.ok_or_else(|| LinkError::NoPlace {
            interface: self.link.name.clone(),
            hook: hook.name(),
        })
    }

    fn set_up_qdiscs(&mut self) -> Result<(), LinkError> {
        let compiled = self.compile_both()?;
        if let Some(name) = self.saved.devices[abi::EMUD_DOWN as usize].clone() {
            let ifb = fq::add_ifb(&mut self.nl, &name, &self.link)?;
            self.add_keeper(ifb)?;
            if self.saved.directions[abi::EMUD_DOWN as usize] {
                self.add_qdisc(ifb, abi::EMUD_DOWN, &compiled)?;
                self.nl.set_up(ifb, true)?;
                self.targets[abi::EMUD_DOWN as usize] = ifb;
            }
        }
        if self.saved.root_taken {
            self.nl.delete_root(self.link.index)?;
            self.add_qdisc(self.link.index, abi::EMUD_UP, &compiled)?;
            let in_order = self.qdisc.is_some() || fq::in_order(&compiled[abi::EMUD_UP as usize]);
            let queues = self.link.num_tx_queues;
            if in_order && queues > 1 {
                self.saved.notes.push(format!(
                    "up: one queue serves all {queues} transmit queues, so that packets stay in order; senders on several CPUs share its lock, as with netem"
                ));
            }
        }
        Ok(())
    }

    /// At the root of a device, which has the kernel's default root.
    fn add_qdisc(
        &mut self,
        ifindex: u32,
        direction: u32,
        compiled: &[Vec<Compiled>; 2],
    ) -> Result<(), LinkError> {
        if let Some(own) = &self.qdisc {
            return Ok(qdisc::install(
                &mut self.nl,
                ifindex,
                direction,
                own.kind(),
            )?);
        }
        let options = self.fq_options(direction, compiled);
        if direction == abi::EMUD_DOWN {
            return Ok(self
                .nl
                .add_fq(ifindex, netlink::ROOT, fq::ROOT_HANDLE, &options)?);
        }
        let in_order = fq::in_order(&compiled[abi::EMUD_UP as usize]);
        Ok(fq::install(&mut self.nl, &self.link, &options, in_order)?)
    }

    fn qdisc_room(&self, links: &[Vec<Compiled>; 2]) -> u32 {
        let matrix = self.profile.matrix.as_ref();
        let pairs = matrix.map_or(&[][..], |matrix| &matrix.pairs);
        let instances = self.saved.sizes.instances;
        qdisc::room(links, self.saved.directions, instances, pairs)
    }

    fn fq_options(&mut self, direction: u32, links: &[Vec<Compiled>; 2]) -> FqOptions {
        let matrix = self.profile.matrix.as_ref();
        let pairs = matrix.map_or(&[][..], |matrix| &matrix.pairs);
        let links = &links[direction as usize];
        let options = fq::options(links, self.saved.sizes.instances, pairs);
        self.saved.fq_room[direction as usize].make(options)
    }

    /// Last step: from now on every packet that the classifier passes goes to the ifb.
    fn redirect_ingress(&mut self) -> Result<(), LinkError> {
        let Some(pref) = self.saved.mirred_pref else {
            return Ok(());
        };
        let orphan = BpfFilter {
            hook: Hook::Ingress,
            pref: self.free_pref(Hook::Ingress, netlink::Place::First)?,
            handle: ORPHAN_HANDLE,
            program: self.loaded.program_fd(Program::Orphan)?,
            name: Program::Orphan.name(),
            classid: 0,
            chain: 0,
        };
        self.nl.attach_bpf_filter(self.link.index, &orphan)?;
        let ifb = self.targets[abi::EMUD_DOWN as usize];
        self.nl
            .add_redirect(self.link.index, Hook::Ingress, pref, FILTER_HANDLE, ifb)?;
        Ok(())
    }

    fn set_up_hold(&mut self) -> Result<(), LinkError> {
        if self.saved.root_taken {
            self.nl.delete_root(self.link.index)?;
        }
        for direction in DIRECTIONS {
            let Some(name) = self.saved.devices[direction as usize].clone() else {
                continue;
            };
            let tap = hold::tap::create(&name, self.link.mtu)?;
            self.resume_filter(direction, &tap)?;
            self.add_keeper(tap.ifindex)?;
            // It has the record: the end of a killed holder must not delete it.
            Tap::persist(tap.fd.as_fd(), true)?;
            self.targets[direction as usize] = tap.ifindex;
            let side = if direction == abi::EMUD_UP {
                Direction::Up
            } else {
                Direction::Down
            };
            self.taps.push((tap.fd, side));
        }
        Ok(())
    }

    fn resume_filter(&mut self, direction: u32, tap: &Tap) -> Result<(), LinkError> {
        let program = pieces::tap_program(direction);
        self.nl.attach_bpf_filter(
            tap.ifindex,
            &BpfFilter {
                hook: Hook::Ingress,
                pref: 1,
                handle: FILTER_HANDLE,
                program: self.loaded.program_fd(program)?,
                name: program.name(),
                classid: 0,
                chain: 0,
            },
        )?;
        Ok(())
    }

    /// Keeps the maps, and with them the record, even if clsact of the interface is deleted.
    fn add_keeper(&mut self, device: u32) -> Result<(), LinkError> {
        let keeper = BpfFilter {
            hook: Hook::Ingress,
            pref: 2,
            handle: FILTER_HANDLE,
            program: self.loaded.program_fd(Program::Classify)?,
            name: KEEPER_NAME,
            classid: 0,
            chain: KEEPER_CHAIN,
        };
        self.nl.attach_bpf_filter(device, &keeper)?;
        Ok(())
    }

    fn start_holder(&mut self, holder: &impl Fn(HolderStart) -> Command) -> Result<(), LinkError> {
        use std::os::fd::AsRawFd;
        let program_id = self.program_id()?;
        let mut start = HolderStart {
            ifindex: self.link.index,
            program_id,
            taps: [None; 2],
            limit_bytes: self.saved.hold_limit,
            ready: -1,
        };
        for (fd, direction) in &self.taps {
            start.taps[*direction as usize] = Some(fd.as_raw_fd());
        }
        let inherit: Vec<_> = self.taps.iter().map(|(fd, _)| fd.as_fd()).collect();
        let holder = hold::spawn::spawn(
            |ready| holder(HolderStart { ready, ..start }),
            &inherit,
            HOLDER_START,
        )?;
        self.spare(holder.id());
        Ok(())
    }

    fn spare(&mut self, holder: u32) {
        if let Err(e) = hold::spare(holder) {
            self.saved.notes.push(format!(
                "the kernel may end the holder, and with it the link, when memory runs out: its \
                 oom_score_adj cannot be lowered ({e}), which requires CAP_SYS_RESOURCE"
            ));
        }
    }

    fn program_id(&self) -> Result<u32, LinkError> {
        Ok(self.loaded.program_id(Program::Classify)?)
    }

    fn compile_both(&self) -> Result<[Vec<Compiled>; 2], LinkError> {
        let release = |direction: u32| match (self.saved.engine, direction) {
            // Its program exists as long as this process, but no packet passes it.
            _ if !self.saved.directions[direction as usize] => abi::EMUD_RELEASE_NONE,
            (Engine::Hold, _) => abi::EMUD_RELEASE_HOLD,
            (Engine::Fq, abi::EMUD_UP) => abi::EMUD_RELEASE_STAMP,
            (Engine::Fq, _) if self.saved.mirred_pref.is_some() => abi::EMUD_RELEASE_MIRRED,
            (Engine::Fq, _) => abi::EMUD_RELEASE_IFB,
            (Engine::Qdisc, abi::EMUD_UP) => abi::EMUD_RELEASE_QDISC,
            (Engine::Qdisc, _) => abi::EMUD_RELEASE_QDISC_IFB,
        };
        let one = |direction: u32| {
            let place = Place {
                release: release(direction),
                ifindex: self.targets[direction as usize],
                l3: self.saved.l3,
            };
            compile_direction(&self.profile, &self.saved, direction, place)
        };
        Ok([one(abi::EMUD_UP)?, one(abi::EMUD_DOWN)?])
    }
}

/// Compiles the links of a direction as they are attached, by number.
pub(crate) fn compile_direction(
    profile: &Profile,
    saved: &Saved,
    direction: u32,
    place: Place,
) -> Result<Vec<Compiled>, LinkError> {
    let one = |(number, link)| {
        let seed = of_number(saved.seed, number);
        compile(link, seed, direction, saved.epoch_ns, place).map_err(|source| LinkError::Spread {
            direction: direction_name(direction),
            source,
        })
    };
    let links = (0..).zip(profile.links_of(direction)).map(one);
    let mut links = links.collect::<Result<Vec<Compiled>, _>>()?;
    matching(profile, direction, &mut links);
    timeline::phases(profile, direction, &mut links, saved.seed, saved.epoch_ns);
    // As if it had been attached at that time.
    let later_ns = saved.restarted_ns.unwrap_or(saved.epoch_ns);
    let later_ns = later_ns.wrapping_sub(saved.epoch_ns);
    for compiled in &mut links {
        timeline::shift(&mut compiled.link.timeline, later_ns);
    }
    Ok(links)
}

/// Sets what a link has to know about the other links and about the rules.
pub fn matching(profile: &Profile, direction: u32, links: &mut [Compiled]) {
    for ((number, link), of) in (0..).zip(links.iter_mut()).zip(profile.links_of(direction)) {
        link.link.bottleneck = profile.bottleneck(direction, number);
        let class = of.class.as_deref();
        link.link.service = class.and_then(|c| profile.service(c)).unwrap_or(0);
    }
    let Some(own) = links.first_mut() else { return };
    if profile.rules.iter().any(|rule| rule.is_for(direction)) {
        own.link.flags |= abi::EMUD_F_RULES;
    }
    if let Some(matrix) = &profile.matrix {
        own.link.flags |= abi::EMUD_F_MATRIX;
        own.link.matrix_link = profile.matrix_link(matrix);
    }
}

/// Compiles the rules of a profile.
pub fn compile_rules(profile: &Profile) -> Result<rule_keys::Compiled, rule_keys::RulesError> {
    let number_of = |name: &str| profile.number_of(name);
    rule_keys::compile(&profile.rules, number_of, |class| profile.service(class))
}
