// SPDX-License-Identifier: MIT OR Apache-2.0
//! From a host's part in etcd back to a plan that a run carries out.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::FleetError;
use super::clock::Estimate;
use super::plan::{HostPlan, LinkPlan};
use super::underlay::{Added, reduce, too_short};
use crate::experiment::scenario::{Link, Medium, Overrides, Plan, Scenario, Tunnel};
use crate::profile::Profile;

impl HostPlan {
    /// Returns how long the clean-up of this host may take: the commands of its nodes run one after
    /// the other, each within the scenario's limit.
    pub fn longest_clean_up(&self) -> Duration {
        let commands: usize = self.nodes.iter().map(|node| node.clean_up.len()).sum();
        let commands = u32::try_from(commands.max(1)).unwrap_or(u32::MAX);
        Duration::from_nanos(self.clean_up_within_ns).saturating_mul(commands)
    }

    /// Returns a tunnel to another host.
    pub fn tunnel_to(&self, host: &str) -> Option<Tunnel> {
        let address = self.peers.get(host)?.address;
        let mut tunnels = self.wires.iter().filter_map(|wire| wire.tunnel);
        tunnels.find(|tunnel| tunnel.remote == address)
    }

    /// Returns the plan of this host, with links shorter by what the underlay adds, and sentences
    /// about what differs from the scenario. `host_interface`: an unused name.
    ///
    /// # Errors
    /// [`FleetError::Unmet`]: the underlay is too slow; [`FleetError::Plan`].
    pub fn to_plan(
        &self,
        underlay: &BTreeMap<String, Estimate>,
        host_interface: &str,
    ) -> Result<(Plan, Vec<String>), FleetError> {
        let mut notes = Vec::new();
        let tolerance_ns = self.options.tolerance_ns;
        for tunnel in &self.tunnels {
            let delay_ns = underlay.get(&tunnel.host).map_or(0, |found| found.delay_ns);
            if delay_ns.saturating_sub(tunnel.asked_ns) > tolerance_ns {
                return Err(FleetError::Unmet(format!(
                    "link {} between {} and {}: {}",
                    tunnel.name,
                    self.host,
                    tunnel.host,
                    too_short(tunnel.asked_ns, delay_ns, tolerance_ns)
                )));
            }
        }
        let links = self
            .links
            .iter()
            .map(|link| self.link(link, underlay, &mut notes));
        let links = links.collect::<Result<Vec<_>, _>>()?;
        let mut wires = self.wires.clone();
        for end in wires.iter_mut().flat_map(|wire| &mut wire.ends) {
            if end.node.is_none() {
                end.interface = host_interface.to_owned();
            }
        }
        let plan = Plan {
            name: self.name.clone(),
            text: Some(self.text.clone()),
            nodes: self.nodes.clone(),
            wires,
            links,
            media: self.media(&mut notes)?,
            ready_within: Duration::from_nanos(self.ready_within_ns),
            clean_up_within: Duration::from_nanos(self.clean_up_within_ns),
            measure_for: self.measure_ns.map(Duration::from_nanos),
            elsewhere: self.elsewhere.clone(),
            // Also those on one host: the first packets that are larger than a tunnel would be lost.
            mtu: Some(self.options.mtu),
        };
        Ok((plan, notes))
    }

    fn link(
        &self,
        link: &LinkPlan,
        underlay: &BTreeMap<String, Estimate>,
        notes: &mut Vec<String>,
    ) -> Result<Link, FleetError> {
        let asked = Profile::parse(&link.profile, &link.asked)?;
        let added = link.added(underlay);
        let profile = reduce(&asked, &added, self.options.tolerance_ns, notes);
        let profile = profile.map_err(|why| {
            FleetError::Unmet(format!("link {} of {}: {why}", link.name, self.host))
        })?;
        Ok(Link {
            name: link.name.clone(),
            node: link.node.clone(),
            interface: link.interface.clone(),
            profile,
            asked: link.asked.clone(),
            reversed: link.reversed,
            number: link.number,
        })
    }

    /// Returns the media, read from the scenario's text: they do not refer to files. Records are left out: they
    /// would be files of the host.
    fn media(&self, notes: &mut Vec<String>) -> Result<Vec<Medium>, FleetError> {
        if !self.has_media {
            return Ok(vec![]);
        }
        let plan = || {
            let overrides = Overrides {
                nodes: self.options.size,
                ..Overrides::default()
            };
            Scenario::parse(&self.text, &self.name, Path::new("")).and_then(|s| s.plan(&overrides))
        };
        let plan = plan().map_err(|e| {
            FleetError::Plan(format!(
                "the media of {} cannot be read here, write profiles of files into the scenario: {e}",
                self.name
            ))
        })?;
        let here = |medium: &Medium| {
            let station = |s: &crate::experiment::scenario::Station| {
                self.nodes.iter().any(|node| node.name == s.node)
            };
            medium.stations.iter().any(station)
        };
        let mut media: Vec<Medium> = plan.media.into_iter().filter(here).collect();
        for medium in &mut media {
            if let Some(path) = medium.record.take() {
                notes.push(format!(
                    "{} {}: no record {path} is written on a host of a fleet",
                    medium.word(),
                    medium.interface
                ));
            }
        }
        Ok(media)
    }
}

impl LinkPlan {
    /// Returns what the underlay adds to this link.
    pub fn added(&self, underlay: &BTreeMap<String, Estimate>) -> Added {
        let delay = |host: &String| underlay.get(host).map_or(0, |found| found.delay_ns);
        Added {
            own_ns: self.across.as_ref().map_or(0, delay),
            peers: (self.peers.iter())
                .map(|(host, addresses)| (host.clone(), (delay(host), addresses.clone())))
                .collect(),
        }
    }
}
