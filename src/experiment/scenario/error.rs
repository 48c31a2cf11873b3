// SPDX-License-Identifier: MIT OR Apache-2.0

use crate::profile::ProfileError;
use crate::text::TextError;

/// Why there is no scenario, or no plan of it.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error(transparent)]
    Text(#[from] TextError),
    /// The mistake is in a profile's own file.
    #[error("{origin}, line {line}: profile {asked}:\n{error}")]
    Profile {
        origin: String,
        line: usize,
        asked: String,
        error: ProfileError,
    },
    /// The links of a star's classes together.
    #[error("the peers' links together, on the hub:\n{0}")]
    Star(ProfileError),
    #[error("no scenario named `{name}` is shipped with emud\n{help}")]
    UnknownName { name: String, help: String },
    #[error("{nodes} {what}: a topology like this has {least} to {most}")]
    Nodes {
        nodes: u32,
        what: &'static str,
        least: u32,
        most: u32,
    },
    #[error("{0} has no [topology], so the number of its nodes is that of the file")]
    NoTopology(String),
}

impl ScenarioError {
    /// Exit code after sysexits: 66 where there is nothing to read, 65 where it makes no sense, 64
    /// where what was asked for on the command line does not fit to it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Text(error) => error.exit_code(),
            Self::Profile { error, .. } | Self::Star(error) => error.exit_code(),
            Self::UnknownName { .. } => 66,
            Self::NoTopology(_) | Self::Nodes { .. } => 64,
        }
    }
}
