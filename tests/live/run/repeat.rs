// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same seed, and other seeds.

use std::collections::BTreeSet;
use std::time::Duration;

use support::runs::{Folder, log};
use support::udp::{receiver, sender};

const COUNT: u32 = 400;
/// 4 standard errors of a loss of 10 %: 40 +- 24.
const LOST: std::ops::RangeInclusive<usize> = 16..=64;

fn scenario(folder: &Folder) -> String {
    let (receive, send) = (
        receiver(9000),
        sender("b:9000", COUNT, Duration::from_millis(2)),
    );
    folder.file(
        "s.toml",
        &format!(
            "name = \"pair\"\n\
             [node.a]\ncommand = \"sleep 0.2; {send}\"\n\
             [node.b]\ncommand = \"{receive}\"\n\
             [link.wire]\nbetween = [\"a\", \"b\"]\n\
             profile.link = {{ delay = \"10ms\", loss = \"10%\" }}\n"
        ),
    )
}

/// Numbers that did not arrive, by the log of a run.
fn lost(path: &str) -> BTreeSet<u32> {
    let lines = log(path);
    let of_b = lines
        .iter()
        .filter(|line| line["type"] == "output" && line["node"] == "b");
    let arrived: BTreeSet<u32> = of_b
        .map(|line| line["text"].as_str().unwrap().parse().unwrap())
        .collect();
    (0..COUNT).filter(|n| !arrived.contains(n)).collect()
}

pub fn same_seed_same_losses() {
    let folder = Folder::new();
    let scenario = scenario(&folder);
    let one = format!("--scenario {scenario} --seed 11 --repeat 2");
    folder.run(&one, &[]).expect(0);
    let [first, second] = [1, 2].map(|n| lost(&folder.path(&format!("run.{n}.log"))));
    assert!(LOST.contains(&first.len()), "{first:?}");
    assert_eq!(first, second);
    let other = format!("--scenario {scenario} --seed 11 --repeat 2 --new-seeds");
    folder.run(&other, &[]).expect(0);
    let [same, other] = [1, 2].map(|n| lost(&folder.path(&format!("run.{n}.log"))));
    assert_eq!(first, same);
    assert!(LOST.contains(&other.len()) && first != other, "{other:?}");
}

/// Also for a single link: its addresses are always the same.
pub fn same_seed_same_losses_of_a_program() {
    let folder = Folder::new();
    folder.file("p.toml", "[up]\nloss = \"10%\"\n");
    let send = sender("100.64.0.1:9000", COUNT, Duration::from_millis(1));
    let lost = |words: &str| -> u64 {
        let words = format!("--profile ./p.toml --sample 50ms {words}");
        let ran = folder
            .run(&words, &["sh", "-c", &format!("{send}; sleep 0.1")])
            .expect(0);
        assert_eq!(ran.one("run")["nodes"][0]["addresses"][0], "100.64.0.2");
        let samples = ran.of("sample").filter(|line| line["direction"] == "up");
        samples.map(|line| line["lost"].as_u64().unwrap()).sum()
    };
    let first = lost("--seed 21");
    assert!(LOST.contains(&(first as usize)), "{first}");
    assert_eq!(first, lost("--seed 21"));
    let others: Vec<u64> = (22..26)
        .map(|seed| lost(&format!("--seed {seed}")))
        .collect();
    assert!(
        others.iter().any(|other| *other != first),
        "{first}, {others:?}"
    );
}

pub fn summary() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let script = "ping -n -q -c 10 -i 0.02 $EMUD_HOST";
    let words = "--profile ./p.toml --repeat 3 --sample 100ms";
    let ran = folder.run(words, &["sh", "-c", script]).expect(0);
    assert_eq!(
        ran.err.matches("emud: unwatched:").count(),
        3,
        "{}",
        ran.err
    );
    assert!(ran.err.contains("delay"), "{}", ran.err);
    assert!(ran.log.is_empty(), "run.1.log to run.3.log instead");
    let seeds = [1, 2, 3].map(|n| log(&folder.path(&format!("run.{n}.log")))[0]["pid"].clone());
    assert_eq!(seeds[0], seeds[2], "one emud");
    // A single clean run is enough.
    let words = "--profile ./p.toml --repeat 3 --require-clean";
    let ran = folder.watched(words, &["true"]).expect(0);
    assert_eq!(ran.err.matches("clean:").count(), 1, "{}", ran.err);
    // A run with a failed program is not.
    let odd = ["sh", "-c", "exit $((EMUD_REPEAT % 2))"];
    let ran = folder.watched(words, &odd).expect(0);
    assert_eq!(ran.err.matches("clean:").count(), 2, "{}", ran.err);
}

/// A run whose program failed is marked, and excluded from means.
pub fn failed_programs_do_not_count() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    // Without the failed run both have 5 pings, with it the mean is less.
    let script = "test $EMUD_REPEAT != 2 || exit 9; ping -n -q -c 5 -i 0.02 $EMUD_HOST";
    let words = "--profile ./p.toml --repeat 3 --sample 100ms";
    let ran = folder.run(words, &["sh", "-c", script]).expect(9);
    let summary = ran.err.split_once("3 runs, ").expect("a summary").1;
    assert!(summary.starts_with("2 counted\n"), "{summary}");
    let failed = "run.2.log: unwatched, EXCLUDED: the program of client failed with exit code 9";
    assert!(summary.contains(failed), "{summary}");
    assert!(
        !summary.contains("run.1.log: unwatched, EXCLUDED"),
        "{summary}"
    );
}
