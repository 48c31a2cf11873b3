// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams at a constant rate.

use std::net::{ToSocketAddrs, UdpSocket};
use std::thread;
use std::time::Duration;

use emud_monitor::log::mono_ns;
use rustix::net::sockopt::set_ip_tos;

use super::{DATAGRAM_MAX, DATAGRAM_MIN, Sent, TrafficError, failed};

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
/// without pauses.
///
/// # Errors
/// The size does not fit, the destination is unknown, or the kernel returns an error.
pub fn send(stream: &Stream) -> Result<Sent, TrafficError> {
    if !(DATAGRAM_MIN..=DATAGRAM_MAX).contains(&stream.size) {
        let message = format!(
            "a datagram of {} bytes: use {DATAGRAM_MIN} to {DATAGRAM_MAX}",
            stream.size
        );
        return Err(TrafficError::Usage(message));
    }
    let to = &stream.to;
    let mut addresses = to.to_socket_addrs().map_err(failed(to))?;
    let address = addresses.find(std::net::SocketAddr::is_ipv4);
    let address =
        address.ok_or_else(|| TrafficError::Usage(format!("{to} has no IPv4 address")))?;
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed("a socket"))?;
    set_ip_tos(&socket, stream.tos).map_err(|e| failed("the type of service")(e.into()))?;
    socket.connect(address).map_err(failed(to))?;
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
        socket.send(&data).map_err(failed(to))?;
    }
    thread::sleep(stream.linger);
    Ok(Sent {
        port: address.port(),
        packets: stream.packets,
        size: stream.size as u64,
        first_ns: begin,
        last_ns,
    })
}

/// A sender that slept for each packet of a high rate would use most of a CPU.
const EARLY_NS: u64 = 300_000;

fn wait_until(due: u64) {
    let now = mono_ns();
    if due > now + EARLY_NS {
        thread::sleep(Duration::from_nanos(due - now));
    }
}
