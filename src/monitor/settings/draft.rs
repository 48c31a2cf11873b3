// SPDX-License-Identifier: MIT OR Apache-2.0
//! What has been said so far, each value with its place: the command line over
//! the file. Whether the values go together is judged at the end, in `check`.

use std::collections::BTreeMap;
use std::time::Duration;

use emud_monitor::config::{Basis, Class, GroupBy, Reporters};

use super::argument::{Argument, Only, Said};
use super::keys::RESOURCES;
use super::value::{OFF, Setting, or_off};
use super::{keys, value};
use crate::text::{At, Entry, Located, Mistake, Reader, Section, Value, word};

/// Number of the file among the sources; the arguments follow.
pub(crate) const FILE: usize = 0;

pub(crate) type Slot<T> = Option<Located<T>>;

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub cpu_theta: Slot<Setting<Duration>>,
    pub basis: Slot<Basis>,
    pub network_window: Slot<Duration>,
    pub external: Slot<Setting<u64>>,
    pub internal: Slot<Setting<u64>>,
    pub classes: BTreeMap<String, Located<Class>>,
    pub devices: BTreeMap<String, Located<Setting<u64>>>,
    pub memory_window: Slot<Duration>,
    pub page_ins: Slot<Setting<u64>>,
    pub page_outs: Slot<Setting<u64>>,
    pub disk_theta: Slot<Setting<Duration>>,
    pub disks: BTreeMap<String, Located<Option<Duration>>>,
    pub late: Slot<Setting<Duration>>,
    pub psi_stall: Slot<Setting<Duration>>,
    pub psi_window: Slot<Duration>,
    /// One of them was given, but makes no sense: it is not missing.
    pub psi_unread: bool,
    pub limit: Slot<u32>,
    pub group_by: Slot<GroupBy>,
    pub reporters: Slot<Reporters>,
}

/// Puts values into slots, later over earlier, unless both are of the command line.
struct Merge<'a> {
    reader: &'a mut Reader,
    arguments: &'a [Argument],
}

impl Draft {
    /// Applies the file.
    pub fn read(&mut self, reader: &mut Reader, entries: &[Entry]) {
        let arguments = &[];
        let mut merge = Merge { reader, arguments };
        for entry in entries {
            merge.top(self, entry);
        }
    }

    /// Applies the command line; what `--only` says is returned as well.
    pub fn arguments(&mut self, reader: &mut Reader, arguments: &[Argument]) -> Vec<Only> {
        let mut merge = Merge { reader, arguments };
        let mut only = Vec::new();
        let mut keys = Vec::new();
        for (argument, source) in arguments.iter().zip(FILE + 1..) {
            match argument.read(source) {
                Ok(Said::Keys(entries)) => keys.extend(entries),
                Ok(Said::Only(said)) => only.push(said),
                Err(mistakes) => merge.reader.mistakes.extend(mistakes),
            }
        }
        // Last what concerns whole sections: so it meets every threshold that
        // contradicts it, in whatever order they were given.
        let (sections, keys): (Vec<_>, Vec<_>) = keys
            .into_iter()
            .partition(|entry| matches!(entry.value.value, Value::Text(_)));
        for entry in keys.iter().chain(&sections) {
            merge.top(self, entry);
        }
        for only in &only {
            for section in RESOURCES {
                if only.resources.iter().all(|r| r.value != section) {
                    merge.off(self, section, &only.whole);
                }
            }
        }
        only
    }
}

impl Merge<'_> {
    fn top(&mut self, draft: &mut Draft, entry: &Entry) {
        let key = entry.key.value.as_str();
        match key {
            "cpu" => self.section(draft, entry, keys::CPU, Self::cpu),
            "network" => self.section(draft, entry, keys::NETWORK, Self::network),
            "memory" => self.section(draft, entry, keys::MEMORY, Self::memory),
            "disk" => self.section(draft, entry, keys::DISK, Self::disk),
            "emulator" => self.section(draft, entry, keys::EMULATOR, Self::emulator),
            "psi" => self.section(draft, entry, keys::PSI, Self::psi),
            "alarms" => self.section(draft, entry, keys::ALARMS, Self::alarms),
            _ => self.mistake(keys::unknown(&entry.key, &keys::TOP)),
        }
    }

    fn section(
        &mut self,
        draft: &mut Draft,
        entry: &Entry,
        keys: Section,
        read: impl Fn(&mut Self, &mut Draft, &Entry),
    ) {
        let name = entry.key.value.as_str();
        let value = &entry.value;
        match &value.value {
            Value::Table(entries) if entries.is_empty() && name == "psi" => {
                let help = "it has no thresholds unless you give them: stall and window";
                self.mistake(Mistake::new(&value.at, "nothing is said about `psi`", help));
            }
            Value::Table(entries) => {
                for entry in entries {
                    match keys.has(&entry.key.value) {
                        true => read(self, draft, entry),
                        false => self.mistake(keys::unknown(&entry.key, &keys)),
                    }
                }
            }
            Value::Text(text) if text == OFF && name != "alarms" => {
                self.off(draft, name, &value.at);
            }
            other => {
                let title = match other {
                    Value::Text(text) => format!("`{name}` cannot be `{text}`"),
                    other => format!("`{name}` cannot be {}", other.kind()),
                };
                let off = match name {
                    "alarms" => String::new(),
                    name => format!("; {name} = \"off\" switches it off"),
                };
                let keys = keys.keys.join(", ");
                let help = format!("write the header [{name}], below it its keys: {keys}{off}");
                self.mistake(Mistake::new(&value.at, title, help));
            }
        }
    }

    /// Switches all thresholds of a section off.
    fn off(&mut self, draft: &mut Draft, section: &str, at: &At) {
        match section {
            "cpu" => self.set(&mut draft.cpu_theta, off(at)),
            "network" => {
                self.set(&mut draft.external, off(at));
                self.set(&mut draft.internal, off(at));
                for (name, device) in std::mem::take(&mut draft.devices) {
                    let mut slot = Some(device);
                    self.set(&mut slot, off(at));
                    draft.devices.extend(slot.map(|device| (name, device)));
                }
            }
            "memory" => {
                self.set(&mut draft.page_ins, off(at));
                self.set(&mut draft.page_outs, off(at));
            }
            "disk" => self.set(&mut draft.disk_theta, off(at)),
            "emulator" => self.set(&mut draft.late, off(at)),
            "psi" => self.set(&mut draft.psi_stall, off(at)),
            _ => {}
        }
    }

    fn cpu(&mut self, draft: &mut Draft, entry: &Entry) {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "basis" => self.put(&mut draft.basis, value, |v| word(v, "basis")),
            _ => self.put(&mut draft.cpu_theta, value, theta),
        }
    }

    fn network(&mut self, draft: &mut Draft, entry: &Entry) {
        let value = &entry.value;
        let rate = |key| move |v: &Located<Value>| or_off(v, |v| value::rate(v, key));
        match entry.key.value.as_str() {
            "window" => self.put(&mut draft.network_window, value, window),
            "external" => self.put(&mut draft.external, value, rate("external")),
            "internal" => self.put(&mut draft.internal, value, rate("internal")),
            "class" => self.named(&mut draft.classes, entry, value::interface_name, word),
            _ => self.named(
                &mut draft.devices,
                entry,
                value::interface_name,
                |v, name| or_off(v, |v| value::rate(v, name)),
            ),
        }
    }

    fn memory(&mut self, draft: &mut Draft, entry: &Entry) {
        let value = &entry.value;
        let pages = |key| move |v: &Located<Value>| or_off(v, |v| value::count(v, key, "pages"));
        match entry.key.value.as_str() {
            "window" => self.put(&mut draft.memory_window, value, window),
            "page-ins" => self.put(&mut draft.page_ins, value, pages("page-ins")),
            _ => self.put(&mut draft.page_outs, value, pages("page-outs")),
        }
    }

    fn disk(&mut self, draft: &mut Draft, entry: &Entry) {
        match entry.key.value.as_str() {
            "theta" => self.put(&mut draft.disk_theta, &entry.value, theta),
            _ => self.named(&mut draft.disks, entry, value::disk_name, value::disk),
        }
    }

    fn emulator(&mut self, draft: &mut Draft, entry: &Entry) {
        let late = |v: &Located<Value>| or_off(v, |v| value::time(v, "late", value::LATE_NS));
        self.put(&mut draft.late, &entry.value, late);
    }

    fn psi(&mut self, draft: &mut Draft, entry: &Entry) {
        let value = &entry.value;
        let before = self.reader.mistakes.len();
        match entry.key.value.as_str() {
            "stall" => self.put(&mut draft.psi_stall, value, |v| {
                or_off(v, |v| value::time(v, "stall", value::STALL_NS))
            }),
            _ => self.put(&mut draft.psi_window, value, |v| {
                value::time(v, "window", value::PSI_WINDOW_NS)
            }),
        }
        draft.psi_unread |= self.reader.mistakes.len() > before;
    }

    fn alarms(&mut self, draft: &mut Draft, entry: &Entry) {
        let value = &entry.value;
        match entry.key.value.as_str() {
            "limit" => self.put(&mut draft.limit, value, |v| {
                value::count(v, "limit", "alarms")
            }),
            "reporters" => self.put(&mut draft.reporters, value, |v| word(v, "reporters")),
            _ => self.put(&mut draft.group_by, value, |v| word(v, "group-by")),
        }
    }

    /// A table whose keys are names of devices.
    fn named<T: PartialEq>(
        &mut self,
        map: &mut BTreeMap<String, Located<T>>,
        entry: &Entry,
        name: impl Fn(&Located<String>) -> Result<String, Mistake>,
        read: impl Fn(&Located<Value>, &str) -> Result<T, Mistake>,
    ) {
        let Value::Table(entries) = &entry.value.value else {
            let key = &entry.key.value;
            let title = format!("`{key}` cannot be {}", entry.value.value.kind());
            let help = format!("name the device: {key}.NAME = ...");
            self.mistake(Mistake::new(&entry.value.at, title, help));
            return;
        };
        for Entry { key, value } in entries {
            match name(key) {
                Ok(name) => {
                    let mut slot = map.remove(&name);
                    self.put(&mut slot, value, |v| read(v, &name));
                    map.extend(slot.map(|located| (name, located)));
                }
                Err(mistake) => self.mistake(mistake),
            }
        }
    }

    fn put<T: PartialEq>(
        &mut self,
        slot: &mut Slot<T>,
        value: &Located<Value>,
        read: impl Fn(&Located<Value>) -> Result<T, Mistake>,
    ) {
        if let Some(new) = self.reader.read(value, read) {
            self.set(slot, new);
        }
    }

    fn set<T: PartialEq>(&mut self, slot: &mut Slot<T>, new: Located<T>) {
        if let Some(old) = slot
            && old.value != new.value
            && new.at.source > FILE
            && let Some(said) = old.at.source.checked_sub(FILE + 1)
        {
            let said = self.arguments.get(said).map_or("", Argument::text);
            let title = format!("this contradicts `{said}`");
            self.mistake(Mistake::new(&new.at, title, "keep one of the two"));
            return;
        }
        *slot = Some(new);
    }

    fn mistake(&mut self, mistake: Mistake) {
        self.reader.mistakes.push(mistake);
    }
}

fn off<T>(at: &At) -> Located<Setting<T>> {
    Located {
        value: Setting::Off,
        at: at.clone(),
    }
}

fn theta(value: &Located<Value>) -> Result<Setting<Duration>, Mistake> {
    or_off(value, |v| value::time(v, "theta", value::THETA_NS))
}

fn window(value: &Located<Value>) -> Result<Duration, Mistake> {
    value::time(value, "window", value::WINDOW_NS)
}
