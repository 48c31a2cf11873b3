// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the rate of netem, or of the tbf or htb beside it.

use super::{Netem, RateOption};
use crate::convert::import::tc_shaper::Shaper;
use crate::convert::import::writer::{Writer, quoted, table};
use crate::profile::Rate;
use crate::text::Mistake;

/// Writes the rate of a tbf or an htb beside netem.
pub(super) fn shaper_keys(out: &mut Writer, shaper: &Shaper, rate: u64) {
    let kind = &shaper.kind;
    out.note(&format!(
        "The rate is that of the {kind} beside netem, which delays and loses packets before it."
    ));
    if let Some(peak) = &shaper.peak {
        out.warning(format!("of the {kind} peakrate {peak}"));
    }
    if let (Some(rate), Some(ceil)) = (shaper.rate, shaper.ceil)
        && ceil > rate
    {
        out.warning(format!(
            "of the {kind} a rate of {rate} bit/s that may grow to {ceil} if others leave room"
        ));
    }
    let burst = (shaper.burst > 0).then(|| quoted(format!("{}B", shaper.burst)));
    let cell = shaper.is_atm.then(|| quoted("atm"));
    let keys = [
        ("burst", burst),
        ("overhead", nonzero(shaper.overhead)),
        ("mpu", nonzero(shaper.mpu)),
        ("cell", cell),
    ];
    let rate = quoted(Rate(rate));
    let plain = keys.iter().all(|(_, value)| value.is_none());
    let mut all = vec![("rate", Some(rate.clone()))];
    all.extend(keys);
    out.key("rate", if plain { rate } else { table(&all) });
}

/// Returns the limiter beside netem, unless netem's own rate is slower: the slower one is the link's.
pub(super) fn slower_shaper(netem: &Netem) -> Option<&Shaper> {
    let shaper = netem.shaper.as_ref()?;
    own_rate(netem)
        .is_none_or(|own| shaper.bits() < own)
        .then_some(shaper)
}

/// Returns netem's rate, unless netem rounds it to no limit.
fn own_rate(netem: &Netem) -> Option<f64> {
    let own = netem.rate.as_ref().map(|rate| rate.bits);
    own.filter(|bits| *bits >= 8.0)
}

/// Returns the rate in bit/s, in whole bytes per second as netem rounds it; `None`: no limit.
pub(super) fn effective_rate(netem: &Netem) -> Option<u64> {
    let shaped = slower_shaper(netem).map(Shaper::bits);
    let bytes = (shaped.or(own_rate(netem))? / 8.0).floor() as u64;
    (bytes > 0).then_some(bytes * 8)
}

/// Says which of two rates is left out.
pub(super) fn faster_rate(out: &mut Writer, netem: &Netem) {
    let (Some(own), Some(shaper)) = (own_rate(netem), &netem.shaper) else {
        return;
    };
    out.warning(match slower_shaper(netem) {
        Some(_) => format!(
            "netem's own rate of {own} bit/s: the {} beside it is slower",
            shaper.kind
        ),
        None => format!(
            "the {} of {} bit/s beside netem: netem's own rate is slower",
            shaper.kind,
            shaper.bits()
        ),
    });
}

pub(super) fn rate_keys(
    out: &mut Writer,
    option: &RateOption,
    rate: Option<u64>,
) -> Result<(), Mistake> {
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
        let title = "cell size plus cell overhead is not positive";
        let help = "write a cell overhead above minus the cell size";
        return Err(Mistake::new(&option.at, title, help));
    }
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

fn nonzero(n: impl Into<i64>) -> Option<String> {
    let n: i64 = n.into();
    (n != 0).then(|| n.to_string())
}
