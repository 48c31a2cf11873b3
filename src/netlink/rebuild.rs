// SPDX-License-Identifier: MIT OR Apache-2.0
//! Restores a root qdisc from its saved state.

use std::collections::BTreeSet;

use netlink_bindings::tc::{self, PushAttrs};
use netlink_bindings::traits::Pusher;

use super::qdisc::{self, MAJOR, tcmsg};
use super::snapshot::{ClassRecord, FilterRecord, QdiscRecord, Raw};
use super::{Netlink, ROOT, Result, RootSnapshot, attr, show_handle};

impl RootSnapshot {
    /// Recreates everything on a device with the kernel's default root.
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

/// Reverses classes, because a hash bucket lists its newest member first; but parent classes before their
/// children.
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
            // The parent does not exist: the kernel returns the error.
            ordered.extend(waiting);
            return ordered;
        }
    }
}

/// Sorts filters by creation: u32 has a root hash table per priority, numbered in the order in which the priorities
/// were created; a rule needs an existing table.
fn in_order_of_creation(filters: Vec<&FilterRecord>) -> Vec<&FilterRecord> {
    let group = |f: &FilterRecord| (f.parent, f.chain, f.info >> 16);
    // The kernel lists a priority's tables newest first: the last one belongs to its root.
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
