// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a medium with many stations costs: the share of a CPU that its thread takes.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use emud::host::now_ns;
use serde_json::Value;
use support::is_optimised;
use support::lab::wait_until;
use support::runs::Folder;

/// The goal, with an optimised emud. Unoptimised, its own instructions take several times as long.
fn limit() -> f64 {
    if is_optimised() { 0.25 } else { 0.75 }
}

/// 30 of 100 stations on a grid send 11 Mbit/s each, ten times what the medium carries: nearly all
/// of these packets meet a full queue, which the thread finds out for each of them.
pub fn a_hundred_stations() {
    let text = "[topology]\nkind = \"mesh\"\nnodes = 100\nmedium = \"wlan0\"\nspacing = \"150m\"\n\
                [medium.wlan0]\nroutes = \"on-link\"\n\
                [node.\"*\"]\ncommand = \"\"\"case $((EMUD_INDEX % 10)) in\n\
                1|4|7) sleep 1; exec $EMUD traffic send n$((EMUD_INDEX + 1)):6001 --rate 11Mbit \
                --size 1472 --packets 12000;;\n\
                2|5|8) exec timeout --preserve-status 20 $EMUD traffic receive 6001;; esac\"\"\"\n";
    let (share, read, sent) = cost(text);
    assert!(read > 10_000.0 && sent > 1_000.0, "{read} {sent}");
    assert!(share < limit(), "{share}");
}

/// 256 stations on a grid with a multicast a second each, which eight others receive.
pub fn hellos_of_256_stations() {
    let text = "[topology]\nkind = \"mesh\"\nnodes = 256\nmedium = \"wlan0\"\nspacing = \"150m\"\n\
                [medium.wlan0]\nroutes = \"none\"\n\
                [node.\"*\"]\ncommand = [\"bash\", \"-c\", \"for n in {1..20}; do \
                echo hello >/dev/udp/ff02::1%wlan0/6696; sleep 1; done\"]\n";
    let (share, read, sent) = cost(text);
    assert!(read > 150.0 && sent > 150.0, "{read} {sent}");
    assert!(share < limit() / 2.0, "{share}");
}

/// The share of a CPU that the thread takes, the packets that stations sent per second, and of these
/// those that got on air, over six seconds.
fn cost(text: &str) -> (f64, f64, f64) {
    let folder = Folder::new();
    let scenario = folder.file("s.toml", text);
    let mut emud = folder.command(&format!("--sample 1s --scenario {scenario}"), &[]);
    let emud = emud.stdout(Stdio::null()).stderr(Stdio::piped());
    let running = emud.spawn().unwrap();
    let log = folder.path("run.log");
    let begun = || fs::read_to_string(&log).is_ok_and(|text| text.contains("\"station\""));
    wait_until("the first sample", Duration::from_secs(180), begun);
    // Addresses are resolved, and queues full.
    sleep(Duration::from_secs(4));
    let thread = thread_of(&running);
    let (began, before_ns) = (now_ns(), cpu_ns(&thread));
    sleep(Duration::from_secs(6));
    let (ended, took_ns) = (now_ns(), cpu_ns(&thread) - before_ns);
    let ran = folder.ran(&running.wait_with_output().unwrap());
    let within = |line: &&Value| (began..ended).contains(&line["mono_ns"].as_u64().unwrap());
    let (mut sent, mut dropped, mut last_ns, mut seconds) = (0, 0, 0, 0.0);
    for line in ran.of("station").filter(within) {
        let of = |key: &str| line[key].as_u64().unwrap();
        sent += of("sent_packets");
        dropped += of("dropped_full");
        if last_ns != of("mono_ns") {
            last_ns = of("mono_ns");
            seconds += of("interval_ns") as f64 / 1e9;
        }
    }
    assert!(seconds > 0.0, "no sample in six seconds: {}", ran.err);
    let share = took_ns as f64 / (ended - began) as f64;
    let (read, sent) = ((sent + dropped) as f64 / seconds, sent as f64 / seconds);
    let percent = share * 100.0;
    println!("    {read:.0} packets/s, {sent:.0} of them on air: {percent:.1} % of a CPU");
    (share, read, sent)
}

/// The folder in /proc of the thread of the medium.
fn thread_of(emud: &Child) -> String {
    let tasks = fs::read_dir(format!("/proc/{}/task", emud.id())).unwrap();
    let mut folders = tasks.map(|task| task.unwrap().path().display().to_string());
    let is_medium = |folder: &String| {
        let name = fs::read_to_string(format!("{folder}/comm")).unwrap_or_default();
        name.trim() == "emud-medium"
    };
    folders.find(is_medium).expect("the thread of the medium")
}

fn cpu_ns(thread: &str) -> u64 {
    let text = fs::read_to_string(format!("{thread}/schedstat")).unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}
