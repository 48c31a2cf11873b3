// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams at a constant rate.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::set_ip_tos;

use super::{Sent, TrafficError, checked, failed};
use crate::host::now_ns;

/// What to send.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Each HOST:PORT, IPv4. Packets go to them in turn.
    pub to: Vec<String>,
    /// Of the data to all of them, bit/s.
    pub rate: u64,
    /// Data per packet, bytes.
    pub size: usize,
    /// Packets to send to all of them.
    pub packets: u64,
    /// Type of service, all eight bits.
    pub tos: u8,
    /// Pause after the last packet.
    pub linger: Duration,
    /// Whether it is no error if no packet had a route.
    pub patient: bool,
}

/// A destination.
struct To<'a> {
    name: &'a str,
    address: SocketAddr,
    socket: UdpSocket,
    connected: bool,
    sent: Sent,
}

/// Sends packet n at n / rate after the first one, up to 300 us early; a late sender catches up
/// without pauses. A packet without a route is lost, as one that no relay forwards: a routing daemon
/// may find one later. Returns what was sent to each destination.
///
/// # Errors
/// The size does not fit, a destination is unknown, no packet to it had a route (unless `patient`), or the
/// kernel returns another error.
pub fn send(stream: &Stream) -> Result<Vec<Sent>, TrafficError> {
    let all = stream.to.iter().map(|to| To::open(to, stream));
    let mut all: Vec<To<'_>> = all.collect::<Result<_, _>>()?;
    let mut data = vec![0; stream.size];
    let bits = stream.size as u128 * 8_000_000_000;
    let begin = now_ns();
    for (n, index) in (0..stream.packets).zip((0..all.len()).cycle()) {
        let due =
            begin + u64::try_from(u128::from(n) * bits / u128::from(stream.rate)).unwrap_or(0);
        wait_until(due);
        all[index].send(&mut data)?;
    }
    for to in &all {
        let never = to.sent.unroutable == to.sent.packets && to.sent.unroutable > 0;
        if never && !stream.patient {
            return Err(failed(to.name)(Errno::NETUNREACH.into()));
        }
    }
    thread::sleep(stream.linger);
    Ok(all.into_iter().map(|to| to.sent).collect())
}

impl<'a> To<'a> {
    fn open(name: &'a str, stream: &Stream) -> Result<Self, TrafficError> {
        let address = checked(name, stream.size)?;
        let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed("a socket"))?;
        set_ip_tos(&socket, stream.tos).map_err(|e| failed("the type of service")(e.into()))?;
        Ok(Self {
            name,
            address,
            connected: has_route(socket.connect(address)).map_err(failed(name))?,
            socket,
            sent: Sent {
                port: address.port(),
                packets: 0,
                unroutable: 0,
                size: stream.size as u64,
                first_ns: 0,
                last_ns: 0,
            },
        })
    }

    /// Sends the next packet, with its number and the time.
    fn send(&mut self, data: &mut [u8]) -> Result<(), TrafficError> {
        let what = || failed(self.name);
        let now = now_ns();
        data[..8].copy_from_slice(&self.sent.packets.to_le_bytes());
        data[8..16].copy_from_slice(&now.to_le_bytes());
        if !self.connected {
            self.connected = has_route(self.socket.connect(self.address)).map_err(what())?;
        }
        let sent =
            self.connected && has_route(self.socket.send(data).map(|_| ())).map_err(what())?;
        if self.sent.packets == 0 {
            self.sent.first_ns = now;
        }
        self.sent.last_ns = now;
        self.sent.packets += 1;
        self.sent.unroutable += u64::from(!sent);
        Ok(())
    }
}

/// Whether there was a route.
fn has_route(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => Ok(false),
            _ => Err(error),
        },
    }
}

/// A sender that slept for each packet of a high rate would use most of a CPU.
const EARLY_NS: u64 = 300_000;

fn wait_until(due: u64) {
    let now = now_ns();
    if due > now + EARLY_NS {
        thread::sleep(Duration::from_nanos(due - now));
    }
}
