// SPDX-License-Identifier: MIT OR Apache-2.0
//! One line of a log. Unknown types and keys are ignored, as the format requires.

use std::borrow::Cow;
use std::collections::BTreeMap;

use emud_monitor::log::{
    ArtefactLine, ClassSample, ExitLine, Host, HostSample, LinkLine, Lost, MetricLine, OutputLine,
    PhaseLine, Run, Sample, SpanShare, StationSample,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::Ending;

#[derive(Debug)]
pub enum Line {
    Start(Start),
    Run {
        time: String,
        run: Box<Run>,
    },
    Phase(PhaseLine),
    Link(LinkLine),
    Output(OutputLine),
    Sample(Box<Sample>),
    Class(Box<ClassSample>),
    Station(Box<StationSample>),
    Host(Box<HostSample>),
    Exit(ExitLine),
    Artefact(ArtefactLine),
    Metric(MetricLine),
    Lost(Lost),
    Alarm(Alarm),
    Clear(Clear),
    /// None: the end of a monitor alone.
    End(u64, Option<Box<Ending>>),
    Other,
}

/// Keys of all lines.
#[derive(Debug, Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    time: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub struct Start {
    pub mono_ns: u64,
    pub schema: String,
    pub version: String,
    pub host: Host,
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A contention episode began.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Alarm {
    /// Number of the episode, from 1.
    pub episode: u64,
    /// Time of the alarm, CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// The resource that ran out.
    pub resource: String,
    scope: BTreeMap<String, Value>,
    /// Start of the episode, ns of CLOCK_MONOTONIC.
    pub since_mono_ns: u64,
    /// The measured value.
    pub value: u64,
    /// The value that it exceeds.
    pub threshold: u64,
    /// The hook that raised it; "socket": a report.
    #[serde(default)]
    hook: String,
    /// Unit of both: "ns", "bytes", "pages", "packets", "number" or "none".
    pub unit: String,
    /// Largest first.
    pub shares: Vec<SpanShare>,
    /// When it ended; none: at the end of the run, or it was a moment.
    #[serde(skip)]
    pub until_mono_ns: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub struct Clear {
    pub episode: u64,
    pub until_mono_ns: u64,
    /// Shares of the whole episode.
    #[serde(default)]
    pub shares: Vec<SpanShare>,
}

#[derive(Debug, Deserialize)]
struct EndHead {
    mono_ns: u64,
    verdict: Option<IgnoredAny>,
}

impl Line {
    /// Reads a line of a log.
    ///
    /// # Errors
    /// It is not JSON, or has not the keys of its type.
    pub fn read(text: &[u8]) -> serde_json::Result<Self> {
        fn body<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
            serde_json::from_slice(text)
        }
        let head: Head = serde_json::from_slice(text)?;
        Ok(match &*head.r#type {
            "start" => Self::Start(body(text)?),
            "run" => Self::Run {
                time: head.time.into_owned(),
                run: body(text)?,
            },
            "phase" => Self::Phase(body(text)?),
            "link" => Self::Link(body(text)?),
            "output" => Self::Output(body(text)?),
            "sample" => Self::Sample(body(text)?),
            "class" => Self::Class(body(text)?),
            "station" => Self::Station(body(text)?),
            "host" => Self::Host(body(text)?),
            "exit" => Self::Exit(body(text)?),
            "artefact" => Self::Artefact(body(text)?),
            "metric" => Self::Metric(body(text)?),
            "lost" => Self::Lost(body(text)?),
            "alarm" => Self::Alarm(body(text)?),
            "clear" => Self::Clear(body(text)?),
            "end" => {
                let end: EndHead = body(text)?;
                let ending = end.verdict.map(|_| body(text));
                Self::End(end.mono_ns, ending.transpose()?)
            }
            _ => Self::Other,
        })
    }
}

impl Alarm {
    /// Returns whether it is a report, which is of a moment and has no end.
    pub(super) fn is_moment(&self) -> bool {
        self.hook == "socket"
    }

    /// Returns which one of the resource: "cpu 1", "eth0", "late eth0".
    pub fn what(&self) -> String {
        let word = |key: &str| self.scope.get(key).and_then(Value::as_str);
        if let Some(cpu) = self.scope.get("cpu").and_then(Value::as_u64) {
            return format!("cpu {cpu}");
        }
        if let Some(class) = word("class") {
            return format!("all {class} devices");
        }
        let words = ["failure", "direction", "of", "name"];
        words
            .iter()
            .filter_map(|key| word(key))
            .collect::<Vec<_>>()
            .join(" ")
    }
}
