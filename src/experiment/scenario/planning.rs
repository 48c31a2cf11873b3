// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expands a scenario to a plan.

use std::time::Duration;

use ipnet::Ipv4Net;

use super::error::ScenarioError;
use super::graph::Graph;
use super::kinds::Program;
use super::layout::{Layout, lay_out};
use super::model::Scenario;
use super::plan::{Link, Plan};
use super::routes::routes;
use super::star::{BRIDGE, HUB};
use super::{check, medium, medium_routes, star, stations};
use crate::text::{Located, Mistake, Mistakes, Source, TextError};

/// Default name of the host's end of the wire to the outside.
const HOST_INTERFACE: &str = "emud-outside";

/// Arguments of the command line that override the file.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Size of a topology: routers of a chain, nodes of a mesh, a ring or a tandem, nodes of each
    /// switch, pairs of a dumbbell, peers of a star (divided among its classes in the file's proportion).
    pub nodes: Option<u32>,
    /// Longest duration of the measured phase.
    pub measure: Option<Duration>,
    /// Replaces the command of the first node.
    pub command: Option<Program>,
    /// Name of the host's end of the wire to the outside; the default is "emud-outside".
    pub host_interface: Option<String>,
    /// Networks that the wire to the outside must not have; the default is none.
    pub taken: Vec<Ipv4Net>,
}

impl Scenario {
    /// Returns the plan with every node, address, route and device.
    ///
    /// # Errors
    /// All conflicts with their positions, or overrides that do not fit to the file.
    pub fn plan(&self, overrides: &Overrides) -> Result<Plan, ScenarioError> {
        self.nodes_fit(overrides.nodes)?;
        let mut mistakes = Vec::new();
        let mut graph = self.graph(overrides.nodes, &mut mistakes)?;
        if let (Some(command), Some(first)) = (&overrides.command, graph.nodes.first_mut()) {
            first.node.command = Some(command.clone());
            first.node.service = false;
            first.node.ready = None;
        }
        who_forwards(&mut graph);
        if mistakes.is_empty() {
            check::check(&graph, &mut mistakes);
        }
        if !mistakes.is_empty() {
            return Err(self.mistakes(mistakes));
        }
        let layout = lay_out(&graph, self.top.network, &self.network_at, &overrides.taken)
            .map_err(|m| self.mistakes(vec![m]))?;
        let outside = layout.outside.map(|(_, [own, _])| own.trunc());
        let taken = layout.networks.iter().chain(&layout.classes).copied();
        let taken = taken.chain(outside);
        let network = Located {
            value: self.top.network,
            at: self.network_at.clone(),
        };
        let media = stations::media(&self.media, &graph, &network, taken)
            .map_err(|m| self.mistakes(vec![m]))?;
        let mut plan = self.finish(graph, &layout, overrides)?;
        for medium in &media {
            for (station, routes) in medium.stations.iter().zip(medium.routes(&plan.nodes)) {
                let node = plan.nodes.iter_mut().find(|node| node.name == station.node);
                if let Some(node) = node {
                    node.routes.extend(routes);
                }
            }
        }
        plan.media = media;
        medium_routes::join(&mut plan);
        plan.measure_for = overrides.measure.or(self.top.measure);
        Ok(plan)
    }

    fn finish(
        &self,
        mut graph: Graph,
        layout: &Layout,
        overrides: &Overrides,
    ) -> Result<Plan, ScenarioError> {
        // Only one route to the whole network leads from nodes behind wires to the stations of a daemon,
        // which has no others; without a daemon it takes packets that cannot arrive.
        let mut media = self.media.iter();
        let no_daemon = media.all(|medium| medium.table.routes != medium::RouteChoice::None);
        let joined = no_daemon && !self.media.is_empty();
        let all = routes(&graph, layout, self.top.network, joined);
        for (spot, routes) in graph.nodes.iter_mut().zip(all) {
            spot.node.routes = routes;
        }
        if let Some(hub) = graph.star.as_ref().map(|star| star.hub) {
            graph.nodes[hub].node.bridge = layout.bridge(&graph);
        }
        let host_interface = overrides
            .host_interface
            .as_deref()
            .unwrap_or(HOST_INTERFACE);
        Ok(Plan {
            name: self.top.name.clone(),
            text: Some(self.text.clone()),
            wires: layout.wires(&graph, host_interface),
            links: self.emulated(&graph, layout)?,
            nodes: graph.nodes.into_iter().map(|spot| spot.node).collect(),
            media: vec![],
            ready_within: self.top.ready_within,
            clean_up_within: self.top.clean_up_within,
            measure_for: None,
            elsewhere: String::new(),
            mtu: None,
        })
    }

    /// Returns where profiles are attached.
    fn emulated(&self, graph: &Graph, layout: &Layout) -> Result<Vec<Link>, ScenarioError> {
        let mut links: Vec<_> = graph
            .edges
            .iter()
            .filter_map(|edge| {
                let asked = edge.profile.as_ref()?;
                Some(Link {
                    name: edge.name.clone(),
                    node: graph.nodes[edge.ends[0]].node.name.clone(),
                    interface: edge.name.clone(),
                    profile: asked.profile.clone(),
                    asked: asked.asked.clone(),
                    reversed: false,
                    number: 0,
                })
            })
            .collect();
        for (number, link) in links.iter_mut().enumerate() {
            link.number = number;
        }
        let Some(star) = &graph.star else {
            return Ok(links);
        };
        let number = links.len();
        let classes = star.classes.iter().map(|peers| &peers.class);
        let classes: Vec<_> = classes.zip(layout.classes.iter().copied()).collect();
        let asked = classes.iter().filter_map(|(class, _)| {
            let asked = &class.profile.as_ref()?.asked;
            Some(format!("{}: {asked}", class.name.value))
        });
        let asked: Vec<_> = asked.collect();
        links.extend(
            star::profile(&self.top.name, &classes)?.map(|profile| Link {
                name: BRIDGE.to_owned(),
                node: HUB.to_owned(),
                interface: BRIDGE.to_owned(),
                // The bridge receives what a peer sends.
                profile: profile.reversed(),
                asked: asked.join(", "),
                reversed: true,
                number,
            }),
        );
        Ok(links)
    }

    fn nodes_fit(&self, nodes: Option<u32>) -> Result<(), ScenarioError> {
        let (Some(topology), Some(nodes)) = (&self.topology, nodes) else {
            return Ok(());
        };
        let (what, least, most) = topology.limits();
        match (least..=most).contains(&nodes) {
            true => Ok(()),
            false => Err(ScenarioError::Nodes {
                nodes,
                what,
                least,
                most,
            }),
        }
    }

    fn mistakes(&self, mistakes: Vec<Mistake>) -> ScenarioError {
        let source = Source {
            origin: self.origin.clone(),
            text: self.text.clone(),
        };
        TextError::Mistakes(Mistakes::new(vec![source], mistakes)).into()
    }
}

/// Makes nodes with more than one link forward, unless the file sets `forwards`.
fn who_forwards(graph: &mut Graph) {
    let links: Vec<_> = graph.edges_of().iter().map(Vec::len).collect();
    let hub = graph.star.as_ref().map(|star| star.hub);
    for (number, spot) in graph.nodes.iter_mut().enumerate() {
        let on_air = graph.media.iter().any(|members| members.contains(&number));
        let usual = links[number] > 1 || Some(number) == hub || on_air;
        spot.node.forwards.get_or_insert(usual);
    }
}
