// SPDX-License-Identifier: MIT OR Apache-2.0
//! Imports profiles from other formats: tc's netem commands, ping logs, Mahimahi's traces, logs of
//! rates; and scenarios from traces of motion.
//!
//! The data flow is: text -> tokens with positions -> their meaning -> a profile's TOML, with a
//! comment wherever emud and the origin differ. Anything that TOML cannot express is a mistake with
//! its position, or a warning: nothing is dropped silently.

mod mahimahi;
mod mobility;
mod netem;
mod netem_profile;
mod netem_trace;
pub(crate) mod ping;
mod ping_toml;
mod ping_trace;
mod rate_log;
mod shell;
mod table;
mod tc_aqm;
mod tc_class;
mod tc_command;
mod tc_filter;
mod tc_handle;
mod tc_keep;
mod tc_limiter;
mod tc_location;
mod tc_made;
mod tc_nested;
mod tc_prio;
mod tc_quantum;
mod tc_queue;
mod tc_red;
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

/// An imported profile or scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The profile's text.
    pub toml: String,
    /// Properties of the origin that the profile does not have.
    pub warnings: Vec<String>,
    /// Content of an additional file that the profile refers to.
    pub beside: Option<String>,
}

/// The meaning of the columns of a log; a column is a number from 1, or a name in the first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Column of the time.
    pub time: Moment,
    /// Unit of bare numbers: `ns`, `us`, `ms`, `s` or `min`.
    pub time_unit: String,
    /// Column of the rate.
    pub rate: String,
    /// See [`is_rate_unit`].
    pub unit: String,
    /// Column of the delay, if the link is to have it.
    pub delay: Option<String>,
    /// Unit of bare delays: `ns`, `us`, `ms`, `s` or `min`.
    pub delay_unit: String,
    /// Only use rows with this value in this column.
    pub only: Option<(String, String)>,
}

/// How a row defines its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// The column has the time from which the row holds.
    At(String),
    /// The column has the duration of the row.
    Lasts(String),
    /// Each row holds for this many ns.
    Every(u64),
}

/// The header to put a link under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// `[link]`: both directions.
    Link,
    /// `[up]`: egress.
    Up,
    /// `[down]`: ingress.
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

/// Returns the table of tc's `distribution NAME`: the first NAME.dist that exists.
pub type Tables<'a> = &'a dyn Fn(&str) -> Option<PathBuf>;

/// Searches tc's folders for tables: `$TC_LIB_DIR`, or the folders of the distributions.
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

/// Returns the profile for a netem command: `tc qdisc add dev eth0 root netem ...`, or its part
/// from `netem` or its first option on; also for a script with such a command, and for the output
/// of `tc qdisc show`. If there is a device and an ifb, the ifb is `down`.
///
/// # Errors
/// The mistake in the command at which tc would stop, or the first property that emud does not
/// support.
pub fn netem(command: &str, header: Header, tables: Tables) -> Result<Imported, TextError> {
    let text = shell::expanded(command);
    tc_script::read(&text, None)
        .and_then(|script| netem_profile::profile(&script, header, tables))
        .map_err(|mistake| mistakes("command", &text, mistake))
}

/// Returns the profile of a tree of qdiscs in a script, or in what tc prints: a bottleneck with classes, or a link.
/// `device` is the one that counts, if there are several; `rate` (bit/s) is the device's, where the tree has none.
///
/// # Errors
/// As [`netem()`], or a tree that is no bottleneck.
pub fn tc(
    script: &str,
    origin: &str,
    header: Header,
    device: Option<&str>,
    rate: Option<u64>,
    tables: Tables,
) -> Result<Imported, TextError> {
    let text = shell::expanded(script);
    let profile = || {
        if let Some(tree) = tc_tree::Tree::read(&text, device)? {
            return tc_tree_toml::profile(&tree, header, rate, tables);
        }
        let mut script = tc_script::read(&text, device)?;
        let unused = rate.map(|_| "`--rate`: a netem has the rate of its tree, or none".to_owned());
        script.warnings.extend(unused);
        netem_profile::profile(&script, header, tables)
    };
    profile().map_err(|mistake| mistakes(origin, &text, mistake))
}

/// Returns the profile measured by ping; `origin` is the name of the log in messages.
///
/// # Errors
/// A line that resembles a reply but is not one, or a log without replies.
pub fn ping(log: &str, origin: &str) -> Result<Imported, TextError> {
    let imported = PingLog::parse(log)
        .map(|log| ping_toml::profile(&log, origin))
        .map_err(|mistake| mistakes(origin, log, mistake))?;
    readable(imported, origin)
}

/// Returns a profile whose delay and loss follow a ping, a row for each echo; `interval_ns` is the time
/// between two echoes of a log without time stamps, `beside` the name of a file next to the profile, for
/// rows that do not fit into the profile.
///
/// # Errors
/// As [`ping()`], or replies without time stamps, if there is no interval.
pub fn ping_trace(
    log: &str,
    origin: &str,
    interval_ns: Option<u64>,
    beside: Option<&str>,
) -> Result<Imported, TextError> {
    let imported = PingLog::parse(log)
        .and_then(|log| ping_trace::profile(&log, origin, interval_ns, beside))
        .map_err(|mistake| mistakes(origin, log, mistake))?;
    match imported.beside {
        // Its rows are in a file that is not written yet.
        Some(_) => Ok(imported),
        None => readable(imported, origin),
    }
}

/// Returns the profile, if emud reads it. Its figures are of the whole log: a mistake is shown in the
/// profile, under a name that says so.
fn readable(imported: Imported, origin: &str) -> Result<Imported, TextError> {
    match Profile::parse(&imported.toml, &format!("the profile made of {origin}")) {
        Err(ProfileError::Text(error)) => Err(error),
        _ => Ok(imported),
    }
}

/// Returns a profile with the rate of a log; `origin` is the name of the log in messages, `beside`
/// the name of a file next to the profile, for rows that do not fit into the profile.
///
/// # Errors
/// The first invalid row, or missing columns.
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

/// Returns a scenario whose nodes move as in traces: names of files and their texts, of which only
/// GPX has more than one. `beside` is the name of a file next to the scenario, for waypoints that do not
/// fit into it.
///
/// # Errors
/// The first line that is none of a trace, or more nodes or waypoints than fit.
pub fn mobility(files: &[(String, String)], beside: Option<&str>) -> Result<Imported, TextError> {
    let source = |(origin, text): &(String, String)| Source {
        origin: origin.clone(),
        text: text.clone(),
    };
    let files: Vec<Source> = files.iter().map(source).collect();
    mobility::scenario(&files, beside)
        .map_err(|mistake| TextError::Mistakes(Mistakes::new(files, vec![mistake])))
}

fn mistakes(origin: &str, text: &str, mistake: Mistake) -> TextError {
    let source = Source {
        origin: origin.to_owned(),
        text: text.to_owned(),
    };
    TextError::Mistakes(Mistakes::new(vec![source], vec![mistake]))
}
