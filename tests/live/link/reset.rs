// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP connections that end because the link resets them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use support::lab::{Engine, Lab, Verdict, inside, scaled};
use support::stats::share_error;

/// Answers each byte with itself on each connection, until one comes from its own namespace.
fn echo(space: &str) -> JoinHandle<()> {
    let listener = inside(space, || TcpListener::bind((Lab::B4, 7004)).expect("bind"));
    let listener = listener.join().expect("the listener");
    std::thread::spawn(move || {
        loop {
            // That of a reset fails.
            let Ok((mut connection, from)) = listener.accept() else {
                continue;
            };
            if from.ip().to_string() == Lab::B4 {
                return;
            }
            std::thread::spawn(move || {
                let mut byte = [0];
                while connection.read_exact(&mut byte).is_ok()
                    && connection.write_all(&byte).is_ok()
                {}
            });
        }
    })
}

/// Makes `count` connections one after the other, each with `bytes` bytes in both directions; returns how many ended by a reset.
fn connections(space: &str, count: u32, bytes: u32) -> JoinHandle<u32> {
    inside(space, move || {
        let lives = || {
            let mut connection = TcpStream::connect((Lab::B4, 7004))?;
            connection.set_nodelay(true)?;
            connection.set_read_timeout(Some(Duration::from_secs(20)))?;
            for _ in 0..bytes {
                connection.write_all(b"x")?;
                connection.read_exact(&mut [0])?;
            }
            connection.shutdown(Shutdown::Write)?;
            connection.read(&mut [0])
        };
        let ended = (0..count).filter(|_| match lives() {
            Ok(left) => left > 0,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::ConnectionReset);
                true
            }
        });
        ended.count() as u32
    })
}

/// A connection whose packet became a reset ends at its receiver, and at its sender when that sends the
/// packet again: no connection lives on, and none ends without.
pub fn ends_connections(engine: Engine) {
    const SHARE: f64 = 0.02;
    const CLIENTS: u32 = 16;
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, "seed = 1\n[up]\nreset = \"2%\"\n", &[]);
    let server = echo(&lab.b);
    let each = scaled(25);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| connections(&lab.a, each, 40))
        .collect();
    let ended: u32 = (clients.into_iter())
        .map(|client| client.join().expect("a client"))
        .sum();
    let last = inside(&lab.b, || TcpStream::connect((Lab::B4, 7004)).map(drop));
    last.join().expect("a thread").expect("the server lives");
    server.join().expect("the server");
    let counter = |name: &str| lab.shown(&format!("/up/counters/{name}")) as f64;
    let all = f64::from(CLIENTS * each);
    let resets = counter("reset");
    // Without the first of each connection.
    let packets = counter("packets") - counter("passed/neighbour") - all;
    verdict.near(
        "share of resets",
        SHARE,
        resets / packets,
        4.0 * share_error(SHARE, packets),
    );
    // The last packet of a connection has nothing to end, and one sent again can be a reset again.
    let beyond = SHARE * all;
    verdict.near(
        "resets that ended no connection",
        beyond,
        resets - f64::from(ended),
        4.0 * beyond.sqrt() + 1.0,
    );
    verdict.at_least("connections that ended", all / 4.0, f64::from(ended));
    verdict.same("not reset", 0.0, counter("unaltered"));
    verdict.end();
}
