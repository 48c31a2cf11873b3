// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that the programs of a run leave: from which node, from which run.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;

use support::runs::{Folder, Ran};

/// Nodes in a chain, each with these keys.
fn chain(folder: &Folder, nodes: usize, keys: &str) -> String {
    let names: Vec<String> = (1..=nodes).map(|n| format!("n{n}")).collect();
    let mut text = String::new();
    for name in &names {
        text += &format!("[node.{name}]\n{keys}\n");
    }
    for pair in names.windows(2) {
        let [a, b] = [&pair[0], &pair[1]];
        text += &format!("[link.{a}-{b}]\nbetween = [\"{a}\", \"{b}\"]\n");
    }
    folder.file("s.toml", &text)
}

fn stored<'a>(ran: &'a Ran, node: &str) -> Vec<&'a Value> {
    ran.of("artefact")
        .filter(|line| line["node"] == *node)
        .collect()
}

fn text(line: &Value) -> String {
    let stored = line["stored"].as_str();
    fs::read_to_string(stored.unwrap_or_else(|| panic!("{line}"))).unwrap()
}

/// Eight nodes that write a file of the same name.
pub fn of_each_node_are_its_own() {
    let folder = Folder::new();
    let keys = "command = \"echo $EMUD_NODE > times.txt; echo also > $EMUD_ARTEFACTS/more.txt; \
                test -f $EMUD_START/s.toml && ./mark\"\n\
                artefacts = [\"times.txt\", \"/etc/hosts\"]";
    let scenario = chain(&folder, 8, keys);
    let mark = folder.file("mark", "#!/bin/sh\necho marked in $PWD\n");
    fs::set_permissions(mark, Permissions::from_mode(0o755)).unwrap();
    // A path in a shell's text is relative to the node's folder, which has no such program; that of
    // a program is relative to the folder where emud was started.
    folder
        .run(&format!("--scenario {scenario}"), &[])
        .expect(127);
    let ran = folder.run(&format!("--scenario {scenario}"), &["./mark"]);
    assert!(
        ran.out.contains("marked in /") && ran.out.contains("run.log.artefacts/n1\n"),
        "{}",
        ran.out
    );
    let scenario = chain(&folder, 8, &keys.replace(" && ./mark", ""));
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(0);
    for n in 1..=8 {
        let node = format!("n{n}");
        let [times, hosts] = stored(&ran, &node)[..] else {
            panic!("{ran:?}");
        };
        assert_eq!(text(times), format!("{node}\n"));
        let own = folder.0.join("run.log.artefacts").join(&node);
        assert_eq!(times["stored"], own.join("times.txt").to_str().unwrap());
        assert!(text(hosts).contains(&node), "{hosts}");
        assert_eq!(fs::read_to_string(own.join("more.txt")).unwrap(), "also\n");
    }
}

pub fn of_an_earlier_run_do_not_stay() {
    let folder = Folder::new();
    let run = |words: &str, command: &str| {
        let keys = format!("command = \"{command}\"\nartefacts = \"*.txt\"");
        let scenario = chain(&folder, 2, &keys);
        folder.run(&format!("--scenario {scenario} {words}"), &[])
    };
    run("", "echo first > a.txt; echo old > b.txt").expect(0);
    let ran = run("", "echo second > a.txt").expect(0);
    let own = folder.0.join("run.log.artefacts/n1");
    assert_eq!(fs::read_to_string(own.join("a.txt")).unwrap(), "second\n");
    assert!(!own.join("b.txt").exists() && !own.join("a.txt.1").exists());
    let before = folder.0.join("run.log.artefacts.1/n1/b.txt");
    assert_eq!(fs::read_to_string(before).unwrap(), "old\n");
    assert!(ran.err.contains("belongs to an earlier run"), "{}", ran.err);
    // A run without files leaves no folder.
    run("", "true").expect(0);
    assert!(!folder.0.join("run.log.artefacts").exists());
    // One that was there stays.
    fs::create_dir(folder.0.join("empty")).unwrap();
    run(&format!("--artefacts {}", folder.path("empty")), "true").expect(0);
    assert!(folder.0.join("empty").exists());
    // A user's folder is neither mixed nor moved.
    let words = format!("--artefacts {}", folder.path("kept"));
    run(&format!("{words} --repeat 2"), "echo $EMUD_REPEAT > a.txt").expect(0);
    for n in ["1", "2"] {
        let file = folder.0.join("kept").join(n).join("n2/a.txt");
        assert_eq!(fs::read_to_string(file).unwrap(), format!("{n}\n"));
    }
    let ran = run(&words, "true").expect(73);
    assert!(ran.err.contains("is not empty"), "{}", ran.err);
}

/// Its own /proc, and what is mounted in it.
pub fn are_what_the_node_sees() {
    let folder = Folder::new();
    let keys = "prepare = \"mount -t tmpfs none /mnt\"\n\
                command = \"echo $EMUD_NODE > /mnt/own\"\n\
                artefacts = [\"/proc/net/dev\", \"/mnt/own\", \"/proc/self/ns/net\"]";
    let scenario = chain(&folder, 2, keys);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(0);
    for node in ["n1", "n2"] {
        let [dev, own, none] = stored(&ran, node)[..] else {
            panic!("{ran:?}");
        };
        // The host has the other node's interfaces no more than this one's.
        assert!(text(dev).contains("n1-n2:"), "{}", text(dev));
        assert_eq!(dev["bytes"], text(dev).len());
        assert_eq!(text(own), format!("{node}\n"));
        assert_eq!(none["stored"], Value::Null);
    }
    assert!(!fs::exists("/mnt/own").unwrap());
}

pub fn with_holes_take_no_room() {
    const LENGTH: u64 = 20 << 30;
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"1ms\"\n");
    let outside = folder.path("outside");
    fs::create_dir(&outside).unwrap();
    let keys = format!(
        "command = \"echo data > {outside}/$EMUD_NODE; truncate -s {LENGTH} {outside}/$EMUD_NODE\"\n\
         artefacts = \"{outside}/n1\""
    );
    let scenario = chain(&folder, 2, &keys);
    let ran = folder.run(&format!("--scenario {scenario}"), &[]).expect(0);
    let kept = fs::metadata(folder.0.join("run.log.artefacts/n1/n1")).unwrap();
    assert_eq!(kept.len(), LENGTH);
    assert!(kept.blocks() * 512 < 1 << 20, "{}", kept.blocks());
    assert_eq!(stored(&ran, "n1")[0]["bytes"], LENGTH);
}

/// If nothing is kept, nodes still do not overwrite each other's files or those in the caller's
/// folder.
pub fn without_a_folder_are_scratch() {
    let folder = Folder::new();
    let keys = "command = \"echo $EMUD_NODE > own; sleep 0.3; cat own; cd $EMUD_ARTEFACTS && ls\"";
    let scenario = chain(&folder, 2, keys);
    let mut emud = std::process::Command::new(support::emud_path());
    emud.args(["run", "--scenario", &scenario]);
    let out = emud.current_dir(&folder.0).output().unwrap();
    let out = String::from_utf8_lossy(&out.stdout);
    for line in ["n1| n1", "n2| n2", "n1| own", "n2| own"] {
        assert!(out.lines().any(|said| said == line), "{out}");
    }
    assert!(!folder.0.join("own").exists());
}
