// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs like those of `emud run`, generated from the types of its lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use emud::histogram::number;
use emud_monitor::log::{
    AskedFor, BusiestCpu, ClassCounted, ClassSample, Clock, Counted, CpuSample, DelaySample,
    DiskSample, ExitLine, HostSample, Judgement, LinkEvent, LinkLine, MemorySample, OutputLine,
    OutputStream, PhaseLine, PhaseName, Run, RunLink, RunMedium, RunNode, RunStation, RunVerdict,
    Sample, Span, SpanShare, StationCounted, StationSample, SwapSample,
};
use serde::Serialize;
use serde_json::{Value, json};

pub const SECOND: u64 = 1_000_000_000;
/// CLOCK_MONOTONIC at the first line; the measured phase begins two seconds later.
pub const START: u64 = 5_000 * SECOND;
pub const MEASURED: u64 = START + 2 * SECOND;

/// A file that is deleted with the value.
pub struct LogFile(pub PathBuf);

impl Drop for LogFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl LogFile {
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

/// The lines so far.
#[derive(Clone)]
pub struct Log {
    pub lines: Vec<String>,
    random: u64,
}

pub fn asked() -> AskedFor {
    AskedFor {
        rate_bit_s: Some(8_000_000),
        delay_ns: 20_000_000,
        jitter_ns: 2_000_000,
        loss: 0.01,
        varies: false,
    }
}

pub fn link(name: &str) -> RunLink {
    RunLink {
        name: name.to_owned(),
        node: "client".to_owned(),
        interface: "eth0".to_owned(),
        profile: "made-up".to_owned(),
        toml: "name = \"made-up\"\n[link]\nrate = \"8Mbit\"\n".to_owned(),
        reversed: false,
        engine: "hold".to_owned(),
        reason: "the kernel lacks sch_fq".to_owned(),
        seed: 7,
        up: Some(asked()),
        down: Some(asked()),
        classes: Vec::new(),
        notes: Vec::new(),
    }
}

pub fn about(seed: u64, links: &[&str]) -> Run {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    Run {
        mono_ns: START,
        argv: words("emud run --profile made-up --log run.log -- iperf3 -c 10.0.0.2"),
        cwd: "/root".to_owned(),
        name: "made-up".to_owned(),
        scenario: None,
        seed,
        repeat: 1,
        repeats: 1,
        in_place: None,
        user: None,
        sample_ns: Some(SECOND),
        nodes: vec![RunNode {
            name: "client".to_owned(),
            addresses: vec!["10.0.0.1/24".to_owned()],
            command: Some(words("iperf3 -c 10.0.0.2")),
            service: false,
        }],
        links: links.iter().copied().map(link).collect(),
        media: Vec::new(),
        notes: Vec::new(),
    }
}

impl Log {
    /// Starts a log with links of these names, up to the measured phase.
    pub fn new(seed: u64, links: &[&str]) -> Self {
        Self::of(about(seed, links))
    }

    pub fn of(about: Run) -> Self {
        let mut log = Self {
            lines: Vec::new(),
            random: about.seed,
        };
        let clock = json!({"realtime_minus_mono_ns": 0, "boottime_minus_mono_ns": 0});
        log.raw(
            "start",
            START,
            &json!({"mono_ns": START, "schema": "emud-log/2", "version": "0.1.0", "pid": 1,
                "host": {"kernel": "6.18.0", "cpus": 2, "hostname": "bench"}, "clock": clock,
                "notes": [], "to_be": "ignored"}),
        );
        log.raw("run", START, &about);
        log.phase(START, PhaseName::Preparation);
        for link in &about.links {
            log.link(START + SECOND, &link.name, LinkEvent::Attached);
        }
        log.phase(MEASURED, PhaseName::Measurement);
        log
    }

    pub fn raw(&mut self, kind: &str, mono_ns: u64, body: &impl Serialize) {
        #[derive(Serialize)]
        struct Stamped<'a, T> {
            r#type: &'a str,
            time: String,
            #[serde(flatten)]
            body: &'a T,
        }
        let clock = Clock {
            realtime_minus_mono_ns: 1_790_000_000_000_000_000,
            boottime_minus_mono_ns: 0,
        };
        let line = Stamped {
            r#type: kind,
            time: clock.time(mono_ns),
            body,
        };
        self.lines.push(serde_json::to_string(&line).unwrap());
    }

    pub fn phase(&mut self, mono_ns: u64, phase: PhaseName) {
        self.raw("phase", mono_ns, &PhaseLine { mono_ns, phase });
    }

    pub fn link(&mut self, mono_ns: u64, link: &str, event: LinkEvent) {
        let link = link.to_owned();
        let toml = None;
        self.raw(
            "link",
            mono_ns,
            &LinkLine {
                mono_ns,
                link,
                event,
                what: vec![],
                toml,
                phase: None,
            },
        );
    }

    pub fn output(&mut self, mono_ns: u64, text: &str) {
        let line = OutputLine {
            mono_ns,
            node: "client".to_owned(),
            stream: OutputStream::Stdout,
            text: text.to_owned(),
            partial: false,
        };
        self.raw("output", mono_ns, &line);
    }

    /// From 0 to 1, the same for the same seed.
    fn random(&mut self) -> f64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695);
        (self.random >> 33) as f64 / f64::from(1u32 << 31)
    }

    /// A second of a link whose load is about `load` of 8 Mbit/s, with a queue above 1.
    pub fn sample(&mut self, second: u64, link: &str, direction: &str, load: f64) {
        let packets = (660.0 * load * (0.9 + 0.2 * self.random())) as u64;
        let lost = (packets as f64 * 0.02 * self.random()) as u64;
        let dropped = packets.saturating_sub(680);
        let passed = packets - lost - dropped;
        let queue = if load > 1.0 { 60e6 } else { 0.0 };
        let mean = 20e6 + queue + 1e6 * self.random();
        self.raw_sample(&Sample {
            mono_ns: MEASURED + (second + 1) * SECOND,
            link: link.to_owned(),
            direction: direction.to_owned(),
            class: None,
            interval_ns: SECOND,
            counted: Counted {
                packets,
                bytes: packets * 1_514,
                passed_packets: passed,
                passed_bytes: passed * 1_514,
                lost,
                dropped,
                ..Counted::default()
            },
            backlog_bytes: Some((queue / 1e6) as u64 * 1_000),
            capacity_bit_s: None,
            delay: (passed > 0).then_some(DelaySample {
                mean_ns: mean as u64,
                buckets: vec![
                    [number(mean as u64), passed * 9 / 10],
                    [number(mean as u64 + 7_000_000), passed - passed * 9 / 10],
                ],
            }),
        });
    }

    pub fn raw_sample(&mut self, sample: &Sample) {
        self.raw("sample", sample.mono_ns, sample);
    }

    /// A second of a class of the bottleneck "uplink".
    pub fn class(&mut self, second: u64, class: &str, counted: ClassCounted) {
        let sample = ClassSample {
            mono_ns: MEASURED + (second + 1) * SECOND,
            link: "access".to_owned(),
            bottleneck: "uplink".to_owned(),
            class: Some(class.to_owned()),
            interval_ns: SECOND,
            counted,
            backlog_packets: second,
            backlog_bytes: 1_514 * second,
        };
        self.raw("class", sample.mono_ns, &sample);
    }

    /// A second of a station of the medium "wlan0", which draws 1.5 W; `neighbours`: if they have
    /// changed.
    pub fn station(
        &mut self,
        second: u64,
        station: usize,
        counted: StationCounted,
        at_m: [f64; 2],
        neighbours: Option<&[usize]>,
    ) {
        let node = |station: &usize| format!("n{}", station + 1);
        let sample = StationSample {
            mono_ns: MEASURED + (second + 1) * SECOND,
            medium: "wlan0".to_owned(),
            node: node(&station),
            interval_ns: SECOND,
            counted,
            backlog_packets: second,
            energy_j: Some(1.5),
            at_m,
            neighbours: neighbours.map(|all| all.iter().map(node).collect()),
        };
        self.raw("station", sample.mono_ns, &sample);
    }

    /// A second of a host whose CPUs are busy for this share of the time.
    pub fn host(&mut self, second: u64, busy: f64) {
        let disk = |name: &str, busy, written_bytes| DiskSample {
            name: name.to_owned(),
            busy: Some(busy),
            read_bytes: Some(0),
            written_bytes: Some(written_bytes),
        };
        let sample = HostSample {
            mono_ns: MEASURED + (second + 1) * SECOND,
            interval_ns: SECOND,
            cpu: Some(CpuSample {
                busy,
                user: busy,
                system: 0.0,
                steal: 0.0,
                iowait: None,
                busiest: Some(BusiestCpu { cpu: 1, busy: 1.0 }),
            }),
            memory: Some(MemorySample {
                total_bytes: 8_000_000_000,
                available_bytes: 5_000_000_000,
            }),
            swap: Some(SwapSample {
                in_bytes: 0,
                out_bytes: second * 4096,
            }),
            disks: Some(vec![
                disk("sda", busy / 2.0, 2_000_000),
                disk("dm-0", 0.1, 2_000_000),
            ]),
        };
        self.raw("host", sample.mono_ns, &sample);
    }

    /// Adds seconds of both directions of the links.
    pub fn seconds(&mut self, links: &[&str], seconds: u64) {
        for second in 0..seconds {
            for link in links {
                let slow = (second as f64 / 9.0).sin() * 0.2;
                self.sample(second, link, "up", 0.05);
                self.sample(second, link, "down", 0.95 + slow);
            }
        }
    }

    /// Adds an alarm of CPU 1, from and until ns after the measured phase began, mostly caused by
    /// this group.
    pub fn contention(&mut self, by: &str, from: u64, until: u64) -> Span {
        let episode = self.lines.len();
        let (since, until) = (MEASURED + from, MEASURED + until);
        let scope = json!({"kind": "cpu", "cpu": 1});
        let shares = json!([{"group": by, "share": 0.93}, {"group": "iperf3", "share": 0.04}]);
        let noticed = since + 20_000_000;
        self.raw(
            "alarm",
            noticed,
            &json!({"episode": episode, "mono_ns": noticed, "resource": "cpu", "scope": scope,
                "since_mono_ns": since, "value": 20_000_000, "threshold": 20_000_000, "unit": "ns",
                "hook": "tp_btf/sched_switch", "shares": shares, "rest": 0.03}),
        );
        self.raw(
            "clear",
            until,
            &json!({"episode": episode, "mono_ns": until, "resource": "cpu", "scope": scope,
                "since_mono_ns": since, "until_mono_ns": until, "hook": "tp_btf/sched_switch",
                "duration_ns": until - since}),
        );
        Span {
            resource: "cpu".to_owned(),
            what: "cpu 1".to_owned(),
            since_mono_ns: since,
            until_mono_ns: until,
            duration_ns: until - since,
            by: vec![SpanShare {
                group: by.to_owned(),
                share: 0.93,
            }],
        }
    }

    /// Ends the program of a node; without `code` by SIGTERM.
    pub fn exit(&mut self, at: u64, node: &str, code: Option<i32>, ended_by_emud: bool) {
        let line = ExitLine {
            mono_ns: at,
            node: node.to_owned(),
            phase: PhaseName::Measurement,
            command: vec!["iperf3".to_owned(), "-c".to_owned(), "10.0.0.2".to_owned()],
            started_mono_ns: MEASURED,
            code,
            signal: code.is_none().then_some(15),
            ended_by_emud,
        };
        self.raw("exit", at, &line);
    }

    /// Ends the program and the run; without `judgement` emud was killed before that.
    pub fn end(&mut self, seconds: u64, judgement: Option<&Judgement>) {
        let until = MEASURED + seconds * SECOND;
        self.exit(until, "client", Some(0), false);
        self.phase(until, PhaseName::CleanUp);
        let Some(judgement) = judgement else {
            return;
        };
        let mut end = json!({"mono_ns": until + SECOND, "reason": "duration", "error": null,
            "duration_ns": (seconds + 3) * SECOND, "lines_lost": 0,
            "resources": {"cpu": "clean", "network": "clean", "disk": "not watched"}});
        let Value::Object(more) = serde_json::to_value(judgement).unwrap() else {
            panic!("no object");
        };
        end.as_object_mut().unwrap().extend(more);
        self.raw("end", until + SECOND, &end);
    }

    pub fn write(&self) -> LogFile {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("report-page-{}-{number}.log", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, self.lines.join("\n") + "\n").unwrap();
        LogFile(path)
    }
}

/// Returns a log with this number of measured seconds.
pub fn judgement(verdict: RunVerdict, seconds: u64) -> Judgement {
    Judgement {
        verdict,
        contention: Vec::new(),
        contended_seconds: Vec::new(),
        invalid: Vec::new(),
        measured_mono_ns: Some([MEASURED, MEASURED + seconds * SECOND]),
        exit_code: 0,
    }
}

/// A minute behind one link.
pub fn clean(seed: u64) -> Log {
    let mut log = Log::new(seed, &["access"]);
    log.seconds(&["access"], 60);
    log.output(MEASURED + SECOND, "Connecting to host 10.0.0.2, port 5201");
    log.end(60, Some(&judgement(RunVerdict::Clean, 60)));
    log
}

/// The same with a hog, and a change of the link.
pub fn contended(seed: u64) -> Log {
    let mut log = Log::new(seed, &["access"]);
    log.seconds(&["access"], 60);
    let spans = vec![
        log.contention("stress-ng", 30 * SECOND, 38_250_000_000),
        log.contention("stress-ng", 51 * SECOND, 51_100_000_000),
    ];
    log.link(MEASURED + 45 * SECOND, "access", LinkEvent::Changed);
    log.end(
        60,
        Some(&Judgement {
            contention: spans,
            contended_seconds: (30..=38).chain([51]).collect(),
            exit_code: 3,
            ..judgement(RunVerdict::Contended, 60)
        }),
    );
    log
}

pub fn invalid(seed: u64) -> Log {
    let mut log = Log::new(seed, &["access"]);
    log.seconds(&["access"], 10);
    log.end(
        10,
        Some(&Judgement {
            invalid: vec!["17 packets left 3.2ms late at 4.1 s".to_owned()],
            exit_code: 4,
            ..judgement(RunVerdict::Invalid, 10)
        }),
    );
    log
}

/// Returns the log of a killed emud.
pub fn unfinished(seed: u64) -> Log {
    let mut log = Log::new(seed, &["access"]);
    log.seconds(&["access"], 10);
    log
}

pub fn names(n: usize) -> Vec<String> {
    (1..=n).map(|i| format!("peer{i}")).collect()
}

/// The first lines of a log of stations n1, n2 ... at these positions, of which those within 250 m are
/// neighbours.
pub fn on_air(positions: &[[f64; 2]]) -> Log {
    let near = |[x, y]: [f64; 2]| {
        let others = positions.iter().enumerate();
        let near = others.filter(move |(_, [a, b])| {
            let d = (a - x).hypot(b - y);
            d > 0.0 && d <= 250.0
        });
        near.map(|(n, _)| format!("n{}", n + 1)).collect()
    };
    let stations = (1..).zip(positions).map(|(n, at_m)| RunStation {
        node: format!("n{n}"),
        at_m: *at_m,
        moves: true,
        neighbours: near(*at_m),
    });
    Log::of(Run {
        media: vec![RunMedium {
            name: "wlan0".to_owned(),
            range_m: Some(250.0),
            sense_m: Some(550.0),
            stations: stations.collect(),
        }],
        ..about(3, &[])
    })
}

/// A star of peers in two classes.
pub fn star(n: usize) -> Log {
    let names = names(n);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut log = Log::new(11, &names);
    log.seconds(&names, 30);
    let spans = vec![log.contention("stress-ng", 9 * SECOND, 12 * SECOND)];
    log.end(
        30,
        Some(&Judgement {
            contention: spans,
            contended_seconds: (9..=11).collect(),
            ..judgement(RunVerdict::Contended, 30)
        }),
    );
    log
}
