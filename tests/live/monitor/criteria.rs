// SPDX-License-Identifier: MIT OR Apache-2.0
//! Each criterion once: a load that takes far more than the threshold alarms, the alarm names it, and
//! its end ends the episode. Nothing here is judged by how long it takes; `latency` and `episodes` do
//! that.

use std::time::Duration;

use support::clock;
use support::lab::{Engine, Lab, Verdict, sh};
use support::load::{COMMAND, Load};
use support::place::{SlowDisk, Swap, Wires};
use support::watch::{Line, SEEN, Watch};

/// For what happens at once, on a machine that others use.
const PATIENCE: Duration = Duration::from_secs(15);
const MS: u64 = 1_000_000;

/// An alarm of this criterion comes and is over; groups are commands.
fn comes_and_goes(verdict: &mut Verdict, watch: &Watch, criterion: &str, load: &str) {
    let alarm = watch.next(0, PATIENCE, |line| {
        line.is("alarm") && line.criterion() == criterion && line.share_of(load) > 0.5
    });
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
    verdict.same("verdict", "contended", ended.verdict_on(resource));
    verdict.same("exit code", SEEN, ended.code);
}

pub fn cpu() {
    let mut verdict = Verdict::default();
    let options = ["--only", "cpu", "--cpu-theta", "60ms", "--limit", "1000"];
    let watch = Watch::start(&[&options[..], &["--group-by", "command"]].concat());
    // Ahead of whatever else wants this CPU, so that the interval is the load's.
    let first = [("cpu", &*clock::spare_cpu()), ("policy", "fifo")];
    let mut load = Load::start("cpu", &first);
    load.ask(&format!("spin {}", 300 * MS));
    drop(load);
    let cpu = clock::spare_cpu();
    let named = watch.next(0, PATIENCE, |line| {
        line.is_busy_cpu(&cpu) && line.share_of(COMMAND) > 0.5
    });
    verdict.same("an alarm names the load", true, named.is_some());
    contended(&mut verdict, watch, "cpu");
    verdict.end();
}

pub fn network() {
    let mut verdict = Verdict::default();
    for (criterion, option, class) in [
        ("network external", "--external", "mload=external"),
        ("network internal", "--internal", "mload=internal"),
    ] {
        let wires = Wires::new(&["mload"]);
        let other = match option {
            "--external" => "--internal",
            _ => "--external",
        };
        let options = [
            "--only",
            "network",
            "--group-by",
            "command",
            "--limit",
            "1000",
        ];
        let watch = Watch::start(
            &[
                &options[..],
                &[option, "1Mbit/s", other, "off", "--class", class],
            ]
            .concat(),
        );
        let mut load = wires.load(&[]);
        load.ask("bursts 3 50 30000000");
        comes_and_goes(&mut verdict, &watch, criterion, COMMAND);
        contended(&mut verdict, watch, "network");
    }
    verdict.end();
}

/// Both ways.
pub fn paging() {
    let mut verdict = Verdict::default();
    let _swap = Swap::new(64);
    let options = ["--only", "memory", "--page-ins", "8", "--page-outs", "8"];
    let watch =
        Watch::start(&[&options[..], &["--group-by", "command", "--limit", "1000"]].concat());
    let mut load = Load::start("memory", &[("cpu", &clock::spare_cpu())]);
    load.say("map 256");
    assert_eq!(load.hear(), "mapped");
    load.ask("out 256");
    comes_and_goes(&mut verdict, &watch, "page-out", COMMAND);
    load.ask("in 256");
    comes_and_goes(&mut verdict, &watch, "page-in", COMMAND);
    contended(&mut verdict, watch, "memory");
    verdict.end();
}

pub fn disk() {
    let mut verdict = Verdict::default();
    let disk = SlowDisk::new(Duration::from_millis(150));
    let options = ["--only", "disk", "--disk-theta", "60ms", "--limit", "1000"];
    let watch = Watch::start(&[&options[..], &["--group-by", "command"]].concat());
    let mut load = disk.load(&[("len", "4096")]);
    load.say("one");
    let about = |line: &Line| line.is("alarm") && line.json["scope"]["name"] == disk.name();
    let alarm = watch.next(0, PATIENCE, about).expect("an alarm");
    load.hear();
    let over = watch.clear(&alarm, PATIENCE).is_some();
    verdict.same("its end", true, over);
    verdict.at_least("share of the load", 0.5, alarm.share_of(COMMAND));
    contended(&mut verdict, watch, "disk");
    verdict.end();
}

/// A holder that is stopped is late with every packet.
pub fn emulator() {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    if lab
        .try_attach(Engine::Hold, "[up]\ndelay = \"20ms\"", &[])
        .code
        != 0
    {
        println!("    no engine hold here");
        return;
    }
    let pid = lab.shown("/up/holder/pid");
    let watch = Watch::start(&["--only", "emulator", "--limit", "1000"]);
    lab.ping("-q -c 5 -i 0.02");
    sh(&format!("kill -STOP {pid}"));
    lab.ping("-q -c 3 -i 0.02 -W 1");
    sh(&format!("kill -CONT {pid}"));
    lab.ping("-q -c 5 -i 0.02");
    let alarm = watch.alarm(0, "emulator", PATIENCE);
    verdict.same("an alarm", true, alarm.is_some());
    contended(&mut verdict, watch, "emulator");
    verdict.end();
}
