// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds tc's commands in text that users paste: one command, a script, or the output of `tc qdisc
//! show`.

use super::shell::{Word, Words, commands};
use super::tc_filter::{Filter, filter, in_order};
use super::tc_handle::{canonical, major};
use super::tc_keep::keep;
use super::tc_location::{outside, place, quoted};
use super::tc_made::{Made, begins};
use crate::text::Mistake;

/// A command of tc.
struct Command<'a> {
    /// As [`Made::place`].
    place: String,
    /// The tokens after `tc` and its global options.
    words: Vec<Word<'a>>,
}

/// A qdisc that another one replaces, with its filters.
pub(crate) struct Gone<'a> {
    place: String,
    device: Option<&'a str>,
    /// Position of the other one in the text.
    end: usize,
    /// Major number; `None`: it is the root, with all others of the device.
    major: Option<String>,
}

/// What the commands of a text leave.
#[derive(Default)]
pub(crate) struct Left<'a> {
    /// The last qdisc or class for each position, in the order of the text.
    pub made: Vec<Made<'a>>,
    pub gone: Vec<Gone<'a>>,
}

/// Returns the filters that select a class, in the order in which the kernel checks them; only those of commands that run
/// there, and of one device, if it is named.
pub(crate) fn filters<'a>(
    text: &'a str,
    device: Option<&str>,
    place: &str,
    gone: &[Gone],
    warnings: &mut Vec<String>,
) -> Result<Vec<Filter<'a>>, Mistake> {
    let mut all: Vec<Filter> = Vec::new();
    let found = found(text).into_iter();
    for Command { words, .. } in found.filter(|command| command.place == place) {
        let behind = |name: &str| {
            let mut rest = words.iter().skip_while(|word| word.value != name).skip(1);
            rest.next().map(|word| word.value)
        };
        let own = behind("dev");
        if device.is_some() && own != device {
            continue;
        }
        let start = words.first().map_or(0, |word| word.at.span.start);
        let parent = behind("parent").map(canonical);
        let is_gone = |gone: &Gone| {
            let is_its =
                gone.major.is_none() || gone.major.as_deref() == parent.as_deref().map(major);
            start < gone.end && gone.place == place && gone.device == own && is_its
        };
        if gone.iter().any(is_gone) {
            continue;
        }
        let deletes = words
            .get(1)
            .is_some_and(|verb| begins(verb.value, "delete"));
        let is_ingress = words.iter().any(|word| word.value == "ingress")
            || parent.as_deref().map(major) == Some("ffff");
        let mut words = Words::new(words);
        if !words
            .next()
            .is_some_and(|object| begins(object.value, "filter"))
        {
            continue;
        }
        if deletes && !is_ingress && all.iter().any(|filter| filter.device == own) {
            let device = own.unwrap_or("a device");
            let text =
                format!("`tc filter del`: the filters of {device} in front of it are still there");
            if !warnings.contains(&text) {
                warnings.push(text);
            }
        }
        all.extend(filter(&mut words)?);
    }
    Ok(in_order(all))
}

/// Returns tc's commands.
fn found(text: &str) -> Vec<Command<'_>> {
    match of_tc(text, &commands(text, true)) {
        // The prompt of root before the only command.
        none if none.is_empty() => of_tc(text, &commands(text, false)),
        found => found,
    }
}

/// Returns the qdiscs and classes that a text leaves.
pub(crate) fn made(text: &str) -> Result<Left<'_>, Mistake> {
    let found = found(text);
    let mut left = Left::default();
    if found.is_empty() {
        left.made.extend(alone(commands(text, true)));
        return Ok(left);
    }
    let mut other = None;
    for Command { place, words } in found {
        let first = words.first().map(|word| word.at.clone());
        match one(words)? {
            Some(mut made) => {
                made.place = place;
                let before = left.made.iter().position(|m| is_same(m, &made));
                if let Some(before) = before.map(|place| left.made.remove(place)) {
                    replaces(text, &mut made, &before, &mut left);
                }
                left.made.push(made);
            }
            None => other = other.or(first),
        }
    }
    match (left.made.is_empty(), other) {
        (true, Some(at)) => {
            let help = "write tc qdisc add dev eth0 root netem ..., the part from netem on, or what \
                        tc qdisc show prints";
            Err(Mistake::new(
                &at,
                "this command does not create a netem",
                help,
            ))
        }
        _ => Ok(left),
    }
}

/// Returns whether `made` is at the position of `other`: a class has an id, and a qdisc a parent, or
/// only a handle in a command that changes it.
fn is_same(other: &Made, made: &Made) -> bool {
    let of_one_kind = other.is_beside(made) && other.is_class == made.is_class;
    of_one_kind
        && match made.is_class || (made.by_id && made.changes) {
            true => other.handle == made.handle,
            false => other.parent == made.parent,
        }
}

/// Takes from the qdisc or class `before` what the kernel keeps, or removes what was below it from the
/// others (tc_modify_qdisc() of sch_api.c).
fn replaces<'a>(text: &str, made: &mut Made<'a>, before: &Made<'a>, left: &mut Left<'a>) {
    if made.by_id {
        made.parent.clone_from(&before.parent);
    }
    if made.is_class {
        return;
    }
    let is_it = made.handle.is_none() || made.handle == before.handle;
    if made.changes && is_it && made.kind.value == before.kind.value {
        made.handle.clone_from(&before.handle);
        if made.kind.value == "netem" {
            keep(text, made, before);
        }
        return;
    }
    let end = made.kind.at.span.start;
    let mut filters_of = |major: Option<String>| {
        left.gone.push(Gone {
            place: made.place.clone(),
            device: made.device,
            end,
            major,
        });
    };
    if made.parent.is_none() {
        filters_of(None);
    }
    let mut gone: Vec<String> = before.handle.iter().map(|h| major(h).to_owned()).collect();
    while let Some(handle) = gone.pop() {
        filters_of(Some(handle.clone()));
        left.made.retain(|m| {
            let parent = m.parent.as_deref().map(major);
            let is_below = m.is_beside(made) && parent == Some(handle.as_str());
            if is_below && !m.is_class {
                gone.extend(m.handle.iter().map(|h| major(h).to_owned()));
            }
            !is_below
        });
    }
}

/// Returns the commands of tc among them.
fn of_tc<'a>(text: &str, commands: &[Vec<Word<'a>>]) -> Vec<Command<'a>> {
    let quotes = quoted(text);
    let mut all: Vec<Command> = Vec::new();
    for words in commands {
        let start = words.first().map_or(0, |word| word.at.span.start);
        let before = all.last().map(|command| command.place.as_str());
        all.extend(behind_tc(outside(commands, &quotes, start), words, before));
    }
    // `which tc` also contains tc, but has no options.
    if all.iter().any(|command| !command.words.is_empty()) {
        all.retain(|command| !command.words.is_empty());
    }
    all
}

/// Returns the command after `tc` and its global options, or a line of a batch or of `tc qdisc
/// show`, which runs where the command before did.
fn behind_tc<'a>(
    outside: &[Word],
    words: &[Word<'a>],
    place_before: Option<&str>,
) -> Option<Command<'a>> {
    // Also `$(which tc)`.
    const NAMES: [&str; 5] = ["tc", "tc)", "$TC", "${TC}", "$tc"];
    let is_path = |word: &str| word.ends_with("/tc") && !word.contains('=');
    let is_tc = |word: &Word| NAMES.contains(&word.value) || is_path(word.value);
    let (before, mut words) = match words.iter().rposition(is_tc) {
        Some(tc) => (&words[..tc], &words[tc + 1..]),
        None => {
            let is_object = |word: &Word| ["qdisc", "class", "filter"].contains(&word.value);
            words.first().filter(|word| is_object(word))?;
            return Some(Command {
                place: place_before.unwrap_or_default().to_owned(),
                words: words.to_vec(),
            });
        }
    };
    let mut netns = None;
    while let [option, rest @ ..] = words
        && option.value.starts_with('-')
    {
        words = rest;
        if let ("-n" | "-net" | "-netns", [name, rest @ ..]) = (option.value, words) {
            (netns, words) = (Some(name.value), rest);
        }
    }
    let before = outside.iter().chain(before).map(|word| word.value);
    Some(Command {
        place: place(before, netns),
        words: words.to_vec(),
    })
}

/// Returns the part from `netem` on, or only its options.
fn alone(commands: Vec<Vec<Word<'_>>>) -> Option<Made<'_>> {
    let mut words = commands.into_iter().next()?;
    while words
        .first()
        .is_some_and(|word| matches!(word.value, "$" | "sudo"))
    {
        words.remove(0);
    }
    let start = words.first()?.at.clone();
    let kind = Word {
        value: "netem",
        at: start,
    };
    let mut options = Words::new(words);
    options.skip("netem");
    Some(Made {
        kind,
        is_class: false,
        shown: false,
        changes: false,
        by_id: false,
        kept: Vec::new(),
        place: String::new(),
        device: None,
        parent: None,
        handle: None,
        options,
    })
}

/// Returns `None` if it creates nothing relevant.
fn one(words: Vec<Word<'_>>) -> Result<Option<Made<'_>>, Mistake> {
    let mut words = Words::new(words);
    let object = words.argument("tc", "qdisc add dev eth0 root netem ...")?;
    let is_class = match object.value {
        word if begins(word, "qdisc") => false,
        word if begins(word, "class") => true,
        _ => return Ok(None),
    };
    let verb = words.argument(object.value, "add dev eth0 root netem ...")?;
    let made = ["add", "change", "replace", "link"];
    let others = ["delete", "show", "list", "get"];
    let is = |verbs: &[&str]| verbs.iter().any(|known| begins(verb.value, known));
    if !is(&made) && is(&others) {
        return Ok(None);
    }
    // The output of tc has the kind there: qdisc netem 8001: root refcnt 2 limit 1000.
    let shown = !is(&made);
    let mut kind = shown.then(|| verb.clone());
    let (mut device, mut parent, mut handle) = (None, None, None);
    let mut is_root = false;
    if shown {
        handle = words.next().map(|word| canonical(word.value));
    }
    let help = "write dev eth0 root netem ..., or the part from netem on";
    loop {
        match words.peek() {
            Some("root") => {
                words.next();
                is_root = true;
            }
            Some("dev") => {
                words.next();
                device = Some(words.argument("dev", "eth0")?.value);
            }
            Some("parent") => {
                words.next();
                parent = Some(canonical(words.argument("parent", "1:1")?.value));
            }
            Some(word @ ("handle" | "classid" | "refcnt")) => {
                words.next();
                let value = words.argument(word, "1:")?;
                if word != "refcnt" {
                    handle = Some(canonical(value.value));
                }
            }
            Some(_) if kind.is_none() => kind = words.next(),
            _ => break,
        }
    }
    let Some(kind) = kind else {
        return Err(Mistake::new(&words.end, "there is no `netem`", help));
    };
    // Beside the root of the device, which remains.
    if matches!(kind.value, "ingress" | "clsact") {
        return Ok(None);
    }
    Ok(Some(Made {
        kind,
        is_class,
        shown,
        changes: is(&["change", "replace"]),
        by_id: !shown && !is_root && parent.is_none() && handle.is_some(),
        kept: Vec::new(),
        place: String::new(),
        device,
        parent,
        handle,
        options: words,
    }))
}
