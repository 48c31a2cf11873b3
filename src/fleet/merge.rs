// SPDX-License-Identifier: MIT OR Apache-2.0
//! One log of all hosts, in the order of time.

use std::collections::BTreeMap;

use emud_monitor::log::Clock;
use serde_json::{Value, json};

use super::verdict::{FleetVerdict, HostEnd};
use crate::experiment::results::{FleetClock, FleetHost, FleetLine};
use crate::host::now_ns;

/// The log of a host, and how its clock becomes that of the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct HostLog {
    /// Name of the host.
    pub host: String,
    /// The merged log as JSON lines.
    pub text: Vec<u8>,
    /// Its clock, compared with the reference.
    pub clock: HostClock,
}

/// CLOCK_MONOTONIC of the reference minus that of the host, measured twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostClock {
    /// Time of the host and offset, both in ns.
    pub start: (u64, i64),
    /// The same at the end; `None`: only measured once.
    pub end: Option<(u64, i64)>,
    /// Largest error in ns of both.
    pub bound_ns: u64,
}

impl HostClock {
    /// Returns a time of the host in that of the reference: between the measurements, the offset
    /// changes linearly.
    pub fn reference_ns(&self, mono_ns: u64) -> u64 {
        let (from, offset) = self.start;
        let offset = match self.end.filter(|(to, _)| *to > from) {
            None => offset,
            Some((to, last)) => {
                let passed = i128::from(mono_ns) - i128::from(from);
                let span = i128::from(to - from);
                let change = i128::from(last - offset) * passed.clamp(0, span) / span;
                // Between two numbers of i64.
                offset + change as i64
            }
        };
        mono_ns.saturating_add_signed(offset)
    }
}

/// Returns all lines of all hosts in the order of the reference's time. Each has `host`, its name,
/// and `reference_ns`, that time; the machine, which is `host` in a `start` line of one host, is
/// `machine`.
pub fn merge(logs: &[HostLog]) -> Vec<u8> {
    text(in_order(logs))
}

fn text(lines: Vec<(u64, String)>) -> Vec<u8> {
    let lines = lines.into_iter().map(|(_, line)| line + "\n");
    lines.collect::<String>().into_bytes()
}

/// Returns the same with a last line: the verdict over all hosts, also those that were lost.
///
/// # Errors
/// serde cannot write the line: a fault of emud's.
pub fn with_verdict(
    logs: &[HostLog],
    hosts: &BTreeMap<String, HostEnd>,
    verdict: &FleetVerdict,
) -> serde_json::Result<Vec<u8>> {
    let lines = in_order(logs);
    let line = FleetLine {
        time: Clock::now().time(now_ns()),
        reference_ns: lines.last().map_or(0, |(time, _)| *time),
        verdict: verdict.verdict,
        reasons: verdict.reasons.clone(),
        exit_code: verdict.exit_code,
        hosts: hosts.iter().map(|(host, end)| entry(host, end)).collect(),
    };
    let mut text = text(lines);
    serde_json::to_writer(&mut text, &line)?;
    text.push(b'\n');
    Ok(text)
}

fn entry(host: &str, end: &HostEnd) -> FleetHost {
    let host = host.to_owned();
    match end {
        HostEnd::Lost(why) => FleetHost {
            host,
            verdict: None,
            lost: Some(why.clone()),
            clock: None,
        },
        HostEnd::Reported { result, clock } => FleetHost {
            host,
            verdict: result.judgement.as_ref().map(|judged| judged.verdict),
            lost: None,
            clock: clock.map(|start| FleetClock {
                offset_ns: start.offset_ns,
                end_offset_ns: result.clock.map(|end| end.offset_ns),
                bound_ns: result
                    .clock
                    .map_or(0, |end| end.bound_ns)
                    .max(start.bound_ns),
            }),
        },
    }
}

fn in_order(logs: &[HostLog]) -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    for log in logs {
        // A line that cannot be read, such as the last one of a log that was cut, has the time of
        // the one before.
        let mut last = 0;
        for line in log
            .text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            let Ok(Value::Object(mut keys)) = serde_json::from_slice(line) else {
                continue;
            };
            if let Some(mono_ns) = keys.get("mono_ns").and_then(Value::as_u64) {
                last = log.clock.reference_ns(mono_ns);
            }
            if let Some(machine) = keys.remove("host") {
                keys.insert("machine".into(), machine);
            }
            keys.insert("host".into(), json!(log.host));
            keys.insert("reference_ns".into(), json!(last));
            lines.push((last, Value::Object(keys).to_string()));
        }
    }
    // Stable: lines of one host stay in their order.
    lines.sort_by_key(|(time, _)| *time);
    lines
}
