// SPDX-License-Identifier: MIT OR Apache-2.0
//! Offset between the clocks of two hosts, and the delay between them, by UDP probes.
//!
//! As NTP (RFC 5905, section 8): of the four times of an exchange, the offset is the mean of both
//! differences, and its error is at most half the round trip, whatever the path's asymmetry. The
//! kernel stamps arrivals, so that the time until a process runs is not part of the round trip.

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use emud_monitor::log::Clock;
use serde::{Deserialize, Serialize};

use crate::host::datagram::{self, Datagram, Stamp};
use crate::host::now_ns;
use crate::host::{random, spawn, wall_ns};
use crate::socket_option;

/// Number of probes; the best one determines the offset, the median one the delay.
const PROBES: u64 = 100;
/// Pause between two probes.
const PAUSE: Duration = Duration::from_millis(5);
/// How long to wait for the last answers: the other host may have much to do.
const PATIENCE: Duration = Duration::from_secs(2);
/// Answers below this number are not enough.
const ENOUGH: usize = 20;

/// Times of one exchange, each in ns of the clock of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// When this host sent the probe, ns.
    pub sent: i64,
    /// When it arrived at the other host, ns of that host's clock.
    pub there: i64,
    /// Sent back there.
    pub back: i64,
    /// When the answer arrived here, ns.
    pub arrived: i64,
}

impl Exchange {
    /// Returns the round trip in ns without the time at the other host.
    pub fn round_trip(&self) -> i64 {
        (self.arrived - self.sent) - (self.back - self.there)
    }

    /// Returns the other clock minus this one in ns.
    pub fn offset(&self) -> i64 {
        ((self.there - self.sent) + (self.back - self.arrived)) / 2
    }
}

/// Estimate of another host's clock from exchanges with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// CLOCK_MONOTONIC of the other host minus that of this one, in ns.
    pub offset_ns: i64,
    /// Largest error of the offset in ns.
    pub bound_ns: u64,
    /// One-way delay in ns: half the median round trip.
    pub delay_ns: u64,
    /// Number of answered probes.
    pub answers: u32,
}

/// Returns the estimate of some exchanges; `None` without a valid one.
pub fn estimate(exchanges: &[Exchange]) -> Option<Estimate> {
    let mut valid: Vec<_> = exchanges.iter().filter(|e| e.round_trip() >= 0).collect();
    valid.sort_by_key(|e| e.round_trip());
    let (best, median) = (valid.first()?, valid[valid.len() / 2]);
    Some(Estimate {
        offset_ns: best.offset(),
        bound_ns: best.round_trip().unsigned_abs().div_ceil(2),
        delay_ns: median.round_trip().unsigned_abs() / 2,
        answers: u32::try_from(valid.len()).unwrap_or(u32::MAX),
    })
}

/// Round trips to another host, measured by probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrips {
    /// The shortest round trip in ns, which the load of the hosts does not change; `None`: no probe was
    /// answered.
    pub least_ns: Option<u64>,
    /// Number of probes.
    pub sent: usize,
    /// Number of answers.
    pub answered: usize,
}

/// Returns a time of another host's clock in that of this one, which is `offset_ns` behind it.
pub fn here(there_ns: u64, offset_ns: i64) -> u64 {
    there_ns.saturating_add_signed(offset_ns.saturating_neg())
}

/// Length of a probe: token, number, and in the answer three times.
const PROBE: usize = 16;
const ANSWER: usize = 40;
/// As much of a longer probe is read: an answer, which another responder may send, is none.
const LONG: usize = ANSWER + 1;

/// Answers the probes of other hosts that know its token, until the process ends.
#[derive(Debug)]
pub struct Responder {
    /// UDP port at which probes are answered.
    pub port: u16,
    /// Number that a probe must have.
    pub token: u64,
}

impl Responder {
    /// Starts a thread at a free UDP port of this address.
    pub fn start(address: IpAddr) -> io::Result<Self> {
        Self::at((address, 0).into(), u64::from_ne_bytes(random()?))
    }

    /// Starts a thread at this address and port; 0 is a free one.
    pub fn at(address: SocketAddr, token: u64) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        stamps(&socket)?;
        let port = socket.local_addr()?.port();
        let answer = move || {
            loop {
                // Of a datagram that is none of ours, or an unreachable sender.
                let _ = answer(&socket, token);
            }
        };
        spawn("emud-clock", answer)?;
        Ok(Self { port, token })
    }
}

fn answer(socket: &UdpSocket, token: u64) -> io::Result<()> {
    let mut probe = [0; LONG];
    let arrival = receive(socket, &mut probe)?;
    if ![PROBE, LONG].contains(&arrival.datagram.len) || number(&probe, 0) != token {
        return Ok(());
    }
    let difference = Clock::now().realtime_minus_mono_ns;
    put(&mut probe, 16, arrival.stamp);
    put(&mut probe, 32, difference);
    put(&mut probe, 24, now_ns().cast_signed() + difference);
    // SAFETY: the address is the one that the kernel filled in.
    let sent = unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            probe.as_ptr().cast(),
            ANSWER,
            0,
            (&raw const arrival.datagram.from).cast(),
            arrival.datagram.from_len,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Probes a responder for about half a second.
///
/// # Errors
/// Too few answers: the message says how many.
pub fn probe(peer: SocketAddr, token: u64) -> io::Result<Estimate> {
    let mut prober = Prober::new(peer, token)?;
    prober.burst();
    let exchanges = &prober.exchanges;
    let too_few = || {
        let count = exchanges.len();
        let what = format!("{peer} answered {count} probes over UDP, {ENOUGH} are needed");
        io::Error::new(io::ErrorKind::TimedOut, what)
    };
    let found = estimate(exchanges).filter(|_| exchanges.len() >= ENOUGH);
    found.ok_or_else(too_few)
}

/// Returns whether packets of `size` bytes, headers of IP and UDP included, reach a responder, without being
/// fragmented. An answer to one of them is enough.
///
/// # Errors
/// The kernel returns an error.
pub fn passes(peer: SocketAddr, token: u64, size: u32) -> io::Result<bool> {
    let mut prober = Prober::new(peer, token)?;
    prober.in_one_piece(size)?;
    let is_answered = |prober: &Prober| !prober.exchanges.is_empty();
    for _ in 0..PROBES {
        prober.send(PAUSE);
        if is_answered(&prober) {
            return Ok(true);
        }
    }
    prober.receive(Instant::now() + PATIENCE, is_answered);
    Ok(is_answered(&prober))
}

/// Sends probes to a responder, and collects the answers.
#[derive(Debug)]
pub(super) struct Prober {
    socket: UdpSocket,
    token: u64,
    /// Length of a probe.
    len: usize,
    /// Number of the first probe since [`Prober::restart`].
    first: u64,
    /// When each probe since then was sent; `None`: it is answered.
    sent: Vec<Option<i64>>,
    exchanges: Vec<Exchange>,
}

impl Prober {
    pub fn new(peer: SocketAddr, token: u64) -> io::Result<Self> {
        let socket = UdpSocket::bind((any(peer.ip()), 0))?;
        socket.connect(peer)?;
        stamps(&socket)?;
        Ok(Self {
            socket,
            token,
            len: PROBE,
            first: 0,
            sent: vec![],
            exchanges: vec![],
        })
    }

    /// Sends packets of `size` bytes from now on, which nothing may fragment.
    fn in_one_piece(&mut self, size: u32) -> io::Result<()> {
        let (level, option, value, headers) = match self.socket.peer_addr()? {
            SocketAddr::V4(_) => (
                libc::IPPROTO_IP,
                libc::IP_MTU_DISCOVER,
                libc::IP_PMTUDISC_PROBE,
                28,
            ),
            SocketAddr::V6(_) => (
                libc::IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_PMTUDISC_PROBE,
                48,
            ),
        };
        self.len = (size as usize).saturating_sub(headers).max(LONG);
        socket_option::set(&self.socket, level, option, &value)
    }

    /// Forgets all probes.
    pub fn restart(&mut self) {
        self.first += self.sent.len() as u64;
        self.sent.clear();
        self.exchanges.clear();
    }

    /// Sends all probes of a measurement, and waits for the answers.
    pub fn burst(&mut self) {
        self.restart();
        for _ in 0..PROBES {
            self.send(PAUSE);
        }
        self.collect();
    }

    /// Sends a probe, and takes `pause` for it. An answer may be to an earlier one.
    pub fn send(&mut self, pause: Duration) {
        let until = Instant::now() + pause;
        let n = self.sent.len();
        let mut text = vec![0; self.len];
        text[..8].copy_from_slice(&self.token.to_be_bytes());
        text[8..PROBE].copy_from_slice(&(self.first + n as u64).to_be_bytes());
        self.sent.push(Some(now_ns().cast_signed()));
        // The answer to an earlier probe may be an ICMP error: then this one is lost, too.
        if self.socket.send(&text).is_ok() {
            self.receive(until, |prober| prober.sent[n].is_none());
        }
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }

    /// Waits for the answers that are missing.
    pub fn collect(&mut self) {
        let all = |prober: &Self| prober.sent.iter().all(Option::is_none);
        self.receive(Instant::now() + PATIENCE, all);
    }

    pub fn round_trips(&self) -> RoundTrips {
        let valid = self.exchanges.iter().map(Exchange::round_trip);
        RoundTrips {
            least_ns: valid.filter_map(|ns| u64::try_from(ns).ok()).min(),
            sent: self.sent.len(),
            answered: self.exchanges.len(),
        }
    }

    /// Receives answers until a time, or a condition holds.
    fn receive(&mut self, until: Instant, enough: impl Fn(&Self) -> bool) {
        while !enough(self) {
            let left = until.saturating_duration_since(Instant::now());
            // A time of 0 would mean none.
            if left.is_zero() || self.socket.set_read_timeout(Some(left)).is_err() {
                return;
            }
            // Also an ICMP error, or that nothing has arrived.
            let _ = self.answer();
        }
    }

    /// Takes an answer. All times are those of CLOCK_MONOTONIC. The time of day, in which the kernel stamps
    /// arrivals, may be set between two probes, so each one is converted at once.
    fn answer(&mut self) -> io::Result<()> {
        let mut answer = [0; ANSWER];
        let arrival = receive(&self.socket, &mut answer)?;
        let difference = Clock::now().realtime_minus_mono_ns;
        if arrival.datagram.len != ANSWER || number(&answer, 0) != self.token {
            return Ok(());
        }
        let n = number(&answer, 8).wrapping_sub(self.first);
        let sent = usize::try_from(n).ok().and_then(|n| self.sent.get_mut(n));
        // One of before the restart, or twice.
        let Some(sent) = sent.and_then(Option::take) else {
            return Ok(());
        };
        let time = |at| number(&answer, at).cast_signed();
        self.exchanges.push(Exchange {
            sent,
            there: time(16).saturating_sub(time(32)),
            back: time(24).saturating_sub(time(32)),
            arrived: arrival.stamp - difference,
        });
        Ok(())
    }
}

/// Returns the unspecified address of the family of another one.
pub(super) fn any(of: IpAddr) -> IpAddr {
    match of {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Returns the largest packet in bytes that reaches an address, as the kernel's routes say.
///
/// # Errors
/// There is no route.
pub fn path_mtu(to: IpAddr) -> io::Result<u32> {
    let (level, name) = match to {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
    };
    let socket = UdpSocket::bind((any(to), 0))?;
    // Any port: nothing is sent.
    socket.connect((to, 9))?;
    let mut mtu: libc::c_int = 0;
    let mut len = mem::size_of_val(&mtu) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `mtu`.
    let got = unsafe {
        let value = (&raw mut mtu).cast();
        libc::getsockopt(socket.as_raw_fd(), level, name, value, &raw mut len)
    };
    match got {
        0 => Ok(u32::try_from(mtu).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_be_bytes(eight)
}

fn put(bytes: &mut [u8], at: usize, number: i64) {
    bytes[at..at + 8].copy_from_slice(&number.to_be_bytes());
}

/// A received datagram.
struct Arrival {
    datagram: Datagram<Stamp>,
    /// Time of day in ns at which the kernel received it.
    stamp: i64,
}

fn stamps(socket: &UdpSocket) -> io::Result<()> {
    let on: libc::c_int = 1;
    socket_option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
}

fn receive(socket: &UdpSocket, into: &mut [u8]) -> io::Result<Arrival> {
    let datagram = datagram::receive::<Stamp>(socket, into)?;
    let stamp = datagram.control.map_or_else(wall_ns, Stamp::wall_ns);
    Ok(Arrival {
        datagram,
        stamp: stamp.cast_signed(),
    })
}
