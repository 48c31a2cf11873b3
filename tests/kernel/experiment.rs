// SPDX-License-Identifier: MIT OR Apache-2.0
//! The log of an experiment, with the real monitor in a thread of this process.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use emud::monitor::session::Experiment;
use emud::monitor::session::experiment::{ExperimentSetup, Facts, Finished, OwnLinks};
use emud_monitor::Config;
use emud_monitor::config::{Alarms, GroupBy};
use emud_monitor::log::{
    Line, OutputLine, OutputStream, PhaseLine, PhaseName, RunVerdict, Span, mono_ns,
};
use serde_json::Value;

use support::validator::assert_valid_log as assert_valid;

const MS: u64 = 1_000_000;

/// One at a time: a process has two names for its sockets, and other monitors may run here.
static ALONE: Mutex<()> = Mutex::new(());

struct Run {
    experiment: Experiment,
    path: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Run {
    fn new(name: &str, config: Config) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("emud-experiment-{}-{name}.log", std::process::id());
        let path = std::env::temp_dir().join(name);
        let log = Some(File::create(&path).unwrap());
        let experiment = Experiment::start(ExperimentSetup {
            metrics: None,
            config,
            users: vec![],
            log,
        })
        .unwrap();
        // Holders of other tests on this machine report to every monitor; no link counts here.
        experiment.judge_links(OwnLinks::default());
        Self {
            experiment,
            path,
            _alone: alone,
        }
    }

    fn output(&self, mono_ns: u64, text: &str) {
        self.experiment.line(output(mono_ns, text));
    }

    fn phase(&self, mono_ns: u64, phase: PhaseName) {
        self.experiment
            .line(Line::Phase(PhaseLine { mono_ns, phase }));
    }

    fn finish(self, facts: Facts) -> (Finished, Vec<Value>) {
        let exit = |verdict| match verdict {
            RunVerdict::Clean | RunVerdict::Unwatched => 0,
            RunVerdict::Contended => 3,
            RunVerdict::Invalid => 4,
        };
        let finished = self.experiment.finish(facts, exit);
        let text = std::fs::read_to_string(&self.path).unwrap();
        std::fs::remove_file(&self.path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (finished, lines.collect())
    }
}

fn output(mono_ns: u64, text: &str) -> Line {
    Line::Output(OutputLine {
        mono_ns,
        node: "node".into(),
        stream: OutputStream::Stdout,
        text: text.into(),
        partial: false,
    })
}

/// Load of other processes on this machine is not contention here.
fn reports_alone() -> Config {
    Config {
        cpu: None,
        network: None,
        memory: None,
        disk: None,
        ..Config::default()
    }
}

fn assert_ordered(lines: &[Value]) {
    let times: Vec<u64> = (lines.iter())
        .map(|line| line["mono_ns"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
}

fn report(run: &Run, name: &str) {
    let socket = run.experiment.socket().unwrap();
    let mut alarm = Command::new(support::emud_path());
    alarm.args(["alarm", name, "--socket"]).arg(socket);
    assert!(alarm.status().unwrap().success());
}

/// A run without lost records of the monitor, which make it invalid: a machine at its limit may lose some.
fn without_loss(run: impl Fn() -> (Finished, Vec<Value>)) -> (Finished, Vec<Value>) {
    let again = if support::full() { 0 } else { 4 };
    let mut done = run();
    for _ in 0..again {
        let mut invalid = done.0.judgement.invalid.iter();
        if !invalid.any(|why| why.contains("records of the monitor were lost")) {
            break;
        }
        done = run();
    }
    done
}

#[test]
fn lines_of_all_threads_are_in_the_order_of_their_time() {
    let run = Run::new("order", reports_alone());
    let begin = run.experiment.begin_measuring();
    run.phase(begin, PhaseName::Measurement);
    let sender = run.experiment.sender();
    // The log waits 300 ms for a line; the machine may pause for longer here.
    let is_late = |at: u64| mono_ns() - at > 250 * MS;
    let other = thread::spawn(move || {
        let mut too_late = vec![];
        for n in 0..200 {
            // Read some time after it was written; nothing was before the log began.
            let at = (mono_ns() - 100 * MS).max(begin);
            sender.line(output(at, &format!("{n}")));
            too_late.extend(is_late(at).then_some(at));
            thread::sleep(Duration::from_millis(1));
        }
        too_late
    });
    let mut too_late = vec![];
    for n in 0..200 {
        let at = mono_ns();
        run.output(at, &format!("{n}"));
        too_late.extend(is_late(at).then_some(at));
        thread::sleep(Duration::from_millis(1));
    }
    too_late.extend(other.join().unwrap());
    let end = run.experiment.end_measuring();
    run.phase(end, PhaseName::CleanUp);
    let (finished, lines) = run.finish(Facts::default());
    assert_valid(&lines);
    assert_eq!(lines[0]["type"], "start");
    // Others on this host report late to every monitor.
    let own = |line: &Value| line["type"] == "output" || line["type"] == "phase";
    let in_time = |line: &&Value| own(line) && !too_late.iter().any(|at| line["mono_ns"] == *at);
    let in_time: Vec<_> = lines[1..].iter().filter(in_time).cloned().collect();
    assert_ordered(&in_time);
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["type"], &last["reason"]),
        (&"end".into(), &"done".into())
    );
    // A machine at its limit may lose records of the monitor, which a different test covers.
    if support::full() {
        assert_eq!(
            (&last["verdict"], &last["exit_code"]),
            (&"clean".into(), &0.into())
        );
        assert_eq!(finished.judgement.verdict, RunVerdict::Clean);
    }
    assert_eq!(last["measured_mono_ns"], serde_json::json!([begin, end]));
    let count = |kind| lines.iter().filter(|line| line["type"] == kind).count();
    assert_eq!((count("output"), count("phase")), (400, 2));
    assert_eq!((finished.lines_lost, finished.written.is_ok()), (0, true));
}

#[test]
fn only_what_touches_the_measured_phase_counts() {
    let (finished, lines) = without_loss(|| {
        let run = Run::new("before", reports_alone());
        report(&run, "preparation");
        thread::sleep(Duration::from_millis(10));
        run.experiment.begin_measuring();
        thread::sleep(Duration::from_millis(10));
        run.experiment.end_measuring();
        thread::sleep(Duration::from_millis(10));
        report(&run, "clean-up");
        run.finish(Facts::default())
    });
    assert_valid(&lines);
    let last = lines.last().unwrap();
    let spans = last["contention"].as_array().into_iter().flatten();
    let reported: Vec<_> = spans
        .filter(|span| span["resource"] == "application")
        .collect();
    assert!(reported.is_empty(), "{reported:?}");
    assert_eq!(finished.judgement.verdict, RunVerdict::Clean, "{last}");
    assert_eq!(last["alarms"]["application"], 2);

    let (finished, lines) = without_loss(|| {
        let run = Run::new("within", reports_alone());
        let episodes = run.experiment.episodes();
        run.experiment.begin_measuring();
        report(&run, "measurement");
        assert!(run.experiment.is_touched_by(&episodes.borrow()));
        run.finish(Facts::default())
    });
    let judgement = finished.judgement;
    assert_eq!(judgement.verdict, RunVerdict::Contended, "{judgement:?}");
    let span = &lines.last().unwrap()["contention"][0];
    assert_eq!(span["resource"], "application");
    assert_eq!(span["what"], "measurement");
    assert_eq!(lines.last().unwrap()["exit_code"], 3);
}

#[test]
fn facts_make_a_run_invalid() {
    let (finished, lines) = without_loss(|| {
        let run = Run::new("facts", reports_alone());
        run.experiment.begin_measuring();
        run.finish(Facts {
            invalid: vec!["the link went away".into()],
            ..Facts::default()
        })
    });
    assert_valid(&lines);
    assert_eq!(finished.judgement.verdict, RunVerdict::Invalid);
    let end = lines.last().unwrap();
    assert_eq!(end["invalid"], serde_json::json!(["the link went away"]));
    assert_eq!(end["exit_code"], 4);
}

#[test]
fn without_a_measured_phase_nothing_can_be_said() {
    let run = Run::new("none", reports_alone());
    let socket = run.experiment.socket().unwrap().to_owned();
    // Another monitor of this machine may have one of this name as soon as this one has gone, and a
    // file system gives the number of a deleted file to the next one.
    let of = |file: std::fs::Metadata| (file.ino(), file.ctime(), file.ctime_nsec());
    let file = || std::fs::metadata(&socket).map(of).ok();
    let ours = file();
    assert!(ours.is_some(), "{}", socket.display());
    let (finished, lines) = run.finish(Facts::default());
    assert_valid(&lines);
    assert_eq!(finished.judgement.verdict, RunVerdict::Invalid);
    assert_ne!(file(), ours, "{}", socket.display());
}

/// As many threads as CPUs, so that none can be idle. Others use this machine, too, and their
/// contention may overlap with that of the test: then it is repeated.
#[test]
#[ignore = "timing: a machine without other load"]
fn a_busy_host_is_contended_and_it_is_said_when_and_by_whom() {
    let tries: Vec<_> = (0..TRIES).map_while(|_| hogged().err()).collect();
    assert!(tries.len() < TRIES, "{tries:#?}");
}

const TRIES: usize = 8;

/// Err: the time of the real contention, and the reported time.
fn hogged() -> Result<(), ([u64; 2], Vec<Span>)> {
    let alarms = Alarms {
        group_by: GroupBy::Command,
        ..Config::default().alarms
    };
    let cpu = Config::default().cpu;
    let run = Run::new(
        "hog",
        Config {
            alarms,
            cpu,
            ..reports_alone()
        },
    );
    let begin = run.experiment.begin_measuring();
    wait_for_quiet(&run.experiment);
    let since = mono_ns();
    let cpus = thread::available_parallelism().unwrap().get();
    let hogs: Vec<_> = (0..cpus).map(|_| thread::spawn(busy)).collect();
    hogs.into_iter().for_each(|hog| hog.join().unwrap());
    let until = mono_ns();
    thread::sleep(Duration::from_millis(300));
    run.experiment.end_measuring();
    let (finished, lines) = run.finish(Facts::default());
    assert_valid(&lines);
    assert_ordered(&lines[1..]);
    let judgement = finished.judgement;
    assert_eq!(judgement.verdict, RunVerdict::Contended, "{judgement:?}");
    let second = (until - begin) / 1_000_000_000;
    assert!(judgement.contended_seconds.contains(&second));
    let near = |span: &Span| {
        let begins = span.since_mono_ns.abs_diff(since) < 50 * MS;
        begins && span.until_mono_ns.abs_diff(until) < 50 * MS
    };
    // The threads have the name of the test.
    let ours = |span: &Span| span.resource == "cpu" && span.by[0].group.starts_with("experiment::");
    match judgement
        .contention
        .iter()
        .any(|span| near(span) && ours(span))
    {
        true => Ok(()),
        false => Err(([since, until], judgement.contention)),
    }
}

/// Nothing else is contended, nor was a moment ago.
fn wait_for_quiet(experiment: &Experiment) {
    let episodes = experiment.episodes();
    let give_up = Instant::now() + Duration::from_secs(20);
    let mut quiet = Instant::now();
    while quiet.elapsed() < Duration::from_millis(400) && Instant::now() < give_up {
        if episodes.borrow().any_open() {
            quiet = Instant::now();
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn busy() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        std::hint::spin_loop();
    }
}
