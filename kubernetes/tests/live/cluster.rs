// SPDX-License-Identifier: Apache-2.0
//! An API server without kubelets: the test creates what they would report. It is tests/server.py, which
//! has neither rights nor schemas.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::time::sleep;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server.py");

/// A process that ends with the test.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Cluster {
    pub folder: PathBuf,
    pub client: Client,
    _server: Process,
}

impl Cluster {
    /// Starts it in the network namespace of the test.
    pub async fn start(folder: &Path) -> Result<Self> {
        let options = [SERVER, "6443"].map(str::to_owned);
        let mut server = spawn(folder, "apiserver", "python3", &options)?;
        for user in ["admin", "agent"] {
            fs::write(folder.join(format!("{user}.yaml")), kubeconfig(user))?;
        }
        let client = ready(folder, &mut server).await?;
        Ok(Self {
            folder: folder.to_owned(),
            client,
            _server: server,
        })
    }
}

fn kubeconfig(user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{ name: c, cluster: {{ server: 'http://127.0.0.1:6443' }} }}]\n\
         contexts: [{{ name: c, context: {{ cluster: c, user: {user} }} }}]\n\
         users: [{{ name: {user}, user: {{ token: {user} }} }}]\n"
    )
}

/// Waits until the API server answers.
async fn ready(folder: &Path, server: &mut Process) -> Result<Client> {
    for _ in 0..100 {
        sleep(Duration::from_millis(200)).await;
        if let Some(status) = server.0.try_wait()? {
            let log = fs::read_to_string(folder.join("apiserver.log")).unwrap_or_default();
            bail!("the API server has ended: {status}\n{log}");
        }
        let Ok(kubeconfig) = Kubeconfig::read_from(folder.join("admin.yaml")) else {
            continue;
        };
        let options = KubeConfigOptions::default();
        let Ok(config) = Config::from_custom_kubeconfig(kubeconfig, &options).await else {
            continue;
        };
        let client = Client::try_from(config)?;
        let nodes: Api<Node> = Api::all(client.clone());
        if nodes.list(&ListParams::default()).await.is_ok() {
            return Ok(client);
        }
    }
    bail!("the API server does not answer within 20 s");
}

fn spawn(folder: &Path, name: &str, program: &str, options: &[String]) -> Result<Process> {
    let log = fs::File::create(folder.join(format!("{name}.log")))?;
    let child = Command::new(program)
        .args(options)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn();
    Ok(Process(child.with_context(|| program.to_owned())?))
}

/// Runs a program to its end, and returns what it printed.
pub fn run(program: &str, arguments: &[String]) -> Result<String> {
    let done = Command::new(program).args(arguments).output();
    let done = done.with_context(|| program.to_owned())?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let error = String::from_utf8_lossy(&done.stderr);
    ensure!(
        done.status.success(),
        "{program} {}: {error}{text}",
        arguments.join(" ")
    );
    Ok(text)
}
