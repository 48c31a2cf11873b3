// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts what arrives at several ports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use crate::host::datagram::{self, Ttl};
use crate::host::now_ns;
use crate::socket_option;

use super::header::{self, EmudHeader};
use super::jitter::{Jitter, Stamps, variation_ns};
use super::rtp::Header;
use super::{BIN_NS, Count, DATAGRAM_MIN, Received, Times, TrafficError, failed};

/// Room for packets while this process does not run, bytes.
const BUFFER: usize = 8 << 20;
/// The window of a TCP receiver, bytes: that of the published experiment. The kernel doubles it for
/// its own needs.
pub(super) const WINDOW: usize = 128 << 10;
/// Time after the end for datagrams that wait in a socket: their sender may not end before.
const WAITING_NS: u64 = 2_000_000_000;
/// Interval of checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const SNMP: &str = "/proc/net/snmp";

/// Open ports.
#[derive(Debug)]
pub struct Ports {
    udp: Vec<Udp>,
    tcp: Vec<TcpListener>,
    each: bool,
}

#[derive(Debug)]
struct Udp {
    port: u16,
    socket: UdpSocket,
    kind: Kind,
}

/// What datagrams are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Number, time, and data.
    Plain,
    /// The same, and each is acknowledged: its header returns.
    Acknowledged,
    /// The same after a header of RTP.
    Rtp,
}

impl Ports {
    /// Opens ports on all IPv4 addresses; datagrams to those of `acknowledged` are acknowledged.
    ///
    /// # Errors
    /// A port is taken, or the kernel returns an error.
    pub fn bind(udp: &[u16], tcp: &[u16], acknowledged: &[u16]) -> Result<Self, TrafficError> {
        let streams = |port: &u16| {
            let what = failed(format!("TCP port {port}"));
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).map_err(what)?;
            set_socket_recv_buffer_size(&listener, WINDOW)
                .map_err(|e| failed("the receive buffer")(e.into()))?;
            let set = listener.set_nonblocking(true);
            set.map_err(failed("a listening socket"))?;
            Ok(listener)
        };
        let ports = Self {
            udp: vec![],
            tcp: tcp.iter().map(streams).collect::<Result<_, _>>()?,
            each: false,
        };
        ports
            .and(udp, Kind::Plain)?
            .and(acknowledged, Kind::Acknowledged)
    }

    /// Opens ports for streams of RTP, too.
    ///
    /// # Errors
    /// As for [`Self::bind`].
    pub fn rtp(self, ports: &[u16]) -> Result<Self, TrafficError> {
        self.and(ports, Kind::Rtp)
    }

    fn and(mut self, ports: &[u16], kind: Kind) -> Result<Self, TrafficError> {
        for port in ports.iter().copied() {
            let what = failed(format!("UDP port {port}"));
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(what)?;
            // Without the capability the host's limit applies.
            if set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
                let set = set_socket_recv_buffer_size(&socket, BUFFER);
                set.map_err(|e| failed("the receive buffer")(e.into()))?;
            }
            let timeout = socket.set_read_timeout(Some(LOOK_EVERY));
            timeout.map_err(failed("the timeout"))?;
            self.udp.push(Udp { port, socket, kind });
        }
        Ok(self)
    }

    /// Lists each datagram, except for those that are acknowledged.
    ///
    /// # Errors
    /// The kernel does not report the TTL.
    pub fn listing(mut self) -> Result<Self, TrafficError> {
        for udp in self.udp.iter().filter(|udp| udp.is_listed()) {
            let on: libc::c_int = 1;
            socket_option::set(&udp.socket, libc::IPPROTO_IP, libc::IP_RECVTTL, &on)
                .map_err(failed("the TTL of datagrams"))?;
        }
        self.each = true;
        Ok(self)
    }
}

/// Receives until `stop` is set; returns a count for each UDP port. Data of TCP is discarded: its
/// sender counts.
pub fn receive(ports: Ports, stop: &AtomicBool) -> Result<Vec<Count>, TrafficError> {
    let ports = &ports;
    thread::scope(|scope| {
        for listener in &ports.tcp {
            scope.spawn(move || accept(listener, stop));
        }
        let udp: Vec<_> = (ports.udp.iter())
            .map(|udp| scope.spawn(move || udp.datagrams(ports.each && udp.is_listed(), stop)))
            .collect();
        let counted = udp.into_iter().map(|thread| match thread.join() {
            Ok(count) => count.map_err(failed("receiving")),
            Err(_) => Err(failed("receiving")(ErrorKind::Other.into())),
        });
        counted
            .map(|received| received.map(Count::Received))
            .collect()
    })
}

fn is_pause(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// Numbers that have arrived of a sender: all below `next`, and these.
#[derive(Debug, Default)]
struct Arrived {
    next: u64,
    early: BTreeSet<u64>,
}

type Senders = BTreeMap<SocketAddr, Arrived>;

impl Arrived {
    /// Returns whether the number is new.
    fn insert(&mut self, number: u64) -> bool {
        let new = number >= self.next && self.early.insert(number);
        while self.early.remove(&self.next) {
            self.next += 1;
        }
        new
    }
}

impl Udp {
    fn is_listed(&self) -> bool {
        self.kind != Kind::Acknowledged
    }

    /// Counts datagrams, also those that wait in the socket at the end. With `each` it lists them.
    fn datagrams(&self, each: bool, stop: &AtomicBool) -> io::Result<Received> {
        let Self { port, socket, kind } = self;
        let mut received = Received {
            port: *port,
            ..Received::default()
        };
        let mut senders = Senders::new();
        let before = without_room(&fs::read_to_string(SNMP)?)?;
        let (mut delays, mut jitter, mut stamps) =
            (Times::default(), Jitter::default(), Stamps::default());
        let (this_host, mut is_of_this_host) = (header::host()?, true);
        let mut data = [0; 2048];
        let mut end = None;
        loop {
            let stopped = stop.load(Ordering::Relaxed);
            if stopped && now_ns() > *end.get_or_insert_with(|| now_ns() + WAITING_NS) {
                break;
            }
            let arrived = match each {
                true => with_ttl(socket, &mut data),
                false => (socket.recv_from(&mut data)).map(|(len, from)| (len, from, None)),
            };
            let (len, from, ttl) = match arrived {
                Ok(datagram) => datagram,
                Err(e) if is_pause(&e) && stopped => break,
                Err(e) if is_pause(&e) => continue,
                Err(e) => return Err(e),
            };
            let now = now_ns();
            let own = match kind {
                Kind::Rtp => Header::read(&data[..len]).map(|(header, rest)| (Some(header), rest)),
                Kind::Plain | Kind::Acknowledged => Some((None, &data[..len])),
            };
            let own = own.and_then(|(header, own)| Some((header, EmudHeader::read(own)?)));
            let Some((header, own)) = own else {
                continue;
            };
            let by = match header {
                Some(header) => stamps.ns(header.timestamp),
                None => own.sent_ns.cast_signed(),
            };
            jitter.add(from, now.cast_signed().wrapping_sub(by));
            if *kind == Kind::Acknowledged {
                // One that cannot be sent is lost, as any other.
                let _ = socket.send_to(&data[..DATAGRAM_MIN], from);
                received.repeated +=
                    u64::from(!senders.entry(from).or_default().insert(own.number));
            }
            received.each.extend(ttl.map(|ttl| [own.sent_ns, now, ttl]));
            is_of_this_host &= own.host == this_host;
            delays.add(now.saturating_sub(own.sent_ns));
            let bin = now / BIN_NS;
            if received.packets == 0 {
                received.first_bin = bin;
            }
            let index = bin.saturating_sub(received.first_bin) as usize;
            if received.bins.len() <= index {
                received.bins.resize(index + 1, 0);
            }
            received.bins[index] += len as u64;
            received.packets += 1;
            received.bytes += len as u64;
        }
        received.delay_ns = delays.figures().filter(|_| is_of_this_host);
        received.jitter_ns = jitter.ns();
        if jitter.is_of_one_sender() {
            let transit = |[sent, arrived, _]: &[u64; 3]| arrived.wrapping_sub(*sent).cast_signed();
            received.variation_ns = variation_ns(received.each.iter().map(transit));
        }
        // The socket's drops also have datagrams with a wrong checksum (`udp_recvmsg()`), those of the
        // network namespace do not.
        let most = without_room(&fs::read_to_string(SNMP)?)?.saturating_sub(before);
        received.overflowed = drops(&fs::read_to_string("/proc/net/udp")?, *port)?.min(most);
        Ok(received)
    }
}

/// Receives a datagram: its length, its sender and its TTL.
fn with_ttl(socket: &UdpSocket, data: &mut [u8]) -> io::Result<(usize, SocketAddr, Option<u64>)> {
    let datagram = datagram::receive::<Ttl>(socket, data)?;
    let Ttl(ttl) = datagram.control.ok_or(ErrorKind::InvalidData)?;
    let from = datagram.sender().ok_or(ErrorKind::InvalidData)?;
    Ok((datagram.len, from, Some(u64::try_from(ttl).unwrap_or(0))))
}

/// Returns the last column of the row of a port in `/proc/net/udp`.
fn drops(sockets: &str, port: u16) -> io::Result<u64> {
    let local = format!("00000000:{port:04X}");
    let mut rows = sockets.lines().map(|row| row.split_whitespace());
    let row = rows.find(|row| row.clone().nth(1) == Some(&local));
    let drops = row.and_then(|row| row.last()?.parse().ok());
    drops.ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Returns the datagrams for which no socket of the network namespace, or the memory of all, had room.
fn without_room(snmp: &str) -> io::Result<u64> {
    let mut rows =
        (snmp.lines()).filter_map(|row| Some(row.strip_prefix("Udp:")?.split_whitespace()));
    let names = rows.next().ok_or(ErrorKind::InvalidData)?;
    let both = names.zip(rows.next().ok_or(ErrorKind::InvalidData)?);
    let of = both.filter(|(name, _)| ["RcvbufErrors", "MemErrors"].contains(name));
    let all = of.map(|(_, value)| {
        value
            .parse::<u64>()
            .map_err(|_| ErrorKind::InvalidData.into())
    });
    all.sum()
}

/// Accepts one connection after the other.
fn accept(listener: &TcpListener, stop: &AtomicBool) {
    let mut data = vec![0; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        let Ok((mut stream, _)) = listener.accept() else {
            thread::sleep(LOOK_EVERY);
            continue;
        };
        let set = (stream.set_nonblocking(false)).and(stream.set_read_timeout(Some(LOOK_EVERY)));
        while set.is_ok() && !stop.load(Ordering::Relaxed) {
            match stream.read(&mut data) {
                Ok(0) => break,
                Ok(_) => {}
                Err(e) if is_pause(&e) => {}
                Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_at_the_end_is_counted() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = free.local_addr().unwrap();
        drop(free);
        let ports = Ports::bind(&[to.port()], &[], &[]).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(&[0; DATAGRAM_MIN], to).unwrap();
        }
        let counts = receive(ports, &AtomicBool::new(true)).unwrap();
        let [Count::Received(received)] = &counts[..] else {
            panic!("{counts:?}")
        };
        assert_eq!((received.packets, received.overflowed), (100, 0));
        // Their host is 0.
        assert_eq!(received.delay_ns, None);
    }

    /// Two datagrams at once, with time stamps a second apart: a jitter of up to a sixteenth of it.
    #[test]
    fn jitter_of_rtp_is_that_of_its_time_stamps() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = free.local_addr().unwrap();
        drop(free);
        let ports = Ports::bind(&[], &[], &[])
            .unwrap()
            .rtp(&[to.port()])
            .unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for n in 0..2 {
            let header = Header {
                marker: true,
                sequence: n,
                timestamp: u32::from(n) * 90_000,
                source: 1,
            };
            let datagram = [&header.bytes()[..], &[0; DATAGRAM_MIN]].concat();
            sender.send_to(&datagram, to).unwrap();
        }
        let counts = receive(ports, &AtomicBool::new(true)).unwrap();
        let [Count::Received(received)] = &counts[..] else {
            panic!("{counts:?}")
        };
        let jitter = received.jitter_ns.unwrap();
        assert!((40_000_000..=62_500_000).contains(&jitter), "{jitter}");
        assert_eq!(received.variation_ns, None);
    }

    #[test]
    fn drops_are_those_of_the_port() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops";
        let row = |local: &str, drops: u32| {
            format!(
                "  7: {local} 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 9 2 0000000000000000 {drops}"
            )
        };
        let rows = [row("0100007F:1792", 3), row("00000000:1792", 41)];
        let sockets = format!("{head}\n{}\n", rows.join("\n"));
        assert_eq!(drops(&sockets, 0x1792).unwrap(), 41);
        assert!(drops(&sockets, 0x1793).is_err());
    }

    /// `InErrors` and the socket's drops have those with a wrong checksum, too.
    #[test]
    fn a_wrong_checksum_is_no_lack_of_room() {
        let snmp = "Tcp: InErrs RcvbufErrors\nTcp: 90 90\n\
                    Udp: InDatagrams InErrors RcvbufErrors SndbufErrors InCsumErrors MemErrors\n\
                    Udp: 500 48 5 70 41 2\nUdpLite: RcvbufErrors\nUdpLite: 90\n";
        assert_eq!(without_room(snmp).unwrap(), 7);
        assert!(without_room("Udp: RcvbufErrors\n").is_err());
    }
}
