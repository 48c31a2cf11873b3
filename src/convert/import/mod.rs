// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles from what others write: tc's netem commands, ping logs, Mahimahi's traces, logs of rates.
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
mod rate_log;
mod table;
mod tc_command;
mod tc_filter;
mod tc_script;
mod tc_shaper;
mod tc_tree;
mod tc_tree_toml;
mod tc_units;
mod writer;

use std::path::PathBuf;

pub use mahimahi::mahimahi;
use ping::PingLog;
pub use rate_log::is_rate_unit;

use crate::profile::{Profile, ProfileError};
use crate::text::{Mistake, Mistakes, Source, TextError};

/// A profile that was made from something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    pub toml: String,
    /// What the profile does not say although the origin did.
    pub warnings: Vec<String>,
    /// What must be in the file beside the profile that the profile names.
    pub beside: Option<String>,
}

/// Which columns of a log say what; a column is a number from 1, or a name in the first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub time: Moment,
    /// `ns`, `us`, `ms`, `s` or `min`, of bare numbers.
    pub time_unit: String,
    pub rate: String,
    /// See [`is_rate_unit`].
    pub unit: String,
    pub delay: Option<String>,
    pub delay_unit: String,
    /// Only rows that have this value in this column.
    pub only: Option<(String, String)>,
}

/// What a row says of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// The column has the moment from which on the row holds.
    At(String),
    /// The column has the time for which the row holds.
    Lasts(String),
    /// Each row holds for so many ns.
    Every(u64),
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
/// or its first option on; also of a script that has one, and of what `tc qdisc show` prints. Of
/// a device and an ifb the ifb's is `down`.
///
/// # Errors
/// The mistake in the command that tc would stop at, or the first thing emud has no word for.
pub fn netem(command: &str, header: Header, tables: Tables) -> Result<Imported, TextError> {
    let text = tc_command::expanded(command);
    tc_script::read(&text)
        .and_then(|script| netem_toml::profile(&script, header, tables))
        .map_err(|mistake| mistakes("command", &text, mistake))
}

/// The profile of a tree of qdiscs in a script, or in what tc prints: a bottleneck with classes.
/// `rate` (bit/s) is the device's, where the tree has none.
///
/// # Errors
/// As [`netem()`], or a tree that is no bottleneck.
pub fn tc(
    script: &str,
    origin: &str,
    header: Header,
    rate: Option<u64>,
    tables: Tables,
) -> Result<Imported, TextError> {
    let text = tc_command::expanded(script);
    let imported = tc_tree::Tree::read(&text)
        .and_then(|tree| tc_tree_toml::profile(&tree, header, rate, tables))
        .map_err(|mistake| mistakes(origin, &text, mistake))?;
    match Profile::parse(&imported.toml, "the profile") {
        Err(ProfileError::Text(error)) => Err(error),
        _ => Ok(imported),
    }
}

/// The profile measured by ping; `origin` is what messages call the log.
///
/// # Errors
/// A line that looks like a reply and is none, or a log without replies.
pub fn ping(log: &str, origin: &str) -> Result<Imported, TextError> {
    let imported = PingLog::parse(log)
        .map(|log| ping_toml::profile(&log, origin))
        .map_err(|mistake| mistakes(origin, log, mistake))?;
    match Profile::parse(&imported.toml, "the profile") {
        Err(ProfileError::Text(error)) => Err(error),
        _ => Ok(imported),
    }
}

/// The profile whose rate is that of a log; `origin` is what messages call the log, `beside` what
/// a file beside the profile may be called, for rows that are too many for the profile itself.
///
/// # Errors
/// The first row that makes no sense, or columns that are not there.
pub fn rate_log(
    log: &str,
    origin: &str,
    layout: &Layout,
    header: Header,
    beside: Option<&str>,
) -> Result<Imported, TextError> {
    rate_log::profile(log, origin, layout, header, beside)
        .map_err(|mistake| mistakes(origin, log, mistake))
}

fn mistakes(origin: &str, text: &str, mistake: Mistake) -> TextError {
    let source = Source {
        origin: origin.to_owned(),
        text: text.to_owned(),
    };
    TextError::Mistakes(Mistakes::new(vec![source], vec![mistake]))
}
