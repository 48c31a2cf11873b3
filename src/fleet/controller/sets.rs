// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud fleet set`: changes of links that take effect on all hosts at one time, or on none.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::steps::Controller;
use crate::fleet::FleetError;
use crate::fleet::etcd::{Client, Compare, Lease, Op, mirror};
use crate::fleet::keys::Keys;
use crate::fleet::plan::LinkPlan;
use crate::fleet::protocol::{Asked, SetDone, Start, Turn};

/// How far ahead a change is when all hosts have prepared it.
const AHEAD: Duration = Duration::from_secs(1);
/// How long the hosts may take for the preparation.
const PREPARE: Duration = Duration::from_secs(5);
/// How long `emud fleet set` waits for the decision.
const DECIDE: Duration = Duration::from_secs(10);

impl Controller<'_> {
    /// Decides on changes: all hosts with links of it have prepared it, or one rejects it.
    pub(super) async fn sets(&mut self) -> Result<(), FleetError> {
        let prefix = self.keys.sets();
        let asked: Vec<(String, Asked)> = {
            let now = self.run.borrow_and_update();
            let of = |(key, entry): (&String, &crate::fleet::etcd::Entry)| {
                let id = key.strip_prefix(&prefix)?.to_owned();
                Some((id, serde_json::from_slice(&entry.value).ok()?))
            };
            now.entries.iter().filter_map(of).collect()
        };
        for (id, asked) in asked {
            let until = self.sets.until.entry(id.clone());
            let Some(until) = *until.or_insert_with(|| Some(Instant::now() + PREPARE)) else {
                continue;
            };
            let Some(turn) = self.decided(&id, &asked, until) else {
                continue;
            };
            self.sets.until.insert(id.clone(), None);
            let text = serde_json::to_vec(&turn).unwrap_or_default();
            let put = Op::Put(self.keys.turns() + &id, text, self.lease);
            self.surely(&[], &[put]).await?;
        }
        Ok(())
    }

    /// Returns the decision; `None`: hosts have not answered yet.
    fn decided(&self, id: &str, asked: &Asked, until: Instant) -> Option<Turn> {
        let (mut unknown, mut silent) = (asked.links.clone(), vec![]);
        for host in self.names() {
            let links = &self.divided.plans.get(&host)?.links;
            let named = links.iter().filter(|link| asked.links.contains(&link.name));
            if let Some(why) = named.filter_map(|link| fixed(link, &asked.changes)).next() {
                return Some(Turn::Refused(why, 65));
            }
            let named = links.iter().map(|link| &link.name);
            let mine: BTreeSet<&String> =
                named.filter(|name| asked.links.contains(*name)).collect();
            if mine.is_empty() {
                continue;
            }
            unknown.retain(|name| !mine.contains(name));
            match self.value(&self.keys.set_done(&host, id)) {
                Some(SetDone::Refused(why, code)) => {
                    return Some(Turn::Refused(format!("{host}: {why}"), code));
                }
                Some(SetDone::Prepared) => {}
                None => silent.push(host),
            }
        }
        if let Some(name) = unknown.pop_first() {
            let all = self.divided.plans.values().flat_map(|plan| &plan.links);
            let all: BTreeSet<&str> = all.map(|link| link.name.as_str()).collect();
            let all = Vec::from_iter(all).join(", ");
            let why = format!("no link is called `{name}`: the links are {all}");
            return Some(Turn::Refused(why, 66));
        }
        if !silent.is_empty() {
            let seconds = PREPARE.as_secs();
            let silent = silent.join(", ");
            let why = format!("not prepared within {seconds} s: {silent}");
            return (Instant::now() >= until).then_some(Turn::Refused(why, 75));
        }
        let (start, at) = self.sets.start?;
        // The common clock is the reference's; this host's only says how much time has passed.
        let now = Instant::now() + AHEAD;
        let since = now.saturating_duration_since(at);
        let reference_ns = start.reference_ns + u64::try_from(since.as_nanos()).ok()?;
        Some(Turn::At(Start { reference_ns }, since.as_secs_f64()))
    }
}

/// Keys with which nothing can be taken off a delay. Between hosts, the underlay's is.
const NOT_REDUCED: [&str; 3] = ["reorder", "matrix", "trace"];

/// Returns why these changes of a link cannot be made; `None`: they can, as far as is known without
/// its host.
pub fn fixed(link: &LinkPlan, changes: &[String]) -> Option<String> {
    let name = &link.name;
    let between = link.across.is_some() || !link.peers.is_empty();
    changes.iter().find_map(|change| {
        let path = change.split('=').next().unwrap_or_default().trim();
        // As the profile reads them.
        let keys: Vec<&str> = path.split('.').map(str::trim).collect();
        let wrong = keys.iter().any(|key| NOT_REDUCED.contains(key));
        (between && path != "trace.restart" && wrong).then(|| {
            format!(
                "{path} of {name}: {name} is between hosts, whose network is part of its delay; \
                 give its nodes the same `host`"
            )
        })
    })
}

/// Requests a change of the active run, and waits for the decision: returns when it takes effect, in
/// seconds of the measured phase.
///
/// # Errors
/// [`FleetError::Absent`]: no run is active; [`FleetError::Refused`]: a host rejects it, and
/// nothing changes.
pub async fn set(client: &Client, keys: &Keys, asked: &Asked) -> Result<f64, FleetError> {
    let absent = || FleetError::Absent("no run is in its measured phase".into());
    let revision = client.get(&keys.revision()).await?.ok_or_else(absent)?;
    let number = crate::host::random_seed().map_err(FleetError::system("draw a number"))?;
    let id = format!("{number:08x}");
    let when = [
        Compare::Created(keys.revision(), revision.created),
        Compare::Absent(keys.over()),
    ];
    let start = client.get(&keys.t0()).await?.ok_or_else(absent)?;
    let when = [&when[..], &[Compare::Created(keys.t0(), start.created)]].concat();
    let mut turns = mirror(client, keys.turns() + &id);
    let text = serde_json::to_vec(asked).unwrap_or_default();
    let put = Op::Put(keys.sets() + &id, text, Lease(revision.lease));
    if !client.txn(&when, &[put]).await? {
        return Err(absent());
    }
    let decided = turns.wait_for(|now| !now.entries.is_empty());
    let turn = match timeout(DECIDE, decided).await {
        Ok(Ok(now)) => now
            .entries
            .first_key_value()
            .map(|(_, entry)| entry.value.clone()),
        _ => None,
    };
    match turn.and_then(|turn| serde_json::from_slice(&turn).ok()) {
        Some(Turn::At(_, seconds)) => Ok(seconds),
        Some(Turn::Refused(why, code)) => Err(FleetError::Refused(why, code)),
        None => Err(FleetError::Absent(format!(
            "`emud fleet run` has not decided within {} s: whether the links change is unknown",
            DECIDE.as_secs()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(across: Option<&str>, peers: &[&str]) -> LinkPlan {
        LinkPlan {
            name: "left".into(),
            node: "one".into(),
            interface: "eth0".into(),
            profile: String::new(),
            asked: "p.toml".into(),
            reversed: false,
            number: 0,
            across: across.map(str::to_owned),
            peers: (peers.iter())
                .map(|host| ((*host).to_owned(), vec![]))
                .collect(),
        }
    }

    #[test]
    fn what_the_network_between_hosts_is_part_of_cannot_change() {
        let refused = |link: &LinkPlan, change: &str| fixed(link, &[change.to_owned()]).is_some();
        let (here, between, star) = (link(None, &[]), link(Some("b"), &[]), link(None, &["b"]));
        for change in [
            "down.reorder=1%",
            "trace={file=\"t.csv\"}",
            "up. reorder =1%",
        ] {
            assert!(!refused(&here, change), "{change}");
            assert!(refused(&between, change), "{change}");
            assert!(refused(&star, change), "{change}");
        }
        assert!(refused(&star, "links.far.up. reorder =1%"));
        // The underlay is reckoned with.
        for change in [
            "delay=7ms",
            "up.delay.jitter=1ms",
            "links.far.delay=7ms",
            "links .far.rate=2Mbit",
            "up.loss=1%",
            "trace.restart",
        ] {
            for link in [&here, &between, &star] {
                assert!(!refused(link, change), "{change}");
            }
        }
    }
}
