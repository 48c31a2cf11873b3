// SPDX-License-Identifier: MIT OR Apache-2.0
//! `match.host`: the addresses of a name at attach, and those of later answers of its resolver.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use support::lab::{Engine, Lab, Verdict, emud_path, inside, run};

use super::matching::{fastest, takes};

const NAME: &str = "api.example.org";
const TEXT: &str = "[link]\ndelay = \"5ms\"\n[links.far]\ndelay = \"40ms\"\n\
                    [[rule]]\nmatch = { host = \"api.example.org\" }\nlink = \"far\"\n";
/// 10.77.0.2 is the resolver; the others are of the same host.
const FIRST: u8 = 3;
const LATER: u8 = 4;
const RESOLVER: u8 = 2;
const TYPE_A: u8 = 1;

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, last)
}

/// The resolvers of a namespace, as `ip netns exec` shows them to a program.
pub struct Resolvers {
    folder: String,
    /// The file of the host, over which that of the namespace is mounted, if it had none.
    created: Option<&'static str>,
}

impl Resolvers {
    pub fn of(space: &str, address: Ipv4Addr) -> Self {
        let folder = format!("/etc/netns/{space}");
        std::fs::create_dir_all(&folder).expect("a folder");
        let text = format!("nameserver {address}\n");
        std::fs::write(format!("{folder}/resolv.conf"), text).expect("write");
        let host = "/etc/resolv.conf";
        let created = (!std::fs::exists(host).expect("a path")).then_some(host);
        if created.is_some() {
            std::fs::write(host, "").expect("write");
        }
        Self { folder, created }
    }
}

impl Drop for Resolvers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        // Of this test alone, if no other has one.
        let _ = std::fs::remove_dir("/etc/netns");
        let _ = self.created.map(std::fs::remove_file);
    }
}

/// Answers every question for an IPv4 address with the current one.
struct Server {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(space: &str, at: u8, current: &Arc<AtomicU8>) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let (stop, current) = (ends.clone(), current.clone());
        let (tell, ready) = std::sync::mpsc::channel();
        let thread = inside(space, move || {
            let socket = UdpSocket::bind((ip(at), 53)).expect("bind");
            let wait = Some(Duration::from_millis(50));
            socket.set_read_timeout(wait).expect("a time-out");
            tell.send(()).expect("the test");
            let mut buffer = [0; 512];
            while !stop.load(Ordering::Relaxed) {
                if let Ok((len, from)) = socket.recv_from(&mut buffer) {
                    let answer = answer(&buffer[..len], current.load(Ordering::Relaxed));
                    let _ = socket.send_to(&answer, from);
                }
            }
        });
        ready.recv().expect("a server");
        Self {
            ends,
            thread: Some(thread),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn question(kind: u8) -> Vec<u8> {
    let labels = NAME
        .split('.')
        .map(|label| [&[label.len() as u8], label.as_bytes()].concat());
    let name = labels.collect::<Vec<_>>().concat();
    [&name[..], &[0, 0, kind, 0, 1]].concat()
}

fn answer(query: &[u8], last: u8) -> Vec<u8> {
    // Without what follows the question (EDNS).
    let mut message = query[..12 + question(TYPE_A).len()].to_vec();
    let records = u8::from(message[message.len() - 3] == TYPE_A);
    message[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, records, 0, 0, 0, 0]);
    if records == 1 {
        message.extend([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4]);
        message.extend(ip(last).octets());
    }
    message
}

/// Queries a server for the name, from namespace a.
fn ask(lab: &Lab, server: u8) {
    let answered = inside(&lab.a, move || {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("bind");
        let wait = Some(Duration::from_secs(5));
        socket.set_read_timeout(wait).expect("a time-out");
        let query = [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0], &question(TYPE_A)[..]].concat();
        socket.send_to(&query, (ip(server), 53)).expect("send");
        socket.recv(&mut [0; 512]).expect("an answer")
    });
    assert!(answered.join().expect("the query") > 12);
}

fn round_trip(lab: &Lab, last: u8) -> f64 {
    fastest(&lab.in_a(&format!("ping -n -q -c 5 -i 0.05 -W 5 {}", ip(last))))
}

/// Attach resolves the name; an answer of the resolver adds an address, another server's does not.
pub fn learned(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    for last in [FIRST, LATER] {
        lab.in_b(&format!("ip addr add {}/24 dev vb", ip(last)));
    }
    let _resolvers = Resolvers::of(&lab.a, ip(RESOLVER));
    let current = Arc::new(AtomicU8::new(FIRST));
    let attach = || {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &lab.a]).arg(emud_path());
        command.args(["attach", "va", "--engine", engine.name()]);
        run(command.args(["--profile", &lab.profile(TEXT)]))
    };
    let said = attach().expect(68);
    assert!(said.err.contains("cannot resolve host"), "{}", said.err);
    let _resolver = Server::start(&lab.b, RESOLVER, &current);
    let _other = Server::start(&lab.b, FIRST, &current);
    attach().expect(0);
    takes(&mut verdict, "at attach", 80.0, round_trip(&lab, FIRST));
    takes(&mut verdict, "unknown", 10.0, round_trip(&lab, LATER));
    current.store(LATER, Ordering::Relaxed);
    ask(&lab, FIRST);
    takes(
        &mut verdict,
        "of another server",
        10.0,
        round_trip(&lab, LATER),
    );
    ask(&lab, RESOLVER);
    takes(&mut verdict, "learned", 80.0, round_trip(&lab, LATER));
    takes(&mut verdict, "kept", 80.0, round_trip(&lab, FIRST));
    let shown = lab.show();
    let names = &shown["names"];
    let expected = serde_json::json!({
        "names": [{"name": NAME, "addresses": [ip(LATER)]}],
        "resolvers": [ip(RESOLVER)],
        "capacity": 4096,
    });
    assert_eq!(*names, expected, "{shown}");
    let text = lab.emud(&["show", "va"]).expect(0).out;
    assert!(text.contains("    api.example.org: 10.77.0.4\n"), "{text}");
    lab.emud(&["set", "va", "links.far.delay=60ms"]).expect(0);
    takes(
        &mut verdict,
        "after a change",
        120.0,
        round_trip(&lab, LATER),
    );
    lab.detach();
    verdict.end();
}
