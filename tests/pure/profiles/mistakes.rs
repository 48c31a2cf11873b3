// SPDX-License-Identifier: MIT OR Apache-2.0
//! The message for each kind of mistake, and its position.

use emud::profile::{MAX_BYTES, Mistakes, Profile, ProfileError, TextError, shipped};

use super::set;
use crate::case::{Case, compare};

pub fn mistakes(result: Result<Profile, ProfileError>) -> Mistakes {
    match result {
        Err(error @ ProfileError::Text(TextError::Mistakes(_))) => {
            assert_eq!(error.exit_code(), 65);
            let ProfileError::Text(TextError::Mistakes(mistakes)) = error else {
                unreachable!()
            };
            mistakes
        }
        other => panic!("no mistakes found: {other:?}"),
    }
}

#[test]
fn every_kind_of_mistake_is_shown_where_it_is() {
    compare(MISTAKES, |text| mistakes(Profile::parse(text, "x.toml")));
    for case in MISTAKES {
        let shown = mistakes(Profile::parse(case.0, "x.toml")).to_string();
        assert!(
            shown.contains(&format!("x.toml:{}:", case.1)) && shown.contains('^'),
            "{shown}"
        );
    }
}

#[rustfmt::skip]
const MISTAKES: &[Case] = &[
    // Keys
    Case("[link]\ndelya = \"5ms\"", 2, "delya", "no key `delya` of a link", "did you mean `delay`?"),
    Case("[link]\nlatency = \"5ms\"", 2, "latency", "no key", "did you mean `delay`?"),
    Case("\nbandwith = \"5Mbit\"", 2, "bandwith", "no key", "did you mean `rate`? It belongs under [link]"),
    Case("rate = \"5Mbit\"", 1, "rate", "no key", "belongs under [link], [up], [down] or [links.NAME]"),
    Case("[link]\nmean = \"5ms\"", 2, "mean", "no key", "inside `delay`"),
    Case("[up]\nname = \"a\"", 2, "name", "no key", "at the top"),
    Case("[up]\noffload = \"keep\"", 2, "offload", "no key", "at the top"),
    Case("[link.delay]\nmean = \"5ms\"\njiter = \"1ms\"", 3, "jiter", "no key", "did you mean `jitter`?"),
    Case("[uplink]\nrate = \"5Mbit\"", 1, "uplink", "no key", "did you mean `up`?"),
    Case("[link]\nloss = [1]", 2, "[1]", "`loss` cannot be an array", "\"0.5%\""),
    Case("link = 5", 1, "5", "`link` cannot be a number", "[link]"),
    Case("[[up]]\nrate = \"5Mbit\"", 1, "[[up]]", "`up` cannot be an array", "[up]"),
    // Syntax
    Case("[link]\ndelay = 50ms", 2, "50ms", "not valid TOML", "key = \"value\""),
    Case("name = \"a\"\nname = \"b\"", 2, "name", "not valid TOML: duplicate key", ""),
    // Rates
    Case("[link]\nrate = \"5Mbti\"", 2, "\"5Mbti\"", "`Mbti` is not a unit of a rate", "did you mean \"5Mbit\"?"),
    Case("[link]\nrate = \"5M\"", 2, "\"5M\"", "`M` is not a unit of a rate", "did you mean \"5Mbit\"?"),
    Case("[link]\nrate = \"5Mbit/s\"", 2, "\"5Mbit/s\"", "`Mbit/s` is not a unit", "did you mean \"5Mbit\"?"),
    Case("[link]\nrate = \"5Mb/s\"", 2, "\"5Mb/s\"", "not a unit", "rates look like \"384kbit\""),
    Case("[link]\nrate = \"5mbps\"", 2, "\"5mbps\"", "may mean bits or bytes", "\"5Mbit\" for bits a second, or \"40Mbit\""),
    Case("[link]\nrate = 5", 2, "5", "`5` has no unit", "did you mean \"5Mbit\"?"),
    Case("[link]\nrate = \"0bit\"", 2, "\"0bit\"", "lets nothing through", "\"1bit\""),
    Case("[link]\nrate = \"-5Mbit\"", 2, "\"-5Mbit\"", "negative", "below zero"),
    Case("[link]\nrate = \"5Tbit\"", 2, "\"5Tbit\"", "too fast", "\"1Tbit\""),
    Case("[link]\nrate = \"fast\"", 2, "\"fast\"", "`fast` is not a rate", "384kbit"),
    Case("[link]\nrate = true", 2, "true", "`rate` cannot be true or false", "rate = \"1.5Mbit\""),
    Case("[link]\nrate = inf", 2, "inf", "`inf` is not a rate", "384kbit"),
    // Durations
    Case("[link]\ndelay = 50", 2, "50", "`50` has no unit", "did you mean \"50ms\"?"),
    Case("[link]\ndelay = \"50\"", 2, "\"50\"", "`50` has no unit", "did you mean \"50ms\"?"),
    Case("[link]\ndelay = \"50msec\"", 2, "\"50msec\"", "not a unit", "did you mean \"50ms\"? (durations look like"),
    Case("[link]\ndelay = \"50MS\"", 2, "\"50MS\"", "not a unit", "did you mean \"50ms\"?"),
    Case("[link]\ndelay = \"-50ms\"", 2, "\"-50ms\"", "negative", "below zero"),
    Case("[link]\ndelay = \"61min\"", 2, "\"61min\"", "too long", "one hour"),
    Case("[link]\ndelay = [1]", 2, "[1]", "cannot be an array", "delay = \"50ms\""),
    // Loss
    Case("[link]\nloss = \"101%\"", 2, "\"101%\"", "more than 100 %", "\"100%\""),
    Case("[link]\nloss = \"-1%\"", 2, "\"-1%\"", "negative", "\"0%\""),
    Case("[link]\nloss = 0.005", 2, "0.005", "no percent sign", "\"0.005%\", or \"0.5%\""),
    Case("[link]\nloss = 5", 2, "5", "no percent sign", "write \"5%\""),
    Case("[link]\nloss = \"5ms\"", 2, "\"5ms\"", "`ms` is not a percent sign", "did you mean \"5%\"?"),
    // Queues
    Case("[link]\nqueue = \"0p\"", 2, "\"0p\"", "smaller than one packet", "\"1p\""),
    Case("[link]\nqueue = \"0ms\"", 2, "\"0ms\"", "smaller than one packet", "\"1p\""),
    Case("[link]\nqueue = \"0B\"", 2, "\"0B\"", "smaller than one packet", "1514B"),
    Case("[link]\nqueue = \"1500B\"", 2, "\"1500B\"", "smaller than one packet", "\"1514B\""),
    Case("[link]\nqueue = \"1514B\"\noverhead = 4", 2, "\"1514B\"", "smaller than one packet", "\"1518B\""),
    Case("[link]\nqueue = \"1.5p\"", 2, "\"1.5p\"", "whole number", "did you mean \"2p\"?"),
    Case("[link]\nqueue = \"65537p\"", 2, "\"65537p\"", "too long", "\"65536p\""),
    Case("[link]\nqueue = \"64kb\"", 2, "\"64kb\"", "`kb` is not a unit", "did you mean \"64kB\"?"),
    Case("[link]\nqueue = 1000", 2, "1000", "no unit", "did you mean \"1000p\"?"),
    // Overhead
    Case("[link]\noverhead = 5000", 2, "5000", "out of range", "-64 to 4096"),
    Case("[link]\noverhead = \"18B\"", 2, "\"18B\"", "not a whole number", "overhead = 18"),
    // Delay and jitter
    Case("[link]\ndelay = { jitter = \"5ms\" }", 2, "\"5ms\"", "`jitter` without `mean`", "mean = \"50ms\""),
    Case("[link]\ndelay = { sd = \"5ms\" }", 2, "\"5ms\"", "`sd` without `mean`", "mean = \"50ms\""),
    Case("[link]\ndelay = {}", 2, "{}", "a delay without `mean`", "delay = \"50ms\""),
    Case("[link.delay]\nmean = \"5ms\"\nreorder = \"jitter\"", 3, "\"jitter\"", "`reorder` without `jitter`", "leave it out"),
    Case("[link.delay]\nmean = \"5ms\"\ndistribution = \"normal\"", 3, "\"normal\"", "`distribution` without", "leave it out"),
    Case("[link.delay]\nmean = \"5ms\"\ncoherence = \"80ms\"", 3, "\"80ms\"", "`coherence` without", "leave it out"),
    Case("[link]\ndelay = { mean = \"9ms\", jitter = \"1ms\", coherence = \"0ms\" }", 2, "\"0ms\"", "coherence time of zero", "reorder = \"jitter\""),
    Case("[link]\ndelay = { mean = \"9ms\", distance = \"300km\" }", 2, "distance", "both `mean` and `distance`", "keep one"),
    Case("[link]\ndelay = { distance = \"300\" }", 2, "\"300\"", "`300` has no unit", "did you mean \"300km\"?"),
    Case("[link]\ndelay = { distance = \"5ms\" }", 2, "\"5ms\"", "`ms` is not a unit of a distance", "distances look like"),
    Case("[link]\ndelay = { distance = \"-5km\" }", 2, "\"-5km\"", "negative", "below zero"),
    Case("[link]\ndelay = { distance = \"719501900km\" }", 2, "\"719501900km\"", "more than an hour", "\"719501899km\""),
    Case("[link]\ndelay = { distance = {} }", 2, "{}", "a distance without `length`", "distance = \"300km\""),
    Case("[link.delay.distance]\nlength = \"5km\"\nvelocity-factor = \"0%\"", 3, "\"0%\"", "`velocity-factor` is zero", "\"100%\" for radio"),
    Case("[link.delay.distance]\nlength = \"5km\"\nvelocity-factor = \"101%\"", 3, "\"101%\"", "100", ""),
    Case("[link.delay.distance]\nlength = \"5km\"\nvelocity = \"90%\"", 3, "velocity", "no key `velocity` of a distance", "length, velocity-factor"),
    Case("[link]\nlength = \"5km\"", 2, "length", "no key `length` of a link", "inside `distance`"),
    Case("[link]\ndelay = \"300 km\"", 2, "\"300 km\"", "`300 km` is a distance", "{ distance = \"300 km\" } for its propagation delay in fibre, 1.501038ms"),
    Case("[link]\ndelay = { mean = \"300km\", jitter = \"1ms\" }", 2, "\"300km\"", "`300km` is a distance", "1.501038ms"),
    Case("[link]\ndelay = \"5m\"", 2, "\"5m\"", "`m` is not a unit of a duration", "did you mean \"5ms\"?"),
    Case("[link]\ndelay = { mean = \"9ms\", jitter = \"1ms\", sd = \"2ms\" }", 2, "sd", "both `jitter` and `sd`", "keep one"),
    Case("[link.delay]\nmean = \"50ms\"\njitter = \"60ms\"", 3, "\"60ms\"", "below zero", "at most \"50ms\""),
    Case("[link.delay]\nmean = \"10ms\"\nsd = \"20ms\"", 3, "\"20ms\"", "below zero", "at most \"14.634"),
    Case("[link.delay]\nmean = \"10ms\"\nsd = \"6ms\"\ndistribution = \"uniform\"", 3, "\"6ms\"", "below zero", "at most \"5.773502ms\""),
    Case("[link.delay]\nmean = \"9ms\"\nsd = \"2ms\"\ndistribution = \"gaussian\"", 4, "\"gaussian\"", "cannot be `gaussian`", "\"uniform\", \"normal\""),
    Case("[link.delay]\nmean = \"9ms\"\nsd = \"2ms\"\ndistribution = \"paretonorml\"", 4, "\"paretonorml\"", "cannot be", "did you mean \"paretonormal\"?"),
    // Names
    Case("offload = \"off\"", 1, "\"off\"", "cannot be `off`", "\"auto\", \"keep\""),
    Case("[links.a]\nrate = { rate = \"1Mbit\", overhead = 40 }\noverhead = 18\n[[rule]]\nlink = \"a\"", 2, "overhead", "given twice", "keep one"),
    Case("[[phase]]\nrate = { rate = \"1Mbit\", overhead = 40 }\noverhead = 18", 2, "overhead", "given twice", "keep one"),
    Case("offload = \"auto\"\n[link]\noffload = \"keep\"", 3, "offload", "given twice", "at the top"),
    Case("neighbours = true", 1, "true", "cannot be true or false", "\"pass\", \"emulate\""),
    // Texts and seed
    Case("seed = -1", 1, "-1", "not a seed", "seed = 42"),
    Case("seed = 18446744073709551616", 1, "18446744073709551616", "not a seed", "seed = 42"),
    Case("seed = \"x\"", 1, "\"x\"", "not a seed", "seed = 42"),
    Case("name = \"\"", 1, "\"\"", "not a name", "name = \"hsdpa\""),
    Case("name = 5", 1, "5", "cannot be a number", "name = \"...\""),
    Case("description = \"\\u001b[31m\"", 1, "\"\\u001b[31m\"", "control character, U+001B", "line ends and tabs"),
];

#[test]
fn all_mistakes_are_reported_in_the_order_of_the_text() {
    let text = "[down]\nloss = \"200%\"\n[up]\nrate = 5\ndelay = { jitter = \"5ms\" }\n";
    let found = mistakes(Profile::parse(text, "x.toml"));
    let lines: Vec<_> = found.iter().map(|m| found.line(m)).collect();
    assert_eq!(lines, [2, 4, 5]);
    // A mistake that both directions inherit is reported once.
    let found = mistakes(Profile::parse(
        "[link]\ndelay = { jitter = \"5ms\" }",
        "x.toml",
    ));
    assert_eq!(found.iter().count(), 1);
}

#[test]
fn the_message_as_a_whole() {
    let found = mistakes(Profile::parse("[link]\nrate = \"5mbps\"\n", "x.toml"));
    assert_eq!(
        found.to_string(),
        "error: `mbps` may mean bits or bytes a second
 --> x.toml:2:8
  |
2 | rate = \"5mbps\"
  |        ^^^^^^^
  |
  = help: write \"5Mbit\" for bits a second, or \"40Mbit\" for that many bytes a second (which is how tc reads `mbps`)"
    );
}

/// The message is about the wrong assignment, even if it only conflicts with the active profile.
#[test]
fn wrong_changes() {
    let hsdpa = shipped::find("hsdpa").unwrap();
    #[rustfmt::skip]
    let cases = [
        Case("delay", 1, "delay", "no `=`", "up.delay=80ms"),
        Case("", 1, "", "no `=`", "up.delay=80ms"),
        Case("delay=", 1, "delay=", "no value", "`none`"),
        Case("up=5", 1, "up", "direction alone", "up.delay=80ms"),
        Case("up.delya=5ms", 1, "delya", "no key `delya`", "did you mean `delay`?"),
        Case("upp.delay=5ms", 1, "upp", "no key `upp`", "did you mean `up`?"),
        Case("delay.jiter=5ms", 1, "jiter", "no key `jiter`", "did you mean `jitter`?"),
        Case("delay.distance=5", 1, "5", "`5` has no unit", "did you mean \"5km\"?"),
        Case("delay.mean.x=5ms", 1, "x", "too deep", "`delay.jitter`"),
        Case("neighbours.x=pass", 1, "x", "no keys in it", "neighbours=..."),
        Case("seed=5", 1, "seed", "cannot be set", "--seed"),
        Case("name=x", 1, "name", "cannot be set", "comes from"),
        Case("up.offload=keep", 1, "offload", "cannot be set", "detach"),
        Case("rate=5", 1, "5", "no unit", "5Mbit"),
        Case("down.loss=101%", 1, "101%", "more than 100 %", "100%"),
        Case("delay={mean=}", 1, "", "not valid TOML", ""),
        Case("delay={mean=\"5\"}", 1, "\"5\"", "no unit", "5ms"),
        Case("queue=100B", 1, "100B", "smaller than one packet", "1514B"),
        // Against the active sd of 69.296 ms.
        Case("up.delay.mean=20ms", 1, "20ms", "below zero", "at most"),
        Case("delay.sd=900ms", 1, "900ms", "below zero", "at most"),
    ];
    compare(&cases, |text| {
        // In third position, after two that are right.
        let found = mistakes(set(&hsdpa, &["loss=1%", "up.loss=2%", text]));
        assert!(found.to_string().contains("--> argument 3:1:"), "{found}");
        found
    });
    // 69.296 ms of uniform fit about 198 ms.
    assert!(set(&hsdpa, &["delay.distribution=uniform"]).is_ok());
    assert_eq!(mistakes(set(&hsdpa, &["x=1", "y=2"])).iter().count(), 2);
}

/// A file must not reach the terminal's controls through a message.
#[test]
fn no_control_characters_in_messages() {
    for text in [
        "[up]\nrate = \"\\u001b[31m5\"",
        "\"\\u001b[31m\" = 5",
        "[up]\n# \u{9b}31m\nq = 5 # \u{1b}",
    ] {
        let shown = mistakes(Profile::parse(text, "x.toml")).to_string();
        assert!(
            !shown.contains(|c: char| c.is_control() && c != '\n'),
            "{shown:?}"
        );
    }
}

/// Neither the depth nor the number of mistakes may exhaust the stack or take long.
#[test]
fn monsters() {
    let deep = format!("a = {}", "[".repeat(MAX_BYTES - 10));
    let dotted = format!("{}a = 1", "a.".repeat(MAX_BYTES / 2 - 10));
    let many = "[[q]]\n".repeat(MAX_BYTES / 6);
    let keys: String = (0..10_000).map(|i| format!("k{i}=1\n")).collect();
    let long = format!("name = \"{}\"", "x".repeat(MAX_BYTES - 20));
    for text in [deep, dotted, many, keys, long] {
        let found = mistakes(Profile::parse(&text, "x.toml"));
        assert!(found.to_string().contains("x.toml:"));
    }
}
