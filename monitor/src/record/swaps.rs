// SPDX-License-Identifier: GPL-2.0-only
//! /proc/swaps: which block devices are swap.

use std::fs;
use std::os::unix::fs::MetadataExt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swaps {
    /// All, as the file names them.
    pub names: Vec<String>,
    /// dev_t (major << 20 | minor) of those that are block devices.
    pub devices: Vec<u32>,
    /// Those that are files.
    pub files: Vec<String>,
}

impl Swaps {
    pub fn now() -> Self {
        // Without the file the kernel has no swap.
        let text = fs::read_to_string("/proc/swaps").unwrap_or_default();
        Self::of(&entries(&text))
    }

    fn of(entries: &[(String, bool)]) -> Self {
        let devices = entries
            .iter()
            .filter(|(_, is_file)| !is_file)
            .filter_map(|(name, _)| fs::metadata(name).ok())
            .map(|m| device(m.rdev()))
            .collect();
        let name = |(name, _): &(String, bool)| name.clone();
        Self {
            names: entries.iter().map(name).collect(),
            devices,
            files: entries.iter().filter(|e| e.1).map(name).collect(),
        }
    }
}

/// Name, and whether it is a file.
fn entries(text: &str) -> Vec<(String, bool)> {
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let name = fields.next()?.replace("\\040", " ");
            Some((name, fields.next()? == "file"))
        })
        .collect()
}

/// The kernel's own coding of a device number.
fn device(rdev: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(rdev), rustix::fs::minor(rdev));
    major << 20 | minor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_files_are_told_apart() {
        let text = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/null partition\t262140\t0\t-2\n\
            /var/swap\\040file                            file\t\t1048572\t0\t-3\n";
        let swaps = Swaps::of(&entries(text));
        assert_eq!(swaps.names, ["/dev/null", "/var/swap file"]);
        assert_eq!(swaps.files, ["/var/swap file"]);
        // /dev/null is 1:3 everywhere.
        assert_eq!(swaps.devices, [1 << 20 | 3]);
    }
}
