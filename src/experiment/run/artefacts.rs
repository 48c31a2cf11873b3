// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that the programs of a run leave: one folder per node, and copies of other files that
//! the scenario lists.

use std::fs::{self, File};
use std::io::{self, BufRead};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use emud_monitor::log::{ArtefactLine, mono_ns};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;

use crate::datapath::engine::hold::spawn::this_program;
use crate::experiment::scenario::{Node, Plan};
use crate::host::spawn;

use super::collect::Collected;
use super::programs::Common;
use super::{RunError, Settings, User};

/// Mount point of the node's tmpfs if no folder is kept: it ends with the node.
pub const SCRATCH: &str = "/run/emud/scratch";

/// The nodes' folders.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The absolute path of this run's folder; `None`: nothing is kept.
    run: Option<PathBuf>,
    /// Whether the nodes have separate mounts, and therefore a scratch folder each.
    scratch: bool,
    /// The folder in which emud was started.
    pub start: PathBuf,
    /// Whether programs work in their node's folder, because there are several nodes.
    apart: bool,
}

impl Folders {
    /// Creates a folder for each node of the plan in that of the run.
    ///
    /// # Errors
    /// [`RunError::Folder`].
    pub fn create(plan: &Plan, settings: &Settings) -> Result<Self, RunError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| RunError::Folder { path, error }
        };
        let here = Path::new(".");
        let mut folders = Self {
            run: None,
            scratch: settings.in_place.is_none(),
            start: fs::canonicalize(here).map_err(failed(here))?,
            apart: plan.text.is_some(),
        };
        if let Some(run) = &settings.artefacts {
            let is_new = !run.exists();
            fs::create_dir_all(run).map_err(failed(run))?;
            let run = fs::canonicalize(run).map_err(failed(run))?;
            if is_new {
                own(&run, settings.caller.as_ref()).map_err(failed(&run))?;
            }
            for node in &plan.nodes {
                let folder = run.join(&node.name);
                fs::create_dir(&folder).map_err(failed(&folder))?;
                let owner = settings.user.as_ref().or(settings.caller.as_ref());
                own(&folder, owner).map_err(failed(&folder))?;
            }
            folders.run = Some(run);
        } else if folders.scratch {
            fs::create_dir_all(SCRATCH).map_err(failed(Path::new(SCRATCH)))?;
        }
        Ok(folders)
    }

    /// Returns the scratch folder that nodes need if nothing is kept.
    pub fn scratch(&self) -> Option<&'static str> {
        (self.run.is_none() && self.scratch).then_some(SCRATCH)
    }

    /// Returns `$EMUD_ARTEFACTS`; `None` if nothing is kept and there is no scratch folder.
    pub fn of(&self, node: &Node) -> Option<PathBuf> {
        match &self.run {
            Some(run) => Some(run.join(&node.name)),
            None => self.scratch().map(PathBuf::from),
        }
    }

    /// Returns the working directory of a node's programs; `None` for emud's.
    pub fn working(&self, node: &Node) -> Option<PathBuf> {
        self.of(node).filter(|_| self.apart)
    }

    /// Removes the folders that are empty.
    pub fn remove_empty(&self, plan: &Plan) {
        let Some(run) = &self.run else { return };
        let nodes = plan.nodes.iter().map(|node| run.join(&node.name));
        for folder in nodes.chain([run.clone()]) {
            // Fails for folders with files, which stay.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn own(folder: &Path, owner: Option<&User>) -> io::Result<()> {
    match owner {
        // Not what the user may have exchanged it for meanwhile.
        Some(owner) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            owner.own(open(folder, flags, Mode::empty())?)
        }
        None => Ok(()),
    }
}

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
    let folder = run.join(&node.name);
    match collect(common, node, &folder).await {
        Ok(collected) => collected
            .into_iter()
            .map(|one| line(node, Some(&folder), one))
            .collect(),
        Err(e) => all_failed(&e.to_string()),
    }
}

/// A process of the node copies them, so a path has the same meaning as for the node's programs.
async fn collect(common: &Common, node: &Node, folder: &Path) -> io::Result<Vec<Collected>> {
    let mut command = this_program();
    command.arg("collect").arg(folder).arg("--");
    command
        .args(&node.artefacts)
        .stdin(File::open(folder)?)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(working) = common.folders.working(node) {
        command.current_dir(working);
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
        mono_ns: mono_ns(),
        node: node.name.clone(),
        path: collected.path,
        stored: stored.map(|(folder, name)| folder.join(name).display().to_string()),
        bytes: collected.bytes,
        error: collected.error,
    }
}
