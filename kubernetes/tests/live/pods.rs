// SPDX-License-Identifier: Apache-2.0
//! Pods as a node has them: a network namespace with eth0, and a process in a control group with the
//! UID of the pod. The other end of eth0 is in the network of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cluster::{Process, run};

/// Not that of a kubelet, which may run here.
const GROUPS: &str = "emudtest-kubepods.slice";

/// A pod on the node.
pub struct Sandbox {
    /// Number in its addresses, and name of its namespace.
    number: u8,
    group: PathBuf,
    process: Option<Process>,
}

impl Sandbox {
    /// Makes the namespace, and starts the process.
    pub fn start(number: u8, uid: &str) -> Result<Self> {
        let group = hierarchy().join(format!(
            "{GROUPS}/emudtest-kubepods-besteffort-pod{}.slice/cri-containerd-{}.scope",
            uid.replace('-', "_"),
            "5".repeat(64),
        ));
        fs::create_dir_all(&group).with_context(|| group.display().to_string())?;
        let mut sandbox = Self {
            number,
            group,
            process: None,
        };
        sandbox.network()?;
        Ok(sandbox)
    }

    fn network(&mut self) -> Result<()> {
        let n = self.number;
        ip(&format!("netns add pod{n}"))?;
        ip(&format!(
            "link add pod{n} type veth peer name eth0 netns pod{n}"
        ))?;
        ip(&format!("addr add 10.1.{n}.1/24 dev pod{n}"))?;
        ip(&format!("addr add 10.1.{n}.3/24 dev pod{n}"))?;
        ip(&format!("link set pod{n} up"))?;
        ip(&format!("-n pod{n} addr add 10.1.{n}.2/24 dev eth0"))?;
        ip(&format!("-n pod{n} link set eth0 up"))?;
        let script = format!(
            "echo $$ >{}/cgroup.procs && exec ip netns exec pod{n} sleep 3600",
            self.group.display()
        );
        let child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::null())
            .spawn()?;
        self.process = Some(Process(child));
        // Until it is in its namespace.
        sleep(Duration::from_millis(300));
        Ok(())
    }

    /// As the kubelet does after a sandbox has failed: another namespace, the same pod.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        self.network()
    }

    fn stop(&mut self) {
        self.process = None;
        // Both ends, at once: a process of emud may keep the namespace for a moment.
        let _ = ip(&format!("link del pod{}", self.number));
        let _ = ip(&format!("netns del pod{}", self.number));
    }

    /// The time there and back from an address of the test in ms, the least of five: a busy
    /// machine adds to it.
    pub fn round_trip(&self, from: u8) -> Result<f64> {
        let n = self.number;
        let command = format!("-n -c 5 -i 0.1 -W 2 -I 10.1.{n}.{from} 10.1.{n}.2");
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let text = run("ping", &words)?;
        let times: Vec<f64> = text
            .lines()
            .filter_map(|line| line.split_once("time=")?.1.split(' ').next()?.parse().ok())
            .collect();
        let least = times.iter().copied().reduce(f64::min);
        least.context("no reply")
    }

    /// What emud shows of eth0; null: nothing is attached.
    pub fn shown(&self, emud: &str) -> Result<Value> {
        let command = format!("--netns pod{} show --json", self.number);
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let show: Value = serde_json::from_str(&run(emud, &words)?)?;
        Ok(show["interfaces"][0].clone())
    }

    pub fn name(&self) -> String {
        format!("pod{}", self.number)
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.stop();
        for folder in [Some(self.group.as_path()), self.group.parent()]
            .into_iter()
            .flatten()
        {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes the group above those of the pods.
pub fn remove_groups() {
    let _ = fs::remove_dir(hierarchy().join(GROUPS));
}

/// Control groups v2, also beside those of v1.
fn hierarchy() -> &'static Path {
    let mixed = Path::new("/sys/fs/cgroup/unified");
    match mixed.is_dir() {
        true => mixed,
        false => Path::new("/sys/fs/cgroup"),
    }
}

/// Runs `ip`.
pub fn ip(command: &str) -> Result<String> {
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    run("ip", &words)
}
