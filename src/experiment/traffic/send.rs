// SPDX-License-Identifier: MIT OR Apache-2.0
//! Datagrams at a constant rate, or as the frames of a video.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::set_ip_tos;

use super::header::{self, EmudHeader};
use super::rtp::{CLOCK, Frames, Header};
use super::{DATAGRAM_MAX, DATAGRAM_MIN, RTP_HEADER, Sent, Size, TrafficError, failed, ipv4};
use crate::host::now_ns;

/// A stream of datagrams.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Each HOST:PORT, IPv4. Packets go to them in turn.
    pub to: Vec<String>,
    /// Rate of the data to all of them, bit/s.
    pub rate: u64,
    /// Data per packet.
    pub size: Size,
    /// Seed of the sizes of a distribution.
    pub seed: u64,
    /// Frames a second of an RTP stream; `None`: no RTP, a packet at a time.
    pub rtp: Option<u32>,
    /// Packets to send to all of them.
    pub packets: u64,
    /// Type of service, all eight bits.
    pub tos: u8,
    /// Pause after the last packet.
    pub linger: Duration,
    /// Whether it is no error if no packet had a route, or nothing listens (yet).
    pub patient: bool,
}

const NS: u64 = 1_000_000_000;

/// A destination.
struct To<'a> {
    name: &'a str,
    address: SocketAddr,
    socket: UdpSocket,
    connected: bool,
    patient: bool,
    host: u32,
    sent: Sent,
}

/// Sends each packet when the rate has given the data of those before it, up to 300 us early; a late sender catches up
/// without pauses. With RTP a packet leaves with the others of its frame, when the frame begins. A packet without
/// a route is lost, as one that no relay forwards: a routing daemon may find one later. Returns what was sent to
/// each destination.
///
/// # Errors
/// The size does not fit, RTP has several destinations, one is unknown, no packet to it had a route (unless
/// `patient`), or the kernel returns another error.
pub fn send(stream: &Stream) -> Result<Vec<Sent>, TrafficError> {
    let header = stream.rtp.map_or(0, |_| RTP_HEADER);
    let limits = header + DATAGRAM_MIN..=DATAGRAM_MAX;
    let mut sizes = stream.size.draw(limits, stream.seed)?;
    if stream.rtp.is_some() && stream.to.len() > 1 {
        let message = "an RTP stream has one destination: start a sender for each";
        return Err(TrafficError::Usage(message.to_owned()));
    }
    let host = header::host().map_err(failed("the ID of this boot"))?;
    let all = stream.to.iter().map(|to| To::open(to, stream, host));
    let mut all: Vec<To<'_>> = all.collect::<Result<_, _>>()?;
    let frames = stream.rtp.map(|fps| Frames {
        rate: stream.rate,
        fps,
    });
    let mut data = [0; DATAGRAM_MAX];
    let (mut bytes, begin) = (0, now_ns());
    let source = begin as u32;
    for (n, index) in (0..stream.packets).zip((0..all.len()).cycle()) {
        let size = sizes.next().unwrap_or(DATAGRAM_MAX);
        let frame = frames.map(|frames| (frames, frames.of(bytes)));
        let due = match frame {
            Some((frames, frame)) => frames.time(frame, NS),
            None => {
                let bits_ns = u128::from(bytes) * 8 * u128::from(NS);
                u64::try_from(bits_ns / u128::from(stream.rate)).unwrap_or(0)
            }
        };
        bytes += size as u64;
        if let Some((frames, frame)) = frame {
            let header = Header {
                marker: n + 1 == stream.packets || frames.of(bytes) > frame,
                sequence: n as u16,
                timestamp: frames.time(frame, CLOCK) as u32,
                source,
            };
            data[..RTP_HEADER].copy_from_slice(&header.bytes());
        }
        wait_until(begin + due);
        all[index].send(&mut data[..size], header)?;
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
    fn open(name: &'a str, stream: &Stream, host: u32) -> Result<Self, TrafficError> {
        let address = ipv4(name)?;
        let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed("a socket"))?;
        set_ip_tos(&socket, stream.tos).map_err(|e| failed("the type of service")(e.into()))?;
        Ok(Self {
            name,
            address,
            connected: has_route(socket.connect(address)).map_err(failed(name))?,
            socket,
            patient: stream.patient,
            host,
            sent: Sent {
                port: address.port(),
                packets: 0,
                unroutable: 0,
                bytes: 0,
                first_ns: 0,
                last_ns: 0,
            },
        })
    }

    /// Sends the next packet, with its number and the time after the header.
    fn send(&mut self, data: &mut [u8], header: usize) -> Result<(), TrafficError> {
        let what = || failed(self.name);
        let now = now_ns();
        let own = &mut data[header..];
        let stamp = EmudHeader {
            number: self.sent.packets,
            host: self.host,
            sent_ns: now,
        };
        own[..DATAGRAM_MIN].copy_from_slice(&stamp.bytes());
        if !self.connected {
            self.connected = has_route(self.socket.connect(self.address)).map_err(what())?;
        }
        let send = || self.socket.send(data).map(|_| ());
        let sent = || match send() {
            // Of an earlier packet; this one was not sent.
            Err(e) if self.patient && e.kind() == io::ErrorKind::ConnectionRefused => send(),
            result => result,
        };
        let sent = self.connected && has_route(sent()).map_err(what())?;
        if self.sent.packets == 0 {
            self.sent.first_ns = now;
        }
        self.sent.last_ns = now;
        self.sent.packets += 1;
        self.sent.bytes += data.len() as u64;
        self.sent.unroutable += u64::from(!sent);
        Ok(())
    }
}

/// Returns whether there was a route.
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

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::traffic::{Count, Ports, receive};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Returns a stream to these ports of this host.
    pub fn stream(ports: &[u16]) -> Stream {
        Stream {
            to: (ports.iter())
                .map(|port| format!("127.0.0.1:{port}"))
                .collect(),
            rate: 1_000_000,
            size: Size::Fixed(500),
            seed: 1,
            rtp: None,
            packets: 1,
            tos: 0,
            linger: Duration::from_millis(100),
            patient: false,
        }
    }

    #[test]
    fn a_patient_sender_does_not_need_a_receiver() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let nobody = Stream {
            packets: 5,
            ..stream(&[port])
        };
        assert!(send(&nobody).is_err());
        let patient = Stream {
            patient: true,
            ..nobody
        };
        let sent = &send(&patient).unwrap()[0];
        assert_eq!((sent.packets, sent.unroutable), (5, 0));
    }

    /// As any receiver of RTP finds it: 2 Mbit/s are 10,000 bytes in a frame of 40 ms, seven datagrams of 1,400 and
    /// a part, which the next frame has.
    #[test]
    fn frames_of_rtp_leave_at_once() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let began = crate::host::now_ns();
        let sent = send(&Stream {
            rate: 2_000_000,
            size: Size::Fixed(1_400),
            rtp: Some(25),
            packets: 22,
            ..stream(&[socket.local_addr().unwrap().port()])
        })
        .unwrap();
        assert_eq!((sent[0].packets, sent[0].bytes), (22, 22 * 1_400));
        let (mut headers, mut data) = (vec![], [0; 2048]);
        for n in 0..22 {
            let len = socket.recv(&mut data).unwrap();
            let (header, own) = Header::read(&data[..len]).unwrap();
            assert_eq!((len, header.sequence), (1_400, n));
            let own = EmudHeader::read(own).unwrap();
            assert_eq!(own.number, u64::from(n));
            headers.push((header, own.sent_ns));
        }
        let first = headers[0];
        assert!(
            headers
                .iter()
                .all(|(header, _)| header.source == first.0.source)
        );
        let stamps = headers.iter().map(|(header, _)| header.timestamp / 3_600);
        let wanted = [(0, 8), (1, 7), (2, 7)];
        assert!(stamps.eq(wanted.iter().flat_map(|(n, count)| vec![*n; *count])));
        let markers = headers.iter().map(|(header, _)| header.marker);
        let markers: Vec<_> = markers
            .enumerate()
            .filter_map(|(n, m)| m.then_some(n))
            .collect();
        assert_eq!(markers, [7, 14, 21]);
        // The first one of a frame is at most 300 us early.
        for (n, frame) in [(8, 1), (15, 2)] {
            let after = headers[n].1 - began;
            assert!(after >= frame * 40_000_000 - 300_000, "{n} {after}");
        }
    }

    #[test]
    fn an_rtp_port_counts_and_sizes_vary() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let open = Ports::bind(&[], &[], &[]).unwrap().rtp(&[port]).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ends = stop.clone();
        let receiver = std::thread::spawn(move || receive(open.listing().unwrap(), &ends));
        let sent = send(&Stream {
            rate: 8_000_000,
            size: "normal:800,200".parse().unwrap(),
            rtp: Some(50),
            packets: 200,
            ..stream(&[port])
        })
        .unwrap();
        // What is no RTP does not count.
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.send_to(&[0; 100], ("127.0.0.1", port)).unwrap();
        stop.store(true, Ordering::Relaxed);
        let received = receiver.join().unwrap().unwrap();
        let [Count::Received(received)] = &received[..] else {
            panic!("{received:?}")
        };
        assert_eq!((received.packets, received.bytes), (200, sent[0].bytes));
        assert!((150_000..170_000).contains(&sent[0].bytes), "{sent:?}");
        assert_eq!(received.each.len(), 200);
        let [least, _, most] = received.delay_ns.unwrap();
        assert!(least > 0 && most < 1_000_000_000, "{received:?}");
        let two = send(&Stream {
            rtp: Some(25),
            ..stream(&[port, port])
        })
        .unwrap_err();
        assert!(two.to_string().contains("start a sender for each"), "{two}");
    }
}
