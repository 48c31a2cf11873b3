// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames that no stack would send, each way over a whole link: each is counted exactly once, and the
//! kernel has nothing to complain about.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use serde_json::Value;
use support::chance::Random;
use support::lab::{Engine, Lab, Verdict, inside, wait_until};
use support::{full, guest};

use super::frames::Raw;

/// Time for packets that wait.
const SOON: Duration = Duration::from_secs(30);

const EVERYTHING: &str = r#"
    rate = "200Mbit"
    queue = "100p"
    loss = { model = "gilbert-elliott", p = "2%", r = "30%" }
    duplicate = "3%"
    corrupt = { probability = "20%", bits = 3 }
    delay = { mean = "5ms", sd = "2ms", distribution = "normal", reorder = "jitter" }
"#;

/// An Ethernet frame of a common or of any protocol, mostly IP, with wrong bytes.
fn damaged(chance: &mut Random) -> Vec<u8> {
    const PROTOCOLS: [u16; 8] = [
        0x0800, 0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, 0x8847, 0x8864,
    ];
    const INNER: [u8; 7] = [6, 17, 1, 4, 41, 47, 50];
    let len = 14 + chance.index(1450);
    let mut frame: Vec<u8> = (0..len).map(|_| chance.bits() as u8).collect();
    // Of this host, of all or of nobody.
    match chance.index(4) {
        0 => frame[..6].fill(0xff),
        _ => frame[0] &= 0xfe,
    }
    let mut at = 12;
    let mut protocol = chance.bits() as u16;
    while chance.index(8) > 0 && at + 2 + 40 < len {
        protocol = PROTOCOLS[chance.index(PROTOCOLS.len())];
        frame[at..at + 2].copy_from_slice(&protocol.to_be_bytes());
        at += match protocol {
            0x8100 | 0x88a8 => 4,
            _ => break,
        };
    }
    let ip = at + 2;
    if chance.index(4) > 0 && ip + 40 < len {
        let left = (len - ip) as u16;
        match protocol {
            0x0800 => {
                frame[ip] = 0x45;
                frame[ip + 2..ip + 4].copy_from_slice(&left.to_be_bytes());
                frame[ip + 6..ip + 8].fill(0);
                frame[ip + 9] = INNER[chance.index(INNER.len())];
            }
            0x86dd => {
                frame[ip] = 0x60;
                frame[ip + 4..ip + 6].copy_from_slice(&(left - 40).to_be_bytes());
                frame[ip + 6] = INNER[chance.index(INNER.len())];
            }
            _ => {}
        }
    }
    for _ in 0..chance.index(3) {
        let at = 12 + chance.index(len.min(60) - 12);
        frame[at] = chance.bits() as u8;
    }
    frame
}

/// What the kernel logs from now on.
struct KernelLog(File);

impl KernelLog {
    fn open() -> Self {
        let mut options = std::fs::OpenOptions::new();
        let log = options.read(true).custom_flags(libc::O_NONBLOCK);
        // Without it the test would claim what it cannot see.
        let mut log = log.open("/dev/kmsg").expect("/dev/kmsg");
        log.seek(SeekFrom::End(0)).expect("the end of /dev/kmsg");
        Self(log)
    }

    /// Other jobs of the machine write to it, too: not every line is about a link.
    fn warnings(mut self) -> Vec<String> {
        const WORDS: [&str; 6] = [
            "WARNING: ",
            "BUG: ",
            "Oops",
            "general protection",
            "refcount_t",
            "hw csum failure",
        ];
        let mut found = vec![];
        let mut record = [0; 8192];
        loop {
            match self.0.read(&mut record) {
                Ok(n) => {
                    let text = String::from_utf8_lossy(&record[..n]).into_owned();
                    if WORDS.iter().any(|word| text.contains(word)) {
                        found.push(text);
                    }
                }
                // The oldest records were overwritten.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return found,
                Err(e) => panic!("/dev/kmsg: {e}"),
            }
        }
    }
}

/// A number, or the sum of a table of numbers.
fn sum(of: &Value) -> u64 {
    match of.as_object() {
        Some(parts) => parts.values().filter_map(Value::as_u64).sum(),
        None => of.as_u64().unwrap_or(0),
    }
}

fn received(lab: &Lab) -> u64 {
    let said = lab.in_b("ip -s -j link show vb");
    let said: Value = serde_json::from_str(&said).expect("JSON");
    said[0]["stats64"]["rx"]["packets"]
        .as_u64()
        .expect("packets")
}

pub fn every_frame_meets_one_fate(engine: Engine) {
    let count = match (full(), guest()) {
        // The classifier is the same: the most of hold are those here.
        (true, true) if engine == Engine::Hold => 50_000,
        (true, _) => 1_000_000,
        (false, _) => 5_000,
    };
    let mut verdict = Verdict::default();
    let log = KernelLog::open();
    let lab = Lab::new();
    lab.attach(engine, &format!("[link]{EVERYTHING}"), &["--seed", "1"]);
    let before = received(&lab);
    let senders = [(&lab.a, "va", 1), (&lab.b, "vb", 2)].map(|(netns, device, seed)| {
        inside(netns, move || {
            let socket = Raw::open(device, 0);
            let mut chance = Random(seed);
            (0..count).for_each(|_| socket.send(&damaged(&mut chance)));
        })
    });
    for sender in senders {
        sender.join().expect("a sender");
    }
    let balance = |shown: &Value, direction: &str| {
        let of = |key: &str| sum(&shown[direction][key]);
        let count = |key: &str| sum(&shown[direction]["counters"][key]);
        let fates = ["lost", "queue_dropped", "aqm_dropped", "class_dropped"];
        let fates: u64 = fates.map(count).iter().sum::<u64>() + count("down");
        let holder = |key: &str| sum(&shown[direction]["holder"][key]);
        let sent = count("sent_packets") + count("duplicated");
        let failed = of("engine_dropped") + holder("dropped");
        (
            [
                count("packets"),
                fates + count("passed") + count("sent_packets"),
            ],
            [sent - failed, holder("released")],
            sent - failed + count("passed"),
        )
    };
    // Those that wait, and the holder's account.
    let settled = || {
        let shown = lab.show();
        let (_, [sent, released], arriving) = balance(&shown, "up");
        let down = balance(&shown, "down").1;
        let left = engine.is_stamped() || (sent == released && down[0] == down[1]);
        left && received(&lab) - before >= arriving
    };
    wait_until("all have left", SOON, settled);
    let shown = lab.show();
    for direction in ["up", "down"] {
        let ([packets, fates], [sent, released], arriving) = balance(&shown, direction);
        println!("    {direction}: {packets} packets, {sent} sent, {arriving} arriving");
        verdict.same(&format!("{direction}: fates"), packets, fates);
        verdict.at_least(
            &format!("{direction}: packets"),
            count as f64,
            packets as f64,
        );
        if !engine.is_stamped() {
            verdict.same(&format!("{direction}: released"), sent, released);
        }
        for stage in ["lost", "corrupted", "duplicated"] {
            let met = shown[direction]["counters"][stage].as_u64() > Some(0);
            verdict.same(&format!("{direction}: {stage}"), true, met);
        }
        if direction == "up" {
            verdict.same("arrived", arriving, received(&lab) - before);
        }
    }
    lab.detach();
    verdict.same("warnings of the kernel", Vec::new(), log.warnings());
    verdict.end();
}
