// SPDX-License-Identifier: MIT OR Apache-2.0
//! What contrib/ ships queries metrics and labels that exist, and docs/metrics.md has all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use emud::datapath::survey::Snapshot;
use emud::metrics::{Format, Media, exposition, links, registry};
use serde_json::Value;

/// The families, with their types; those of the monitor, too.
fn families() -> BTreeMap<String, String> {
    let mut registry = registry();
    links::register(&mut registry, Snapshot::default());
    Media::default().register(&mut registry);
    let text = exposition(&registry, Format::Prometheus).unwrap();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let own = types.map(|line| line.split_once(' ').unwrap());
    // Of an observation; tests/pure/log/socket.rs compares them with its answer.
    let counters = crate::log::MONITOR_COUNTERS.map(|name| (name, "counter"));
    let gauges = ["emud_in_contention", "emud_watched"].map(|name| (name, "gauge"));
    let all = own.chain(counters).chain(gauges);
    all.map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect()
}

/// Samples of all families: a histogram has three kinds.
fn samples() -> BTreeSet<String> {
    let samples = families()
        .into_iter()
        .flat_map(|(name, kind)| match kind.as_str() {
            "histogram" => ["_bucket", "_sum", "_count"]
                .map(|end| format!("{name}{end}"))
                .to_vec(),
            _ => vec![name],
        });
    samples.collect()
}

/// Names in a text that begin like those of emud's metrics.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with("emud_"))
        .map(str::to_owned)
        .collect()
}

/// The server adds `instance` and `job`.
const LABELS: [&str; 18] = [
    "instance",
    "job",
    "netns",
    "container",
    "interface",
    "direction",
    "class",
    "cause",
    "bottleneck",
    "profile",
    "engine",
    "seed",
    "resource",
    "state",
    "le",
    "version",
    "medium",
    "node",
];

/// Labels in selectors and groupings of an expression.
fn labels(expression: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in expression.split(['{', '(']).skip(1) {
        let Some((inside, _)) = part.split_once(['}', ')']) else {
            continue;
        };
        let is_selector = inside.contains('=');
        for one in inside.split(',') {
            let name = one.trim().split(['=', '!']).next().unwrap().trim();
            let is_label =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            let grouped = expression.contains(&format!("by ({inside})"));
            if is_label && (is_selector || grouped) {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

fn assert_known(what: &str, expression: &str) {
    let names = names(expression);
    // The server makes `up`.
    let is_server = expression.starts_with("up{");
    assert!(is_server || !names.is_empty(), "{what}: {expression}");
    let samples = samples();
    let unknown: Vec<_> = names.difference(&samples).collect();
    assert!(
        unknown.is_empty(),
        "{what}: no metrics {unknown:?} in {expression}"
    );
    let known = LABELS.map(str::to_owned).into();
    let unknown: Vec<String> = labels(expression).difference(&known).cloned().collect();
    assert!(
        unknown.is_empty(),
        "{what}: no labels {unknown:?} in {expression}"
    );
}

fn read(path: &str) -> String {
    fs::read_to_string(support::root().join(path)).unwrap()
}

#[test]
fn the_dashboard_queries_what_exists() {
    let dashboard: Value = serde_json::from_str(&read("contrib/grafana/emud-links.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 10);
    let (mut ids, mut expressions) = (BTreeSet::new(), 0);
    let mut covered = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["id"]);
        let title = panel["title"].as_str().unwrap();
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert_known(title, expression);
            // Links of two hosts have the same names, and must not be one curve.
            let chosen = expression.matches("{instance=~\"$instance\"").count();
            assert_eq!(
                chosen,
                expression.matches("emud_").count(),
                "{title}: {expression}"
            );
            // A number that no host gave is not a clean host.
            assert!(!expression.contains("vector("), "{title}: {expression}");
            assert!(!expression.contains("by ("), "{title}: {expression}");
            if panel["type"] == "timeseries" {
                let legend = target["legendFormat"].as_str().unwrap();
                assert!(legend.contains("{{instance}}"), "{title}: {legend}");
            }
            expressions += 1;
        }
        let at = |key| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24, "{title}");
        for (x, y) in (0..at("w")).flat_map(|x| (0..at("h")).map(move |y| (x, y))) {
            assert!(
                covered.insert((at("x") + x, at("y") + y)),
                "{title} covers another panel"
            );
        }
    }
    assert!(expressions > 15);
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let Some(definition) = variable["definition"].as_str() else {
            continue;
        };
        assert_known("variable", definition);
    }
}

#[test]
fn the_alerts_query_what_exists() {
    let rules = read("contrib/prometheus/emud.rules.yml");
    let expressions: Vec<&str> = (rules.lines())
        .filter_map(|line| line.trim().strip_prefix("expr: "))
        .collect();
    assert_eq!(expressions.len(), rules.matches("- alert: ").count());
    assert!(expressions.len() > 5);
    for summary in rules.lines().filter(|line| line.contains(" summary: ")) {
        assert!(summary.contains("{{ $labels.instance }}"), "{summary}");
    }
    expressions
        .into_iter()
        .for_each(|expression| assert_known("alert", expression));
}

#[test]
fn the_page_has_every_metric() {
    let page = read("docs/metrics.md");
    let all: BTreeSet<String> = families().into_keys().collect();
    let described = names(&page);
    let missing: Vec<_> = all.difference(&described).collect();
    assert!(missing.is_empty(), "docs/metrics.md lacks {missing:?}");
    let samples = samples();
    let more: Vec<_> = described
        .iter()
        .filter(|name| !all.contains(*name) && !samples.contains(*name))
        .collect();
    assert!(
        more.is_empty(),
        "docs/metrics.md has {more:?}, which do not exist"
    );
}

/// Prometheus's rules of names: base units, `_total` for counters only.
#[test]
fn names_follow_the_rules() {
    for (name, kind) in families() {
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name} {kind}");
        for unit in ["_ms", "_us", "_ns", "_bits", "_kbit", "_minutes"] {
            assert!(
                !name.contains(&format!("{unit}_")) && !name.ends_with(unit),
                "{name}"
            );
        }
    }
}

#[test]
fn a_wrong_name_is_found() {
    let wrong = [
        "rate(emud_link_lost_total[1m])",
        "sum by (iface) (emud_link_up)",
        "emud_link_up{dir=\"up\"}",
    ];
    for expression in wrong {
        let judged = std::panic::catch_unwind(|| assert_known("test", expression));
        assert!(judged.is_err(), "{expression}");
    }
}
