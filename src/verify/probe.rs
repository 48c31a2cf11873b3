// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbered packets at equal distances, and what happened to them.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::VerifyError;
use super::port::Port;
use crate::host::{now_ns, sleep_until};

/// Length of the stream's identifier before the number.
const ID_BYTES: usize = 8;
/// The shortest probe.
pub const SHORT_PAYLOAD: usize = 24;
/// Length of the longest probe, if the MTU permits.
const LONG_PAYLOAD: usize = 1400;
/// A shorter train would consist mostly of headers.
const LEAST_LONG_PAYLOAD: usize = 200;
/// Length of the header of UDP or ICMP.
const TRANSPORT_HEADER: usize = 8;
const ETHERNET_HEADER: usize = 14;

/// A probe whose send call took longer left at an unknown time within the call: its delay is not
/// counted. Such a gap is independent of the link.
const LONGEST_SEND_NS: u64 = 500_000;

const fn headers(peer: IpAddr) -> usize {
    let ip = if peer.is_ipv4() { 20 } else { 40 };
    ip + TRANSPORT_HEADER
}

/// Returns the length on the wire as the classifier counts it.
pub fn wire_bytes(payload: usize, peer: IpAddr, l3: bool) -> usize {
    let ethernet = if l3 { 0 } else { ETHERNET_HEADER };
    ethernet + headers(peer) + payload
}

/// Returns the longest payload for a train that needs no fragments, which would be separate packets
/// to the link. `None`: too little remains.
pub fn long_payload(mtu: u32, peer: IpAddr) -> Option<usize> {
    let room = (mtu as usize).checked_sub(headers(peer))?;
    (room >= LEAST_LONG_PAYLOAD).then_some(room.min(LONG_PAYLOAD))
}

#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Distinguishes this stream's packets from others.
    pub id: u64,
    pub count: u32,
    pub interval_ns: u64,
    pub payload: usize,
    /// Time to wait after the last probe was sent.
    pub wait_ns: u64,
    /// Whether overdue probes are sent at once after a pause of this machine: right for a train,
    /// for which the load counts and not the delays.
    pub catches_up: bool,
}

impl Plan {
    /// Overdue probes that are sent at once would queue in the link, and their delays would be caused
    /// by this machine: after a delay of more than half an interval, the schedule continues from
    /// there. The other half is time for the link to send the late probe: probes use a tenth of its
    /// rate.
    fn next_due_ns(&self, due_ns: u64, left_ns: u64) -> u64 {
        let late = left_ns.saturating_sub(due_ns) > self.interval_ns / 2;
        match late && !self.catches_up {
            true => left_ns + self.interval_ns,
            false => due_ns + self.interval_ns,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at_ns: u64,
    /// The send call took so long that `at_ns` is not the time of transmission.
    pub vague: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub number: u32,
    pub at_ns: u64,
}

/// The packets sent, by number, and the packets received, in the order of arrival.
#[derive(Debug, Default)]
pub struct Stream {
    pub sent: Vec<Sent>,
    pub came: Vec<Arrival>,
}

/// How a packet is built and recognised.
pub trait Wire: Sync {
    /// Builds the full packet from a payload that begins with stream and number.
    fn pack(&self, payload: &[u8], number: u32) -> Vec<u8>;
    /// Returns the payload if the packet is a probe that has passed the link.
    fn unpack<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]>;
}

/// The payload without change.
pub struct Udp;

impl Wire for Udp {
    fn pack(&self, payload: &[u8], _number: u32) -> Vec<u8> {
        payload.to_vec()
    }

    fn unpack<'a>(&self, packet: &'a [u8]) -> Option<&'a [u8]> {
        Some(packet)
    }
}

/// Sends all probes and collects those that arrive.
///
/// # Errors
/// The kernel rejects a packet.
pub fn run(from: &Port, to: &Port, wire: &dyn Wire, plan: Plan) -> Result<Stream, VerifyError> {
    // When to stop listening; unknown until all are sent.
    let until = AtomicU64::new(u64::MAX);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(to, wire, plan, &until));
        let sent = send(from, wire, plan);
        until.store(now_ns() + plan.wait_ns, Ordering::Release);
        let came = receiver.join().map_err(|_| VerifyError::Thread)?;
        Ok(Stream {
            sent: sent?,
            came: came?,
        })
    })
}

fn send(port: &Port, wire: &dyn Wire, plan: Plan) -> Result<Vec<Sent>, VerifyError> {
    // With the default timer slack the distances between probes would be uneven. SAFETY: no
    // pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let mut payload = vec![0; plan.payload];
    payload[..ID_BYTES].copy_from_slice(&plan.id.to_be_bytes());
    let mut due_ns = now_ns() + 1_000_000;
    let mut sent = Vec::with_capacity(plan.count as usize);
    for number in 0..plan.count {
        // Absolute, so that the late start of one packet does not move the others.
        sleep_until(due_ns);
        payload[ID_BYTES..ID_BYTES + 4].copy_from_slice(&number.to_be_bytes());
        let packet = wire.pack(&payload, number);
        let at_ns = now_ns();
        port.send(&packet)?;
        let left_ns = now_ns();
        let vague = left_ns - at_ns > LONGEST_SEND_NS;
        sent.push(Sent { at_ns, vague });
        due_ns = plan.next_due_ns(due_ns, left_ns);
    }
    Ok(sent)
}

fn receive(
    port: &Port,
    wire: &dyn Wire,
    plan: Plan,
    until: &AtomicU64,
) -> Result<Vec<Arrival>, VerifyError> {
    let mut came = Vec::with_capacity(plan.count as usize);
    let mut packet = [0u8; 2048];
    // Even past the deadline, packets that have already arrived are read.
    loop {
        let Some(received) = port.receive(&mut packet)? else {
            if now_ns() > until.load(Ordering::Acquire) {
                return Ok(came);
            }
            continue;
        };
        let payload = wire.unpack(&packet[..received.len]);
        if let Some(number) = payload.and_then(|p| number(p, plan)) {
            came.push(Arrival {
                number,
                at_ns: received.arrived_ns,
            });
        }
        if received.arrived_ns > until.load(Ordering::Acquire) {
            return Ok(came);
        }
    }
}

fn number(payload: &[u8], plan: Plan) -> Option<u32> {
    let (id, rest) = payload.split_first_chunk::<ID_BYTES>()?;
    let number = u32::from_be_bytes(*rest.first_chunk()?);
    (u64::from_be_bytes(*id) == plan.id && number < plan.count).then_some(number)
}

impl Stream {
    /// Delays in ns of the probes with a known time of transmission; the first of several copies
    /// counts.
    pub fn delays_ns(&self) -> Vec<f64> {
        let mut seen = vec![false; self.sent.len()];
        let mut delays = Vec::with_capacity(self.came.len());
        for arrival in &self.came {
            let (i, sent) = (arrival.number as usize, self.sent[arrival.number as usize]);
            if !sent.vague && !std::mem::replace(&mut seen[i], true) {
                delays.push(arrival.at_ns as f64 - sent.at_ns as f64);
            }
        }
        delays
    }

    /// Returns which probes arrived, and have a known time of transmission.
    pub fn known(&self) -> Vec<bool> {
        let mut known = vec![false; self.sent.len()];
        for arrival in &self.came {
            let i = arrival.number as usize;
            known[i] = !self.sent[i].vague;
        }
        known
    }

    /// Returns the number of distinct probes that arrived.
    pub fn different(&self) -> usize {
        let mut numbers: Vec<u32> = self.came.iter().map(|a| a.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    }

    pub fn lost(&self) -> usize {
        self.sent.len() - self.different()
    }

    /// Returns the number of copies that arrived.
    pub fn copies(&self) -> usize {
        self.came.len() - self.different()
    }

    /// Returns the number of packets that arrived after one that was sent later.
    pub fn overtaken(&self) -> usize {
        let mut latest = 0;
        let late = self.came.iter().filter(|arrival| {
            let overtaken = arrival.number < latest;
            latest = latest.max(arrival.number);
            overtaken
        });
        late.count()
    }

    /// Returns the time from the first arrival to the last.
    pub fn span_ns(&self) -> f64 {
        let times = || self.came.iter().map(|a| a.at_ns);
        let (first, last) = (times().min(), times().max());
        last.unwrap_or_default() as f64 - first.unwrap_or_default() as f64
    }

    /// Packets per second that were sent.
    pub fn offered_per_s(&self) -> f64 {
        per_s(self.sent.iter().map(|s| s.at_ns as f64))
    }

    /// Packets per second that arrived: the slope of a line through all of them, which limits the
    /// effect of a single delay.
    pub fn came_per_s(&self) -> f64 {
        per_s(self.came.iter().map(|a| a.at_ns as f64))
    }
}

fn per_s(times_ns: impl Iterator<Item = f64>) -> f64 {
    let mut times: Vec<f64> = times_ns.collect();
    times.sort_by(f64::total_cmp);
    1e9 / slope(&times)
}

/// Returns the slope of a line through ascending times: the distance between two of them.
pub fn slope(times_ns: &[f64]) -> f64 {
    let n = times_ns.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let first = times_ns.first().copied().unwrap_or_default();
    let product: f64 = times_ns
        .iter()
        .enumerate()
        .map(|(i, t)| (i as f64 - middle) * (t - first))
        .sum();
    product / (n * (n * n - 1.0) / 12.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(came: &[(u32, u64)]) -> Stream {
        Stream {
            sent: (0..5)
                .map(|i| Sent {
                    at_ns: i * 10,
                    vague: i == 3,
                })
                .collect(),
            came: came
                .iter()
                .map(|(number, at_ns)| Arrival {
                    number: *number,
                    at_ns: *at_ns,
                })
                .collect(),
        }
    }

    /// Times of transmission if the machine pauses once, while the `at`th probe is due.
    fn with_pause(catches_up: bool, at: usize, pause_ns: u64) -> Vec<u64> {
        let plan = Plan {
            id: 1,
            count: 10,
            interval_ns: 1000,
            payload: SHORT_PAYLOAD,
            wait_ns: 0,
            catches_up,
        };
        let (mut due, mut now) = (0, 0u64);
        let times = (0..10).map(|i| {
            now = now.max(due) + if i == at { pause_ns } else { 0 };
            due = plan.next_due_ns(due, now);
            now
        });
        times.collect()
    }

    #[test]
    fn paced_probes_keep_their_distance_after_a_pause() {
        for pause_ns in [0, 400, 501, 900, 1000, 2500, 1_000_000] {
            let times = with_pause(false, 3, pause_ns);
            let apart = times.windows(2).map(|w| w[1] - w[0]).min();
            assert!(apart >= Some(500), "{pause_ns}: {times:?}");
        }
        // A short delay moves no other probe; a long pause moves all of them.
        assert_eq!(with_pause(false, 3, 400)[4..6], [4000, 5000]);
        assert_eq!(with_pause(false, 3, 2500)[3..6], [5500, 6500, 7500]);
    }

    #[test]
    fn a_train_offers_what_it_is_to_offer_in_spite_of_a_pause() {
        assert_eq!(with_pause(true, 3, 2500)[3..7], [5500, 5500, 5500, 6000]);
    }

    #[test]
    fn the_longest_probe_fits_the_mtu() {
        let (v4, v6) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([1u16; 8]));
        assert_eq!(long_payload(1500, v4), Some(1400));
        assert_eq!(long_payload(65_536, v6), Some(1400));
        // One byte more would require two packets.
        assert_eq!(long_payload(1427, v4), Some(1399));
        assert_eq!(long_payload(1447, v6), Some(1399));
        assert_eq!(long_payload(228, v4), Some(200));
        assert_eq!(long_payload(227, v4), None);
        assert_eq!(long_payload(68, v6), None);
        assert_eq!(long_payload(10, v4), None);
        assert_eq!(wire_bytes(1472, v4, true), 1500);
    }

    #[test]
    fn losses_copies_and_order_are_told_apart() {
        let s = stream(&[(0, 7), (2, 29), (1, 30), (2, 31), (3, 50)]);
        assert_eq!((s.lost(), s.copies(), s.overtaken()), (1, 1, 1));
        assert_eq!(s.delays_ns(), [7.0, 9.0, 20.0], "not the vague one");
        assert_eq!(s.known(), [true, true, true, false, false]);
    }

    #[test]
    fn a_rate_is_the_slope() {
        let s = stream(&[(0, 0), (1, 1_000_000), (2, 2_000_000), (3, 3_000_000)]);
        assert!((s.came_per_s() - 1000.0).abs() < 1e-6);
        assert!((s.offered_per_s() - 1e8).abs() < 1.0);
    }
}
