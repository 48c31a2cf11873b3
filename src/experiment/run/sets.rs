// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of links that all hosts of an experiment make at one time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};
use std::thread::sleep;
use std::time::Duration;

use super::User;
use super::network::Network;
use super::together::{Said, Set, Together, late};
use crate::datapath::change::Scheduled;
use crate::host::{now_ns, sleep_until, spawn};

/// How often a thread checks for the time of its change, which is a second ahead.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Carries out changes until the run ends. Adds to `failed` what makes the run invalid. The network
/// belongs to the run, which takes it down. `user`: as for [`Network::prepare`].
pub(super) async fn follow(
    together: Together,
    network: Weak<Network>,
    user: Option<User>,
    failed: Arc<Mutex<Vec<String>>>,
) {
    let failed = move |why: String| {
        if let Ok(mut failed) = failed.lock() {
            failed.push(why);
        }
    };
    let mut hear = together.hear();
    let mut begun = BTreeSet::new();
    loop {
        let sets = hear.borrow_and_update().sets.clone();
        for (name, set) in sets {
            if begun.insert(name.clone()) {
                let (together, network) = (together.clone(), network.clone());
                let (user, tell) = (user.clone(), failed.clone());
                let work = move || carry_out(&name, &set, &together, &network, user.as_ref(), tell);
                if let Err(e) = spawn("emud-set", work) {
                    failed(format!("a change of links could not begin: {e}"));
                }
            }
        }
        if hear.changed().await.is_err() {
            return;
        }
    }
}

/// Prepares a change, waits for its time, and makes it.
fn carry_out(
    name: &str,
    set: &Set,
    together: &Together,
    network: &Weak<Network>,
    user: Option<&User>,
    failed: impl Fn(String),
) {
    let change = &*together.change;
    let Some(prepared) =
        (network.upgrade()).map(|n| n.prepare(&set.links, &set.changes, change, user))
    else {
        return;
    };
    let prepared = match prepared {
        // Links of other hosts only.
        Ok(none) if none.is_empty() => return,
        Ok(prepared) => prepared,
        Err(e) => {
            let why = (e.to_string(), e.exit_code());
            return together.say(Said::Set(name.to_owned(), Err(why)));
        }
    };
    together.say(Said::Set(name.to_owned(), Ok(())));
    let Some(at_ns) = when(name, together) else {
        return;
    };
    let Some(network) = network.upgrade() else {
        return;
    };
    let scheduled: Result<Vec<_>, _> = (prepared.into_iter())
        .map(|change| network.schedule(change, at_ns))
        .collect();
    drop(network);
    // Now, because the thread could wait for a CPU before.
    if let Some(why) = late("a change of links took effect", at_ns, now_ns()) {
        failed(why);
    }
    sleep_until(at_ns);
    let settled = scheduled.map_err(|e| e.to_string()).and_then(|all| {
        let settled = all.into_iter().try_for_each(Scheduled::settle);
        settled.map_err(|e| e.to_string())
    });
    if let Err(why) = settled {
        failed(format!("a change of links failed: {why}"));
    }
}

/// Waits for the time of a change; `None`: it takes no effect, or the run is over.
fn when(name: &str, together: &Together) -> Option<u64> {
    let hear = together.hear();
    loop {
        let decided = {
            let heard = hear.borrow();
            let at_ns = heard.sets.get(name)?.at_ns;
            at_ns.or(heard.over.then_some(None))
        };
        if let Some(at_ns) = decided {
            return at_ns;
        }
        // The process ends with the agent.
        sleep(LOOK_EVERY);
    }
}
