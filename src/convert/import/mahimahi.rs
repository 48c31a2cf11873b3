// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two traces of Mahimahi as a profile, which names their files.

use std::path::{Path, PathBuf};

use super::writer::{Writer, string};
use super::{Imported, mistakes};
use crate::profile::{Profile, ProfileError, read_mahimahi};
use crate::text::read_text;

/// The profile whose up and down are these; `folder` is where it will be, if that is known.
///
/// # Errors
/// A file that cannot be read or is no trace.
pub fn mahimahi(up: &Path, down: &Path, folder: Option<&Path>) -> Result<Imported, ProfileError> {
    for file in [up, down] {
        // Its mistakes are in it, not in the profile that would name it.
        let name = file.display().to_string();
        let text = read_text(file)?;
        read_mahimahi(&text).map_err(|wrong| mistakes(&name, &text, wrong.in_text(&text)))?;
    }
    let mut out = Writer::default();
    let source = format!("Mahimahi traces {} and {}", up.display(), down.display());
    out.key("source", string(&source));
    out.header("link");
    out.note(
        "mm-link counts 1500 bytes an opportunity of an IP packet without the Ethernet header, \
         which is among a packet's bytes here.",
    );
    out.key("overhead", -14);
    out.note(
        "mm-link's usual queue is infinite; this is the longest there is. Its droptail queues are \
         queue = \"100p\" and the like.",
    );
    out.key("queue", "\"65536p\"");
    out.note("mm-link starts at the first line when it is started, this link at attach.");
    for (header, file) in [("up", up), ("down", down)] {
        out.header(header);
        let file = reference(file, folder);
        let file = string(&file.display().to_string());
        out.key("trace", format!("{{ mahimahi = {file}, loop = true }}"));
    }
    let imported = out.finish();
    // A trace with a mistake must not become a profile with one.
    Profile::from_text(
        &imported.toml,
        "the profile",
        folder.unwrap_or(Path::new("")),
    )?;
    Ok(imported)
}

/// Relative to the profile's folder if it is below it, else absolute.
fn reference(file: &Path, folder: Option<&Path>) -> PathBuf {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let file = whole(file);
    let below = folder.and_then(|folder| file.strip_prefix(whole(folder)).ok());
    below.map_or_else(|| file.clone(), Path::to_owned)
}
