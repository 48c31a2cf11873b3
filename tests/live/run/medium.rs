// SPDX-License-Identifier: MIT OR Apache-2.0
//! Nodes on a shared medium. What happens on air follows from the kernel's stamps, so goodput does
//! not depend on the machine's load, as long as senders run.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use emud::datapath::radio::READ_LATE;
use support::runs::{Folder, Ran};
use support::{emud_path, full};

/// Sends 1472-byte datagrams, faster than the medium, for some seconds: ARGV: name, seconds, Mbit/s.
const SENDER: &str = r#"
import socket, sys, time
name, seconds, rate = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
to = (socket.gethostbyname(name), 5000)
began, sent, data = time.monotonic(), 0, bytes(1472)
while (passed := time.monotonic() - began) < seconds:
    while sent * 1472 * 8 < passed * rate * 1e6:
        s.sendto(data, to)
        sent += 1
    time.sleep(0.002)
"#;

/// Counts what arrives from each sender: ARGV: seconds, how long after the first packet they begin (1 s).
const RECEIVER: &str = r#"
import collections, socket, sys, time
seconds, after = float(sys.argv[1]), float((sys.argv[2:] or [1])[0])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE
s.bind(("", 5000))
s.recv(2000)
began, counts = time.monotonic() + after, collections.Counter()
s.settimeout(3)
while (now := time.monotonic()) < began + seconds:
    try:
        _, (sender, _) = s.recvfrom(2000)
    except TimeoutError:
        break
    if now >= began:
        counts[sender] += 1
print("mbit", *(n * 1500 * 8 / seconds / 1e6 for n in counts.values()), flush=True)
"#;

pub(super) fn scripts(folder: &Folder) -> (String, String) {
    let python = |name, text| format!("python3 {}", folder.file(name, text));
    (python("sender.py", SENDER), python("receiver.py", RECEIVER))
}

/// What has arrived from each sender, Mbit/s.
pub(super) fn shares(ran: &Ran) -> Vec<f64> {
    let line = ran.out.lines().find_map(|line| line.split("mbit ").nth(1));
    let line = line.unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    let shares = line.split_whitespace().map(str::parse::<f64>);
    shares.map(Result::unwrap).collect()
}

pub(super) fn mbit(ran: &Ran) -> f64 {
    shares(ran).iter().sum()
}

#[track_caller]
pub(super) fn near(what: &str, found: f64, expected: f64, within: f64) {
    println!("    {what}: {found:.3} Mbit/s, expected {expected:.3}");
    assert!(
        (found / expected - 1.0).abs() <= within,
        "{what}: {found} {expected}"
    );
}

/// [`near`]; beside other tests the sender can wait for a CPU for longer than the queue lasts.
#[track_caller]
fn saturated(what: &str, found: f64, expected: f64, within: f64) {
    near(what, found.max(expected), expected, within);
    near(what, found, expected, if full() { within } else { 0.1 });
}

/// 6.227 Mbit/s of 1500-byte packets at 11 Mbit/s; at 54 Mbit/s 30.496; 60.986 at 65 Mbit/s with 28 packets in a frame. A long queue bridges times in
/// which the sender does not run.
pub fn one_sender() {
    for (radio, expected, rate) in [
        ("802.11b", 6.227, 9),
        ("802.11g", 30.496, 40),
        ("802.11n", 60.986, 75),
    ] {
        let folder = Folder::new();
        let (sender, receiver) = scripts(&folder);
        let scenario = folder.file(
            "s.toml",
            &format!(
                "[medium.wlan0]\nradio = \"{radio}\"\nqueue = 1000\nrecord = \"{}\"\n\
                 [node.a]\ncommand = \"{sender} b 5 {rate}\"\n\
                 [node.b]\ncommand = \"{receiver} 3.5\"\n",
                folder.path("record")
            ),
        );
        let ran = folder.run(&format!("--scenario {scenario}"), &[]);
        saturated(radio, mbit(&ran), expected, 0.02);
        replays(&folder);
    }
}

/// A station that sends more than the medium takes: pings that are voice overtake what waits, others do not.
pub fn access_categories() {
    let folder = Folder::new();
    let (sender, receiver) = scripts(&folder);
    let text = format!(
        "[medium.wlan0]\nqueue = {{ limit = 50, kind = \"edca\" }}\n\
         [node.a]\ncommand = \"{sender} b 7 9 & sleep 1; ping -q -c 40 -i 0.05 -Q 0xb8 b; \
         ping -q -c 40 -i 0.05 b; wait\"\n\
         [node.b]\ncommand = \"{receiver} 4\"\n"
    );
    let scenario = folder.file("s.toml", &text);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]);
    let [_, voice, ..] = support::runs::rtt_ms(&ran.out);
    let (_, rest) = ran.out.split_once("mdev = ").unwrap();
    let [_, plain, ..] = support::runs::rtt_ms(rest);
    println!("    mean {voice} ms as voice, {plain} ms without");
    // 50 packets of 1.9 ms; voice waits for a packet on air, and then for what the machine does. Beside
    // other tests the sender can wait for a CPU for longer than the queue lasts: 46 ms were seen.
    let filled = if full() { 50.0 } else { 15.0 };
    assert!(voice < plain / 3.0 && plain > filled, "{voice} {plain}");
}

/// Two stations that hear each other: 6.48 Mbit/s. If they do not, 3.86 without and 4.49 with RTS.
pub fn hidden() {
    for (metres, rts, expected) in [
        (100, "\"off\"", 6.48),
        (200, "\"off\"", 3.86),
        (200, "0", 4.49),
    ] {
        let folder = Folder::new();
        let (sender, receiver) = scripts(&folder);
        let text = format!(
            "[medium.wlan0]\nrts = {rts}\n\
             propagation = {{ model = \"disk\", range = 250, sense = 250, interference = 250 }}\n\
             [node.\"s*\"]\nprepare = \"ping -q -c 1 middle\"\ncommand = \"{sender} middle 22 9\"\n\
             [node.s1]\nat = [-{metres}, 0]\n[node.s2]\nat = [{metres}, 0]\n\
             [node.middle]\ncommand = \"{receiver} 20\"\n"
        );
        let scenario = folder.file("s.toml", &text);
        let ran = folder.run(&format!("--scenario {scenario}"), &[]);
        // Three to four standard errors of some 6,500 packets, most of which collide if hidden.
        let what = format!("{metres} m from the middle, rts {rts}");
        near(&what, mbit(&ran), expected, 0.04);
    }
}

fn replays(folder: &Folder) {
    let mut emud = Command::new(emud_path());
    emud.args(["medium", "replay", &folder.path("record")]);
    let output = emud.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("the same as in the run"), "{said}");
    assert!(output.status.success());
}

/// A thread that cannot run for 20 ms delivers late and reports it; the air is the same, so no frame was read after the
/// air at its time was decided. The record has frames where they got on air, so it repeats in any case.
pub fn a_held_thread_is_reported() {
    let folder = Folder::new();
    let (sender, receiver) = scripts(&folder);
    // The thread of the first medium is on the first CPU.
    let hog = folder.file(
        "hog.py",
        "import os, time\n\
         os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n\
         os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))\n\
         end = time.monotonic() + 0.02\n\
         while time.monotonic() < end: pass\n",
    );
    let text = format!(
        "[medium.wlan0]\nrecord = \"{}\"\n\
         [node.a]\ncommand = \"{sender} b 4 9\"\n[node.b]\ncommand = \"{receiver} 2\"\n\
         [node.c]\nstart = \"2s\"\ncommand = \"python3 {hog}\"\n",
        folder.path("record")
    );
    let scenario = folder.file("s.toml", &text);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]);
    let end = ran.one("end");
    assert_eq!(end["verdict"], "invalid", "{}", ran.err);
    let why = "frames were delivered more than 5 ms late";
    let invalid = end["invalid"].to_string();
    assert!(
        invalid.contains(why) && !invalid.contains(READ_LATE),
        "{end}"
    );
    saturated("held", mbit(&ran), 6.227, 0.03);
    replays(&folder);
}

/// Frames that are not the station's, and random bytes: counted, never on air.
pub fn foreign_frames_are_dropped() {
    let folder = Folder::new();
    let sender = folder.file(
        "raw.py",
        "import random, socket\n\
         s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n\
         s.bind(('wlan0', 0))\n\
         garbage = random.Random(1)\n\
         for size in range(14, 1514, 15): s.send(garbage.randbytes(size))\n\
         own, other = bytes.fromhex('02656d000000'), bytes.fromhex('02656d000001')\n\
         ip = bytes([0x45, 0, 0, 60]) + bytes(56)\n\
         for _ in range(3): s.send(other + other + bytes([8, 0]) + ip)\n\
         for _ in range(5): s.send(bytes.fromhex('020000000009') + own + bytes([8, 0]) + ip)\n\
         for _ in range(7): s.send(other + own + bytes([0x81, 0, 0, 1, 8, 0]) + ip)\n",
    );
    // a is the first station.
    let text = format!(
        "[medium.wlan0]\n\
         [node.a]\ncommand = \"python3 {sender}; ip link set wlan0 mtu 3000; \
         ping -q -c 1 -W 1 -s 2000 -M do b; ping -q -c 5 -i 0.1 b\"\n[node.b]\n"
    );
    let scenario = folder.file("s.toml", &text);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]);
    assert!(ran.out.contains("5 received"), "{}{}", ran.out, ran.err);
    for said in [
        "dropped 103 frames with a foreign source",
        "dropped 5 frames to no station",
        "dropped 8 frames too long or with a VLAN tag",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
}

/// The segments of UDP GSO get on air in the order of sending, each with its stamp. What bypasses the
/// program that stamps makes the run invalid.
pub fn super_packets_are_segmented() {
    let folder = Folder::new();
    let sender = folder.file(
        "gso.py",
        "import socket, time\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         s.setsockopt(socket.SOL_UDP, 103, 1472)  # UDP_SEGMENT\n\
         s.connect((socket.gethostbyname('b'), 5000))\n\
         for _ in range(20):\n    \
             time.sleep(0.05)\n    \
             s.send(bytes(4 * 1472))\n    \
             s.send(bytes(100))\n\
         s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n\
         s.setsockopt(263, 20, 1)  # PACKET_QDISC_BYPASS\n\
         s.bind(('wlan0', 0))\n\
         own, other = bytes.fromhex('02656d000000'), bytes.fromhex('02656d000001')\n\
         for _ in range(3): s.send(other + own + bytes([8, 0, 0x45, 0, 0, 60]) + bytes(56))\n",
    );
    let receiver = folder.file(
        "sizes.py",
        "import socket\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         s.bind(('', 5000))\n\
         s.settimeout(5)\n\
         print('sizes', [len(s.recv(9000)) for _ in range(100)])\n",
    );
    let text = format!(
        "[medium.wlan0]\n\
         [node.a]\nprepare = \"ping -q -c 1 b\"\ncommand = \"sleep 0.5; python3 {sender}; \
         ping -q -c 5 -i 0.1 b\"\n[node.b]\ncommand = \"python3 {receiver}\"\n"
    );
    let scenario = folder.file("s.toml", &text);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]);
    let sizes = [[1472, 1472, 1472, 1472, 100]; 20].concat();
    let said = format!("sizes {sizes:?}");
    assert!(ran.out.contains(&said), "{}{}", ran.out, ran.err);
    let invalid = ran.one("end")["invalid"].to_string();
    let why = "3 frames were sent past the program";
    assert!(invalid.contains(why), "{invalid}");
}

/// Nodes out of range of each other reach each other over others, by the routes of emud.
pub fn relays() {
    let folder = Folder::new();
    let text = "[topology]\nkind = \"chain\"\nrouters = 3\nmedium = \"wlan0\"\nspacing = 200\n\
                [medium.wlan0]\n\
                [node.client]\ncommand = \"ping -q -c 20 -i 0.05 server; ping -c 1 -t 3 server\"\n";
    let scenario = folder.file("s.toml", text);
    let words = format!("--sample 200ms --metrics 127.0.0.1:39133 --scenario {scenario}");
    let mut emud = folder.command(&words, &[]);
    emud.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = emud.spawn().unwrap();
    stations_are_metrics("127.0.0.1:39133");
    let ran = folder.ran(&running.wait_with_output().unwrap());
    assert!(ran.out.contains("20 received"), "{}", ran.out);
    stations_are_in_the_log(&ran);
    // Three hops are too few: the third relay says so.
    assert!(ran.out.contains("Time to live exceeded"), "{}", ran.out);
}

/// Stations count ten times a second, and what they have counted by the end is in the log.
pub fn a_short_run_is_counted() {
    let folder = Folder::new();
    let text = "[topology]\nkind = \"chain\"\nrouters = 1\nmedium = \"wlan0\"\nspacing = 50\n\
                [medium.wlan0]\n\
                [node.client]\ncommand = \"ping -q -c 1 server\"\n";
    let scenario = folder.file("s.toml", text);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]);
    for node in ["client", "server"] {
        let own = ran.of("station").filter(|line| line["node"] == node);
        let received: u64 = own.map(|l| l["received_packets"].as_u64().unwrap()).sum();
        assert!(received >= 1, "{node}");
    }
}

/// Across both gateways and the wire: at least its 20 ms, and no packet is lost.
pub fn two_cells() {
    let folder = Folder::new();
    let ran = folder.run("--scenario two-cells", &[]);
    let pings = ran.out.matches("40 received").count();
    assert_eq!(pings, 2, "{}{}", ran.out, ran.err);
    let [least, ..] = support::runs::rtt_ms(&ran.out);
    assert!((20.0..40.0).contains(&least), "{least} ms");
    let mbit = ran.out.lines().find(|line| line.contains("receiver"));
    let mbit = mbit.and_then(|line| {
        line.split("Mbits")
            .next()?
            .split(' ')
            .rfind(|w| !w.is_empty())
    });
    let mbit: f64 = mbit
        .unwrap_or_else(|| panic!("{}", ran.out))
        .parse()
        .unwrap();
    // TCP over one cell alone: 5.1 Mbit/s.
    println!("    TCP {mbit} Mbit/s");
    assert!((3.5..5.2).contains(&mbit), "{mbit}");
}

/// A multicast reaches three nodes, of which each loses it by itself: 200 echoes and 550 replies,
/// within five standard deviations of 6.4.
pub fn segment() {
    let folder = Folder::new();
    let text = include_str!("../../../scenarios/segment.toml");
    let record = format!("[segment.lan]\nrecord = \"{}\"", folder.path("record"));
    let scenario = folder.file("s.toml", &text.replace("[segment.lan]", &record));
    let ran = folder.run(&format!("--scenario {scenario}"), &[]);
    let [least, ..] = support::runs::rtt_ms(&ran.out);
    assert!((4.0..30.0).contains(&least), "{least} ms");
    let record = std::fs::read_to_string(folder.path("record")).unwrap();
    let sent = record.lines().filter(|line| line.ends_with(" * 104"));
    assert_eq!(sent.count(), 200);
    let counted = |what: &str| -> u32 {
        let (before, _) = ran.out.split_once(what).expect(&ran.out);
        before.rsplit([' ', '+']).next().unwrap().parse().unwrap()
    };
    let replies = counted(" received") + counted(" duplicates");
    println!("    {replies} replies, expected 550");
    assert!((518..=582).contains(&replies), "{}", ran.out);
    assert!(ran.err.contains("segment lan: "), "{}", ran.err);
    let neighbours = ran.one("run")["media"][0]["stations"][3]["neighbours"].clone();
    assert_eq!(neighbours, serde_json::json!(["n1", "n2", "n3"]));
    replays(&folder);
}

/// A short record is written as a whole when its medium ends.
pub fn a_record_that_fails_at_the_end_is_reported() {
    let folder = Folder::new();
    let text = "[medium.wlan0]\nrecord = \"/dev/full\"\n\
                [node.a]\ncommand = \"ping -q -c 1 b\"\n[node.b]\n";
    let scenario = folder.file("s.toml", text);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]);
    assert!(ran.out.contains("1 received"), "{}{}", ran.out, ran.err);
    let said = "the record is not complete: No space left";
    assert!(ran.err.contains(said), "{}", ran.err);
}

/// Each run has a record with its end.
pub fn repeats_keep_their_records() {
    let folder = Folder::new();
    let text = format!(
        "[medium.wlan0]\nrecord = \"{}\"\n\
         [node.a]\ncommand = \"ping -q -c 1 b\"\n[node.b]\n",
        folder.path("air.record")
    );
    let scenario = folder.file("s.toml", &text);
    folder.run(&format!("--scenario {scenario} --repeat 2"), &[]);
    for n in 1..=2 {
        let record = std::fs::read_to_string(folder.path(&format!("air.{n}.record"))).unwrap();
        let end = record.lines().next_back().unwrap();
        assert!(end.starts_with("E "), "{end}");
    }
}

/// While it runs: the first echoes of the client.
fn stations_are_metrics(address: &str) {
    let scrape = || {
        let mut stream = TcpStream::connect(address).ok()?;
        let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let key = "emud_station_sent_packets_total{medium=\"wlan0\",node=\"client\"} ";
        let value = text.lines().find_map(|line| line.strip_prefix(key))?;
        value.parse::<u64>().ok().filter(|sent| *sent >= 5)
    };
    let mut found = None;
    for _ in 0..400 {
        found = found.or_else(scrape);
        if found.is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(25));
    }
    assert!(found.is_some(), "no packets of the client at {address}");
}

/// At least twenty echoes in each direction through each relay.
fn stations_are_in_the_log(ran: &Ran) {
    support::validator::assert_valid_log(&ran.log);
    let run = ran.one("run");
    let [medium] = &run["media"].as_array().unwrap()[..] else {
        panic!("{run}")
    };
    assert_eq!([&medium["range_m"], &medium["sense_m"]], [250.0, 550.0]);
    let stations = medium["stations"].as_array().unwrap();
    assert_eq!(
        stations[1]["neighbours"],
        serde_json::json!(["client", "r2"])
    );
    for (node, least) in [("client", 21), ("r1", 40), ("r3", 40), ("server", 20)] {
        let sum = |key: &str| -> u64 {
            let own = ran.of("station").filter(|line| line["node"] == node);
            own.map(|line| line[key].as_u64().unwrap()).sum()
        };
        assert!(
            sum("sent_packets") >= least,
            "{node}: {}",
            sum("sent_packets")
        );
        assert!(sum("received_packets") >= 20, "{node}");
        let frames = sum("data_frames");
        let is_of_all = sum("data_kbit_s") == 11_000 * frames;
        assert!(frames >= least && is_of_all, "{node}: {frames}");
        assert!(
            sum("air_ns") > 0 && sum("busy_ns") > sum("air_ns"),
            "{node}"
        );
        assert!(sum("failed") < 20, "{node}: {}", sum("failed"));
    }
    let still = ran.of("station").all(|line| line["neighbours"].is_null());
    assert!(
        still,
        "neighbours of stations that stand still have changed"
    );
}

/// A station that walks away by 2 m/s from 45 m is out of reach at 50.8 m, 2.9 s later.
pub fn a_walk_ends_the_reception() {
    let folder = Folder::new();
    let text = format!(
        "[medium.wlan0]\nrecord = \"{}\"\n\
         propagation = {{ model = \"log-distance\", exponent = 3.8 }}\n\
         [node.here]\ncommand = \"ping -i 0.02 -c 250 -W 1 walker\"\nprepare = \"ping -c 1 walker\"\n\
         [node.walker]\n\
         path = [{{ at = [45, 0] }}, {{ at = [65, 0], after = \"10s\" }}]\n",
        folder.path("record")
    );
    let scenario = folder.file("s.toml", &text);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]);
    assert!(ran.out.contains("time="), "{}{}", ran.out, ran.err);
    // In virtual time, whatever else this machine does. The motion began a step before its first.
    let record = std::fs::read_to_string(folder.path("record")).unwrap();
    let step = record.lines().find_map(|line| line.strip_prefix("M "));
    let step: Vec<f64> = step
        .unwrap()
        .split(' ')
        .map(|n| n.parse().unwrap())
        .collect();
    let origin = step[0] - step[1] * 1e8;
    let mut emud = Command::new(emud_path());
    emud.args(["medium", "replay", "--deliveries", &folder.path("record")]);
    let deliveries = String::from_utf8(emud.output().unwrap().stdout).unwrap();
    // Broadcasts, at 1 Mbit/s, reach farther.
    let mut pings = deliveries.lines().filter(|line| line.ends_with(" 84"));
    let last: f64 = pings
        .next_back()
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let seconds = (last - origin) / 1e9;
    println!("    the last packet after {seconds:.3} s");
    assert!((2.7..2.91).contains(&seconds), "{seconds}");
    replays(&folder);
}
