// SPDX-License-Identifier: MIT OR Apache-2.0
//! The profile reader: the meaning of profiles, and the messages for meaningless ones.

mod alter;
mod background;
mod bottleneck;
mod delays;
mod export_netem;
mod files;
mod import_netem;
mod import_ping;
mod import_rates;
mod import_scripts;
mod import_tc;
mod links;
mod loss;
mod meaning;
mod messages;
mod mistakes;
mod netem_round_trip;
mod queue;
mod random;
mod rules;
mod tc_round_trip;
mod together;
mod trace;

use emud::profile::{Profile, ProfileError};

fn parse(text: &str) -> Profile {
    Profile::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn set(profile: &Profile, assignments: &[&str]) -> Result<Profile, ProfileError> {
    let assignments: Vec<_> = assignments.iter().map(|text| text.to_string()).collect();
    profile.with_changes(&assignments)
}
