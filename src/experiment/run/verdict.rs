// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats a verdict, and returns its exit code.

use emud_monitor::event::Resource;
use emud_monitor::log::{ExitLine, PerResource, RunVerdict, Span, Verdict, printable};

use crate::monitor::session::experiment::Finished;

use super::ExitCode;

/// The host had too little of a resource, as in `emud monitor`.
const CONTENDED: u8 = 3;
/// The emulator was late, dropped packets, or could not be watched.
const INVALID: u8 = 4;
/// Shells add this to the number of a signal.
const SIGNALLED: i32 = 128;

/// Returns the exit code: that of the first failed program in the order of the plan, or that of the
/// verdict; the one given as `first`, or the other one if it is 0. For a run that a signal
/// interrupted, the exit code of the signal replaces the programs'; before the measurement it is
/// the only one.
pub fn exit_code(
    first: ExitCode,
    verdict: RunVerdict,
    exits: &[ExitLine],
    signal: Option<i32>,
    measured: bool,
) -> u8 {
    let interrupted = signal.map(|signal| SIGNALLED + signal);
    let of_programs = exits.iter().map(of).find(|code| *code != 0);
    let of_programs = code(interrupted.or(of_programs));
    let of_verdict = match verdict {
        _ if !measured && interrupted.is_some() => 0,
        RunVerdict::Contended => CONTENDED,
        RunVerdict::Invalid => INVALID,
        RunVerdict::Clean | RunVerdict::Unwatched => 0,
    };
    let in_order = match first {
        ExitCode::Program => [of_programs, of_verdict],
        ExitCode::Verdict => [of_verdict, of_programs],
    };
    in_order.into_iter().find(|code| *code != 0).unwrap_or(0)
}

fn code(code: Option<i32>) -> u8 {
    u8::try_from(code.unwrap_or(0)).unwrap_or(u8::MAX)
}

fn of(exit: &ExitLine) -> i32 {
    match (exit.code, exit.signal) {
        _ if !exit.failed() => 0,
        (Some(code), _) => code,
        (None, signal) => SIGNALLED + signal.unwrap_or(0),
    }
}

/// Describes how the programs under test ended: a line for each exit, with the nodes.
pub fn exits(exits: &[ExitLine]) -> String {
    let mut ways: Vec<(String, Vec<&str>)> = vec![];
    for exit in exits {
        let status = exit.status();
        match ways.iter_mut().find(|(known, _)| *known == status) {
            Some((_, nodes)) => nodes.push(&exit.node),
            None => ways.push((status, vec![&exit.node])),
        }
    }
    let line =
        |(status, nodes): (String, Vec<&str>)| format!("emud: {status}: {}\n", nodes.join(", "));
    ways.into_iter().map(line).collect()
}

/// Returns one line for the verdict, and one for each reason.
pub fn text(finished: &Finished) -> String {
    let judgement = &finished.judgement;
    let began = judgement.measured_mono_ns.map_or(0, |[began, _]| began);
    let mut lines = vec![match judgement.verdict {
        RunVerdict::Clean => format!(
            "clean: no contention was seen{}",
            watched(&finished.verdicts)
        ),
        RunVerdict::Unwatched => {
            "unwatched: every criterion is off, so contention of the host is unknown".to_owned()
        }
        RunVerdict::Contended => format!(
            "contended: {} of the measured seconds are not reliable",
            judgement.contended_seconds.len()
        ),
        RunVerdict::Invalid => "invalid: the emulation failed".to_owned(),
    }];
    lines.extend(
        judgement
            .invalid
            .iter()
            .map(|why| format!("  {}", printable(why))),
    );
    lines.extend(
        judgement
            .contention
            .iter()
            .map(|one| format!("  {}", span(one, began))),
    );
    lines.join("\n") + "\n"
}

/// Returns "; watched: cpu, disk; not watched: network". Reports of programs are always accepted.
fn watched(verdicts: &PerResource<Verdict>) -> String {
    let names = |wanted: bool, head: &str| {
        let of_host = (verdicts.iter()).filter(|(of, _)| **of != Resource::Application);
        let names: Vec<&str> = of_host
            .filter(|(_, verdict)| (**verdict != Verdict::NotWatched) == wanted)
            .map(|(of, _)| of.name())
            .collect();
        match names.is_empty() {
            true => String::new(),
            false => format!("; {head}: {}", names.join(", ")),
        }
    };
    names(true, "watched") + &names(false, "not watched")
}

/// Formats a contention, relative to the beginning of the measured phase in ns.
pub fn span(span: &Span, began: u64) -> String {
    let at = (span.since_mono_ns as f64 - began as f64) / 1e9;
    let by: Vec<String> = (span.by.iter().take(3))
        .map(|share| format!("{} {:.0} %", printable(&share.group), 100.0 * share.share))
        .collect();
    let by = match by.is_empty() {
        true => String::new(),
        false => format!(", by {}", by.join(", ")),
    };
    format!(
        "{}, {}: from {at:.3} s for {:.3} s{by}",
        span.resource,
        span.what,
        span.duration_ns as f64 / 1e9
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use emud_monitor::log::{PhaseName, SpanShare};

    fn exit(code: Option<i32>, signal: Option<i32>, ended_by_emud: bool) -> ExitLine {
        ExitLine {
            mono_ns: 2,
            node: "client".into(),
            phase: PhaseName::Measurement,
            command: vec!["x".into()],
            started_mono_ns: 1,
            code,
            signal,
            ended_by_emud,
        }
    }

    const ORDERS: [ExitCode; 2] = [ExitCode::Program, ExitCode::Verdict];

    #[test]
    fn neither_the_programs_failure_nor_the_verdict_is_lost() {
        let of = |verdict, exits: &[ExitLine], signal, measured| {
            ORDERS.map(|first| exit_code(first, verdict, exits, signal, measured))
        };
        let failed = [exit(Some(7), None, false)];
        let done = [exit(Some(0), None, false)];
        assert_eq!(of(RunVerdict::Clean, &failed, None, true), [7, 7]);
        assert_eq!(of(RunVerdict::Contended, &failed, None, true), [7, 3]);
        assert_eq!(of(RunVerdict::Invalid, &failed, None, true), [7, 4]);
        assert_eq!(of(RunVerdict::Contended, &done, None, true), [3, 3]);
        assert_eq!(of(RunVerdict::Clean, &failed, Some(2), true), [130, 130]);
        assert_eq!(of(RunVerdict::Invalid, &failed, Some(2), true), [130, 4]);
        assert_eq!(of(RunVerdict::Invalid, &[], Some(2), false), [130, 130]);
    }

    #[test]
    fn of_several_failures_the_first_in_the_order_of_the_plan_is_told() {
        let exits = [0, 7, 8].map(|code| exit(Some(code), None, false));
        let code = |first| exit_code(first, RunVerdict::Clean, &exits, None, true);
        assert_eq!(ORDERS.map(code), [7, 7]);
    }

    #[test]
    fn a_program_that_emud_ended_has_not_failed() {
        let ended = exit(None, Some(15), true);
        let killed = exit(None, Some(9), false);
        let first = [exit(Some(0), None, false), ended];
        let code =
            |exits: &[ExitLine]| exit_code(ExitCode::Program, RunVerdict::Clean, exits, None, true);
        assert_eq!(code(&first), 0);
        assert_eq!(code(&[killed]), 137);
    }

    /// Any process can choose its name.
    #[test]
    fn a_name_does_not_erase_the_verdict() {
        let by = SpanShare {
            group: "\x1b[F\x1b[2K\n".to_owned(),
            share: 0.93,
        };
        let of = Span {
            resource: "cpu".to_owned(),
            what: "cpu 1".to_owned(),
            since_mono_ns: 1_500_000_000,
            until_mono_ns: 2_000_000_000,
            duration_ns: 500_000_000,
            by: vec![by],
        };
        let text = span(&of, 1_000_000_000);
        assert!(text.ends_with(", by \\u{1b}[F\\u{1b}[2K\\n 93 %"), "{text}");
    }

    #[test]
    fn every_way_to_end_is_a_line() {
        let all = [
            exit(Some(0), None, false),
            exit(None, Some(15), true),
            exit(Some(0), None, false),
        ];
        assert_eq!(
            exits(&all),
            "emud: exit code 0: client, client\nemud: signal 15, by emud: client\n"
        );
    }
}
