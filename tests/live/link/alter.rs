// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies and damage from the view of a receiver.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, connect, ipproto, listen, socket};
use support::clock;
use support::lab::{Engine, Lab, Verdict, inside, packets_per_s, promised, scaled, sh, wait_until};
use support::probe::precise_timers;
use support::stats::share_error;
use support::udp::next;

/// Number, time of sending, and zeros that corruption may hit.
const PAYLOAD: usize = 200;
const CLEAN: usize = 12;
/// After the IP and UDP headers and the part that must stay readable.
const FROM: usize = 20 + 8 + CLEAN;

/// A received packet: number, delay in ms, and number of wrong bits.
struct Came {
    number: u32,
    delay_ms: f64,
    wrong_bits: u32,
}

/// A direction of the link with its sender and receiver.
struct Way<'a> {
    name: &'static str,
    from: (&'a str, &'static str),
    to: (&'a str, &'static str),
}

fn ways(lab: &Lab) -> [Way<'_>; 2] {
    let (a, b) = ((lab.a.as_str(), Lab::A4), (lab.b.as_str(), Lab::B4));
    [("up", a, b), ("down", b, a)].map(|(name, from, to)| Way { name, from, to })
}

/// Sends `count` datagrams; returns all that arrive.
fn send(way: &Way, count: u32) -> Vec<Came> {
    let (from, to) = (way.from.1, way.to.1);
    let gap_ns = 1_000_000_000 / u64::from(packets_per_s(2000));
    let (ready, is_ready) = std::sync::mpsc::channel();
    let receiver = inside(way.to.0, move || {
        let socket = UdpSocket::bind((to, 7002)).expect("bind");
        let patience = Some(Duration::from_secs(2));
        socket.set_read_timeout(patience).expect("time-out");
        ready.send(()).expect("the test waits");
        let mut came = Vec::new();
        let mut payload = [0u8; 2048];
        while let Some(len) = next(&socket, &mut payload) {
            let now = clock::now();
            assert_eq!(len, PAYLOAD);
            let sent = u64::from_ne_bytes(payload[4..CLEAN].try_into().expect("8 bytes"));
            let wrong = payload[CLEAN..len].iter().map(|byte| byte.count_ones());
            came.push(Came {
                number: u32::from_ne_bytes(payload[..4].try_into().expect("4 bytes")),
                delay_ms: (now as f64 - sent as f64) / 1e6,
                wrong_bits: wrong.sum(),
            });
        }
        came
    });
    is_ready.recv().expect("the receiver's socket");
    let sender = inside(way.from.0, move || {
        precise_timers();
        let socket = UdpSocket::bind((from, 7001)).expect("bind");
        socket.connect((to, 7002)).expect("connect");
        let mut payload = [0u8; PAYLOAD];
        let start = clock::now();
        for number in 0..count {
            clock::sleep_until(start + u64::from(number) * gap_ns);
            payload[..4].copy_from_slice(&number.to_ne_bytes());
            payload[4..CLEAN].copy_from_slice(&clock::now().to_ne_bytes());
            socket.send(&payload).expect("send");
        }
    });
    sender.join().expect("the sender");
    receiver.join().expect("the receiver")
}

/// The configured number of copies, counted, each with a separate delay.
pub fn duplicate(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let profile = "seed = 1\n[link]\nduplicate = \"10%\"\n\
        delay = { mean = \"20ms\", jitter = \"10ms\", reorder = \"jitter\" }";
    lab.attach(engine, profile, &[]);
    for way in ways(&lab) {
        duplicate_on(&mut verdict, &lab, &way);
    }
    verdict.end();
}

fn duplicate_on(verdict: &mut Verdict, lab: &Lab, way: &Way) {
    const SHARE: f64 = 0.1;
    let name = way.name;
    let count = scaled(5000);
    let came = send(way, count);
    let mut delays = vec![vec![]; count as usize];
    for packet in &came {
        delays[packet.number as usize].push(packet.delay_ms);
    }
    let twice: Vec<_> = delays.iter().filter(|d| d.len() == 2).collect();
    let once = delays.iter().filter(|d| d.len() == 1).count();
    verdict.same(
        &format!("{name}: came once or twice"),
        count as usize,
        once + twice.len(),
    );
    let n = f64::from(count);
    let share = twice.len() as f64 / n;
    verdict.near(
        &format!("{name}: share copied"),
        SHARE,
        share,
        3.0 * share_error(SHARE, n),
    );
    let counter = |counter: &str| lab.shown(&format!("/{name}/counters/{counter}"));
    verdict.same(
        &format!("{name}: copied by emud's own count"),
        counter("duplicated"),
        twice.len() as u64,
    );
    verdict.same(&format!("{name}: not copied"), 0, counter("unaltered"));
    // Two uniform values within +-10 ms are a third of 20 ms apart, give or take 20/sqrt(18).
    let apart: f64 = twice.iter().map(|d| (d[0] - d[1]).abs()).sum();
    let k = twice.len() as f64;
    let error = 20.0 / 18f64.sqrt() / k.sqrt();
    // The machine adds less than a millisecond to a delay, and mostly the same to all.
    verdict.near(
        &format!("{name}: ms between the two"),
        20.0 / 3.0,
        apart / k,
        3.0 * error + 0.5,
    );
}

/// A counter of UDP of /proc/net/snmp in a namespace.
fn udp_count(space: &str, name: &str) -> u64 {
    let text = sh(&format!("ip netns exec {space} grep ^Udp: /proc/net/snmp"));
    let mut lines = text.lines().map(str::split_whitespace);
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut both = names.zip(values);
    let (_, value) = both.find(|(n, _)| *n == name).expect("the counter");
    value.parse().expect("a number")
}

/// With an unrepaired checksum the receiver drops the packet, with a repaired one the damage
/// reaches the application. A veth leaves the checksum open, and its receiver accepts that.
pub fn corrupt(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let keys = format!("probability = \"5%\", bits = 3, from = {FROM}");
    let profile = format!("seed = 1\n[link]\ncorrupt = {{ {keys} }}\ndelay = \"3ms\"");
    lab.attach(engine, &profile, &[]);
    for way in ways(&lab) {
        corrupt_on(&mut verdict, &lab, &way);
    }
    verdict.end();
}

fn corrupt_on(verdict: &mut Verdict, lab: &Lab, way: &Way) {
    const SHARE: f64 = 0.05;
    let name = way.name;
    let counted = || lab.shown(&format!("/{name}/counters/corrupted"));
    let errors = || udp_count(way.to.0, "InCsumErrors");
    let wrong = |came: &[Came], bits: &dyn Fn(u32) -> bool| {
        came.iter().filter(|packet| bits(packet.wrong_bits)).count()
    };
    let count = scaled(5000);
    let (n, allowed) = (f64::from(count), 3.0 * share_error(SHARE, f64::from(count)));
    let came = send(way, count);
    let kept = counted();
    verdict.near(
        &format!("{name}: share corrupted"),
        SHARE,
        kept as f64 / n,
        allowed,
    );
    verdict.same(
        &format!("{name}: kept: damaged ones that came"),
        0,
        wrong(&came, &|bits| bits > 0),
    );
    verdict.same(
        &format!("{name}: kept: came"),
        u64::from(count) - kept,
        came.len() as u64,
    );
    verdict.same(
        &format!("{name}: kept: checksum errors of the receiver"),
        kept,
        errors(),
    );

    lab.emud(&["set", "va", &format!("{name}.corrupt.checksum=mend")])
        .expect(0);
    let came = send(way, count);
    let mended = counted() - kept;
    verdict.near(
        &format!("{name}: share mended"),
        SHARE,
        mended as f64 / n,
        allowed,
    );
    verdict.same(&format!("{name}: mended: came"), count as usize, came.len());
    let three = wrong(&came, &|bits| bits == 3);
    verdict.same(
        &format!("{name}: mended: with three bits wrong"),
        mended,
        three as u64,
    );
    verdict.same(
        &format!("{name}: mended: whole"),
        count as usize - three,
        wrong(&came, &|bits| bits == 0),
    );
    verdict.same(
        &format!("{name}: mended: checksum errors of the receiver"),
        0,
        errors() - kept,
    );
}

/// IP, UDP, VXLAN and Ethernet in front of what a tunnel carries.
const OUTER: usize = 20 + 8 + 8 + 14;

fn tunnel(space: &str, device: &str, remote: &str, address: &str) {
    sh(&format!(
        "ip netns exec {space} sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
         ip -n {space} link add vx type vxlan id 7 remote {remote} dstport 4789 noudpcsum dev {device}
         ip -n {space} addr add {address}/24 dev vx
         ip -n {space} link set dev vx up"
    ));
}

/// A sender in a tunnel leaves the inner checksum to the device, too; behind the link it would cover the
/// damage. Nor does `set` damage a packet before its checksum is computed.
pub fn corrupt_in_a_tunnel(engine: Engine) {
    const ADDRESSES: [&str; 2] = ["10.79.0.1", "10.79.0.2"];
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    tunnel(&lab.a, "va", Lab::B4, ADDRESSES[0]);
    tunnel(&lab.b, "vb", Lab::A4, ADDRESSES[1]);
    let damage = format!("corrupt={{probability=\"100%\",from={}}}", OUTER + FROM);
    lab.attach(engine, &format!("[up]\n{damage}\n"), &[]);
    for (mut way, other) in ways(&lab).into_iter().zip([1, 0]) {
        (way.from.1, way.to.1) = (ADDRESSES[1 - other], ADDRESSES[other]);
        let name = way.name;
        if name == "down" {
            let change = ["up.corrupt=none".to_owned(), format!("down.{damage}")];
            lab.emud(&["set", "va", &change[0], &change[1]]).expect(0);
        }
        let (count, before) = (scaled(500), udp_count(way.to.0, "InCsumErrors"));
        verdict.same(&format!("{name}: came"), 0, send(&way, count).len());
        let noticed = udp_count(way.to.0, "InCsumErrors") - before;
        verdict.same(&format!("{name}: noticed"), u64::from(count), noticed);
    }
    verdict.end();
}

/// Without an Ethernet header, no checksum can be computed before the damage. That of a plain packet is made
/// wrong; one in a tunnel is not damaged, and counted.
pub fn corrupt_without_ethernet(engine: Engine) {
    let lab = Lab::new();
    lab.in_a("ip tuntap add ta mode tun; ip addr add 10.88.0.1/24 dev ta; ip link set ta up");
    tunnel(&lab.a, "ta", "10.88.0.2", "10.79.0.1");
    lab.in_a("ip neigh add 10.79.0.2 lladdr 02:00:00:00:00:02 dev vx");
    let from = OUTER + FROM;
    let profile = format!("[up]\ncorrupt = {{ probability = \"100%\", from = {from} }}\n");
    let profile = lab.profile(&profile);
    lab.emud(&["attach", "ta", "-p", &profile, "--engine", engine.name()])
        .expect(0);
    let mut verdict = Verdict::default();
    for (to, wanted) in [("10.88.0.2:9", [1, 0]), ("10.79.0.2:9", [1, 1])] {
        let sender = inside(&lab.a, move || {
            let socket = UdpSocket::bind("0.0.0.0:0").expect("bind");
            socket.send_to(&[0; PAYLOAD], to).expect("send");
        });
        sender.join().expect("the sender");
        let shown = lab.emud(&["show", "ta", "--json"]).expect(0).json();
        let count = |name: &str| shown["interfaces"][0]["up"]["counters"][name].as_u64();
        let found = ["corrupted", "unaltered"].map(|name| count(name).expect(name));
        verdict.same(&format!("to {to}: corrupted, unaltered"), wanted, found);
    }
    verdict.end();
}

fn sctp() -> rustix::io::Result<OwnedFd> {
    socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::SCTP))
}

/// An association over a way of the link: its sender and its receiver.
fn association(way: &Way) -> [TcpStream; 2] {
    let to: SocketAddr = format!("{}:7003", way.to.1).parse().expect("an address");
    let listener = inside(way.to.0, move || {
        let socket = sctp().expect("SCTP");
        bind(&socket, &to).expect("bind");
        listen(&socket, 1).expect("listen");
        TcpListener::from(socket)
    });
    let listener = listener.join().expect("a listener");
    let sender = inside(way.from.0, move || {
        let socket = sctp().expect("SCTP");
        connect(&socket, &to).expect("connect");
        TcpStream::from(socket)
    });
    let sender = sender.join().expect("a sender");
    let (receiver, _) = listener.accept().expect("an association");
    [sender, receiver]
}

fn sctp_errors(space: &str) -> u64 {
    let text = sh(&format!(
        "ip netns exec {space} grep ^SctpChecksumErrors /proc/net/sctp/snmp"
    ));
    let value = text.split_whitespace().nth(1).expect("the counter");
    value.parse().expect("a number")
}

/// SCTP leaves its CRC32c to the device, too: the receiver notices each damaged packet, and gets it
/// again once no more are damaged.
pub fn corrupt_sctp(engine: Engine) {
    /// Behind the headers of IP, of SCTP and of a chunk of data.
    const FROM: usize = 20 + 12 + 16;
    const MESSAGE: [u8; 1000] = [7; 1000];
    const MESSAGES: usize = 20;
    const SOON: Duration = Duration::from_secs(60);
    if sctp().is_err() {
        assert!(!promised("EMUD_EXPECT", "sctp"), "no SCTP");
        println!("    this kernel has no SCTP");
        return;
    }
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(engine, "[link]\ndelay = \"5ms\"\n", &[]);
    for way in ways(&lab) {
        let name = way.name;
        let [mut sender, mut receiver] = association(&way);
        receiver.set_read_timeout(Some(SOON)).expect("time-out");
        let before = sctp_errors(way.to.0);
        let damage = format!("{name}.corrupt={{probability=\"100%\",from={FROM}}}");
        lab.emud(&["set", "va", &damage]).expect(0);
        for _ in 0..MESSAGES {
            sender.write_all(&MESSAGE).expect("send");
        }
        // At least the first window.
        wait_until("damage is noticed", SOON, || {
            sctp_errors(way.to.0) > before + 1
        });
        let none = format!("{name}.corrupt=none");
        lab.emud(&["set", "va", &none]).expect(0);
        let mut came = [0; MESSAGES * MESSAGE.len()];
        receiver.read_exact(&mut came).expect("all messages");
        verdict.same(
            &format!("{name}: whole"),
            true,
            came.iter().all(|byte| *byte == MESSAGE[0]),
        );
        let count = |counter: &str| lab.shown(&format!("/{name}/counters/{counter}"));
        verdict.same(&format!("{name}: not damaged"), 0, count("unaltered"));
        verdict.same(
            &format!("{name}: noticed"),
            count("corrupted"),
            sctp_errors(way.to.0) - before,
        );
    }
    verdict.end();
}
