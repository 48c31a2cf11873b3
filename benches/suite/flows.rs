// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP flows that send as much as they can, and the amount that arrives in a given time.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use support::lab::{Lab, inside};

const PORT: u16 = 7004;

/// Returns the payload bits/s that the receivers of this many flows get together, after their
/// start.
///
/// A flow that is limited by its window sends in bursts, one per round trip. Between two instants
/// that are whole round trips apart there is the same number of them wherever they are; from one
/// arrival to another there may be one more. 0: nothing came.
pub fn goodput_bit_s(lab: &Lab, flows: usize, warm_up: Duration, duration: Duration) -> f64 {
    let address: SocketAddr = format!("{}:{PORT}", Lab::B4).parse().expect("an address");
    let listener = inside(&lab.b, move || TcpListener::bind(address).expect("listen"));
    let listener = listener.join().expect("the listener");
    let got = Arc::new(AtomicU64::new(0));
    let mut senders = vec![];
    let mut receivers = vec![];
    for _ in 0..flows {
        let sender = inside(&lab.a, move || {
            TcpStream::connect(address).expect("connect")
        });
        let (stream, _) = listener.accept().expect("a flow");
        let total = got.clone();
        receivers.push((
            stream.try_clone().expect("a descriptor"),
            thread::spawn(move || receive(stream, &total)),
        ));
        let stream = sender.join().expect("connected");
        senders.push((
            stream.try_clone().expect("a descriptor"),
            thread::spawn(move || send(stream)),
        ));
    }
    thread::sleep(warm_up);
    let (begin, before) = (Instant::now(), got.load(Ordering::Relaxed));
    thread::sleep(duration);
    let bytes = got.load(Ordering::Relaxed) - before;
    let goodput = bytes as f64 * 8.0 / begin.elapsed().as_secs_f64();
    // Both ends: a link that has stopped passes no reset (wirefilter, with TCP flat out).
    for (stream, end) in senders.into_iter().chain(receivers) {
        let _ = stream.shutdown(std::net::Shutdown::Both);
        end.join().expect("an end of a flow");
    }
    goodput
}

/// Until it is shut down.
fn send(mut stream: TcpStream) {
    let bytes = vec![0u8; 64 << 10];
    while stream.write(&bytes).is_ok() {}
}

fn receive(mut stream: TcpStream, total: &AtomicU64) {
    let mut bytes = vec![0u8; 256 << 10];
    while let Ok(got @ 1..) = stream.read(&mut bytes) {
        total.fetch_add(got as u64, Ordering::Relaxed);
    }
}
