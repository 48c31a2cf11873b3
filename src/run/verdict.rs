// SPDX-License-Identifier: MIT OR Apache-2.0
//! A verdict for people, and as an exit code.

use emud_monitor::log::{ExitLine, Judgement, RunVerdict, Span};

/// The host had too little of a resource, as with `emud monitor`.
const CONTENDED: u8 = 3;
/// The emulator itself was late, dropped packets, or could not be watched.
const INVALID: u8 = 4;
/// Shells add this to the number of a signal.
const SIGNALLED: i32 = 128;

/// Of a clean run that of the first program that failed, in the order of the plan; 0 if none did.
/// Of a run that was interrupted before anything was measured that of the signal.
pub fn exit_code(
    verdict: RunVerdict,
    exits: &[ExitLine],
    signal: Option<i32>,
    measured: bool,
) -> u8 {
    let interrupted = signal.map(|signal| SIGNALLED + signal);
    match verdict {
        _ if !measured && interrupted.is_some() => code(interrupted),
        RunVerdict::Contended => CONTENDED,
        RunVerdict::Invalid => INVALID,
        RunVerdict::Clean => {
            let of_programs = exits.iter().map(of).find(|code| *code != 0);
            code(interrupted.or(of_programs))
        }
    }
}

fn code(code: Option<i32>) -> u8 {
    u8::try_from(code.unwrap_or(0)).unwrap_or(u8::MAX)
}

fn of(exit: &ExitLine) -> i32 {
    match (exit.code, exit.signal) {
        // A program whose time was over has done what it was asked to.
        _ if exit.ended_by_emud => 0,
        (Some(code), _) => code,
        (None, signal) => SIGNALLED + signal.unwrap_or(0),
    }
}

/// One line, and one for each reason.
pub fn text(judgement: &Judgement) -> String {
    let began = judgement.measured_mono_ns.map_or(0, |[began, _]| began);
    let mut lines = vec![match judgement.verdict {
        RunVerdict::Clean => "clean: no contention was seen".to_owned(),
        RunVerdict::Contended => format!(
            "contended: {} of the measured seconds are not to be believed",
            judgement.contended_seconds.len()
        ),
        RunVerdict::Invalid => "invalid: the emulation itself was not what it should be".to_owned(),
    }];
    lines.extend(judgement.invalid.iter().map(|why| format!("  {why}")));
    lines.extend(
        judgement
            .contention
            .iter()
            .map(|one| format!("  {}", span(one, began))),
    );
    lines.join("\n") + "\n"
}

/// When is told from the beginning of the measured phase.
fn span(span: &Span, began: u64) -> String {
    let at = (span.since_mono_ns as f64 - began as f64) / 1e9;
    let by: Vec<String> = (span.by.iter().take(3))
        .map(|share| format!("{} {:.0} %", share.group, 100.0 * share.share))
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
    use emud_monitor::log::PhaseName;

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

    #[test]
    fn the_verdict_comes_before_what_the_program_says() {
        let failed = [exit(Some(7), None, false)];
        assert_eq!(exit_code(RunVerdict::Clean, &failed, None, true), 7);
        assert_eq!(
            exit_code(RunVerdict::Contended, &failed, None, true),
            CONTENDED
        );
        assert_eq!(
            exit_code(RunVerdict::Invalid, &failed, Some(2), true),
            INVALID
        );
        assert_eq!(exit_code(RunVerdict::Clean, &failed, Some(2), true), 130);
        assert_eq!(exit_code(RunVerdict::Invalid, &[], Some(2), false), 130);
    }

    #[test]
    fn of_several_failures_the_first_in_the_order_of_the_plan_is_told() {
        let exits = [0, 7, 8].map(|code| exit(Some(code), None, false));
        assert_eq!(exit_code(RunVerdict::Clean, &exits, None, true), 7);
    }

    #[test]
    fn a_program_that_emud_ended_has_not_failed() {
        let ended = exit(None, Some(15), true);
        let killed = exit(None, Some(9), false);
        let first = [exit(Some(0), None, false), ended];
        assert_eq!(exit_code(RunVerdict::Clean, &first, None, true), 0);
        assert_eq!(exit_code(RunVerdict::Clean, &[killed], None, true), 137);
    }
}
