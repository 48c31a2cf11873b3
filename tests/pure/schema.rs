// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/*.schema.json are those of the types, and tables of keys those of the code. `EMUD_BLESS=1 cargo test --test pure schema` writes them. Needs
//! python3-jsonschema, Debian's validator.

use std::collections::BTreeSet;
use std::path::PathBuf;

use emud::schema::{key_tables, schemas};
use support::validator::schema_mistakes;

const BLESS: &str = "EMUD_BLESS=1 cargo test --test pure schema";

fn docs() -> PathBuf {
    support::root().join("docs")
}

/// The first lines in which two texts differ, with those around them.
fn difference(written: &str, derived: &str) -> String {
    let (written, derived): (Vec<_>, Vec<_>) =
        (written.lines().collect(), derived.lines().collect());
    let same = written
        .iter()
        .zip(&derived)
        .take_while(|(a, b)| a == b)
        .count();
    let of = |sign: char, lines: &[&str]| -> String {
        let some = lines.iter().skip(same).take(4);
        some.map(|line| format!("{sign}{line}\n")).collect()
    };
    let before = written[same.saturating_sub(3)..same].join("\n ");
    format!(
        "line {}:\n {before}\n{}{}",
        same + 1,
        of('-', &written),
        of('+', &derived)
    )
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let mut wrong = String::new();
    for (name, schema) in schemas() {
        let path = docs().join(format!("{name}.schema.json"));
        let derived = format!("{:#}\n", schema.as_value());
        if std::env::var_os("EMUD_BLESS").is_some() {
            std::fs::write(&path, &derived).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        if written != derived {
            wrong += &format!("{}, {}", path.display(), difference(&written, &derived));
        }
    }
    assert!(
        wrong.is_empty(),
        "not current (write them with {BLESS}):\n{wrong}"
    );
}

#[test]
fn the_schemas_are_json_schemas() {
    let files = std::fs::read_dir(docs())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files = files.map(|path| path.to_str().unwrap().to_owned());
    let files: Vec<_> = files
        .filter(|name| name.ends_with(".schema.json"))
        .collect();
    assert!(files.len() > 5, "{files:?}");
    assert_eq!(schema_mistakes(&files), "");
}

#[test]
fn the_schema_of_keys_in_the_pages_is_that_of_the_code() {
    for (page, name, derived) in key_tables() {
        let path = docs().join(page);
        let written = std::fs::read_to_string(&path).unwrap();
        let begin = format!("<!-- keys of {name}: {BLESS} -->\n");
        let (before, rest) = written.split_once(&begin).expect(&begin);
        let (table, behind) = rest.split_once("\n\n").expect("a line behind the table");
        if std::env::var_os("EMUD_BLESS").is_some() {
            std::fs::write(&path, [before, &begin, &derived, "\n", behind].concat()).unwrap();
        } else {
            assert_eq!(format!("{table}\n"), derived, "write it with {BLESS}");
        }
    }
}

#[test]
fn each_file_has_a_type() {
    let of_types: BTreeSet<_> = schemas()
        .iter()
        .map(|(name, _)| format!("{name}.schema.json"))
        .collect();
    let files = std::fs::read_dir(docs()).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        files
            .filter(|name| name.ends_with(".schema.json"))
            .collect::<BTreeSet<_>>(),
        of_types
    );
}
