// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expands the file to single nodes and wires.

use super::error::ScenarioError;
use super::graph::{Graph, Spot};
use super::limits::{MAX_LINKS, MAX_NODES};
use super::model::{NodeDraft, Scenario};
use crate::text::{At, Located, Mistake, closest};

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
        for draft in self.nodes.iter().filter(|draft| draft.pattern().is_none()) {
            if graph.find(&draft.name.value).is_none() {
                graph.add(draft.name.value.clone(), &draft.name.at);
            }
        }
        self.write_links(&mut graph, mistakes);
        self.tell_nodes(&mut graph, mistakes);
        names_are_apart(&graph, mistakes);
        few_enough(&graph, mistakes);
        Ok(graph)
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
        let mut drafts: Vec<_> = self.nodes.iter().collect();
        drafts.sort_by_key(|draft| (draft.pattern().is_none(), draft.name.value.len()));
        for draft in drafts {
            let meant: Vec<_> = (0..graph.nodes.len())
                .filter(|number| is_meant(&draft.name.value, &graph.nodes[*number].node.name))
                .collect();
            if meant.is_empty() {
                mistakes.push(unknown(graph, &draft.name));
            }
            for number in meant {
                let waits_for = waits_for(draft, number, graph, mistakes);
                tell(&mut graph.nodes[number], draft, waits_for);
            }
        }
    }
}

/// Returns whether `name` is the name of a node, or a pattern that matches it.
fn is_meant(name: &str, node: &str) -> bool {
    match name.strip_suffix('*') {
        Some(prefix) => node.starts_with(prefix),
        None => node == name,
    }
}

fn tell(spot: &mut Spot, draft: &NodeDraft, waits_for: Option<Vec<String>>) {
    fn put<T: Clone>(slot: &mut T, said: &Option<Located<T>>) {
        if let Some(said) = said {
            *slot = said.value.clone();
        }
    }
    let node = &mut spot.node;
    node.command = match &draft.command {
        Some(command) => Some(command.value.clone()),
        None => node.command.take(),
    };
    node.ready = match &draft.ready {
        Some(ready) => Some(ready.value.clone()),
        None => node.ready.take(),
    };
    put(&mut node.service, &draft.service);
    put(&mut node.start, &draft.start);
    put(&mut node.clean_up, &draft.clean_up);
    put(&mut node.artefacts, &draft.artefacts);
    put(&mut node.outside, &draft.outside);
    // Commands from a topology are kept.
    node.prepare
        .extend(draft.prepare.iter().flat_map(|p| p.value.clone()));
    node.waits_for = waits_for.unwrap_or(std::mem::take(&mut node.waits_for));
    spot.forwards = draft.forwards.as_ref().map(|f| f.value).or(spot.forwards);
    spot.at = draft.name.at.clone();
}

/// Returns the names of all nodes that a node waits for; a pattern excludes the node itself.
fn waits_for(
    draft: &NodeDraft,
    number: usize,
    graph: &Graph,
    mistakes: &mut Vec<Mistake>,
) -> Option<Vec<String>> {
    let own = &graph.nodes[number].node.name;
    let mut names = Vec::new();
    for wanted in &draft.waits_for.as_ref()?.value {
        let before = names.len();
        let all = graph.nodes.iter().map(|spot| &spot.node.name);
        let pattern = wanted.value.ends_with('*');
        let meant = all.filter(|name| is_meant(&wanted.value, name) && !(pattern && *name == own));
        names.extend(meant.cloned());
        if names.len() == before {
            mistakes.push(unknown(graph, wanted));
        }
    }
    Some(names)
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
        if edge.name == crate::experiment::scenario::star::BRIDGE && graph.star.is_some() {
            let title = "`star` is the hub's bridge";
            mistakes.push(Mistake::new(&edge.at, title, help));
        }
    }
}

fn few_enough(graph: &Graph, mistakes: &mut Vec<Mistake>) {
    let mut limit = |number: usize, most: usize, what: &str, at: Option<&At>| {
        if let Some(at) = at.filter(|_| number > most) {
            let help = format!("one host supports up to {most} of them");
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
