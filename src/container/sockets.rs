// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sockets of engines of containers.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::api::{self, Events, Inspected, Labels, Server};
use super::{Container, ContainerError};
use crate::host::runtime;

/// Where the engines of root listen.
const USUAL: [&str; 2] = ["/run/docker.sock", "/run/podman/podman.sock"];
/// The variables of the clients of Docker and Podman.
const VARIABLES: [&str; 2] = ["DOCKER_HOST", "CONTAINER_HOST"];

/// An engine of containers that may run on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEngine {
    /// Path of the UNIX socket of its API.
    pub socket: PathBuf,
}

/// A running container as an engine reports it.
#[derive(Debug, Clone)]
pub struct Known {
    /// ID, name, engine and a process of the container.
    pub container: Container,
    /// Labels by name.
    pub labels: Labels,
}

/// Returns the engines: those of DOCKER_HOST and CONTAINER_HOST, of root, and of the user who called
/// sudo. Those of other users are left out: they could report any process as that of a container.
pub fn engines() -> Vec<ContainerEngine> {
    let given = VARIABLES.iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        Some(PathBuf::from(value.strip_prefix("unix://")?))
    });
    let of_user = runtime::invoking_user().into_iter().flat_map(|uid| {
        ["docker.sock", "podman/podman.sock"]
            .map(|name| Path::new(&format!("/run/user/{uid}")).join(name))
    });
    let usual = USUAL.map(PathBuf::from);
    let mut found: Vec<ContainerEngine> = Vec::new();
    for socket in given.chain(usual).chain(of_user) {
        // /var/run is /run.
        let socket = socket.canonicalize().unwrap_or(socket);
        if !found.iter().any(|engine| engine.socket == socket) {
            found.push(ContainerEngine { socket });
        }
    }
    found
}

impl ContainerEngine {
    /// Returns whether nothing listens there.
    pub(super) fn is_absent(e: &io::Error) -> bool {
        matches!(
            e.kind(),
            ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::NotADirectory
        )
    }

    pub(super) fn failed(&self, cause: io::Error) -> ContainerError {
        ContainerError::Api {
            socket: self.socket.clone(),
            cause,
        }
    }

    /// Returns a container with a state; `None`: the engine has none of this name or ID.
    pub(super) fn inspect(&self, name: &str) -> io::Result<Option<(Server, Inspected)>> {
        api::inspect(&self.socket, name)
    }

    /// Returns a running container; `None`: it does not exist, or it does not run.
    ///
    /// # Errors
    /// The engine does not answer.
    pub fn running(&self, id: &str) -> Result<Option<Known>, ContainerError> {
        let found = self.inspect(id).map_err(|e| self.failed(e))?;
        let runs = found.filter(|(_, found)| found.state.running && found.state.pid > 0);
        Ok(runs.map(|(server, found)| known(server, found)))
    }

    /// Returns ID, name and labels of all running containers.
    ///
    /// # Errors
    /// The engine does not answer in this time.
    pub fn list(
        &self,
        patience: Duration,
    ) -> Result<Vec<(String, String, Labels)>, ContainerError> {
        let (_, all) = api::list(&self.socket, patience).map_err(|e| self.failed(e))?;
        Ok(all.into_iter().map(listed).collect())
    }

    /// Opens the stream of the containers that start.
    ///
    /// # Errors
    /// The engine does not answer.
    pub fn events(&self) -> Result<Events, ContainerError> {
        Events::open(&self.socket).map_err(|e| self.failed(e))
    }
}

fn listed(listed: api::Listed) -> (String, String, Labels) {
    let names = listed.names.unwrap_or_default();
    let mut names = names.iter().map(|name| name.trim_start_matches('/'));
    // The others are what other containers call it (`docker run --link`): `client/db`.
    let own = names.find(|name| !name.contains('/'));
    let name = own.unwrap_or(super::short(&listed.id)).to_owned();
    (listed.id, name, listed.labels.unwrap_or_default())
}

pub(super) fn known(server: Server, found: Inspected) -> Known {
    let engine = match server {
        Server::Docker => "docker",
        Server::Podman => "podman",
    };
    Known {
        container: Container {
            name: found.name.trim_start_matches('/').to_owned(),
            id: found.id,
            engine: engine.to_owned(),
            pid: found.state.pid,
        },
        labels: found.config.labels.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It may follow them.
    #[test]
    fn the_name_is_not_one_of_a_link() {
        let name = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let id = "0123456789abcdef".to_owned();
            let (names, labels) = (Some(names), None);
            listed(api::Listed { id, names, labels }).1
        };
        assert_eq!(name(&["/client/db", "/db"]), "db");
        assert_eq!(name(&["/db", "/db/x"]), "db");
        assert_eq!(name(&["/client/db"]), "0123456789ab");
    }
}
