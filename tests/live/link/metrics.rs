// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud metrics` of links on live interfaces.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::emud_path;
use support::lab::{self, Engine, Lab, Verdict, wait_until};

const PATIENCE: Duration = Duration::from_secs(20);

/// Samples of the text format by name and labels.
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    fn of(text: &str) -> Self {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            (name.to_owned(), value.parse().expect("a number"))
        };
        Self(samples.map(sample).collect())
    }

    pub fn now() -> Self {
        Self::of(&lab::emud(&["metrics"]).expect(0).out)
    }

    /// Of the link of a laboratory; `more`: further labels, each with a comma in front.
    pub fn get(&self, lab: &Lab, name: &str, more: &str) -> Option<f64> {
        let key = format!("emud_{name}{{netns=\"{}\",interface=\"va\"{more}}}", lab.a);
        self.0.get(&key).copied()
    }
}

/// `emud metrics --listen`.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start() -> Self {
        let mut command = Command::new(emud_path());
        command.args(["metrics", "--listen", "127.0.0.1:0"]);
        let mut process = command.stderr(Stdio::piped()).spawn().expect("emud");
        let mut line = String::new();
        let mut said = BufReader::new(process.stderr.take().expect("piped"));
        said.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("emud: metrics at http://");
        let address = address.and_then(|rest| rest.strip_suffix("/metrics"));
        Self {
            process,
            address: address.expect(&line).to_owned(),
        }
    }

    /// Head and body.
    fn get(&self, path: &str, accept: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("connect");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_lowercase(), body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The figures are those of `emud show`, from outside the namespace.
pub fn equal_show(engine: Engine) {
    let lab = Lab::new();
    // Neighbour discovery between the two readings would count.
    lab.know_each_other();
    let profile = "[link]\nrate = \"2Mbit\"\ndelay = \"20ms\"\nloss = \"30%\"\n\
                   [links.voice]\ndelay = \"5ms\"\n\
                   [[rule]]\nlink = \"voice\"\nmatch = { dscp = \"ef\" }\n";
    lab.attach(engine, profile, &["--for", "1h"]);
    lab.ping("-c 40 -i 0.01 -W 1");
    lab.ping("-c 10 -i 0.01 -W 1 -Q 0xb8");
    let (metrics, shown) = (Metrics::now(), lab.show());
    let mut verdict = Verdict::default();
    for direction in ["up", "down"] {
        let own = &shown[direction];
        let voice = &shown["links"][0][direction];
        for (class, of) in [("", own), ("voice", voice)] {
            let labels = format!(",direction=\"{direction}\",class=\"{class}\"");
            let counters = &of["counters"];
            for (name, more, key) in [
                ("link_arrived_packets_total", "", "packets"),
                ("link_arrived_bytes_total", "", "bytes"),
                ("link_sent_packets_total", "", "sent_packets"),
                ("link_sent_bytes_total", "", "sent_bytes"),
                ("link_lost_packets_total", ",cause=\"loss\"", "lost"),
                (
                    "link_dropped_packets_total",
                    ",cause=\"queue\"",
                    "queue_dropped",
                ),
            ] {
                let got = metrics.get(&lab, name, &format!("{labels}{more}"));
                verdict.same(&format!("{name} {labels}"), counters[key].as_f64(), got);
            }
            let delays = counters["delay_histogram"].as_array().expect("a list");
            let packets: u64 = delays.iter().filter_map(|b| b["packets"].as_u64()).sum();
            let counted = metrics.get(&lab, "link_delay_seconds_count", &labels);
            verdict.same("delays", Some(packets as f64), counted);
            let sum = metrics
                .get(&lab, "link_delay_seconds_sum", &labels)
                .expect("a sum");
            let mean = sum / packets as f64 * 1e9;
            let exact = counters["delay_given"]["mean_ns"]
                .as_f64()
                .expect("packets");
            verdict.near("mean delay", exact, mean, 1.5);
            // 5 ms and 20 ms with up to 1.3 ms of serialisation.
            let labels = format!("netns=\"{}\",interface=\"va\"{labels}", lab.a);
            let below = format!("emud_link_delay_seconds_bucket{{le=\"0.016777216\",{labels}}}");
            let below = metrics.0.get(&below).copied();
            let fast = if class.is_empty() {
                0.0
            } else {
                packets as f64
            };
            verdict.same("packets below 16.8 ms", Some(fast), below);
        }
        let labels = format!(",direction=\"{direction}\",class=\"\"");
        let rate = metrics.get(&lab, "link_rate_bytes_per_second", &labels);
        verdict.near("rate", 250_000.0, rate.expect("a rate"), 0.0);
        verdict.same("up", Some(1.0), metrics.get(&lab, "link_up", &labels));
        let held = metrics.get(&lab, "holder_up", &format!(",direction=\"{direction}\""));
        verdict.same("holder", (engine == Engine::Hold).then_some(1.0), held);
        let dropped = metrics.get(
            &lab,
            "engine_dropped_packets_total",
            &format!(",direction=\"{direction}\""),
        );
        verdict.same("dropped by the engine", Some(0.0), dropped);
    }
    verdict.same(
        "tampered",
        Some(0.0),
        metrics.get(&lab, "link_tampered_parts", ""),
    );
    let left = metrics
        .get(&lab, "link_ends_in_seconds", "")
        .expect("an end");
    verdict.near("time left", 3300.0, left, 300.0);
    verdict.end();
}

/// Both formats, the state of the server, and what changes between two scrapes.
pub fn served(engine: Engine) {
    let lab = Lab::new();
    let server = Server::start();
    let scrape = || Metrics::of(&server.get("/metrics", "*/*").1);
    assert_eq!(scrape().get(&lab, "link_tampered_parts", ""), None);
    lab.attach(engine, "[link]\ndelay = \"1ms\"\n", &[]);
    let (head, body) = server.get("/metrics", "application/openmetrics-text");
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(body.ends_with("# EOF\n"));
    let (head, body) = server.get("/metrics", "text/plain");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    assert!(body.contains("# TYPE emud_link_arrived_packets_total counter\n"));
    assert!(!body.contains("# EOF"));
    assert_eq!(server.get("/healthz", "*/*").1, "ok\n");
    assert!(server.get("/else", "*/*").0.starts_with("http/1.1 404 "));
    wait_until("the link is checked", PATIENCE, || {
        scrape().get(&lab, "link_tampered_parts", "") == Some(0.0)
    });
    if engine == Engine::Hold {
        for (change, parts) in [("add", 1.0), ("del", 0.0)] {
            lab.in_a(&format!("tc qdisc {change} dev va root pfifo"));
            wait_until("the root qdisc is noticed", PATIENCE, || {
                scrape().get(&lab, "link_tampered_parts", "") == Some(parts)
            });
        }
    }
    lab.emud(&["set", "va", "state=down"]).expect(0);
    let up = ",direction=\"up\",class=\"\"";
    assert_eq!(scrape().get(&lab, "link_up", up), Some(0.0));
    // Engine qdisc has no filter there that tc could delete, but a tcx program.
    lab.in_a(match engine {
        Engine::Qdisc => "tc qdisc replace dev va root pfifo",
        _ => "tc filter del dev va egress",
    });
    wait_until("the change is noticed", PATIENCE, || {
        scrape().get(&lab, "link_tampered_parts", "") == Some(1.0)
    });
    lab.detach();
    // The kernel frees the program some time after its last filter.
    wait_until("the link is gone", Duration::from_secs(60), || {
        scrape().get(&lab, "link_up", up).is_none()
    });
}

/// A holder that is stopped is down; a link whose time is over says so.
pub fn failures(engine: Engine) {
    let lab = Lab::new();
    lab.attach(engine, "[link]\ndelay = \"1ms\"\n", &["--for", "1500ms"]);
    if engine == Engine::Hold {
        let holder = lab.shown("/up/holder/pid");
        lab::sh(&format!("kill -STOP {holder}"));
        let up = ",direction=\"up\"";
        wait_until("the holder is down", PATIENCE, || {
            Metrics::now().get(&lab, "holder_up", up) == Some(0.0)
        });
        assert_eq!(
            Metrics::now().get(&lab, "link_tampered_parts", ""),
            Some(1.0)
        );
        lab::sh(&format!("kill -CONT {holder}"));
    }
    wait_until("the link has ended", PATIENCE, || {
        Metrics::now().get(&lab, "link_ends_in_seconds", "") == Some(0.0)
    });
}

/// A server must not keep a deleted namespace and its interfaces.
pub fn lets_namespaces_go(engine: Engine) {
    let lab = Lab::new();
    let server = Server::start();
    lab.attach(engine, "[link]\ndelay = \"1ms\"\n", &[]);
    wait_until("the link is checked", PATIENCE, || {
        Metrics::of(&server.get("/metrics", "*/*").1).get(&lab, "link_tampered_parts", "")
            == Some(0.0)
    });
    lab::sh(&format!("ip netns del {}", lab.a));
    // The other end of the veth goes with its namespace.
    wait_until("the namespace is gone", Duration::from_secs(60), || {
        lab::sh(&format!("ip -n {} -o link show type veth", lab.b)).is_empty()
    });
    let name = lab.a.clone();
    wait_until("so is the link", Duration::from_secs(60), || {
        !server.get("/metrics", "*/*").1.contains(&name)
    });
    lab::sh(&format!("ip netns add {}", lab.a));
}
