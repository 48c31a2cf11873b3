// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud verify --classes`: samples of a server agree with its figures, and not with others.

use std::collections::BTreeMap;

use emud::bottleneck::{Class, Limits, Plan, Schedule};
use emud::profile::{Bottleneck, Queue, ServiceClass};
use emud::verify::{CheckVerdict, OfBottlenecks, Sample, ShareCheck, class_table, judge};

use super::random;
use super::traffic::{Packet, Random, SECOND, constant, merge, serve};

const RATE: u64 = 10_000_000;
/// The holder's reports, and how old they may be.
const EACH: u64 = 50_000_000;
const AGE: u64 = 100_000_000;
const LONGEST: u64 = 1514;

fn bottleneck(plan: &Plan) -> Bottleneck {
    let name = |class: usize| format!("c{class}");
    let class = |(at, class): (usize, &Class)| ServiceClass {
        priority: class.priority.into(),
        weight: class.weight,
        rate: class.rate,
        ceil: class.ceil,
        parent: class.parent.map(name),
        name: name(at),
        queue: Queue::default(),
    };
    Bottleneck {
        rate: Some(plan.rate),
        schedule: plan.schedule,
        name: "b".to_owned(),
        queue: Queue::default(),
        classes: plan.classes.iter().enumerate().map(class).collect(),
    }
}

/// From the second second on; each is up to 50 ms old.
fn samples(plan: &Plan, packets: &[Packet], random: &mut Random, to: u64) -> Vec<Sample> {
    let outcome = serve(plan, packets);
    let mut events = Vec::new();
    for served in &outcome.served {
        let bytes = u64::from(packets[served.token].bytes);
        events.push((served.arrival_ns, served.class, bytes, false));
        events.push((served.start_ns, served.class, bytes, true));
    }
    events.sort_unstable();
    let mut events = events.into_iter().peekable();
    let mut counts = vec![(0, 0); plan.classes.len()];
    let mut all = Vec::new();
    for at_ns in (SECOND..to).step_by(EACH as usize) {
        let read = at_ns - random.below(EACH);
        while let Some((_, class, bytes, is_sent)) = events.next_if(|event| event.0 <= read) {
            let (sent, waits): &mut (u64, u64) = &mut counts[class];
            match is_sent {
                true => (*sent, *waits) = (*sent + bytes, *waits - bytes),
                false => *waits += bytes,
            }
        }
        all.push(Sample {
            at_ns,
            classes: counts.clone(),
        });
    }
    all
}

fn disagree(checks: &[ShareCheck]) -> Vec<(Option<&str>, &str)> {
    let wrong = checks.iter().filter(|c| c.verdict != CheckVerdict::Agrees);
    wrong.map(|c| (c.class.as_deref(), c.what)).collect()
}

#[test]
fn what_a_server_sends_agrees_with_its_figures() {
    let mut random = Random(31);
    let mut kinds = BTreeMap::new();
    for round in 0..40 {
        let mut plan = random::plan(&mut random);
        let scaled =
            |rate: u64, of: u64| 1 + (u128::from(rate) * u128::from(RATE) / u128::from(of)) as u64;
        for class in &mut plan.classes {
            // With and without promises that are kept.
            let part = if round % 2 == 0 { 1 } else { 12 };
            class.rate = class.rate.map(|rate| scaled(rate, part * plan.rate));
            class.ceil = class
                .ceil
                .filter(|_| random.one_in(3))
                .map(|ceil| scaled(ceil, plan.rate));
            class.limits = Limits {
                packets: Some(1000),
                ..Limits::default()
            };
        }
        plan.rate = RATE;
        let leaf = |class: usize| plan.classes.iter().all(|c| c.parent != Some(class));
        let load = |class: usize| {
            let bytes = 400 + random.below(LONGEST - 399) as u32;
            let rate = match random.below(4) {
                0 => RATE / 50,
                _ => RATE * 3 / 2,
            };
            constant(class, bytes, rate, random.below(EACH), 4 * SECOND)
        };
        let packets = merge((0..plan.classes.len()).filter(|c| leaf(*c)).map(load));
        let samples = samples(&plan, &packets, &mut random, 4 * SECOND);
        let checks = judge(&bottleneck(&plan), &samples, AGE, LONGEST);
        assert!(
            disagree(&checks).is_empty(),
            "{round}: {checks:#?} {plan:?}"
        );
        for check in checks {
            *kinds.entry(check.what).or_insert(0) += 1;
        }
    }
    for kind in ["rate", "ceil", "guarantee", "priority", "share"] {
        assert!(kinds.get(kind) > Some(&3), "{kinds:?}");
    }
}

#[test]
fn other_figures_disagree() {
    let mut random = Random(32);
    let limits = Limits {
        packets: Some(1000),
        ..Limits::default()
    };
    let plan = |schedule, figures: [(u8, u32, u64); 2]| Plan {
        rate: RATE,
        schedule,
        seed: 0,
        classes: (figures.iter())
            .map(|(priority, weight, rate)| Class {
                priority: *priority,
                weight: *weight,
                rate: (*rate > 0).then_some(*rate),
                limits,
                ..Class::default()
            })
            .collect(),
    };
    let mut of = |of: &Plan, by: &Bottleneck, rates: [u64; 2]| {
        let load = |class: usize| constant(class, 1514, rates[class], class as u64, 12 * SECOND);
        let samples = samples(of, &merge([0, 1].map(load)), &mut random, 12 * SECOND);
        judge(by, &samples, AGE, LONGEST)
    };
    let table = |checks| -> OfBottlenecks { vec![("b".to_owned(), checks)] };
    let greedy = [2 * RATE; 2];
    let priority = plan(Schedule::Priority, [(0, 1, 0), (1, 1, 0)]);
    let drr = plan(Schedule::Drr, [(0, 40, 0), (0, 41, 0)]);
    let htb = plan(Schedule::Htb, [(0, 1, 2_000_000), (0, 1, 8_000_000)]);
    for (is, other, wrong) in [
        (
            &priority,
            plan(Schedule::Priority, [(1, 1, 0), (0, 1, 0)]),
            vec![(Some("c0"), "priority")],
        ),
        (
            &drr,
            plan(Schedule::Drr, [(0, 1, 0), (0, 1, 0)]),
            vec![(Some("c0"), "share"), (Some("c1"), "share")],
        ),
        (
            &htb,
            plan(Schedule::Htb, [(0, 1, 2_200_000), (0, 1, 7_800_000)]),
            vec![
                (Some("c0"), "guarantee"),
                (Some("c0"), "share"),
                (Some("c1"), "share"),
            ],
        ),
    ] {
        assert!(disagree(&of(is, &bottleneck(is), greedy)).is_empty());
        assert_eq!(disagree(&of(is, &bottleneck(&other), greedy)), wrong);
    }
    let mut slower = bottleneck(&drr);
    slower.rate = Some(RATE * 102 / 100);
    assert_eq!(disagree(&of(&drr, &slower, greedy)), [(None, "rate")]);
    let mut stopped = bottleneck(&drr);
    stopped.classes[1].ceil = Some(4_900_000);
    let checks = of(&drr, &stopped, greedy);
    assert_eq!(disagree(&checks), [(Some("c1"), "ceil")]);
    let (verdict, text) = class_table(&table(checks));
    assert_eq!(verdict, CheckVerdict::Disagrees);
    assert!(
        text.contains("b.c1 ceil") && text.contains("DISAGREES"),
        "{text}"
    );
    // Without a load nothing is known of shares.
    let checks = of(&drr, &stopped, [RATE / 4; 2]);
    let kinds: Vec<_> = checks.iter().map(|check| check.what).collect();
    assert_eq!(kinds, ["ceil"]);
    let (verdict, text) = class_table(&table(checks));
    assert_eq!(verdict, CheckVerdict::NotMeasured);
    assert!(text.contains("load the classes"), "{text}");
}
