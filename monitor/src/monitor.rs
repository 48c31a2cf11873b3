// SPDX-License-Identifier: GPL-2.0-only
//! The programs in the kernel, attached; what they notice comes out of [`Monitor::next`].

use std::time::Duration;

use crate::config::Config;
use crate::event::{Cost, Dropped, Event, Hook, Resource, Watched};

/// Why the monitor could not be started, or went blind.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    #[error("{0}")]
    Unsupported(String),
}

/// A running monitor; dropping it detaches everything.
#[derive(Debug)]
pub struct Monitor {}

/// A device on which emud emulates a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emulated {
    /// Inode number of the network namespace.
    pub netns: u32,
    pub ifindex: u32,
}

impl Monitor {
    /// Loads the programs, attaches them hook by hook, and begins to judge.
    /// To be called within a tokio runtime (with io and time enabled).
    ///
    /// # Errors
    /// This process may not, or the kernel supports not one of the criteria asked for.
    pub fn start(_config: &Config) -> Result<Self, MonitorError> {
        Err(MonitorError::Unsupported("not yet".into()))
    }

    /// Waits for the next event. Cancel safe.
    ///
    /// # Errors
    /// The ring buffer cannot be read any more.
    pub async fn next(&mut self) -> Result<Event, MonitorError> {
        std::future::pending().await
    }

    /// Every hook that was tried, taken or refused.
    pub fn hooks(&self) -> &[Hook] {
        &[]
    }

    /// Whether a resource is really watched.
    pub fn watched(&self, _resource: Resource) -> Watched {
        Watched::Unknown
    }

    /// When the last program was attached, CLOCK_MONOTONIC.
    pub fn started_mono_ns(&self) -> u64 {
        0
    }

    /// Time between two ticks of the monitor's own timer.
    pub fn tick(&self) -> Duration {
        Duration::ZERO
    }

    /// What was dropped so far.
    ///
    /// # Errors
    /// The kernel does not give the counters.
    pub fn dropped(&self) -> Result<Dropped, MonitorError> {
        Ok(Dropped::default())
    }

    /// Lets every resource raise its alarms anew: sets the counts of raised alarms to 0.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn reset_limit(&mut self) -> Result<(), MonitorError> {
        Ok(())
    }

    /// What the programs cost so far.
    ///
    /// # Errors
    /// The kernel does not give the statistics.
    pub fn costs(&self) -> Result<Vec<Cost>, MonitorError> {
        Ok(vec![])
    }

    /// What the mere call of a program costs here (an empty program, run at the start), in ns.
    pub fn empty_probe_ns(&self) -> f64 {
        0.0
    }

    /// Tells the monitor on which devices links are emulated, for the criterion `emulator`.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn set_emulated(&mut self, _devices: &[Emulated]) -> Result<(), MonitorError> {
        Ok(())
    }
}
