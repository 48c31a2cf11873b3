// SPDX-License-Identifier: GPL-2.0-only
//! The profile reader against whatever people, and chance, may write.

use emud::profile::shipped::{self, SHIPPED};
use emud::profile::{Delay, Distribution, Jitter, Link, Neighbours, Offload, Queue, Reorder};
use emud::profile::{MAX_BYTES, Mistakes, Percent, Profile, ProfileError, Rate, Time};
use malformed::{Malformed, malformed};
use proptest::prelude::*;

mod malformed;

fn mistakes(result: Result<Profile, ProfileError>) -> Mistakes {
    match result {
        Err(error @ ProfileError::Mistakes(_)) => {
            assert_eq!(error.exit_code(), 65);
            let ProfileError::Mistakes(mistakes) = error else { unreachable!() };
            mistakes
        }
        other => panic!("no mistakes found: {other:?}"),
    }
}

/// One mistake: its line, what is underlined, and parts of title and help.
struct Case(&'static str, usize, &'static str, &'static str, &'static str);

/// What differs from `case`, if anything does.
fn differs(case: &Case, found: &Mistakes) -> Option<String> {
    let Case(text, line, underlined, title, help) = *case;
    let shown = found.to_string();
    let mut all = found.iter();
    let same = match (all.next(), all.next()) {
        (Some(one), None) => {
            found.line(one) == line
                && found.underlined(one) == underlined
                && one.title.contains(title)
                && one.help.contains(help)
                && shown.contains(&one.title)
                && shown.contains('^')
        }
        _ => false,
    };
    (!same).then(|| format!("{text}\nwanted line {line}: {underlined}: {title}: {help}\n{shown}\n"))
}

#[test]
fn every_kind_of_mistake_is_shown_where_it_is() {
    let mut wrong = Vec::new();
    for case in MISTAKES {
        let found = mistakes(Profile::parse(case.0, "x.toml"));
        assert!(found.to_string().contains(&format!("x.toml:{}:", case.1)), "{found}");
        wrong.extend(differs(case, &found));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[rustfmt::skip]
const MISTAKES: &[Case] = &[
    // Keys
    Case("[link]\ndelya = \"5ms\"", 2, "delya", "no key `delya` of a link", "did you mean `delay`?"),
    Case("[link]\nlatency = \"5ms\"", 2, "latency", "no key", "did you mean `delay`?"),
    Case("\nbandwith = \"5Mbit\"", 2, "bandwith", "no key", "did you mean `rate`? It belongs under [link]"),
    Case("rate = \"5Mbit\"", 1, "rate", "no key", "belongs under [link], [up] or [down]"),
    Case("[link]\nmean = \"5ms\"", 2, "mean", "no key", "inside `delay`"),
    Case("[up]\nname = \"a\"", 2, "name", "no key", "at the top"),
    Case("[up]\noffload = \"keep\"", 2, "offload", "no key", "at the top"),
    Case("[link.delay]\nmean = \"5ms\"\njiter = \"1ms\"", 3, "jiter", "no key", "did you mean `jitter`?"),
    Case("[uplink]\nrate = \"5Mbit\"", 1, "uplink", "no key", "did you mean `up`?"),
    Case("[link]\nloss = { p = 1 }", 2, "{ p = 1 }", "`loss` cannot be a table", "\"0.5%\""),
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
    Case("[link]\ndelay = { mean = \"9ms\", jitter = \"1ms\", sd = \"2ms\" }", 2, "sd", "both `jitter` and `sd`", "keep one"),
    Case("[link.delay]\nmean = \"50ms\"\njitter = \"60ms\"", 3, "\"60ms\"", "below zero", "at most \"50ms\""),
    Case("[link.delay]\nmean = \"10ms\"\nsd = \"20ms\"", 3, "\"20ms\"", "below zero", "at most \"14.634"),
    Case("[link.delay]\nmean = \"10ms\"\nsd = \"6ms\"\ndistribution = \"uniform\"", 3, "\"6ms\"", "below zero", "at most \"5.773502ms\""),
    Case("[link.delay]\nmean = \"9ms\"\nsd = \"2ms\"\ndistribution = \"gaussian\"", 4, "\"gaussian\"", "cannot be `gaussian`", "\"uniform\", \"normal\""),
    Case("[link.delay]\nmean = \"9ms\"\nsd = \"2ms\"\ndistribution = \"paretonorml\"", 4, "\"paretonorml\"", "cannot be", "did you mean \"paretonormal\"?"),
    // Words
    Case("offload = \"off\"", 1, "\"off\"", "cannot be `off`", "\"auto\", \"keep\""),
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
    // One that both directions inherit is still one.
    let found = mistakes(Profile::parse("[link]\ndelay = { jitter = \"5ms\" }", "x.toml"));
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

#[test]
fn a_thousand_malformed_profiles_are_refused() {
    for Malformed { kind, bytes } in malformed(1000) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Err(error) = Profile::from_bytes(&bytes, "x.toml") else {
            panic!("{kind} was accepted:\n{text}")
        };
        assert_eq!(error.exit_code(), 65);
        let ProfileError::Mistakes(found) = &error else { panic!("{kind}: {error}") };
        let first = found.iter().next().unwrap_or_else(|| panic!("{kind}: no mistake"));
        let line = found.line(first);
        assert!((1..=text.lines().count()).contains(&line), "{kind}: line {line}\n{text}");
        assert!(error.to_string().contains(&format!("x.toml:{line}:")), "{kind}\n{error}");
        assert!(!first.title.is_empty() && !first.help.is_empty(), "{kind}\n{error}");
    }
}

/// Changes that may or may not leave a profile right.
fn mutated(text: &str, edits: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for &(at, what, byte) in edits {
        let at = at % bytes.len().max(1);
        match what % 5 {
            0 if !bytes.is_empty() => drop(bytes.remove(at)),
            1 => bytes.insert(at, byte),
            2 if !bytes.is_empty() => bytes[at] = byte,
            3 => bytes.truncate(at),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}

/// Either a profile that is its own text's, or a message that names a line.
fn accepted_or_explained(bytes: &[u8]) {
    match Profile::from_bytes(bytes, "x.toml") {
        Ok(profile) => assert_eq!(Profile::parse(&profile.to_toml(), "x").unwrap(), profile),
        Err(error) => {
            assert_eq!(error.exit_code(), 65);
            assert!(error.to_string().contains("x.toml:"), "{error}");
            assert!(error.render(true).len() >= error.to_string().len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        accepted_or_explained(&bytes);
    }

    #[test]
    fn any_text(text in "(\\PC|[\n\r\t\"'={}\\[\\]#.]){0,100}") {
        accepted_or_explained(text.as_bytes());
    }

    #[test]
    fn any_values(
        key in "(rate|queue|delay|loss|overhead|neighbours|delay\\.mean|delay\\.sd)",
        value in "(\"[-0-9.eE]{0,6}[ a-zA-Zµ%/]{0,5}\"|[-0-9.e]{1,5}|\\{mean=\"[0-9]ms\",sd=\"[0-9]ms\"\\})",
        header in "(link|up|down|link\\.delay)",
    ) {
        accepted_or_explained(format!("[{header}]\n{key} = {value}\n").as_bytes());
    }

    #[test]
    fn mutations_of_the_shipped(
        profile in 0..SHIPPED.len(),
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..4),
    ) {
        accepted_or_explained(&mutated(SHIPPED[profile].text, &edits));
    }

    #[test]
    fn any_assignment(text in "(up|down|)\\.?[a-z.]{0,12}=?\\PC{0,20}") {
        let Err(error) = shipped::find("hsdpa").unwrap().with_changes(&[text]) else { return Ok(()) };
        prop_assert!(error.to_string().contains("argument 1:1:"), "{error}");
    }

    #[test]
    fn canonical_text_reads_back(profile in profiles()) {
        let text = profile.to_toml();
        let back = Profile::parse(&text, "canonical");
        prop_assert!(matches!(&back, Ok(back) if *back == profile), "{text}\n{profile:?}\n{back:?}");
        // What attach keeps in the kernel, beside what it must restore.
        prop_assert!(text.len() < 32768);
        prop_assert_eq!(profile.with_changes(&[]).unwrap(), profile);
    }

    #[test]
    fn units_read_back(ns in 0..=HOUR_NS, bits in 1..=1_000_000_000_000u64, p in 0.0..=1.0f64) {
        prop_assert_eq!(Time(ns).to_string().parse(), Ok(Time(ns)));
        prop_assert_eq!(Rate(bits).to_string().parse(), Ok(Rate(bits)));
        for p in [p, p * 1e-6, p * 1e-15, p * 1e-300] {
            prop_assert_eq!(Percent(p).to_string().parse(), Ok(Percent(p)));
        }
    }

    #[test]
    fn queues_read_back(queue in queues(0)) {
        prop_assert_eq!(queue.to_string().parse(), Ok(queue));
    }
}

const HOUR_NS: u64 = 3_600_000_000_000;

fn queues(overhead: i32) -> impl Strategy<Value = Queue> {
    let packet = u64::try_from(1514 + overhead).unwrap();
    prop_oneof![
        (1..=65536u32).prop_map(Queue::Packets),
        (packet..=u64::from(u32::MAX)).prop_map(Queue::Bytes),
        (2..=4000u64).prop_map(|kib| Queue::Bytes(kib * 1024 + 4096)),
        (1..=HOUR_NS).prop_map(Queue::Time),
    ]
}

fn delays() -> impl Strategy<Value = Delay> {
    let distribution = prop::sample::select(vec![
        Distribution::Uniform,
        Distribution::Normal,
        Distribution::Pareto,
        Distribution::ParetoNormal,
    ]);
    let reorder = prop::sample::select(vec![Reorder::Never, Reorder::Jitter]);
    let coherence = prop::option::of(1..=HOUR_NS);
    // Halves of whole ms, as people write them, and anything.
    let share = prop_oneof![Just(0.5), Just(1.0), 1e-6..=1.0f64];
    let mean = prop_oneof![1..=HOUR_NS, (1..=200u64).prop_map(|ms| ms * 1_000_000)];
    let jitter = prop::option::of((distribution, reorder, coherence, share));
    (mean, jitter).prop_map(|(mean_ns, jitter)| Delay {
        mean_ns,
        jitter: jitter.map(|(distribution, reorder, coherence_ns, share)| Jitter {
            // The narrowest bound of the four.
            sd_ns: share * mean_ns as f64 / 3f64.sqrt(),
            distribution,
            reorder,
            coherence_ns,
        }),
    })
}

fn links() -> impl Strategy<Value = Link> {
    let neighbours = prop::sample::select(vec![Neighbours::Pass, Neighbours::Emulate]);
    (-64..=4096i32).prop_flat_map(move |overhead| {
        (
            prop::option::of(1..=1_000_000_000_000u64),
            prop::option::of(queues(overhead)),
            prop_oneof![Just(Delay::default()), delays()],
            prop_oneof![Just(0.0), Just(1.0), Just(0.005), 0.0..=1.0f64],
            neighbours.clone(),
        )
            .prop_map(move |(rate, queue, delay, loss, neighbours)| Link {
                rate,
                overhead,
                queue,
                delay,
                loss,
                neighbours,
            })
    })
}

fn profiles() -> impl Strategy<Value = Profile> {
    let offload = prop::sample::select(vec![Offload::Auto, Offload::Keep]);
    let texts = ("[^\\p{Cc}]{0,64}", "([^\\p{Cc}]|[\n\t\r\"'\\\\]){0,200}", "\\PC{0,200}");
    let same = any::<bool>();
    (texts, prop::option::of(any::<u64>()), offload, links(), links(), same).prop_map(
        |((name, description, source), seed, offload, up, down, same)| {
            let down = if same { up.clone() } else { down };
            Profile { name, description, source, seed, offload, up, down }
        },
    )
}
