// SPDX-License-Identifier: MIT OR Apache-2.0
//! Containers of this host: those of Docker and Podman by the API of the engine, those of any
//! engine by the control group of a process.

use std::time::Duration;

mod api;
mod cgroup;
mod error;
mod find;
mod sockets;
mod watch;

pub use api::Labels;
pub use cgroup::of_process;
pub use error::ContainerError;
pub use find::{Running, find, running};
pub use sockets::Known;
pub use watch::{Seen, watch};

/// An engine that does not answer for this long is not waited for.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A container whose processes run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// 64 hexadecimal digits.
    pub id: String,
    /// Name given by the engine; if the engine cannot be reached, the first 12 digits of the ID.
    pub name: String,
    /// Name of the engine: `docker`, `podman`, `containerd`, `cri-o` or `unknown`.
    pub engine: String,
    /// A process of the container, by its ID on this host.
    pub pid: i32,
}

/// Returns the first digits of an ID, as engines print it.
pub fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
