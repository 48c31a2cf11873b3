// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams over a device.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::io::Errno;

use super::{LoadError, NetworkLoaded, STOPS_WITHIN, failed, sleep_until};
use crate::host::now_ns;

/// Largest datagram of IPv4, without its headers.
const DATA_MAX: usize = 65_507;
/// A sender that slept for each packet of a high rate would use most of a CPU.
const EARLY_NS: u64 = 300_000;
/// What a sender was late by more than this is never sent: after a pause of its CPU of 7 ms, six of
/// 100 Mbit/s would otherwise send 1 Gbit/s for 10 ms.
const BEHIND_NS: u64 = 2_000_000;

/// A load of the network.
#[derive(Debug, Clone)]
pub struct Network {
    /// HOST:PORT, IPv4; `None`: over loopback, to the load itself.
    pub to: Option<String>,
    /// Rate of the data, bit/s; `None`: as fast as possible.
    pub rate: Option<u64>,
    /// Data per datagram, bytes.
    pub size: usize,
}

impl Network {
    /// Sends until `stop` is set.
    ///
    /// # Errors
    /// The size does not fit, the destination is unknown, or the kernel returns an error other than
    /// that it has no route or no buffer.
    pub fn run(&self, stop: &AtomicBool) -> Result<NetworkLoaded, LoadError> {
        if !(1..=DATA_MAX).contains(&self.size) {
            let message = format!("a datagram of {} bytes: use 1 to {DATA_MAX}", self.size);
            return Err(LoadError::Usage(message));
        }
        if let Some(to) = &self.to {
            let mut addresses = to.to_socket_addrs().map_err(failed(to))?;
            let address = addresses.find(SocketAddr::is_ipv4);
            let none = || LoadError::Usage(format!("{to} has no IPv4 address"));
            return self.send(address.ok_or_else(none)?, stop);
        }
        let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed("a socket"))?;
        let to = receiver.local_addr().map_err(failed("a socket"))?;
        let timeout = receiver.set_read_timeout(Some(STOPS_WITHIN));
        timeout.map_err(failed("a socket"))?;
        thread::scope(|scope| {
            let received = scope.spawn(|| receive(&receiver, stop));
            let sent = self.send(to, stop);
            // An error of the sender ends the receiver, too.
            stop.store(true, Ordering::Relaxed);
            let received = received.join().ok();
            Ok(NetworkLoaded { received, ..sent? })
        })
    }

    fn send(&self, to: SocketAddr, stop: &AtomicBool) -> Result<NetworkLoaded, LoadError> {
        // Not connected: an ICMP port unreachable would be an error of the next packet.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed("a socket"))?;
        let data = vec![0; self.size];
        let (mut packets, mut rejected) = (0u64, 0);
        let begin = now_ns();
        let mut pace = self.rate.map(|rate| Pace::new(rate, self.size, begin));
        while !stop.load(Ordering::Relaxed) {
            if let Some(pace) = &mut pace {
                let now = now_ns();
                let due = pace.next(now);
                if due > now + EARLY_NS {
                    sleep_until(due, stop);
                }
            }
            match socket.send_to(&data, to) {
                Ok(_) => packets += 1,
                Err(e) if is_passing(&e) => rejected += 1,
                Err(e) => return Err(failed(to.to_string())(e)),
            }
        }
        Ok(NetworkLoaded {
            packets,
            bytes: packets * self.size as u64,
            rejected,
            received: None,
            duration_ns: now_ns() - begin,
        })
    }
}

/// When packets are due.
struct Pace {
    rate: u64,
    bits: u128,
    /// Packets so far.
    packets: u64,
    /// When the first one would have been due if the sender had never lagged behind.
    begin_ns: u64,
}

impl Pace {
    fn new(rate: u64, size: usize, begin_ns: u64) -> Self {
        Self {
            rate,
            bits: size as u128 * 8,
            packets: 0,
            begin_ns,
        }
    }

    /// Returns when the next packet is due, at the earliest `BEHIND_NS` ago.
    fn next(&mut self, now_ns: u64) -> u64 {
        let offset = u128::from(self.packets) * self.bits * 1_000_000_000 / u128::from(self.rate);
        let due = u64::try_from(offset)
            .unwrap_or(u64::MAX)
            .saturating_add(self.begin_ns);
        self.packets += 1;
        let skipped_ns = now_ns.saturating_sub(due.saturating_add(BEHIND_NS));
        self.begin_ns += skipped_ns;
        due + skipped_ns
    }
}

fn is_passing(error: &io::Error) -> bool {
    let unreachable = matches!(
        error.kind(),
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable
    );
    unreachable || error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error())
}

/// Returns the packets that arrived.
fn receive(socket: &UdpSocket, stop: &AtomicBool) -> u64 {
    let mut data = vec![0; DATA_MAX];
    let mut packets = 0;
    while !stop.load(Ordering::Relaxed) {
        packets += u64::from(socket.recv(&mut data).is_ok());
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::load::tests::for_a_while;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_pause_is_made_up_for_in_part() {
        // A packet per millisecond.
        let mut pace = Pace::new(8_000_000, 1000, 5 * MS);
        assert_eq!(pace.next(5 * MS), 5 * MS);
        assert_eq!(pace.next(7 * MS), 6 * MS);
        // Seven milliseconds behind: what is due in the last two is sent at once.
        let due: Vec<_> = (0..4).map(|_| pace.next(14 * MS)).collect();
        assert_eq!(due, [12 * MS, 13 * MS, 14 * MS, 15 * MS]);
    }

    #[test]
    fn packets_at_a_rate() {
        let load = Network {
            to: None,
            rate: Some(8_000_000),
            size: 1000,
        };
        let loaded = for_a_while(300, |stop| load.run(stop)).unwrap();
        // A packet per millisecond of the time that it really took, and the first one at 0.
        let most = loaded.duration_ns / 1_000_000 + 2;
        assert!((1..=most).contains(&loaded.packets), "{loaded:?}");
        assert_eq!(loaded.bytes, loaded.packets * 1000);
        assert!((1..=loaded.packets).contains(&loaded.received.unwrap()));
        let large = Network {
            size: 70_000,
            ..load
        };
        let error = large.run(&AtomicBool::new(false)).unwrap_err();
        assert_eq!(error.exit_code(), 64);
    }
}
