// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of Docker's Engine API that emud needs, which Podman has, too: HTTP over a Unix socket.
//!
//! Requests are HTTP/1.0: the server then sends no chunks, and ends a response by closing the
//! connection.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::PATIENCE;

/// No response is larger: a list of 10,000 containers has about 10 MiB.
const MOST_BYTES: u64 = 64 << 20;

/// Labels of a container.
pub type Labels = BTreeMap<String, String>;

/// A container, by its name or ID.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Inspected {
    pub id: String,
    /// With a slash before it.
    pub name: String,
    pub state: State,
    pub config: Config,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct State {
    pub running: bool,
    pub pid: i32,
    #[serde(default)]
    pub status: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Config {
    /// Podman writes null.
    pub labels: Option<Labels>,
}

/// A running container in a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Listed {
    pub id: String,
    pub names: Option<Vec<String>>,
    pub labels: Option<Labels>,
}

/// A container has started, or a network of it has come or gone: without `id`, `status` and `from`, which Docker no
/// longer sends from API 1.52 on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Event {
    #[serde(rename = "Type")]
    kind: String,
    action: String,
    actor: Actor,
}

/// The container of an event.
#[derive(Debug, Deserialize)]
struct Actor {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Attributes")]
    attributes: Option<Labels>,
}

impl Event {
    /// Returns the ID of the container. Docker's events of networks have that of the network, too, Podman's do not;
    /// those of a container have its labels among the attributes.
    pub fn container(&self) -> &str {
        let attributes = self.actor.attributes.as_ref();
        let beside = attributes.and_then(|all| all.get("container"));
        let beside = beside.filter(|_| self.kind == "network");
        beside.unwrap_or(&self.actor.id)
    }

    /// Returns whether the container has started.
    pub fn is_start(&self) -> bool {
        self.action == "start"
    }

    /// Returns whether a network of the container is gone.
    pub fn is_disconnect(&self) -> bool {
        self.action == "disconnect"
    }
}

/// The engine whose API a socket serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    Docker,
    Podman,
}

/// Returns a container; `None`: the engine has none with this name or ID.
pub(super) fn inspect(socket: &Path, name: &str) -> io::Result<Option<(Server, Inspected)>> {
    get(socket, &format!("/containers/{name}/json"), PATIENCE)
}

/// Returns the running containers.
pub(super) fn list(socket: &Path, patience: Duration) -> io::Result<(Server, Vec<Listed>)> {
    let found = get(socket, "/containers/json", patience)?;
    found
        .ok_or_else(|| bad("it has no list of containers: is this the socket of Docker or Podman?"))
}

/// A stream of the containers that start, or whose networks change.
#[derive(Debug)]
pub(super) struct Events {
    stream: BufReader<UnixStream>,
    begun: bool,
}

impl Events {
    /// Opens the stream: every event from now on is in it.
    pub(super) fn open(socket: &Path) -> io::Result<Self> {
        // {"type":["container","network"],"event":["start","connect","disconnect"]}. Podman compares a label with
        // its value, which differs here, so labels are left to the reader.
        let filter = "%7B%22type%22%3A%5B%22container%22%2C%22network%22%5D%2C%22event%22%3A%5B%22start%22\
                      %2C%22connect%22%2C%22disconnect%22%5D%7D";
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs());
        let path = format!("/events?since={now}&filters={filter}");
        let stream = request(socket, &path, PATIENCE)?;
        stream.set_read_timeout(None)?;
        Ok(Self {
            stream: BufReader::new(stream),
            begun: false,
        })
    }

    /// Waits for the next event; `None`: the engine has ended.
    pub fn wait(&mut self) -> io::Result<Option<Event>> {
        // The server may send its head with the first event.
        if !self.begun {
            match head(&mut self.stream)? {
                (200, _) => self.begun = true,
                (status, _) => return Err(bad(&format!("no stream of events: status {status}"))),
            }
        }
        let mut line = String::new();
        match self.stream.by_ref().take(1 << 20).read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(serde_json::from_str(&line)?)),
        }
    }
}

fn get<T: DeserializeOwned>(
    socket: &Path,
    path: &str,
    patience: Duration,
) -> io::Result<Option<(Server, T)>> {
    let mut stream = BufReader::new(request(socket, path, patience)?);
    let (status, server) = head(&mut stream)?;
    let mut body = String::new();
    if stream.take(MOST_BYTES).read_to_string(&mut body)? as u64 == MOST_BYTES {
        return Err(bad("its response is larger than 64 MiB"));
    }
    match status {
        200 => Ok(Some((server, serde_json::from_str(&body)?))),
        404 => Ok(None),
        status => Err(bad(&format!("status {status} for {path}: {}", body.trim()))),
    }
}

fn request(socket: &Path, path: &str, patience: Duration) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes())?;
    Ok(stream)
}

/// Reads the status and the headers.
fn head(stream: &mut BufReader<UnixStream>) -> io::Result<(u16, Server)> {
    let mut lines = stream.by_ref().take(1 << 16).lines();
    let first = lines.next().ok_or(ErrorKind::UnexpectedEof)??;
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| {
        let code = rest.split(' ').nth(1)?;
        code.parse().ok()
    });
    let status = status.ok_or_else(|| bad("it does not answer in HTTP"))?;
    let mut server = Server::Docker;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        match line.split_once(": ") {
            None if line.is_empty() => return Ok((status, server)),
            Some(("server", value)) if value.starts_with("libpod") => server = Server::Podman,
            Some(("transfer-encoding", _)) => return Err(bad("it sends chunks to HTTP/1.0")),
            _ => {}
        }
    }
    Err(ErrorKind::UnexpectedEof.into())
}

fn bad(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
