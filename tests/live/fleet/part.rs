// SPDX-License-Identifier: MIT OR Apache-2.0
//! One host's part of an experiment, without etcd: this test writes the lines of its agent.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use emud::experiment::scenario::{Overrides, Scenario};
use emud::fleet::ALIVE_EVERY;
use emud::fleet::facts::{Facts, SystemClock, VERSION};
use emud::fleet::placement::{Host, place};
use emud::fleet::plan::{Options, divide};
use emud::fleet::protocol::{Asked, FromChild, SetDone, Start, ToChild, Turn};
use emud_monitor::log::mono_ns;
use support::emud_path;
use support::runs::Folder;

use super::set::pings;

const SCENARIO: &str = "[node.one]\ncommand = \"ping -n -D -i 0.05 -w 5 two\"\n[node.two]\n\
                        [link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"10ms\"\n";

/// The plan of the only host, as its agent sends it.
fn plan() -> String {
    let scenario = Scenario::parse(SCENARIO, "part", Path::new("")).unwrap();
    let plan = scenario.plan(&Overrides::default()).unwrap();
    let host = Host {
        name: "a".to_owned(),
        weight: 1.0,
    };
    let host_of = place(&plan, std::slice::from_ref(&host), 1_000_000).unwrap();
    let facts = Facts {
        version: VERSION.to_owned(),
        address: Ipv4Addr::LOCALHOST.into(),
        probe_port: 1,
        probe_token: String::new(),
        cpus: 2,
        memory_bytes: 1 << 30,
        weight: host.weight,
        allow_root: true,
        clock: SystemClock {
            synchronised: true,
            offset_ns: 0,
            bound_ns: 1000,
        },
        doctor: serde_json::Value::Null,
    };
    let options = Options {
        seed: 7,
        size: None,
        port: 4789,
        mtu: 1500,
        tolerance_ns: 100_000,
        clock_bound_ns: 1_000_000,
        sample_ns: None,
        monitor: None,
    };
    let parts = divide(&plan, &host_of, &[(host.name, facts)], &options, 1).unwrap();
    serde_json::to_string(&parts["a"]).unwrap()
}

/// Writes lines, and those of an agent that lives in between. The end of the sender closes the pipe.
fn writer(mut to: ChildStdin) -> Sender<String> {
    let (sender, lines) = channel::<String>();
    thread::spawn(move || {
        let alive = serde_json::to_string(&ToChild::Alive).unwrap();
        loop {
            let line = match lines.recv_timeout(ALIVE_EVERY) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => alive.clone(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // The part may have ended: its reader notices.
            let _ = writeln!(to, "{line}");
        }
    });
    sender
}

/// A change of a link of a node, which the kernel makes at the time of all hosts.
pub fn changes_at_the_time() {
    let folder = Folder::new();
    let log = folder.path("part.log");
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" fleet-part --log-fd 3 --root 3>\"$1\""])
        .arg(emud_path())
        .arg(&log)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut part: Child = command.spawn().unwrap();
    let to = writer(part.stdin.take().unwrap());
    let tell = |line: &ToChild| to.send(serde_json::to_string(line).unwrap()).unwrap();
    let mut lines = BufReader::new(part.stdout.take().unwrap()).lines();
    let mut next = || loop {
        let line = lines.next().expect("the part has ended").unwrap();
        match serde_json::from_str(&line).unwrap() {
            FromChild::Alive => {}
            line => return line,
        }
    };
    to.send(plan()).unwrap();
    let built = next();
    assert!(format!("{built:?}").contains("Ready"), "{built:?}");
    let ahead = |time: Duration| Start {
        reference_ns: mono_ns() + time.as_nanos() as u64,
    };
    tell(&ToChild::Start(ahead(Duration::from_secs(1))));
    let change = Asked {
        links: ["l".to_owned()].into(),
        changes: vec!["delay=40ms".to_owned()],
    };
    let name = "change".to_owned();
    tell(&ToChild::Set(name.clone(), change));
    assert_eq!(next(), FromChild::Set(name.clone(), SetDone::Prepared));
    let at = ahead(Duration::from_secs(3));
    let at_s = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
        + Duration::from_nanos(at.reference_ns - mono_ns()))
    .as_secs_f64();
    tell(&ToChild::Turn(name, Turn::At(at, 2.0)));
    let mut complete = next();
    while matches!(complete, FromChild::Done(_)) {
        complete = next();
    }
    assert_eq!(complete, FromChild::Complete);
    tell(&ToChild::Over(false));
    let FromChild::Result(result) = next() else {
        panic!("no result");
    };
    println!("    {result:?}");
    assert_eq!(result.error, None);
    // Beside other jobs packets can be late, but the change must not fail.
    let invalid = result.judgement.unwrap().invalid.join("\n");
    assert!(!invalid.contains("change of links"), "{invalid}");
    drop(to);
    part.wait().unwrap();
    // Each direction has the delay; a busy machine only adds to it. Times of day of two programs.
    let (before, after): (Vec<_>, Vec<_>) = (pings(&log, "one").into_iter())
        .filter(|(sent_s, _)| (sent_s - at_s).abs() > 0.005)
        .partition(|(sent_s, _)| *sent_s < at_s);
    let least = |pings: &[(f64, f64)]| pings.iter().map(|(_, rtt)| *rtt).fold(1e3, f64::min);
    let last = &before[before.len() - 10..];
    println!(
        "    {} ms in the last half second before, {} ms after",
        least(last),
        least(&after)
    );
    assert!(least(last) < 40.0, "{last:?}");
    assert!(after.len() > 10 && least(&after) >= 79.9, "{after:?}");
}
