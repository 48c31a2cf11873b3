// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of links that all hosts of an experiment make at one time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, Weak};
use std::thread::sleep;
use std::time::Duration;

use super::network::Network;
use super::together::{Said, Set, Together, late};
use super::{ChangeLink, RunError, User, links};
use crate::datapath::LinkError;
use crate::datapath::change::{Change, Scheduled};
use crate::experiment::scenario::Link;
use crate::host::{now_ns, sleep_until, spawn};
use crate::profile::Profile;

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

/// A change of a link of a [`Network`], ready to be activated.
pub struct PreparedChange {
    /// Of the link in the network.
    number: usize,
    change: Change,
}

impl Network {
    /// Writes a change of links into the kernel, not yet active; those that are not here belong to
    /// other hosts. Files of the change are read as `user`; `None`: as root.
    ///
    /// # Errors
    /// [`RunError::Link`]; nothing changes then.
    pub fn prepare(
        &self,
        names: &BTreeSet<String>,
        changes: &[String],
        change: &ChangeLink,
        user: Option<&User>,
    ) -> Result<Vec<PreparedChange>, RunError> {
        let of = |number: usize, link: &Link| {
            let changes = match link.reversed {
                true => changes.iter().map(|change| reversed(change)).collect(),
                false => changes.to_vec(),
            };
            let changed = |before: &Profile, changes: &[String]| {
                let changed = || change(&link.name, before, changes);
                match user {
                    Some(user) => user.does(changed).map_err(LinkError::User)?,
                    None => changed(),
                }
            };
            let prepared = || Change::prepare(&link.interface, &changes, changed);
            let change = self.place.within(&link.node, prepared)?;
            let change = change.map_err(|error| links::failed(link, error))?;
            Ok(PreparedChange { number, change })
        };
        let links = self.links.iter().enumerate();
        let named = links.filter(|(_, (link, _))| names.contains(&link.name));
        named.map(|(number, (link, _))| of(number, link)).collect()
    }

    /// Activates a change with the first packet at or after `at_ns` of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// [`RunError::Link`].
    pub fn schedule(&self, prepared: PreparedChange, at_ns: u64) -> Result<Scheduled, RunError> {
        let (link, _) = &self.links[prepared.number];
        // It limits segmentation again, of an interface of the node.
        let scheduled = || prepared.change.schedule(at_ns);
        let scheduled = self.place.within(&link.node, scheduled)?;
        scheduled.map_err(|error| links::failed(link, error))
    }
}

/// Exchanges the directions of an assignment to the link, or to one of its named links.
fn reversed(change: &str) -> String {
    let (path, value) = match change.split_once('=') {
        Some((path, value)) => (path, Some(value)),
        None => (change, None),
    };
    let mut keys: Vec<&str> = path.split('.').map(str::trim).collect();
    let at = if keys[0] == "links" { 2 } else { 0 };
    if let Some(key) = keys.get_mut(at) {
        *key = match *key {
            "up" => "down",
            "down" => "up",
            other => other,
        };
    }
    let path = keys.join(".");
    value.map_or(path.clone(), |value| format!("{path}={value}"))
}

#[cfg(test)]
mod tests {
    use super::reversed;

    #[test]
    fn directions_are_exchanged() {
        for (change, want) in [
            ("up.loss=1%", "down.loss=1%"),
            (" down . delay=5ms", "up.delay=5ms"),
            ("links.far.up.loss=1%", "links.far.down.loss=1%"),
            (
                "links .far.down={ rate = \"1Mbit\" }",
                "links.far.up={ rate = \"1Mbit\" }",
            ),
            ("links.up.delay=5ms", "links.up.delay=5ms"),
            ("loss=1%", "loss=1%"),
            ("trace.restart", "trace.restart"),
        ] {
            assert_eq!(reversed(change), want);
        }
    }
}
