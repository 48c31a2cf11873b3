// SPDX-License-Identifier: GPL-2.0-only
//! What the monitor is told of emulated links, from outside their namespaces.

use std::os::unix::fs::MetadataExt;

use emud::abi::{EMUD_DOWN, EMUD_UP};
use emud::link::emulated::{Emulated, emulated};
use emud::link::saved;

use crate::lab::{Engine, Lab};

/// The links of this laboratory; there may be others on the machine.
fn of(lab: &Lab) -> Vec<Emulated> {
    let found = emulated().unwrap();
    assert!(found.unreadable.is_empty(), "{:?}", found.unreadable);
    let netns = std::fs::metadata(format!("/run/netns/{}", lab.a)).unwrap();
    let mut links = found.links;
    links.retain(|link| u64::from(link.netns) == netns.ino());
    links.sort_by_key(|link| link.direction);
    links
}

fn index(lab: &Lab, device: &str) -> u32 {
    let shown = lab.in_a(&format!("ip -o link show dev {device}"));
    shown.split(':').next().unwrap().parse().unwrap()
}

/// Each direction that is attached, the device that its packets wait at, and
/// nothing after detach.
pub fn found(engine: Engine) {
    let lab = Lab::new();
    assert_eq!(of(&lab), []);
    let va = index(&lab, "va");
    let devices = match engine {
        Engine::Fq => ["va".to_owned(), format!("emud-ifb-{va}")],
        Engine::Hold => [format!("emud-up-{va}"), format!("emud-down-{va}")],
    };
    let link = |lab: &Lab, direction: u32| Emulated {
        netns: of(lab)[0].netns,
        interface: va,
        direction,
        engine: match engine {
            Engine::Fq => saved::Engine::Fq,
            Engine::Hold => saved::Engine::Hold,
        },
        waits_at: index(lab, &devices[direction as usize]),
    };
    for (more, directions) in [
        ("both", &[EMUD_UP, EMUD_DOWN][..]),
        ("up", &[EMUD_UP]),
        ("down", &[EMUD_DOWN]),
    ] {
        lab.attach(engine, "hsdpa", &["--direction", more]);
        let expected: Vec<_> = directions.iter().map(|d| link(&lab, *d)).collect();
        assert_eq!(of(&lab), expected, "{more}");
        lab.emud(&["set", "va", "loss=1%"]).expect(0);
        assert_eq!(of(&lab), expected, "{more}, after set");
        lab.detach();
        assert_eq!(of(&lab), [], "{more}, after detach");
    }
}
