// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phases to rows: one for each phase, many for a ramp.

use super::{Rate, Rows, Step, assemble, content, renew, wait_ns, worst_ns};
use crate::abi;
use crate::datapath::stage::direction::Compiled;
use crate::datapath::stage::fixed::probability;
use crate::profile::{Link, Phases, Profile};

/// Fewest rows of a ramp. It has more if a row would be longer than [`RAMP_ROW_NS`], up to [`RAMP_ROWS_MAX`].
const RAMP_ROWS: u64 = 100;
const RAMP_ROW_NS: u64 = 10_000_000;
const RAMP_ROWS_MAX: u64 = 10_000;

/// Puts a profile's phases into its own link; `seed` draws the sequence of states, the same for both
/// directions.
pub fn phases(profile: &Profile, direction: u32, links: &mut [Compiled], seed: u64, epoch_ns: u64) {
    let phases = &profile.phases;
    if phases.list.is_empty() {
        return;
    }
    let sequence = phases.sequence(seed);
    let queue_bytes = profile.links_of(direction).filter_map(|l| l.queue.bytes);
    let built = assemble(
        &phase_steps(profile, direction, &sequence),
        phase_period(phases, &sequence),
        false,
        queue_bytes.max().unwrap_or(0),
    );
    let longest = links.iter().map(|c| c.link.delay_ns).max();
    let max_rate = profile.links_of(direction).filter_map(|l| l.rate).max();
    let waits = links
        .iter()
        .map(|c| wait_ns(|bytes| worst_ns(&built, bytes), &c.link, max_rate));
    let longest_wait = waits.max();
    let Some(own) = links.first_mut() else { return };
    own.link.timeline = built.timeline;
    own.link.timeline.content = content(&built.rows);
    own.link.timeline.epoch_ns = epoch_ns.wrapping_sub(phases.offset_ns);
    renew(&mut own.link.timeline);
    own.timeline = Some(Rows {
        longest_wait_ns: longest_wait.unwrap_or(0),
        longest_delay_ns: longest.unwrap_or(0),
        max_rate: max_rate.unwrap_or(0),
        rows: built.rows,
    });
}

fn phase_period(phases: &Phases, sequence: &[(usize, u64)]) -> u64 {
    let all = sequence.iter().map(|(_, ns)| ns).sum();
    match phases.repeat || phases.chain.is_some() {
        true => all,
        false => 0,
    }
}

/// Returns a row for each phase, many for a ramp.
pub(super) fn phase_steps(
    profile: &Profile,
    direction: u32,
    sequence: &[(usize, u64)],
) -> Vec<Step> {
    let phases = &profile.phases;
    let first = 1 + profile.links.len() as u32;
    let any_rate = profile.links_of(direction).skip(first as usize);
    let any_rate = { any_rate }.any(|link| link.rate.is_some());
    let mut before = match (phases.repeat, phases.list.last()) {
        (true, Some(last)) => last.direction(direction),
        _ => profile.direction(direction),
    };
    let (mut steps, mut at_ns) = (Vec::new(), 0);
    for (place, for_ns) in sequence {
        let (number, phase) = (first + *place as u32, &phases.list[*place]);
        let link = phase.direction(direction);
        let rate = match link.rate {
            _ if !any_rate => Rate::Own,
            None => Rate::Unlimited,
            Some(bits) => Rate::Bits(bits),
        };
        let mut step = Step::new(at_ns, rate);
        step.row.number = number;
        match phase.for_ns {
            Some(ns) if phase.ramp => ramp(&mut steps, step, ns, before, link),
            _ => steps.push(step),
        }
        at_ns += for_ns;
        before = link;
        // The last one lasts, at its own figures.
        if phase.ramp && !phases.repeat && number as usize == first as usize + phases.list.len() - 1
        {
            steps.push(Step { at_ns, ..step });
        }
    }
    steps
}

/// Adds the rows of a ramp. Each has the figures of its middle, so the bytes sent over all of it are exact.
fn ramp(steps: &mut Vec<Step>, first: Step, for_ns: u64, before: &Link, link: &Link) {
    let rows = for_ns
        .div_ceil(RAMP_ROW_NS)
        .clamp(RAMP_ROWS, RAMP_ROWS_MAX)
        .min(for_ns);
    for i in 0..rows {
        let part = (i as f64 + 0.5) / rows as f64;
        let between = |from: f64, to: f64| from + (to - from) * part;
        let at = u128::from(for_ns) * u128::from(i) / u128::from(rows);
        let mut step = first;
        step.at_ns += at as u64;
        if let (Some(from), Some(to)) = (before.rate, link.rate) {
            step.rate = Rate::Bits(between(from as f64, to as f64).round() as u64);
        }
        if before.delay.mean_ns != link.delay.mean_ns {
            step.row.set |= abi::EMUD_SET_DELAY;
            let (from, to) = (before.delay.mean_ns, link.delay.mean_ns);
            step.row.delay_ns = between(from as f64, to as f64).round() as u64;
        }
        if before.loss != link.loss {
            step.row.set |= abi::EMUD_SET_LOSS;
            step.row.loss =
                probability(between(before.loss.probability(), link.loss.probability()));
        }
        steps.push(step);
    }
}
