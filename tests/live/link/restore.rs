// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detach restores the previous state in every case.

use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use emud::host::interface;
use emud::netlink::Netlink;
use support::lab::{Engine, Lab, Verdict, emud, emud_path, inside, run, scaled, sh, wait_until};
use support::nobody::{self, Nobody};
use support::probe::{Arrival, Probe};
use support::{clock, guest};

/// Time for asynchronous work of the kernel.
const SOON: Duration = Duration::from_secs(20);

/// Holders in namespace `a`.
pub fn holders(lab: &Lab) -> Vec<String> {
    emuds(lab, "hold-run")
}

/// Processes of emud with this hidden verb in namespace `a`.
pub fn emuds(lab: &Lab, verb: &str) -> Vec<String> {
    let there = std::fs::metadata(format!("/run/netns/{}", lab.a)).expect("the namespace");
    let processes = std::fs::read_dir("/proc").expect("/proc");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // Processes may end while they are checked.
    pids.filter(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let space = std::fs::metadata(format!("/proc/{pid}/ns/net"));
        command.split(|byte| *byte == 0).nth(1) == Some(verb.as_bytes())
            && space.is_ok_and(|space| (space.dev(), space.ino()) == (there.dev(), there.ino()))
    })
    .collect()
}

pub fn assert_same(what: &str, before: &str, after: &str) {
    if before == after {
        return;
    }
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let gone = before.iter().filter(|line| !after.contains(line));
    let new = after.iter().filter(|line| !before.contains(line));
    let lines: Vec<String> = gone
        .map(|line| format!("- {line}"))
        .chain(new.map(|line| format!("+ {line}")))
        .collect();
    panic!("{what}: not restored\n{}", lines.join("\n"));
}

/// Attached and used with every option, then detached.
pub fn leaves_no_trace(engine: Engine) {
    const WAYS: &[&[&str]] = &[
        &[],
        &["--direction", "up"],
        &["--direction", "down"],
        &["--reverse"],
        &["--offload", "keep"],
    ];
    for (queues, ways) in [(1, WAYS), (4, &WAYS[..2])] {
        let lab = Lab::with_queues(queues);
        // Settings of a user. Docker sets txqueuelen 0, which the first qdisc makes 1000.
        sh(&format!(
            "ip -n {} link set dev va gso_max_segs 17 gso_max_size 30000 txqueuelen 0",
            lab.a
        ));
        lab.in_a("ethtool -K va gro on >/dev/null");
        let before = lab.snapshot();
        for way in ways {
            lab.attach(engine, "adsl24", way);
            assert_ne!(before, lab.snapshot(), "{way:?}: nothing was attached");
            lab.ping("-q -c 5 -i 0.01");
            lab.detach();
            assert_same(
                &format!("{queues} queues, {way:?}"),
                &before,
                &lab.snapshot(),
            );
            wait_until("the holder ends", SOON, || holders(&lab).is_empty());
        }
        lab.emud(&["detach", "va"]).expect(66);
        assert_same("detached twice", &before, &lab.snapshot());
        // What another process sets meanwhile stays.
        lab.attach(engine, "adsl24", &[]);
        lab.in_a("ip link set dev va gso_max_size 20000 txqueuelen 500");
        lab.detach();
        let now = lab.in_a("ip -d link show va");
        assert!(now.contains("gso_max_size 20000 gso_max_segs 17 "), "{now}");
        assert!(now.contains("qlen 500"), "{now}");
    }
}

/// The kernel switches off LRO of the members with that of a team, and below a macvlan with that of it.
pub fn lro_below(engine: Engine) {
    let lab = Lab::empty();
    let add = ["-n", &lab.a, "link", "add", "t0", "type", "team"];
    if run(Command::new("ip").args(add)).code != 0 && !guest() {
        println!("    this kernel has no team");
        return;
    }
    lab.in_a(
        "ip link add t1 type team
         ip link set t1 master t0
         ip link add m0 link t0 type macvlan
         for device in t0 t1 m0; do ethtool -K $device lro on >/dev/null; done",
    );
    let with_lro = || (lab.snapshot().matches("large-receive-offload: on")).count();
    let before = lab.snapshot();
    assert_eq!(with_lro(), 3, "{before}");
    let profile = lab.profile("[link]\nrate = \"10Mbit\"\n");
    for device in ["t0", "m0"] {
        lab.emud(&["attach", device, "-p", &profile, "--engine", engine.name()])
            .expect(0);
        assert_eq!(with_lro(), 0, "{device}");
        let said = lab.emud(&["detach", device]).expect(0);
        assert!(!said.err.contains("rx-lro"), "{}", said.err);
        assert_same(device, &before, &lab.snapshot());
    }
}

/// From outside by name and by process, and from inside.
pub fn other_namespace(engine: Engine) {
    let lab = Lab::new();
    let mut resident = Command::new("ip")
        .args(["netns", "exec", &lab.a, "sleep", "600"])
        .stdout(Stdio::null())
        .spawn()
        .expect("a process in the namespace");
    let pid = resident.id().to_string();
    let there = format!("/run/netns/{}", lab.a);
    // ip enters the namespace some time after it has been started.
    let inode = |path: &str| std::fs::metadata(path).map(|m| m.ino()).ok();
    wait_until("the process is in the namespace", SOON, || {
        inode(&format!("/proc/{pid}/ns/net")) == inode(&there)
    });
    let before = lab.snapshot();
    let (by_name, by_pid, by_path) = (
        ["--netns", &lab.a],
        ["--netns", &pid],
        ["--netns", there.as_str()],
    );
    for (attach, detach) in [(by_name, by_pid), (by_pid, by_name), (by_path, by_path)] {
        let engine = ["--engine", engine.name()];
        emud(&[&attach[..], &["attach", "va", "-p", "adsl24"], &engine].concat()).expect(0);
        let listed = emud(&[&detach[..], &["list"]].concat()).expect(0);
        assert!(listed.out.contains("va\tadsl24\tboth"), "{}", listed.out);
        // The test's namespace has no such interface.
        assert_eq!(emud(&["show", "va"]).code, 66);
        emud(&[&detach[..], &["detach", "va"]].concat()).expect(0);
        assert_same("another namespace", &before, &lab.snapshot());
    }
    // The number of the process is also a name.
    sh(&format!("ip netns add {pid}"));
    let said = emud(&["--netns", &pid, "list"]);
    sh(&format!("ip netns del {pid}"));
    assert_eq!(said.code, 64, "{said:?}");
    let both = format!("/run/netns/{pid} or /proc/{pid}/ns/net");
    assert!(said.err.contains(&both), "{}", said.err);
    let emud = emud_path();
    let emud = emud.display();
    lab.in_a(&format!(
        "{emud} attach va -p adsl24 --engine {} >/dev/null; {emud} detach va >/dev/null",
        engine.name()
    ));
    assert_same("from inside", &before, &lab.snapshot());
    resident.kill().expect("end the process");
    resident.wait().expect("its end");
    emud_without_namespace(&pid);
}

fn emud_without_namespace(pid: &str) {
    emud(&["--netns", pid, "show"]).expect(66);
    emud(&["--netns", "live-no-such", "show"]).expect(66);
}

/// kill -9 of the holder: packets pass within a second.
pub fn holder_killed(engine: Engine) {
    const INTERVAL_MS: u64 = 4;
    const DELAY_MS: f64 = 200.0;
    if engine.is_stamped() {
        return;
    }
    let lab = Lab::new();
    let before = lab.snapshot();
    lab.attach(engine, "[link]\ndelay = \"200ms\"", &[]);
    let pid = lab.shown("/up/holder/pid");
    let probe = Probe {
        patience: Duration::from_millis(500),
        ..Probe::new(&lab, 1000, INTERVAL_MS * 1_000_000)
    };
    let mut killed_ns = 0;
    let arrivals = probe.run_while(|_| {
        thread::sleep(Duration::from_secs(1));
        sh(&format!("kill -9 {pid}"));
        killed_ns = clock::now();
    });
    let mut verdict = Verdict::default();
    let (held, rest): (Vec<&Arrival>, Vec<&Arrival>) =
        arrivals.0.iter().partition(|a| a.arrived_ns < killed_ns);
    verdict.at_least("held packets", 100.0, held.len() as f64);
    verdict.same(
        "packets not held before the kill",
        0,
        held.iter().filter(|a| a.delay_ms() < DELAY_MS).count(),
    );
    let first_ns = rest.first().map_or(u64::MAX, |a| a.sent_ns);
    verdict.at_most(
        "s until packets pass",
        1.0,
        first_ns.saturating_sub(killed_ns) as f64 / 1e9,
    );
    verdict.same(
        "packets held after the kill",
        0,
        rest.iter().filter(|a| a.delay_ms() >= DELAY_MS).count(),
    );
    // After the first one that passes, all do.
    let sent_after = rest.first().map_or(0, |a| 1000 - a.number as usize);
    verdict.same("packets that pass", sent_after, rest.len());
    let shown = lab.show();
    verdict.same("alive by emud's account", false, {
        shown["up"]["holder"]["alive"].as_bool().expect("a boolean")
    });
    verdict.same(
        "passed by emud's count",
        rest.len() as u64,
        lab.shown("/up/counters/passed/no_holder"),
    );
    let said = lab.emud(&["show", "va"]).expect(0).out;
    verdict.same("show says so", true, said.contains("gone"));
    lab.detach();
    assert_same("a killed holder", &before, &lab.snapshot());
    verdict.end();
}

/// kill -9 of attach at any moment of its work.
pub fn attach_killed(engine: Engine) {
    killed(engine, "attach", scaled(50));
}

/// kill -9 of detach at any moment of its work.
pub fn detach_killed(engine: Engine) {
    killed(engine, "detach", scaled(30));
}

fn killed(engine: Engine, verb: &str, rounds: u32) {
    let lab = Lab::new();
    // With a root qdisc to restore.
    sh(&format!(
        "tc -n {} qdisc add dev va root pfifo limit 77",
        lab.a
    ));
    let before = lab.snapshot();
    let attach = |spawn: bool| {
        let mut command = Command::new(emud_path());
        command.args(["--netns", &lab.a, "attach", "va", "-p", "adsl24"]);
        command.args(["--replace", "--engine", engine.name()]);
        start(command, spawn)
    };
    let detach = |spawn: bool| {
        let mut command = Command::new(emud_path());
        command.args(["--netns", &lab.a, "detach", "va"]);
        start(command, spawn)
    };
    let begin = Instant::now();
    attach(false);
    let attach_takes = begin.elapsed();
    let begin = Instant::now();
    detach(false);
    let mut takes = match verb {
        "attach" => attach_takes,
        _ => begin.elapsed(),
    };
    let (mut found, mut finished, mut round, mut sweeps) = (0, 0, 0, 1);
    while round < rounds {
        if verb == "detach" {
            attach(false);
        }
        let mut victim = match verb {
            "attach" => attach(true),
            _ => detach(true),
        }
        .expect("a process");
        // Every part of its run time once, and slightly beyond.
        let at = takes.mul_f64(1.1 * f64::from(round) / f64::from(rounds));
        thread::sleep(at);
        // Fails only if it has ended.
        let _ = victim.kill();
        finished += u32::from(victim.wait().expect("its end").success());
        // What passes everything is not changed.
        if lab.emud(&["show", "va"]).out.contains("not in force") {
            lab.emud(&["set", "va", "up.loss=1%"]).expect(66);
        }
        let said = lab.emud(&["detach", "va"]);
        assert!(
            [0, 66].contains(&said.code),
            "after {at:?}: {} {}",
            said.code,
            said.err
        );
        found += u32::from(said.code == 0);
        // The kernel releases the resources of a killed process asynchronously.
        let deadline = Instant::now() + SOON;
        while lab.snapshot() != before && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        let what = format!("{verb} killed after {at:?} of {takes:?}");
        assert_same(&what, &before, &lab.snapshot());
        wait_until("no holder is left", SOON, || holders(&lab).is_empty());
        round += 1;
        // Other load has changed its speed: use other moments.
        if round == rounds && (found == 0 || finished == rounds) && sweeps < 4 {
            takes = takes.mul_f64(if found == 0 { 2.0 } else { 0.5 });
            (found, finished, round, sweeps) = (0, 0, 0, sweeps + 1);
        }
    }
    println!(
        "    {rounds} killed within {takes:?}: {found} had to be detached, {finished} had ended"
    );
    // Otherwise the moments were badly chosen.
    assert!(found > 0 && finished < rounds);
}

fn start(mut command: Command, spawn: bool) -> Option<Child> {
    if spawn {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        return Some(command.spawn().expect("start emud"));
    }
    run(&mut command).expect(0);
    None
}

/// A clsact that a user configured, with filters that see and count every packet.
pub fn filters_of_others(engine: Engine) {
    let lab = Lab::new();
    // cls_bpf and mirred are in every kernel here; mirrored packets end at the other end.
    lab.in_a(
        "ip link add sink0 type veth peer name sink1
         for d in sink0 sink1; do
             ip link set dev $d addrgenmode none
             ip link set dev $d up
         done
         tc qdisc add dev va clsact
         for hook in egress ingress; do
             tc filter add dev va $hook pref 100 bpf bytecode \"1,6 0 0 4294967295,\" \
                 flowid 1:1 action mirred egress mirror dev sink0 continue
         done",
    );
    let before = lab.snapshot();
    let counted = || -> [u64; 2] {
        ["egress", "ingress"].map(|hook| {
            let said = lab.in_a(&format!("tc -s filter show dev va {hook} pref 100"));
            let sent = said
                .lines()
                .find(|line| line.contains("Sent"))
                .expect("a counter");
            let packets = sent.split_whitespace().nth(3).expect("a number");
            packets.parse().expect("a number")
        })
    };
    let mut verdict = Verdict::default();
    for state in ["before", "attached", "detached"] {
        if state == "attached" {
            lab.attach(engine, "[link]\ndelay = \"5ms\"", &[]);
        }
        if state == "detached" {
            lab.detach();
        }
        let [up, down] = counted();
        lab.ping("-q -c 20 -i 0.01");
        let [up_after, down_after] = counted();
        // Each packet once; neighbour discovery may add some.
        verdict.at_least(&format!("{state}: egress"), 20.0, (up_after - up) as f64);
        verdict.at_most(&format!("{state}: egress"), 22.0, (up_after - up) as f64);
        verdict.at_least(
            &format!("{state}: ingress"),
            20.0,
            (down_after - down) as f64,
        );
        verdict.at_most(
            &format!("{state}: ingress"),
            22.0,
            (down_after - down) as f64,
        );
    }
    assert_same(
        "filters of others",
        &without_ages(&before),
        &without_ages(&lab.snapshot()),
    );
    verdict.end();
}

/// Actions print how long ago they were used.
fn without_ages(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.split(" installed ").next().unwrap_or(line))
        .collect();
    lines.join("\n")
}

/// A root qdisc that a user configured: rejected, or restored.
pub fn root_by_hand(engine: Engine) {
    const ROOTS: &[&str] = &[
        "qdisc add dev va root pfifo limit 77",
        "qdisc add dev va root handle 5: tbf rate 80mbit burst 20k latency 50ms",
        "qdisc add dev va root handle 1: htb default 20
         class add dev va parent 1: classid 1:1 htb rate 50mbit ceil 80mbit
         class add dev va parent 1:1 classid 1:10 htb rate 20mbit ceil 80mbit prio 1
         class add dev va parent 1:1 classid 1:20 htb rate 30mbit
         qdisc add dev va parent 1:10 handle 10: pfifo limit 33
         filter add dev va parent 1: pref 7 protocol ip u32 match ip dst 10.77.0.9 flowid 1:10",
    ];
    // A program without another reference could not be restored: rejected in any case.
    let lab = Lab::new();
    lab.in_a(
        "tc qdisc add dev va root handle 1: htb default 20
         tc filter add dev va parent 1: pref 7 bpf bytecode \"1,6 0 0 4294967295,\" flowid 1:10",
    );
    let before = lab.snapshot();
    lab.try_attach(engine, "adsl24", &["--replace"]).expect(73);
    assert_same("a root with a program", &before, &lab.snapshot());
    for root in ROOTS {
        let lab = Lab::new();
        for line in root.lines() {
            lab.in_a(&format!("tc {}", line.trim()));
        }
        let all = || lab.snapshot() + &lab.in_a("tc class show dev va; tc filter show dev va");
        let before = all();
        let said = lab.try_attach(engine, "adsl24", &[]).expect(73);
        assert!(said.err.contains("--replace"), "{}", said.err);
        assert_same("rejected", &before, &all());
        lab.attach(engine, "adsl24", &["--replace"]);
        assert!(!lab.in_a("tc qdisc show dev va").contains("tbf"));
        lab.ping("-q -c 3 -i 0.01");
        lab.detach();
        assert_same(root, &before, &all());
        // It does not affect ingress.
        lab.attach(engine, "adsl24", &["--direction", "down"]);
        lab.detach();
        assert_same(root, &before, &all());
        if !root.contains("htb") {
            continue;
        }
        // As a detach leaves it that was killed while it restored the root.
        lab.attach(engine, "adsl24", &["--replace"]);
        lab.in_a("tc qdisc replace dev va root handle 1: htb default 20");
        lab.detach();
        assert_same("a part", &before, &all());
        // Made by another process meanwhile.
        lab.attach(engine, "adsl24", &["--replace"]);
        lab.in_a("tc qdisc replace dev va root handle 1: htb default 21");
        let said = lab.emud(&["detach", "va"]).expect(0);
        assert!(
            said.out.contains("htb 1:, configured while"),
            "{}",
            said.out
        );
        assert!(lab.in_a("tc qdisc show dev va").contains("default 0x21"));
    }
}

/// The second attach changes nothing.
pub fn attached_twice(engine: Engine) {
    let lab = Lab::new();
    lab.attach(engine, "adsl24", &[]);
    let attached = lab.snapshot();
    for more in [&[][..], &["--replace"], &["--reverse"]] {
        let said = lab.try_attach(engine, "hsdpa", more).expect(73);
        assert!(said.err.contains("already"), "{}", said.err);
        assert_same("attached twice", &attached, &lab.snapshot());
    }
    assert_eq!(lab.show()["profile"], "adsl24");
}

/// A failed step reverts the ones before it: the names that emud needs are in use.
pub fn step_fails(engine: Engine) {
    let lab = Lab::new();
    let index = lab.in_a("ip -o link show dev va");
    let index = index.split(':').next().expect("an index");
    for taken in ["up", "down", "ifb"] {
        let name = format!("emud-{taken}-{index}");
        lab.in_a(&format!("ip link add {name} type veth peer name other"));
        let before = lab.snapshot();
        let said = lab.try_attach(engine, "adsl24", &[]);
        let wanted = match (engine, taken) {
            (Engine::Fq | Engine::Qdisc, "ifb") | (Engine::Hold, "up" | "down") => 73,
            _ => 0,
        };
        println!("    {name} is taken: {} {}", said.code, said.err.trim());
        said.expect(wanted);
        if wanted == 0 {
            lab.detach();
        }
        assert_same(&name, &before, &lab.snapshot());
        wait_until("no holder is left", SOON, || holders(&lab).is_empty());
        lab.in_a(&format!("ip link del {name}"));
    }
}

/// The interface is deleted while emud is attached: nothing of emud remains.
pub fn device_deleted(engine: Engine) {
    let lab = Lab::new();
    lab.attach(engine, "adsl24", &[]);
    lab.in_a("ip link del va");
    wait_until("the holder ends", SOON, || holders(&lab).is_empty());
    let left = || lab.in_a("ip link show").contains("emud-");
    if engine.is_stamped() {
        // There is no process to delete the ifb: the next attach does.
        assert!(left());
        lab.in_a("ip link add other type veth peer name beyond; ip link set other up");
        let other = ["attach", "other", "-p", "adsl24", "--engine", "fq"];
        let said = lab
            .emud(&[&other[..], &["--direction", "up"]].concat())
            .expect(0);
        assert!(
            said.out.contains("which a deleted device left behind"),
            "{}",
            said.out
        );
        lab.emud(&["detach", "other"]).expect(0);
    }
    wait_until("no device is left", SOON, || !left());
    assert_eq!(lab.emud(&["list"]).expect(0).out, "");
    lab.emud(&["detach", "va"]).expect(66);
}

/// Its whole namespace is deleted. The last processes in it are those of emud, which must not wait for each other.
pub fn namespace_deleted(engine: Engine) {
    let lab = Lab::new();
    let pid = std::process::id().to_string();
    lab.attach(engine, "adsl24", &["--while-pid", &pid]);
    let mut pids = holders(&lab);
    assert_eq!(pids.is_empty(), engine.is_stamped());
    let renewers = emuds(&lab, "renew");
    assert_eq!(renewers.len(), 1);
    pids.extend(renewers);
    // Without the other end of the wire, va would end, too, and they with it.
    sh(&format!("ip netns del {}", lab.a));
    wait_until("its processes end", SOON, || {
        let alive = |pid: &String| {
            std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|c| !c.is_empty())
        };
        !pids.iter().any(alive)
    });
}

/// The names with which emud once locked interfaces can be taken by any process.
const TAKE_NAMES: &str = "\
import socket
taken = []
for n in range(1, 65):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(f'\\0emud/{n}')
    taken.append(s)
";

/// No other user can keep root from attaching, changing and detaching.
pub fn hostile_user(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let _nobody = inside(&lab.a, || Nobody::does(TAKE_NAMES)).join().unwrap();
    lab.attach(engine, "adsl24", &[]);
    lab.emud(&["set", "va", "delay=30ms"]).expect(0);
    lab.detach();
    assert_same("detached", &before, &lab.snapshot());
    for file in ["", "/interface", "/network", "/forwarding"] {
        let path = format!("/dev/emud{file}");
        let open = format!("open('{path}') if '{file}' else __import__('os').listdir('{path}')");
        let said = run(nobody::command("python3").args(["-c", &open]));
        assert!(said.err.contains("Permission"), "{path}: {}", said.err);
    }
}

/// A container has its own /run, and the same interface for everybody who can change it.
pub fn own_run(engine: Engine) {
    let lab = Lab::new();
    let changed_here = inside(&lab.a, || {
        let va = Netlink::open().unwrap().link("va").unwrap().index;
        interface::lock(va, Duration::from_secs(10)).unwrap()
    });
    let changed_here = changed_here.join().unwrap();
    let there = || {
        run(Command::new("ip")
            .args(["netns", "exec", &lab.a, "unshare", "--mount", "sh", "-c"])
            .arg("mount -t tmpfs none /run && exec \"$@\"")
            .arg("sh")
            .arg(emud_path())
            .args(["attach", "va", "-p", "adsl24", "--engine", engine.name()]))
    };
    let said = there().expect(75);
    assert!(said.err.contains("another emud process"), "{}", said.err);
    drop(changed_here);
    there().expect(0);
    lab.detach();
}

fn in_foreground(lab: &Lab, engine: Engine) -> std::process::Child {
    let emud = Command::new(emud_path())
        .args(["--netns", &lab.a, "attach", "va", "-p", "adsl24"])
        .args(["--foreground", "--engine", engine.name()])
        .stdout(Stdio::null())
        .spawn()
        .expect("start emud");
    wait_until("attached", SOON, || lab.emud(&["show", "va"]).code == 0);
    emud
}

/// At its end `--foreground` detaches even if another emud process takes long.
pub fn foreground_waits(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let mut emud = in_foreground(&lab, engine);
    let other = inside(&lab.a, || {
        let va = Netlink::open().unwrap().link("va").unwrap().index;
        interface::lock(va, Duration::from_secs(10)).unwrap()
    });
    let other = other.join().unwrap();
    sh(&format!("kill -INT {}", emud.id()));
    thread::sleep(Duration::from_millis(3500));
    assert!(emud.try_wait().expect("its state").is_none(), "it gave up");
    drop(other);
    assert!(emud.wait().expect("its end").success());
    assert_same("Ctrl-C", &before, &lab.snapshot());
}

/// `--foreground` ends with SIGTERM, and detaches.
pub fn foreground(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    for signal in ["TERM", "INT"] {
        let mut emud = in_foreground(&lab, engine);
        lab.ping("-q -c 3 -i 0.01");
        sh(&format!("kill -{signal} {}", emud.id()));
        assert!(emud.wait().expect("its end").success());
        assert_same(signal, &before, &lab.snapshot());
    }
}

/// The link is on the interface, whatever its name is by the end; its name may be that of another.
pub fn foreground_renamed(engine: Engine) {
    let lab = Lab::new();
    lab.in_a("ip link add other type veth peer name its-peer");
    let rename = |from: &str, to: &str| {
        lab.in_a(&format!(
            "ip link set {from} down; ip link set {from} name {to}"
        ));
    };
    let before = lab.snapshot();
    for swapped in [false, true] {
        let mut emud = in_foreground(&lab, engine);
        rename("va", "vx");
        if swapped {
            rename("other", "va");
            lab.attach(engine, "[link]\ndelay = \"1ms\"\n", &[]);
        }
        sh(&format!("kill -INT {}", emud.id()));
        assert!(emud.wait().expect("its end").success());
        if swapped {
            // Fails without a link.
            lab.detach();
            rename("va", "other");
        }
        rename("vx", "va");
        lab.in_a("ip link set va up");
        wait_until("up", SOON, || {
            lab.in_a("ip link show va").contains("state UP")
        });
        let what = format!("renamed, swapped: {swapped}");
        assert_same(&what, &before, &lab.snapshot());
    }
}

/// The link that it attached is gone, and another one is there: Ctrl-C leaves that alone. A holder ends with its
/// link, so with engine hold this shows little.
pub fn foreground_replaced(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let mut emud = in_foreground(&lab, engine);
    lab.detach();
    lab.attach(engine, "[link]\ndelay = \"1ms\"\n", &[]);
    sh(&format!("kill -INT {}", emud.id()));
    assert!(emud.wait().expect("its end").success());
    // Fails without a link.
    lab.detach();
    assert_same("replaced", &before, &lab.snapshot());
}
