// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of values of a scenario's keys.

use std::str::FromStr;
use std::time::Duration;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

use crate::text::{At, Located, Mistake, Time, Value, duration, kinds};

kinds! {
    /// The name of a scenario.
    Name: String = name, |name| toml(name.as_str());
    /// Text without a zero byte, such as a shell command.
    Plain: String = string, |text| toml(text.as_str());
    /// Several texts; a single one needs no brackets.
    Plains: Vec<String> = plains, |texts| toml(texts.clone());
    /// Names of nodes.
    Names: NodeNames = names, |names| toml(names.iter().collect::<Vec<_>>());
    /// The two nodes of a link.
    TwoNames: [Located<String>; 2] = two_names, |names| toml(Vec::from(names.each_ref().map(|n| n.value.as_str())));
    /// A command: text is for the shell, an array is an argument vector.
    Command: Program = program, |program| toml(program.argv());
    /// A duration.
    Lasting: Duration = lasting, |time| toml(Time(time.as_nanos() as u64).to_string());
    /// A duration above 0.
    SomeLasting: Duration = some_lasting, Lasting::text;
    /// A position in m.
    Point: [f64; 2] = position, |[x, y]| format!("[{x}, {y}]");
    /// Positions with their times in ns from the first one on.
    Waypoints: Vec<(u64, [f64; 2])> = path, |path| waypoints(path);
    /// A share, relative to others.
    Weight: f64 = weight, |share: &f64| share.to_string();
    /// A value that is read later.
    Later: Value = |value: &Located<Value>, _| Ok(value.value.clone()), |value| value.kind().to_owned();
    /// The network of all addresses.
    Network: Ipv4Net = network, |net| toml(net.to_string());
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// Arguments as given on the command line.
    Argv(Vec<String>),
    /// A command for `sh -c`.
    Shell(String),
    /// The user's shell, at the terminal.
    Interactive,
}

/// Names of nodes with their positions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct NodeNames(pub(crate) Vec<Located<String>>);

impl NodeNames {
    /// Returns the names in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| name.value.as_str())
    }
}

/// Names that no file has.
impl From<Vec<String>> for NodeNames {
    fn from(names: Vec<String>) -> Self {
        let located = |value| Located {
            value,
            at: At::START,
        };
        Self(names.into_iter().map(located).collect())
    }
}

impl From<NodeNames> for Vec<String> {
    fn from(names: NodeNames) -> Self {
        names.0.into_iter().map(|name| name.value).collect()
    }
}

/// Returns whether `name` is the name of a node, or a pattern that matches it.
pub(super) fn is_meant(name: &str, node: &str) -> bool {
    match name.strip_suffix('*') {
        Some(prefix) => node.starts_with(prefix),
        None => node == name,
    }
}

fn toml(value: impl Into<toml::Value>) -> String {
    value.into().to_string()
}

fn string(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    let (title, help) = match &value.value {
        Value::Text(text) if !text.contains('\0') => return Ok(text.clone()),
        Value::Text(_) => (
            format!("`{key}` has a zero byte"),
            "leave it out".to_owned(),
        ),
        other => (
            format!("`{key}` cannot be {}", other.kind()),
            format!("write text: {key} = \"...\""),
        ),
    };
    Err(Mistake::new(&value.at, title, help))
}

fn name(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
    let text = string(value, key)?;
    if text.is_empty() || text.len() > 64 || text.contains(char::is_control) {
        let help = "write up to 64 bytes on one line, such as name = \"two-relays\"";
        return Err(Mistake::new(&value.at, "this is not a name", help));
    }
    Ok(text)
}

fn plains(value: &Located<Value>, key: &str) -> Result<Vec<String>, Mistake> {
    let names = names(value, key)?.0.into_iter();
    Ok(names.map(|text| text.value).collect())
}

fn names(value: &Located<Value>, key: &str) -> Result<NodeNames, Mistake> {
    let one = |item: &Located<Value>| {
        let at = item.at.clone();
        string(item, key).map(|value| Located { value, at })
    };
    let names = match &value.value {
        Value::List(items) => items.iter().map(one).collect(),
        Value::Text(_) => one(value).map(|name| vec![name]),
        _ => {
            let help = format!("write texts in brackets: {key} = [\"...\", \"...\"]");
            Err(Mistake::wrong_kind(value, key, help))
        }
    };
    names.map(NodeNames)
}

fn two_names(value: &Located<Value>, key: &str) -> Result<[Located<String>; 2], Mistake> {
    let mistake = |title: String| {
        let help = "a link has two ends: between = [\"client\", \"server\"]";
        Mistake::new(&value.at, title, help)
    };
    let names = match &value.value {
        Value::List(_) => names(value, key)?.0,
        other => return Err(mistake(format!("`{key}` cannot be {}", other.kind()))),
    };
    match <[_; 2]>::try_from(names) {
        Ok([one, other]) if one.value == other.value => {
            Err(mistake(format!("a link from `{}` to itself", one.value)))
        }
        Ok(names) => Ok(names),
        Err(names) => Err(mistake(format!("`{key}` has {} names", names.len()))),
    }
}

fn program(value: &Located<Value>, key: &str) -> Result<Program, Mistake> {
    let program = match &value.value {
        Value::List(_) => Program::Argv(plains(value, key)?),
        _ => Program::Shell(string(value, key)?),
    };
    let empty = match &program {
        Program::Argv(argv) => argv.first().is_none_or(String::is_empty),
        Program::Shell(text) => text.trim().is_empty(),
        Program::Interactive => false,
    };
    if empty {
        let help = "write command = \"ping -c 5 server\", or leave it out to run nothing here";
        return Err(Mistake::new(&value.at, "the command is empty", help));
    }
    Ok(program)
}

fn lasting(value: &Located<Value>, key: &str) -> Result<Duration, Mistake> {
    duration(value, key).map(Duration::from_nanos)
}

fn some_lasting(value: &Located<Value>, key: &str) -> Result<Duration, Mistake> {
    match lasting(value, key)? {
        Duration::ZERO => {
            let help = format!("write a time above 0, such as {key} = \"30s\"");
            Err(Mistake::new(&value.at, format!("`{key}` is 0"), help))
        }
        time => Ok(time),
    }
}

fn network(value: &Located<Value>, key: &str) -> Result<Ipv4Net, Mistake> {
    let text = string(value, key)?;
    let (title, help) = match Ipv4Net::from_str(&text) {
        Ok(net) if net != net.trunc() => (
            format!("`{text}` has host bits set"),
            format!("write \"{}\"", net.trunc()),
        ),
        Ok(net) if (8..=28).contains(&net.prefix_len()) => return Ok(net),
        _ => (
            format!("`{text}` cannot be the network of a scenario"),
            format!("write an IPv4 prefix of 8 to 28 bits, such as {key} = \"10.77.0.0/16\""),
        ),
    };
    Err(Mistake::new(&value.at, title, help))
}

/// Reads a number above 0.
fn weight(value: &Located<Value>, key: &str) -> Result<f64, Mistake> {
    const LARGEST: f64 = 1e6;
    let number = match &value.value {
        Value::Number(text) => text.replace('_', "").parse::<f64>().ok(),
        _ => None,
    };
    match number.filter(|number| *number > 0.0 && *number <= LARGEST) {
        Some(number) => Ok(number),
        None => {
            let help = format!("write a number above 0 and up to 1000000, such as {key} = 2");
            Err(Mistake::new(
                &value.at,
                format!("`{key}` is no weight"),
                help,
            ))
        }
    }
}

/// Reads a position in metres: [x, y].
fn position(value: &Located<Value>, _: &str) -> Result<[f64; 2], Mistake> {
    const FARTHEST_M: f64 = 1e7;
    let number = |item: &Located<Value>| match &item.value {
        Value::Number(text) => text.replace('_', "").parse::<f64>().ok(),
        _ => None,
    };
    let found = match &value.value {
        Value::List(items) => items.iter().map(number).collect::<Option<Vec<f64>>>(),
        _ => None,
    };
    match found.as_deref() {
        Some([x, y]) if x.abs() <= FARTHEST_M && y.abs() <= FARTHEST_M => Ok([*x, *y]),
        _ => {
            let help = "write x and y in metres, such as at = [200, 0]";
            Err(Mistake::new(&value.at, "this is no position", help))
        }
    }
}

/// Reads waypoints: [{ at = [0, 0] }, { at = [60, 0], after = "60s" }]. Returns them with their times
/// in ns from the first one on.
fn path(value: &Located<Value>, _: &str) -> Result<Vec<(u64, [f64; 2])>, Mistake> {
    let help = "write waypoints: path = [{ at = [0, 0] }, { at = [60, 0], after = \"60s\" }]";
    let Value::List(items) = &value.value else {
        return Err(Mistake::wrong_kind(value, "path", help));
    };
    let mut waypoints = Vec::new();
    let mut now_ns = 0_u64;
    for item in items {
        let Value::Table(entries) = &item.value else {
            return Err(Mistake::new(&item.at, "this is no waypoint", help));
        };
        let mut at = None;
        for entry in entries {
            match entry.key.value.as_str() {
                "at" => at = Some(position(&entry.value, "at")?),
                "after" => now_ns = now_ns.saturating_add(duration(&entry.value, "after")?),
                _ => {
                    let title = format!("a waypoint has no `{}`", entry.key.value);
                    return Err(Mistake::new(
                        &entry.key.at,
                        title,
                        "its keys are at and after",
                    ));
                }
            }
        }
        let at = at.ok_or_else(|| Mistake::new(&item.at, "a waypoint without `at`", help))?;
        waypoints.push((now_ns, at));
    }
    match waypoints.first() {
        Some((0, _)) => Ok(waypoints),
        _ => {
            let help = "the first waypoint is the position at the beginning, without `after`";
            Err(Mistake::new(&value.at, "the path does not begin", help))
        }
    }
}

fn waypoints(path: &[(u64, [f64; 2])]) -> String {
    let mut before_ns = 0;
    let one = |(now_ns, [x, y]): &(u64, [f64; 2])| {
        let after = Time(now_ns - std::mem::replace(&mut before_ns, *now_ns));
        match after.0 {
            0 => format!("{{ at = [{x}, {y}] }}"),
            _ => format!("{{ at = [{x}, {y}], after = \"{after}\" }}"),
        }
    };
    format!("[{}]", path.iter().map(one).collect::<Vec<_>>().join(", "))
}
