// SPDX-License-Identifier: MIT OR Apache-2.0
//! Feeds a recording's events to the criteria.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use super::devices::{Device, Devices, Watch};
use super::findings::watched;
use super::intervals::Intervals;
use super::reorder::Reorder;
use super::{Distribution, Findings, Measure, Tally};
use crate::config::{Config, Memory};
use crate::criteria::Measured;
use crate::criteria::table::ns;
use crate::record::{End, Event, Header, Kind, NetClass, ReadError, Reader};

/// Why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("a histogram: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
}

impl CalibrateError {
    /// After sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read(e) => e.exit_code(),
            Self::Histogram(_) => 70, // EX_SOFTWARE
        }
    }
}

/// Judges all events of a recording as the kernel's programs would have with these thresholds.
///
/// # Errors
/// The recording cannot be read, or is damaged. That it was cut short is no error, but noted.
pub fn replay<R: Read>(
    mut reader: Reader<R>,
    thresholds: &Config,
) -> Result<Findings, CalibrateError> {
    let mut replay = Replay::new(reader.header(), thresholds)?;
    for event in &mut reader {
        replay.feed(event?);
    }
    let header = reader.header().clone();
    let end = reader.end().cloned();
    let end = end.unwrap_or(End::Cut { stray_bytes: 0 });
    Ok(replay.finish(header, end, reader.records()))
}

/// An event of a sliding window.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sample {
    Packet(Device, bool, u32),
    PageIn(u32),
    PageOut(u32),
}

#[derive(Debug)]
struct Replay {
    start_ns: u64,
    last_ns: u64,
    cpu: Option<Intervals>,
    disk: Option<Intervals>,
    disk_names: HashMap<u32, String>,
    devices: Option<Devices>,
    paging: Option<Paging>,
    samples: Reorder<Sample>,
    lost: BTreeMap<Kind, u64>,
}

#[derive(Debug)]
struct Paging {
    window_ns: u64,
    ins: Option<Watch>,
    outs: Option<Watch>,
}

impl Paging {
    fn new(memory: &Memory, empty: &Tally) -> Self {
        let window_ns = ns(memory.window);
        let watch = |pages: u64| Watch::new(window_ns, Some(pages), empty);
        Self {
            window_ns,
            ins: memory.page_ins.map(watch),
            outs: memory.page_outs.map(watch),
        }
    }
}

impl Replay {
    fn new(header: &Header, config: &Config) -> Result<Self, CalibrateError> {
        let start_ns = header.start_mono_ns;
        let empty = Tally {
            distribution: Distribution::new()?,
            threshold: None,
            alarms: 0,
            first_ns: None,
        };
        let cpu = config.cpu.map(|cpu| {
            let theta_ns = ns(cpu.theta);
            Intervals::new(theta_ns, BTreeMap::new(), start_ns, empty.clone())
        });
        let disk = config.disk.as_ref().map(|disk| {
            let own = disk.devices.iter();
            let own = own.map(|(name, theta)| (name.clone(), theta.map(ns)));
            Intervals::new(ns(disk.theta), own.collect(), start_ns, empty.clone())
        });
        let network = config.network.as_ref();
        Ok(Self {
            start_ns,
            last_ns: start_ns,
            cpu,
            disk,
            disk_names: HashMap::new(),
            devices: network.map(|n| Devices::new(n, start_ns, &empty)),
            paging: config.memory.map(|memory| Paging::new(&memory, &empty)),
            samples: Reorder::new(),
            lost: BTreeMap::new(),
        })
    }

    fn feed(&mut self, event: Event) {
        match event {
            Event::CpuBusy { cpu, interval } => {
                self.saw(interval.end_ns);
                if let Some(cpus) = &mut self.cpu {
                    cpus.add(&format!("cpu{cpu}"), interval);
                }
            }
            Event::DiskBusy { device, interval } => {
                self.saw(interval.end_ns);
                let name = self.disk_names.get(&device);
                let number = || format!("{}:{}", device >> 20, device & 0xf_ffff);
                let name = name.cloned().unwrap_or_else(number);
                if let Some(disks) = &mut self.disk {
                    disks.add(&name, interval);
                }
            }
            Event::Disk { device, name } => {
                self.disk_names.insert(device, name);
            }
            Event::Interface {
                ifindex,
                netns,
                name,
            } => {
                if let Some(devices) = &mut self.devices {
                    devices.name((netns, ifindex), name);
                }
            }
            Event::Packet {
                time_ns,
                bytes,
                ifindex,
                netns,
                class,
            } => {
                let external = class == NetClass::External;
                self.sample(time_ns, Sample::Packet((netns, ifindex), external, bytes));
            }
            Event::PageIn { time_ns, pages } => self.sample(time_ns, Sample::PageIn(pages)),
            Event::PageOut { time_ns, pages } => self.sample(time_ns, Sample::PageOut(pages)),
            Event::Lost { kind, count, .. } => *self.lost.entry(kind).or_default() += count,
        }
    }

    fn saw(&mut self, time_ns: u64) {
        self.last_ns = self.last_ns.max(time_ns);
    }

    fn sample(&mut self, time_ns: u64, sample: Sample) {
        self.saw(time_ns);
        self.samples.push(time_ns, sample);
        while let Some((time_ns, sample)) = self.samples.next() {
            self.judge(time_ns, &sample);
        }
    }

    fn judge(&mut self, time_ns: u64, sample: &Sample) {
        let (watch, pages) = match (sample, &mut self.paging) {
            (Sample::Packet(device, external, bytes), _) => {
                let class = if *external {
                    NetClass::External
                } else {
                    NetClass::Internal
                };
                if let Some(devices) = &mut self.devices {
                    devices.add(*device, class, time_ns, *bytes);
                }
                return;
            }
            (_, None) => return,
            (Sample::PageIn(pages), Some(paging)) => (&mut paging.ins, pages),
            (Sample::PageOut(pages), Some(paging)) => (&mut paging.outs, pages),
        };
        if let Some(watch) = watch {
            watch.add(time_ns, u64::from(*pages), self.start_ns);
        }
    }

    fn finish(mut self, header: Header, end: End, records: u64) -> Findings {
        while let Some((time_ns, sample)) = self.samples.pop() {
            self.judge(time_ns, &sample);
        }
        let end_ns = match &end {
            End::Complete(trailer) => trailer.end_mono_ns,
            End::Cut { .. } => self.last_ns,
        };
        let (late, lost, start_ns) = (self.samples.late(), self.lost.clone(), self.start_ns);
        Findings {
            measures: self.measures(&header),
            header,
            end,
            records,
            lost,
            late,
            duration_ns: end_ns.saturating_sub(start_ns),
        }
    }

    fn measures(self, header: &Header) -> BTreeMap<&'static str, Measure> {
        let intervals = |name, intervals: Intervals| {
            let threshold = Some(intervals.threshold());
            let total = Tally {
                threshold,
                ..intervals.total
            };
            (name, None, total, intervals.members)
        };
        let mut found = vec![];
        found.extend(self.cpu.map(|i| intervals("cpu", i)));
        found.extend(self.disk.map(|i| intervals("disk", i)));
        if let Some(devices) = self.devices {
            let window_ns = Some(devices.window_ns());
            let classes = devices.finish();
            found.extend(classes.map(|(name, total, of)| (name, window_ns, total, of)));
        }
        if let Some(paging) = self.paging {
            let window_ns = Some(paging.window_ns);
            for (name, watch) in [("page-in", paging.ins), ("page-out", paging.outs)] {
                found.extend(watch.map(|w| (name, window_ns, w.tally, BTreeMap::new())));
            }
        }
        let measure = |(name, window_ns, total, members)| {
            let (_, measured) = Measured::all().find(|(_, measured)| measured.name == name)?;
            let measure = Measure {
                watched: watched(measured, &header.watched),
                window_ns,
                total,
                members,
            };
            Some((name, measure))
        };
        found.into_iter().filter_map(measure).collect()
    }
}
