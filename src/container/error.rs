// SPDX-License-Identifier: MIT OR Apache-2.0
use std::io;
use std::path::PathBuf;

/// Why a container cannot be found or entered.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants")]
pub enum ContainerError {
    #[error(
        "`{0}` is neither a name nor an ID of a container: it has other characters than letters, digits and `_.-`"
    )]
    BadName(String),
    #[error(
        "there is no container {name}: {asked}, and no process of this host is in a control group of a container with this ID"
    )]
    NotFound { name: String, asked: String },
    #[error(
        "cannot find container {name}: no engine of containers runs here ({missing}), and no process is in a control group of a container with this ID; start Docker, or `systemctl start podman.socket`; DOCKER_HOST=unix://PATH names another socket"
    )]
    NoEngine { name: String, missing: String },
    #[error("container {name} is not running (it is {state}): start it first")]
    NotRunning { name: String, state: String },
    #[error("several containers match {name}: {found}; use more digits of the ID of one")]
    Several { name: String, found: String },
    #[error(
        "container {name} has the network of this host (`--network host`): use the interface without --container, \
         from another network namespace with --netns 1"
    )]
    HostNetwork { name: String },
    #[error(
        "process {pid} of container {name} does not exist on this host: {socket} is of an engine on another machine, or in a virtual one"
    )]
    Elsewhere {
        name: String,
        pid: i32,
        socket: PathBuf,
    },
    #[error("entering a container needs root (CAP_SYS_ADMIN); containers of a user, too: use sudo")]
    NotRoot,
    #[error("{socket}: {cause}", socket = socket.display())]
    Api { socket: PathBuf, cause: io::Error },
    #[error("cannot read the processes of this host (/proc): {0}")]
    Proc(io::Error),
}

impl ContainerError {
    /// Returns the exit code for the error, from sysexits.h.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::BadName(_) | Self::Several { .. } | Self::HostNetwork { .. } => 64,
            Self::NotFound { .. } | Self::NotRunning { .. } | Self::Elsewhere { .. } => 66,
            Self::NoEngine { .. } => 69,
            Self::NotRoot => 77,
            Self::Api { cause, .. } if cause.kind() == io::ErrorKind::PermissionDenied => 77,
            Self::Api { .. } | Self::Proc(_) => 71,
        }
    }
}
