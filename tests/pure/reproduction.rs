// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saved results of `emud reproduce`: read and merged. Needs python3-jsonschema, Debian's validator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use emud::experiment::reproduce::Reproduction;
use serde_json::{Value, json};
use support::validator::json_mistakes;

/// A folder that is deleted with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("emud-{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn figure(name: &str, measured: Option<f64>, verdict: &str) -> Value {
    json!({
        "figure": name, "unit": "ms", "published": 11.0, "theory": 10.0,
        "tolerance": {"share": 0.05}, "measured": measured, "verdict": verdict,
        "explanation": null,
    })
}

fn experiment(name: &str, seed: u64, figures: &[Value]) -> Value {
    json!({
        "name": name, "description": "of <b>something</b> | else", "source": "A & B, 2010",
        "method": "by *hand*", "scenarios": ["one", "two"],
        "conditions": {
            "began": "2026-01-02T03:04:05.000000006Z", "version": "0.1.0", "kernel": "6.18.0",
            "cpus": 2, "machine": "x86_64, CPU <i>", "quick": true, "seed": seed, "attempts": 2,
            "own_thresholds": false,
        },
        "figures": figures, "verdict": "within",
    })
}

fn saved(experiments: &[Value]) -> String {
    let all = json!({
        "schema": "emud-reproduce/2", "version": "0.1.0", "experiments": experiments,
        "verdict": "within",
    });
    all.to_string()
}

/// One figure with each verdict, and each kind of tolerance.
fn every_verdict() -> String {
    let mut figures = vec![
        figure("fits", Some(10.1), "within"),
        figure("known", Some(12.5), "explained"),
        figure("wrong <script>", Some(99.0), "deviates"),
        figure("never", None, "not measured"),
        figure("late", Some(10.0), "invalid"),
        figure("busy", None, "contended"),
    ];
    figures[1]["explanation"] = json!("because 1 < 2");
    for (n, tolerance) in [
        json!({"absolute": 0.0}),
        json!({"range": [9.0, 11.0]}),
        json!({"at-least": 0.0}),
    ]
    .into_iter()
    .enumerate()
    {
        figures[2 + n]["tolerance"] = tolerance;
    }
    figures[5]["theory"] = Value::Null;
    figures[5]["published"] = Value::Null;
    saved(&[experiment("t-tree", 1, &figures)])
}

fn read(folder: &Folder, texts: &[String]) -> Reproduction {
    let files = texts.iter().enumerate();
    let files = files.map(|(n, text)| folder.write(&format!("{n}.json"), text));
    Reproduction::read(&files.collect::<Vec<_>>()).unwrap()
}

fn reproduce(arguments: &[&Path]) -> Output {
    let mut emud = Command::new(support::emud_path());
    emud.arg("reproduce").args(arguments).output().unwrap()
}

#[test]
fn a_result_reads_back_to_the_same() {
    let folder = Folder::new("round-trip");
    let all = read(&folder, &[every_verdict()]);
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(json_mistakes("reproduce", &text), "", "{text}");
    assert_eq!(read(&folder, &[text]), all);
    // The verdicts follow from the figures, whatever the file says.
    assert_eq!(all.exit_code(), 1);
}

#[test]
fn of_an_experiment_in_several_files_the_last_one_counts() {
    let folder = Folder::new("merge");
    let good = [figure("x", Some(10.0), "within")];
    let bad = [figure("x", Some(99.0), "deviates")];
    let old = saved(&[
        experiment("t-tree", 1, &bad),
        experiment("c-aqm", 1, &good),
        experiment("later", 1, &good),
    ]);
    let new = saved(&[
        experiment("t-tree", 2, &good),
        experiment("s-ring", 2, &good),
    ]);
    let all = read(&folder, &[old.clone(), new.clone()]);
    let of = |one: &Reproduction| -> Vec<(String, u64)> {
        let all = one.experiments.iter();
        all.map(|one| (one.name.clone(), one.conditions.seed))
            .collect()
    };
    let wanted = [("c-aqm", 1), ("s-ring", 2), ("t-tree", 2), ("later", 1)];
    assert_eq!(of(&all), wanted.map(|(name, seed)| (name.to_owned(), seed)));
    assert_eq!(all.exit_code(), 0);
    assert_eq!(read(&folder, &[new, old]).exit_code(), 1);
    assert!(!all.left_out().contains(&"t-tree") && all.left_out().contains(&"t-star"));
}

#[test]
fn other_files_are_rejected_with_the_reason() {
    let folder = Folder::new("other");
    for (text, wanted) in [
        ("", "line 1 column 0"),
        ("[]", "not a result of `emud reproduce --json`"),
        (
            &saved(&[]).replace("/2", "/1"),
            "this emud reads `emud-reproduce/2`",
        ),
        (
            &every_verdict().replace("\"kernel\"", "\"core\""),
            "missing field `kernel`",
        ),
        (
            &every_verdict().replace("deviates", "fine"),
            "unknown variant `fine`",
        ),
    ] {
        let file = folder.write("a.json", text);
        let out = reproduce(&[Path::new("--from"), &file]);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(65), "{said}");
        assert!(said.contains("a.json: ") && said.contains(wanted), "{said}");
    }
    let out = reproduce(&[Path::new("--from"), &folder.0.join("none.json")]);
    assert_eq!(out.status.code(), Some(66));
}
