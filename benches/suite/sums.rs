// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints intermediate results while it is measured.

use super::case::{cases, is_netem};
use super::figure::Results;

/// What each side of a case costs above bare, and emud's over each netem's.
pub fn print_added(results: &Results, name: &str) {
    let all = cases(results);
    let of_it = all.iter().filter(|c| c.name == name && c.metric == "cost");
    for case in of_it {
        let sides = case.sides.iter();
        let added = sides.filter_map(|f| Some((&*f.side, case.added(f)?)));
        let (netem, others): (Vec<_>, Vec<_>) = added.partition(|(side, _)| is_netem(side));
        for (netem, by_netem) in netem {
            for (emud, by_emud) in &others {
                println!(
                    "{name}: added {by_netem:.0} by {netem}, {by_emud:.0} by {emud}: {:.3} times",
                    by_emud / by_netem
                );
            }
        }
    }
}
