// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks of several nodes.

use std::fs;
use std::os::unix::process::CommandExt;

use emud::experiment::lab::this_network;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::host::ip;
use support::runs::{Folder, Ran, rtt_ms};
use support::{full, guest};

/// Whether durations are judged: in the full run, on this machine's own clock.
fn timed() -> bool {
    full() && !guest()
}

/// From the start to the measured phase, s. Required: 5.
fn prepared(ran: &Ran) -> f64 {
    (ran.phase("measurement") - ran.phase("preparation")) as f64 / 1e9
}

/// Eleven routers, 100 Mbit/s and 1 ms each way at each of twelve hops.
pub fn chain() {
    let folder = Folder::new();
    let ping = ["ping", "-n", "-q", "-c", "20", "-i", "0.05", "server"];
    let ran = folder.run("--scenario chain", &ping).done();
    println!("    a chain of 11 routers: {:.2} s", prepared(&ran));
    assert!(!timed() || prepared(&ran) < 5.0);
    let [min, avg, ..] = rtt_ms(&ran.out);
    // 24 crossings; engine hold adds some 60 us to each.
    assert!(min >= 24.0 && (!timed() || avg < 29.0), "{}", ran.out);
}

/// 32 peers in two classes, by address, and others that are not touched.
pub fn star() {
    let folder = Folder::new();
    let ran = folder.run("--scenario star --seed 3", &[]).done();
    println!("    a star of 32 peers: {:.2} s", prepared(&ran));
    assert!(!timed() || prepared(&ran) < 5.0);
    let run = ran.one("run");
    let classes: Vec<&str> = run["links"][0]["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["name"].as_str().unwrap())
        .collect();
    assert_eq!(classes, ["landline", "mobile"]);
    let mean = |class: &str, direction: &str| {
        let samples = ran
            .of("sample")
            .filter(|line| line["class"] == *class && line["direction"] == *direction);
        let delays = samples.filter_map(|line| {
            Some((
                line["delay"]["mean_ns"].as_f64()?,
                line["passed_packets"].as_f64()?,
            ))
        });
        let (sum, packets) = delays.fold((0.0, 0.0), |(sum, all), (mean, n)| {
            (sum + mean * n, all + n)
        });
        assert!(packets > 50.0, "{class}, {direction}: {packets} packets");
        sum / packets / 1e6
    };
    for direction in ["up", "down"] {
        // In order, so a mean over a few seconds wanders: 50 and 13 ms are half-widths.
        assert!((170.0..230.0).contains(&mean("mobile", direction)));
        assert!((12.0..28.0).contains(&mean("landline", direction)));
    }
}

/// Of the networks that the host and other runs leave.
pub fn the_wire_to_the_host_meets_no_other() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        "[node.a]\noutside = true\ncommand = \"ip -o address show outside; ping -qc 1 $EMUD_HOST\"\n\
         [node.b]\n[link.w]\nbetween = [\"a\", \"b\"]\n",
    );
    let run = || folder.run(&format!("--scenario {scenario}"), &[]);
    let has = |network: &str| {
        let ran = run().done();
        assert!(ran.out.contains(network), "{}", ran.out);
        ran.err.contains("the default addresses are in use")
    };
    assert!(!has("10.77.0.6/30"));
    ip("link add lan type veth peer name far");
    ip("address add 10.77.0.200/24 dev lan");
    assert!(has("10.77.1.2/30"));
    let network = "10.77.1.0/30".parse().unwrap();
    let of_another_run = this_network(network).unwrap();
    assert!(has("10.77.1.6/30"));
    assert!(this_network(network).is_err());
    drop(of_another_run);
    assert!(has("10.77.1.2/30"));
    ip("link set lan up");
    ip("route add 10.64.0.0/12 dev lan");
    let ran = run().expect(65);
    assert!(ran.err.contains("uses 10.64.0.0/12"), "{}", ran.err);
    assert!(
        this_network(network)
            .unwrap_err()
            .to_string()
            .contains("10.64.0.0/12")
    );
    ip("link delete lan");
}

/// More nodes than a shell's limit of open files and the kernel's table of neighbours have room for.
pub fn large() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        "ready-within = \"60s\"\n[topology]\nkind = \"tandem\"\nnodes = 131\n\
         [node.n2]\ncommand = \"ulimit -n; ping -qc 1 n1; ping -qc 1 n3; cat /proc/net/arp\"\n",
    );
    let mut emud = folder.command(&format!("--scenario {scenario}"), &[]);
    let limit = getrlimit(Resource::Nofile);
    let few = move || {
        let limit = Rlimit {
            current: Some(200),
            ..limit
        };
        Ok(setrlimit(Resource::Nofile, limit)?)
    };
    // SAFETY: a system call only.
    unsafe { emud.pre_exec(few) };
    let ran = folder.ran(&emud.output().unwrap()).done();
    assert!(ran.out.starts_with("n2| 200\n"), "{}", ran.out);
    // ATF_COM and ATF_PERM.
    assert_eq!(ran.out.matches(" 0x6 ").count(), 2, "{}", ran.out);
}

pub fn order_and_artefacts() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        r#"
        [node.a]
        prepare = ["echo prepared"]
        command = "echo kept > kept.txt"
        start = "200ms"
        artefacts = ["kept.txt", "missing*"]
        clean-up = ["echo cleaned"]
        [node.b]
        command = ["true"]
        waits-for = ["a"]
        [node.c]
        command = "trap 'echo ended; exit' TERM; echo up; while :; do sleep 0.05; done"
        service = true
        waits-for = ["d"]
        [node.d]
        command = "sleep 0.2; echo first > ready; exec sleep 99"
        service = true
        ready = "test -f ready"
        [link.u]
        between = ["c", "d"]
        [link.w]
        between = ["a", "b"]
        [link.v]
        between = ["b", "c"]
        profile.link.delay = "1ms"
        "#,
    );
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(0);
    let exit = |node: &str| {
        let mut exits = ran.of("exit");
        let own =
            |line: &&serde_json::Value| line["node"] == *node && line["phase"] == "measurement";
        exits.find(own).unwrap()
    };
    let started = |node: &str| exit(node)["started_mono_ns"].as_u64().unwrap();
    let service = |node: &str| {
        ran.of("exit")
            .find(|line| {
                line["command"][2]
                    .as_str()
                    .is_some_and(|text| text.contains(node))
            })
            .unwrap()
    };
    // A service that waits for another one; both end with the run, at once.
    let [c, d] = ["trap", "first"].map(|text| service(text)["started_mono_ns"].as_u64().unwrap());
    assert!(c > d + 200_000_000, "{c}, {d}");
    let lasted = at_end(&ran) - ran.phase("clean-up");
    assert!(!timed() || lasted < 2_000_000_000, "{lasted}");
    assert!(started("b") >= exit("a")["mono_ns"].as_u64().unwrap());
    let output = |text: &str| {
        let line = ran.of("output").find(|line| line["text"] == *text);
        line.unwrap_or_else(|| panic!("no {text}"))["mono_ns"]
            .as_u64()
            .unwrap()
    };
    let [measurement, clean_up] = ["measurement", "clean-up"].map(|phase| ran.phase(phase));
    assert!(output("prepared") < measurement);
    assert!(!timed() || output("up") < measurement + 50_000_000);
    assert!(output("ended") > measurement && output("cleaned") > clean_up);
    let waited = started("a") - measurement;
    assert!(waited >= 200_000_000, "{waited}");
    assert!(!timed() || waited < 400_000_000, "{waited}");
    let kept = folder.0.join("run.log.artefacts/a/kept.txt");
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept\n");
    assert_eq!(ran.of("artefact").count(), 2);
    assert!(ran.err.contains("missing*: no file matches"), "{}", ran.err);
    // Each line on the terminal begins with its node.
    assert!(
        ran.out.lines().any(|line| line == "a| prepared"),
        "{}",
        ran.out
    );
}

pub fn failures_are_told() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        "[node.a]\ncommand = \"sleep 0.5\"\nclean-up = [\"exit 5\"]\n\
         [node.b]\nservice = true\ncommand = \"sleep 0.2; exit 6\"\n\
         [link.w]\nbetween = [\"a\", \"b\"]\n",
    );
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(4);
    assert!(ran.err.contains("ended with exit code 6"), "{}", ran.err);
    assert!(ran.err.contains("ended with exit code 5"), "{}", ran.err);
    // Their output has no end until long after the run, or until the end of their nodes.
    let scenario = folder.file(
        "s.toml",
        "[node.a]\ncommand = \"sleep 99 & sleep 0.5\"\n[node.b]\nservice = true\n\
         command = \"while sleep 0.1; do echo on; done & sleep 0.3; exit 6\"\n\
         [link.w]\nbetween = [\"a\", \"b\"]\n",
    );
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(4);
    assert!(ran.err.contains("ended with exit code 6"), "{}", ran.err);
    let scenario = folder.file(
        "s.toml",
        "measure = \"300ms\"\n[node.a]\ncommand = \"true\"\nwaits-for = [\"b\"]\n\
         [node.b]\ncommand = \"sleep 99\"\n[link.w]\nbetween = [\"a\", \"b\"]\n",
    );
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(4);
    let said = "a: the program was not started before the measured phase ended";
    assert!(ran.err.contains(said), "{}", ran.err);
    let scenario = folder.file(
        "s.toml",
        "[node.a]\ncommand = \"true\"\n[node.b]\ncommand = \"exit 8\"\n[link.w]\nbetween = [\"a\", \"b\"]\n",
    );
    folder.run(&format!("--scenario {scenario}"), &[]).expect(8);
    let long = folder.file("l.toml", "measure = \"300ms\"\n[node.a]\ncommand = \"sleep 99\"\n[node.b]\n[link.w]\nbetween = [\"a\", \"b\"]\n");
    let ran = folder.run(&format!("--scenario {long}"), &[]).expect(0);
    assert_eq!(ran.one("exit")["ended_by_emud"], true);
}

/// Neither a hanging command nor one that ignores SIGTERM prevents the others from running.
pub fn a_clean_up_has_an_end() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        "clean-up-within = \"500ms\"\n\
         [node.a]\ncommand = \"true\"\nclean-up = [\"echo last\", \"trap '' TERM; while :; do sleep 1; done\", \"sleep 1000\"]\n\
         [node.b]\nclean-up = \"echo other\"\n[link.w]\nbetween = [\"a\", \"b\"]\n",
    );
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(0);
    let said = "a: `sleep 1000` of the clean-up went on for 0.5 s and was ended";
    assert!(ran.err.contains(said), "{}", ran.err);
    let lasted = at_end(&ran) - ran.phase("clean-up");
    assert!(lasted < 60_000_000_000, "{lasted}");
    // In reverse order.
    let said: Vec<&str> = ran
        .out
        .lines()
        .filter(|line| line.starts_with(['a', 'b']))
        .collect();
    assert_eq!(said, ["b| other", "a| last"], "{}", ran.out);
    let signals: Vec<&serde_json::Value> = (ran.of("exit"))
        .filter(|line| line["ended_by_emud"] == true)
        .map(|line| &line["signal"])
        .collect();
    assert_eq!(signals, [15, 9]);
}

fn at_end(ran: &Ran) -> u64 {
    ran.one("end")["mono_ns"].as_u64().unwrap()
}
