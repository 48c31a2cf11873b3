// SPDX-License-Identifier: GPL-2.0-only
//! A root qdisc that somebody configured by hand: kept, and put back.

use std::collections::BTreeSet;

use netlink_bindings::tc::{self, PushAttrs};
use netlink_bindings::traits::Pusher;
use serde::{Deserialize, Serialize};

use super::qdisc::{self, MAJOR, Qdisc, tcmsg};
use super::{Link, Netlink, NetlinkError, ROOT, Result, attr, restorable, show_handle};

const FORMAT: u32 = 1;
const NLM_F_DUMP: u16 = 0x300;
const U32_NODE: u32 = 0x000f_ffff;

/// Attributes, as hexadecimal digits in JSON: half of what a list of numbers takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Raw(Vec<u8>);

impl From<Raw> for String {
    fn from(raw: Raw) -> Self {
        raw.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TryFrom<String> for Raw {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.as_bytes();
        let pairs = digits.chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok().filter(|p| p.len() == 2)?;
            u8::from_str_radix(pair, 16).ok()
        });
        let bytes: Option<Vec<u8>> = pairs.collect();
        bytes.map(Self).ok_or_else(|| "not hexadecimal".into())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct QdiscRecord {
    #[serde(rename = "k")]
    kind: String,
    #[serde(rename = "h")]
    handle: u32,
    #[serde(rename = "p")]
    parent: u32,
    #[serde(rename = "o", skip_serializing_if = "Option::is_none")]
    options: Option<Raw>,
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    stab: Option<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct ClassRecord {
    #[serde(rename = "k")]
    kind: String,
    #[serde(rename = "h")]
    handle: u32,
    #[serde(rename = "p")]
    parent: u32,
    #[serde(rename = "o", skip_serializing_if = "Option::is_none")]
    options: Option<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct FilterRecord {
    #[serde(rename = "k")]
    kind: String,
    #[serde(rename = "p")]
    parent: u32,
    #[serde(rename = "h")]
    handle: u32,
    /// Preference and protocol as in struct tcmsg.
    #[serde(rename = "i")]
    info: u32,
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    chain: Option<u32>,
    #[serde(rename = "o")]
    options: Raw,
}

impl FilterRecord {
    fn is_hash_table(&self) -> bool {
        self.kind == "u32" && self.handle & U32_NODE == 0
    }
}

/// What it takes to make a root qdisc again: the qdiscs below it, their classes
/// and filters, with every handle. Children that the kernel installs by default
/// are not in it; they come back by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootSnapshot {
    format: u32,
    /// Parents first.
    qdiscs: Vec<QdiscRecord>,
    /// As dumped.
    classes: Vec<ClassRecord>,
    filters: Vec<FilterRecord>,
}

impl RootSnapshot {
    /// What is at the root of the interface, None if nothing by hand. Rehearses
    /// the restoring on a device in a network namespace of its own, so that what
    /// cannot be put back is known before it is removed.
    ///
    /// # Errors
    /// [`NetlinkError::CannotRestore`], saying what of it.
    pub fn take(nl: &mut Netlink, ifindex: u32) -> Result<Option<Self>> {
        let link = nl.link_by_index(ifindex)?;
        let Some(taken) = Self::read(nl, &link)? else {
            return Ok(None);
        };
        taken.rehearse(nl, &link)?;
        Ok(Some(taken))
    }

    /// Kind of the root qdisc.
    pub fn kind(&self) -> &str {
        self.qdiscs.first().map_or("", |q| &q.kind)
    }

    /// Compact JSON, for a BPF map.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Strings and numbers only: there is nothing that could fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// # Errors
    /// [`NetlinkError::BadSnapshot`]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bad = |why: String| NetlinkError::BadSnapshot(why);
        let read: Self = serde_json::from_slice(bytes).map_err(|e| bad(e.to_string()))?;
        if read.format != FORMAT {
            return Err(bad(format!(
                "format {} of a root qdisc, not {FORMAT}",
                read.format
            )));
        }
        Ok(read)
    }

    /// Puts it back, in the place of whatever root qdisc is there now, and
    /// looks whether the kernel shows the same as before. If it fails half-way,
    /// the kernel's default is left at the root.
    pub fn restore(&self, nl: &mut Netlink, ifindex: u32) -> Result<()> {
        let link = nl.link_by_index(ifindex)?;
        nl.delete_root(ifindex)?;
        if let Err(err) = self.build(nl, ifindex) {
            nl.delete_root(ifindex)?;
            return Err(err);
        }
        let now = Self::read(nl, &link)?;
        match self.difference(now.as_ref()) {
            None => Ok(()),
            Some(difference) => Err(NetlinkError::RestoreDiffers {
                ifname: link.name,
                difference,
            }),
        }
    }

    pub(super) fn read(nl: &mut Netlink, link: &Link) -> Result<Option<Self>> {
        let refuse = |reason: String| NetlinkError::CannotRestore {
            ifname: link.name.clone(),
            reason,
        };
        let qdiscs = below_root(nl.qdiscs(link.index)?);
        if qdiscs.is_empty() {
            return Ok(None);
        }
        let mut taken = Self {
            format: FORMAT,
            qdiscs: vec![],
            classes: vec![],
            filters: vec![],
        };
        for qdisc in &qdiscs {
            taken.qdiscs.push(qdisc_record(qdisc).map_err(refuse)?);
            let classes = read_classes(nl, link.index, qdisc)?;
            let mut parents = vec![qdisc.handle];
            parents.extend(classes.iter().map(|c| c.0.handle));
            for (class, estimator) in classes {
                if estimator {
                    let class = show_handle(class.handle);
                    return Err(refuse(format!("class {class} has a rate estimator")));
                }
                if restorable::has_own_classes(&qdisc.kind) {
                    taken.classes.push(class);
                }
            }
            for parent in parents {
                taken
                    .filters
                    .extend(read_filters(nl, link.index, parent)?.map_err(refuse)?);
            }
        }
        Ok(Some(taken))
    }

    /// The first thing in which `now` is another, in words.
    pub(super) fn difference(&self, now: Option<&Self>) -> Option<String> {
        let Some(now) = now else {
            return Some(format!("qdisc {} is missing", self.kind()));
        };
        // The kernel lists some of them in the order of its hash tables.
        differing("qdisc", &self.qdiscs, &now.qdiscs, |q| {
            show_handle(q.handle)
        })
        .or_else(|| {
            differing("class", &self.classes, &now.classes, |c| {
                show_handle(c.handle)
            })
        })
        .or_else(|| {
            differing("filter", &self.filters, &now.filters, |f| {
                let (parent, pref) = (show_handle(f.parent), f.info >> 16);
                format!(
                    "{} of {parent}, pref {pref}, handle {:#x}",
                    f.kind, f.handle
                )
            })
        })
    }

    /// Whether a filter or action refers to another interface.
    pub(super) fn names_interfaces(&self) -> bool {
        self.filters
            .iter()
            .any(|f| restorable::names_interfaces(&f.kind, &f.options.0))
    }

    /// Makes everything anew on a device whose root is the kernel's default.
    pub(super) fn build(&self, nl: &mut Netlink, ifindex: u32) -> Result<()> {
        for qdisc in &self.qdiscs {
            add_qdisc(nl, ifindex, qdisc)?;
            let major = qdisc.handle & MAJOR;
            let classes: Vec<_> = self
                .classes
                .iter()
                .filter(|c| c.handle & MAJOR == major)
                .collect();
            for class in parents_first(classes) {
                add_class(nl, ifindex, class)?;
            }
            let filters = self
                .filters
                .iter()
                .filter(|f| f.parent & MAJOR == major)
                .collect();
            for filter in in_order_of_creation(filters) {
                add_filter(nl, ifindex, filter)?;
            }
        }
        Ok(())
    }
}

fn differing<T: Ord>(
    what: &str,
    before: &[T],
    now: &[T],
    name: impl Fn(&T) -> String,
) -> Option<String> {
    let (before, now): (BTreeSet<_>, BTreeSet<_>) = (before.iter().collect(), now.iter().collect());
    let changed = before.symmetric_difference(&now).next()?;
    Some(format!("{what} {}", name(changed)))
}

/// The hand-made root and the hand-made qdiscs under it, parents first.
fn below_root(mut qdiscs: Vec<Qdisc>) -> Vec<Qdisc> {
    qdiscs.retain(Qdisc::by_hand);
    let Some(root) = qdiscs.iter().position(Qdisc::is_root) else {
        return Vec::new();
    };
    let mut tree = vec![qdiscs.swap_remove(root)];
    let mut next = 0;
    while next < tree.len() {
        let major = tree[next].handle & MAJOR;
        let of_this = |q: &mut Qdisc| !q.is_root() && q.parent & MAJOR == major;
        let at = tree.len();
        tree.extend(qdiscs.extract_if(.., of_this));
        tree[at..].sort_by_key(|q| q.parent);
        next += 1;
    }
    tree
}

fn qdisc_record(qdisc: &Qdisc) -> Result<QdiscRecord, restorable::Refusal> {
    let own = show_handle(qdisc.handle);
    if qdisc
        .ingress_block
        .or(qdisc.egress_block)
        .is_some_and(|block| block != 0)
    {
        return Err(format!(
            "qdisc {} {own} shares its filters in a block",
            qdisc.kind
        ));
    }
    if qdisc.estimator {
        return Err(format!("qdisc {} {own} has a rate estimator", qdisc.kind));
    }
    Ok(QdiscRecord {
        kind: qdisc.kind.clone(),
        handle: qdisc.handle,
        parent: qdisc.parent,
        options: restorable::qdisc_options(&qdisc.kind, qdisc.options.as_deref())?.map(Raw),
        stab: qdisc
            .stab
            .as_deref()
            .map(restorable::stab)
            .transpose()?
            .map(Raw),
    })
}

/// The classes of one qdisc, and whether they have a rate estimator.
fn read_classes(nl: &mut Netlink, ifindex: u32, of: &Qdisc) -> Result<Vec<(ClassRecord, bool)>> {
    // The specification knows no dump of classes, but the kernel does.
    let header = tcmsg(ifindex, 0, 0);
    let request = tc::Request::new()
        .set_flags(NLM_F_DUMP)
        .op_gettclass_do(&header);
    let mut classes = Vec::new();
    let what = || format!("list the classes of interface {ifindex}");
    nl.exchange(&request, what, |(header, attrs)| {
        if header.handle & MAJOR != of.handle & MAJOR {
            return;
        }
        let options = attr::find(attrs.get_buf(), libc::TCA_OPTIONS);
        let estimator = attrs.get_stats2().is_ok_and(|s| s.get_rate_est().is_ok());
        let class = ClassRecord {
            kind: qdisc::kind(&attrs),
            handle: header.handle,
            parent: header.parent,
            options: options.map(|raw| Raw(raw.to_vec())),
        };
        classes.push((class, estimator));
    })?;
    Ok(classes)
}

fn read_filters(
    nl: &mut Netlink,
    ifindex: u32,
    parent: u32,
) -> Result<Result<Vec<FilterRecord>, restorable::Refusal>> {
    let request = tc::Request::new().op_gettfilter_dump(&tcmsg(ifindex, parent, 0));
    let mut filters = Vec::new();
    let mut refusal = None;
    let what = || {
        format!(
            "list the filters of {} on interface {ifindex}",
            show_handle(parent)
        )
    };
    nl.exchange(&request, what, |(header, attrs)| {
        let kind = qdisc::kind(&attrs);
        let raw = attr::find(attrs.get_buf(), libc::TCA_OPTIONS);
        match raw.map(|raw| restorable::filter_options(&kind, raw)) {
            // The entry of a priority for itself.
            None => {}
            Some(Err(why)) => refusal = Some(why),
            Some(Ok(options)) => filters.push(FilterRecord {
                kind,
                parent,
                handle: header.handle,
                info: header.info,
                chain: attrs.get_chain().ok(),
                options: Raw(options),
            }),
        }
    })?;
    Ok(refusal.map_or(Ok(filters), Err))
}

/// Reversed, because a hash bucket lists its newest member first; but no class
/// before the class that it is in.
fn parents_first(classes: Vec<&ClassRecord>) -> Vec<&ClassRecord> {
    let mut waiting: Vec<_> = classes.into_iter().rev().collect();
    let mut ordered: Vec<&ClassRecord> = Vec::with_capacity(waiting.len());
    let mut made = BTreeSet::new();
    loop {
        let before = ordered.len();
        waiting.retain(|class| {
            let top = class.parent == ROOT || class.parent & !MAJOR == 0;
            let ready = top || made.contains(&class.parent);
            if ready {
                made.insert(class.handle);
                ordered.push(class);
            }
            !ready
        });
        if ordered.len() == before {
            // A parent that does not exist: let the kernel say so.
            ordered.extend(waiting);
            return ordered;
        }
    }
}

/// u32 gives each priority a root hash table, numbered in the order in which
/// the priorities came to be; rules go into a table that must exist before.
fn in_order_of_creation(filters: Vec<&FilterRecord>) -> Vec<&FilterRecord> {
    let group = |f: &FilterRecord| (f.parent, f.chain, f.info >> 16);
    // The kernel lists a priority's tables newest first: the last is its root's.
    let root_of = |f: &FilterRecord| {
        filters
            .iter()
            .rfind(|t| t.is_hash_table() && group(t) == group(f))
            .map_or(0, |t| t.handle)
    };
    let mut keyed: Vec<_> = filters
        .iter()
        .enumerate()
        .filter(|(_, f)| !f.is_hash_table() || f.handle != root_of(f))
        .map(|(at, f)| {
            // Tables oldest first, then rules as listed.
            let rank = if f.is_hash_table() {
                (0, usize::MAX - at)
            } else {
                (1, at)
            };
            ((f.parent, root_of(f), group(f), rank), *f)
        })
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, f)| f).collect()
}

fn push_options<P: Pusher>(attrs: PushAttrs<P>, kind: &str, options: Option<&Raw>) -> PushAttrs<P> {
    let mut attrs = attrs.push_kind_bytes(kind.as_bytes());
    if let Some(raw) = options {
        attr::push(attrs.as_vec_mut(), libc::TCA_OPTIONS, false, &raw.0);
    }
    attrs
}

fn add_qdisc(nl: &mut Netlink, ifindex: u32, qdisc: &QdiscRecord) -> Result<()> {
    let mut request = qdisc::new_qdisc(ifindex, qdisc.parent, qdisc.handle);
    let mut attrs = push_options(request.encode(), &qdisc.kind, qdisc.options.as_ref());
    if let Some(stab) = &qdisc.stab {
        attr::push(attrs.as_vec_mut(), libc::TCA_STAB, true, &stab.0);
    }
    drop(attrs);
    nl.add(&request, &qdisc.kind, ifindex, qdisc.parent)
}

fn add_class(nl: &mut Netlink, ifindex: u32, class: &ClassRecord) -> Result<()> {
    let header = tcmsg(ifindex, class.parent, class.handle);
    let mut request = tc::Request::new()
        .set_create()
        .set_excl()
        .op_newtclass_do(&header);
    drop(push_options(
        request.encode(),
        &class.kind,
        class.options.as_ref(),
    ));
    nl.ack(&request, || {
        format!("add class {} {}", class.kind, show_handle(class.handle))
    })
}

fn add_filter(nl: &mut Netlink, ifindex: u32, filter: &FilterRecord) -> Result<()> {
    let header = tc::Tcmsg {
        info: filter.info,
        ..tcmsg(ifindex, filter.parent, filter.handle)
    };
    let mut request = tc::Request::new()
        .set_create()
        .set_excl()
        .op_newtfilter_do(&header);
    let mut attrs = push_options(request.encode(), &filter.kind, Some(&filter.options));
    if let Some(chain) = filter.chain {
        attrs = attrs.push_chain(chain);
    }
    drop(attrs);
    nl.ack(&request, || {
        format!(
            "add filter {} to {}, pref {}",
            filter.kind,
            show_handle(filter.parent),
            filter.info >> 16
        )
    })
}
