// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::text::TextError;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ProfileError {
    #[error(transparent)]
    Text(#[from] TextError),
    #[error("no profile named `{name}` is shipped with emud\n{help}")]
    UnknownName { name: String, help: String },
}

impl ProfileError {
    /// Returns the exit code after sysexits.h: 66 if there is no file to read, 65 if it is not a profile.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Text(error) => error.exit_code(),
            Self::UnknownName { .. } => 66,
        }
    }

    /// Returns the message, with colours if it goes to a terminal; `Display` gives it without.
    pub fn render(&self, terminal: bool) -> String {
        match self {
            Self::Text(error) => error.render(terminal),
            other => other.to_string(),
        }
    }
}
