// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own counters at the time of an alarm. An unused machine has contention by itself
//! now and then (a kernel thread, a package manager): an alarm about that is correct, and only one
//! that these counters contradict is false.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock;
use crate::watch::Line;

/// Interval of samples.
const PERIOD: Duration = Duration::from_millis(20);

/// /proc/stat counts in these (USER_HZ), ns.
const TICK_NS: u64 = 10_000_000;

/// Permitted idle time in a contended interval, as counters as coarse as these show it.
const IDLE: f64 = 0.2;

#[derive(Default)]
struct Look {
    at_ns: u64,
    counters: BTreeMap<String, u64>,
}

pub struct Witness {
    stop: Arc<AtomicBool>,
    looks: Arc<Mutex<Vec<Look>>>,
    thread: Option<JoinHandle<()>>,
}

impl Witness {
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let looks = Arc::new(Mutex::new(vec![]));
        let (over, seen) = (stop.clone(), looks.clone());
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                seen.lock().expect("the samples").push(look());
                std::thread::sleep(PERIOD);
            }
        });
        Self {
            stop,
            looks,
            thread: Some(thread),
        }
    }

    /// Returns whether the counters confirm an alarm.
    pub fn confirms(&self, alarm: &Line) -> bool {
        let span = (alarm.number("/since_mono_ns"), alarm.mono_ns());
        let span_ns = (span.1 - span.0) as f64;
        let scope = &alarm.json["scope"];
        match alarm.criterion().as_str() {
            "cpu" => {
                let idle = self.grown_within(span, &format!("cpu{} idle", scope["cpu"]));
                idle as f64 <= IDLE * span_ns
            }
            "disk" => {
                let name = scope["name"].as_str().expect("a disk");
                let counters = ["busy", "requests"].map(|counter| format!("{name} {counter}"));
                let busy = counters.map(|counter| self.grown_around(span, &counter));
                busy[0].max(busy[1]) as f64 >= (1.0 - IDLE) * span_ns
            }
            // Everything counted in the window was counted between the samples around it.
            "page-in" => self.grown_around(span, "pswpin") >= alarm.number("/value"),
            "page-out" => self.grown_around(span, "pswpout") >= alarm.number("/value"),
            _ => self.grown_around(span, "sent") >= alarm.number("/value"),
        }
    }

    /// Between the first sample of a time and its last.
    fn grown_within(&self, (since, until): (u64, u64), counter: &str) -> u64 {
        let looks = self.looks.lock().expect("the samples");
        let within = looks
            .iter()
            .filter(|look| (since..=until).contains(&look.at_ns));
        grown(within, counter)
    }

    /// Between the last sample before a time and the first after it.
    fn grown_around(&self, (since, until): (u64, u64), counter: &str) -> u64 {
        let looks = self.looks.lock().expect("the samples");
        let first = looks.iter().rposition(|look| look.at_ns <= since);
        let last = looks.iter().position(|look| look.at_ns >= until);
        let last = last.unwrap_or(looks.len() - 1);
        grown(looks[first.unwrap_or(0)..=last].iter(), counter)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn grown<'a>(mut looks: impl Iterator<Item = &'a Look>, counter: &str) -> u64 {
    let count = |look: &Look| look.counters.get(counter).copied().unwrap_or(0);
    let Some(first) = looks.next() else { return 0 };
    looks.last().map_or(0, |last| count(last) - count(first))
}

fn look() -> Look {
    let mut look = Look {
        at_ns: clock::now(),
        ..Look::default()
    };
    let mut put = |name: String, value: u64| *look.counters.entry(name).or_default() += value;
    for (name, fields) in table("/proc/stat").filter(|(name, _)| name.starts_with("cpu")) {
        // user nice system idle iowait: proc_stat(5)
        put(format!("{name} idle"), (fields[3] + fields[4]) * TICK_NS);
    }
    for (name, fields) in table("/proc/vmstat").filter(|(name, _)| name.starts_with("pswp")) {
        put(name, fields[0]);
    }
    // Bytes sent: the ninth of proc_net_dev(5).
    for (_, fields) in table("/proc/net/dev").filter(|(_, fields)| fields.len() == 16) {
        put("sent".to_owned(), fields[8]);
    }
    for line in lines("/proc/diskstats") {
        let words: Vec<&str> = line.split_whitespace().collect();
        // iostats.rst, the counters in ms: the tenth is of the time in which there was a request, but misses what
        // is between the beginnings of two that overlap; the eleventh is of every request's own time.
        for (word, counter) in [(12, "busy"), (13, "requests")] {
            if let Some(Ok(ms)) = words.get(word).map(|word| word.parse::<u64>()) {
                put(format!("{} {counter}", words[2]), ms * 1_000_000);
            }
        }
    }
    look
}

fn lines(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines().map(str::to_owned).collect()
}

/// Lines of a name and numbers.
fn table(path: &str) -> impl Iterator<Item = (String, Vec<u64>)> {
    lines(path).into_iter().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.trim_end_matches(':').to_owned();
        let fields: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        (!fields.is_empty()).then_some((name, fields))
    })
}
