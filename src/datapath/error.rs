// SPDX-License-Identifier: MIT OR Apache-2.0

use super::engine::hold::HoldError;
use super::maps::DatapathError;
use super::maps::pairs::Full;
use crate::netlink::NetlinkError;
use crate::profile::ProfileError;
use crate::profile::quantile::SpreadError;
use crate::profile::rule_keys::RulesError;

/// Why a link could not be attached, read, changed or taken away.
#[derive(Debug, thiserror::Error)]
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
        "{interface} already has the link {profile:?}: change it with `emud set`, or take it away with `emud detach {interface}`"
    )]
    AlreadyAttached { interface: String, profile: String },
    #[error(
        "{interface} has a root qdisc configured by hand ({kind} {handle}): give --replace to take it away while emud is attached"
    )]
    ByHand {
        interface: String,
        kind: String,
        handle: String,
    },
    #[error("there is an interface {name} that emud did not make: rename it or delete it")]
    NameTaken { name: String },
    #[error("{interface} is emud's own: packets of the link on interface {of} wait there")]
    OwnDevice { interface: String, of: u32 },
    #[error("nothing is attached to {interface} in this network namespace: see `emud list`")]
    NotAttached { interface: String },
    #[error(
        "{interface}: at its rate and delay engine hold has to keep {needed} MiB of packets, and has room \
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
    #[error(
        "engine hold cannot carry {interface}: a packet over loopback brings its route along, which \
         is lost in user space; it takes a kernel with sch_fq"
    )]
    HeldLoopback { interface: String },
    #[error("engine fq: {0}; --engine hold works without it")]
    NoFq(String),
    #[error(
        "{interface}: `{key}` needs /sys/kernel/btf/vmlinux to tell packets that must not be changed; \
         it takes a kernel with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf {
        interface: String,
        key: &'static str,
    },
    #[error("{interface} is of a type (ARPHRD {arphrd}) whose frames emud cannot read")]
    UnknownLayer { interface: String, arphrd: u16 },
    #[error(
        "pref 1 of the {hook} of {interface} is taken by a filter of another kind: give that one a higher pref"
    )]
    NoPlace {
        interface: String,
        hook: &'static str,
    },
    #[error("what attach saved in the kernel cannot be read: {0}")]
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
    #[error(
        "{interface} has no matrix: attach a profile with a table [matrix], such as capacity = 1000"
    )]
    NoMatrix { interface: String },
    #[error(
        "{interface}: {new} new pairs, and room for {room} of {capacity}: attach with a larger capacity in [matrix]",
        new = full.new, room = full.room, capacity = full.capacity
    )]
    MatrixFull { interface: String, full: Full },
    #[error("emulated links are on {0}: say which interface")]
    WhichInterface(String),
    #[error("no interface of this network namespace has an emulated link: see `emud attach`")]
    NoInterface,
    #[error("{0} has neither a trace nor phases, so there is nothing to restart")]
    NoTime(String),
    #[error(
        "the phases of {0} are links of their own, which nothing but attach changes: of the profile's own link, and of named ones without rules, `emud set` changes only `state`; attach the changed profile with --replace"
    )]
    Phased(String),
    #[error("signals: {0}")]
    Signal(std::io::Error),
    #[error("{cause}\nthe link is still on {interface}: run `emud detach {interface}`")]
    StillAttached {
        cause: Box<LinkError>,
        interface: String,
    },
    #[error(
        "{cause}\nand undoing what had been done failed too: {undo}\nrun `emud detach {interface}`"
    )]
    NotUndone {
        cause: Box<LinkError>,
        undo: Box<LinkError>,
        interface: String,
    },
}

impl LinkError {
    /// The exit code for it, after sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Netlink(e) => e.exit_code(),
            Self::Datapath(e) => e.exit_code(),
            Self::Hold(e) => e.exit_code(),
            Self::Profile(e) => e.exit_code(),
            Self::Spread { .. } | Self::Rules(_) => 65,
            Self::NotAttached { .. } | Self::NoMatrix { .. } | Self::NoInterface => 66,
            Self::NoFq(_)
            | Self::HeldLoopback { .. }
            | Self::NoBtf { .. }
            | Self::NoMemory { .. }
            | Self::UnknownLayer { .. } => 69,
            Self::Saved(_) => 70,
            Self::Signal(_) | Self::Memory(_) => 71,
            Self::NotUndone { cause, .. } | Self::StillAttached { cause, .. } => cause.exit_code(),
            Self::AlreadyAttached { .. }
            | Self::ByHand { .. }
            | Self::NoPlace { .. }
            | Self::NameTaken { .. } => 73,
            Self::NoRoom { .. } | Self::MatrixFull { .. } => 73,
            Self::NotEmulated { .. } | Self::WhichInterface(_) | Self::OwnDevice { .. } => 64,
            Self::NoTime(_) | Self::Phased(_) => 64,
            Self::NotRoot => 77,
        }
    }
}
