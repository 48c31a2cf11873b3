// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where classes of htb send more than those above them have, for import and export.

/// A class of htb with this rate or less, in bit/s, is guaranteed one packet of 1514 bytes a minute: htb forgets a
/// debt of more than a minute (`HTB_MBUFFER`). It borrows all that it sends but for this packet, by its `prio` and `quantum`.
pub(super) const NO_GUARANTEE: u64 = 200;

/// A class; rates in bit/s.
pub(super) struct Promise<'a> {
    pub name: &'a str,
    pub parent: Option<&'a str>,
    pub rate: u64,
    pub ceil: Option<u64>,
}

/// htb has at most eight levels; parents in a text may form a circle.
const LEVELS: u32 = 8;

/// Names the classes, and the server if it has a rate, of which those below are promised more. `htb_dequeue` serves a
/// class within its rate without regard to those above it: `htb_charge_class` only lends their tokens.
pub(super) fn promised_twice(server: Option<u64>, classes: &[Promise]) -> Vec<String> {
    let above = classes.iter().map(|class| {
        let name = format!("class {}", class.name);
        (Some(class.name), name, class.ceil.or(server))
    });
    let all = std::iter::once((None, "the server".to_owned(), server)).chain(above);
    let differs = |(id, name, has): (Option<&str>, String, Option<u64>)| {
        let (has, sum) = (has?, promised(classes, id, LEVELS));
        (sum > has).then(|| {
            format!(
                "the rates below {name} add up to {sum} bit/s, and it has {has}: htb sends all of them, emud \
                 {has} bit/s, in proportion"
            )
        })
    };
    all.filter_map(differs).collect()
}

/// Returns the sum of what those directly below send at least: their rate, or more if that of those below them is.
fn promised(classes: &[Promise], parent: Option<&str>, levels: u32) -> u64 {
    let below = classes.iter().filter(|class| class.parent == parent);
    let least = |class: &Promise| match levels {
        0 => 0,
        _ => class
            .rate
            .max(promised(classes, Some(class.name), levels - 1)),
    };
    below.map(least).fold(0, u64::saturating_add)
}
