// SPDX-License-Identifier: MIT OR Apache-2.0
//! What classes of htb borrow: in the kernel by their quanta, in emud by their rates.

use super::tc_class::Class;
use super::tc_shaper::Shaper;
use crate::bottleneck::Schedule;
use crate::convert::htb::NO_GUARANTEE;

/// tc's `r2q`, if the command has none.
pub(super) const USUAL_R2Q: u64 = 10;

/// Bytes of a turn, as `htb_change_class()` chooses them: only a quantum that is given may be beyond its limits.
pub(super) fn quantum(shaper: &Shaper, r2q: u64) -> u64 {
    let chosen = shaper.rate.unwrap_or_default() as u64 / 8 / r2q.max(1);
    match shaper.quantum {
        0 => chosen.clamp(1000, 200_000),
        given => given.into(),
    }
}

/// Names the two classes of each parent and priority that differ most, if that is more than rounding.
pub(super) fn not_in_proportion(classes: &[Class]) -> Vec<String> {
    let is_leaf = |class: &&Class| !classes.iter().any(|c| c.parent.as_ref() == Some(&class.id));
    let borrows = |class: &&Class| class.rate > Some(0) && class.ceil > class.rate;
    let all: Vec<&Class> = classes.iter().filter(is_leaf).filter(borrows).collect();
    let group = |class: &Class| (class.parent.clone(), class.priority.unwrap_or(0));
    let share = |class: &Class| class.quantum as f64 / class.rate.unwrap_or(1) as f64;
    let differs = |(at, first): (usize, &&Class)| {
        if all[..at].iter().any(|c| group(c) == group(first)) {
            return None;
        }
        let mut same: Vec<_> = all.iter().filter(|c| group(c) == group(first)).collect();
        same.sort_by(|a, b| share(a).total_cmp(&share(b)));
        let (least, most) = (same.first()?, same.last()?);
        (share(most) > 1.05 * share(least)).then(|| {
            let [a, b] = [least, most].map(|c| (&c.id, c.quantum, c.rate.unwrap_or(0)));
            format!(
                "class {} and class {} borrow in proportion to their quanta in htb, {} and {} bytes, and to their \
                 rates in emud, {} and {} bit/s",
                a.0, b.0, a.1, b.1, a.2, b.2
            )
        })
    };
    all.iter().enumerate().filter_map(differs).collect()
}

/// Of a profile's class.
const WEIGHT_MAX: u64 = 1_000_000;

/// Replaces the guarantees by priorities and weights (from the quanta) where all classes borrow what they send from
/// a server of this rate.
pub(super) fn without_guarantees(classes: &mut [Class], server: Option<u64>) -> Option<Schedule> {
    let is_least = |class: &Class| class.rate.is_some_and(|rate| rate <= NO_GUARANTEE);
    let borrows = |class: &Class| class.parent.is_none() && is_least(class);
    let server = server.filter(|rate| *rate > NO_GUARANTEE && classes.iter().all(borrows))?;
    let priority = |class: &Class| class.priority.unwrap_or(0);
    let beside = |class: &Class| {
        let same = classes.iter().filter(|c| priority(c) == priority(class));
        same.map(|class| class.quantum).fold(0, divisor)
    };
    let weights: Vec<u64> = (classes.iter())
        .map(|class| class.quantum / beside(class).max(1))
        .collect();
    if weights.iter().any(|weight| *weight > WEIGHT_MAX) {
        return None;
    }
    let first = priority(classes.first()?);
    let is_drr = classes.iter().all(|class| priority(class) == first);
    for (class, weight) in classes.iter_mut().zip(weights) {
        (class.rate, class.weight) = (None, Some(weight));
        class.ceil.take_if(|ceil| *ceil >= server);
        class.priority.take_if(|_| is_drr);
    }
    Some(match is_drr {
        true => Schedule::Drr,
        false => Schedule::Priority,
    })
}

/// Returns the greatest common one.
fn divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => divisor(b, a % b),
    }
}
