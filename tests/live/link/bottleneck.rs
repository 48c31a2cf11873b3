// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real queues: two senders in front of one server.

use std::net::UdpSocket;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use serde_json::Value;
use support::bulk::{self, Bulk};
use support::full;
use support::lab::{Engine, Lab, Verdict, inside};
use support::udp::next;

use super::metrics::Metrics;
use super::odd::three_replies;

/// 1470 bytes of data, as in the published experiment; 1512 on the wire.
const DATA: usize = 1470;
const FRAME_BITS: f64 = 8.0 * 1512.0;
const PORTS: [u16; 2] = [6001, 6002];
const RATE: f64 = 10e6;
/// Load of each sender on the wire.
const OFFERED: f64 = 7.55e6;

fn profile(schedule: &str, classes: [&str; 2]) -> String {
    let [first, second] = classes;
    format!(
        "[up]\ndelay = \"5ms\"\nclass = \"hub.second\"\n\
         [bottleneck.hub]\nrate = \"10Mbit\"\nschedule = \"{schedule}\"\n\
         [bottleneck.hub.class.first]\nqueue = \"50p\"\n{first}\n\
         [bottleneck.hub.class.second]\nqueue = \"50p\"\n{second}\n\
         [[rule]]\ndirection = \"up\"\nmatch = {{ destination-port = {} }}\nclass = \"hub.first\"\n",
        PORTS[0]
    )
}

/// Counts the packets that arrive at a port, until none has for so long.
fn arrivals(lab: &Lab, port: u16, patience: Duration) -> JoinHandle<u64> {
    inside(&lab.b, move || {
        let socket = UdpSocket::bind((Lab::B4, port)).unwrap();
        support::probe::set_buffer(&socket, libc::SO_RCVBUFFORCE);
        socket.set_read_timeout(Some(patience)).unwrap();
        let mut data = [0; 2048];
        let mut count = 0;
        while next(&socket, &mut data).is_some() {
            count += 1;
        }
        count
    })
}

/// Packets that each sender sent and that arrived, while both send at a constant rate.
fn both(lab: &Lab, seconds: f64) -> [(u64, u64); 2] {
    let receivers = PORTS.map(|port| arrivals(lab, port, Duration::from_millis(1500)));
    thread::sleep(Duration::from_millis(300));
    let sent = inside(&lab.a, move || {
        let socket = UdpSocket::bind((Lab::A4, 0)).unwrap();
        let start = Instant::now();
        let mut sent = 0u64;
        while start.elapsed().as_secs_f64() < seconds {
            let due = (start.elapsed().as_secs_f64() * OFFERED / FRAME_BITS) as u64;
            while sent < due {
                for port in PORTS {
                    socket.send_to(&[0; DATA], (Lab::B4, port)).unwrap();
                }
                sent += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        sent
    });
    let sent = sent.join().unwrap();
    receivers.map(|receiver| (sent, receiver.join().unwrap()))
}

/// Traffic on a new link. A holder lives all the time: what passes without one is in no class.
/// On a machine whose CPUs are given to others for 0.3 s its lease ends.
fn held<T>(engine: Engine, text: &str, traffic: impl Fn(&Lab) -> T) -> (Lab, T) {
    for _ in 0..5 {
        let lab = Lab::new();
        lab.attach(engine, text, &[]);
        let result = traffic(&lab);
        let shown = lab.show();
        let passed = ["up", "down"].map(|direction| {
            let counter = format!("/{direction}/counters/passed/no_holder");
            shown.pointer(&counter).and_then(Value::as_u64).unwrap_or(0)
        });
        match passed.iter().sum::<u64>() {
            0 => return (lab, result),
            passed => println!("    {passed} packets passed without a holder: again"),
        }
    }
    panic!("no time with a holder");
}

fn both_held(engine: Engine, text: &str) -> (Lab, [(u64, u64); 2]) {
    held(engine, text, |lab| both(lab, SECONDS))
}

/// Returns the packets of `seconds` at a rate, and of a queue that is sent at the end.
fn packets(rate: f64, seconds: f64) -> f64 {
    rate * seconds / FRAME_BITS
}

const SECONDS: f64 = 3.0;

/// More than the holder can write for two seconds: it decides while it reads, and its lease does not run out.
pub fn flood() {
    let text = profile("fifo", ["", ""]);
    let text = text.replace("10Mbit", "10Gbit").replace("50p", "60000p");
    let (lab, sent) = held(Engine::Hold, &text, |lab| {
        // Nobody reads them.
        let sinks = PORTS.map(|port| inside(&lab.b, move || UdpSocket::bind((Lab::B4, port))));
        let _sinks = sinks.map(|sink| sink.join().unwrap().unwrap());
        let senders = PORTS.map(|port| {
            inside(&lab.a, move || {
                let socket = UdpSocket::bind((Lab::A4, 0)).unwrap();
                socket.connect((Lab::B4, port)).unwrap();
                let start = Instant::now();
                let mut sent = 0u64;
                while start.elapsed() < Duration::from_secs(2) {
                    for _ in 0..64 {
                        sent += u64::from(socket.send(&[0; 64]).is_ok());
                    }
                }
                sent
            })
        });
        let sent = senders.map(|sender| sender.join().unwrap());
        // Behind all that waits.
        assert!(!lab.ping("-c 5 -i 0.5 -w 20").contains(" 0 received"));
        sent.iter().sum::<u64>()
    });
    let holder = |what: &str| lab.shown(&format!("/up/holder/{what}"));
    println!("    {sent} sent, {} written", holder("released"));
    assert!(holder("released") > 10_000);
}

/// A super-packet that the link does not segment takes the time of its packets, and no more.
pub fn trains(engine: Engine) {
    let mut verdict = Verdict::default();
    let text = "offload = \"keep\"\n[up]\ndelay = \"5ms\"\nclass = \"b\"\n\
                [bottleneck.b]\nrate = \"10Mbit\"\nqueue = \"4000p\"\n";
    let received = |lab: &Lab| -> u64 {
        let bytes = lab.in_b("cat /sys/class/net/vb/statistics/rx_bytes");
        bytes.trim().parse().unwrap()
    };
    let (lab, (goodput, arrived)) = held(engine, text, |lab| {
        let bulk = Bulk {
            from: lab.a.clone(),
            to: lab.b.clone(),
            address: Lab::B4.parse().unwrap(),
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(2),
            // Keeps the wire busy, and does not fill the queue.
            window: Some(256 << 10),
        };
        let before = received(lab);
        let goodput = bulk.goodput_bit_s();
        // Until the queue is empty, and the holder has reported.
        thread::sleep(Duration::from_secs(1));
        (goodput, received(lab) - before)
    });
    verdict.at_least(
        "super-packets",
        1.0,
        lab.shown("/up/counters/super_packets") as f64,
    );
    let allowed = RATE * bulk::SEGMENT / bulk::FRAME;
    verdict.at_most("payload bit/s", 1.03 * allowed, goodput);
    // A machine that stands still for 0.2 s takes a tenth; tests/pure proves the rate.
    let share = if full() { 0.97 } else { 0.7 };
    verdict.at_least("payload bit/s", share * allowed, goodput);
    let sent = lab.shown("/bottlenecks/0/classes/0/sent_bytes") as f64;
    // The device counts the headers of a super-packet once, which engine hold alone splits.
    let arrived = match engine {
        Engine::Hold => arrived,
        Engine::Fq | Engine::Qdisc => lab.shown("/up/counters/sent_bytes"),
    };
    // Neighbour discovery is in no class.
    verdict.near("bytes sent", arrived as f64, sent, 0.001 * sent);
    // 100 packets, in however few super-packets, take 0.12 s; the first one of a class may be of 44.
    let (lab, ()) = held(engine, &text.replace("4000p", "100p"), |lab| {
        let bulk = Bulk {
            from: lab.a.clone(),
            to: lab.b.clone(),
            address: Lab::B4.parse().unwrap(),
            warm_up: Duration::from_secs(1),
            duration: Duration::from_secs(1),
            window: Some(4 << 20),
        };
        bulk.goodput_bit_s();
    });
    let longest = lab.shown("/bottlenecks/0/classes/0/longest_wait_ns") as f64 / 1e9;
    verdict.at_most("longest wait behind 100 packets, s", 0.125, longest);
    verdict.end();
}

/// A phase may have another class than the link, or none.
pub fn phases(engine: Engine) {
    let text = format!(
        "{}[[phase]]\nfor = \"100s\"\nup = {{ class = \"none\" }}\n[[phase]]\nfor = \"1s\"\n",
        profile("priority", ["", ""])
    );
    let (lab, ()) = held(engine, &text, |lab| {
        three_replies(lab);
        // The holder reports every 50 ms.
        thread::sleep(Duration::from_millis(200));
    });
    let shown = lab.show();
    assert!(shown["up"]["class"].is_null(), "{}", shown["up"]);
    assert_eq!(lab.shown("/bottlenecks/0/classes/1/sent_packets"), 0);
    assert!(lab.shown("/up/counters/sent_packets") >= 3);
}

/// The winner loses nothing, and the loser has what it leaves, whichever of them it is.
pub fn priority(engine: Engine) {
    let mut verdict = Verdict::default();
    // Each sender catches up: 0.4 s in which this machine stands still fill no queue.
    let text = profile("priority", ["priority = 1", "priority = 5"]).replace("50p", "250p");
    let (lab, rounds) = held(engine, &text, |lab| {
        [0, 1].map(|winner| {
            if winner == 1 {
                let set = "bottleneck.hub.class.first.priority=9";
                lab.emud(&["set", "va", set]).expect(0);
                // The holder reads the profile every 50 ms.
                thread::sleep(Duration::from_millis(200));
            }
            let dropped = || lab.shown(&format!("/bottlenecks/0/classes/{winner}/dropped_full"));
            let before = dropped();
            let counts = both(lab, SECONDS);
            // The holder reports every 50 ms.
            thread::sleep(Duration::from_millis(200));
            (counts, dropped() - before)
        })
    });
    for (winner, (counts, dropped)) in rounds.into_iter().enumerate() {
        let (sent, arrived) = counts[winner];
        verdict.same("of the winner", sent, arrived);
        let left = packets(RATE, SECONDS) - sent as f64;
        let (_, loser) = counts[1 - winner];
        // Its queue of 250 is sent when they have ended, by senders that are not exactly in time. Beside other
        // tests they can wait for a CPU until the queue is empty.
        let (expected, most_off) = (left + 250.0, 0.03 * left + 5.0);
        let less = if full() { most_off } else { expected / 2.0 };
        verdict.at_most("of the loser", expected + most_off, loser as f64);
        verdict.at_least("of the loser", expected - less, loser as f64);
        verdict.same("dropped of the winner", 0, dropped);
    }
    let shown = lab.show();
    verdict.same(
        "schedule",
        "priority",
        shown["bottlenecks"][0]["schedule"].as_str().unwrap(),
    );
    lab.detach();
    verdict.end();
}

/// Three to two, of a load that is above the rate.
pub fn weights(engine: Engine) {
    let mut verdict = Verdict::default();
    // Each sender catches up: 0.4 s in which this machine stands still empty no queue of 250 packets.
    let queue = if full() { 50 } else { 250 };
    let text = profile("drr", ["weight = 3", "weight = 2"]);
    let (lab, counts) = both_held(engine, &text.replace("50p", &format!("{queue}p")));
    if full() {
        for ((name, share), (_, arrived)) in [("first", 0.6), ("second", 0.4)].iter().zip(counts) {
            let want = packets(RATE * share, SECONDS);
            // And its queue, at the end.
            verdict.near(
                name,
                want + 50.0 * share * 2.0,
                arrived as f64,
                0.04 * want + 20.0,
            );
        }
    } else {
        // Without the queues that are sent at the end.
        let [first, second] = counts.map(|(_, arrived)| arrived as f64 - f64::from(queue));
        verdict.near("first to second", 1.5, first / second, 0.2);
        let want = packets(RATE, SECONDS);
        verdict.at_most("both", 1.04 * want + 40.0, first + second);
        verdict.at_least("both", 0.7 * want, first + second);
    }
    // What was sent is what arrived; what was dropped, the rest.
    thread::sleep(Duration::from_millis(200));
    let metrics = Metrics::now();
    for (class, (sent, arrived)) in counts.iter().enumerate() {
        let of = |key: &str| lab.shown(&format!("/bottlenecks/0/classes/{class}/{key}"));
        verdict.same("sent", *arrived, of("sent_packets"));
        verdict.same("dropped", sent - arrived, of("dropped_full"));
        verdict.same("backlog", 0, of("backlog_packets"));
        let labels = format!(
            ",bottleneck=\"hub\",class=\"{}\"",
            ["first", "second"][class]
        );
        for (metric, more, key, unit) in [
            ("sent_packets_total", "", "sent_packets", 1.0),
            ("sent_bytes_total", "", "sent_bytes", 1.0),
            (
                "dropped_packets_total",
                ",cause=\"queue\"",
                "dropped_full",
                1.0,
            ),
            ("wait_seconds_total", "", "wait_ns", 1e9),
            ("longest_wait_seconds", "", "longest_wait_ns", 1e9),
        ] {
            let got = metrics.get(&lab, &format!("class_{metric}"), &format!("{labels}{more}"));
            verdict.same(metric, Some(of(key) as f64 / unit), got);
        }
    }
    verdict.end();
}

/// Each packet has one fate: a class drops it, or the link behind loses it or sends it, once or twice.
pub fn one_fate(engine: Engine) {
    let mut verdict = Verdict::default();
    let text = profile("drr", ["weight = 3", "weight = 2"]).replace(
        "[up]\n",
        "[up]\nloss = \"20%\"\ncorrupt = { probability = \"10%\", from = 28, checksum = \"mend\" }\n",
    );
    // The server in the kernel has no copies.
    let copied = match engine {
        Engine::Hold => 0.1,
        Engine::Fq | Engine::Qdisc => 0.0,
    };
    let text = text.replace(
        "[up]\n",
        &format!("[up]\nduplicate = \"{}%\"\n", 100.0 * copied),
    );
    let (lab, counts) = both_held(engine, &text);
    // The holder reports every 50 ms.
    thread::sleep(Duration::from_millis(200));
    let shown = lab.show();
    let of = |path: &str| shown.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let link = |key: &str| of(&format!("/up/counters/{key}"));
    let classes = |key: &str| -> u64 {
        let class = |class| of(&format!("/bottlenecks/0/classes/{class}/{key}"));
        class(0) + class(1)
    };
    let [lost, copies] = ["lost", "duplicated"].map(link);
    let [sent, dropped] = ["sent_packets", "dropped_full"].map(classes);
    let offered: u64 = counts.iter().map(|(sent, _)| sent).sum();
    let arrived: u64 = counts.iter().map(|(_, arrived)| arrived).sum();
    // Neighbour discovery is in no class.
    verdict.same("packets of classes", offered, sent + dropped);
    verdict.same("delivered", arrived, sent - lost + copies);
    verdict.same("sent by the link", sent - lost, link("sent_packets"));
    let bytes = (sent - lost) * (DATA as u64 + 42);
    verdict.same("bytes of these", bytes, link("sent_bytes"));
    verdict.same("dropped by classes", dropped, link("class_dropped"));
    // Of those that it can meet.
    let share = |part: u64, of: u64| part as f64 / of as f64;
    verdict.near("loss", 0.2, share(lost, sent), 0.04);
    verdict.near("copies", copied, share(copies, sent - lost), 0.04);
    let corrupted = share(link("corrupted"), sent - lost);
    verdict.near("corrupted", 0.1, corrupted, 0.04);
    verdict.end();
}

/// One server for both directions: an echo takes its time twice.
pub fn both_directions() {
    let mut verdict = Verdict::default();
    let shared = "[link]\nclass = \"b\"\n[bottleneck.b]\nrate = \"1Mbit\"\n";
    // 1042 bytes on the wire take 8.336 ms in each direction.
    let (lab, said) = held(Engine::Hold, shared, |lab| {
        lab.ping("-c 5 -i 0.2 -q -s 1000")
    });
    let least = said
        .split(" = ")
        .nth(1)
        .and_then(|times| times.split('/').next());
    let least: f64 = least.unwrap().parse().unwrap();
    verdict.at_least("round trip, ms", 16.67, least);
    // A third service adds 8.3 ms.
    let most = if full() { 19.0 } else { 24.0 };
    verdict.at_most("round trip, ms", most, least);
    // The holder's account is at most 50 ms old.
    thread::sleep(Duration::from_millis(200));
    verdict.same(
        "echoes and answers",
        10,
        lab.shown("/bottlenecks/0/classes/0/sent_packets"),
    );
    // What no holder serves any more passes, and detach restores.
    let pid = lab.shown("/up/holder/pid");
    support::lab::sh(&format!("kill -9 {pid}"));
    // Its lease ends after 250 ms.
    thread::sleep(Duration::from_millis(400));
    let arrives = |lab: &Lab| lab.ping("-c 1 -W 10").contains(" 1 received");
    verdict.same("without a holder", true, arrives(&lab));
    lab.detach();
    verdict.same("after detach", true, arrives(&lab));
    verdict.end();
}

/// fq cannot serve, and says so; auto takes the engine that can.
pub fn engines() {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let text = "[up]\nclass = \"b\"\n[bottleneck.b]\nrate = \"1Mbit\"\n";
    let file = lab.profile(text);
    let refused = lab.emud(&["attach", "va", "--profile", &file, "--engine", "fq"]);
    let refused = refused.expect(69).err;
    verdict.same("why", true, refused.contains("[bottleneck]"));
    lab.emud(&["attach", "va", "--profile", &file]).expect(0);
    let shown = lab.show();
    let engine = shown["engine"].as_str().unwrap();
    let able = super::engines();
    let best = [Engine::Qdisc, Engine::Hold]
        .into_iter()
        .find(|engine| able.contains(engine));
    verdict.same("engine", best.unwrap().name(), engine);
    let reason = shown["engine_reason"].as_str().unwrap();
    verdict.same("reason", true, reason.contains("[bottleneck]"));
    // Directions that were apart stay apart.
    let joined = lab.emud(&["set", "va", "down.class=b"]).expect(73).err;
    verdict.same("joined", true, joined.contains("both directions"));
    if engine == Engine::Hold.name() {
        let moved = lab.emud(&["set", "va", "up.class=none", "down.class=b"]);
        let moved = moved.expect(73).err;
        verdict.same("moved", true, moved.contains("[bottleneck]"));
    }
    verdict.end();
}

/// A class that has its server alone agrees with its link and its bottleneck, and not with another rate.
pub fn verified(engine: Engine) {
    let mut verdict = Verdict::default();
    let text = "[link]\ndelay = \"20ms\"\n[up]\nloss = \"1%\"\nclass = \"b.c\"\n\
                [bottleneck.b]\nrate = \"2Mbit\"\nschedule = \"htb\"\n\
                [bottleneck.b.class.c]\nrate = \"500kbit\"\nqueue = \"50p\"\n\
                [bottleneck.b.class.rest]\nrate = \"1Mbit\"\n";
    let lab = Lab::new();
    let file = lab.profile(text);
    lab.attach(engine, text, &["--seed", "1"]);
    let verify = |more: &[&str]| {
        let peer = [
            "verify",
            "va",
            "--json",
            "--peer-netns",
            &lab.b,
            "--duration",
            "6s",
        ];
        let said = lab.emud(&[&peer[..], more].concat());
        println!("{}{}", said.out, said.err);
        said
    };
    verdict.same("exit code", 0, verify(&[]).code);
    lab.emud(&["set", "va", "bottleneck.b.rate=1Mbit"])
        .expect(0);
    let other = verify(&["--against", &file]);
    verdict.same("at another rate: exit code", 1, other.code);
    let checks = other.json()["checks"].as_array().unwrap().clone();
    let rate = checks.iter().find(|check| check["what"] == "rate").unwrap();
    verdict.same("rate", "disagrees", rate["verdict"].as_str().unwrap());
    verdict.end();
}

/// What loaded classes send agrees with their weights, and not with others.
pub fn classes_verified(engine: Engine) {
    let mut verdict = Verdict::default();
    let text = profile("drr", ["weight = 3", "weight = 2"]).replace("50p", "300p");
    let (lab, (agreed, other)) = held(engine, &text, |lab| {
        let file = lab.profile(&text.replace("weight = 3", "weight = 2"));
        thread::scope(|scope| {
            scope.spawn(|| both(lab, 11.0));
            // The first sender has 1.55 Mbit/s above its share, and 150 ms of the rate have to wait.
            thread::sleep(Duration::from_secs(3));
            let verify = |more: &[&str]| {
                let said =
                    lab.emud(&[&["verify", "va", "--classes", "--duration", "3s"], more].concat());
                println!("{}{}", said.out, said.err);
                said
            };
            (verify(&[]), verify(&["--against", &file]))
        })
    });
    verdict.same("exit code", 0, agreed.code);
    for check in ["hub rate", "hub.first share", "hub.second share"] {
        verdict.same(check, true, agreed.out.contains(check));
    }
    verdict.same("with other weights: exit code", 1, other.code);
    verdict.same(
        "without a load: exit code",
        2,
        lab.emud(&["verify", "va", "--classes", "--duration", "1s"])
            .code,
    );
    let meanwhile = |change: &dyn Fn()| {
        let verify = ["verify", "va", "--classes", "--duration", "5s"];
        thread::scope(|scope| {
            let running = scope.spawn(|| lab.emud(&verify));
            thread::sleep(Duration::from_secs(1));
            change();
            let said = running.join().unwrap();
            println!("{}{}", said.out, said.err);
            said.code
        })
    };
    let undone = meanwhile(&|| {
        for weight in [4, 3] {
            let set = format!("bottleneck.hub.class.first.weight={weight}");
            lab.emud(&["set", "va", &set]).expect(0);
        }
    });
    verdict.same("changed and undone: exit code", 75, undone);
    let without = lab.profile("[up]\nclass = \"hub\"\n[bottleneck.hub]\nrate = \"10Mbit\"\n");
    let removed = meanwhile(&|| {
        let exchange = ["attach", "va", "--exchange", "--profile", &without];
        lab.emud(&exchange).expect(0);
    });
    // 66: it was read while no link was attached.
    let known = [66, 75].contains(&removed);
    verdict.same("without classes: exit code", true, known);
    lab.detach();
    verdict.same(
        "without a link: exit code",
        66,
        lab.emud(&["verify", "va", "--classes"]).code,
    );
    verdict.end();
}

/// The seconds that one sender took for its packets, and how many arrived.
fn waited(lab: &Lab, packets: u16) -> (f64, u64) {
    let receiver = arrivals(lab, PORTS[0], Duration::from_secs(3));
    thread::sleep(Duration::from_millis(300));
    let sender = inside(&lab.a, move || {
        let socket = UdpSocket::bind((Lab::A4, 0)).unwrap();
        // The kernel doubles it, and a packet takes some 2,300 bytes of it.
        sockopt::set_socket_send_buffer_size(&socket, 16 << 10).unwrap();
        let start = Instant::now();
        for _ in 0..packets {
            socket.send_to(&[0; 1000], (Lab::B4, PORTS[0])).unwrap();
        }
        start.elapsed().as_secs_f64()
    });
    (sender.join().unwrap(), receiver.join().unwrap())
}

/// With `full = "block"` a sender waits while its class is full, as long as its packets would take, and loses none; the
/// delay behind the class does not count in its buffer.
pub fn senders_wait() {
    const PACKETS: u16 = 300;
    let mut verdict = Verdict::default();
    let text = "[up]\ndelay = \"50ms\"\nclass = \"b\"\n[bottleneck.b]\nrate = \"2Mbit\"\n\
                queue = { limit = \"10p\", full = \"block\" }\n";
    let lab = Lab::new();
    lab.attach(Engine::Qdisc, text, &[]);
    // What a sender waits for is no packet to others.
    let later = "tc filter add dev va egress pref 9 protocol all matchall action gact ok index 7";
    lab.in_a(later);
    let (took, arrived) = waited(&lab, PACKETS);
    verdict.same("arrived", u64::from(PACKETS), arrived);
    let seen = lab.in_a("tc -s actions get action gact index 7");
    let seen = seen
        .split(" pkt")
        .next()
        .and_then(|text| text.rsplit(' ').next());
    let seen = seen.and_then(|text| text.parse().ok()).unwrap_or(0.0);
    // And a question for a neighbour.
    verdict.near("seen later", f64::from(PACKETS) + 1.5, seen, 1.5);
    let wire = 8.0 * 1042.0 / 2e6;
    verdict.at_least("waited, s", wire * f64::from(PACKETS - 30), took);
    verdict.at_most("waited, s", wire * f64::from(PACKETS), took);
    let goodput = Bulk {
        from: lab.a.clone(),
        to: lab.b.clone(),
        address: Lab::B4.parse().unwrap(),
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(3),
        window: None,
    }
    .goodput_bit_s();
    verdict.near(
        "payload bit/s",
        2e6 * bulk::SEGMENT / bulk::FRAME,
        goodput,
        0.05 * 2e6,
    );
    verdict.same(
        "dropped",
        0,
        lab.shown("/bottlenecks/0/classes/0/dropped_full"),
    );
    // Nothing would send what a sender waits for.
    lab.in_a("tc qdisc replace dev va root pfifo");
    let (_, arrived) = waited(&lab, 20);
    verdict.same("arrived without emud's qdisc", 20, arrived);
    lab.detach();
    verdict.end();
}

/// No other engine can hold a sender back, and none pretends to.
pub fn senders_do_not_wait() {
    let lab = Lab::new();
    let text = "[up]\nclass = \"b\"\n[bottleneck.b]\nrate = \"2Mbit\"\n\
                queue = { limit = \"10p\", full = \"block\" }\n";
    let file = lab.profile(text);
    let attach = ["attach", "va", "--profile", &file, "--engine", "hold"];
    let refused = lab.emud(&attach).expect(69).err;
    assert!(refused.contains("needs engine qdisc"), "{refused}");
    lab.attach(Engine::Hold, &text.replace("block", "drop"), &[]);
    let set = ["set", "va", "bottleneck.b.queue.full=block"];
    let refused = lab.emud(&set).expect(73).err;
    assert!(refused.contains("needs engine qdisc"), "{refused}");
    lab.detach();
}
