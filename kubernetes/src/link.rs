// SPDX-License-Identifier: Apache-2.0
//! The custom resource `Link`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Keeps a deleted Link until every node has detached it.
pub const FINALIZER: &str = "net.emud/detach";

/// An emulated link on an interface of pods.
#[allow(clippy::duplicated_attributes)] // clippy takes the columns for one attribute
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "net.emud",
    version = "v1alpha1",
    kind = "Link",
    namespaced,
    status = "LinkStatus",
    derive = "PartialEq",
    doc = "Makes an interface of pods behave like a described link",
    printcolumn(name = "Interface", type_ = "string", json_path = ".spec.interface"),
    printcolumn(name = "Direction", type_ = "string", json_path = ".spec.direction"),
    printcolumn(name = "Duration", type_ = "string", json_path = ".spec.duration"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.profile) != has(self.profileFrom)")
    .message("give either profile or profileFrom"))]
pub struct LinkSpec {
    /// Pods of the same namespace; `{}` selects all of them.
    pub selector: LabelSelector,
    /// Interface in the pod.
    #[serde(default = "eth0")]
    #[schemars(length(min = 1, max = 15))]
    pub interface: String,
    /// Name of a shipped profile, or the text of a profile in TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub profile: Option<String>,
    /// A ConfigMap of the same namespace that has the text of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_from: Option<ProfileFrom>,
    /// `up`: what the pod sends, `down`: what it receives.
    #[serde(default)]
    pub direction: Direction,
    /// Only packets to and from these addresses; all others pass unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<Peers>,
    /// Ends this time after the Link was first attached to the pod: a number and ms, s, min or h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[1-9][0-9]{0,8}(ms|s|min|h)$"))]
    pub duration: Option<String>,
    /// Seed of every random decision; by default that of the profile, otherwise random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub seed: Option<i64>,
    /// Where packets wait.
    #[serde(default)]
    pub engine: Engine,
}

fn eth0() -> String {
    "eth0".to_owned()
}

/// Where the text of a profile is.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ProfileFrom {
    /// Name of the ConfigMap.
    pub config_map: String,
    /// Key in its data.
    pub key: String,
}

/// Directions to emulate.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    #[default]
    Both,
    Up,
    Down,
}

/// Engines of emud.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, Default, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    #[default]
    Auto,
    Fq,
    Hold,
    Qdisc,
}

impl Direction {
    /// Returns the value of `--direction`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl Engine {
    /// Returns the value of `--engine`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fq => "fq",
            Self::Hold => "hold",
            Self::Qdisc => "qdisc",
        }
    }
}

/// The other ends of the emulated traffic: all of both lists.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.cidrs) || has(self.podSelector)")
    .message("peers needs cidrs or podSelector"))]
pub struct Peers {
    /// Addresses and prefixes, of IPv4 and IPv6.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cidrs: Vec<String>,
    /// Pods of the same namespace, on all nodes, without those in the network of their node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
}

/// What the nodes report.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default, PartialEq)]
pub struct LinkStatus {
    /// By node and pod, `NODE/POD`; each node writes its own entries.
    #[serde(default)]
    pub pods: BTreeMap<String, PodLink>,
}

/// The Link on one pod.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct PodLink {
    pub node: String,
    pub pod: String,
    /// UID by which the node finds the pod's processes.
    pub uid: String,
    pub interface: String,
    pub state: State,
    /// Why it is not attached, or what the verdict means.
    #[serde(default)]
    pub message: Option<String>,
    /// Engine in use.
    #[serde(default)]
    pub engine: Option<String>,
    /// Seed in use.
    #[serde(default)]
    pub seed: Option<i64>,
    /// Result of the last check of the running link.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// When it was first attached to this pod.
    #[serde(default)]
    pub since: Option<Time>,
    /// Digest of what is attached; a node that starts again compares it.
    #[serde(default)]
    pub applied: Option<String>,
}

/// Whether the Link is on the pod.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// For the pod, its ConfigMap, or for emud to attach.
    Waiting,
    Attached,
    Failed,
    /// Its duration is over, and packets pass unchanged.
    Ended,
}

/// What a check found, the worst first.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Another process deleted or changed a part of the link.
    Tampered,
    /// The process of engine hold has ended, so packets pass unchanged.
    Dead,
    /// The emulator itself dropped packets, or passed some unchanged.
    Dropped,
    /// Engine hold sent packets more than 1 ms late.
    Late,
    /// None of these.
    Clean,
}
