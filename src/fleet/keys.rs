// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys in etcd. All of them begin with `/emud/FLEET/`:
//!
//! | key | value | lease of |
//! |---|---|---|
//! | `agents/HOST` | [`super::facts::Facts`] | the agent |
//! | `claim` | [`super::protocol::Revision`] | the controller |
//! | `ping` | empty | the controller |
//! | `plans/HOST` | [`super::plan::HostPlan`] | the controller |
//! | `run/revision` | [`super::protocol::Revision`] | the controller |
//! | `run/t0` | [`super::protocol::Start`] | the controller |
//! | `run/over` | [`OVER`], [`LOST`] or [`STOPPED`] | the controller |
//! | `run/set/ID` | [`super::protocol::Asked`] | the controller |
//! | `run/turn/ID` | [`super::protocol::Turn`] | the controller |
//! | `run/done/NODE` | name of the run; only nodes for which another host waits | the agent |
//! | `hosts/HOST/built` | [`super::protocol::Built`] | the agent |
//! | `hosts/HOST/started` | name of the run: the agent knows the start | the agent |
//! | `hosts/HOST/complete` | name of the run | the agent |
//! | `hosts/HOST/set/ID` | [`super::protocol::SetDone`] | the agent |
//! | `hosts/HOST/log/N` | bytes of the host's log | the agent |
//! | `hosts/HOST/result` | [`super::protocol::HostResult`] | the agent |
//!
//! A plan is part of the run if both have one lease. An agent follows `run/` only, the controller `agents/`, `run/` and `hosts/`: what one agent writes
//! is not sent to all others.

/// The measured phase is over.
pub const OVER: &str = "over";
/// It is over because a host is lost, or its part has failed.
pub const LOST: &str = "lost";
/// `emud fleet stop` ended it.
pub const STOPPED: &str = "stopped";

/// The keys of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys(String);

impl Keys {
    /// Returns the keys of a fleet.
    pub fn new(fleet: &str) -> Self {
        Self(format!("/emud/{fleet}/"))
    }

    /// Returns the beginning of all keys.
    pub fn all(&self) -> String {
        self.0.clone()
    }

    /// Returns the beginning of the keys of agents.
    pub fn agents(&self) -> String {
        format!("{}agents/", self.0)
    }

    /// Returns the key of an agent.
    pub fn agent(&self, host: &str) -> String {
        format!("{}agents/{host}", self.0)
    }

    /// Returns the key of the controller that may write plans.
    pub fn claim(&self) -> String {
        format!("{}claim", self.0)
    }

    /// Returns the beginning of the keys of plans.
    pub fn plans(&self) -> String {
        format!("{}plans/", self.0)
    }

    /// Returns the key of a host's plan.
    pub fn plan(&self, host: &str) -> String {
        format!("{}plans/{host}", self.0)
    }

    /// Returns the beginning of the keys that all agents follow.
    pub fn run(&self) -> String {
        format!("{}run/", self.0)
    }

    /// Returns the key of the run.
    pub fn revision(&self) -> String {
        format!("{}run/revision", self.0)
    }

    /// Returns the key of the start.
    pub fn t0(&self) -> String {
        format!("{}run/t0", self.0)
    }

    /// Returns the key with which the controller finds out whether etcd writes.
    pub fn ping(&self) -> String {
        format!("{}ping", self.0)
    }

    /// Returns the key of the end.
    pub fn over(&self) -> String {
        format!("{}run/over", self.0)
    }

    /// Returns the beginning of the keys of changes.
    pub fn sets(&self) -> String {
        format!("{}run/set/", self.0)
    }

    /// Returns the beginning of the keys of the times of changes.
    pub fn turns(&self) -> String {
        format!("{}run/turn/", self.0)
    }

    /// Returns the key of what a host says about a change.
    pub fn set_done(&self, host: &str, id: &str) -> String {
        format!("{}hosts/{host}/set/{id}", self.0)
    }

    /// Returns the beginning of the keys of programs that have ended.
    pub fn done_nodes(&self) -> String {
        format!("{}run/done/", self.0)
    }

    /// Returns the key of a node whose program has ended.
    pub fn done(&self, node: &str) -> String {
        format!("{}run/done/{node}", self.0)
    }

    /// Returns the beginning of the keys of all hosts of a run.
    pub fn hosts(&self) -> String {
        format!("{}hosts/", self.0)
    }

    /// Returns the beginning of the keys of a host.
    pub fn host(&self, host: &str) -> String {
        format!("{}hosts/{host}/", self.0)
    }

    /// Returns the key of what a host has built.
    pub fn built(&self, host: &str) -> String {
        format!("{}hosts/{host}/built", self.0)
    }

    /// Returns the key that a host writes when it knows the start.
    pub fn started(&self, host: &str) -> String {
        format!("{}hosts/{host}/started", self.0)
    }

    /// Returns the key that a host writes when its programs have ended.
    pub fn complete(&self, host: &str) -> String {
        format!("{}hosts/{host}/complete", self.0)
    }

    /// Returns the beginning of the keys of a log.
    pub fn logs(&self, host: &str) -> String {
        format!("{}hosts/{host}/log/", self.0)
    }

    /// Returns the key of a part of a log.
    pub fn log(&self, host: &str, number: u32) -> String {
        format!("{}hosts/{host}/log/{number:06}", self.0)
    }

    /// Returns the key of a result.
    pub fn result(&self, host: &str) -> String {
        format!("{}hosts/{host}/result", self.0)
    }
}

/// Returns why a name cannot be a part of a key; `None`: it can.
pub fn unusable(name: &str) -> Option<String> {
    let valid = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match name {
        "" => Some("the name is empty".to_owned()),
        _ if name.len() > 63 => Some(format!("`{name}` is longer than 63 bytes")),
        _ if !name.chars().all(valid) => Some(format!(
            "`{name}` has other characters than letters, digits, `-`, `_` and `.`"
        )),
        _ => None,
    }
}

/// Returns the first key after all that begin with `prefix`, for ranges of etcd.
pub fn behind(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // All keys.
    vec![0]
}
