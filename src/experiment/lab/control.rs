// SPDX-License-Identifier: MIT OR Apache-2.0
//! The protocol between emud and the first process of a node: a line of JSON per order, and its
//! answer.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Files;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    SetUp(Files),
    EndAll,
}

/// An error as text.
pub(crate) type Answer = Result<(), String>;

/// One end of the connection.
#[derive(Debug)]
pub(crate) struct Control(BufReader<UnixStream>);

impl Control {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self(BufReader::new(stream))
    }

    pub(crate) fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.0.get_mut().write_all(&line)
    }

    /// Receives a line; `None`: the other end is closed.
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(serde_json::from_str(&line)?)),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => Ok(None),
            Err(e) => Err(e),
        }
    }
}
