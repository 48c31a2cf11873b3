// SPDX-License-Identifier: MIT OR Apache-2.0
//! The monitor: its cost per event, the latency of its alarms, and false alarms.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Suite;
use crate::figure::Results;
use benches::events::{Events, GROUPS, measure, nothing, watching};
use support::clock;
use support::load::{Load, numbers};
use support::site::Wires;
use support::stats::{median, quantile};
use support::watch::{Line, Watch};
use support::witness::Witness;

const MS: u64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(1);

pub fn run(suite: &mut Suite) {
    felt(suite);
    cost(suite);
    let trials = if suite.full { 20 } else { 7 };
    for _ in 0..suite.turns {
        told_after(
            &mut suite.results,
            "a CPU without idle for 100 ms",
            cpu(trials),
        );
        told_after(&mut suite.results, "50 Mbit/s for 10 ms", network(trials));
    }
    idle(suite);
    suite.results.miss(
        "memory and disk: only the tests measure the latency of their alarms (tests/live/monitor)",
    );
}

/// The time of the workload itself, with and without `emud monitor`, in turn: programs, the call of
/// them, cache lines, ticks.
fn felt(suite: &mut Suite) {
    let count = if suite.full { 500_000 } else { 100_000 };
    for _ in 0..suite.turns {
        for events in [Events::Switches, Events::Packets] {
            let case = format!("{}, time of the workload", events.tracepoint());
            let without = events.time_of_each(count);
            let watch = Watch::start(&["--limit", "1000"]);
            let with = events.time_of_each(count);
            watch.end();
            for (side, ns) in [("bare", without), ("emud", with)] {
                suite.results.add(&case, side, "cost", "ns/event", ns);
            }
        }
    }
}

/// Both alternately, so that other load of the machine affects both.
fn cost(suite: &mut Suite) {
    let _statistics = aya::sys::enable_stats(aya::sys::Stats::RunTime).expect("BPF run statistics");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    let _entered = runtime.enter();
    let (count, groups) = match suite.full {
        true => (200_000, &GROUPS[..]),
        false => (50_000, &GROUPS[..1]),
    };
    for _ in 0..suite.turns {
        for events in [Events::Switches, Events::Packets] {
            for (name, group_by) in groups {
                let case = format!("{}, groups by {name}", events.tracepoint());
                let empty = measure(&mut nothing(events), events, count);
                let full = measure(&mut watching(events, *group_by), events, count);
                for (side, ns) in [("empty probe", empty), ("emud", full)] {
                    suite.results.add(&case, side, "cost", "ns/event", ns);
                }
            }
        }
    }
}

/// Times after the crossing of a threshold, ms; `None` without an alarm.
type Trials = Vec<Option<[f64; 2]>>;

fn after(crossed_ns: u64, alarm: Option<&Line>) -> Option<[f64; 2]> {
    let ms = |t: u64| (t as f64 - crossed_ns as f64) / MS as f64;
    alarm.map(|line| [ms(line.mono_ns()), ms(line.readable_ns)])
}

fn told_after(results: &mut Results, case: &str, trials: Trials) {
    let told: Vec<[f64; 2]> = trials.iter().copied().flatten().collect();
    if trials.is_empty() {
        results.miss(&format!(
            "{case}: others left no trial undisturbed in a turn"
        ));
        return;
    }
    results.add(case, "emud", "trials", "1", trials.len() as f64);
    let missed = trials.len() - told.len();
    results.add(case, "emud", "not told of", "1", missed as f64);
    if told.is_empty() {
        return;
    }
    for (i, what) in ["judged", "readable"].into_iter().enumerate() {
        let times: Vec<f64> = told.iter().map(|t| t[i]).collect();
        let name = |which| format!("{what} after the crossing, {which}");
        results.add(case, "emud", &name("median"), "ms", median(&times));
        results.add(case, "emud", &name("worst"), "ms", quantile(&times, 1.0));
    }
}

/// A hog on a CPU that was idle. If others kept the CPU busy before, a trial is invalid.
fn cpu(trials: usize) -> Trials {
    const THETA_MS: u64 = 100;
    let cpu = clock::spare_cpu();
    let watch = Watch::alone(&["--only", "cpu", "--cpu-theta", "100ms", "--limit", "1000"]);
    let mut load = Load::start("cpu", &[("cpu", &cpu)]);
    let mut done = Trials::new();
    // On a machine of which others take a part there may be fewer than requested.
    let until = Instant::now() + trials as u32 * Duration::from_secs(1);
    while done.len() < trials && Instant::now() < until {
        sleep(Duration::from_millis(100));
        let mark = watch.mark();
        load.say(&format!("spin {}", (THETA_MS + 40) * MS));
        let on_cpu = |line: &Line| line.is_busy_cpu(&cpu);
        let alarm = watch.next(mark, PATIENCE, on_cpu);
        let begun = numbers(&load.hear())[0];
        if let Some(alarm) = &alarm {
            watch.clear(alarm, PATIENCE);
        }
        let since = |alarm: &Line| alarm.number("/since_mono_ns");
        let before = alarm.as_ref().is_some_and(|a| since(a) + MS < begun);
        if before || watch.going_on(begun, on_cpu) {
            continue;
        }
        done.push(after(begun + THETA_MS * MS, alarm.as_ref()));
    }
    done
}

/// Bursts after silence: the frame that fills the window is known.
fn network(trials: usize) -> Trials {
    const LEN: u64 = 1500;
    const WINDOW_MS: u64 = 10;
    const RATE: u64 = 50_000_000;
    let wires = Wires::external("bphys");
    let mut load = wires.load(&[("len", &LEN.to_string())]);
    let options = ["--only", "network", "--class", "bphys=external"];
    let threshold = ["--external", "50Mbit/s", "--network-window", "10ms"];
    let watch = Watch::alone(&[&options[..], &threshold, &["--limit", "1000"]].concat());
    let nth = (RATE * WINDOW_MS).div_ceil(1000 * 8 * LEN);
    let trial = |_| {
        sleep(Duration::from_millis(3 * WINDOW_MS));
        let mark = watch.mark();
        let burst = load.ask(&format!("burst {} {nth}", nth + 10));
        // A burst that the machine stretched beyond the window may cause no alarm.
        let within = burst[1] - burst[0] < WINDOW_MS * MS;
        let alarm = watch.alarm(mark, "network", PATIENCE);
        (within || alarm.is_some()).then(|| after(burst[1], alarm.as_ref()))
    };
    (0..trials).filter_map(trial).collect()
}

/// No load. An alarm that the kernel's own counters confirm is caused by others here, and correct.
fn idle(suite: &mut Suite) {
    let seconds = if suite.full { 120 } else { 20 };
    let duration = format!("{seconds}s");
    let watch = Watch::start(&["--duration", &duration, "--limit", "1000"]);
    let witness = Witness::start();
    let ended = watch.wait(Duration::from_secs(seconds + 30));
    let alarms = ended.of("alarm");
    let right = alarms
        .iter()
        .filter(|alarm| witness.confirms(alarm))
        .count();
    let case = format!("idle for {seconds} s");
    let wrong = (alarms.len() - right) as f64;
    suite.results.add(&case, "emud", "false alarms", "1", wrong);
    let borne_out = "alarms that the kernel's counters bear out";
    suite
        .results
        .add(&case, "emud", borne_out, "1", right as f64);
}
