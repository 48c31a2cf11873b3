// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that programs leave behind and that are to be kept.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use emud_monitor::log::{ArtefactLine, mono_ns};

use crate::scenario::{Node, Plan};

use super::Settings;
use super::network::Network;

/// Copies what each node's patterns match into a folder of the node. A line for each file, and
/// for each that could not be kept.
pub fn keep(plan: &Plan, settings: &Settings, network: &Network) -> Vec<ArtefactLine> {
    let mut lines = vec![];
    for node in &plan.nodes {
        for pattern in &node.artefacts {
            match matches(network, node, pattern) {
                Ok(paths) if paths.is_empty() => {
                    lines.push(failed(node, pattern, "no file matches"));
                }
                Ok(paths) => {
                    lines.extend(paths.iter().map(|path| one(settings, node, path)));
                }
                Err(e) => lines.push(failed(node, pattern, &e.to_string())),
            }
        }
    }
    lines
}

/// The node's own shell says what a pattern means: it has the node's mounts.
fn matches(network: &Network, node: &Node, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let mut command = Command::new("sh");
    // Patterns are expanded, and split into words, by being unquoted.
    command.args([
        "-c",
        "IFS=; for f in $1; do [ -f \"$f\" ] && printf '%s\\0' \"$f\"; done; :",
        "sh",
    ]);
    command
        .arg(pattern)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let child = network.place.spawn(&node.name, &mut command)?;
    let out = child.wait_with_output()?.stdout;
    let names = out.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names
        .map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned()))
        .collect())
}

fn one(settings: &Settings, node: &Node, path: &Path) -> ArtefactLine {
    let shown = path.display().to_string();
    let Some(folder) = &settings.artefacts else {
        return failed(
            node,
            &shown,
            "there is no folder for it: give --log or --artefacts",
        );
    };
    let folder = folder.join(&node.name);
    let stored = free(&folder, path);
    let copied = fs::create_dir_all(&folder).and_then(|()| fs::copy(path, &stored));
    match copied {
        Ok(bytes) => ArtefactLine {
            mono_ns: mono_ns(),
            node: node.name.clone(),
            path: shown,
            stored: Some(stored.display().to_string()),
            bytes,
            error: None,
        },
        Err(e) => failed(node, &shown, &e.to_string()),
    }
}

/// The file's own name, or with a number behind it where another file has that.
fn free(folder: &Path, path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let numbered = |n: u32| {
        let mut name = name.to_os_string();
        if n > 0 {
            name.push(format!(".{n}"));
        }
        folder.join(name)
    };
    let mut names = (0..).map(numbered);
    names
        .find(|name| !name.exists())
        .unwrap_or_else(|| folder.join(name))
}

fn failed(node: &Node, path: &str, error: &str) -> ArtefactLine {
    ArtefactLine {
        mono_ns: mono_ns(),
        node: node.name.clone(),
        path: path.to_owned(),
        stored: None,
        bytes: 0,
        error: Some(error.to_owned()),
    }
}
