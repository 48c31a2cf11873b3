// SPDX-License-Identifier: MIT OR Apache-2.0
//! A transfer over UDP with its own retransmission: numbered blocks, each acknowledged by itself.
//!
//! A block is a datagram of [`crate::experiment::traffic`]: its header, then data.
//! The receiver returns the first 16 bytes, so that the sender knows which transmission is
//! acknowledged. There is no connection and no congestion control: rate, window and timeout are
//! constant ([`Window`]).

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::header::{self, EmudHeader};
use super::window::{Step, Window};
use super::{DATAGRAM_MAX, DATAGRAM_MIN, Times, TrafficError, Transferred, failed, fits, ipv4};
use crate::host::timespec;
use crate::host::{nanoseconds, now_ns};

/// A transfer of numbered blocks.
#[derive(Debug, Clone)]
pub struct Blocks {
    /// HOST:PORT of the receiver, IPv4.
    pub to: String,
    /// Highest rate of the data, bit/s.
    pub rate: u64,
    /// Data per block, bytes, with the header.
    pub size: usize,
    /// Maximum number of unacknowledged blocks.
    pub window: usize,
    /// Time after which a block is sent again.
    pub timeout: Duration,
    /// How long to send.
    pub duration: Duration,
}

/// Sends for this time.
///
/// # Errors
/// The size does not fit, the destination is unknown or does not listen, or the kernel returns an
/// error.
pub fn blocks(blocks: &Blocks) -> Result<Transferred, TrafficError> {
    let to = &blocks.to;
    let limits = [DATAGRAM_MIN, DATAGRAM_MAX].map(|bytes| bytes as f64);
    fits(blocks.size as f64, limits)?;
    let address = ipv4(to)?;
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed("a socket"))?;
    let ready = socket.connect(address).and(socket.set_nonblocking(true));
    ready.map_err(failed(to))?;
    let bits = blocks.size as u128 * 8_000_000_000;
    let interval = u64::try_from(bits / u128::from(blocks.rate.max(1))).unwrap_or(u64::MAX);
    let mut window = Window::new(blocks.window, interval, nanoseconds(blocks.timeout));
    let mut rtt = Times::default();
    let mut data = vec![0; blocks.size];
    let host = header::host().map_err(failed("the ID of this boot"))?;
    let begin = now_ns();
    let end = begin.saturating_add(nanoseconds(blocks.duration));
    let mut now = begin;
    while now < end {
        match window.step(now) {
            Step::Send(number) => {
                let header = EmudHeader {
                    number,
                    host,
                    sent_ns: now,
                };
                data[..DATAGRAM_MIN].copy_from_slice(&header.bytes());
                match socket.send(&data) {
                    // Then it is lost, as any other.
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                    done => done.map(|_| ()).map_err(failed(to))?,
                }
            }
            Step::Wait(until) => {
                let wait = timespec(until.min(end) - now);
                match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&wait)) {
                    Err(Errno::INTR) | Ok(_) => {}
                    Err(e) => return Err(failed("acknowledgements")(e.into())),
                }
            }
        }
        let acknowledged = acknowledgements(&socket, &mut window, &mut rtt);
        acknowledged.map_err(failed(to))?;
        now = now_ns();
    }
    Ok(Transferred {
        port: address.port(),
        bytes: window.acknowledged() * blocks.size as u64,
        duration_ns: now - begin,
        rtt_ns: rtt.figures(),
        retransmissions: window.retransmissions(),
        ..Transferred::default()
    })
}

/// Takes all acknowledgements that have arrived.
fn acknowledgements(socket: &UdpSocket, window: &mut Window, rtt: &mut Times) -> io::Result<()> {
    let mut data = [0; DATAGRAM_MIN];
    loop {
        match socket.recv(&mut data) {
            Ok(len) => {
                if let Some(header) = EmudHeader::read(&data[..len]) {
                    rtt.add(now_ns().saturating_sub(header.sent_ns));
                    window.acknowledge(header.number);
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::traffic::{Count, Ports, receive};
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    /// Forwards in both directions, but not every fifth datagram of each: of both together every fifth could
    /// always be a block, since one that is lost has no acknowledgement.
    fn lossy(relay: &UdpSocket, receiver: SocketAddr, stop: &AtomicBool) {
        let (mut sender, mut data) = (receiver, [0; 2048]);
        let (mut blocks, mut acknowledgements) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            let Ok((len, from)) = relay.recv_from(&mut data) else {
                continue;
            };
            if from != receiver {
                sender = from;
            }
            let (to, count) = match from == receiver {
                true => (sender, &mut acknowledgements),
                false => (receiver, &mut blocks),
            };
            *count += 1;
            if *count % 5 != 0 {
                relay.send_to(&data[..len], to).unwrap();
            }
        }
    }

    #[test]
    fn what_is_lost_is_sent_again() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let receiver = free.local_addr().unwrap();
        drop(free);
        let ports = Ports::bind(&[], &[], &[receiver.port()]).unwrap();
        let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
        let wake = Some(Duration::from_millis(20));
        relay.set_read_timeout(wake).unwrap();
        let to = relay.local_addr().unwrap().to_string();
        let stop = AtomicBool::new(false);
        let (sent, received) = thread::scope(|scope| {
            scope.spawn(|| lossy(&relay, receiver, &stop));
            let received = scope.spawn(|| receive(ports, &stop));
            let sent = blocks(&Blocks {
                to,
                rate: 8_000_000,
                size: 1000,
                window: 8,
                timeout: Duration::from_millis(10),
                duration: Duration::from_millis(500),
            });
            stop.store(true, Ordering::Relaxed);
            (sent.unwrap(), received.join().unwrap().unwrap())
        });
        let [Count::Received(received)] = &received[..] else {
            panic!("{received:?}")
        };
        let acknowledged = sent.bytes / 1000;
        // A block that arrived may not be acknowledged yet, but none is acknowledged that did not.
        let arrived = received.packets - received.repeated;
        assert!(
            (acknowledged..=acknowledged + 8).contains(&arrived),
            "{sent:?} {received:?}"
        );
        assert!(acknowledged > 8 && sent.retransmissions > 0, "{sent:?}");
        assert!(
            received.repeated > 0,
            "an acknowledgement was lost: {received:?}"
        );
        assert!(sent.rtt_ns.unwrap()[0] > 0 && sent.duration_ns >= 500_000_000);
    }

    #[test]
    fn without_an_acknowledgement_there_is_no_round_trip() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sent = blocks(&Blocks {
            to: silent.local_addr().unwrap().to_string(),
            rate: 8_000_000,
            size: 1000,
            window: 8,
            timeout: Duration::from_millis(10),
            duration: Duration::from_millis(50),
        });
        let sent = sent.unwrap();
        assert_eq!((sent.bytes, sent.rtt_ns), (0, None));
    }
}
