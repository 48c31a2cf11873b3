// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::fleet::keys::{Keys, behind, unusable};

/// Agents follow `run/` only: what one of them writes must not reach all others.
#[test]
fn what_agents_follow_is_small() {
    let keys = Keys::new("x");
    let run = keys.run();
    for small in [keys.revision(), keys.t0(), keys.over(), keys.done("n")] {
        assert!(small.starts_with(&run), "{small}");
    }
    for large in [
        keys.plan("a"),
        keys.built("a"),
        keys.complete("a"),
        keys.result("a"),
        keys.log("a", 0),
    ] {
        assert!(!large.starts_with(&run), "{large}");
    }
    for key in [
        keys.built("a"),
        keys.complete("a"),
        keys.result("a"),
        keys.log("a", 3),
    ] {
        assert!(
            key.starts_with(&keys.host("a")) && key.starts_with(&keys.hosts()),
            "{key}"
        );
    }
}

#[test]
fn a_host_is_not_the_beginning_of_another_one() {
    let keys = Keys::new("x");
    assert!(!keys.built("ab").starts_with(&keys.host("a")));
    assert!(!Keys::new("xy").all().starts_with(&Keys::new("x").all()));
}

#[test]
fn logs_are_in_order() {
    let keys = Keys::new("x");
    assert!(keys.log("a", 9) < keys.log("a", 10));
}

#[test]
fn ranges_end_behind_the_last_key() {
    assert_eq!(behind("/a/"), b"/a0");
    assert!(b"/a/\xff\xff".as_slice() < behind("/a/").as_slice());
    assert_eq!(behind(""), [0]);
}

#[test]
fn names_fit_into_keys() {
    assert_eq!(unusable("host-1.example"), None);
    for name in ["", "a/b", "a b", "ä", &"x".repeat(64)] {
        assert!(unusable(name).is_some(), "{name}");
    }
}
