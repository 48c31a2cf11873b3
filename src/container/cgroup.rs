// SPDX-License-Identifier: MIT OR Apache-2.0
//! Containers by the control groups of their processes, which have the ID of the container in their
//! path with every engine.

use std::collections::BTreeMap;
use std::{fs, io};

use super::{Container, short};

/// Digits of an ID.
const DIGITS: usize = 64;

/// A process of a container.
struct Member {
    container: Container,
    /// In ticks of the kernel's clock. Its network is that of the oldest process; others may have made their own.
    started: u64,
    /// A user of this host may have made the control group: anyone can make one with any name in user.slice.
    by_user: bool,
}

/// Returns the container of a process, with the short ID as its name; `None`: it is in none, or it
/// has ended.
pub fn of_process(pid: i32) -> Option<Container> {
    let (container, _) = of_groups(&read(pid, "cgroup")?, pid)?;
    Some(container)
}

fn member(pid: i32) -> Option<Member> {
    let (container, by_user) = of_groups(&read(pid, "cgroup")?, pid)?;
    Some(Member {
        container,
        started: started(&read(pid, "stat")?)?,
        by_user,
    })
}

fn read(pid: i32, what: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/{what}")).ok()
}

/// Returns field 22 of /proc/PID/stat. Field 2 is a name that may contain anything, in parentheses.
fn started(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// Returns the container, and whether a user of this host may have made the group.
fn of_groups(text: &str, pid: i32) -> Option<(Container, bool)> {
    let (line, (engine, id)) = (text.lines()).find_map(|line| Some((line, of_line(line)?)))?;
    let container = Container {
        name: short(&id).to_owned(),
        engine: engine.to_owned(),
        id,
        pid,
    };
    let by_user = line.split('/').any(|part| part == "user.slice");
    Some((container, by_user))
}

/// Returns the containers of all processes, by ID, each with its oldest process.
pub(super) fn all() -> io::Result<BTreeMap<String, Container>> {
    let numbers =
        fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut pids: Vec<i32> = numbers.collect();
    pids.sort_unstable();
    Ok(oldest(pids.into_iter().filter_map(member).collect()))
}

/// Returns the oldest process of each container; that of a user must not pass for one of root's.
fn oldest(mut members: Vec<Member>) -> BTreeMap<String, Container> {
    members.sort_by_key(|member| (member.by_user, member.started));
    let mut found = BTreeMap::new();
    for Member { container, .. } in members {
        found.entry(container.id.clone()).or_insert(container);
    }
    found
}

/// Reads a line of /proc/PID/cgroup, `NUMBER:CONTROLLERS:PATH`. Of containers in containers the
/// inner one counts.
fn of_line(line: &str) -> Option<(&'static str, String)> {
    let path = line.splitn(3, ':').nth(2)?;
    let parts: Vec<&str> = path.split('/').collect();
    (0..parts.len()).rev().find_map(|at| {
        let part = parts[at].strip_suffix(".scope").unwrap_or(parts[at]);
        let (prefix, id) = part.split_at_checked(part.len().checked_sub(DIGITS)?)?;
        let is_id = id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        // The monitor of a container, which is outside of it.
        if !is_id || prefix.contains("conmon") {
            return None;
        }
        Some((engine(prefix, &parts[..at]), id.to_owned()))
    })
}

/// Returns the engine, by what is before the ID, as `docker-ID.scope` of systemd and `/docker/ID` without it.
fn engine(prefix: &str, above: &[&str]) -> &'static str {
    let names = [
        ("docker", "docker"),
        ("libpod", "podman"),
        ("cri-containerd", "containerd"),
        ("nerdctl", "containerd"),
        ("crio", "cri-o"),
    ];
    let parent = above.last().copied().unwrap_or_default();
    let found = names.iter().find(|(word, _)| match prefix {
        "" => parent == *word || parent.strip_prefix(word) == Some("_parent"),
        // containerd, driven by systemd: kubepods-POD.slice:cri-containerd:ID.
        prefix => prefix.rsplit(':').any(|part| part.starts_with(word)),
    });
    found.map_or("unknown", |(_, engine)| engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_process_counts_and_none_of_a_user_for_a_container_of_root() {
        let (id, other) = ("5".repeat(64), "6".repeat(64));
        let roots = format!("0::/system.slice/docker-{id}.scope");
        let users = |id: &str| {
            format!("0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-{id}.scope")
        };
        let groups = [
            (users(&id), 20, 1),
            (users(&other), 25, 1),
            (roots.clone(), 30, 9),
            // Older ones, whose numbers had not begun again.
            (roots, 4711, 8),
            (users(&other), 4712, 0),
        ];
        let members = groups.iter().map(|(text, pid, started)| {
            let (container, by_user) = of_groups(text, *pid).unwrap();
            Member {
                container,
                started: *started,
                by_user,
            }
        });
        let found = oldest(members.collect());
        assert_eq!((found[&id].pid, found[&other].pid), (4711, 4712));
    }

    #[test]
    fn the_start_of_a_process_with_an_odd_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 99 1";
        assert_eq!(started(stat), Some(4711));
    }

    #[test]
    fn paths_of_every_engine() {
        let id = "5530978783f4351850be205c673b90d7f1edc36a6927d3fb44626c81ab240bcc";
        let outer = "0".repeat(64);
        let cases = [
            ("9:name=systemd:/docker/ID", Some("docker")),
            ("0::/system.slice/docker-ID.scope", Some("docker")),
            ("4:memory:/libpod_parent/libpod-ID", Some("podman")),
            (
                "0::/machine.slice/libpod-ID.scope/container",
                Some("podman"),
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope",
                Some("podman"),
            ),
            ("0::/machine.slice/libpod-conmon-ID.scope", None),
            (
                "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice/cri-containerd-ID.scope",
                Some("containerd"),
            ),
            (
                "0::/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:ID",
                Some("containerd"),
            ),
            (
                "0::/kubepods.slice/kubepods-pod1.slice/crio-ID.scope",
                Some("cri-o"),
            ),
            ("0::/kubepods.slice/crio-conmon-ID.scope", None),
            (
                "11:cpu,cpuacct:/kubepods/burstable/pod1-2/ID",
                Some("unknown"),
            ),
            ("0::/docker/OUTER/docker/ID/init.scope", Some("docker")),
            ("0::/docker/5530978783f4", None),
            ("0::/user.slice/session-1.scope", None),
            ("0::/", None),
        ];
        for (line, engine) in cases {
            let found = of_line(&line.replace("ID", id).replace("OUTER", &outer));
            assert_eq!(
                found,
                engine.map(|engine| (engine, id.to_owned())),
                "{line}"
            );
        }
    }
}
