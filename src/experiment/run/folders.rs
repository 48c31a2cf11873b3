// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folders of a run's nodes.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, fstat, mkdirat, open, openat, openat2, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Uid, fchdir};

use crate::experiment::scenario::{Node, Plan};
use crate::host::runtime;

use super::{RunError, Settings};

/// Mount point of the node's tmpfs if no folder is kept: it ends with the node.
pub const SCRATCH: &str = "/run/emud/scratch";

/// How a folder is opened.
pub(super) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// The mode of a new folder, less the umask.
const MODE: Mode = Mode::from_raw_mode(0o777);

/// The nodes' folders.
#[derive(Debug, Clone)]
pub struct Folders {
    /// `None`: nothing is kept.
    pub(super) run: Option<Kept>,
    /// Whether the nodes have separate mounts, and therefore a scratch folder each.
    scratch: bool,
    /// The folder in which emud was started.
    pub start: PathBuf,
    /// Whether programs work in their node's folder, because there are several nodes.
    apart: bool,
}

/// The folder of this run. Its user may exchange what is at its path meanwhile.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) folder: Arc<OwnedFd>,
    /// Absolute, without links.
    pub(super) path: PathBuf,
    is_new: bool,
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
            folders.run = Some(Kept::create(run, plan, settings).map_err(failed(run))?);
        } else if folders.scratch {
            let scratch = Path::new(SCRATCH);
            runtime::folder(scratch, 0o755).map_err(failed(scratch))?;
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
            Some(run) => Some(run.path.join(&node.name)),
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
        for node in &plan.nodes {
            // Fails for folders with files, which stay.
            let _ = unlinkat(&run.folder, &node.name, AtFlags::REMOVEDIR);
        }
        // One that was there before is not emud's.
        if run.is_new
            && let (Some(parent), Some(name)) = (run.path.parent(), run.path.file_name())
            && let Ok(parent) = without_links(CWD, parent)
        {
            let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
        }
    }
}

impl Kept {
    /// Creates the folders as the caller, so that a link does not make root create or give away
    /// something elsewhere; otherwise root does, following no link.
    fn create(run: &Path, plan: &Plan, settings: &Settings) -> io::Result<Self> {
        let is_new = fs::symlink_metadata(run).is_err();
        let with_nodes = |folder: OwnedFd, maker| {
            for node in &plan.nodes {
                mkdirat(&folder, &node.name, MODE).map_err(|e| {
                    let e = io::Error::from(e);
                    io::Error::new(e.kind(), format!("{}: {e}", node.name))
                })?;
            }
            Ok((folder, maker))
        };
        let caller = settings.caller.as_ref();
        let followed = || {
            fs::create_dir_all(run)?;
            let maker = caller.map_or(Uid::ROOT, |caller| caller.uid);
            with_nodes(open(run, FOLDER, Mode::empty())?, maker)
        };
        let (folder, maker) = match caller {
            None => followed()?,
            Some(caller) => caller.or_root(followed, || {
                let (folder, is_new) = all_without_links(run)?;
                let made = with_nodes(folder, Uid::ROOT)?;
                if is_new {
                    caller.own(&made.0)?;
                }
                Ok(made)
            })?,
        };
        let owner = settings.user.as_ref().or(caller);
        if let Some(owner) = owner.filter(|owner| owner.uid != maker) {
            for node in &plan.nodes {
                let node = openat(
                    &folder,
                    &node.name,
                    FOLDER | OFlags::NOFOLLOW,
                    Mode::empty(),
                )?;
                // Not what the caller may have exchanged it for meanwhile.
                if fstat(&node)?.st_uid != maker.as_raw() {
                    return Err(Errno::PERM.into());
                }
                owner.own(&node)?;
            }
        }
        Ok(Self {
            path: fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?,
            folder: Arc::new(folder),
            is_new,
        })
    }
}

/// Creates a folder and those above it. Returns whether it was not there.
fn all_without_links(path: &Path) -> io::Result<(OwnedFd, bool)> {
    let mut folder = open(".", FOLDER, Mode::empty())?;
    let mut is_new = false;
    for part in path.components() {
        is_new = match mkdirat(&folder, part.as_os_str(), MODE) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(e) => return Err(e.into()),
        };
        folder = without_links(folder.as_fd(), Path::new(part.as_os_str()))?;
    }
    Ok((folder, is_new))
}

fn without_links(from: BorrowedFd<'_>, path: &Path) -> rustix::io::Result<OwnedFd> {
    openat2(from, path, FOLDER, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Makes `command` start in a folder whose path has no links; what is there meanwhile must not lead
/// a user's program to where only root may go.
pub fn works_in(command: &mut Command, folder: PathBuf) -> io::Result<()> {
    let folder = CString::new(folder.into_os_string().into_vec())?;
    let enter = move || {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let there = openat2(
            CWD,
            &folder,
            flags,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        );
        Ok(fchdir(there?)?)
    };
    // SAFETY: system calls only.
    unsafe { command.pre_exec(enter) };
    Ok(())
}
