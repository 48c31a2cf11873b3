// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud compare`: text, JSON and exit codes.

use emud_monitor::log::RunVerdict;
use serde_json::{Value, json};

use super::made_up::{
    Log, LogFile, MEASURED, SECOND, about, clean, contended, judgement, unfinished,
};
use super::page::emud;
use support::validator::{assert_refused, json_mistakes, spoilt};

/// Returns exit code and JSON; checks the JSON against its schema.
fn compare(arguments: &[&str]) -> (i32, Value) {
    by("compare", arguments)
}

fn by(schema: &str, arguments: &[&str]) -> (i32, Value) {
    let out = emud(&[&["compare", "--json"], arguments].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    assert_eq!(json_mistakes(schema, &text), "", "{text}");
    (
        out.status.code().unwrap(),
        serde_json::from_str(&text).unwrap(),
    )
}

#[test]
fn two_runs_with_one_seed_are_the_same() {
    let (a, b) = (clean(1).write(), clean(1).write());
    let (code, found) = compare(&[a.text(), b.text()]);
    assert_eq!(code, 0);
    assert_eq!(found["clean"], true);
    assert_eq!(found["differences"], json!([]));
    assert_eq!(
        found["losses"],
        json!({"same": "by_sample", "detail": null})
    );
    let figure = &found["figures"][0];
    assert_eq!(
        (&figure["difference"], &figure["welch"]),
        (&json!(0.0), &Value::Null)
    );
}

#[test]
fn what_was_asked_differently_is_named() {
    let mut other = about(2, &["access"]);
    let link = &mut other.links[0];
    link.toml = link.toml.replace("8Mbit", "4Mbit");
    link.up.as_mut().unwrap().rate_bit_s = Some(4_000_000);
    other.nodes[0].command = Some(vec!["ping".to_owned()]);
    let mut other = Log::of(other);
    other.seconds(&["access"], 10);
    other.end(10, Some(&judgement(RunVerdict::Clean, 10)));
    let (a, b) = (clean(1).write(), other.write());
    let (code, found) = compare(&[a.text(), b.text()]);
    assert_eq!(code, 0);
    let differences = found["differences"].as_array().unwrap();
    let named: Vec<&str> = differences
        .iter()
        .map(|d| d["what"].as_str().unwrap())
        .collect();
    assert_eq!(
        named,
        [
            "seed",
            "command of client",
            "access: up",
            "access: profile: link.rate"
        ]
    );
    assert_eq!(differences[3]["a"], "\"8Mbit\"");
    assert_eq!(differences[3]["b"], "\"4Mbit\"");
    assert_eq!(found["losses"]["same"], "not_comparable");
}

/// Logs of an experiment before lie beside those of this one: their mean is that of neither.
#[test]
fn one_side_is_one_experiment() {
    let mut other = about(2, &["access"]);
    other.links[0].toml = other.links[0].toml.replace("8Mbit", "4Mbit");
    let mut other = Log::of(other);
    other.seconds(&["access"], 10);
    other.end(10, Some(&judgement(RunVerdict::Clean, 10)));
    let (first, repeat, other) = (clean(1).write(), clean(3).write(), other.write());
    let sentence = |end: &str| format!("{} and {} {end}", first.text(), other.text());
    let differ = sentence("differ in access: profile: link.rate, and the figures are of both");
    let notes = |words: &[&str]| {
        let (_, found) = compare(words);
        let notes = found["notes"].as_array().unwrap().clone();
        let notes = notes.iter().map(|note| note.as_str().unwrap().to_owned());
        notes
            .filter(|note| note.contains("differ in"))
            .collect::<Vec<_>>()
    };
    let [a, b, c] = [first.text(), repeat.text(), other.text()];
    assert_eq!(notes(&[a, c, "--against", b]), [format!("a: {differ}")]);
    assert_eq!(notes(&[b, "--against", a, c]), [format!("b: {differ}")]);
    assert!(notes(&[a, b, "--against", c]).is_empty());
    let report = emud(&["report", a, c, "--text"]);
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains(&differ), "{text}");
}

/// A program may report more figures than are kept.
#[test]
fn figures_that_are_not_kept_are_named() {
    let many = |seed| {
        let mut log = Log::new(seed, &["access"]);
        log.seconds(&["access"], 10);
        for n in 0..1_200 {
            let mono_ns = MEASURED + SECOND;
            let name = format!("flow {n}");
            let line = json!({"mono_ns": mono_ns, "name": name, "value": 1, "unit": null});
            log.raw("metric", mono_ns, &line);
        }
        log.end(10, Some(&judgement(RunVerdict::Clean, 10)));
        log.write()
    };
    let (a, b) = (many(1), many(2));
    let (_, found) = compare(&[a.text(), b.text()]);
    let notes = found["notes"].to_string();
    for log in [&a, &b] {
        let kept = format!(
            "{}: only the first 1000 figures of programs are kept; 200 reports",
            log.text()
        );
        assert!(notes.contains(&kept), "{notes}");
        let text = emud(&["report", log.text(), "--text"]);
        let text = String::from_utf8_lossy(&text.stdout);
        assert!(text.contains(&kept), "{text}");
    }
}

/// Two profiles are two files, and have two names.
#[test]
fn profiles_with_other_names_are_compared_by_what_they_say() {
    let mut other = about(1, &["access"]);
    let link = &mut other.links[0];
    link.profile = "other".to_owned();
    link.toml = "name = \"other\"\n[link]\nrate = \"8Mbit\"\nqueue = \"20p\"\n".to_owned();
    let mut other = Log::of(other);
    other.seconds(&["access"], 10);
    other.end(10, Some(&judgement(RunVerdict::Clean, 10)));
    let (a, b) = (clean(1).write(), other.write());
    let (_, found) = compare(&[a.text(), b.text()]);
    assert_eq!(
        found["differences"],
        json!([
            {"what": "access: profile", "a": "made-up", "b": "other"},
            {"what": "access: profile: link.queue", "a": "none", "b": "\"20p\""},
        ])
    );
}

/// Metrics are of the programs, which may report them in some runs only.
#[test]
fn means_and_tests_of_fewer_runs_are_marked() {
    let log = |seed: u64, metrics: &[(&str, u64)]| {
        let mut log = Log::new(seed, &["access"]);
        log.seconds(&["access"], 10);
        for (name, value) in metrics {
            let mono_ns = MEASURED + SECOND;
            let line = json!({"mono_ns": mono_ns, "name": name, "value": value, "unit": null});
            log.raw("metric", mono_ns, &line);
        }
        log.end(10, Some(&judgement(RunVerdict::Clean, 10)));
        log.write()
    };
    let a = [
        log(1, &[("some", 10), ("few", 20)]),
        log(2, &[("some", 11), ("few", 23)]),
        log(3, &[]),
    ];
    let b = [
        log(1, &[("some", 11), ("few", 21)]),
        log(2, &[("some", 15)]),
        log(3, &[("few", 29)]),
    ];
    let logs = |side: &[LogFile; 3]| side.each_ref().map(|log| log.text().to_owned());
    let arguments = [&logs(&a)[..], &["--against".to_owned()], &logs(&b)].concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let out = emud(&[&["compare"], &arguments[..]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    let row = |name: &str| {
        let mut rows = text
            .lines()
            .filter(|line| line.trim_start().starts_with(name));
        rows.next().unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert!(row("some ").contains("(of 2 runs)"), "{text}");
    assert!(row("some ").contains("(of 2 pairs)"), "{text}");
    assert!(row("few ").contains("(Welch)"), "{text}");
    assert!(!row("access up throughput").contains('('), "{text}");
    let (_, found) = compare(&arguments);
    let figures = found["figures"].as_array().unwrap();
    let pairs = |name: &str| figures.iter().find(|f| f["link"] == name).unwrap()["pairs"].clone();
    assert_eq!(
        json!([found["pairs"], pairs("access"), pairs("some"), pairs("few")]),
        json!([3, 3, 2, 1])
    );
    let groups = [&arguments[..], &["--against", arguments[0]]].concat();
    let out = emud(&[&["compare"], &groups[..]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("(of 2 runs)"), "{text}");
}

/// The rows of a trace are one value, of which all but the beginning is long.
#[test]
fn values_that_differ_at_their_end_differ() {
    let of = |last: u32| {
        let mut about = about(1, &["access"]);
        let rows: Vec<String> = (0..200).map(|n| format!("[{n}, 1000]")).collect();
        let rows = rows.join(", ");
        about.links[0].toml = format!("[trace]\nrows = [{rows}, [200, {last}]]\n");
        let mut log = Log::of(about);
        log.end(10, Some(&judgement(RunVerdict::Clean, 10)));
        log.write()
    };
    let (a, b, same) = (of(4321), of(1234), of(4321));
    let (_, found) = compare(&[a.text(), same.text()]);
    assert_eq!(found["differences"], json!([]));
    let (_, found) = compare(&[a.text(), b.text()]);
    let [difference] = &found["differences"].as_array().unwrap()[..] else {
        panic!("{}", found["differences"]);
    };
    assert_eq!(difference["what"], "access: profile: trace.rows");
    for (side, last) in [("a", "[200, 4321]]"), ("b", "[200, 1234]]")] {
        let text = difference[side].as_str().unwrap();
        assert!(text.ends_with(last), "{text}");
        assert!(text.len() < 600, "{text}");
    }
}

/// Programs that emud ended because of a signal have not failed, but did not do all their work.
#[test]
fn a_run_that_a_signal_ended_does_not_count() {
    let mut cut = Log::new(1, &["access"]);
    cut.seconds(&["access"], 3);
    cut.exit(3, "client", Some(0), true);
    let mut said = judgement(RunVerdict::Clean, 3);
    said.exit_code = 130;
    cut.end(3, Some(&said));
    let (a, b, whole) = (clean(1).write(), cut.write(), clean(1).write());
    let arguments = [a.text(), b.text(), "--against", whole.text()];
    let (code, found) = compare(&arguments);
    assert_eq!((code, &found["clean"]), (3, &json!(false)));
    assert_eq!(found["a"]["counted"], 1);
    let why = json!("signal 2 ended the run");
    assert_eq!(found["a"]["runs"][1]["excluded"], why);
}

/// Each network is 2 % slower on side b, and networks differ by much more than that.
#[test]
fn repeats_with_the_same_seeds_are_paired() {
    let run = |seed: u64, load: f64| {
        let mut log = Log::new(seed, &["access"]);
        let base = 0.2 + 0.1 * seed as f64;
        for second in 0..20 {
            log.sample(second, "access", "down", base * load);
        }
        log.end(20, Some(&judgement(RunVerdict::Clean, 20)));
        log.write()
    };
    let sides = [1.0, 0.98].map(|load| [1, 2, 3, 4, 5].map(|seed| run(seed, load)));
    let names = |side: usize, runs: usize| {
        let files = &sides[side][..runs];
        files.iter().map(|file| file.text()).collect::<Vec<_>>()
    };
    let found = |in_b: usize| {
        let arguments = [&names(0, 5)[..], &["--against"], &names(1, in_b)].concat();
        (compare(&arguments).1, arguments)
    };
    let p = |found: &Value, test: &str| {
        let figures = found["figures"].as_array().unwrap();
        let figure = figures.iter().find(|f| f["quantity"] == "throughput");
        figure.unwrap()[test]["p"].as_f64()
    };
    let (all, arguments) = found(5);
    assert!(p(&all, "paired").unwrap() < 0.01, "{:?}", p(&all, "paired"));
    assert!(p(&all, "welch").unwrap() > 0.5, "{:?}", p(&all, "welch"));
    assert_eq!(all["notes"], json!([]));
    corrected(&all);
    let out = emud(&[&["compare"], &arguments[..]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(
        text.contains("p: paired t of runs with the same seed"),
        "{text}"
    );
    // A seed that one side lacks cannot be paired.
    let (some, _) = found(4);
    assert!(p(&some, "paired").unwrap() < 0.01);
    let note = "p is of the 4 pairs of runs with the same seed; runs without a partner: 1";
    assert_eq!(some["notes"], json!([note]));
}

/// p of each row times the number of rows that have one.
fn corrected(found: &Value) {
    let figures = found["figures"].as_array().unwrap();
    let shown = |figure: &Value| {
        let paired = figure["paired"]["p"].as_f64();
        paired.or(figure["welch"]["p"].as_f64())
    };
    let tests = figures.iter().filter_map(shown).count();
    assert!(tests > 1);
    for figure in figures {
        let expected = shown(figure).map(|p| (p * tests as f64).min(1.0));
        assert_eq!(figure["bonferroni"].as_f64(), expected);
        assert_eq!(figure["z"], Value::Null, "few runs");
    }
}

/// Thirty runs have a Z test.
#[test]
fn many_repeats_have_a_z_test() {
    let files: Vec<_> = (1..=60).map(|seed| clean(seed).write()).collect();
    let names: Vec<&str> = files.iter().map(|file| file.text()).collect();
    let (_, found) = compare(&[&names[..30], &["--against"], &names[30..]].concat());
    for figure in found["figures"].as_array().unwrap() {
        let [z, welch] = ["z", "welch"].map(|test| figure[test]["p"].as_f64().unwrap());
        assert!((z - welch).abs() < 0.02, "{figure}");
    }
}

#[test]
fn repeats_have_a_significance() {
    let files: Vec<_> = (1..=6).map(|seed| clean(seed).write()).collect();
    let names: Vec<&str> = files.iter().map(|file| file.text()).collect();
    let arguments = [&names[..3], &["--against"], &names[3..]].concat();
    let (code, found) = compare(&arguments);
    assert_eq!(code, 0);
    assert_eq!(
        (&found["a"]["counted"], &found["b"]["counted"]),
        (&json!(3), &json!(3))
    );
    for figure in found["figures"].as_array().unwrap() {
        assert_eq!(figure["a"]["n"], 3);
        assert_eq!(figure["paired"], Value::Null, "other seeds");
        let p = figure["welch"]["p"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&p), "{figure}");
    }
    let out = emud(&[&["compare"], &arguments[..]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("p = 0."), "{text}");
    assert!(text.contains("access down delay mean"), "{text}");
}

/// Repeats with one seed vary less than networks do.
#[test]
fn repeats_of_one_network_are_noted() {
    let runs = |seed| [(); 2].map(|()| clean(seed).write());
    let (one, other) = (runs(1), runs(2));
    let note = |names: &str| {
        format!(
            "runs of {names} with the same seed met the same network: p does not cover differences of networks \
             between seeds; repeat with `emud run --repeat N --new-seeds`"
        )
    };
    let [a, b] = [&one, &other].map(|runs| [runs[0].text(), runs[1].text()]);
    let two = [&a[..], &["--against"], &b].concat();
    let (_, found) = compare(&two);
    assert_eq!(found["notes"], json!([note("a, b")]));
    let three = [&two[..], &["--against"], &a].concat();
    let (_, found) = by("compare-groups", &three);
    assert_eq!(found["notes"], json!([note("a, b, c")]));
    for arguments in [two, three] {
        let out = emud(&[&["compare"], &arguments[..]].concat());
        let text = String::from_utf8(out.stdout).unwrap();
        assert!(text.contains("note: runs of a, b"), "{text}");
    }
    // One side with two networks; both sides with the same; a single run has no test.
    let mixed = [a[0], b[0], "--against", b[0], b[1]];
    assert_eq!(compare(&mixed).1["notes"], json!([note("b")]));
    for arguments in [
        &[a[0], a[1], "--against", a[0], a[1]][..],
        &[a[0], a[1], "--against", b[0]],
    ] {
        assert_eq!(compare(arguments).1["notes"], json!([]), "{arguments:?}");
    }
}

/// Of each seed three loads: throughputs in a ratio of 1, 1 and 1.5, and one run more in the last group.
#[test]
fn three_experiments_have_an_analysis_of_variance() {
    let run = |seed: u64, load: f64| {
        let mut log = Log::new(seed, &["access"]);
        let base = 0.4 + 0.01 * seed as f64;
        for second in 0..20 {
            log.sample(second, "access", "down", base * load);
        }
        log.end(20, Some(&judgement(RunVerdict::Clean, 20)));
        log.write()
    };
    let files: Vec<_> = [(1.0, 1..=4), (1.0, 2..=5), (1.5, 1..=5)]
        .into_iter()
        .map(|(load, seeds)| seeds.map(|seed| run(seed, load)).collect::<Vec<_>>())
        .collect();
    let mut arguments: Vec<&str> = Vec::new();
    for (i, group) in files.iter().enumerate() {
        arguments.extend((i > 0).then_some("--against"));
        arguments.extend(group.iter().map(|file| file.text()));
    }
    let (code, found) = by("compare-groups", &arguments);
    assert_eq!(code, 0);
    let groups = found["groups"].as_array().unwrap();
    let counted: Vec<_> = groups
        .iter()
        .map(|g| g["counted"].as_u64().unwrap())
        .collect();
    assert_eq!(counted, [4, 4, 5]);
    assert_eq!(groups[0]["differences"], json!([]));
    assert_eq!(groups[1]["differences"][0]["what"], "seed");
    let figures = found["figures"].as_array().unwrap();
    let throughput = figures
        .iter()
        .find(|f| f["quantity"] == "throughput")
        .unwrap();
    let means: Vec<f64> = (0..3)
        .map(|i| throughput["groups"][i]["mean"].as_f64().unwrap())
        .collect();
    let ratio = 1.5 * (0.4 + 0.01 * 3.0) / (0.4 + 0.01 * 2.5);
    assert!((means[2] / means[0] - ratio).abs() < 0.01, "{means:?}");
    let anova = &throughput["anova"];
    assert_eq!(
        (&anova["between"], &anova["within"]),
        (&json!(2), &json!(10))
    );
    assert!(anova["p"].as_f64().unwrap() < 1e-4, "{anova}");
    let differ = anova["pairs"].as_array().unwrap().iter();
    let differ = differ.filter(|pair| pair["bonferroni"].as_f64().unwrap() < 0.05);
    let differ: Vec<_> = differ.map(|pair| [&pair["a"], &pair["b"]]).collect();
    assert_eq!(differ, [["a", "c"], ["b", "c"]]);
    let tests = figures.iter().filter(|f| f["anova"] != Value::Null).count() as f64;
    for figure in figures {
        let p = figure["anova"]["p"].as_f64();
        assert_eq!(
            figure["bonferroni"].as_f64(),
            p.map(|p| (p * tests).min(1.0))
        );
    }
    assert_refused("compare-groups", spoilt(&found, "", &[]));
    let out = emud(&[&["compare"], &arguments[..]].concat());
    let text = String::from_utf8(out.stdout).unwrap();
    for part in [
        "different settings of b:",
        "F(2, 10) = ",
        "p < 0.0001, differs",
        "c - a  +",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // Single runs have figures, but no test.
    let singles = [
        files[0][0].text(),
        "--against",
        files[1][0].text(),
        "--against",
        files[2][0].text(),
    ];
    let (_, found) = by("compare-groups", &singles);
    assert!(
        found["figures"]
            .as_array()
            .unwrap()
            .iter()
            .all(|f| f["anova"] == Value::Null)
    );
}

#[test]
fn a_group_that_is_not_clean_is_said_and_has_a_code() {
    let (a, b) = (clean(1).write(), contended(1).write());
    let arguments = [a.text(), "--against", a.text(), "--against", b.text()];
    let (code, found) = by("compare-groups", &arguments);
    assert_eq!((code, &found["clean"]), (3, &json!(false)));
    let note = "c has no run that counts: its figures are of all its runs";
    assert_eq!(found["notes"], json!([note]));
    let many = ["--against", a.text()].repeat(26);
    let out = emud(&[&["compare", a.text()], &many[..]].concat());
    assert_eq!(out.status.code(), Some(64));
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(text.contains("27 experiments: the limit is 26"), "{text}");
}

#[test]
fn a_run_that_is_not_clean_is_said_and_has_a_code() {
    let (a, b) = (clean(1).write(), contended(1).write());
    let (code, found) = compare(&[a.text(), b.text()]);
    assert_eq!((code, &found["clean"]), (3, &json!(false)));
    assert_eq!(found["b"]["runs"][0]["verdict"], "contended");
    assert_eq!(found["notes"].as_array().unwrap().len(), 1);
    // Figures of a side are those of its clean runs.
    let killed = unfinished(1).write();
    let arguments = [a.text(), killed.text(), "--against", a.text()];
    let (code, found) = compare(&arguments);
    assert_eq!(code, 3);
    assert_eq!(
        (&found["a"]["counted"], &found["notes"]),
        (&json!(1), &json!([]))
    );
    let out = emud(&["compare", a.text(), b.text()]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("NOT all runs are clean"), "{text}");
    assert!(
        text.contains("contended: cpu 1 contended for 8.25s"),
        "{text}"
    );
}

#[test]
fn figures_fit_a_terminal_of_80_columns() {
    let logs = [1, 2, 3, 4].map(|seed| clean(seed).write());
    let [a, b, c, d] = logs.each_ref().map(LogFile::text);
    let emud = support::emud_path();
    let emud = emud.display();
    let compare = format!("{emud} compare {a} {b} --against {c} {d}");
    let shown = support::at_terminal(80, &compare);
    let lines = shown.lines().map(str::trim_end);
    let figures = lines.skip_while(|line| !line.trim_start().starts_with("a  "));
    let figures: Vec<_> = figures.take_while(|line| !line.starts_with('±')).collect();
    assert!(figures.len() > 6, "{shown}");
    for line in figures {
        assert!(line.chars().count() <= 80, "{line}\n{shown}");
    }
}

#[test]
fn a_bad_verdict_is_red_at_a_terminal() {
    let (a, b) = (clean(1).write(), contended(2).write());
    let emud = support::emud_path();
    let emud = emud.display();
    let logs = format!("{} {}", a.text(), b.text());
    let shown = |before: &str, verb: &str| {
        let line = format!("{before} {emud} {verb} {logs}");
        support::at_terminal(200, &line)
    };
    let red = "\x1b[1;31mcontended\x1b[0m";
    for (verb, excluded) in [("compare", ""), ("report --text", ", EXCLUDED")] {
        let text = shown("", verb);
        let line = format!("{}: {red}{excluded}: cpu 1 contended for 8.25s", b.text());
        assert!(text.contains(&line), "{text}");
        assert_eq!(text.matches(red).count(), 1, "{text}");
        for plain in ["NO_COLOR=1", "TERM=dumb"] {
            let text = shown(plain, verb);
            assert!(
                text.contains(": contended") && !text.contains('\x1b'),
                "{text}"
            );
        }
    }
    let line = format!("{emud} report --text {}", b.text());
    let text = support::at_terminal(200, &line);
    assert!(text.contains(&format!(": {red}\n")), "{text}");
}

#[test]
fn one_log_is_not_enough() {
    let log = clean(1).write();
    let out = emud(&["compare", log.text()]);
    assert_eq!(out.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&out.stderr).contains("give two"));
}

/// A schema that accepts anything would pass all of the above.
#[test]
fn the_schema_refuses_what_is_not_described() {
    let (a, b) = (clean(1).write(), clean(2).write());
    let (_, found) = compare(&[a.text(), b.text()]);
    assert_refused("compare", spoilt(&found, "", &[]));
}
