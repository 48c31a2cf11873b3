// SPDX-License-Identifier: MIT OR Apache-2.0

use std::collections::BTreeMap;

use emud::fleet::facts::{Facts, SystemClock};
use emud::fleet::status::{Agent, FLEET_SCHEMA, Status};

use super::facts;

fn status(clock: SystemClock) -> Status {
    let agent = Agent::from(Facts { clock, ..facts(0) });
    Status {
        schema: FLEET_SCHEMA,
        agents: BTreeMap::from([("a".to_owned(), agent)]),
        run: None,
    }
}

#[test]
fn the_clock_of_a_host_is_named_with_its_offset_and_bound() {
    let clock = SystemClock {
        synchronised: true,
        offset_ns: -12_000,
        bound_ns: 250_000,
    };
    let known = status(clock);
    let text = known.text();
    assert!(
        text.contains("clock off by -0.012 ms, within 0.250 ms"),
        "{text}"
    );
    let json = serde_json::to_value(&known).unwrap();
    let json = &json["agents"]["a"];
    assert_eq!(json["clock_offset_ns"], -12_000);
    assert_eq!(json["clock_bound_ns"], 250_000);
    let unknown = status(SystemClock {
        synchronised: false,
        ..clock
    });
    let text = unknown.text();
    assert!(text.contains("clock not synchronised"), "{text}");
}
