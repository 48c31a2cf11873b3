// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saves and restores a root qdisc that a user configured.
//!
//! Longer than 400 lines: the format of a saved root beside the only code that reads and writes it.

use std::collections::BTreeSet;

use netlink_bindings::tc;
use serde::{Deserialize, Serialize};

use super::qdisc::{self, MAJOR, Qdisc, tcmsg};
use super::{Link, Netlink, NetlinkError, Result, attr, restorable, show_handle};

const FORMAT: u32 = 1;
const NLM_F_DUMP: u16 = 0x300;
const U32_NODE: u32 = 0x000f_ffff;

/// Attributes, as hexadecimal digits in JSON: half of what a list of numbers takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Raw(pub Vec<u8>);

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
pub(super) struct QdiscRecord {
    #[serde(rename = "k")]
    pub kind: String,
    #[serde(rename = "h")]
    pub handle: u32,
    #[serde(rename = "p")]
    pub parent: u32,
    #[serde(rename = "o", skip_serializing_if = "Option::is_none")]
    pub options: Option<Raw>,
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    pub stab: Option<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ClassRecord {
    #[serde(rename = "k")]
    pub kind: String,
    #[serde(rename = "h")]
    pub handle: u32,
    #[serde(rename = "p")]
    pub parent: u32,
    #[serde(rename = "o", skip_serializing_if = "Option::is_none")]
    pub options: Option<Raw>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct FilterRecord {
    #[serde(rename = "k")]
    pub kind: String,
    #[serde(rename = "p")]
    pub parent: u32,
    #[serde(rename = "h")]
    pub handle: u32,
    /// Preference and protocol as in struct tcmsg.
    #[serde(rename = "i")]
    pub info: u32,
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    pub chain: Option<u32>,
    #[serde(rename = "o")]
    pub options: Raw,
}

impl ClassRecord {
    /// Returns the same before it had children.
    fn as_created(&self) -> Self {
        let mut created = self.clone();
        if let ("htb", Some(options)) = (&*self.kind, &mut created.options) {
            options.0 = restorable::without_level(&options.0);
        }
        created
    }
}

impl FilterRecord {
    pub(super) fn is_hash_table(&self) -> bool {
        self.kind == "u32" && self.handle & U32_NODE == 0
    }
}

/// How much of a [`RootSnapshot`] is on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The root is the kernel's default.
    Nothing,
    /// Its root, and not everything below.
    Part,
    /// All, and nothing else.
    All,
    /// Another root, or something that it does not have.
    Another,
}

/// The state that is needed to restore a root qdisc: the qdiscs below it, their classes and
/// filters, with every handle. Default children are not included; the kernel creates them again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RootSnapshot {
    format: u32,
    /// In the order of creation.
    pub(super) qdiscs: Vec<QdiscRecord>,
    /// In the order of the dump.
    pub(super) classes: Vec<ClassRecord>,
    pub(super) filters: Vec<FilterRecord>,
}

impl RootSnapshot {
    /// Returns the state of the interface's root, `None` if it is the kernel's default. Rehearses
    /// the restoring on a device in a private network namespace, so that a problem is found before
    /// anything is removed.
    ///
    /// # Errors
    /// [`NetlinkError::CannotRestore`] with the part that cannot be restored.
    pub fn take(nl: &mut Netlink, ifindex: u32) -> Result<Option<Self>> {
        let link = nl.link_by_index(ifindex)?;
        let Some(taken) = Self::read(nl, &link)? else {
            return Ok(None);
        };
        taken.rehearse(nl, &link)?;
        Ok(Some(taken))
    }

    /// Returns the kind of the root qdisc.
    pub fn kind(&self) -> &str {
        self.qdiscs.first().map_or("", |q| &q.kind)
    }

    /// Serialises to compact JSON, for a BPF map.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Strings and numbers only, which cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the state from a BPF map.
    ///
    /// # Errors
    /// [`NetlinkError::BadSnapshot`] if the format is not supported.
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

    /// Restores the qdisc, replacing the current root qdisc, and checks whether the kernel shows
    /// the same as before. If it fails half-way, the root has the kernel's default.
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

    /// Returns how much of it is the interface's root: a restoring may have been interrupted.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn standing(&self, nl: &mut Netlink, ifindex: u32) -> Result<Standing> {
        let link = nl.link_by_index(ifindex)?;
        let now = match Self::read(nl, &link) {
            Ok(None) => return Ok(Standing::Nothing),
            Ok(Some(now)) => now,
            Err(NetlinkError::CannotRestore { .. }) => return Ok(Standing::Another),
            Err(e) => return Err(e),
        };
        if self.difference(Some(&now)).is_none() {
            return Ok(Standing::All);
        }
        let known: BTreeSet<_> = self.classes.iter().map(ClassRecord::as_created).collect();
        let is_part = now.qdiscs.first() == self.qdiscs.first()
            && now.qdiscs.iter().all(|q| self.qdiscs.contains(q))
            && (now.classes.iter()).all(|c| known.contains(&c.as_created()))
            && now.filters.iter().all(|f| self.filters.contains(f));
        Ok(match is_part {
            true => Standing::Part,
            false => Standing::Another,
        })
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

    /// Describes the first difference to `now`.
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

    /// Returns whether a filter or action refers to another interface.
    pub(super) fn names_interfaces(&self) -> bool {
        self.filters
            .iter()
            .any(|f| restorable::names_interfaces(&f.kind, &f.options.0))
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

/// Returns the kernel's hash of a handle into the 16 lists of a device's qdiscs.
fn bucket(handle: u32) -> u32 {
    handle.wrapping_mul(0x61c8_8647) >> 28
}

/// Returns the root and the qdiscs under it that a user configured, in an order of creation: parents first,
/// and within a list of the kernel the last first, because the kernel lists its newest member
/// first.
fn below_root(mut qdiscs: Vec<Qdisc>) -> Vec<Qdisc> {
    qdiscs.retain(Qdisc::by_hand);
    let Some(root) = qdiscs.iter().position(Qdisc::is_root) else {
        return Vec::new();
    };
    let mut tree = vec![qdiscs.remove(root)];
    loop {
        let hangs = |q: &Qdisc| tree.iter().any(|t| t.handle & MAJOR == q.parent & MAJOR);
        let last = |at: usize| {
            qdiscs[at + 1..]
                .iter()
                .all(|later| bucket(later.handle) != bucket(qdiscs[at].handle))
        };
        let ready = || (0..qdiscs.len()).rev().filter(|&at| hangs(&qdiscs[at]));
        let Some(next) = ready().find(|&at| last(at)).or_else(|| ready().next()) else {
            return tree;
        };
        tree.push(qdiscs.remove(next));
    }
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

/// Reads the classes of one qdisc, and whether they have a rate estimator.
fn read_classes(nl: &mut Netlink, ifindex: u32, of: &Qdisc) -> Result<Vec<(ClassRecord, bool)>> {
    // The specification has no dump of classes, but the kernel supports it.
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
            // The entry of a priority for the priority itself.
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
