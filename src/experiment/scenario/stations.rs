// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stations of the media of a file: which nodes they are, and their addresses.

use std::path::Path;

use ipnet::Ipv4Net;

use super::graph::Graph;
use super::kinds::is_meant;
use super::limits::MAX_STATIONS;
use super::medium::{Medium, MediumDraft, RateChoice, Station, its_rates, within_grid, word};
use crate::text::{Located, Mistake};

/// Adds the stations of the file's media to the graph.
pub(crate) fn connect(drafts: &[MediumDraft], graph: &mut Graph, mistakes: &mut Vec<Mistake>) {
    for draft in drafts {
        let what = word(draft.segment.as_ref());
        let meant = |name: &str| match &draft.table.nodes {
            None => true,
            Some(nodes) => nodes.iter().any(|wanted| is_meant(wanted, name)),
        };
        let names = graph.nodes.iter().map(|spot| spot.node.name.as_str());
        let members: Vec<usize> = (0..)
            .zip(names)
            .filter(|(_, name)| meant(name))
            .map(|(n, _)| n)
            .collect();
        for wanted in draft.table.nodes.iter().flat_map(|nodes| &nodes.0) {
            let mut names = graph.nodes.iter().map(|spot| &spot.node.name);
            if !names.any(|name| is_meant(&wanted.value, name)) {
                let title = format!("there is no node `{}`", wanted.value);
                mistakes.push(Mistake::new(&wanted.at, title, "write [node.NAME]"));
            }
        }
        if members.len() < 2 {
            let title = format!("{what} `{}` has fewer than two stations", draft.name.value);
            let help = "write nodes = [\"...\", \"...\"], or add nodes";
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        let most = MAX_STATIONS as usize;
        if members.len() > most {
            let (name, count) = (&draft.name.value, members.len());
            let title = format!("{what} `{name}` has {count} stations");
            let help = format!("a {what} has up to {most}: write nodes = [\"...\", \"...\"]");
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        if let Some(segment) = &draft.segment {
            let nodes = members.iter().map(|n| graph.nodes[*n].node.name.as_str());
            segment.check(&draft.name.value, &nodes.collect::<Vec<_>>(), mistakes);
        }
        let standard = &draft.table.radio.standard;
        let has = |bits: u64| {
            let mut rates = standard.data_rates();
            rates.any(|kbit| u64::from(kbit) * 1000 == bits)
        };
        let bits = draft.table.rate.and_then(RateChoice::bits);
        if bits.is_some_and(|bits| !has(bits)) {
            let title = format!(
                "medium `{}`: {} does not have this rate",
                draft.name.value, standard.name
            );
            let help = its_rates(standard.data_rates());
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        for (title, help) in draft.table.contradictions() {
            let title = format!("{what} `{}`: {title}", draft.name.value);
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        for (n, member) in members.iter().enumerate() {
            let Some(mobility) = &draft.mobility else {
                break;
            };
            let spot = &mut graph.nodes[*member];
            let node = &spot.node;
            if node.position.is_some() || node.path.is_some() {
                continue;
            }
            let track = mobility.track(n, &node.name);
            let (title, help) = match (&track, &spot.motion) {
                (None, _) => (
                    format!("the trace has no node `{}`, and no number {n}", node.name),
                    "each station of the medium without `at` and `path` needs a track",
                ),
                (_, Some(other)) if track.as_ref() != Some(other) => (
                    format!("`{}` has another `mobility` on another medium", node.name),
                    "a node is in one position: use the same trace, or write its `path`",
                ),
                _ => {
                    spot.motion = track;
                    continue;
                }
            };
            mistakes.push(Mistake::new(&draft.name.at, title, help));
            break;
        }
        graph.media.push(members);
    }
}

/// Checks that the media, segments and links of each node have different names, and the media different
/// records.
pub(crate) fn interfaces_are_apart(
    drafts: &[MediumDraft],
    graph: &Graph,
    mistakes: &mut Vec<Mistake>,
) {
    for (n, draft) in drafts.iter().enumerate() {
        if drafts[..n].iter().any(|d| d.name.value == draft.name.value) {
            let title = format!("there are a medium and a segment `{}`", draft.name.value);
            let help = "use a different name: their interfaces are named after them";
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        if graph.edges.iter().any(|edge| edge.name == draft.name.value) {
            let title = format!("there is a link `{}`", draft.name.value);
            let what = word(draft.segment.as_ref());
            let help = format!("use a different name: a {what}'s interfaces are named after it");
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
        let record = draft.table.record.as_ref().map(Path::new);
        let same = |other: &&MediumDraft| other.table.record.as_ref().map(Path::new) == record;
        if let Some(path) = record
            && let Some(other) = drafts[..n].iter().find(same)
        {
            let (name, other, path) = (&draft.name.value, &other.name.value, path.display());
            let title = format!("`{other}` and `{name}` have the same `record`, {path}");
            let help = "use a different file: each overwrites what the other one writes";
            mistakes.push(Mistake::new(&draft.name.at, title, help));
        }
    }
}

/// Returns the media with addresses: each the last free block of the network.
///
/// # Errors
/// The network is too small, or a grid has no losses of a station.
pub(crate) fn media(
    drafts: &[MediumDraft],
    graph: &Graph,
    network: &Located<Ipv4Net>,
    taken: impl Iterator<Item = Ipv4Net>,
) -> Result<Vec<Medium>, Mistake> {
    let behind = taken.map(|net| net.broadcast()).max();
    let mut next = u32::from(network.value.broadcast());
    let mut media = Vec::new();
    for (draft, members) in drafts.iter().zip(&graph.media) {
        // As the addresses of a network: neither the first nor the last.
        let size = (members.len() as u32 + 2).next_power_of_two();
        let first = next.checked_sub(size - 1);
        let free = |first: u32| {
            first >= u32::from(network.value.network())
                && behind.is_none_or(|behind| first > u32::from(behind))
        };
        let Some(first) = first.filter(|first| free(*first)) else {
            let title = format!(
                "the network {} is too small for {} `{}`",
                network.value,
                word(draft.segment.as_ref()),
                draft.name.value
            );
            let help =
                "use a larger one at the top of the file, such as network = \"10.77.0.0/16\"";
            return Err(Mistake::new(&network.at, title, help));
        };
        next = first.saturating_sub(1);
        let station = |(n, node): (u32, &usize)| Station {
            node: graph.nodes[*node].node.name.clone(),
            address: Ipv4Net::from(std::net::Ipv4Addr::from(first + n)),
            track: graph.nodes[*node].track(),
            promiscuous: graph.nodes[*node].node.promiscuous,
        };
        let stations: Vec<Station> = (1..).zip(members).map(station).collect();
        within_grid(draft, &stations)?;
        media.push(Medium {
            interface: draft.name.value.clone(),
            number: media.len(),
            stations,
            ipv6: draft.table.ipv6,
            record: draft.table.record.clone(),
            table: draft.table.clone(),
            segment: draft.segment.clone(),
        });
    }
    Ok(media)
}
