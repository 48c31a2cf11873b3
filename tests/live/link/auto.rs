// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--engine auto`: the engine it takes here, and the reasons that it prints.

use support::lab::{Engine, Lab};

/// The first one that is here of the order in which auto takes them.
pub fn first(engines: &[Engine]) {
    let lab = Lab::new();
    let order = [Engine::Qdisc, Engine::Fq, Engine::Hold];
    let here = |engine: &&Engine| engines.contains(engine);
    let first = *order.iter().find(here).expect("an engine");
    let profile = lab.profile("[link]\ndelay = \"10ms\"\n");
    let said = lab.emud(&["attach", "va", "-p", &profile]).expect(0).out;
    let shown = lab.show();
    assert_eq!(shown["engine"], first.name(), "{said}");
    let reason = shown["engine_reason"].as_str().expect("a reason");
    let line = format!("engine {}: {reason}\n", first.name());
    assert!(said.contains(&line), "{said}");
    for passed_over in order.iter().take_while(|engine| **engine != first) {
        let why = format!("not {}: this kernel has no ", passed_over.name());
        assert!(reason.contains(&why), "{reason}");
    }
    assert_eq!(reason.contains("not "), first != Engine::Qdisc, "{reason}");
    lab.ping("-c 1 -W 2");
    lab.detach();
    // What doctor announces for such a link.
    let announced = lab.emud(&["doctor", "--json"]).expect(0).json();
    assert_eq!(announced["auto"]["engine"], first.name());
    assert_eq!(announced["auto"]["reason"], reason);
    let works: Vec<&str> = (order.iter().filter(here))
        .map(|engine| engine.name())
        .collect();
    assert_eq!(announced["engines"], serde_json::json!(works));

    // Only hold and qdisc serve classes, and qdisc none of both directions.
    if engines.contains(&Engine::Hold) && engines.len() > 1 {
        let bottleneck = "[bottleneck.b]\nrate = \"1Mbit\"\n";
        let said = |links: &str| {
            let file = lab.profile(&format!("{links}{bottleneck}"));
            let said = lab.emud(&["attach", "va", "-p", &file]).expect(0).out;
            lab.detach();
            said
        };
        let classes = said("[up]\nclass = \"b\"\n");
        let expected = match engines.contains(&Engine::Qdisc) {
            true => "engine qdisc: ",
            false => "engine hold: not qdisc",
        };
        assert!(classes.contains(expected), "{classes}");
        let joined = said("[link]\nclass = \"b\"\n");
        assert!(joined.contains("engine hold: not qdisc: "), "{joined}");
    }
}
