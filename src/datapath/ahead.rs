// SPDX-License-Identifier: MIT OR Apache-2.0
//! What sees packets before the classifier: a packet that it accepts is not emulated.

use super::maps::Program;
use super::programs::is_by_tcx;
use super::saved::{Ahead, Saved};
use super::{FILTER_HANDLE, filter_name, hook};
use crate::abi::DIRECTIONS;
use crate::netlink::{Filter, FilterBpf, Link, Netlink, NetlinkError, tcx_programs};

/// Returns it for each emulated direction.
pub(super) fn all(
    nl: &mut Netlink,
    link: &Link,
    saved: &Saved,
) -> Result<[Ahead; 2], NetlinkError> {
    let mut ahead = [Ahead::new(), Ahead::new()];
    for direction in DIRECTIONS {
        if saved.directions[direction as usize] {
            ahead[direction as usize] = of(nl, link, saved, direction)?;
        }
    }
    Ok(ahead)
}

fn of(nl: &mut Netlink, link: &Link, saved: &Saved, direction: u32) -> Result<Ahead, NetlinkError> {
    let by_tcx = is_by_tcx(saved.engine, direction);
    let programs = match tcx_programs(link.index, hook(direction)) {
        // Only root can list them.
        Err(NetlinkError::Denied(_)) => vec![],
        programs => programs?,
    };
    let programs = programs.into_iter().map(|program| program.name);
    let programs = programs.take_while(|name| !by_tcx || name != Program::Egress.name());
    // By name: what replaces a program has another id.
    let programs = programs.map(|name| format!("tcx program {name}"));
    let filters = match by_tcx {
        true => vec![],
        false => nl.filters(link.index, hook(direction))?,
    };
    Ok(count(programs.chain(filters_ahead(filters, direction))))
}

fn count(all: impl Iterator<Item = String>) -> Ahead {
    all.fold(Ahead::new(), |mut ahead, one| {
        *ahead.entry(one).or_default() += 1;
        ahead
    })
}

fn filters_ahead(filters: Vec<Filter>, direction: u32) -> impl Iterator<Item = String> {
    let is = |f: &Filter, name: &str| {
        let named = |bpf: &FilterBpf| bpf.name == name;
        f.bpf.as_ref().is_some_and(named)
    };
    let ours = move |f: &Filter| f.handle == FILTER_HANDLE && is(f, filter_name(direction));
    // Packets only pass chain 0.
    let all = filters.into_iter().filter(|f| f.chain == 0);
    let before = all.take_while(move |f| !ours(f));
    let others = before.filter(move |f| !is(f, Program::Orphan.name()));
    others.map(|f| format!("filter {} of pref {}", f.kind, f.pref))
}

/// Returns one that was not there at attach.
pub(super) fn added(
    nl: &mut Netlink,
    link: &Link,
    saved: &Saved,
    direction: u32,
) -> Result<Option<String>, NetlinkError> {
    let now = of(nl, link, saved, direction)?;
    Ok(more(now, &saved.ahead[direction as usize]))
}

fn more(now: Ahead, known: &Ahead) -> Option<String> {
    let is_more = |one: &String, n| n > known.get(one).copied().unwrap_or(0);
    let mut now = now.into_iter();
    now.find_map(|(one, n)| is_more(&one, n).then_some(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::EMUD_DOWN;
    use crate::datapath::ORPHAN_HANDLE;

    #[test]
    fn only_what_packets_reach_before_the_classifier_is_ahead() {
        let filter = |kind: &str, pref, handle, chain, name: Option<&str>| Filter {
            kind: kind.into(),
            pref,
            handle,
            chain,
            protocol: 3,
            bpf: name.map(|name| FilterBpf {
                program_id: 1,
                name: name.into(),
                tag: vec![],
                direct_action: true,
            }),
            redirects_to: None,
        };
        let filters = vec![
            filter("bpf", 1, ORPHAN_HANDLE, 0, Some("emud_orphan")),
            filter("flower", 2, 1, 7, None),
            filter("u32", 3, 1, 0, None),
            filter("bpf", 4, 1, 0, Some("theirs")),
            filter("bpf", 4, FILTER_HANDLE, 0, Some("emud_ingress")),
            filter("matchall", 5, FILTER_HANDLE, 0, None),
        ];
        let found: Vec<_> = filters_ahead(filters, EMUD_DOWN).collect();
        assert_eq!(found, ["filter u32 of pref 3", "filter bpf of pref 4"]);
    }

    #[test]
    fn more_than_at_attach_is_found_also_of_the_same_kind() {
        let all = |names: &[&str]| count(names.iter().map(|name| (*name).to_owned()));
        let found = |now: &[&str], known: &[&str]| more(all(now), &all(known));
        assert_eq!(found(&["a", "b"], &["b", "a", "c"]), None);
        assert_eq!(found(&["a", "a"], &["a"]).as_deref(), Some("a"));
        assert_eq!(found(&["a", "b"], &["a"]).as_deref(), Some("b"));
    }
}
