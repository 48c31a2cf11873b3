// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of several hosts: one report, which names the host of everything.

use std::collections::BTreeMap;

use emud::experiment::report::{html, plots, text};
use emud::experiment::results::{Fleet, HostFigure, Logged, Run, figures};
use emud::experiment::run::ExitCode;
use emud::fleet::clock::Estimate;
use emud::fleet::merge::{HostClock, HostLog, with_verdict};
use emud::fleet::protocol::HostResult;
use emud::fleet::verdict::{HostEnd, judge};
use emud_monitor::log::{Judgement, RunVerdict};

use super::made_up::{Log, LogFile, MEASURED, SECOND, judgement};
use super::page::emud;
use support::validator::{html_mistakes, svg_mistakes};

/// The clock of the log is ahead of that of host c by this, and host c begins to measure later by the same.
const AHEAD_NS: i64 = 250_000_000;

/// The log of a host with ten seconds of a link, and what the host reports.
fn part(seed: u64, busy: f64, contended: bool) -> (Log, Judgement) {
    let mut log = Log::new(seed, &["access"]);
    log.seconds(&["access"], 10);
    for second in 0..10 {
        log.host(second, busy);
    }
    log.output(MEASURED + SECOND, &format!("hello from {seed}"));
    let mut judged = judgement(RunVerdict::Clean, 10);
    if contended {
        judged.verdict = RunVerdict::Contended;
        judged.contention = vec![log.contention("backup", 2 * SECOND, 3 * SECOND)];
        judged.contended_seconds = vec![2];
    }
    log.end(10, Some(&judged));
    (log, judged)
}

/// Three hosts, of which `contended` had too little CPU; each has a link of the same name.
fn three(names: [&str; 3], contended: &str) -> Vec<(String, Log, HostEnd)> {
    let of = |(n, name): (usize, &str)| {
        let (log, judged) = part(n as u64 + 1, 0.25 * n as f64, name == contended);
        let clock = (n > 0).then_some(Estimate {
            offset_ns: if n == 2 { AHEAD_NS } else { 0 },
            bound_ns: 20_000,
            delay_ns: 20_000,
            answers: 100,
        });
        let result = HostResult {
            run: "r".to_owned(),
            judgement: Some(judged),
            exits: vec![],
            notes: vec![],
            error: None,
            clock,
            mono_ns: MEASURED + 12 * SECOND,
            tunnels: BTreeMap::new(),
            logs: 1,
        };
        let result = Box::new(result);
        (name.to_owned(), log, HostEnd::Reported { result, clock })
    };
    names.into_iter().enumerate().map(of).collect()
}

/// As `emud fleet run` writes it.
fn merged(hosts: &[(String, Log, HostEnd)]) -> Log {
    let reported = |(host, log, end): &(String, Log, HostEnd)| {
        let HostEnd::Reported { clock, .. } = end else {
            return None;
        };
        Some(HostLog {
            host: host.clone(),
            text: log.lines.join("\n").into_bytes(),
            clock: HostClock {
                start: (MEASURED, clock.map_or(0, |clock| clock.offset_ns)),
                end: None,
                bound_ns: 20_000,
            },
        })
    };
    let logs: Vec<HostLog> = hosts.iter().filter_map(reported).collect();
    let ends = hosts
        .iter()
        .map(|(host, _, end)| (host.clone(), end.clone()));
    let ends: BTreeMap<_, _> = ends.collect();
    let verdict = judge(&ends, 1_000_000, ExitCode::Program, None);
    let text = String::from_utf8(with_verdict(&logs, &ends, &verdict).unwrap()).unwrap();
    let mut log = Log::new(0, &[]);
    log.lines = text.lines().map(str::to_owned).collect();
    log
}

fn read(file: &LogFile) -> Fleet {
    match Logged::read(file.path()).unwrap() {
        Logged::Fleet(fleet) => fleet,
        Logged::Run(_) => panic!("the log of one host"),
    }
}

fn page(log: &Log) -> String {
    let page = html(&Logged::read(log.write().path()).unwrap()).unwrap();
    assert_eq!(html_mistakes(&page), "");
    page
}

/// The section of a page with this title.
fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let after = page.split(&format!("<h2>{title}</h2>")).nth(1);
    let after = after.unwrap_or_else(|| panic!("no {title}: {page}"));
    after.split("<h2>").next().unwrap()
}

#[test]
fn a_contended_host_is_named() {
    let log = merged(&three(["a", "b", "c"], "b"));
    let page = page(&log);
    assert!(page.contains("<strong>contended</strong>"));
    assert!(page.contains("<p>b: cpu, cpu 1: from 2.000 s for 1.000 s, by backup 93 %</p>"));
    assert!(page.contains("<p>b: Seconds touched by contention: 2</p>"));
    let spans = section(&page, "Contention");
    assert!(
        spans.contains("<td class=\"\">b</td><td class=\"\">cpu 1</td><td class=\"n\">2.000</td>")
    );
    assert!(!spans.contains(">a</td>") && !spans.contains(">c</td>"));
    let text = text(&Logged::read(log.write().path()).unwrap(), str::to_owned);
    assert!(text.starts_with("made-up: contended\n"), "{text}");
    assert!(text.contains("\n  b: cpu, cpu 1: from 2.000 s"), "{text}");
    assert!(
        text.contains("\n  b     cpu 1  2.000    3.000     1s   93% backup"),
        "{text}"
    );
}

#[test]
fn each_host_has_its_links_programs_and_resources() {
    let page = page(&merged(&three(["a", "b", "c"], "")));
    assert!(page.contains("<strong>clean</strong>"));
    let links = section(&page, "Links: configured and measured");
    let programs = section(&page, "Programs");
    for (n, host) in ["a", "b", "c"].into_iter().enumerate() {
        let cells = format!("<td class=\"\">{host}</td><td class=\"\">access</td>");
        assert_eq!(links.matches(&cells).count(), 2, "{host}");
        assert!(page.contains(&format!("<summary>{host}:access: profile made-up")));
        assert!(page.contains(&format!("aria-label=\"{host}:access up over time\"")));
        assert!(programs.contains(&format!("output of {host}:client: 1 lines")));
        assert!(section(&page, &format!("Host {host}")).contains(&format!("{host}: CPUs, %")));
        let hello = format!("hello from {}", n + 1);
        let own = programs
            .split("output of ")
            .find(|part| part.contains(&hello));
        assert!(own.unwrap().starts_with(host));
    }
}

#[test]
fn samples_of_hosts_are_not_mixed() {
    let hosts = three(["a", "b", "c"], "b");
    let fleet = read(&merged(&hosts).write());
    for (host, log, _) in &hosts {
        let (own, of_fleet) = (
            Run::read(log.write().path()).unwrap(),
            fleet.run(host).unwrap(),
        );
        assert_eq!(figures(&own), figures(of_fleet), "{host}");
        let busy = |run: &Run| run.host_track.measured.mean(HostFigure::Busy);
        assert_eq!(busy(&own), busy(of_fleet), "{host}");
        assert_eq!(
            own.alarms.items.len(),
            of_fleet.alarms.items.len(),
            "{host}"
        );
    }
}

#[test]
fn all_hosts_have_one_axis_of_time() {
    let log = merged(&three(["a", "b", "c"], "c"));
    let page = page(&log);
    // Its own second 2.
    assert!(section(&page, "Contention").contains("<td class=\"n\">2.250</td>"));
    assert!(section(&page, "Hosts").contains("250.000 ms, at the end 250.000 ms</td>"));
    assert!(section(&page, "Hosts").contains("<td class=\"n\">0.020 ms</td>"));
    assert_eq!(
        section(&page, "Hosts").matches(">reference</td>").count(),
        1
    );
    let fleet = read(&log.write());
    assert_eq!(
        fleet.measured(),
        Some((MEASURED, MEASURED + 10 * SECOND + AHEAD_NS as u64))
    );
    // Plots of all hosts show it, by its name: packets of their links may be those of its programs.
    assert_eq!(section(&page, "Over time").matches("c: cpu 1").count(), 6);
    assert_eq!(section(&page, "Host c").matches("c: cpu 1").count(), 1);
    assert!(!section(&page, "Host a").contains("c: cpu 1"));
}

#[test]
fn a_lost_host_is_not_forgotten() {
    let mut hosts = three(["a", "b", "c"], "");
    hosts[1].2 = HostEnd::Lost("gone".to_owned());
    let mut log = merged(&hosts);
    let lost = page(&log);
    assert!(lost.contains("<strong>invalid</strong>") && lost.contains("<p>b: lost: gone</p>"));
    assert!(section(&lost, "Hosts").contains("lost: gone"));
    // Without the last line nothing is known of it, and two clean hosts are no clean run.
    log.lines.pop();
    let cut = page(&log);
    assert!(cut.contains("<strong>unfinished</strong>") && cut.contains("those that were lost"));
    // What is known against a host counts.
    let mut log = merged(&three(["a", "b", "c"], "b"));
    log.lines.pop();
    let cut = page(&log);
    assert!(
        cut.contains("<strong>contended</strong>") && cut.contains("<p>b: cpu 1 contended for 1s")
    );
}

#[test]
fn a_run_that_a_signal_ended_says_so() {
    let mut log = merged(&three(["a", "b", "c"], ""));
    let last = log.lines.last_mut().unwrap();
    *last = last.replace("\"exit_code\":0", "\"exit_code\":130");
    assert!(page(&log).contains("<p>signal 2 ended the run</p>"));
}

#[test]
fn hostile_names_of_hosts_stay_text() {
    let hostile = "</td></title><script>alert(1)</script><img src=x onerror='a'>\u{1b}[2J\u{202e}&";
    let log = merged(&three(["a", hostile, "c"], hostile));
    let page = page(&log);
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{1b}'));
    assert!(page.contains("&#60;script&#62;"));
    let file = log.write();
    let logged = Logged::read(file.path()).unwrap();
    assert!(!text(&logged, str::to_owned).contains('\u{1b}'));
    for plot in plots(&logged).unwrap() {
        assert_eq!(svg_mistakes(&plot.svg), "", "{}", plot.file);
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        assert!(plot.file.chars().all(allowed), "{}", plot.file);
    }
}

#[test]
fn the_log_of_one_host_has_no_names_of_hosts() {
    let (log, _) = part(1, 0.5, true);
    let page = page(&log);
    assert!(!page.contains("<h2>Hosts</h2>") && !page.contains("<th>host</th>"));
    assert!(page.contains("<summary>access: profile made-up") && page.contains("<h2>Host</h2>"));
    assert!(page.contains("host: CPUs, %") && page.contains("output of client"));
}

/// Damage is found in every line, and a host whose log is missing is named.
#[test]
fn a_damaged_line_is_named() {
    let whole = merged(&three(["a", "b", "c"], ""));
    let damaged = |with: &str| {
        let mut log = whole.clone();
        log.lines[40] = with.to_owned();
        Logged::read(log.write().path()).unwrap_err().to_string()
    };
    assert!(
        damaged("{").contains("line 41: column 1:"),
        "{}",
        damaged("{")
    );
    let no_host = damaged(r#"{"type":"x","mono_ns":1}"#);
    assert!(no_host.contains("line 41: without `host`"), "{no_host}");
    let wrong = damaged(r#"{"type":"phase","mono_ns":"x","host":"a","reference_ns":1}"#);
    assert!(
        wrong.contains("line 41: ") && !wrong.contains("column"),
        "{wrong}"
    );
    let mut log = whole.clone();
    log.lines
        .retain(|line| !line.contains("\"host\":\"b\",\"") || line.contains("\"fleet\""));
    assert!(page(&log).contains("<li>b: the log has no experiment of this host</li>"));
}

#[test]
fn other_verbs_say_which_log_they_take() {
    let merged = merged(&three(["a", "b", "c"], "")).write();
    let one = part(1, 0.5, false).0.write();
    for arguments in [
        &["compare", merged.text(), merged.text()][..],
        &["compare", one.text(), merged.text()],
        &["report", one.text(), merged.text(), "-o", "-"],
        &["medium", "watch", merged.text()],
    ] {
        let out = emud(arguments);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(65), "{arguments:?}: {said}");
        assert!(
            said.contains("log of several hosts") && said.contains("d.HOST.log"),
            "{said}"
        );
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn the_text_is_printed_beside_the_page() {
    let merged = merged(&three(["a", "b", "c"], "b")).write();
    let out = emud(&["report", merged.text(), "--text"]);
    assert!(out.status.success(), "{out:?}");
    let said = String::from_utf8(out.stdout).unwrap();
    assert_eq!(
        said,
        text(&Logged::read(merged.path()).unwrap(), str::to_owned)
    );
    let one = part(1, 0.5, true).0.write();
    let said = String::from_utf8(emud(&["report", one.text(), "--text"]).stdout).unwrap();
    for line in [
        "made-up: contended\n",
        "\n  access up throughput ",
        "\n  cpu 1  2.000    3.000     1s   93% backup\n",
        "\n  all CPUs ",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
