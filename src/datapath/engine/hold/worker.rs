// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread of the holder: reads frames, lets bottlenecks serve them, waits, writes them back.

use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Direction;
use super::frame::rewrite;
use super::port::{End, LEASE_NS, Left, Port, REPORT_NS};
use super::servers::{Classes, Done, MARGIN_NS, Servers};
use super::tap::TX_QUEUE_LEN;
use crate::abi::emud_holder;
use crate::host::{now_ns, timespec};

/// Frames read before the next write. Everything that is there, as a
/// rule: after a late wake-up a frame yet unread may depart before one that is due.
const READ_BURST: usize = 256;
/// Frames that bottlenecks decide on before the next read: with all that a flood had left, decisions took so
/// long that the lease ran out, and packets passed without a link.
const SERVE_BURST: usize = 256;
/// The longest thing a TAP hands over, with room for a tag.
const SCRATCH_LEN: usize = 68 << 10;
/// Arrivals are not waited for in this time after a read, see [`Worker::wait`].
const GATHER_NS: u64 = 50_000;
/// The same if all of it waits in front of a busy server: longer than a full packet takes at 100 Mbit/s,
/// so that there is one wake-up for each.
const BUSY_NS: u64 = 150_000;

/// A thread: one direction, or both.
pub(super) struct Worker<'a> {
    ports: Vec<Port>,
    stop: BorrowedFd<'a>,
    classes: Option<&'a dyn Classes>,
    servers: Servers,
    scratch: Vec<u8>,
    next_report_ns: u64,
    /// Until then arrivals can wait.
    gather_until_ns: u64,
    read: Read,
}

/// The frames read since the last decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Read {
    /// The first departure of a frame without a class.
    earliest_ns: Option<u64>,
    classed: bool,
}

/// How each direction ended.
type Ends = Vec<(Direction, End)>;

impl<'a> Worker<'a> {
    pub fn new(ports: Vec<Port>, stop: BorrowedFd<'a>, classes: Option<&'a dyn Classes>) -> Self {
        Self {
            ports,
            stop,
            classes,
            servers: Servers::default(),
            scratch: vec![0; SCRATCH_LEN],
            next_report_ns: 0,
            gather_until_ns: 0,
            read: Read::default(),
        }
    }

    pub fn run(
        &mut self,
        report: impl Fn(Direction, &emud_holder) -> ControlFlow<()>,
    ) -> Result<Ends, Errno> {
        let end = self.work(&report);
        // The lease goes first: nothing new may come while the rest is written.
        self.publish(0, &report).is_break();
        if end == Ok(End::Stopped) {
            self.flush()?;
            self.publish(0, &report).is_break();
        }
        for port in &mut self.ports {
            port.failures.tell(u64::MAX);
        }
        let end = end?;
        Ok(self
            .ports
            .iter()
            .map(|port| (port.direction, end))
            .collect())
    }

    fn work(
        &mut self,
        report: &impl Fn(Direction, &emud_holder) -> ControlFlow<()>,
    ) -> Result<End, Errno> {
        loop {
            let now = now_ns();
            if now >= self.next_report_ns {
                if let Some(classes) = self.classes {
                    self.servers.update(classes, now);
                    classes.account(&self.servers.account());
                }
                if self.publish(now + LEASE_NS, report).is_break() || self.stop_requested()? {
                    return Ok(End::Stopped);
                }
                self.next_report_ns = now + REPORT_NS;
            }
            for port in &mut self.ports {
                if port.failures.next_ns().is_some_and(|due| due <= now) {
                    port.failures.tell(now);
                }
            }
            match self.step(now) {
                Err(Errno::BADFD) => return Ok(End::TapGone),
                Err(error) => return Err(error),
                Ok(Left::Nothing) => {
                    if let Some(end) = self.wait()? {
                        return Ok(end);
                    }
                }
                Ok(Left::More) => {}
            }
        }
    }

    /// Reads, serves and writes what is there, or a burst of it.
    fn step(&mut self, now: u64) -> Result<Left, Errno> {
        let (mut left, until_ns) = self.fill(now)?;
        if self.serve(until_ns.saturating_sub(MARGIN_NS)) == Left::More {
            left = Left::More;
        }
        self.gather();
        for port in &mut self.ports {
            if port.release(None)? == Left::More {
                left = Left::More;
            }
        }
        Ok(left)
    }

    fn publish(
        &mut self,
        lease_ns: u64,
        report: &impl Fn(Direction, &emud_holder) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for (index, port) in self.ports.iter_mut().enumerate() {
            port.stats.lease_ns = lease_ns;
            port.stats.waiting = port.queue.len() as u64 + self.servers.waiting(index);
            if let Some(served) = self.servers.served(index) {
                port.stats.served = *served;
            }
            report(port.direction, &port.stats)?;
        }
        ControlFlow::Continue(())
    }

    /// Sets how long arrivals may wait, by the frames just read.
    fn gather(&mut self) {
        let read = std::mem::take(&mut self.read);
        if read == Read::default() {
            return;
        }
        let now = now_ns();
        let due = self.servers.due_ns().filter(|_| read.classed);
        let (gather_ns, far) = match read.earliest_ns {
            // Far from due: so will be what follows within the next moment.
            Some(at) => (GATHER_NS, at > now + 20 * GATHER_NS),
            None => (BUSY_NS, true),
        };
        // Until a server decides, what follows changes nothing.
        self.gather_until_ns = match due {
            _ if !far => 0,
            Some(due) => due.min(now + gather_ns),
            None => now + GATHER_NS,
        };
    }

    /// Reads what is there, one burst of each direction. Returns also when what is not read yet has arrived at
    /// the earliest, which is at most `now`: a flood leaves frames after every burst.
    fn fill(&mut self, now: u64) -> Result<(Left, u64), Errno> {
        let (mut left, mut until_ns) = (Left::Nothing, now);
        for port in 0..self.ports.len() {
            let (left_there, last_ns) = self.fill_from(port, now)?;
            let read_ns = &mut self.ports[port].read_ns;
            *read_ns = now;
            if left_there == Left::More {
                left = Left::More;
                // No frame of a class is expected after a burst without any.
                *read_ns = last_ns.unwrap_or(now);
                until_ns = until_ns.min(*read_ns);
            }
        }
        Ok((left, until_ns))
    }

    /// Reads one burst. Returns also when the last frame of a class had come. One that arrives at the bottleneck
    /// later, after its link's own queue (`p->sent`, bpf/release.h), does not say that.
    fn fill_from(&mut self, port: usize, now: u64) -> Result<(Left, Option<u64>), Errno> {
        let mut last_ns = None;
        for _ in 0..READ_BURST {
            match rustix::io::read(&self.ports[port].tap, &mut self.scratch) {
                Ok(len) => match self.take(port, len) {
                    Some(at) if at <= now || at <= now_ns() => last_ns = Some(at),
                    Some(_) => last_ns = last_ns.or(Some(self.ports[port].read_ns)),
                    None => {}
                },
                Err(Errno::AGAIN) => return Ok((Left::Nothing, last_ns)),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((Left::More, last_ns))
    }

    /// Queues a frame of the scratch buffer, or hands it to its bottleneck; returns its arrival there.
    fn take(&mut self, index: usize, len: usize) -> Option<u64> {
        let port = &mut self.ports[index];
        let Ok(done) = rewrite(&mut self.scratch[..len]) else {
            port.dropped(None);
            return None;
        };
        let bytes = &self.scratch[done.start..len];
        let Some(service) = done.service else {
            match port.queue.push(done.departure_ns, bytes, done.by_sender) {
                Ok(()) => {
                    let earliest_ns = self.read.earliest_ns.unwrap_or(u64::MAX);
                    self.read.earliest_ns = Some(earliest_ns.min(done.departure_ns));
                }
                Err(_) => port.dropped(Some(done.departure_ns)),
            }
            return None;
        };
        let mut store = || port.queue.store(bytes, done.by_sender).ok();
        let known = self.servers.has(service.number);
        let Some(frame) = known.then(&mut store).flatten() else {
            port.dropped(Some(done.departure_ns));
            return None;
        };
        let copy = (service.copy_ns != 0).then(store);
        if copy.as_ref().is_some_and(Option::is_none) {
            port.dropped(Some(done.departure_ns));
        }
        let in_time = self.servers.arrive(index, service, frame, copy.flatten());
        self.ports[index].stats.disordered += u64::from(!in_time);
        self.read.classed = true;
        Some(service.arrival_ns)
    }

    /// Lets bottlenecks decide up to then, all that had arrived having been read; one burst of decisions.
    fn serve(&mut self, until_ns: u64) -> Left {
        // A burst was read of each direction.
        for _ in 0..SERVE_BURST * self.ports.len() {
            let Some(done) = self.servers.decide(until_ns) else {
                return Left::Nothing;
            };
            match done {
                Done::Departs { port, frame, copy } => {
                    let queue = &mut self.ports[port].queue;
                    for (departure_ns, frame) in std::iter::once(frame).chain(copy) {
                        queue.insert(departure_ns, frame);
                    }
                }
                Done::Lost { port, frame, copy } => {
                    let queue = &mut self.ports[port].queue;
                    let frames = std::iter::once(frame).chain(copy);
                    frames.for_each(|frame| queue.recycle(frame));
                }
            }
        }
        Left::More
    }

    /// Reads what the TAPs hold at the end, then writes it without waiting for its time.
    fn flush(&mut self) -> Result<(), Errno> {
        // Any user can go on sending into a TAP.
        let mut bursts = 0..TX_QUEUE_LEN as usize / READ_BURST;
        let result = loop {
            match self.fill(u64::MAX) {
                Ok((Left::More, _)) if bursts.next().is_some() => {}
                Ok(_) => break self.release_all(),
                Err(error) => break Err(error),
            }
        };
        match result {
            Err(Errno::BADFD) => Ok(()),
            result => result,
        }
    }

    fn release_all(&mut self) -> Result<(), Errno> {
        if let Some(classes) = self.classes {
            let mut account = self.servers.account();
            for (_, class) in &mut account {
                (class.backlog_packets, class.backlog_bytes) = (0, 0);
            }
            classes.account(&account);
        }
        for (port, frame) in self.servers.drain() {
            self.ports[port].queue.insert(u64::MAX, frame);
        }
        for port in &mut self.ports {
            while port.release(Some(u64::MAX))? == Left::More {}
        }
        Ok(())
    }

    /// Sleeps until there is something to do.
    ///
    /// While frames just read are far from due, the TAP is not polled for a
    /// moment: one wake-up then serves many arrivals, and a sender saves the
    /// wake-up of this thread. A frame that is due earlier than its
    /// predecessors by all that may be late by that moment.
    fn wait(&mut self) -> Result<Option<End>, Errno> {
        let now = now_ns();
        let mut until = self
            .next_report_ns
            .min(self.servers.due_ns().unwrap_or(u64::MAX));
        for port in &self.ports {
            until = until
                .min(port.queue.next_ns().unwrap_or(u64::MAX))
                .min(port.failures.next_ns().unwrap_or(u64::MAX));
        }
        let gathering = self.gather_until_ns > now;
        if gathering {
            until = until.min(self.gather_until_ns);
        }
        let timeout = timespec(until.saturating_sub(now));
        let stop = PollFd::new(&self.stop, PollFlags::IN);
        let taps = self.ports.iter().filter(|_| !gathering);
        let taps = taps.map(|port| PollFd::new(&port.tap, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = std::iter::once(stop).chain(taps).collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        if !fds[0].revents().is_empty() {
            return Ok(Some(End::Stopped));
        }
        let mut taps = fds[1..].iter();
        let gone = taps.any(|tap| tap.revents().contains(PollFlags::ERR));
        Ok(gone.then_some(End::TapGone))
    }

    fn stop_requested(&self) -> Result<bool, Errno> {
        let mut fds = [PollFd::new(&self.stop, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(0))) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

    use super::*;
    use crate::abi;
    use crate::bottleneck::{Class, Plan, Schedule};
    use crate::datapath::engine::hold::failure::Failures;

    struct OneClass;

    impl Classes for OneClass {
        fn plans(&self, _: &mut u64) -> Option<Vec<Plan>> {
            Some(vec![Plan {
                rate: 1_000_000,
                schedule: Schedule::Fifo,
                seed: 0,
                classes: vec![Class::default()],
            }])
        }

        fn account(&self, _: &[(u32, abi::emud_class)]) {}
    }

    /// A frame of the class as the classifier writes it.
    fn frame(arrival_ns: u64) -> Vec<u8> {
        let mut bytes = vec![0; 10];
        bytes.extend(arrival_ns.to_ne_bytes());
        bytes.extend(abi::EMUD_HOLD_MAGIC.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(1u32.to_ne_bytes());
        bytes.extend(arrival_ns.to_ne_bytes());
        bytes.resize(10 + 24 + 32 + 14, 0);
        bytes
    }

    /// With a queue of its link in front of the bottleneck a frame arrives there later than it comes.
    #[test]
    fn an_arrival_ahead_does_not_say_what_is_left() {
        let (there, here) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::NONBLOCK,
            None,
        )
        .unwrap();
        sockopt::set_socket_send_buffer_size(&there, 1 << 20).unwrap();
        let failures = Failures::new(Direction::Up, None);
        let ports = vec![Port::new(here, Direction::Up, 1 << 20, failures)];
        let stop = there.try_clone().unwrap();
        let mut worker = Worker::new(ports, stop.as_fd(), None);
        worker.servers.update(&OneClass, 0);
        let mut left = |arrivals: [u64; 2], now| {
            for n in 0..READ_BURST {
                rustix::io::write(&there, &frame(arrivals[n % 2])).unwrap();
            }
            let (left, until_ns) = worker.fill(now).unwrap();
            assert!(left == Left::More);
            until_ns
        };
        let (now, ahead) = (now_ns(), now_ns() + 3_600_000_000_000);
        assert_eq!(left([now - 80, now - 70], now), now - 70);
        assert_eq!(left([now - 60, ahead], now), now - 60);
        assert_eq!(left([ahead, ahead], now), now - 60);
        let (left, until_ns) = worker.fill(now).unwrap();
        assert!(left == Left::Nothing);
        assert_eq!(until_ns, now);
    }

    #[test]
    fn a_flood_does_not_keep_a_stopped_holder() {
        let endless = std::fs::File::open("/dev/zero").unwrap();
        let stop = endless.try_clone().unwrap();
        let failures = Failures::new(Direction::Up, None);
        let ports = vec![Port::new(endless.into(), Direction::Up, 1 << 20, failures)];
        let mut worker = Worker::new(ports, stop.as_fd(), None);
        worker.flush().unwrap();
        // Zeros are no frames of the classifier.
        let (dropped, held) = (worker.ports[0].stats.dropped, TX_QUEUE_LEN as u64);
        let most = held + READ_BURST as u64;
        assert!((held..=most).contains(&dropped), "{dropped}");
    }
}
