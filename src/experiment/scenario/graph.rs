// SPDX-License-Identifier: MIT OR Apache-2.0
//! The graph of nodes and wires, without addresses.

use std::ops::Range;

use super::model::{Asked, Class};
use super::plan::Node;
use crate::medium::motion::Track;
use crate::medium::phy::Position;
use crate::text::At;

#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub nodes: Vec<Spot>,
    pub edges: Vec<Edge>,
    pub star: Option<Star>,
    /// The stations of each medium.
    pub media: Vec<Vec<usize>>,
}

/// A node and its position in the file.
#[derive(Debug)]
pub(crate) struct Spot {
    pub at: At,
    pub node: Node,
    /// On a medium in m, unless the file has a position of the node.
    pub position: Position,
    /// By the mobility of its medium, unless the file has a position or a path of the node.
    pub motion: Option<Track>,
}

/// A wire, with or without a link.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    pub name: String,
    pub at: At,
    /// Numbers of the nodes; a profile is attached at the first one.
    pub ends: [usize; 2],
    pub profile: Option<Asked>,
    /// Whether the second end is a port of the star's bridge.
    pub port: bool,
}

/// Peers around a node with a bridge, whose device emulates all their links.
#[derive(Debug)]
pub(crate) struct Star {
    pub hub: usize,
    pub classes: Vec<PeersOf>,
}

/// The nodes of a class.
#[derive(Debug)]
pub(crate) struct PeersOf {
    pub class: Class,
    pub peers: Range<usize>,
}

impl Graph {
    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|spot| spot.node.name == name)
    }

    /// Adds a node and returns its number.
    pub fn add(&mut self, name: String, at: &At) -> usize {
        self.nodes.push(Spot {
            at: at.clone(),
            node: Node {
                name,
                ..Node::default()
            },
            position: [0.0; 2],
            motion: None,
        });
        self.nodes.len() - 1
    }

    /// Adds `count` nodes named `prefix` and a number from 1, which is in the environment of their
    /// commands.
    pub fn add_many(&mut self, prefix: &str, count: u32, at: &At) -> Range<usize> {
        let first = self.nodes.len();
        for index in 1..=count {
            let number = self.add(format!("{prefix}{index}"), at);
            self.nodes[number].node.env = vec![
                ("EMUD_INDEX".to_owned(), index.to_string()),
                ("EMUD_COUNT".to_owned(), count.to_string()),
            ];
        }
        first..self.nodes.len()
    }

    /// Adds a wire between two nodes.
    pub fn join(&mut self, name: String, at: &At, ends: [usize; 2], profile: Option<&Asked>) {
        self.edges.push(Edge {
            name,
            at: at.clone(),
            ends,
            profile: profile.cloned(),
            port: false,
        });
    }

    /// Returns the numbers of the edges of each node.
    pub fn edges_of(&self) -> Vec<Vec<usize>> {
        let mut of = vec![Vec::new(); self.nodes.len()];
        for (number, edge) in self.edges.iter().enumerate() {
            for end in edge.ends {
                of[end].push(number);
            }
        }
        of
    }
}

impl Spot {
    /// Returns where it is over time.
    pub fn track(&self) -> Track {
        if let Some(motion) = &self.motion {
            return motion.clone();
        }
        let own = self.node.position.unwrap_or(self.position);
        let path = self.node.path.as_deref().unwrap_or(&[]);
        let mut track = Track::still(path.first().map_or(own, |(_, first)| *first));
        for (at_ns, position) in path.iter().skip(1) {
            track.push(*at_ns, *position);
        }
        track
    }
}

impl Edge {
    /// Returns the node at the other end.
    pub fn other(&self, node: usize) -> usize {
        match self.ends {
            [first, second] if first == node => second,
            [first, _] => first,
        }
    }
}
