// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the output of ping: iputils' format, with or without `-D` and `-a`, IPv4 or IPv6, or
//! busybox's.

use std::collections::HashSet;

use crate::text::{At, Mistake};

/// Echo sequence numbers have 16 bits.
const SEQUENCES: i64 = 1 << 16;

const MOST_NS: f64 = 2.0 * 3600e9;

/// The replies of a log and its counts.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PingLog {
    /// The destination of ping; empty if the log has no first line.
    pub destination: String,
    /// Round-trip times of first replies in ns, in the order of the log.
    pub rtts_ns: Vec<f64>,
    /// The first replies, in the order of their echoes.
    pub replies: Vec<Timed>,
    /// Sequence number of the first echo.
    pub first: i64,
    /// Sequence number of the last echo.
    pub last: i64,
    pub duplicates: u64,
    /// Number of replies that arrived after a later one's.
    pub late: u64,
    pub sent: u64,
    /// Number of sent echoes with a reply.
    pub answered: u64,
    /// Whether `sent` and `answered` are from ping's summary; otherwise they are from sequence
    /// numbers.
    pub has_summary: bool,
}

/// The first reply to an echo.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Timed {
    /// Continued beyond 65535.
    pub sequence: i64,
    pub rtt_ns: f64,
    /// When the reply arrived, since 1970; of `ping -D` only.
    pub arrived_ns: Option<i128>,
    pub at: At,
}

struct Reply {
    sequence: i64,
    rtt_ns: f64,
    arrived_ns: Option<i128>,
    is_duplicate: bool,
}

/// The sequence numbers so far, continued beyond 65535.
#[derive(Default)]
struct Sequences {
    first: Option<i64>,
    latest: i64,
    answered: HashSet<i64>,
}

impl PingLog {
    pub(crate) fn parse(text: &str) -> Result<Self, Mistake> {
        let mut log = Self::default();
        let mut seen = Sequences::default();
        let mut summary = None;
        let mut foreign = None;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let at = At {
                source: 0,
                span: start..start + line.trim_end().len(),
            };
            start += line.len();
            // ping -a prints a bell before each reply.
            let line = line.trim().trim_matches('\u{7}').trim();
            if let Some(rest) = line.strip_prefix("PING ") {
                if log.sent > 0 || !log.destination.is_empty() || !log.rtts_ns.is_empty() {
                    let help = "import one run of ping at a time";
                    return Err(Mistake::new(&at, "a second ping begins here", help));
                }
                // "::1(::1)" of IPv6, "example.org (192.0.2.1)" of IPv4.
                let name = rest.split([' ', '(']).next();
                log.destination = name.unwrap_or_default().to_owned();
            } else if let Some(counts) = counts(line) {
                summary = Some(counts);
            } else if let Some(reply) = reply(line, &at)? {
                if summary.is_some() {
                    let help = "the summary ends a run of ping: import one at a time";
                    return Err(Mistake::new(&at, "a reply after the summary", help));
                }
                log.take(&reply, &at, &mut seen);
            } else {
                // Replies of every ping have one, in every language.
                if line.contains(" ttl=") {
                    foreign.get_or_insert(at);
                }
                if let Some(sequence) = sequence(line) {
                    // "no answer yet", "Destination Host Unreachable": sent, without a reply.
                    seen.unwrapped(sequence);
                }
            }
        }
        if log.rtts_ns.is_empty() {
            return Err(no_replies(foreign.as_ref()));
        }
        log.count(&seen, summary);
        Ok(log)
    }

    fn take(&mut self, reply: &Reply, at: &At, seen: &mut Sequences) {
        let before = seen.latest;
        let is_first = seen.first.is_none();
        let sequence = seen.unwrapped(reply.sequence);
        if reply.is_duplicate || !seen.answered.insert(sequence) {
            self.duplicates += 1;
            return;
        }
        self.late += u64::from(!is_first && sequence < before);
        self.rtts_ns.push(reply.rtt_ns);
        self.replies.push(Timed {
            sequence,
            rtt_ns: reply.rtt_ns,
            arrived_ns: reply.arrived_ns,
            at: at.clone(),
        });
    }

    fn count(&mut self, seen: &Sequences, summary: Option<(u64, u64)>) {
        self.has_summary = summary.is_some();
        // ping counts from 1; a log that begins later lacks its first lines, not the packets.
        let first = match (self.destination.is_empty(), seen.first) {
            (true, Some(first)) => first,
            _ => seen.first.unwrap_or(1).min(1),
        };
        let by_sequence = (seen.latest - first + 1).max(0) as u64;
        (self.sent, self.answered) = summary.unwrap_or((by_sequence, self.rtts_ns.len() as u64));
        self.answered = self.answered.min(self.sent);
        self.first = first;
        // The summary of a part of a log also counts the echoes before that part.
        self.last = match (summary, self.destination.is_empty()) {
            (Some((sent, _)), false) => seen.latest.max(first.saturating_add_unsigned(sent) - 1),
            _ => seen.latest,
        };
        self.replies.sort_by_key(|reply| reply.sequence);
    }
}

impl Sequences {
    /// Returns the number closest to the latest one that `sequence` may stand for.
    fn unwrapped(&mut self, sequence: i64) -> i64 {
        let Some(first) = self.first else {
            (self.first, self.latest) = (Some(sequence), sequence);
            return sequence;
        };
        let ahead = (sequence - self.latest).rem_euclid(SEQUENCES);
        let sequence = match ahead < SEQUENCES / 2 {
            true => self.latest + ahead,
            false => self.latest + ahead - SEQUENCES,
        };
        self.latest = self.latest.max(sequence);
        self.first = Some(first.min(sequence));
        sequence
    }
}

fn no_replies(foreign: Option<&At>) -> Mistake {
    let start = At {
        source: 0,
        span: 0..0,
    };
    match foreign {
        None => {
            let help = "it takes the output of iputils' ping in English, with a line for each \
                        reply: LC_ALL=C ping, without -q";
            Mistake::new(&start, "there are no replies in this log", help)
        }
        Some(at) => {
            let help = "run LC_ALL=C ping of iputils, whose replies have this form: 64 bytes from \
                        192.0.2.1: icmp_seq=1 ttl=56 time=11.6 ms";
            Mistake::new(at, "a reply in another language, or of another ping", help)
        }
    }
}

/// Reads `64 bytes from 192.0.2.1: icmp_seq=1 ttl=56 time=11.6 ms`, `(DUP!)` at the end of a duplicate's.
fn reply(line: &str, at: &At) -> Result<Option<Reply>, Mistake> {
    let Some(sequence) = sequence(line).filter(|_| line.contains(" bytes from ")) else {
        return Ok(None);
    };
    // A reply that is too short for the time of transmission has no `time=`.
    let time = line
        .split_once(" time=")
        .or_else(|| line.split_once(" time<"))
        .map(|(_, rest)| rest.split_whitespace());
    let comma = time.clone().and_then(|mut words| words.next());
    if comma.is_some_and(|word| word.contains(',')) {
        let help = "run LC_ALL=C ping, which writes time=11.6 ms";
        return Err(Mistake::new(at, "a reply whose time has a comma", help));
    }
    let ns = time.and_then(|mut words| {
        let value: f64 = words.next()?.parse().ok()?;
        let unit = match words.next()? {
            "ms" => 1e6,
            "us" => 1e3,
            "s" | "sec" => 1e9,
            _ => return None,
        };
        (value >= 0.0 && value.is_finite()).then_some(value * unit)
    });
    let Some(rtt_ns) = ns else {
        let help = "a reply ends like this: icmp_seq=1 ttl=56 time=11.6 ms (ping needs -s 16 or \
                    more to measure the time)";
        return Err(Mistake::new(at, "a reply without its time", help));
    };
    if rtt_ns > MOST_NS {
        let help = "each direction has half of it, and a delay is up to an hour";
        return Err(Mistake::new(at, "a reply of more than two hours", help));
    }
    Ok(Some(Reply {
        sequence,
        rtt_ns,
        arrived_ns: stamp_ns(line),
        is_duplicate: line.ends_with("(DUP!)"),
    }))
}

/// Reads `[1700000000.123456] ` of `ping -D`; a float of such a time has no single nanoseconds.
fn stamp_ns(line: &str) -> Option<i128> {
    let (stamp, _) = line.strip_prefix('[')?.split_once(']')?;
    let (seconds, fraction) = stamp.split_once('.')?;
    let seconds: u32 = seconds.parse().ok()?;
    let fraction: u32 = format!("{fraction:0<9}").parse().ok()?;
    (fraction < 1_000_000_000).then(|| i128::from(seconds) * 1_000_000_000 + i128::from(fraction))
}

/// Returns the number after `icmp_seq=`, which is `icmp_req=` in old versions and ` seq=` in
/// busybox.
fn sequence(line: &str) -> Option<i64> {
    let names = ["icmp_seq=", "icmp_req=", " seq="];
    let (_, rest) = names.iter().find_map(|name| line.split_once(name))?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse::<u32>().ok().map(i64::from)
}

/// Reads `10 packets transmitted, 9 received, ...`: sent and answered.
pub(crate) fn counts(line: &str) -> Option<(u64, u64)> {
    let (sent, rest) = line.split_once(" packets transmitted, ")?;
    let received = rest.split_whitespace().next()?;
    Some((sent.trim().parse().ok()?, received.parse().ok()?))
}
