// SPDX-License-Identifier: MIT OR Apache-2.0
//! The benchmark suite's evaluation of results, with generated ones.

mod checked;
mod measured;
mod sample;

use std::fs;
use std::path::Path;

use crate::figure::Results;
use crate::{check, report};
use clap::Parser;
use support::site::Scratch;

#[derive(Parser)]
enum Suite {
    Report(report::Report),
    Check(check::Check),
}

fn suite(arguments: &[&str]) -> Result<(), String> {
    let done = match Suite::parse_from([&["suite"], arguments].concat()) {
        Suite::Report(report) => report.run(),
        Suite::Check(check) => check.run(),
    };
    done.map_err(|e| format!("{e:#}"))
}

/// A folder with these results; it goes with the value.
fn folder(all: &[Results]) -> Scratch {
    let dir = Scratch::new();
    for (i, results) in all.iter().enumerate() {
        results
            .write(&dir.join(format!("{}-{i}.json", results.section)))
            .unwrap();
    }
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn tables_say_what_is_added_and_how_it_compares() {
    let dir = folder(&sample::all());
    fs::write(dir.join("failed"), "cost on 6.1: no end\n").unwrap();
    suite(&["report", "--dir", text(&dir)]).unwrap();
    let report = fs::read_to_string(dir.join("report.md")).unwrap();
    for line in [
        // Medians of 8,714; 8,943, 8,940, 8,946; 9,626: 229 and 912 above bare.
        "| forwarded, 1000 flows, delay 2 ms | bare | 8,714 | 8,714..8,714 |  |  |",
        "| forwarded, 1000 flows, delay 2 ms | netem | 8,943 | 8,940..8,946 | 229 |  |",
        "| forwarded, 1000 flows, delay 2 ms | emud | 9,626 | 9,626..9,626 | 912 | 3.98 |",
        // Others are compared with the best of two set-ups.
        "| 1000 links | netem, HTB and u32 | 58,714 | 58,714..58,714 | 50,000 | 1.00 |",
        "| 1000 links | netem, HTB and flower | 60,714 | 60,714..60,714 | 52,000 | 1.04 |",
        "| 1000 links | emud | 9,714 | 9,714..9,714 | 1,000 | 0.020 |",
        // Goodput adds nothing to bare.
        "| delay 50 ms, 1 flow, cubic | emud | 494 | 494..494 | 0.950 |",
        "- cost on 6.1: no end",
        "- hold: there are no results",
        "- no second CPU",
    ] {
        assert!(report.lines().any(|l| l == line), "{line}\n{report}");
    }
    let together: Vec<Results> = report::read_all(&dir.join("results.json")).unwrap();
    assert_eq!(together.len(), sample::all().len());
    // Its own output is not a result: repeating it gives the same.
    suite(&["report", "--dir", text(&dir)]).unwrap();
    assert_eq!(report, fs::read_to_string(dir.join("report.md")).unwrap());
}

#[test]
fn plots_are_there_for_what_has_one() {
    let dir = folder(&sample::all());
    suite(&["report", "--dir", text(&dir)]).unwrap();
    for (section, words) in [
        ("cost", ["912", "forwarded, 1000 flows, delay 2 ms"]),
        ("links", ["65,534", "netem, HTB and flower"]),
        (
            "tcp-goodput",
            ["one-way delay, ms", "goodput: 10 flows, bbr"],
        ),
        (
            "accuracy-departure-error",
            ["delay 100 ms, 1000 packets/s asked for", "99th percentile"],
        ),
    ] {
        let file = format!("{section}-7.2.3-cloud-amd64-guest-1-cpu.svg");
        let svg = fs::read_to_string(dir.join(&file)).expect(&file);
        for word in words {
            assert!(svg.contains(word), "{word}: {file}");
        }
        let report = fs::read_to_string(dir.join("report.md")).unwrap();
        assert!(report.contains(&file), "{file} in the report");
    }
}

#[test]
fn an_axis_has_only_what_fits_on_it() {
    let dir = folder(&sample::all());
    suite(&["report", "--dir", text(&dir)]).unwrap();
    let file = dir.join("tcp-goodput-7.2.3-cloud-amd64-guest-1-cpu.svg");
    let svg = fs::read_to_string(file).unwrap();
    // A delay of 0 has no position on a logarithmic axis.
    assert!(
        !svg.contains("\nbare\n") && svg.contains("\nnetem\n"),
        "{svg}"
    );
}

#[test]
fn a_document_keeps_its_prose() {
    let all = sample::all();
    let dir = folder(&all);
    let docs = dir.join("document.md");
    let old = "# Prose\n\n<!-- tables: begin -->\nold\n<!-- tables: end -->\n\nMore prose.\n";
    fs::write(&docs, old).unwrap();
    suite(&["report", "--dir", text(&dir), "--docs", text(&docs)]).unwrap();
    let new = fs::read_to_string(&docs).unwrap();
    assert!(
        new.starts_with("# Prose\n\n<!-- tables: begin -->\n|"),
        "{new}"
    );
    assert!(
        new.ends_with("\n<!-- tables: end -->\n\nMore prose.\n"),
        "{new}"
    );
    assert!(
        !new.contains("\nold\n") && new.contains("| 912 | 3.98 |"),
        "{new}"
    );
    let committed = report::read_all(&dir.join("document.json")).unwrap();
    assert_eq!(committed.len(), all.len());
}

/// A section can be measured again without the hour that the others take.
#[test]
fn a_document_keeps_figures_that_were_not_measured_again() {
    let mut all = sample::all();
    let dir = folder(&all);
    let docs = dir.join("document.md");
    fs::write(&docs, "<!-- tables: begin --><!-- tables: end -->").unwrap();
    let commit = |from: &[Results], keep: &[&str]| {
        let dir = folder(from);
        let report = ["report", "--dir", text(&dir), "--docs", text(&docs)];
        suite(&[&report[..], keep].concat())
    };
    commit(&all, &[]).unwrap();
    let before = fs::read_to_string(&docs).unwrap();
    // Another release of the same series, in a run that says what load it met.
    let mut again = all.remove(1);
    again.machine.kernel = "7.2.4-cloud-amd64".to_owned();
    again.machine.place += " (load average 0.5 before)";
    let again = [again];
    commit(&again, &["--keep"]).unwrap();
    let after = fs::read_to_string(&docs).unwrap();
    let changed: Vec<&str> = after.lines().filter(|l| !before.contains(l)).collect();
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert_eq!(after.lines().count(), before.lines().count());
    commit(&again, &[]).unwrap();
    let alone = fs::read_to_string(&docs).unwrap();
    assert!(alone.contains("- cost: there are no results"), "{alone}");
}

#[test]
fn a_document_takes_full_runs_only() {
    let mut all = sample::all();
    all[1].full = false;
    let dir = folder(&all);
    let docs = dir.join("document.md");
    fs::write(&docs, "<!-- tables: begin --><!-- tables: end -->").unwrap();
    let said = suite(&["report", "--dir", text(&dir), "--docs", text(&docs)]).unwrap_err();
    assert!(said.contains("links is of a quick run"), "{said}");
}
