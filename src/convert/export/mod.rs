// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands of other tools from a profile.
//!
//! Every structure of the profile is taken apart without `..`: a new property does not compile
//! here until somebody says what netem makes of it.

mod netem;
mod netem_delay;
mod netem_loss;

use crate::abi;
use crate::profile::{Link, Profile};
use netem::Options;

/// Which direction of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
}

/// A command, and how what it does differs from the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    pub command: String,
    /// Where netem works in another way, whatever the command.
    pub notes: Vec<String>,
    /// What netem cannot do, and what the command does instead.
    pub differences: Vec<String>,
}

/// Why there is no command.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Each with the reason.
    #[error(
        "netem cannot do what the profile describes (--nearest exports what is nearest):\n{}",
        list(.0)
    )]
    Cannot(Vec<String>),
}

impl ExportError {
    /// Exit code after sysexits: 65, the profile is not for that tool.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Cannot(_) => 65,
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

/// The netem command for one direction: `tc qdisc add dev DEVICE root netem ...`, without a
/// device only from `netem` on.
///
/// # Errors
/// All that netem cannot express.
pub fn netem(
    profile: &Profile,
    direction: Direction,
    device: Option<&str>,
) -> Result<Exported, ExportError> {
    let exported = nearest_netem(profile, direction, device);
    match exported.differences.is_empty() {
        true => Ok(exported),
        false => Err(ExportError::Cannot(exported.differences)),
    }
}

/// As [`netem()`], with the nearest that netem can do in place of what it cannot.
pub fn nearest_netem(profile: &Profile, direction: Direction, device: Option<&str>) -> Exported {
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
            "`[links.{}]`: a netem is one link; give it a profile of its own and a netem in a \
             class of its own",
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
            "`[[rule]]`: a netem takes all packets of its device or class; use tc's filters",
        );
    }
    if matrix.is_some() {
        options.differ(
            "`[matrix]`: a netem is the same for all pairs; each needs one in a class of its own",
        );
    }
    let (section, number) = match direction {
        Direction::Up => ("up", abi::EMUD_UP),
        Direction::Down => ("down", abi::EMUD_DOWN),
    };
    let mut link: &Link = profile.direction(number);
    if let Some(phase) = phases.list.first() {
        options.differ("`[[phase]]`: netem has no phases; this is the first one alone");
        link = phase.direction(number);
    }
    let over_time = options.over_time(profile, number);
    options.link(&over_time.unwrap_or_else(|| link.clone()), *seed);
    if up != down {
        options.note(format!(
            "this is `{section}` alone: the other direction is another netem, on an ifb for what \
             comes in"
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
