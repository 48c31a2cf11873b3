// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same run with stock netem, of experiments whose sources compare with it.

use super::ReproduceError;
use crate::convert::export::{self, ExportDirection};
use crate::experiment::scenario::Plan;

#[derive(Debug, Clone, Copy)]
pub(super) enum Netem<'a> {
    /// One for each direction of each link, as `emud export netem` writes it.
    Exported,
    /// The same, and TCP makes no super-packets, of which netem counts the overhead once.
    Segments,
    /// Nothing: bare wires, on which TCP makes no super-packets either.
    Bare,
    /// A shell command in the node that has the device of the only link.
    Command(&'a str),
}

impl Netem<'_> {
    /// Replaces the links of a plan by commands of the preparation.
    pub fn replace_links(self, plan: &mut Plan, scenario: &str) -> Result<(), ReproduceError> {
        let mut commands = vec![];
        for link in &plan.links {
            if let Self::Command(command) = self {
                commands.push((link.node.clone(), command.to_owned()));
                continue;
            }
            let export = |direction, device: &str| {
                let segments = format!("ip link set dev {device} gso_max_segs 1");
                if let Self::Bare = self {
                    return Ok(segments);
                }
                let exported = export::netem(&link.profile, direction, Some(device));
                let exported = exported.map_err(|e| ReproduceError::Program {
                    scenario: scenario.to_owned(),
                    problem: format!("{}: {e}", link.name),
                });
                let command = exported?.command;
                Ok::<_, ReproduceError>(match self {
                    Self::Segments => format!("{command} && {segments}"),
                    _ => command,
                })
            };
            let up = export(ExportDirection::Up, &link.interface)?;
            commands.push((link.node.clone(), up));
            for end in plan.opposite(link) {
                let down = export(ExportDirection::Down, &end.interface)?;
                commands.extend(end.node.clone().map(|node| (node, down)));
            }
        }
        plan.links.clear();
        for (name, command) in commands {
            let node = plan.nodes.iter_mut().find(|node| node.name == name);
            node.into_iter()
                .for_each(|node| node.prepare.push(command.clone()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::live::Variant;
    use super::*;

    fn ring(netem: Netem<'static>) -> Variant<'static> {
        Variant {
            scenario: "s-ring",
            nodes: Some(3),
            netem: Some(netem),
            ..Variant::default()
        }
    }

    #[test]
    fn netem_replaces_the_links() {
        let variant = ring(Netem::Exported);
        let plan = variant.plan().unwrap();
        assert!(plan.links.is_empty());
        assert_eq!(plan.wires.len(), 3);
        for node in &plan.nodes {
            let ends = plan.wires.iter().flat_map(|wire| &wire.ends);
            let own = ends.filter(|end| end.node.as_ref() == Some(&node.name));
            let own: Vec<_> = own.map(|end| &end.interface).collect();
            let mut expected: Vec<_> = own
                .iter()
                .map(|device| format!("tc qdisc add dev {device} root netem rate 20000000bit 24"))
                .collect();
            let mut commands = node.prepare.clone();
            expected.sort();
            commands.sort();
            assert_eq!(commands, expected);
            assert_eq!(own.len(), 2);
        }
        let tree = Variant {
            scenario: "t-tree",
            nodes: None,
            ..variant
        };
        let error = tree.plan().unwrap_err();
        assert!(error.to_string().contains("netem cannot"), "{error}");
        let classes = Variant {
            scenario: "t-scale",
            nodes: None,
            netem: Some(Netem::Command("true")),
            ..variant
        };
        let plan = classes.plan().unwrap();
        let sender = plan.nodes.iter().find(|node| node.name == "sender");
        assert_eq!(sender.unwrap().prepare.last().unwrap(), "true");
    }

    #[test]
    fn bare_wires_have_the_packets_of_links() {
        let variant = Variant {
            scenario: "s-overhead",
            set: &["rate=1000Mbit"],
            netem: Some(Netem::Bare),
            ..Variant::default()
        };
        let plan = variant.plan().unwrap();
        assert!(plan.links.is_empty());
        assert_eq!(plan.wires.len(), 1);
        for node in &plan.nodes {
            let last = node.prepare.last().unwrap();
            assert_eq!(last, "ip link set dev wire gso_max_segs 1", "{}", node.name);
        }
    }

    #[test]
    fn without_super_packets_netem_counts_each_frame() {
        let [with, without] =
            [Netem::Exported, Netem::Segments].map(|netem| ring(netem).plan().unwrap());
        assert!(without.links.is_empty());
        for (with, without) in with.nodes.iter().zip(&without.nodes) {
            let commands = with.prepare.iter().map(|command| {
                let device = command.split(' ').nth(4).unwrap();
                format!("{command} && ip link set dev {device} gso_max_segs 1")
            });
            let commands: Vec<_> = commands.collect();
            assert_eq!((&without.prepare, commands.len()), (&commands, 2));
        }
    }
}
