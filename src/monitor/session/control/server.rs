// SPDX-License-Identifier: MIT OR Apache-2.0
//! Serves the socket, one task per connection. A client that sends too much or never reads only
//! delays itself, and no user can use up the connections of another one.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::protocol::{Message, Refusal, answer, parse};
use super::reporters::{Allowed, trusted};
use crate::host::now_ns;
use crate::monitor::session::Request;

/// Maximum length of a line; a report has some hundred bytes.
const MAX_LINE: usize = 4096;
/// Maximum number of simultaneous connections of a user. Root and the monitor's user have no limit: a stall
/// makes all holders of the host report at once, and a report beyond a limit would be lost.
const MAX_OF_USER: usize = 64;
/// The same for all these users together.
const MAX_OF_OTHERS: usize = 256;
/// Time limit for the first line of a connection. Later the connection may be idle: it only counts
/// for its user.
const FIRST_LINE: Duration = Duration::from_secs(10);
/// Time limit for the client to read an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause before accept is tried again after a failure: no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the permitted users until it is dropped.
pub async fn serve(listener: UnixListener, allowed: Allowed, requests: mpsc::Sender<Request>) {
    let room = Room::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        // A connection without credentials is dropped.
        let Ok(uid) = stream.peer_cred().map(|peer| peer.uid()) else {
            continue;
        };
        let seat = match allowed.has(uid) {
            true => room.seat(uid),
            false => Err(Refusal::NotAllowed(
                "only root, the user who called sudo, and the user of a run's programs may report (reporters in [alarms])",
            )),
        };
        match seat {
            Ok(seat) => {
                let requests = requests.clone();
                tokio::spawn(async move {
                    // A broken connection only affects its client.
                    let _ = converse(stream, trusted(uid), &requests).await;
                    drop(seat);
                });
            }
            Err(refusal) => {
                // A new socket accepts a line without blocking; otherwise the client does not get
                // it.
                let _ = stream.try_write(answer(&Err(refusal)).as_bytes());
            }
        }
    }
}

/// Number of connections by user.
#[derive(Debug, Clone, Default)]
struct Room(Arc<Mutex<HashMap<u32, usize>>>);

/// A slot for a connection.
#[derive(Debug)]
struct Seat {
    room: Room,
    uid: u32,
}

impl Room {
    fn seat(&self, uid: u32) -> Result<Seat, Refusal> {
        let mut users = self.users();
        let of_others: usize = (users.iter())
            .filter(|(uid, _)| !trusted(**uid))
            .map(|(_, connections)| connections)
            .sum();
        let own = users.get(&uid).copied().unwrap_or_default();
        if !trusted(uid) && (own >= MAX_OF_USER || of_others >= MAX_OF_OTHERS) {
            return Err(Refusal::Malformed("too many connections".into()));
        }
        users.insert(uid, own + 1);
        Ok(Seat {
            room: self.clone(),
            uid,
        })
    }

    fn users(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut users = self.room.users();
        match users.get_mut(&self.uid) {
            Some(connections) if *connections > 1 => *connections -= 1,
            _ => drop(users.remove(&self.uid)),
        }
    }
}

async fn converse(
    mut stream: UnixStream,
    trusted: bool,
    requests: &mpsc::Sender<Request>,
) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::with_capacity(MAX_LINE, reader);
    let mut hears = true;
    let mut next = timeout(FIRST_LINE, next_line(&mut reader)).await??;
    while let Some(line) = next {
        let result = match line {
            Ok(line) if line.trim_ascii().is_empty() => None,
            Ok(line) => Some(obey(&line, trusted, requests).await),
            Err(refusal) => Some(Err(refusal)),
        };
        if let Some(result) = result
            && hears
        {
            let answer = answer(&result);
            let sent = timeout(PATIENCE, writer.write_all(answer.as_bytes())).await?;
            // A request counts even if its client closes the connection.
            hears = sent.is_ok();
        }
        next = next_line(&mut reader).await?;
    }
    Ok(())
}

/// Returns the next line, even if the last one has no line feed; `None` at the end.
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
    let request = match parse(line, now_ns(), trusted)? {
        Message::Alarm(alarm) => Request::Alarm(alarm, answer),
        Message::Metric(line) => Request::Metric(line, answer),
        Message::Reset => Request::Reset(answer),
    };
    let ending = || Refusal::Malformed("the monitor is ending".into());
    requests.send(request).await.map_err(|_| ending())?;
    match answered.await {
        Ok(result) => result.map_err(Refusal::Malformed),
        Err(_) => Err(ending()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_takes_the_room_of_another() {
        let room = Room::default();
        let all = |uid| -> Vec<Seat> { (0..1000).map_while(|_| room.seat(uid).ok()).collect() };
        let mut seats: Vec<Vec<Seat>> = (60_000..60_010).map(all).collect();
        let taken: Vec<usize> = seats.iter().map(Vec::len).collect();
        assert_eq!(taken, [64, 64, 64, 64, 0, 0, 0, 0, 0, 0]);
        let refused = room.seat(60_009).unwrap_err();
        let why = answer(&Err(refused));
        assert!(why.contains("too many connections"), "{why}");
        let root = all(0);
        assert_eq!(root.len(), 1000, "each may be a holder's");
        seats.remove(0);
        assert_eq!(all(60_009).len(), 64);
        drop((seats, root));
        assert!(room.users().is_empty());
    }
}
