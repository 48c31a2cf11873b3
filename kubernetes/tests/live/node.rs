// SPDX-License-Identifier: Apache-2.0
//! What the steps use: objects of the API, the agent, and waiting.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use emud_k8s::link::{Link, PodLink, State};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cluster::{Cluster, Process};

/// Rights of the container in deploy/emud.yaml.
const RIGHTS: &str = "-all,+bpf,+net_admin,+net_raw,+perfmon,+sys_admin,+sys_ptrace";
/// Of the agent under test.
pub const LEASE: Duration = Duration::from_secs(6);
/// Less than [`LEASE`].
pub const SLOW: Duration = Duration::from_secs(4);

pub struct Lab<'a> {
    pub cluster: &'a Cluster,
    pub emud: String,
    pub links: Api<Link>,
    pub pods: Api<Pod>,
    pub nodes: Api<Node>,
    pub maps: Api<ConfigMap>,
}

impl<'a> Lab<'a> {
    pub fn new(cluster: &'a Cluster, emud: &str) -> Self {
        let client = || cluster.client.clone();
        Self {
            cluster,
            emud: emud.to_owned(),
            links: Api::namespaced(client(), "default"),
            pods: Api::namespaced(client(), "default"),
            nodes: Api::all(client()),
            maps: Api::namespaced(client(), "default"),
        }
    }

    /// The file that makes what the agent attaches next impossible to show: until it is removed, under the
    /// name `unreadable`.
    pub fn next_is_unreadable(&self) -> std::path::PathBuf {
        self.cluster.folder.join("next-is-unreadable")
    }

    /// The file that makes the agent's next `emud show` take [`SLOW`].
    pub fn next_is_slow(&self) -> std::path::PathBuf {
        self.cluster.folder.join("next-is-slow")
    }

    /// emud as the agent runs it.
    fn program(&self) -> Result<std::path::PathBuf> {
        let program = self.cluster.folder.join("emud");
        let script = format!(
            "#!/bin/sh
cd {folder}
case \"$*\" in
*\" show \"*)
    ! mv next-is-slow was-slow 2>/dev/null || sleep {slow}
    [ ! -e unreadable ] || {{ echo 'emud: unreadable' >&2; exit 71; }}
    ;;
*\" attach \"*) {emud} \"$@\"; code=$?; [ ! -e next-is-unreadable ] || mv next-is-unreadable unreadable; exit $code ;;
esac
exec {emud} \"$@\"
",
            folder = self.cluster.folder.display(),
            emud = self.emud,
            slow = SLOW.as_secs(),
        );
        std::fs::write(&program, script)?;
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
        Ok(program)
    }

    /// Starts the agent of node n1, with the rights of its container and of its service account.
    pub fn agent(&self) -> Result<Process> {
        let log = self.cluster.folder.join("agent.log");
        let log = File::options().create(true).append(true).open(log)?;
        let child = Command::new("setpriv")
            .args([
                "--bounding-set",
                RIGHTS,
                "--inh-caps",
                "-all",
                "--no-new-privs",
                "--pdeathsig",
                "KILL",
                "--",
            ])
            .arg(env!("CARGO_BIN_EXE_emud-k8s"))
            .args(["agent", "--lease", "6s", "--emud"])
            .arg(self.program()?)
            .env("NODE_NAME", "n1")
            .env_remove("KUBECONFIG")
            .envs(self.cluster.agent_variables())
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()?;
        Ok(Process(child))
    }

    /// Makes the API server of the tests too busy for some requests; the second time it no longer is.
    pub async fn busy(&self) -> Result<()> {
        self.cluster.signal("USR1")?;
        sleep(Duration::from_millis(300)).await;
        Ok(())
    }

    pub async fn node(&self, name: &str) -> Result<()> {
        let node = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
        self.nodes.create(&PostParams::default(), &node).await?;
        Ok(())
    }

    /// Creates a pod as a scheduler and a kubelet leave it, and returns its UID.
    pub async fn pod(&self, name: &str, app: &str, more: Value) -> Result<String> {
        let mut spec = json!({ "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let pod = json!({ "metadata": { "name": name, "labels": { "app": app } }, "spec": spec });
        let pod = self
            .pods
            .create(&PostParams::default(), &serde_json::from_value(pod)?)
            .await?;
        Ok(pod.uid().unwrap_or_default())
    }

    pub async fn running(&self, name: &str, ip: &str, restarts: u32) -> Result<()> {
        let status = json!({ "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }],
            "containerStatuses": [{ "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": restarts }],
        }});
        let options = PatchParams::default();
        self.pods
            .patch_status(name, &options, &Patch::Merge(status))
            .await?;
        Ok(())
    }

    pub async fn link(&self, name: &str, app: &str, more: Value) -> Result<Link> {
        let mut spec = json!({ "selector": { "matchLabels": { "app": app } } });
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let link = json!({
            "apiVersion": "net.emud/v1alpha1", "kind": "Link",
            "metadata": { "name": name, "namespace": "default" }, "spec": spec,
        });
        let link = serde_json::from_value(link)?;
        Ok(self.links.create(&PostParams::default(), &link).await?)
    }

    pub async fn change(&self, name: &str, spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.links
            .patch(name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    pub async fn delete(&self, name: &str) -> Result<()> {
        self.links.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The entry of a pod, once this holds.
    pub async fn entry(
        &self,
        link: &str,
        pod: &str,
        what: &str,
        holds: impl Fn(&PodLink) -> bool,
    ) -> Result<PodLink> {
        let key = format!("n1/{pod}");
        let mut last = None;
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            let status = self.links.get(link).await?.status.unwrap_or_default();
            last = status.pods.get(&key).cloned();
            if let Some(entry) = last.as_ref().filter(|entry| holds(entry)) {
                return Ok(entry.clone());
            }
            sleep(Duration::from_millis(100)).await;
        }
        bail!("{link} on {pod} is not {what} within 20 s: {last:?}")
    }

    pub async fn attached(&self, link: &str, pod: &str) -> Result<PodLink> {
        let is = |entry: &PodLink| entry.state == State::Attached;
        self.entry(link, pod, "attached", is).await
    }

    /// Waits until no pod is in the status of the Link.
    pub async fn without_pods(&self, link: &str) -> Result<()> {
        let began = Instant::now();
        loop {
            let status = self.links.get(link).await?.status.unwrap_or_default();
            if status.pods.is_empty() {
                return Ok(());
            }
            ensure!(began.elapsed() < Duration::from_secs(10), "{status:?}");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until the Link is gone.
    pub async fn gone(&self, link: &str) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if self.links.get_opt(link).await?.is_none() {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        bail!(
            "{link} is not gone within 20 s: {:?}",
            self.links.get(link).await?
        )
    }
}

/// Fails unless the time is in the range.
pub fn within(what: &str, ms: f64, low: f64, high: f64) -> Result<()> {
    println!("{what}: {ms:.1} ms");
    match (low..=high).contains(&ms) {
        true => Ok(()),
        false => bail!("{what}: {ms:.1} ms is not in {low}..{high} ms"),
    }
}

/// A figure of `emud show --json`.
pub fn number(shown: &Value, pointer: &str) -> Result<f64> {
    let value = shown.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("{pointer} is missing in {shown}"))
}
