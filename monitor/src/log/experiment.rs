// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of `emud run`: what was done, beside what was noticed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::station::RunMedium;
use crate::event::Resource;

/// What runs, behind which links. The second line of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Command line of emud.
    pub argv: Vec<String>,
    /// Working directory of emud.
    pub cwd: String,
    /// Name of the scenario or profile.
    pub name: String,
    /// Complete text of the scenario; null: a single link.
    pub scenario: Option<String>,
    /// Seed of all random decisions.
    pub seed: u64,
    /// Number of this run, from 1.
    #[schemars(range(min = 1))]
    pub repeat: u32,
    /// Number of requested runs.
    #[schemars(range(min = 1))]
    pub repeats: u32,
    /// Interface that existed before; null: emud made the network.
    pub in_place: Option<String>,
    /// User of the programs; null: root.
    #[serde(default)]
    pub user: Option<String>,
    /// Time between two samples in ns; null: no samples.
    pub sample_ns: Option<u64>,
    /// Nodes of the network.
    pub nodes: Vec<RunNode>,
    /// Emulated links.
    pub links: Vec<RunLink>,
    /// Radio channels.
    #[serde(default)]
    pub media: Vec<RunMedium>,
    /// Sentences on the run.
    pub notes: Vec<String>,
}

/// A node of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunNode {
    /// Name in the scenario.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Addresses with prefix length.
    pub addresses: Vec<String>,
    /// Command with its arguments; null: the node runs nothing.
    pub command: Option<Vec<String>>,
    /// The command starts in the preparation and runs until all other commands have ended.
    pub service: bool,
}

/// A link when it was attached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLink {
    /// Name in the scenario.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Node of the interface.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Interface of the link.
    pub interface: String,
    /// Name of the profile.
    pub profile: String,
    /// Complete profile in force; `up` is what the interface sends.
    pub toml: String,
    /// `up` and `down` of the profile were exchanged, because the interface is the other end.
    pub reversed: bool,
    /// Engine of the link.
    #[schemars(extend("enum" = ["fq", "hold", "qdisc"]))]
    pub engine: String,
    /// Why emud chose this engine.
    pub reason: String,
    /// Seed of the random decisions of this link.
    pub seed: u64,
    /// Configuration of what the interface sends; null: not emulated.
    pub up: Option<AskedFor>,
    /// Configuration of what the interface receives; null: not emulated.
    pub down: Option<AskedFor>,
    /// Other links of the profile, to which rules send packets.
    pub classes: Vec<RunClass>,
    /// Sentences on the link.
    pub notes: Vec<String>,
}

/// A named link of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunClass {
    /// Name in the profile.
    pub name: String,
    /// Configuration of what the interface sends; null: not emulated.
    pub up: Option<AskedFor>,
    /// Configuration of what the interface receives; null: not emulated.
    pub down: Option<AskedFor>,
}

/// Configuration of a link in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedFor {
    /// Rate in bit/s; null: not limited.
    pub rate_bit_s: Option<u64>,
    /// Mean delay in ns.
    pub delay_ns: u64,
    /// Standard deviation of the delay in ns.
    pub jitter_ns: u64,
    /// Long-run share of lost packets, 0 to 1; of packets of 1500 bytes if it depends on the length.
    #[schemars(range(min = 0, max = 1))]
    pub loss: f64,
    /// The link changes with time (trace or phases); the values are those of the start.
    pub varies: bool,
}

/// Phase of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    /// Services start.
    Preparation,
    /// The measured phase.
    Measurement,
    /// Services end.
    CleanUp,
}

/// A phase begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Phase that begins.
    pub phase: PhaseName,
}

/// Change of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkEvent {
    /// The link is in force.
    Attached,
    /// By `emud set`, `emud apply` or a phase of the profile; noticed with the next sample.
    Changed,
    /// Another process deleted or changed a part of the link.
    Tampered,
    /// The link is removed.
    Detached,
}

/// A link is attached, changed or removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Name of the link.
    #[schemars(length(min = 1))]
    pub link: String,
    /// What happened.
    pub event: LinkEvent,
    /// With "tampered": the missing or changed parts; empty when the link is complete again.
    #[serde(default)]
    pub what: Vec<String>,
    /// With "changed" by a command: the complete profile; null otherwise.
    pub toml: Option<String>,
    /// With "changed" by the profile: number (from 1) and name of the phase; null otherwise.
    pub phase: Option<String>,
}

/// Origin of a line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both, of a program at a terminal.
    Terminal,
}

/// A program wrote a line; `mono_ns` is the time at which emud read its first byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutputLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Node of the program.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Origin of the text.
    pub stream: OutputStream,
    /// Text without its line feed; bytes that are not UTF-8 are U+FFFD.
    pub text: String,
    /// The text had no line feed: it was too long, or the program ended.
    pub partial: bool,
}

/// Counters of one direction of a link over an interval that ends at `mono_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// End of the interval in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Name of the link.
    #[schemars(length(min = 1))]
    pub link: String,
    /// "up" is what the interface sends, "down" what it receives.
    #[schemars(extend("enum" = ["up", "down"]))]
    pub direction: String,
    /// Named link to which rules of the profile send packets; null: the whole direction.
    pub class: Option<String>,
    /// Length of the interval in ns.
    pub interval_ns: u64,
    /// Counters of the interval.
    #[serde(flatten)]
    pub counted: Counted,
    /// Bytes in the queue at the end of the interval; null: the link has no queue.
    pub backlog_bytes: Option<u64>,
    /// Mean rate of the link's trace over the interval in bit/s; null: no trace, or one without a
    /// limit.
    #[serde(default)]
    pub capacity_bit_s: Option<u64>,
    /// Delays of the packets of the interval; null: no packet.
    pub delay: Option<DelaySample>,
}

/// Counters of one direction of a link. Packets are wire packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// Packets that reached the link.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Packets that the link passed.
    pub passed_packets: u64,
    /// Bytes of these packets.
    pub passed_bytes: u64,
    /// Packets that were lost on the wire.
    pub lost: u64,
    /// Packets that the queue dropped, including AQM.
    pub dropped: u64,
    /// Packets that ECN marked.
    pub marked: u64,
    /// Copies of packets.
    pub duplicated: u64,
    /// Packets that were damaged.
    pub corrupted: u64,
    /// Packets that passed without emulation: no lease, or not parsable.
    pub untouched: u64,
    /// Packets that the engine sent more than 1 ms after their departure time.
    pub late: u64,
    /// Packets that the engine dropped.
    pub engine_dropped: u64,
}

impl Counted {
    /// Returns what was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Returns the sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            packets: of(self.packets, other.packets),
            bytes: of(self.bytes, other.bytes),
            passed_packets: of(self.passed_packets, other.passed_packets),
            passed_bytes: of(self.passed_bytes, other.passed_bytes),
            lost: of(self.lost, other.lost),
            dropped: of(self.dropped, other.dropped),
            marked: of(self.marked, other.marked),
            duplicated: of(self.duplicated, other.duplicated),
            corrupted: of(self.corrupted, other.corrupted),
            untouched: of(self.untouched, other.untouched),
            late: of(self.late, other.late),
            engine_dropped: of(self.engine_dropped, other.engine_dropped),
        }
    }
}

/// A class of a bottleneck over an interval that ends at `mono_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassSample {
    /// End of the interval in ns of CLOCK_MONOTONIC. The engine's account is up to 50 ms older.
    pub mono_ns: u64,
    /// Name of the link.
    #[schemars(length(min = 1))]
    pub link: String,
    /// Name of the bottleneck.
    #[schemars(length(min = 1))]
    pub bottleneck: String,
    /// Name of the class; null: the bottleneck has no classes.
    pub class: Option<String>,
    /// Length of the interval in ns.
    pub interval_ns: u64,
    /// What the class did in the interval.
    #[serde(flatten)]
    pub counted: ClassCounted,
    /// Packets that wait at the end of the interval.
    pub backlog_packets: u64,
    /// Bytes of these packets.
    pub backlog_bytes: u64,
}

/// Counters of a class of a bottleneck.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClassCounted {
    /// Packets that the server sent.
    pub sent_packets: u64,
    /// Bytes of these packets on the wire.
    pub sent_bytes: u64,
    /// Packets among them that were marked (ECN).
    pub marked: u64,
    /// Packets that found the queue full.
    pub dropped_full: u64,
    /// Packets that waited for too long.
    pub dropped_expired: u64,
    /// Packets that the queue's manager dropped.
    pub dropped_aqm: u64,
    /// Time from arrival to transmission of all packets that were sent, in ns.
    pub wait_ns: u64,
}

impl ClassCounted {
    /// Returns what was counted since `before`.
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, u64::saturating_sub)
    }

    /// Returns the sum of both.
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Returns the packets that were dropped, whatever the cause.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_expired + self.dropped_aqm
    }

    fn with(&self, other: &Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            sent_packets: of(self.sent_packets, other.sent_packets),
            sent_bytes: of(self.sent_bytes, other.sent_bytes),
            marked: of(self.marked, other.marked),
            dropped_full: of(self.dropped_full, other.dropped_full),
            dropped_expired: of(self.dropped_expired, other.dropped_expired),
            dropped_aqm: of(self.dropped_aqm, other.dropped_aqm),
            wait_ns: of(self.wait_ns, other.wait_ns),
        }
    }
}

/// Delays that the link assigned to the packets of an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DelaySample {
    /// Mean in ns, exact.
    pub mean_ns: u64,
    /// Histogram: pairs of a bucket and its packets, in ascending order, without empty buckets. Below
    /// 32, bucket b has the delays from b to b + 1 units of 1024 ns. Above, it has those from s * 2^o
    /// to (s + 1) * 2^o units, where o = floor(b / 16) - 1 and s = b - 16 * o. Quantiles of several
    /// samples follow from the sum of their histograms.
    pub buckets: Vec<[u64; 2]>,
}

/// A command ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExitLine {
    /// Time of the end in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Node of the command.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Phase in which the command started.
    pub phase: PhaseName,
    /// Command with its arguments.
    pub command: Vec<String>,
    /// Time of the start in ns of CLOCK_MONOTONIC.
    pub started_mono_ns: u64,
    /// Exit code; null: a signal ended the command.
    pub code: Option<i32>,
    /// Number of the signal; null: the command exited.
    pub signal: Option<i32>,
    /// emud ended the command, because its time or the run was over.
    pub ended_by_emud: bool,
}

impl ExitLine {
    /// Returns whether the command failed. A command that emud ended did not fail.
    pub fn failed(&self) -> bool {
        self.code != Some(0) && !self.ended_by_emud
    }

    /// Returns the status as text, such as "exit code 7" or "signal 15, by emud".
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

/// A file was kept, or could not be kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArtefactLine {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Node of the file.
    #[schemars(length(min = 1))]
    pub node: String,
    /// Path in the node.
    pub path: String,
    /// Path of the copy; null: the file could not be kept.
    pub stored: Option<String>,
    /// Size in bytes.
    pub bytes: u64,
    /// Why the file could not be kept; null: it was.
    pub error: Option<String>,
}

/// A figure that a program under test measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricLine {
    /// Time of the report in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Name of the figure.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Unit as the program wrote it; null: it has none.
    pub unit: Option<String>,
}

/// Lines that the log could not store since the previous line of this type, because the disk was too
/// slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    /// Time of the line in ns of CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Number of lines of output.
    pub output_lines: u64,
    /// Number of samples.
    pub samples: u64,
}

/// Verdict on an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// What exactly was contended, such as "cpu 1" or "eth0".
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
    /// Share of the resource at the time of the alarm, 0 to 1.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
}
