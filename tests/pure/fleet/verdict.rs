// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;

use emud::experiment::run::ExitCode;
use emud::fleet::clock::Estimate;
use emud::fleet::protocol::HostResult;
use emud::fleet::verdict::{EarlyEnd, FleetVerdict, HostEnd, judge};
use emud_monitor::log::{ExitLine, Judgement, PhaseName, RunVerdict, Span, SpanShare};

const BOUND_NS: u64 = 1_000_000;

fn result(verdict: RunVerdict) -> HostResult {
    HostResult {
        run: "r".into(),
        judgement: Some(Judgement {
            verdict,
            contention: vec![],
            contended_seconds: vec![],
            invalid: vec![],
            measured_mono_ns: Some([0, 1]),
            exit_code: 0,
        }),
        exits: vec![],
        notes: vec![],
        error: None,
        mono_ns: 9,
        clock: Some(clock(5)),
        tunnels: BTreeMap::new(),
        logs: 0,
    }
}

fn clock(offset_ns: i64) -> Estimate {
    Estimate {
        offset_ns,
        bound_ns: 20_000,
        delay_ns: 20_000,
        answers: 100,
    }
}

fn reported(result: HostResult) -> HostEnd {
    HostEnd::Reported {
        result: Box::new(result),
        clock: Some(clock(0)),
    }
}

fn judged(b: HostEnd) -> FleetVerdict {
    interrupted(b, None)
}

fn interrupted(b: HostEnd, early: Option<EarlyEnd>) -> FleetVerdict {
    let a = HostEnd::Reported {
        result: Box::new(HostResult {
            clock: None,
            ..result(RunVerdict::Clean)
        }),
        clock: None,
    };
    judge(
        &BTreeMap::from([("a".into(), a), ("b".into(), b)]),
        BOUND_NS,
        ExitCode::Program,
        early,
    )
}

#[test]
fn clean_only_if_all_are() {
    let both = judged(reported(result(RunVerdict::Clean)));
    assert_eq!((both.verdict, both.exit_code), (RunVerdict::Clean, 0));
    assert_eq!(both.reasons, [""; 0]);
    let one = judged(reported(result(RunVerdict::Unwatched)));
    assert_eq!(one.verdict, RunVerdict::Unwatched);
}

#[test]
fn a_contended_host_is_named_with_its_cause() {
    let mut contended = result(RunVerdict::Contended);
    let share = SpanShare {
        group: "/system.slice/backup".into(),
        share: 0.9,
    };
    contended.judgement.as_mut().unwrap().contention = vec![Span {
        resource: "cpu".into(),
        what: "cpu 1".into(),
        since_mono_ns: 1,
        until_mono_ns: 2,
        duration_ns: 1,
        by: vec![share],
    }];
    let found = judged(reported(contended));
    assert_eq!((found.verdict, found.exit_code), (RunVerdict::Contended, 3));
    assert!(
        found.reasons[0].starts_with("b: cpu, cpu 1"),
        "{:?}",
        found.reasons
    );
    assert!(found.reasons[0].contains("/system.slice/backup 90 %"));
    assert!(found.text().contains("\n  b: cpu"));
}

#[test]
fn a_lost_host_is_named() {
    let found = judged(HostEnd::Lost("gone".into()));
    assert_eq!((found.verdict, found.exit_code), (RunVerdict::Invalid, 4));
    assert_eq!(found.reasons, ["b: lost: gone"]);
}

#[test]
fn a_clock_beyond_the_bound_is_invalid() {
    let drifted = HostResult {
        clock: Some(clock(990_000)),
        ..result(RunVerdict::Clean)
    };
    let found = judged(reported(drifted));
    assert_eq!(found.verdict, RunVerdict::Invalid);
    assert!(
        found.reasons[0].starts_with("b: clock error"),
        "{:?}",
        found.reasons
    );
    let just = HostResult {
        clock: Some(clock(980_000)),
        ..result(RunVerdict::Clean)
    };
    assert_eq!(judged(reported(just)).verdict, RunVerdict::Clean);
    let unknown = HostResult {
        clock: None,
        ..result(RunVerdict::Clean)
    };
    assert_eq!(judged(reported(unknown)).verdict, RunVerdict::Invalid);
}

/// The tunnel to a host that is lost is gone with it: the cause is that.
#[test]
fn a_tunnel_to_a_host_that_is_there_is_invalid() {
    let why = "the tunnel to a (UDP port 4789): none of 100 packets came back";
    let b = |peer: &str| {
        reported(HostResult {
            tunnels: BTreeMap::from([(peer.into(), why.into())]),
            ..result(RunVerdict::Clean)
        })
    };
    let found = judged(b("a"));
    assert_eq!((found.verdict, found.exit_code), (RunVerdict::Invalid, 4));
    assert_eq!(found.reasons, [format!("b: {why}")]);
    let of = |c: HostEnd| {
        let hosts = BTreeMap::from([("b".into(), b("c")), ("c".into(), c)]);
        judge(&hosts, BOUND_NS, ExitCode::Program, None).reasons
    };
    assert_eq!(of(HostEnd::Lost("gone".into())), ["c: lost: gone"]);
    let failed = HostResult {
        judgement: None,
        error: Some("no".into()),
        ..result(RunVerdict::Clean)
    };
    assert_eq!(of(reported(failed)), ["c: no"]);
}

#[test]
fn a_failed_part_and_a_failed_program() {
    let failed = HostResult {
        judgement: None,
        error: Some("no".into()),
        ..result(RunVerdict::Clean)
    };
    assert_eq!(judged(reported(failed)).reasons, ["b: no"]);
    let exit = ExitLine {
        mono_ns: 2,
        node: "client".into(),
        phase: PhaseName::Measurement,
        command: vec!["x".into()],
        started_mono_ns: 1,
        code: Some(7),
        signal: None,
        ended_by_emud: false,
    };
    let program = HostResult {
        exits: vec![exit],
        ..result(RunVerdict::Clean)
    };
    let found = judged(reported(program));
    assert_eq!((found.verdict, found.exit_code), (RunVerdict::Clean, 7));
}

#[test]
fn an_interrupted_run_has_the_code_of_its_signal() {
    let clean = || reported(result(RunVerdict::Clean));
    for (early, code, why) in [
        (EarlyEnd::Signal(2), 130, "signal 2 ended the run early"),
        (EarlyEnd::Stop, 143, "`emud fleet stop` ended the run early"),
    ] {
        let found = interrupted(clean(), Some(early));
        assert_eq!((found.verdict, found.exit_code), (RunVerdict::Clean, code));
        assert_eq!(found.reasons, [why]);
    }
}

#[test]
fn no_host_is_no_result() {
    let found = judge(&BTreeMap::new(), BOUND_NS, ExitCode::Program, None);
    assert_eq!(found.verdict, RunVerdict::Invalid);
}
