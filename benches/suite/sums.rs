// SPDX-License-Identifier: GPL-2.0-only
//! For whoever looks on while it is measured; the report does its own sums.

use super::figure::Results;

/// What each side of a case costs above bare, and emud's over each netem's.
pub fn print_added(results: &Results, case: &str) {
    let costs = results.figures.iter();
    let costs: Vec<_> = costs
        .filter(|f| f.case == case && f.metric == "cost")
        .map(|f| (&*f.side, f.median()))
        .collect();
    let Some((_, bare)) = costs.iter().find(|(side, _)| *side == "bare") else {
        return;
    };
    let added = |kind: &'static str| {
        let of_kind = costs.iter().filter(move |(side, _)| side.starts_with(kind));
        of_kind.map(|(side, cost)| (*side, cost - bare))
    };
    for (netem, by_netem) in added("netem") {
        for (emud, by_emud) in added("emud") {
            println!(
                "{case}: added {by_netem:.0} by {netem}, {by_emud:.0} by {emud}: {:.3} times",
                by_emud / by_netem
            );
        }
    }
}
