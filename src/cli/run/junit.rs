// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of runs for continuous integration: JUnit XML, and annotations of GitHub Actions.

use std::fmt::Write;

use emud::experiment::run::{self, Outcome};
use emud_monitor::log::RunVerdict;

use crate::cli::Failure;

/// A test of JUnit.
#[derive(Debug)]
struct Case {
    name: String,
    time_s: f64,
    /// Kind, message and details.
    failure: Option<(&'static str, String, String)>,
    skipped: Option<String>,
}

/// Test suite of one run: a test for each program and one for the verdict.
#[derive(Debug)]
pub struct Suite {
    name: String,
    seed: u64,
    cases: Vec<Case>,
}

impl Suite {
    /// Creates a suite of a run: a test for each program, and one for the verdict.
    pub fn of(outcome: &Outcome, name: &str, (repeat, repeats): (u32, u32), seed: u64) -> Self {
        let mut cases: Vec<Case> = (outcome.exits.iter())
            .map(|exit| Case {
                name: format!("{}: {}", exit.node, exit.command.join(" ")),
                time_s: exit.mono_ns.saturating_sub(exit.started_mono_ns) as f64 / 1e9,
                failure: exit.failed().then(|| {
                    let message = format!("{}: {}", exit.node, exit.status());
                    ("program", message, exit.command.join(" "))
                }),
                skipped: None,
            })
            .collect();
        let judgement = outcome.judgement();
        let measured = judgement
            .measured_mono_ns
            .map_or(0, |[begin, end]| end.saturating_sub(begin));
        let text = run::text(&outcome.finished);
        let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let failure = |kind| Some((kind, first.to_owned(), rest.trim_end().to_owned()));
        cases.push(Case {
            name: "verdict".to_owned(),
            time_s: measured as f64 / 1e9,
            failure: match (outcome.signal, judgement.verdict) {
                // Its programs have not failed, since emud ended them, but did not end either.
                (Some(signal), _) => Some((
                    "run",
                    format!("signal {signal} ended the run"),
                    text.clone(),
                )),
                (None, RunVerdict::Contended) => failure("contended"),
                (None, RunVerdict::Invalid) => failure("invalid"),
                (None, RunVerdict::Clean | RunVerdict::Unwatched) => None,
            },
            // Unwatched is not clean.
            skipped: (outcome.signal.is_none() && judgement.verdict == RunVerdict::Unwatched)
                .then(|| first.to_owned()),
        });
        Self {
            name: numbered(name, (repeat, repeats)),
            seed,
            cases,
        }
    }

    /// Creates a suite of a run that could not take place, or whose log could not be written.
    pub fn failed(why: &Failure, name: &str, repeat: (u32, u32), seed: u64) -> Self {
        let details = format!("exit code {}", why.code);
        Self {
            name: numbered(name, repeat),
            seed,
            cases: vec![Case {
                name: "verdict".to_owned(),
                time_s: 0.0,
                failure: Some(("run", why.message.clone(), details)),
                skipped: None,
            }],
        }
    }

    /// Returns workflow commands of GitHub Actions: an error for each failed program, a warning for a run
    /// that is not reliable.
    pub fn annotations(&self) -> String {
        let mut out = String::new();
        for case in &self.cases {
            let message =
                |message: &str, details: &str| data(format!("{message}\n{details}").trim_end());
            let title = property(&format!("emud run: {}", self.name));
            if let Some((kind, text, details)) = &case.failure {
                let level = if ["program", "run"].contains(kind) {
                    "error"
                } else {
                    "warning"
                };
                let _ = writeln!(out, "::{level} title={title}::{}", message(text, details));
            }
            if let Some(text) = &case.skipped {
                let _ = writeln!(out, "::warning title={title}::{}", message(text, ""));
            }
        }
        out
    }
}

fn numbered(name: &str, (repeat, repeats): (u32, u32)) -> String {
    match repeats {
        1 => name.to_owned(),
        _ => format!("{name} {repeat} of {repeats}"),
    }
}

/// Returns the file of all runs.
pub fn junit(suites: &[Suite]) -> String {
    let count = |of: fn(&Case) -> bool, suites: &[Suite]| {
        suites
            .iter()
            .flat_map(|suite| &suite.cases)
            .filter(|case| of(case))
            .count()
    };
    let all = |suites: &[Suite]| {
        format!(
            "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
            count(|_| true, suites),
            count(|case| case.failure.is_some(), suites),
            count(|case| case.skipped.is_some(), suites)
        )
    };
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let _ = writeln!(out, "<testsuites name=\"emud run\" {}>", all(suites));
    for suite in suites {
        let time: f64 = suite
            .cases
            .iter()
            .map(|case| case.time_s)
            .fold(0.0, f64::max);
        let name = xml(&suite.name);
        let figures = all(std::slice::from_ref(suite));
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" {figures} time=\"{time:.3}\">"
        );
        let _ = writeln!(
            out,
            "    <properties><property name=\"seed\" value=\"{}\"/></properties>",
            suite.seed
        );
        for case in &suite.cases {
            let (case_name, time) = (xml(&case.name), case.time_s);
            let _ = write!(
                out,
                "    <testcase classname=\"{name}\" name=\"{case_name}\" time=\"{time:.3}\""
            );
            let _ = match (&case.failure, &case.skipped) {
                (Some((kind, message, details)), _) => writeln!(
                    out,
                    ">\n      <failure type=\"{kind}\" message=\"{}\">{}</failure>\n    </testcase>",
                    xml(message),
                    xml(details)
                ),
                (None, Some(why)) => writeln!(
                    out,
                    ">\n      <skipped message=\"{}\"/>\n    </testcase>",
                    xml(why)
                ),
                (None, None) => writeln!(out, "/>"),
            };
        }
        let _ = writeln!(out, "  </testsuite>");
    }
    out + "</testsuites>\n"
}

/// Escapes text for XML 1.0, which has no other control characters, also not escaped.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push('\t'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use emud::monitor::session::experiment::Finished;
    use emud_monitor::log::{Judgement, PerResource};

    use super::*;

    fn suite() -> Suite {
        let case = |name: &str, failure, skipped| Case {
            name: name.to_owned(),
            time_s: 1.5,
            failure,
            skipped,
        };
        let failed = (
            "program",
            "client: exit code 7".to_owned(),
            "sh -c \u{1b}\"<a>\"\nx".to_owned(),
        );
        let late = (
            "invalid",
            "invalid: 50 % late".to_owned(),
            "  one".to_owned(),
        );
        Suite {
            name: "lte, 1 of 2".to_owned(),
            seed: 7,
            cases: vec![
                case("client: sh -c a&b", Some(failed), None),
                case("server: true", None, None),
                case("verdict", Some(late), None),
                case("other", None, Some("unwatched: all is off".to_owned())),
            ],
        }
    }

    /// The programs that emud ended then have not failed, and the verdict is of a part only.
    #[test]
    fn a_run_that_a_signal_ended_is_not_green() {
        let judgement = Judgement {
            verdict: RunVerdict::Clean,
            contention: vec![],
            contended_seconds: vec![],
            invalid: vec![],
            measured_mono_ns: Some([0, 1]),
            exit_code: 143,
        };
        let outcome = |signal| Outcome {
            finished: Finished {
                judgement: judgement.clone(),
                verdicts: PerResource::new(),
                written: Ok(()),
                lines_lost: 0,
            },
            exits: vec![],
            notes: vec![],
            signal,
        };
        let of = |signal| junit(&[Suite::of(&outcome(signal), "s", (1, 1), 7)]);
        assert!(of(None).contains("failures=\"0\""), "{}", of(None));
        let ended = "<failure type=\"run\" message=\"signal 15 ended the run\">clean: ";
        assert!(of(Some(15)).contains(ended), "{}", of(Some(15)));
    }

    #[test]
    fn annotations_are_one_line_each() {
        let expected = "::error title=emud run%3A lte%2C 1 of 2::client: exit code 7%0Ash -c \u{1b}\"<a>\"%0Ax\n\
            ::warning title=emud run%3A lte%2C 1 of 2::invalid: 50 %25 late%0A  one\n\
            ::warning title=emud run%3A lte%2C 1 of 2::unwatched: all is off\n";
        assert_eq!(suite().annotations(), expected);
    }

    #[test]
    fn the_file_counts_and_escapes() {
        let text = junit(&[suite(), suite()]);
        for part in [
            "<testsuites name=\"emud run\" tests=\"8\" failures=\"4\" errors=\"0\" skipped=\"2\">",
            "<testsuite name=\"lte, 1 of 2\" tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\" time=\"1.500\">",
            "name=\"client: sh -c a&amp;b\" time=\"1.500\">",
            "message=\"client: exit code 7\">sh -c \u{fffd}&quot;&lt;a&gt;&quot;&#10;x</failure>",
            "name=\"server: true\" time=\"1.500\"/>",
            "<skipped message=\"unwatched: all is off\"/>",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let document = roxmltree::Document::parse(&text).unwrap();
        let nodes = || document.descendants();
        let all = |name: &'static str| nodes().filter(move |node| node.has_tag_name(name));
        assert_eq!((all("testsuite").count(), all("testcase").count()), (2, 8));
        let failure = all("failure").next().unwrap();
        assert_eq!(failure.attribute("message"), Some("client: exit code 7"));
        assert_eq!(failure.text(), Some("sh -c \u{fffd}\"<a>\"\nx"));
    }
}
