// SPDX-License-Identifier: MIT OR Apache-2.0
//! The media of a run with each sample: lines about their stations, and what makes the time since
//! the previous check unreliable.

use std::thread;
use std::time::{Duration, Instant};

use emud_monitor::log::{Line, LineSender};

use crate::datapath::radio::Status;
use crate::host::now_ns;
use crate::monitor::session::experiment::{Failure, LOAD, LOAD_AND_DISK};

use super::media::OnAir;
use super::network::Network;
use super::stations::Stations;

/// How long a last sample waits for its counts at most: ten times as long as they are valid.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// The sampler's findings besides its lines.
#[derive(Debug, Default)]
pub struct Found {
    pub failures: Vec<Failure>,
    /// Links that were removed or tampered with, a sentence for each.
    pub gone: Vec<String>,
}

/// The last status of each medium.
#[derive(Default)]
pub struct MediaWatch {
    seen: Vec<Seen>,
    /// All up to then is to be counted in the last check.
    end_ns: Option<u64>,
}

struct Seen {
    /// The last check.
    mono_ns: u64,
    status: Status,
    stations: Stations,
}

impl MediaWatch {
    /// Waits until the counts of all stations are of now, before the last check. A thread that has not
    /// counted by the end of this time is a finding.
    pub fn settle(&mut self, network: &Network) {
        let (now, begun) = (now_ns(), Instant::now());
        self.end_ns = Some(now);
        let is_behind = |medium: &OnAir| !medium.has_counted(now);
        while network.media.iter().any(is_behind) && begun.elapsed() < SETTLES_WITHIN {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Checks all media; `log` gets a line for each station, if lines are requested. Returns the
    /// frames that were delivered so far.
    pub fn look(&mut self, network: &Network, log: Option<&LineSender>, found: &mut Found) -> u64 {
        let now = now_ns();
        let mut frames = 0;
        for (n, medium) in network.media.iter().enumerate() {
            let status = medium.status(&network.place);
            frames += status.delivered;
            let before = self.seen.get(n).map(|seen| &seen.status);
            found.gone.extend(newly_ended(before, &status).map(|why| {
                let (what, name) = (medium.plan.word(), &medium.name);
                format!("{what} {name}: its thread has ended: {why}")
            }));
            let Some(seen) = self.seen.get_mut(n) else {
                self.seen.push(Seen {
                    mono_ns: now,
                    status,
                    stations: Stations::new(medium),
                });
                continue;
            };
            let (since, before) = (seen.mono_ns, &seen.status);
            let failures = status.failures_since(before, self.end_ns).into_iter();
            found
                .failures
                .extend(failures.map(|(number, what, by_load)| Failure {
                    since_mono_ns: since,
                    until_mono_ns: now,
                    // A record is written by the thread that delivers.
                    explained_by: match &medium.plan.record {
                        _ if !by_load => &[],
                        Some(_) => LOAD_AND_DISK,
                        None => LOAD,
                    },
                    of: format!("{} {}", medium.plan.word(), medium.name),
                    number,
                    what,
                }));
            if let Some(log) = log {
                let samples = seen.stations.samples(medium, before, &status);
                samples
                    .into_iter()
                    .for_each(|sample| log.line(Line::Station(Box::new(sample))));
            }
            (seen.mono_ns, seen.status) = (now, status);
        }
        frames
    }
}

/// Returns why the thread has ended since the last check. It may have done so before the first one, in the
/// preparation.
fn newly_ended<'a>(before: Option<&Status>, now: &'a Status) -> Option<&'a str> {
    let known = before.is_some_and(|before| before.ended.is_some());
    now.ended.as_deref().filter(|_| !known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_at_any_time_is_reported_once() {
        let runs = Status::default();
        let ended = Status {
            ended: Some("it panicked".to_owned()),
            ..Status::default()
        };
        let why = Some("it panicked");
        for (statuses, expected) in [
            ([&ended, &ended, &ended], [why, None, None]),
            ([&runs, &ended, &ended], [None, why, None]),
            ([&runs, &runs, &runs], [None; 3]),
        ] {
            let mut before = None;
            let found = statuses.map(|now| newly_ended(before.replace(now), now));
            assert_eq!(found, expected);
        }
    }
}
