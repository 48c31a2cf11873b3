// SPDX-License-Identifier: MIT OR Apache-2.0
//! The profile reader with random input.

use emud::abi;
use emud::datapath::stage::compile::{Beside, Compiled, PacketTarget, compile, decode};
use emud::profile::quantile::Table;
use emud::profile::shipped::{self, SHIPPED};
use emud::profile::{
    Aqm, Delay, Distribution, Jitter, Length, Limit, Link, Matrix, NamedLink, Neighbours, Offload,
    Percent, Phases, Pi, Profile, ProfileError, Queue, Rate, Rem, Reorder, Reordering, Shape,
    TextError, Time, Wire,
};
use proptest::prelude::*;

use super::queue::{queues, wires};
use support::chance::same_cases;
use support::malformed::{Malformed, malformed};

#[test]
fn a_thousand_malformed_profiles_are_refused() {
    let texts: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.text).collect();
    for Malformed { kind, bytes } in malformed(&texts, 1000) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Err(error) = Profile::from_bytes(&bytes, "x.toml") else {
            panic!("{kind} was accepted:\n{text}")
        };
        assert_eq!(error.exit_code(), 65);
        let ProfileError::Text(TextError::Mistakes(found)) = &error else {
            panic!("{kind}: {error}")
        };
        let first = found
            .iter()
            .next()
            .unwrap_or_else(|| panic!("{kind}: no mistake"));
        let line = found.line(first);
        assert!(
            (1..=text.lines().count()).contains(&line),
            "{kind}: line {line}\n{text}"
        );
        assert!(
            error.to_string().contains(&format!("x.toml:{line}:")),
            "{kind}\n{error}"
        );
        assert!(
            !first.title.is_empty() && !first.help.is_empty(),
            "{kind}\n{error}"
        );
    }
}

/// Changes after which a profile may or may not be valid.
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

/// Either the profile is equal after reading its text, or a message names a line.
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
    // 100,000 inputs in the full run.
    #![proptest_config(same_cases(if support::full() { 50_000 } else { 125 }))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        accepted_or_explained(&bytes);
    }

    #[test]
    fn mutations_of_the_shipped(
        profile in 0..SHIPPED.len(),
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..4),
    ) {
        accepted_or_explained(&mutated(SHIPPED[profile].text, &edits));
    }
}

proptest! {
    #![proptest_config(same_cases(support::cases(1000)))]

    #[test]
    fn any_text(text in "(\\PC|[\n\r\t\"'={}\\[\\]#.]){0,100}") {
        accepted_or_explained(text.as_bytes());
    }

    #[test]
    fn any_values(
        key in "(rate|queue|delay|loss|overhead|neighbours|delay\\.mean|delay\\.sd|delay\\.distance)",
        value in "(\"[-0-9.eE]{0,6}[ a-zA-Zµ%/]{0,5}\"|[-0-9.e]{1,5}|\\{mean=\"[0-9]ms\",sd=\"[0-9]ms\"\\})",
        header in "(link|up|down|link\\.delay)",
    ) {
        accepted_or_explained(format!("[{header}]\n{key} = {value}\n").as_bytes());
    }

    /// By an independent formula: light needs 10^9 / 299792458 ns for a metre.
    #[test]
    fn a_distance_is_its_propagation_delay(
        metres in 0..=700_000_000_000u64,
        km in any::<bool>(),
        percent in prop::option::of(67..=100u32),
    ) {
        let length = match km {
            true => format!("{}km", metres as f64 / 1e3),
            false => format!("{metres}m"),
        };
        let distance = match percent {
            None => format!("\"{length}\""),
            Some(percent) => format!("{{ length = \"{length}\", velocity-factor = \"{percent}%\" }}"),
        };
        let vacuum_ns = metres as f64 * (1e9 / 299_792_458.0);
        let expected = percent.map_or(vacuum_ns * 1.5, |percent| vacuum_ns * 100.0 / f64::from(percent));
        let delay = |text: &str| Profile::parse(text, "x").map(|profile| profile.up.delay.mean_ns);
        let found = delay(&format!("[link]\ndelay = {{ distance = {distance} }}\n")).unwrap();
        prop_assert!((found as f64 - expected).abs() <= 1.0, "{length} {found} {expected}");
        // As the mean that it is.
        let written = format!("[link]\ndelay = \"{}\"\n", Time(found));
        prop_assert_eq!(delay(&written).unwrap(), found);
        let set = shipped::find("hsdpa").unwrap().with_changes(&[
            "delay=none".to_owned(),
            format!("delay.distance={distance}"),
        ]);
        prop_assert_eq!(set.unwrap().down.delay.mean_ns, found);
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
        // The part that attach stores in the kernel, besides the state to restore.
        prop_assert!(text.len() < 32768);
        prop_assert_eq!(profile.with_changes(&[]).unwrap(), profile);
    }

    #[test]
    fn traces_phases_and_slots_read_back(
        mut profile in profiles(),
        up in prop::option::of(super::trace::traces()),
        slot in prop::option::of(super::trace::slots()),
        phases in super::trace::phases(links().boxed()),
    ) {
        profile.up.slot = slot;
        match phases.list.is_empty() {
            true => {
                if up.is_some() {
                    profile.up.delay.max_ns = None;
                }
                profile.up.trace = up;
            }
            false => profile.phases = phases,
        }
        // An instance has no room for long queues at any time.
        if profile.rules.iter().any(|rule| rule.per.is_some()) {
            for phase in &mut profile.phases.list {
                for link in [&mut phase.up, &mut phase.down] {
                    link.queue.packets = link.queue.packets.map(|packets| packets.min(1024));
                }
            }
        }
        // Pairs always have their figures.
        if profile.is_timed() {
            profile.matrix = None;
        }
        let text = profile.to_toml();
        let back = Profile::parse(&text, "canonical");
        prop_assert!(matches!(&back, Ok(back) if *back == profile), "{text}\n{profile:?}\n{back:?}");
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
    fn queues_read_back(queue in limits(0)) {
        prop_assert_eq!(queue.to_string().parse(), Ok(queue));
    }
}

proptest! {
    // Each compiles three tables of delays.
    #![proptest_config(same_cases(support::cases(300)))]

    #[test]
    fn what_the_classifier_runs_reads_back(
        mut link in links(),
        slot in prop::option::of(super::trace::slots()),
    ) {
        link.slot = slot;
        // The active mean and deviation are those after the cut, in whole ns.
        link.delay.max_ns = None;
        link.delay.mean_ns += 1_000;
        // A file's table may have a mean, by which it moves that of the delay.
        if matches!(&link.delay.jitter, Some(j) if matches!(j.distribution, Shape::Table(_))) {
            link.delay.jitter = None;
        }
        let first = figures(&link);
        let read = read_back(&first, &link);
        let second = figures(&read);
        prop_assert_eq!(exact(&first.link), exact(&second.link), "{:?}\n{:?}", link, read);
        for (first, second) in rounded(&first.link).into_iter().zip(rounded(&second.link)) {
            let (first, second) = (first as f64, second as f64);
            prop_assert!((first - second).abs() <= 2e10, "{first} {second}");
        }
        // Gains keep at least six digits of the larger one.
        for (first, second) in gains(&first.link).into_iter().zip(gains(&second.link)) {
            let largest = first.into_iter().fold(0.0, f64::max);
            let off = (first[0] - second[0]).abs().max((first[1] - second[1]).abs());
            prop_assert!(off <= largest * 1e-6, "{first:?} {second:?}");
        }
        // A mean in whole ns, a deviation to the table's precision.
        let (first, second) = (first.table.delay_ns, second.table.delay_ns);
        for (first, second) in first.iter().zip(&second) {
            let off = first.abs_diff(*second) as f64;
            prop_assert!(off <= 3.0 + 1e-5 * *first as f64, "{first} {second}");
        }
        // There are no more roundings.
        let again = read_back(&figures(&read), &read);
        prop_assert_eq!((&again.loss, &again.duplicate), (&read.loss, &read.duplicate));
        prop_assert_eq!((&again.wire, again.reset), (&read.wire, read.reset));
        prop_assert_eq!(without_gains(&again.queue), without_gains(&read.queue));
    }
}

fn figures(link: &Link) -> Compiled {
    let place = PacketTarget {
        release: 0,
        ifindex: 0,
        l3: false,
    };
    compile(link, 1, 0, 0, place).expect("mean and deviation go together")
}

fn read_back(figures: &Compiled, wanted: &Link) -> Link {
    let beside = Beside {
        delays: (wanted.delay.jitter.as_ref()).map(|_| &figures.table.delay_ns[..]),
        mean_ns: figures.link.delay_ns,
        pattern: figures.pattern.as_deref(),
        wanted: Some(wanted),
    };
    decode(&figures.link, beside)
}

/// Probabilities and correlations; one part of 2^30 of a correlation is 2^34 here.
fn rounded(link: &abi::emud_link) -> Vec<u64> {
    let chance = |chance: &abi::emud_chance| {
        let correlation = u64::from(chance.correlation) << 34;
        [chance.probability, correlation]
    };
    let chances = [&link.loss, &link.duplicate, &link.corrupt].map(chance);
    let mut all = vec![link.share, link.reorder, link.reorder_repeat, link.reset];
    all.extend(chances.into_iter().flatten());
    // A bit-error rate keeps six digits, which a separate test judges.
    if link.loss_model != abi::EMUD_LOSS_BIT_ERROR {
        all.extend(link.loss_param);
    }
    all
}

/// All other figures.
fn exact(link: &abi::emud_link) -> String {
    let mut link = *link;
    let none = abi::emud_chance::default();
    (link.loss, link.duplicate, link.corrupt) = (none, none, none);
    (link.share, link.reorder, link.reorder_repeat) = (0, 0, 0);
    link.reset = 0;
    (link.loss_param, link.loss_id) = ([0; 5], 0);
    // The normal values' correlation is fitted to the delays of a table, which are rounded.
    (link.correlation, link.innovation) = (0, 0);
    if link.flags & abi::EMUD_F_JITTER != 0 {
        (link.delay_ns, link.fq_shift) = (0, 0);
    }
    // A time of jitter in order only.
    if link.flags & abi::EMUD_F_PER_PACKET != 0 {
        link.coherence_ns = 0;
    }
    // Fixed point numbers, which may be written with another shift.
    let q = &mut link.queueing;
    (q.pie.alpha, q.pie.beta) = (0, 0);
    (q.pi.gains, q.rem.gains) = Default::default();
    format!("{link:?}")
}

/// The gains of PIE, PI and REM.
fn gains(link: &abi::emud_link) -> [[f64; 2]; 3] {
    let q = &link.queueing;
    let of = |gains: abi::emud_gains| {
        let scale = 2f64.powi(-(gains.shift as i32));
        gains.mult.map(|mult| mult as f64 * scale)
    };
    let pie = [q.pie.alpha as f64, q.pie.beta as f64];
    [pie, of(q.pi.gains), of(q.rem.gains)]
}

fn without_gains(queue: &Queue) -> Queue {
    let mut queue = *queue;
    match &mut queue.aqm {
        Some(Aqm::Pie(pie)) => (pie.alpha, pie.beta) = (0.0, 0.0),
        Some(Aqm::Pi(pi)) => (pi.a, pi.b) = (0.0, 0.0),
        Some(Aqm::Rem(rem)) => (rem.gamma, rem.alpha) = (0.0, 0.0),
        _ => {}
    }
    queue
}

const HOUR_NS: u64 = 3_600_000_000_000;

fn limits(overhead: i32) -> impl Strategy<Value = Limit> {
    let packet = u64::try_from(1514 + overhead).unwrap();
    prop_oneof![
        (1..=65536u32).prop_map(Limit::Packets),
        (packet..=u64::from(u32::MAX)).prop_map(Limit::Bytes),
        (2..=4000u64).prop_map(|kib| Limit::Bytes(kib * 1024 + 4096)),
        (1..=HOUR_NS).prop_map(Limit::Time),
    ]
}

fn delays() -> impl Strategy<Value = Delay> {
    let values: Vec<f64> = (0..50).map(|k| f64::from(k * k % 31)).collect();
    let table = Table::new(&values).unwrap();
    let distribution = prop::sample::select(vec![
        Distribution::Uniform.into(),
        Distribution::Normal.into(),
        Distribution::Pareto.into(),
        Distribution::ParetoNormal.into(),
        Shape::LogNormal,
        Shape::Table(table.clone().into()),
    ]);
    let reorder = prop::sample::select(vec![Reorder::Never, Reorder::Jitter]);
    let coherence = prop::option::of(1..=HOUR_NS);
    // Halves of whole ms, as in files, and random values.
    let share = prop_oneof![Just(0.5), Just(1.0), 1e-6..=1.0f64];
    let mean = prop_oneof![0..=HOUR_NS, (0..=200u64).prop_map(|ms| ms * 1_000_000)];
    let correlation = prop_oneof![Just(0.0), 0.0..0.999f64];
    let jitter = prop::option::of((distribution, reorder, coherence, share, correlation));
    let delayed = prop::option::of(0.0..1.0f64);
    let above = prop::option::of(0..=HOUR_NS);
    let no_jitter_at_zero = |(mean, jitter, delayed, above)| {
        let jitter = Some(jitter).filter(|_| mean > 0).flatten();
        (mean, jitter, delayed, above)
    };
    let figures = (mean, jitter, delayed, above).prop_map(no_jitter_at_zero);
    figures.prop_map(|(mean_ns, jitter, delayed, above)| Delay {
        mean_ns,
        max_ns: (jitter.as_ref().and(above)).map(|above| (mean_ns + above).min(HOUR_NS)),
        jitter: jitter.map(
            |(distribution, reorder, coherence_ns, share, correlation)| Jitter {
                // The narrowest bound of the four.
                sd_ns: share * mean_ns as f64 / 3f64.sqrt(),
                distribution,
                reorder,
                coherence_ns,
                correlation: match reorder {
                    Reorder::Jitter => correlation,
                    Reorder::Never => 0.0,
                },
            },
        ),
        share: delayed,
    })
}

fn reorderings() -> impl Strategy<Value = Reordering> {
    (1e-9..=1.0f64, 0.0..0.999f64, 1..=1000u32).prop_map(|(probability, correlation, gap)| {
        Reordering {
            probability,
            correlation,
            gap,
        }
    })
}

/// A target of PI or REM is at most 8 s long: as many bytes as the rate has bit/s.
fn with_a_short_target(mut queue: Queue, rate: Option<u64>) -> Queue {
    if let Some(Aqm::Pi(Pi { target, .. }) | Aqm::Rem(Rem { target, .. })) = &mut queue.aqm
        && let Length::Bytes(bytes) = target
    {
        *bytes = (*bytes).min(rate.unwrap_or(1_000_000));
    }
    queue
}

fn links() -> impl Strategy<Value = Link> {
    let neighbours = prop::sample::select(vec![Neighbours::Pass, Neighbours::Emulate]);
    (-64..=4096i32, wires()).prop_flat_map(move |(overhead, wire)| {
        (
            prop::option::of(1..=1_000_000_000_000u64),
            // The link may lose its rate, and its framing with it.
            queues(
                wire.bytes(1514, overhead)
                    .max(Wire::default().bytes(1514, overhead)),
            ),
            prop_oneof![Just(Delay::default()), delays()],
            super::loss::losses(),
            neighbours.clone(),
            (prop::option::of(reorderings()), super::alter::alterations()),
        )
            .prop_map(
                move |(rate, queue, delay, loss, neighbours, (reorder, altered))| Link {
                    rate,
                    overhead,
                    wire: rate.map(|_| wire).unwrap_or_default(),
                    queue: with_a_short_target(queue, rate),
                    delay,
                    loss,
                    neighbours,
                    reorder,
                    duplicate: altered.0,
                    corrupt: altered.1,
                    reset: altered.2,
                    state: altered.3,
                    shared: None,
                    trace: None,
                    slot: None,
                    background: None,
                    class: None,
                },
            )
    })
}

/// With rules and a matrix, and links that share a queue.
fn matched(profile: Profile, names: Vec<String>) -> BoxedStrategy<Profile> {
    let base = prop::option::of(prop::sample::select(
        [vec!["link".to_owned()], names.clone()].concat(),
    ));
    let matrix = prop::option::of((base, 1..=65_536u32));
    let shared = prop::option::of(0..2usize);
    let bottleneck = super::bottleneck::bottlenecks();
    (super::rules::rules(names), matrix, shared, bottleneck)
        .prop_map(move |(rules, matrix, shared, bottleneck)| {
            let mut profile = profile.clone();
            profile.rules = rules;
            profile.bottlenecks = bottleneck.into_iter().collect();
            profile.matrix = matrix.map(|(link, capacity)| Matrix {
                link: link.filter(|name| name != "link"),
                capacity,
                pairs: Default::default(),
            });
            // An instance and a pair have no room for long queues.
            let per: Vec<_> = profile
                .rules
                .iter()
                .filter(|r| r.per.is_some())
                .cloned()
                .collect();
            let limit = profile.matrix.is_some() || !per.is_empty();
            let has_matrix = profile.matrix.is_some();
            let named = profile
                .links
                .iter_mut()
                .flat_map(|l| [&mut l.up, &mut l.down]);
            for link in named
                .chain([&mut profile.up, &mut profile.down])
                .filter(|_| limit)
            {
                if has_matrix {
                    link.delay.max_ns = None;
                    // A manager of pairs reckons with the rate of their link.
                    link.rate = link.rate.or(Some(1_000_000));
                }
                let is_rio = matches!(link.queue.aqm, Some(Aqm::Rio(_)));
                link.queue.packets = is_rio.then_some(128);
                link.queue.time_ns = link.queue.time_ns.or(Some(1_000_000));
            }
            if let (Some(n), true) = (shared, profile.links.len() == 2) {
                share(&mut profile, n);
            }
            profile
        })
        .boxed()
}

/// Links of one rate and queue, in the up direction.
fn share(profile: &mut Profile, n: usize) {
    let first = profile.links[n].up.clone();
    profile.links[n].up.shared = Some("x".to_owned());
    let other = &mut profile.links[1 - n].up;
    other.shared = Some("x".to_owned());
    (other.rate, other.wire, other.queue) = (first.rate, first.wire, first.queue);
    other.overhead = first.overhead;
}

fn profiles() -> impl Strategy<Value = Profile> {
    let offload = prop::sample::select(vec![Offload::Auto, Offload::Keep]);
    let texts = (
        "[^\\p{Cc}]{0,64}",
        "([^\\p{Cc}]|[\n\t\r\"'\\\\]){0,200}",
        "\\PC{0,200}",
    );
    let same = any::<bool>();
    (
        texts,
        prop::option::of(any::<u64>()),
        offload,
        links().boxed(),
        links().boxed(),
        same,
        prop::collection::btree_map("[a-zA-Z0-9_-]{1,32}", (links(), links()), 0..3).boxed(),
        1..=65_536u32,
    )
        .prop_map(
            |((name, description, source), seed, offload, up, down, same, named, instances)| {
                let down = if same { up.clone() } else { down };
                let named = named.into_iter();
                let named = named.map(|(name, (up, down))| NamedLink { name, up, down });
                let links: Vec<_> = named.collect();
                let names = links
                    .iter()
                    .map(|link: &NamedLink| link.name.clone())
                    .collect();
                let profile = Profile {
                    name,
                    description,
                    source,
                    seed,
                    offload,
                    up,
                    down,
                    links,
                    bottlenecks: vec![],
                    rules: vec![],
                    instances,
                    matrix: None,
                    phases: Phases::default(),
                };
                matched(profile, names)
            },
        )
        .prop_flat_map(|strategy| strategy)
        .boxed()
}
