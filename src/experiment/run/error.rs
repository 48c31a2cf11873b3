// SPDX-License-Identifier: MIT OR Apache-2.0
use std::io;
use std::path::PathBuf;

use crate::datapath::LinkError;
use crate::datapath::radio::RadioError;
use crate::experiment::lab::LabError;
use crate::monitor::session::StartError;

/// Why a run could not be carried out. Everything created until then has been removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum RunError {
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error("link {link} ({interface} in {node}): {error}")]
    Link {
        link: String,
        node: String,
        interface: String,
        error: Box<LinkError>,
    },
    #[error("medium {medium}{}: {error}", of_node(.node.as_ref()))]
    Medium {
        medium: String,
        /// A station that could not be created.
        node: Option<String>,
        error: Box<RadioError>,
    },
    #[error(transparent)]
    InPlaceLink(#[from] LinkError),
    #[error(transparent)]
    Observe(#[from] StartError),
    #[error("{node}: `{command}` of the preparation ended with {status}{hint}")]
    Preparation {
        node: String,
        command: String,
        status: String,
        /// Empty, or begins with a space.
        hint: String,
    },
    #[error("{node}: the preparation took more than {seconds} s: {what}; see `ready-within`")]
    TooSlow {
        node: String,
        what: String,
        seconds: f64,
    },
    #[error("{node}: the service `{command}` ended with {status} before the measurement")]
    Service {
        node: String,
        command: String,
        status: String,
    },
    #[error("{node}: {command}: {error}")]
    Command {
        node: String,
        command: String,
        error: io::Error,
    },
    #[error("the folder {} cannot be created: {error}", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error("--in-place: {0}")]
    InPlace(String),
    #[error("{0}")]
    TooLarge(String),
    #[error("{what}: {error}")]
    System {
        what: &'static str,
        error: io::Error,
    },
}

fn of_node(node: Option<&String>) -> String {
    node.map_or_else(String::new, |node| format!(" in {node}"))
}

impl RunError {
    /// Returns the exit code from sysexits.h; for a command that cannot be run, the exit code of
    /// shells.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Lab(e) => e.exit_code(),
            Self::Link { error, .. } => error.exit_code(),
            Self::InPlaceLink(e) => e.exit_code(),
            Self::Medium { error, .. } => error.exit_code(),
            Self::Observe(e) => e.exit_code(),
            Self::Command { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::Command { .. } => 126,
            Self::Preparation { .. } | Self::TooSlow { .. } | Self::Service { .. } => 69,
            Self::TooLarge(_) => 65,
            Self::Folder { .. } => 73,
            Self::InPlace(_) | Self::System { .. } => 71,
        }
    }
}
