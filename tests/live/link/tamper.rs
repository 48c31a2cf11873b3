// SPDX-License-Identifier: MIT OR Apache-2.0
//! Another process deletes or changes a part of a link: it is detected, and one detach repairs
//! everything.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use emud::netlink::{self, Hook, Netlink, NetlinkError, tcx_programs};
use serde_json::Value;
use support::lab::{Engine, Lab, Said, Verdict, emud, emud_path, inside, sh, wait_until};
use support::site::Scratch;
use support::watch::{Line, Watch};
use support::{clock, full, guest};

use super::restore::{assert_same, holders};

/// A later answer is too late.
const NOTICED: Duration = Duration::from_secs(1);
/// Time for asynchronous work of the kernel.
const SOON: Duration = Duration::from_secs(20);

/// The bound that applies: if other jobs take the CPU, only that it is detected at all.
fn noticed_within() -> Duration {
    if full() || guest() { NOTICED } else { SOON }
}

/// Until a monitor knows a new link: two of its checks, which wait for a CPU if other jobs take it.
fn known_within() -> Duration {
    match full() || guest() {
        true => NOTICED,
        false => Duration::from_secs(5),
    }
}

/// A change by another process.
pub struct Kind {
    pub name: &'static str,
    /// In namespace `a`; `$H`: the holder's process, `$D`: emud's device of the direction down,
    /// `$B`: the other namespace. The time until it is noticed counts from behind [`THEN`].
    pub script: &'static str,
    /// The message about it; `|`: one of several.
    pub said: &'static str,
    /// Commands that revert the part that does not belong to emud.
    pub own: &'static str,
    engine: Option<Engine>,
}

const fn kind(name: &'static str, script: &'static str, said: &'static str) -> Kind {
    Kind {
        name,
        script,
        said,
        own: "true",
        engine: None,
    }
}

const fn of(engine: Engine, kind: Kind) -> Kind {
    Kind {
        engine: Some(engine),
        ..kind
    }
}

/// Their names. The settings of IP lack an ifb, whose MTU is too small.
const DEVICES: &str = "ip -o link | cut -d: -f2 | cut -d@ -f1";

/// Behind what is no tampering.
const THEN: &str = " THEN ";

/// What comes before a change, and the change.
fn parts(script: &str) -> (&str, &str) {
    script.split_once(THEN).unwrap_or(("true", script))
}

/// Stands for a script: guests have no program that detaches one of tcx.
const BY_TCX: &str = "tcx";

const KINDS: &[Kind] = &[
    of(
        Engine::Fq,
        kind(
            "egress filter",
            "tc filter del dev va egress",
            "emud_egress was deleted",
        ),
    ),
    of(
        Engine::Hold,
        kind(
            "egress filter",
            "tc filter del dev va egress",
            "emud_egress was deleted",
        ),
    ),
    of(
        Engine::Qdisc,
        kind("egress program", BY_TCX, "emud_egress was deleted"),
    ),
    kind(
        "ingress filter",
        "tc filter del dev va ingress",
        "emud_ingress was deleted",
    ),
    of(
        Engine::Fq,
        kind(
            "root deleted",
            "tc qdisc del dev va root",
            "root qdisc fq of va was deleted",
        ),
    ),
    of(
        Engine::Qdisc,
        kind(
            "root deleted",
            "tc qdisc del dev va root",
            "root qdisc qdisc of va was deleted",
        ),
    ),
    Kind {
        own: "tc qdisc del dev va root",
        ..kind(
            "root replaced",
            "tc qdisc replace dev va root handle 5: pfifo limit 77",
            "pfifo 5:",
        )
    },
    kind("clsact", "tc qdisc del dev va clsact", "clsact was deleted"),
    Kind {
        own: "tc qdisc del dev va clsact",
        ..kind(
            "filter before",
            "tc filter add dev va ingress pref 1 protocol all bpf \
             bytecode \"1,6 0 0 4294967295,\" flowid 1:1",
            "filter bpf of pref 1 was added before emud_ingress",
        )
    },
    kind("device down", "ip link set $D down", "is down"),
    kind(
        "device renamed",
        "ip link set $D down; ip link set $D name other; ip link set other up",
        "was renamed to other",
    ),
    kind("device gone", "ip link del $D", "was deleted"),
    kind(
        "device moved",
        "ip link set $D netns $B",
        "moved to another network namespace",
    ),
    of(
        Engine::Fq,
        kind(
            "root of the ifb",
            "tc qdisc del dev $D root",
            "root qdisc fq of emud-ifb",
        ),
    ),
    of(
        Engine::Qdisc,
        kind(
            "root of the ifb",
            "tc qdisc del dev $D root",
            "root qdisc qdisc of emud-ifb",
        ),
    ),
    of(
        Engine::Hold,
        kind(
            "TAP filter",
            "tc qdisc del dev $D clsact",
            "the filter emud_tap_down",
        ),
    ),
    of(
        Engine::Hold,
        kind("holder stopped", "kill -STOP $H", "is stopped"),
    ),
    of(Engine::Hold, kind("holder killed", "kill -9 $H", "is gone")),
    Kind {
        own: "ip link set va mtu 1500",
        ..kind("MTU", "ip link set va mtu 1400", "the MTU is 1400")
    },
    kind(
        "segmentation",
        "ip link set va gso_max_segs 99",
        "gso_max_segs is 99",
    ),
    kind(
        "segmenter",
        "ethtool -K emud-sa-${D##*-} tx-tcp6-segmentation on",
        "tx-tcp6-segmentation of emud-sa-",
    ),
    kind(
        "checksums of the segmenter",
        "$E set va down.corrupt=1% THEN ethtool -K emud-sb-${D##*-} tx-checksum-ip-generic on",
        "tx-checksum-ip-generic of emud-sb-",
    ),
    kind("segmenter gone", "ip link del emud-sa-${D##*-}", "emud-sa-"),
    kind(
        "segmenter moved",
        "ip link set emud-sb-${D##*-} netns $B",
        "emud-sb-",
    ),
    kind(
        "filter of the device",
        "tc filter add dev $D egress protocol all bpf bytecode \"1,6 0 0 0,\" flowid 1:1",
        "the egress filter bpf of pref 49152 was added to emud-",
    ),
    kind(
        "filter before that of the device",
        "tc filter add dev $D ingress pref 1 protocol all bpf \
         bytecode \"1,6 0 0 4294967295,\" flowid 1:1",
        "the ingress filter bpf of pref 1 was added to emud-",
    ),
    kind(
        "filter of the segmenter",
        "tc filter add dev emud-sa-${D##*-} egress protocol all bpf bytecode \"1,6 0 0 0,\" flowid 1:1",
        "the egress filter bpf of pref 49152 was added to emud-sa-",
    ),
    kind(
        "root of the segmenter",
        "tc qdisc add dev emud-sb-${D##*-} root handle 5: pfifo limit 1",
        "the root qdisc pfifo 5: was added to emud-sb-",
    ),
    of(
        Engine::Hold,
        kind(
            "root of the TAP",
            "tc qdisc add dev $D root handle 5: pfifo limit 1",
            "the root qdisc pfifo 5: was added to emud-down-",
        ),
    ),
    of(
        Engine::Fq,
        kind(
            "options",
            "tc qdisc change dev va root fq ce_threshold 1us",
            "the options of fq",
        ),
    ),
];

/// Undone before the next check: packets are lost nevertheless.
const UNDONE: &Kind = &kind(
    "device down and up",
    "ip link set $D down; ip link set $D up",
    // Or the check is in between.
    "was down for a moment|is down",
);

/// All that leads to the link, so that nothing is found afterwards.
const EVERYTHING: &Kind = &kind(
    "everything",
    "tc qdisc del dev va clsact; ip link del $D; ip link del emud-up-${D##*-} 2>/dev/null || true",
    "clsact was deleted",
);

/// The cases of an engine.
pub fn kinds(engine: Engine) -> impl Iterator<Item = &'static Kind> {
    KINDS
        .iter()
        .filter(move |kind| kind.engine.is_none_or(|of| of == engine))
}

/// Three methods of detection, except in the full run.
fn usual(engine: Engine) -> impl Iterator<Item = &'static Kind> {
    const USUAL: [&str; 4] = [
        "egress filter",
        "egress program",
        "device gone",
        "holder stopped",
    ];
    kinds(engine).filter(|kind| full() || USUAL.contains(&kind.name))
}

/// `$D`, `$H`, `$B` and `$E` of a link that is attached.
fn variables(lab: &Lab, engine: Engine) -> String {
    let emud = emud_path();
    let device = match engine {
        Engine::Fq | Engine::Qdisc => "ifb",
        Engine::Hold => "down",
    };
    format!(
        "I=$(ip -o link show dev va); D=emud-{device}-${{I%%:*}}
         B={} E={}
         H=$($E show va --json | tr -d \"\\\" ,\" | sed -n s/^pid://p | head -n 1)\n",
        lab.b,
        emud.display()
    )
}

fn says(what: &Value, expected: &str) -> bool {
    let what = what.to_string();
    expected.split('|').any(|one| what.contains(one))
}

/// Applies it to an attached link.
pub fn spoil(lab: &Lab, engine: Engine, kind: &Kind) {
    match kind.script {
        BY_TCX => assert_eq!(detach_tcx(&lab.a), 1),
        script => {
            let (before, change) = parts(script);
            let variables = variables(lab, engine);
            drop(lab.in_a(&format!("{variables}{before}\n{change}")));
        }
    }
}

/// Detaches the programs of tcx at the egress of `va`; returns their number.
fn detach_tcx(namespace: &str) -> usize {
    let work = || {
        let va = Netlink::open()?.link("va")?.index;
        let programs = tcx_programs(va, Hook::Egress)?;
        for program in &programs {
            netlink::detach_tcx(va, Hook::Egress, program.id)?;
        }
        Ok::<_, NetlinkError>(programs.len())
    };
    inside(namespace, work)
        .join()
        .expect("a thread")
        .expect("tcx")
}

const LINK: &str = "[link]\ndelay = \"5ms\"\nrate = \"100Mbit\"\n";

pub fn tampered(shown: &Value) -> String {
    shown["tampered"].to_string()
}

/// Applies it, and checks that `show` reports it in time.
fn spoil_and_see(lab: &Lab, engine: Engine, kind: &Kind) {
    spoil(lab, engine, kind);
    wait_until(kind.name, noticed_within(), || {
        tampered(&lab.show()).contains(kind.said)
    });
}

/// Limits that a user configured, which detach must restore.
fn lab() -> Lab {
    let lab = Lab::new();
    sh(&format!("ip -n {} link set dev va gso_max_segs 17", lab.a));
    lab
}

/// Whatever is missing, `show` reports it, and one detach restores the previous state.
pub fn one_detach(engine: Engine) {
    for kind in kinds(engine) {
        println!("    {}", kind.name);
        let lab = lab();
        let (before, elsewhere) = (lab.snapshot(), lab.in_b(DEVICES));
        lab.attach(engine, LINK, &[]);
        assert_eq!(tampered(&lab.show()), "[]", "{}", kind.name);
        spoil_and_see(&lab, engine, kind);
        let shown = lab.emud(&["show", "va"]).expect(0).out;
        assert!(shown.contains("TAMPERED: "), "{shown}");
        assert!(shown.contains("emud detach va"), "{shown}");
        let listed = lab.emud(&["list"]).expect(0).out;
        assert!(listed.contains(kind.said), "{listed}");
        lab.detach();
        lab.in_a(kind.own);
        assert_same(kind.name, &before, &lab.snapshot());
        assert_same(kind.name, &elsewhere, &lab.in_b(DEVICES));
        lab.emud(&["detach", "va"]).expect(66);
        wait_until("the holder ends", SOON, || holders(&lab).is_empty());
    }
}

/// The fastest cases, one link after the other.
pub fn smoke(engine: Engine) {
    let lab = lab();
    let before = lab.snapshot();
    let quick = [
        "egress filter",
        "egress program",
        "root deleted",
        "clsact",
        "device down",
        "device renamed",
        "device gone",
    ];
    for kind in kinds(engine).filter(|kind| quick.contains(&kind.name)) {
        lab.attach(engine, LINK, &[]);
        spoil_and_see(&lab, engine, kind);
        lab.detach();
        assert_same(kind.name, &before, &lab.snapshot());
    }
    // One direction may need fewer parts than both.
    for direction in ["up", "down"] {
        lab.attach(engine, LINK, &["--direction", direction]);
        assert_eq!(tampered(&lab.show()), "[]", "{direction}");
        lab.detach();
        assert_same(direction, &before, &lab.snapshot());
    }
    let kind = (kinds(engine).find(|kind| kind.name == "clsact")).expect("a kind");
    let mut verdict = Verdict::default();
    judge_unchanged(&mut verdict, &lab, engine);
    let (said, lines) = run_with(&lab, engine, kind.script);
    judge(&mut verdict, kind.name, &said, &lines, kind.said);
    assert_same("a run", &before, &lab.snapshot());
    verdict.end();
}

/// A new attach takes over the remains of a link, and its detach restores the previous state.
pub fn taken_over(engine: Engine) {
    for kind in usual(engine) {
        take_over(engine, kind, &["--replace"]);
        if !is_of_another(engine, kind) {
            take_over(engine, kind, &[]);
        }
    }
}

/// Whether it leaves the root qdisc of another process where the engine needs its own.
fn is_of_another(engine: Engine, kind: &Kind) -> bool {
    kind.name == "root replaced" && engine != Engine::Hold
}

fn take_over(engine: Engine, kind: &Kind, options: &[&str]) {
    let lab = lab();
    let before = lab.snapshot();
    lab.attach(engine, LINK, &[]);
    spoil_and_see(&lab, engine, kind);
    let said = lab.try_attach(engine, LINK, options);
    println!(
        "    {}: {options:?} {} {}{}",
        kind.name, said.code, said.out, said.err
    );
    match said.code {
        // Changed, but no part is deleted.
        73 => assert!(said.err.contains("already"), "{}", said.err),
        _ => taken(&lab, kind, said),
    }
    lab.detach();
    if !is_of_another(engine, kind) {
        lab.in_a(kind.own);
        assert_same(kind.name, &before, &lab.snapshot());
    }
}

fn taken(lab: &Lab, kind: &Kind, said: Said) {
    let said = said.expect(0).out;
    assert!(
        said.contains("removed the remains") && said.contains(kind.said),
        "{said}"
    );
    // Parts that the new link creates again are right.
    let left = tampered(&lab.show());
    assert_eq!(left, "[]", "{}", kind.name);
    // Only one: after its last request ping waits for two round trips.
    let pinged = lab.ping("-q -c 1 -W 10");
    assert!(pinged.contains(" 1 received"), "{}: {pinged}", kind.name);
}

/// clsact, holder and filters deleted: the limits of segmentation are restored nevertheless.
pub fn all_at_once(engine: Engine) {
    let lab = lab();
    let before = lab.snapshot();
    let spoil_all = |direction: &str| {
        let shown = lab.show();
        let pid = |of: &str| shown.pointer(of).and_then(Value::as_u64);
        let pid = pid("/up/holder/pid").or_else(|| pid("/down/holder/pid"));
        let holder = pid.map_or("true".to_owned(), |pid| format!("kill -9 {pid}"));
        let by_tcx = engine == Engine::Qdisc && direction != "down";
        if by_tcx {
            assert_eq!(detach_tcx(&lab.a), 1);
        }
        let clsact = match by_tcx && direction == "up" {
            true => "true",
            false => "tc qdisc del dev va clsact",
        };
        lab.in_a(&format!("{clsact}; {holder}"));
    };
    for direction in ["both", "up", "down"] {
        lab.attach(engine, LINK, &["--direction", direction]);
        spoil_all(direction);
        lab.detach();
        assert_same(direction, &before, &lab.snapshot());
        lab.attach(engine, LINK, &["--direction", direction]);
        spoil_all(direction);
        lab.attach(engine, LINK, &["--replace", "--direction", direction]);
        lab.detach();
        assert_same(direction, &before, &lab.snapshot());
    }
}

/// Without any part that leads to the record, its copy restores the previous state.
pub fn record_lost(engine: Engine) {
    let lab = lab();
    lab.in_a(
        "ethtool -K va gro on >/dev/null
         tc qdisc replace dev va root handle 5: pfifo limit 77",
    );
    let before = lab.snapshot();
    for again in [false, true] {
        lab.attach(engine, LINK, &["--replace"]);
        detach_tcx(&lab.a);
        lab.in_a(&format!(
            "tc qdisc del dev va clsact
             for device in $({DEVICES}); do
                 # Both ends of a pair go with the first.
                 case $device in emud-*) ip link del $device 2>/dev/null || true ;; esac
             done",
        ));
        let shown = lab.emud(&["show", "va"]).expect(66).err;
        assert!(shown.contains("emud detach va"), "{shown}");
        let said = match again {
            true => lab.attach(engine, LINK, &["--replace"]),
            false => lab.emud(&["detach", "va"]).expect(0),
        };
        assert!(said.out.contains("the copy of the record"), "{}", said.out);
        if again {
            lab.detach();
        }
        assert_same("a lost record", &before, &lab.snapshot());
        lab.emud(&["detach", "va"]).expect(66);
    }
}

/// In another namespace, too, one detach restores what the kernel did not drop there.
pub fn moved_away(engine: Engine) {
    let lab = lab();
    // A device alone: the next attach or detach there deletes it.
    lab.attach(engine, LINK, &[]);
    let elsewhere = lab.in_b(DEVICES);
    lab.in_a(&(variables(&lab, engine) + "ip link set $D netns $B"));
    emud(&["--netns", &lab.b, "detach", "vb"]).expect(66);
    assert_same("swept", &elsewhere, &lab.in_b(DEVICES));
    lab.detach();
    lab.in_a("ethtool -K va gro on >/dev/null");
    let mut before = None;
    for attached in [false, true] {
        if attached {
            lab.attach(engine, LINK, &[]);
        }
        lab.in_a(&format!("ip link set va netns {}", lab.b));
        if attached {
            emud(&["--netns", &lab.b, "detach", "va"]).expect(0);
            emud(&["--netns", &lab.b, "detach", "va"]).expect(66);
        }
        let now = lab.in_b("ip -d link show va; tc qdisc show dev va; ethtool -k va");
        match &before {
            None => before = Some(now),
            Some(before) => assert_same("moved away", before, &now),
        }
        lab.in_b(&format!("ip link set va netns {}", lab.a));
    }
}

/// To another namespace and back: one detach restores the previous state.
pub fn moved(engine: Engine) {
    let lab = lab();
    let mut before = None;
    for attached in [false, true] {
        if attached {
            lab.attach(engine, LINK, &[]);
        }
        lab.in_a(&format!("ip link set va netns {}", lab.b));
        if attached {
            assert_eq!(lab.emud(&["show", "va"]).code, 66);
        }
        lab.in_b(&format!("ip link set va netns {}", lab.a));
        if attached {
            wait_until("noticed", noticed_within(), || {
                tampered(&lab.show()).contains("clsact was deleted")
            });
            lab.detach();
        }
        let now = lab.snapshot();
        match &before {
            None => before = Some(now),
            Some(before) => assert_same("moved", before, &now),
        }
    }
    wait_until("nothing is attached", SOON, || {
        emud(&["--netns", &lab.a, "list"]).expect(0).out.is_empty()
    });
}

/// Breaks a link like a program under test, then waits for the detection.
fn run_with(lab: &Lab, engine: Engine, script: &str) -> (Said, Vec<Value>) {
    let files = Scratch::new();
    let log = files.path("run.log");
    let by_tcx = (script == BY_TCX).then(|| detach_at_now(&lab.a, &log));
    let script = match script {
        BY_TCX => "",
        script => script,
    };
    let (before, change) = parts(script);
    let script = format!(
        "{}sleep 0.5\n{before}\necho NOW\n{change}\nsleep 1",
        variables(lab, engine)
    );
    let profile = lab.profile(LINK);
    let mut args = vec![
        "run",
        "--in-place",
        "va",
        "--profile",
        &profile,
        "--log",
        &log,
    ];
    args.extend(["--engine", engine.name(), "--", "sh", "-c", &script]);
    let said = lab.emud(&args);
    if let Some(by_tcx) = by_tcx {
        by_tcx.join().expect("the program of tcx is detached");
    }
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    (said, lines.collect())
}

/// Detaches the programs of tcx as soon as the program of a run has written `NOW`.
fn detach_at_now(namespace: &str, log: &str) -> JoinHandle<()> {
    let (space, log) = (namespace.to_owned(), log.to_owned());
    std::thread::spawn(move || {
        // The line of the run has it, too: in the program's arguments.
        let said = "\"text\":\"NOW\"";
        let is_now = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains(said));
        wait_until("the program runs", SOON, is_now);
        assert_eq!(detach_tcx(&space), 1);
    })
}

fn judge(verdict: &mut Verdict, name: &str, said: &Said, lines: &[Value], expected: &str) {
    verdict.same(&format!("{name}: exit code"), 4, said.code);
    let at = |line: &Value| line["mono_ns"].as_u64().expect("a time");
    let done = lines
        .iter()
        .find(|line| line["type"] == "output" && line["text"] == "NOW");
    let noticed = lines.iter().find(|line| {
        let of_link = line["type"] == "link" && line["event"] == "tampered";
        of_link && says(&line["what"], expected)
    });
    verdict.same(&format!("{name}: in the log"), true, noticed.is_some());
    if let (Some(done), Some(noticed)) = (done, noticed) {
        let s = (at(noticed) - at(done)) as f64 / 1e9;
        verdict.at_most(
            &format!("{name}: s until noticed"),
            noticed_within().as_secs_f64(),
            s,
        );
    }
    let end = lines.iter().find(|line| line["type"] == "end");
    let end = end.cloned().unwrap_or_default();
    verdict.same(
        &format!("{name}: verdict"),
        "invalid",
        end["verdict"].as_str().unwrap_or(""),
    );
    let named = &end["invalid"];
    let good = says(named, "tampered") && says(named, expected);
    verdict.same(&format!("{name}: named in {named}"), true, good);
}

/// The same run without a change: all is watched, and the verdict of the others is due to theirs.
fn judge_unchanged(verdict: &mut Verdict, lab: &Lab, engine: Engine) {
    let (said, lines) = run_with(lab, engine, "true");
    let end = lines.iter().find(|line| line["type"] == "end");
    let invalid = end.map_or_else(|| said.err.clone(), |end| end["invalid"].to_string());
    verdict.same("unchanged: invalid because", "[]".to_owned(), invalid);
    // A machine with other jobs may be contended.
    let is_valid = said.code == 0 || said.code == 3;
    verdict.same(&format!("unchanged: {}: valid", said.code), true, is_valid);
}

/// A run is invalid, and lists the missing parts.
pub fn run_is_invalid(engine: Engine) {
    let mut verdict = Verdict::default();
    judge_unchanged(&mut verdict, &lab(), engine);
    for kind in usual(engine).chain([UNDONE, EVERYTHING]) {
        let lab = lab();
        let before = lab.snapshot();
        let (said, lines) = run_with(&lab, engine, kind.script);
        judge(&mut verdict, kind.name, &said, &lines, kind.said);
        lab.in_a(kind.own);
        assert_same(kind.name, &before, &lab.snapshot());
    }
    let lab = lab();
    let script = format!("ip link set va netns {}", lab.b);
    let (said, lines) = run_with(&lab, engine, &script);
    judge(
        &mut verdict,
        "moved",
        &said,
        &lines,
        "another network namespace",
    );
    verdict.end();
}

/// `emud monitor` raises an alarm.
pub fn monitored(engine: Engine) {
    let mut verdict = Verdict::default();
    let files = Scratch::new();
    let socket = PathBuf::from(files.path("monitor.sock"));
    // It also hears of the late packets of other links of the host.
    let options = ["--only", "emulator", "--limit", "1000000"];
    let watch = Watch::spawn_at(Command::new(emud_path()), socket, &options);
    assert!(watch.next(0, SOON, |line| line.is("start")).is_some());
    const MOVED: &Kind = &kind("moved", "", "another network namespace");
    for kind in usual(engine).chain([UNDONE, EVERYTHING, MOVED]) {
        let lab = lab();
        let before = lab.snapshot();
        lab.attach(engine, LINK, &[]);
        // The monitor must know the link.
        std::thread::sleep(known_within());
        let netns = std::fs::metadata(format!("/run/netns/{}", lab.a)).expect("a namespace");
        let netns = netns.ino();
        let mark = watch.since(0).len();
        let done_ns = match kind.script {
            "" => {
                let done_ns = clock::now();
                lab.in_a(&format!("ip link set va netns {}", lab.b));
                done_ns
            }
            BY_TCX => {
                let done_ns = clock::now();
                spoil(&lab, engine, kind);
                done_ns
            }
            script => {
                let (before, change) = parts(script);
                let variables = variables(&lab, engine);
                let script = format!("{variables}{before} >/dev/null\ncat /proc/uptime\n{change}");
                let said = lab.in_a(&script);
                let s: f64 = said.split(' ').next().unwrap().parse().expect("seconds");
                (s * 1e9) as u64
            }
        };
        let alarm = watch.next(mark, SOON, |line| {
            let scope = &line.json["scope"];
            let of_it = line.is("alarm") && scope["failure"] == "tampered";
            of_it && scope["netns"] == netns && says(&scope["what"], kind.said)
        });
        verdict.same(&format!("{}: an alarm", kind.name), true, alarm.is_some());
        if alarm.is_none() {
            let lines = watch.since(mark);
            let tampered = lines
                .iter()
                .filter(|line| line.json["scope"]["failure"] == "tampered");
            let tampered: Vec<_> = tampered.map(|line| &line.json).collect();
            println!(
                "    {} lines; in {netns} expected, came {tampered:?}",
                lines.len()
            );
        }
        if let Some(alarm) = alarm {
            let s = alarm.mono_ns().saturating_sub(done_ns) as f64 / 1e9;
            verdict.at_most(
                &format!("{}: s until noticed", kind.name),
                noticed_within().as_secs_f64(),
                s,
            );
        }
        if !kind.script.is_empty() {
            // A stopped holder would keep the namespace alive.
            lab.detach();
            lab.in_a(kind.own);
            assert_same(kind.name, &before, &lab.snapshot());
        }
    }
    verdict.end();
}

/// The end of an interface, such as that of a node, is the end of its link: no alarm, as the holder says.
pub fn ends_with_its_interface() {
    let files = Scratch::new();
    let socket = PathBuf::from(files.path("monitor.sock"));
    let options = ["--only", "emulator", "--limit", "1000000"];
    let watch = Watch::spawn_at(Command::new(emud_path()), socket, &options);
    assert!(watch.next(0, SOON, |line| line.is("start")).is_some());
    for _ in 0..5 {
        let lab = lab();
        lab.attach(Engine::Hold, LINK, &[]);
        std::thread::sleep(NOTICED);
        let mark = watch.since(0).len();
        let netns = std::fs::metadata(format!("/run/netns/{}", lab.a)).expect("a namespace");
        let of_it = |line: &Line| line.json["scope"]["netns"] == netns.ino();
        lab.in_a("ip link del va");
        wait_until("the holder ends", SOON, || holders(&lab).is_empty());
        // Two checks of the monitor.
        std::thread::sleep(NOTICED);
        let alarms = watch.since(mark);
        let alarm = alarms.iter().find(|line| line.is("alarm") && of_it(line));
        assert!(alarm.is_none(), "{:?}", alarm.map(|line| &line.json));
    }
}
