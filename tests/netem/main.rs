// SPDX-License-Identifier: MIT OR Apache-2.0
//! emud beside stock netem: the same packets through both, and figures that must agree, or differ
//! by what netem's own recurrences say. Needs root; where there is no netem, commands are only
//! imported.
//!
//! `EMUD_EXPECT` ("netem"): it must be there. `EMUD_NETEM_COUNT`: packets a command; with
//! `EMUD_TEST_FULL` ten times as many. `EMUD_BIN` is another emud to test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod burst;
mod correlation;
mod examples;
mod judge;
#[path = "../live/lab.rs"]
#[allow(dead_code)]
mod lab;
mod measure;
mod model;
mod pairs;
#[path = "../live/probe.rs"]
#[allow(dead_code)]
mod probe;
#[path = "../live/stats.rs"]
#[allow(dead_code)]
mod stats;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Trial};
use pairs::Pairs;

/// Made at the first use, for all tests that follow.
#[derive(Clone, Default)]
struct Bench(Arc<Mutex<Option<Pairs>>>);

impl Bench {
    fn trial(&self, name: String, test: impl FnOnce(&Pairs) + Send + 'static) -> Trial {
        let bench = self.clone();
        trial(name, move || {
            let mut pairs = bench.0.lock().unwrap_or_else(PoisonError::into_inner);
            test(pairs.get_or_insert_with(Pairs::new));
        })
    }
}

fn main() -> ExitCode {
    let mut args = Arguments::from_args();
    // Tests at the same time would disturb one another's timing.
    args.test_threads = Some(1);
    let mut trials = vec![
        trial("imports".to_owned(), imports),
        trial("closed_forms".to_owned(), model::closed_forms),
    ];
    let bench = Bench::default();
    if pairs::has_netem() || lab::promised("EMUD_EXPECT", "netem") {
        for example in examples::EXAMPLES {
            let name = format!("side by side: {}", example.command);
            trials.push(bench.trial(name, |pairs| {
                examples::measure(example, pairs, count(), examples::INTERVAL_NS);
            }));
        }
        trials.push(bench.trial("rates".to_owned(), burst::rates));
        for (name, test) in [
            ("correlation::delay", correlation::delay as fn(&Pairs, u32)),
            ("correlation::loss", correlation::loss),
        ] {
            trials.push(bench.trial(name.to_owned(), move |pairs| test(pairs, count())));
        }
    } else {
        println!("no netem here: commands are imported, not compared");
    }
    let conclusion = libtest_mimic::run(&args, trials);
    // The namespaces go.
    drop(
        bench
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take(),
    );
    conclusion.exit_code()
}

fn trial(name: String, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, || {
        println!();
        let begin = std::time::Instant::now();
        test();
        println!("    {:.1} s", begin.elapsed().as_secs_f64());
        Ok(())
    })
}

/// Packets a command.
fn count() -> u32 {
    let usual = std::env::var("EMUD_NETEM_COUNT").map_or(2500, |text| {
        text.parse().expect("EMUD_NETEM_COUNT: a number of packets")
    });
    match std::env::var_os("EMUD_TEST_FULL") {
        Some(_) => 10 * usual,
        None => usual,
    }
}

/// Everything that the manual page shows is taken, and makes a profile that is taken.
fn imports() {
    let examples = examples::EXAMPLES.iter().map(|example| example.command);
    for command in examples.chain(examples::PARSED.iter().copied()) {
        let said = lab::emud(&["import", "netem", command]).expect(0);
        println!("    {command}: {} lines", said.out.lines().count());
        for warning in said.err.lines() {
            println!("        {warning}");
        }
        let profile = emud::profile::Profile::parse(&said.out, "imported.toml");
        assert!(profile.is_ok(), "{command}: {profile:?}\n{}", said.out);
    }
}
