// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports two traces of Mahimahi as a profile that refers to their files.

use std::path::{Path, PathBuf};

use super::writer::{Writer, string};
use super::{Imported, mistakes};
use crate::convert::netem::MOST_QUEUED;
use crate::profile::{Profile, ProfileError, read_mahimahi};
use crate::text::read_text;

/// Returns a profile with these traces as up and down; `folder` is the folder of the profile, if
/// known.
///
/// # Errors
/// A file that cannot be read or is not a trace.
pub fn mahimahi(up: &Path, down: &Path, folder: Option<&Path>) -> Result<Imported, ProfileError> {
    for file in [up, down] {
        // A mistake in the file is reported for the file, not for the profile.
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
         which is part of a packet's bytes here.",
    );
    out.key("overhead", -14);
    out.note(
        "mm-link's default queue is infinite; this is the longest one of emud. Its droptail queues are \
         queue = \"100p\" and the like.",
    );
    out.key("queue", format!("\"{MOST_QUEUED}p\""));
    out.note("mm-link starts at the first line when it is started, this link at attach.");
    for (header, file) in [("up", up), ("down", down)] {
        out.header(header);
        let file = reference(file, folder);
        let file = string(&file.display().to_string());
        out.key("trace", format!("{{ mahimahi = {file}, loop = true }}"));
    }
    let imported = out.finish();
    // An invalid trace must not result in an invalid profile.
    Profile::from_text(
        &imported.toml,
        "the profile",
        folder.unwrap_or(Path::new("")),
    )?;
    Ok(imported)
}

/// Returns a path relative to the profile's folder if the file is below it, otherwise absolute.
fn reference(file: &Path, folder: Option<&Path>) -> PathBuf {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let file = whole(file);
    let below = folder.and_then(|folder| file.strip_prefix(whole(folder)).ok());
    below.map_or_else(|| file.clone(), Path::to_owned)
}
