// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[bottleneck.NAME]`: a server of packets that wait, which links and directions may share.

use super::kinds::{BitRate, Count, OneOf};
use super::queueing::QueueDraft;
use super::{Profile, Queue, Target};
use crate::abi;
use crate::bottleneck::Schedule;
use crate::text::{Kind, Located, Mistake, Value, Word, table};

pub(super) const NAME_BYTES: usize = 32;
/// What the table of a class is called within its bottleneck.
pub(super) const CLASS: &str = "class";

table! {
    /// A server with classes.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Bottleneck {
        /// bit/s; every finished one has it.
        rate: Option<u64> = None, "rate" as BitRate;
        schedule: Schedule = Schedule::Fifo, "schedule" as OneOf<Schedule>;
    }
    beside {
        name: String = String::new();
        /// Of one without classes.
        queue: Queue = Queue::default();
        /// Each after its parent.
        classes: Vec<ServiceClass> = Vec::new();
    }
    struct BottleneckDraft {
        name: Option<Located<String>>;
        queue: QueueDraft;
        classes: Vec<ClassDraft>;
    }
}

table! {
    /// A class of a bottleneck.
    #[derive(Debug, Clone, PartialEq)]
    pub struct ServiceClass {
        /// 0 is served first.
        priority: u32 = 0, "priority" as Count<0, 255>;
        /// Share of what its priority has, against those beside it.
        weight: u32 = 1, "weight" as Count<1, 1_000_000>;
        /// Guaranteed, bit/s.
        rate: Option<u64> = None, "rate" as BitRate;
        /// The most, bit/s.
        ceil: Option<u64> = None, "ceil" as BitRate;
        /// The class above.
        parent: Option<String> = None, "parent" as PlainName;
    }
    beside {
        name: String = String::new();
        queue: Queue = Queue::default();
    }
    struct ClassDraft {
        name: Option<Located<String>>;
        queue: QueueDraft;
    }
}

/// A name of letters, digits, - and _.
pub(crate) struct PlainName;

/// `BOTTLENECK.CLASS`, or `BOTTLENECK` of one without classes.
pub(crate) struct ClassName;

pub(super) fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= NAME_BYTES && name.chars().all(plain)
}

impl Kind for PlainName {
    type Value = String;

    fn read(value: &Located<Value>, key: &str) -> Result<String, Mistake> {
        match &value.value {
            Value::Text(text) | Value::Number(text) if is_plain(text) => Ok(text.clone()),
            _ => {
                let help = format!("at most {NAME_BYTES} letters, digits, - and _");
                let title = format!("`{key}` is not the name of a class");
                Err(Mistake::new(&value.at, title, help))
            }
        }
    }

    fn text(name: &String) -> String {
        format!("\"{name}\"")
    }
}

impl Kind for ClassName {
    type Value = String;

    fn read(value: &Located<Value>, _: &str) -> Result<String, Mistake> {
        match &value.value {
            Value::Text(text) if text.split('.').count() <= 2 && text.split('.').all(is_plain) => {
                Ok(text.clone())
            }
            _ => {
                let help = "write class = \"BOTTLENECK.CLASS\", or \"BOTTLENECK\" of one without \
                            classes";
                let title = "this is not a class of a bottleneck";
                Err(Mistake::new(&value.at, title, help))
            }
        }
    }

    fn text(name: &String) -> String {
        format!("\"{name}\"")
    }
}

impl Word for Schedule {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("fifo", Self::Fifo),
        ("priority", Self::Priority),
        ("drr", Self::Drr),
        ("htb", Self::Htb),
    ];
}

/// Returns the bottleneck that packets name, and the class in it; `None`: it has no classes.
pub(crate) fn parts(class: &str) -> (&str, Option<&str>) {
    match class.split_once('.') {
        Some((bottleneck, class)) => (bottleneck, Some(class)),
        None => (class, None),
    }
}

impl Profile {
    /// Returns the number of a class by which packets name it, from 1: those of the first bottleneck, then
    /// of the next; one without classes counts as one.
    pub fn service(&self, class: &str) -> Option<u32> {
        let names = self.bottlenecks.iter().flat_map(Bottleneck::services);
        let place = (1..).zip(names).find(|(_, name)| name == class);
        place.map(|(number, _)| number)
    }

    /// Returns the same with what the classifier has to know of the class.
    pub(crate) fn service_word(&self, class: &str) -> Option<u32> {
        let number = self.service(class)?;
        Some(
            match self.queue_of(class).is_some_and(|queue| queue.blocks) {
                true => number | abi::EMUD_SERVICE_BLOCKS,
                false => number,
            },
        )
    }

    /// Returns whether some class holds back its senders.
    pub fn blocks(&self) -> bool {
        let mut names = self.bottlenecks.iter().flat_map(Bottleneck::services);
        names.any(|name| self.queue_of(&name).is_some_and(|queue| queue.blocks))
    }

    pub(crate) fn queue_of(&self, class: &str) -> Option<&Queue> {
        let (name, class) = parts(class);
        let bottleneck = self.bottlenecks.iter().find(|b| b.name == name)?;
        match class {
            None => Some(&bottleneck.queue),
            Some(class) => Some(&bottleneck.classes.iter().find(|c| c.name == class)?.queue),
        }
    }

    /// Returns how many numbers [`Profile::service`] gives.
    pub fn services(&self) -> usize {
        self.bottlenecks.iter().map(|b| b.services().count()).sum()
    }

    /// Returns whether packets of both directions wait in one bottleneck.
    pub fn joins_directions(&self) -> bool {
        let [up, down] = abi::DIRECTIONS.map(|direction| self.bottlenecks_of(direction));
        up.iter().any(|name| down.contains(name))
    }

    /// Returns the names of the bottlenecks in which packets of a direction wait.
    pub fn bottlenecks_of(&self, direction: u32) -> Vec<&str> {
        let leads = self.leads_to_bottlenecks(direction).into_iter();
        leads.map(|(_, bottleneck)| bottleneck).collect()
    }

    /// Returns the number of each link whose packets wait in a bottleneck, by its class or by a rule, with the name of
    /// that.
    pub(crate) fn leads_to_bottlenecks(&self, direction: u32) -> Vec<(usize, &str)> {
        let mut all = Vec::new();
        for (number, link) in self.links_of(direction).enumerate() {
            let is_own = number == 0 || number > self.links.len();
            let rules = self.rules.iter().filter(|rule| rule.is_for(direction));
            let rules = rules.filter(|rule| match &rule.target {
                Target::Own => is_own,
                Target::Named(name) => self.number_of(name) == Some(number as u32),
                Target::Untouched => false,
            });
            let classes = rules.map(|rule| &rule.class).chain([&link.class]);
            let classes = classes.filter_map(|class| class.as_deref());
            all.extend(classes.map(|class| (number, parts(class).0)));
        }
        all
    }

    /// Returns the number of the first class of a bottleneck, as [`Profile::service`] gives it.
    pub fn first_service(&self, of: &Bottleneck) -> u32 {
        let before = self.bottlenecks.iter().take_while(|b| b.name != of.name);
        1 + before.map(|b| b.services().count() as u32).sum::<u32>()
    }
}

impl Bottleneck {
    /// Returns the names that packets may have, in the order of a plan's classes.
    pub(crate) fn services(&self) -> impl Iterator<Item = String> {
        let classes = self.classes.iter();
        let classes = classes.map(|class| format!("{}.{}", self.name, class.name));
        let alone = self.classes.is_empty().then(|| self.name.clone());
        classes.chain(alone)
    }

    /// Returns whether there are classes below one.
    pub(crate) fn is_inner(&self, class: &str) -> bool {
        self.classes
            .iter()
            .any(|c| c.parent.as_deref() == Some(class))
    }

    pub(super) fn to_toml(&self) -> String {
        let mut out = format!("\n[bottleneck.{}]\n", self.name);
        let mut keys = self.keys_text();
        let queue =
            |queue: &Queue| (*queue != Queue::default()).then(|| format!("queue = {queue}"));
        keys.extend(queue(&self.queue));
        for class in &self.classes {
            keys.push(format!(
                "\n[bottleneck.{}.{CLASS}.{}]",
                self.name, class.name
            ));
            keys.extend(class.keys_text());
            keys.extend(queue(&class.queue));
        }
        for key in keys {
            out.push_str(&key);
            out.push('\n');
        }
        out
    }
}
