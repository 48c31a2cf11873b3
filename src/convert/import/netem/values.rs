// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the values of netem's options.

use super::{Chance, LossOption, RateOption, SlotOption};
use crate::convert::import::shell::{Word, Words};
use crate::convert::import::tc_made::begins;
use crate::convert::import::tc_units::{is_bare, percent, rate_bits, size, time_ns, whole};
use crate::text::{At, Mistake, clipped};

/// Reads `PERCENT [CORRELATION]`.
pub(super) fn chance(words: &mut Words, option: &str, example: &str) -> Result<Chance, Mistake> {
    let probability = percent(&words.argument(option, example)?)?;
    let correlation = match words.number() {
        None => 0.0,
        Some(word) => match percent(&word)? {
            // Never or always, whatever the previous draw.
            1.0 if probability == 0.0 || probability == 1.0 => 0.0,
            1.0 => return Err(one_for_all(&word.at)),
            correlation => correlation,
        },
    };
    Ok(Chance {
        probability,
        correlation,
    })
}

/// Returns the mistake of a correlation of 1: the kernel's get_crandom() repeats its first number forever.
pub(super) fn one_for_all(at: &At) -> Mistake {
    let title = "a correlation of 100 %: netem draws once for all packets";
    Mistake::new(
        at,
        title,
        "write less than 100%, or leave it out for independent packets",
    )
}

/// Reads `state P13 [P31 [P32 [P23 [P14]]]]`.
pub(super) fn four_states(words: &mut Words) -> Result<LossOption, Mistake> {
    words.skip("p13");
    let first = words.argument("loss state", "1% 10%")?;
    let p13 = percent(&first)?;
    let mut p = [1.0 - p13, 0.0, 1.0, 0.0];
    let mut at = first.at;
    for (p, name) in p.iter_mut().zip(["p31", "p32", "p23", "p14"]) {
        // tc prints the names.
        words.skip(name);
        let Some(word) = words.number() else { break };
        *p = percent(&word)?;
        at = word.at;
    }
    let [p31, p32, p23, p14] = p;
    for (sum, names) in [(p13 + p14, "p13 and p14"), (p31 + p32, "p31 and p32")] {
        // 1 - p13 may be off by one ulp; a profile accepts no more.
        if sum > 1.0 + 1e-12 {
            let title = format!("{names} add up to more than 100 %");
            let help = "they are the transitions out of one state: lower one of them";
            return Err(Mistake::new(&at, title, help));
        }
    }
    Ok(LossOption::State {
        p13,
        p31,
        p32,
        p23,
        p14,
    })
}

/// Reads `gemodel P [R [1-H [1-K]]]`.
pub(super) fn gilbert_elliott(words: &mut Words) -> Result<LossOption, Mistake> {
    words.skip("p");
    let p = percent(&words.argument("loss gemodel", "1% 10%")?)?;
    let mut rest = [1.0 - p, 1.0, 0.0];
    for (value, name) in rest.iter_mut().zip(["r", "1-h", "1-k"]) {
        // tc prints the names.
        words.skip(name);
        let Some(word) = words.number() else { break };
        *value = percent(&word)?;
    }
    let [r, bad, good] = rest;
    Ok(LossOption::Gemodel { p, r, bad, good })
}

/// Reads `rate RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`.
pub(super) fn rate(words: &mut Words) -> Result<RateOption, Mistake> {
    const BYTES: std::ops::RangeInclusive<i64> = -64..=4096;
    let word = words.argument("rate", "1mbit")?;
    let bits = rate_bits(&word)?;
    let mut option = RateOption {
        bits,
        packet_overhead: 0,
        cell_size: 0,
        cell_overhead: 0,
        at: word.at,
    };
    // tc prints the names.
    words.skip("packetoverhead");
    if let Some(word) = words.signed_number() {
        option.packet_overhead = whole(&word, BYTES)? as i32;
    }
    words.skip("cellsize");
    if let Some(word) = words.number() {
        option.cell_size = whole(&word, 0..=65535)? as u32;
    }
    words.skip("celloverhead");
    if let Some(word) = words.signed_number() {
        option.cell_overhead = whole(&word, -65535..=255)? as i32;
    }
    Ok(option)
}

/// Reads `slot MIN [MAX]` or `slot distribution NAME DELAY JITTER`, then `[packets N] [bytes N]`. tc prints a
/// distribution without its name.
pub(super) fn slot(word: &Word, words: &mut Words) -> Result<SlotOption, Mistake> {
    let mut text = word.value.to_owned();
    let mut distances_ns = None;
    let mut bare_time = false;
    let mut limits = [0; 2];
    let mut take = |word: &Word| {
        text.push(' ');
        text.push_str(word.value);
    };
    if let Some(least) = words.number() {
        take(&least);
        bare_time |= is_bare(&least);
        let least = time_ns(&least)?;
        distances_ns = Some((least, least));
        if let Some(most) = words.number() {
            take(&most);
            bare_time |= is_bare(&most);
            let greatest = time_ns(&most)?;
            distances_ns = Some((least, greatest));
            if greatest < least {
                let help = "write the shorter one first: slot 5ms 10ms";
                return Err(Mistake::new(
                    &most.at,
                    "the maximum slot is below the minimum",
                    help,
                ));
            }
        }
    } else {
        let kind = words.argument("slot", "800us")?;
        take(&kind);
        if kind.value != "distribution" {
            let title = format!("`{}` is not a slot", kind.value);
            let help = "write slot 5ms 10ms or slot distribution normal 10ms 1ms";
            return Err(Mistake::new(&kind.at, title, help));
        }
        let example = "normal 10ms 1ms";
        let first = words.argument("distribution", example)?;
        take(&first);
        let second = words.argument("slot distribution", example)?;
        take(&second);
        time_ns(&second)?;
        let third = match first.value.starts_with(|c: char| c.is_ascii_digit()) {
            true => words.number(),
            false => Some(words.argument("slot distribution", example)?),
        };
        let time = third.inspect(&mut take).unwrap_or(first);
        time_ns(&time)?;
    }
    for (option, limit) in ["packets", "bytes"].into_iter().zip(&mut limits) {
        if words.peek().is_some_and(|word| begins(word, option)) {
            if let Some(word) = words.next() {
                take(&word);
            }
            let value = words.argument(option, "5")?;
            take(&value);
            *limit = match option {
                // tc reads this one with a sign, and without suffixes.
                "packets" => whole(&value, 0..=i32::MAX.into())? as u32,
                _ => size(&value)?,
            };
        }
    }
    let [packets, bytes] = limits;
    Ok(SlotOption {
        text,
        distances_ns,
        packets,
        bytes,
        bare_time,
    })
}

/// Returns the mistake of a number that tc does not accept as one.
pub(super) fn no_digit(at: &At, word: &str) -> Mistake {
    let title = format!("tc does not read `{}` as a number", clipped(word));
    let help = format!(
        "write 0{}: a number of tc begins with a digit",
        clipped(word)
    );
    Mistake::new(at, title, help)
}
