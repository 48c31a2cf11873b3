// SPDX-License-Identifier: MIT OR Apache-2.0
//! The judgement of promtool, and a scrape by a real server.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::lab::{self, Lab, run, wait_until};
use support::{emud_path, root};

pub const PATIENCE: Duration = Duration::from_secs(60);

/// The folder of its programs.
pub fn programs() -> PathBuf {
    let found = run(Command::new(root().join("tests/prometheus.sh")).arg("")).expect(0);
    found.out.trim().into()
}

/// A process that ends with the test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that is free now.
pub fn port() -> u16 {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    free.local_addr().expect("an address").port()
}

pub fn metrics_server(port: u16) -> Process {
    let mut command = Command::new(emud_path());
    command.args(["metrics", "--listen", &format!("127.0.0.1:{port}")]);
    Process(command.stderr(Stdio::null()).spawn().expect("emud"))
}

/// The body of an answer; `None`: no connection.
pub fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

/// `promtool check metrics` finds nothing.
fn assert_clean(text: &str) {
    let mut check = Command::new(programs().join("promtool"));
    check.args(["check", "metrics"]);
    let mut check = check
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool");
    let mut input = check.stdin.take().expect("piped");
    input.write_all(text.as_bytes()).expect("write");
    drop(input);
    let checked = check.wait_with_output().expect("promtool");
    let said = [checked.stdout, checked.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&said), "", "{text}");
    assert!(checked.status.success());
}

/// The metrics of all verbs that have them, and the rules.
pub fn checks() {
    let lab = Lab::new();
    lab.emud(&["attach", "va", "--profile", "diffserv-fair"])
        .expect(0);
    lab.ping("-c 3 -i 0.2 -W 2");
    let text = lab::emud(&["metrics"]).expect(0).out;
    assert!(text.contains("emud_class_sent_bytes_total{"), "{text}");
    assert!(text.contains("emud_link_delay_p99_seconds{"), "{text}");
    assert_clean(&text);
    let folder = std::env::temp_dir().join(format!("{}-run", lab.a));
    std::fs::create_dir_all(&folder).expect("a folder");
    let verbs: [(&[&str], &[&str], &str); 2] = [
        (&["monitor"], &[], "emud_bpf_timed_seconds_total{"),
        (
            &["run", "--scenario", "hidden"],
            &["--log", "run.log"],
            "emud_station_air_seconds_total{",
        ),
    ];
    for (verb, more, family) in verbs {
        let port = port();
        let mut command = Command::new(emud_path());
        command.args(verb).args(more).current_dir(&folder);
        command.args(["--metrics", &format!("127.0.0.1:{port}")]);
        let (out, err) = (Stdio::null(), Stdio::null());
        let mut process = Process(command.stdout(out).stderr(err).spawn().expect("emud"));
        wait_until(family, PATIENCE, || {
            let text = get(port, "/metrics").unwrap_or_default();
            let all = [family, "emud_alarms_total{", "emud_watched{"];
            let has_all = all.iter().all(|family| text.contains(family));
            if has_all {
                assert_clean(&text);
            }
            has_all
        });
        lab::sh(&format!("kill -TERM {}", process.0.id()));
        let _ = process.0.wait();
    }
    std::fs::remove_dir_all(folder).expect("remove");
    let promtool = programs().join("promtool");
    let rules = root().join("contrib/prometheus/emud.rules.yml");
    run(Command::new(promtool).args(["check", "rules"]).arg(rules)).expect(0);
    lab.detach();
}

/// Runs a server that scrapes `port` every second; its own port.
pub fn prometheus(folder: &std::path::Path, port: u16) -> (Process, u16) {
    let own = self::port();
    let rules = root().join("contrib/prometheus/emud.rules.yml");
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         rule_files: [\"{}\"]\n\
         scrape_configs:\n  - job_name: emud\n    static_configs: [{{targets: [\"127.0.0.1:{port}\"]}}]\n",
        rules.display()
    );
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(folder.join("prometheus.yml"), config).expect("write");
    let mut command = Command::new(programs().join("prometheus"));
    command
        .arg(format!("--config.file={}/prometheus.yml", folder.display()))
        .arg(format!("--storage.tsdb.path={}/data", folder.display()))
        .arg(format!("--web.listen-address=127.0.0.1:{own}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    (Process(command.spawn().expect("prometheus")), own)
}

/// The values of an instant query.
pub fn query(server: u16, expression: &str) -> Vec<f64> {
    let encoded: String = expression.bytes().map(|b| format!("%{b:02X}")).collect();
    let Some(body) = get(server, &format!("/api/v1/query?query={encoded}")) else {
        return vec![];
    };
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    assert_ne!(answer["status"], "error", "{expression}: {body}");
    let results = answer["data"]["result"].as_array().cloned();
    (results.unwrap_or_default().iter())
        .filter_map(|one| one["value"][1].as_str()?.parse().ok())
        .collect()
}

/// The values of the first query of each panel of the dashboard, for all hosts, by title.
fn panels(server: u16) -> BTreeMap<String, Vec<f64>> {
    let path = root().join("contrib/grafana/emud-links.json");
    let text = std::fs::read_to_string(path).expect("read");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let values = |target: &Value| {
        let mut expression = target["expr"].as_str().expect("a query").to_owned();
        for (variable, value) in [
            ("$__range", "1m"),
            ("$__rate_interval", "5s"),
            ("$instance", ".*"),
            ("$netns", ".*"),
            ("$container", ".*"),
            ("$interface", ".*"),
        ] {
            expression = expression.replace(variable, value);
        }
        query(server, &expression)
    };
    (dashboard["panels"].as_array().expect("panels").iter())
        .map(|panel| {
            let targets = panel["targets"].as_array().expect("queries");
            let mut found: Vec<_> = targets.iter().map(values).collect();
            let title = panel["title"].as_str().expect("a title");
            (title.to_owned(), found.swap_remove(0))
        })
        .collect()
}

/// It reads the figures, and an alert fires when a part of a link is deleted.
pub fn scrapes() {
    let lab = Lab::new();
    lab.emud(&["attach", "va", "--profile", "hsdpa"]).expect(0);
    lab.ping("-c 5 -i 0.2 -W 2");
    let folder = std::env::temp_dir().join(format!("{}-prometheus", lab.a));
    let port = port();
    let metrics = metrics_server(port);
    let (server, own) = prometheus(&folder, port);
    let selector = format!("{{netns=\"{}\",direction=\"up\"}}", lab.a);
    let arrived = format!("emud_link_arrived_packets_total{selector}");
    // Neighbours are verified some seconds after the ping, which counts, too.
    wait_until("a scrape", PATIENCE, || {
        query(own, &arrived) == [lab.shown("/up/counters/packets") as f64]
    });
    assert_eq!(query(own, "up{job=\"emud\"}"), [1.0]);
    lab.in_a("tc filter del dev va egress");
    let alert = format!(
        "ALERTS{{alertname=\"EmudLinkTampered\",alertstate=\"firing\",netns=\"{}\"}}",
        lab.a
    );
    wait_until("an alert", PATIENCE, || query(own, &alert) == [1.0]);
    // Without a monitor nobody knows, and without a server nothing is known at all.
    let shown = panels(own);
    assert_eq!(shown["Alarms of the host"], [] as [f64; 0]);
    assert_eq!(shown["Not watched"], [1.0]);
    let of_holders = "Holders that do not answer";
    assert_eq!(shown[of_holders].len(), 1);
    drop(metrics);
    let gone = "ALERTS{alertname=\"EmudNoFigures\",alertstate=\"firing\"}";
    wait_until("an alert", PATIENCE, || query(own, gone) == [1.0]);
    assert_eq!(panels(own)[of_holders], [] as [f64; 0]);
    drop(server);
    std::fs::remove_dir_all(folder).expect("remove");
    lab.detach();
}
