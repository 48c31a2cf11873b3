// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control socket and the metrics.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use emud::monitor::session::{ObserveError, SideParts, client};
use serde_json::{Value, json};

use super::run::{Running, Wanted, cpu, run};
use support::validator::assert_valid_log as assert_valid;

/// An observation with a separate socket.
struct Served {
    running: Running,
    path: PathBuf,
}

impl Served {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("emud-socket-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut running = run(Wanted {
            parts: SideParts {
                control: Some(UnixListener::bind(&path).unwrap()),
                ..SideParts::default()
            },
            ..Wanted::default()
        });
        running.line();
        Self { running, path }
    }

    fn client(&self) -> Client {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Client(BufReader::new(stream))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
    }
}

struct Client(BufReader<UnixStream>);

impl Client {
    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    fn ask(&mut self, line: &str) -> Value {
        self.send(line.as_bytes());
        self.send(b"\n");
        self.answer()
    }
}

#[test]
fn a_report_is_a_line_when_it_is_answered() {
    let mut served = Served::new();
    let mut client = served.client();
    let report = r#"{"name":"receiver jitter","value":"12ms","threshold":"10ms"}"#;
    assert_eq!(client.ask(report), json!({"ok": true}));
    let late = r#"{"type":"emulator","failure":"late","name":"eth0","ifindex":2,"netns":7,
        "value":3000000,"threshold":1000000,"since_mono_ns":500}"#;
    // Below the threshold of this monitor it is not late.
    for value in ["500000", "3000000"] {
        let late = late.replace('\n', " ").replace("3000000", value);
        assert_eq!(client.ask(&late), json!({"ok": true}));
    }
    let lines = [served.running.line(), served.running.line()];
    assert_valid(&lines);
    assert_eq!(lines[0]["resource"], "application");
    assert_eq!(lines[0]["scope"]["name"], "receiver jitter");
    assert_eq!(
        (&lines[0]["value"], &lines[0]["unit"]),
        (&json!(12_000_000), &json!("ns"))
    );
    assert_eq!(lines[1]["resource"], "emulator");
    assert_eq!(lines[1]["value"], 3_000_000);
    served.running.stop();
}

#[test]
fn who_sends_and_goes_is_heard() {
    let mut served = Served::new();
    served
        .client()
        .send(b"{\"name\":\"a\"}\n{}\n{\"name\":\"b\"}\n");
    let names = [served.running.line(), served.running.line()];
    assert_eq!(names.map(|line| line["scope"]["name"].clone()), ["a", "b"]);
    served.running.stop();
}

#[test]
fn the_limit_holds_for_reports_until_a_reset() {
    let mut served = Served::new();
    let mut client = served.client();
    let report = |client: &mut Client| client.ask(r#"{"name":"x"}"#);
    (0..5).for_each(|_| assert_eq!(report(&mut client), json!({"ok": true})));
    assert_eq!(client.ask(r#"{"type":"reset"}"#), json!({"ok": true}));
    assert_eq!(served.running.kernel.resets.load(Ordering::Relaxed), 1);
    report(&mut client);
    served.running.stop();
    let lines = served.running.rest();
    let alarms = lines.iter().filter(|line| line["type"] == "alarm").count();
    assert_eq!(alarms, 4);
    assert_eq!(lines.last().unwrap()["suppressed"]["application"], 2);
}

#[test]
fn what_is_malformed_is_answered_and_does_no_harm() {
    let mut served = Served::new();
    let mut client = served.client();
    for line in [
        "{",
        "[]",
        "{}",
        r#"{"name":"x","value":"7parsecs"}"#,
        "\u{0}\u{1}",
    ] {
        let answer = client.ask(line);
        assert!(answer["error"].is_string(), "{line}: {answer}");
    }
    client.send(&[0xff, 0xfe, b'\n']);
    assert!(client.answer()["error"].is_string());
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(1 << 20));
    let answer = client.ask(&long);
    assert_eq!(answer["error"], "a line is longer than 4096 bytes");
    client.send(b"\n \n");
    assert_eq!(client.ask(r#"{"name":"good"}"#), json!({"ok": true}));
    assert_eq!(served.running.line()["scope"]["name"], "good");
    // A last line without a line feed counts, too.
    client.send(br#"{"name":"last"}"#);
    client
        .0
        .get_mut()
        .shutdown(std::net::Shutdown::Write)
        .unwrap();
    assert_eq!(client.answer(), json!({"ok": true}));
    served.running.stop();
}

#[test]
fn many_and_slow_clients_keep_nobody_from_an_alarm() {
    let mut served = Served::new();
    let slow: Vec<Client> = (0..60)
        .map(|_| {
            let mut client = served.client();
            client.send(b"{\"name\":");
            client
        })
        .collect();
    // Sends requests continuously and never reads an answer.
    let mut deaf = UnixStream::connect(&served.path).unwrap();
    deaf.set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let full = (0..100_000)
        .map(|_| deaf.write_all(b"{}\n"))
        .any(|sent| sent.is_err());
    assert!(full, "nobody may send without end");
    let begin = Instant::now();
    served.running.feed(cpu(1));
    assert_eq!(served.running.line()["resource"], "cpu");
    assert_eq!(served.client().ask(r#"{"name":"x"}"#), json!({"ok": true}));
    assert_eq!(served.running.line()["resource"], "application");
    // A connection that blocks others does so for its time limit of 1 s, and 60 of them for a
    // minute.
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
    drop(slow);
    served.running.stop();
}

/// A holder and the search report the same; the number of a namespace is used again at once.
#[test]
fn a_change_of_a_link_is_one_alarm_and_that_of_another_link_another() {
    let mut served = Served::new();
    let mut holder = served.client();
    for name in ["va", "va", "link0", "va"] {
        let report = json!({
            "type": "emulator", "failure": "tampered", "what": "moved", "name": name, "ifindex": 2,
            "netns": 7, "value": 1, "threshold": 1, "since_mono_ns": 1, "mono_ns": 1,
        });
        assert_eq!(holder.ask(&report.to_string()), json!({"ok": true}));
    }
    served.running.stop();
    let alarms = served.running.rest();
    let alarms = alarms.iter().filter(|line| line["type"] == "alarm");
    let names: Vec<_> = alarms.map(|line| line["scope"]["name"].clone()).collect();
    assert_eq!(names, ["va", "link0", "va"]);
}

/// As when a stall makes all holders of a host report at once.
/// The kernel takes nearly any name for an interface, from root of a container, too.
#[test]
fn no_name_silences_the_reports_about_a_link() {
    let mut served = Served::new();
    let mut holder = served.client();
    let report = json!({
        "type": "emulator", "failure": "tampered", "what": "e\u{1b}[2J was deleted", "name": "e\u{1}",
        "ifindex": 2, "netns": 7, "value": 1, "threshold": 1, "since_mono_ns": 1, "mono_ns": 1,
    });
    assert_eq!(holder.ask(&report.to_string()), json!({"ok": true}));
    let scope = &served.running.line()["scope"];
    assert_eq!(
        (&scope["name"], &scope["what"]),
        (&json!("e\\x01"), &json!("e\\x1b[2J was deleted"))
    );
    served.running.stop();
}

#[test]
fn no_report_of_many_is_lost() {
    const REPORTS: usize = 256;
    let mut served = Served::new();
    let mut holders: Vec<Client> = (0..REPORTS).map(|_| served.client()).collect();
    for holder in &mut holders {
        assert_eq!(holder.ask(r#"{"name":"x"}"#), json!({"ok": true}));
    }
    served.running.stop();
    let end = served.running.rest().pop().expect("the end");
    let counted = ["alarms", "suppressed"].map(|key| end[key]["application"].as_u64());
    assert_eq!(
        counted.map(Option::unwrap).iter().sum::<u64>(),
        REPORTS as u64
    );
}

#[test]
fn who_says_nothing_is_not_listened_to_for_ever() {
    let served = Served::new();
    let mut talker = served.client();
    assert!(talker.ask("{}")["error"].is_string());
    let silent = UnixStream::connect(&served.path).unwrap();
    silent
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // A call with a timeout is interrupted by every signal that a parallel test handles.
    let read = loop {
        match (&silent).read(&mut [0]) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            read => break read,
        }
    };
    assert_eq!(read.unwrap(), 0, "closed");
    // A client may be silent after its first report.
    assert_eq!(talker.ask(r#"{"name":"x"}"#), json!({"ok": true}));
}

#[test]
fn the_command_reaches_the_monitor_or_says_that_there_is_none() {
    let mut served = Served::new();
    let told = client::tell(Some(&served.path), &json!({"name": "x"})).unwrap();
    assert_eq!(told, 1);
    assert_eq!(served.running.line()["scope"]["name"], "x");
    let refused = client::tell(Some(&served.path), &json!({"name": ""})).unwrap_err();
    assert_eq!(refused.exit_code(), 64);
    served.running.stop();
    served.running.rest();
    let nowhere = served.path.with_extension("not");
    let none = client::tell(Some(&nowhere), &json!({"name": "x"})).unwrap_err();
    assert!(matches!(none, ObserveError::NoMonitor(_)));
    assert_eq!(none.exit_code(), 66);
}

fn get(address: std::net::SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let accept = "application/openmetrics-text";
    let text =
        format!("{request} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The counters of an observation, beside the families of links.
pub const MONITOR_COUNTERS: [&str; 7] = [
    "emud_alarms_total",
    "emud_alarms_suppressed_total",
    "emud_records_lost_total",
    "emud_skipped_events_total",
    "emud_bpf_events_total",
    "emud_bpf_timed_events_total",
    "emud_bpf_timed_seconds_total",
];

#[test]
fn metrics_are_openmetrics() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut running = run(Wanted {
        parts: SideParts {
            metrics: Some(listener),
            ..SideParts::default()
        },
        ..Wanted::default()
    });
    running.line();
    running.feed(cpu(1));
    running.line();
    let (head, body) = get(address, "GET /metrics");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert_openmetrics(&body);
    for sample in [
        r#"emud_alarms_total{resource="cpu"} 1"#,
        r#"emud_alarms_suppressed_total{resource="cpu"} 0"#,
        r#"emud_in_contention{resource="cpu"} 1"#,
        r#"emud_watched{resource="memory",state="unknown"} 1"#,
        r#"emud_watched{resource="memory",state="yes"} 0"#,
        r#"emud_bpf_events_total{program="emud_switch",hook="tp_btf/sched_switch"} 1000"#,
        r#"emud_bpf_timed_seconds_total{program="emud_switch",hook="tp_btf/sched_switch"} 0.0001"#,
        "emud_records_lost_total 0",
    ] {
        assert!(body.lines().any(|line| line == sample), "{sample}\n{body}");
    }
    for name in MONITOR_COUNTERS {
        let family = name.strip_suffix("_total").unwrap();
        assert!(
            body.contains(&format!("# TYPE {family} counter\n")),
            "{name}"
        );
    }
    assert!(body.contains("# TYPE emud_links gauge\n"), "{body}");
    assert_eq!(get(address, "GET /healthz").1, "ok\n");
    assert!(get(address, "GET /else").0.starts_with("HTTP/1.1 404 "));
    assert!(get(address, "POST /metrics").0.starts_with("HTTP/1.1 405 "));
    assert_eq!(get(address, "HEAD /metrics").1, "");
    running.stop();
    running.finish();
}

/// The rules of the text format that a scraper relies on.
fn assert_openmetrics(body: &str) {
    assert!(body.ends_with("# EOF\n"));
    let mut family = ("", "");
    let mut seen = std::collections::HashSet::new();
    for line in body.lines().filter(|line| *line != "# EOF") {
        assert!(!line.is_empty());
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split_once(' ').unwrap();
            // The samples of a family are adjacent.
            assert!(seen.insert(family.0.to_owned()), "{line}");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let name = name.split('{').next().unwrap();
            let suffixes: &[&str] = match family.1 {
                "counter" => &["_total"],
                "info" => &["_info"],
                "histogram" => &["_bucket", "_sum", "_count"],
                _ => &[""],
            };
            let suffix = name.strip_prefix(family.0).unwrap_or(line);
            assert!(suffixes.contains(&suffix), "{line}");
            assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
            assert!(
                seen.insert(line.rsplit_once(' ').unwrap().0.to_owned() + " "),
                "{line}"
            );
        }
    }
}
