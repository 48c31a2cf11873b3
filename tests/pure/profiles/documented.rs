// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles in the documents are profiles.

use std::fs;
use std::path::{Path, PathBuf};

use emud::profile::Profile;

/// Every block of TOML, and every profile that a shell writes.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let end = match line {
            "```toml" => "```",
            _ if line.ends_with(".toml <<'END'") => "END",
            _ => continue,
        };
        let block: Vec<_> = lines.by_ref().take_while(|line| *line != end).collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// A block without tables shows keys of a link, each line alone.
fn profiles(block: &str) -> Vec<String> {
    let has = |starts: &[&str]| {
        block
            .lines()
            .any(|l| starts.iter().any(|s| l.starts_with(s)))
    };
    if !has(&["["]) {
        let lines = block.lines().filter(|line| !line.is_empty());
        return lines.map(|line| format!("[link]\n{line}\n")).collect();
    }
    let whole = has(&["[link]", "[up]", "[down]", "[[", "[matrix]"]);
    vec![format!("{block}\n{}", if whole { "" } else { "[link]\n" })]
}

/// What the examples name.
fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("emud-documented-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (name, content) in [
        (
            "pairs.csv",
            "source,destination,delay\n10.0.0.1,10.0.0.2,5ms\n",
        ),
        ("cell.csv", "time_s,rate_Mbit\n0,5\n1,9\n"),
        ("down.trace", "1\n5\n9\n"),
    ] {
        fs::write(folder.join(name), content).unwrap();
    }
    let samples = (0..20).map(|i| format!("{i},{}\n", 20 + i % 7));
    fs::write(folder.join("rtt.csv"), samples.collect::<String>()).unwrap();
    let dist: Vec<String> = (-128i32..128).map(|i| (i * 128).to_string()).collect();
    fs::write(folder.join("my.dist"), dist.join(" ")).unwrap();
    folder
}

#[test]
fn examples_in_the_documents_are_profiles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = folder();
    let mut wrong = Vec::new();
    let mut read = 0;
    for document in ["README.md", "docs/profile.md", "docs/time.md"] {
        let text = fs::read_to_string(root.join(document)).unwrap();
        for profile in blocks(&text).iter().flat_map(|block| profiles(block)) {
            let path = folder.join("example.toml");
            fs::write(&path, &profile).unwrap();
            if let Err(error) = Profile::load(&path) {
                wrong.push(format!("{document}:\n{profile}\n{error}"));
            }
            read += 1;
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(read > 15, "{read}");
}
