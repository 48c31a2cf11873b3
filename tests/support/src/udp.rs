// SPDX-License-Identifier: MIT OR Apache-2.0
//! A paced sender of numbered datagrams, and its receiver: this program again, in a node.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long after the last one a receiver ends.
const QUIET: Duration = Duration::from_millis(500);

/// The command line of a sender of `count` datagrams, `every` apart.
pub fn sender(to: &str, count: u32, every: Duration) -> String {
    format!("{} udp-send {to} {count} {}", own(), every.as_micros())
}

/// The command line of a receiver, which prints the numbers of what it got.
pub fn receiver(port: u16) -> String {
    format!("{} udp-receive {port}", own())
}

fn own() -> String {
    std::env::current_exe()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned()
}

/// The role of this program, if it is one of the two.
pub fn role(arguments: &[String]) -> Option<ExitCode> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["udp-send", to, count, every_us] => {
            let every = Duration::from_micros(every_us.parse().unwrap());
            send(to, count.parse().unwrap(), every);
        }
        ["udp-receive", port] => receive(port.parse().unwrap()),
        _ => return None,
    }
    Some(ExitCode::SUCCESS)
}

fn send(to: &str, count: u32, every: Duration) {
    // A fixed port: the identity of the flow must not depend on chance.
    let socket = UdpSocket::bind(("0.0.0.0", 4242)).unwrap();
    socket.connect(to).unwrap();
    let start = Instant::now();
    for n in 0..count {
        sleep((start + every * n).saturating_duration_since(Instant::now()));
        // The port may be closed, which the host then reports.
        let _ = socket.send(&n.to_be_bytes());
    }
}

fn receive(port: u16) {
    let socket = UdpSocket::bind(("0.0.0.0", port)).unwrap();
    let mut first = true;
    let mut buffer = [0; 4];
    while next(&socket, &mut buffer).is_some() {
        println!("{}", u32::from_be_bytes(buffer));
        if std::mem::take(&mut first) {
            socket.set_read_timeout(Some(QUIET)).unwrap();
        }
    }
}

/// The length of the next datagram; none after the socket's time-out.
///
/// # Panics
/// The socket fails.
pub fn next(socket: &UdpSocket, bytes: &mut [u8]) -> Option<usize> {
    loop {
        match socket.recv(bytes) {
            Ok(length) => return Some(length),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return None,
            // The kernel does not restart a recv with a time-out (sock_intr_errno()): seen once in
            // 200 runs of 200 tests.
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => panic!("recv: {e}"),
        }
    }
}
