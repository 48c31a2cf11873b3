// SPDX-License-Identifier: MIT OR Apache-2.0
//! `suite check`: regressions, and the messages about everything else.

use std::fs;

use super::{folder, sample, suite, text};
use crate::check;
use crate::figure::Results;

/// The committed results against others, as `suite check` does it.
fn run_check(now: &[Results]) -> Result<(), String> {
    let dir = folder(now);
    let committed = dir.join("committed");
    fs::write(&committed, serde_json::to_string(&sample::all()).unwrap()).unwrap();
    suite(&[
        "check",
        "--dir",
        text(&dir),
        "--committed",
        text(&committed),
    ])
}

/// The sample with a side's values of one case times `factor` above bare.
fn changed(side: &str, case: &str, above: f64, factor: f64) -> Vec<Results> {
    let mut all = sample::all();
    let figures = all.iter_mut().flat_map(|results| &mut results.figures);
    let mut found = 0;
    for figure in figures.filter(|f| f.side == side && f.case == case) {
        let times = |v: &mut f64| *v = above + (*v - above) * factor;
        figure.values.iter_mut().for_each(times);
        found += 1;
    }
    assert!(found > 0);
    all
}

const CASE: &str = "forwarded, 1000 flows, delay 2 ms";

#[test]
fn a_regression_of_what_is_added_is_found() {
    // 912 to 1,012 above bare: of the whole path 1 %.
    let now = changed("emud", CASE, sample::BARE, 1.11);
    assert!(run_check(&now).unwrap_err().contains("1 regression"));
    let outcome = check::compare(&sample::all(), &now);
    let found: Vec<_> = outcome.regressions().map(|c| &*c.key.2).collect();
    assert_eq!(found, [CASE]);
    assert!(
        outcome.text().contains("| 912 | 1,012 | 1.11 |"),
        "{}",
        outcome.text()
    );
}

#[test]
fn a_regression_of_the_verifier_is_found() {
    let now = changed("emud", "emud_egress", 0.0, 1.2);
    let outcome = check::compare(&sample::all(), &now);
    let found: Vec<_> = outcome.regressions().map(|c| &*c.key.4).collect();
    // Its size in bytes has grown as much, and is not compared.
    assert_eq!(found, ["looked at"]);
}

#[test]
fn less_is_no_regression() {
    run_check(&sample::all()).unwrap();
    run_check(&changed("emud", CASE, sample::BARE, 1.09)).unwrap();
    run_check(&changed("netem", CASE, sample::BARE, 2.0)).unwrap();
    run_check(&changed("emud", "delay 50 ms, 1 flow, cubic", 0.0, 0.5)).unwrap();
    let better = changed("emud", CASE, sample::BARE, 0.5);
    run_check(&better).unwrap();
    let said = check::compare(&sample::all(), &better).text();
    assert!(said.contains("better by as much"), "{said}");
}

#[test]
fn what_is_not_compared_is_told() {
    let mut now = sample::all();
    now[0].figures.retain(|f| f.case == CASE);
    now[0].machine.kernel = "7.2.9-cloud-amd64".to_owned();
    now[1].results_elsewhere();
    let outcome = check::compare(&sample::all(), &now);
    assert!(outcome.compared.iter().any(|c| c.key.2 == CASE));
    let said = outcome.text();
    for line in [
        "another kernel: 7.2, guest, 1 CPU, 1 ns an instruction: 7.2.3-cloud-amd64 then, 7.2.9-cloud-amd64 now",
        "  cost (7.2, guest, 1 CPU, 1 ns an instruction): locally sent, 1 flow, delay 2 ms: emud: cost",
        "  links (6.1, guest, 1 CPU, 1 ns an instruction): 16 links: emud: cost",
    ] {
        assert!(said.lines().any(|l| l == line), "{line}\n{said}");
    }
}

#[test]
fn nothing_to_compare_is_a_failure() {
    let said = run_check(&[]).unwrap_err();
    assert!(said.contains("nothing to compare"), "{said}");
}

impl Results {
    /// As of another kernel series.
    fn results_elsewhere(&mut self) {
        "6.1.170-cloud-amd64".clone_into(&mut self.machine.kernel);
    }
}
