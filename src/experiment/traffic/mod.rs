// SPDX-License-Identifier: MIT OR Apache-2.0
//! Senders and receivers for experiments: UDP at a constant rate or as frames of RTP, one TCP transfer, a transfer
//! over UDP with its own retransmission, and a receiver that stores a file. Each prints what it counted as one line of JSON. Times are
//! of CLOCK_MONOTONIC, which all nodes of a host share.

mod blocks;
mod header;
mod jitter;
mod receive;
mod rtp;
mod send;
mod size;
mod store;
mod transfer;
pub(crate) mod window;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use serde::{Deserialize, Serialize};

pub use blocks::{Blocks, blocks};
pub use header::DATAGRAM_MIN;
pub use receive::{Ports, receive};
pub use rtp::RTP_HEADER;
pub use send::{Stream, send};
pub use size::Size;
pub use store::Store;
pub use transfer::{Data, Transfer, transfer};

/// Largest datagram without fragments in a frame of 1500 bytes.
pub const DATAGRAM_MAX: usize = 1472;
/// Interval at which a receiver counts bytes.
pub const BIN_NS: u64 = 100_000_000;

/// A line of output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Count {
    /// Result of a sender of datagrams.
    Sent(Sent),
    /// Result of a receiver of datagrams.
    Received(Received),
    /// Result of a sender over TCP, or of blocks.
    Transferred(Transferred),
    /// Result of a receiver that stores.
    Stored(Stored),
    /// A program, such as a shell, reached this point; the time is that of its line in the log.
    Reached(String),
}

/// Result of a sender of datagrams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sent {
    /// UDP port of the destination.
    pub port: u16,
    /// Packets sent, including those without a route.
    pub packets: u64,
    /// Packets that had no route.
    #[serde(default)]
    pub unroutable: u64,
    /// Bytes of data in all of them.
    pub bytes: u64,
    /// Time of the first packet, CLOCK_MONOTONIC.
    pub first_ns: u64,
    /// Time of the last packet, CLOCK_MONOTONIC.
    pub last_ns: u64,
}

/// Datagrams that arrived at a port.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Received {
    /// Local port.
    pub port: u16,
    /// Packets received.
    pub packets: u64,
    /// Bytes of data received, without headers.
    pub bytes: u64,
    /// Packets with a number of the same sender that had arrived before. Counted only if they are
    /// acknowledged.
    #[serde(default)]
    pub repeated: u64,
    /// Packets that the kernel dropped because the socket had no room, at most: with a wrong checksum, too, as many
    /// as found no room in other sockets of the network namespace. So the sum of several ports may be above its count.
    #[serde(default)]
    pub overflowed: u64,
    /// From sending to arrival: the shortest, the mean, and the longest; null: nothing arrived, or some of it from
    /// another host, whose clock differs.
    #[serde(default)]
    pub delay_ns: Option<[u64; 3]>,
    /// Interarrival jitter of RFC 3550 after the last datagram, by the time of sending or, of RTP, by the time
    /// stamp; null: fewer than two datagrams, or several senders.
    #[serde(default)]
    pub jitter_ns: Option<u64>,
    /// Packet delay variation of RFC 5481, the delay above the shortest one: median, 95th, 99th and 99.9th percentile; null:
    /// not listed, or several senders.
    #[serde(default)]
    pub variation_ns: Option<[u64; 4]>,
    /// Bytes in each interval of [`BIN_NS`]; the first one begins at this multiple of it.
    pub first_bin: u64,
    /// Bytes in each interval, the first one included.
    pub bins: Vec<u64>,
    /// Time of sending, time of arrival, both CLOCK_MONOTONIC of their host, and remaining TTL of each. Listed only
    /// on request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<[u64; 3]>,
}

/// A transfer as its sender saw it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Transferred {
    /// Port of the receiver.
    pub port: u16,
    /// Bytes of acknowledged data.
    pub bytes: u64,
    /// From the first byte to the end.
    pub duration_ns: u64,
    /// Round-trip times: the shortest, the mean, and the longest. With TCP the smoothed one every
    /// 10 ms, with blocks that of each acknowledgement; null: none has arrived.
    pub rtt_ns: Option<[u64; 3]>,
    /// Segments or blocks sent again.
    pub retransmissions: u64,
    /// TCP: the shortest round trip that the kernel has measured, the one of the connection's start among them.
    #[serde(default)]
    pub baseline_rtt_ns: Option<u64>,
    /// TCP: buffer delay of RFC 6349, section 4.3: by how much the mean round trip exceeds the baseline, in % of it.
    #[serde(default)]
    pub buffer_delay_percent: Option<f64>,
    /// TCP: efficiency of RFC 6349, section 4.2: of the bytes sent, those that were not sent again, in %; null: nothing was
    /// sent, or the kernel is older than 4.19.
    #[serde(default)]
    pub efficiency_percent: Option<f64>,
}

impl Transferred {
    /// Returns the acknowledged data, bytes/s.
    pub fn goodput(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.duration_ns as f64
    }
}

/// Data that a receiver has stored.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stored {
    /// Local port.
    pub port: u16,
    /// Data that arrived, all of which is in the file.
    pub bytes: u64,
    /// Arrival of the first data, CLOCK_MONOTONIC.
    pub first_ns: u64,
    /// Arrival of the last data, CLOCK_MONOTONIC.
    pub last_ns: u64,
    /// When the last write had ended, CLOCK_MONOTONIC.
    pub stored_ns: u64,
    /// Size of the queue in front of the file, bytes.
    pub memory: u64,
    /// When it was full for the first time, CLOCK_MONOTONIC; null: never.
    pub full_ns: Option<u64>,
    /// Data that had arrived then.
    pub full_bytes: u64,
}

/// Why traffic could not be sent or received.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum TrafficError {
    #[error("{what}: {error}")]
    System { what: String, error: io::Error },
    #[error("{0}")]
    Usage(String),
}

impl TrafficError {
    /// Returns the exit code from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::System { .. } => 71,
            Self::Usage(_) => 64,
        }
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> TrafficError {
    let what = what.into();
    move |error| TrafficError::System { what, error }
}

/// Returns the address, if datagrams of this size fit.
fn fits(bytes: f64, [least, most]: [f64; 2]) -> Result<(), TrafficError> {
    if (least..=most).contains(&bytes) {
        return Ok(());
    }
    let message = format!("a datagram of {bytes} bytes: use {least} to {most}");
    Err(TrafficError::Usage(message))
}

fn ipv4(to: &str) -> Result<SocketAddr, TrafficError> {
    let mut addresses = to.to_socket_addrs().map_err(failed(to))?;
    let address = addresses.find(SocketAddr::is_ipv4);
    address.ok_or_else(|| TrafficError::Usage(format!("{to} has no IPv4 address")))
}

/// The shortest, the mean and the longest of several times.
#[derive(Debug, Default)]
struct Times {
    least: Option<u64>,
    sum: u128,
    count: u64,
    most: u64,
}

impl Times {
    fn add(&mut self, ns: u64) {
        self.least = Some(self.least.map_or(ns, |least| least.min(ns)));
        self.most = self.most.max(ns);
        self.sum += u128::from(ns);
        self.count += 1;
    }

    /// Returns `None` if there was none.
    fn figures(&self) -> Option<[u64; 3]> {
        let least = self.least?;
        let mean = self.sum / u128::from(self.count.max(1));
        let mean = u64::try_from(mean).unwrap_or(u64::MAX);
        Some([least, mean, self.most])
    }
}

#[cfg(test)]
mod tests {
    use super::send::tests::stream;
    use super::*;
    use std::net::UdpSocket;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn every_datagram_is_counted_once_and_with_its_time() {
        let free = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let ports = free.map(|socket| socket.local_addr().unwrap().port());
        let open = Ports::bind(&ports, &[], &[]).unwrap();
        let open = open.listing().unwrap();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let ends = stop.clone();
        let receiver = std::thread::spawn(move || receive(open, &ends));
        let began = crate::host::now_ns();
        let sent = send(&Stream {
            rate: 4_000_000,
            packets: 301,
            ..stream(&ports)
        })
        .unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let received = receiver.join().unwrap().unwrap();
        // In turn: of an odd number, the first destination has one more.
        for ((sent, received), packets) in sent.iter().zip(&received).zip([151, 150]) {
            let Count::Received(received) = received else {
                panic!("{received:?}")
            };
            assert_eq!((sent.port, sent.packets), (received.port, packets));
            assert_eq!((received.packets, received.bytes), (packets, packets * 500));
            assert_eq!(sent.bytes, received.bytes);
            assert_eq!(received.bins.iter().sum::<u64>(), packets * 500);
            let [least, mean, most] = received.delay_ns.unwrap();
            assert!(least > 0 && least <= mean && mean <= most, "{received:?}");
            let bins = sent.first_ns / BIN_NS..=crate::host::now_ns() / BIN_NS;
            assert!(bins.contains(&received.first_bin), "{received:?}");
            let [median, .., long] = received.variation_ns.unwrap();
            assert!(median <= long && long <= most - least, "{received:?}");
            assert!(received.jitter_ns.unwrap() <= most - least, "{received:?}");
            // Loopback forwards nothing.
            let each = received.each.iter();
            let times = each.map(|[sent, arrived, ttl]| (arrived - sent, *ttl));
            let times: Vec<_> = times.collect();
            assert_eq!(times.len() as u64, packets);
            assert!(
                times
                    .iter()
                    .all(|(delay, ttl)| (least..=most).contains(delay) && *ttl == 64)
            );
        }
        // 301 packets of 1 ms each, 300 us early at most. The first one may be late.
        let span = sent[0].last_ns - began;
        assert!(span >= 299_000_000, "{span}");
    }

    fn transferred(time: Duration) -> Transferred {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let ports = Ports::bind(&[], &[port], &[]).unwrap();
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let ends = stop.clone();
        let receiver = std::thread::spawn(move || receive(ports, &ends));
        let sent = transfer(&Transfer {
            to: format!("127.0.0.1:{port}"),
            data: Data::For(time),
            window: 131_072,
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        receiver.join().unwrap().unwrap();
        sent.unwrap()
    }

    #[test]
    fn a_transfer_has_round_trips() {
        let sent = transferred(Duration::from_millis(300));
        assert!(sent.bytes > 0 && sent.rtt_ns.unwrap()[2] > 0, "{sent:?}");
        assert!(sent.duration_ns >= 300_000_000);
    }

    /// One that ends before the first sample; a connection alone has a round trip, but no data.
    #[test]
    fn a_short_transfer_is_counted_too() {
        let sent = transferred(Duration::from_millis(9));
        let rtt_ns = sent.rtt_ns.unwrap();
        assert!(sent.bytes > 1 && rtt_ns[0] > 0, "{sent:?}");
        // A busy host makes TCP send some segments again, on loopback, too.
        let efficiency = sent.efficiency_percent.unwrap();
        assert!((50.0..=100.0).contains(&efficiency), "{sent:?}");
        let [baseline, mean] = [sent.baseline_rtt_ns.unwrap(), rtt_ns[1]];
        // The kernel rounds the smoothed one down, to 1 us.
        assert!(baseline > 0 && baseline <= rtt_ns[2] + 1_000, "{sent:?}");
        let beyond = 100.0 * mean.saturating_sub(baseline) as f64 / baseline as f64;
        assert_eq!(sent.buffer_delay_percent, Some(beyond), "{sent:?}");
        let none = transferred(Duration::ZERO);
        assert_eq!(none.efficiency_percent, None, "{none:?}");
        assert!(none.bytes == 0 && none.rtt_ns.unwrap()[0] > 0, "{none:?}");
    }

    #[test]
    fn figures_of_times() {
        let mut times = Times::default();
        assert_eq!(times.figures(), None);
        [5, 1, 9].into_iter().for_each(|ns| times.add(ns));
        assert_eq!(times.figures(), Some([1, 5, 9]));
    }

    /// One of an earlier version always has round trips.
    #[test]
    fn a_transfer_is_read_as_it_was_written() {
        for (text, rtt_ns) in [("[1, 5, 9]", Some([1, 5, 9])), ("null", None)] {
            let line = format!(
                r#"{{"transferred": {{"port": 9, "bytes": 0, "duration_ns": 1, "rtt_ns": {text}, "retransmissions": 0}}}}"#
            );
            let Count::Transferred(read) = serde_json::from_str(&line).unwrap() else {
                panic!("{line}")
            };
            assert_eq!(read.rtt_ns, rtt_ns);
            let written = serde_json::to_string(&Count::Transferred(read.clone())).unwrap();
            let again: Count = serde_json::from_str(&written).unwrap();
            assert_eq!(again, Count::Transferred(read));
        }
    }
}
