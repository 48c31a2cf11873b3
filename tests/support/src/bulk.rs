// SPDX-License-Identifier: MIT OR Apache-2.0
//! One TCP flow that sends as much as it can.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::lab::inside;

const PORT: u16 = 7003;

/// Payload of a full segment, with timestamps, and the frame around it.
pub const SEGMENT: f64 = 1448.0;
pub const FRAME: f64 = 1514.0;

/// A flow between two namespaces.
pub struct Bulk {
    pub from: String,
    pub to: String,
    pub address: IpAddr,
    /// Before the measurement begins, for the start of the flow.
    pub warm_up: Duration,
    pub duration: Duration,
    /// The maximum in flight, bytes, if not the kernel's own choice: below the link's queue nothing
    /// is lost.
    pub window: Option<libc::c_int>,
}

impl Bulk {
    /// Payload bits/s at the receiver, between the first and the last arrival of the measurement.
    pub fn goodput_bit_s(&self) -> f64 {
        let (ready, is_ready) = mpsc::channel();
        let (address, window) = (self.address, self.window);
        let (warm_up, duration) = (self.warm_up, self.duration);
        let receiver = inside(&self.to, move || {
            let listener = TcpListener::bind((address, PORT)).expect("listen");
            if let Some(window) = window {
                set_receive_buffer(&listener, window);
            }
            ready.send(()).expect("the test waits");
            let (stream, _) = listener.accept().expect("a flow");
            receive(stream, warm_up, duration)
        });
        is_ready.recv().expect("the receiver");
        let sender = inside(&self.from, move || {
            let stream = TcpStream::connect(SocketAddr::new(address, PORT)).expect("connect");
            send(stream);
        });
        let goodput = receiver.join().expect("the receiver");
        sender.join().expect("the sender");
        goodput
    }
}

/// Waits until the other side has gone.
fn send(mut stream: TcpStream) {
    let bytes = vec![0u8; 64 << 10];
    loop {
        match stream.write(&bytes) {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn receive(mut stream: TcpStream, warm_up: Duration, duration: Duration) -> f64 {
    let mut bytes = vec![0u8; 256 << 10];
    let begin = Instant::now();
    let mut first = None;
    let mut last = begin;
    let mut total = 0;
    while begin.elapsed() < warm_up + duration {
        let got = stream.read(&mut bytes).expect("read");
        assert_ne!(got, 0, "the sender ended the flow");
        last = Instant::now();
        match first {
            None if last - begin >= warm_up => first = Some(last),
            None => {}
            Some(_) => total += got,
        }
    }
    let first = first.expect("something came after the warm-up");
    total as f64 * 8.0 / (last - first).as_secs_f64()
}

fn set_receive_buffer(listener: &TcpListener, window: libc::c_int) {
    // The kernel doubles the size, and advertises half of it. SAFETY: the value is an int that
    // lives until the call returns.
    let done = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const window).cast(),
            size_of_val(&window) as libc::socklen_t,
        )
    };
    assert_eq!(done, 0, "setsockopt: {}", std::io::Error::last_os_error());
}
