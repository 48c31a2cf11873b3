// SPDX-License-Identifier: MIT OR Apache-2.0
//! The end that all links of a part have in the kernel, the last resort if every process is stopped. It
//! is moved on as long as the agent has its lease.

use std::sync::Weak;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::network::Network;
use super::together::Together;

/// How long links outlive the last sign of life of the agent.
pub(super) const LAST_RESORT: Duration = Duration::from_secs(60);
/// Their end is moved on so often: there may be a thousand of them.
const EVERY: Duration = Duration::from_secs(8);

/// Moves the end of all links on with each sign of life, until the run ends. The network belongs to the
/// run, which takes it down.
pub(super) async fn follow(together: Together, network: Weak<Network>) {
    let mut hear = together.hear();
    let mut heard = 0;
    loop {
        match hear.wait_for(|now| now.alive > heard).await {
            Ok(now) => heard = now.alive,
            Err(_) => return,
        }
        let network = network.clone();
        // It waits for a change of links that is in progress. What keeps its end is tried again with the
        // next sign of life, and a link that ends is the sampler's to report.
        let moved_on = move || network.upgrade().map(|n| n.end_after(LAST_RESORT));
        let _ = spawn_blocking(moved_on).await;
        sleep(EVERY).await;
    }
}
