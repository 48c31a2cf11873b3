// SPDX-License-Identifier: MIT OR Apache-2.0
//! The current state of all keys with one beginning, kept up to date by a watch.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use super::kv::{Kv, encode};
use super::{Client, Entry};
use crate::fleet::FleetError;
use crate::fleet::keys::behind;

/// Pause before a broken watch is opened again.
const AGAIN: Duration = Duration::from_millis(300);
/// How often a watch is compared with the member that answers: the kernel of one whose process hangs
/// keeps the connection, and the renewals of the lease, which have a time limit, leave it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Keys with their values.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// By key.
    pub entries: BTreeMap<String, Entry>,
    /// Why it may be old; `None`: it is as current as the store's answers.
    pub broken: Option<String>,
    /// Whether it was read at least once.
    pub known: bool,
}

/// Follows all keys with this beginning until the receiver is dropped. Every reader sees the latest
/// state; states in between may be skipped.
pub fn mirror(client: &Client, prefix: String) -> watch::Receiver<Snapshot> {
    let (tell, told) = watch::channel(Snapshot::default());
    let client = client.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = tell.closed() => {}
            () = follow(&client, &prefix, &tell) => {}
        }
    });
    told
}

async fn follow(client: &Client, prefix: &str, tell: &watch::Sender<Snapshot>) {
    loop {
        if let Err(e) = once(client, prefix, tell).await {
            tell.send_modify(|now| now.broken = Some(e.to_string()));
            sleep(AGAIN).await;
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    events: Vec<Event>,
    #[serde(default)]
    canceled: bool,
}

#[derive(Deserialize)]
struct Event {
    /// Missing for PUT, which is 0.
    #[serde(default, rename = "type")]
    kind: String,
    kv: Kv,
}

/// Reads all, then applies the changes since then.
async fn once(
    client: &Client,
    prefix: &str,
    tell: &watch::Sender<Snapshot>,
) -> Result<(), FleetError> {
    let (entries, revision) = client.range(prefix).await?;
    tell.send_replace(Snapshot {
        entries,
        broken: None,
        known: true,
    });
    let body = json!({ "create_request": {
        "key": encode(prefix),
        "range_end": encode(behind(prefix)),
        "start_revision": (revision + 1).to_string(),
    }});
    let member = client.current();
    let mut stream = client.stream("/v3/watch", &body).await?;
    loop {
        let value = tokio::select! {
            value = stream.next() => value?,
            () = sleep(LOOK_EVERY) => {
                if client.current() == member {
                    continue;
                }
                let why = "the member of the watch does not answer other requests";
                return Err(FleetError::Unreachable(why.into()));
            }
        };
        let Some(value) = value else { break };
        let answer: Answer = serde_json::from_value(value).map_err(|e| FleetError::Answer {
            attempted: "/v3/watch".into(),
            problem: e.to_string(),
        })?;
        if answer.canceled {
            break;
        }
        if answer.events.is_empty() {
            continue;
        }
        tell.send_modify(|now| {
            for event in &answer.events {
                match event.kind.as_str() {
                    "DELETE" => {
                        event.kv.name().and_then(|name| now.entries.remove(&name));
                    }
                    _ => now.entries.extend(event.kv.entry()),
                }
            }
        });
    }
    Err(FleetError::Unreachable("the watch was closed".into()))
}
