// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the list of swap areas: a change of /proc/swaps wakes a poll.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use aya::maps::{HashMap, MapData};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A swap area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swap {
    pub path: String,
    /// Device number of the kernel (12 bits major, 20 bits minor); `None` for a file.
    pub device: Option<u32>,
}

/// Parses the text of /proc/swaps.
fn areas(text: &str) -> Vec<Swap> {
    let lines = text.lines().skip(1);
    let fields = lines.filter_map(|line| {
        let mut fields = line.split_whitespace();
        Some((fields.next()?, fields.next()?))
    });
    fields
        .map(|(path, kind)| Swap {
            path: path.into(),
            device: (kind == "partition").then(|| number(path)).flatten(),
        })
        .collect()
}

fn number(path: &str) -> Option<u32> {
    let dev = fs::metadata(path).ok()?.rdev();
    let (major, minor) = (libc::major(dev), libc::minor(dev));
    Some(major << 20 | minor)
}

/// Returns the swap areas in use.
///
/// # Errors
/// /proc/swaps cannot be read: the kernel has no swap.
pub fn now() -> io::Result<Vec<Swap>> {
    fs::read_to_string("/proc/swaps").map(|text| areas(&text))
}

/// Maintains the kernel part's list of swap devices.
pub struct Swaps {
    file: AsyncFd<fs::File>,
    list: HashMap<MapData, u32, u32>,
    known: Vec<u32>,
}

impl Swaps {
    pub fn new(list: HashMap<MapData, u32, u32>) -> io::Result<Self> {
        let file = fs::File::open("/proc/swaps")?;
        // SAFETY: the AsyncFd owns the file, and nothing replaces it.
        let file = unsafe { AsyncFd::register_with_interest(file, Interest::PRIORITY)? };
        let mut swaps = Self {
            file,
            list,
            known: vec![],
        };
        swaps.read()?;
        Ok(swaps)
    }

    /// Waits for a change and updates the list.
    pub async fn follow(&mut self) -> io::Result<()> {
        self.file.ready(Interest::PRIORITY).await?.clear_ready();
        self.read()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut text = String::new();
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_string(&mut text)?;
        let found: Vec<u32> = areas(&text).iter().filter_map(|s| s.device).collect();
        for gone in self.known.iter().filter(|d| !found.contains(d)) {
            // An entry that is already gone is the intended result.
            let _ = self.list.remove(gone);
        }
        for new in found.iter().filter(|d| !self.known.contains(d)) {
            self.list.insert(new, 1, 0).map_err(io::Error::other)?;
        }
        self.known = found;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_no_device() {
        let text = "Filename Type Size Used Priority\n/swap.img file 8388604 0 -2\n";
        let file = Swap {
            path: "/swap.img".into(),
            device: None,
        };
        assert_eq!(areas(text), [file]);
        assert_eq!(areas("Filename Type Size Used Priority\n"), []);
    }
}
