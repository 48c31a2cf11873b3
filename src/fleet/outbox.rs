// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes an agent's keys to etcd under its lease.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, interval, sleep, sleep_until};

use super::etcd::{Client, Lease, Op};
use super::{FleetError, LEASE, LeaseEnd};

/// Pause before a key is written again.
const AGAIN: Duration = Duration::from_millis(250);

/// A request to etcd; requests are sent one after the other.
pub(super) enum Letter {
    Put(String, Vec<u8>),
    /// All keys with this beginning.
    Delete(String),
}

pub(super) type Outbox = mpsc::UnboundedSender<Letter>;

/// Writes a value as JSON.
pub(super) fn send(outbox: &Outbox, key: String, value: &impl serde::Serialize) {
    // The receiver ends with the lease.
    let _ = outbox.send(Letter::Put(
        key,
        serde_json::to_vec(value).unwrap_or_default(),
    ));
}

/// Waits until a lease is lost.
pub(super) async fn lease_end(lost: &mut watch::Receiver<Option<LeaseEnd>>) -> LeaseEnd {
    let why = lost.wait_for(Option::is_some).await.ok();
    // Otherwise its task has ended by itself.
    why.and_then(|why| *why).unwrap_or(LeaseEnd::GivenUp)
}

/// Renews a lease until it is lost.
pub(super) async fn renew(client: &Client, lease: Lease) -> LeaseEnd {
    let mut until = Instant::now() + LEASE;
    let mut every = interval(LEASE / 4);
    while Instant::now() < until {
        every.tick().await;
        let asked = Instant::now();
        tokio::select! {
            () = sleep_until(until) => {}
            renewed = client.renew(lease) => match renewed {
                Ok(true) => until = asked + LEASE,
                Ok(false) => return LeaseEnd::Revoked,
                // Another try before it expires.
                Err(_) => {}
            }
        }
    }
    LeaseEnd::Expired
}

/// Renews the lease and writes keys under it, until it is lost, or etcd rejects a key, which `note` prints.
pub(super) async fn keep(
    client: Client,
    lease: Lease,
    mut letters: mpsc::UnboundedReceiver<Letter>,
    lost: watch::Sender<Option<LeaseEnd>>,
    note: fn(&str),
) {
    let writing = async {
        while let Some(letter) = letters.recv().await {
            let op = match letter {
                Letter::Put(key, value) => Op::Put(key, value, lease),
                Letter::Delete(prefix) => Op::Delete(prefix),
            };
            let ops = [op];
            loop {
                match client.txn(&[], &ops).await {
                    Ok(_) => break,
                    Err(FleetError::Unreachable(_)) => sleep(AGAIN).await,
                    Err(e) => {
                        let gone = async { matches!(client.renew(lease).await, Ok(false)) };
                        if matches!(e, FleetError::Rejected { .. }) && gone.await {
                            // Why it has ended is known when it is next renewed.
                            return std::future::pending().await;
                        }
                        // Better a lost host than a run that waits for its report without end.
                        note(&e.to_string());
                        return LeaseEnd::GivenUp;
                    }
                }
            }
        }
        std::future::pending().await
    };
    let why = tokio::select! {
        why = renew(&client, lease) => why,
        why = writing => why,
    };
    lost.send_replace(Some(why));
}

#[cfg(test)]
mod tests {
    use support::etcd::answering;

    use super::*;
    use crate::fleet::controller::block_on;
    use crate::fleet::etcd::Access;

    /// A member of etcd that has ended a lease when the first key is written, after it was renewed.
    fn member() -> String {
        let mut renewed = false;
        let mut kept = "{\"result\":{\"TTL\":\"6\"}}";
        let (url, _) = answering(move |_, request| {
            if request.contains("/lease/keepalive") {
                renewed = true;
                return Some(("200 OK", kept));
            }
            if !renewed {
                return None;
            }
            kept = "{\"result\":{\"TTL\":\"0\"}}";
            let why = "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}";
            Some(("404 Not Found", why))
        });
        url
    }

    #[test]
    fn a_key_that_is_rejected_with_the_lease_does_not_hide_its_end() {
        let access = Access {
            urls: vec![member()],
            ..Access::default()
        };
        let client = Client::new(&access).unwrap();
        let (outbox, letters) = mpsc::unbounded_channel();
        let (lost, mut end) = watch::channel(None);
        outbox.send(Letter::Put("key".into(), vec![])).unwrap();
        let ended = async {
            keep(client, Lease(1), letters, lost, |why| panic!("{why}")).await;
            Ok::<_, FleetError>(lease_end(&mut end).await)
        };
        assert_eq!(block_on(ended).unwrap(), LeaseEnd::Revoked);
    }
}
