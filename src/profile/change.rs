// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes to a profile in force: `emud set eth0 up.delay=80ms loss=1%`.

use super::read::Draft;
use crate::abi::{EMUD_DOWN, EMUD_UP};

use super::{Profile, ProfileError, bottleneck_read, draft, keys, links, rules_read};
use crate::text::{At, Entry, Located, Mistake, Reader, Source, Value, document, toml_value};

/// Which directions an assignment is for.
#[derive(Clone, Copy)]
struct Directions {
    up: bool,
    down: bool,
}

impl Profile {
    /// This profile with `assignments` applied in order, all or none.
    ///
    /// An assignment is `key=value`, for one direction with `up.` or `down.` in front, and before
    /// that `links.NAME.` for a named link; `bottleneck.NAME.` or `bottleneck.NAME.class.CLASS.`
    /// for those. Keys are those of a link and `delay.mean`, `delay.jitter` and so on; values are as in a profile,
    /// bare (`80ms`) or TOML (`{mean="80ms"}`); `none` takes a key away. `rule` takes all rules away except
    /// those of [`Profile::spare`]. Messages call the assignments "argument 1", "argument 2".
    ///
    /// # Errors
    /// All mistakes in `assignments`, alone and together with what is in force.
    pub fn with_changes(&self, assignments: &[String]) -> Result<Self, ProfileError> {
        let mut reader = Reader::default();
        let mut draft = Draft::default();
        let spared = self.spared();
        let text = self.to_toml();
        match document(0, &text) {
            Ok(entries) => draft.read(&mut reader, &entries),
            Err(mistakes) => reader.mistakes = mistakes,
        }
        let mut sources = vec![Source {
            origin: "the profile in force".to_owned(),
            text,
        }];
        for assignment in assignments {
            let source = sources.len();
            match Assignment::read(source, assignment) {
                Ok(assignment) => assignment.apply(&mut reader, &mut draft, spared),
                Err(mistake) => reader.mistakes.push(mistake),
            }
            let origin = format!("argument {source}");
            sources.push(Source {
                origin,
                text: assignment.clone(),
            });
        }
        draft.finish(reader, sources)
    }
}

/// Returns the direction that an assignment of [`Profile::with_changes`] is for; `None`: both, or there is
/// a mistake in it.
pub fn direction_of(assignment: &str) -> Option<u32> {
    match Assignment::read(0, assignment).ok()?.target {
        Target::Link { directions, .. } => match directions {
            Directions { down: false, .. } => Some(EMUD_UP),
            Directions { up: false, .. } => Some(EMUD_DOWN),
            _ => None,
        },
        Target::Bottleneck { .. } => None,
    }
}

struct Assignment {
    target: Target,
    entry: Entry,
}

/// What is changed.
enum Target {
    Link {
        /// None: the profile's own.
        name: Option<Located<String>>,
        directions: Directions,
    },
    Bottleneck {
        name: Located<String>,
        class: Option<Located<String>>,
    },
}

impl Assignment {
    fn read(source: usize, text: &str) -> Result<Self, Mistake> {
        let Some((path, _)) = text.split_once('=') else {
            return Err(no_assignment(source, text));
        };
        let value = bare_or_toml(source, text, path.len() + 1)?;
        let mut keys = split(source, path);
        let whole = At {
            source,
            span: 0..path.len(),
        };
        if keys[0].value == "bottleneck" {
            let target = of_bottleneck(&mut keys, &whole)?;
            let entry = nest(keys, value, &whole)?;
            return Ok(Self { target, entry });
        }
        let name = named(&mut keys)?;
        let directions = match keys.first() {
            Some(first) => first.value.as_str(),
            None => "",
        };
        let directions = match directions {
            "up" => Directions {
                up: true,
                down: false,
            },
            "down" => Directions {
                up: false,
                down: true,
            },
            _ => Directions {
                up: true,
                down: true,
            },
        };
        if directions.up != directions.down {
            keys.remove(0);
        }
        Ok(Self {
            target: Target::Link { name, directions },
            entry: nest(keys, value, &whole)?,
        })
    }

    /// Applies the change to a draft. `spared`: as [`Profile::spared`].
    fn apply(&self, reader: &mut Reader, draft: &mut Draft, spared: usize) {
        let (name, directions) = match &self.target {
            Target::Link { name, directions } => (name, directions),
            Target::Bottleneck { name, class } => {
                let place = (name, class.as_ref());
                return bottleneck_read::set(reader, &mut draft.bottlenecks, place, &self.entry);
            }
        };
        let both = directions.up && directions.down;
        if self.entry.key.value == "rule" && name.is_none() && both {
            draft.rules.truncate(spared);
            draft
                .rules
                .extend(rules_read::read(reader, &self.entry.value));
            return;
        }
        let number = match name {
            None => 0,
            Some(name) => match links::find(&draft.links, name) {
                Ok(place) => 1 + place,
                Err(mistake) => return reader.mistakes.push(mistake),
            },
        };
        let wanted = [(EMUD_UP, directions.up), (EMUD_DOWN, directions.down)];
        for (direction, _) in wanted.into_iter().filter(|(_, wanted)| *wanted) {
            let link = draft.links_of(direction).swap_remove(number);
            let shared = link.shared.clone();
            reader.link_key(link, &self.entry);
            if let Some(shared) = &shared {
                draft.keep_queue(direction, number, shared);
            }
        }
    }
}

fn no_assignment(source: usize, text: &str) -> Mistake {
    let span = 0..text.len();
    let (title, help) = match text.trim().ends_with("trace.restart") {
        true => (
            "one link cannot restart alone",
            "all traces and phases of the interface restart at one moment: emud set IFACE \
             trace.restart",
        ),
        false => (
            "there is no `=`",
            "write key=value, such as up.delay=80ms or loss=1%",
        ),
    };
    Mistake::new(&At { source, span }, title, help)
}

/// Takes `bottleneck.NAME` or `bottleneck.NAME.class.CLASS` from the front.
fn of_bottleneck(keys: &mut Vec<Located<String>>, whole: &At) -> Result<Target, Mistake> {
    let has_class = keys.get(2).is_some_and(|key| key.value == "class");
    let names = if has_class { 4 } else { 2 };
    if keys.len() <= names {
        let help = "name the key, such as bottleneck.uplink.rate=10Mbit or \
                    bottleneck.uplink.class.voice.ceil=1Mbit";
        return Err(Mistake::new(whole, "there is no key to be set", help));
    }
    let mut names = keys.drain(..names);
    let (Some(_), Some(name)) = (names.next(), names.next()) else {
        return Err(Mistake::new(whole, "there is no key to be set", ""));
    };
    Ok(Target::Bottleneck {
        name,
        class: names.nth(1),
    })
}

/// Takes `links.NAME` from the front.
fn named(keys: &mut Vec<Located<String>>) -> Result<Option<Located<String>>, Mistake> {
    if keys[0].value != "links" {
        return Ok(None);
    }
    let links = keys.remove(0);
    if keys.is_empty() {
        let help = "name the link and its key, such as links.lte.delay=80ms";
        return Err(Mistake::new(&links.at, "`links` alone cannot be set", help));
    }
    Ok(Some(keys.remove(0)))
}

/// Returns the dotted parts of `path`, at least one.
fn split(source: usize, path: &str) -> Vec<Located<String>> {
    let mut start = 0;
    let part = |part: &str| {
        let span = start..start + part.len();
        start = span.end + 1;
        Located {
            value: part.trim().to_owned(),
            at: At { source, span },
        }
    };
    path.split('.').map(part).collect()
}

/// Converts `delay.jitter` = v to `delay` = { jitter = v }.
fn nest(keys: Vec<Located<String>>, value: Located<Value>, whole: &At) -> Result<Entry, Mistake> {
    let mut keys = keys.into_iter();
    let Some(key) = keys.next() else {
        let help = "name what to change, such as up.delay=80ms";
        return Err(Mistake::new(whole, "a direction alone cannot be set", help));
    };
    if let Some(reason) = fixed(&key.value) {
        return Err(Mistake::new(
            &key.at,
            format!("`{}` cannot be set", key.value),
            reason,
        ));
    }
    let Some(inner) = keys.next() else {
        return Ok(Entry { key, value });
    };
    if let Some(deeper) = keys.next() {
        let help = "no key is more than one level below a link, as `delay.jitter` is";
        return Err(Mistake::new(&deeper.at, "this key is too deep", help));
    }
    if !draft::TABLES.contains(&key.value.as_str()) {
        return Err(match keys::LINK.has(&key.value) {
            true => {
                let help = format!("write {}=...", key.value);
                Mistake::new(
                    &inner.at,
                    format!("`{}` has no keys in it", key.value),
                    help,
                )
            }
            false => keys::unknown(&key, &keys::LINK),
        });
    }
    let at = inner.at.clone();
    let table = Value::Table(vec![Entry { key: inner, value }]);
    Ok(Entry {
        key,
        value: Located { value: table, at },
    })
}

/// Returns why `set` cannot change a key of a profile.
fn fixed(key: &str) -> Option<&'static str> {
    match key {
        "seed" => Some(
            "another seed half-way would make the run impossible to repeat: detach, then \
             attach with --seed",
        ),
        "offload" => Some(
            "segmentation is a setting of the device, made at attach: detach, then attach a \
             profile with the other offload",
        ),
        "instances" | "matrix" => Some(
            "the kernel's room for it is made at attach: detach, then attach a profile with \
             other figures (the pairs of a matrix are changed by `emud apply`)",
        ),
        "phase" | "phases" => Some(
            "phases are fixed at attach: detach, then attach; `emud set IFACE trace.restart` begins \
             with the first one again",
        ),
        "name" | "description" | "source" => Some("it describes where the profile comes from"),
        "link" | "" => {
            Some("name what to change, such as delay=80ms (both directions) or up.delay=80ms")
        }
        _ => None,
    }
}

/// Reads the text after the equals sign: TOML if it starts like TOML, otherwise the bare text.
fn bare_or_toml(source: usize, text: &str, offset: usize) -> Result<Located<Value>, Mistake> {
    let bare = &text[offset..];
    let at = At {
        source,
        span: offset..text.len(),
    };
    if bare.trim().is_empty() {
        let help = "give a value; `none` takes the key away";
        return Err(Mistake::new(
            &At {
                source,
                span: 0..text.len(),
            },
            "there is no value",
            help,
        ));
    }
    if bare.starts_with(['{', '[', '"', '\'']) {
        return toml_value(source, text, offset);
    }
    let bare = bare.trim().to_owned();
    let value = match bare.parse::<f64>() {
        Ok(_) => Value::Number(bare),
        Err(_) => Value::Text(bare),
    };
    Ok(Located { value, at })
}
