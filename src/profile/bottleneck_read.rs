// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bottlenecks from the text of a profile: reading, setting, and what goes together.

use super::bottleneck::{
    Bottleneck, BottleneckDraft, CLASS, ClassDraft, NAME_BYTES, ServiceClass, is_plain, parts,
};
use super::queueing::QueueDraft;
use super::read::section;
use super::rules::NONE;
use super::{PACKET_BYTES, Queue, keys};
use crate::bottleneck::Schedule;
use crate::text::{Draft, Entry, Located, Mistake, Reader, Value, Word, closest};

/// Of all bottlenecks of a profile.
const MAX_CLASSES: usize = 256;

/// Reads the table of tables `bottleneck`.
pub(super) fn read(reader: &mut Reader, entry: &Entry) -> Vec<BottleneckDraft> {
    let Value::Table(entries) = &entry.value.value else {
        let title = format!("`bottleneck` cannot be {}", entry.value.value.kind());
        let help = "write a header for each, such as [bottleneck.uplink], its keys below";
        let mistake = Mistake::new(&entry.value.at, title, help);
        reader.mistakes.push(mistake);
        return Vec::new();
    };
    let drafts: Vec<_> = entries.iter().filter_map(|e| one(reader, e)).collect();
    let classes: usize = drafts.iter().map(|draft| draft.classes.len().max(1)).sum();
    if classes > MAX_CLASSES {
        let title = format!("{classes} classes of bottlenecks");
        let help = format!("a profile has at most {MAX_CLASSES}");
        reader.mistake(&entry.key.at, title, help);
    }
    drafts
}

fn named(reader: &mut Reader, key: &Located<String>, what: &str) -> Option<Located<String>> {
    if !is_plain(&key.value) {
        let title = format!("this is not the name of a {what}");
        let help = format!("at most {NAME_BYTES} letters, digits, - and _");
        reader.mistake(&key.at, title, help);
    }
    if key.value == NONE {
        let title = format!("a {what} cannot be called `{}`", key.value);
        let help = "\"none\" takes a key away, such as `class`: take another name";
        reader.mistake(&key.at, title, help);
    }
    Some(key.clone())
}

fn one(reader: &mut Reader, entry: &Entry) -> Option<BottleneckDraft> {
    let mut draft = BottleneckDraft {
        name: named(reader, &entry.key, "bottleneck"),
        ..BottleneckDraft::default()
    };
    for entry in section(reader, entry)? {
        match (entry.key.value.as_str(), &entry.value.value) {
            (CLASS, Value::Table(classes)) => {
                let classes = classes.iter().filter_map(|class| one_class(reader, class));
                draft.classes = classes.collect();
            }
            _ => reader.bottleneck_key(&mut draft, entry),
        }
    }
    Some(draft)
}

fn one_class(reader: &mut Reader, entry: &Entry) -> Option<ClassDraft> {
    let mut draft = ClassDraft {
        name: named(reader, &entry.key, "class"),
        ..ClassDraft::default()
    };
    for entry in section(reader, entry)? {
        reader.class_key(&mut draft, entry);
    }
    Some(draft)
}

/// Applies a key to the bottleneck or the class with this name.
pub(super) fn set(
    reader: &mut Reader,
    drafts: &mut [BottleneckDraft],
    (bottleneck, class): (&Located<String>, Option<&Located<String>>),
    entry: &Entry,
) {
    let names: Vec<_> = drafts.iter().map(BottleneckDraft::name).collect();
    let Some(at) = names.iter().position(|name| *name == bottleneck.value) else {
        let mistake = unknown(bottleneck, &bottleneck.value, &names, "bottleneck");
        return reader.mistakes.push(mistake);
    };
    let draft = &mut drafts[at];
    let Some(class) = class else {
        return reader.bottleneck_key(draft, entry);
    };
    let names: Vec<_> = draft.classes.iter().map(ClassDraft::name).collect();
    match names.iter().position(|name| *name == class.value) {
        Some(at) if entry.key.value != "parent" => {
            reader.class_key(&mut draft.classes[at], entry);
        }
        Some(_) => {
            let help = "packets wait in the tree of classes: detach, then attach another one";
            let mistake = Mistake::new(&entry.key.at, "`parent` cannot be set", help);
            reader.mistakes.push(mistake);
        }
        None => {
            let mistake = unknown(class, &class.value, &names, "class");
            reader.mistakes.push(mistake);
        }
    }
}

fn unknown<T>(at: &Located<T>, name: &str, names: &[String], what: &str) -> Mistake {
    let help = match closest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => format!("the profile has no {what} of that kind"),
        None => format!("there are {}", names.join(", ")),
    };
    Mistake::new(&at.at, format!("there is no {what} `{name}`"), help)
}

impl BottleneckDraft {
    pub(super) fn name(&self) -> String {
        self.name
            .as_ref()
            .map_or(String::new(), |n| n.value.clone())
    }
}

impl ClassDraft {
    pub(super) fn name(&self) -> String {
        self.name
            .as_ref()
            .map_or(String::new(), |n| n.value.clone())
    }
}

impl Reader {
    fn bottleneck_key(&mut self, draft: &mut BottleneckDraft, entry: &Entry) {
        match entry.key.value.as_str() {
            "queue" => self.queue(&mut draft.queue, &entry.value),
            _ if draft.key(self, entry) => {}
            _ => (self.mistakes).push(keys::unknown(&entry.key, &keys::BOTTLENECK)),
        }
    }

    fn class_key(&mut self, draft: &mut ClassDraft, entry: &Entry) {
        match entry.key.value.as_str() {
            "queue" => self.queue(&mut draft.queue, &entry.value),
            _ if draft.key(self, entry) => {}
            _ => (self.mistakes).push(keys::unknown(&entry.key, &keys::SERVICE_CLASS)),
        }
    }

    /// Returns the finished bottlenecks; meaningless if that adds a mistake.
    pub(super) fn finish_bottlenecks(&mut self, drafts: &[BottleneckDraft]) -> Vec<Bottleneck> {
        drafts.iter().map(|draft| self.finish_one(draft)).collect()
    }

    fn finish_one(&mut self, draft: &BottleneckDraft) -> Bottleneck {
        if let (None, Some(name)) = (&draft.rate, &draft.name) {
            let help = "give what it serves, such as rate = \"10Mbit\"";
            let title = "a bottleneck without `rate`";
            self.mistake(&name.at, title, help);
        }
        if let (Some(at), false) = (draft.queue.place(), draft.classes.is_empty()) {
            let help = "each class has a separate queue: write it there";
            let title = "a `queue` beside classes";
            self.mistake(at, title, help);
        }
        let schedule = draft.schedule.as_ref().map_or(Schedule::Fifo, |s| s.value);
        let names: Vec<String> = draft.classes.iter().map(ClassDraft::name).collect();
        for class in &draft.classes {
            self.counts(class, schedule);
            if schedule == Schedule::Htb {
                self.guaranteed(class, draft);
            }
            self.parent(class, draft, &names);
        }
        let classes = draft.classes.iter().map(|class| self.finish_class(class));
        let classes = parents_first(classes.collect());
        Bottleneck {
            name: draft.name(),
            queue: self.real_queue(&draft.queue),
            classes,
            ..draft.values()
        }
    }

    fn finish_class(&mut self, draft: &ClassDraft) -> ServiceClass {
        if let (Some(rate), Some(ceil)) = (&draft.rate, &draft.ceil)
            && ceil.value < rate.value
        {
            let help = "`ceil` is the most a class gets, its `rate` at least";
            let title = "`ceil` is below `rate`";
            let mistake = Mistake::new(&ceil.at, title, help);
            self.mistakes.push(mistake.beside(&rate.at, "the rate"));
        }
        ServiceClass {
            name: draft.name(),
            queue: self.real_queue(&draft.queue),
            ..draft.values()
        }
    }

    /// Rejects keys without an effect under this schedule.
    fn counts(&mut self, class: &ClassDraft, schedule: Schedule) {
        for (key, at) in class.places() {
            let schedules: &[Schedule] = match key {
                "priority" => &[Schedule::Priority, Schedule::Htb],
                "weight" if class.rate.is_none() => {
                    &[Schedule::Priority, Schedule::Drr, Schedule::Htb]
                }
                "weight" => &[Schedule::Priority, Schedule::Drr],
                "rate" => &[Schedule::Htb],
                _ => &[Schedule::Priority, Schedule::Drr, Schedule::Htb],
            };
            if !schedules.contains(&schedule) {
                let words: Vec<_> = schedules
                    .iter()
                    .map(|s| format!("\"{}\"", s.word()))
                    .collect();
                let title = format!("`{key}` with schedule = \"{}\"", schedule.word());
                let help = format!("it counts with schedule = {}", words.join(" or "));
                self.mistake(at, title, help);
            }
        }
    }

    /// Checks guarantees with htb: classes without one share what the class above them sends.
    fn guaranteed(&mut self, class: &ClassDraft, of: &BottleneckDraft) {
        let parent = |c: &ClassDraft| c.parent.as_ref().map(|parent| parent.value.clone());
        let above = parent(class);
        let beside = |c: &&ClassDraft| parent(c) == above && c.rate.is_some();
        let above = of.classes.iter().find(|c| Some(c.name()) == above);
        match (&class.rate, &class.name, above) {
            (None, Some(name), None) if class.parent.is_none() => {
                let help = "with schedule = \"htb\" each class has a guaranteed rate, unless it shares that of a \
                            `parent`";
                let title = format!("the class `{}` has no `rate`", name.value);
                self.mistake(&name.at, title, help);
            }
            (None, Some(name), _) if of.classes.iter().any(|c| beside(&c)) => {
                let help = "classes with one `parent` all have a guaranteed rate, or share that of the parent without one";
                let title = format!("the class `{}` has no `rate`", name.value);
                self.mistake(&name.at, title, help);
            }
            (Some(rate), _, Some(above)) if above.rate.is_none() && above.parent.is_some() => {
                let help = "nothing is guaranteed below a class to which nothing is: leave out this rate, or give \
                            the class above one";
                let title = format!(
                    "a `rate` below the class `{}`, which has none",
                    above.name()
                );
                self.mistake(&rate.at, title, help);
            }
            _ => {}
        }
    }

    fn parent(&mut self, class: &ClassDraft, of: &BottleneckDraft, names: &[String]) {
        let Some(parent) = &class.parent else { return };
        let find = |name: &str| of.classes.iter().find(|c| c.name() == name);
        if find(&parent.value).is_none() {
            let mistake = unknown(parent, &parent.value, names, "class");
            return self.mistakes.push(mistake);
        }
        let above = |class: &&ClassDraft| find(&class.parent.as_ref()?.value);
        let path = std::iter::successors(Some(class), above).skip(1);
        if path
            .take(of.classes.len())
            .any(|up| up.name() == class.name())
        {
            let help = "its parents lead back to itself: give one of them another parent, or none";
            let title = format!("the class `{}` is above itself", class.name());
            return self.mistake(&parent.at, title, help);
        }
        if let Some(at) = find(&parent.value).and_then(|parent| parent.queue.place()) {
            let help = "packets wait in the classes below it: give these a queue";
            let title = "a `queue` of a class with classes below it";
            self.mistake(at, title, help);
        }
    }

    /// Returns a queue whose packets wait.
    fn real_queue(&mut self, draft: &QueueDraft) -> Queue {
        if let Some(bytes) = &draft.bytes
            && bytes.value < u64::from(PACKET_BYTES)
        {
            let title = format!(
                "a queue of {} bytes is smaller than one packet",
                bytes.value
            );
            let help = format!("write at least \"{PACKET_BYTES}B\", or count packets: \"1p\"");
            self.mistake(&bytes.at, title, help);
        }
        self.managed_queue(draft)
    }

    /// Checks that packets can be put into this class.
    pub(super) fn is_service(&mut self, class: &Located<String>, bottlenecks: &[Bottleneck]) {
        let (name, inner) = parts(&class.value);
        let Some(found) = bottlenecks.iter().find(|b| b.name == name) else {
            let names: Vec<_> = bottlenecks.iter().map(|b| b.name.clone()).collect();
            let mistake = unknown(class, name, &names, "bottleneck");
            return self.mistakes.push(mistake);
        };
        let names: Vec<_> = found.classes.iter().map(|c| c.name.clone()).collect();
        let mistake = match inner {
            None if names.is_empty() => return,
            None => {
                let help = format!("name one of them: \"{name}.{}\"", names[0]);
                Mistake::new(
                    &class.at,
                    format!("the bottleneck `{name}` has classes"),
                    help,
                )
            }
            Some(inner) if !names.iter().any(|n| n == inner) => {
                unknown(class, inner, &names, "class")
            }
            Some(inner) if found.is_inner(inner) => {
                let help = "packets wait in classes without classes below them";
                let title = format!("the class `{}` has classes below it", class.value);
                Mistake::new(&class.at, title, help)
            }
            Some(_) => return,
        };
        self.mistakes.push(mistake);
    }
}

/// Sorts each class after its parent, otherwise as written.
fn parents_first(mut left: Vec<ServiceClass>) -> Vec<ServiceClass> {
    let mut done: Vec<ServiceClass> = Vec::new();
    while !left.is_empty() {
        let is_next = |class: &ServiceClass| {
            let parent = class.parent.as_ref();
            parent.is_none_or(|parent| done.iter().any(|d| d.name == *parent))
        };
        // Without one there is a mistake, which has been said.
        let next = left.iter().position(is_next).unwrap_or(0);
        done.push(left.remove(next));
    }
    done
}
