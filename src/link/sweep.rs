// SPDX-License-Identifier: MIT OR Apache-2.0
//! emud's own devices, and those whose interface is gone: its filters go with it, engine fq's ifb
//! and the TAPs of a killed holder do not. Nothing of emud runs that could delete them at that
//! moment, so the next attach or detach in the namespace does.

use crate::abi;
use crate::engine::fq;
use crate::link::saved::Engine;
use crate::link::{LinkError, attachment};
use crate::netlink::{Link, Netlink};

const IFB: &str = "emud-ifb-";
const TAPS: [&str; 2] = ["emud-up-", "emud-down-"];

/// The devices of a link, by direction. The ifb is there for `up` alone, too: it keeps the record.
pub(super) fn devices(engine: Engine, directions: [bool; 2], ifindex: u32) -> [Option<String>; 2] {
    match engine {
        Engine::Fq => [None, Some(format!("{IFB}{ifindex}"))],
        Engine::Hold => [abi::EMUD_UP, abi::EMUD_DOWN].map(|direction| {
            let direction = direction as usize;
            directions[direction].then(|| format!("{}{ifindex}", TAPS[direction]))
        }),
    }
}

/// Every name that a device of emud's for an interface can have.
pub(super) fn device_names(ifindex: u32) -> [String; 3] {
    let [up, down] = TAPS;
    [up, down, IFB].map(|prefix| format!("{prefix}{ifindex}"))
}

/// Deletes every device of emud's whose interface is gone; their names.
///
/// # Errors
/// The kernel's.
pub(super) fn sweep(nl: &mut Netlink) -> Result<Vec<String>, LinkError> {
    let mut swept = Vec::new();
    let links = nl.links()?;
    for link in &links {
        let Some(interface) = interface_of(link) else {
            continue;
        };
        if links.iter().all(|other| other.index != interface) && is_ours(nl, link)? {
            nl.delete_link(link.index)?;
            swept.push(link.name.clone());
        }
    }
    Ok(swept)
}

/// By its name alone: the ifindex of the interface that the device is for.
fn interface_of(link: &Link) -> Option<u32> {
    let number = |prefix: &&str| link.name.strip_prefix(prefix)?.parse().ok();
    match link.kind.as_deref()? {
        "ifb" => number(&IFB),
        "tun" => TAPS.iter().find_map(number),
        _ => None,
    }
}

/// Not somebody's who likes the name.
pub(super) fn is_ours(nl: &mut Netlink, link: &Link) -> Result<bool, LinkError> {
    let by_root = |q: crate::netlink::Qdisc| q.handle == fq::ROOT_HANDLE;
    Ok(interface_of(link).is_some()
        && (attachment::kept_by(nl, link)?.is_some()
            || nl.root_by_hand(link.index)?.is_some_and(by_root)))
}
