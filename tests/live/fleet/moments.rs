// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever dies at whatever moment, while the parts are built, before the start, or after it:
//! nothing stays on any host, no part starts alone, and the verdict names what was lost.
//!
//! EMUD_FLEET_MOMENTS: the number of moments.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use emud::fleet::LEAD;
use support::chance::Random;
use support::host::{ip, soon};

use super::clean::ended;
use super::hosts::{HOSTS, Hosts, Setup, completed};

/// After the controller's start; the measured phase begins after 3 to 5 s.
const LATEST_MS: usize = 8000;

fn moments(seed: u64) -> impl Iterator<Item = Duration> {
    let number = std::env::var("EMUD_FLEET_MOMENTS").map_or(3, |n| n.parse().expect("a number"));
    let mut random = Random(seed);
    (0..number).map(move |_| Duration::from_millis(random.index(LATEST_MS) as u64))
}

/// A node on each host, whose program leaves a file. `end`: options of ping.
fn scenario(folder: &str, end: &str) -> String {
    let node = |name: &str, host: &str, peer: &str| {
        format!(
            "[node.{name}]\nhost = \"{host}\"\n\
             command = \": >{folder}/{host}; exec ping -q -i 0.2 {end} {peer}\"\n"
        )
    };
    let link = |one: &str, two: &str| {
        format!(
            "[link.{one}{two}]\nbetween = [\"{one}\", \"{two}\"]\nprofile.link.delay = \"5ms\"\n"
        )
    };
    [
        node("one", "a", "two"),
        node("two", "b", "three"),
        node("three", "c", "two"),
        link("one", "two"),
        link("two", "three"),
    ]
    .concat()
}

/// A run that is under way.
struct Begun {
    run: Child,
    marks: String,
}

impl Begun {
    fn new(hosts: &Hosts, end: &str) -> Self {
        let marks = hosts.folder.path("marks");
        let _ = fs::remove_dir_all(&marks);
        fs::create_dir(&marks).unwrap();
        // Programs run as nobody.
        fs::set_permissions(&marks, Permissions::from_mode(0o777)).unwrap();
        let run = hosts.spawn(&scenario(&marks, end), &["--verdict-first"]);
        Self { run, marks }
    }

    /// Hosts whose programs have started.
    fn started(&self) -> BTreeSet<String> {
        let all = fs::read_dir(&self.marks).unwrap();
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// All or none.
    fn no_part_alone(&self) {
        let started = self.started();
        assert!(
            [0, HOSTS.len()].contains(&started.len()),
            "{started:?} only"
        );
    }

    /// Without the host that was lost at that time no other one starts, but for the last seconds before the
    /// start: then it has confirmed that.
    fn no_part_without(&self, at: SystemTime) {
        let started = self.started();
        if started.len() == HOSTS.len() {
            return;
        }
        // Nor does that one alone, unless it was cut off after it had read the start.
        for host in started {
            let file = fs::metadata(format!("{}/{host}", self.marks)).unwrap();
            let later = file.modified().unwrap().duration_since(at).unwrap();
            assert!(
                later < LEAD + Duration::from_millis(300),
                "{host}: {later:?} later"
            );
        }
    }
}

/// Before the start the run has an error, later a verdict with its reasons.
fn names_b(code: i32, text: &str) {
    assert!(code != 0 && code != 3, "{code}: {text}");
    let lost = |line: &str| {
        line.starts_with("  b: lost: ")
            || line.ends_with("b was lost before the start")
            || line.ends_with("b left before the run began")
            || line.contains("b did not confirm the start")
    };
    assert!(text.lines().any(lost), "{text}");
}

/// Host b is lost at each moment, and cleans itself; the others end, and b takes part again.
fn lost(seed: u64, lose: fn(&mut Hosts), restore: fn(&mut Hosts)) {
    let mut hosts = Hosts::new(1).agents(&[]);
    for moment in moments(seed) {
        let mut begun = Begun::new(&hosts, "");
        sleep(moment);
        let (since, at) = (Instant::now(), SystemTime::now());
        lose(&mut hosts);
        hosts.all_clean_since(since, &HOSTS);
        let (code, text) = ended(&hosts, &mut begun.run);
        println!("    {moment:?}: {code}, started {:?}", begun.started());
        names_b(code, &text);
        begun.no_part_without(at);
        restore(&mut hosts);
        soon("b is back", || hosts.emud(&["status"]).contains("\nb "));
    }
}

pub fn killed_agent() {
    let again = |hosts: &mut Hosts| hosts.agents[1] = hosts.agent("b", &[]);
    lost(1, |hosts| hosts.kill("b"), again);
}

pub fn partition() {
    lost(3, |hosts| cable(hosts, "down"), |hosts| cable(hosts, "up"));
}

/// Of host b.
fn cable(hosts: &Hosts, state: &str) {
    ip(&format!("-n {} link set vb {state}", hosts.netns("s")));
}

pub fn killed_controller() {
    let hosts = Hosts::new(1).agents(&[]);
    for moment in moments(2) {
        let mut begun = Begun::new(&hosts, "");
        sleep(moment);
        begun.run.kill().unwrap();
        begun.run.wait().unwrap();
        hosts.all_clean(&HOSTS);
        println!("    {moment:?}: started {:?}", begun.started());
        begun.no_part_alone();
        // The next run may begin.
        soon("no run is active", || {
            hosts.emud(&["stop"]).contains("no run is active")
        });
    }
}

/// Number of the member that leads.
fn leader(hosts: &Hosts) -> usize {
    let text = hosts.etcdctl("endpoint status").1;
    // "http://192.0.2.101:2379, 8e9e05c52164694d, 3.4.23, 20 kB, true, false, 2, 9, 9, "
    let leads = |line: &str| line.split(", ").nth(4) == Some("true");
    text.lines()
        .position(leads)
        .unwrap_or_else(|| panic!("{text}"))
}

/// The run completes without it.
pub fn killed_leader() {
    for moment in moments(4) {
        let mut hosts = Hosts::new(3).agents(&[]);
        let victim = leader(&hosts);
        let mut begun = Begun::new(&hosts, "-c 30");
        sleep(moment);
        hosts.members[victim].kill().unwrap();
        hosts.members[victim].wait().unwrap();
        let (code, text) = ended(&hosts, &mut begun.run);
        println!("    {moment:?}: {code}");
        completed(code, &text);
        assert_eq!(begun.started().len(), 3);
        hosts.all_clean(&HOSTS);
    }
}

/// The kernel of a member that hangs keeps its connections: nothing closes the watches that all have
/// at the first member. The run ends as it would with it, and the next one begins.
pub fn hung_member() {
    let hosts = Hosts::new(3).agents(&[]);
    let mut begun = Begun::new(&hosts, "-c 40");
    soon("all programs run", || begun.started().len() == 3);
    support::lab::sh(&format!("kill -STOP {}", hosts.members[0].id()));
    let (code, text) = ended(&hosts, &mut begun.run);
    completed(code, &text);
    hosts.all_clean(&HOSTS);
    let marks = hosts.folder.path("marks");
    let (code, text) = hosts.run(&scenario(&marks, "-c 1"), &[]);
    completed(code, &text);
}

/// The disk of the only member is full: it ends, or takes no more.
pub fn full_disk() {
    for moment in moments(5) {
        let hosts = Hosts::with(&Setup {
            disk: "160m",
            ..Setup::default()
        })
        .agents(&[]);
        let mut begun = Begun::new(&hosts, "");
        sleep(moment);
        hosts.fill_disk(0);
        let stopped = hosts.emud(&["stop"]);
        let (code, text) = ended(&hosts, &mut begun.run);
        println!("    {moment:?}: {code}, {stopped}");
        assert!(
            ["etcd", "emud fleet stop", "stopped before the start"]
                .iter()
                .any(|why| text.contains(why)),
            "{text}"
        );
        hosts.all_clean(&HOSTS);
        // If the start is the last that it wrote, some may have read it: that is no result.
        let is_named = code == 4 && text.contains("emud: invalid: ")
            || text.contains("so programs of other hosts may have started");
        if !is_named {
            begun.no_part_alone();
        }
    }
}
