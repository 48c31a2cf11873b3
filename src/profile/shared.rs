// SPDX-License-Identifier: MIT OR Apache-2.0
//! `shared`: several links in front of one bottleneck.

use super::draft::LinkDraft;
use super::located::latest;
use super::queueing::QueueDraft;
use super::read::Draft;
use super::wire::WireDraft;
use super::{Link, Profile, Queue, Wire};
use crate::abi;
use crate::text::{At, Kind, Located, Mistake, Reader, Value};

const NAME_BYTES: usize = 32;

/// The name of a bottleneck.
pub(crate) struct SharedName;

impl Kind for SharedName {
    type Value = String;

    fn read(value: &Located<Value>, _: &str) -> Result<String, Mistake> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match &value.value {
            Value::Text(text) | Value::Number(text)
                if !text.is_empty() && text.len() <= NAME_BYTES && text.chars().all(plain) =>
            {
                Ok(text.clone())
            }
            _ => {
                let help = format!(
                    "at most {NAME_BYTES} letters, digits, - and _, the same in each link that \
                     shares the queue, such as shared = \"uplink\""
                );
                let title = "this is not the name of a shared queue";
                Err(Mistake::new(&value.at, title, help))
            }
        }
    }

    fn text(name: &String) -> String {
        format!("\"{name}\"")
    }
}

impl Profile {
    /// Returns the number of the link whose queue a link has: the first that shares it.
    pub fn bottleneck(&self, direction: u32, number: u32) -> u32 {
        let links: Vec<&Link> = self.links_of(direction).collect();
        let name = links.get(number as usize).and_then(|l| l.shared.as_ref());
        let first = name.and_then(|name| {
            let shares = |link: &&Link| link.shared.as_ref() == Some(name);
            links.iter().position(shares)
        });
        first.map_or(number, |first| first as u32)
    }
}

/// Returns a link without rate, wire and queue.
pub(super) fn without_queue(link: &Link) -> Link {
    Link {
        rate: None,
        wire: Wire::default(),
        queue: Queue::default(),
        ..link.clone()
    }
}

impl Draft {
    /// Returns the links of a direction by number.
    pub(super) fn links_of(&mut self, direction: u32) -> Vec<&mut LinkDraft> {
        let up = direction == abi::EMUD_UP;
        let mut links = vec![if up { &mut self.up } else { &mut self.down }];
        let named = self.links.iter_mut();
        links.extend(named.map(|n| if up { &mut n.up } else { &mut n.down }));
        links
    }

    /// Copies rate and limits, which only the first link of a shared queue has, after link `number` has left the queue
    /// of this name: it and those that stay keep them.
    pub(super) fn keep_queue(&mut self, direction: u32, number: usize, left: &Located<String>) {
        let mut links = self.links_of(direction);
        let shared = |link: &LinkDraft| link.shared.as_ref().map(|shared| shared.value.clone());
        let Some(stays) = links
            .iter()
            .position(|link| shared(link).as_ref() == Some(&left.value))
        else {
            return;
        };
        // Another queue has its own.
        let moves = links.get(number).is_some_and(|link| shared(link).is_some());
        if number == stays || moves && stays < number {
            return;
        }
        let both = (0..)
            .zip(&mut links)
            .filter(|(n, _)| [number, stays].contains(n));
        // What is written already remains, and is judged at the end.
        agree(
            &mut Reader::default(),
            both.map(|(_, link)| &mut **link).collect(),
        );
    }

    /// Links that share a queue have one rate and one queue.
    pub(super) fn share(&mut self, reader: &mut Reader) {
        for direction in abi::DIRECTIONS {
            let mut links = self.links_of(direction);
            let mut names: Vec<String> = Vec::new();
            for link in &links {
                let name = link.shared.as_ref().map(|name| name.value.clone());
                names.extend(name.filter(|name| !names.contains(name)));
            }
            for name in names {
                let of = |link: &&mut &mut LinkDraft| {
                    link.shared.as_ref().is_some_and(|s| s.value == name)
                };
                agree(
                    reader,
                    links.iter_mut().filter(of).map(|l| &mut **l).collect(),
                );
            }
        }
    }
}

impl Draft {
    /// Rejects keys that would change the rate of a shared queue over time.
    pub(super) fn share_at_all_times(&self, reader: &mut Reader, profile: &Profile) {
        one_rate(reader, &self.up, &profile.up);
        one_rate(reader, &self.down, &profile.down);
        for (draft, named) in self.links.iter().zip(&profile.links) {
            one_rate(reader, &draft.up, &named.up);
            one_rate(reader, &draft.down, &named.down);
        }
        self.phases.share_nothing(reader, [&self.up, &self.down]);
    }
}

fn one_rate(reader: &mut Reader, draft: &LinkDraft, link: &Link) {
    if let (Some(shared), Some(trace)) = (&draft.shared, &link.trace)
        && trace.has_rate()
    {
        let at = latest(&shared.at, [draft.trace.at.as_ref()]);
        let title = "`shared` on a link whose trace has rates";
        let help = "a shared queue has one rate at all times: take `shared` or the trace away, or \
                    give the trace delay, jitter and loss alone";
        reader.mistake(at, title, help);
    }
}

/// Gives the rate and the queue of one link to all links that share the queue, and rejects different ones.
fn agree(reader: &mut Reader, mut links: Vec<&mut LinkDraft>) {
    if let Some((rate, wire)) = links.iter().find_map(|l| {
        let at = rate_at(l)?;
        Some(((l.rate.clone(), at.clone()), l.wire.clone()))
    }) {
        let first = figures(rate.0.as_ref(), &wire);
        for link in &mut links {
            match rate_at(link) {
                None => (link.rate, link.wire) = (rate.0.clone(), wire.clone()),
                Some(at) if figures(link.rate.as_ref(), &link.wire) != first => {
                    reader.mistakes.push(disagree("rate", at, &rate.1));
                }
                Some(_) => {}
            }
        }
    }
    let given = links.iter().find_map(|l| {
        let at = l.queue.place()?.clone();
        Some((l.queue.clone(), at, judged(l)))
    });
    let Some((queue, place, first)) = given else {
        return;
    };
    for link in links {
        match link.queue.place() {
            None => link.queue = queue.clone(),
            Some(at) if judged(link) != first => {
                let mistake = disagree("queue", at, &place);
                reader.mistakes.push(mistake);
            }
            Some(_) => {}
        }
    }
}

fn disagree(key: &str, at: &At, first: &At) -> Mistake {
    let help = "links that share a queue have one rate and one limit: write it once, or the same \
                in each";
    let title = format!("links that share a queue have different `{key}`");
    Mistake::new(at, title, help).beside(first, "the first of them")
}

fn rate_at(link: &LinkDraft) -> Option<&At> {
    let rate = link.rate.as_ref().map(|rate| &rate.at);
    rate.or_else(|| Some(link.wire.places().next()?.1))
}

/// Returns a rate and its wire, without their positions.
fn figures(rate: Option<&Located<u64>>, wire: &WireDraft) -> (Option<u64>, Wire) {
    (rate.map(|rate| rate.value), wire.values())
}

/// Returns the finished queue; its mistakes are reported when the link is finished.
fn judged(link: &LinkDraft) -> Queue {
    let queue: &QueueDraft = &link.queue;
    let alone = LinkDraft {
        queue: queue.clone(),
        ..LinkDraft::default()
    };
    Reader::default().finish_queue(&alone, &Wire::default())
}
