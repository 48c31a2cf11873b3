// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a trace, and whether they go together.

use std::sync::Arc;

use super::draft::LinkDraft;
use super::kinds::{Flag, Long};
use super::located::latest;
use super::trace::{Summary, Trace, TraceRow, TraceSource};
use super::trace_file::{self, TraceLocation, Wrong};
use super::{Link, file, keys, trace_figures};
use crate::text::{At, Draft, Entry, Located, Mistake, Reader, Span, Value, is_none, table};

const LOOKS: &str = "trace = { file = \"cell.csv\" } or trace = { mahimahi = \"up.trace\" }";

table! {
    /// The keys of a trace besides its source.
    #[derive(Debug)]
    pub struct TraceKeys {
        repeat: bool = true, "loop" as Flag;
        offset_ns: u64 = 0, "offset" as Long;
        period_ns: Option<u64> = None, "period" as Long;
    }
    /// `broken`: its rows could not be read; what goes with them is not judged.
    struct TraceDraft {
        source: Option<Located<ReadTrace>>;
    }
}

/// As read: a file is read where it is named, so that both directions share it.
#[derive(Debug, Clone)]
pub(crate) enum ReadTrace {
    Rows(Arc<[TraceRow]>),
    Mahimahi(Arc<[u32]>),
    InForce(Summary),
}

pub(super) const SOURCES: &[&str] = &["file", "rows", "mahimahi", "opportunities", "in-force"];

impl Reader {
    /// Applies `trace`: other rows take `period` away, everything else is merged key by key.
    pub(super) fn trace(&mut self, draft: &mut TraceDraft, value: &Located<Value>) {
        if is_none(value) {
            *draft = TraceDraft::default();
            return;
        }
        let Value::Table(entries) = &value.value else {
            let help = format!("write {LOOKS}");
            self.wrong_kind(value, "trace", help);
            draft.broken = true;
            return;
        };
        draft.at = Some(value.at.clone());
        let is_source = |e: &&Entry| SOURCES.contains(&e.key.value.as_str());
        let mut sources = entries.iter().filter(is_source);
        if let Some(entry) = sources.next() {
            draft.period_ns = None;
            draft.source = self.trace_source(entry);
            draft.broken = draft.source.is_none();
        }
        if let Some(second) = sources.next() {
            let title = "a trace from two sources";
            let help = format!("keep one of them: {LOOKS}");
            self.mistake(&second.key.at, title, help);
        }
        for entry in entries.iter().filter(|e| !is_source(e)) {
            if entry.key.value == "restart" {
                let help = "it is no property: emud set IFACE trace.restart";
                let title = "`restart` has no value";
                self.mistake(&entry.key.at, title, help);
            } else if !draft.key(self, entry) {
                let unknown = keys::unknown(&entry.key, &keys::TRACE);
                self.mistakes.push(unknown);
            }
        }
    }

    fn trace_source(&mut self, entry: &Entry) -> Option<Located<ReadTrace>> {
        let key = entry.key.value.as_str();
        let read = self.trace_text(entry).and_then(|(name, text)| {
            let read = match key {
                "rows" => trace_file::csv(&text.replace(';', "\n")).map(rows),
                "opportunities" => {
                    trace_file::opportunities(&text).map(|ms| ReadTrace::Mahimahi(ms.into()))
                }
                "mahimahi" => trace_file::mahimahi(&text).map(|ms| ReadTrace::Mahimahi(ms.into())),
                "in-force" => match Summary::parse(&text) {
                    Some(summary) => Ok(ReadTrace::InForce(summary)),
                    None => Err(Wrong::new(
                        "these are no rows in force",
                        "it is what emud keeps of a long trace: give its file",
                    )),
                },
                _ if text.trim_start().starts_with('[') => trace_file::json(&text).map(rows),
                _ => trace_file::csv(&text).map(rows),
            };
            read.map_err(|wrong| wrong.mistake(&name))
        });
        match read {
            Ok(source) => Some(Located {
                value: source,
                at: entry.value.at.clone(),
            }),
            Err(mistake) => {
                self.mistakes.push(mistake);
                None
            }
        }
    }

    /// Returns the text itself, and what to call it.
    fn trace_text(&self, entry: &Entry) -> Result<(Located<String>, String), Mistake> {
        let key = &entry.key.value;
        let Value::Text(text) = &entry.value.value else {
            let help = format!("write text: {key} = \"...\"");
            return Err(Mistake::wrong_kind(&entry.value, key, help));
        };
        let at = entry.value.at.clone();
        if matches!(key.as_str(), "file" | "mahimahi") {
            let file = Located {
                value: text.clone(),
                at,
            };
            let contents = file::contents(self, &file)?;
            return Ok((file, contents));
        }
        let name = Located {
            value: format!("`{key}`"),
            at,
        };
        Ok((name, text.clone()))
    }

    /// Returns the finished trace; meaningless if that adds a mistake.
    pub(super) fn finish_trace(&mut self, draft: &TraceDraft) -> Option<Trace> {
        let at = draft.at.as_ref().filter(|_| !draft.broken)?;
        let Some(source) = &draft.source else {
            let help = format!("give its rows: {LOOKS}");
            self.mistake(at, "a trace without rows", help);
            return None;
        };
        let TraceKeys {
            repeat, offset_ns, ..
        } = draft.values();
        let period = draft.period_ns.as_ref();
        if let Some(period) = period {
            self.mistakes.extend(no_period(&source.value, &period.at));
        }
        let found = match &source.value {
            ReadTrace::Rows(rows) => TraceSource::Rows {
                period_ns: self.known_period(rows, period, &source.at),
                rows: rows.clone(),
            },
            ReadTrace::Mahimahi(ms) => TraceSource::Mahimahi(ms.clone()),
            ReadTrace::InForce(summary) => TraceSource::InForce(*summary),
        };
        if let (ReadTrace::Rows(rows), true) = (&source.value, repeat)
            && rows.iter().all(|row| row.rate == Some(0))
        {
            let help = "give a row with a rate above 0, or write state = \"down\"";
            let title = "a trace that never sends a packet";
            self.mistake(&source.at, title, help);
        }
        Some(Trace {
            source: found,
            repeat,
            offset_ns,
        })
    }

    /// Rows that only the classifier has cannot be made to vary about another delay, nor to count a
    /// longer queue.
    pub(super) fn rows_in_force_fit(&mut self, draft: &LinkDraft, link: &Link) {
        let (Some(trace), Some(at)) = (&link.trace, &draft.trace.at) else {
            return;
        };
        let TraceSource::InForce(summary) = &trace.source else {
            return;
        };
        let longest = trace_figures::longest_queue(summary.frac);
        if summary.mean_rate > 0 && !summary.mahimahi && link.queue.bytes > Some(longest) {
            let help = "the rows are in the classifier alone: give their file again together with \
                        the queue, trace.file=cell.csv";
            let title = format!("rows in force count at most {longest} bytes in the queue");
            let bytes = draft.queue.bytes.as_ref().map(|bytes| &bytes.at);
            self.mistake(latest(at, [bytes]), title, help);
        }
        if summary.own_mean_ns == trace_figures::own_mean(link) {
            return;
        }
        let delay = &draft.delay;
        let mean = delay.mean_ns.as_ref().map(|mean| &mean.at);
        let spread = delay.jitter.spread.as_ref().map(|spread| &spread.at);
        let shape = delay.jitter.distribution.as_ref().map(|shape| &shape.at);
        let help = "the rows are in the classifier alone: give their file again together with the \
                    delay, trace.file=cell.csv";
        let title = "rows of jitter in force have a different mean delay";
        let at = latest(at, [mean, spread, shape]);
        self.mistake(at, title, help);
    }

    /// Rejects `max` with rows of delay or jitter: the cap is in the table of delays, which rows move and stretch.
    pub(super) fn no_cap_on_rows(&mut self, draft: &LinkDraft, link: &Link) {
        let (Some(max), Some(trace)) = (&draft.delay.max_ns, &link.trace) else {
            return;
        };
        let summary = trace_figures::figures(trace);
        if summary.max_delay_ns.is_none() && summary.max_jitter_ns.is_none() {
            return;
        }
        let help = "cut the delays in the trace itself, or leave `max` out";
        let title = "`max` of a delay that a trace gives";
        self.mistake(&max.at, title, help);
    }

    /// Returns the period, if a profile can say it.
    fn known_period(&mut self, rows: &[TraceRow], given: Option<&Located<u64>>, at: &At) -> u64 {
        let period_ns = self.period(rows, given, at);
        if period_ns > Span::MAX_NS {
            let help =
                "was the clock of the log set while it was written? Take out the rows before";
            self.mistake(at, "a trace of more than 100 years", help);
        }
        period_ns
    }

    /// As given, else the last row lasts as long as the one before.
    fn period(&mut self, rows: &[TraceRow], given: Option<&Located<u64>>, at: &At) -> u64 {
        let last = rows.last().map_or(0, |row| row.at_ns);
        match (given, rows) {
            (Some(given), _) if given.value > last => given.value,
            (Some(given), _) => {
                let help = format!("its last row begins at {} s", last as f64 / 1e9);
                let title = "a trace with rows beyond its `period`";
                self.mistake(&given.at, title, help);
                given.value
            }
            (None, [.., before, last]) => 2 * last.at_ns - before.at_ns,
            (None, _) => {
                let help = "give its length: period = \"10s\"";
                let title = "a trace of one row without `period`";
                self.mistake(at, title, help);
                1
            }
        }
    }
}

/// Rejects a period for a trace that has its own.
fn no_period(source: &ReadTrace, at: &At) -> Option<Mistake> {
    let mahimahi = match source {
        ReadTrace::Rows(_) => return None,
        ReadTrace::Mahimahi(_) => true,
        ReadTrace::InForce(summary) => summary.mahimahi,
    };
    Some(match mahimahi {
        true => {
            let help = "a Mahimahi trace ends with its last line";
            Mistake::new(at, "`period` of a trace that has a period", help)
        }
        false => {
            let help = "give their file again together with it: trace.file=cell.csv";
            Mistake::new(at, "`period` of rows that the classifier alone has", help)
        }
    })
}

fn rows(rows: Vec<TraceRow>) -> ReadTrace {
    ReadTrace::Rows(rows.into())
}

impl Wrong {
    fn mistake(self, name: &Located<String>) -> Mistake {
        let place = match self.place {
            TraceLocation::All => String::new(),
            TraceLocation::Line(line) => format!(", line {line}"),
            TraceLocation::Row(row) => format!(", row {row}"),
        };
        let title = format!("{}{place}: {}", name.value, self.problem);
        Mistake::new(&name.at, title, self.help)
    }
}
