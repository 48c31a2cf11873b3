// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[[phase]]` and `[[state]]` as they are written, and whether they go together.

use super::draft::LinkDraft;
use super::kinds::{Flag, Long};
use super::links::{self, MAX_LINKS, NamedDraft};
use super::located::value;
use super::phase::{Phase, Phases};
use super::read::{name, section};
use super::states::{self, NextDraft};
use super::{Link, LinkState, LossModel, keys};
use crate::text::{At, Entry, Kind, Located, Mistake, Reader, Span, Value, Word, quantity};

/// 100 years.
const ALL_NS_MAX: u64 = 3_155_760_000_000_000_000;

#[derive(Debug, Default)]
pub(super) struct PhasesDraft {
    pub(super) list: Vec<PhaseDraft>,
    /// They are written as `[[state]]`.
    pub(super) states: bool,
    repeat: Option<Located<bool>>,
    offset: Option<Located<u64>>,
}

#[derive(Debug)]
pub(super) struct PhaseDraft {
    pub(super) at: At,
    pub(super) for_ns: Option<Located<u64>>,
    pub(super) next: NextDraft,
    ramp: Option<Located<bool>>,
    pub(super) name: Option<Located<String>>,
    up: LinkDraft,
    down: LinkDraft,
    /// Nothing but `state = "down"`.
    outage: bool,
}

impl PhasesDraft {
    /// Returns where the first of them is.
    pub fn at(&self) -> Option<&At> {
        self.list.first().map(|phase| &phase.at)
    }

    /// Returns the links of all phases, up and down.
    pub fn links(&self) -> impl Iterator<Item = [&LinkDraft; 2]> {
        self.list.iter().map(|phase| [&phase.up, &phase.down])
    }

    /// Rejects `shared` in phases: all have the one queue of the profile's own link, each at its rate.
    pub fn share_nothing(&self, reader: &mut Reader, own: [&LinkDraft; 2]) {
        if self.list.is_empty() {
            return;
        }
        if let Some(shared) = own.into_iter().find_map(|link| link.shared.as_ref()) {
            let title = "`shared` on the profile's own link beside phases";
            let help = "phases have that link's queue, each at its rate, and a shared queue has \
                        one rate: take `shared` or the phases away";
            return (reader.mistakes).push(Mistake::new(&shared.at, title, help));
        }
        for phase in &self.list {
            let links = [&phase.up, &phase.down].into_iter();
            if let Some(shared) = links.flat_map(|link| &link.shared).next() {
                let title = "a phase cannot have `shared`";
                let help = "phases have the queue of the profile's own link: leave it out or, if \
                            it is the named link's, write shared = \"none\" in the phase";
                let mistake = Mistake::new(&shared.at, title, help);
                (reader.mistakes).push(mistake.beside(&phase.at, "the phase"));
            }
        }
    }

    /// Reads `phases` and `[[phase]]`; `own` are the profile's own links, up and down.
    pub fn read(
        &mut self,
        reader: &mut Reader,
        entries: &[Entry],
        own: [&LinkDraft; 2],
        named: &[NamedDraft],
    ) {
        let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
        if let Some(entry) = find("phases") {
            self.read_phases(reader, entry);
        }
        let Some(entry) = find("phase").or(find("state")) else {
            return;
        };
        self.states = entry.key.value == "state";
        if let (Some(phase), Some(_)) = (find("phase"), find("state")) {
            let help = "phases follow each other by the clock, states at random: keep one kind";
            let title = "[[phase]] beside [[state]]";
            return (reader.mistakes).push(Mistake::new(&phase.key.at, title, help));
        }
        if let (true, Some(phases)) = (self.states, find("phases")) {
            let help = "states go on for ever, from the first one on: leave it out";
            let title = "`phases` beside [[state]]";
            return (reader.mistakes).push(Mistake::new(&phases.key.at, title, help));
        }
        let Value::List(list) = &entry.value.value else {
            let name = &entry.key.value;
            let title = format!("`{name}` cannot be {}", entry.value.value.kind());
            let help = match self.states {
                false => "write [[phase]] in two brackets, once for each",
                true => {
                    "write [[state]] in two brackets, once for each; `state = \"down\"` is a key \
                         of [link]"
                }
            };
            return (reader.mistakes).push(Mistake::new(&entry.value.at, title, help));
        };
        if list.len() + named.len() > MAX_LINKS {
            let title = format!("{} phases and {} named links", list.len(), named.len());
            let help = format!("a profile has at most {MAX_LINKS} of both; a trace has many rows");
            (reader.mistakes).push(Mistake::new(&entry.key.at, title, help));
        }
        for item in list {
            if let Some(phase) = one(reader, &entry.key, item, own, named, self.states) {
                self.list.push(phase);
            }
        }
        self.outages(own);
    }

    /// Gives outages the link of the phase before: packets that arrived before an outage stay on it.
    fn outages(&mut self, own: [&LinkDraft; 2]) {
        let repeat = value(&self.repeat).unwrap_or_default();
        for i in 0..self.list.len() {
            if !self.list[i].outage {
                continue;
            }
            let round = i + 1..if repeat { self.list.len() } else { 0 };
            let mut before = (0..i).rev().chain(round.rev());
            let link = before.find(|j| !self.list[*j].outage);
            let (up, down) = match link.map(|j| &self.list[j]) {
                Some(phase) => (phase.up.clone(), phase.down.clone()),
                None => (own[0].clone(), own[1].clone()),
            };
            let phase = &mut self.list[i];
            let state = phase.up.state.clone();
            (phase.up, phase.down) = (up, down);
            (phase.up.state, phase.down.state) = (state.clone(), state);
        }
    }

    fn read_phases(&mut self, reader: &mut Reader, entry: &Entry) {
        let Value::Table(entries) = &entry.value.value else {
            let title = format!("`phases` cannot be {}", entry.value.value.kind());
            let help = "write phases = { loop = true }, and [[phase]] for each of them";
            return (reader.mistakes).push(Mistake::new(&entry.value.at, title, help));
        };
        for entry in entries {
            match entry.key.value.as_str() {
                "loop" => reader.put(&mut self.repeat, &entry.value, |v| Flag::read(v, "loop")),
                "offset" => reader.put(&mut self.offset, &entry.value, |v| Long::read(v, "offset")),
                _ => (reader.mistakes).push(keys::unknown(&entry.key, &keys::PHASES)),
            }
        }
    }

    /// Returns the finished phases; meaningless if that adds a mistake.
    pub fn finish(&self, reader: &mut Reader, own: [&Link; 2]) -> Phases {
        let repeat = value(&self.repeat).unwrap_or_default();
        let one = |reader: &mut Reader, draft: &PhaseDraft| Phase {
            for_ns: value(&draft.for_ns),
            ramp: value(&draft.ramp).unwrap_or_default(),
            name: draft.name.as_ref().map(|name| name.value.clone()),
            up: reader.finish(&draft.up),
            down: reader.finish(&draft.down),
        };
        let list: Vec<_> = self.list.iter().map(|d| one(reader, d)).collect();
        self.not_for_ever(reader);
        for (i, (draft, phase)) in self.list.iter().zip(&list).enumerate() {
            let last = i + 1 == list.len();
            if !self.states && phase.for_ns.is_none() && (repeat || phase.ramp || !last) {
                let help = "give it a duration: for = \"30s\"; only the last phase can do without, \
                            if it is no ramp and they are not repeated";
                mistake(reader, &draft.at, "a phase without an end", help);
            }
            for (d, now) in [&phase.up, &phase.down].into_iter().enumerate() {
                if now.trace.is_some() || own[d].trace.is_some() {
                    let help = "time is either of a trace or of phases: keep one";
                    mistake(reader, &draft.at, "a trace beside phases", help);
                }
                let before = match (i.checked_sub(1), repeat) {
                    (Some(i), _) => [&list[i].up, &list[i].down][d],
                    (None, true) => list.last().map_or(own[d], |p| [&p.up, &p.down][d]),
                    (None, false) => own[d],
                };
                if phase.ramp {
                    ramp(reader, &draft.at, before, now);
                }
            }
        }
        Phases {
            list,
            chain: self.finish_chain(reader),
            repeat,
            offset_ns: value(&self.offset).unwrap_or_default(),
        }
    }

    /// Times within them are reckoned in ns of 64 bits.
    fn not_for_ever(&self, reader: &mut Reader) {
        let mut all_ns = 0u64;
        for for_ns in self.list.iter().filter_map(|phase| phase.for_ns.as_ref()) {
            all_ns = all_ns.saturating_add(for_ns.value);
            if all_ns > ALL_NS_MAX {
                let help = "all of them together last 100 years at most: make this one shorter, \
                            or let the last one go on without `for`";
                return mistake(reader, &for_ns.at, "phases of more than 100 years", help);
            }
        }
    }
}

pub(super) fn mistake(reader: &mut Reader, at: &At, title: &str, help: &str) {
    let same = |m: &Mistake| m.title == title;
    if !reader.mistakes.iter().any(same) {
        reader.mistake(at, title, help);
    }
}

/// Rejects keys that cannot change linearly from one link to the other.
fn ramp(reader: &mut Reader, at: &At, before: &Link, now: &Link) {
    if before.rate.is_some() != now.rate.is_some() {
        let help = "a rate has to be there before and after: there is no way to or from no limit";
        mistake(reader, at, "a ramp between a rate and none", help);
    }
    let plain = |link: &Link| matches!(link.loss.model, LossModel::Bernoulli { correlation, .. } if correlation == 0.0);
    if before.loss != now.loss && !(plain(before) && plain(now)) {
        let help = "only independent losses change by degrees";
        mistake(reader, at, "a ramp between two models of loss", help);
    }
}

fn one(
    reader: &mut Reader,
    key: &Located<String>,
    item: &Located<Value>,
    own: [&LinkDraft; 2],
    named: &[NamedDraft],
    states: bool,
) -> Option<PhaseDraft> {
    let Value::Table(entries) = &item.value else {
        let kind = &key.value;
        let title = format!("a {kind} cannot be {}", item.value.kind());
        let help = format!("write [[{kind}]], its keys below");
        reader.mistake(&item.at, title, help);
        return None;
    };
    let find = |key: &str| entries.iter().find(|entry| entry.key.value == key);
    let mut phase = PhaseDraft {
        // The table of a header has no position.
        at: entries.first().map_or(&key.at, |e| &e.key.at).clone(),
        for_ns: None,
        next: None,
        ramp: None,
        name: None,
        up: own[0].clone(),
        down: own[1].clone(),
        outage: is_outage(entries),
    };
    if let Some(entry) = find("whole")
        && reader.read(&entry.value, |v| Flag::read(v, "whole"))?.value
    {
        (phase.up, phase.down) = Default::default();
    }
    if let Some(entry) = find("link") {
        let link = named_link(reader, &entry.value, named)?;
        (phase.up, phase.down) = (link.up.clone(), link.down.clone());
        phase.name = Some(link.name.clone());
    }
    reader.one_overhead(entries);
    for entry in entries {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "dwell" if states => reader.put(&mut phase.for_ns, value, states::dwell),
            "next" if states => phase.next = states::read_next(reader, entry),
            "for" if !states => reader.put(&mut phase.for_ns, value, duration),
            "ramp" if !states => reader.put(&mut phase.ramp, value, |v| Flag::read(v, "ramp")),
            "name" => reader.put(&mut phase.name, value, name),
            "link" | "whole" | "up" | "down" => {}
            key if keys::LINK.has(key) => {
                reader.link_key(&mut phase.up, entry);
                reader.link_key(&mut phase.down, entry);
            }
            _ if states => (reader.mistakes).push(keys::unknown(&entry.key, &keys::STATE)),
            _ => (reader.mistakes).push(keys::unknown(&entry.key, &keys::PHASE)),
        }
    }
    for (draft, name) in [(&mut phase.up, "up"), (&mut phase.down, "down")] {
        if let Some(keys) = find(name).and_then(|entry| section(reader, entry)) {
            reader.link(draft, keys);
        }
    }
    Some(phase)
}

/// Returns whether a phase has only `state = "down"`, so that the link of the phase before applies.
fn is_outage(entries: &[Entry]) -> bool {
    let down =
        |e: &Entry| matches!(&e.value.value, Value::Text(text) if text == LinkState::Down.word());
    let state = entries.iter().find(|e| e.key.value == "state");
    let others = ["for", "state"];
    state.is_some_and(down)
        && entries
            .iter()
            .all(|e| others.contains(&e.key.value.as_str()))
}

fn named_link<'a>(
    reader: &mut Reader,
    value: &Located<Value>,
    named: &'a [NamedDraft],
) -> Option<&'a NamedDraft> {
    let names = named.iter().map(|d| d.name.value.as_str());
    let name = match &value.value {
        Value::Text(text) => Located {
            value: text.clone(),
            at: value.at.clone(),
        },
        _ => {
            let help = "write the name of a [links.NAME]";
            reader.wrong_kind(value, "link", help);
            return None;
        }
    };
    let found = named.iter().find(|d| d.name.value == name.value);
    if found.is_none() {
        reader.mistakes.push(links::unknown(&name, names));
    }
    found
}

fn duration(value: &Located<Value>) -> Result<u64, Mistake> {
    match quantity(value, "for", "\"30s\"")? {
        Span(0) => {
            let help = "leave it out, or give it a time: for = \"30s\"";
            Err(Mistake::new(&value.at, "a phase with duration 0", help))
        }
        Span(ns) => Ok(ns),
    }
}
