// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layers of the code: folders beside each other do not use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Folders of `src` that are used by a folder beside them, by the path of the using one.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

fn files(folder: &Path, out: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|end| end == "rs") {
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

fn uses(src: &Path) -> Uses {
    let mut all = Vec::new();
    files(src, &mut all);
    let mut uses = Uses::new();
    for file in all {
        let relative = file.strip_prefix(src).unwrap().with_extension("");
        let mut own: Vec<String> = relative
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        let folder = own[..own.len() - 1].to_vec();
        if own.last().is_some_and(|name| name == "mod") {
            own.pop();
        }
        for path in paths(&fs::read_to_string(&file).unwrap()) {
            let target = absolute(&own, &path);
            let common = folder
                .iter()
                .zip(&target)
                .take_while(|(a, b)| a == b)
                .count();
            // Below the common parent: a sibling folder.
            let (Some(_), Some(_)) = (folder.get(common), target.get(common)) else {
                continue;
            };
            let beside = target[..=common].to_vec();
            if src
                .join(beside.iter().collect::<std::path::PathBuf>())
                .is_dir()
            {
                uses.entry(folder[..=common].to_vec())
                    .or_default()
                    .insert(beside);
            }
        }
    }
    uses
}

/// Returns a path from a folder back to itself.
fn circle(uses: &Uses) -> Option<Vec<Vec<String>>> {
    fn search(uses: &Uses, way: &mut Vec<Vec<String>>, done: &mut BTreeSet<Vec<String>>) -> bool {
        let last = way.last().unwrap().clone();
        for next in uses.get(&last).into_iter().flatten() {
            let seen = way.iter().any(|folder| folder == next);
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
    uses.keys().find_map(|folder| {
        let mut way = vec![folder.clone()];
        search(uses, &mut way, &mut done).then_some(way)
    })
}

#[test]
fn folders_use_each_other_in_one_direction() {
    for src in ["src", "monitor/src"] {
        let uses = uses(&support::root().join(src));
        assert!(
            !uses.is_empty(),
            "{src}: no folder uses another: the reader is broken"
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
}
