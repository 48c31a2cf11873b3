// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bottleneck with its links and rules as a tree of HTB classes with netem leaves.

use super::netem::Options;
use super::tc_class::{
    FIRST_FREE, Ids, SERVER, Use, class_of, copies_beside, target_of, uses, without_class,
};
use super::tc_filter::filters;
use super::tc_queue::qdisc;
use super::{ExportDirection, ExportError, Exported};
use crate::abi;
use crate::bottleneck::{QUANTUM, Schedule};
use crate::convert::htb::{NO_GUARANTEE, Promise, promised_twice};
use crate::profile::{Bottleneck, Link, Profile, Rule, ServiceClass, Stage, Target};

/// htb's `prio` is 0 to 7.
const PRIORITY_MAX: u32 = 7;
/// Returns the commands for one direction of a profile with a bottleneck: `emud import tc` reads
/// them back.
///
/// # Errors
/// Every property that tc does not support.
pub fn tc(
    profile: &Profile,
    direction: ExportDirection,
    device: &str,
) -> Result<Exported, ExportError> {
    let number = match direction {
        ExportDirection::Up => abi::EMUD_UP,
        ExportDirection::Down => abi::EMUD_DOWN,
    };
    let mut script = Script::default();
    script.profile(profile, number);
    if let Some(bottleneck) = script.bottleneck(profile, number) {
        script.tree(profile, number, bottleneck, device);
    }
    if !script.reasons.is_empty() {
        return Err(ExportError::NoTree(script.reasons));
    }
    Ok(Exported {
        command: script.lines.join("\n"),
        notes: script.notes,
        differences: vec![],
    })
}

#[derive(Default)]
struct Script {
    lines: Vec<String>,
    notes: Vec<String>,
    reasons: Vec<String>,
    /// Major numbers in use.
    qdiscs: u32,
}

impl Script {
    fn reason(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.reasons.contains(&text) {
            self.reasons.push(text);
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Notes the parts of a profile that no tree can represent.
    fn profile(&mut self, profile: &Profile, number: u32) {
        let Profile {
            name: _,
            description: _,
            source: _,
            seed,
            offload: _,
            up,
            down,
            links,
            bottlenecks: _,
            rules: _,
            instances: _,
            matrix,
            phases,
        } = profile;
        if matrix.is_some() {
            self.reason("`[matrix]`: each of its pairs needs a class and a netem");
        }
        if !phases.list.is_empty() {
            self.reason("`[[phase]]`, `[[state]]`: a qdisc does not change by itself");
        }
        let of_links = links.iter().map(|named| named.direction(number));
        let mut all = std::iter::once(profile.direction(number)).chain(of_links);
        if all.any(|link| link.trace.is_some()) {
            self.reason("`trace`: netem has none");
        }
        if seed.is_some() {
            self.note("the seed is not exported: it would repeat netem's decisions, not emud's");
        }
        let nothing = Link::default();
        if *up != nothing && *down != nothing {
            self.note("the other direction needs a separate tree, on an ifb for ingress packets");
        }
    }

    /// Returns the only bottleneck of this direction.
    fn bottleneck<'a>(&mut self, profile: &'a Profile, number: u32) -> Option<&'a Bottleneck> {
        let mut names: Vec<_> = (uses(profile, number).iter())
            .filter_map(|used| used.class.split('.').next())
            .collect();
        names.sort_unstable();
        names.dedup();
        let [name] = names[..] else {
            self.reason(match names.len() {
                0 => "no packet of this direction waits in a `[bottleneck]`".to_owned(),
                n => format!("{n} bottlenecks: a device has one tree"),
            });
            return None;
        };
        let found = profile.bottlenecks.iter().find(|b| b.name == name)?;
        if found.schedule == Schedule::Fifo {
            self.reason("schedule = \"fifo\": htb has no order of arrival across classes");
        }
        if found.classes.is_empty() {
            self.reason(format!("`[bottleneck.{name}]` has no classes"));
        }
        self.reasons.is_empty().then_some(found)
    }

    fn tree(&mut self, profile: &Profile, number: u32, bottleneck: &Bottleneck, device: &str) {
        let ids = Ids::new(&bottleneck.classes);
        let uses = uses(profile, number);
        let own = profile.direction(number);
        let default = own.class.as_deref().and_then(|class| ids.of(class));
        if own.class.is_none() && *own != Link::default() {
            self.reason("packets that no rule matches wait in no class, but meet a link");
        }
        let default = default.map_or(String::new(), |minor| format!(" default {minor:x}"));
        self.lines.push(format!(
            "tc qdisc add dev {device} root handle 1: htb{default}"
        ));
        let rate = self.bytes("rate of the bottleneck", bottleneck.rate.unwrap_or(1));
        self.lines.push(format!(
            "tc class add dev {device} parent 1: classid 1:{SERVER:x} htb {}",
            rates(rate, rate)
        ));
        let plan = bottleneck.plan();
        for (class, of_plan) in bottleneck.classes.iter().zip(&plan.classes) {
            let quantum = match class.rate {
                Some(_) => plan.quantum(of_plan),
                None => by_weight(bottleneck, class),
            };
            self.class(bottleneck, class, quantum, &ids, device);
        }
        if bottleneck.schedule != Schedule::Htb {
            self.note(
                "htb lets a class that waits send a packet in a minute whatever its priority and weight, because it has \
                 no class without a rate",
            );
        }
        for class in &bottleneck.classes {
            let is_inner = |c: &ServiceClass| c.parent.as_ref() == Some(&class.name);
            if !bottleneck.classes.iter().any(is_inner) {
                self.leaf(bottleneck, class, &ids, &uses, device);
            }
        }
        copies_beside(&uses)
            .into_iter()
            .for_each(|note| self.note(note));
        self.rules(profile, number, &ids, device);
        let promises: Vec<_> = (bottleneck.classes.iter())
            .map(|class| Promise {
                name: &class.name,
                parent: class.parent.as_deref(),
                rate: class.rate.unwrap_or(0),
                ceil: class.ceil,
            })
            .collect();
        for text in promised_twice(bottleneck.rate, &promises) {
            self.note(text);
        }
        self.note(
            "htb has bursts of 10 ms, because it depends on a timer; emud's clocks are exact",
        );
        let is_late = |link: &Link| !link.loss.is_none() && link.loss.stage != Stage::BeforeQueue;
        if uses.iter().any(|used| is_late(used.link)) {
            self.note("netem delays and loses packets before htb serves them, emud afterwards");
        } else if uses
            .iter()
            .any(|used| without_class(used.link) != Link::default())
        {
            self.note("netem delays packets before htb serves them, emud afterwards");
        }
    }

    fn class(&mut self, of: &Bottleneck, class: &ServiceClass, quantum: u64, ids: &Ids, dev: &str) {
        let ServiceClass {
            priority,
            // In the quantum.
            weight: _,
            rate,
            ceil,
            parent,
            name,
            // Of a leaf.
            queue: _,
        } = class;
        let is_inner = of.classes.iter().any(|c| c.parent.as_ref() == Some(name));
        let has_guarantees = of.schedule == Schedule::Htb;
        if has_guarantees && rate.is_none() {
            self.reason(format!(
                "class `{name}`: a class of htb has a `rate`, and no priority or weight within that of its parent"
            ));
        }
        if !has_guarantees && parent.is_some() {
            self.reason(format!(
                "class `{name}`: `parent`: htb has no priority or weight of a class above others"
            ));
        }
        if has_guarantees && is_inner && *priority != 0 {
            self.reason(format!(
                "class `{name}`: htb has no priority of a class above others"
            ));
        }
        if *priority > PRIORITY_MAX {
            self.reason(format!(
                "class `{name}`: priority {priority}: htb has 0 to {PRIORITY_MAX}"
            ));
        }
        // Without a ceil the server's rate is the highest one.
        let ceil = ceil.or(of.rate).unwrap_or(1);
        let rate = rate.unwrap_or(NO_GUARANTEE);
        let rate = self.bytes(&format!("rate of class `{name}`"), rate);
        let ceil = self.bytes(&format!("ceil of class `{name}`"), ceil);
        let parent = parent.as_deref().and_then(|parent| ids.named(parent));
        let (parent, minor) = (parent.unwrap_or(SERVER), ids.named(name).unwrap_or(0));
        let quantum = u32::try_from(quantum).unwrap_or_else(|_| {
            self.reason(format!(
                "class `{name}`: its share does not fit into htb's quantum"
            ));
            u32::MAX
        });
        let priority = match priority {
            0 => String::new(),
            priority => format!(" prio {priority}"),
        };
        self.lines.push(format!(
            "tc class add dev {dev} parent 1:{parent:x} classid 1:{minor:x} htb {}{priority} quantum {quantum}",
            rates(rate, ceil)
        ));
    }

    /// Returns a rate in tc's whole bytes per second.
    fn bytes(&mut self, what: &str, bits: u64) -> u64 {
        if !bits.is_multiple_of(8) {
            self.reason(format!(
                "{what}: {bits} bit/s are not a whole number of bytes per second"
            ));
        }
        bits
    }

    /// Writes the netem and the queue of a class in which packets wait.
    fn leaf(
        &mut self,
        of: &Bottleneck,
        class: &ServiceClass,
        ids: &Ids,
        uses: &[Use<'_>],
        device: &str,
    ) {
        let name = &class.name;
        let service = format!("{}.{name}", of.name);
        let own = uses.iter().filter(|used| used.class == service);
        let mut links: Vec<Link> = own.map(|used| without_class(used.link)).collect();
        links.dedup();
        let link = links.pop().unwrap_or_default();
        if links.iter().any(|other| *other != link) {
            self.reason(format!(
                "class `{name}` has packets of different links: a class of htb has one netem"
            ));
        }
        let mut parent = format!("1:{:x}", ids.named(name).unwrap_or(0));
        if link != Link::default() {
            let mut options = Options::default();
            options.link(&link, None);
            let differences = options.differences.iter();
            let differences: Vec<_> = differences
                .map(|text| format!("class `{name}`: {text}"))
                .collect();
            differences.into_iter().for_each(|text| self.reason(text));
            options.notes.iter().for_each(|text| self.note(text));
            let handle = self.handle();
            self.lines.push(format!(
                "tc qdisc add dev {device} parent {parent} handle {handle:x}: {}",
                options.command()
            ));
            parent = format!("{handle:x}:1");
        }
        let queue = match qdisc(&class.queue, of.nominal(class)) {
            Ok(queue) => queue,
            Err(reasons) => {
                let reasons = reasons.into_iter();
                reasons.for_each(|why| self.reason(format!("class `{name}`: {why}")));
                return;
            }
        };
        queue.note.into_iter().for_each(|note| self.note(note));
        let handle = self.handle();
        self.lines.push(format!(
            "tc qdisc add dev {device} parent {parent} handle {handle:x}: {}",
            queue.command
        ));
    }

    fn handle(&mut self) -> u32 {
        self.qdiscs += 1;
        FIRST_FREE + self.qdiscs - 1
    }

    fn rules(&mut self, profile: &Profile, number: u32, ids: &Ids, device: &str) {
        let mut priority = 0;
        for (place, rule) in (1..).zip(&profile.rules) {
            if !rule.is_for(number) {
                continue;
            }
            let Rule {
                matches,
                target,
                direction: _,
                per,
                class: _,
            } = rule;
            if per.is_some() {
                self.reason(format!(
                    "rule {place}: `per`: a netem is one link for all packets"
                ));
            }
            if *target == Target::Untouched {
                self.reason(format!(
                    "rule {place}: link = \"none\": htb's filters select a class"
                ));
                continue;
            }
            let link = target_of(profile, number, rule);
            let class = class_of(rule, link).and_then(|class| ids.of(class));
            let Some(minor) = class else {
                self.reason(format!("rule {place}: its packets wait in no class"));
                continue;
            };
            match filters(matches) {
                Err(reasons) => {
                    let reasons = reasons.into_iter();
                    reasons.for_each(|why| self.reason(format!("rule {place}: {why}")));
                }
                Ok(filters) => {
                    for filter in filters {
                        priority += 1;
                        filter.notes.iter().for_each(|note| self.note(*note));
                        self.lines.push(format!(
                            "tc filter add dev {device} parent 1: protocol {} prio {priority} {} flowid \
                             1:{minor:x}",
                            filter.protocol, filter.text
                        ));
                    }
                }
            }
        }
        if priority > i32::from(u16::MAX) {
            self.reason(format!("{priority} filters: tc has 65535 priorities"));
        }
    }
}

/// Returns a quantum in proportion to the weights of its priority: a packet at least.
fn by_weight(of: &Bottleneck, class: &ServiceClass) -> u64 {
    let beside = of.classes.iter().filter(|c| c.priority == class.priority);
    let least = beside.map(|c| u64::from(c.weight)).min().unwrap_or(1);
    u64::from(class.weight) * QUANTUM.div_ceil(least)
}

/// Returns `rate` and `ceil` with bursts of 10 ms: by default tc makes room for one packet, and then a late
/// timer costs part of the rate (9.92 of 10 Mbit/s on a busy machine; with the bursts 10.00).
fn rates(rate: u64, ceil: u64) -> String {
    let burst = |bits: u64| (bits / 8 / 100).clamp(QUANTUM, u64::from(u32::MAX));
    format!(
        "rate {rate}bit burst {} ceil {ceil}bit cburst {}",
        burst(rate),
        burst(ceil)
    )
}
