// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rates with overheads: the time that a burst of packets takes from the first to the last.

use std::time::Duration;

use super::pairs::Pairs;
use support::lab::{Lab, Verdict};
use support::probe::{HEADERS, Probe};

struct Burst {
    command: &'static str,
    payload: usize,
    packets: u32,
    /// Bytes that a packet takes on the wire.
    wire: fn(usize) -> usize,
    bit_s: f64,
}

/// Of the 2011 page's example: 20 bytes more, then cells of 100 bytes and 5 beside.
const CELLS: fn(usize) -> usize = |frame| (frame + 20).div_ceil(100) * 105;

const BURSTS: &[Burst] = &[
    Burst {
        command: "tc qdisc add dev eth0 root netem rate 5kbit 20 100 5",
        payload: 64,
        packets: 20,
        wire: CELLS,
        bit_s: 5e3,
    },
    Burst {
        command: "netem rate 1mbit 20 100 5",
        payload: 64,
        packets: 200,
        wire: CELLS,
        bit_s: 1e6,
    },
    // With the overhead a cell exactly, and one byte more.
    Burst {
        command: "netem rate 1mbit 20 100 5",
        payload: 980 - HEADERS,
        packets: 100,
        wire: CELLS,
        bit_s: 1e6,
    },
    Burst {
        command: "netem rate 1mbit 20 100 5",
        payload: 981 - HEADERS,
        packets: 100,
        wire: CELLS,
        bit_s: 1e6,
    },
    Burst {
        command: "netem rate 1mbit 0 48 5",
        payload: 50,
        packets: 200,
        wire: |frame| frame.div_ceil(48) * 53,
        bit_s: 1e6,
    },
    Burst {
        command: "netem rate 100kbit -14",
        payload: 500,
        packets: 50,
        wire: |frame| frame - 14,
        bit_s: 1e5,
    },
];

pub fn rates(pairs: &Pairs) {
    let mut verdict = Verdict::default();
    let within_ms = pairs.machine().busy_ms;
    for burst in BURSTS {
        let wire = (burst.wire)(burst.payload + HEADERS);
        let packet_ms = wire as f64 * 8e3 / burst.bit_s;
        let spans = pairs
            .run(burst.command, |lab: &Lab| Probe {
                payload_len: burst.payload,
                patience: Duration::from_secs_f64(0.2 + 2.0 * packet_ms / 1e3),
                ..Probe::new(lab, burst.packets, 0)
            })
            .map(|arrivals| {
                assert_eq!(arrivals.0.len(), burst.packets as usize, "arrivals");
                let at = |i: usize| arrivals.0[i].arrived_ns as f64 / 1e6;
                at(burst.packets as usize - 1) - at(0)
            });
        let theory = packet_ms * f64::from(burst.packets - 1);
        let name = format!("{}, {} bytes", burst.command, burst.payload + HEADERS);
        verdict.near(
            &format!("{name}: ms of the burst, netem"),
            theory,
            spans[0],
            within_ms,
        );
        verdict.near(
            &format!("{name}: ms of the burst, emud"),
            theory,
            spans[1],
            within_ms,
        );
        verdict.near(
            &format!("{name}: emud against netem"),
            spans[0],
            spans[1],
            within_ms,
        );
    }
    verdict.end();
}
