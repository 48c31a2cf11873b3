// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layers of the code: files and folders beside each other do not use each other in a circle.

mod long;
mod round;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use round::ROUND;

/// Files and folders of `src` that are used by one beside them, by the path of the using one.
type Uses = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// A path in the code, and the name by which its end is known there.
type Known = (Vec<String>, String);

fn files(folder: &Path, ends: &[&str], out: &mut Vec<PathBuf>) {
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
    found.into_iter().map(|(path, _)| path).collect()
}

/// Everything that a module takes from others, for itself or to pass on. A `*` is known as that.
fn imports(text: &str) -> Vec<Known> {
    let mut found = Vec::new();
    for (at, start) in text.match_indices("use ") {
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        if ["", "pub", "pub(crate)", "pub(super)"].contains(&before.trim_end()) {
            walk(&[], &text[at + start.len()..], &mut found);
        }
    }
    for (path, known_as) in &mut found {
        if path
            .pop_if(|end| ["self", "*"].contains(&end.as_str()))
            .is_some()
            && *known_as == "self"
            && let Some(last) = path.last()
        {
            known_as.clone_from(last);
        }
    }
    found
}

/// Returns what follows `path::`.
fn walk<'a>(path: &[String], text: &'a str, found: &mut Vec<Known>) -> &'a str {
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
    let (name, rest) = word(text);
    let path = [path, &[name.to_owned()]].concat();
    match rest.strip_prefix("::") {
        Some(rest) if !rest.starts_with('<') => walk(&path, rest, found),
        _ => {
            let alias = rest.trim_start().strip_prefix("as ").map(word);
            let (known_as, rest) = alias.unwrap_or((name, rest));
            found.push((path, known_as.to_owned()));
            rest
        }
    }
}

/// Returns the name at the start of a text, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '*';
    text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()))
}

/// Returns the module that a path refers to, from the root of the crate, as seen in module `own`.
fn absolute(own: &[String], path: &[String]) -> Vec<String> {
    let ups = path.iter().take_while(|word| *word == "super").count();
    match path.first().map(String::as_str) {
        Some("crate") => path[1..].to_vec(),
        Some("self") => [own, &path[1..]].concat(),
        // Without `super`, a module below, or another crate.
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

struct Module {
    code: String,
    imports: Vec<Known>,
}

/// The modules of a crate by their paths.
#[derive(Default)]
struct Tree(BTreeMap<Vec<String>, Module>);

impl Tree {
    fn read(src: &Path) -> Self {
        let mut all = Vec::new();
        files(src, &["rs"], &mut all);
        let module = |file: &PathBuf| {
            let relative = file.strip_prefix(src).unwrap().with_extension("");
            let names = relative.iter().map(|part| part.to_str().unwrap());
            let own: Vec<String> = names.map(str::to_owned).collect();
            (own, fs::read_to_string(file).unwrap())
        };
        Self::of(all.iter().map(module))
    }

    /// Makes a tree of files by their paths without extension.
    fn of(files: impl Iterator<Item = (Vec<String>, String)>) -> Self {
        // `#[cfg(test)] mod tests;`
        let files = files.filter(|(own, _)| !own.iter().any(|name| name == "tests"));
        let module = |(mut own, text): (Vec<String>, String)| {
            if own == ["lib"] || own.last().is_some_and(|name| name == "mod") {
                own.pop();
            }
            let code = code(&text);
            let imports = imports(&code);
            (own, Module { code, imports })
        };
        Self(files.map(module).collect())
    }

    /// Returns whether this is a file or a folder.
    fn is_room(&self, path: &[String]) -> bool {
        let mut from = self.0.range(path.to_vec()..);
        from.next().is_some_and(|(own, _)| own.starts_with(path))
    }

    /// Returns a path and those that it stands for: a module may have a name from another one.
    fn meant(&self, path: Vec<String>) -> Vec<Vec<String>> {
        let mut found = vec![path];
        // Two modules can take a name from each other.
        while found.len() < 10
            && let Some(next) = found.last().and_then(|path| self.behind(path))
        {
            found.push(next);
        }
        found
    }

    /// Returns the path to what a module has from another one; `None`: it is the module's.
    fn behind(&self, path: &[String]) -> Option<Vec<String>> {
        let rooms = (1..=path.len()).take_while(|n| self.is_room(&path[..*n]));
        let (own, rest) = path.split_at(rooms.count());
        let (name, rest) = rest.split_first()?;
        self.0
            .get(own)?
            .imports
            .iter()
            .find_map(|(path, known_as)| {
                let module = absolute(own, path);
                match known_as == "*" {
                    true => self.has(&module, name).then(|| {
                        let name = std::slice::from_ref(name);
                        [&module[..], name, rest].concat()
                    }),
                    false => (known_as == name).then(|| [&module[..], rest].concat()),
                }
            })
    }

    /// Returns whether a module declares a name, or has it from another one.
    fn has(&self, own: &[String], name: &str) -> bool {
        let kinds = ["const", "enum", "fn", "static", "struct", "trait", "type"];
        self.0.get(own).is_some_and(|module| {
            let declares = |kind: &&str| {
                let mut starts = module.code.match_indices(*kind);
                let behind = |at: usize| module.code[at + kind.len()..].trim_start();
                starts.any(|(at, _)| word(behind(at)).0 == name)
            };
            kinds.iter().any(declares) || module.imports.iter().any(|(_, known)| known == name)
        })
    }

    /// Below the common parent: what the code of module `own` is in, and what it uses beside that.
    fn beside(&self, own: &[String], code: &str) -> Vec<[Vec<String>; 2]> {
        let rooms = |target: Vec<String>| {
            let common = own.iter().zip(&target).take_while(|(a, b)| a == b).count();
            Some([
                own.get(..=common)?.to_vec(),
                target.get(..=common)?.to_vec(),
            ])
        };
        let paths = paths(code).into_iter();
        let targets = paths.flat_map(|path| self.meant(absolute(own, &path)));
        targets.filter_map(rooms).collect()
    }

    /// Returns which files and folders use which, but not those of one group in `round`.
    fn uses(&self, round: &[&[&str]]) -> Uses {
        let may = |rooms: &[Vec<String>; 2]| {
            let names = rooms.each_ref().map(|room| room.join("/"));
            let has = |group: &[&str]| names.iter().all(|name| group.contains(&name.as_str()));
            round.iter().any(|group| has(group))
        };
        let mut uses = Uses::new();
        for (own, module) in &self.0 {
            for rooms in self.beside(own, &module.code) {
                if rooms.iter().all(|room| self.is_room(room)) && !may(&rooms) {
                    let [user, used] = rooms;
                    uses.entry(user).or_default().insert(used);
                }
            }
        }
        uses
    }
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

/// Returns whether a file uses itself by way of others of its group.
fn comes_back(uses: &Uses, group: &[&str], file: &[String]) -> bool {
    let mut open = vec![file];
    let mut seen = BTreeSet::new();
    while let Some(user) = open.pop() {
        for used in uses.get(user).into_iter().flatten() {
            if used.as_slice() == file {
                return true;
            }
            if group.contains(&used.join("/").as_str()) && seen.insert(used) {
                open.push(used);
            }
        }
    }
    false
}

fn path(text: &str) -> Vec<String> {
    text.split('/').map(str::to_owned).collect()
}

#[test]
fn files_and_folders_use_each_other_in_one_direction() {
    for src in ["src", "monitor/src"] {
        let uses = Tree::read(&support::root().join(src)).uses(&ROUND);
        assert!(
            !uses.is_empty(),
            "{src}: no file uses another: the reader is broken"
        );
        let way = circle(&uses).map(|way| way.iter().map(|f| f.join("/")).collect::<Vec<_>>());
        assert_eq!(way, None, "{src}: a circle");
    }
}

#[test]
fn a_file_that_is_in_no_circle_is_not_permitted_one() {
    let uses = Tree::read(&support::root().join("src")).uses(&[]);
    for group in ROUND {
        for file in group {
            let is_round = comes_back(&uses, group, &path(file));
            assert!(is_round, "{file}: take it out of ROUND");
        }
    }
}

#[test]
fn a_circle_is_found() {
    let uses = |pairs: &[(&str, &str)]| {
        let mut uses = Uses::new();
        for (user, used) in pairs {
            uses.entry(path(user)).or_default().insert(path(used));
        }
        uses
    };
    assert_eq!(circle(&uses(&[("a", "b"), ("a", "c"), ("b", "c")])), None);
    let round = uses(&[("a", "b"), ("b", "c"), ("c", "b")]);
    assert!(circle(&round).is_some());
    let is_round = |file: &str| comes_back(&round, &["a", "b", "c"], &path(file));
    assert_eq!(["a", "b", "c"].map(is_round), [false, true, true]);
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
    // What follows another name is read, too.
    let text = "use super::{f as g, h::{I as J, K}, L};";
    let read: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
    assert_eq!(read, ["super::f", "super::h::I", "super::h::K", "super::L"]);
    // Files of a folder count, and so do a file and a folder; comments, tests and what is in `own` do not.
    let text = "// crate::a::c::D\nuse super::y::Z;\nuse crate::b::{self, C};\nuse super::x::in_own::E;\n\
                #[cfg(test)]\nmod tests {\n    use crate::a::z::F;\n}\n";
    let found: Vec<_> = Tree::default()
        .beside(&path("a/x"), &code(text))
        .iter()
        .map(|rooms| rooms.each_ref().map(|room| room.join("/")))
        .collect();
    assert_eq!(found, [["a", "b"], ["a", "b"], ["a/x", "a/y"]]);
}

/// A module that passes a name on is not where the name is from.
#[test]
fn a_circle_by_names_that_are_passed_on_is_found() {
    let room = "mod one;\npub(crate) mod two;\nuse crate::other;\npub use one::One;\n\
                pub use self::two::{self as second, Two, help as aid};\npub use three::*;\n";
    let files = [
        ("room/mod", room),
        ("room/one", "use super::{Three, Two};"),
        (
            "room/two",
            "use super::One as First;\npub fn help() {}\npub struct Two;",
        ),
        ("room/three", "pub struct Three;\nfn three() {}"),
        ("other/mod", "mod far;\npub use far::Far;"),
        ("other/far", "use crate::room::{Two, aid};"),
    ];
    let files = files.map(|(own, text)| (path(own), text.to_owned()));
    let tree = Tree::of(files.into_iter());
    let meant = |of: &str| {
        let all = tree.meant(path(of)).into_iter();
        all.map(|path| path.join("/")).collect::<Vec<_>>()
    };
    assert_eq!(meant("room/Two/new"), ["room/Two/new", "room/two/Two/new"]);
    assert_eq!(meant("room/aid"), ["room/aid", "room/two/help"]);
    assert_eq!(meant("room/Three"), ["room/Three", "room/three/Three"]);
    assert_eq!(meant("room/second/x"), ["room/second/x", "room/two/x"]);
    assert_eq!(
        meant("room/other/Far"),
        ["room/other/Far", "other/Far", "other/far/Far"]
    );
    // One of the room itself, of a file, and of another crate.
    for own in ["room/Own", "room/one/One", "std/fmt"] {
        assert_eq!(meant(own), [own]);
    }
    let users = tree.uses(&[]).into_keys();
    let users: Vec<_> = users.map(|own| own.join("/")).collect();
    assert_eq!(users, ["other", "room", "room/one", "room/two"]);
    let round = circle(&tree.uses(&[&["other", "room"]])).unwrap();
    assert!(round.contains(&path("room/two")), "{round:?}");
    let permitted: [&[&str]; 2] = [&["other", "room"], &["room/one", "room/two"]];
    assert_eq!(circle(&tree.uses(&permitted)), None);
}
