// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expands the file to single nodes and wires.

use super::error::ScenarioError;
use super::graph::Graph;
use super::kinds::{NodeNames, is_meant};
use super::limits::{MAX_LINKS, MAX_NODES};
use super::medium::OnAir;
use super::model::{NodeTable, Scenario};
use super::plan::{Node, NodeDraft};
use super::star::BRIDGE;
use super::stations;
use crate::text::{At, Draft, Located, Mistake, Reader, closest};

impl Scenario {
    /// Returns all nodes and wires; conflicts are added to `mistakes`.
    ///
    /// # Errors
    /// `nodes` is given, but there is no topology.
    pub(crate) fn graph(
        &self,
        nodes: Option<u32>,
        mistakes: &mut Vec<Mistake>,
    ) -> Result<Graph, ScenarioError> {
        let mut graph = match (&self.topology, nodes) {
            (Some(topology), nodes) => topology.generate(nodes.unwrap_or(topology.count)),
            (None, None) => Graph::default(),
            (None, Some(_)) => return Err(ScenarioError::NoTopology(self.origin.clone())),
        };
        for table in self.nodes.iter().filter(|table| !table.is_pattern()) {
            let name = &table.name;
            if graph.find(&name.value).is_none() {
                mistakes.extend(same_to_programs(&graph, name));
                graph.add(name.value.clone(), &name.at);
            }
        }
        self.write_links(&mut graph, mistakes);
        self.tell_nodes(&mut graph, mistakes);
        stations::connect(&self.media, &mut graph, mistakes);
        self.medium_of_topology(mistakes);
        names_are_apart(&graph, mistakes);
        stations::interfaces_are_apart(&self.media, &graph, mistakes);
        few_enough(&graph, mistakes);
        Ok(graph)
    }

    /// Checks that the medium of a topology has a table.
    fn medium_of_topology(&self, mistakes: &mut Vec<Mistake>) {
        let on_air = self.topology.as_ref().and_then(|t| t.on_air.as_ref());
        let Some(OnAir { medium, .. }) = on_air else {
            return;
        };
        if self
            .media
            .iter()
            .all(|draft| draft.name.value != medium.value)
        {
            let title = format!("there is no medium `{}`", medium.value);
            let help = format!(
                "add it: [medium.{0}], or a wire, [segment.{0}]",
                medium.value
            );
            mistakes.push(Mistake::new(&medium.at, title, help));
        }
    }

    fn write_links(&self, graph: &mut Graph, mistakes: &mut Vec<Mistake>) {
        for link in &self.links {
            let ends = link.between.each_ref().map(|name| known(graph, name));
            match ends {
                [Ok(first), Ok(second)] => graph.join(
                    link.name.value.clone(),
                    &link.name.at,
                    [first, second],
                    link.profile.as_ref(),
                ),
                ends => mistakes.extend(ends.into_iter().filter_map(Result::err)),
            }
        }
    }

    /// Applies the file's keys to each node: patterns first, the longest last, then its own table.
    fn tell_nodes(&self, graph: &mut Graph, mistakes: &mut Vec<Mistake>) {
        let mut tables: Vec<_> = self.nodes.iter().collect();
        tables.sort_by_key(|table| (!table.is_pattern(), table.name.value.len()));
        let mut drafts = vec![NodeDraft::default(); graph.nodes.len()];
        for table in tables {
            let name = &table.name;
            let names = graph.nodes.iter().map(|spot| &spot.node.name);
            let meant = names.map(|node| is_meant(&name.value, node));
            let meant: Vec<_> = meant.enumerate().filter(|(_, is)| *is).collect();
            if meant.is_empty() {
                mistakes.push(unknown(graph, name));
            }
            for (number, _) in meant {
                apply(&mut drafts[number], table);
                graph.nodes[number].at = name.at.clone();
            }
        }
        for (number, draft) in drafts.iter().enumerate() {
            let waits_for = waits_for(draft, number, graph, mistakes);
            let node = &mut graph.nodes[number].node;
            let told = draft.values();
            *node = Node {
                name: std::mem::take(&mut node.name),
                env: std::mem::take(&mut node.env),
                // After the commands of the topology.
                prepare: [std::mem::take(&mut node.prepare), told.prepare].concat(),
                waits_for,
                ..told
            };
        }
    }
}

/// Applies a table over earlier ones, key by key; only the commands of `prepare` accumulate.
fn apply(draft: &mut NodeDraft, table: &NodeTable) {
    // All mistakes have been reported when the file was read.
    let mut reader = Reader::default();
    for entry in &table.keys {
        let before = draft
            .prepare
            .clone()
            .filter(|_| entry.key.value == "prepare");
        draft.key(&mut reader, entry);
        if let (Some(before), Some(prepare)) = (before, &mut draft.prepare) {
            prepare.value.splice(0..0, before.value);
        }
    }
}

/// Returns the names of all nodes that a node waits for; a pattern excludes the node itself.
fn waits_for(
    draft: &NodeDraft,
    number: usize,
    graph: &Graph,
    mistakes: &mut Vec<Mistake>,
) -> NodeNames {
    let own = &graph.nodes[number].node.name;
    let mut names = Vec::new();
    for wanted in draft.waits_for.iter().flat_map(|names| &names.value.0) {
        let before = names.len();
        let pattern = wanted.value.ends_with('*');
        for name in graph.nodes.iter().map(|spot| &spot.node.name) {
            if is_meant(&wanted.value, name) && !(pattern && name == own) {
                let (value, at) = (name.clone(), wanted.at.clone());
                names.push(Located { value, at });
            }
        }
        if names.len() == before {
            mistakes.push(unknown(graph, wanted));
        }
    }
    NodeNames(names)
}

/// Rejects a name that programs do not distinguish from another one in `/etc/hosts`.
fn same_to_programs(graph: &Graph, name: &Located<String>) -> Option<Mistake> {
    let mut names = graph.nodes.iter().map(|spot| &spot.node.name);
    let other = names.find(|other| other.eq_ignore_ascii_case(&name.value))?;
    let title = format!("nodes `{other}` and `{}` differ only in case", name.value);
    let help = "programs ignore the case of host names: use a different name";
    Some(Mistake::new(&name.at, title, help))
}

fn known(graph: &Graph, name: &Located<String>) -> Result<usize, Mistake> {
    graph.find(&name.value).ok_or_else(|| unknown(graph, name))
}

fn unknown(graph: &Graph, name: &Located<String>) -> Mistake {
    let names = graph.nodes.iter().map(|spot| spot.node.name.as_str());
    let help = match closest(&name.value, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let all: Vec<_> = names.take(20).collect();
            format!("write [node.NAME]; the nodes are {}", all.join(", "))
        }
    };
    Mistake::new(&name.at, format!("there is no node `{}`", name.value), help)
}

/// Interfaces are named after their links, so the links of a node need distinct names; TOML ensures
/// this for links in the file.
fn names_are_apart(graph: &Graph, mistakes: &mut Vec<Mistake>) {
    let help = "use a different name: a link's interfaces are named after it";
    for (number, edge) in graph.edges.iter().enumerate() {
        let mut earlier = graph.edges[..number].iter();
        if earlier.any(|other| other.name == edge.name) {
            let title = format!("there is a link `{}` in the topology", edge.name);
            mistakes.push(Mistake::new(&edge.at, title, help));
        }
        if edge.name == BRIDGE && graph.star.is_some() {
            let title = "`star` is the hub's bridge";
            mistakes.push(Mistake::new(&edge.at, title, help));
        }
    }
}

fn few_enough(graph: &Graph, mistakes: &mut Vec<Mistake>) {
    let mut limit = |number: usize, most: usize, what: &str, at: Option<&At>| {
        if let Some(at) = at.filter(|_| number > most) {
            let help = format!("a scenario has up to {most} of them");
            mistakes.push(Mistake::new(at, format!("{number} {what}"), help));
        }
    };
    let most = MAX_NODES as usize;
    limit(
        graph.nodes.len(),
        most,
        "nodes",
        graph.nodes.get(most).map(|spot| &spot.at),
    );
    let edges = &graph.edges;
    limit(
        edges.len(),
        MAX_LINKS,
        "links",
        edges.get(MAX_LINKS).map(|edge| &edge.at),
    );
}
