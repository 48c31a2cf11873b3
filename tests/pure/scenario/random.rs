// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios with random input.

use emud::experiment::scenario::{Overrides, ScenarioError, shipped};
use emud::text::TextError;
use proptest::prelude::*;
use support::chance::same_cases;
use support::damage::{damaged, edit};

use super::read;

proptest! {
    #![proptest_config(same_cases(256))]

    /// Lines removed, doubled or truncated: a plan, or mistakes with their positions.
    #[test]
    fn a_damaged_scenario_is_read_or_refused(
        which in 0..shipped::SHIPPED.len(),
        edits in prop::collection::vec((0..64_usize, 0..3_u8, 0..80_usize), 1..4),
    ) {
        let mut lines: Vec<_> = shipped::SHIPPED[which].text.lines().map(str::to_owned).collect();
        for (at, what, cut) in edits {
            let at = at % lines.len();
            match what {
                0 if lines.len() > 1 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[at].clone()),
                _ => lines[at] = lines[at].chars().take(cut).collect(),
            }
        }
        let text = lines.join("\n");
        if let Err(error) = read(&text).and_then(|s| s.plan(&Overrides::default())) {
            prop_assert_eq!(error.exit_code(), 65);
            let ScenarioError::Text(TextError::Mistakes(found)) = &error else {
                return Err(TestCaseError::fail(format!("{error}\n{text}")));
            };
            prop_assert!(found.iter().all(|m| !m.title.is_empty() && !m.help.is_empty()));
        }
    }
}

proptest! {
    #![proptest_config(same_cases(if support::full() { 40_000 } else { 300 }))]

    /// Scenarios with a medium, with any damage: a plan whose figures can be computed, or a mistake.
    #[test]
    fn a_damaged_medium_never_panics(
        which in 0..MEDIA.len(),
        damage in prop::collection::vec(edit(), 1..6),
    ) {
        let text = damaged(MEDIA[which], &damage);
        match read(&text).and_then(|s| s.plan(&Overrides::default())) {
            Ok(plan) => for medium in &plan.media {
                let stations = medium.matrix().stations();
                prop_assert_eq!(stations, medium.stations.len());
                let range_m = medium.geometry().range_m(medium.modes()[0]);
                prop_assert!(range_m.is_none_or(f64::is_finite));
                prop_assert!(medium.air(1).timing.is_consistent());
            }
            Err(error) => prop_assert_eq!(error.exit_code(), 65),
        }
    }
}

const MEDIA: &[&str] = &[
    "[medium.w]\npropagation = { model = \"grid\", file = \"tests/pure/medium/house.asc\" }\n\
     [node.a]\ncommand = \"true\"\nat = [1, 1]\n[node.b]\nat = [9, 4]\n[node.c]\n\
     path = [{ at = [12, 1] }, { at = [20, 10], after = \"9s\" }]\n",
    "[topology]\nkind = \"mesh\"\nnodes = 4\nmedium = \"wlan0\"\nspacing = \"200m\"\n\
     [medium.wlan0]\nrate = \"5.5Mbit\"\nrts = 500\nattempts = 4\nqueue = 20\n\
     [node.n1]\ncommand = \"true\"\n",
    "[medium.wlan0]\nnodes = [\"a\", \"b*\"]\nradio = { standard = \"802.11b\", power = \"15dBm\", \
     sensitivity = \"-85dBm\", noise = \"-100dBm\", capture = \"6dB\", basic = \"1Mbit\", \
     watts = { send = 1.35, receive = 0.9, idle = 0.74 } }\n\
     propagation = { model = \"log-distance\", exponent = 3.8, shadowing = \"6dB\" }\nber = 1.27e-5\n\
     queue = { limit = 100, kind = \"red\", min = \"30kB\", max = \"90kB\" }\nroutes = \"on-link\"\n\
     [node.a]\ncommand = \"true\"\nat = [0, 0]\n[node.b]\npromiscuous = true\n\
     path = [{ at = [0, 0] }, { at = [60, 0], after = \"60s\" }]\n[node.b2]\n",
    "[medium.air]\nradio = \"wavelan-914\"\naccess = \"none\"\nipv6 = false\n\
     propagation = { model = \"two-ray\", height = \"1.5m\" }\n\
     mobility = { model = \"random-waypoint\", area = [1500, 300], speed = [1, 20], pause = \"900s\" }\n\
     [node.a]\ncommand = \"true\"\n[node.b]\n[node.c]\n",
];
