// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the keys of nodes for conflicts.

use super::graph::{Graph, Spot};
use crate::text::Mistake;

/// Adds to `mistakes` what cannot be carried out.
pub(crate) fn check(graph: &Graph, mistakes: &mut Vec<Mistake>) {
    for number in 0..graph.nodes.len() {
        mistakes.extend(of_services(graph, number));
        mistakes.extend(of_waiting(graph, number));
    }
    mistakes.extend(circle(graph));
    mistakes.extend(outsiders(graph));
    mistakes.extend(apart(graph));
    if mistakes.is_empty() {
        mistakes.extend(nothing_to_measure(graph));
    }
}

/// Keys that require another key, or exclude it.
fn of_services(graph: &Graph, number: usize) -> Option<Mistake> {
    let spot = &graph.nodes[number];
    let node = &spot.node;
    let idle = node.command.is_none();
    let help = "set its command: command = \"...\"";
    let cases = [
        (idle && node.service, "is a service without a command", help),
        (
            idle && !node.start.is_zero(),
            "has a `start` and no command",
            help,
        ),
        (
            idle && node.waits_for.iter().next().is_some(),
            "waits, and has no command",
            help,
        ),
        (
            node.ready.is_some() && !node.service,
            "has `ready` and is no service",
            "write service = true, or leave `ready` out",
        ),
        (
            node.service && !node.start.is_zero(),
            "is a service with a `start`",
            "services start before the measured phase: leave it out",
        ),
        (
            node.position.is_some() && node.path.is_some(),
            "has `at` and `path`",
            "leave `at` out: a path has the first position; at = \"none\" overrides a pattern",
        ),
    ];
    let (_, title, help) = cases.into_iter().find(|(is, ..)| *is)?;
    let title = format!("node `{}` {title}", node.name);
    Some(Mistake::new(&spot.at, title, help))
}

/// Rejects a node that waits for a command that never ends, or ends too late.
fn of_waiting(graph: &Graph, number: usize) -> Option<Mistake> {
    let spot = &graph.nodes[number];
    let node = &spot.node;
    for wanted in node.waits_for.iter() {
        let other = &graph.nodes[graph.find(wanted)?].node;
        let (title, help) = if other.command.is_none() {
            (
                "which runs no command",
                "set its command, or do not wait for it",
            )
        } else if node.service && !other.service {
            (
                "which runs in the measured phase",
                "a service is ready before that: it can only wait for services",
            )
        } else {
            continue;
        };
        let title = format!("node `{}` waits for `{wanted}`, {title}", node.name);
        return Some(Mistake::new(&spot.at, title, help));
    }
    None
}

/// Nodes that wait for each other.
fn circle(graph: &Graph) -> Option<Mistake> {
    let wanted = |spot: &Spot| -> Vec<usize> {
        let names = spot.node.waits_for.iter();
        names.filter_map(|name| graph.find(name)).collect()
    };
    let waits: Vec<_> = graph.nodes.iter().map(wanted).collect();
    // A node can start when the nodes it waits for are removed from `left`; the remaining ones wait
    // forever.
    let mut left = vec![true; waits.len()];
    loop {
        let free = |number: &usize| left[*number] && !waits[*number].iter().any(|w| left[*w]);
        let free: Vec<_> = (0..waits.len()).filter(free).collect();
        if free.is_empty() {
            break;
        }
        free.into_iter().for_each(|number| left[number] = false);
    }
    let first = left.iter().position(|left| *left)?;
    // Follows what they wait for until a node repeats.
    let mut way = vec![first];
    let mut begin = None;
    while begin.is_none() {
        let next = *waits[*way.last()?].iter().find(|wanted| left[**wanted])?;
        begin = way.iter().position(|number| *number == next);
        way.push(next);
    }
    let way = &way[begin?..];
    let names = way
        .iter()
        .map(|number| graph.nodes[*number].node.name.as_str());
    let names: Vec<_> = names.collect();
    let help = format!("they would wait forever: {}", names.join(" -> "));
    let title = format!("node `{}` waits for itself", names[0]);
    Some(Mistake::new(&graph.nodes[way[0]].at, title, help))
}

/// Rejects a second wire to the host.
fn outsiders(graph: &Graph) -> Option<Mistake> {
    let mut outside = graph.nodes.iter().filter(|spot| spot.node.outside);
    let (first, second) = (outside.next()?, outside.next()?);
    let title = format!(
        "both `{}` and `{}` have `outside`",
        first.node.name, second.node.name
    );
    let help = "one node of a scenario has a wire to the host: keep one";
    Some(Mistake::new(&second.at, title, help).beside(&first.at, "the first"))
}

/// Rejects nodes that are not reachable from each other.
fn apart(graph: &Graph) -> Option<Mistake> {
    let edges = graph.edges_of();
    let mut seen = vec![false; graph.nodes.len()];
    let mut next = vec![0];
    while let Some(number) = next.pop() {
        if !std::mem::replace(seen.get_mut(number)?, true) {
            let media = graph
                .media
                .iter()
                .filter(|members| members.contains(&number));
            next.extend(media.flatten());
            next.extend(
                edges[number]
                    .iter()
                    .map(|edge| graph.edges[*edge].other(number)),
            );
        }
    }
    let lost = seen.iter().position(|seen| !seen)?;
    let spot = &graph.nodes[lost];
    let (name, first) = (&spot.node.name, &graph.nodes[0].node.name);
    let title = format!("node `{name}` is not reachable from node `{first}`");
    let help = format!("add a link: [link.NAME] with between = [\"{name}\", \"...\"]");
    Some(Mistake::new(&spot.at, title, help))
}

/// Rejects a scenario without a command: the measured phase ends with its commands.
fn nothing_to_measure(graph: &Graph) -> Option<Mistake> {
    let spot = graph.nodes.first()?;
    let runs = |node: &super::plan::Node| node.command.is_some() && !node.service;
    if graph.nodes.iter().any(|spot| runs(&spot.node)) {
        return None;
    }
    let help = "set the command of a node that is not a service: the measured phase ends when all such \
                commands have ended";
    Some(Mistake::new(
        &spot.at,
        "no node has a command to measure",
        help,
    ))
}
