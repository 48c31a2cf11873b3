// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judgements of simulated measurements: correct links agree, changed ones do not.

use support::full;

use super::*;
use crate::profile::Profile;
use crate::profile::shipped::{SHIPPED, find};
use crate::verify::check::FALSE_ALARM;
use crate::verify::probe::{Arrival, Sent};
use crate::verify::requested::compiled;
use crate::verify::simulate::one;
use crate::verify::theory::{Asked, Source};

/// The full number of runs takes minutes in an unoptimised build, and only tightens the bounds.
const RUNS: usize = 1_000;
const PROBE: usize = 66;
const TRAIN: usize = 1442;

fn judge(way: &Asked) -> Judge<'_> {
    Judge {
        direction: "up",
        ways: vec![way],
        probe_bytes: PROBE,
        train_bytes: TRAIN,
        resolution_ns: 1e6,
        late_share: 0.0,
        runs: RUNS,
    }
}

/// As the default duration makes it.
fn plan(way: &Asked) -> Plan {
    let interval_ns = 5e6f64.max(way.serialisation_ns(PROBE) * 10.0);
    Plan {
        id: 1,
        count: (25e9 / interval_ns) as u32,
        interval_ns: interval_ns as u64,
        payload: 24,
        wait_ns: 0,
        catches_up: false,
    }
}

fn measured(way: &Asked, plan: Plan, seed: u64) -> Stream {
    let pace = Pace {
        count: plan.count as usize,
        interval_ns: plan.interval_ns as f64,
    };
    let (delays, fates) = one(way, pace, seed);
    let sent: Vec<Sent> = (0..u64::from(plan.count))
        .map(|i| Sent {
            at_ns: i * plan.interval_ns,
            vague: false,
        })
        .collect();
    let mut came: Vec<Arrival> = (0..)
        .zip(sent.iter().zip(delays.iter().zip(fates)))
        .filter(|(_, (_, (_, fate)))| *fate >= way.loss)
        .map(|(number, (sent, (delay, _)))| Arrival {
            number,
            at_ns: sent.at_ns + (delay + way.serialisation_ns(PROBE)) as u64,
        })
        .collect();
    came.sort_by_key(|a| a.at_ns);
    Stream { sent, came }
}

/// A requested link and the effect of chance on it, which takes a while to compute.
struct Bench<'a> {
    asked: &'a Asked,
    chance: (Cdf, Chance),
}

impl<'a> Bench<'a> {
    fn new(asked: &'a Asked) -> Self {
        let usual = measured(asked, plan(asked), 0);
        let chance = judge(asked).chance(plan(asked), &usual);
        Self { asked, chance }
    }

    fn judged(&self, stream: &Stream) -> Vec<Check> {
        judge(self.asked).paced(stream, &self.chance)
    }

    fn disagreeing(&self, real: &Asked, seed: u64) -> Vec<What> {
        let checks = self.judged(&measured(real, plan(self.asked), seed));
        let wrong = |c: &Check| c.verdict != CheckVerdict::Agrees;
        checks.into_iter().filter(wrong).map(|c| c.what).collect()
    }
}

/// Every shipped link once, but for those with rules, which are not judged.
fn shipped() -> Vec<(String, Asked)> {
    let mut all: Vec<(String, Asked)> = Vec::new();
    for shipped in SHIPPED {
        let profile = find(shipped.name).unwrap();
        if !profile.rules.is_empty() {
            continue;
        }
        for direction in crate::abi::DIRECTIONS {
            let asked = compiled(&profile, direction, TRAIN).unwrap();
            if !all.iter().any(|(_, a)| *a == asked) {
                all.push((shipped.name.to_owned(), asked));
            }
        }
    }
    all
}

#[test]
fn a_shipped_link_as_asked_agrees_and_a_changed_one_does_not() {
    for (name, asked) in shipped() {
        let bench = Bench::new(&asked);
        assert_eq!(bench.disagreeing(&asked, 1), [], "{name} unchanged");

        let mut lossy = asked.clone();
        lossy.loss += 0.01;
        let found = bench.disagreeing(&lossy, 2);
        assert_eq!(found, [What::Loss], "{name} with 1 % more loss");

        // The same shape, twice as wide, as `emud set` sets it if the mean allows.
        let mut wide = asked.clone();
        let twice = |d: &f64| (asked.mean_ns + 2.0 * (d - asked.mean_ns)).max(0.0);
        match &mut wide.source {
            Source::Constant => continue,
            Source::Independent { table_ns } => table_ns.iter_mut().for_each(|d| *d = twice(d)),
            Source::Process {
                table_ns,
                coherence_ns,
            } => {
                table_ns.iter_mut().for_each(|d| *d = twice(d));
                *coherence_ns *= 2.0;
            }
        }
        for seed in 3..6 {
            let found = bench.disagreeing(&wide, seed);
            let delay = [What::DelayMean, What::DelaySd, What::DelayDistribution];
            assert!(
                found.iter().any(|w| delay.contains(w)),
                "{name}, twice the jitter: {found:?}"
            );
        }
    }
}

#[test]
fn a_rate_halved_is_found_and_an_idle_sender_is_not_believed() {
    for (name, asked) in shipped().into_iter().step_by(if full() { 1 } else { 3 }) {
        let Some(rate) = asked.rate_bit_s else {
            continue;
        };
        let each = asked.serialisation_ns(TRAIN);
        let plan = Plan {
            id: 1,
            count: (5e9 / each) as u32,
            interval_ns: (each / 1.3) as u64,
            payload: 1400,
            wait_ns: 0,
            catches_up: true,
        };
        let paced = measured(&asked, super::tests::plan(&asked), 1);
        let verdict = |spacing: f64, interval_ns: u64| {
            let sent = (0..u64::from(plan.count)).map(|i| Sent {
                at_ns: i * interval_ns,
                vague: false,
            });
            let came = (0..plan.count).map(|number| Arrival {
                number,
                at_ns: (f64::from(number) * spacing) as u64,
            });
            let stream = Stream {
                sent: sent.collect(),
                came: came.collect(),
            };
            let check = judge(&asked).train(plan, &stream, &paced).unwrap();
            assert_eq!(check.asked, rate);
            check.verdict
        };
        assert_eq!(
            verdict(each, plan.interval_ns),
            CheckVerdict::Agrees,
            "{name}"
        );
        assert_eq!(
            verdict(2.0 * each, plan.interval_ns),
            CheckVerdict::Disagrees,
            "{name}"
        );
        assert_eq!(
            verdict(each, each as u64),
            CheckVerdict::NotMeasured,
            "{name}"
        );
    }
}

/// At a low rate, or of long packets, the shortest train has two packets.
#[test]
fn one_packet_of_a_train_has_no_rate() {
    let asked = slow(0.0);
    let plan = Plan {
        count: 2,
        ..train_plan(&asked)
    };
    let paced = measured(&asked, super::tests::plan(&asked), 1);
    let mut stream = through_queue(&asked, plan, 1);
    assert_eq!(stream.came.len(), 2);
    stream.came.pop();
    let check = judge(&asked).train(plan, &stream, &paced).unwrap();
    assert_eq!(check.verdict, CheckVerdict::NotMeasured, "{check:?}");
    assert_eq!(check.why.as_deref(), Some("only 1 of the train arrived"));
}

/// As the default duration makes the train.
fn train_plan(way: &Asked) -> Plan {
    let each = way.serialisation_ns(TRAIN);
    let ahead = 1.0 - if way.loss_before { way.loss } else { 0.0 };
    Plan {
        id: 1,
        count: (5e9 / each / ahead) as u32,
        interval_ns: (each * ahead / 1.3) as u64,
        payload: 1400,
        wait_ns: 0,
        catches_up: true,
    }
}

/// A train through the queue of this link, without its delay.
fn through_queue(way: &Asked, plan: Plan, seed: u64) -> Stream {
    let pace = Pace {
        count: plan.count as usize,
        interval_ns: 1.0,
    };
    let fates = one(&Asked::nothing(), pace, seed).1;
    let each = way.serialisation_ns(TRAIN);
    let sent: Vec<Sent> = (0..u64::from(plan.count))
        .map(|i| Sent {
            at_ns: i * plan.interval_ns,
            vague: false,
        })
        .collect();
    let mut free = 0f64;
    let mut came = Vec::new();
    for (number, (sent, fate)) in (0..).zip(sent.iter().zip(fates)) {
        if way.loss_before && fate < way.loss {
            continue;
        }
        let begins = free.max(sent.at_ns as f64);
        if begins - sent.at_ns as f64 > (way.queue_packets - 1.0) * each {
            continue;
        }
        free = begins + each;
        if way.loss_before || fate >= way.loss {
            came.push(Arrival {
                number,
                at_ns: free as u64,
            });
        }
    }
    Stream { sent, came }
}

fn rate_verdict(asked: &Asked, real: &Asked, seed: u64) -> CheckVerdict {
    let paced = measured(real, plan(asked), seed);
    let train = train_plan(asked);
    let stream = through_queue(real, train, seed + 1_000_000);
    let check = judge(asked).train(train, &stream, &paced).unwrap();
    assert!(check.interval.is_none_or(|(low, high)| low <= high));
    check.verdict
}

/// 384 kbit/s: 166 packets in the train.
fn slow(loss: f64) -> Asked {
    Asked {
        rate_bit_s: Some(384e3),
        queue_packets: 1000.0,
        loss,
        ..Asked::nothing()
    }
}

#[test]
fn a_rate_is_not_blamed_for_the_chance_of_losses() {
    let seeds = if full() { 400 } else { 150 };
    for loss in [0.002, 0.01, 0.1, 0.4] {
        let asked = slow(loss);
        let wrong = (0..seeds).filter(|seed| {
            let verdict = rate_verdict(&asked, &asked, *seed);
            verdict == CheckVerdict::Disagrees
        });
        assert_eq!(wrong.count(), 0, "a loss of {loss}");
    }
}

#[test]
fn a_loss_in_front_of_the_queue_does_not_thin_what_leaves_it() {
    for loss in [0.01, 0.1, 0.4] {
        for queue_packets in [20.0, 1000.0] {
            let asked = Asked {
                loss_before: true,
                queue_packets,
                ..slow(loss)
            };
            let half = Asked {
                rate_bit_s: Some(192e3),
                ..asked.clone()
            };
            for seed in 0..3 {
                let verdict = |real| rate_verdict(&asked, real, seed);
                assert_eq!(
                    verdict(&asked),
                    CheckVerdict::Agrees,
                    "{loss} {queue_packets}"
                );
                assert_eq!(
                    verdict(&half),
                    CheckVerdict::Disagrees,
                    "{loss} {queue_packets}"
                );
            }
        }
    }
}

#[test]
fn a_queue_too_short_for_the_losses_ahead_is_not_judged() {
    let asked = Asked {
        loss_before: true,
        queue_packets: 3.0,
        ..slow(0.6)
    };
    assert_eq!(rate_verdict(&asked, &asked, 1), CheckVerdict::NotMeasured);
}

#[test]
fn losses_on_the_way_there_do_not_thin_a_slower_way_back() {
    let there = Asked {
        loss: 0.1,
        ..Asked::nothing()
    };
    let ways = (there, slow(0.0));
    let judge = Judge {
        ways: vec![&ways.0, &ways.1],
        ..judge(&ways.1)
    };
    // The packets at the queue are the same as with a loss before it.
    let real = Asked {
        loss_before: true,
        ..slow(0.1)
    };
    let (paced, train) = (measured(&real, plan(&real), 1), train_plan(&real));
    let check = judge.train(train, &through_queue(&real, train, 2), &paced);
    assert_eq!(check.unwrap().verdict, CheckVerdict::Agrees);
}

#[test]
fn a_rate_is_not_blamed_for_a_loss_that_was_added() {
    for seed in 0..200 {
        let verdict = rate_verdict(&slow(0.0), &slow(0.01), seed);
        assert_eq!(verdict, CheckVerdict::Agrees, "{seed}");
    }
}

#[test]
fn the_rate_that_is_noticed_is_noticed_beside_losses() {
    let asked = slow(0.1);
    let (paced, train) = (measured(&asked, plan(&asked), 1), train_plan(&asked));
    let stream = through_queue(&asked, train, 2);
    let check = judge(&asked).train(train, &stream, &paced).unwrap();
    let real = Asked {
        rate_bit_s: check.notices,
        ..asked.clone()
    };
    assert!(check.notices.unwrap() > 0.7 * 384e3, "{:?}", check.notices);
    // 198 of 200 on average; the probability that ten more are missing is 10^-5.
    let found = (0..200).filter(|s| rate_verdict(&asked, &real, *s) == CheckVerdict::Disagrees);
    assert!(found.count() >= 188, "{}", check.notices.unwrap());
}

/// Adds the delays of this link, in which packets overtake.
fn disordered(mut stream: Stream, way: &Asked, seed: u64) -> Stream {
    let pace = Pace {
        count: stream.came.len(),
        interval_ns: 1.0,
    };
    for (arrival, delay) in stream.came.iter_mut().zip(one(way, pace, seed).0) {
        arrival.at_ns += delay as u64;
    }
    stream.came.sort_by_key(|arrival| arrival.at_ns);
    stream
}

/// With a --duration of 1 s the train is 167 ms long, and at its ends packets are 50 ms early and late.
#[test]
fn a_rate_is_not_blamed_for_packets_that_overtake() {
    let asked =
        of_profile("rate=\"100Mbit\"\ndelay={mean=\"200ms\",jitter=\"50ms\",reorder=\"jitter\"}");
    let paced = measured(&asked, plan(&asked), 1);
    let train = Plan {
        count: (1e9 / 6.0 / asked.serialisation_ns(TRAIN)) as u32,
        ..train_plan(&asked)
    };
    let judged = |real: &Asked, seed| {
        let stream = disordered(through_queue(real, train, seed), real, seed);
        judge(&asked).train(train, &stream, &paced).unwrap()
    };
    for seed in 1..6 {
        let check = judged(&asked, seed);
        assert_eq!(check.verdict, CheckVerdict::Agrees, "{seed} {check:?}");
        let (low, high) = check.interval.unwrap();
        assert!((low..high).contains(&check.measured.unwrap()), "{check:?}");
    }
    let fast = Asked {
        rate_bit_s: Some(116e6),
        ..asked.clone()
    };
    for seed in 1..4 {
        let check = judged(&fast, seed);
        assert_eq!(check.verdict, CheckVerdict::Disagrees, "{seed} {check:?}");
    }
    // In a round trip a queue behind the delays may space the packets again, or not.
    let delayed = Asked {
        rate_bit_s: None,
        ..asked.clone()
    };
    let queue = Asked {
        mean_ns: 0.0,
        sd_ns: 0.0,
        source: Source::Constant,
        ..asked.clone()
    };
    let both = Judge {
        ways: vec![&delayed, &queue],
        ..judge(&asked)
    };
    let spaced = through_queue(&asked, train, 1);
    let verdict = |stream: &Stream| both.train(train, stream, &paced).unwrap().verdict;
    assert_eq!(verdict(&spaced), CheckVerdict::Agrees);
    let disordered = disordered(spaced, &asked, 1);
    assert_eq!(verdict(&disordered), CheckVerdict::Agrees);
}

/// Packets that `reorder` sends ahead have no theory: they may be early by their delay.
#[test]
fn a_train_is_long_compared_with_what_has_no_order() {
    let asked = of_profile("rate=\"1Mbit\"\ndelay=\"100ms\"\nreorder=\"25%\"");
    let paced = measured(&asked, plan(&asked), 1);
    let judged = |duration_ns: f64| {
        let train = Plan {
            count: (duration_ns / asked.serialisation_ns(TRAIN)) as u32,
            ..train_plan(&asked)
        };
        let mut stream = through_queue(&asked, train, 1);
        for (i, arrival) in stream.came.iter_mut().enumerate() {
            arrival.at_ns += if i % 4 == 0 { 0 } else { 100_000_000 };
        }
        stream.came.sort_by_key(|arrival| arrival.at_ns);
        judge(&asked).train(train, &stream, &paced).unwrap()
    };
    assert_eq!(judged(5e9).verdict, CheckVerdict::Agrees);
    let short = judged(0.8e9);
    assert_eq!(short.verdict, CheckVerdict::NotMeasured);
    assert!(short.why.unwrap().contains("100ms"));
}

fn of_profile(link: &str) -> Asked {
    let profile = Profile::parse(&format!("[link]\n{link}"), "test").unwrap();
    compiled(&profile, crate::abi::EMUD_UP, TRAIN).unwrap()
}

const PER_PACKET: &str =
    "delay={mean=\"50ms\",sd=\"5ms\",distribution=\"normal\",reorder=\"jitter\"}";

/// A packet that is lost neither overtakes nor is overtaken.
#[test]
fn an_order_by_chance_is_not_blamed_for_losses() {
    let asked = of_profile(&format!("{PER_PACKET}\nloss=\"30%\""));
    let bench = Bench::new(&asked);
    for seed in 1..50 {
        assert_eq!(bench.disagreeing(&asked, seed), [], "{seed}");
    }
    let none = Asked {
        loss: 0.0,
        ..asked.clone()
    };
    let found = bench.disagreeing(&none, 1);
    assert_eq!(found, [What::Loss, What::Overtaken]);
}

/// Only probes that arrive are in the sample of which chance is simulated.
#[test]
fn a_delay_is_not_blamed_for_few_arrivals() {
    for order in [",reorder=\"jitter\"", ""] {
        let asked = of_profile(&format!(
            "delay={{mean=\"500ms\",sd=\"100ms\",distribution=\"normal\"{order}}}\nloss=\"80%\""
        ));
        let bench = Bench::new(&asked);
        // 0.3 are expected of 147 checks with 1,000 runs; of all probes there were 10.
        let wrong = (1..50).map(|seed| bench.disagreeing(&asked, seed).len());
        let wrong: usize = wrong.sum();
        assert!(wrong < 4, "{order} {wrong}");
        if asked.reorders() {
            // Errors: 2.2 % of the sd of 1,000 runs, 1.4 % of the number that arrived.
            let sd = bench.chance.1.mean_ns.sd() * 1000f64.sqrt() / 100e6;
            assert!((sd - 1.0).abs() < 0.1, "{sd}");
        }
    }
}

#[test]
fn only_probes_with_a_known_delay_count() {
    let asked = of_profile(
        "delay={mean=\"50ms\",sd=\"5ms\",distribution=\"normal\",coherence=\"1ms\"}\nloss=\"80%\"",
    );
    let stream = measured(&asked, plan(&asked), 1);
    let known = stream.came.len();
    let note = format!(
        "up: {known} of 5000 probes have a known delay; in order, these count as {known} independent values"
    );
    assert_eq!(judge(&asked).note(plan(&asked), &stream), [note]);
}

/// Each of both directions has as many.
#[test]
fn all_checks_by_chance_share_the_probability_of_a_false_alarm() {
    let asked = of_profile(&format!("{PER_PACKET}\nloss=\"1%\"\nrate=\"384kbit\""));
    let (paced, train) = (measured(&asked, plan(&asked), 1), train_plan(&asked));
    let mut checks = Bench::new(&asked).judged(&paced);
    checks.extend(judge(&asked).train(train, &through_queue(&asked, train, 2), &paced));
    let by_chance = |check: &&Check| check.interval.is_some_and(|(_, most)| most > 0.0);
    let checks = checks.iter().filter(by_chance).count();
    assert_eq!(checks, 6);
    let all = 2.0 * checks as f64 * PER_CHECK;
    assert!(all <= FALSE_ALARM * (1.0 + f64::EPSILON), "{all}");
}

#[test]
fn an_order_by_chance_is_not_judged_beside_what_has_no_theory() {
    let order = |link: &str| {
        let asked = of_profile(link);
        let checks = Bench::new(&asked).judged(&measured(&asked, plan(&asked), 1));
        let mut checks = checks.into_iter();
        let check = checks.find(|check| check.what == What::Overtaken);
        check.unwrap().verdict
    };
    for beside in [
        "loss={probability=\"30%\",correlation=\"50%\"}",
        "duplicate=\"50%\"",
    ] {
        let link = format!("{PER_PACKET}\n{beside}");
        assert_eq!(order(&link), CheckVerdict::NotJudged, "{link}");
        let in_order = format!("delay=\"50ms\"\n{beside}");
        assert_eq!(order(&in_order), CheckVerdict::Agrees, "{in_order}");
    }
}

/// With 1 delayed probe in 1,000, some measurements have none: their standard deviation has no bounds.
#[test]
fn an_interval_without_an_end_is_not_measured() {
    let asked = of_profile("delay={mean=\"10ms\",share=\"0.1%\"}");
    let checks = Bench::new(&asked).judged(&measured(&asked, plan(&asked), 1));
    for check in &checks {
        let (low, high) = check.interval.unwrap_or_default();
        let notices = check.notices.unwrap_or_default();
        let finite = [low, high, notices].iter().all(|n| n.is_finite());
        assert!(finite, "{check:?}");
    }
    assert_eq!(
        checks[1].verdict,
        CheckVerdict::NotMeasured,
        "{:?}",
        checks[1]
    );
}

#[test]
fn a_constant_delay_bears_a_pause_of_the_machine_and_no_other_delay() {
    let asked = Asked {
        mean_ns: 20e6,
        ..Asked::nothing()
    };
    let plan = plan(&asked);
    let judged = |off_ns: u64, late: usize| {
        let mut stream = measured(&asked, plan, 1);
        stream.came.iter_mut().for_each(|a| a.at_ns += off_ns);
        stream.came[..late]
            .iter_mut()
            .for_each(|a| a.at_ns += 90_000_000);
        stream.came.sort_by_key(|a| a.at_ns);
        let checks = Bench::new(&asked).judged(&stream);
        checks[..3].iter().map(|c| c.verdict).collect::<Vec<_>>()
    };
    let (yes, no) = (CheckVerdict::Agrees, CheckVerdict::Disagrees);
    assert_eq!(
        judged(100_000, 50),
        [yes, yes, yes],
        "1 % of the probes late"
    );
    assert_eq!(judged(2_000_000, 0), [no, yes, no], "2 ms longer");
    assert_eq!(judged(0, 200), [yes, yes, no], "4 % of the probes late");
}

#[test]
fn what_could_not_be_measured_is_not_passed() {
    let asked = Asked {
        mean_ns: 20e6,
        ..Asked::nothing()
    };
    let mut stream = measured(&asked, plan(&asked), 1);
    stream.came.clear();
    let checks = Bench::new(&asked).judged(&stream);
    for check in checks {
        let verdict = match check.what {
            What::Loss => CheckVerdict::Disagrees,
            _ => CheckVerdict::NotMeasured,
        };
        assert_eq!(check.verdict, verdict, "{:?}", check.what);
    }
}

#[test]
fn the_loss_that_is_noticed_is_noticed() {
    // 1 lost packet contradicts a loss of 0; 99 of 100 runs have one at 1 - 0.01^(1/n).
    let noticed = noticed_loss(0.0, 5000).unwrap();
    assert!((noticed - (1.0 - 0.01f64.powf(1.0 / 5000.0))).abs() < 1e-9);
    assert!(noticed_loss(0.005, 5000).unwrap() < 0.015);
    assert_eq!(noticed_loss(1.0, 100), None);
}
