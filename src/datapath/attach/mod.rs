// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attach: inspect the interface, plan, save the plan in the kernel, carry it out.
//!
//! The order makes an interruption at any moment reversible, including kill -9. First the filters,
//! still inactive, with the record of everything that is about to change; then the changes; the
//! link becomes active last. At any point detach finds the filters and reverts what the record
//! lists.

mod exchange;
mod filters;
mod holder;
mod qdiscs;
mod session;

use std::os::fd::AsFd;
use std::process::Command;

use super::engine::{Engine, hold};
use super::maps::Maps;
pub use super::plan::Request;
use super::{LinkError, detach, serve};
pub(crate) use exchange::irreplaceable;
pub use exchange::{again, exchange};
use session::Session;

/// The result of an attach.
#[derive(Debug)]
pub struct Done {
    /// Name of the interface.
    pub interface: String,
    /// Index of the interface.
    pub ifindex: u32,
    /// Identifies the link on the interface.
    pub link_id: u32,
    /// When it ends by itself, ns of CLOCK_MONOTONIC; `None`: it does not.
    pub ends_at: Option<u64>,
    /// Name of the profile.
    pub profile: String,
    /// The emulated directions as text: both, or one of them.
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
    /// Maximum number of buffered bytes by direction.
    pub limit_bytes: [u64; 2],
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
    let limit_bytes = session.saved.hold_limits;
    let done = session.end(result)?;
    ready(&done);
    let held = serve::serve(ifindex, maps, (taps, limit_bytes), stop.as_fd(), || Ok(()));
    detach::at_end(ifindex, detach::Own::Id(done.link_id))?;
    Ok(held?)
}
