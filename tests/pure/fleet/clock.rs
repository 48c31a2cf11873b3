// SPDX-License-Identifier: MIT OR Apache-2.0

use std::net::UdpSocket;
use std::thread;

use emud::fleet::clock::{Exchange, Responder, estimate, here, passes, probe};
use emud_monitor::log::{Clock, mono_ns};
use proptest::prelude::*;
use support::chance::same_cases;

/// An exchange with a clock that is `offset` ahead, `up` ns there and `down` ns back.
fn exchange(sent: i64, offset: i64, up: i64, served: i64, down: i64) -> Exchange {
    Exchange {
        sent,
        there: sent + up + offset,
        back: sent + up + served + offset,
        arrived: sent + up + served + down,
    }
}

proptest! {
    #![proptest_config(same_cases(256))]

    /// The error is never larger than the bound, however different both directions are.
    #[test]
    fn the_bound_holds(
        offset in -1_000_000_000_000_i64..1_000_000_000_000,
        ways in prop::collection::vec((0_i64..10_000_000, 0_i64..1_000_000, 0_i64..10_000_000), 1..50),
    ) {
        let all: Vec<_> = (ways.iter())
            .map(|(up, served, down)| exchange(5_000_000_000, offset, *up, *served, *down))
            .collect();
        let found = estimate(&all).unwrap();
        prop_assert!(found.offset_ns.abs_diff(offset) <= found.bound_ns);
        let best = ways.iter().map(|(up, _, down)| up + down).min().unwrap();
        prop_assert_eq!(found.bound_ns, best.unsigned_abs().div_ceil(2));
    }
}

#[test]
fn the_delay_is_that_of_the_median_probe() {
    let all = [1_000, 3_000, 2_000, 90_000, 2_500].map(|way| exchange(0, 7, way, 100, way));
    let found = estimate(&all).unwrap();
    assert_eq!(
        (found.delay_ns, found.offset_ns, found.bound_ns),
        (2_500, 7, 1_000)
    );
    assert_eq!(found.answers, 5);
}

#[test]
fn a_stamp_from_the_past_is_not_used() {
    // The clock was set between both stamps.
    let set = Exchange {
        sent: 100,
        there: 200,
        back: 900,
        arrived: 300,
    };
    assert_eq!(estimate(&[set]), None);
    assert_eq!(estimate(&[]), None);
}

#[test]
fn a_time_there_is_a_time_here() {
    // The other clock is 30 ns ahead.
    assert_eq!(here(1_000, 30), 970);
    assert_eq!(here(1_000, -30), 1_030);
}

/// Answers probes as a host whose CLOCK_MONOTONIC is `ahead_ns` ahead, and whose time of day is
/// set back by an hour after each tenth probe.
fn host_ahead(ahead_ns: i64) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let answers = socket.try_clone().unwrap();
    thread::spawn(move || {
        let mut text = [0; 40];
        for count in 0_i64.. {
            let (_, from) = answers.recv_from(&mut text).unwrap();
            let hour_ns = 3_600_000_000_000;
            let difference = Clock::now().realtime_minus_mono_ns - count / 10 * hour_ns;
            let now = mono_ns().cast_signed() + ahead_ns + difference;
            for (at, number) in [(16, now), (24, now), (32, difference)] {
                text[at..at + 8].copy_from_slice(&number.to_be_bytes());
            }
            answers.send_to(&text, from).unwrap();
        }
    });
    socket
}

/// Clocks 50 ms apart: the offset is found, and its error is within the bound.
#[test]
fn a_clock_ahead_is_bounded_whoever_sets_the_time_of_day() {
    for ahead_ns in [50_000_000, -50_000_000] {
        let host = host_ahead(ahead_ns);
        let found = probe(host.local_addr().unwrap(), 7).unwrap();
        let error = found.offset_ns.abs_diff(ahead_ns);
        assert!(error <= found.bound_ns, "{error}: {found:?}");
        assert!(found.bound_ns < 20_000_000, "{found:?}");
    }
}

#[test]
fn a_long_packet_is_answered() {
    let responder = Responder::start([127, 0, 0, 1].into()).unwrap();
    let to = ([127, 0, 0, 1], responder.port).into();
    assert!(passes(to, responder.token, 1550).unwrap());
}

/// Two responders do not answer each other for ever.
#[test]
fn an_answer_is_not_answered() {
    let responder = Responder::start([127, 0, 0, 1].into()).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", responder.port)).unwrap();
    // The second one has the length of an answer.
    for (number, len) in [(0, 16), (1, 40), (2, 41), (3, 1500)] {
        let mut text = vec![0; len];
        text[..8].copy_from_slice(&responder.token.to_be_bytes());
        text[15] = number;
        socket.send(&text).unwrap();
    }
    let mut answer = [0; 50];
    for number in [0, 2, 3] {
        assert_eq!(socket.recv(&mut answer).unwrap(), 40);
        assert_eq!(answer[15], number);
    }
}
