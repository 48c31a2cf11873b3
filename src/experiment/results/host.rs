// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of the host in one interval or in many.

use emud_monitor::log::{DiskSample, HostSample};

use super::series::{Point, Series};

/// The host over time, and in the measured phase.
#[derive(Debug, Clone, Default)]
pub struct HostTrack {
    /// Samples over time.
    pub series: Series<HostTally>,
    /// The measured phase; a sample belongs to it if its middle does.
    pub measured: HostTally,
}

/// A figure of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostFigure {
    /// Share of the time of all CPUs in which they were not idle.
    Busy,
    /// Share of the time of all CPUs in programs.
    User,
    /// Share of the time of all CPUs in the kernel.
    System,
    /// Share of the time of all CPUs that the hypervisor gave to others.
    Steal,
    /// Share of the time of all CPUs in which they were idle and a program waited for a disk.
    Iowait,
    /// Share of the time in which the busiest CPU was not idle.
    BusiestCpu,
    /// Bytes of memory that are not available.
    MemoryInUse,
    /// Bytes per second read from swap space.
    SwapIn,
    /// Bytes per second written to swap space.
    SwapOut,
    /// Share of the time in which the busiest disk had a request.
    BusiestDisk,
    /// Bytes per second of the disk that read most.
    Read,
    /// Bytes per second of the disk that wrote most.
    Written,
}

/// Number of figures.
const FIGURES: usize = HostFigure::Written as usize + 1;

/// Of the intervals in which a figure is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Known {
    /// Sum of value times ns.
    sum: f64,
    over_ns: u64,
    most: f64,
}

/// Samples added up. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostTally {
    /// From the beginning of the first interval to the end of the last.
    from_ns: u64,
    until_ns: u64,
    figures: [Known; FIGURES],
    /// All memory, the most of any interval; none: unknown.
    pub memory_bytes: Option<u64>,
    /// The disk of the largest share, and that share.
    disk: Option<(f64, String)>,
}

impl From<&HostSample> for HostTally {
    fn from(sample: &HostSample) -> Self {
        let mut tally = Self {
            from_ns: sample.mono_ns.saturating_sub(sample.interval_ns),
            until_ns: sample.mono_ns,
            memory_bytes: sample.memory.map(|memory| memory.total_bytes),
            ..Self::default()
        };
        let mut know = |figure: HostFigure, value: Option<f64>| {
            if let Some(value) = value {
                tally.figures[figure as usize] = Known {
                    sum: value * sample.interval_ns as f64,
                    over_ns: sample.interval_ns,
                    most: value,
                };
            }
        };
        let rate = |bytes: u64| bytes as f64 * 1e9 / sample.interval_ns.max(1) as f64;
        if let Some(cpu) = &sample.cpu {
            know(HostFigure::Busy, Some(cpu.busy));
            know(HostFigure::User, Some(cpu.user));
            know(HostFigure::System, Some(cpu.system));
            know(HostFigure::Steal, Some(cpu.steal));
            know(HostFigure::Iowait, cpu.iowait);
            let busiest = cpu.busiest.as_ref();
            know(HostFigure::BusiestCpu, busiest.map(|cpu| cpu.busy));
        }
        if let Some(memory) = sample.memory {
            let in_use = memory.total_bytes.saturating_sub(memory.available_bytes);
            know(HostFigure::MemoryInUse, Some(in_use as f64));
        }
        if let Some(swap) = sample.swap {
            know(HostFigure::SwapIn, Some(rate(swap.in_bytes)));
            know(HostFigure::SwapOut, Some(rate(swap.out_bytes)));
        }
        if let Some(disks) = &sample.disks {
            // Not a sum: what passes a volume passes its disks, too. With a disk whose figure is unknown
            // the largest is unknown.
            let most = |value: &dyn Fn(&DiskSample) -> Option<f64>| {
                let mut values = disks.iter().map(value);
                values.try_fold(0.0, |most, value| Some(f64::max(most, value?)))
            };
            know(HostFigure::BusiestDisk, most(&|disk| disk.busy));
            know(HostFigure::Read, most(&|disk| disk.read_bytes.map(rate)));
            know(
                HostFigure::Written,
                most(&|disk| disk.written_bytes.map(rate)),
            );
            let named = disks
                .iter()
                .filter_map(|disk| Some((disk.busy?, disk.name.clone())));
            tally.disk = named.max_by(|a, b| a.0.total_cmp(&b.0));
        }
        tally
    }
}

impl HostTally {
    fn known(&self, figure: HostFigure) -> Option<&Known> {
        Some(&self.figures[figure as usize]).filter(|known| known.over_ns > 0)
    }

    /// Returns the mean over time; none: unknown in all intervals.
    pub fn mean(&self, figure: HostFigure) -> Option<f64> {
        self.known(figure)
            .map(|known| known.sum / known.over_ns as f64)
    }

    /// Returns the largest value of an interval; `None`: unknown in all intervals.
    pub fn most(&self, figure: HostFigure) -> Option<f64> {
        self.known(figure).map(|known| known.most)
    }

    /// Returns the name of the disk that was busiest in an interval; `None`: no disk did anything.
    pub fn disk(&self) -> Option<&str> {
        self.disk.as_ref().map(|(_, name)| name.as_str())
    }
}

impl Point for HostTally {
    fn add(&mut self, later: &Self) {
        if self.until_ns == 0 {
            *self = later.clone();
            return;
        }
        self.until_ns = later.until_ns;
        self.memory_bytes = self.memory_bytes.max(later.memory_bytes);
        for (known, more) in self.figures.iter_mut().zip(&later.figures) {
            known.sum += more.sum;
            known.over_ns = known.over_ns.saturating_add(more.over_ns);
            known.most = known.most.max(more.most);
        }
        let busier = later.disk.iter().chain(&self.disk);
        self.disk = busier.max_by(|a, b| a.0.total_cmp(&b.0)).cloned();
    }

    fn span_ns(&self) -> (u64, u64) {
        (self.from_ns, self.until_ns)
    }
}
