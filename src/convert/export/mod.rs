// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exports a profile as commands of other tools: one netem, or a tree of htb.
//!
//! Every structure of the profile is destructured without `..`: a new property does not compile
//! here until its equivalent in netem is defined.

mod netem;
mod netem_delay;
mod netem_loss;
mod tc;
mod tc_class;
mod tc_filter;
mod tc_queue;

use crate::abi;
use crate::profile::{Link, Profile};
use netem::Options;

pub use tc::tc;

/// Direction of a profile to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportDirection {
    /// Egress.
    Up,
    /// Ingress.
    Down,
}

/// A command, and how its effect differs from the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The command of tc.
    pub command: String,
    /// Differences in how netem works, whatever the command.
    pub notes: Vec<String>,
    /// Properties that netem does not support, and what the command does instead.
    pub differences: Vec<String>,
}

/// Why there is no command.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The unsupported properties, each with the reason.
    #[error(
        "netem cannot do what the profile describes (--nearest exports the nearest command):\n{}",
        list(.0)
    )]
    Cannot(Vec<String>),
    /// The same of a tree of classes.
    #[error("a tree of htb cannot do what the profile describes:\n{}", list(.0))]
    NoTree(Vec<String>),
}

impl ExportError {
    /// Returns the exit code from sysexits.h: 65, the profile is not suitable for that tool.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Cannot(_) | Self::NoTree(_) => 65,
        }
    }
}

fn list(reasons: &[String]) -> String {
    let lines: Vec<_> = reasons
        .iter()
        .map(|reason| format!("  - {reason}"))
        .collect();
    lines.join("\n")
}

/// Returns the netem command for one direction: `tc qdisc add dev DEVICE root netem ...`, or only
/// the part from `netem` on without a device.
///
/// # Errors
/// Every property that netem does not support.
pub fn netem(
    profile: &Profile,
    direction: ExportDirection,
    device: Option<&str>,
) -> Result<Exported, ExportError> {
    let exported = nearest_netem(profile, direction, device);
    match exported.differences.is_empty() {
        true => Ok(exported),
        false => Err(ExportError::Cannot(exported.differences)),
    }
}

/// As [`netem()`], with the nearest netem option for each unsupported property.
pub fn nearest_netem(
    profile: &Profile,
    direction: ExportDirection,
    device: Option<&str>,
) -> Exported {
    let Profile {
        name: _,
        description: _,
        source: _,
        seed,
        offload: _,
        up,
        down,
        links,
        bottlenecks,
        rules,
        instances: _,
        matrix,
        phases,
    } = profile;
    let mut options = Options::default();
    for link in links {
        options.differ(format!(
            "`[links.{}]`: a netem is one link; give it a separate profile and a netem in a \
             separate class",
            link.name
        ));
    }
    for bottleneck in bottlenecks {
        options.differ(format!(
            "`[bottleneck.{}]`: a netem has one queue; classes are those of prio or htb above it",
            bottleneck.name
        ));
    }
    if !rules.is_empty() {
        options.differ(
            "`[[rule]]`: a netem receives all packets of its device or class; use tc's filters",
        );
    }
    if matrix.is_some() {
        options.differ(
            "`[matrix]`: a netem is the same for all pairs; each needs one in a separate class",
        );
    }
    let (section, number) = match direction {
        ExportDirection::Up => ("up", abi::EMUD_UP),
        ExportDirection::Down => ("down", abi::EMUD_DOWN),
    };
    let mut link: &Link = profile.direction(number);
    if let Some(phase) = phases.list.first() {
        let kind = phases.chain.as_ref().map_or("phase", |_| "state");
        options.differ(format!(
            "`[[{kind}]]`: netem has no {kind}s; this is only the first one"
        ));
        link = phase.direction(number);
    }
    let over_time = options.over_time(profile, number);
    options.link(&over_time.unwrap_or_else(|| link.clone()), *seed);
    if up != down {
        options.note(format!(
            "this is only `{section}`: the other direction needs another netem, on an ifb for ingress \
             packets"
        ));
    }
    let command = match device {
        Some(device) => format!("tc qdisc add dev {device} root {}", options.command()),
        None => options.command(),
    };
    Exported {
        command,
        notes: options.notes,
        differences: options.differences,
    }
}
