// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that the programs of a run leave: one folder per node, and copies of other files that
//! the scenario lists.

use std::io::{self, BufRead};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};

use emud_monitor::log::ArtefactLine;
use rustix::fs::{Mode, OFlags, openat};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;

use crate::datapath::engine::hold::spawn::this_program;
use crate::experiment::scenario::Node;
use crate::host::now_ns;
use crate::host::spawn;

use super::collect::Collected;
use super::folders::{FOLDER, Kept, works_in};
use super::programs::Common;

/// Copies the files that match a node's patterns into its folder. Returns a line for each file,
/// including those that could not be kept.
pub async fn keep(common: &Common, node: &Node) -> Vec<ArtefactLine> {
    let all_failed = |why: &str| {
        let failed = |pattern: &String| line(node, None, Collected::failed(pattern, why));
        node.artefacts.iter().map(failed).collect()
    };
    if node.artefacts.is_empty() {
        return vec![];
    }
    let Some(run) = &common.folders.run else {
        return all_failed("no folder for it: give --log or --artefacts");
    };
    let folder = run.path.join(&node.name);
    match collect(common, node, run, &folder).await {
        Ok(collected) => collected
            .into_iter()
            .map(|one| line(node, Some(&folder), one))
            .collect(),
        Err(e) => all_failed(&e.to_string()),
    }
}

/// Copies the files by a process of the node, so a path has the same meaning as for the node's programs.
async fn collect(
    common: &Common,
    node: &Node,
    run: &Kept,
    folder: &Path,
) -> io::Result<Vec<Collected>> {
    let mut command = this_program();
    let flags = FOLDER | OFlags::NOFOLLOW;
    command.arg("collect").arg(folder).arg("--");
    command
        .args(&node.artefacts)
        .stdin(openat(&run.folder, &node.name, flags, Mode::empty())?)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(working) = common.folders.working(node) {
        works_in(&mut command, working)?;
    }
    if let Some(user) = &common.user {
        user.runs(&mut command);
    }
    let child = common.network.place.spawn(&node.name, &mut command)?;
    let _ends_it = Ends(pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?);
    let output = output(child)?.await.map_err(io::Error::other)??;
    let lines = output.lines().map(|line| Ok(serde_json::from_str(&line?)?));
    lines.collect()
}

/// Ends the process when dropped: its result is no longer needed.
struct Ends(OwnedFd);

impl Drop for Ends {
    fn drop(&mut self) {
        // It has already ended unless the clean-up was interrupted.
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

fn output(child: Child) -> io::Result<oneshot::Receiver<io::Result<Vec<u8>>>> {
    let (tell, told) = oneshot::channel();
    let wait = move || {
        let output = child.wait_with_output().and_then(|output| {
            let ended = || io::Error::other(format!("collecting files: {}", output.status));
            output
                .status
                .success()
                .then_some(output.stdout)
                .ok_or_else(ended)
        });
        // After an interrupted clean-up there is no receiver.
        let _ = tell.send(output);
    };
    spawn("emud-collect", wait)?;
    Ok(told)
}

fn line(node: &Node, folder: Option<&Path>, collected: Collected) -> ArtefactLine {
    let stored = folder.zip(collected.stored);
    ArtefactLine {
        mono_ns: now_ns(),
        node: node.name.clone(),
        path: collected.path,
        stored: stored.map(|(folder, name)| folder.join(name).display().to_string()),
        bytes: collected.bytes,
        error: collected.error,
    }
}
