// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links that change with time: rows, to the nanosecond.

use super::*;
use emud::profile::{Profile, Trace, TraceRow, TraceSource};

/// Rows of (ms, bit/s), repeated after `period` ms or held.
pub fn rates(rows: &[(u64, u64)], period: u64, repeat: bool) -> Trace {
    let row = |(ms, rate): &(u64, u64)| TraceRow {
        at_ns: ms * MS,
        rate: Some(*rate),
        ..TraceRow::default()
    };
    of_rows(rows.iter().map(row).collect(), period * MS, repeat)
}

pub fn of_rows(rows: Vec<TraceRow>, period_ns: u64, repeat: bool) -> Trace {
    Trace {
        source: TraceSource::Rows {
            rows: rows.into(),
            period_ns,
        },
        repeat,
        offset_ns: 0,
    }
}

pub fn traced(trace: Trace) -> Link {
    link(|l| {
        l.trace = Some(trace);
        l.queue = Limit::Packets(65_536).into();
    })
}

fn departures(b: &Bench, bytes: usize, arrivals: &[u64]) -> Vec<u64> {
    let frame = udp4(bytes, 1);
    let each = arrivals.iter().map(|at| b.send(&frame, *at).departure);
    each.collect()
}

#[test]
fn a_packet_under_way_when_the_rate_changes_takes_what_is_left() {
    // 1 ms at 1 Mbit/s carries 125 bytes; the other 875 take 0.7 ms at 10 Mbit/s.
    let b = Bench::new(&traced(rates(
        &[(0, 1_000_000), (1, 10_000_000)],
        1_000,
        true,
    )));
    assert_eq!(departures(&b, 1000, &[0]), [MS + 700_000]);
    // And downwards: at 999 ms it is 10 Mbit/s for 1 ms, 1250 bytes, then 1 Mbit/s for one.
    assert_eq!(
        departures(&b, 1300, &[999 * MS]),
        [1_000 * MS + 400_000],
        "over the seam"
    );
}

#[test]
fn an_outage_stops_the_bits_where_they_are() {
    let b = Bench::new(&traced(rates(
        &[(0, 8_000_000), (10, 0), (20, 0), (50, 8_000_000)],
        100,
        true,
    )));
    // 500 bytes before, 500 after.
    assert_eq!(departures(&b, 1000, &[9_500_000]), [50_500_000]);
    assert_eq!(departures(&b, 500, &[20 * MS]), [51 * MS], "queued within");
    // The last bit at the moment at which it begins.
    assert_eq!(departures(&b, 1000, &[109 * MS]), [110 * MS]);
    assert_eq!(departures(&b, 1000, &[110 * MS]), [151 * MS]);
}

#[test]
fn the_last_row_holds() {
    let b = Bench::new(&traced(rates(
        &[(0, 1_000_000), (10, 8_000_000)],
        20,
        false,
    )));
    assert_eq!(
        departures(&b, 1000, &[3_000 * MS; 2]),
        [3_001 * MS, 3_002 * MS]
    );
    let b = Bench::new(&traced(rates(&[(0, 8_000_000), (10, 0)], 20, false)));
    let sent = |at| b.send(&udp4(1000, 1), at).verdict == TC_ACT_UNSPEC;
    assert!(sent(0) && sent(9 * MS));
    assert!(!sent(9 * MS + 1) && !sent(20 * MS), "never sent");
    assert_eq!(b.counters().queue_dropped, 2);
}

#[test]
fn an_offset_begins_within() {
    let mut trace = rates(&[(0, 1_000_000), (10, 8_000_000)], 20, true);
    trace.offset_ns = 45 * MS;
    let b = Bench::new(&traced(trace));
    // 5 ms into the third round.
    assert_eq!(departures(&b, 250, &[0]), [2 * MS]);
    assert_eq!(departures(&b, 1000, &[5 * MS]), [6 * MS]);
}

#[test]
fn a_restart_begins_anew_at_one_moment() {
    let mut b = Bench::new(&traced(rates(&[(0, 1_000_000), (10, 8_000_000)], 20, true)));
    assert_eq!(departures(&b, 1000, &[14 * MS]), [15 * MS]);
    let mut up = b.compile(
        &traced(rates(&[(0, 1_000_000), (10, 8_000_000)], 20, true)),
        42,
        abi::EMUD_UP,
        stamp_place(),
    );
    let id = up.link.timeline.id;
    // The effect of `emud set eth0 trace.restart` 15 ms after attach.
    emud::datapath::stage::timeline::shift(&mut up.link.timeline, 15 * MS);
    assert_ne!(up.link.timeline.id, id, "opportunities are counted from 0");
    b.apply([&[up], &[]]).unwrap();
    // 10 ms at 1 Mbit/s again: 1000 bytes take 8 of them.
    assert_eq!(departures(&b, 1000, &[15 * MS]), [23 * MS]);
    assert_eq!(departures(&b, 1000, &[25 * MS]), [26 * MS]);
}

/// The integral of the rate, in whole numbers: bits times 1e9.
struct Exact {
    rows: Vec<(u64, u64)>,
    period_ns: u64,
}

impl Exact {
    fn rate(&self, row: usize) -> u128 {
        u128::from(self.rows[row].1)
    }

    /// Returns the row of a time, and when it ends.
    fn row(&self, ns: u64) -> (usize, u64) {
        let (round, pos) = (ns / self.period_ns, ns % self.period_ns);
        let row = self.rows.partition_point(|(at, _)| *at <= pos) - 1;
        let end = self.rows.get(row + 1).map_or(self.period_ns, |r| r.0);
        (row, round * self.period_ns + end)
    }

    /// Returns when `work` from `start` on is done, rounded down.
    fn done(&self, start: u64, mut work: u128) -> u64 {
        let mut at = start;
        loop {
            let (row, end) = self.row(at);
            let room = u128::from(end - at) * self.rate(row);
            if work <= room && self.rate(row) > 0 {
                return at + (work / self.rate(row)) as u64;
            }
            work -= room;
            at = end;
        }
    }

    fn carried(&self, from: u64, to: u64) -> u128 {
        let (mut at, mut sum) = (from, 0);
        while at < to {
            let (row, end) = self.row(at);
            sum += u128::from(end.min(to) - at) * self.rate(row);
            at = end;
        }
        sum
    }
}

pub fn lcg(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn any_packets_over_any_rows_leave_when_the_integral_is_their_length() {
    let mut seed = 7;
    for (rows, slowest, fastest) in [(2, 3, 7), (40, 4, 7), (300, 5, 9), (1000, 3, 8)] {
        let mut at_ns = 0;
        let list: Vec<(u64, u64)> = (0..rows)
            .map(|i| {
                let row = (
                    at_ns,
                    10u64.pow(slowest + (lcg(&mut seed) % u64::from(fastest - slowest + 1)) as u32)
                        * (1 + lcg(&mut seed) % 9),
                );
                at_ns += 1 + lcg(&mut seed) % (400 * MS / rows);
                // One in eight is an outage, but for the first.
                if i > 0 && lcg(&mut seed).is_multiple_of(8) {
                    (row.0, 0)
                } else {
                    row
                }
            })
            .collect();
        let exact = Exact {
            rows: list.clone(),
            period_ns: at_ns,
        };
        let trace = list.iter().map(|(at_ns, rate)| TraceRow {
            at_ns: *at_ns,
            rate: Some(*rate),
            ..TraceRow::default()
        });
        let b = Bench::new(&traced(of_rows(trace.collect(), at_ns, true)));
        let (mut start, mut work, mut at) = (0, 0u128, 0);
        let (mut off, mut sent) = (0, 0);
        for _ in 0..4000 {
            at += lcg(&mut seed) % MS;
            let bytes = 60 + (lcg(&mut seed) % 1400) as usize;
            if exact.carried(start, at.max(start)) >= work {
                (start, work) = (at, 0);
            }
            let with = work + bytes as u128 * 8_000_000_000;
            let want = exact.done(start, with);
            if want > 7_000 * MS || at > 5_000 * MS {
                break;
            }
            work = with;
            let got = b.send(&udp4(bytes, 1), at).departure;
            assert!(
                got.abs_diff(want) <= 1,
                "{rows} rows, {at}: {got} for {want}"
            );
            off += u32::from(got != want);
            sent += 1;
        }
        println!("{rows} rows: {off} of {sent} one ns off");
        assert!(sent > 100, "{rows} rows: only {sent} sent");
        // Where the sum is within a fraction of a ns of a whole one.
        assert!(
            off * 1000 <= sent,
            "{rows} rows: {off} of {sent} one ns off"
        );
    }
}

#[test]
fn limits_mean_what_they_say_whatever_the_rate() {
    let slow_then_fast = || rates(&[(0, 800_000), (100, 80_000_000)], 4_000, true);
    let with = |queue: emud::profile::Queue| {
        Bench::new(&link(|l| {
            l.trace = Some(slow_then_fast());
            l.queue = queue;
        }))
    };
    let admitted = |b: &Bench, at| {
        let all = (0..400).map(|_| b.send(&udp4(1000, 1), at).verdict);
        all.filter(|v| *v == TC_ACT_UNSPEC).count()
    };
    // 10 packets take 100 ms, then 100 us each.
    assert_eq!(admitted(&with(Limit::Packets(20).into()), 0), 20);
    assert_eq!(admitted(&with(Limit::Bytes(20_000).into()), 0), 20);
    assert_eq!(admitted(&with(Limit::Bytes(20_999).into()), 50 * MS), 20);
    assert_eq!(admitted(&with(Limit::Bytes(20_000).into()), 200 * MS), 20);
    assert_eq!(admitted(&with(Limit::Bytes(15_000).into()), 3_950 * MS), 15);
    // Those whose bits begin within 30 ms; 50 ms before the fast time it is 5, then 300.
    assert_eq!(admitted(&with(Limit::Time(30 * MS).into()), 0), 4);
    let over = admitted(&with(Limit::Time(60 * MS).into()), 50 * MS);
    assert_eq!(over, 5 + 101);
}

/// In two rows, and with nothing in front of the packet: its bits begin at the end of the outage.
#[test]
fn a_limit_in_time_counts_an_outage() {
    let sent = |at: u64| {
        let b = Bench::new(&link(|l| {
            let rows = [(0, 8_000_000), (10, 0), (20, 0), (50, 8_000_000)];
            l.trace = Some(rates(&rows, 100, true));
            l.queue = Limit::Time(15 * MS).into();
        }));
        let fate = b.send(&udp4(1000, 1), at);
        assert_eq!(
            b.counters().queue_dropped,
            u64::from(fate.verdict != TC_ACT_UNSPEC)
        );
        fate.verdict == TC_ACT_UNSPEC
    };
    for (at, admitted) in [
        (9 * MS, true), // its last bit is sent just before
        (10 * MS, false),
        (34 * MS, false),
        (35 * MS + 1, true),
    ] {
        assert_eq!(sent(at), admitted, "{at}");
    }
}

/// A burst reaches back into an outage that is over when the packet comes: it does not wait.
#[test]
fn a_burst_behind_an_outage_finds_an_empty_queue() {
    let b = Bench::new(&link(|l| {
        let rows = [(0, 8_000_000), (1_000, 0), (2_000, 8_000_000)];
        l.trace = Some(rates(&rows, 3_000, true));
        l.wire.burst = Some(100_000);
        l.queue = Limit::Time(50 * MS).into();
    }));
    assert_eq!(departures(&b, 1000, &[2_050 * MS]), [2_050 * MS]);
    assert_eq!(b.counters().queue_dropped, 0);
}

#[test]
fn delay_and_loss_are_those_of_the_moment_at_which_it_is_sent() {
    let row = |at_ms: u64, delay_ms: u64, loss: f64| TraceRow {
        at_ns: at_ms * MS,
        rate: Some(8_000_000),
        delay_ns: Some(delay_ms * MS),
        loss: Some(loss),
        ..TraceRow::default()
    };
    let rows = vec![row(0, 10, 0.0), row(10, 30, 0.0), row(20, 5, 1.0)];
    let b = Bench::new(&traced(of_rows(rows, 1_000 * MS, true)));
    assert_eq!(departures(&b, 1000, &[0]), [11 * MS]);
    // Sent at 10 ms, when the second row begins.
    assert_eq!(departures(&b, 1000, &[9 * MS]), [40 * MS]);
    assert_eq!(departures(&b, 999, &[18 * MS]), [48 * MS + 999_000]);
    assert_eq!(b.send(&udp4(1000, 1), 19 * MS).verdict, TC_ACT_STOLEN);
    assert_eq!(b.counters().lost, 1);
    // In the next period: a shorter delay does not make packets overtake.
    assert_eq!(departures(&b, 1000, &[1_000 * MS]), [1_011 * MS]);
}

#[test]
fn figures_alone_leave_the_rate_to_the_link() {
    let row = |at_ms: u64, delay_ms: u64| TraceRow {
        at_ns: at_ms * MS,
        delay_ns: Some(delay_ms * MS),
        ..TraceRow::default()
    };
    let b = Bench::new(&link(|l| {
        l.rate = Some(8_000_000);
        l.trace = Some(of_rows(vec![row(0, 10), row(50, 20)], 100 * MS, true));
    }));
    assert_eq!(departures(&b, 1000, &[0, 0]), [11 * MS, 12 * MS]);
    assert_eq!(
        departures(&b, 1000, &[60 * MS, 60 * MS]),
        [81 * MS, 82 * MS]
    );
    assert_eq!(departures(&b, 1000, &[100 * MS]), [111 * MS]);
}

#[test]
fn jitter_is_scaled_row_by_row() {
    let row = |at_ms: u64, jitter_ms: u64| TraceRow {
        at_ns: at_ms * MS,
        delay_ns: Some(50 * MS),
        jitter_ns: Some(jitter_ms * MS),
        ..TraceRow::default()
    };
    let b = Bench::new(&link(|l| {
        l.trace = Some(of_rows(
            vec![row(0, 0), row(1_000, 10), row(2_000, 40)],
            3_000 * MS,
            true,
        ));
        l.delay.jitter = Some(Jitter {
            sd_ns: 1.0,
            reorder: Reorder::Jitter,
            ..Jitter::default()
        });
    }));
    let n = 20_000u64;
    for (second, half) in [(0, 0.0), (1, 10e6), (2, 40e6)] {
        let frame = udp4(100, 1);
        let d: Vec<f64> = (0..n)
            .map(|i| {
                let at = second * 1_000 * MS + i * 40_000;
                (b.send(&frame, at).departure - at) as f64
            })
            .collect();
        let (mean, sd) = moments(&d);
        let want = half / 3f64.sqrt();
        let se = want / (n as f64).sqrt();
        // A uniform deviation's own standard error is 0.45 of the mean's; a scale has 2^-20.
        let scale = half / f64::from(1 << 20) + 1.0;
        assert!(
            (mean - 50e6).abs() <= 4.0 * se + scale,
            "{half}: mean {mean}"
        );
        assert!(
            (sd - want).abs() <= 4.0 * 0.45 * se + scale,
            "{half}: sd {sd}"
        );
        let low = d.iter().copied().fold(f64::MAX, f64::min);
        assert!(low >= 50e6 - half - scale, "{half}: {low}");
    }
}

/// The delays of the first and of the second second of a link, ns.
fn two_seconds(text: &str) -> [Vec<f64>; 2] {
    let profile = Profile::parse(text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
    let b = Bench::new(&profile.up);
    let frame = udp4(100, 1);
    [0, 1].map(|second| {
        let arrivals = (0..20_000u64).map(|i| second * 1_000 * MS + i * 40_000);
        arrivals
            .map(|at| (b.send(&frame, at).departure - at) as f64)
            .collect()
    })
}

/// Which a link has without any jitter besides.
#[test]
fn jitter_of_rows_has_distribution_and_order_of_the_link() {
    let [wide, _] = two_seconds(
        "[up]\ndelay = { mean = \"50ms\", distribution = \"normal\", reorder = \"jitter\" }\n\
         trace = { rows = \"time_s,jitter_ms;0,5;1,2\" }\n",
    );
    let (_, sd) = moments(&wide);
    // The standard error of a normal deviation: sd / sqrt(2 n).
    assert!((sd - 5e6).abs() < 4.0 * 5e6 / 40_000f64.sqrt(), "{sd}");
    let beyond = wide.iter().filter(|d| (**d - 50e6).abs() > 9e6).count();
    assert!(beyond > 0, "a uniform one ends at 8.7 ms");
}

#[test]
fn jitter_wider_than_the_links_own_delay_is_cut_off_at_zero() {
    let rows = "trace = { rows = \"time_s,jitter_ms;0,5;1,2\" }";
    let [wide, narrow] = two_seconds(&format!(
        "[up]\ndelay = {{ mean = \"3ms\", jitter = \"1ms\", reorder = \"jitter\" }}\n{rows}\n"
    ));
    // Uniform from -2 to 8 ms: a fifth at 0, and 8^2 / 2 / 10 on average.
    let (mean, _) = moments(&wide);
    assert!(
        (mean - 3.2e6).abs() < 4.0 * 2.6e6 / 20_000f64.sqrt(),
        "{mean}"
    );
    let none = wide.iter().filter(|d| **d == 0.0).count() as f64 / 20_000.0;
    assert!((none - 0.2).abs() < 4.0 * 0.4 / 20_000f64.sqrt(), "{none}");
    let (mean, sd) = moments(&narrow);
    let want = 2e6 / 3f64.sqrt();
    assert!((mean - 3e6).abs() < 4.0 * want / 20_000f64.sqrt(), "{mean}");
    assert!((sd / want - 1.0).abs() < 0.02, "{sd}");
    for (delays, low, high) in [(&wide, 0.0, 8e6), (&narrow, 1e6, 5e6)] {
        let inside = |d: &f64| (low - 10.0..=high + 10.0).contains(d);
        assert!(delays.iter().all(inside), "{low} to {high}");
    }
    // In order, and about no delay at all.
    for (delay, mean) in [("delay = \"3ms\"\n", 3e6), ("", 0.0)] {
        let [wide, narrow] = two_seconds(&format!("[up]\n{delay}{rows}\n"));
        assert!(wide.iter().all(|d| (0.0..=mean + 5e6 + 10.0).contains(d)));
        assert!(wide.contains(&0.0));
        assert!(narrow.iter().all(|d| (0.0..=mean + 2e6 + 10.0).contains(d)));
    }
}

#[test]
fn a_traces_loss_is_where_the_link_says() {
    let rows = "trace = { rows = \"time_ms,loss_%;0,0;10,100;20,0;30,100\" }";
    let bench = |loss: &str| {
        let text =
            format!("[up]\nrate = \"8Mbit\"\nloss = {{ probability = 0, {loss} }}\n{rows}\n");
        let profile = Profile::parse(&text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
        Bench::new(&profile.up)
    };
    // Before the queue by the row of its arrival, and it takes no time on the wire.
    let b = bench("stage = \"before-queue\"");
    assert_eq!(b.send(&udp4(1000, 1), 19_900_000).verdict, TC_ACT_STOLEN);
    assert_eq!(departures(&b, 1000, &[20 * MS]), [21 * MS]);
    assert_eq!(departures(&b, 1000, &[29_900_000]), [30_900_000]);
    let b = bench("ecn = true");
    let mut frame = udp4(1000, 1);
    frame[15] = 1;
    assert_eq!(b.send(&frame, 12 * MS).departure, 13 * MS);
    let c = b.counters();
    assert_eq!((c.lost, c.marked), (0, 1));
}

/// A number of rows of 5 us, about 8 Mbit/s.
fn many_rows(count: u64) -> Trace {
    let rates = (0..count).map(|i| TraceRow {
        at_ns: i * 5_000,
        rate: Some(8_000_000 + i % 1000),
        ..TraceRow::default()
    });
    of_rows(rates.collect(), count * 5_000, true)
}

#[test]
fn a_million_rows_fit_and_stay_where_they_are() {
    let begun = std::time::Instant::now();
    let million = traced(many_rows(1_000_000));
    let mut many = Bench::sized(
        &million,
        Sizes {
            rows: 1_000_001,
            ..Sizes::default()
        },
    );
    println!(
        "a million rows: compiled, loaded and written in {:?}",
        begun.elapsed()
    );
    let few = Bench::new(&traced(rates(
        &[(0, 8_000_000), (500, 8_000_500)],
        1_000,
        true,
    )));
    // Somewhere in the middle, from a cold cursor.
    let first = many.send(&udp4(1000, 1), 3_333 * MS).departure;
    assert!(first.abs_diff(3_334 * MS) < 100, "{first}");
    // With and without looking for the row: the clock goes on by 50 us, ten rows.
    let cost = |b: &Bench, from: u64| {
        let frame = udp4(100, 1);
        let run = |i: u64| {
            let ctx = arriving(b.start + from + i * 50_000);
            let options = TestRunOptions {
                data_in: Some(&frame),
                ctx_in: Some(&ctx),
                ..TestRunOptions::new()
            };
            let program = b.loaded.program(Program::Classify).unwrap();
            program.test_run(options).unwrap().duration.as_nanos()
        };
        let mut each: Vec<_> = (0..20_000).map(run).collect();
        each.sort_unstable();
        each[each.len() / 2]
    };
    println!(
        "median ns a packet: {} with a million rows, {} with two, {} with a plain rate",
        cost(&many, 4_000 * MS),
        cost(&few, 4_000 * MS),
        cost(&Bench::new(&link(|l| l.rate = Some(8_000_000))), 4_000 * MS)
    );
    // Active rows stay where they are when something else changes.
    let place = many.maps.link(abi::EMUD_UP).unwrap().timeline.first;
    let profile = emud::profile::Profile {
        up: million,
        ..emud::profile::Profile::parse("[link]", "x").unwrap()
    };
    // As the profile in the kernel has it.
    let mut changed = emud::datapath::stage::timeline::kept(&profile).up;
    changed.delay.mean_ns = MS;
    many.set(&changed, 42, stamp_place());
    let timeline = many.maps.link(abi::EMUD_UP).unwrap().timeline;
    assert_eq!((timeline.first, timeline.count), (place, 1_000_000));
    assert_eq!(timeline.kind, abi::EMUD_TIMELINE_RATES);
    // At 8,000,999 bit/s at most it is 125 ns less than a ms.
    let last = many.send(&udp4(1000, 1), 6_000 * MS).departure;
    assert!((6_002 * MS).abs_diff(last) <= 125, "{last}");
    // Whether it is repeated is in the rows.
    let mut once = changed.clone();
    once.trace.as_mut().unwrap().repeat = false;
    let up = many.compile(&once, 42, abi::EMUD_UP, stamp_place());
    let error = many.apply([&[up], &[]]).unwrap_err().to_string();
    assert!(error.contains("give its file again"), "{error}");
}

#[test]
fn another_trace_takes_other_rows_and_there_may_be_no_room() {
    let mut b = Bench::new(&traced(rates(&[(0, 8_000_000)], 10, true)));
    let first = b.maps.link(abi::EMUD_UP).unwrap().timeline.first;
    b.set(&traced(rates(&[(0, 800_000)], 10, true)), 42, stamp_place());
    let timeline = b.maps.link(abi::EMUD_UP).unwrap().timeline;
    assert_ne!(timeline.first, first);
    assert_eq!(departures(&b, 1000, &[0]), [10 * MS]);
    // The space of the first one is free again.
    b.set(
        &traced(rates(&[(0, 80_000_000)], 10, true)),
        42,
        stamp_place(),
    );
    assert_eq!(b.maps.link(abi::EMUD_UP).unwrap().timeline.first, first);
    let up = b.compile(&traced(many_rows(5_000)), 42, abi::EMUD_UP, stamp_place());
    let error = b.apply([&[up], &[]]).unwrap_err().to_string();
    assert!(error.contains("no room for 5000 rows"), "{error}");
    assert_eq!(departures(&b, 1000, &[100 * MS]), [100 * MS + 100_000]);
}

/// Each computes its time before it enters the queue, which the other one may have entered since.
#[test]
fn of_two_senders_at_once_nobody_loses_for_good() {
    const EACH: u32 = 10_000;
    let b = Bench::new(&link(|l| {
        l.trace = Some(rates(&[(0, 8_000_000), (10, 80_000_000)], 20, true));
        l.queue = Limit::Packets(2 * EACH).into();
    }));
    let is_admitted = || b.send(&udp4(100, 1), FAR).verdict == TC_ACT_UNSPEC;
    let sender = || (0..EACH).filter(|_| is_admitted()).count() as u32;
    let admitted = std::thread::scope(|scope| {
        let other = scope.spawn(sender);
        sender() + other.join().unwrap()
    });
    assert_eq!(admitted, 2 * EACH);
    assert!(!is_admitted(), "the queue is full");
}
