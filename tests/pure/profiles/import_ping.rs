// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ping logs as profiles.

use emud::convert::import::{ping, ping_trace};
use emud::profile::quantile::{delay_table, table_moments};
use emud::profile::{Profile, TextError, TraceRow, TraceSource};
use proptest::prelude::*;
use support::chance::same_cases;

use super::parse;

fn import(log: &str) -> String {
    ping(log, "ping.log")
        .unwrap_or_else(|error| panic!("{error}"))
        .toml
}

fn line<'a>(toml: &'a str, key: &str) -> Option<&'a str> {
    toml.lines()
        .find_map(|line| line.strip_prefix(&format!("{key} = ")))
}

/// Twelve replies of 20 echoes: alternately 10 and 20 ms, mean 15 ms, sd 5 ms.
fn replies(make: impl Fn(u32, &str) -> String) -> String {
    (1..=20)
        .filter(|n| n % 5 != 0 && n % 5 != 3)
        .enumerate()
        .map(|(i, n)| make(n, if i % 2 == 0 { "10.0" } else { "20.0" }))
        .collect()
}

const V4_HEAD: &str = "PING example.org (192.0.2.1) 56(84) bytes of data.\n";

fn v4(n: u32, ms: &str) -> String {
    format!("64 bytes from host.example.org (192.0.2.1): icmp_seq={n} ttl=56 time={ms} ms\n")
}

fn v4_stamped(n: u32, ms: &str) -> String {
    format!("[1700000{n:03}.123456] {}", v4(n, ms))
}

fn v6(n: u32, ms: &str) -> String {
    format!("64 bytes from 2001:db8::1: icmp_seq={n} ttl=57 time={ms} ms\n")
}

const SUMMARY: &str = "\n--- example.org ping statistics ---\n\
    20 packets transmitted, 12 received, 40% packet loss, time 19028ms\n\
    rtt min/avg/max/mdev = 10.000/15.000/20.000/5.000 ms\n";

#[test]
fn the_round_trip_is_halved() {
    for (name, log) in [
        ("IPv4", format!("{V4_HEAD}{}{SUMMARY}", replies(v4))),
        ("-D", format!("{V4_HEAD}{}{SUMMARY}", replies(v4_stamped))),
        (
            "IPv6",
            format!(
                "PING 2001:db8::1(2001:db8::1) 56 data bytes\n{}{SUMMARY}",
                replies(v6)
            ),
        ),
    ] {
        let toml = import(&log);
        let delay = line(&toml, "delay").unwrap();
        // 15 / 2, 5 / sqrt(2) = 3.535534.
        assert!(
            delay.starts_with(
                "{ mean = \"7.5ms\", sd = \"3.535534ms\", samples = { values = \"10 20 "
            ),
            "{name}: {toml}"
        );
        assert!(
            delay.ends_with("\", unit = \"ms\", half = true } }"),
            "{toml}"
        );
        assert_eq!(delay.matches("10").count(), 6, "{toml}");
        // 1 - sqrt(1 - 8/20) = 0.2254033
        assert_eq!(line(&toml, "loss"), Some("\"22.5403%\""), "{name}");
        assert_eq!(line(&toml, "duplicate"), None);
        let whom = if name == "IPv6" {
            "2001:db8::1"
        } else {
            "example.org"
        };
        let source = format!("\"measured: ping of {whom}, 20 echoes (ping.log)\"");
        assert_eq!(line(&toml, "source"), Some(source.as_str()));
        assert!(toml.contains("\n[link]\n"), "{toml}");
        let profile = parse(&toml);
        assert_eq!(profile.up, profile.down);
        let jitter = profile.up.delay.jitter.as_ref().unwrap();
        let got = (profile.up.delay.mean_ns, jitter.sd_ns);
        assert_eq!(got, (7_500_000, 3_535_534.0));
    }
}

/// Without the summary the losses follow from gaps: 8 of 20, but the loss of the last echo is
/// unknown: 7 of 19.
#[test]
fn losses_without_a_summary() {
    let toml = import(&format!("{V4_HEAD}{}", replies(v4)));
    assert!(toml.contains("7 of 19 echoes were lost"), "{toml}");
    // The middle of a log: echoes before its first line are not lost.
    let tail: String = (101..=112).map(|n| v4(n, "10.0")).collect();
    assert_eq!(line(&import(&tail), "loss"), None);
    // ... but after the first line they are: echoes 1 to 100 of 112.
    let toml = import(&format!("{V4_HEAD}{tail}"));
    assert!(toml.contains("100 of 112 echoes were lost"), "{toml}");
    // Errors and "no answer yet" (-O) are sent echoes.
    let more = "no answer yet for icmp_seq=20\n\
        From 192.0.2.254 icmp_seq=21 Destination Host Unreachable\n";
    let toml = import(&format!("{V4_HEAD}{}{more}", replies(v4)));
    assert!(toml.contains("9 of 21 echoes were lost"), "{toml}");
}

/// Numbers have 16 bits: 65535 is followed by 0.
#[test]
fn sequence_numbers_wrap() {
    let log: String = (65530..65550u32)
        .filter(|n| *n != 65540)
        .map(|n| v4(n % 65536, "10.0"))
        .collect();
    let toml = import(&log);
    assert!(toml.contains("1 of 20 echoes were lost"), "{toml}");
}

#[test]
fn duplicates_and_late_replies() {
    let mut log = format!("{V4_HEAD}{}", replies(v4));
    log += &v4(1, "99.0").replace(" ms", " ms (DUP!)");
    log += &v4(20, "10.0");
    log += &v4(17, "20.0");
    let toml = import(&log);
    // 17 has already arrived: also a duplicate, without the mark. sqrt(1 + 2/13) - 1.
    assert_eq!(line(&toml, "duplicate"), Some("\"7.41723%\""), "{toml}");
    assert!(!line(&toml, "delay").unwrap().contains("99"), "{toml}");
    let log: String = [1, 2, 4, 3, 5, 6, 7, 8, 9, 10]
        .iter()
        .map(|n| v4(*n, "10.0"))
        .collect();
    let toml = import(&log);
    assert!(
        toml.contains("1 replies arrived after a later one"),
        "{toml}"
    );
    assert_eq!(line(&toml, "loss"), None);
}

/// More samples than a profile holds become quantiles with the same middle and ends.
#[test]
fn many_replies_become_quantiles() {
    let log: String = (1..=5000)
        .map(|n| v4(n, &(f64::from(n) / 100.0).to_string()))
        .collect();
    let toml = import(&log);
    let delay = line(&toml, "delay").unwrap();
    let (_, values) = delay.split_once("values = \"").unwrap();
    let (values, _) = values.split_once('"').unwrap();
    let values: Vec<f64> = values.split(' ').map(|v| v.parse().unwrap()).collect();
    assert_eq!(values.len(), 1000);
    // Each stands for five samples, 0.01 ms apart, and is the third of them.
    for (i, value) in values.iter().enumerate() {
        let want = (5 * i + 3) as f64 / 100.0;
        assert!((value - want).abs() < 1e-6, "{i}: {value} {want}");
    }
}

/// The samples keep the share of one reply: the others keep their delay.
#[test]
fn one_outlier_of_many_replies_leaves_the_others() {
    for n in [2999, 3000] {
        let ms = |i| match i {
            1 => "2000",
            i if i % 2 == 0 => "19.5",
            _ => "20.5",
        };
        let log: String = (1..=n).map(|i| v4(i, ms(i))).collect();
        let toml = import(&log);
        assert!(toml.contains("The samples are these means"), "{toml}");
        let delay = parse(&toml).up.delay;
        let table = delay_table(&delay).unwrap();
        let median = table[table.len() / 2];
        assert!(median.abs_diff(10_000_000) < 1_000_000, "{n}: {median}");
        assert!(table[0] > 8_000_000, "{n}: {}", table[0]);
        assert!(table[table.len() - 1] > 100_000_000, "{n}");
        let (mean, _) = table_moments(&table);
        let want = (2000.0 / f64::from(n) + 20.0) / 2.0 * 1e6;
        assert!((mean - want).abs() < 10_000.0, "{n}: {mean} {want}");
    }
}

/// A long tail for which sd / sqrt(2) would need delays below zero: the largest possible value,
/// with a note.
#[test]
fn a_long_tail_is_still_a_profile() {
    for n in [20, 200, 2000] {
        let log: String = (1..=n)
            .map(|i| v4(i, &format!("{:.3}", 1000.0 / f64::from(i))))
            .collect();
        let toml = import(&log);
        let rtts = (1..=n).map(|i| 1000.0 / f64::from(i));
        let (mean, squares) = rtts.fold((0.0, 0.0), |(m, s), x| (m + x, s + x * x));
        let mean = mean / f64::from(n);
        let sd = (squares / f64::from(n) - mean * mean).sqrt();
        let delay = parse(&toml).up.delay;
        // The log has three digits after the point.
        assert!((delay.mean_ns as f64 / 1e6 - mean / 2.0).abs() < 1e-3);
        let (got, want) = (delay.jitter.unwrap().sd_ns / 1e6, sd / 2f64.sqrt());
        let is_cut = toml.contains("were not independent");
        // Of 20 replies the spread fits, of more it does not.
        assert_eq!(is_cut, n > 20, "{toml}");
        match is_cut {
            false => assert!((got - want).abs() < 1e-3, "{got} {want}"),
            // Between the values for dependent and for independent halves.
            true => assert!(got < want && got > sd / 2.0, "{n}: {got} {want}"),
        }
    }
}

/// A constant time, or too few values: no distribution.
#[test]
fn no_distribution_without_samples() {
    let same: String = (1..=20).map(|n| v4(n, "10.0")).collect();
    let profile = parse(&import(&same));
    assert_eq!(profile.up.delay.mean_ns, 5_000_000);
    assert_eq!(profile.up, profile.down);
    assert!(profile.up.delay.jitter.is_none());
    let few = format!("{}{}", v4(1, "10.0"), v4(2, "20.0"));
    let imported = ping(&few, "ping.log").unwrap();
    assert_eq!(line(&imported.toml, "delay"), Some("\"7.5ms\""));
    assert!(imported.warnings[0].contains("2 replies are too few"));
}

#[test]
#[rustfmt::skip]
fn logs_that_are_none() {
    for (log, place, title, help) in [
        ("", "ping.log:1:1", "no replies", "LC_ALL=C ping, without -q"),
        ("PING a (b) 56(84) Bytes an Daten.\n64 Bytes von b: icmp_seq=1 ttl=56 Zeit=11.6 ms\n",
            "ping.log:2:1", "another language", "LC_ALL=C"),
        ("PING a (b) 56(84) octets.\n64 octets de b : icmp_seq=1 ttl=56 temps=11,6 ms\n",
            "ping.log:2:1", "another language", "LC_ALL=C"),
        ("PING a (b): 56 data bytes\n64 bytes from b: no=0 ttl=56 time=11.6 ms\n",
            "ping.log:2:1", "of another ping", "iputils"),
        ("64 bytes from b: icmp_seq=1 ttl=56 time=11,6 ms\n", "ping.log:1:1", "has a comma", "LC_ALL=C"),
        ("PING a (b) 56(84) bytes of data.\n\n10 packets transmitted, 0 received, 100% packet loss, time 1ms\n",
            "ping.log:1:1", "no replies", "without -q"),
        ("64 bytes from a: icmp_seq=1 ttl=1 time=1 ms\n16 bytes from a: icmp_seq=2 ttl=1\n",
            "ping.log:2:1", "without its time", "-s 16"),
        ("64 bytes from a: icmp_seq=1 ttl=1 time=fast ms\n", "ping.log:1:1", "without its time", "time=11.6 ms"),
        ("PING a (b)\n64 bytes from a: icmp_seq=1 ttl=1 time=1 ms\nPING a (b)\n", "ping.log:3:1", "a second ping", "one run"),
        // Not 100 % of duplicates.
        ("64 bytes from a: icmp_seq=1 ttl=1 time=1 ms\n1 packets transmitted, 1 received\n64 bytes from a: icmp_seq=1 ttl=1 time=2 ms\n",
            "ping.log:3:1", "after the summary", "one at a time"),
    ] {
        let Err(TextError::Mistakes(found)) = ping(log, "ping.log") else {
            panic!("{log}")
        };
        let shown = found.to_string();
        for part in [place, title, help] {
            assert!(shown.contains(part), "{log}: {part}\n{shown}");
        }
    }
}

const BUSYBOX: &str = "PING example.org (192.0.2.1): 56 data bytes\n\
    64 bytes from 192.0.2.1: seq=0 ttl=56 time=10.000 ms\n\
    64 bytes from 192.0.2.1: seq=1 ttl=56 time=20.000 ms\n\
    64 bytes from 192.0.2.1: seq=2 ttl=56 time=30.000 ms (DUP!)\n\
    64 bytes from 192.0.2.1: seq=3 ttl=56 time=20.000 ms\n\
    \n--- example.org ping statistics ---\n\
    4 packets transmitted, 3 packets received, 25% packet loss\n\
    round-trip min/avg/max = 10.000/20.000/30.000 ms\n";

#[test]
fn busybox_and_bells() {
    let profile = parse(&import(BUSYBOX));
    // (10 + 20 + 20) / 3 / 2; 3 of 4 echoes: 1 - sqrt(3/4) each way.
    assert_eq!(profile.up.delay.mean_ns, 8_333_333);
    let lost = profile.up.loss.share().unwrap();
    assert!((lost - (1.0 - 0.75f64.sqrt())).abs() < 1e-6, "{lost}");
    let bells = |n, ms: &str| format!("\u{7}{}", v4(n, ms));
    let rung = import(&format!("{V4_HEAD}{}{SUMMARY}", replies(bells)));
    assert_eq!(rung, import(&format!("{V4_HEAD}{}{SUMMARY}", replies(v4))));
}

/// Values that a profile does not support are mistakes of the log.
#[test]
fn logs_at_the_bounds() {
    for (times, said) in [
        // Half of it is more than an hour.
        (["7200001", "7200003"], "more than two hours"),
        (["9e30", "9e30"], "more than two hours"),
    ] {
        let log: String = (1..)
            .zip(times.iter().cycle().take(20))
            .map(|(n, ms)| v4(n, ms))
            .collect();
        let error = ping(&log, "ping.log").unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    for head in [
        format!(
            "PING {} (192.0.2.1) 56(84) bytes of data.\n",
            "x".repeat(5000)
        ),
        "PING a\u{1b}[31m (192.0.2.1) 56(84) bytes of data.\n".to_owned(),
    ] {
        parse(&import(&format!("{head}{}{SUMMARY}", replies(v4))));
    }
    let name = "x".repeat(5000);
    let log = format!("{V4_HEAD}{}{SUMMARY}", replies(v4));
    parse(&ping(&log, &name).unwrap().toml);
    parse(&ping(&log, "\u{1b}[31m.log").unwrap().toml);
}

fn trace(log: &str, interval_ns: Option<u64>) -> Result<(Vec<TraceRow>, u64), TextError> {
    let toml = ping_trace(log, "ping.log", interval_ns, None)?.toml;
    let profile = parse(&toml);
    assert_eq!(profile.up, profile.down);
    match profile.up.trace.unwrap().source {
        TraceSource::Rows { rows, period_ns } => Ok((rows.to_vec(), period_ns)),
        other => panic!("{other:?}"),
    }
}

fn row(at_ns: u64, delay_ns: u64, loss: Option<f64>) -> TraceRow {
    TraceRow {
        at_ns,
        delay_ns: Some(delay_ns),
        loss,
        ..TraceRow::default()
    }
}

const MS: u64 = 1_000_000;

/// Replies to echoes 2, 3, 6 and 7 of 1 .. 8, sent at 100.0, 101.0, 104.0 and 105.5 s: the first echo is
/// one mean interval of 1.1 s before, the last one as much behind, and 4 and 5 are between their neighbours.
#[test]
fn a_trace_has_a_row_for_each_echo_at_its_transmission() {
    let log = format!(
        "{V4_HEAD}\
         [100.010000] {}[101.020000] {}[104.030000] {}[105.540000] {}\n\
         --- example.org ping statistics ---\n\
         8 packets transmitted, 4 received, 50% packet loss, time 7000ms\n",
        v4(2, "10.0"),
        v4(3, "20.0"),
        v4(6, "30.0"),
        v4(7, "40.0"),
    );
    let (rows, period_ns) = trace(&log, None).unwrap();
    let (here, lost) = (Some(0.0), Some(1.0));
    assert_eq!(
        rows,
        [
            row(0, 5 * MS, lost),
            row(1100 * MS, 5 * MS, here),
            row(2100 * MS, 10 * MS, here),
            row(3100 * MS, 10 * MS, lost),
            row(4100 * MS, 10 * MS, lost),
            row(5100 * MS, 15 * MS, here),
            row(6600 * MS, 20 * MS, here),
            row(7700 * MS, 20 * MS, lost),
        ]
    );
    assert_eq!(period_ns, 8800 * MS);
    // By the interval of ping instead of time stamps.
    let (rows, period_ns) = trace(&log, Some(200 * MS)).unwrap();
    let times: Vec<u64> = rows.iter().map(|row| row.at_ns / MS).collect();
    assert_eq!(times, [0, 200, 400, 600, 800, 1000, 1200, 1400]);
    assert_eq!(period_ns, 1600 * MS);
    let toml = ping_trace(&log, "ping.log", None, None).unwrap().toml;
    assert!(toml.contains("4 echoes were lost"), "{toml}");
    let may_double = "may lose twice";
    assert!(!toml.contains(may_double), "{toml}");
    let toml = ping_trace(&log, "ping.log", Some(20 * MS), None)
        .unwrap()
        .toml;
    assert!(toml.contains(may_double), "{toml}");
    // A line that is missing is no loss.
    let cut = log.replace("4 received", "5 received");
    let error = trace(&cut, None).unwrap_err().to_string();
    assert!(
        error.contains("4 replies in the log, and ping counted 5"),
        "{error}"
    );
}

/// Without losses there is no column of losses; replies in another order are echoes in order, and copies of
/// them are no echoes.
#[test]
fn a_trace_follows_the_order_of_echoes() {
    let log = format!(
        "{V4_HEAD}[2.100000] {}[2.400000] {}[2.450000] {}[3.100000] {}",
        v4(1, "100.0"),
        v4(3, "20.0"),
        v4(3, "70.0"),
        v4(2, "900.0"),
    );
    let (rows, period_ns) = trace(&log, None).unwrap();
    let expected = [
        row(0, 50 * MS, None),
        row(200 * MS, 450 * MS, None),
        row(380 * MS, 10 * MS, None),
    ];
    assert_eq!((rows, period_ns), (expected.to_vec(), 560 * MS));
    let toml = ping_trace(&log, "ping.log", None, None).unwrap().toml;
    assert!(
        toml.contains("1 replies arrived after a later one"),
        "{toml}"
    );
    // sqrt(1 + 1/3) - 1.
    assert_eq!(line(&toml, "duplicate"), Some("\"15.4701%\""), "{toml}");
    // A part of a log, whose summary counts echoes that are not in it.
    let part = format!(
        "[7.010000] {}[8.010000] {}{SUMMARY}",
        v4(19, "10.0"),
        v4(20, "10.0")
    );
    assert_eq!(trace(&part, None).unwrap().0.len(), 2);
}

#[test]
#[rustfmt::skip]
fn logs_that_are_no_trace() {
    let stamped = |s: &str, n| format!("[{s}] {}", v4(n, "10.0"));
    let two = |a: &str, b: &str| stamped(a, 1) + &stamped(b, 2);
    for (log, interval, place, title, help) in [
        (v4(1, "10.0") + &v4(2, "10.0"), None, "ping.log:1:1", "without a time stamp", "--interval 1s"),
        (stamped("7.5", 1) + &v4(2, "10.0"), None, "ping.log:2:1", "without a time stamp", "ping -D"),
        (stamped("7.5", 1), None, "ping.log:1:1", "a single reply", "--interval 1s"),
        (two("7.5", "6.5"), None, "ping.log:2:1", "time goes back", "the clock was set"),
        (two("7.5", "7.5"), None, "ping.log:2:1", "time goes back", "the clock was set"),
        (String::new(), Some(MS), "ping.log:1:1", "no replies", "without -q"),
        (format!("{V4_HEAD}{}5000000 packets transmitted, 1 received\n", v4(1, "1")), Some(MS), "ping.log:1:1", "more than 4194304 echoes", "a part"),
        (format!("{V4_HEAD}{}4000000 packets transmitted, 1 received\n", v4(1, "1")), Some(3_600_000 * MS), "ping.log:1:1", "100 years", "--interval"),
        (format!("{V4_HEAD}{}100000 packets transmitted, 1 received\n", v4(1, "1")), Some(MS), "ping.log:1:1", "do not fit", "-o"),
    ] {
        let shown = trace(&log, interval).unwrap_err().to_string();
        for part in [place, title, help] {
            assert!(shown.contains(part), "{log}: {part}\n{shown}");
        }
    }
    // A single echo of a known interval is a trace.
    assert_eq!(trace(&v4(1, "10.0"), Some(MS)).unwrap(), (vec![row(0, 5 * MS, None)], MS));
}

#[test]
fn rows_that_do_not_fit_are_in_a_file_beside() {
    let log: String = (1..=40_000).map(|n| v4(n % 65_536, "10.0")).collect();
    let imported = ping_trace(&log, "ping.log", Some(200 * MS), Some("my.csv")).unwrap();
    let trace = line(&imported.toml, "trace");
    assert_eq!(
        trace,
        Some("{ file = \"my.csv\", period = \"8000s\", loop = true }")
    );
    assert_eq!(imported.beside.unwrap().lines().count(), 40_001);
}

proptest! {
    #![proptest_config(same_cases(support::cases(300)))]

    /// A ping through the trace has the times and losses of the log.
    #[test]
    fn a_trace_is_the_log(
        echoes in prop::collection::vec((1..1_000_000_000u64, prop::option::of(0..2_000_000u64)), 2..40),
        from in 1..70_000u32,
    ) {
        // Distances in us, round trips in us; the first and the last echo have a reply.
        let last = echoes.len() - 1;
        let replies = echoes.iter().scan(0, |sent_us, (distance_us, rtt_us)| {
            *sent_us += distance_us;
            Some((*sent_us, *rtt_us))
        });
        let ends = |i, rtt_us: Option<u64>| if i == 0 || i == last { rtt_us.or(Some(7)) } else { rtt_us };
        let replies: Vec<_> = replies.enumerate().map(|(i, (at, rtt))| (at, ends(i, rtt))).collect();
        let mut log = String::new();
        for (i, (sent_us, rtt_us)) in replies.iter().enumerate() {
            let Some(rtt_us) = rtt_us else { continue };
            let arrived_us = sent_us + rtt_us;
            let sequence = (from as usize + i) % 65_536;
            let reply = v4(sequence as u32, &format!("{}.{:03}", rtt_us / 1000, rtt_us % 1000));
            log += &format!("[{}.{:06}] {reply}", arrived_us / 1_000_000, arrived_us % 1_000_000);
        }
        let (rows, _) = trace(&log, None).unwrap();
        prop_assert_eq!(rows.len(), replies.len());
        prop_assert!(rows.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
        for (row, (sent_us, rtt_us)) in rows.iter().zip(&replies) {
            let Some(rtt_us) = rtt_us else {
                prop_assert_eq!(row.loss, Some(1.0));
                continue;
            };
            prop_assert_eq!(row.at_ns, (sent_us - replies[0].0) * 1000);
            prop_assert_eq!(row.delay_ns, Some(rtt_us * 500));
            prop_assert!(row.loss.is_none_or(|loss| loss == 0.0));
        }
    }
}

proptest! {
    #![proptest_config(same_cases(support::cases(4000)))]

    /// The printed text is a profile that `emud profile check` accepts.
    #[test]
    fn whatever_is_imported_is_a_profile(
        times in prop::collection::vec(prop_oneof![
            0.0..1e-6f64, 0.0..1e-3f64, 0.0..500.0f64, 0.0..1e7f64, Just(0.0), Just(1.0), Just(100.0), Just(1e12),
        ], 1..40),
        scale in prop_oneof![Just(1.0), Just(1e-6), Just(1e-3), Just(0.0)],
        lost in prop::collection::vec(any::<bool>(), 40),
        digits in 0..10usize,
    ) {
        let shown = (1u32..).zip(&times).filter(|(n, _)| !lost[*n as usize - 1] || *n == 1);
        let log: String = shown.map(|(n, ms)| v4(n, &format!("{:.*}", digits, ms * scale))).collect();
        if let Ok(imported) = ping(&format!("{V4_HEAD}{log}"), "ping.log") {
            let read = Profile::parse(&imported.toml, "x.toml");
            prop_assert!(read.is_ok(), "{log}\n{}\n{}", imported.toml, read.unwrap_err());
        }
    }
}
