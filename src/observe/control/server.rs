// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves the socket, one task a connection. Whoever sends too much or never reads only
//! waits for himself.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use emud_monitor::log::mono_ns;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::protocol::{Message, Refusal, answer, parse};
use crate::observe::Request;

/// Longest line; a report has some hundred bytes.
const MAX_LINE: usize = 4096;
/// Connections at a time.
const MAX_CONNECTIONS: usize = 256;
/// How long an answer may wait for its reader.
const PATIENCE: Duration = Duration::from_secs(1);
/// Before accept is tried again when it failed: out of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until it is dropped.
pub async fn serve(listener: UnixListener, requests: mpsc::Sender<Request>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        match room.clone().try_acquire_owned() {
            Ok(permit) => {
                let requests = requests.clone();
                tokio::spawn(async move {
                    // A connection that breaks is its own affair.
                    let _ = converse(stream, &requests).await;
                    drop(permit);
                });
            }
            Err(_) => {
                let full = Refusal::Malformed("too many connections".into());
                // A fresh socket takes a line at once, or the client does not get it.
                let _ = stream.try_write(answer(&Err(full)).as_bytes());
            }
        }
    }
}

async fn converse(mut stream: UnixStream, requests: &mpsc::Sender<Request>) -> io::Result<()> {
    let uid = stream.peer_cred()?.uid();
    let trusted = uid == 0 || uid == rustix::process::geteuid().as_raw();
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::with_capacity(MAX_LINE, reader);
    let mut hears = true;
    while let Some(line) = next_line(&mut reader).await? {
        let result = match line {
            Ok(line) if line.trim_ascii().is_empty() => continue,
            Ok(line) => obey(&line, trusted, requests).await,
            Err(refusal) => Err(refusal),
        };
        if hears {
            let answer = answer(&result);
            let sent = timeout(PATIENCE, writer.write_all(answer.as_bytes())).await?;
            // Who sends and goes has still said something.
            hears = sent.is_ok();
        }
    }
    Ok(())
}

/// The next line, also an unended last one; `None` at the end.
async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<Result<Vec<u8>, Refusal>>> {
    let mut line = Vec::new();
    let mut long = false;
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            let nothing = line.is_empty() && !long;
            return Ok((!nothing).then(|| whole(line, long)));
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        long |= line.len() + part.len() > MAX_LINE;
        if !long {
            line.extend_from_slice(part);
        }
        let used = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(whole(line, long)));
        }
    }
}

fn whole(line: Vec<u8>, long: bool) -> Result<Vec<u8>, Refusal> {
    match long {
        true => Err(Refusal::Malformed(format!(
            "a line is longer than {MAX_LINE} bytes"
        ))),
        false => Ok(line),
    }
}

async fn obey(line: &[u8], trusted: bool, requests: &mpsc::Sender<Request>) -> Result<(), Refusal> {
    let (answer, answered) = oneshot::channel();
    let request = match parse(line, mono_ns(), trusted)? {
        Message::Alarm(alarm) => Request::Alarm(alarm, answer),
        Message::Reset => Request::Reset(answer),
    };
    let ending = || Refusal::Malformed("the monitor is ending".into());
    requests.send(request).await.map_err(|_| ending())?;
    match answered.await {
        Ok(result) => result.map_err(Refusal::Malformed),
        Err(_) => Err(ending()),
    }
}
