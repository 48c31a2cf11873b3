// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of a log, and the messages for unreadable logs.

use emud::experiment::results::{
    Logged, Quantity, ResultsError, Run, Same, compare, compare_groups, figures, losses, summarise,
};
use emud::histogram::number;
use emud_monitor::log::{
    ClassCounted, Counted, DelaySample, LinkEvent, Lost, PhaseName, RunVerdict, Sample,
    StationCounted,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::made_up::{
    Log, MEASURED, SECOND, START, clean, contended, invalid, judgement, on_air, unfinished,
};

fn read(log: &Log) -> Run {
    Run::read(log.write().path()).unwrap()
}

fn sample(second: u64, packets: u64, lost: u64) -> Sample {
    Sample {
        mono_ns: MEASURED + second * SECOND,
        link: "access".to_owned(),
        direction: "down".to_owned(),
        class: None,
        interval_ns: SECOND,
        counted: Counted {
            packets,
            bytes: packets * 1_000,
            passed_packets: packets - lost,
            passed_bytes: (packets - lost) * 1_000,
            lost,
            ..Counted::default()
        },
        backlog_bytes: None,
        capacity_bit_s: None,
        delay: (packets > lost).then_some(DelaySample {
            mean_ns: second * 1_000_000,
            buckets: vec![[number(second * 1_000_000), packets - lost]],
        }),
    }
}

#[test]
fn figures_are_those_of_the_measured_phase() {
    let mut log = Log::new(7, &["access"]);
    // The interval before it belongs to the preparation, the one after it to the clean-up.
    log.raw_sample(&sample(0, 500, 500));
    log.raw_sample(&sample(1, 1_000, 0));
    log.raw_sample(&sample(2, 300, 100));
    log.phase(MEASURED + 2 * SECOND, PhaseName::CleanUp);
    log.raw_sample(&sample(3, 500, 500));
    log.end(2, Some(&judgement(RunVerdict::Clean, 2)));
    let run = read(&log);
    let track = &run.tracks[0];
    assert_eq!((track.samples, track.measured.counted.packets), (2, 1_300));
    assert_eq!(track.measured.throughput_bit_s(), Some(4_800_000.0));
    assert_eq!(track.measured.peak_bit_s(), Some(8e6));
    let loss = track.measured.loss().unwrap();
    assert_eq!(loss.share, 100.0 / 1_300.0);
    // scipy.stats.binomtest(100, 1300).proportion_ci(0.95, "exact")
    assert!((loss.interval[0] - 0.0630).abs() < 5e-4, "{loss:?}");
    assert!((loss.interval[1] - 0.0928).abs() < 5e-4, "{loss:?}");
    let delays = &track.measured.delays;
    // 1000 packets of 1 ms, 200 of 2 ms. A mean of the samples' p99 would be 1.17 ms.
    assert!(
        (delays.mean_ns().unwrap() - 1.4e6 / 1.2).abs() < 1.0,
        "{delays:?}"
    );
    for (share, should) in [(0.5, 1e6), (0.99, 2e6)] {
        let is = delays.quantile_ns(share).unwrap();
        assert!((is / should - 1.0).abs() < 1.0 / 32.0, "{share}: {is}");
    }
    assert_eq!(delays.max_ns(), Some(2_031_616));
    assert_eq!(track.series.points().len(), 4);
    let throughput = figures(&run)
        .into_iter()
        .find(|f| f.name.quantity == Quantity::Throughput);
    assert_eq!(throughput.unwrap().value, 4_800_000.0);
}

/// A train in the last 2 ms is not the peak of a run of seconds, and all there is of one of 2 ms.
#[test]
fn a_peak_is_of_a_whole_sample() {
    let short = |second| Sample {
        interval_ns: 2_000_000,
        ..sample(second, 100, 0)
    };
    let peak = |samples: &[Sample]| {
        let mut log = Log::new(7, &["access"]);
        samples.iter().for_each(|sample| log.raw_sample(sample));
        log.end(3, Some(&judgement(RunVerdict::Clean, 3)));
        read(&log).tracks[0].measured.peak_bit_s()
    };
    let whole = [sample(1, 1_000, 0), sample(2, 500, 0)];
    assert_eq!(peak(&[&whole[..], &[short(3)]].concat()), Some(8e6));
    assert_eq!(peak(&[short(2)]), Some(400e6));
}

/// The mean of the samples' 99th percentiles would be 30 ms.
#[test]
fn quantiles_are_those_of_all_packets() {
    let mut log = Log::new(7, &["access"]);
    log.raw_sample(&sample(1, 1_000, 0));
    log.raw_sample(&sample(59, 5, 0));
    log.phase(MEASURED + 60 * SECOND, PhaseName::CleanUp);
    log.end(60, Some(&judgement(RunVerdict::Clean, 60)));
    let figures = figures(&read(&log));
    let p99 = figures
        .iter()
        .find(|f| f.name.quantity == Quantity::DelayP99)
        .unwrap()
        .value;
    assert!((p99 / 1e6 - 1.0).abs() < 1.0 / 16.0, "{p99}");
}

/// What a link of 1 Gbit/s carries in an hour.
#[test]
fn a_large_count_has_an_interval_too() {
    let mut log = Log::new(7, &["access"]);
    log.raw_sample(&sample(1, 300_000_000, 3_000_000));
    log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
    let loss = read(&log).tracks[0].measured.loss().unwrap();
    let [low, high] = loss.interval;
    // Normal approximation: 1.96 sqrt(p q / n) = 1.126e-5.
    assert!((0.01 - low - 1.126e-5).abs() < 2e-7, "{low}");
    assert!((high - 0.01 - 1.126e-5).abs() < 2e-7, "{high}");
}

/// The interval of few losses in a billion packets is found by a search, not by a sum over all packets.
#[test]
fn a_log_of_a_billion_packets_is_read_at_once() {
    for lost in [0, 3] {
        let mut log = Log::new(7, &["access"]);
        log.raw_sample(&sample(1, 1_000_000_000, lost));
        log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
        let file = log.write();
        // In the thread's CPU time, which other load does not change; optimised code takes less.
        let cpu_s = || {
            let now = clock_gettime(ClockId::ThreadCPUTime);
            now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
        };
        let before = cpu_s();
        let run = Run::read(file.path()).unwrap();
        let page = emud::experiment::report::html(&Logged::Run(run.clone().into())).unwrap();
        let took = cpu_s() - before;
        println!("{lost} of 10^9 lost: {took:.3} s");
        assert!(took < 2.0, "{took} s");
        assert!(page.contains("<svg"));
    }
}

#[test]
fn the_verdict_and_its_reason_are_the_logs() {
    let run = read(&clean(1));
    assert!(run.is_clean());
    assert_eq!(run.why_not_clean(), None);
    assert_eq!(run.exits.items[0].code, Some(0));
    assert_eq!(run.phases.len(), 3);
    let run = read(&contended(1));
    assert_eq!(run.verdict(), Some(RunVerdict::Contended));
    assert_eq!(
        run.why_not_clean().unwrap(),
        "cpu 1 contended for 8.25s (93% stress-ng), and 1 more span"
    );
    assert_eq!(
        run.alarms.items[0].until_mono_ns,
        Some(MEASURED + 38_250_000_000)
    );
    let run = read(&invalid(1));
    assert_eq!(
        run.why_not_clean().unwrap(),
        "17 packets left 3.2ms late at 4.1 s"
    );
}

#[test]
fn a_killed_run_is_readable_and_says_so() {
    let mut log = unfinished(1);
    let whole = read(&log);
    assert_eq!(whole.verdict(), None);
    assert!(whole.why_not_clean().unwrap().contains("no end"));
    assert_eq!(whole.measured(), Some((MEASURED, MEASURED + 10 * SECOND)));
    assert_eq!(whole.tracks[0].samples, 10);

    // The last line is incomplete.
    let last = log.lines.last_mut().unwrap();
    last.truncate(last.len() / 2);
    let file = log.write();
    let text = std::fs::read_to_string(file.path()).unwrap();
    std::fs::write(file.path(), text.trim_end()).unwrap();
    let run = Run::read(file.path()).unwrap();
    assert_eq!(run.tracks[1].samples, 9);
    assert!(
        run.notes.iter().any(|note| note.contains("cut off")),
        "{:?}",
        run.notes
    );
}

/// A report has no end: it is a moment, also if nothing came behind it.
#[test]
fn a_report_of_a_killed_run_does_not_last() {
    let mut log = unfinished(1);
    let at = MEASURED + 2 * SECOND;
    let report = json!({"episode": 1, "mono_ns": at, "resource": "application", "since_mono_ns": at,
        "scope": {"kind": "name", "name": "jitter"}, "value": 2, "threshold": 1, "unit": "number",
        "hook": "socket", "shares": [], "rest": 0.0});
    log.raw("alarm", at, &report);
    let mut busy = report;
    busy["resource"] = "cpu".into();
    busy["hook"] = "tp_btf/sched_switch".into();
    log.raw("alarm", at, &busy);
    let spans = read(&log).contention();
    let lasted: Vec<_> = spans.iter().map(|span| span.duration_ns).collect();
    assert_eq!(lasted, [0, 8 * SECOND]);
}

#[test]
fn what_the_log_lacks_is_said() {
    let mut log = Log::new(1, &["access"]);
    log.raw(
        "lost",
        MEASURED,
        &Lost {
            mono_ns: MEASURED,
            output_lines: 12,
            samples: 3,
        },
    );
    log.raw("new-type", MEASURED, &json!({"mono_ns": MEASURED, "a": 1}));
    let killed = read(&log).notes.join("\n");
    assert!(
        killed.contains("12 lines of output and 3 samples"),
        "{killed}"
    );
    log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
    let run = read(&log);
    assert_eq!((run.lost_output_lines, run.lost_samples), (12, 3));
    assert!(
        run.notes
            .iter()
            .any(|note| note.contains("12 lines of output and 3 samples"))
    );
}

#[test]
fn classes_and_directions_are_in_order() {
    let mut log = Log::new(1, &["b", "a"]);
    for (link, direction, class) in [
        ("a", "down", Some("mobile")),
        ("a", "down", None),
        ("a", "up", None),
        ("b", "down", None),
    ] {
        let mut sample = sample(1, 10, 0);
        sample.link = link.to_owned();
        sample.direction = direction.to_owned();
        sample.class = class.map(str::to_owned);
        log.raw_sample(&sample);
    }
    let names: Vec<String> = read(&log)
        .tracks
        .iter()
        .map(emud::experiment::results::Track::name)
        .collect();
    assert_eq!(names, ["b down", "a up", "a down", "a down, class mobile"]);
}

#[track_caller]
fn refused(log: &Log, message: &str) {
    let file = log.write();
    let error = Run::read(file.path()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains(message), "{text}");
    assert_eq!(error.exit_code(), 65);
}

#[test]
fn mistakes_name_their_line() {
    let mut damaged = clean(1);
    damaged.lines[6] = damaged.lines[6].replace("\"packets\":", "\"packets\":-");
    refused(&damaged, "line 7: column ");
    let mut cut = clean(1);
    cut.lines[6].truncate(40);
    refused(&cut, "line 7: column 40: EOF");
    let mut twice = clean(1);
    twice.lines.push(twice.lines[1].clone());
    refused(&twice, "a second experiment");
    let mut other = clean(1);
    other.lines[0] = other.lines[0].replace("emud-log/2", "emud-log/9");
    refused(
        &other,
        "line 1: not the start of a log of schema \"emud-log/2\"",
    );
    let mut no_start = clean(1);
    no_start.lines.remove(0);
    refused(&no_start, "of another type than \"start\"");
    let mut monitor = clean(1);
    monitor.lines.truncate(1);
    monitor.raw(
        "end",
        START,
        &json!({"mono_ns": START, "reason": "signal", "error": null}),
    );
    refused(&monitor, "is the log of a monitor alone");
    let missing = Run::read("/nonexistent/run.log".as_ref()).unwrap_err();
    assert!(matches!(missing, ResultsError::Io { .. }));
    assert_eq!(missing.exit_code(), 66);
}

#[test]
fn repeats_are_summarised_over_the_clean_ones() {
    let logs = [clean(1), clean(2), contended(3), clean(4), unfinished(5)];
    let runs: Vec<Run> = logs.iter().map(read).collect();
    let summary = summarise(&runs);
    assert_eq!(summary.counted, 3);
    let excluded: Vec<bool> = summary
        .runs
        .iter()
        .map(|run| run.excluded.is_some())
        .collect();
    assert_eq!(excluded, [false, false, true, false, true]);
    let throughput = &summary.figures[0];
    assert_eq!(throughput.name.text(), "access up throughput");
    let clean = [&runs[0], &runs[1], &runs[3]];
    let values = clean.map(|run| run.tracks[0].measured.throughput_bit_s().unwrap());
    assert_eq!(throughput.estimate.mean, values.iter().sum::<f64>() / 3.0);
    let [low, high] = throughput.estimate.interval.unwrap();
    // t(0.975; 2) = 4.3027.
    let half = 4.3027 * throughput.estimate.sd.unwrap() / 3f64.sqrt();
    assert!(((high - low) / 2.0 / half - 1.0).abs() < 1e-4);
    let text = summary.text(str::to_owned);
    assert!(text.starts_with("5 runs, 3 counted\n"), "{text}");
    assert!(
        text.contains("contended, EXCLUDED: cpu 1 contended for 8.25s"),
        "{text}"
    );
    assert!(
        text.contains("unfinished, EXCLUDED: the log has no end"),
        "{text}"
    );
    assert!(text.contains(" ± "), "{text}");
}

/// A program that failed at once makes the mean of no data resemble a figure.
#[test]
fn a_run_with_a_failed_program_is_in_no_mean() {
    let mut failed = clean(2);
    failed.exit(MEASURED, "server", Some(7), false);
    let mut late = clean(3);
    late.exit(MEASURED, "server", Some(7), false);
    late.exit(MEASURED, "client", None, true);
    let mut ended = clean(4);
    ended.exit(MEASURED, "client", None, true);
    let runs = [clean(1), failed, late, ended].map(|log| read(&log));
    let summary = summarise(&runs);
    assert_eq!(summary.counted, 2);
    let text = summary.text(str::to_owned);
    let why = "clean, EXCLUDED: the program of server failed with exit code 7\n";
    assert_eq!(text.matches(why).count(), 2, "{text}");
    assert!(runs[1].is_clean() && !runs[1].counts());
    let text = summarise(&runs[1..3]).text(str::to_owned);
    let why = "no figures: no run without a failed program has samples\n";
    assert!(text.contains(why), "{text}");
}

/// On a busy host a minute of work still has figures, and they are marked.
#[test]
fn figures_of_runs_that_do_not_count_are_marked() {
    let mut failed = contended(3);
    failed.exit(MEASURED, "server", Some(7), false);
    let runs = [contended(1), contended(2), failed].map(|log| read(&log));
    let summary = summarise(&runs);
    assert_eq!(summary.counted, 0);
    assert_eq!(summary.figures[0].estimate.n, 2);
    let text = summary.text(str::to_owned);
    assert!(text.starts_with("3 runs, 0 counted\n"), "{text}");
    assert_eq!(text.matches("EXCLUDED").count(), 1, "{text}");
    let marked = text.find("NOT VALID, because no run counts").unwrap();
    assert!(
        marked < text.find("access up throughput").unwrap(),
        "{text}"
    );
}

/// The figure that papers on mobile networks print: capacity beside throughput.
#[test]
fn the_capacity_of_a_trace_is_drawn() {
    let of = |capacity: Option<u64>| {
        let mut log = Log::new(1, &["access"]);
        for second in 1..4 {
            log.raw_sample(&Sample {
                capacity_bit_s: capacity.map(|bit_s| bit_s * second),
                ..sample(second, 100, 0)
            });
        }
        log.end(4, Some(&judgement(RunVerdict::Clean, 4)));
        read(&log)
    };
    let run = of(Some(3_000_000));
    let points = run.tracks[0].series.points();
    let rates: Vec<_> = points.iter().map(|point| point.capacity_bit_s()).collect();
    assert_eq!(rates, [3e6, 6e6, 9e6].map(Some));
    assert_eq!(run.tracks[0].measured.capacity_bit_s(), Some(6e6));
    let page =
        |run: &Run| emud::experiment::report::html(&Logged::Run(run.clone().into())).unwrap();
    assert!(page(&run).contains("\ncapacity\n"), "no curve of that name");
    assert!(!page(&of(None)).contains("\ncapacity\n"));
}

/// A user who switched off every criterion still needs figures.
#[test]
fn unwatched_runs_count_and_are_marked() {
    let of = |verdict| {
        let mut log = Log::new(1, &["access"]);
        log.raw_sample(&sample(1, 100, 0));
        log.end(1, Some(&judgement(verdict, 1)));
        read(&log)
    };
    let summary = summarise(&[of(RunVerdict::Unwatched), of(RunVerdict::Contended)]);
    assert_eq!(summary.counted, 1);
    let text = summary.text(str::to_owned);
    assert!(text.contains(": unwatched\n"), "{text}");
}

#[test]
fn the_same_losses_are_found_and_others_named() {
    let (a, b, c) = (read(&clean(1)), read(&clean(1)), read(&clean(2)));
    assert_eq!(losses(&[&a, &b]).same, Same::BySample);
    assert_eq!(losses(&[&a, &c]).same, Same::NotComparable);
    let mut other = clean(1);
    // Two samples are swapped: the totals stay.
    let at = other
        .lines
        .iter()
        .position(|line| line.contains("\"direction\":\"down\""))
        .unwrap();
    let mut lines = [other.lines[at].clone(), other.lines[at + 2].clone()];
    let time = |line: &str| line[..line.find("\"link\"").unwrap()].to_owned();
    let (first, second) = (time(&lines[0]), time(&lines[1]));
    lines[0] = lines[0].replace(&first, &second);
    lines[1] = lines[1].replace(&second, &first);
    other.lines[at] = lines[1].clone();
    other.lines[at + 2] = lines[0].clone();
    assert_eq!(losses(&[&a, &read(&other)]).same, Same::InTotal);
    let mut fewer = clean(1);
    fewer.lines.remove(at);
    let found = losses(&[&a, &read(&fewer)]);
    assert_eq!(found.same, Same::Different);
    assert!(
        found.detail.unwrap().contains("access down: "),
        "the direction is named"
    );
}

/// As many packets, lost alike, but longer ones.
#[test]
fn other_bytes_are_another_network() {
    let of = |bytes| {
        let mut log = Log::new(1, &["access"]);
        let mut sample = sample(1, 100, 3);
        sample.counted.bytes = bytes;
        log.raw_sample(&sample);
        log.end(1, Some(&judgement(RunVerdict::Clean, 1)));
        read(&log)
    };
    let found = losses(&[&of(100_000), &of(100_400)]);
    assert_eq!(found.same, Same::Different);
    let detail = found.detail.unwrap();
    assert_eq!(detail, "access down: 100,000 and 100,400 bytes came");
}

/// What the log of a run lacks is in no mean.
#[test]
fn lost_samples_are_said_beside_means() {
    let mut log = clean(1);
    let at = log.lines.len() - 1;
    let lost = Lost {
        mono_ns: MEASURED + SECOND,
        output_lines: 0,
        samples: 5,
    };
    log.raw("lost", lost.mono_ns, &lost);
    let line = log.lines.pop().unwrap();
    log.lines.insert(at, line);
    let runs = [read(&clean(1)), read(&log)];
    let said = format!("5 samples of {} were lost", runs[1].path.display());
    let note = format!("{said}: the figures are of the others");
    let summary = summarise(&runs);
    assert_eq!(summary.notes, std::slice::from_ref(&note));
    assert!(summary.text(str::to_owned).contains(&note));
    assert_eq!(summary.losses.same, Same::NotComparable);
    assert_eq!(summary.losses.detail, Some(said));
    let [a, b] = &runs;
    let compared = compare(std::slice::from_ref(a), std::slice::from_ref(b));
    assert!(compared.notes.contains(&note), "{:?}", compared.notes);
    let groups = compare_groups(&[vec![a.clone()], vec![a.clone()], vec![b.clone()]]);
    assert_eq!(groups.notes, [note]);
}

/// Of a thousand links the lines of their beginning leave no room for what changed.
#[test]
fn changes_of_many_links_and_more_alarms_than_are_kept_are_said() {
    let names: Vec<String> = (0..1_000).map(|n| format!("peer{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut log = Log::new(1, &names);
    log.link(MEASURED + SECOND, "peer7", LinkEvent::Changed);
    for n in 0..1_002 {
        log.contention("hog", n * 1_000, n * 1_000 + 1);
    }
    let run = read(&log);
    let changed: Vec<&str> = run.changes.items.iter().map(|c| c.link.as_str()).collect();
    assert_eq!((changed, run.changes.left_out), (vec!["peer7"], 0));
    let said = "2 more alarms are not a part of the contention shown";
    assert!(run.notes.iter().any(|note| note == said), "{:?}", run.notes);
}

/// The links are not all of the network.
#[test]
fn other_classes_and_stations_are_another_network() {
    let of = |class: [u64; 2], station: [u64; 2]| {
        let mut log = on_air(&[[0.0, 0.0], [100.0, 0.0]]);
        for second in 0..2 {
            let sent_packets = class[second];
            log.class(
                second as u64,
                "voice",
                ClassCounted {
                    sent_packets,
                    ..ClassCounted::default()
                },
            );
            let given_up = station[second];
            let counted = StationCounted {
                given_up,
                ..StationCounted::default()
            };
            log.station(second as u64, 1, counted, [100.0, 0.0], None);
        }
        log.end(2, Some(&judgement(RunVerdict::Clean, 2)));
        read(&log)
    };
    let first = of([10, 12], [1, 2]);
    let with = |other: &Run| losses(&[&first, other]);
    assert_eq!(with(&of([10, 12], [1, 2])).same, Same::BySample);
    assert_eq!(with(&of([11, 11], [1, 2])).same, Same::InTotal);
    assert_eq!(with(&of([10, 12], [2, 1])).same, Same::InTotal);
    for (other, detail) in [
        (
            of([10, 11], [1, 2]),
            "access uplink.voice: 22 and 21 packets sent",
        ),
        (of([10, 12], [1, 3]), "wlan0 n2: 3 and 4 packets given up"),
    ] {
        let found = with(&other);
        assert_eq!(found.same, Same::Different);
        assert_eq!(found.detail.unwrap(), detail);
    }
}

/// 3,600 samples of two directions, and a line of output every 100 ms.
#[test]
fn an_hour_is_small_and_quickly_read() {
    let mut log = Log::new(1, &["access"]);
    for second in 0..3_600 {
        log.sample(second, "access", "up", 0.1);
        log.sample(second, "access", "down", 0.9);
        for tenth in 0..10 {
            let at = MEASURED + second * SECOND + tenth * SECOND / 10;
            let text = "[  5] 100.00-101.00 sec  1.12 MBytes  9.44 Mbits/sec  0  214 KBytes";
            log.output(at, text);
        }
    }
    log.end(3_600, Some(&judgement(RunVerdict::Clean, 3_600)));
    let file = log.write();
    assert!(file.path().metadata().unwrap().len() < 50_000_000);
    // In the thread's CPU time, which other load does not change.
    let cpu_s = || clock_gettime(ClockId::ThreadCPUTime).tv_sec;
    let before = cpu_s();
    let run = Run::read(file.path()).unwrap();
    let page = emud::experiment::report::html(&Logged::Run(run.clone().into())).unwrap();
    assert!(cpu_s() - before < 10, "{} s", cpu_s() - before);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert_eq!(run.tracks[0].samples, 3_600);
    assert_eq!(run.outputs["client"].count(), 36_000);
    assert!(page.contains("35,500 lines are left out here"));
}
