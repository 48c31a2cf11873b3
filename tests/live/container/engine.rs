// SPDX-License-Identifier: MIT OR Apache-2.0
//! A server that answers as Podman 4.3 and Docker 20.10 did when they were recorded, with the keys
//! that emud reads, which newer ones have, too. Its containers are processes of a test.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use support::lab::{Said, emud_path, run};

static NUMBER: AtomicU32 = AtomicU32::new(0);

#[derive(Default)]
struct State {
    /// As in `/containers/NAME/json`.
    containers: Vec<Value>,
    subscribers: Vec<UnixStream>,
}

impl State {
    fn report(&mut self, event: &Value) {
        let line = format!("{event}\n");
        self.subscribers
            .retain_mut(|s| s.write_all(line.as_bytes()).is_ok());
    }
}

/// An engine of containers.
pub struct Engine {
    pub socket: PathBuf,
    state: Arc<Mutex<State>>,
}

/// A process in a network namespace.
pub struct Process(Child);

impl Process {
    pub fn start(namespace: &str) -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, "sleep", "600"]);
        // ip replaces itself by the program.
        Self(command.stdin(Stdio::null()).spawn().expect("ip netns exec"))
    }

    /// A process in the network of this test.
    pub fn here() -> Self {
        let mut command = Command::new("sleep");
        Self(
            command
                .arg("600")
                .stdin(Stdio::null())
                .spawn()
                .expect("sleep"),
        )
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An ID of 64 digits that no other test has.
pub fn new_id() -> String {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{:08x}{number:08x}{}", std::process::id(), "e".repeat(48))
}

impl Engine {
    pub fn new() -> Self {
        let socket = std::env::temp_dir().join(format!("emud-engine-{}", new_id()));
        let listener = UnixListener::bind(&socket).expect("bind");
        let state = Arc::new(Mutex::new(State::default()));
        let of_server = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&of_server, stream.expect("accept"));
            }
        });
        Self { socket, state }
    }

    /// A container with a process, or none if it does not run; replaces that of this name. Reports
    /// the start. Returns the ID. Of one called `broken` the engine knows no more than that it runs.
    pub fn add(&self, name: &str, process: Option<&Process>, labels: &Value) -> String {
        let mut state = self.state.lock().unwrap();
        let same = |c: &Value| c["Name"] == json!(format!("/{name}"));
        let id = match state.containers.iter().position(same) {
            Some(at) => state.containers.remove(at)["Id"]
                .as_str()
                .unwrap()
                .to_owned(),
            None => new_id(),
        };
        let status = if process.is_some() {
            "running"
        } else {
            "exited"
        };
        state.containers.push(json!({
            "Id": id, "Name": format!("/{name}"),
            "State": {
                "Status": status, "Running": process.is_some(), "Paused": false,
                "Pid": process.map_or(0, Process::id),
            },
            "HostConfig": {"NetworkMode": "bridge"},
            "Config": {"Hostname": "x", "Labels": labels},
        }));
        let event = json!({
            "Type": "container", "Action": "start",
            "Actor": {"ID": id, "Attributes": labels},
        });
        if process.is_some() {
            state.report(&event);
        }
        id
    }

    /// Reports `connect` or `disconnect` of a network as Docker does; Podman has the ID of the container instead of
    /// the network's.
    pub fn network(&self, action: &str, container: &str) {
        let attributes = json!({"container": container, "name": "bridge", "type": "bridge"});
        let actor = json!({"ID": "f".repeat(64), "Attributes": attributes});
        let event = json!({"Type": "network", "Action": action, "Actor": actor});
        self.state.lock().unwrap().report(&event);
    }

    /// emud, which finds this engine as that of Docker.
    pub fn command(&self) -> Command {
        let mut command = Command::new(emud_path());
        command.env("DOCKER_HOST", format!("unix://{}", self.socket.display()));
        command.env_remove("CONTAINER_HOST").env_remove("SUDO_UID");
        command
    }

    pub fn emud(&self, args: &[&str]) -> Said {
        run(self.command().args(args))
    }

    /// Whether a client waits for events.
    pub fn is_watched(&self) -> bool {
        !self.state.lock().unwrap().subscribers.is_empty()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn answer(state: &Mutex<State>, mut stream: UnixStream) {
    let mut lines = BufReader::new(stream.try_clone().expect("clone")).lines();
    let first = lines.next().expect("a request").expect("read");
    let path = first
        .strip_prefix("GET ")
        .and_then(|rest| rest.strip_suffix(" HTTP/1.0"));
    let path = path.unwrap_or_else(|| panic!("{first}")).to_owned();
    while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
    let mut state = state.lock().unwrap();
    let mut head = "HTTP/1.0 200 OK\r\nServer: Libpod/4.3.1 (linux)\r\n".to_owned();
    if path.starts_with("/events?") {
        let starts = "%22event%22%3A%5B%22start%22%2C%22connect%22%2C%22disconnect%22%5D";
        assert!(path.contains(starts), "{path}");
        stream
            .write_all(format!("{head}\r\n").as_bytes())
            .expect("write");
        state.subscribers.push(stream);
        return;
    }
    let body = match path.as_str() {
        "/containers/json" => Some(json!(
            (state.containers.iter())
                .filter(|c| c["State"]["Running"] == true)
                .map(|c| json!({
                    "Id": c["Id"], "Names": [c["Name"]], "State": "running",
                    "Labels": c["Config"]["Labels"],
                }))
                .collect::<Vec<_>>()
        )),
        path => {
            let name = path.split('/').nth(2).expect("a name");
            let is = |c: &&Value| {
                c["Name"] == json!(format!("/{name}"))
                    || c["Id"].as_str().unwrap().starts_with(name)
            };
            state.containers.iter().find(is).cloned()
        }
    };
    if body.as_ref().is_some_and(|body| body["Name"] == "/broken") {
        head = head.replace("200 OK", "500 Internal Server Error");
    }
    let body = body.map(|body| body.to_string()).unwrap_or_else(|| {
        head = head.replace("200 OK", "404 Not Found");
        json!({"message": "no such container", "response": 404}).to_string()
    });
    let _ = write!(head, "Content-Length: {}\r\n\r\n{body}", body.len());
    let _ = stream.write_all(head.as_bytes());
}
