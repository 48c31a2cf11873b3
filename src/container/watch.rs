// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports containers when they start, of every engine, also after an engine was restarted.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::sockets::{self, ContainerEngine, Known};
use super::{ContainerError, PATIENCE, short};

/// How long to wait before an engine that has ended is contacted again.
const RETRY: Duration = Duration::from_secs(2);

/// A report of a watch.
#[derive(Debug)]
pub enum Seen {
    /// A running container, and whether it has just started; a start may be reported several times.
    Runs(Known, bool),
    /// ID of a container with a network less.
    Disconnected(String),
    /// A sentence about an engine.
    Note(String),
}

/// Starts a thread for each engine, which reports the containers that run and then those that
/// start or get another network.
pub fn watch() -> Receiver<Seen> {
    let (sender, receiver) = channel();
    for engine in sockets::engines() {
        let sender = sender.clone();
        thread::spawn(move || follow(&engine, &sender));
    }
    receiver
}

/// Ends when the receiver is dropped.
fn follow(engine: &ContainerEngine, sender: &Sender<Seen>) {
    let mut noted = None;
    loop {
        let ended = match once(engine, sender) {
            Ok(()) => "it has closed its stream of events".to_owned(),
            Err(ContainerError::Api { cause, .. }) if ContainerEngine::is_absent(&cause) => {
                "nothing listens there".to_owned()
            }
            Err(e) => e.to_string(),
        };
        // Once for each reason, not every 2 s.
        if noted.as_ref() != Some(&ended) {
            let socket = engine.socket.display();
            let note = format!(
                "{socket}: {ended}; trying again every {} s",
                RETRY.as_secs()
            );
            if sender.send(Seen::Note(note)).is_err() {
                return;
            }
            noted = Some(ended);
        }
        thread::sleep(RETRY);
    }
}

fn once(engine: &ContainerEngine, sender: &Sender<Seen>) -> Result<(), ContainerError> {
    let report = |id: &str, starts: bool| -> Result<(), ContainerError> {
        if let Some(known) = engine.running(id)? {
            // The receiver is gone only when the process ends.
            let _ = sender.send(Seen::Runs(known, starts));
        }
        Ok(())
    };
    // Before the list, so that no start is in neither.
    let mut events = engine.events()?;
    for (id, ..) in engine.list(PATIENCE)? {
        if let Err(e) = report(&id, false) {
            // A container that the engine is removing must not hold up the next ones.
            let _ = sender.send(Seen::Note(format!("container {}: {e}", short(&id))));
        }
    }
    while let Some(event) = events.wait().map_err(|e| engine.failed(e))? {
        match event.container() {
            id if event.is_disconnect() => drop(sender.send(Seen::Disconnected(id.to_owned()))),
            id => report(id, event.is_start())?,
        }
    }
    Ok(())
}
