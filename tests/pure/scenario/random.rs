// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios with random input.

use emud::experiment::scenario::{Overrides, ScenarioError, shipped};
use emud::text::TextError;
use proptest::prelude::*;

use super::read;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

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
