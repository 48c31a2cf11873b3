// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recording programs in the kernel, and the thread that writes their records.
//!
//! Longer than 400 lines: the writing thread needs all maps that the start has opened.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aya::maps::{HashMap, Map, MapData, PerCpuArray, RingBuf};
use aya::{Btf, Ebpf};

use super::abi::{self, emud_rec_counters, emud_rec_cpu, emud_rec_disk};
use super::bytes::{self, Record};
use super::event::Kind;
use super::programs::{self, Attached};
use super::{Event, Header, Interval, RecordError, SCHEMA, StopReason, Trailer, Writer};
use crate::criteria::Basis;
use crate::denied::is_denied;
use crate::host;
use crate::loader;
use crate::log::{Clock, Host, mono_ns};
use crate::skipped;
use crate::swaps::{self, Swap};

/// Options of a recording.
#[derive(Debug, Clone)]
pub struct Options {
    /// Size of the ring buffer between kernel and file: a power of two, 4 KiB to 1 GiB.
    pub ring_bytes: u32,
    /// Definition of an idle CPU.
    pub cpu_basis: Basis,
}

impl Options {
    /// Default size of the ring buffer in bytes.
    pub const RING_BYTES: u32 = 16 << 20;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ring_bytes: Self::RING_BYTES,
            cpu_basis: Basis::Task,
        }
    }
}

/// The content of a finished recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Header of the file.
    pub header: Header,
    /// Trailer of the file.
    pub trailer: Trailer,
}

/// A running recording. Dropping it detaches the programs and leaves the file cut short.
#[derive(Debug)]
pub struct Recorder {
    /// Keeps the programs attached.
    bpf: Option<Ebpf>,
    programs: Vec<(&'static str, Kind)>,
    header: Header,
    orders: Arc<Orders>,
    thread: Option<JoinHandle<Result<Trailer, RecordError>>>,
}

#[derive(Debug)]
struct Orders {
    /// End of the recording, later events are not part of it; u64::MAX: still recording.
    end_ns: AtomicU64,
    stop: AtomicBool,
    /// Events for which the kernel did not run a program; set before `stop`.
    skipped: OnceLock<Lost>,
    /// The reason; read after `stop`.
    by_signal: AtomicBool,
    /// Whether the file is given up.
    abandon: AtomicBool,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            end_ns: AtomicU64::new(u64::MAX),
            stop: AtomicBool::default(),
            skipped: OnceLock::new(),
            by_signal: AtomicBool::default(),
            abandon: AtomicBool::default(),
        }
    }
}

/// A ring of 16 MiB takes 400,000 records in this time.
const POLL: Duration = Duration::from_millis(20);
/// Number of polls between two checks for losses and flushes to the file.
const HOUSEKEEPING_POLLS: u32 = 10;
/// Size of the buffer between ring and file.
const BUFFER_BYTES: usize = 1 << 20;

impl Recorder {
    /// Loads the programs, attaches them hook by hook, and starts to write to `file`.
    ///
    /// # Errors
    /// This process lacks permission, or the kernel supports none of the hooks.
    pub fn start(file: File, options: &Options) -> Result<Self, RecordError> {
        let swaps = swap_areas();
        let btf = Btf::from_sys_fs()?;
        let mut bpf = load(&btf, options)?;
        let mut maps = Maps::of(&mut bpf)?;
        maps.set_swaps(&swaps)?;
        let attached = programs::attach(&mut bpf, btf, options.cpu_basis)?;
        let programs = attached.programs.clone();
        let header = header(options, attached, swaps);
        let out = BufWriter::with_capacity(BUFFER_BYTES, file);
        let writer = Writer::new(out, &header).map_err(RecordError::Write)?;
        let orders = Arc::new(Orders::default());
        let scribe = Scribe {
            maps,
            writer,
            start_ns: header.start_mono_ns,
            lost: Lost::default(),
        };
        let thread = thread::Builder::new()
            .name("emud-record".into())
            .spawn({
                let orders = Arc::clone(&orders);
                move || scribe.run(&orders)
            })
            .map_err(|source| RecordError::System {
                what: "cannot start a thread",
                source,
            })?;
        Ok(Self {
            bpf: Some(bpf),
            programs,
            header,
            orders,
            thread: Some(thread),
        })
    }

    /// Returns what is recorded, and how.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns false if the file can no longer be written; [`Self::finish`] returns the reason.
    pub fn is_writing(&self) -> bool {
        self.thread.as_ref().is_some_and(|t| !t.is_finished())
    }

    /// Detaches the programs and completes the file.
    ///
    /// # Errors
    /// The file could not be written, now or earlier; a map could not be read.
    pub fn finish(mut self, reason: StopReason) -> Result<Summary, RecordError> {
        self.orders.end_ns.store(mono_ns(), Ordering::Release);
        let skipped = self.skipped().map_err(|source| RecordError::System {
            what: "cannot read the skipped events of a program",
            source,
        });
        self.bpf = None;
        // It has no other value yet.
        let _ = self.orders.skipped.set(skipped?);
        let by_signal = reason == StopReason::Signal;
        self.orders.by_signal.store(by_signal, Ordering::Relaxed);
        self.orders.stop.store(true, Ordering::Release);
        let thread = self.thread.take().ok_or(RecordError::Thread)?;
        let trailer = thread.join().map_err(|_| RecordError::Thread)??;
        Ok(Summary {
            header: self.header.clone(),
            trailer,
        })
    }
}

impl Recorder {
    fn skipped(&self) -> io::Result<Lost> {
        let mut skipped = Lost::new();
        for (name, kind) in &self.programs {
            if let Some(program) = self.bpf.as_ref().and_then(|bpf| bpf.program(name)) {
                *skipped.entry(*kind).or_default() += skipped::skipped(program)?;
            }
        }
        Ok(skipped)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.bpf = None;
        self.orders.abandon.store(true, Ordering::Relaxed);
        self.orders.stop.store(true, Ordering::Release);
    }
}

fn load(btf: &Btf, options: &Options) -> Result<Ebpf, RecordError> {
    let ring = options.ring_bytes;
    if !ring.is_power_of_two() || !(4096..=1 << 30).contains(&ring) {
        return Err(RecordError::RingSize(u64::from(ring)));
    }
    let page_shift = host::page_bytes().trailing_zeros();
    loader(Some(btf))
        .map_max_entries("emud_rec_ring", ring)
        .override_global("emud_rec_page_shift", &page_shift, true)
        .override_global("emud_flush_seq", &host::flush_seq(), true)
        .load(abi::OBJECT)
        .map_err(|e| match is_denied(&e) {
            true => RecordError::Permission,
            false => e.into(),
        })
}

fn header(options: &Options, attached: Attached, swaps: Vec<Swap>) -> Header {
    Header {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        host: Host::now(),
        hz: host::hz(),
        page_bytes: host::page_bytes(),
        clock: Clock::now(),
        start_mono_ns: mono_ns(),
        cpu_basis: options.cpu_basis,
        ring_bytes: options.ring_bytes,
        hooks: attached.hooks,
        watched: attached.watched,
        swaps: swaps.into_iter().map(|s| s.path).collect(),
    }
}

/// Returns the swap areas. Without /proc/swaps the kernel has no swap.
fn swap_areas() -> Vec<Swap> {
    swaps::now().unwrap_or_default()
}

struct Maps {
    ring: RingBuf<MapData>,
    counts: PerCpuArray<MapData, emud_rec_counters>,
    cpus: PerCpuArray<MapData, emud_rec_cpu>,
    disks: HashMap<MapData, u32, emud_rec_disk>,
    swaps: HashMap<MapData, u32, u8>,
}

impl Maps {
    fn of(bpf: &mut Ebpf) -> Result<Self, RecordError> {
        let mut take = |name: &'static str| -> Result<Map, RecordError> {
            bpf.take_map(name).ok_or(RecordError::Missing(name))
        };
        Ok(Self {
            ring: take("emud_rec_ring")?.try_into()?,
            counts: take("emud_rec_counts")?.try_into()?,
            cpus: take("emud_rec_cpus")?.try_into()?,
            disks: take("emud_rec_disks")?.try_into()?,
            swaps: take("emud_rec_swaps")?.try_into()?,
        })
    }

    /// Adds swap devices and removes none: a former swap device is not used for files immediately.
    fn set_swaps(&mut self, swaps: &[Swap]) -> Result<(), RecordError> {
        for device in swaps.iter().filter_map(|s| s.device) {
            self.swaps.insert(device, 1, 0)?;
        }
        Ok(())
    }

    fn counters(&self) -> Result<emud_rec_counters, RecordError> {
        let mut all = emud_rec_counters::default();
        for cpu in self.counts.get(&0, 0)?.iter() {
            all.disks_unknown += cpu.disks_unknown;
            all.unpaired += cpu.unpaired;
            for (sum, n) in all.lost.iter_mut().zip(cpu.lost) {
                *sum += n;
            }
        }
        Ok(all)
    }

    /// Returns the intervals that are still open; call it after the programs are detached.
    fn open_intervals(&self) -> Result<Vec<Event>, RecordError> {
        let open = |since: u64, open_begin: bool| Interval {
            begin_ns: since,
            end_ns: u64::MAX,
            open_begin,
            open_end: true,
        };
        let mut events = vec![];
        for (cpu, state) in (0..).zip(self.cpus.get(&0, 0)?.iter()) {
            if state.state == abi::EMUD_REC_BUSY {
                let open_begin = state.flags & abi::EMUD_REC_OPEN_BEGIN != 0;
                let interval = open(state.since, open_begin);
                events.push(Event::CpuBusy { cpu, interval });
            }
        }
        for entry in self.disks.iter() {
            let (device, disk) = entry?;
            if disk.inflight > 0 {
                let interval = open(disk.since, false);
                events.push(Event::DiskBusy { device, interval });
            }
        }
        Ok(events)
    }
}

/// Lost records by kind.
type Lost = BTreeMap<Kind, u64>;

struct Scribe {
    maps: Maps,
    writer: Writer<BufWriter<File>>,
    start_ns: u64,
    lost: Lost,
}

impl Scribe {
    fn run(mut self, orders: &Orders) -> Result<Trailer, RecordError> {
        let mut polls = 0;
        while !orders.stop.load(Ordering::Acquire) {
            self.drain(orders)?;
            polls += 1;
            if polls % HOUSEKEEPING_POLLS == 0 {
                self.keep_house()?;
            }
            thread::sleep(POLL);
        }
        if orders.abandon.load(Ordering::Relaxed) {
            return Err(RecordError::Thread);
        }
        let reason = if orders.by_signal.load(Ordering::Relaxed) {
            StopReason::Signal
        } else {
            StopReason::Duration
        };
        self.finish(orders, reason)
    }

    fn drain(&mut self, orders: &Orders) -> Result<(), RecordError> {
        let end_ns = orders.end_ns.load(Ordering::Acquire);
        while let Some(item) = self.maps.ring.next() {
            // Every record of the programs has this length.
            let Ok(record) = Record::try_from(&item[..]) else {
                continue;
            };
            let record = bytes::to_little_endian(record);
            if let Some(record) = bytes::clip(record, self.start_ns, end_ns) {
                self.writer.record(&record).map_err(RecordError::Write)?;
            }
        }
        Ok(())
    }

    fn keep_house(&mut self) -> Result<(), RecordError> {
        self.note_losses(&Lost::new())?;
        self.maps.set_swaps(&swap_areas())?;
        self.writer.flush().map_err(RecordError::Write)
    }

    /// Writes losses regularly, so that the reader of a file that is cut short misses only the last
    /// ones.
    fn note_losses(&mut self, skipped: &Lost) -> Result<emud_rec_counters, RecordError> {
        let counters = self.maps.counters()?;
        let time_ns = mono_ns();
        for kind in Kind::all() {
            let skipped = skipped.get(&kind).copied().unwrap_or(0);
            let total = counters.lost[usize::from(kind.code())] + skipped;
            let count = total - self.lost.get(&kind).copied().unwrap_or(0);
            if count > 0 {
                self.lost.insert(kind, total);
                let lost = Event::Lost {
                    time_ns,
                    kind,
                    count,
                };
                self.writer.event(&lost).map_err(RecordError::Write)?;
            }
        }
        Ok(counters)
    }

    fn finish(mut self, orders: &Orders, reason: StopReason) -> Result<Trailer, RecordError> {
        let end_mono_ns = orders.end_ns.load(Ordering::Acquire);
        self.drain(orders)?;
        for event in self.maps.open_intervals()? {
            if let Some(record) = bytes::clip(event.encode(), self.start_ns, end_mono_ns) {
                self.writer.record(&record).map_err(RecordError::Write)?;
            }
        }
        let skipped = orders.skipped.get().cloned().unwrap_or_default();
        let counters = self.note_losses(&skipped)?;
        let trailer = Trailer {
            end_mono_ns,
            reason,
            records: self.writer.counts(),
            lost: self.lost,
            disks_unknown: counters.disks_unknown,
            unpaired: counters.unpaired,
        };
        self.writer.finish(&trailer).map_err(RecordError::Write)?;
        Ok(trailer)
    }
}
