// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many links that end by themselves, at times that the kernel keeps.

use std::collections::{HashMap, HashSet};
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

use emud::datapath::attachment;
use emud::netlink::Netlink;
use support::chance::Random;
use support::clock::{now, real_time, sleep_until};
use support::lab::{Engine, Lab, Verdict, inside, run, sh};
use support::udp::next;
use support::{emud_path, enter};

use super::is_holder;
use crate::link::engines;

const LINKS: usize = 100;
/// The others have the engines that need no process, those of them that this kernel supports, in turn.
const HELD: usize = 20;
/// Deadlines are random within this time.
const SPREAD_NS: u64 = 10_000_000_000;
const PORT: u16 = 9;

/// A link must be off this long after its deadline.
const OFF_NS: u64 = 10_000_000;
/// Packets from before a deadline until after it.
const AROUND_NS: u64 = 25_000_000;
const STEP_NS: u64 = 500_000;

/// A packet: its link, and the time just before and after its transmission.
struct Sent {
    link: usize,
    before_ns: u64,
    after_ns: u64,
}

/// 100 links that lose everything: no packet of before its deadline arrives, and all do from 10 ms
/// after it on. Nothing of emud runs but the holders of engine hold.
pub fn at_their_deadlines() {
    let lab = wires();
    let mut random = Random(18);
    let mut others = engines();
    others.retain(|engine| *engine != Engine::Hold);
    let profile = lab.profile("[link]\nloss = \"100%\"\n");
    let attach = |n: usize, ends_at: u64| {
        let engine = match others.is_empty() || n < HELD {
            true => Engine::Hold,
            false => others[n % others.len()],
        };
        let left = format!("{}us", ends_at.saturating_sub(now()) / 1000);
        let mut command = Command::new(emud_path());
        command.args([
            "--netns",
            &lab.a,
            "attach",
            &format!("e{n}"),
            "-p",
            &profile,
        ]);
        run(command.args(["--engine", engine.name(), "--for", &left])).expect(0);
    };
    let begun = Instant::now();
    attach(0, now() + 3_600_000_000_000);
    let each = begun.elapsed();
    // The last attach ends before the first deadline, also on a busy machine.
    let first_ns = now() + (each * LINKS as u32 * 4).as_nanos() as u64 + 2_000_000_000;
    for n in 0..LINKS {
        if n == 0 {
            let mut detach = Command::new(emud_path());
            run(detach.args(["--netns", &lab.a, "detach", "e0"])).expect(0);
        }
        attach(n, first_ns + random.bits() % SPREAD_NS);
    }
    println!("    attached in {:.0} s", begun.elapsed().as_secs_f64());
    let deadlines = deadlines(&lab);
    let mut verdict = Verdict::default();
    let earliest = deadlines.iter().min().copied().unwrap_or(0);
    assert!(earliest > now() + AROUND_NS, "attached too slowly");
    kill_all_but_holders(&lab);

    let (sent, arrived) = exchange(&lab, &deadlines);
    let (mut early, mut missing, mut measured, mut worst_ns) = (0, 0, 0, 0u64);
    for (number, packet) in sent.iter().enumerate() {
        let deadline = deadlines[packet.link];
        let came = arrived.contains_key(&number);
        if came && packet.after_ns < deadline {
            early += 1;
        }
        if !came && packet.before_ns > deadline + OFF_NS {
            missing += 1;
        }
        if !came {
            worst_ns = worst_ns.max(packet.before_ns.saturating_sub(deadline));
        }
    }
    for (n, deadline) in deadlines.iter().enumerate() {
        let close = |packet: &Sent| {
            packet.link == n && (0..OFF_NS).contains(&packet.before_ns.wrapping_sub(*deadline))
        };
        measured += usize::from(sent.iter().any(close));
    }
    println!("    the last packet that a link lost: {worst_ns} ns after its deadline");
    verdict.same("packets that arrived before the deadline", 0, early);
    verdict.same("packets lost more than 10 ms after it", 0, missing);
    // A pause of this thread of 10 ms at a deadline leaves it unmeasured.
    verdict.at_least(
        "deadlines with packets",
        0.95 * LINKS as f64,
        measured as f64,
    );
    let passing: HashSet<usize> = arrived.keys().map(|number| sent[*number].link).collect();
    verdict.same("links that pass packets in the end", LINKS, passing.len());
    verdict.end();
}

/// An interface per link, each with its neighbour, and no traffic by itself.
fn wires() -> Lab {
    let lab = Lab::empty();
    for space in [&lab.a, &lab.b] {
        let off = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
        sh(&format!("ip netns exec {space} sh -c '{off}'"));
    }
    let (mut near, mut far) = (String::new(), String::new());
    for n in 0..LINKS {
        let mac = format!("02:00:00:00:09:{n:02x}");
        near += &format!(
            "link add e{n} type veth peer name p{n} address {mac} netns {b}\n\
             addr add 10.9.{n}.1/24 dev e{n}\nlink set e{n} up\n\
             neigh add 10.9.{n}.2 lladdr {mac} dev e{n}\n",
            b = lab.b
        );
        far += &format!("addr add 10.9.{n}.2/24 dev p{n}\nlink set p{n} up\n");
    }
    for (space, batch) in [(&lab.a, near), (&lab.b, far)] {
        sh(&format!("ip -n {space} -batch - <<'END'\n{batch}END"));
    }
    lab
}

/// From the kernel's control words, on CLOCK_MONOTONIC.
fn deadlines(lab: &Lab) -> Vec<u64> {
    let of = |n: usize| {
        let mut nl = Netlink::open().expect("netlink");
        let index = nl.link(&format!("e{n}")).expect("the interface").index;
        let there = attachment::find(&mut nl, index).expect("its link");
        let ends_at = there.expect("a link").maps.ends_at().expect("the map");
        ends_at.expect("a deadline")
    };
    let all = inside(&lab.a, move || (0..LINKS).map(of).collect());
    all.join().expect("the deadlines")
}

fn kill_all_but_holders(lab: &Lab) {
    let pids = sh(&format!("ip netns pids {}", lab.a));
    for pid in pids.lines().filter(|pid| !is_holder(pid)) {
        let _ = run(Command::new("kill").args(["-9", pid]));
    }
}

/// Sends packets around each deadline; returns them, and the arrivals by packet.
fn exchange(lab: &Lab, deadlines: &[u64]) -> (Vec<Sent>, HashMap<usize, u64>) {
    let end_ns = deadlines.iter().max().copied().unwrap_or(0) + AROUND_NS;
    let receiver = inside(&lab.b, move || {
        let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("bind");
        let wait = Duration::from_millis(100);
        socket.set_read_timeout(Some(wait)).expect("a time-out");
        let mut arrived = HashMap::new();
        let mut payload = [0; 64];
        while now() < end_ns + 1_000_000_000 {
            if let Some(length) = next(&socket, &mut payload) {
                let text = std::str::from_utf8(&payload[..length]).expect("digits");
                arrived.insert(text.parse().expect("a number"), now());
            }
        }
        arrived
    });
    let mut due: Vec<(u64, usize)> = (deadlines.iter().enumerate())
        .flat_map(|(link, deadline)| {
            let steps = 0..2 * AROUND_NS / STEP_NS;
            steps.map(move |step| (deadline - AROUND_NS + step * STEP_NS, link))
        })
        .collect();
    due.sort_unstable();
    let space = lab.a.clone();
    let sender = std::thread::spawn(move || {
        enter(&space);
        // Beside other jobs it would pause for longer than 10 ms.
        real_time(10);
        let socket = UdpSocket::bind("0.0.0.0:0").expect("bind");
        let send = |(number, (due_ns, link)): (usize, (u64, usize))| {
            sleep_until(due_ns);
            let before_ns = now();
            let to = (format!("10.9.{link}.2"), PORT);
            (socket.send_to(number.to_string().as_bytes(), (to.0.as_str(), to.1))).expect("send");
            let after_ns = now();
            Sent {
                link,
                before_ns,
                after_ns,
            }
        };
        due.into_iter().enumerate().map(send).collect()
    });
    let sent = sender.join().expect("the sender");
    (sent, receiver.join().expect("the receiver"))
}
