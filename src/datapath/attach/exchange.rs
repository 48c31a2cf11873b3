// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exchanges the profile of a link: detach, then attach. Whatever fails, the interface keeps a link.

use std::process::Command;

use super::{Done, HolderStart, Request, background};
use crate::abi::DIRECTIONS;
use crate::datapath::attachment::Attachment;
use crate::datapath::compiled::{compile_new, compile_rules};
use crate::datapath::ending::LEASE;
use crate::datapath::engine::{Engine, EngineChoice, Kernel, hold};
use crate::datapath::{LinkError, attachment, held, pieces, plan, restore};
use crate::host::{interface, now_ns};
use crate::netlink::{Link, Netlink};
use crate::profile::{Offload, Profile, TraceSource};

/// Returns what attaches the link of an interface again.
///
/// # Errors
/// Nothing is attached, it has ended, or it would lose something.
pub fn again(interface: &str) -> Result<Request, LinkError> {
    let mut nl = Netlink::open()?;
    let link = nl.link(interface)?;
    let there = attachment::running(&mut nl, &link)?;
    request_of(&link, &there)
}

/// Attaches what is requested instead of the link that is there. The interface is without a link in between.
///
/// # Errors
/// The link is as before: with all that can be examined before it is detached, nothing has changed; otherwise
/// it was attached again, and its counters restart at 0 ([`LinkError::NotExchanged`]). In the worst case there is none
/// ([`LinkError::NotAttachedAgain`]).
pub fn exchange(
    mut request: Request,
    holder: impl Fn(HolderStart) -> Command,
) -> Result<Done, LinkError> {
    // Ctrl-C is handled after everything is done or reverted.
    let _stop = hold::signal::stop_signals().map_err(LinkError::Signal)?;
    let mut nl = Netlink::open()?;
    let link = nl.link(&request.interface)?;
    let lock = interface::lock(link.index, interface::PATIENCE)?;
    let mut there = attachment::running(&mut nl, &link)?;
    let before = Request {
        resolvers: request.resolvers.clone(),
        ..request_of(&link, &there)?
    };
    if before.profile.offload == Offload::Keep {
        request.profile.offload = Offload::Keep;
    }
    // Detach would leave what another process put there, and both attaches fail because of it.
    if !pieces::tampering(&mut nl, &link, &there)?.is_empty() {
        return Err(LinkError::Irreplaceable {
            interface: link.name,
            why: "another process has changed parts of it (`emud show`): `emud detach`, `emud attach`",
        });
    }
    check(&mut nl, &link, &request)?;
    let detached = restore::undo_attachment(&mut nl, &link, &mut there);
    detached.map_err(|cause| LinkError::StillAttached {
        cause: Box::new(cause),
        interface: link.name.clone(),
    })?;
    drop((lock, there));
    let cause = match background(&request, &holder) {
        Err(cause) => Box::new(cause),
        done => return done,
    };
    let interface = link.name;
    Err(match background(&before, &holder) {
        Ok(_) => LinkError::NotExchanged { cause, interface },
        Err(again) => LinkError::NotAttachedAgain {
            cause,
            again: Box::new(again),
            interface,
        },
    })
}

fn request_of(link: &Link, there: &Attachment) -> Result<Request, LinkError> {
    let saved = &there.saved;
    let profile = Profile::parse(&saved.profile, "the profile in the kernel")?;
    let ends_at = there.maps.ends_at()?;
    let left_ns = ends_at.map(|end| end.saturating_sub(now_ns()));
    if let Some(why) = irreplaceable(&profile, left_ns.map(|ns| ns as f64 / 1e9)) {
        return Err(LinkError::Irreplaceable {
            interface: link.name.clone(),
            why,
        });
    }
    Ok(Request {
        interface: link.name.clone(),
        profile,
        seed: Some(saved.seed),
        directions: saved.directions,
        reversed: saved.reversed,
        engine: match saved.engine {
            Engine::Fq => EngineChoice::Fq,
            Engine::Hold => EngineChoice::Hold,
            Engine::Qdisc => EngineChoice::Qdisc,
        },
        // Detach restores the qdisc that was replaced.
        replace: saved.root.is_some(),
        lasts: None,
        ends_at,
        outlives: true,
        resolvers: None,
    })
}

/// Returns what a link would lose if it were attached again by its record, and what to do instead; `None`:
/// nothing. A deadline that is near may be the lease of a process.
pub(crate) fn irreplaceable(profile: &Profile, ends_in_s: Option<f64>) -> Option<&'static str> {
    let mut links = DIRECTIONS.into_iter().flat_map(|d| profile.links_of(d));
    let in_force = |source: &TraceSource| matches!(source, TraceSource::InForce(_));
    let long = links.any(|l| l.trace.as_ref().is_some_and(|t| in_force(&t.source)));
    match ends_in_s {
        _ if profile.spares() => Some("it spares traffic: `emud detach`, `emud attach --spare`"),
        _ if long => Some("the kernel has no text of its long trace: `emud detach`, `emud attach`"),
        _ if profile.matrix.is_some() => {
            Some("pairs of its matrix would be lost: `emud detach`, `emud attach`")
        }
        Some(0.0) => Some("it has ended: `emud detach`, `emud attach`"),
        Some(s) if s <= LEASE.as_secs_f64() => {
            Some("it ends with a process: `emud detach`, `emud attach --while-pid`")
        }
        _ => None,
    }
}

/// Examines all that attach examines before its first change, beside the link that is there.
fn check(nl: &mut Netlink, link: &Link, request: &Request) -> Result<(), LinkError> {
    let both = compile_new(&request.profile, plan::origin(request))?;
    compile_rules(&request.profile)?;
    let needs = plan::needs(nl, link, request, &both);
    let mut kernel = Kernel::new(request.directions);
    let chosen = plan::choose(link, request, &needs, &mut kernel)?;
    if chosen.engine == Engine::Hold {
        let (profile, directions) = (&request.profile, request.directions);
        held::limits(&link.name, profile, &both, directions, &mut vec![])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_record_lacks_is_not_exchanged() {
        let profile = |text: &str| Profile::parse(text, "x").unwrap();
        let why = |profile: &Profile, ends_in_s| irreplaceable(profile, ends_in_s).unwrap_or("");
        let plain = profile("[up]\ndelay = \"5ms\"\n");
        for (ends_in_s, wanted) in [
            (None, ""),
            (Some(60.0), ""),
            (Some(4.2), "--while-pid"),
            (Some(0.0), "has ended"),
        ] {
            let said = why(&plain, ends_in_s);
            assert!(said.contains(wanted), "{ends_in_s:?}: {said}");
            assert_eq!(said.is_empty(), wanted.is_empty(), "{ends_in_s:?}: {said}");
        }
        let mut spares = plain;
        spares.spare("192.0.2.0/24".parse().unwrap());
        assert!(why(&spares, None).contains("--spare"));
        let matrix = profile("[matrix]\ncapacity = 10\n");
        assert!(why(&matrix, None).contains("matrix"));
        let rows: Vec<String> = (0..4000).map(|i| format!("{i},1")).collect();
        let rows = format!("time_s,rate_mbit;{}", rows.join(";"));
        let traced = profile(&format!("[up]\ntrace = {{ rows = \"{rows}\" }}\n"));
        assert_eq!(why(&traced, None), "");
        let kept = crate::datapath::stage::timeline::kept(&traced);
        assert!(why(&kept, None).contains("trace"));
    }
}
