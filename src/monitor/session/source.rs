// SPDX-License-Identifier: MIT OR Apache-2.0

use std::future::Future;
use std::time::Duration;

use emud_monitor::event::{Cost, Dropped, Event, Hook, Resource, Share, Watched};
use emud_monitor::{Emulated, Monitor, MonitorError};

/// A source of events: the monitor in the kernel. The functions are those of [`Monitor`], with its
/// errors.
#[expect(missing_docs, reason = "documented at the implementation")]
pub trait Source {
    /// Returns the next event. Cancel safe.
    fn next(&mut self) -> impl Future<Output = Result<Event, MonitorError>>;
    fn hooks(&self) -> &[Hook];
    fn watched(&self, resource: Resource) -> Watched;
    fn started_mono_ns(&self) -> u64;
    fn tick(&self) -> Duration;
    fn dropped(&self) -> Result<Dropped, MonitorError>;
    fn reset_limit(&mut self) -> Result<(), MonitorError>;
    fn shares_so_far(&mut self) -> Result<Vec<(u64, Vec<Share>)>, MonitorError>;
    fn costs(&self) -> Result<Vec<Cost>, MonitorError>;
    fn empty_probe_ns(&self) -> f64;
    fn set_emulated(&mut self, devices: &[Emulated]) -> Result<(), MonitorError>;
}

impl Source for Monitor {
    async fn next(&mut self) -> Result<Event, MonitorError> {
        Monitor::next(self).await
    }

    fn hooks(&self) -> &[Hook] {
        self.hooks()
    }

    fn watched(&self, resource: Resource) -> Watched {
        self.watched(resource)
    }

    fn started_mono_ns(&self) -> u64 {
        self.started_mono_ns()
    }

    fn tick(&self) -> Duration {
        self.tick()
    }

    fn dropped(&self) -> Result<Dropped, MonitorError> {
        self.dropped()
    }

    fn reset_limit(&mut self) -> Result<(), MonitorError> {
        self.reset_limit()
    }

    fn shares_so_far(&mut self) -> Result<Vec<(u64, Vec<Share>)>, MonitorError> {
        self.shares_so_far()
    }

    fn costs(&self) -> Result<Vec<Cost>, MonitorError> {
        self.costs()
    }

    fn empty_probe_ns(&self) -> f64 {
        self.empty_probe_ns()
    }

    fn set_emulated(&mut self, devices: &[Emulated]) -> Result<(), MonitorError> {
        self.set_emulated(devices)
    }
}
