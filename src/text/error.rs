// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading of files as text, with errors.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use annotate_snippets::Renderer;

use super::{At, Mistake, Mistakes, Source};

/// Maximum length of a file; the shipped profiles are a thousandth of it.
pub const MAX_BYTES: usize = 1 << 20;

/// Maximum length of a log.
const MAX_LOG_BYTES: usize = 1 << 28;

/// Why a text is rejected.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The text has mistakes; the list is complete.
    #[error("{0}")]
    Mistakes(Mistakes),
    /// The text has more than `limit` bytes.
    #[error("{origin}: the file is too long, the maximum is {limit} bytes")]
    TooLarge {
        /// Name of the text.
        origin: String,
        /// Largest number of bytes.
        limit: usize,
    },
    /// The file cannot be read.
    #[error("{}: {error}", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the kernel.
        error: io::Error,
    },
}

impl TextError {
    /// Returns the exit code from sysexits.h: 66 if the input is missing, 77 if it may not be read,
    /// 65 if it is invalid.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Mistakes(_) | Self::TooLarge { .. } => 65,
            Self::Unreadable { error, .. } => match error.kind() {
                io::ErrorKind::PermissionDenied => 77,
                _ => 66,
            },
        }
    }

    /// Formats the message, with colours for a terminal; `Display` has no colours.
    pub fn render(&self, terminal: bool) -> String {
        match self {
            Self::Mistakes(mistakes) if terminal => mistakes.render(&Renderer::styled()),
            other => other.to_string(),
        }
    }
}

/// Reads a log from a file, or from standard input for `-`; bytes that are not UTF-8 are replaced.
///
/// # Errors
/// The file cannot be read, or has more than 256 MiB.
pub fn read_text(path: &Path) -> Result<String, TextError> {
    let read = match path.to_str() {
        Some("-") => up_to(io::stdin().lock(), MAX_LOG_BYTES),
        _ => read_up_to(path, MAX_LOG_BYTES),
    };
    let bytes = read.map_err(|error| TextError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    if bytes.len() > MAX_LOG_BYTES {
        return Err(TextError::TooLarge {
            origin: path.display().to_string(),
            limit: MAX_LOG_BYTES,
        });
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// Reads the bytes of a file, up to [`MAX_BYTES`] + 1.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, TextError> {
    read_up_to(path, MAX_BYTES).map_err(|error| TextError::Unreadable {
        path: path.to_owned(),
        error,
    })
}

/// Reads the bytes of a file, up to `limit` + 1.
pub(crate) fn read_up_to(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    up_to(File::open(path)?, limit)
}

fn up_to(source: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the file is too long, even for /dev/zero.
    source.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Converts the bytes of `origin` if they are text and not too long.
pub(crate) fn utf8(bytes: &[u8], origin: &str) -> Result<Source, TextError> {
    utf8_up_to(bytes, origin, MAX_BYTES)
}

/// Does [`utf8`] with a different limit.
pub(crate) fn utf8_up_to(bytes: &[u8], origin: &str, limit: usize) -> Result<Source, TextError> {
    if bytes.len() > limit {
        return Err(TextError::TooLarge {
            origin: origin.to_owned(),
            limit,
        });
    }
    let source = |text: &str| Source {
        origin: origin.to_owned(),
        text: text.to_owned(),
    };
    let error = match str::from_utf8(bytes) {
        Ok(text) => return Ok(source(text)),
        Err(error) => error,
    };
    // Shown with the bad bytes replaced; positions before them do not change.
    let start = error.valid_up_to();
    let end = start + char::REPLACEMENT_CHARACTER.len_utf8();
    let bad: Vec<_> = bytes[start..]
        .iter()
        .take(error.error_len().unwrap_or(4))
        .map(|b| format!("{b:#04x}"))
        .collect();
    let mistake = Mistake::new(
        &At {
            source: 0,
            span: start..end,
        },
        format!("not UTF-8 text: {}", bad.join(" ")),
        "save the file as UTF-8",
    );
    Err(TextError::Mistakes(Mistakes::new(
        vec![source(&String::from_utf8_lossy(bytes))],
        vec![mistake],
    )))
}
