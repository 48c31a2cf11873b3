// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each criterion once: a load far above the threshold raises an alarm that names it, and its end
//! ends the episode. Nothing here is judged by how long it takes; `latency` and `episodes` do that.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;
use support::lab::{Engine, Lab, Verdict};
use support::load::{COMMAND, Load};
use support::site::{SlowDisk, Swap, Wires};
use support::watch::{Line, SEEN, Watch};
use support::{clock, emud_path, full};

/// Time for immediate events, on a machine that others use.
const PATIENCE: Duration = Duration::from_secs(15);
const MS: u64 = 1_000_000;

fn names(line: &Line, criterion: &str, load: &str) -> bool {
    line.is("alarm") && line.criterion() == criterion && line.share_of(load) > 0.5
}

/// An alarm of this criterion begins and ends; groups are commands.
fn comes_and_goes(verdict: &mut Verdict, watch: &Watch, criterion: &str, load: &str) {
    let alarm = watch.next(0, PATIENCE, |line| names(line, criterion, load));
    let Some(alarm) = alarm else {
        let seen = watch.alarms_since(0);
        let seen: Vec<String> = seen.iter().map(|line| line.json.to_string()).collect();
        panic!("{criterion}: no alarm that names {load}: {seen:#?}");
    };
    verdict.at_least(
        &format!("{criterion}: value over threshold"),
        alarm.number("/threshold") as f64,
        alarm.number("/value") as f64,
    );
    let clear = watch.clear(&alarm, PATIENCE);
    let span = clear.map(|clear| {
        clear.number("/since_mono_ns") < clear.number("/until_mono_ns")
            && clear.resource() == alarm.resource()
    });
    verdict.same(&format!("{criterion}: its end"), Some(true), span);
}

fn contended(verdict: &mut Verdict, watch: Watch, resource: &str) {
    let ended = watch.end();
    // A missing end may be an event for which the kernel skipped the program.
    println!("    skipped: {}", ended.end().json["skipped"]);
    verdict.same("verdict", "contended", ended.verdict_on(resource));
    verdict.same("exit code", SEEN, ended.code);
}

/// A monitor with these thresholds, whose groups are commands.
fn watch(thresholds: &[&str]) -> Watch {
    let options = ["--group-by", "command", "--limit", "1000"];
    Watch::start(&[&options[..], thresholds].concat())
}

const CPU: [&str; 2] = ["--cpu-theta", "60ms"];
const PAGING: [&str; 4] = ["--page-ins", "8", "--page-outs", "8"];
const DISK: [&str; 2] = ["--disk-theta", "60ms"];

pub fn cpu() {
    let mut verdict = Verdict::default();
    let watch = watch(&[&["--only", "cpu"], &CPU[..]].concat());
    spin(&mut verdict, &watch);
    contended(&mut verdict, watch, "cpu");
    verdict.end();
}

fn spin(verdict: &mut Verdict, watch: &Watch) {
    let cpu = clock::spare_cpu();
    // With priority over other tasks on this CPU, so that the interval is the load's.
    let mut load = Load::start("cpu", &[("cpu", &cpu), ("policy", "rr")]);
    // Its start keeps the CPU busy, too.
    sleep(Duration::from_millis(200));
    let spun = load.ask(&format!("spin {}", 300 * MS));
    drop(load);
    let alarm = watch.next(0, PATIENCE, |line| {
        line.is_busy_cpu(&cpu) && line.mono_ns() + 10 * MS > spun[0]
    });
    // If others left it no idle time before, their interval continues, and its alarm may be over.
    let of_others = watch
        .alarms_since(0)
        .iter()
        .any(|line| line.is_busy_cpu(&cpu));
    verdict.same("cpu: an alarm", true, alarm.is_some() || of_others);
    let began_with_load = |line: &Line| {
        let since = line.number("/since_mono_ns");
        (spun[0] - 10 * MS..spun[1]).contains(&since)
    };
    match alarm.filter(began_with_load) {
        Some(alarm) => verdict.at_least("cpu: share of the load", 0.5, alarm.share_of(COMMAND)),
        None => println!("    cpu: others kept it busy before"),
    }
}

pub fn network() {
    let mut verdict = Verdict::default();
    for (criterion, option, other) in [
        ("network external", "--external", "--internal"),
        ("network internal", "--internal", "--external"),
    ] {
        // Other tests of the usual run send through devices of this class for many seconds: [`all`] in a guest.
        if option == "--internal" && !full() {
            continue;
        }
        let class = format!("mload={}", &option[2..]);
        let options = ["--only", "network", "--class", &class];
        let watch = watch(&[&options[..], &[option, "1Mbit/s", other, "off"]].concat());
        let wires = Wires::new(&["mload"]);
        bursts(&mut verdict, &watch, &wires, criterion);
        contended(&mut verdict, watch, "network");
    }
    verdict.end();
}

/// Three bursts of 25 frames are much for a window of 10 ms and little for one of 10 s.
pub fn windows() {
    let mut verdict = Verdict::default();
    let watch = watch(&[
        "--only",
        "network",
        "--external",
        "off",
        "--internal",
        "off",
        "--device",
        "mshort=1Mbit/s",
        "--device",
        "mlong=1Mbit/s",
        "--device-window",
        "mlong=10s",
    ]);
    let wires = Wires::new(&["mshort", "mlong"]);
    let of = |line: &Line, device: &str| line.is("alarm") && line.json["scope"]["name"] == device;
    wires.load(&[]).ask("bursts 3 50 30000000");
    let short = watch.next(0, PATIENCE, |line| of(line, "mshort"));
    verdict.same("an alarm over 10 ms", true, short.is_some());
    let long = watch.since(0).iter().any(|line| of(line, "mlong"));
    verdict.same("an alarm over 10 s", false, long);
    contended(&mut verdict, watch, "network");
    verdict.end();
}

fn bursts(verdict: &mut Verdict, watch: &Watch, wires: &Wires, criterion: &str) {
    let mut load = wires.load(&[]);
    // Packets of other tests may have begun the episode that is open now: it is not the load's.
    for _ in 0..10 {
        load.ask("bursts 3 50 30000000");
        if watch
            .next(0, Duration::from_secs(1), |line| {
                names(line, criterion, COMMAND)
            })
            .is_some()
        {
            break;
        }
    }
    comes_and_goes(verdict, watch, criterion, COMMAND);
}

/// Both directions.
pub fn paging() {
    let mut verdict = Verdict::default();
    let _swap = Swap::new(64);
    let watch = watch(&[&["--only", "memory"], &PAGING[..]].concat());
    pages(&mut verdict, &watch);
    contended(&mut verdict, watch, "memory");
    verdict.end();
}

fn pages(verdict: &mut Verdict, watch: &Watch) {
    let mut load = Load::start("memory", &[("cpu", &clock::spare_cpu())]);
    load.say("map 256");
    assert_eq!(load.hear(), "mapped");
    load.ask("out 256");
    comes_and_goes(verdict, watch, "page-out", COMMAND);
    load.ask("in 256");
    comes_and_goes(verdict, watch, "page-in", COMMAND);
}

pub fn disk() {
    let mut verdict = Verdict::default();
    let disk = SlowDisk::new(Duration::from_millis(150));
    let watch = watch(&[&["--only", "disk"], &DISK[..]].concat());
    read(&mut verdict, &watch, &disk);
    contended(&mut verdict, watch, "disk");
    verdict.end();
}

fn read(verdict: &mut Verdict, watch: &Watch, disk: &SlowDisk) {
    let mut load = disk.load(&[("len", "4096")]);
    load.say("one");
    let about = |line: &Line| line.is("alarm") && line.json["scope"]["name"] == disk.name();
    let alarm = watch.next(0, PATIENCE, about).expect("an alarm");
    load.hear();
    let over = watch.clear(&alarm, PATIENCE).is_some();
    if !over {
        for line in watch.since(0) {
            println!("    {}", line.json);
        }
    }
    verdict.same("disk: its end", true, over);
    verdict.at_least("disk: share of the load", 0.5, alarm.share_of(COMMAND));
}

/// The steal time that the kernel reports while both CPUs are busy; on a machine without a
/// hypervisor it is 0, and there must be no alarm.
pub fn steal() {
    const WINDOW: Duration = Duration::from_secs(10);
    let mut verdict = Verdict::default();
    // 10 ms in a window: the unit of /proc/stat.
    let watch = watch(&[
        "--only",
        "steal",
        "--steal",
        "0.1%",
        "--steal-window",
        "10s",
    ]);
    let before = stolen();
    let mut loads: Vec<Load> = (0..2)
        .map(|i| Load::start("cpu", &[("cpu", &(i % clock::cpus()).to_string())]))
        .collect();
    loads
        .iter_mut()
        .for_each(|load| load.say(&format!("spin {}", 3000 * MS)));
    loads.iter_mut().for_each(|load| drop(load.hear()));
    drop(loads);
    let within = stolen();
    // The last stolen time is accounted at the next tick.
    sleep(Duration::from_millis(50));
    let ended = watch.end();
    let alarms = ended.of("alarm");
    for (cpu, (was, is)) in before.iter().zip(&within).enumerate() {
        let told = alarms.iter().any(|alarm| alarm.json["scope"]["cpu"] == cpu);
        println!(
            "    CPU {cpu}: {} ms stolen, alarm: {told}",
            10 * (is - was)
        );
        let threshold = WINDOW.as_nanos() as u64 / 1000;
        for alarm in alarms
            .iter()
            .filter(|alarm| alarm.json["scope"]["cpu"] == cpu)
        {
            verdict.same("threshold", threshold, alarm.number("/threshold"));
        }
        match stolen()[cpu] - was {
            // Less than its unit.
            0 => verdict.same(&format!("CPU {cpu}: an alarm"), false, told),
            _ if is - was >= 2 => verdict.same(&format!("CPU {cpu}: an alarm"), true, told),
            _ => {}
        }
    }
    let seen = if alarms.is_empty() {
        "clean"
    } else {
        "contended"
    };
    verdict.same("verdict", seen, ended.verdict_on("steal"));
    verdict.same(
        "without shares",
        true,
        alarms.iter().all(|a| a.json["shares"] == json!([])),
    );
    verdict.end();
}

/// Hundredths of a second that the hypervisor took from each CPU since boot.
fn stolen() -> Vec<u64> {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let cpus = text
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("cpu"));
    let steal = |line: &str| line.split_whitespace().nth(8).and_then(|n| n.parse().ok());
    cpus.filter_map(steal).collect()
}

/// All of them with one monitor, whose start is most of the time that a guest takes.
pub fn all() {
    let mut verdict = Verdict::default();
    let disk = SlowDisk::new(Duration::from_millis(150));
    let _swap = Swap::new(64);
    let wires = Wires::external("mload");
    let inner = Wires::new(&["mveth"]);
    let network = [
        "--class",
        "mload=external",
        "--external",
        "1Mbit/s",
        "--internal",
        "1Mbit/s",
    ];
    let watch = watch(&[&CPU[..], &PAGING, &DISK, &network].concat());
    spin(&mut verdict, &watch);
    bursts(&mut verdict, &watch, &wires, "network external");
    bursts(&mut verdict, &watch, &inner, "network internal");
    pages(&mut verdict, &watch);
    read(&mut verdict, &watch, &disk);
    let ended = watch.end();
    for resource in ["cpu", "network", "memory", "disk"] {
        verdict.same(resource, "contended", ended.verdict_on(resource));
    }
    verdict.end();
}

/// A stopped holder is late.
pub fn emulator() {
    const FOLDER: &str = "/run/emud";
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    lab.attach(Engine::Hold, "[up]\ndelay = \"1s\"", &[]);
    // Where holders look for monitors.
    std::fs::create_dir_all(FOLDER).unwrap();
    let socket = format!("{FOLDER}/monitor-test-{}.sock", std::process::id());
    let options = ["--only", "emulator", "--limit", "1000"];
    let watch = Watch::spawn_at(Command::new(emud_path()), socket.into(), &options);
    let watches = watch.next(0, PATIENCE, |line| line.is("start"));
    verdict.same("it watches", true, watches.is_some());
    lab.hold_late();
    let alarm = watch.alarm(0, "emulator", PATIENCE);
    verdict.same("an alarm", true, alarm.is_some());
    contended(&mut verdict, watch, "emulator");
    verdict.end();
}
