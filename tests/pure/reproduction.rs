// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saved results of `emud reproduce`: read, merged, as a page and as Markdown. Needs
//! python3-jsonschema, Debian's validator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use emud::experiment::report::reproduction as page;
use emud::experiment::reproduce::Reproduction;
use serde_json::{Value, json};
use support::site::unique;
use support::validator::{html_mistakes, json_mistakes};

/// A folder that is deleted with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(unique(name));
        fs::create_dir_all(&folder).unwrap();
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
fn netem_has_a_column_if_a_figure_has_its_value() {
    let folder = Folder::new("netem");
    let mut beside = figure("fits", Some(10.1), "within");
    beside["netem"] = json!(12.25);
    let alone = figure("alone", Some(10.1), "within");
    let all = saved(&[
        experiment("s-ring", 1, &[beside, alone.clone()]),
        experiment("t-tree", 1, &[alone]),
    ]);
    let all = read(&folder, &[all]);
    let [ring, tree] = &all.experiments[..] else {
        panic!()
    };
    assert!(ring.text().contains("netem  measured") && ring.text().contains("12.25"));
    assert!(!tree.text().contains("netem"));
    let tables = all.markdown(None).unwrap();
    let rows = [
        "| figure | unit | published | theory | tolerance | netem | measured | verdict |",
        "| fits | ms | 11 | 10 | 5 % | 12.25 | 10.1 | within |",
        "| alone | ms | 11 | 10 | 5 % | - | 10.1 | within |",
        "| figure | unit | published | theory | tolerance | measured | verdict |",
        "| alone | ms | 11 | 10 | 5 % | 10.1 | within |",
    ];
    let mut rest = &*tables;
    for row in rows {
        let (_, after) = rest
            .split_once(row)
            .unwrap_or_else(|| panic!("{row}: {tables}"));
        rest = after;
    }
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(json_mistakes("reproduce", &text), "", "{text}");
    assert_eq!(read(&folder, &[text]), all);
}

#[test]
fn csv_has_a_row_for_each_value() {
    let folder = Folder::new("csv");
    let mut mean = figure("mean, of flows", Some(1.5), "within");
    mean["netem"] = json!(3.0);
    mean["flows"] = json!([1.0, 2.0]);
    let figures = [
        mean,
        figure("lost", None, "not measured"),
        figure("x", Some(0.1), "within"),
    ];
    let results = folder.write("a.json", &saved(&[experiment("s-ring", 1, &figures)]));
    let csv = folder.0.join("a.csv");
    let [from, to] = ["--from", "--csv"].map(Path::new);
    let out = reproduce(&[from, &results, to, &csv]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert_eq!(
        fs::read_to_string(&csv).unwrap(),
        "experiment,figure,unit,emulator,flow,value\n\
         s-ring,\"mean, of flows\",ms,emud,1,1\n\
         s-ring,\"mean, of flows\",ms,emud,2,2\n\
         s-ring,\"mean, of flows\",ms,netem,0,3\n\
         s-ring,x,ms,emud,0,0.1\n"
    );
    let page = Path::new("--page");
    assert_eq!(
        reproduce(&[from, &results, to, &csv, page, &csv])
            .status
            .code(),
        Some(64)
    );
    assert_eq!(
        reproduce(&[from, &results, to, &results]).status.code(),
        Some(64)
    );
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

#[test]
fn the_page_has_each_figure_and_verdict() {
    let folder = Folder::new("page");
    let page = page(&read(&folder, &[every_verdict()])).unwrap();
    assert_eq!(html_mistakes(&page), "", "{page}");
    for text in [
        "of &#60;b&#62;something&#60;/b&#62; | else",
        "A &#38; B, 2010",
        "2026-01-02 03:04:05 UTC, Linux 6.18.0, 2 CPUs (x86_64, CPU &#60;i&#62;), emud 0.1.0, quick, seed 1",
        "1 within, 1 explained, 1 deviates, 1 not measured, 1 invalid, 1 contended",
        "explained: because 1 &#60; 2",
        "<dt>without a value</dt><dd>never; busy</dd>",
        "Without a result: c-aqm, c-wireless",
    ] {
        assert!(page.contains(text), "no {text} in {page}");
    }
    // In the table and in the plot.
    for name in ["fits", "known", "never", "late"] {
        assert!(page.matches(name).count() >= 2, "{name}");
    }
    assert!(!page.contains("<script"));
    // Of each verdict that was measured a mark: 10.1 of 10 with 0.5 to both sides, 12.5, which is
    // beyond 3 tolerances as 99 is of a tolerance of 0, and 10 at the lower limit of 0 and upwards.
    let plot = page.rsplit_once("<svg").unwrap().1;
    for mark in [
        "<circle cx=\"212\"",
        "points=\"379,",
        "stroke=\"#C8281E\" stroke-width=\"3\" x1=\"374\" y1=\"97\"",
        "stroke=\"#6B4FA0\" stroke-width=\"2\" points=\"374,",
    ] {
        assert_eq!(plot.matches(mark).count(), 1, "{mark}: {plot}");
    }
    assert_eq!(plot.matches("&gt;").count(), 4, "{plot}");
    assert!(plot.contains("not measured"), "{plot}");
}

#[test]
fn an_experiment_without_figures_has_no_plot() {
    let folder = Folder::new("nothing");
    let all = read(&folder, &[saved(&[experiment("t-tree", 1, &[])])]);
    let page = page(&all).unwrap();
    assert_eq!(html_mistakes(&page), "");
    assert!(page.contains("<dd>no figures</dd>"));
    assert_eq!(all.exit_code(), 2);
}

#[test]
fn markdown_replaces_only_what_is_between_the_markers() {
    let folder = Folder::new("markdown");
    let all = read(&folder, &[every_verdict()]);
    let new = all.markdown(None).unwrap();
    let row = "| wrong &lt;script> | ms | 11 | 10 | 0 | 99 | deviates |";
    let conditions = "- carried out: 2026-01-02 03:04:05 UTC, Linux 6.18.0, 2 CPUs (x86\\_64, CPU";
    for text in [
        row,
        conditions,
        "of &lt;b>something&lt;/b> \\| else",
        "by \\*hand\\*",
    ] {
        assert!(new.contains(text), "no {text} in {new}");
    }
    // Again it is the same.
    assert_eq!(all.markdown(Some(&new)).unwrap(), new);
    let by_hand = format!("before\n{}behind\n", new.replace("99", "98"));
    let wanted = format!("before\n{new}behind\n");
    assert_eq!(all.markdown(Some(&by_hand)).unwrap(), wanted);
    let begin = "<!-- emud reproduce: begin -->";
    for text in [
        "by hand",
        begin,
        &new.replace("begin", "end"),
        &format!("{new}{begin}"),
    ] {
        assert!(all.markdown(Some(text)).unwrap_err().contains("once each"));
    }
}

/// So results can be added without those that are there being measured again.
#[test]
fn the_tables_of_the_document_are_those_of_its_results() {
    let docs = support::root().join("docs");
    let results = docs.join("reproduction.json");
    let text = fs::read_to_string(&results).unwrap();
    assert_eq!(json_mistakes("reproduce", &text), "");
    let document = fs::read_to_string(docs.join("reproduction.md")).unwrap();
    let written = Reproduction::read(&[results])
        .unwrap()
        .markdown(Some(&document));
    assert!(
        written.unwrap() == document,
        "emud reproduce --from docs/reproduction.json --markdown docs/reproduction.md"
    );
}

#[test]
fn files_are_written_and_nothing_else_is_overwritten() {
    let folder = Folder::new("files");
    let results = folder.write("a.json", &every_verdict());
    let by_hand = folder.write("hand.md", "by hand");
    let [html, md] = ["a.html", "a.md"].map(|name| folder.0.join(name));
    let [from, page, markdown] = ["--from", "--page", "--markdown"].map(Path::new);
    let out = reproduce(&[from, &results, page, &html, markdown, &md]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        String::from_utf8(out.stdout)
            .unwrap()
            .contains("wrong <script>")
    );
    let text = fs::read_to_string(&html).unwrap();
    assert!(text.trim_start().starts_with("<!DOCTYPE html>"));
    assert!(fs::read_to_string(&md).unwrap().contains("### t-tree"));
    let before = fs::read_to_string(&md).unwrap();
    for (arguments, code) in [
        ([page, &results], 64),
        ([markdown, &results], 64),
        ([markdown, &by_hand], 73),
        ([page, &folder.0], 73),
        ([page, &folder.0.join("no/such.html")], 73),
    ] {
        let out = reproduce(&[from, &results, arguments[0], arguments[1]]);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}");
        assert_eq!(out.stdout, b"");
    }
    assert_eq!(
        reproduce(&[from, &results, page, &md, markdown, &md])
            .status
            .code(),
        Some(64)
    );
    assert_eq!(fs::read_to_string(&by_hand).unwrap(), "by hand");
    assert_eq!(fs::read_to_string(&results).unwrap(), every_verdict());
    assert_eq!(fs::read_to_string(&md).unwrap(), before);
}

#[test]
fn two_results_agree_or_differ() {
    let folder = Folder::new("compare");
    let write = |name: &str, seed, scenario: &str, value, verdict| {
        let mut one = experiment(scenario, seed, &[figure("x", Some(value), verdict)]);
        // Those in virtual time have no noise.
        if scenario == "c-aqm" {
            one["scenarios"] = json!([]);
        }
        folder.write(name, &saved(&[one]))
    };
    let first = write("first.json", 1, "t-tree", 10.0, "within");
    let compared = |second: &Path| {
        let done = reproduce(&[Path::new("--compare"), &first, second]);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        (
            done.status.code().unwrap(),
            text + &String::from_utf8_lossy(&done.stderr),
        )
    };
    for (value, verdict, code, word) in [
        (10.0, "within", 0, "identical"),
        (10.4, "within", 0, "within noise"),
        (10.6, "deviates", 1, "differs"),
        (10.0, "contended", 2, "not comparable"),
    ] {
        let second = write("second.json", 1, "t-tree", value, verdict);
        let (exit, text) = compared(&second);
        assert!(exit == code && text.contains(word), "{exit} {text}");
    }
    let (exit, text) = compared(&write("second.json", 2, "t-tree", 10.0, "within"));
    assert!(exit == 65 && text.contains("same --seed"), "{exit} {text}");
    let (exit, text) = compared(&write("second.json", 1, "s-ring", 10.0, "within"));
    assert!(exit == 2 && text.contains("s-ring"), "{exit} {text}");
    let of = |name, value| write(name, 1, "c-aqm", value, "within");
    let [one, other] = [of("one.json", 10.0), of("other.json", 10.4)];
    let done = reproduce(&[Path::new("--compare"), &one, &other]);
    assert_eq!(done.status.code(), Some(1));
}

#[test]
fn what_is_only_reported_is_neither_a_failure_nor_an_agreement() {
    let folder = Folder::new("reported");
    let mut reported = figure("of the host", Some(65.0), "reported");
    reported["tolerance"] = json!("any");
    let fits = figure("fits", Some(10.1), "within");
    let text = saved(&[experiment("m-chain", 1, &[reported, fits])]);
    let all = read(&folder, std::slice::from_ref(&text));
    assert_eq!(all.exit_code(), 0);
    let tables = all.markdown(None).unwrap();
    for text in [
        "- figures: 1 within, 1 reported",
        "| of the host | ms | 11 | 10 | - | 65 | reported |",
    ] {
        assert!(tables.contains(text), "no {text} in {tables}");
    }
    let html = page(&all).unwrap();
    assert_eq!(html_mistakes(&html), "", "{html}");
    assert!(html.contains("reported: not judged"), "{html}");
    let again = serde_json::to_string(&all).unwrap();
    assert_eq!(json_mistakes("reproduce", &again), "", "{again}");
    assert_eq!(read(&folder, &[again]), all);
    let first = folder.write("first.json", &text);
    let second = folder.write("second.json", &text.replace("65.0", "8.0"));
    let done = reproduce(&[Path::new("--compare"), &first, &second]);
    let compared = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(0), "{compared}");
    assert!(compared.contains("only reported"), "{compared}");
}
