// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an agent and a controller do after an answer of etcd was lost, or the lease.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::emud_path;
use support::host::{ip, soon};
use support::lab::sh;

use super::clean::ended;
use super::hosts::{HOSTS, Hosts, completed};

/// Passes connections to the member on, except for the first one with a transaction that writes a
/// key: etcd carries it out, and the connection ends without an answer.
const LOSSY: &str = "\
import base64, socket, sys, threading
key = base64.b64encode(sys.argv[1].encode()).rstrip(b'=')[:-1]
lost = threading.Lock()
def serve(near):
    far = socket.create_connection(('192.0.2.101', 2379))
    sent = b''
    def back():
        whole = b''
        while data := far.recv(65536):
            if b'/kv/txn ' in sent and key in sent and lost.acquire(False):
                print('lost', flush=True)
                return near.shutdown(2)
            try: near.send(data)
            except OSError: return
    threading.Thread(target=back, daemon=True).start()
    while data := near.recv(65536):
        sent += data
        far.send(data)
listener = socket.create_server(('192.0.2.101', 2378))
print('ready', flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
";

/// A member whose answer to one transaction is lost.
struct Lossy {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Lossy {
    fn new(hosts: &Hosts, key: &str) -> Self {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &hosts.netns("s")])
            .args(["python3", "-c", LOSSY, key])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut lossy = Self { child, lines };
        assert_eq!(lossy.line(), "ready\n");
        lossy
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Lossy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const LOSSY_URL: &str = "http://192.0.2.101:2378";

/// The agent repeats the request at the next member, which has its key already, or at the same one.
pub fn registers_though_the_answer_is_lost() {
    let mut hosts = Hosts::new(1);
    let member = hosts.urls.clone();
    for urls in [format!("{LOSSY_URL},{member}"), LOSSY_URL.to_owned()] {
        soon("etcd answers", || {
            hosts.emud(&["status"]).contains("no run")
        });
        let mut lossy = Lossy::new(&hosts, "/emud/default/agents/a");
        hosts.urls.clone_from(&urls);
        let since = Instant::now();
        let mut agent = hosts.agent("a", &[]);
        hosts.urls.clone_from(&member);
        assert_eq!(lossy.line(), "lost\n");
        let log = || fs::read_to_string(hosts.folder.path("agent.a")).unwrap();
        soon("a is registered", || {
            assert!(!log().contains("another agent"), "{}", log());
            log().contains("is registered")
        });
        // Its own key is not in its way until the lease has expired.
        println!("    registered after {:?}", since.elapsed());
        assert!(since.elapsed() < Duration::from_secs(5), "{}", log());
        agent.kill().unwrap();
        agent.wait().unwrap();
        soon("its lease has expired", || {
            !hosts.emud(&["status"]).contains("a ")
        });
    }
}

/// As of an agent beside etcd. Alone, such a host needs no other address.
pub fn loopback_address_is_rejected() {
    let mut hosts = Hosts::new(1).agents(&[]);
    hosts.kill("c");
    hosts.agents[2] = hosts.agent("c", &["--address", "127.0.0.1"]);
    soon("c is back", || {
        let log = fs::read_to_string(hosts.folder.path("agent.c"));
        log.unwrap().contains("is registered")
    });
    let node =
        |name: &str, host: &str| format!("[node.{name}]\nhost = \"{host}\"\ncommand = \"true\"\n");
    let link = "[link.l]\nbetween = [\"one\", \"two\"]\nprofile.link.delay = \"5ms\"\n";
    let (code, text) = hosts.run(
        &format!("{}{}{link}", node("one", "a"), node("two", "c")),
        &[],
    );
    assert_eq!(code, 65, "{text}");
    for what in ["c has the address 127.0.0.1", "--address"] {
        assert!(text.contains(what), "no {what}: {text}");
    }
    let (code, text) = hosts.run(&node("one", "c"), &[]);
    completed(code, &text);
}

/// As `prepare` of s-window, t-tree and t-scale.
pub fn prepares_as_root_if_allowed() {
    let text = "[node.one]\nhost = \"a\"\nprepare = \"ip address add 10.1.1.1/32 dev lo\"\ncommand = \"true\"\n";
    let (code, said) = Hosts::new(1).agents(&[]).run(text, &[]);
    assert_eq!(code, 69, "{said}");
    assert!(
        said.contains("it ran as nobody; with `emud agent --allow-root` it runs as root"),
        "{said}"
    );
    let (code, said) = Hosts::new(1).agents(&["--allow-root"]).run(text, &[]);
    completed(code, &said);
}

/// As [`registers_though_the_answer_is_lost`], for the key that excludes other runs.
pub fn runs_though_the_answer_is_lost() {
    let mut hosts = Hosts::new(1).agents(&[]);
    let mut lossy = Lossy::new(&hosts, "/emud/default/claim");
    hosts.urls = format!("{LOSSY_URL},{}", hosts.urls);
    let (code, text) = hosts.run("[node.one]\nhost = \"a\"\ncommand = \"true\"\n", &[]);
    assert_eq!(lossy.line(), "lost\n");
    completed(code, &text);
}

/// Starts a run whose part is being built until the file exists.
fn builds(hosts: &Hosts) -> (Child, String) {
    let gate = hosts.folder.path("gate");
    let text = format!(
        "ready-within = \"60s\"\n[node.one]\nhost = \"a\"\ncommand = \"true\"\n\
         prepare = \"until [ -e {gate} ]; do sleep 0.1; done\"\n"
    );
    let run = hosts.spawn(&text, &["--verdict-first"]);
    soon("a builds", || hosts.emud(&["status"]).contains(" building"));
    (run, gate)
}

/// An agent that was cut off for a moment writes late why it could not build its part of an earlier
/// run.
pub fn a_failure_of_an_earlier_run_does_not_count() {
    let hosts = Hosts::new(1).agents(&[]);
    let (mut run, gate) = builds(&hosts);
    let failed = r#"{"failed":{"run":"0-1","message":"no","code":69}}"#;
    let (put, said) = hosts.etcdctl(&format!("put /emud/default/hosts/a/built {failed}"));
    assert!(put, "{said}");
    // It is seen.
    soon("the failure is read", || {
        let status = hosts.emud(&["status"]);
        status.contains(" failed") || status.contains("no run")
    });
    fs::write(&gate, "").unwrap();
    let (code, text) = ended(&hosts, &mut run);
    completed(code, &text);
}

/// A host that says that it has built something else is not ready.
pub fn a_report_of_another_plan_does_not_count() {
    let hosts = Hosts::new(1).agents(&[]);
    let (mut run, gate) = builds(&hosts);
    let ready = r#"{"ready":{"digest":"0","mono_ns":1,"clock":null,"underlay_ns":{},"notes":[]}}"#;
    let (put, said) = hosts.etcdctl(&format!("put /emud/default/hosts/a/built {ready}"));
    assert!(put, "{said}");
    // The status does not know the digest.
    soon("it is read", || hosts.emud(&["status"]).contains(" built"));
    sleep(Duration::from_secs(2));
    let (_, keys) = hosts.etcdctl("get /emud/ --prefix --keys-only");
    assert!(
        keys.contains("/run/revision") && !keys.contains("/run/t0"),
        "{keys}"
    );
    fs::write(&gate, "").unwrap();
    let (code, text) = ended(&hosts, &mut run);
    completed(code, &text);
}

pub fn its_key_describes_the_host() {
    let hosts = Hosts::new(1).agents(&["--weight", "3"]);
    let (_, key) = hosts.etcdctl("get /emud/default/agents/a --print-value-only");
    let key: Value = serde_json::from_str(&key).unwrap_or_else(|e| panic!("{e}: {key}"));
    let here = format!("ip netns exec {}", hosts.netns("a"));
    let doctor = sh(&format!("{here} {} doctor --json", emud_path().display()));
    let doctor: Value = serde_json::from_str(&doctor).unwrap();
    for name in ["schema", "engines"] {
        assert_eq!(key["doctor"][name], doctor[name], "{key}");
    }
    let cpus: u64 = sh(&format!("{here} nproc")).trim().parse().unwrap();
    assert_eq!(key["cpus"], cpus);
    assert_eq!(key["weight"], 3.0);
    let memory = sh("sed -n 's/^MemTotal: *\\([0-9]*\\) kB$/\\1/p' /proc/meminfo");
    let memory: u64 = memory.trim().parse().unwrap();
    assert_eq!(key["memory_bytes"], memory * 1024);
    let status = hosts.emud(&["status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap_or_else(|e| panic!("{e}: {status}"));
    let agent = &status["agents"]["a"];
    for name in ["address", "cpus", "memory_bytes", "weight", "allow_root"] {
        assert_eq!(agent[name], key[name], "{status}");
    }
    // These change, and both are there.
    for name in ["offset_ns", "bound_ns"] {
        let shown = &agent[format!("clock_{name}")];
        assert!(
            key["clock"][name].is_i64() && shown.is_i64(),
            "{key} {status}"
        );
    }
    let synchronised = &key["clock"]["synchronised"];
    assert_eq!(agent["clock_synchronised"], *synchronised);
}

/// The agents, which write every 10 s, are stopped meanwhile, for less than their lease lasts.
pub fn a_plan_writes_nothing() {
    let hosts = Hosts::new(1).agents(&[]);
    let text = "[topology]\nkind = \"chain\"\nrouters = 4\n[topology.profile.link]\ndelay = \"2ms\"\n\
                [node.client]\ncommand = \"true\"\n";
    let path = hosts.folder.file("scenario.toml", text);
    let revision = || {
        let (_, said) = hosts.etcdctl("get none -w json");
        let said: Value = serde_json::from_str(&said).unwrap();
        said["header"]["revision"].as_i64().expect("a revision")
    };
    let signal = |name: &str| {
        let all: Vec<_> = hosts.agents.iter().map(|a| a.id().to_string()).collect();
        sh(&format!("kill -{name} {}", all.join(" ")));
    };
    signal("STOP");
    let before = revision();
    let said = hosts.emud(&["plan", &path]);
    let after = revision();
    signal("CONT");
    assert!(said.contains("nodes client"), "{said}");
    assert_eq!(before, after);
}

/// While host a cleans up, b comes back after a partition, and c with a new agent. Neither begins the
/// run again, of which the keys are still there.
pub fn no_run_begins_twice() {
    let mut hosts = Hosts::new(1).agents(&[]);
    let node = |name: &str, more: &str| {
        format!("[node.{name}]\nhost = \"{name}\"\n{more}command = \"sleep 600\"\n")
    };
    let link = |one: &str, two: &str| {
        format!(
            "[link.{one}{two}]\nbetween = [\"{one}\", \"{two}\"]\nprofile.link.delay = \"5ms\"\n"
        )
    };
    let text = format!(
        "clean-up-within = \"60s\"\n{}{}{}{}{}",
        node("a", "clean-up = \"sleep 20\"\n"),
        node("b", ""),
        node("c", ""),
        link("a", "b"),
        link("b", "c")
    );
    let mut run = hosts.start(&text);
    let begun = |hosts: &Hosts, host: &str| {
        let log = fs::read_to_string(hosts.folder.path(&format!("agent.{host}"))).unwrap();
        log.lines().filter(|line| line.ends_with(" begins")).count()
    };
    assert_eq!(HOSTS.map(|host| begun(&hosts, host)), [1, 1, 1]);
    let store = hosts.netns("s");
    ip(&format!("-n {store} link set vb down"));
    hosts.kill("c");
    hosts.agents[2] = hosts.agent("c", &[]);
    hosts.all_clean(&["b", "c"]);
    ip(&format!("-n {store} link set vb up"));
    soon("b and c are back", || {
        let status = hosts.emud(&["status"]);
        ["\nb ", "\nc "].iter().all(|host| status.contains(host))
    });
    let status = hosts.emud(&["status"]);
    assert!(status.contains("\nrun "), "the run is over: {status}");
    let (code, text) = ended(&hosts, &mut run);
    assert_eq!(code, 4, "{text}");
    assert!(
        text.contains("  b: lost") && text.contains("  c: lost"),
        "{text}"
    );
    // The agent of c is another process.
    assert_eq!(HOSTS.map(|host| begun(&hosts, host)), [1, 1, 0]);
    hosts.all_clean(&HOSTS);
}
