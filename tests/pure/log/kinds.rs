// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines of an experiment's log only, against the schema.

use emud_monitor::log::{
    ArtefactLine, AskedFor, BusiestCpu, ClassCounted, ClassSample, Clock, Counted, CpuSample,
    DelaySample, DiskSample, ExitLine, HostSample, Line, LinkEvent, LinkLine, Lost, MemorySample,
    MetricLine, OutputLine, OutputStream, PhaseLine, PhaseName, Run, RunClass, RunLink, RunMedium,
    RunNode, RunStation, Sample, StationCounted, StationSample, SwapSample,
};
use serde_json::Value;

use support::validator::assert_valid_log as assert_valid;

fn run(full: bool) -> Run {
    let asked = AskedFor {
        rate_bit_s: full.then_some(100_000_000),
        delay_ns: 20_000_000,
        jitter_ns: 0,
        loss: 0.01,
        varies: false,
    };
    let link = RunLink {
        name: "link".into(),
        node: "node".into(),
        interface: "eth0".into(),
        profile: "lte".into(),
        toml: "name = \"lte\"".into(),
        reversed: false,
        engine: "hold".into(),
        reason: "the kernel has no fq".into(),
        seed: u64::MAX,
        up: Some(asked),
        down: full.then_some(asked),
        classes: vec![RunClass {
            name: "bulk".into(),
            up: Some(asked),
            down: full.then_some(asked),
        }],
        notes: vec!["a note".into()],
    };
    Run {
        mono_ns: 7,
        argv: vec!["emud".into(), "run".into()],
        cwd: "/".into(),
        name: "lte".into(),
        scenario: full.then(|| "[node.a]".into()),
        seed: 1,
        repeat: 1,
        repeats: 20,
        in_place: full.then(|| "eth0".into()),
        user: full.then(|| "alice".into()),
        sample_ns: full.then_some(1_000_000_000),
        nodes: vec![RunNode {
            name: "node".into(),
            addresses: vec!["10.0.0.1/30".into()],
            command: full.then(|| vec!["ping".into()]),
            service: false,
        }],
        links: vec![link],
        media: vec![RunMedium {
            name: "wlan0".into(),
            range_m: Some(250.0),
            sense_m: None,
            stations: vec![RunStation {
                node: "node".into(),
                at_m: [0.0, -1.5],
                moves: full,
                neighbours: vec!["other".into()],
            }],
        }],
        notes: vec![],
    }
}

fn sample(full: bool) -> Sample {
    let delay = DelaySample {
        mean_ns: 20_000_000,
        buckets: vec![[179, 99]],
    };
    Sample {
        mono_ns: 7,
        link: "link".into(),
        direction: "up".into(),
        class: full.then(|| "mobile".into()),
        interval_ns: 1_000_000_000,
        counted: Counted {
            packets: 100,
            bytes: 150_000,
            passed_packets: 99,
            passed_bytes: 148_500,
            lost: 1,
            ..Counted::default()
        },
        backlog_bytes: full.then_some(3000),
        capacity_bit_s: full.then_some(8_000_000),
        delay: full.then_some(delay),
    }
}

fn host(full: bool) -> HostSample {
    let cpu = CpuSample {
        busy: 0.4,
        user: 0.25,
        system: 0.1,
        steal: 0.05,
        iowait: Some(0.125),
        busiest: Some(BusiestCpu { cpu: 1, busy: 1.0 }),
    };
    let disk = DiskSample {
        name: "vda".into(),
        busy: Some(1.0),
        read_bytes: Some(4096),
        written_bytes: None,
    };
    HostSample {
        mono_ns: 7,
        interval_ns: 1_000_000_000,
        cpu: full.then_some(cpu),
        memory: full.then_some(MemorySample {
            total_bytes: 8 << 30,
            available_bytes: 3 << 30,
        }),
        swap: full.then_some(SwapSample {
            in_bytes: 4096,
            out_bytes: 0,
        }),
        disks: full.then(|| vec![disk]),
    }
}

fn exit(code: Option<i32>, signal: Option<i32>) -> ExitLine {
    ExitLine {
        mono_ns: 7,
        node: "node".into(),
        phase: PhaseName::Measurement,
        command: vec!["ping".into()],
        started_mono_ns: 3,
        code,
        signal,
        ended_by_emud: signal.is_some(),
    }
}

fn artefact(error: Option<&str>) -> ArtefactLine {
    ArtefactLine {
        mono_ns: 7,
        node: "node".into(),
        path: "/tmp/pcap".into(),
        stored: error.is_none().then(|| "run-artefacts/node/pcap".into()),
        bytes: 9,
        error: error.map(Into::into),
    }
}

/// One line of every type, with and without optional values.
pub fn kinds() -> Vec<Value> {
    let phases = [
        PhaseName::Preparation,
        PhaseName::Measurement,
        PhaseName::CleanUp,
    ];
    let events = [
        LinkEvent::Attached,
        LinkEvent::Changed,
        LinkEvent::Tampered,
        LinkEvent::Detached,
    ];
    let streams = [
        OutputStream::Stdout,
        OutputStream::Stderr,
        OutputStream::Terminal,
    ];
    let mono_ns = 7;
    let mut lines = vec![
        Line::Exit(exit(Some(1), None)),
        Line::Exit(exit(None, Some(15))),
        Line::Artefact(artefact(None)),
        Line::Artefact(artefact(Some("no such file"))),
        Line::Metric(MetricLine {
            mono_ns,
            name: "page load".into(),
            value: 1.5,
            unit: Some("s".into()),
        }),
        Line::Metric(MetricLine {
            mono_ns,
            name: "stalls".into(),
            value: -3.0,
            unit: None,
        }),
        Line::Lost(Lost {
            mono_ns,
            output_lines: 5,
            samples: 0,
        }),
    ];
    for full in [true, false] {
        lines.push(Line::Run(run(full).into()));
        lines.push(Line::Sample(sample(full).into()));
        lines.push(Line::Class(Box::new(ClassSample {
            mono_ns,
            link: "link".into(),
            bottleneck: "uplink".into(),
            class: full.then(|| "voice".into()),
            interval_ns: 1_000_000_000,
            counted: ClassCounted {
                sent_packets: 9,
                ..ClassCounted::default()
            },
            backlog_packets: 1,
            backlog_bytes: 1514,
        })));
        lines.push(Line::Station(Box::new(StationSample {
            mono_ns,
            medium: "wlan0".into(),
            node: "node".into(),
            interval_ns: 1_000_000_000,
            counted: StationCounted {
                attempts: 3,
                ..StationCounted::default()
            },
            backlog_packets: 1,
            energy_j: full.then_some(1.5),
            at_m: [1.0, 2.0],
            neighbours: full.then(|| vec!["other".into()]),
        })));
        lines.push(Line::Host(Box::new(host(full))));
    }
    lines.extend(phases.map(|phase| Line::Phase(PhaseLine { mono_ns, phase })));
    lines.extend(events.map(|event| {
        Line::Link(LinkLine {
            mono_ns,
            link: "link".into(),
            event,
            what: match event {
                LinkEvent::Tampered => vec!["qdisc clsact was deleted".into()],
                _ => vec![],
            },
            toml: (event == LinkEvent::Changed).then(|| "name = \"lte\"".into()),
            phase: (event == LinkEvent::Changed).then(|| "2 outage".into()),
        })
    }));
    lines.extend(streams.map(|stream| {
        Line::Output(OutputLine {
            mono_ns,
            node: "node".into(),
            stream,
            text: "64 bytes from \u{fffd}".into(),
            partial: false,
        })
    }));
    let clock = Clock::now();
    let json = |line: &Line| serde_json::from_str(&line.json(&clock).unwrap()).unwrap();
    lines.iter().map(json).collect()
}

#[test]
fn every_line_of_an_experiment_is_as_described() {
    let lines = kinds();
    assert_eq!(lines.len(), 27);
    assert_valid(&lines);
}

/// Logs of before have fewer counts of stations.
#[test]
fn a_station_of_before_is_read() {
    let counted = StationCounted {
        attempts: 3,
        ..StationCounted::default()
    };
    let mut line = serde_json::to_value(counted).unwrap();
    for key in [
        "retried",
        "internal_collisions",
        "data_frames",
        "data_kbit_s",
    ] {
        line.as_object_mut().unwrap().remove(key).unwrap();
    }
    let read: StationCounted = serde_json::from_value(line).unwrap();
    assert_eq!((read, read.data_bit_s()), (counted, None));
}
