// SPDX-License-Identifier: MIT OR Apache-2.0
//! `profile = "lte"` of a named link: another profile's own link, to begin with.

use std::path::Path;

use super::draft::LinkDraft;
use super::read::Draft;
use super::shipped;
use crate::text::{At, Entry, Located, Mistake, Reader, Value, document, is_file, read_file, utf8};

/// Returns the links of the profile that is named, up and down, as if they had been written here.
pub(super) fn links(reader: &mut Reader, value: &Located<Value>) -> Option<[LinkDraft; 2]> {
    let Value::Text(name) = &value.value else {
        let help = "write a shipped profile's name, or a file: profile = \"lte\"";
        reader.wrong_kind(value, "profile", help);
        return None;
    };
    let cannot = |error: &dyn std::fmt::Display| {
        let help = "`emud profile check` checks that file alone";
        Mistake::new(&value.at, format!("profile {name}: {error}"), help)
    };
    let path = reader.folder.join(Path::new(name));
    let text = match is_file(name) {
        true => read_file(&path)
            .and_then(|bytes| utf8(&bytes, name))
            .map(|source| source.text)
            .map_err(|e| cannot(&e)),
        false => shipped::text(name)
            .map(str::to_owned)
            .map_err(|e| cannot(&e)),
    };
    let read = text.and_then(|text| {
        document(0, &text).map_err(|mistakes| match mistakes.first() {
            Some(first) => cannot(&first.title),
            None => cannot(&"not valid TOML"),
        })
    });
    match read.and_then(|entries| alone(reader, entries, &path, value, &cannot)) {
        Ok(links) => Some(links),
        Err(mistake) => {
            reader.mistakes.push(mistake);
            None
        }
    }
}

/// Its mistakes are this key's.
fn alone(
    reader: &Reader,
    mut entries: Vec<Entry>,
    path: &Path,
    value: &Located<Value>,
    cannot: &dyn Fn(&dyn std::fmt::Display) -> Mistake,
) -> Result<[LinkDraft; 2], Mistake> {
    // Also, a profile may not lead back to itself.
    let more = ["links", "phase", "phases", "state", "rule", "matrix"];
    if let Some(entry) = entries
        .iter()
        .find(|e| more.contains(&e.key.value.as_str()))
    {
        let what = format!("it has `{}`, and a link is one link alone", entry.key.value);
        return Err(cannot(&what));
    }
    entries.iter_mut().for_each(|entry| here(entry, &value.at));
    let mut inner = Reader {
        folder: path.parent().unwrap_or(&reader.folder).to_owned(),
        ..Reader::default()
    };
    let mut draft = Draft::default();
    draft.read(&mut inner, &entries);
    match inner.mistakes.first() {
        Some(mistake) => Err(cannot(&mistake.title)),
        None => Ok([draft.up, draft.down]),
    }
}

/// Sets the position of a value from another file to one in this file.
fn here(entry: &mut Entry, at: &At) {
    entry.key.at = at.clone();
    relocate(&mut entry.value, at);
}

fn relocate(value: &mut Located<Value>, at: &At) {
    value.at = at.clone();
    match &mut value.value {
        Value::Table(entries) => entries.iter_mut().for_each(|entry| here(entry, at)),
        Value::List(items) => items.iter_mut().for_each(|item| relocate(item, at)),
        _ => {}
    }
}

/// Returns the links that a named link is based on, by its key `profile`.
pub(super) fn of_named(reader: &mut Reader, entries: &[Entry]) -> [LinkDraft; 2] {
    let entry = entries.iter().find(|e| e.key.value == "profile");
    entry
        .and_then(|entry| links(reader, &entry.value))
        .unwrap_or_default()
}
