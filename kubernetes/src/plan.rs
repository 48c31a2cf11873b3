// SPDX-License-Identifier: Apache-2.0
//! Which Link belongs on which pod of a node. Nothing here acts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use crate::link::{Direction, Engine, Link, PodLink, State};
use crate::profile::{Given, Profile};

/// What emud takes: a year.
const LONGEST: Duration = Duration::from_secs(8784 * 3600);
/// The annotation with the UID that the kubelet uses for a static pod.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What is attached to a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    pub interface: String,
    pub profile: Profile,
    pub direction: Direction,
    pub engine: Engine,
    pub seed: Option<i64>,
    pub duration: Option<Duration>,
}

impl Setup {
    /// Returns a digest of what emud attaches; the time of the end is changed without a new attach.
    pub fn digest(&self) -> String {
        let profile = match self.profile.given() {
            Given::Shipped(name) => name,
            Given::Text(text) => text,
        };
        let (direction, engine) = (self.direction.name(), self.engine.name());
        let text = format!(
            "{}\n{direction}\n{engine}\n{:?}\n{profile}",
            self.interface, self.seed
        );
        // FNV-1a: the same in every version of this program.
        let digest = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |digest, byte| {
                (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{digest:016x}")
    }

    /// Returns the directions that are emulated.
    pub fn directions(&self) -> &'static [&'static str] {
        match self.direction {
            Direction::Both => &["up", "down"],
            Direction::Up => &["up"],
            Direction::Down => &["down"],
        }
    }

    /// Returns the arguments of `emud set` that make this of a running `before`; `None`: it takes a new attach.
    pub fn changes_from(&self, before: &Self) -> Option<Vec<String>> {
        let fixed = |setup: &Self| {
            let Self {
                interface,
                profile: _,
                direction,
                engine,
                seed,
                duration: _,
            } = setup.clone();
            (interface, direction.name(), engine.name(), seed)
        };
        (fixed(self) == fixed(before)).then(|| {
            self.profile
                .changes_from(&before.profile, self.directions())
        })?
    }
}

/// Why nothing is to be attached.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub state: State,
    pub message: String,
}

/// A Link and one of its pods.
#[derive(Debug)]
pub struct Item {
    pub link: Arc<Link>,
    pub pod: Arc<Pod>,
    /// `None`: it is not known yet.
    pub want: Option<Result<Setup, Refused>>,
}

/// Why nothing is known of an object.
#[derive(Debug, Clone)]
pub enum Unknown {
    /// The first list has not arrived.
    Yet,
    /// The API server denies it, with this message.
    Denied(String),
}

/// What is not in the watches of Links and pods.
pub trait Others {
    /// Returns a ConfigMap, if there is one.
    ///
    /// # Errors
    /// It is not known.
    fn config_map(
        &mut self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<ConfigMap>>, Unknown>;

    /// Returns all pods of a namespace.
    ///
    /// # Errors
    /// They are not known.
    fn pods_of(&mut self, namespace: &str) -> Result<Vec<Arc<Pod>>, Unknown>;
}

/// Returns the UID by which the pod's processes are found.
pub fn uid(pod: &Pod) -> Option<String> {
    // Who may create a pod may write the annotation: with the UID of a pod of another namespace. Those have
    // separators, which the hash of a static pod's file has not.
    let is_hash = |uid: &&String| !uid.contains(['-', '_']);
    let mirror = pod.annotations().get(MIRROR).filter(is_hash).cloned();
    mirror.or_else(|| pod.uid())
}

/// Returns the key of a pod's entry in the status of a Link.
pub fn key(node: &str, pod: &str) -> String {
    format!("{node}/{pod}")
}

/// Returns the entry of a node for a pod, which may be of an earlier pod with this name.
pub fn entry<'a>(link: &'a Link, node: &str, pod: &str) -> Option<&'a PodLink> {
    link.status.as_ref()?.pods.get(&key(node, pod))
}

/// Returns whether the duration that began at `since` is over.
pub fn is_over(entry: &PodLink, duration: Option<Duration>, now: Timestamp) -> bool {
    let since = entry.since.as_ref().map(|time| time.0);
    matches!((since, duration), (Some(since), Some(duration)) if left(since, duration, now).is_none())
}

/// Returns the rest of a duration; `None`: it is over.
pub fn left(since: Timestamp, duration: Duration, now: Timestamp) -> Option<Duration> {
    let passed = now.as_millisecond().saturating_sub(since.as_millisecond());
    // A clock that was set back does not prolong it.
    let passed = Duration::from_millis(u64::try_from(passed).unwrap_or(0));
    duration.checked_sub(passed).filter(|left| !left.is_zero())
}

/// Returns the pods of this node with their Links. Of several Links for the same interface the oldest is
/// attached. Those that leave an interface come first: with the same seed they would take the link of the
/// next one for theirs.
pub fn plan(
    node: &str,
    links: &[Arc<Link>],
    pods: &[Arc<Pod>],
    others: &mut impl Others,
    now: Timestamp,
) -> Vec<Item> {
    let mut links: Vec<&Arc<Link>> = links.iter().collect();
    let age = |link: &Link| link.creation_timestamp().map(|time| time.0);
    links.sort_by_key(|link| (age(link), link.namespace(), link.name_any()));
    let mut taken: HashMap<(String, String, String), String> = HashMap::new();
    let mut items = vec![];
    for link in links {
        if link.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let namespace = link.namespace().unwrap_or_default();
        let selector = match selector(&link.spec.selector) {
            Ok(selector) => selector,
            // The API server has checked it.
            Err(_) => continue,
        };
        let setup = setup(link, others);
        let mine = |pod: &&Arc<Pod>| {
            pod.namespace().as_ref() == Some(&namespace)
                && selector.matches(pod.labels())
                && runs(pod)
        };
        for pod in pods.iter().filter(mine) {
            let entry = entry(link, node, &pod.name_any());
            let entry = entry.filter(|entry| Some(&entry.uid) == uid(pod).as_ref());
            let want = setup.clone().map(|setup| {
                let setup = setup?;
                is_possible(pod)?;
                if entry.is_some_and(|entry| is_over(entry, setup.duration, now)) {
                    return Ok(setup);
                }
                let interface = setup.interface.clone();
                let place = (namespace.clone(), pod.name_any(), interface);
                match taken.get(&place) {
                    Some(first) => Err(Refused {
                        state: State::Failed,
                        message: format!(
                            "Link {first} has {} of this pod: an interface has one link",
                            setup.interface
                        ),
                    }),
                    None => {
                        taken.insert(place, link.name_any());
                        Ok(setup)
                    }
                }
            });
            let leaves = match (&want, entry) {
                (Some(Ok(setup)), Some(entry)) => {
                    entry.interface != setup.interface || is_over(entry, setup.duration, now)
                }
                (want, _) => matches!(want, Some(Err(_))),
            };
            let item = Item {
                link: link.clone(),
                pod: pod.clone(),
                want,
            };
            items.push((leaves, item));
        }
    }
    items.sort_by_key(|(leaves, _)| !leaves);
    items.into_iter().map(|(_, item)| item).collect()
}

fn selector(selector: &LabelSelector) -> Result<Selector, String> {
    Selector::try_from(selector.clone()).map_err(|e| e.to_string())
}

fn runs(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    !matches!(phase, Some("Succeeded" | "Failed"))
}

fn in_host_network(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.host_network) == Some(true)
}

/// The interfaces of a pod in the network of its node are those of the node.
fn is_possible(pod: &Pod) -> Result<(), Refused> {
    match in_host_network(pod) {
        false => Ok(()),
        true => Err(Refused {
            state: State::Failed,
            message: "the pod has hostNetwork: its interfaces are those of the node".to_owned(),
        }),
    }
}

fn setup(link: &Link, others: &mut impl Others) -> Option<Result<Setup, Refused>> {
    let refused = |state, message| Some(Err(Refused { state, message }));
    let unknown = |why| match why {
        Unknown::Yet => None,
        Unknown::Denied(message) => refused(State::Waiting, message),
    };
    let namespace = link.namespace().unwrap_or_default();
    let spec = &link.spec;
    let text = match (&spec.profile, &spec.profile_from) {
        (Some(text), None) => text.clone(),
        (None, Some(from)) => {
            let map = match others.config_map(&namespace, &from.config_map) {
                Ok(map) => map,
                Err(why) => return unknown(why),
            };
            let data = map.as_ref().and_then(|map| map.data.as_ref());
            match (map.is_some(), data.and_then(|data| data.get(&from.key))) {
                (_, Some(text)) => text.clone(),
                (true, None) => {
                    let message =
                        format!("ConfigMap {} has no key {:?}", from.config_map, from.key);
                    return refused(State::Waiting, message);
                }
                (false, None) => {
                    let message = format!("there is no ConfigMap {}", from.config_map);
                    return refused(State::Waiting, message);
                }
            }
        }
        _ => {
            let message = "give either profile or profileFrom".to_owned();
            return refused(State::Failed, message);
        }
    };
    let peers = match &spec.peers {
        None => None,
        Some(peers) => {
            let pods = match &peers.pod_selector {
                Some(chosen) => match selector(chosen) {
                    Ok(selector) => match others.pods_of(&namespace) {
                        Ok(pods) => addresses(&pods, &selector),
                        Err(why) => return unknown(why),
                    },
                    Err(e) => return refused(State::Failed, format!("peers.podSelector: {e}")),
                },
                None => BTreeSet::new(),
            };
            match cidrs(&peers.cidrs) {
                Ok(all) => Some(all.into_iter().chain(pods).collect::<BTreeSet<_>>()),
                Err(message) => return refused(State::Failed, message),
            }
        }
    };
    let duration = match spec.duration.as_deref().map(duration).transpose() {
        Ok(duration) => duration,
        Err(message) => return refused(State::Failed, message),
    };
    let name = format!("{namespace}/{}", link.name_any());
    let peers = peers.map(|peers| peers.into_iter().collect());
    match Profile::read(&text, &name, peers) {
        Ok(profile) => Some(Ok(Setup {
            interface: spec.interface.clone(),
            seed: spec.seed.or_else(|| profile.seed()),
            profile,
            direction: spec.direction,
            engine: spec.engine,
            duration,
        })),
        Err(message) => refused(State::Failed, message),
    }
}

/// The addresses of pods that run, without those of nodes.
fn addresses(pods: &[Arc<Pod>], selector: &Selector) -> BTreeSet<String> {
    let chosen =
        |pod: &&Arc<Pod>| selector.matches(pod.labels()) && runs(pod) && !in_host_network(pod);
    let of = |pod: &Arc<Pod>| pod.status.as_ref()?.pod_ips.clone();
    let ips = pods.iter().filter(chosen).filter_map(of).flatten();
    ips.map(|ip| ip.ip).collect()
}

fn cidrs(given: &[String]) -> Result<Vec<String>, String> {
    let valid = |text: &String| {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text.as_str(), None),
        };
        let address: Option<IpAddr> = address.parse().ok();
        let longest = match address {
            Some(IpAddr::V4(_)) => 32,
            Some(IpAddr::V6(_)) => 128,
            None => return false,
        };
        length.is_none_or(|length| length.parse::<u8>().is_ok_and(|length| length <= longest))
    };
    match given.iter().find(|text| !valid(text)) {
        None => Ok(given.to_vec()),
        Some(wrong) => Err(format!(
            "peers.cidrs: {wrong:?} is neither an address nor a prefix such as 10.0.0.0/8"
        )),
    }
}

/// Reads a time as the CRD's pattern has it.
///
/// # Errors
/// A sentence.
pub fn duration(text: &str) -> Result<Duration, String> {
    let units: BTreeMap<&str, u64> =
        BTreeMap::from([("ms", 1), ("s", 1000), ("min", 60_000), ("h", 3_600_000)]);
    let at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let ms = number
        .parse::<u64>()
        .ok()
        .filter(|n| *n > 0)
        .zip(units.get(unit));
    let time = ms
        .and_then(|(number, unit)| number.checked_mul(*unit))
        .map(Duration::from_millis)
        .ok_or_else(|| {
            format!("duration: {text:?} is not a number with ms, s, min or h, such as 10min")
        })?;
    match time > LONGEST {
        true => Err(format!("duration: {text:?} is longer than 8784h")),
        false => Ok(time),
    }
}

#[cfg(test)]
mod tests;
