// SPDX-License-Identifier: MIT OR Apache-2.0
//! One link from attach to detach, with as few attaches as possible: in a guest kernel each costs
//! ten seconds of this machine, most of them for the verifier.

use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use support::lab::{Engine, Lab, Verdict, run};
use support::probe::Probe;
use support::stats::{median, quantile};
use support::watch::Watch;
use support::{emud_path, guest};

use super::restore::assert_same;
use super::tamper::{self, tampered};

/// A guest whose clock counts instructions adds no more than this to a departure, ms.
const LATE_MS: f64 = 0.1;

/// What engine hold promises for 99 of 100 packets, ms: its holder has to be woken.
const HELD_LATE_MS: f64 = 0.5;

/// A root qdisc that a user configured, which detach must restore.
const ROOT: &str = "
    tc qdisc add dev va root handle 1: htb default 20
    tc class add dev va parent 1: classid 1:1 htb rate 50mbit ceil 80mbit
    tc class add dev va parent 1:1 classid 1:20 htb rate 30mbit
    tc qdisc add dev va parent 1:20 handle 10: pfifo limit 33";

fn probe(lab: &Lab, count: u32, interval_ns: u64) -> Probe {
    Probe::new(lab, count, interval_ns)
}

/// What attach changed and detach has to restore, including classes.
fn all(lab: &Lab) -> String {
    lab.snapshot() + &lab.in_a("tc class show dev va")
}

/// Both directions have the right delay, and every tenth packet is lost.
fn delays(lab: &Lab, engine: Engine, verdict: &mut Verdict) {
    const COUNT: u32 = 500;
    let up = probe(lab, COUNT, 1_000_000);
    let down = Probe {
        from: lab.b.clone(),
        to: lab.a.clone(),
        address: Lab::A4.parse().expect("an address"),
        ..up.clone()
    };
    for (name, probe, delay_ms) in [("up", up, 20.0), ("down", down, 30.0)] {
        let arrivals = probe.run();
        let delays = arrivals.delays_ms();
        verdict.same(&format!("{name}: overtaken"), 0, arrivals.reordered());
        verdict.at_least(
            &format!("{name}: least, ms"),
            delay_ms - engine.early_ms(),
            quantile(&delays, 0.0),
        );
        // A machine that stands still for a hundredth of the time makes a hundredth of the packets late.
        let (share, late_ms) = match (guest(), engine) {
            (true, Engine::Hold) => (0.99, HELD_LATE_MS),
            (true, _) => (0.99, LATE_MS),
            (false, Engine::Hold) => (0.9, HELD_LATE_MS),
            (false, _) => (0.9, LATE_MS),
        };
        let name_of = format!("{name}: median, ms");
        verdict.at_most(&name_of, delay_ms + late_ms, median(&delays));
        let name_of = format!("{name}: {} %, ms", 100.0 * share);
        verdict.at_most(&name_of, delay_ms + late_ms, quantile(&delays, share));
        let lost = arrivals.lost(COUNT);
        let first = lost.first().copied().unwrap_or(0);
        let tenth: Vec<u32> = (first..COUNT).step_by(10).collect();
        let wanted = if name == "up" { tenth } else { vec![] };
        verdict.same(&format!("{name}: lost"), wanted, lost);
    }
}

/// A burst into a queue of 20 packets, changed while the link runs.
fn queue(lab: &Lab, engine: Engine, verdict: &mut Verdict) {
    let change = [
        "up.loss=none",
        "up.delay=none",
        "up.rate=200kbit",
        "up.queue=20p",
        "down.delay=10s",
    ];
    let qdisc = || lab.in_a("tc qdisc show");
    let roomy = qdisc();
    lab.emud(&[&["set", "va"], &change[..]].concat()).expect(0);
    // fq has to hold other packets for a different time.
    verdict.same("fq is as before", engine != Engine::Fq, qdisc() == roomy);
    let before = lab.shown("/up/counters/queue_dropped");
    let arrivals = probe(lab, 60, 0).run();
    let numbers: Vec<u32> = arrivals.0.iter().map(|arrival| arrival.number).collect();
    verdict.same("the first 20 fit", (0..20).collect::<Vec<_>>(), numbers);
    let dropped = lab.shown("/up/counters/queue_dropped") - before;
    verdict.same("dropped by emud's count", 40, dropped);
    // 106 bytes at 200 kbit/s.
    let gaps: Vec<f64> = (arrivals.0.windows(2))
        .map(|pair| (pair[1].arrived_ns - pair[0].arrived_ns) as f64 / 1e6)
        .collect();
    verdict.near("ms between two packets", 4.24, median(&gaps), LATE_MS);
    let longer = qdisc();
    lab.emud(&["set", "va", "down.delay=1ms"]).expect(0);
    verdict.same("what waits keeps its room", longer, qdisc());
}

/// fq's timer is later than 1 us, which a monitor with that limit reports.
fn late(lab: &Lab, verdict: &mut Verdict) {
    let watch = Watch::start(&["--only", "emulator", "--late", "1us", "--limit", "1000"]);
    probe(lab, 5, 10_000_000).run();
    let alarm = watch.alarm(0, "emulator", Duration::from_secs(15));
    let failure = alarm.map(|line| line.json["scope"]["failure"].clone());
    verdict.same("a late packet", Some("late".into()), failure);
    let ended = watch.end();
    verdict.same("its verdict", "contended", ended.verdict_on("emulator"));

    // A link that is late all the time does not hide another one, by which a run may be judged.
    let other = Lab::new();
    other.attach(Engine::Fq, "[up]\ndelay = \"20ms\"\n", &[]);
    let watch = Watch::start(&["--only", "emulator", "--late", "1us", "--limit", "1000"]);
    std::thread::scope(|scope| {
        scope.spawn(|| probe(lab, 50, 10_000_000).run());
        sleep(Duration::from_millis(200));
        probe(&other, 5, 10_000_000).run();
    });
    let ended = watch.end();
    let late = ended.of("alarm");
    let late: BTreeSet<_> = late
        .iter()
        .map(|line| line.number("/scope/netns"))
        .collect();
    verdict.same("links that are late", 2, late.len());
}

fn attach(lab: &Lab, engine: Engine, profile: &str) -> Command {
    let mut emud = Command::new(emud_path());
    emud.args(["--netns", &lab.a, "attach", "va", "--replace", "--profile"]);
    emud.args([profile, "--engine", engine.name()]);
    emud
}

/// No user can send from where packets wait, and take the room of those.
fn has_no_way_in(lab: &Lab, verdict: &mut Verdict) {
    let bound = "ip route get 192.0.2.1 oif emud-ifb-$(cat /sys/class/net/va/ifindex) 2>/dev/null || echo none";
    verdict.same("route by the ifb", "none\n", &*lab.in_a(bound));
}

/// kill -9 in the middle of an attach: its first device is there, and filters are.
fn killed(lab: &Lab, engine: Engine, before: &str) {
    let mut victim = attach(lab, engine, "dsl")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start emud");
    // In the namespace in which it runs.
    let devices = format!("/proc/{}/net/dev", victim.id());
    let at_work = || {
        read_to_string(&devices).is_ok_and(|text| {
            ["emud-ifb", "emud-down"]
                .iter()
                .any(|name| text.contains(name))
        })
    };
    while !at_work() && victim.try_wait().expect("its end").is_none() {
        sleep(Duration::from_micros(500));
    }
    // Fails only if it has ended.
    let _ = victim.kill();
    victim.wait().expect("its end");
    assert_ne!(before, all(lab), "nothing was begun");
    lab.emud(&["detach", "va"]).expect(0);
    assert_same("after kill -9 of an attach", before, &all(lab));
}

/// Whatever another process deleted or stopped is shown, beside all the rest.
fn spoilt(lab: &Lab, engine: Engine, verdict: &mut Verdict) {
    let whole = tampered(&lab.show());
    verdict.same("tampered before", "[]", whole.as_str());
    let these = ["root deleted", "TAP filter", "clsact", "device down"];
    let these = || tamper::kinds(engine).filter(|kind| these.contains(&kind.name));
    these().for_each(|kind| tamper::spoil(lab, engine, kind));
    let shown = tampered(&lab.show());
    for kind in these() {
        let what = format!("{}: shown in {shown}", kind.name);
        verdict.same(&what, true, shown.contains(kind.said));
    }
    verdict.same("kinds", 3, these().count());
}

pub fn lives_and_goes(engine: Engine) {
    let mut verdict = Verdict::default();
    // A link in order has one queue nevertheless.
    let lab = Lab::with_queues(2);
    lab.in_a(ROOT);
    let before = all(&lab);
    let profile = lab.profile(
        "[up]\ndelay = \"20ms\"\nloss = { model = \"every\", n = 10 }\n[down]\ndelay = \"30ms\"\n",
    );
    lab.emud(&["attach", "va", "-p", &profile, "--engine", engine.name()])
        .expect(73);
    assert_same("rejected", &before, &all(&lab));
    let begin = Instant::now();
    let said = run(&mut attach(&lab, engine, &profile)).expect(0);
    // Only these: what is usual is not noted. Where a process may not protect itself, a holder says so.
    let said = said.out + &said.err;
    let notes = (said.lines()).filter_map(|line| line.split("note: ").nth(1));
    let notes = notes.filter(|note| !note.starts_with("the kernel may end the holder"));
    let notes: Vec<_> = notes.filter_map(|note| note.get(..13)).collect();
    let mut wanted = vec!["the root qdis"];
    if engine.is_stamped() {
        wanted.push("up: one queue");
    }
    verdict.same("notes", wanted, notes);
    println!("    attached in {:?}", begin.elapsed());
    assert_ne!(before, all(&lab));
    let roots = lab.in_a("tc qdisc show dev va");
    let count = |kind: &str| roots.matches(&format!("qdisc {kind} ")).count();
    let fqs = usize::from(engine == Engine::Fq);
    verdict.same("mq and fq", (0, fqs), (count("mq"), count("fq")));
    delays(&lab, engine, &mut verdict);
    queue(&lab, engine, &mut verdict);
    if engine.is_stamped() {
        has_no_way_in(&lab, &mut verdict);
    }
    // A holder does not report such short delays, and emud's qdisc is not late by as much.
    if engine == Engine::Fq {
        late(&lab, &mut verdict);
    }
    spoilt(&lab, engine, &mut verdict);
    lab.detach();
    assert_same("detached", &before, &all(&lab));
    killed(&lab, engine, &before);
    verdict.end();
}
