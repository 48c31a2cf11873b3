// SPDX-License-Identifier: MIT OR Apache-2.0
//! The BPF objects in the kernel.

use std::collections::BTreeSet;
use std::fs;

/// Commands of bpf(2) (linux/bpf.h) that return the next number of a kind.
const KINDS: [(&str, libc::c_long); 3] = [("program", 11), ("map", 12), ("link", 31)];

/// Programs, maps and links in the kernel, of all processes.
pub fn all() -> BTreeSet<(&'static str, u32)> {
    let mut all = BTreeSet::new();
    for (kind, command) in KINDS {
        let mut number = 0;
        loop {
            // start_id, next_id, open_flags
            let mut ids = [number, 0u32, 0];
            // SAFETY: the attribute outlives the call.
            let done = unsafe {
                libc::syscall(libc::SYS_bpf, command, ids.as_mut_ptr(), size_of_val(&ids))
            };
            if done != 0 {
                let error = std::io::Error::last_os_error();
                assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "{kind}: {error}");
                break;
            }
            number = ids[1];
            all.insert((kind, number));
        }
    }
    all
}

/// Those to which a process has descriptors.
///
/// # Panics
/// There is no such process.
pub fn of(pid: u32) -> BTreeSet<(&'static str, u32)> {
    let folder = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("the process");
    // A descriptor may be closed while it is read.
    let infos = folder.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let ids = |info: String| {
        let number = |key: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(key));
            line.and_then(|text| text.trim().parse().ok())
        };
        [
            ("link", "link_id:"),
            ("map", "map_id:"),
            ("program", "prog_id:"),
        ]
        .map(|(kind, key)| (kind, number(key)))
        .into_iter()
        // A link's descriptor also lists its program.
        .find_map(|(kind, id)| Some((kind, id?)))
    };
    infos.filter_map(ids).collect()
}
