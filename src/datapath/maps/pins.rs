// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gives the maps of one program to another one that is about to be loaded: aya takes maps that exist
//! by a path in a BPF file system only. This one is mounted nowhere and ends with its descriptor.

use std::os::fd::{AsRawFd, OwnedFd};

use aya::maps::MapData;

use super::DatapathError;
use crate::mount;

/// Maps in a separate file system.
pub(super) struct Pins {
    _root: OwnedFd,
    names: Vec<(String, String)>,
}

impl Pins {
    /// Pins maps in a detached bpffs.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub(super) fn new(maps: Vec<(String, MapData)>) -> Result<Self, DatapathError> {
        let root = mount::detached("bpf").map_err(DatapathError::Pin)?;
        let mut names = Vec::new();
        // The constants of a program are its own.
        let shared = maps
            .into_iter()
            .filter(|(name, _)| name.starts_with("emud_"));
        for (name, map) in shared {
            let path = format!("/proc/self/fd/{}/{name}", root.as_raw_fd());
            let pinned = map.pin(&path);
            pinned.map_err(|e| DatapathError::Pin(std::io::Error::other(e)))?;
            names.push((name, path));
        }
        Ok(Self { _root: root, names })
    }

    /// Returns names and paths.
    pub(super) fn names(&self) -> &[(String, String)] {
        &self.names
    }
}
