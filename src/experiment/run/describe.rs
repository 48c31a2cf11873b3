// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes a run for the log and for the programs.

use std::io::Write;
use std::path::Path;

use emud_monitor::log::{Run, RunNode};

use crate::experiment::scenario::{Node, Plan, Program};
use crate::host::{nanoseconds, now_ns};
use crate::monitor::session::client::OF_RUN;

use super::folders::Folders;
use super::network::Network;
use super::process::argv;
use super::{Settings, User, stations};

/// Returns the line about the run.
pub fn run(plan: &Plan, settings: &Settings, network: &Network, notes: &[String]) -> Run {
    let (repeat, repeats) = settings.repeat;
    Run {
        mono_ns: now_ns(),
        argv: settings.argv.clone(),
        cwd: std::env::current_dir().map_or_else(
            |_| String::new(),
            |folder| folder.to_string_lossy().into_owned(),
        ),
        name: plan.name.clone(),
        scenario: plan.text.clone(),
        seed: settings.seed,
        repeat,
        repeats,
        in_place: settings.in_place.clone(),
        user: settings.user.as_ref().map(|user| user.name.clone()),
        sample_ns: (settings.sample).map(nanoseconds),
        nodes: (plan.nodes.iter())
            .map(|one| node(plan, one, settings.user.as_ref()))
            .collect(),
        links: (network.links.iter())
            .map(|(_, link)| link.clone())
            .collect(),
        media: plan.media.iter().map(stations::describe).collect(),
        notes: notes.to_vec(),
    }
}

/// Prints what users have to know before it begins: the engine and the reason, and what is not
/// available.
pub fn say(run: &Run) {
    let mut lines = vec![];
    for link in &run.links {
        let line = format!("{}: engine {}: {}", run.name, link.engine, link.reason);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.push(format!("{}: seed {}", run.name, run.seed));
    lines.extend((run.user.iter()).map(|user| format!("{}: programs run as {user}", run.name)));
    let notes = (run.links.iter())
        .flat_map(|link| &link.notes)
        .chain(&run.notes);
    let notes: std::collections::BTreeSet<_> = notes.collect();
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    for line in lines {
        // The same is in the log.
        let _ = writeln!(std::io::stderr(), "emud: {line}");
    }
}

fn node(plan: &Plan, node: &Node, user: Option<&User>) -> RunNode {
    RunNode {
        name: node.name.clone(),
        addresses: (plan.addresses(&node.name).iter())
            .map(|network| network.addr().to_string())
            .collect(),
        command: (node.command.as_ref()).map(|program| argv(program, user)),
        service: node.service,
    }
}

/// Returns the additional environment of a node's programs.
pub fn of_node(node: &Node, folders: &Folders) -> Vec<(String, String)> {
    let mut env = vec![("EMUD_NODE".to_owned(), node.name.clone())];
    if let Some(folder) = folders.of(node) {
        let folder = folder.to_string_lossy().into_owned();
        env.push(("EMUD_ARTEFACTS".to_owned(), folder));
    }
    let start = folders.start.to_string_lossy().into_owned();
    env.push(("EMUD_START".to_owned(), start));
    env
}

/// Returns the environment of every program.
pub fn environment(
    plan: &Plan,
    settings: &Settings,
    network: &Network,
    socket: Option<&Path>,
) -> Vec<(String, String)> {
    let mut env = vec![
        ("EMUD_SEED".to_owned(), settings.seed.to_string()),
        ("EMUD_REPEAT".to_owned(), settings.repeat.0.to_string()),
    ];
    // Programs may use emud itself, wherever it is.
    if let Ok(emud) = std::env::current_exe() {
        env.push(("EMUD".to_owned(), emud.to_string_lossy().into_owned()));
    }
    if let Some(host) = network.host {
        env.push(("EMUD_HOST".to_owned(), host.to_string()));
    }
    if let Some(socket) = socket {
        let socket = socket.to_string_lossy().into_owned();
        env.push((OF_RUN.to_owned(), socket));
    }
    let shell = (plan.nodes.iter()).any(|node| node.command == Some(Program::Interactive));
    if shell {
        env.push(("PROMPT_COMMAND".to_owned(), prompt_command(&plan.name)));
    }
    env
}

/// Returns what bash runs after its start files, which set the prompt. It expands the prompt each time.
fn prompt_command(name: &str) -> String {
    let shown = |c: char| c.is_alphanumeric() || " ._+-".contains(c);
    let name = name.replace(|c| !shown(c), "_");
    format!("PS1=\"[{name}] $PS1\"; unset PROMPT_COMMAND")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_command_of_the_shell() {
        let prompt = prompt_command("a $(touch x) `y` \\$z\"b\u{1b}");
        let shown = "PS1=\"[a __touch x_ _y_ __z_b_] $PS1\"; unset PROMPT_COMMAND";
        assert_eq!(prompt, shown);
        assert!(prompt_command("lte-4.5 üb").contains("[lte-4.5 üb]"));
    }
}
