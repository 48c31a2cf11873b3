// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios: their meaning up to the last route, and the messages for meaningless ones.

mod meaning;
mod medium;
mod mistakes;
mod random;
mod reach;
mod segment;
mod shipped;
mod star;
mod walk;

use std::path::Path;

use emud::experiment::scenario::{Node, Overrides, Plan, Scenario, ScenarioError};

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, "x.toml", Path::new(""))
}

fn plan(text: &str) -> Plan {
    with(text, &Overrides::default())
}

fn with(text: &str, overrides: &Overrides) -> Plan {
    let plan = read(text).and_then(|scenario| scenario.plan(overrides));
    plan.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn node<'a>(plan: &'a Plan, name: &str) -> &'a Node {
    let mut nodes = plan.nodes.iter();
    nodes.find(|node| node.name == name).expect(name)
}
