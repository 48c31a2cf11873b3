// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a run: its verdict, and the contention.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::event::Resource;

/// Verdict on an experiment.
// From the most favourable to the least.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RunVerdict {
    /// Watched, and neither contention nor a failure of the emulator.
    Clean,
    /// Nothing of the host was watched.
    Unwatched,
    /// The host had too little of a resource.
    Contended,
    /// The emulator failed without contention, or the host was not watched all the time, or a link
    /// was removed.
    Invalid,
}

/// Result of an experiment: a part of the end line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// Verdict on the experiment.
    pub verdict: RunVerdict,
    /// Contention in the measured phase, or contention that explains a failure of the emulator in it.
    pub contention: Vec<Span>,
    /// Seconds of the measured phase, from 0, that overlap contention.
    pub contended_seconds: Vec<u64>,
    /// Sentences on why a run is invalid.
    pub invalid: Vec<String>,
    /// Begin and end of the measured phase in ns of CLOCK_MONOTONIC; null: the run did not reach it.
    pub measured_mono_ns: Option<[u64; 2]>,
    /// Exit code of emud.
    pub exit_code: u8,
}

/// Writes the keys of a judgement, all null without one.
pub(super) fn judgement_or_nulls<S: Serializer>(
    judgement: &Option<Judgement>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Default, Serialize)]
    struct Nulls {
        verdict: (),
        contention: (),
        contended_seconds: (),
        invalid: (),
        measured_mono_ns: (),
        exit_code: (),
    }
    match judgement {
        Some(judgement) => judgement.serialize(serializer),
        None => Nulls::default().serialize(serializer),
    }
}

/// Contention of one resource, from an alarm to its clear line or to the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// Resource that was contended.
    #[schemars(with = "Resource")]
    pub resource: String,
    /// The contended object, such as "cpu 1" or "eth0".
    pub what: String,
    /// Begin in ns of CLOCK_MONOTONIC.
    pub since_mono_ns: u64,
    /// End in ns of CLOCK_MONOTONIC.
    pub until_mono_ns: u64,
    /// Duration in ns.
    pub duration_ns: u64,
    /// Groups that used the resource, largest first; empty if unknown.
    pub by: Vec<SpanShare>,
}

/// Share of one group in the contention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpanShare {
    /// Network namespace, cgroup path or command.
    pub group: String,
    /// Share of the resource, 0 to 1: of a CPU in the whole span, else at the time of the alarm.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
}
