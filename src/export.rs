// SPDX-License-Identifier: GPL-2.0-only
//! Commands of other tools from a profile, where they can do what it says.

mod netem;
mod netem_delay;
mod netem_loss;

use crate::profile::Profile;

/// Which direction of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
}

/// A command, and how what it does differs from the profile all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    pub command: String,
    pub notes: Vec<String>,
}

/// Why there is no command.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Each with the reason.
    #[error("netem cannot do what the profile says:\n{}", list(.0))]
    Cannot(Vec<String>),
    #[error("the profile does not print as it was read: {0}")]
    Canonical(#[from] toml::de::Error),
}

impl ExportError {
    /// Exit code after sysexits: 65, the profile is not for that tool.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Cannot(_) => 65,
            Self::Canonical(_) => 70,
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
    netem_from_toml(&profile.to_toml(), direction, device)
}

/// The same from a profile's canonical text. That text says all that a profile says, so a key
/// that is not known here is a reason not to export, never left out.
///
/// # Errors
/// As [`netem`], and where `text` is no TOML.
pub fn netem_from_toml(
    text: &str,
    direction: Direction,
    device: Option<&str>,
) -> Result<Exported, ExportError> {
    let profile: toml::Table = text.parse()?;
    let section = match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let nothing = toml::Table::new();
    let link = [section, "link"]
        .iter()
        .find_map(|section| profile.get(*section)?.as_table())
        .unwrap_or(&nothing);
    if profile.contains_key("phase") {
        let reason = "`[[phase]]`: netem has nothing like it".to_owned();
        return Err(ExportError::Cannot(vec![reason]));
    }
    let seed = profile.get("seed").map(toml::Value::to_string);
    let Exported { command, mut notes } = netem::options(link, seed)?;
    let both = profile.contains_key("up") && profile.contains_key("down");
    if both && profile.get("up") != profile.get("down") {
        notes.push(format!(
            "this is `{section}` alone: the other direction is another netem, on an ifb for what \
             comes in"
        ));
    }
    let command = match device {
        Some(device) => format!("tc qdisc add dev {device} root {command}"),
        None => command,
    };
    Ok(Exported { command, notes })
}
