// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread of a medium: reads all stations, decides on the air up to the present, delivers.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

use super::Tap;
use super::frame::{self, Destination, OLDEST_STAMP_NS, Reject};
use super::motion::Step;
use super::pool::Pool;
use super::record::{MOST_STATIONS, Record, Setting};
use super::status::{FAILED_NS, Status};
use crate::host::{nanoseconds, now_ns, sleep_until, timespec};
use crate::medium::air::{Air, Frame, Outcome, Plan, To};

/// How far virtual time stays behind the clock, in ns: a packet is stamped, and then put into the TAP by
/// its CPU, which a softirq or the hypervisor may interrupt.
const MARGIN_NS: u64 = 30_000;
/// Interval of copies of the stations' counts.
const COUNT_EVERY_NS: u64 = 100_000_000;
const LONGEST_FRAME: usize = 68 << 10;
/// Frames of each station that are read before the next decisions: a flood always leaves more, and
/// the medium would stand still while memory grew.
const READ_ROUNDS: usize = 64;
/// All stations, and the end.
const MOST_READY: usize = MOST_STATIONS + 1;
/// The descriptor that ends the thread, beside those of the stations.
const STOP: u64 = u64::MAX;

/// A medium to be carried out.
#[derive(Debug)]
pub struct Setup {
    /// Name of the medium.
    pub name: String,
    /// Distinguishes the addresses of several media.
    pub number: u8,
    /// Position among the media of this host, which chooses the CPU of its thread.
    pub nth: usize,
    /// Parameters that its stations share.
    pub plan: Plan,
    /// Stations and their positions at the start.
    pub setting: Setting,
    /// In the order of stations.
    pub taps: Vec<Tap>,
    /// Accepted lateness of a delivery; the least is 5 ms.
    pub late: Duration,
    /// Where arrivals are written for [`replay`](super::replay).
    pub record: Option<File>,
}

/// State after a reading of the TAPs.
struct Drained {
    /// All that was sent until then has been read, in virtual time.
    until_ns: u64,
    left: bool,
}

pub(super) struct Worker {
    number: u8,
    air: Air<u32>,
    taps: Vec<Tap>,
    pool: Pool,
    scratch: Vec<u8>,
    epoll: OwnedFd,
    /// Open as long as the thread waits for it.
    _stop: Arc<OwnedFd>,
    /// Virtual time 0.
    pub(super) start_ns: u64,
    /// Its own, so that a frame costs no lock.
    pub(super) status: Status,
    /// Status for other threads, copied before each wait.
    shared: Arc<Mutex<Status>>,
    record: Option<Record>,
    steps: Receiver<Step>,
    next_count_ns: u64,
    /// When each station has sent the last frame that was read, in virtual time.
    sent_ns: Vec<u64>,
}

impl Worker {
    pub(super) fn new(
        setup: Setup,
        stop: &Arc<OwnedFd>,
        shared: Arc<Mutex<Status>>,
        steps: Receiver<Step>,
    ) -> io::Result<Self> {
        let (plan, setting) = (setup.plan, setup.setting);
        let record = setup
            .record
            .map(|file| Record::begin(file, &plan, &setting));
        let air = setting.air(plan);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let readable = epoll::EventFlags::IN;
        for (station, tap) in setup.taps.iter().enumerate() {
            epoll::add(
                &epoll,
                &tap.fd,
                epoll::EventData::new_u64(station as u64),
                readable,
            )?;
        }
        epoll::add(
            &epoll,
            stop.as_ref(),
            epoll::EventData::new_u64(STOP),
            readable,
        )?;
        Ok(Self {
            number: setup.number,
            air,
            sent_ns: vec![0; setup.taps.len()],
            taps: setup.taps,
            pool: Pool::default(),
            scratch: vec![0; LONGEST_FRAME],
            epoll,
            _stop: Arc::clone(stop),
            start_ns: now_ns(),
            status: Status {
                failed_ns: FAILED_NS.max(nanoseconds(setup.late)),
                ..Status::default()
            },
            shared,
            record: record.transpose()?,
            steps,
            next_count_ns: 0,
        })
    }

    pub(super) fn shared(&self) -> MutexGuard<'_, Status> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the counters for readers, but never waits for one: the next copy, at the latest in
    /// `COUNT_EVERY_NS`, has what this one has not.
    fn publish(&self) {
        match self.shared.try_lock() {
            Ok(mut shared) => *shared = self.status.clone(),
            Err(TryLockError::Poisoned(shared)) => *shared.into_inner() = self.status.clone(),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    pub(super) fn run(&mut self) -> io::Result<()> {
        loop {
            let now = now_ns();
            let read = self.status.read;
            let Some(drained) = self.drain(now)? else {
                return Ok(());
            };
            let deaf_ns = match self.status.read > read {
                true => self.air.shortest_ns() + MARGIN_NS,
                false => 0,
            };
            self.move_stations();
            self.decide(drained.until_ns.saturating_sub(MARGIN_NS));
            if now >= self.next_count_ns {
                self.count();
                self.next_count_ns = now + COUNT_EVERY_NS;
            }
            self.publish();
            if !drained.left {
                self.wait(now + deaf_ns)?;
            }
        }
    }

    /// Takes over positions; those that are late begin now.
    fn move_stations(&mut self) {
        let latest_ns = self.sent_ns.iter().copied().max().unwrap_or(0);
        while let Ok(Step {
            at_ns,
            step,
            matrix,
        }) = self.steps.try_recv()
        {
            // A replay has decided what is older.
            let decided_ns = latest_ns.saturating_sub(OLDEST_STAMP_NS);
            let begin_ns = at_ns.max(self.air.now_ns() + 1).max(decided_ns);
            if let Some(record) = &mut self.record {
                record.moved(begin_ns, step);
            }
            self.air.move_at(begin_ns, matrix);
            self.status.staleness(begin_ns - at_ns);
        }
    }

    /// Reads what is there, a frame of each station in turn; `None`: the end.
    fn drain(&mut self, now: u64) -> io::Result<Option<Drained>> {
        let mut ready = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; MOST_READY];
        let mut until_ns = now - self.start_ns;
        for _ in 0..READ_ROUNDS {
            let none = Timespec::default();
            let found = rustix::io::retry_on_intr(|| {
                epoll::wait(&self.epoll, &mut ready[..], Some(&none))
            })?;
            if found == 0 {
                return Ok(Some(Drained {
                    until_ns: now - self.start_ns,
                    left: false,
                }));
            }
            until_ns = now - self.start_ns;
            for event in &ready[..found] {
                match event.data.u64() {
                    STOP => return Ok(None),
                    // The frames of a station are in the order of their times.
                    station => {
                        let sent_ns = self.read(station as usize)?;
                        until_ns = until_ns.min(sent_ns.unwrap_or(u64::MAX));
                    }
                }
            }
        }
        Ok(Some(Drained {
            until_ns,
            left: true,
        }))
    }

    /// Reads a frame. Returns when it was sent, in virtual time, if that is known.
    fn read(&mut self, station: usize) -> io::Result<Option<u64>> {
        match rustix::io::read(&self.taps[station].fd, &mut self.scratch) {
            Ok(len) => Ok(self.take(station, len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn take(&mut self, station: usize, len: usize) -> Option<u64> {
        let now = now_ns();
        let own = (self.number, station as u16, self.taps.len() as u16);
        let received = frame::read(&self.scratch[..len], own, now);
        let status = &mut self.status;
        status.read += 1;
        let received = match received {
            Ok(received) => received,
            Err(reject) => {
                match reject {
                    Reject::Foreign => status.foreign += 1,
                    Reject::Unknown => status.unknown += 1,
                    Reject::Malformed => status.malformed += 1,
                }
                return None;
            }
        };
        let has_program = self.taps[station].unstamped.is_none();
        status.unstamped += u64::from(has_program && received.stamp_ns.is_none());
        // Frames stay in the order of their TAP, also after one that was stamped here.
        let stamp_ns = received.stamp_ns.unwrap_or(now);
        let sent_ns = stamp_ns.saturating_sub(self.start_ns);
        let sent_ns = sent_ns.max(self.sent_ns[station]);
        self.sent_ns[station] = sent_ns;
        // All up to now is decided: it arrives behind it, which a replay can repeat.
        let at_ns = sent_ns.max(self.air.now_ns() + 1);
        status.staleness(at_ns - sent_ns);
        let token = self.pool.keep(&self.scratch[..received.len]);
        let frame = Frame {
            to: match received.to {
                Destination::All => To::All,
                Destination::Station(station) => To::Station(station),
            },
            bytes: received.packet,
            token,
        };
        if let Some(record) = &mut self.record {
            record.arrival(at_ns, station, &frame, received.ds);
        }
        self.air.arrive_with(at_ns, station, frame, received.ds);
        Some(sent_ns)
    }

    /// Carries out the air up to a time.
    fn decide(&mut self, until_ns: u64) {
        while let Some(outcome) = self.air.next(until_ns) {
            match outcome {
                Outcome::Delivered {
                    at_ns,
                    from,
                    to,
                    token,
                } => {
                    if let Some(record) = &mut self.record {
                        record.delivery(at_ns, from, to);
                    }
                    self.deliver(at_ns, to, token);
                }
                Outcome::Finished { token, .. } => self.pool.release(token),
            }
        }
    }

    fn deliver(&mut self, at_ns: u64, to: usize, token: u32) {
        let frame = self.pool.get(token);
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&self.taps[to].fd, frame));
        let late_ns = now_ns().saturating_sub(self.start_ns + at_ns);
        let status = &mut self.status;
        match written {
            Ok(_) => {
                status.delivered += 1;
                status.lateness(late_ns);
            }
            // Its interface is down: a radio that is off receives nothing.
            Err(Errno::IO) => {}
            Err(_) => status.refused += 1,
        }
    }

    /// Copies the stations' counts.
    pub(super) fn count(&mut self) {
        let stations = (0..self.taps.len()).map(|station| self.air.count(station));
        let stations = stations.collect();
        let failed = self.record.as_mut().and_then(Record::failure);
        let status = &mut self.status;
        status.stations = stations;
        status.counted_ns = self.start_ns + self.air.now_ns();
        status.began_ns = self.start_ns;
        status.record = failed.or(status.record.take());
    }

    /// Waits until a packet can be delivered at the earliest, or a station sends one after `deaf_ns`: one
    /// sent before cannot be delivered before either. After a packet others often follow, and a
    /// wake-up for each of 28,000 a second took half of a CPU.
    fn wait(&mut self, deaf_ns: u64) -> io::Result<()> {
        let due_ns = self.air.next_delivery_ns();
        let due_ns = due_ns.map(|due| self.start_ns + due + MARGIN_NS);
        let due_ns = due_ns.unwrap_or(u64::MAX).min(self.next_count_ns);
        sleep_until(due_ns.min(deaf_ns));
        let left_ns = due_ns.saturating_sub(now_ns());
        if left_ns == 0 {
            return Ok(());
        }
        let left = timespec(left_ns);
        let epoll = self.epoll.as_fd();
        let mut waited = [PollFd::new(&epoll, PollFlags::IN)];
        match poll(&mut waited, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            let failed = record.finish(&self.air).err();
            if let Some(error) = failed {
                self.shared().record = Some(error.to_string());
            }
        }
    }
}
