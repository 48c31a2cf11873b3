// SPDX-License-Identifier: Apache-2.0

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use emud_k8s::agent::Agent;
use emud_k8s::emud::{Emud, PATIENCE};
use emud_k8s::link::Link;
use emud_k8s::plan;
use kube::{Client, CustomResourceExt};

/// Attach emulated links to the pods of a Kubernetes node
#[derive(Debug, Parser)]
#[command(name = "emud-k8s", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Attach the Links of the cluster to the pods of this node, until a signal
    Agent(Args),
    /// Print the definition of the custom resource Link
    Crd,
}

#[derive(Debug, clap::Args)]
struct Args {
    /// Name of this node
    #[arg(long, env = "NODE_NAME")]
    node: String,

    /// How long a link lasts after this agent has ended
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = lease)]
    lease: Duration,

    /// The program emud
    #[arg(long, value_name = "FILE", default_value = "/usr/bin/emud")]
    emud: PathBuf,
}

fn lease(text: &str) -> Result<Duration, String> {
    match plan::duration(text)? {
        short if short < Duration::from_secs(2) => {
            Err("at least 2s: it is renewed every third of it".to_owned())
        }
        lease => Ok(lease),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Crd => crd(),
        Verb::Agent(args) => agent(args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("emud-k8s: {message}");
            ExitCode::FAILURE
        }
    }
}

fn crd() -> Result<(), String> {
    let text = serde_saphyr::to_string(&Link::crd()).map_err(|e| e.to_string())?;
    println!(
        "# SPDX-License-Identifier: Apache-2.0\n# Written by `emud-k8s crd`.\n{}",
        text.trim_end()
    );
    Ok(())
}

async fn agent(args: Args) -> Result<(), String> {
    let client = Client::try_default()
        .await
        .map_err(|e| format!("no access to an API server: {e}"))?;
    let emud = Emud {
        program: args.emud,
        patience: PATIENCE,
    };
    Agent::new(&client, args.node, emud, args.lease).run().await;
    Ok(())
}
