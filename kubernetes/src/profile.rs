// SPDX-License-Identifier: Apache-2.0
//! The profile of a Link as emud takes it, and the assignments that turn one into another.

use toml::{Table, Value};

/// Name of the link of the peers.
const PEERS: &str = "peers";
/// The tables of a profile that is one link.
const OWN: [&str; 3] = ["link", "up", "down"];
/// Top-level keys that say nothing about packets.
const ABOUT: [&str; 5] = ["name", "description", "source", "seed", "offload"];
/// emud reads the resolver's files and control groups of the agent, which are not those of the pod.
const NOT_OF_POD: [&str; 3] = ["host", "answer", "cgroup"];
/// The keys whose values are paths: of a table of delays, samples, a pattern of losses, a trace and a matrix.
const FILES: [&str; 2] = ["file", "mahimahi"];

/// A profile, and the only addresses it applies to.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    base: Base,
    /// `None`: all.
    peers: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Base {
    Shipped(String),
    Text(Table),
}

/// How emud takes it.
#[derive(Debug, PartialEq)]
pub enum Given {
    /// The name of a shipped profile.
    Shipped(String),
    /// TOML.
    Text(String),
}

impl Profile {
    /// Reads a shipped profile's name, or TOML. A text gets `name`, if it has none. `peers` are sorted and
    /// valid.
    ///
    /// # Errors
    /// A sentence: the text is not TOML, reads files, or cannot be restricted to peers.
    pub fn read(text: &str, name: &str, peers: Option<Vec<String>>) -> Result<Self, String> {
        let word = text.trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if word.is_empty() {
            return Err("the profile is empty".to_owned());
        }
        if word.chars().all(is_name) {
            let base = Base::Shipped(word.to_owned());
            return Ok(Self { base, peers });
        }
        let mut table: Table =
            toml::from_str(text).map_err(|e| format!("the profile is not TOML: {e}"))?;
        inside(&table)?;
        if let Some(key) = table.keys().find(|key| !is_plain(key))
            && peers.is_some()
        {
            return Err(format!(
                "a profile with `{key}` cannot be restricted to peers: it needs [link], [up] and [down] only"
            ));
        }
        table
            .entry("name")
            .or_insert_with(|| Value::String(name.to_owned()));
        let base = Base::Text(table);
        Ok(Self { base, peers })
    }

    /// Returns the seed that the text fixes.
    pub fn seed(&self) -> Option<i64> {
        match &self.base {
            Base::Shipped(_) => None,
            Base::Text(table) => table.get("seed")?.as_integer(),
        }
    }

    /// Returns what emud attaches.
    pub fn given(&self) -> Given {
        let Some(peers) = &self.peers else {
            return match &self.base {
                Base::Shipped(name) => Given::Shipped(name.clone()),
                Base::Text(table) => Given::Text(table.to_string()),
            };
        };
        let (mut out, mut link) = (Table::new(), Table::new());
        match &self.base {
            Base::Shipped(name) => {
                out.insert("name".to_owned(), Value::String(name.clone()));
                link.insert("profile".to_owned(), Value::String(name.clone()));
            }
            Base::Text(table) => {
                for (key, value) in table {
                    match (key.as_str(), value) {
                        ("link", Value::Table(keys)) => link.extend(keys.clone()),
                        ("up" | "down", _) => drop(link.insert(key.clone(), value.clone())),
                        _ => drop(out.insert(key.clone(), value.clone())),
                    }
                }
            }
        }
        let links = Table::from_iter([(PEERS.to_owned(), Value::Table(link))]);
        out.insert("links".to_owned(), Value::Table(links));
        out.insert("rule".to_owned(), rules(peers));
        Given::Text(out.to_string())
    }

    /// Returns the arguments of `emud set` that turn the profile `before` into this one; `None`: it takes a
    /// new attach.
    pub fn changes_from(&self, before: &Self, directions: &[&str]) -> Option<Vec<String>> {
        let mut out = vec![];
        match (&before.base, &self.base) {
            (Base::Shipped(old), Base::Shipped(new)) if old == new => {}
            (Base::Text(old), Base::Text(new)) => {
                let others = |table: &Table| -> Table {
                    let others = table.iter().filter(|(k, _)| !OWN.contains(&k.as_str()));
                    others.map(|(k, v)| (k.clone(), v.clone())).collect()
                };
                if others(old) != others(new) {
                    return None;
                }
                let link = match self.peers {
                    Some(_) => "links.peers.",
                    None => "",
                };
                for direction in directions {
                    out.extend(changed(old, new, direction, link));
                }
            }
            _ => return None,
        }
        match (&before.peers, &self.peers) {
            (None, None) => {}
            (Some(old), Some(new)) if old == new => {}
            (Some(_), Some(new)) => out.push(format!("rule={}", rules(new))),
            _ => return None,
        }
        Some(out)
    }
}

fn is_plain(key: &str) -> bool {
    OWN.contains(&key) || ABOUT.contains(&key)
}

/// The keys of a direction that differ: first without a value, because a value of several keys is
/// merged with the previous one, then as `[link]` and `[up]` or `[down]` give them.
fn changed(old: &Table, new: &Table, direction: &str, link: &str) -> Vec<String> {
    let empty = Table::new();
    let table = |of: &'_ Table, name: &str| match of.get(name) {
        Some(Value::Table(table)) => table.clone(),
        _ => empty.clone(),
    };
    let both = |of: &Table| [table(of, "link"), table(of, direction)];
    let (old, new) = (both(old), both(new));
    let mut keys: Vec<&String> = old.iter().chain(&new).flat_map(Table::keys).collect();
    keys.sort();
    keys.dedup();
    let mut out = vec![];
    for key in keys {
        let of = |tables: &[Table; 2]| [tables[0].get(key).cloned(), tables[1].get(key).cloned()];
        let (old, new) = (of(&old), of(&new));
        if old == new {
            continue;
        }
        out.push(format!("{link}{direction}.{key}=none"));
        let values = new.into_iter().flatten();
        out.extend(values.map(|value| format!("{link}{direction}.{key}={value}")));
    }
    out
}

/// Packets to the peers and from them take the link, all others pass.
fn rules(peers: &[String]) -> Value {
    let text = |text: &str| Value::String(text.to_owned());
    let rule = |(direction, address): (&str, &str), peer: &str| {
        let matched = Table::from_iter([(address.to_owned(), text(peer))]);
        Value::Table(Table::from_iter([
            ("match".to_owned(), Value::Table(matched)),
            ("direction".to_owned(), text(direction)),
            ("link".to_owned(), text(PEERS)),
        ]))
    };
    let ends = [("up", "destination"), ("down", "source")];
    let of_peer = |peer: &String| ends.map(|end| rule(end, peer));
    let mut all: Vec<Value> = peers.iter().flat_map(of_peer).collect();
    let pass = Table::from_iter([("link".to_owned(), text("none"))]);
    all.push(Value::Table(pass));
    Value::Array(all)
}

/// Who may create a Link must not make the agent, which is root, read a file of the node.
fn inside(table: &Table) -> Result<(), String> {
    for (key, value) in table {
        match (key.as_str(), value) {
            (key, _) if FILES.contains(&key) => {
                return Err(format!(
                    "`{key}`: a profile of a Link reads no files: write the values into the profile"
                ));
            }
            ("profile", Value::String(name)) if name.contains('/') || name.ends_with(".toml") => {
                return Err(format!(
                    "profile = {name:?}: a profile of a Link reads no files: use the name of a shipped profile"
                ));
            }
            ("match", Value::Table(conditions)) => {
                if let Some(key) = NOT_OF_POD.iter().find(|key| conditions.contains_key(**key)) {
                    return Err(format!(
                        "`{key}` would be resolved on the node, not in the pod: use `source` and `destination`"
                    ));
                }
            }
            // Their names are not keys.
            ("links", Value::Table(links)) => links.values().try_for_each(inside_value)?,
            _ => inside_value(value)?,
        }
    }
    Ok(())
}

fn inside_value(value: &Value) -> Result<(), String> {
    match value {
        Value::Table(table) => inside(table),
        Value::Array(values) => values.iter().try_for_each(inside_value),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, peers: Option<&[&str]>) -> Result<Profile, String> {
        let peers = peers.map(|peers| peers.iter().map(|p| (*p).to_owned()).collect());
        Profile::read(text, "default/slow", peers)
    }

    #[test]
    fn names_and_texts() {
        let given = |text| read(text, None).unwrap().given();
        assert_eq!(given(" lte\n"), Given::Shipped("lte".to_owned()));
        let Given::Text(text) = given("[link]\ndelay = '5ms'") else {
            panic!()
        };
        let expected = "name = \"default/slow\"\n\n[link]\ndelay = \"5ms\"\n";
        assert_eq!(text, expected);
        assert_eq!(read("seed = 7", None).unwrap().seed(), Some(7));
        for (wrong, message) in [
            ("", "empty"),
            ("delay", "delay"),
            ("delay: 5ms", "not TOML"),
            ("[link]\ntrace = { file = '/etc/shadow' }", "`file`"),
            (
                "[link]\ntrace = { \"fi\\u006ce\" = '/etc/shadow' }",
                "`file`",
            ),
            (
                "[links.a.up]\ntrace = { mahimahi = '/etc/shadow' }",
                "`mahimahi`",
            ),
            ("[matrix]\nfile = 'a.csv'", "`file`"),
            ("[links.a]\nprofile = '/etc/shadow'", "/etc/shadow"),
            ("[links.a]\nprofile = 'x.toml'", "x.toml"),
            (
                "[[rule]]\nmatch = { host = 'a.example' }\nlink = 'none'",
                "`host`",
            ),
        ] {
            match read(wrong, None) {
                Ok(profile) => assert_eq!(profile.given(), Given::Shipped(wrong.to_owned())),
                Err(e) => assert!(e.contains(message), "{wrong}: {e}"),
            }
        }
    }

    #[test]
    fn peers_are_rules() {
        let peers: &[&str] = &["10.0.0.0/8", "fd00::1"];
        let text = "seed = 3\n[link]\ndelay = '5ms'\n[up]\nrate = '1Mbit'";
        let Given::Text(text) = read(text, Some(peers)).unwrap().given() else {
            panic!()
        };
        let table: Table = toml::from_str(&text).unwrap();
        assert_eq!(table["links"]["peers"]["delay"].as_str(), Some("5ms"));
        assert_eq!(
            table["links"]["peers"]["up"]["rate"].as_str(),
            Some("1Mbit")
        );
        let rules = table["rule"].as_array().unwrap();
        assert_eq!(rules.len(), 5);
        assert_eq!(
            rules[1].to_string(),
            "{ direction = \"down\", link = \"peers\", match = { source = \"10.0.0.0/8\" } }"
        );
        assert_eq!(rules[4].to_string(), "{ link = \"none\" }");
        let many = read("[links.a]\ndelay = '5ms'", Some(peers));
        assert!(many.unwrap_err().contains("`links`"));
    }

    #[test]
    fn a_change_is_the_keys_that_differ() {
        let directions = ["up", "down"];
        let changes = |old: &str, new: &str| {
            let old = read(old, None).unwrap();
            read(new, None).unwrap().changes_from(&old, &directions)
        };
        let base = "[link]\ndelay = '5ms'\n[up]\nrate = '1Mbit'\n";
        assert_eq!(changes(base, base).unwrap(), Vec::<String>::new());
        assert_eq!(
            changes(base, "[link]\ndelay = { mean = '9ms', jitter = '1ms' }").unwrap(),
            [
                "up.delay=none",
                "up.delay={ jitter = \"1ms\", mean = \"9ms\" }",
                "up.rate=none",
                "down.delay=none",
                "down.delay={ jitter = \"1ms\", mean = \"9ms\" }"
            ]
        );
        assert_eq!(
            changes(
                "[up]\nrate='1Mbit'",
                "[link]\nrate='2Mbit'\n[up]\nrate='1Mbit'"
            )
            .unwrap(),
            [
                "up.rate=none",
                "up.rate=\"2Mbit\"",
                "up.rate=\"1Mbit\"",
                "down.rate=none",
                "down.rate=\"2Mbit\""
            ]
        );
        assert_eq!(changes(base, "seed = 1\n[link]\ndelay = '5ms'"), None);
        assert_eq!(changes(base, "lte"), None);
        assert_eq!(changes("lte", "lte").unwrap(), Vec::<String>::new());
        assert_eq!(changes("lte", "dsl"), None);
    }

    #[test]
    fn changed_peers_are_new_rules() {
        let old = read("lte", Some(&["10.0.0.1"])).unwrap();
        let new = read("lte", Some(&["10.0.0.2"])).unwrap();
        let changes = new.changes_from(&old, &["up", "down"]).unwrap();
        assert_eq!(changes.len(), 1);
        assert!(changes[0].starts_with("rule=[{ direction = \"up\", link = \"peers\", match = { destination = \"10.0.0.2\" } },"), "{}", changes[0]);
        let all = read("lte", None).unwrap();
        assert_eq!(all.changes_from(&old, &["up"]), None);
    }

    #[test]
    fn a_change_of_the_link_of_the_peers_names_it() {
        let of = |text, peer| read(text, Some(&[peer])).unwrap();
        let old = of("[link]\ndelay = '5ms'\n[down]\nrate = '1Mbit'", "10.0.0.1");
        let text = "[link]\ndelay = '9ms'\n[down]\nrate = '1Mbit'";
        let delays = ["up", "down"].map(|direction| {
            ["none", "\"9ms\""].map(|value| format!("links.peers.{direction}.delay={value}"))
        });
        let delays = delays.concat();
        let changes = of(text, "10.0.0.1").changes_from(&old, &["up", "down"]);
        assert_eq!(changes.unwrap(), delays);
        let changes = of(text, "10.0.0.2").changes_from(&old, &["up"]).unwrap();
        assert_eq!(changes[..2], delays[..2]);
        assert!(changes[2].starts_with("rule="), "{changes:?}");
        assert_eq!(changes.len(), 3);
    }
}
