// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of what detach restores, in a file: another process can delete every filter and device
//! that leads to the record in the kernel.
//!
//! The name has the inode number of the interface in sysfs. The kernel gives it to no other
//! interface, and it stays when the interface is renamed or moved to another network namespace. It
//! also has the namespace of the attach, where emud deletes the copies of interfaces that are gone.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::maps::Maps;
use super::saved::Saved;
use crate::host::lock;
use crate::mount;
use crate::netlink::{self, Link, Netlink};

/// Number of copies kept, the newest, of interfaces that are not in the namespace of their attach any more:
/// such an interface may be in another one.
const MOVED: usize = 4;

/// The copy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Undo {
    /// [`Maps::id`].
    pub id: u32,
    /// Without profile and notes.
    pub saved: Saved,
}

/// Copies a record, or adds to its notes why not.
pub(crate) fn keep(link: &Link, maps: &Maps, saved: &mut Saved) {
    if let Err(e) = write(link, maps, saved) {
        let note = format!(
            "no copy of the record ({e}): if another process deletes all filters and devices of the link, \
             the state before it is lost"
        );
        if !saved.notes.contains(&note) {
            saved.notes.push(note);
        }
    }
}

fn write(link: &Link, maps: &Maps, saved: &Saved) -> io::Result<()> {
    let undo = Undo {
        id: maps.id,
        saved: Saved {
            profile: String::new(),
            notes: vec![],
            ..saved.clone()
        },
    };
    let folder = lock::folder()?;
    let name = format!("{}{}", prefix(key(&sysfs()?, link)?), here()?);
    let new = format!("new-{name}");
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(&folder, &new, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(&serde_json::to_vec(&undo)?)?;
    Ok(renameat(&folder, new, &folder, name)?)
}

/// Returns the copy for an interface, if there is one that can be read.
pub(crate) fn find(link: &Link) -> Option<Undo> {
    let read = || -> io::Result<Option<Undo>> {
        let folder = lock::folder()?;
        let Some(name) = of(&folder, link)?.pop() else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut bytes = vec![];
        File::from(openat(&folder, name, flags, Mode::empty())?).read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    };
    read().ok().flatten()
}

/// Returns the indices of those of the interfaces of which there is a copy.
pub(crate) fn kept(links: &[Link]) -> io::Result<BTreeSet<u32>> {
    let names = names(&lock::folder()?)?;
    let numbers: BTreeSet<u64> = (names.iter())
        .filter_map(|name| parts(name)?.0.parse().ok())
        .collect();
    if numbers.is_empty() {
        return Ok(BTreeSet::new());
    }
    let sysfs = sysfs()?;
    let is_kept = |link: &&Link| key(&sysfs, link).is_ok_and(|number| numbers.contains(&number));
    Ok(links
        .iter()
        .filter(is_kept)
        .map(|link| link.index)
        .collect())
}

/// Deletes the copies for an interface.
pub(crate) fn forget(link: &Link) -> io::Result<()> {
    let folder = lock::folder()?;
    for name in of(&folder, link)? {
        delete(&folder, &name)?;
    }
    Ok(())
}

/// Deletes copies of interfaces that were in this namespace and are no longer.
pub(crate) fn sweep(nl: &mut Netlink) -> io::Result<()> {
    let (folder, here) = (lock::folder()?, here()?);
    // Before the interfaces: none of them is attached to later.
    let copies: Vec<_> = (names(&folder)?.into_iter())
        .filter_map(|name| Some((number(&name, &here)?, name)))
        .collect();
    if copies.is_empty() {
        return Ok(());
    }
    let sysfs = sysfs()?;
    let links = nl.links().map_err(io::Error::other)?;
    let there: BTreeSet<u64> = (links.iter())
        .filter_map(|link| key(&sysfs, link).ok())
        .collect();
    for name in gone(copies, &there) {
        delete(&folder, &name)?;
    }
    Ok(())
}

/// Returns the copies to delete, of interfaces that are not there.
fn gone(mut copies: Vec<(u64, String)>, there: &BTreeSet<u64>) -> impl Iterator<Item = String> {
    copies.retain(|(number, _)| !there.contains(number));
    // The numbers grow.
    copies.sort_unstable_by(|a, b| b.cmp(a));
    copies.into_iter().skip(MOVED).map(|(_, name)| name)
}

fn delete(folder: &OwnedFd, name: &str) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        // Another emud was faster.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

fn prefix(number: u64) -> String {
    format!("undo-{number}-")
}

/// Returns the number and the namespace in the name of a copy.
fn parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("undo-")?.split_once('-')
}

/// Returns the number in the name of a copy, if it was made in this namespace.
fn number(name: &str, here: &str) -> Option<u64> {
    let (number, netns) = parts(name)?;
    (netns == here).then(|| number.parse().ok())?
}

fn here() -> io::Result<String> {
    let netns = netlink::identity().map_err(io::Error::other)?;
    Ok(netns.inode.to_string())
}

fn of(folder: &OwnedFd, link: &Link) -> io::Result<Vec<String>> {
    let mut names = names(folder)?;
    if !names.is_empty() {
        let prefix = prefix(key(&sysfs()?, link)?);
        names.retain(|name| name.starts_with(&prefix));
    }
    Ok(names)
}

fn names(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = vec![];
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("undo-") {
            names.push(name);
        }
    }
    Ok(names)
}

/// Opens sysfs as it is in the network namespace of the calling thread.
fn sysfs() -> io::Result<OwnedFd> {
    mount::detached("sysfs")
}

/// Returns the inode number of an interface.
fn key(sysfs: &OwnedFd, link: &Link) -> io::Result<u64> {
    let path = format!("class/net/{}", link.name);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut index = String::new();
    File::from(openat(
        sysfs,
        format!("{path}/ifindex"),
        flags,
        Mode::empty(),
    )?)
    .read_to_string(&mut index)?;
    // Another interface may have the name by now.
    match index.trim().parse() == Ok(link.index) {
        true => Ok(statat(sysfs, path, AtFlags::empty())?.st_ino),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_oldest_of_what_is_gone_is_deleted() {
        let copies: Vec<_> = (1..=20).map(|n| (n, n.to_string())).collect();
        let there = (1..=13).filter(|n| *n != 7).collect();
        let deleted: Vec<_> = gone(copies, &there).collect();
        assert_eq!(deleted, ["16", "15", "14", "7"]);
    }

    #[test]
    fn a_name_has_the_number_and_the_namespace() {
        let name = format!("{}{}", prefix(4_294_967_297), 4_026_531_840_u64);
        assert_eq!(number(&name, "4026531840"), Some(4_294_967_297));
        for (name, here) in [(&*name, "402653184"), ("undo-x-1", "1"), ("interface", "")] {
            assert_eq!(number(name, here), None, "{name}");
        }
        assert!(!name.starts_with(&prefix(429_496_729)));
    }
}
