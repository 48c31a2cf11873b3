// SPDX-License-Identifier: Apache-2.0
//! The API server of Kubernetes, with etcd, and what only it has: rights and schemas.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use emud_k8s::link::Link;
use k8s_openapi::api::core::v1::{Node, Pod, Secret, ServiceAccount};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::discovery;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::cluster::{Cluster, Process, client, run, spawn};

/// What is applied beside the definition.
const DEPLOY: &str = include_str!("../../deploy/emud.yaml");
const EXAMPLE: &str = include_str!("../../deploy/example.yaml");
/// Starts both programs; their certificates are in `certificates/`.
pub fn start(folder: &Path, api_server: &str) -> Result<Vec<Process>> {
    let file = |name: &str| folder.join(name).display().to_string();
    let key = ["genrsa", "-out", &file("sa.key"), "2048"].map(str::to_owned);
    run("openssl", &key)?;
    let public = [
        "rsa",
        "-in",
        &file("sa.key"),
        "-pubout",
        "-out",
        &file("sa.pub"),
    ];
    run("openssl", &public.map(str::to_owned))?;
    fs::write(file("tokens.csv"), "admin,admin,1,system:masters\n")?;
    let etcd = spawn(
        folder,
        "etcd",
        "etcd",
        &[format!("--data-dir={}", file("etcd.data"))],
    )?;
    let options = [
        "--etcd-servers=http://127.0.0.1:2379".to_owned(),
        format!("--cert-dir={}", file("certificates")),
        "--secure-port=6443".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=192.0.2.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=198.51.100.0/24".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--service-account-issuer=https://127.0.0.1:6443".to_owned(),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        // No controller creates the accounts that it requires.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--allow-privileged=true".to_owned(),
    ];
    let server = spawn(folder, "apiserver", api_server, &options)?;
    Ok(vec![etcd, server])
}

/// Installs the agent with its account as `kubectl apply` does, and waits until the server knows Links.
pub async fn deploy(cluster: &Cluster, crd: &str) -> Result<()> {
    let version = cluster.client.apiserver_version().await?;
    println!("Kubernetes {}", version.git_version);
    let options = PatchParams::apply("test").force();
    apply(cluster, crd, &options).await?;
    apply(cluster, DEPLOY, &options).await?;
    let links: Api<Link> = Api::all(cluster.client.clone());
    let began = Instant::now();
    while let Err(e) = links.list(&ListParams::default()).await {
        ensure!(began.elapsed() < Duration::from_secs(20), "Links: {e}");
        sleep(Duration::from_millis(100)).await;
    }
    apply(cluster, EXAMPLE, &options.dry_run()).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), "emud");
    let request = json!({ "metadata": {}, "spec": { "audiences": [], "expirationSeconds": 3600 } });
    let request = serde_json::from_value(request)?;
    let made = accounts
        .create_token_request("emud-k8s", &PostParams::default(), &request)
        .await?;
    cluster.agent_token(&made.status.context("no token")?.token)
}

/// Applies every object of a text in YAML.
async fn apply(cluster: &Cluster, text: &str, options: &PatchParams) -> Result<()> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(text)?;
    ensure!(!objects.is_empty(), "no object");
    for object in objects {
        let object: DynamicObject = serde_json::from_value(object)?;
        let types = object.types.clone().context("no kind")?;
        let kind = GroupVersionKind::try_from(&types)?;
        let (resource, _) = discovery::pinned_kind(&cluster.client, &kind)
            .await
            .with_context(|| format!("kind {}", types.kind))?;
        let client = cluster.client.clone();
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let name = object.metadata.name.clone().context("no name")?;
        let applied = api.patch(&name, options, &Patch::Apply(&object)).await;
        applied.with_context(|| format!("{} {name}", types.kind))?;
    }
    Ok(())
}

/// The service account has its rights, and not those of the administrator.
pub async fn rights(cluster: &Cluster) -> Result<()> {
    let agent = client(&cluster.folder, "agent").await?;
    let links: Api<Link> = Api::namespaced(agent.clone(), "default");
    let all = ListParams::default();
    let began = Instant::now();
    while let Err(e) = links.list(&all).await {
        ensure!(began.elapsed() < Duration::from_secs(20), "the agent: {e}");
        sleep(Duration::from_millis(100)).await;
    }
    let denied = |what: &str, done: Result<(), kube::Error>| match done {
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        other => Err(anyhow::anyhow!("{what} is not denied: {other:?}")),
    };
    let secrets = Api::<Secret>::all(agent.clone()).list(&all).await;
    denied("list of secrets", secrets.map(drop))?;
    let nodes = Api::<Node>::all(agent.clone()).list(&all).await;
    denied("list of nodes", nodes.map(drop))?;
    let pods: Api<Pod> = Api::namespaced(agent, "default");
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let patched = pods.patch("web", &PatchParams::default(), &patch).await;
    denied("patch of a pod", patched.map(drop))?;
    let deleted = links.delete("slow", &DeleteParams::default()).await;
    denied("delete of a Link", deleted.map(drop))
}

/// The server itself adds defaults, and rejects what makes no sense. Untyped: a type of Rust would do so first.
pub async fn schema(cluster: &Cluster) -> Result<()> {
    let resource = ApiResource::erase::<Link>(&());
    let links: Api<DynamicObject> =
        Api::namespaced_with(cluster.client.clone(), "default", &resource);
    let options = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let create = async |spec: &Value| {
        let link = json!({ "metadata": { "name": "tried" }, "spec": spec });
        let mut link: DynamicObject = serde_json::from_value(link)?;
        link.types = Some(kube::core::TypeMeta::resource::<Link>());
        anyhow::Ok(links.create(&options, &link).await)
    };
    for engine in ["fq", "hold", "qdisc"] {
        create(&json!({ "selector": {}, "profile": "lte", "engine": engine })).await??;
    }
    let made = create(&json!({ "selector": {}, "profile": "lte" })).await??;
    let spec = &made.data["spec"];
    ensure!(
        spec["interface"] == "eth0" && spec["direction"] == "both" && spec["engine"] == "auto",
        "defaults: {spec}"
    );
    for (change, message) in [
        (json!({ "selector": null }), "spec.selector"),
        (
            json!({ "profile": null }),
            "give either profile or profileFrom",
        ),
        (
            json!({ "profileFrom": { "configMap": "m", "key": "k" } }),
            "give either profile or profileFrom",
        ),
        (json!({ "profile": "" }), "spec.profile"),
        (
            json!({ "profile": null, "profileFrom": { "configMap": "m" } }),
            "spec.profileFrom.key",
        ),
        (json!({ "interface": "a-name-of-16-xxx" }), "spec.interface"),
        (json!({ "direction": "left" }), "spec.direction"),
        (json!({ "peers": {} }), "peers needs cidrs or podSelector"),
        (json!({ "duration": "10m" }), "spec.duration"),
        (json!({ "duration": "0s" }), "spec.duration"),
        (json!({ "seed": -1 }), "spec.seed"),
        (json!({ "seed": 1.5 }), "spec.seed"),
        (json!({ "engine": "netem" }), "spec.engine"),
    ] {
        let mut spec = json!({ "selector": {}, "profile": "lte" });
        for (key, value) in change.as_object().into_iter().flatten() {
            match value {
                Value::Null => drop(spec.as_object_mut().and_then(|spec| spec.remove(key))),
                value => spec[key] = value.clone(),
            }
        }
        match create(&spec).await? {
            Ok(_) => anyhow::bail!("accepted: {spec}"),
            Err(e) => ensure!(e.to_string().contains(message), "{spec}: {e}"),
        }
    }
    Ok(())
}
