// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the root qdisc of an interface with that of an engine.

use super::difference::Tampering;
use crate::datapath::engine::{Engine, fq, qdisc};
use crate::netlink::{Link, Qdisc, ROOT, show_handle};

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
            tso_max_segs: None,
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
}
