// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines, against the schema and against the events.

use std::time::{Duration, Instant};

use emud::monitor::session::{Stop, Until};
use emud_monitor::config::{Class, Config, Psi};
use emud_monitor::criteria::Steal;
use emud_monitor::event::{Dropped, Resource, Scope, TAMPERED, Unit};
use emud_monitor::log::{EndReason, Verdict};
use serde_json::{Value, json};

use super::kinds::kinds;
use super::run::{Wanted, alarm, clear, cpu, run};
use support::validator::{assert_valid_log as assert_valid, log_mistakes as mistakes, spoilt};

fn scopes() -> Vec<(Resource, Scope, Unit)> {
    let link = |failure| Scope::Link {
        failure,
        what: (failure == TAMPERED).then(|| "qdisc clsact was deleted".to_owned()),
        name: "eth0".into(),
        ifindex: 2,
        netns: 4_026_531_840,
    };
    let paging = |direction| Scope::Paging { direction };
    let device = Scope::Device {
        name: "eth0".into(),
        ifindex: 2,
        netns: 4_026_531_840,
    };
    let disk = Scope::Disk {
        name: "sda".into(),
        major: 8,
        minor: 0,
    };
    vec![
        (Resource::Cpu, Scope::Cpu { cpu: 0 }, Unit::Ns),
        (
            Resource::Network,
            Scope::Class { class: "internal" },
            Unit::Bytes,
        ),
        (Resource::Network, device, Unit::Bytes),
        (Resource::Memory, paging("page-in"), Unit::Pages),
        (Resource::Memory, paging("page-out"), Unit::Pages),
        (Resource::Disk, disk, Unit::Ns),
        (Resource::Emulator, link("late"), Unit::Ns),
        (Resource::Emulator, link("dropped"), Unit::Packets),
        (Resource::Emulator, link(TAMPERED), Unit::None),
        (Resource::Steal, Scope::Cpu { cpu: 0 }, Unit::Ns),
        (Resource::Cpu, Scope::Psi { of: "cpu" }, Unit::Ns),
    ]
}

fn full_config() -> Config {
    let mut config = Config {
        steal: Some(Steal::default()),
        psi: Some(Psi {
            stall: Duration::from_millis(150),
            window: Duration::from_secs(2),
        }),
        ..Config::default()
    };
    let network = config.network.as_mut().unwrap();
    network.classes.insert("eth1".into(), Class::Ignored);
    network.devices.insert("eth0".into(), 900_000_000);
    let window = Duration::from_millis(50);
    network.device_windows.insert("eth0".into(), window);
    let disk = config.disk.as_mut().unwrap();
    disk.devices.insert("sda".into(), None);
    disk.devices
        .insert("sdb".into(), Some(Duration::from_millis(50)));
    config
}

/// One line of every type, an alarm and a clear of every scope.
fn every_line() -> Vec<Value> {
    let mut running = run(Wanted {
        config: full_config(),
        emulated: true,
        ..Wanted::default()
    });
    for (episode, (resource, scope, unit)) in scopes().into_iter().enumerate() {
        let alarm = alarm(episode as u64, resource, scope, unit);
        let clear = clear(&alarm);
        running.feed(alarm);
        running.feed(clear);
    }
    let mut dropped = Dropped {
        ring_full: 2,
        ..Dropped::default()
    };
    dropped.suppressed[Resource::Network as usize] = 3;
    *running.kernel.dropped.lock().unwrap() = dropped;
    let mut lines = vec![];
    while lines
        .last()
        .is_none_or(|line: &Value| line["type"] != "drops")
    {
        lines.push(running.line());
    }
    running.stop();
    lines.extend(running.rest());
    running.finish();
    lines
}

#[test]
fn every_line_is_as_described() {
    let lines = every_line();
    assert_valid(&lines);
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).count();
    let counts = ["start", "hooks", "alarm", "clear", "drops", "end"].map(of);
    assert_eq!(counts, [1, 1, scopes().len(), scopes().len(), 1, 1]);
    let network = &lines[0]["config"]["network"];
    assert_eq!(network["device_bytes"], json!({"eth0": 5_625_000}));
    assert_eq!(network["device_window_ns"], json!({"eth0": 50_000_000}));
    assert_eq!(network["class"], json!({"eth1": "ignored"}));
    let disk = json!({"sda": null, "sdb": 50_000_000});
    assert_eq!(lines[0]["config"]["disk"]["device_theta_ns"], disk);
}

#[test]
fn a_short_run_is_as_described() {
    let mut running = run(Wanted {
        config: Config {
            cpu: None,
            network: None,
            memory: None,
            disk: None,
            emulator: None,
            ..Config::default()
        },
        ..Wanted::default()
    });
    let start = running.line();
    running.events = None;
    let mut lines = vec![start];
    lines.extend(running.rest());
    assert_valid(&lines);
    let end = lines.last().unwrap();
    assert_eq!(end["reason"], "error");
    assert_eq!(end["error"], "the monitor's object has no event");
    // The time without detection is unknown.
    assert_eq!(end["resources"]["cpu"], "unknown");
    assert!(matches!(running.finish().stop, Stop::Monitor(_)));
}

/// A schema that accepts anything would pass all of the above.
#[test]
fn the_schema_refuses_what_is_not_described() {
    let mut wrong = vec![];
    for line in every_line().into_iter().chain(kinds()) {
        let by_name = [
            "class",
            "device_bytes",
            "device_theta_ns",
            "device_window_ns",
        ];
        let spoilt = spoilt(&line, "", &by_name).into_iter();
        // Without its type the definition of a line is unknown.
        let known = spoilt.filter(|(what, _)| {
            !["/type of another type", " without type", " of another type"].contains(&&**what)
        });
        wrong.extend(known);
    }
    assert!(wrong.len() > 1000, "{}", wrong.len());
    let (what, wrong): (Vec<_>, Vec<_>) = wrong.into_iter().unzip();
    for ((what, line), mistake) in what.iter().zip(&wrong).zip(mistakes(&wrong)) {
        assert_ne!(mistake, "", "{what}: {line:#}");
    }
}

#[test]
fn episodes_are_numbered_through() {
    let mut running = run(Wanted::default());
    running.line();
    let (first, second) = (cpu(70), cpu(3));
    let ends = [clear(&second), clear(&first)];
    running.feed(first);
    running.feed(second);
    ends.into_iter().for_each(|end| running.feed(end));
    let lines: Vec<Value> = (0..4).map(|_| running.line()).collect();
    let episodes: Vec<u64> = lines
        .iter()
        .map(|l| l["episode"].as_u64().unwrap())
        .collect();
    assert_eq!(episodes, [1, 2, 2, 1]);
    // From 10 ms before the alarm until 4 ms after it.
    assert_eq!(lines[3]["duration_ns"], 14_000_000);
    running.stop();
    running.finish();
}

#[test]
fn what_is_dropped_is_said_once_a_second_and_only_when_it_grows() {
    let mut running = run(Wanted::default());
    running.line();
    let begin = Instant::now();
    running.kernel.dropped.lock().unwrap().suppressed[0] = 9;
    let drops = running.line();
    assert_eq!(
        (&drops["type"], &drops["suppressed"]["cpu"]),
        (&json!("drops"), &json!(9))
    );
    std::thread::sleep(Duration::from_millis(2500).saturating_sub(begin.elapsed()));
    running.stop();
    let rest = running.rest();
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["resources"]["cpu"], "contended");
    assert!(running.finish().contended());
}

#[test]
fn a_run_ends_after_alarms_or_a_time() {
    let until = Until {
        alarms: Some(2),
        duration: None,
    };
    let mut running = run(Wanted {
        until,
        ..Wanted::default()
    });
    (1..=3).for_each(|episode| running.feed(cpu(episode)));
    let lines = running.rest();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[3]["reason"], "stop-after");
    assert_eq!(lines[3]["alarms"]["cpu"], 2);
    assert!(running.finish().contended());

    let until = Until {
        alarms: None,
        duration: Some(Duration::from_millis(100)),
    };
    let mut running = run(Wanted {
        until,
        ..Wanted::default()
    });
    let lines = running.rest();
    assert_eq!(lines[1]["reason"], "duration");
    let ns = lines[1]["duration_ns"].as_u64().unwrap();
    assert!(ns >= 100_000_000, "{ns}");
    let finished = running.finish();
    assert!(!finished.contended());
    assert_eq!(finished.verdicts[&Resource::Cpu], Verdict::Clean);
    assert_eq!(finished.verdicts[&Resource::Memory], Verdict::Unknown);
    assert_eq!(finished.verdicts[&Resource::Disk], Verdict::NotWatched);
}

#[test]
fn what_was_noticed_before_the_end_is_written() {
    let mut running = run(Wanted::default());
    running.line();
    (1..=100).for_each(|episode| running.feed(cpu(episode)));
    running.stop();
    let lines = running.rest();
    assert_eq!(lines.len(), 101);
    assert_eq!(lines[100]["alarms"]["cpu"], 100);
    running.finish();
}

#[test]
fn a_reader_that_goes_ends_the_run_quietly() {
    let path = std::env::temp_dir().join(format!("emud-log-beside-{}", std::process::id()));
    let mut running = run(Wanted {
        beside: Some(path.clone()),
        ..Wanted::default()
    });
    running.line();
    running.out = None;
    let finished = running.finish();
    assert!(matches!(finished.stop, Stop::Over(EndReason::OutputClosed)));
    let lines = std::fs::read_to_string(&path).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["reason"], "output-closed");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn people_read_a_line_an_alarm_and_a_summary() {
    let mut running = run(Wanted {
        text: true,
        ..Wanted::default()
    });
    running.feed(cpu(1));
    let mut text = String::new();
    while !text.contains("#1") {
        text += &running.text();
    }
    assert!(text.contains("memory CANNOT BE WATCHED"), "{text}");
    assert!(text.contains("fentry/swap_read_folio: EPERM"), "{text}");
    assert!(text.contains("CPU 1 without idle: 7 ns (threshold 5 ns); 75 % /a, 25 % others"));
    running.stop();
    let mut summary = String::new();
    let mut out = running.out.take().unwrap();
    std::io::Read::read_to_string(&mut out, &mut summary).unwrap();
    assert!(
        summary.contains("cpu         CONTENDED, 1 alarm\n"),
        "{summary}"
    );
    assert!(summary.contains("network     clean\n"), "{summary}");
    assert!(summary.contains("memory      UNKNOWN\n"), "{summary}");
    assert!(!summary.contains("disk"), "{summary}");
    assert!(summary.contains("1000 events, 100 ns each"), "{summary}");
    running.finish();
}
