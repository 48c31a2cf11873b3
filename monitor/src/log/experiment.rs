// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of `emud run`: what was done, beside what was noticed.

use serde::{Deserialize, Serialize, Serializer};

/// What is run, behind which links; once, when the network is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub mono_ns: u64,
    /// emud's command line.
    pub argv: Vec<String>,
    pub cwd: String,
    /// Of the scenario, or of the profile.
    pub name: String,
    /// The scenario file in full; none: a single link.
    pub scenario: Option<String>,
    pub seed: u64,
    /// From 1.
    pub repeat: u32,
    pub repeats: u32,
    /// The interface that existed before; none: a network of emud's own.
    pub in_place: Option<String>,
    /// As whom programs ran; none: root. Logs of before have no such key.
    #[serde(default)]
    pub user: Option<String>,
    /// Between two samples; none: no samples.
    pub sample_ns: Option<u64>,
    pub nodes: Vec<RunNode>,
    pub links: Vec<RunLink>,
    /// Sentences for people.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunNode {
    pub name: String,
    pub addresses: Vec<String>,
    /// As argument vector; none: nothing runs here.
    pub command: Option<Vec<String>>,
    pub service: bool,
}

/// A link as it was attached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunLink {
    pub name: String,
    pub node: String,
    pub interface: String,
    /// The profile's name.
    pub profile: String,
    /// The profile in full, as it is in force: `up` is what the device sends.
    pub toml: String,
    pub reversed: bool,
    /// "fq" or "hold".
    pub engine: String,
    /// Why this engine.
    pub reason: String,
    pub seed: u64,
    pub up: Option<AskedFor>,
    pub down: Option<AskedFor>,
    /// The other links of the profile, to which rules send packets.
    pub classes: Vec<RunClass>,
    pub notes: Vec<String>,
}

/// A named link of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunClass {
    pub name: String,
    pub up: Option<AskedFor>,
    pub down: Option<AskedFor>,
}

/// What a direction's default link is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AskedFor {
    /// Bits per second; none: not limited.
    pub rate_bit_s: Option<u64>,
    pub delay_ns: u64,
    /// Standard deviation.
    pub jitter_ns: u64,
    /// Long-run share of packets, 0 to 1; of 1500 bytes where it depends on the length.
    pub loss: f64,
    /// It changes with time: a trace or phases; the figures are those of the start.
    pub varies: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    Preparation,
    Measurement,
    CleanUp,
}

/// A phase begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseLine {
    pub mono_ns: u64,
    pub phase: PhaseName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkEvent {
    Attached,
    /// By `emud set`, `apply`, or a phase of its profile; noticed with the next sample.
    Changed,
    /// Somebody else has deleted or changed a part of it.
    Tampered,
    Detached,
}

/// A link comes, changes or goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkLine {
    pub mono_ns: u64,
    pub link: String,
    pub event: LinkEvent,
    /// With "tampered": what is missing or changed; none: it is whole again.
    #[serde(default)]
    pub what: Vec<String>,
    /// With "changed" by hand: the profile in full; else none.
    pub toml: Option<String>,
    /// With "changed" by its own profile: the phase that has begun, from 1, and its name.
    pub phase: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    Stdout,
    Stderr,
    /// Both, of a program at a terminal.
    Terminal,
}

/// A line of a program's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputLine {
    /// When its first byte was read.
    pub mono_ns: u64,
    pub node: String,
    pub stream: OutputStream,
    /// Without its line feed; bytes that are not UTF-8 as U+FFFD.
    pub text: String,
    /// It had no end: too long for a line, or the program ended.
    pub partial: bool,
}

/// Counters of a link's direction since the sample before (or since it was attached).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The end of the interval.
    pub mono_ns: u64,
    pub link: String,
    /// "up" or "down".
    pub direction: String,
    /// A class of the profile's rules, by name; none: the whole direction.
    pub class: Option<String>,
    pub interval_ns: u64,
    /// That came to the link, wire packets.
    pub packets: u64,
    pub bytes: u64,
    /// That it let through.
    pub passed_packets: u64,
    pub passed_bytes: u64,
    /// Lost on the wire.
    pub lost: u64,
    /// Dropped by the queue, AQM included.
    pub dropped: u64,
    /// Marked by ECN.
    pub marked: u64,
    pub duplicated: u64,
    pub corrupted: u64,
    /// Passed without what they were asked to meet: no lease, unparsable.
    pub untouched: u64,
    /// In the queue now; none: no queue.
    pub backlog_bytes: Option<u64>,
    /// Delay given to packets of the interval; none: no packet.
    pub delay: Option<DelaySample>,
    /// Left later than their departure time, or dropped, by what holds packets, in the interval.
    pub late: u64,
    pub engine_dropped: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DelaySample {
    /// Exact.
    pub mean_ns: u64,
    /// Of the histogram: off by 1/16 at most.
    pub p50_ns: u64,
    pub p99_ns: u64,
    /// No delay was longer.
    pub max_ns: u64,
    /// From, until, packets: what has to be added up for a quantile of several samples.
    pub histogram: Vec<[u64; 3]>,
}

/// A command has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExitLine {
    pub mono_ns: u64,
    pub node: String,
    pub phase: PhaseName,
    pub command: Vec<String>,
    pub started_mono_ns: u64,
    /// None: ended by a signal.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// emud ended it: its time was over, or the run was.
    pub ended_by_emud: bool,
}

impl ExitLine {
    /// It did not do what it was to do. A program that emud ended has not failed.
    pub fn failed(&self) -> bool {
        self.code != Some(0) && !self.ended_by_emud
    }

    /// "exit code 7", "signal 15, by emud".
    pub fn status(&self) -> String {
        let how = match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown state".to_owned(),
        };
        match self.ended_by_emud {
            true => format!("{how}, by emud"),
            false => how,
        }
    }
}

/// A file that was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtefactLine {
    pub mono_ns: u64,
    pub node: String,
    /// In the node.
    pub path: String,
    /// Where it is now; none: it could not be kept.
    pub stored: Option<String>,
    pub bytes: u64,
    pub error: Option<String>,
}

/// What the log could not take since the line of this type before: the disk, or who reads, was
/// too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    pub mono_ns: u64,
    pub output_lines: u64,
    pub samples: u64,
}

/// What can be said of the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunVerdict {
    /// Nothing was seen of what was watched.
    Clean,
    /// Nothing of the host was watched, so nothing can be said of it.
    Unwatched,
    /// The host had too little of a resource.
    Contended,
    /// The emulator itself was late or dropped packets, and contention does not explain it; or
    /// the host could not be watched all the time; or a link went away.
    Invalid,
}

/// How an experiment ended: part of the end line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    pub verdict: RunVerdict,
    /// Contention in the measured phase.
    pub contention: Vec<Span>,
    /// Seconds of the measured phase, from 0, that contention touches.
    pub contended_seconds: Vec<u64>,
    /// Sentences that say why a run is invalid.
    pub invalid: Vec<String>,
    /// From, until: the measured phase; none: it did not come to that.
    pub measured_mono_ns: Option<[u64; 2]>,
    /// What emud's own exit code is.
    pub exit_code: u8,
}

/// The keys of a judgement, or, of a run without one, null for each.
pub(super) fn judgement_or_nulls<S: Serializer>(
    judgement: &Option<Judgement>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Default, Serialize)]
    struct Keys<'a> {
        verdict: Option<RunVerdict>,
        contention: Option<&'a [Span]>,
        contended_seconds: Option<&'a [u64]>,
        invalid: Option<&'a [String]>,
        measured_mono_ns: Option<[u64; 2]>,
        exit_code: Option<u8>,
    }
    let keys = judgement.as_ref().map(|judgement| Keys {
        verdict: Some(judgement.verdict),
        contention: Some(&judgement.contention),
        contended_seconds: Some(&judgement.contended_seconds),
        invalid: Some(&judgement.invalid),
        measured_mono_ns: judgement.measured_mono_ns,
        exit_code: Some(judgement.exit_code),
    });
    keys.unwrap_or_default().serialize(serializer)
}

/// Contention of one resource, from an alarm to its clear (or the end).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub resource: String,
    /// The alarm's scope in words: "cpu 1", "eth0", "8:0".
    pub what: String,
    pub since_mono_ns: u64,
    pub until_mono_ns: u64,
    pub duration_ns: u64,
    /// Largest first.
    pub by: Vec<SpanShare>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanShare {
    pub group: String,
    pub share: f64,
}
