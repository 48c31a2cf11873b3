// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured phase, and what the hosts report of it.

use std::time::Duration;

use tokio::time::Instant;

use super::Ended;
use super::start::STOPPED_EARLY;
use super::steps::{Controller, Early};
use crate::fleet::FleetError;
use crate::fleet::etcd::{Compare, Op};
use crate::fleet::keys::{LOST, OVER, STOPPED};
use crate::fleet::merge::{HostClock, HostLog};
use crate::fleet::plan::HostPlan;
use crate::fleet::protocol::{HostResult, Ready};
use crate::fleet::verdict::{EarlyEnd, HostEnd};
use crate::host::signals::Signals;

/// Besides the scenario's own time for the clean-up of a host.
const REPORT: Duration = Duration::from_secs(30);

/// Why the measured phase ended.
enum Over {
    Complete,
    /// A host is lost, or its part has failed.
    Lost,
    Early(EarlyEnd),
}

impl Controller<'_> {
    /// Carries out the measured phase from its start on, ends it and collects the results.
    ///
    /// # Errors
    /// [`FleetError::Unmet`]: it is stopped before its start; etcd does not answer.
    pub(super) async fn measured(
        &mut self,
        at: Instant,
        ended: &mut Ended,
        signals: &mut Signals,
    ) -> Result<(), FleetError> {
        let over = self.complete(signals).await?;
        if let Over::Early(early) = over {
            ended.early = Some(early);
        }
        let why = match over {
            Over::Lost => LOST,
            Over::Complete | Over::Early(_) => OVER,
        };
        let key = self.keys.over();
        let free = Compare::Absent(key.clone());
        let put = Op::Put(key.clone(), why.into(), self.lease);
        let stopped = Compare::Value(key, STOPPED.into());
        // A part that was stopped has completed, and may be read before the key that stopped it.
        if !self.surely(&[free], &[put]).await? && self.surely(&[stopped], &[]).await? {
            ended.early = Some(EarlyEnd::Stop);
        }
        if ended.early == Some(EarlyEnd::Stop) && Instant::now() < at {
            return Err(FleetError::Unmet(STOPPED_EARLY.into()));
        }
        self.results(ended, signals).await
    }

    /// Waits until the programs of all hosts have ended, a host is lost, or it is stopped.
    async fn complete(&mut self, signals: &mut Signals) -> Result<Over, FleetError> {
        // No end: a scenario may have no limit.
        let never = Instant::now() + Duration::from_secs(365 * 24 * 3600);
        loop {
            let complete = |host: &String| self.is_signed(&self.keys.complete(host));
            let complete = self.names().iter().all(complete);
            self.sets().await?;
            // Nobody else has written the key yet. What the parts do then is a consequence.
            if self.is_over() {
                return Ok(Over::Early(EarlyEnd::Stop));
            }
            if self.failed().is_some() || !self.gone().is_empty() {
                return Ok(Over::Lost);
            }
            if complete {
                return Ok(Over::Complete);
            }
            let until = self.sets.next().unwrap_or(never);
            if let Some(Early::Signal(signal)) = self.change(until, signals).await? {
                return Ok(Over::Early(EarlyEnd::Signal(signal)));
            }
        }
    }

    /// Waits for the results of all hosts that are there.
    async fn results(
        &mut self,
        ended: &mut Ended,
        signals: &mut Signals,
    ) -> Result<(), FleetError> {
        let plans = self.divided.plans.values();
        let longest = plans.map(HostPlan::longest_clean_up).max();
        let within = longest.unwrap_or_default() + REPORT;
        let (mut until, mut reported) = (Instant::now() + within, 0);
        loop {
            // A long log over a slow network.
            let so_far = self.hosts.borrow().entries.len();
            if so_far > reported {
                (until, reported) = (Instant::now() + within, so_far);
            }
            let gone = self.gone();
            for host in self.names() {
                if ended.hosts.contains_key(&host) {
                    continue;
                }
                if let Some(result) = self.result(&host) {
                    let clock = ended.built.get(&host).and_then(|ready| ready.clock);
                    ended
                        .logs
                        .push(self.log(&host, &result, ended.built.get(&host)));
                    let result = Box::new(result);
                    ended
                        .hosts
                        .insert(host, HostEnd::Reported { result, clock });
                } else if gone.contains(&host) {
                    let why = "its agent does not renew its lease any more".to_owned();
                    ended.hosts.insert(host, HostEnd::Lost(why));
                }
            }
            if ended.hosts.len() == self.divided.plans.len() {
                return Ok(());
            }
            match self.change(until, signals).await? {
                None => {}
                Some(Early::Signal(signal)) => ended.early = Some(EarlyEnd::Signal(signal)),
                Some(Early::Late) => break,
            }
            if matches!(ended.early, Some(EarlyEnd::Signal(_)))
                && until.saturating_duration_since(Instant::now()) < within / 2
            {
                break;
            }
        }
        for host in self.names() {
            let why = format!("it reported nothing for {} s", within.as_secs());
            ended.hosts.entry(host).or_insert(HostEnd::Lost(why));
        }
        Ok(())
    }

    fn log(&self, host: &str, result: &HostResult, ready: Option<&Ready>) -> HostLog {
        let now = self.hosts.borrow();
        let chunk = |n| Some(now.entries.get(&self.keys.log(host, n))?.value.as_slice());
        let chunks: Vec<_> = (0..result.logs).map_while(chunk).collect();
        if chunks.len() < result.logs as usize {
            (self.request.note)(&format!(
                "the log of {host} is incomplete: etcd has no more of it"
            ));
        }
        let text = chunks.concat();
        let start = ready.and_then(|ready| Some((ready.mono_ns, ready.clock?)));
        let end = result.clock.map(|clock| (result.mono_ns, clock));
        HostLog {
            host: host.to_owned(),
            text,
            clock: HostClock {
                start: start.map_or((0, 0), |(at, clock)| (at, clock.offset_ns)),
                end: end.map(|(at, clock)| (at, clock.offset_ns)),
                bound_ns: [start, end]
                    .into_iter()
                    .flatten()
                    .map(|(_, c)| c.bound_ns)
                    .max()
                    .unwrap_or(0),
            },
        }
    }
}
