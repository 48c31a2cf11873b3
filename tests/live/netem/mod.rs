// SPDX-License-Identifier: MIT OR Apache-2.0
//! emud beside stock netem: the same packets through both, and figures that must agree, or differ
//! as netem's own recurrences predict. Without netem, commands are only imported.

mod burst;
mod correlation;
mod examples;
mod judge;
mod measure;
mod model;
mod pairs;

use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::Trial;
use pairs::Pairs;
use support::trial::{self, When};
use support::{full, lab, number_from};

/// Namespaces made at the first use, for all tests that follow.
#[derive(Clone, Default)]
pub struct Bench(Arc<Mutex<Option<Pairs>>>);

impl Bench {
    fn trial(&self, name: &str, test: impl FnOnce(&Pairs) + Send + 'static) -> Trial {
        let bench = self.clone();
        trial::test(When::Full, format!("netem::{name}"), move || {
            let mut pairs = bench.0.lock().unwrap_or_else(PoisonError::into_inner);
            test(pairs.get_or_insert_with(Pairs::new));
        })
    }

    /// The namespaces are deleted.
    pub fn end(self) {
        drop(
            (self.0.lock())
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

/// Whether this kernel and tc have netem; a caller that expects it has tests that fail without.
pub fn is_there() -> bool {
    pairs::has_netem() || lab::promised("EMUD_EXPECT", "netem")
}

/// And further resources to end after them.
pub fn tests() -> (Vec<Trial>, Bench) {
    let mut trials = vec![
        trial::test(When::Here, "netem::imports", imports),
        trial::test(When::Here, "netem::closed_forms", model::closed_forms),
    ];
    let bench = Bench::default();
    if is_there() {
        for example in examples::EXAMPLES {
            let name = format!("side by side: {}", example.command);
            trials.push(bench.trial(&name, move |pairs| {
                examples::measure(example, pairs, count(), examples::INTERVAL_NS);
            }));
        }
        trials.push(bench.trial("rates", burst::rates));
        for (name, test) in [
            ("correlation::delay", correlation::delay as fn(&Pairs, u32)),
            ("correlation::loss", correlation::loss),
        ] {
            trials.push(bench.trial(name, move |pairs| test(pairs, count())));
        }
    } else {
        println!("no netem here: commands are imported, not compared");
    }
    (trials, bench)
}

/// Packets a command.
fn count() -> u32 {
    let usual = number_from("EMUD_NETEM_COUNT").unwrap_or(2500.0) as u32;
    if full() { 10 * usual } else { usual }
}

/// Everything that the manual page shows is accepted, and results in a valid profile.
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
