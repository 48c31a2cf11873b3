// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts a netem command to a profile.
//!
//! The comments about netem are based on net/sched/sch_netem.c (Linux 6.18) and tc/q_netem.c
//! (iproute2 6.9 and later); figures for its generator with correlation are from running that
//! recurrence 10^6 times.

use super::netem::{Chance, LossOption, Netem, RateOption, SlotOption, Under};
use super::tc_script::Script;
use super::tc_shaper::{Limit, Shaper};
use super::writer::{Writer, quoted, string, table};
use super::{Header, Imported, Tables};
use crate::convert::netem::{MOST_QUEUED, NO_LIMIT, USUAL_LIMIT, on_their_way};
use crate::profile::{
    Distribution, PACKET_BYTES, Percent, Profile, ProfileError, Rate, Time, Word,
};
use crate::text::{Mistake, TextError};

/// emud's maximum of `gap` of `reorder`.
const MOST_GAP: u32 = 1_000_000;

const NARROW: &str = "netem's correlation squeezes its random numbers towards one half, so small \
    probabilities nearly vanish: with 25 % correlation a chance of 1 % becomes 0.0002 %, one of \
    10 % becomes 1.7 %. emud keeps the probability.";

/// Returns the profile in a form that emud accepts.
pub(crate) fn profile(
    script: &Script,
    header: Header,
    tables: Tables,
) -> Result<Imported, Mistake> {
    let links = directions(&script.netems, header)?;
    let mut out = Writer::default();
    let netems = || {
        script
            .netems
            .iter()
            .chain(script.classes.iter().map(|(_, netem)| netem))
    };
    let texts: Vec<_> = netems().map(|netem| netem.text.as_str()).collect();
    out.key("source", string(&format!("imported: {}", texts.join("; "))));
    if let Some(seed) = netems().find_map(|netem| netem.seed) {
        out.note("The same seed repeats emud's decisions, not those of netem.");
        out.key("seed", seed);
    }
    let both = links.len() > 1;
    if links.is_empty() {
        out.header(header.word());
        out.note("Packets that no filter sends to a class with a netem pass without a change.");
    }
    let own = links
        .iter()
        .map(|(header, netem)| (header.word().to_owned(), *netem));
    let named = script
        .classes
        .iter()
        .map(|(name, netem)| (format!("links.{name}"), netem));
    for (name, netem) in own.chain(named) {
        let lines = out.lines();
        out.header(&name);
        link(&mut out, netem, both, tables)?;
        let named = netem.distribution.as_ref().map(|name| name.value.as_str());
        let table = named.filter(|name| Distribution::from_word(name).is_none());
        let table = table.and_then(tables);
        // A file that cannot be read here may exist where the profile is used.
        if table.is_none_or(|path| path.is_file()) {
            check(netem, out.text(), lines)?;
        }
    }
    for (matches, name) in &script.rules {
        out.header("[rule]");
        let keys: Vec<_> = matches
            .iter()
            .map(|(key, value)| (*key, Some(value.clone())))
            .collect();
        if !keys.is_empty() {
            out.key("match", table(&keys));
        }
        out.key("link", quoted(name));
        if header != Header::Link {
            out.key("direction", quoted(header.word()));
        }
    }
    if let (false, Some((_, netem))) = (script.rules.is_empty(), script.classes.last()) {
        check(netem, out.text(), 0)?;
    }
    Ok(out.finish())
}

/// Assigns netems to directions.
fn directions(netems: &[Netem], header: Header) -> Result<Vec<(Header, &Netem)>, Mistake> {
    let is_ifb = |netem: &Netem| {
        netem
            .device
            .as_deref()
            .is_some_and(|d| d.starts_with("ifb"))
    };
    match netems {
        [] => Ok(Vec::new()),
        [one] => Ok(vec![(header, one)]),
        [one, other] if is_ifb(one) != is_ifb(other) => {
            let (up, down) = if is_ifb(one) {
                (other, one)
            } else {
                (one, other)
            };
            Ok(vec![(Header::Up, up), (Header::Down, down)])
        }
        all => {
            let devices: Vec<_> = all.iter().filter_map(|n| n.device.as_deref()).collect();
            let title = format!("netems on {}", devices.join(", "));
            let help = "import the commands of one device, or of a device and its ifb";
            Err(Mistake::new(&all[1].start(), title, help))
        }
    }
}

/// If the profile's reader rejects a value, the mistake is reported at its option; `lines` is the
/// number of lines before this link.
fn check(netem: &Netem, toml: &str, lines: usize) -> Result<(), Mistake> {
    const OPTIONS: [(&str, &[&str]); 9] = [
        ("delay", &["delay", "latency", "distribution"]),
        ("loss", &["loss", "drop"]),
        ("duplicate", &["duplicate"]),
        ("corrupt", &["corrupt"]),
        ("reorder", &["reorder", "gap"]),
        ("slot", &["slot"]),
        ("rate", &["rate"]),
        ("overhead", &["rate"]),
        ("queue", &["limit"]),
    ];
    let Err(error) = Profile::parse(toml, "the profile") else {
        return Ok(());
    };
    let (key, title, help) = match &error {
        ProfileError::Text(TextError::Mistakes(found)) => {
            match found.iter().find(|mistake| found.line(mistake) > lines) {
                Some(first) => {
                    let line = toml.lines().nth(found.line(first) - 1).unwrap_or("");
                    let key = line.split(' ').next().unwrap_or_default();
                    (key, first.title.clone(), first.help.clone())
                }
                None => ("", error.to_string(), String::new()),
            }
        }
        other => ("", other.to_string(), String::new()),
    };
    let options = OPTIONS.iter().find(|(k, _)| *k == key);
    let at = netem.place_of(options.map_or(&[], |(_, options)| options));
    Err(Mistake::new(
        &at,
        format!("no profile can say this: {title}"),
        help,
    ))
}

/// `both`: the other direction is another netem.
pub(super) fn link(
    out: &mut Writer,
    netem: &Netem,
    both: bool,
    tables: Tables,
) -> Result<(), Mistake> {
    match &netem.under {
        Under::Nothing => {}
        Under::Default => out.note(
            "netem receives packets that no filter sends elsewhere; this link receives every packet of the device.",
        ),
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
        .filter(|d| d.starts_with("ifb") && !both)
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
    let rate = effective_rate(netem);
    match &netem.shaper {
        Some(shaper) => shaper_keys(out, shaper, rate.unwrap_or_default()),
        None => {
            if let Some(option) = &netem.rate {
                rate_keys(out, option, rate)?;
            }
        }
    }
    limit(out, netem, rate);
    // A rate of netem keeps packets in order, and does not delay those sent at once.
    let own = rate.is_some() && netem.rate.is_some();
    netem.delay_keys(out, own, tables)?;
    reorder(out, netem, own)?;
    loss(out, netem, rate.is_some());
    alter(out, netem, rate.is_some());
    if let Some(slot) = &netem.slot {
        slots(out, slot);
    }
    out.note(
        "netem treats ARP and IPv6 neighbour discovery like any packet; without this line emud \
         leaves them alone.",
    );
    out.key("neighbours", quoted("emulate"));
    Ok(())
}

/// The rate of a tbf or an htb beside netem.
fn shaper_keys(out: &mut Writer, shaper: &Shaper, rate: u64) {
    let kind = &shaper.kind;
    out.note(&format!(
        "The rate is that of the {kind} beside netem, which delays and loses packets before it."
    ));
    for other in &shaper.others {
        out.warning(format!("of the {kind} {other}"));
    }
    let nonzero = |n: i64| (n != 0).then(|| n.to_string());
    let burst = (shaper.burst > 0).then(|| quoted(format!("{}B", shaper.burst)));
    let cell = shaper.is_atm.then(|| quoted("atm"));
    let keys = [
        ("burst", burst),
        ("overhead", nonzero(shaper.overhead.into())),
        ("mpu", nonzero(shaper.mpu.into())),
        ("cell", cell),
    ];
    let rate = quoted(Rate(rate));
    let plain = keys.iter().all(|(_, value)| value.is_none());
    let mut all = vec![("rate", Some(rate.clone()))];
    all.extend(keys);
    out.key("rate", if plain { rate } else { table(&all) });
}

fn slots(out: &mut Writer, slot: &SlotOption) {
    if slot.bare_time {
        let text = "a slot's time without a unit is nanoseconds for iproute2, as it is here";
        out.note(text);
        out.warnings.push(text.to_owned());
    }
    let Some((min, max)) = slot.distances_ns else {
        let text = "emud's slots have distances between two bounds, without a distribution";
        return out.warning(format!("`{}`: {text}", slot.text));
    };
    if max == 0 {
        return out.note("Slots with a distance of 0 have no effect.");
    }
    out.note(
        "netem's next slot begins this long after the packet that waits for it or that filled the previous \
         one; emud's follow one another by the clock.",
    );
    if slot.packets > MOST_QUEUED {
        let text = format!(
            "up to {} packets per slot: emud's queue never has more than {MOST_QUEUED}, so any \
             number of them leaves in one",
            slot.packets
        );
        out.warning(text);
    }
    let limit = |n: u32| (1..=MOST_QUEUED).contains(&n).then(|| n.to_string());
    let bytes = |n: u32| (n > 0).then(|| quoted(format!("{n}B")));
    out.key(
        "slot",
        table(&[
            ("min", Some(quoted(Time(min.max(1))))),
            ("max", Some(quoted(Time(max)))),
            ("packets", limit(slot.packets)),
            ("bytes", bytes(slot.bytes)),
        ]),
    );
}

/// In bit/s, in whole bytes per second as netem rounds it; `None`: no limit.
fn effective_rate(netem: &Netem) -> Option<u64> {
    let own = netem.rate.as_ref().map(|rate| rate.bits);
    let shaped = netem.shaper.as_ref().map(|shaper| shaper.bits);
    // Of two rates the slower one determines the link's rate.
    let bits = own.into_iter().chain(shaped).reduce(f64::min)?;
    let bytes = (bits / 8.0).floor() as u64;
    (bytes > 0).then_some(bytes * 8)
}

fn rate_keys(out: &mut Writer, option: &RateOption, rate: Option<u64>) -> Result<(), Mistake> {
    let Some(bits) = rate else {
        out.note("For netem, a rate below one byte per second is no limit.");
        return Ok(());
    };
    if bits as f64 != option.bits {
        out.note("netem's rate is in whole bytes per second: the rest is cut off.");
    }
    if option.cell_size == 0 {
        if option.cell_overhead != 0 {
            out.note("Without a cell size netem ignores the cell overhead.");
        }
        out.key("rate", quoted(Rate(bits)));
        if option.packet_overhead != 0 {
            out.key("overhead", option.packet_overhead);
        }
        return Ok(());
    }
    if i64::from(option.cell_size) + i64::from(option.cell_overhead) <= 0 {
        let title = "a cell with this overhead takes no time";
        let help = "the cell overhead must be above minus the cell size";
        return Err(Mistake::new(&option.at, title, help));
    }
    let nonzero = |n: i32| (n != 0).then(|| n.to_string());
    let cell = match (option.cell_size, option.cell_overhead) {
        (48, 5) => quoted("atm"),
        _ => table(&[
            ("size", Some(option.cell_size.to_string())),
            ("overhead", nonzero(option.cell_overhead)),
        ]),
    };
    out.key(
        "rate",
        table(&[
            ("rate", Some(quoted(Rate(bits)))),
            ("overhead", nonzero(option.packet_overhead)),
            ("cell", Some(cell)),
        ]),
    );
    Ok(())
}

/// netem's limit counts every packet it holds, emud's queue only those before the rate.
fn limit(out: &mut Writer, netem: &Netem, rate: Option<u64>) {
    let limit = (netem.limit.as_ref()).map_or(USUAL_LIMIT, |limit| limit.value);
    if limit == 0 {
        out.note("With a limit of 0 netem loses every packet.");
        out.key("state", quoted("down"));
        return;
    }
    let most = f64::from(limit) / (netem.latency_ns as f64 / 1e9);
    let Some(rate) = rate else {
        if netem.latency_ns > 0 && limit < NO_LIMIT {
            let text = format!(
                "netem's limit of {limit} packets includes packets in flight: above about \
                 {most:.0} packets per second it loses some; emud loses none"
            );
            // The default limit is rarely intended, and tc always prints it.
            match limit {
                USUAL_LIMIT => out.note(&text),
                _ => out.warning(text),
            }
        } else if limit != USUAL_LIMIT && netem.latency_ns == 0 && netem.jitter_ns == 0 {
            out.note(
                "Without a delay and a rate no packet stays in netem: its limit has no effect.",
            );
        }
        return;
    };
    match netem.shaper.as_ref().and_then(|shaper| shaper.limit) {
        Some(Limit::Bytes(bytes)) => return out.key("queue", quoted(format!("{bytes}B"))),
        Some(Limit::Ns(ns)) => return out.key("queue", quoted(Time(ns))),
        None => {}
    }
    let on_their_way = on_their_way(rate, netem.latency_ns);
    let queue = u64::from(limit).saturating_sub(on_their_way);
    if queue == 0 {
        out.warning(format!(
            "netem's limit of {limit} packets includes packets in flight, and at this rate and \
             delay {on_their_way} of {PACKET_BYTES} bytes are: netem carries about {most:.0} \
             packets per second; emud carries the whole rate, with the shortest possible queue"
        ));
    } else if on_their_way > 0 {
        out.note(&format!(
            "netem's limit ({limit}) includes packets in flight, at this rate and delay \
             {on_their_way} of {PACKET_BYTES} bytes; emud's queue is the rest."
        ));
    }
    if queue > u64::from(MOST_QUEUED) {
        out.note(&format!(
            "netem would hold {limit} packets, emud's longest queue is {MOST_QUEUED}."
        ));
    }
    let queue = queue.clamp(1, MOST_QUEUED.into());
    if queue != u64::from(USUAL_LIMIT) {
        out.key("queue", quoted(format!("{queue}p")));
    }
}

fn correlation(chance: &Chance) -> Option<String> {
    (chance.correlation > 0.0).then(|| quoted(Percent(chance.correlation)))
}

fn reorder(out: &mut Writer, netem: &Netem, has_rate: bool) -> Result<(), Mistake> {
    let Some(chance) = netem.reorder.filter(|chance| chance.probability > 0.0) else {
        return Ok(());
    };
    if let Some(gap) = netem.gap.as_ref().filter(|gap| gap.value > MOST_GAP) {
        let title = format!("a gap of {}", gap.value);
        let help = format!("the maximum is {MOST_GAP}: write that, or leave reorder and gap out");
        return Err(Mistake::new(&gap.at, title, help));
    }
    let gap = netem.gap.as_ref().map_or(1, |gap| gap.value.max(1));
    if gap > 1 {
        let one_in = f64::from(gap - 1) + 1.0 / chance.probability;
        out.note(&format!(
            "{} packets are delayed, then each is sent at once with this probability until one \
             is, and so on: one packet in {} overtakes.",
            gap - 1,
            trimmed(one_in)
        ));
    }
    if chance.correlation > 0.0 {
        out.note(NARROW);
    }
    if has_rate {
        out.note("Packets that netem sends at once also bypass its rate.");
    }
    out.key(
        "reorder",
        table(&[
            ("probability", Some(quoted(Percent(chance.probability)))),
            ("correlation", correlation(&chance)),
            ("gap", (gap > 1).then(|| gap.to_string())),
        ]),
    );
    Ok(())
}

fn loss(out: &mut Writer, netem: &Netem, has_rate: bool) {
    let Some(loss) = &netem.loss else { return };
    // netem loses a packet before it takes any of the rate.
    let stage = has_rate.then(|| quoted("before-queue"));
    let ecn = netem.ecn.then(|| "true".to_owned());
    let percent = |p: f64| Some(quoted(Percent(p)));
    let value = match loss {
        LossOption::Random(chance) if chance.probability == 0.0 => return,
        LossOption::Random(chance) => {
            if chance.correlation > 0.0 {
                out.note(NARROW);
            }
            match (correlation(chance), &stage, &ecn) {
                (None, None, None) => quoted(Percent(chance.probability)),
                (correlation, ..) => table(&[
                    ("model", Some(quoted("bernoulli"))),
                    ("probability", percent(chance.probability)),
                    ("correlation", correlation),
                    ("stage", stage.clone()),
                    ("ecn", ecn.clone()),
                ]),
            }
        }
        LossOption::State {
            p13,
            p31,
            p32,
            p23,
            p14,
        } => table(&[
            ("model", Some(quoted("four-state"))),
            ("p13", percent(*p13)),
            ("p31", percent(*p31)),
            ("p32", percent(*p32)),
            ("p23", percent(*p23)),
            ("p14", percent(*p14)),
            ("stage", stage.clone()),
            ("ecn", ecn.clone()),
        ]),
        LossOption::Gemodel { p, r, bad, good } => table(&[
            ("model", Some(quoted("gilbert-elliott"))),
            ("p", percent(*p)),
            ("r", percent(*r)),
            ("bad", percent(*bad)),
            ("good", percent(*good)),
            ("stage", stage.clone()),
            ("ecn", ecn.clone()),
        ]),
    };
    if stage.is_some() {
        out.note("netem loses packets before its rate, so a lost packet takes none of it.");
    }
    out.key("loss", value);
}

/// Duplication and corruption.
fn alter(out: &mut Writer, netem: &Netem, has_rate: bool) {
    let value = |chance: &Chance| match correlation(chance) {
        None => quoted(Percent(chance.probability)),
        correlation => table(&[
            ("probability", Some(quoted(Percent(chance.probability)))),
            ("correlation", correlation),
        ]),
    };
    let some = |chance: Option<Chance>| chance.filter(|chance| chance.probability > 0.0);
    if let Some(chance) = some(netem.duplicate) {
        if netem.loss.is_some() {
            out.note(
                "netem's loss removes one of two copies if it decides to do both, and copies pass \
                 the loss again; emud duplicates packets that are not lost, and loses no copy.",
            );
        }
        if has_rate {
            out.note(
                "netem's copy is queued before the rate again and takes its time there like any \
                 packet; emud's takes no bandwidth.",
            );
        }
        if chance.correlation > 0.0 {
            if !netem.sends_correlations() {
                out.note("tc forgets to send this correlation if no other option has one.");
            }
            out.note(NARROW);
        }
        out.key("duplicate", value(&chance));
    }
    if let Some(chance) = some(netem.corrupt) {
        out.note(
            "netem flips one bit of the packet's first buffer, which includes the link-layer header \
             and, for transmitted data, often nothing else; emud flips one from the IP header's start on.",
        );
        if chance.correlation > 0.0 {
            out.note(NARROW);
        }
        out.key("corrupt", value(&chance));
    }
}

impl Netem {
    /// Returns whether tc sends the attribute with duplication's correlation, which it only does
    /// for another option's.
    fn sends_correlations(&self) -> bool {
        let given = |chance: Option<Chance>| chance.is_some_and(|chance| chance.correlation > 0.0);
        let loss = match self.loss {
            Some(LossOption::Random(chance)) => chance.correlation > 0.0,
            _ => false,
        };
        self.delay_correlation > 0.0 || loss || given(self.reorder) || given(self.corrupt)
    }
}

/// Formats up to two digits after the point.
pub(crate) fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
