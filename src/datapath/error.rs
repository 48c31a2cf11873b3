// SPDX-License-Identifier: MIT OR Apache-2.0

use super::engine::Engine;
use super::engine::hold::HoldError;
use super::maps::DatapathError;
use super::maps::pairs::Full;
use crate::container::ContainerError;
use crate::netlink::NetlinkError;
use crate::profile::quantile::SpreadError;
use crate::profile::rule_keys::RulesError;
use crate::profile::{Pair, ProfileError, Time};

/// Why a link could not be attached, read, changed or removed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum LinkError {
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    #[error(transparent)]
    Hold(#[from] HoldError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("{direction}: {source}")]
    Spread {
        direction: &'static str,
        source: SpreadError,
    },
    #[error(
        "{interface} already has the link {profile:?}: change it with `emud set`, or remove it with `emud detach {interface}`"
    )]
    AlreadyAttached { interface: String, profile: String },
    #[error(
        "{interface} has a root qdisc configured by hand ({kind} {handle}): use --replace to replace it; detach restores it"
    )]
    ByHand {
        interface: String,
        kind: String,
        handle: String,
    },
    #[error("interface {name} exists and was not created by emud: rename or delete it")]
    NameTaken { name: String },
    #[error("{interface} is a device of emud, where packets of the link on interface {of} wait")]
    OwnDevice { interface: String, of: u32 },
    #[error("nothing is attached to {interface} in this network namespace: see `emud list`")]
    NotAttached { interface: String },
    #[error(
        "every part of the link on {interface} was deleted: `emud detach {interface}` restores the state before it"
    )]
    AllDeleted { interface: String },
    #[error(
        "the link on {interface} has ended by itself: attach again; `emud detach {interface}` restores the state before it"
    )]
    Ended { interface: String },
    #[error(
        "the link on {interface} is not in force, because an attach or detach has not finished: `emud detach {interface}` restores the state before it"
    )]
    Unfinished { interface: String },
    #[error("there is no process {pid}: {cause}")]
    NoProcess { pid: i32, cause: std::io::Error },
    #[error(
        "{interface}: at its rate and delay engine hold has to buffer {needed} MiB of packets, and has room \
         for {room}: take a lower rate, a shorter delay or queue, or engine fq; after `set`, attach again"
    )]
    NoMemory {
        interface: String,
        needed: u64,
        room: u64,
    },
    #[error("cannot read how much memory is free (/proc/meminfo): {0}")]
    Memory(std::io::Error),
    #[error("attaching needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN)")]
    NotRoot,
    #[error("the links of all network namespaces can be found only by root")]
    NotRootForAll,
    #[error("{0}")]
    BetweenHosts(String),
    #[error("cannot read files with the rights of the user of the programs: {0}")]
    User(std::io::Error),
    #[error(transparent)]
    Container(#[from] ContainerError),
    #[error(
        "engine hold cannot carry {interface}: a packet over loopback carries its route, which \
         is lost in user space; use a kernel with sch_fq"
    )]
    HeldLoopback { interface: String },
    #[error("engine fq: {0}; --engine hold works without it")]
    NoFq(String),
    #[error(
        "{interface}: `full = \"block\"` needs engine qdisc, and the link would get {engine}: {reason}; \
         write full = \"drop\""
    )]
    CannotBlock {
        interface: String,
        engine: Engine,
        reason: String,
    },
    #[error("engine qdisc: {0}; --engine auto works without it")]
    NoQdisc(String),
    #[error(
        "{interface}: `{key}` needs /sys/kernel/btf/vmlinux to recognise packets that must not be changed, \
         and those of the kernel; use a kernel with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf {
        interface: String,
        key: &'static str,
    },
    #[error(
        "{interface}: `match.cgroup` learns the flows of an application from what the interface sends: \
         attach without --direction down"
    )]
    CgroupsNeedUp { interface: String },
    #[error("{interface} is of a type (ARPHRD {arphrd}) whose frames emud cannot read")]
    UnknownLayer { interface: String, arphrd: u16 },
    #[error(
        "pref 1 of the {hook} of {interface} is in use by a filter of another kind: move that filter to a higher pref"
    )]
    NoPlace {
        interface: String,
        hook: &'static str,
    },
    #[error("cannot read the record of attach in the kernel: {0}")]
    Saved(#[from] serde_json::Error),
    #[error(
        "{argument}: {direction} is not emulated on {interface}; it was attached with --direction"
    )]
    NotEmulated {
        argument: String,
        direction: &'static str,
        interface: String,
    },
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(
        "{interface} was attached without room for {what}: detach it, then attach a profile that has this"
    )]
    NoRoom {
        interface: String,
        what: &'static str,
    },
    #[error("{interface}: {why}: detach it, and attach the new profile")]
    NotServed { interface: String, why: String },
    #[error(
        "{interface} has no matrix: attach a profile with a table [matrix], such as capacity = 1000"
    )]
    NoMatrix { interface: String },
    #[error(
        "{interface}: {new} new pairs do not fit, {room} of {capacity} are free: attach with a larger capacity in [matrix]",
        new = full.new, room = full.room, capacity = full.capacity
    )]
    MatrixFull { interface: String, full: Full },
    #[error(
        "{interface}: the delay of {from} to {to} is shorter than the link's jitter goes below its mean: give at least {least}",
        from = pair.source, to = pair.destination, least = Time(*least_ns)
    )]
    ShortPair {
        interface: String,
        pair: Box<Pair>,
        least_ns: u64,
    },
    #[error("several interfaces have emulated links, {0}: give one of them")]
    WhichInterface(String),
    #[error("no interface of this network namespace has an emulated link: see `emud attach`")]
    NoInterface,
    #[error("{0} has neither a trace nor phases, so there is nothing to restart")]
    NoTime(String),
    #[error(
        "the phases of {0} are separate links, which only attach can change: `emud set` changes only `state` of the profile's own link and of named links without rules; for other changes detach, then attach the changed profile"
    )]
    Phased(String),
    #[error("signals: {0}")]
    Signal(std::io::Error),
    #[error("{cause}\nthe link is still on {interface}: run `emud detach {interface}`")]
    StillAttached {
        cause: Box<LinkError>,
        interface: String,
    },
    #[error("{interface}: {why}")]
    Irreplaceable {
        interface: String,
        why: &'static str,
    },
    #[error("{interface} has its previous profile again, with new counters: {cause}")]
    NotExchanged {
        cause: Box<LinkError>,
        interface: String,
    },
    #[error(
        "{interface} has no link any more: {cause}\nand attaching the previous profile again failed, too: {again}"
    )]
    NotAttachedAgain {
        cause: Box<LinkError>,
        again: Box<LinkError>,
        interface: String,
    },
    #[error(
        "{cause}\nand reverting the changes failed, too: {undo}\nrun `emud detach {interface}`"
    )]
    NotUndone {
        cause: Box<LinkError>,
        undo: Box<LinkError>,
        interface: String,
    },
}

impl LinkError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Netlink(e) => e.exit_code(),
            Self::Container(e) => e.exit_code(),
            Self::Datapath(e) => e.exit_code(),
            Self::Hold(e) => e.exit_code(),
            Self::Profile(e) => e.exit_code(),
            Self::Spread { .. } | Self::ShortPair { .. } | Self::Rules(_) => 65,
            Self::NotAttached { .. }
            | Self::AllDeleted { .. }
            | Self::Ended { .. }
            | Self::Unfinished { .. }
            | Self::NoProcess { .. }
            | Self::NoMatrix { .. }
            | Self::NoInterface => 66,
            Self::NoFq(_)
            | Self::NoQdisc(_)
            | Self::CannotBlock { .. }
            | Self::HeldLoopback { .. }
            | Self::NoBtf { .. }
            | Self::NoMemory { .. }
            | Self::BetweenHosts(_)
            | Self::UnknownLayer { .. } => 69,
            Self::Saved(_) => 70,
            Self::Signal(_) | Self::Memory(_) | Self::User(_) => 71,
            Self::NotUndone { cause, .. }
            | Self::StillAttached { cause, .. }
            | Self::NotExchanged { cause, .. }
            | Self::NotAttachedAgain { cause, .. } => cause.exit_code(),
            Self::Irreplaceable { .. } => 73,
            Self::AlreadyAttached { .. }
            | Self::ByHand { .. }
            | Self::NoPlace { .. }
            | Self::NameTaken { .. } => 73,
            Self::NoRoom { .. } | Self::NotServed { .. } | Self::MatrixFull { .. } => 73,
            Self::CgroupsNeedUp { .. } => 64,
            Self::NotEmulated { .. } | Self::WhichInterface(_) | Self::OwnDevice { .. } => 64,
            Self::NoTime(_) | Self::Phased(_) => 64,
            Self::NotRoot | Self::NotRootForAll => 77,
        }
    }
}
