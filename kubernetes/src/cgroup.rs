// SPDX-License-Identifier: Apache-2.0
//! Finds the network namespace of a pod by the UID in the control groups of its processes.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Digits of a UID without separators.
const DIGITS: usize = 32;

/// The network namespace of a pod, kept open: the pod's process may end meanwhile.
#[derive(Debug)]
pub struct Network {
    file: File,
    /// Inode of the namespace.
    pub inode: u64,
}

impl Network {
    /// Returns the value of emud's `--netns`.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}

/// A process in a pod.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// A container in a container of the pod is deeper, and may have a different network.
    depth: usize,
    /// The sandbox is the oldest.
    started: u64,
    pid: u32,
}

/// Returns the network namespace of a pod; `None`: no process of it has a network other than that
/// of the host.
///
/// # Errors
/// /proc cannot be read, or the network of the host is unknown.
pub fn network(uid: &str) -> io::Result<Option<Network>> {
    let uid = normal(uid);
    let host = [1, std::process::id()].map(|pid| open(pid).map(|network| network.inode));
    let [host, own] = host;
    let (host, own) = (host?, own?);
    let mut found: Vec<Candidate> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| candidate(pid, &uid))
        .collect();
    found.sort_unstable();
    for Candidate { pid, .. } in found {
        // Checked again once it is open: the number may be that of a new process.
        if let Ok(network) = open(pid)
            && ![host, own].contains(&network.inode)
            && candidate(pid, &uid).is_some()
        {
            return Ok(Some(network));
        }
    }
    Ok(None)
}

fn open(pid: u32) -> io::Result<Network> {
    let path = format!("/proc/{pid}/ns/net");
    let file = File::open(&path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
    let inode = file.metadata()?.ino();
    Ok(Network { file, inode })
}

fn candidate(pid: u32, uid: &str) -> Option<Candidate> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let depth = text.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?;
        let (found, depth) = pod_of(path)?;
        (found == uid).then_some(depth)
    })?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(Candidate {
        depth,
        started: started(&stat)?,
        pid,
    })
}

/// Field 22 of /proc/PID/stat. Field 2 is a name that may contain anything, in parentheses.
fn started(stat: &str) -> Option<u64> {
    let after = &stat[stat.rfind(')')? + 1..];
    after.split_whitespace().nth(19)?.parse().ok()
}

/// Returns the UID of the innermost pod in the path of a control group, and the number of groups
/// below that of the pod.
fn pod_of(path: &str) -> Option<(String, usize)> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (at, uid) = (0..parts.len())
        .rev()
        .find_map(|at| Some((at, uid_of(parts[at])?)))?;
    // Its processes are in the network of the host.
    let monitor = parts[at..].iter().any(|part| part.contains("conmon"));
    (!monitor).then(|| (uid, parts.len() - 1 - at))
}

/// The UID in a name as `kubepods-burstable-podUID.slice` of systemd, `podUID` of the driver
/// cgroupfs, or `kubepods-podUID.slice:cri-containerd:ID`.
fn uid_of(part: &str) -> Option<String> {
    let slice = part.split(':').next()?;
    let (name, by_systemd) = match slice.strip_suffix(".slice") {
        Some(name) => (name, true),
        None => (slice, false),
    };
    let at = name.rfind("pod")?;
    let (before, uid) = (&name[..at], &name[at + "pod".len()..]);
    let fits = match by_systemd {
        true => before.contains("kubepods") && before.ends_with('-'),
        false => before.is_empty(),
    };
    let uid = normal(uid);
    let digits = uid.bytes().filter(u8::is_ascii_hexdigit).count() == DIGITS;
    let plain = uid.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    (fits && digits && plain).then_some(uid)
}

/// As the API server writes it: systemd's names have underscores. Separators count: the UID of a static pod
/// has none, so it is never that of another pod.
fn normal(uid: &str) -> String {
    uid.to_ascii_lowercase().replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "9a3f2c1e-77d4-4b0e-9d5e-0c1f2a3b4c5d";
    const ID: &str = "5530978783f4351850be205c673b90d7f1edc36a6927d3fb44626c81ab240bcc";

    #[test]
    fn paths_of_every_runtime() {
        let cases = [
            // containerd, driver systemd, and a guaranteed pod
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUNDER.slice/cri-containerd-ID.scope",
                Some(1),
            ),
            (
                "/kubepods.slice/kubepods-podUNDER.slice/cri-containerd-ID.scope",
                Some(1),
            ),
            // driver cgroupfs
            ("/kubepods/burstable/podUID/ID", Some(1)),
            ("/kubepods/podUID/ID", Some(1)),
            // CRI-O, and its monitor, which is in the network of the host
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podUNDER.slice/crio-ID.scope/container",
                Some(2),
            ),
            (
                "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podUNDER.slice/crio-conmon-ID.scope",
                None,
            ),
            // kind, a node in a container of Docker
            (
                "/docker/ID/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-podUNDER.slice/cri-containerd-ID.scope",
                Some(1),
            ),
            (
                "/system.slice/docker-ID.scope/kubelet/kubepods/besteffort/podUID/ID",
                Some(1),
            ),
            // k3s, and containerd that passes the name for systemd on
            (
                "/system.slice/k3s.service/kubepods-burstable-podUNDER.slice:cri-containerd:ID",
                Some(0),
            ),
            // as a container sees its neighbours
            (
                "/../../kubepods-burstable-podUNDER.slice/cri-containerd-ID.scope",
                Some(1),
            ),
            // a container in a container of the pod, and a pod in a pod
            ("/kubepods/burstable/podUID/ID/docker/ID", Some(3)),
            (
                "/kubepods/besteffort/pod00000000-0000-0000-0000-000000000000/ID/kubepods/podUID/ID",
                Some(1),
            ),
            (
                "/kubepods/podUID/ID/kubepods/pod00000000-0000-0000-0000-000000000000/ID",
                None,
            ),
            // others
            ("/kubepods.slice/kubepods-burstable.slice", None),
            ("/machine.slice/libpod-ID.scope", None),
            ("/user.slice/tripodUID", None),
            ("/system.slice/evil-podUNDER.slice", None),
            ("/kubepods/podUIDff/ID", None),
            ("/", None),
        ];
        for (path, depth) in cases {
            let path = path
                .replace("UNDER", &UID.replace('-', "_"))
                .replace("UID", UID)
                .replace("ID", ID);
            let found = pod_of(&path).filter(|(uid, _)| *uid == normal(UID));
            assert_eq!(found.map(|(_, depth)| depth), depth, "{path}");
        }
    }

    #[test]
    fn static_pods_have_a_hash() {
        let hash = "0123456789abcdef0123456789abcdef";
        let path = format!("/kubepods/pod{hash}/{ID}");
        assert_eq!(pod_of(&path), Some((hash.to_owned(), 1)));
        // It is not the UID of another pod without its separators.
        let path = format!("/kubepods/pod{UID}/{ID}");
        assert_ne!(pod_of(&path).unwrap().0, normal(&UID.replace('-', "")));
    }

    #[test]
    fn the_start_of_a_process_with_an_odd_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 99 1";
        assert_eq!(started(stat), Some(4711));
    }
}
