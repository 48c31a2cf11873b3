// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams at a constant rate.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use emud_monitor::log::mono_ns;
use rustix::io::Errno;
use rustix::net::sockopt::set_ip_tos;

use super::{Sent, TrafficError, checked, failed};

/// What to send.
#[derive(Debug, Clone)]
pub struct Stream {
    /// HOST:PORT, IPv4.
    pub to: String,
    /// Of the data, bit/s.
    pub rate: u64,
    /// Data per packet, bytes.
    pub size: usize,
    /// Packets to send.
    pub packets: u64,
    /// Type of service, all eight bits.
    pub tos: u8,
    /// Pause after the last packet.
    pub linger: Duration,
}

/// Sends packet n at n / rate after the first one, up to 300 us early; a late sender catches up
/// without pauses. A packet without a route is lost, as one that no relay forwards: a routing daemon
/// may find one later.
///
/// # Errors
/// The size does not fit, the destination is unknown, no packet had a route, or the kernel returns
/// another error.
pub fn send(stream: &Stream) -> Result<Sent, TrafficError> {
    let to = &stream.to;
    let address = checked(to, stream.size)?;
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed("a socket"))?;
    set_ip_tos(&socket, stream.tos).map_err(|e| failed("the type of service")(e.into()))?;
    let mut connected = has_route(socket.connect(address)).map_err(failed(to))?;
    let mut unroutable = 0;
    let mut data = vec![0; stream.size];
    let bits = stream.size as u128 * 8_000_000_000;
    let begin = mono_ns();
    let mut last_ns = begin;
    for n in 0..stream.packets {
        let due =
            begin + u64::try_from(u128::from(n) * bits / u128::from(stream.rate)).unwrap_or(0);
        wait_until(due);
        last_ns = mono_ns();
        data[..8].copy_from_slice(&n.to_le_bytes());
        data[8..16].copy_from_slice(&last_ns.to_le_bytes());
        if !connected {
            connected = has_route(socket.connect(address)).map_err(failed(to))?;
        }
        let sent = connected && has_route(socket.send(&data).map(|_| ())).map_err(failed(to))?;
        unroutable += u64::from(!sent);
    }
    if unroutable == stream.packets && unroutable > 0 {
        return Err(failed(to)(Errno::NETUNREACH.into()));
    }
    thread::sleep(stream.linger);
    Ok(Sent {
        port: address.port(),
        packets: stream.packets,
        unroutable,
        size: stream.size as u64,
        first_ns: begin,
        last_ns,
    })
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
    let now = mono_ns();
    if due > now + EARLY_NS {
        thread::sleep(Duration::from_nanos(due - now));
    }
}
