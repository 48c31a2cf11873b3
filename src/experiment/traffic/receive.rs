// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts what arrives at several ports.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use emud_monitor::log::mono_ns;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use super::{BIN_NS, Count, DATAGRAM_MIN, Received, Times, TrafficError, failed, number_and_time};

/// Room for packets while this process does not run, bytes.
const BUFFER: usize = 8 << 20;
/// The window of a TCP receiver, bytes: that of the published experiment. The kernel doubles it for
/// its own needs.
pub(super) const WINDOW: usize = 128 << 10;
/// Datagrams that it holds at most: the kernel charges each with its buffer as well.
const BUFFERED: usize = BUFFER / 512;
/// Interval of checks whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Open ports.
#[derive(Debug)]
pub struct Ports {
    udp: Vec<(u16, UdpSocket)>,
    acknowledged: Vec<(u16, UdpSocket)>,
    tcp: Vec<TcpListener>,
}

impl Ports {
    /// Opens ports on all IPv4 addresses; datagrams to those of `acknowledged` are acknowledged.
    ///
    /// # Errors
    /// A port is taken, or the kernel returns an error.
    pub fn bind(udp: &[u16], tcp: &[u16], acknowledged: &[u16]) -> Result<Self, TrafficError> {
        let any = |port| (Ipv4Addr::UNSPECIFIED, port);
        let datagrams = |port: &u16| {
            let what = failed(format!("UDP port {port}"));
            let socket = UdpSocket::bind(any(*port)).map_err(what)?;
            // Without the capability the host's limit applies.
            if set_socket_recv_buffer_size_force(&socket, BUFFER).is_err() {
                let set = set_socket_recv_buffer_size(&socket, BUFFER);
                set.map_err(|e| failed("the receive buffer")(e.into()))?;
            }
            let timeout = socket.set_read_timeout(Some(LOOK_EVERY));
            timeout.map_err(failed("the timeout"))?;
            Ok((*port, socket))
        };
        let streams = |port: &u16| {
            let what = failed(format!("TCP port {port}"));
            let listener = TcpListener::bind(any(*port)).map_err(what)?;
            set_socket_recv_buffer_size(&listener, WINDOW)
                .map_err(|e| failed("the receive buffer")(e.into()))?;
            let set = listener.set_nonblocking(true);
            set.map_err(failed("a listening socket"))?;
            Ok(listener)
        };
        Ok(Self {
            udp: udp.iter().map(datagrams).collect::<Result<_, _>>()?,
            acknowledged: acknowledged
                .iter()
                .map(datagrams)
                .collect::<Result<_, _>>()?,
            tcp: tcp.iter().map(streams).collect::<Result<_, _>>()?,
        })
    }
}

/// Receives until `stop` is set; returns a count for each UDP port. Data of TCP is discarded: its
/// sender counts.
pub fn receive(ports: Ports, stop: &AtomicBool) -> Result<Vec<Count>, TrafficError> {
    thread::scope(|scope| {
        for listener in &ports.tcp {
            scope.spawn(move || accept(listener, stop));
        }
        let silent = ports.udp.iter().map(|one| (one, None));
        let acknowledged = (ports.acknowledged.iter()).map(|one| (one, Some(Senders::default())));
        let udp: Vec<_> = (silent.chain(acknowledged))
            .map(|((port, socket), senders)| {
                scope.spawn(move || datagrams(*port, socket, senders, stop))
            })
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

/// With `senders`, each datagram is acknowledged: its header returns.
fn datagrams(
    port: u16,
    socket: &UdpSocket,
    mut senders: Option<Senders>,
    stop: &AtomicBool,
) -> io::Result<Received> {
    let mut received = Received {
        port,
        ..Received::default()
    };
    let mut delays = Times::default();
    let mut data = [0; 2048];
    // What waits in the buffer at the stop has arrived before it.
    let mut left = BUFFERED;
    while left > 0 {
        let stopped = stop.load(Ordering::Relaxed);
        left -= usize::from(stopped);
        let (len, from) = match socket.recv_from(&mut data) {
            Ok(datagram) => datagram,
            Err(e) if is_pause(&e) && stopped => break,
            Err(e) if is_pause(&e) => continue,
            Err(e) => return Err(e),
        };
        let now = mono_ns();
        let Some((number, sent)) = number_and_time(&data[..len]) else {
            continue;
        };
        if let Some(senders) = &mut senders {
            // One that cannot be sent is lost, as any other.
            let _ = socket.send_to(&data[..DATAGRAM_MIN], from);
            received.repeated += u64::from(!senders.entry(from).or_default().insert(number));
        }
        delays.add(now.saturating_sub(sent));
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
    received.delay_ns = delays.figures();
    Ok(received)
}

/// One connection after the other.
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
