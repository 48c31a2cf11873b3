// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network namespace of the host, with the containers in it.

use schemars::JsonSchema;
use serde::Serialize;

/// A network namespace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Space {
    /// Inode number of the namespace.
    pub inode: u64,
    /// The namespace in which emud was started.
    pub here: bool,
    /// Names of `ip netns`.
    pub names: Vec<String>,
    /// Containers in the namespace; several of a pod share one.
    pub containers: Vec<InSpace>,
    /// Lowest ID of a process in the namespace, if possible not one of emud; null: it has none.
    pub pid: Option<i32>,
    /// Name of this process; null for one of emud.
    pub command: Option<String>,
}

/// A container in a network namespace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InSpace {
    /// Name given by the engine; if the engine cannot be reached, the beginning of the ID.
    pub name: String,
    /// ID of 64 hexadecimal digits.
    pub id: String,
    /// `docker`, `podman`, `containerd`, `cri-o` or `unknown`.
    pub engine: String,
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let containers: Vec<&str> = self.containers.iter().map(|c| c.name.as_str()).collect();
        match (self, &containers[..], &self.names[..]) {
            (Self { here: true, .. }, ..) => f.write_str("here"),
            (_, [_, ..], _) => write!(f, "container {}", containers.join("+")),
            (_, _, [name, ..]) => write!(f, "netns {name}"),
            (Self { pid: Some(pid), .. }, ..) => match &self.command {
                Some(command) => write!(f, "pid {pid} ({command})"),
                None => write!(f, "pid {pid}"),
            },
            _ => write!(f, "netns {}", self.inode),
        }
    }
}
