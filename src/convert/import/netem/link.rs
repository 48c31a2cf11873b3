// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts a netem to a link of a profile.
//!
//! The comments about netem are based on net/sched/sch_netem.c (Linux 6.18) and tc/q_netem.c
//! (iproute2 6.9 and later); figures for its generator with correlation are from running that
//! recurrence 10^6 times.

use super::chances::{alter, reorder};
use super::limit::limit;
use super::loss::loss;
use super::rate::{effective_rate, faster_rate, rate_keys, shaper_keys, slower_shaper};
use super::slot::slots;
use super::{Netem, Under};
use crate::convert::import::Tables;
use crate::convert::import::writer::{Writer, quoted};
use crate::text::Mistake;

/// Writes the seed: a profile has one for all of its links.
pub(in crate::convert::import) fn seed<'a>(
    out: &mut Writer,
    netems: impl Iterator<Item = &'a Netem>,
) {
    let mut seeds = netems.filter_map(|netem| Some((netem, netem.seed?)));
    let Some((first, seed)) = seeds.next() else {
        return;
    };
    out.from(&first.place_of(&["seed"]));
    out.note("The same seed repeats emud's decisions, not those of netem.");
    out.key("seed", seed);
    for (_, other) in seeds.filter(|(_, other)| *other != seed) {
        out.warning(format!(
            "`seed {other}` of another netem: a profile has one seed"
        ));
    }
}

/// The object beside a netem, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::convert::import) enum Beside {
    Nothing,
    /// Another netem, for the other direction.
    OtherDirection,
    /// The server of the class whose packets netem receives.
    Server,
}

pub(in crate::convert::import) fn link(
    out: &mut Writer,
    netem: &Netem,
    beside: Beside,
    tables: Tables,
) -> Result<(), Mistake> {
    match &netem.under {
        Under::Nothing => {}
        Under::Default => {
            out.note(
                "netem receives packets that no filter sends to another class; so does this link.",
            );
        }
        Under::FirstOf(parent) => out.note(&format!(
            "netem is below {parent}: a tbf receives every packet of the device, as here."
        )),
        Under::Class(parent) => out.warning(format!(
            "netem is below class {parent} and receives only packets classified there; this link \
             receives every packet of the device"
        )),
    }
    if let Some(name) = netem
        .device
        .as_deref()
        .filter(|d| d.starts_with("ifb") && beside == Beside::Nothing)
    {
        out.note(&format!(
            "On {name} netem probably emulates ingress of another device: --direction down."
        ));
    }
    if netem.bare_time {
        let text = "a time without a unit is nanoseconds for iproute2 6.9 and later, which is \
                    taken here, but microseconds for earlier ones and milliseconds in the manual";
        out.note(text);
        out.warnings.push(text.to_owned());
    }
    if netem.shown && netem.jitter_ns > 0 {
        out.warning(
            "the jitter's distribution, if any: tc does not print it; this is uniform, as \
             without one"
                .to_owned(),
        );
    }
    for name in &netem.kept {
        let text = format!(
            "`{name}` is that of the command before: the kernel keeps it, since the last one changes the netem"
        );
        out.note(&text);
        out.warnings.push(text);
    }
    let from = |out: &mut Writer, options: &[&str]| out.from(&netem.place_of(options));
    from(out, &["rate"]);
    let rate = effective_rate(netem);
    faster_rate(out, netem);
    match slower_shaper(netem) {
        Some(shaper) => shaper_keys(out, shaper, rate.unwrap_or_default()),
        None => {
            if let Some(option) = &netem.rate {
                rate_keys(out, option, rate)?;
            }
        }
    }
    from(out, &["limit"]);
    limit(out, netem, rate);
    // A rate of netem keeps packets in order, and does not delay those sent at once.
    let own = rate.is_some() && netem.rate.is_some();
    from(out, &["delay", "latency", "distribution"]);
    netem.delay_keys(out, own, tables)?;
    from(out, &["reorder", "gap"]);
    reorder(out, netem, own)?;
    from(out, &["loss", "drop"]);
    // netem receives a packet before its class waits for the server.
    let is_timed = rate.is_some() || beside == Beside::Server;
    loss(out, netem, is_timed);
    alter(out, netem, is_timed);
    if let Some(slot) = &netem.slot {
        from(out, &["slot"]);
        slots(out, slot);
    }
    out.from(&netem.at);
    out.note(
        "netem treats ARP and IPv6 neighbour discovery like any packet; without this line emud \
         leaves them alone.",
    );
    out.key("neighbours", quoted("emulate"));
    Ok(())
}
