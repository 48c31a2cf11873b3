// SPDX-License-Identifier: MIT OR Apache-2.0
//! Containers: found by an API and by control groups, entered, listed, watched. The API is recorded;
//! `tests/containers.sh` runs real ones of Docker, Podman and containerd.

mod engine;

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use libtest_mimic::Trial;
use serde_json::json;
use support::lab::{self, Lab, run, wait_until};
use support::{named, trial};

use crate::link::names::Resolvers;
use engine::{Engine, Process, new_id};

const SOON: Duration = Duration::from_secs(30);

pub fn tests() -> Vec<Trial> {
    named![fn();
        Here:
            by::name,
            by::mistakes,
            by::resolvers,
            everywhere::detached,
            everywhere::in_metrics,
            watched::restarted,
            watched::ended;
        Full:
            by::digits,
            everywhere::listed;
    ]
    .map(|(when, name, test)| trial::test(when, format!("container::{name}"), test))
    .into()
}

mod by {
    use super::*;

    /// The interface is an argument, after the colon, or the only one.
    pub fn name() {
        let (lab, engine) = (Lab::new(), Engine::new());
        let process = Process::start(&lab.a);
        let id = engine.add("web", Some(&process), &json!({}));
        let before = lab.snapshot();
        let attach = [
            "attach",
            "--container",
            "web",
            "-p",
            "lte",
            "--engine",
            "hold",
        ];
        assert!(engine.emud(&attach).expect(0).out.starts_with("va: lte"));
        engine
            .emud(&["set", "--container", "web", "loss=2%"])
            .expect(0);
        engine
            .emud(&["set", "--container", "web:va", "down.delay=3ms"])
            .expect(0);
        engine
            .emud(&["set", "--container", "web", "va", "up.delay=4ms"])
            .expect(0);
        let shown = lab.show();
        assert_eq!(shown["up"]["loss"], 0.02);
        let delays = ["down", "up"].map(|d| shown[d]["delay"]["mean_ns"].as_u64().unwrap());
        assert_eq!(delays, [3_000_000, 4_000_000]);
        let shown = engine
            .emud(&["--container", &id[..16], "show", "va"])
            .expect(0);
        assert!(shown.out.starts_with("va: lte"), "{}", shown.out);
        assert_eq!(
            engine
                .emud(&["list", "--container", "web"])
                .expect(0)
                .out
                .lines()
                .count(),
            1
        );
        engine.emud(&["detach", "--container", "web:va"]).expect(0);
        assert_eq!(before, lab.snapshot());
    }

    /// By the control group of a process, as of containerd and CRI-O, without an engine.
    pub fn digits() {
        let lab = Lab::new();
        let process = Process::start(&lab.a);
        let id = new_id();
        let _group = Group::new(&format!("cri-containerd-{id}.scope"), process);
        let emud = |name: &str, args: &[&str]| {
            let mut command = Command::new(lab::emud_path());
            command
                .env_remove("DOCKER_HOST")
                .env_remove("CONTAINER_HOST");
            run(command.args(["--container", name]).args(args))
        };
        let attached = emud(&id[..20], &["attach", "-p", "lte", "--engine", "hold"]).expect(0);
        assert!(attached.out.starts_with("va: lte"), "{}", attached.out);
        emud(&id, &["detach"]).expect(0);
        // Shorter ones could be names.
        let short = emud(&id[..7], &["list"]);
        assert!([66, 69].contains(&short.code), "{}", short.err);
    }

    /// Those in the container's file, below its root, and a note if it names none in the network.
    pub fn resolvers() {
        let in_network = Ipv4Addr::new(10, 77, 0, 2);
        for (address, is_learned) in [(in_network, true), (Ipv4Addr::new(127, 0, 0, 11), false)] {
            let lab = Lab::new();
            let _resolvers = Resolvers::of(&lab.a, address);
            let process = Process::start(&lab.a);
            let comm = format!("/proc/{}/comm", process.id());
            let id = new_id();
            let _group = Group::new(&format!("cri-containerd-{id}.scope"), process);
            let profile = lab
                .profile("[[rule]]\nmatch = { answer = \"api.example.org\" }\nlink = \"none\"\n");
            let mut attach = Command::new(lab::emud_path());
            attach.args([
                "--container",
                &id,
                "attach",
                "--engine",
                "hold",
                "-p",
                &profile,
            ]);
            // Until ip has mounted the file and become the program.
            wait_until("the program", SOON, || {
                fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n")
            });
            let said = run(&mut attach).expect(0).out;
            let noted = said.contains("names no resolver in the network");
            assert_eq!(noted, !is_learned, "{said}");
            let shown = lab.emud(&["show", "va"]).expect(0).out;
            assert_eq!(shown.contains("10.77.0.2"), is_learned, "{shown}");
            lab.detach();
        }
    }

    pub fn mistakes() {
        let (lab, engine) = (Lab::new(), Engine::new());
        let process = Process::start(&lab.a);
        let here = Process::here();
        engine.add("web", Some(&process), &json!({}));
        engine.add("stopped", None, &json!({}));
        engine.add("host", Some(&here), &json!({}));
        let fails = |args: &[&str], code: i32, what: &str| {
            let said = engine.emud(args).expect(code);
            assert!(said.err.contains(what), "{args:?}: {}", said.err);
        };
        fails(&["list", "--container", "nosuch"], 66, "has none");
        fails(
            &["list", "--container", "stopped"],
            66,
            "not running (it is exited)",
        );
        fails(&["list", "--container", "host"], 64, "network of this host");
        // A sandbox may hide process 1.
        let network = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        if network("1") == network("self") {
            let mut ip = Command::new("ip");
            ip.args(["netns", "exec", &lab.a]).arg(lab::emud_path());
            let socket = format!("unix://{}", engine.socket.display());
            let said = run(ip
                .args(["list", "--container", "host"])
                .env("DOCKER_HOST", socket));
            assert!(said.expect(64).err.contains("network of this host"));
        }
        fails(
            &["list", "--container", "../x"],
            64,
            "neither a name nor an ID",
        );
        fails(&["list", "--container", "web:va"], 64, "remove \":va\"");
        fails(
            &["list", "--container", "web", "--netns", "1"],
            64,
            "either",
        );
        fails(
            &["show", "vb", "--container", "web:va"],
            64,
            "two interfaces",
        );
        fails(&["set", "--container", "web:va"], 64, "required");
        fails(&["detach"], 64, "IFACE");
        lab.in_a("ip link add other type veth peer name its-peer; ip link set other up");
        fails(
            &["detach", "--container", "web"],
            64,
            "several interfaces: va other",
        );

        let second = Engine::new();
        second.add("web", Some(&process), &json!({}));
        let both = format!("unix://{}", second.socket.display());
        let said =
            run(engine
                .command()
                .env("CONTAINER_HOST", both)
                .args(["list", "--container", "web"]));
        assert!(
            said.expect(64)
                .err
                .contains("several containers match web: web of podman")
        );
        drop(second);
        let gone = Engine::new();
        let _ = fs::remove_file(&gone.socket);
        let said = gone.emud(&["list", "--container", "emud-nosuch"]);
        // This machine may have an engine.
        assert!([66, 69].contains(&said.code), "{}", said.err);
    }
}

mod everywhere {
    use super::*;

    pub fn listed() {
        let (lab, engine) = (Lab::new(), Engine::new());
        let process = Process::start(&lab.a);
        engine.add("broken", Some(&process), &json!({}));
        let id = engine.add("emud-test-web", Some(&process), &json!({}));
        lab.emud(&["attach", "va", "-p", "lte", "--engine", "hold"])
            .expect(0);
        run(Command::new(lab::emud_path()).args([
            "--netns", &lab.b, "attach", "vb", "-p", "dsl", "--engine", "hold",
        ]))
        .expect(0);
        let said = engine.emud(&["list", "--all"]).expect(0);
        assert!(said.err.contains("status 500"), "{}", said.err);
        let listed = said.out;
        let other = format!("netns {}\tvb\tdsl\tboth\tengine hold", lab.b);
        for line in [
            "container emud-test-web\tva\tlte\tboth\tengine hold",
            &other,
        ] {
            assert!(listed.lines().any(|l| l == line), "{line} in {listed}");
        }
        let json = engine.emud(&["list", "--all", "--json"]).expect(0).json();
        let all = json["interfaces"].as_array().unwrap();
        let ours = all
            .iter()
            .find(|l| l["namespace"]["containers"][0]["id"] == *id);
        let ours = ours.unwrap_or_else(|| panic!("{json}"));
        assert_eq!(ours["namespace"]["names"], json!([lab.a]));
        assert_eq!(ours["namespace"]["pid"], process.id());
        assert_eq!(ours["interface"], "va");
    }

    /// The name is a label of every figure of the link, and none of links elsewhere.
    pub fn in_metrics() {
        let (lab, engine) = (Lab::new(), Engine::new());
        let process = Process::start(&lab.a);
        engine.add("emud-test-web", Some(&process), &json!({}));
        lab.emud(&["attach", "va", "-p", "lte", "--engine", "hold"])
            .expect(0);
        let text = engine.emud(&["metrics"]).expect(0).out;
        let labels = format!(
            "{{netns=\"{}\",container=\"emud-test-web\",interface=\"va\"",
            lab.a
        );
        for family in ["emud_link_info", "emud_link_up", "emud_holder_up"] {
            assert!(text.contains(&format!("{family}{labels}")), "{text}");
        }
        let shown = engine.emud(&["top", "--json", "--count", "1"]).expect(0);
        let rows = shown.json()["rows"].clone();
        let own = (rows.as_array().unwrap().iter()).find(|row| row["netns"] == lab.a.as_str());
        assert_eq!(own.unwrap()["container"], "emud-test-web");
        // Another link has none.
        run(Command::new(lab::emud_path()).args([
            "--netns", &lab.b, "attach", "vb", "-p", "dsl", "--engine", "hold",
        ]))
        .expect(0);
        let text = engine.emud(&["metrics"]).expect(0).out;
        let other = format!("emud_link_info{{netns=\"{}\",interface=\"vb\"", lab.b);
        assert!(text.contains(&other), "{text}");
    }

    /// In process and mount namespaces of the test: other tests have links, too. Of the link in c, all that leads to
    /// it is deleted.
    pub fn detached() {
        let emud = lab::emud_path();
        let lab = Lab::new();
        lab.emud(&["attach", "va", "-p", "lte", "--engine", "hold"])
            .expect(0);
        let elsewhere = fs::metadata(format!("/run/netns/{}", lab.a)).unwrap();
        let script = format!(
            "mount -t tmpfs tmpfs /run
             for n in a b c; do ip netns add $n; ip -n $n link add v0 type veth peer name v1; done
             ip link add w0 type veth peer name w1
             {emud} attach w0 -p lte --engine hold >/dev/null
             for n in a b c; do {emud} --netns $n attach v0 -p lte --engine hold >/dev/null; done
             ip netns exec b tc qdisc del dev v0 clsact
             ip netns exec c tc qdisc del dev v0 clsact
             for d in $(ip -n c -o link | grep -o 'emud-[^:@]*'); do ip -n c link del $d 2>/dev/null || true; done
             {emud} --netns c list --json | grep -o 'every part[^\"]*'
             {emud} list --all 2>/dev/null | cut -f 1,2,3
             ip -n b link set v0 down
             ip -n b link set v0 name \"$(printf 'v\\377')\"
             {emud} detach --all >/run/said 2>/run/failed || echo code $?
             grep 'detached, ' /run/said
             grep -o \"network namespace {elsewhere} cannot be reached\" /run/failed
             {emud} list --all 2>/dev/null
             for n in a b c; do ip -n $n -o link | wc -l; done",
            emud = emud.display(),
            elsewhere = elsewhere.ino(),
        );
        let all = [
            "--net",
            "--pid",
            "--fork",
            "--mount",
            "--mount-proc",
            "--kill-child",
        ];
        let said = run(Command::new("unshare")
            .args(all)
            .args(["sh", "-ec", &script]))
        .expect(0);
        let restored = "detached, previous state restored";
        let listed = [
            "every part of the link was deleted",
            "here\tw0\tlte",
            "netns a\tv0\tlte",
            "netns b\tv0\tlte",
            "netns c\tv0\t",
        ];
        // That of the laboratory stays, and of other tests.
        let mut expected: Vec<String> = listed
            .into_iter()
            .chain(["code 71"])
            .map(str::to_owned)
            .collect();
        expected.extend(
            [
                "here: w0",
                "netns a: v0",
                "netns b: v\u{fffd}",
                "netns c: v0",
            ]
            .map(|at| format!("{at}: {restored}")),
        );
        let lost = format!("network namespace {} cannot be reached", elsewhere.ino());
        expected.push(lost);
        expected.extend(["3", "3", "3"].map(str::to_owned));
        assert_eq!(
            said.out.lines().collect::<Vec<_>>(),
            expected,
            "{}",
            said.err
        );
    }
}

mod watched {
    use super::*;

    struct Watch(Child);

    impl Drop for Watch {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// One that runs, one that starts later, one that starts again elsewhere, one with another network; and the end by a
    /// kill.
    pub fn restarted() {
        let (lab, engine) = (Lab::new(), Engine::new());
        let [in_a, in_b] = [&lab.a, &lab.b].map(|space| Process::start(space));
        let labels = json!({"emud.profile": "lte", "emud.engine": "hold", "emud.seed": "7"});
        engine.add("broken", Some(&in_b), &labels);
        engine.add("web", Some(&in_a), &labels);
        engine.add("plain", Some(&in_b), &json!({"app": "x"}));
        let log = format!("{}.log", engine.socket.display());
        let output = fs::File::create(&log).expect("create");
        let mut command = engine.command();
        command
            .arg("watch")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output);
        let watch = Watch(command.spawn().expect("emud watch"));
        let link = |space: &str| {
            let said = run(Command::new(lab::emud_path()).args(["--netns", space, "list"]));
            said.expect(0).out
        };
        let said = |what: &str| {
            let text = fs::read_to_string(&log).expect("read");
            text.matches(what).count()
        };
        wait_until("the running one", SOON, || {
            link(&lab.a).contains("va\tlte\tboth")
        });
        assert_eq!(lab.show()["seed"], 7);
        wait_until("a watch", SOON, || engine.is_watched());
        let shadow = json!({"emud.profile": "/etc/shadow"});
        engine.add("spy", Some(&in_b), &shadow);
        wait_until("rejected", SOON, || {
            said("is not the name of a profile") == 1
        });
        assert_eq!(link(&lab.b), "");
        // The same container with another process, in another namespace.
        let web = engine.add("web", Some(&in_b), &labels);
        wait_until("restarted", SOON, || link(&lab.b).contains("vb\tlte\tboth"));
        wait_until("reported", SOON, || said("seed 7") == 2);
        // The same process with another network.
        engine.network("disconnect", &web);
        let mut detach = Command::new(lab::emud_path());
        run(detach.args(["--netns", &lab.b, "detach", "vb"])).expect(0);
        engine.network("connect", &web);
        wait_until("connected", SOON, || said("seed 7") == 3);
        // All from one stream of events.
        let text = fs::read_to_string(&log).expect("read");
        let socket = engine.socket.display().to_string();
        let again = |line: &&str| line.contains(&socket) && line.contains("trying again");
        assert_eq!(text.lines().find(again), None);
        // As SIGKILL: nothing of emud watch can clean up.
        drop(watch);
        wait_until("ended", SOON, || {
            link(&lab.a).is_empty() && link(&lab.b).is_empty()
        });
        let _ = fs::remove_file(&log);
    }

    /// A link with a time to end begins with the container, not with each watch; an error is printed once.
    pub fn ended() {
        let (lab, engine) = (Lab::new(), Engine::new());
        let spaces = [&lab.a, &lab.a, &lab.b];
        let [first, second, other] = spaces.map(|space| Process::start(space));
        let mut labels = json!({"emud.profile": "lte", "emud.engine": "hold"});
        engine.add("other", Some(&other), &labels);
        labels["emud.for"] = json!("2s");
        engine.add("web", Some(&first), &labels);
        run(Command::new(lab::emud_path()).args([
            "--netns", &lab.b, "attach", "vb", "-p", "dsl", "--engine", "hold",
        ]))
        .expect(0);
        let log = format!("{}.log", engine.socket.display());
        let watch = || {
            let mut command = engine.command();
            command.arg("watch").stdin(Stdio::null());
            let output = fs::File::options().append(true).create(true).open(&log);
            command.stdout(Stdio::null()).stderr(output.expect("open"));
            Watch(command.spawn().expect("emud watch"))
        };
        let said = |what: &str| {
            let text = fs::read_to_string(&log).unwrap_or_default();
            text.matches(what).count()
        };
        let has_ended = || lab.emud(&["list"]).expect(0).out.contains("ENDED");
        let before = watch();
        wait_until("attached", SOON, || said("emud: web: va: seed") == 1);
        // Every 2 s it tries again.
        wait_until("rejected", SOON, || said("already has the link") == 1);
        std::thread::sleep(Duration::from_secs(5));
        assert_eq!(said("already has the link"), 1);
        wait_until("ended", SOON, has_ended);
        drop(before);
        let _watch = watch();
        wait_until("noticed", SOON, || said("its link has ended") == 1);
        assert!(has_ended() && said("emud: web: va: seed") == 1);
        engine.add("web", Some(&second), &labels);
        wait_until("again", SOON, || said("emud: web: va: seed") == 2);
        let _ = fs::remove_file(&log);
    }
}

/// A control group with a process.
struct Group(String, Option<Process>);

impl Group {
    fn new(name: &str, process: Process) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
        let unified = (mounts.lines()).find(|line| line.contains(" - cgroup2 "));
        let mount = unified
            .and_then(|line| line.split(' ').nth(4))
            .expect("cgroup v2");
        let path = format!("{mount}/{name}");
        fs::create_dir(&path).expect("make a control group");
        let pid = process.id().to_string();
        fs::write(format!("{path}/cgroup.procs"), pid).expect("move the process");
        Self(path, Some(process))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(self.1.take());
        // The kernel empties it soon after the end of the process.
        let _ = (0..500).find(|_| {
            std::thread::sleep(Duration::from_millis(10));
            fs::remove_dir(&self.0).is_ok()
        });
    }
}
