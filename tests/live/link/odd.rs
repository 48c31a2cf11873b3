// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unusual environments: users without rights, rare indexes and names, a device of emud devices as
//! targets.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use support::lab::{Engine, Lab, Said, Verdict, emud_path, inside, run, sh, wait_until};
use support::probe::{Arrivals, Probe};
use support::refusal::failing;
use support::site::Scratch;
use support::stats::quantile;
use support::{clock, nobody};

use super::restore::{assert_same, holders};

const SOON: Duration = Duration::from_secs(20);

/// A copy of emud that every user can start.
fn for_everyone(folder: &Scratch) -> String {
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).expect("a mode");
    let path = folder.path("emud");
    fs::copy(emud_path(), &path).expect("a copy of emud");
    path
}

/// A user without permission gets a message that root is needed.
pub fn ordinary_user(engine: Engine) {
    let lab = Lab::new();
    lab.attach(engine, "adsl24", &[]);
    let before = lab.snapshot();
    let folder = Scratch::new();
    let emud = for_everyone(&folder);
    for words in [
        "show va",
        "show va --json",
        "list",
        "set va delay=30ms",
        "detach va",
        "attach va -p adsl24",
        "verify va --peer 10.77.0.2",
    ] {
        let emud = emud.clone();
        let said = inside(&lab.a, move || {
            run(nobody::command(&emud).args(words.split(' ')))
        });
        let said = said.join().expect("emud").expect(77);
        assert!(said.err.contains("root"), "{words}: {}", said.err);
    }
    assert!(!has_a_folder(&lab, emud), "a user's folder in /run");
    assert_same("by an ordinary user", &before, &lab.snapshot());
    lab.detach();
}

/// Whether commands of a user leave a folder in /run, where root needs its, if every user can write
/// to that: so a tmpfs without a mode is.
fn has_a_folder(lab: &Lab, emud: String) -> bool {
    let with_run = move || {
        // SAFETY: this thread alone uses the mounts that it unshares.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }.expect("mounts");
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).expect("private mounts");
        sh("mount -t tmpfs none /run");
        for words in ["list", "attach va -p adsl24", "monitor --duration 100ms"] {
            let said = run(nobody::command(&emud).args(words.split(' ')));
            assert_ne!(said.code, 0, "{words}");
        }
        Path::new("/run/emud").exists()
    };
    inside(&lab.a, with_run).join().expect("emud")
}

/// Root of another user namespace may change its interfaces, but load no BPF.
pub fn user_namespace(engine: Engine) {
    let emud = emud_path();
    let script = format!(
        "ip link add va type veth peer name vb; {} attach va -p adsl24 --engine {}",
        emud.display(),
        engine.name()
    );
    let said = run(Command::new("unshare").args(["-Urn", "sh", "-ec", &script])).expect(77);
    assert!(said.err.contains("root"), "{}", said.err);
    assert!(!said.err.contains("5.18"), "{}", said.err);
    let doctor = format!("{} doctor", emud.display());
    let said = run(Command::new("unshare").args(["-Urn", "sh", "-c", &doctor]));
    assert!(!said.out.contains("5.18"), "{}", said.out);
    assert!(
        said.out.contains("-> run as root of the host"),
        "{}",
        said.out
    );
}

/// emud in a network namespace, after a script has changed the mounts that it sees.
fn with_mounts(lab: &Lab, change: &str, words: &str) -> Said {
    let script = format!("{change} && exec {} {words}", emud_path().display());
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.a]);
    run(command.args(["unshare", "-m", "sh", "-ec", &script]))
}

/// As in a container that is not privileged: nobody may write to /proc/sys.
pub fn settings_for_reading_only(engine: Engine) {
    let lab = Lab::new();
    let before = lab.snapshot();
    let profile = lab.profile("[link]\ndelay = \"5ms\"\n");
    let change = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys";
    let words = format!("attach va --engine {} --profile {profile}", engine.name());
    with_mounts(&lab, change, &words).expect(0);
    // An ifb has too small an MTU for IPv6, and so no settings.
    let of_devices = "for file in /proc/sys/net/ipv6/conf/emud-*/disable_ipv6; do [ ! -e $file ] || cat $file; done";
    let settings = lab.in_a(of_devices);
    assert_eq!(settings.is_empty(), engine != Engine::Hold, "{settings}");
    assert!(settings.lines().all(|line| line == "1"), "{settings}");
    three_replies(&lab);
    lab.detach();
    assert_same("afterwards", &before, &lab.snapshot());
}

/// A kernel with nohz_full rejects membarrier, and without CAP_NET_RAW nothing replaces it: attach is
/// reverted, set is reported, detach is complete.
pub fn without_grace_period(engine: Engine) {
    let lab = Lab::new();
    // As Docker creates it; the first qdisc makes it 1000.
    lab.in_a("ip link set dev va txqueuelen 0");
    let before = lab.snapshot();
    let emud = |words: &[&str]| {
        let mut refuse = failing(&[(libc::SYS_membarrier, libc::EINVAL)]);
        let mut command = Command::new(emud_path());
        // SAFETY: the function makes system calls only.
        unsafe {
            command.pre_exec(move || {
                const CAP_NET_RAW: libc::c_ulong = 13;
                match libc::prctl(libc::PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0) {
                    0 => refuse(),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        run(command.args(["--netns", &lab.a]).args(words))
    };
    let profile = lab.profile("[link]\ndelay = \"5ms\"\n");
    let attach = ["attach", "va", "--engine", engine.name(), "-p", &profile];
    let said = emud(&attach).expect(77);
    assert!(said.err.contains("CAP_NET_RAW"), "{}", said.err);
    assert_same("attach", &before, &lab.snapshot());
    lab.emud(&attach).expect(0);
    let said = emud(&["set", "va", "delay=7ms"]).expect(77);
    assert!(said.err.contains("no longer active"), "{}", said.err);
    let shown = lab.emud(&["show", "va"]).expect(0).out;
    assert!(shown.contains("7ms"), "{shown}");
    emud(&["detach", "va"]).expect(0);
    assert_same("detach", &before, &lab.snapshot());
}

/// A kernel without BTF: what changes packets is refused, not silently left out; a delay works.
pub fn without_type_information(engine: Engine) {
    let lab = Lab::new();
    let profile = |text: &str| lab.profile(text);
    let (corrupts, delays) = (
        profile("up.corrupt = \"1%\"\n"),
        profile("up.delay = \"5ms\"\n"),
    );
    let before = lab.snapshot();
    let emud = |words: &str| with_mounts(&lab, "mount -t tmpfs none /sys/kernel/btf", words);
    let attach = |profile: &str| {
        emud(&format!(
            "attach va --engine {} --profile {profile}",
            engine.name()
        ))
    };
    let said = attach(&corrupts).expect(69);
    assert!(said.err.contains("/sys/kernel/btf/vmlinux"), "{}", said.err);
    assert_same("after the error", &before, &lab.snapshot());
    // The kernel does not take a BPF qdisc without its types.
    if engine == Engine::Qdisc {
        attach(&delays).expect(69);
        return;
    }
    attach(&delays).expect(0);
    let said = emud("set va up.duplicate=1%").expect(69);
    assert!(said.err.contains("/sys/kernel/btf/vmlinux"), "{}", said.err);
    lab.detach();
    assert_same("afterwards", &before, &lab.snapshot());
}

/// Until three replies have arrived: after its last request ping waits for two round trips only. Requests go on until
/// then, so there may be more.
pub fn three_replies(lab: &Lab) {
    let pinged = lab.ping("-c 3 -i 0.01 -w 5");
    let received = (pinged.split(", ")).find_map(|part| part.strip_suffix(" received"));
    assert!(
        received.is_some_and(|n| n.parse::<u32>().unwrap() >= 3),
        "{pinged}"
    );
}

/// The names of emud's devices fit for every index.
pub fn large_index(engine: Engine) {
    for index in [100_000, 1_000_000, i32::MAX] {
        let lab = Lab::empty();
        sh(&format!(
            "ip link add va index {index} netns {a} type veth peer name vb netns {b}
             ip -n {a} addr add {}/24 dev va; ip -n {b} addr add {}/24 dev vb
             ip -n {a} link set va up; ip -n {b} link set vb up",
            Lab::A4,
            Lab::B4,
            a = lab.a,
            b = lab.b
        ));
        lab.wait_for_carrier();
        let before = lab.snapshot();
        lab.attach(engine, "up.delay = \"5ms\"\n", &[]);
        three_replies(&lab);
        assert_eq!(lab.emud(&["show", "va"]).code, 0, "{index}");
        lab.detach();
        assert_same(&index.to_string(), &before, &lab.snapshot());
    }
}

/// Packets of a link wait there: another link would delay them again, and detach would remove it.
pub fn own_device(engine: Engine) {
    let lab = Lab::new();
    lab.attach(engine, "adsl24", &[]);
    let links = lab.in_a("ip -o link show");
    let own: Vec<&str> = links
        .lines()
        .filter_map(|line| line.split(": ").nth(1)?.split('@').next())
        .filter(|name| name.starts_with("emud-"))
        .collect();
    assert!(!own.is_empty(), "{links}");
    for device in own {
        let said = lab.emud(&["attach", device, "-p", "adsl24"]).expect(64);
        assert!(said.err.contains("a device of emud"), "{}", said.err);
    }
    lab.detach();
}

/// A terminal must not execute the name of an interface.
pub fn odd_name(engine: Engine) {
    let lab = Lab::new();
    let name = "v\x1b[31m";
    // Before Linux 6.2 not while it is up.
    sh(&format!(
        "ip -n {0} link set va down
         ip -n {0} link set va name '{name}'",
        lab.a
    ));
    let profile = lab.profile("up.delay = \"5ms\"\n");
    let engine = ["--engine", engine.name()];
    let attach = ["attach", name, "--profile", &profile];
    for (words, code) in [
        (&[&attach[..], &engine].concat()[..], 0),
        (&[&attach[..], &engine].concat(), 73),
        (&["list"], 0),
        (&["show", name], 0),
        (&["detach", name], 0),
        (&["detach", name], 66),
        (&["show", "v\x1b[32m"], 66),
    ] {
        let said = lab.emud(words).expect(code);
        let text = format!("{}{}", said.out, said.err);
        assert!(!text.contains('\x1b'), "{words:?}: {text}");
        assert!(text.is_empty() || text.contains("\\x1b[3"), "{text}");
    }
    // serde_json leaves DEL as it is.
    sh(&format!(
        "ip -n {0} link set '{name}' name 'v\x7f'
         ip -n {0} link set 'v\x7f' up",
        lab.a
    ));
    lab.emud(&[&["attach", "v\x7f", "--profile", &profile][..], &engine].concat())
        .expect(0);
    let listed = lab.emud(&["list", "--json"]).expect(0);
    assert!(listed.out.contains("v\\u007f"), "{}", listed.out);
    assert_eq!(listed.json()["interfaces"][0]["interface"], "v\x7f");
    lab.emud(&["detach", "v\x7f"]).expect(0);
}

/// The kernel's message of an interface with many alternative names is longer than 8 KiB.
pub fn many_names(engine: Engine) {
    let lab = Lab::new();
    let long = "x".repeat(100);
    let add = |n| format!("link property add dev va altname n{n}{long}\n");
    let names: String = (0..100).map(add).collect();
    let folder = Scratch::new();
    let batch = folder.path("names");
    fs::write(&batch, names).expect("a batch");
    sh(&format!("ip -n {} -batch {batch}", lab.a));
    lab.attach(engine, "adsl24", &[]);
    assert!(lab.emud(&["list"]).expect(0).out.starts_with("va\tadsl24"));
    lab.emud(&["detach", &format!("n7{long}")]).expect(0);
}

/// Several emud processes that sweep the same ifbs at the same time do not make each other fail.
pub fn swept_together() {
    let lab = Lab::empty();
    for round in 0..5 {
        for ifindex in 500..530 {
            sh(&format!(
                "ip -n {a} link add emud-ifb-{ifindex} type ifb
                 tc -n {a} qdisc add dev emud-ifb-{ifindex} root handle e3d0: pfifo",
                a = lab.a
            ));
        }
        let emuds: Vec<Child> = (0..6)
            .map(|_| {
                Command::new(emud_path())
                    .args(["--netns", &lab.a, "detach", "nowhere"])
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("emud")
            })
            .collect();
        for emud in emuds {
            let said = emud.wait_with_output().expect("its end");
            let err = String::from_utf8_lossy(&said.stderr);
            assert!(
                err.contains("there is no interface nowhere"),
                "{round}: {err}"
            );
        }
        assert!(!lab.in_a("ip link show").contains("emud-ifb"));
    }
}

/// A namespace without a name exists as long as a process has it open, and so does the link.
pub fn namespace_held_open() {
    let lab = Lab::new();
    lab.attach(Engine::Hold, "adsl24", &[]);
    let open = File::open(format!("/run/netns/{}", lab.a)).expect("the namespace");
    let pids = holders(&lab);
    assert!(!pids.is_empty());
    sh(&format!("ip netns del {}", lab.a));
    let alive = |pid: &String| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| !command.is_empty())
    };
    // It checks every 2 s.
    thread::sleep(Duration::from_secs(5));
    assert!(pids.iter().all(alive), "the holder has ended");
    drop(open);
    wait_until("the holder ends", SOON, || !pids.iter().any(alive));
}

/// The holder reserves memory for rate and delay, attach rejects an impossible link, and the kernel
/// ends the holder last if memory runs out.
pub fn memory() {
    let lab = Lab::new();
    let limits = || -> [u64; 2] {
        let pid = holders(&lab).pop().expect("a holder");
        let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).expect("a score");
        let notes = lab.show()["notes"].to_string();
        // A container may lack the permission, which is reported.
        match notes.contains("CAP_SYS_RESOURCE") {
            true => assert!(fs::write(format!("/proc/{pid}/oom_score_adj"), "-1000").is_err()),
            false => assert_eq!(score.trim(), "-1000"),
        }
        let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("its arguments");
        let arguments = arguments
            .split('\0')
            .skip_while(|word| *word != "--limit-bytes");
        let mut limits = arguments
            .skip(1)
            .map(|word| word.parse().expect("a number"));
        [(); 2].map(|()| limits.next().expect("a limit"))
    };
    let attach = |profile: &str| lab.attach(Engine::Hold, profile, &[]).out;
    attach("up.rate = \"1Gbit\"\nup.delay = \"200ms\"\n");
    assert_eq!(limits(), [256 << 20; 2]);
    // Twice 125 MB/s for 1.5 s: buffers are up to twice as long as frames.
    let said = lab.emud(&["set", "va", "up.delay=1500ms"]).expect(69);
    assert!(said.err.contains("has room for 256"), "{}", said.err);
    lab.emud(&["set", "va", "up.delay=300ms"]).expect(0);
    lab.detach();

    let said = attach("up.rate = \"1Gbit\"\nup.delay = \"1500ms\"\n");
    assert!(!said.contains("are dropped"), "{said}");
    let least = 2 * 125_000_000 * 3 / 2;
    let [up, down] = limits();
    assert!((least..3 * least).contains(&up), "{up}");
    // Before, it could take as much as the other one.
    assert!(down <= 256 << 20, "{down}");
    lab.emud(&["set", "va", "up.delay=1400ms"]).expect(0);
    lab.detach();

    let before = lab.snapshot();
    let never = "up.rate = \"1Tbit\"\nup.delay = \"60min\"\n";
    let said = lab.try_attach(Engine::Hold, never, &[]).expect(69);
    assert!(said.err.contains("has to buffer"), "{}", said.err);
    assert_same("rejected", &before, &lab.snapshot());

    let said = attach("up.delay = \"10s\"\n");
    assert!(said.contains("up: engine hold buffers 256 MiB"), "{said}");
    assert!(said.contains("Mbit/s are dropped"), "{said}");
    lab.detach();
}

/// Two streams of the same CPU. The threads of a probe inherit what their parent has.
fn on_one_cpu(probes: [Probe; 2], second_is_urgent: bool) -> [Arrivals; 2] {
    let urgent = [false, second_is_urgent];
    let threads = probes.into_iter().zip(urgent).map(|(probe, is_urgent)| {
        thread::spawn(move || {
            clock::pin(0);
            if is_urgent {
                clock::real_time(50);
            }
            probe.run()
        })
    });
    let threads: Vec<_> = threads.collect();
    let arrivals = threads
        .into_iter()
        .map(|probe| probe.join().expect("a probe"));
    arrivals.collect::<Vec<_>>().try_into().expect("two")
}

/// With PREEMPT_RT a thread that sends loses its CPU in the classifier to one that sends, too: no packet gets figures
/// of the other one, and each is counted.
pub fn preempting(engine: Engine) {
    const ORDINARY: u32 = 20_000;
    const URGENT: u32 = 5_000;
    let lab = Lab::new();
    let profile = "[up]\ndelay = \"200ms\"\nrate = \"1Gbit\"\n\
                   [links.urgent]\ndelay = \"20ms\"\nrate = \"1Gbit\"\n\
                   [[rule]]\nmatch = { destination-port = 7004 }\nlink = \"urgent\"\n";
    lab.attach(engine, profile, &["--direction", "up"]);
    let ordinary = Probe::new(&lab, ORDINARY, 0);
    let urgent = Probe {
        source_port: 7003,
        port: 7004,
        payload_len: 200,
        count: URGENT,
        interval_ns: 50_000,
        ..ordinary.clone()
    };
    let [ordinary, urgent] = on_one_cpu([ordinary, urgent], true);
    let mut verdict = Verdict::default();
    verdict.same("lost", 0, ordinary.lost(ORDINARY).len());
    verdict.same("urgent: lost", 0, urgent.lost(URGENT).len());
    let least = |arrivals: &Arrivals| quantile(&arrivals.delays_ms(), 0.0);
    let early_ms = engine.early_ms();
    verdict.at_least("least, ms", 200.0 - early_ms, least(&ordinary));
    verdict.at_least("urgent: least, ms", 20.0 - early_ms, least(&urgent));
    let most = quantile(&urgent.delays_ms(), 1.0);
    verdict.at_most("urgent: most, ms", 100.0, most);
    let counted = |key: &str| lab.shown(&format!("{key}/counters/packets"));
    verdict.same("urgent: packets", u64::from(URGENT), counted("/links/0/up"));
    let passed = |why: &str| lab.shown(&format!("/up/counters/passed/{why}"));
    let packets = counted("/up") - passed("neighbour");
    verdict.same("packets", u64::from(ORDINARY), packets);
    verdict.same("without a set of figures", 0, passed("failed"));
    verdict.end();
}

/// The same on one link with a short queue: who was away meanwhile does not find it full.
pub fn preempting_in_a_queue(engine: Engine) {
    const COUNT: u32 = 50_000;
    let lab = Lab::new();
    let profile =
        "[up]\ndelay = \"20ms\"\nrate = \"1Gbit\"\nqueue = { limit = \"50p\", time = \"1ms\" }\n";
    lab.attach(engine, profile, &["--direction", "up"]);
    let first = Probe::new(&lab, COUNT, 0);
    let second = Probe {
        source_port: 7003,
        port: 7004,
        ..first.clone()
    };
    let both = on_one_cpu([first, second], false);
    let mut verdict = Verdict::default();
    for arrivals in both {
        verdict.same("lost", 0, arrivals.lost(COUNT).len());
    }
    let dropped = lab.shown("/up/counters/queue_dropped");
    verdict.same("found a full queue", 0, dropped);
    verdict.end();
}

/// Where engine qdisc cannot be had, attach says why and changes nothing.
pub fn qdisc_unsupported() {
    let lab = Lab::new();
    let before = lab.snapshot();
    let said = lab.try_attach(Engine::Qdisc, "adsl24", &[]).expect(69);
    let why = ["this kernel has no BPF qdiscs", "clang 15"];
    assert!(why.iter().any(|why| said.err.contains(why)), "{}", said.err);
    assert!(said.err.contains("--engine auto"), "{}", said.err);
    assert_same("unsupported", &before, &lab.snapshot());
}
