// SPDX-License-Identifier: Apache-2.0
//! An API server without kubelets: the test creates what they would report. It is that of Kubernetes if
//! EMUD_K8S_APISERVER names one, otherwise tests/server.py, which has neither rights nor schemas.

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

use crate::real;

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server.py");

/// Of the API server of Kubernetes.
const CERTIFICATE: &str = "certificates/apiserver.crt";
/// In a pod.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

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
    /// It has rights and schemas.
    pub is_real: bool,
    server: String,
    /// The API server is the last.
    processes: Vec<Process>,
}

impl Cluster {
    /// Starts it in the network namespace of the test.
    pub async fn start(folder: &Path) -> Result<Self> {
        let api_server = std::env::var("EMUD_K8S_APISERVER").ok();
        let is_real = api_server.is_some();
        let (mut processes, server) = match api_server {
            Some(api_server) => {
                let certificate = folder.join(CERTIFICATE);
                let server = format!(
                    "server: 'https://127.0.0.1:6443', certificate-authority: '{}'",
                    certificate.display()
                );
                (real::start(folder, &api_server)?, server)
            }
            None => {
                let options = [SMALL, "6443"].map(str::to_owned);
                let small = spawn(folder, "apiserver", "python3", &options)?;
                (vec![small], "server: 'http://127.0.0.1:6443'".to_owned())
            }
        };
        for user in ["admin", "agent"] {
            log_in(folder, user, user, &server)?;
        }
        let client = ready(folder, &mut processes).await?;
        Ok(Self {
            folder: folder.to_owned(),
            client,
            is_real,
            server,
            processes,
        })
    }

    /// Sends a signal to the API server.
    pub fn signal(&self, name: &str) -> Result<()> {
        let server = self.processes.last().context("no API server")?;
        let words = [format!("-{name}"), server.0.id().to_string()];
        run("kill", &words).map(drop)
    }

    /// Gives the agent this token, as a kubelet gives it to a pod.
    pub fn agent_token(&self, token: &str) -> Result<()> {
        let run = fs::canonicalize("/var/run")?;
        ensure!(run == Path::new("/run"), "/var/run is not that of the test");
        fs::create_dir_all(ACCOUNT)?;
        let account = Path::new(ACCOUNT);
        fs::write(account.join("token"), token)?;
        fs::write(account.join("namespace"), "emud")?;
        fs::copy(self.folder.join(CERTIFICATE), account.join("ca.crt"))?;
        log_in(&self.folder, "agent", token, &self.server)
    }

    /// Returns the variables by which the agent finds the server.
    pub fn agent_variables(&self) -> Vec<(&'static str, String)> {
        let kubeconfig = self.folder.join("agent.yaml").display().to_string();
        match self.is_real {
            true => vec![
                ("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()),
                ("KUBERNETES_SERVICE_PORT", "6443".to_owned()),
                // Without a kubeconfig.
                ("HOME", self.folder.display().to_string()),
            ],
            false => vec![("KUBECONFIG", kubeconfig)],
        }
    }
}

fn log_in(folder: &Path, user: &str, token: &str, server: &str) -> Result<()> {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{ name: c, cluster: {{ {server} }} }}]\n\
         contexts: [{{ name: c, context: {{ cluster: c, user: u }} }}]\n\
         users: [{{ name: u, user: {{ token: {token} }} }}]\n"
    );
    Ok(fs::write(folder.join(format!("{user}.yaml")), text)?)
}

/// Returns a client with the rights of admin or of the agent.
pub async fn client(folder: &Path, user: &str) -> Result<Client> {
    let kubeconfig = Kubeconfig::read_from(folder.join(format!("{user}.yaml")))?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    Ok(Client::try_from(config)?)
}

/// Waits until the API server answers.
async fn ready(folder: &Path, processes: &mut [Process]) -> Result<Client> {
    for _ in 0..600 {
        sleep(Duration::from_millis(200)).await;
        for process in &mut *processes {
            if let Some(status) = process.0.try_wait()? {
                let log = fs::read_to_string(folder.join("apiserver.log")).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(12).collect();
                bail!(
                    "a program of the cluster has ended: {status}\n{}",
                    last.join("\n")
                );
            }
        }
        // The certificate of the server may not be there yet.
        let Ok(client) = client(folder, "admin").await else {
            continue;
        };
        let nodes: Api<Node> = Api::all(client.clone());
        if nodes.list(&ListParams::default()).await.is_ok() {
            return Ok(client);
        }
    }
    bail!("the API server does not answer within 120 s");
}

pub fn spawn(folder: &Path, name: &str, program: &str, options: &[String]) -> Result<Process> {
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
