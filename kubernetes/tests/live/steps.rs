// SPDX-License-Identifier: Apache-2.0
//! The story: each step leaves the cluster as it found it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use emud_k8s::link::{FINALIZER, PodLink, State, Verdict};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::sleep;

use crate::busy;
use crate::cluster::{Cluster, run};
use crate::node::{LEASE, Lab, SLOW, number, within};
use crate::pods::Sandbox;
use crate::real;

/// Above the configured delay: both pings and the engine. A change of a delay is larger.
pub const SLACK_MS: f64 = 25.0;

pub async fn all(cluster: &Cluster, emud: &str) -> Result<()> {
    let crd = run(env!("CARGO_BIN_EXE_emud-k8s"), &["crd".to_owned()])?;
    ensure!(
        crd == include_str!("../../deploy/crd.yaml"),
        "deploy/crd.yaml is not that of `emud-k8s crd`"
    );
    let lab = Lab::new(cluster, emud);
    if cluster.is_real {
        real::deploy(cluster, &crd).await?;
        real::rights(cluster).await?;
        real::schema(cluster).await?;
    }
    lab.node("n1").await?;
    let mut agent = lab.agent()?;
    let mut web = attached(&lab).await?;
    changed(&lab, &web).await?;
    refused(&lab).await?;
    restarted(&lab, &mut web).await?;
    tampered(&lab, &web).await?;
    agent = agent_dies(&lab, &web, agent).await?;
    deleted(&lab, &web).await?;
    from_config_map(&lab, &web).await?;
    agent = busy::all(&lab, &web, agent).await?;
    peers(&lab, &web).await?;
    unreadable(&lab, &web).await?;
    slow(&lab).await?;
    drop(agent_away(&lab, &web, agent).await?);
    Ok(())
}

/// Engine hold may be late on a busy machine.
fn is_fine(entry: &PodLink) -> bool {
    matches!(entry.verdict, Some(Verdict::Clean | Verdict::Late))
}

/// Waits until the link is in force: `emud show` shows it some ms earlier.
fn delayed(web: &Sandbox) -> Result<()> {
    let began = Instant::now();
    while web.round_trip(1)? < 60.0 {
        ensure!(began.elapsed() < Duration::from_secs(20), "not attached");
    }
    Ok(())
}

async fn attached(lab: &Lab<'_>) -> Result<Sandbox> {
    let uid = lab.pod("web", "web", json!({})).await?;
    let profile = "[link]\ndelay = '30ms'";
    lab.link("slow", "web", json!({ "profile": profile, "seed": 7 }))
        .await?;
    let entry = lab
        .entry("slow", "web", "waiting", |e| e.state == State::Waiting)
        .await?;
    ensure!(
        entry
            .message
            .is_some_and(|m| m.contains("no process of the pod"))
    );
    let web = Sandbox::start(1, &uid)?;
    lab.running("web", "10.1.1.2", 0).await?;
    let entry = lab.attached("slow", "web").await?;
    ensure!(
        entry.seed == Some(7) && entry.engine.is_some() && entry.node == "n1",
        "{entry:?}"
    );
    ensure!(is_fine(&entry), "{entry:?}");
    let link = lab.links.get("slow").await?;
    ensure!(
        link.metadata.finalizers == Some(vec![FINALIZER.to_owned()]),
        "no finalizer"
    );
    within("30 ms each way", web.round_trip(1)?, 60.0, 60.0 + SLACK_MS)?;
    // A lease is renewed: the link outlives it.
    sleep(LEASE + Duration::from_secs(2)).await;
    within("after a lease", web.round_trip(1)?, 60.0, 60.0 + SLACK_MS)?;
    Ok(web)
}

/// A change of keys keeps the link and its counters; of the engine, it does not.
async fn changed(lab: &Lab<'_>, web: &Sandbox) -> Result<()> {
    let before = web.shown(&lab.emud)?;
    let digest = lab.attached("slow", "web").await?.applied;
    lab.change(
        "slow",
        json!({ "profile": "[link]\ndelay = '90ms'\n[down]\ndelay = '60ms'" }),
    )
    .await?;
    let digest = lab
        .entry("slow", "web", "changed", |e| {
            e.state == State::Attached && e.applied != digest
        })
        .await?
        .applied;
    within("90 and 60 ms", web.round_trip(1)?, 150.0, 150.0 + SLACK_MS)?;
    let after = web.shown(&lab.emud)?;
    ensure!(
        number(&after, "/attached_s")? > number(&before, "/attached_s")?,
        "attached again"
    );
    lab.change("slow", json!({ "direction": "up" })).await?;
    lab.entry("slow", "web", "changed", |e| {
        e.state == State::Attached && e.applied != digest
    })
    .await?;
    within("90 ms one way", web.round_trip(1)?, 90.0, 90.0 + SLACK_MS)
}

/// A second Link for the interface, a pod in the network of the node, and a wrong profile.
async fn refused(lab: &Lab<'_>) -> Result<()> {
    lab.link("second", "web", json!({ "profile": "lte" }))
        .await?;
    let failed = |e: &PodLink| e.state == State::Failed;
    let entry = lab.entry("second", "web", "rejected", failed).await?;
    let message = entry.message.unwrap_or_default();
    ensure!(
        message == "Link slow has eth0 of this pod: an interface has one link",
        "{message}"
    );
    lab.delete("second").await?;
    lab.gone("second").await?;

    lab.pod("host", "host", json!({ "hostNetwork": true }))
        .await?;
    lab.running("host", "192.0.2.1", 0).await?;
    lab.link("host", "host", json!({ "profile": "lte" }))
        .await?;
    let entry = lab.entry("host", "host", "rejected", failed).await?;
    ensure!(entry.message.is_some_and(|m| m.contains("hostNetwork")));
    lab.delete("host").await?;
    lab.gone("host").await?;

    lab.change("slow", json!({ "profile": "[link]\ndelay = '5mph'" }))
        .await?;
    let entry = lab.entry("slow", "web", "rejected", failed).await?;
    ensure!(
        entry.message.as_ref().is_some_and(|m| m.contains("5mph")),
        "{entry:?}"
    );
    lab.change(
        "slow",
        json!({ "profile": "[link]\ndelay = '30ms'", "direction": "both" }),
    )
    .await?;
    lab.attached("slow", "web").await?;
    Ok(())
}

async fn restarted(lab: &Lab<'_>, web: &mut Sandbox) -> Result<()> {
    web.restart()?;
    within("a new sandbox", web.round_trip(1)?, 0.0, 15.0)?;
    lab.running("web", "10.1.1.2", 1).await?;
    delayed(web)?;
    within("attached to it", web.round_trip(1)?, 60.0, 60.0 + SLACK_MS)
}

async fn tampered(lab: &Lab<'_>, web: &Sandbox) -> Result<()> {
    let name = web.name();
    run(
        "ip",
        &[
            "netns", "exec", &name, "tc", "qdisc", "del", "dev", "eth0", "clsact",
        ]
        .map(str::to_owned),
    )?;
    let is = |e: &PodLink| e.verdict == Some(Verdict::Tampered);
    let entry = lab.entry("slow", "web", "tampered", is).await?;
    ensure!(entry.message.is_some(), "{entry:?}");
    // As the message of emud says: detached by hand, it is attached again.
    let command = format!("--netns {name} detach eth0");
    run(
        &lab.emud,
        &command.split(' ').map(str::to_owned).collect::<Vec<_>>(),
    )?;
    lab.entry("slow", "web", "whole", is_fine).await?;
    within("attached again", web.round_trip(1)?, 60.0, 60.0 + SLACK_MS)
}

/// After kill -9 a link lasts for its lease, and an agent that starts before that keeps it.
async fn agent_dies(
    lab: &Lab<'_>,
    web: &Sandbox,
    agent: crate::cluster::Process,
) -> Result<crate::cluster::Process> {
    let before = number(&web.shown(&lab.emud)?, "/attached_s")?;
    drop(agent);
    let agent = lab.agent()?;
    sleep(LEASE + Duration::from_secs(1)).await;
    let after = number(&web.shown(&lab.emud)?, "/attached_s")?;
    ensure!(
        after > before + LEASE.as_secs_f64(),
        "the new agent has attached it again"
    );
    drop(agent);
    within(
        "the agent is killed",
        web.round_trip(1)?,
        60.0,
        60.0 + SLACK_MS,
    )?;
    sleep(LEASE).await;
    within("after its lease", web.round_trip(1)?, 0.0, 15.0)?;
    let agent = lab.agent()?;
    delayed(web)?;
    ensure!(lab.attached("slow", "web").await?.seed == Some(7));
    Ok(agent)
}

/// A deleted Link goes when it is detached, and waits for nodes that exist only.
async fn deleted(lab: &Lab<'_>, web: &Sandbox) -> Result<()> {
    lab.node("n2").await?;
    let entry = |node: &str| json!({ "node": node, "pod": "p", "uid": "u", "interface": "eth0", "state": "attached" });
    let patch = json!({ "status": { "pods": { "n2/p": entry("n2"), "n3/p": entry("n3") } } });
    lab.links
        .patch_status("slow", &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    // The agent now calls for both nodes: without an answer it still has to renew its leases.
    lab.cluster.signal("STOP")?;
    sleep(2 * LEASE + Duration::from_secs(3)).await;
    let hangs = web.round_trip(1)?;
    lab.cluster.signal("CONT")?;
    within("the API server hangs", hangs, 60.0, 60.0 + SLACK_MS)?;
    lab.delete("slow").await?;
    sleep(LEASE + Duration::from_secs(2)).await;
    let status = lab.links.get("slow").await?.status.unwrap_or_default();
    let keys: Vec<&String> = status.pods.keys().collect();
    ensure!(keys == ["n2/p"], "waits for {keys:?}");
    ensure!(web.shown(&lab.emud)?.is_null(), "still attached");
    within("deleted", web.round_trip(1)?, 0.0, 15.0)?;
    lab.nodes.delete("n2", &DeleteParams::default()).await?;
    lab.gone("slow").await
}

/// A link that cannot be shown once it is attached does not stay behind when its Link is deleted.
async fn unreadable(lab: &Lab<'_>, web: &Sandbox) -> Result<()> {
    let next = lab.next_is_unreadable();
    std::fs::write(&next, "")?;
    let spec = json!({ "profile": "link.delay = '30ms'", "duration": "1h" });
    lab.link("hidden", "web", spec).await?;
    let is = |e: &PodLink| e.state == State::Failed && e.message.as_deref() == Some("unreadable");
    lab.entry("hidden", "web", "unreadable", is).await?;
    lab.delete("hidden").await?;
    sleep(Duration::from_secs(2)).await;
    std::fs::remove_file(next.with_file_name("unreadable"))?;
    lab.gone("hidden").await?;
    within("deleted", web.round_trip(1)?, 0.0, 15.0)
}

/// A duration begins with the attach, not with the round of the agent, which may be long with many pods.
async fn slow(lab: &Lab<'_>) -> Result<()> {
    std::fs::write(lab.next_is_slow(), "")?;
    let began = Timestamp::now();
    let spec = json!({ "profile": "link.delay = '30ms'", "duration": "2h" });
    lab.link("late", "web", spec).await?;
    let since = lab.attached("late", "web").await?.since;
    let since = since.context("since")?.0;
    let late = since.as_second() - began.as_second();
    ensure!(
        late >= SLOW.as_secs() as i64,
        "since {since}, {late} s after {began}"
    );
    lab.delete("late").await?;
    lab.gone("late").await
}

async fn from_config_map(lab: &Lab<'_>, web: &Sandbox) -> Result<()> {
    let from = |name: &str| json!({ "profileFrom": { "configMap": name, "key": "slow" } });
    let waits_for = async |message: &str| {
        let said = |e: &PodLink| e.message.as_deref() == Some(message);
        lab.entry("mapped", "web", message, |e| {
            e.state == State::Waiting && said(e)
        })
        .await
    };
    // That of the tests denies this one; of a real one the agent may read all.
    let denies = !lab.cluster.is_real;
    let first = if denies { "denied" } else { "profiles" };
    lab.link("mapped", "web", from(first)).await?;
    if denies {
        waits_for("Forbidden").await?;
        lab.change("mapped", from("profiles")).await?;
    }
    waits_for("there is no ConfigMap profiles").await?;
    let map = |delay: &str| json!({ "metadata": { "name": "profiles" }, "data": { "slow": format!("[link]\ndelay = '{delay}'") } });
    lab.maps
        .create(
            &PostParams::default(),
            &serde_json::from_value(map("20ms"))?,
        )
        .await?;
    let digest = lab.attached("mapped", "web").await?.applied;
    within(
        "from a ConfigMap",
        web.round_trip(1)?,
        40.0,
        40.0 + SLACK_MS,
    )?;
    lab.maps
        .patch(
            "profiles",
            &PatchParams::default(),
            &Patch::Merge(map("5ms")),
        )
        .await?;
    lab.entry("mapped", "web", "changed", |e| {
        e.state == State::Attached && e.applied != digest
    })
    .await?;
    within("changed there", web.round_trip(1)?, 10.0, 10.0 + SLACK_MS)?;
    lab.delete("mapped").await?;
    lab.gone("mapped").await
}

/// Of the addresses of the test only one is a peer; then that of a pod that starts, too.
async fn peers(lab: &Lab<'_>, web: &Sandbox) -> Result<()> {
    let peers =
        json!({ "cidrs": ["10.1.1.1/32"], "podSelector": { "matchLabels": { "app": "db" } } });
    lab.link(
        "far",
        "web",
        json!({ "profile": "[link]\ndelay = '20ms'", "peers": peers }),
    )
    .await?;
    let digest = lab.attached("far", "web").await?.applied;
    within("a peer", web.round_trip(1)?, 40.0, 40.0 + SLACK_MS)?;
    within("not a peer", web.round_trip(3)?, 0.0, 15.0)?;
    lab.pod("db", "db", json!({})).await?;
    lab.running("db", "10.1.1.3", 0).await?;
    let digest = lab
        .entry("far", "web", "changed", |e| {
            e.state == State::Attached && e.applied != digest
        })
        .await?
        .applied;
    within(
        "a pod that is a peer",
        web.round_trip(3)?,
        40.0,
        40.0 + SLACK_MS,
    )?;
    lab.change("far", json!({ "profile": "[link]\ndelay = '50ms'" }))
        .await?;
    lab.entry("far", "web", "changed", |e| {
        e.state == State::Attached && e.applied != digest
    })
    .await?;
    within(
        "changed for peers",
        web.round_trip(3)?,
        100.0,
        100.0 + SLACK_MS,
    )?;
    lab.delete("far").await?;
    lab.gone("far").await
}

/// A duration is over in the kernel, without the agent; and over for good.
async fn agent_away(
    lab: &Lab<'_>,
    web: &Sandbox,
    agent: crate::cluster::Process,
) -> Result<crate::cluster::Process> {
    let spec = json!({ "profile": "[link]\ndelay = '20ms'", "duration": "5s" });
    lab.link("short", "web", spec).await?;
    lab.attached("short", "web").await?;
    drop(agent);
    within("with a duration", web.round_trip(1)?, 40.0, 40.0 + SLACK_MS)?;
    let left = number(&web.shown(&lab.emud)?, "/ends_in_s")?;
    ensure!((0.1..5.0).contains(&left), "ends in {left} s");
    sleep(Duration::from_secs_f64(left)).await;
    within("it is over", web.round_trip(1)?, 0.0, 15.0)?;
    let agent = lab.agent()?;
    lab.entry("short", "web", "ended", |e| e.state == State::Ended)
        .await?;
    let began = Instant::now();
    while !web.shown(&lab.emud)?.is_null() {
        ensure!(
            began.elapsed() < Duration::from_secs(5),
            "the ended link is still there"
        );
        sleep(Duration::from_millis(100)).await;
    }
    sleep(LEASE).await;
    ensure!(
        web.shown(&lab.emud)?.is_null(),
        "attached again after its end"
    );
    // A pod that goes takes its entry with it.
    lab.pods
        .delete("web", &DeleteParams::default().grace_period(0))
        .await?;
    lab.without_pods("short").await?;
    lab.delete("short").await?;
    lab.gone("short").await?;
    Ok(agent)
}
