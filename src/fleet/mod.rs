// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments on several hosts, coordinated by etcd.
//!
//! An [`agent`] on each host holds a leased key. The [`controller`] divides a scenario among the
//! hosts ([`placement`], [`plan`]), writes one [`plan::HostPlan`] for each in one transaction, and,
//! when all have reported that it is built, the time of the start in another one. A part is carried
//! out by a child process of the agent ([`part`]): if either is killed, the kernel removes the nodes.
//! [`keys`] describes what is in etcd.

pub mod agent;
mod child;
pub mod clock;
pub mod controller;
mod error;
pub mod etcd;
pub mod facts;
pub mod keys;
pub mod merge;
mod outbox;
pub mod part;
pub mod placement;
pub mod plan;
mod plan_read;
pub mod protocol;
pub mod simulate;
pub mod status;
mod tunnels;
pub mod underlay;
pub mod verdict;

pub use error::{FleetError, LeaseEnd};

/// Lifetime of the keys of an agent and of a controller that no longer renew them. Expiry in etcd
/// takes up to 1 s more and the end of a part up to 2 s, so that all is removed after 10 s.
pub const LEASE: std::time::Duration = std::time::Duration::from_secs(6);
/// How often an agent shows its part that it has its lease, which the part answers.
pub const ALIVE_EVERY: std::time::Duration = std::time::Duration::from_secs(2);
/// How long before the start the time of it is written.
pub const LEAD: std::time::Duration = std::time::Duration::from_secs(2);
