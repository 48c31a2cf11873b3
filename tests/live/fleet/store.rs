// SPDX-License-Identifier: MIT OR Apache-2.0

use support::lab::emud;

/// Nobody listens at the discard port.
pub fn that_does_not_answer() {
    let said = emud(&["fleet", "status", "--etcd", "http://127.0.0.1:9"]).expect(69);
    assert!(
        said.err.contains("etcd: http://127.0.0.1:9"),
        "{}",
        said.err
    );
    let said = emud(&["fleet", "status", "--etcd", "127.0.0.1:9"]).expect(64);
    assert!(said.err.contains("http://HOST:2379"), "{}", said.err);
    let said = emud(&["fleet", "status", "--etcd", "https://127.0.0.1:9"]).expect(78);
    assert!(said.err.contains("--ca"), "{}", said.err);
}
