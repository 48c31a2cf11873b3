// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists all emulated links of this host, in every network namespace, for a monitor, which judges
//! whether their packets leave in time.
//!
//! The links are found by the names of the loaded programs, so no namespace has to be entered, and
//! the search is fast enough to repeat every second.

use std::collections::HashMap;
use std::io;

use aya::programs::{ProgramError, ProgramInfo, loaded_programs};

use super::engine::Engine;
use super::maps::{DatapathError, Program, look};
use crate::abi;
use crate::abi::DIRECTIONS;

/// One direction of an emulated link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Emulated {
    /// Inode number of the network namespace of both devices.
    pub netns: u32,
    /// Ifindex of the interface that behaves like the link.
    pub interface: u32,
    /// `EMUD_UP` or `EMUD_DOWN`.
    pub direction: u32,
    /// A holder reports its own failures.
    pub engine: Engine,
    /// Ifindex of the device where packets wait: the interface or emud's ifb, with hold
    /// emud's TAP.
    pub waits_at: u32,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// The links that were found.
    pub links: Vec<Emulated>,
    /// Ids of programs that have emud's names but cannot be read, such as those of a different
    /// version. Their links are missing in `links`.
    pub unreadable: Vec<(u32, DatapathError)>,
}

impl Found {
    /// Returns the devices at which the kernel releases packets, for
    /// [`emud_monitor::Monitor::set_emulated`].
    pub fn released_by_kernel(&self) -> Vec<emud_monitor::Emulated> {
        let device = |link: &Emulated| emud_monitor::Emulated {
            netns: link.netns,
            ifindex: link.waits_at,
        };
        let by_kernel = self.links.iter().filter(|link| link.engine.is_stamped());
        by_kernel.map(device).collect()
    }
}

/// Searches for emulated links repeatedly.
#[derive(Debug, Default)]
pub struct Search {
    /// Active links by the id of their program, both directions. Such a link can only end, and then
    /// the kernel frees its program; so it is read once, which takes 60 us, whereas an entry of the
    /// list takes 2.
    known: HashMap<u32, Vec<Emulated>>,
}

impl Search {
    /// Returns all active directions of all emulated links of this host.
    ///
    /// # Errors
    /// [`DatapathError::Search`]: this process may not see the BPF programs.
    pub fn run(&mut self) -> Result<Found, DatapathError> {
        let mut known = HashMap::new();
        let mut found = Found::default();
        for program in programs() {
            let program = program?;
            if !Program::emulates(program.name_as_str()) {
                continue;
            }
            let id = program.id();
            let links = match self.known.remove(&id) {
                Some(links) => Ok(links),
                None => read(&program),
            };
            match links {
                Ok(links) if links.is_empty() => {}
                Ok(links) => {
                    known.insert(id, links);
                }
                // Detached in the meantime.
                Err(_) if program.fd().is_err_and(|e| is_gone(&e)) => {}
                Err(e) => found.unreadable.push((id, e)),
            }
        }
        found.links.extend(known.values().flatten());
        // A classifier that another one has replaced has the same maps, and is freed a little later.
        let place = |link: &Emulated| (link.netns, link.interface, link.direction);
        found.links.sort_by_key(place);
        found.links.dedup();
        self.known = known;
        Ok(found)
    }
}

/// Returns the loaded BPF programs. They are loaded and unloaded while the list is read.
pub(crate) fn programs() -> impl Iterator<Item = Result<ProgramInfo, DatapathError>> {
    loaded_programs().filter_map(|program| match program {
        Err(e) if is_gone(&e) => None,
        program => Some(program.map_err(DatapathError::Search)),
    })
}

/// Returns whether a program was unloaded meanwhile.
pub(crate) fn is_gone(error: &ProgramError) -> bool {
    let ProgramError::SyscallError(error) = error else {
        return false;
    };
    error.io_error.kind() == io::ErrorKind::NotFound
}

/// Returns `None` for an inactive link: an attach or detach is in progress.
fn read(program: &ProgramInfo) -> Result<Vec<Emulated>, DatapathError> {
    let (control, links) = match look(program) {
        // Just loaded, nothing is written yet.
        Err(DatapathError::Abi { found: 0 }) => return Ok(Vec::new()),
        found => found?,
    };
    // Programs of emud's tests, for example of `doctor`, belong to no namespace.
    if control.netns == 0 {
        return Ok(Vec::new());
    }
    let emulated = DIRECTIONS.into_iter().zip(links);
    let emulated = emulated.filter_map(|(direction, link)| {
        let (engine, waits_at) = match link.release {
            abi::EMUD_RELEASE_STAMP => (Engine::Fq, control.ifindex),
            abi::EMUD_RELEASE_IFB | abi::EMUD_RELEASE_MIRRED => (Engine::Fq, link.ifindex),
            abi::EMUD_RELEASE_QDISC => (Engine::Qdisc, control.ifindex),
            abi::EMUD_RELEASE_QDISC_IFB => (Engine::Qdisc, link.ifindex),
            abi::EMUD_RELEASE_HOLD => (Engine::Hold, link.ifindex),
            _ => return None,
        };
        Some(Emulated {
            netns: control.netns,
            interface: control.ifindex,
            direction,
            engine,
            waits_at,
        })
    });
    Ok(emulated.collect())
}
