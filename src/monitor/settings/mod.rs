// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the monitor's configuration: a TOML file and flags to a validated [`Config`].
//!
//! The data flow is: file and [`Argument`]s -> [`crate::text`] (keys and values with their
//! positions) -> `draft` (values of the command line over those of the file) -> [`Config`].
//! [`emud_monitor::criteria`] defines the keys. The format is in docs/monitor.md.

mod argument;
mod draft;
mod keys;
mod print;
mod value;

use std::path::Path;

use emud_monitor::Config;

use crate::text::{Mistakes, Reader, Source, TextError, document, read_file, utf8};

pub use argument::{Argument, COMMAND_LINE};
pub use print::{to_toml, toml};

use draft::Draft;

/// Instead of a file: the thresholds for machines that others use at the same time.
pub const SHARED: &str = "shared";

/// Returns the text of a file of thresholds, or of [`SHARED`].
///
/// # Errors
/// The file cannot be read, is too long or not UTF-8.
pub fn text(file: &Path) -> Result<String, TextError> {
    Ok(source(file)?.text)
}

fn source(file: &Path) -> Result<Source, TextError> {
    match file == Path::new(SHARED) {
        true => utf8(include_bytes!("shared.toml"), "shared.toml"),
        false => utf8(&read_file(file)?, &file.display().to_string()),
    }
}

/// Returns the configuration: the defaults, `file` (or [`SHARED`]) over them, `arguments` over both.
///
/// # Errors
/// All mistakes in the file and on the command line, or the file cannot be read.
pub fn config(file: Option<&Path>, arguments: &[Argument]) -> Result<Config, TextError> {
    let source = match file {
        Some(file) => source(file)?,
        None => Source {
            origin: String::new(),
            text: String::new(),
        },
    };
    read(source, arguments)
}

/// Reads the text of a file; `origin` is its name in messages.
///
/// # Errors
/// All mistakes in `text`, or it is too long.
pub fn parse(text: &str, origin: &str) -> Result<Config, TextError> {
    read(utf8(text.as_bytes(), origin)?, &[])
}

fn read(file: Source, arguments: &[Argument]) -> Result<Config, TextError> {
    let mut reader = Reader::default();
    let mut draft = Draft::default();
    match document(draft::FILE, &file.text) {
        Ok(entries) => draft.read(&mut reader, &entries),
        Err(mistakes) => reader.mistakes = mistakes,
    }
    let only = draft.arguments(&mut reader, arguments);
    let config = draft.finish(&mut reader, &only);
    if reader.mistakes.is_empty() {
        return Ok(config);
    }
    let mut sources = vec![file];
    sources.extend(arguments.iter().map(Argument::source));
    Err(TextError::Mistakes(Mistakes::new(sources, reader.mistakes)))
}
