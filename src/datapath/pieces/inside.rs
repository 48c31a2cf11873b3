// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is on emud's own devices: only what attach put there.

use super::difference::{Tampering, lost};
use super::root::root_among;
use crate::abi::DIRECTIONS;
use crate::datapath::engine::Engine;
use crate::datapath::saved::Segmenter;
use crate::datapath::{FILTER_HANDLE, segmenter};
use crate::netlink::{Filter, FilterBpf, Hook, Link, Netlink, NetlinkError, tcx_programs};

/// Compares the filters and programs of a device with these filters at its ingress.
pub(super) fn compare(
    nl: &mut Netlink,
    device: &Link,
    ours: &[&str],
) -> Result<Option<Tampering>, NetlinkError> {
    let (name, mut missing, mut others) = (&device.name, ours.to_vec(), vec![]);
    for hook in [Hook::Ingress, Hook::Egress] {
        for filter in nl.filters(device.index, hook)? {
            match missing.iter().position(|one| is(&filter, one)) {
                Some(at) if hook == Hook::Ingress => drop(missing.swap_remove(at)),
                _ => others.push(format!(
                    "the {} filter {} of pref {}",
                    hook.name(),
                    filter.kind,
                    filter.pref
                )),
            }
        }
        let programs = match tcx_programs(device.index, hook) {
            // Only root can list them.
            Err(NetlinkError::Denied(_)) => vec![],
            programs => programs?,
        };
        let programs = programs.into_iter();
        others.extend(programs.map(|one| format!("the {} tcx program {}", hook.name(), one.name)));
    }
    others.extend(device.xdp.map(|id| format!("the XDP program {id}")));
    Ok(match (missing.first(), others.first()) {
        (Some(one), _) => Tampering::gone(format!("the filter {one} of {name} was deleted")),
        (None, Some(one)) => Tampering::changed(format!("{one} was added to {name}")),
        (None, None) => None,
    })
}

fn is(filter: &Filter, name: &str) -> bool {
    let named = |bpf: &FilterBpf| bpf.name == name;
    filter.handle == FILTER_HANDLE && filter.bpf.as_ref().is_some_and(named)
}

/// Checks both ends of the segmenter.
pub(super) fn segmenter(
    nl: &mut Netlink,
    pair: &Segmenter,
) -> Result<Option<Tampering>, NetlinkError> {
    let ends = match segmenter::ends(nl, &pair.ends) {
        Err(NetlinkError::NoInterface(name)) => return Ok(Tampering::gone(lost(&name))),
        found => found?,
    };
    // A packet leaves at the opposite end.
    let leaving = DIRECTIONS.into_iter().rev();
    for ((end, leaving), sums) in ends.iter().zip(leaving).zip(pair.sums) {
        let name = &end.name;
        if !end.up {
            return Ok(Tampering::gone(format!("device {name} is down")));
        }
        let sent = segmenter::surplus(nl, end, sums)?;
        if let Some(feature) = sent.changeable.union(&sent.fixed).next() {
            return Ok(Tampering::gone(format!("{feature} of {name} is on")));
        }
        let found = match compare(nl, end, &[segmenter::program(leaving)])? {
            // As the TAPs of engine hold, they have the kernel's root.
            None => root_among(&nl.qdiscs(end.index)?, end, Engine::Hold, 0),
            found => found,
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}
