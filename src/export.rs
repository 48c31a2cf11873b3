// SPDX-License-Identifier: MIT OR Apache-2.0
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
    // TOML's integers have a sign: the upper half of all seeds would not be read.
    let seed = profile.seed.map(|seed| seed.to_string());
    let without_seed = Profile {
        seed: None,
        ..profile.clone()
    };
    let text: toml::Table = without_seed.to_toml().parse()?;
    from_table(&text, seed, direction, device)
}

/// The same from a profile's canonical text. That text says all that a profile says, so a key
/// that is not known here is a reason not to export, never left out.
///
/// # Errors
/// As [`netem()`], and where `text` is no TOML.
pub fn netem_from_toml(
    text: &str,
    direction: Direction,
    device: Option<&str>,
) -> Result<Exported, ExportError> {
    let profile: toml::Table = text.parse()?;
    let seed = profile.get("seed").map(toml::Value::to_string);
    from_table(&profile, seed, direction, device)
}

fn from_table(
    profile: &toml::Table,
    seed: Option<String>,
    direction: Direction,
    device: Option<&str>,
) -> Result<Exported, ExportError> {
    let section = match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let nothing = toml::Table::new();
    let link = [section, "link"]
        .iter()
        .find_map(|section| profile.get(*section)?.as_table())
        .unwrap_or(&nothing);
    let mut cannot = beside_the_link(profile);
    let exported = match netem::options(link, seed) {
        Err(ExportError::Cannot(more)) => {
            cannot.extend(more);
            return Err(ExportError::Cannot(cannot));
        }
        Ok(_) if !cannot.is_empty() => return Err(ExportError::Cannot(cannot)),
        other => other?,
    };
    let Exported { command, mut notes } = exported;
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

/// What a profile has beside one link for all packets and all times.
fn beside_the_link(profile: &toml::Table) -> Vec<String> {
    // `instances` and `phases` say nothing without what they are for.
    const KNOWN: [&str; 11] = [
        "name",
        "description",
        "source",
        "seed",
        "offload",
        "neighbours",
        "instances",
        "phases",
        "link",
        "up",
        "down",
    ];
    let mut cannot = Vec::new();
    for (key, value) in profile.iter().filter(|(k, _)| !KNOWN.contains(&k.as_str())) {
        match (key.as_str(), value.as_table()) {
            ("links", Some(links)) => cannot.extend(links.keys().map(|name| {
                format!(
                    "`[links.{name}]`: a netem is one link; give it a profile of its own and a \
                     netem in a class of its own"
                )
            })),
            ("rule", _) => cannot.push(
                "`[[rule]]`: a netem takes all packets of its device or class; that is for tc's \
                 filters"
                    .to_owned(),
            ),
            ("matrix", _) => cannot.push(
                "`[matrix]`: a netem is the same for all pairs; each needs one in a class of its \
                 own"
                .to_owned(),
            ),
            ("phase", _) => {
                cannot.push("`[[phase]]`: netem has nothing like it; export each alone".to_owned());
            }
            _ => cannot.push(format!("`{key}`: netem has nothing like it")),
        }
    }
    cannot
}
