// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layers of the code: files and folders beside each other do not use each other in a circle. Long files say why they are long.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Folders in which files may use each other in a circle; the folders in them may not.
const ROUND: [&str; 1] = [
    // The readers and the checks of one file format use each other.
    "profile",
];

/// Files and folders of `src` that are used by one beside them, by the path of the using one.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

fn files(folder: &Path, ends: &[&str], out: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ends, out);
        } else if (path.extension()).is_some_and(|end| ends.iter().any(|other| end == *other)) {
            out.push(path);
        }
    }
}

/// Every path in a text that begins with `crate` or `super`, with expanded `use` trees.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, root) in text
        .match_indices("crate::")
        .chain(text.match_indices("super::"))
    {
        let inside_a_path = text[..at].ends_with("::") || text[..at].ends_with('_');
        if !inside_a_path {
            walk(
                &[root.trim_end_matches(':').to_owned()],
                &text[at + root.len()..],
                &mut found,
            );
        }
    }
    found
}

/// Returns what follows `path::`.
fn walk<'a>(path: &[String], text: &'a str, found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = walk(path, rest, found).trim_start();
            rest = match rest.strip_prefix(',') {
                Some(more) => more.trim_start(),
                None => return rest.strip_prefix('}').unwrap_or(rest),
            };
            if let Some(behind) = rest.strip_prefix('}') {
                return behind;
            }
        }
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '*';
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let path = [path, &[text[..end].to_owned()]].concat();
    match text[end..].strip_prefix("::") {
        Some(rest) if !rest.starts_with('<') => walk(&path, rest, found),
        _ => {
            found.push(path);
            &text[end..]
        }
    }
}

/// Returns the module that a path refers to, from the root of the crate, as seen in module `own`.
fn absolute(own: &[String], path: &[String]) -> Vec<String> {
    let ups = path.iter().take_while(|word| *word == "super").count();
    match ups {
        0 => path[1..].to_vec(),
        _ => [&own[..own.len().saturating_sub(ups)], &path[ups..]].concat(),
    }
}

/// Returns what is in front of the tests of a file.
fn without_tests(text: &str) -> &str {
    text.split("mod tests {").next().unwrap()
}

/// The code of a file: neither comments nor tests.
fn code(text: &str) -> String {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let lines: Vec<_> = without_tests(text).lines().filter(is_code).collect();
    lines.join("\n")
}

/// Below the common parent: what the code of module `own` is in, and what it uses beside that.
fn beside(own: &[String], text: &str) -> Vec<[Vec<String>; 2]> {
    let rooms = |path: &Vec<String>| {
        let target = absolute(own, path);
        let common = own.iter().zip(&target).take_while(|(a, b)| a == b).count();
        Some([
            own.get(..=common)?.to_vec(),
            target.get(..=common)?.to_vec(),
        ])
    };
    paths(&code(text)).iter().filter_map(rooms).collect()
}

fn uses(src: &Path) -> Uses {
    let mut all = Vec::new();
    files(src, &["rs"], &mut all);
    let is_room = |path: &[String]| {
        let (name, parent) = path.split_last().unwrap();
        let folder = src.join(parent.join("/")).join(name);
        let round = ROUND.contains(&&*parent.join("/"));
        folder.is_dir() || (!round && folder.with_extension("rs").is_file())
    };
    let mut uses = Uses::new();
    for file in all {
        let relative = file.strip_prefix(src).unwrap().with_extension("");
        let mut own: Vec<String> = relative
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        if own.last().is_some_and(|name| name == "mod") {
            own.pop();
        }
        // `#[cfg(test)] mod tests;`
        if own.iter().any(|name| name == "tests") {
            continue;
        }
        for rooms in beside(&own, &fs::read_to_string(&file).unwrap()) {
            if rooms.iter().all(|room| is_room(room)) {
                let [user, used] = rooms;
                uses.entry(user).or_default().insert(used);
            }
        }
    }
    uses
}

/// Returns a path from a file or folder back to itself.
fn circle(uses: &Uses) -> Option<Vec<Vec<String>>> {
    fn search(uses: &Uses, way: &mut Vec<Vec<String>>, done: &mut BTreeSet<Vec<String>>) -> bool {
        let last = way.last().unwrap().clone();
        for next in uses.get(&last).into_iter().flatten() {
            let seen = way.iter().any(|room| room == next);
            if seen || !done.contains(next) {
                way.push(next.clone());
                if seen || search(uses, way, done) {
                    return true;
                }
                way.pop();
            }
        }
        done.insert(last);
        false
    }
    let mut done = BTreeSet::new();
    uses.keys().find_map(|room| {
        let mut way = vec![room.clone()];
        search(uses, &mut way, &mut done).then_some(way)
    })
}

#[test]
fn files_and_folders_use_each_other_in_one_direction() {
    for src in ["src", "monitor/src"] {
        let uses = uses(&support::root().join(src));
        assert!(
            !uses.is_empty(),
            "{src}: no file uses another: the reader is broken"
        );
        let way = circle(&uses).map(|way| way.iter().map(|f| f.join("/")).collect::<Vec<_>>());
        assert_eq!(way, None, "{src}: a circle");
    }
}

#[test]
fn a_circle_is_found() {
    let path = |text: &str| -> Vec<String> { text.split('/').map(str::to_owned).collect() };
    let uses = |pairs: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (user, used) in pairs {
            uses.entry(path(user)).or_default().insert(path(used));
        }
        uses
    };
    assert_eq!(circle(&uses(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    assert!(circle(&uses(&[("a", "b"), ("b", "c"), ("c", "b")])).is_some());
    let text = "use crate::a::{b::C, d::{self, E}, f as g}; let x = super::h::i();";
    let read: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
    let expected = [
        "crate::a::b::C",
        "crate::a::d::self",
        "crate::a::d::E",
        "crate::a::f",
    ];
    assert_eq!(read[..4], expected);
    assert_eq!(
        absolute(&path("x/y"), &paths("super::h::i")[0]),
        path("x/h/i")
    );
    // Files of a folder count, and so do a file and a folder; comments, tests and what is in `own` do not.
    let text = "// crate::a::c::D\nuse super::y::Z;\nuse crate::b::{self, C};\nuse super::x::in_own::E;\n\
                #[cfg(test)]\nmod tests {\n    use crate::a::z::F;\n}\n";
    let found: Vec<_> = beside(&path("a/x"), text)
        .iter()
        .map(|rooms| rooms.each_ref().map(|room| room.join("/")))
        .collect();
    assert_eq!(found, [["a", "b"], ["a", "b"], ["a/x", "a/y"]]);
}

/// Lines of a file, without its tests.
const MOST_LINES: usize = 400;

#[test]
fn long_files_say_why() {
    let mut all = Vec::new();
    for folder in ["src", "monitor", "bpf"] {
        files(&support::root().join(folder), &["rs", "c", "h"], &mut all);
    }
    let is_silent = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let is_test = path.ends_with("tests.rs");
        !is_test
            && without_tests(&text).lines().count() > MOST_LINES
            && !text.contains("Longer than 400 lines: ")
    };
    assert!(all.len() > 500, "{}", all.len());
    let silent: Vec<_> = all.iter().filter(|path| is_silent(path)).collect();
    assert!(silent.is_empty(), "split them, or say why: {silent:?}");
}
