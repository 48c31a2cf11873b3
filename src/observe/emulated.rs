// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which links are emulated now: they come and go while the monitor runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::interval;

use super::Request;
use crate::link::emulated::Search;

/// Between two looks; a link is judged from the one after its attach.
const EVERY: Duration = Duration::from_secs(1);

/// Tells the other thread when they change, until it has ended. Looks at once when `now` says
/// so.
pub async fn follow(requests: mpsc::Sender<Request>, now: Arc<Notify>) {
    let mut search = Search::default();
    let mut every = interval(EVERY);
    let mut told = vec![];
    let mut complained = BTreeSet::new();
    loop {
        tokio::select! {
            _ = every.tick() => {}
            () = now.notified() => {}
        }
        let found = match search.run() {
            Ok(found) => found,
            Err(e) => {
                let _ = requests.send(Request::NoLinks(e.to_string())).await;
                return;
            }
        };
        for (program, error) in &found.unreadable {
            if complained.insert(*program) {
                eprintln!("emud: the link of program {program} is not watched: {error}");
            }
        }
        let mut devices = found.released_by_kernel();
        devices.sort_by_key(|device| (device.netns, device.ifindex));
        devices.dedup();
        if devices != told {
            told.clone_from(&devices);
            if requests.send(Request::Emulated(devices)).await.is_err() {
                return;
            }
        }
    }
}
