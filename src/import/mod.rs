// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles from what others write: tc's netem commands, ping logs, Mahimahi's traces.
//!
//! One way only, as everywhere: text -> words with their places -> what they say -> a profile's
//! TOML, with a comment wherever emud and the origin mean different things. What cannot be said in
//! TOML is a mistake with its place, or a warning: never left out in silence.

mod mahimahi;
mod netem;
mod netem_delay;
mod netem_toml;
mod ping;
mod ping_toml;
mod tc_command;
mod tc_units;
mod writer;

use std::path::PathBuf;

pub use mahimahi::mahimahi;
use netem::Netem;
use ping::PingLog;

use crate::text::{Mistake, Mistakes, Source, TextError};

/// A profile that was made from something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub toml: String,
    /// What the profile does not say although the origin did.
    pub warnings: Vec<String>,
}

/// The header to put a link under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    Link,
    Up,
    Down,
}

impl Header {
    fn word(self) -> &'static str {
        match self {
            Self::Link => "link",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// Where `distribution NAME` of tc finds its table: NAME.dist, the first there is.
pub type Tables<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// tc's own places for tables: `$TC_LIB_DIR`, else where distributions put them.
pub fn tc_table(name: &str) -> Option<PathBuf> {
    let file = format!("{name}.dist");
    if let Some(folder) = std::env::var_os("TC_LIB_DIR") {
        let path = PathBuf::from(folder).join(file);
        return path.is_file().then_some(path);
    }
    let triplet = format!("/usr/lib/{}-linux-gnu/tc", std::env::consts::ARCH);
    ["/usr/lib/tc", "/usr/lib64/tc", &triplet, "/usr/share/tc"]
        .iter()
        .map(|folder| PathBuf::from(folder).join(&file))
        .find(|path| path.is_file())
}

/// The profile equal to a netem command: `tc qdisc add dev eth0 root netem ...`, or from `netem`
/// or its first option on.
///
/// # Errors
/// The mistake in the command that tc would stop at, or the first thing emud has no word for.
pub fn netem(command: &str, header: Header, tables: Tables) -> Result<Imported, TextError> {
    Netem::parse(command)
        .and_then(|netem| netem_toml::profile(&netem, header, tables))
        .map_err(|mistake| mistakes("command", command, mistake))
}

/// The profile measured by ping; `origin` is what messages call the log.
///
/// # Errors
/// A line that looks like a reply and is none, or a log without replies.
pub fn ping(log: &str, origin: &str) -> Result<Imported, TextError> {
    PingLog::parse(log)
        .map(|log| ping_toml::profile(&log, origin))
        .map_err(|mistake| mistakes(origin, log, mistake))
}

fn mistakes(origin: &str, text: &str, mistake: Mistake) -> TextError {
    let source = Source {
        origin: origin.to_owned(),
        text: text.to_owned(),
    };
    TextError::Mistakes(Mistakes::new(vec![source], vec![mistake]))
}
