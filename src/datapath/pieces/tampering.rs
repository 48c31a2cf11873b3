// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares one part of an emulated link with what attach created.

use super::{Piece, inside, renamed};
use crate::abi;
use crate::abi::direction_name;
use crate::datapath::attachment::Attachment;
use crate::datapath::engine::{Engine, fq, qdisc};
use crate::datapath::maps::Program;
use crate::datapath::programs::is_by_tcx;
use crate::datapath::saved::Saved;
use crate::datapath::show::report::running;
use crate::datapath::{
    FILTER_HANDLE, LinkError, ORPHAN_HANDLE, ahead, attachment, filter_name, hook,
};
use crate::host::now_ns;
use crate::netlink::{
    Filter, FilterBpf, Hook, Link, Netlink, NetlinkError, Qdisc, ROOT, show_handle,
};

/// A difference from what attach created.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tampering {
    /// Whether a part of the link is deleted, and not only changed: the rest is incomplete.
    pub gone: bool,
    /// Description, without the interface's name.
    pub what: String,
}

impl Tampering {
    pub(super) fn gone(what: impl Into<String>) -> Option<Self> {
        Some(Self {
            gone: true,
            what: what.into(),
        })
    }

    pub(super) fn changed(what: impl Into<String>) -> Option<Self> {
        Some(Self {
            gone: false,
            what: what.into(),
        })
    }
}

pub(super) fn check(
    nl: &mut Netlink,
    link: &Link,
    there: &Attachment,
    piece: &Piece,
) -> Result<Option<Tampering>, LinkError> {
    Ok(match piece {
        Piece::Filter(direction) => match filter(nl, link, there, *direction)? {
            None => ahead::added(nl, link, &there.saved, *direction)?.and_then(|what| {
                let (hook, name) = (hook(*direction).name(), filter_name(*direction));
                Tampering::changed(format!(
                    "the {hook} {what} was added before {name}: a packet that it accepts is not emulated"
                ))
            }),
            deleted => deleted,
        },
        Piece::Device { name, direction } => {
            let wanted = there.maps.link(*direction)?.ifindex;
            match nl.find_link(name)? {
                Some(device) if device.index != wanted => {
                    Tampering::gone(format!("device {name} was replaced"))
                }
                Some(device) if !device.up => Tampering::changed(format!("device {name} is down")),
                Some(_) => None,
                None => match renamed(nl, &there.maps, &there.saved, *direction)? {
                    Some(device) => {
                        Tampering::changed(format!("device {name} was renamed to {}", device.name))
                    }
                    None => Tampering::gone(lost(name)),
                },
            }
        }
        Piece::Inside {
            name,
            direction,
            filters,
        } => match nl.find_link(name)? {
            Some(device) => match root(nl, &device, &there.saved, *direction)? {
                None => inside::compare(nl, &device, filters)?,
                other => other,
            },
            // Reported for the device.
            None => None,
        },
        Piece::Root => root(nl, link, &there.saved, abi::EMUD_UP)?,
        Piece::Redirect(pref) => {
            let filters = nl.filters(link.index, Hook::Ingress)?;
            let ifb = there.maps.link(abi::EMUD_DOWN)?.ifindex;
            redirect(&filters, *pref, ifb)
        }
        Piece::Segments if link.gso.max_segs != 1 => {
            Tampering::changed(format!("gso_max_segs is {}, not 1", link.gso.max_segs))
        }
        Piece::Segments => None,
        Piece::Segmenter(segmenter) => inside::segmenter(nl, segmenter)?,
        Piece::Mtu(mtu) if link.mtu != *mtu => {
            Tampering::changed(format!("the MTU is {}, at attach it was {mtu}", link.mtu))
        }
        Piece::Mtu(_) => None,
        Piece::Holder(direction) => holder(&there.maps.holder(*direction)?),
    })
}

fn filter(
    nl: &mut Netlink,
    link: &Link,
    there: &Attachment,
    direction: u32,
) -> Result<Option<Tampering>, LinkError> {
    let ours = attachment::filters(nl, link.index)?;
    // A change may have loaded another program, and be about to replace this filter's.
    let is_there = |filter: &attachment::Ours| {
        filter.direction == direction
            && (filter.program_id == there.program_id || there.maps.are_of(filter.program_id))
    };
    if ours.iter().any(is_there) {
        return Ok(None);
    }
    let (hook, name) = (hook(direction).name(), filter_name(direction));
    let kind = match is_by_tcx(there.saved.engine, direction) {
        true => "tcx program",
        false => "filter",
    };
    let what = format!(
        "the {hook} {kind} {name} was deleted: {} is not emulated",
        direction_name(direction)
    );
    Ok(Tampering::gone(what))
}

/// Checks the root of the interface, or of emud's ifb, where packets of a direction wait.
fn root(
    nl: &mut Netlink,
    link: &Link,
    saved: &Saved,
    direction: u32,
) -> Result<Option<Tampering>, NetlinkError> {
    let room = saved.fq_room[direction as usize].packets();
    match nl.qdiscs(link.index) {
        Ok(qdiscs) => Ok(root_among(&qdiscs, link, saved.engine, room)),
        // It was deleted just now; that is reported for the device.
        Err(e) if e.errno() == libc::ENODEV => Ok(None),
        Err(e) => Err(e),
    }
}

/// Checks the root of an interface among all its qdiscs. `room`: packets that each fq can keep.
pub(super) fn root_among(
    qdiscs: &[Qdisc],
    link: &Link,
    engine: Engine,
    room: u32,
) -> Option<Tampering> {
    let name = &link.name;
    let by_hand = qdiscs.iter().find(|q| q.parent == ROOT && q.by_hand());
    let other = |q: &Qdisc| format!("{} {}", q.kind, show_handle(q.handle));
    let altered = |fq: &Qdisc| {
        let is_altered = (fq.fq_options()).is_some_and(|now| fq::is_altered(&now, room));
        let what = || format!("the options of {} of {name} were changed", other(fq));
        is_altered.then(what).and_then(Tampering::changed)
    };
    match (engine, by_hand) {
        (Engine::Hold, None) => None,
        (Engine::Hold, Some(q)) => {
            Tampering::changed(format!("the root qdisc {} was added to {name}", other(q)))
        }
        (_, None) => Tampering::gone(format!("the root qdisc {engine} of {name} was deleted")),
        (Engine::Qdisc, Some(q)) if qdisc::is_own(q) => None,
        (Engine::Fq, Some(q)) if q.handle == fq::ROOT_HANDLE && q.kind == "fq" => altered(q),
        (Engine::Fq, Some(q)) if q.handle == fq::ROOT_HANDLE && q.kind == "mq" => {
            fq::classes(link.num_tx_queues).find_map(|class| {
                let of = show_handle(class);
                match qdiscs.iter().find(|q| q.parent == class) {
                    Some(q) if q.kind == "fq" => altered(q),
                    Some(q) => {
                        Tampering::gone(format!("fq of class {of} was replaced by {}", other(q)))
                    }
                    // The kernel lists no qdisc of such a class.
                    None => Tampering::gone(format!(
                        "fq of class {of} was deleted: its queue drops all packets"
                    )),
                }
            })
        }
        (_, Some(q)) => Tampering::gone(format!(
            "the root qdisc {engine} of {name} was replaced by {}",
            other(q)
        )),
    }
}

/// Checks the filters that send ingress to the ifb.
fn redirect(filters: &[Filter], pref: u16, ifb: u32) -> Option<Tampering> {
    let redirect =
        |f: &&Filter| f.kind == "matchall" && f.pref == pref && f.handle == FILTER_HANDLE;
    let orphan = |f: &Filter| {
        let ours = |bpf: &FilterBpf| bpf.name == Program::Orphan.name();
        f.handle == ORPHAN_HANDLE && f.bpf.as_ref().is_some_and(ours)
    };
    match filters.iter().find(redirect) {
        None => Tampering::gone("the ingress filter that redirects to the ifb was deleted"),
        // 0: the ifb was deleted; that is reported for the device.
        Some(f) if f.redirects_to.is_none_or(|to| to != ifb && to != 0) => {
            Tampering::gone("the ingress filter that redirects to the ifb has another action")
        }
        Some(_) if !filters.iter().any(orphan) => Tampering::gone(format!(
            "the ingress filter {} was deleted",
            Program::Orphan.name()
        )),
        Some(_) => None,
    }
}

/// Returns what is wrong with the holder's process. Lack of CPU time is shown by the counters instead.
fn holder(h: &abi::emud_holder) -> Option<Tampering> {
    if h.lease_ns >= now_ns() {
        return None;
    }
    if !running(h.pid) {
        return Tampering::gone(format!("the holder (pid {}) is gone", h.pid));
    }
    match stopped(h.pid) {
        true => Tampering::changed(format!("the holder (pid {}) is stopped", h.pid)),
        false => None,
    }
}

/// Returns the message on a device that does not exist.
pub(super) fn lost(name: &str) -> String {
    format!("device {name} was deleted, or moved to another network namespace")
}

/// Returns whether SIGSTOP or a debugger stopped a process.
pub(super) fn stopped(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name, which may contain anything.
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    state.starts_with(['T', 't'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::classid;

    fn qdisc(kind: &str, handle: u32, parent: u32) -> Qdisc {
        Qdisc {
            kind: kind.into(),
            handle,
            parent,
            options: None,
            stab: None,
            ingress_block: None,
            egress_block: None,
            estimator: false,
            qlen: 0,
            drops: 0,
        }
    }

    fn va(num_tx_queues: u32) -> Link {
        Link {
            index: 7,
            name: "va".into(),
            kind: None,
            arphrd: 1,
            mtu: 1500,
            up: true,
            loopback: false,
            noarp: false,
            num_tx_queues,
            txqlen: 0,
            gso: crate::netlink::Gso {
                max_segs: 1,
                max_size: 65536,
                ipv4_max_size: None,
            },
            mac: vec![],
            qdisc: None,
            master: None,
            peer: None,
            xdp: None,
            alias: None,
        }
    }

    #[test]
    fn each_transmit_queue_below_mq_has_its_fq() {
        let class = |n| classid(fq::ROOT_HANDLE, n);
        let whole = [
            qdisc("mq", fq::ROOT_HANDLE, ROOT),
            qdisc("fq", 0x8001_0000, class(1)),
            qdisc("fq", 0x8002_0000, class(2)),
        ];
        let found =
            |qdiscs: &[Qdisc]| root_among(qdiscs, &va(2), Engine::Fq, 1000).map(|one| one.what);
        assert_eq!(found(&whole), None);
        let one_lost = [whole[0].clone(), whole[2].clone()];
        let deleted = "fq of class e3d0:1 was deleted: its queue drops all packets";
        assert_eq!(found(&one_lost).as_deref(), Some(deleted));
        let mut replaced = whole.clone();
        replaced[2].kind = "pfifo".into();
        let by = "fq of class e3d0:2 was replaced by pfifo 8002:";
        assert_eq!(found(&replaced).as_deref(), Some(by));
        // A handle alone does not make a root emud's.
        let other = [qdisc("pfifo", fq::ROOT_HANDLE, ROOT)];
        let by = "the root qdisc fq of va was replaced by pfifo e3d0:";
        assert_eq!(found(&other).as_deref(), Some(by));
    }

    #[test]
    fn a_redirect_that_does_something_else_is_none() {
        let filter = |kind: &str, pref, handle| Filter {
            kind: kind.into(),
            pref,
            handle,
            chain: 0,
            protocol: 3,
            bpf: None,
            redirects_to: None,
        };
        let orphan = Filter {
            bpf: Some(FilterBpf {
                program_id: 1,
                name: Program::Orphan.name().into(),
                tag: vec![],
                direct_action: true,
            }),
            ..filter("bpf", 1, ORPHAN_HANDLE)
        };
        let to = |redirects_to| Filter {
            redirects_to,
            ..filter("matchall", 4, FILTER_HANDLE)
        };
        let found = |filters: &[Filter]| redirect(filters, 4, 9).map(|one| one.what);
        for ifb in [9, 0] {
            assert_eq!(found(&[orphan.clone(), to(Some(ifb))]), None);
        }
        let other = Some("the ingress filter that redirects to the ifb has another action");
        for elsewhere in [None, Some(8)] {
            assert_eq!(found(&[orphan.clone(), to(elsewhere)]).as_deref(), other);
        }
        let deleted = "the ingress filter emud_orphan was deleted";
        assert_eq!(found(&[to(Some(9))]).as_deref(), Some(deleted));
        let deleted = "the ingress filter that redirects to the ifb was deleted";
        assert_eq!(found(&[orphan]).as_deref(), Some(deleted));
    }
}
