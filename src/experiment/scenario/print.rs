// SPDX-License-Identifier: MIT OR Apache-2.0
//! Formats a plan as text and as JSON.

use std::fmt::Write;

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use super::kinds::Program;
use super::plan::{Node, Plan, PlannedEnd, Route};
use crate::host::nanoseconds;

impl Program {
    /// Returns the argument vector; for an interactive shell only its name.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Argv(argv) => argv.clone(),
            Self::Shell(text) => ["sh", "-c", text].map(str::to_owned).into(),
            Self::Interactive => vec!["sh".to_owned()],
        }
    }

    /// Returns the command as written, on one line.
    fn line(&self) -> String {
        match self {
            Self::Argv(argv) => argv.join(" "),
            Self::Shell(text) => text.trim().replace('\n', "; "),
            Self::Interactive => "an interactive shell".to_owned(),
        }
    }
}

impl Plan {
    /// Lists nodes with addresses, routes and commands, then wires, then links.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for node in &self.nodes {
            self.node_text(&mut out, node);
        }
        out.push_str("\nwires\n");
        for wire in &self.wires {
            let [first, second] = wire.ends.each_ref().map(end_text);
            // Writing to a String does not fail.
            let _ = writeln!(out, "  {first:36} {second}");
        }
        for medium in &self.media {
            let _ = writeln!(out, "\n{} {}", medium.word(), medium.line());
            for station in &medium.stations {
                let [x, y] = station.track.at(0);
                let _ = write!(out, "  {:15} {:18}", station.node, station.address);
                let _ = match (medium.is_wired(), station.track.moves()) {
                    (true, _) => writeln!(out),
                    (false, true) => writeln!(out, " at [{x}, {y}], moves"),
                    (false, false) => writeln!(out, " at [{x}, {y}]"),
                };
            }
        }
        if !self.links.is_empty() {
            out.push_str("\nlinks\n");
        }
        for link in &self.links {
            let reversed = if link.reversed { ", reversed" } else { "" };
            let _ = writeln!(
                out,
                "  {:15} on {} of {}: {}{reversed}",
                link.name, link.interface, link.node, link.asked
            );
        }
        out
    }

    fn node_text(&self, out: &mut String, node: &Node) {
        let mut words = vec![node.name.clone()];
        words.extend(self.addresses(&node.name).iter().map(Ipv4Net::to_string));
        for (is, word) in [
            (node.forwards(), "forwards"),
            (node.outside, "outside"),
            (node.service, "service"),
        ] {
            words.extend(is.then(|| word.to_owned()));
        }
        words.extend(
            node.bridge
                .iter()
                .map(|b| format!("bridge {}", b.interface)),
        );
        let _ = writeln!(out, "{}", words.join("  "));
        if let Some(command) = &node.command {
            let _ = writeln!(out, "    runs {}", command.line());
        }
        for route in &node.routes {
            let _ = writeln!(out, "    route {}", route_text(route));
        }
    }

    /// Returns one object; docs/scenario.md describes its keys.
    pub fn to_json(&self) -> Value {
        json!({
            "schema": "emud-plan/1",
            "name": self.name,
            "nodes": self.nodes.iter().map(|node| self.node_json(node)).collect::<Vec<_>>(),
            "wires": self.wires.iter().map(|wire| json!({
                "ends": wire.ends.each_ref().map(|end| json!({
                    "node": end.node,
                    "interface": end.interface,
                    "address": end.address.as_ref().map(Ipv4Net::to_string),
                })),
            })).collect::<Vec<_>>(),
            "links": self.links.iter().map(|link| json!({
                "name": link.name,
                "node": link.node,
                "interface": link.interface,
                "asked": link.asked,
                "reversed": link.reversed,
                "profile": link.profile.to_toml(),
            })).collect::<Vec<_>>(),
            "media": self.media.iter().map(|medium| json!({
                "interface": medium.interface,
                "stations": medium.stations.iter().map(|station| json!({
                    "node": station.node,
                    "address": station.address.to_string(),
                    "at": station.track.at(0),
                    "moves": station.track.moves(),
                    "promiscuous": station.promiscuous,
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "ready_within_ns": nanoseconds(self.ready_within),
            "clean_up_within_ns": nanoseconds(self.clean_up_within),
            "measure_ns": self.measure_for.map(nanoseconds),
        })
    }

    fn node_json(&self, node: &Node) -> Value {
        json!({
            "name": node.name,
            "addresses": self.addresses(&node.name).iter().map(Ipv4Net::to_string).collect::<Vec<_>>(),
            "forwards": node.forwards(),
            "outside": node.outside,
            "bridge": node.bridge.as_ref().map(|bridge| json!({
                "interface": bridge.interface,
                "address": bridge.address.as_ref().map(Ipv4Net::to_string),
                "ports": bridge.ports,
            })),
            "routes": node.routes.iter().map(|route| json!({
                "to": route.to.to_string(),
                "via": route.via,
                "interface": route.interface,
            })).collect::<Vec<_>>(),
            "command": node.command.as_ref().map(Program::argv),
            "service": node.service,
            "ready": node.ready,
            "start_ns": nanoseconds(node.start),
            "waits_for": node.waits_for.iter().collect::<Vec<_>>(),
            "prepare": node.prepare,
            "clean_up": node.clean_up,
            "artefacts": node.artefacts,
            "env": node.env.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        })
    }
}

fn end_text(end: &PlannedEnd) -> String {
    let node = end.node.as_deref().unwrap_or("(host)");
    match end.address {
        Some(address) => format!("{node}:{} {address}", end.interface),
        None => format!("{node}:{} (port)", end.interface),
    }
}

fn route_text(route: &Route) -> String {
    let to = match route.to.prefix_len() {
        0 => "default".to_owned(),
        _ => route.to.to_string(),
    };
    match route.via {
        Some(via) => format!("{to} via {via} dev {}", route.interface),
        None => format!("{to} dev {}", route.interface),
    }
}
