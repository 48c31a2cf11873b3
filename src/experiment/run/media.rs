// SPDX-License-Identifier: MIT OR Apache-2.0
//! The media of a run: stations in the nodes, and a thread for each medium.

use std::fs::File;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::datapath::radio::{self, Radio, RadioError, Setting, Setup, Stamp, Status, TapSetup};
use crate::experiment::lab::Lab;
use crate::experiment::scenario::Medium;
use crate::medium::phy::Position;
use crate::metrics::MediumSource;
use crate::netlink::Netlink;

use super::location::RunLocation;
use super::{RunError, Settings, derived, numbered};

/// A medium whose thread runs.
pub struct OnAir {
    pub name: String,
    pub plan: Medium,
    radio: Radio,
    stations: Vec<OfHost>,
    /// When the motion begins, ns of CLOCK_MONOTONIC.
    moving_since_ns: OnceLock<u64>,
}

/// A station as the host has it.
struct OfHost {
    node: String,
    ifindex: u32,
    dropped: Dropped,
}

/// Packets that a station's TAP has dropped. They only grow, also while they cannot be read, as when
/// the node has moved the interface away.
#[derive(Default)]
struct Dropped(AtomicU64);

impl Dropped {
    fn so_far(&self, read: Option<u64>) -> u64 {
        let read = read.unwrap_or(0);
        self.0.fetch_max(read, Ordering::Relaxed).max(read)
    }
}

/// Creates the stations of a medium, the `n`-th one of this host, and starts its thread.
///
/// # Errors
/// [`RunError::Medium`]; its devices are deleted then.
pub fn start(
    lab: &Lab,
    medium: &Medium,
    n: usize,
    how: &Settings,
    notes: &mut Vec<String>,
) -> Result<OnAir, RunError> {
    let name = &medium.interface;
    let failed = |node: Option<&str>, error: RadioError| RunError::Medium {
        medium: name.clone(),
        node: node.map(str::to_owned),
        error: Box::new(error),
    };
    let number = medium.number as u8;
    let emulator = how.config.emulator.as_ref();
    let late = emulator.map_or(Duration::ZERO, |emulator| emulator.late);
    // A different stream than that of the link with this number.
    let seed = derived(!how.seed, medium.number);
    let mut stamp = match Stamp::load() {
        Ok(stamp) => Some(stamp),
        Err(error) => {
            notes.push(format!(
                "{} {name}: packets are stamped when they are read: {error}",
                medium.word()
            ));
            None
        }
    };
    let mut taps = Vec::new();
    let mut stations = Vec::new();
    for (station, of) in (0..).zip(&medium.stations) {
        let setup = TapSetup {
            name,
            mac: radio::address(number, station),
            address: Some(of.address),
            ipv6: medium.ipv6,
        };
        let created = lab.within(&of.node, || radio::create(&setup, stamp.as_mut()))?;
        let tap = created.map_err(|error| failed(Some(&of.node), error))?;
        if let Some(why) = tap.unstamped.as_ref().filter(|_| stamp.is_some()) {
            notes.push(format!(
                "{} {name}: packets of {} are stamped when they are read: {why}",
                medium.word(),
                of.node
            ));
        }
        stations.push(OfHost {
            node: of.node.clone(),
            ifindex: tap.ifindex,
            dropped: Dropped::default(),
        });
        taps.push(tap);
    }
    let record = medium.record.as_ref().map(|path| {
        let path = numbered(Path::new(path), how.repeat);
        let created = match &how.caller {
            Some(caller) => caller.create(&path),
            None => File::create(&path),
        };
        created.map_err(|source| RadioError::System {
            what: format!("create the record {}", path.display()),
            source,
        })
    });
    let radio = Radio::start(Setup {
        name: name.clone(),
        number,
        nth: n,
        plan: medium.air(seed),
        setting: Setting {
            geometry: medium.geometry(),
            tracks: medium.stations.iter().map(|s| s.track.clone()).collect(),
            modes: medium.modes(),
            promiscuous: medium.stations.iter().map(|s| s.promiscuous).collect(),
        },
        taps,
        late,
        record: record.transpose().map_err(|error| failed(None, error))?,
    });
    Ok(OnAir {
        name: name.clone(),
        plan: medium.clone(),
        moving_since_ns: OnceLock::new(),
        radio: radio.map_err(|error| failed(None, error))?,
        stations,
    })
}

impl OnAir {
    /// Makes the motion of the stations begin at a time, ns of CLOCK_MONOTONIC.
    pub fn begin_motion(&self, origin_ns: u64) -> Result<(), RunError> {
        let begun = self.radio.begin_motion(origin_ns);
        begun.map_err(|error| RunError::System {
            what: "starting a thread",
            error,
        })?;
        self.moving_since_ns.get_or_init(|| origin_ns);
        Ok(())
    }

    /// Returns the stations' positions at a time, ns of CLOCK_MONOTONIC.
    pub fn positions(&self, mono_ns: u64) -> Vec<Position> {
        let began_ns = self.moving_since_ns.get();
        let moving_ns = began_ns.map_or(0, |began_ns| mono_ns.saturating_sub(*began_ns));
        let stations = self.plan.stations.iter();
        stations
            .map(|station| station.track.at(moving_ns))
            .collect()
    }

    /// Returns what the metrics read.
    pub fn source(&self) -> MediumSource {
        let nodes = self.plan.stations.iter().map(|s| s.node.clone());
        MediumSource {
            name: self.name.clone(),
            nodes: nodes.collect(),
            gauge: self.radio.gauge(),
            watts: self.plan.watts(),
        }
    }

    /// Returns the counters so far, with those of the kernel.
    pub fn status(&self, place: &RunLocation) -> Status {
        let dropped = |station: &OfHost| {
            let read = || Netlink::open()?.tx_dropped(station.ifindex);
            let read = place.within(&station.node, read);
            station.dropped.so_far(read.ok().and_then(Result::ok))
        };
        Status {
            overflowed: self.stations.iter().map(dropped).sum(),
            ..self.radio.status()
        }
    }

    /// Returns whether the stations' counts are of this time, or the thread has failed.
    pub fn has_counted(&self, mono_ns: u64) -> bool {
        self.radio.status().has_counted(mono_ns)
    }

    /// Ends the medium, and describes in a line what has happened: a record is complete, or known not to be,
    /// only when its thread has ended.
    pub fn end(&self) -> String {
        let status = self.radio.end();
        let sum = |of: fn(&crate::medium::air::Count) -> u64| -> u64 {
            status.stations.iter().map(of).sum()
        };
        let mut text = format!(
            "{} {}: {} attempts, {} of {} packets sent, {} given up, {} met a full queue; {} \
             frames delivered, {} more than 1 ms late (latest: {:.1} ms)",
            self.plan.word(),
            self.name,
            sum(|c| c.attempts),
            sum(|c| c.sent),
            status.read,
            sum(|c| c.given_up),
            sum(|c| c.full),
            status.delivered,
            status.late,
            status.worst_late_ns as f64 / 1e6,
        );
        for (count, what) in [
            (sum(|c| c.managed), "packets by RED"),
            (status.foreign, "frames with a foreign source"),
            (status.unknown, "frames to no station"),
            (status.malformed, "frames too long or with a VLAN tag"),
        ] {
            if count > 0 {
                text += &format!("; dropped {count} {what}");
            }
        }
        if let Some(error) = status.record {
            text += &format!("; the record is not complete: {error}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_do_not_disappear_with_their_interface() {
        let dropped = Dropped::default();
        let reads = [Some(3), None, Some(0), Some(5), None];
        assert_eq!(reads.map(|read| dropped.so_far(read)), [3, 3, 3, 5, 5]);
    }
}
