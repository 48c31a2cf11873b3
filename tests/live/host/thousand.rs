// SPDX-License-Identifier: MIT OR Apache-2.0
//! A host with 1,000 links.

use std::process::Command;
use std::time::{Duration, Instant};

use support::lab::{Lab, Verdict, run, sh, wait_until};
use support::{emud_path, is_optimised};

use super::is_holder;
use super::prometheus::{get, metrics_server, port};

const LINKS: usize = 1000;
/// A link of engine hold needs up to this: half for its process, half for its maps.
const LINK_KIB: usize = 20 << 10;
/// Then their holders stop: 1,000 that run take several CPUs.
const AT_ONCE: usize = 50;
const SCRAPES: usize = 21;

/// As many interfaces as three quarters of the memory have room for links.
fn room() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").expect("meminfo");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<usize>().ok());
    (kib.expect("a size") / 4 * 3 / LINK_KIB).min(LINKS)
}

/// A namespace whose holders are stopped, and killed in the end: if all of them continued at once,
/// each would list the qdiscs of all, and keep every other user of netlink waiting for minutes.
struct Stopped(String);

impl Stopped {
    fn signal(&self, signal: &str) {
        let pids = sh(&format!("ip netns pids {}", self.0));
        let holders = pids.lines().filter(|pid| is_holder(pid));
        let _ = Command::new("kill").arg(signal).args(holders).status();
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal("-KILL");
    }
}

/// 1,000 interfaces with a link in both directions: a scrape takes less than 100 ms; of fewer links
/// it takes a smaller time. The optimised program is judged.
pub fn links() {
    let lab = Lab::empty();
    let links = room();
    let add: String = (0..links)
        .map(|n| {
            let peer = format!("peer name p{n} netns {}", lab.b);
            format!("link add d{n} type veth {peer}\nlink set d{n} up\n")
        })
        .collect();
    let script = format!("ip -n {} -batch - <<'END'\n{add}END", lab.a);
    sh(&script);
    let begun = Instant::now();
    let attach = |n: usize| {
        let mut attach = Command::new(emud_path());
        attach.args(["--netns", &lab.a, "attach", &format!("d{n}")]);
        run(attach.args(["--profile", "dsl"])).expect(0);
    };
    let stopped = Stopped(lab.a.clone());
    for first in (0..links).step_by(AT_ONCE) {
        std::thread::scope(|scope| {
            for half in [0, 1] {
                let mine = (first + half..links.min(first + AT_ONCE)).step_by(2);
                scope.spawn(move || mine.for_each(attach));
            }
        });
        stopped.signal("-STOP");
    }
    println!(
        "    {links} links attached in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    let port = port();
    let server = metrics_server(port);
    wait_until("an answer", Duration::from_secs(60), || {
        get(port, "/healthz").is_some()
    });
    let mut took = vec![];
    let mut text = String::new();
    for _ in 0..SCRAPES {
        let begin = Instant::now();
        text = get(port, "/metrics").expect("an answer");
        took.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let read = text
        .lines()
        .filter(|line| line.contains(&lab.a) && line.starts_with("emud_link_info"));
    assert_eq!(read.count(), links);
    let (first, later) = (took.remove(0), &mut took);
    later.sort_by(f64::total_cmp);
    println!(
        "    first {first:.1} ms, {} bytes, {} lines",
        text.len(),
        text.lines().count()
    );
    let (least, median, most) = (later[0], later[later.len() / 2], later[later.len() - 1]);
    println!(
        "    then {least:.1}, {median:.1}, {most:.1} ms (least, median, most of {})",
        later.len()
    );
    drop(server);
    drop(stopped);
    let mut verdict = Verdict::default();
    if is_optimised() {
        let most_ms = 100.0 * links as f64 / LINKS as f64;
        verdict.at_most("median of a scrape, ms", most_ms, median);
    }
    verdict.end();
}
