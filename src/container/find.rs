// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use rustix::process::geteuid;

use super::sockets::{self, ContainerEngine};
use super::{Container, ContainerError, cgroup, short};

/// A beginning of an ID without an engine: shorter ones could be names.
const FEWEST_DIGITS: usize = 8;

/// The containers of this host.
#[derive(Debug, Default)]
pub struct Running {
    /// Every container that runs.
    pub all: Vec<Container>,
    /// A sentence about each engine that does not answer; names of its containers are unknown.
    pub notes: Vec<String>,
}

/// Returns a running container by its name, its ID or the beginning of the ID, and its network namespace.
///
/// # Errors
/// There is none, several match, or it does not run.
pub fn find(name: &str) -> Result<(Container, File), ContainerError> {
    let valid = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    if !name.bytes().all(valid) || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(ContainerError::BadName(name.to_owned()));
    }
    if !geteuid().is_root() {
        return Err(ContainerError::NotRoot);
    }
    let mut found: BTreeMap<String, Container> = BTreeMap::new();
    let (mut asked, mut missing, mut failed, mut stopped) = (vec![], vec![], None, None);
    for engine in sockets::engines() {
        let socket = engine.socket.display().to_string();
        match engine.inspect(name) {
            Ok(Some((server, inspected))) => {
                let state = inspected.state.status.clone();
                let runs = inspected.state.running && inspected.state.pid > 0;
                let container = sockets::known(server, inspected).container;
                if !runs {
                    stopped = Some((container.name, state));
                } else if !Path::new(&format!("/proc/{}", container.pid)).exists() {
                    return Err(elsewhere(container, &engine));
                } else {
                    found.insert(container.id.clone(), container);
                }
            }
            Ok(None) => asked.push(format!("{socket} has none")),
            Err(e) if ContainerEngine::is_absent(&e) => {
                missing.push(format!("nothing at {socket}"))
            }
            Err(e) => failed = Some(engine.failed(e)),
        }
    }
    let by_engine = !found.is_empty();
    if name.len() >= FEWEST_DIGITS && name.bytes().all(|b| b.is_ascii_hexdigit()) {
        let groups = cgroup::all().map_err(ContainerError::Proc)?;
        let of_id = |(id, _): &(String, Container)| id.starts_with(&name.to_ascii_lowercase());
        for (id, container) in groups.into_iter().filter(of_id) {
            found.entry(id).or_insert(container);
        }
    }
    let name = name.to_owned();
    match (found.len(), failed, stopped) {
        (0, Some(e), None) => Err(e),
        (0, _, Some((name, state))) => Err(ContainerError::NotRunning { name, state }),
        (0, None, None) if asked.is_empty() => Err(ContainerError::NoEngine {
            name,
            missing: missing.join(", "),
        }),
        (0, None, None) => Err(ContainerError::NotFound {
            name,
            asked: asked.join(", "),
        }),
        (1, ..) => {
            let found = found.into_values().next();
            let found = found.ok_or(ContainerError::Proc(ErrorKind::NotFound.into()))?;
            let network = network(&found, by_engine)?;
            Ok((found, network))
        }
        _ => Err(ContainerError::Several {
            name,
            found: found.values().map(described).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Opens the network namespace of a container's process. If that was found by its control group, its number may be that
/// of a new process by now.
fn network(container: &Container, by_engine: bool) -> Result<File, ContainerError> {
    let file = File::open(format!("/proc/{}/ns/net", container.pid));
    let now = cgroup::of_process(container.pid);
    let is_inside = by_engine || now.is_some_and(|now| now.id == container.id);
    match file {
        Ok(file) if is_inside => Ok(file),
        Err(e) if e.kind() != ErrorKind::NotFound => Err(ContainerError::Proc(e)),
        _ => Err(ContainerError::NotRunning {
            name: container.name.clone(),
            state: "exited".to_owned(),
        }),
    }
}

fn elsewhere(container: Container, engine: &ContainerEngine) -> ContainerError {
    ContainerError::Elsewhere {
        name: container.name,
        pid: container.pid,
        socket: engine.socket.clone(),
    }
}

fn described(container: &Container) -> String {
    let Container {
        name, engine, id, ..
    } = container;
    format!("{name} of {engine} ({})", short(id))
}

/// Returns all running containers; an engine that does not answer in this time is not waited for.
pub fn running(patience: Duration) -> Result<Running, ContainerError> {
    let mut all = cgroup::all().map_err(ContainerError::Proc)?;
    let mut notes = vec![];
    for engine in sockets::engines() {
        let listed = match engine.list(patience) {
            Err(ContainerError::Api { cause, .. }) if ContainerEngine::is_absent(&cause) => {
                continue;
            }
            Err(e) => {
                notes.push(format!("names of containers are not known: {e}"));
                continue;
            }
            Ok(listed) => listed,
        };
        let mut without_group = vec![];
        for (id, name, _) in listed {
            match all.get_mut(&id) {
                Some(container) => container.name = name,
                None => without_group.push(id),
            }
        }
        // An engine that makes no control groups; a container that has just ended is none.
        for id in without_group {
            match engine.running(&id) {
                Ok(Some(known)) => drop(all.insert(id, known.container)),
                Ok(None) => {}
                // One that the engine is removing must not hide all others.
                Err(e) => notes.push(format!("container {} is not known: {e}", short(&id))),
            }
        }
    }
    Ok(Running {
        all: all.into_values().collect(),
        notes,
    })
}
