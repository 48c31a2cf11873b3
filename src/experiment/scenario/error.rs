// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::profile::ProfileError;
use crate::text::TextError;

/// Why a scenario or its plan is invalid.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ScenarioError {
    #[error(transparent)]
    Text(#[from] TextError),
    /// The mistake is in the file of a profile.
    #[error("{origin}, line {line}: profile {asked}:\n{error}")]
    Profile {
        origin: String,
        line: usize,
        asked: String,
        error: ProfileError,
    },
    /// The combined links of a star's classes are invalid.
    #[error("the peers' links together, on the hub:\n{0}")]
    Star(ProfileError),
    #[error("no scenario named `{name}` is shipped with emud\n{help}")]
    UnknownName { name: String, help: String },
    #[error("{nodes} {what}: this kind of topology allows {least} to {most}")]
    Nodes {
        nodes: u32,
        what: &'static str,
        least: u32,
        most: u32,
    },
    #[error("{0} has no [topology], so the file determines the number of its nodes")]
    NoTopology(String),
}

impl ScenarioError {
    /// Returns the exit code from sysexits.h: 66 if the file cannot be read, 65 if it is invalid,
    /// 64 if the arguments of the command line do not fit to it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Text(error) => error.exit_code(),
            Self::Profile { error, .. } | Self::Star(error) => error.exit_code(),
            Self::UnknownName { .. } => 66,
            Self::NoTopology(_) | Self::Nodes { .. } => 64,
        }
    }
}
