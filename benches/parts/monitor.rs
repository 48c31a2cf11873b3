// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of the monitor per event: the time of its programs by the kernel's BPF run statistics,
//! and that of an empty program at the same tracepoint, in turn. Needs root.
//!
//! Events are real ones: two threads on one CPU that wake each other, datagrams over the loopback
//! device. Criterion's figures are ns an event; the table after them is the difference, median of
//! five turns.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use benches::events::{Costs, Events, GROUPS, measure, nothing, watching};
use criterion::{BenchmarkId, Criterion};

/// Events of one turn of the table.
const EVENTS: u64 = 200_000;
const TURNS: usize = 5;

fn bench(criterion: &mut Criterion, load: Events) {
    let mut group = criterion.benchmark_group(load.tracepoint());
    let mut one = |name: &str, costs: &mut dyn Costs| {
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter_custom(|events| {
                let ns = measure(costs, load, events.max(1000));
                Duration::from_nanos((ns * events as f64) as u64)
            });
        });
    };
    one("empty", &mut nothing(load));
    for (name, group_by) in GROUPS {
        one(name, &mut watching(load, group_by));
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Both alternately, so that other load of the machine affects both.
fn table(load: Events) {
    for (name, group_by) in GROUPS {
        let (mut empty, mut above) = (vec![], vec![]);
        for _ in 0..TURNS {
            let bare = measure(&mut nothing(load), load, EVENTS);
            let full = measure(&mut watching(load, group_by), load, EVENTS);
            empty.push(bare);
            above.push(full - bare);
        }
        println!(
            "{}, by {name}: empty {:.1} ns, above it {:.1} ns (median of {TURNS})",
            load.tracepoint(),
            median(empty),
            median(above)
        );
    }
}

fn main() {
    let _statistics = aya::sys::enable_stats(aya::sys::Stats::RunTime).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let loads = [Events::Switches, Events::Packets];
    let mut criterion = Criterion::default()
        .sample_size(10)
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for load in loads {
        bench(&mut criterion, load);
    }
    criterion.final_summary();
    loads.into_iter().for_each(table);
}
