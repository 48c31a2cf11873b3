// SPDX-License-Identifier: MIT OR Apache-2.0
//! Alarms: the limit, the exit code, and what follows from them.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::cases;
use support::clock;
use support::lab::{Verdict, emud_path, run, wait_until};
use support::load::Load;
use support::refusal::Refusal;
use support::site::{Scratch, Swap, Wires};
use support::watch::{Ended, Line, SEEN, Watch};

/// Longer than a slow kernel takes to verify the programs.
const PATIENCE: Duration = Duration::from_secs(20);
const RESOURCES: [&str; 4] = ["cpu", "network", "memory", "disk"];

/// A monitor in which any burst raises an alarm, and the load for bursts.
fn burst_watch(more: &[&str]) -> (Watch, Wires, Load) {
    // A machine with swap may page by itself.
    let more = [&["--page-ins", "off", "--page-outs", "off"][..], more].concat();
    network_and_paging(&more)
}

fn network_and_paging(more: &[&str]) -> (Watch, Wires, Load) {
    let wires = Wires::external("mphys");
    let mut options = vec!["--class", "mphys=external", "--external", "1Mbit/s"];
    // Other load here must not raise alarms.
    options.extend([
        "--cpu-theta",
        "off",
        "--internal",
        "off",
        "--disk-theta",
        "off",
        "--set",
        "emulator=off",
    ]);
    options.extend(more);
    let watch = Watch::alone(&options);
    let load = wires.load(&[]);
    (watch, wires, load)
}

/// Makes `count` episodes.
fn bursts(load: &mut Load, count: u32) {
    // Of one frame, which cannot fall apart, with pauses of three windows.
    load.ask(&format!("bursts {count} 1 30000000"));
}

/// Every line has its type and time.
fn well_formed(verdict: &mut Verdict, ended: &Ended) {
    let bad = ended.lines.iter().find(|line| {
        let time = line.json["time"].as_str().unwrap_or_default();
        // Down to ns, in UTC.
        let good_time = time.len() >= 30 && time.ends_with('Z') && time.as_bytes()[10] == b'T';
        !(line.json["type"].is_string() && line.json["mono_ns"].is_u64() && good_time)
    });
    verdict.same(
        "lines without type, time or mono_ns",
        None,
        bad.map(|line| line.json.to_string()),
    );
    let begin = &ended.lines[0];
    verdict.same("first line", "start", begin.text("/type"));
    verdict.same("schema", "emud-log/2", begin.text("/schema"));
    for place in [
        "/host/kernel",
        "/clock/realtime_minus_mono_ns",
        "/config",
        "/hooks",
        "/watched",
    ] {
        if begin.json.pointer(place).is_none_or(Value::is_null) {
            verdict.same(&format!("start line: {place}"), true, false);
        }
    }
    let hooks: Vec<&str> = begin.json["hooks"]
        .as_array()
        .expect("hooks")
        .iter()
        .filter(|hook| hook["refused"].is_null())
        .filter_map(|hook| hook["hook"].as_str())
        .collect();
    let unnamed = ended
        .of("alarm")
        .into_iter()
        .filter(|alarm| alarm.resource() != "application")
        .find(|alarm| !hooks.contains(&alarm.text("/hook")));
    verdict.same(
        "an alarm from a hook that was not taken",
        None,
        unnamed.map(|line| line.json.to_string()),
    );
}

/// An alarm about this machine attributes all of the load.
fn shared(verdict: &mut Verdict, ended: &Ended) {
    let sum = |line: &Line| {
        let shares = line.json["shares"].as_array().expect("shares").iter();
        let rest = line.json["rest"].as_f64().expect("a rest");
        shares
            .filter_map(|share| share["share"].as_f64())
            .sum::<f64>()
            + rest
    };
    let alarms = ended.of("alarm");
    let wrong = alarms.iter().find(|line| (sum(line) - 1.0).abs() > 1e-6);
    verdict.same(
        "an alarm whose shares are not 1 together",
        None,
        wrong.map(|line| line.json.to_string()),
    );
}

/// Three alarms per resource, the rest counted; a reset permits three more.
pub fn limit() {
    let mut verdict = Verdict::default();
    let (watch, _wires, mut load) = burst_watch(&[]);
    let count = |watch: &Watch| watch.alarms_since(0).len();
    bursts(&mut load, 10);
    verdict.same("alarms of 10 episodes", 3, count(&watch));
    // A drops line comes within a second.
    let told = watch.next(0, Duration::from_secs(3), |line| {
        line.is("drops") && line.json["suppressed"]["network"] == 7
    });
    verdict.same("a drops line reports the others", true, told.is_some());
    watch.reset();
    bursts(&mut load, 5);
    verdict.same("alarms after a reset and 5 episodes", 6, count(&watch));
    sleep(Duration::from_millis(1200));
    let ended = watch.end();
    well_formed(&mut verdict, &ended);
    shared(&mut verdict, &ended);
    let end = ended.end();
    verdict.same("suppressed in all", 9, end.number("/suppressed/network"));
    verdict.same("alarms in all", 6, end.number("/alarms/network"));
    verdict.same("ring full", 0, end.number("/ring_full"));
    verdict.same("verdict", "contended", ended.verdict_on("network"));
    verdict.same("memory", "not watched", ended.verdict_on("memory"));
    verdict.same("cpu", "not watched", ended.verdict_on("cpu"));
    verdict.same("reason", "signal", end.text("/reason"));
    verdict.same("exit code", SEEN, ended.code);
    let costs = end.json["costs"].as_array().expect("costs");
    verdict.same(
        "costs",
        true,
        costs.iter().any(|cost| cost["events"].as_u64() > Some(0)),
    );
    verdict.same(
        "overhead",
        true,
        end.json["overhead"]["run_time_ns"].as_u64() > Some(0),
    );

    // Another limit, and a clean run.
    let (watch, _wires, mut load) = burst_watch(&["--limit", "1"]);
    bursts(&mut load, 4);
    verdict.same("alarms with a limit of 1", 1, count(&watch));
    verdict.same(
        "suppressed",
        3,
        watch.end().end().number("/suppressed/network"),
    );
    let (watch, _wires, _load) = burst_watch(&[]);
    let ended = watch.end();
    verdict.same("clean: exit code", 0, ended.code);
    verdict.same("clean: verdict", "clean", ended.verdict_on("network"));
    verdict.end();
}

/// Half a criterion can be off: it is silent, the other half is not.
pub fn off() {
    let mut verdict = Verdict::default();
    let (watch, _external, mut load) = network_and_paging(&["--page-ins", "off"]);
    let internal = Wires::new(&["mveth"]);
    bursts(&mut internal.load(&[]), 5);
    let _swap = Swap::new(64);
    let mut memory = Load::start("memory", &[("cpu", &clock::spare_cpu())]);
    memory.say("map 64");
    memory.hear();
    let moved = ["out 64", "in 64"].map(|command| memory.ask(command)[3]);
    verdict.same("pages out and in", [64, 64], moved);
    bursts(&mut load, 1);
    let told = watch
        .alarms_since(0)
        .into_iter()
        .map(|line| line.criterion());
    let told: BTreeSet<String> = told.collect();
    let wanted = BTreeSet::from(["network external", "page-out"].map(str::to_owned));
    verdict.same("what alarmed", wanted, told);
    watch.end();
    verdict.end();
}

/// It ends by itself at the n-th alarm.
pub fn stop_after() {
    let mut verdict = Verdict::default();
    let (watch, _wires, mut load) = burst_watch(&["--stop-after", "2"]);
    bursts(&mut load, 4);
    let ended = watch.wait(PATIENCE);
    verdict.same("alarms", 2, ended.of("alarm").len());
    verdict.same("reason", "stop-after", ended.end().text("/reason"));
    verdict.same("exit code", SEEN, ended.code);
    well_formed(&mut verdict, &ended);
    verdict.end();
}

/// A command for every alarm, with its line.
pub fn on_alarm() {
    let mut verdict = Verdict::default();
    let scratch = Scratch::new();
    let got = scratch.path("got");
    let (watch, _wires, mut load) = burst_watch(&["--on-alarm", &format!("cat >>{got}")]);
    bursts(&mut load, 5);
    let text = || std::fs::read_to_string(&got).unwrap_or_default();
    wait_until("the command has run", PATIENCE, || {
        text().lines().count() >= 3
    });
    sleep(Duration::from_millis(100));
    let ended = watch.end();
    let lines: Vec<Value> = text()
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let alarms: Vec<Value> = ended.of("alarm").iter().map(|l| l.json.clone()).collect();
    verdict.same("what the command read are the alarms", &alarms, &lines);
    verdict.end();
}

/// OpenMetrics over HTTP.
pub fn metrics() {
    let mut verdict = Verdict::default();
    let (watch, _wires, mut load) = burst_watch(&["--metrics", "127.0.0.1:39131"]);
    bursts(&mut load, 5);
    let mut stream = TcpStream::connect("127.0.0.1:39131").expect("connect");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
        .write_all(
            b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\
              Connection: close\r\n\r\n",
        )
        .expect("request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    verdict.same("status", true, head.starts_with("HTTP/1.1 200"));
    let kind = head.to_lowercase().contains("application/openmetrics-text");
    verdict.same("content type", true, kind);
    verdict.same("ends as OpenMetrics does", true, body.ends_with("# EOF\n"));
    let value = |wanted: &[&str]| -> Option<f64> {
        let line = body
            .lines()
            .find(|line| !line.starts_with('#') && wanted.iter().all(|part| line.contains(part)))?;
        line.rsplit(' ').next()?.parse().ok()
    };
    let network = "resource=\"network\"";
    verdict.same("alarms", Some(3.0), value(&["alarms_total", network]));
    verdict.same(
        "suppressed",
        Some(2.0),
        value(&["suppressed_total", network]),
    );
    println!("{body}");
    watch.end();
    verdict.end();
}

/// The program under test reports, too.
pub fn application() {
    let mut verdict = Verdict::default();
    let (watch, _wires, _load) = burst_watch(&["--stop-after", "3"]);
    let socket = watch.socket.display().to_string();
    let mut command = Command::new(emud_path());
    command.args([
        "alarm",
        "receiver jitter",
        "--value",
        "12ms",
        "--threshold",
        "10ms",
    ]);
    let before = clock::now();
    run(command.args(["--socket", &socket])).expect(0);
    let alarm = watch.alarm(0, "application", PATIENCE).expect("an alarm");
    let after = clock::now();
    verdict.same("name", "receiver jitter", alarm.text("/scope/name"));
    verdict.same("value", 12_000_000, alarm.number("/value"));
    verdict.same("threshold", 10_000_000, alarm.number("/threshold"));
    verdict.same("unit", "ns", alarm.text("/unit"));
    verdict.same(
        "on the same clock",
        true,
        (before..=after).contains(&alarm.mono_ns()),
    );

    // A program in any language: one line.
    let mark = watch.mark();
    tell(
        &watch,
        r#"{"name":"frame rate","value":"41ms","threshold":"40ms"}"#,
    );
    let alarm = watch
        .alarm(mark, "application", PATIENCE)
        .expect("an alarm");
    verdict.same("name", "frame rate", alarm.text("/scope/name"));
    // Invalid input is rejected and stops nothing.
    tell(&watch, "no JSON at all");
    let mark = watch.mark();
    run(Command::new(emud_path()).args(["alarm", "third", "--socket", &socket])).expect(0);
    verdict.same(
        "a third",
        true,
        watch.alarm(mark, "application", PATIENCE).is_some(),
    );
    let ended = watch.wait(PATIENCE);
    verdict.same("alarms", 3, ended.end().number("/alarms/application"));
    verdict.same("verdict", "contended", ended.verdict_on("application"));
    verdict.same("exit code", SEEN, ended.code);
    // Without a monitor: a failure, not silence.
    let alone = run(Command::new(emud_path()).args(["alarm", "x", "--socket", &socket]));
    verdict.same("without a monitor it fails", true, alone.code >= 64);
    verdict.end();
}

fn tell(watch: &Watch, line: &str) {
    if let Ok(mut stream) = UnixStream::connect(&watch.socket) {
        writeln!(stream, "{line}").expect("send to the monitor");
        return;
    }
    let socket = UnixDatagram::unbound().expect("a socket");
    socket
        .send_to(line.as_bytes(), &watch.socket)
        .expect("send to the monitor");
}

/// A kernel that rejects a hook makes a resource unknown. Here the test rejects all hooks from the
/// n-th on.
pub fn unknown_is_not_clean() {
    let mut verdict = Verdict::default();
    let mut seen = [0, 0];
    for &allowed in cases(&[4, 0, 1, 2, 3, 5, 6]) {
        let what = format!("{allowed} hooks");
        let refusal = Refusal::new(allowed);
        let watch = Watch::spawn(refusal.command(), &["--duration", "200ms"]);
        refusal.serve(watch.pid());
        let ended = watch.wait(PATIENCE);
        if ended.of("end").is_empty() {
            let lines = ended.lines.iter().map(|line| line.json.to_string());
            let said: String = lines.collect();
            verdict.same(&format!("{what}: exit code"), 69, ended.code);
            verdict.same(
                &format!("{what}: says clean"),
                false,
                said.contains("clean"),
            );
            verdict.same(
                &format!("{what}: says why"),
                true,
                ended.err.contains("rejected"),
            );
            continue;
        }
        let (begin, end) = (&ended.lines[0], ended.end());
        println!(
            "    {what}: {} {}",
            begin.json["watched"], end.json["resources"]
        );
        for resource in RESOURCES {
            let unknown = begin.text(&format!("/watched/{resource}")) == "unknown";
            seen[usize::from(unknown)] += 1;
            let verdict_on = ended.verdict_on(resource);
            if unknown != (verdict_on == "unknown") {
                verdict.same(&format!("{what}: {resource} is unknown"), unknown, !unknown);
            }
            let named = begin.json["hooks"]
                .as_array()
                .expect("hooks")
                .iter()
                .any(|hook| {
                    let criterion = hook["criterion"].as_str().unwrap_or_default();
                    [resource, "tick"]
                        .iter()
                        .any(|what| criterion.starts_with(what))
                        && hook["refused"].is_string()
                });
            if unknown && !(named && ended.err.contains(resource)) {
                verdict.same(
                    &format!("{what}: says why {resource} is unknown"),
                    true,
                    false,
                );
            }
        }
    }
    verdict.at_least("unknown resources", 1.0, f64::from(seen[1]));
    verdict.at_least("watched resources beside", 1.0, f64::from(seen[0]));
    verdict.end();
}

/// Like logrotate: the file is moved, SIGHUP arrives, and the next line is in a new file.
pub fn rotated() {
    let mut verdict = Verdict::default();
    let scratch = Scratch::new();
    let (log, old) = (scratch.join("run.log"), scratch.join("run.log.1"));
    std::fs::write(&log, "before\n").expect("a log");
    let (watch, _wires, _load) = burst_watch(&["--log", log.to_str().expect("a path")]);
    let socket = watch.socket.display().to_string();
    let alarm = |name: &str| {
        run(Command::new(emud_path()).args(["alarm", name, "--socket", &socket])).expect(0);
    };
    let has = |what: &str, path: &Path, text: &str| {
        let has = || std::fs::read_to_string(path).is_ok_and(|log| log.contains(text));
        wait_until(what, PATIENCE, has);
    };
    alarm("first");
    has("first in the log", &log, "\"first\"");
    std::fs::rename(&log, &old).expect("moved");
    watch.signal(libc::SIGHUP);
    wait_until("a new file", PATIENCE, || log.exists());
    alarm("second");
    has("second in the new one", &log, "\"second\"");
    let ended = watch.end();
    verdict.same("exit code", SEEN, ended.code);
    let [new, old] = [log, old].map(|path| std::fs::read_to_string(path).expect("a log"));
    verdict.same("what was there", true, old.starts_with("before\n"));
    verdict.same("second in the old one", false, old.contains("\"second\""));
    verdict.same("the end", true, new.contains("\"type\":\"end\""));
    verdict.end();
}

/// Every event is counted; the kernel times them for this monitor only while that has the
/// descriptor for it.
pub fn timed_for_moments() {
    let mut verdict = Verdict::default();
    let watch = Watch::alone(&[]);
    let descriptors = format!("/proc/{}/fd", watch.pid());
    let timing = || {
        let open = std::fs::read_dir(&descriptors).expect("its descriptors");
        let what = |fd: std::fs::DirEntry| std::fs::read_link(fd.path()).unwrap_or_default();
        open.flatten()
            .any(|fd| what(fd).ends_with("anon_inode:bpf-stats"))
    };
    wait_until("the end of a moment", PATIENCE, || !timing());
    let moments = (0..100).map(|_| {
        // Each is two switches.
        (0..10).for_each(|_| sleep(Duration::from_millis(1)));
        usize::from(timing())
    });
    verdict.same(
        "the time of few is taken",
        true,
        moments.sum::<usize>() < 50,
    );
    let ended = watch.end();
    let costs = ended.end().json["costs"].as_array().expect("costs");
    let switch = costs.iter().find(|cost| cost["program"] == "emud_switch");
    let switch = switch.expect("emud_switch");
    let of = |key: &str| switch[key].as_u64().expect("a number");
    verdict.same("some are timed", true, of("timed") > 0);
    let few = of("timed") < of("events") / 2;
    println!("    {} of {} events timed", of("timed"), of("events"));
    verdict.same("most are only counted", true, few);
    let all = switch["ns_per_event"].as_f64().expect("a mean") * of("events") as f64;
    let off = (all as u64).abs_diff(of("run_time_ns"));
    verdict.same("all by their mean", true, off <= of("events"));
    verdict.end();
}
