// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands on links whose packets do not matter.

use support::lab::{Engine, Lab};

/// It would be accepted and do nothing.
#[test]
fn a_direction_that_is_not_emulated_cannot_be_set() {
    let lab = Lab::new();
    let profile = "[link]\ndelay = \"1ms\"\n[links.far]\ndelay = \"2ms\"\n";
    lab.attach(Engine::Hold, profile, &["--direction", "up"]);
    let before = lab.show();
    for of_down in [
        "down.delay=5ms",
        " down . delay=5ms",
        "links.far.down.delay=5ms",
    ] {
        let said = lab.emud(&["set", "va", "up.loss=1%", of_down]).expect(64);
        assert!(said.err.contains("down is not emulated"), "{}", said.err);
    }
    assert_eq!(lab.show()["up"]["loss"], before["up"]["loss"]);
    lab.emud(&["set", "va", "links.far.up.delay=5ms", "loss=1%"])
        .expect(0);
    assert_eq!(lab.show()["links"][0]["up"]["delay"]["mean_ns"], 5_000_000);
}
