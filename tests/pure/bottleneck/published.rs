// SPDX-License-Identifier: MIT OR Apache-2.0
//! The published experiments in virtual time, within 3 % of theory: an HTB tree behind a
//! router (T), and a DiffServ pilot with its simulations (C).

use emud::bottleneck::{Class, Limits, Plan, Schedule};

use super::traffic::{Outcome, Packet, SECOND, assert_near, constant, merge, serve};

const MBIT: u64 = 1_000_000;
/// Of 1470 bytes of UDP, Ethernet's header included.
const FRAME: u32 = 1514 - 2;

fn packets_limit(packets: u32) -> Limits {
    Limits {
        packets: Some(packets),
        ..Limits::default()
    }
}

fn with(plan: Plan, packets: u32) -> Plan {
    let limits = packets_limit(packets);
    let classes = plan
        .classes
        .into_iter()
        .map(|class| Class { limits, ..class });
    Plan {
        classes: classes.collect(),
        ..plan
    }
}

/// T: three classes under 100 Mbit/s.
fn htb_tree(ceil: impl Fn(u64) -> u64) -> Plan {
    let class = |parent, rate, ceil| Class {
        parent,
        rate: Some(rate * MBIT),
        ceil: Some(ceil),
        ..Class::default()
    };
    let classes = vec![
        class(None, 100, 100 * MBIT),
        class(Some(0), 1, ceil(MBIT)),
        class(Some(0), 10, ceil(10 * MBIT)),
        class(Some(0), 89, ceil(89 * MBIT)),
    ];
    with(
        Plan {
            rate: 100 * MBIT,
            schedule: Schedule::Htb,
            seed: 0,
            classes,
        },
        1000,
    )
}

fn greedy(class: usize, seconds: u64) -> Vec<Packet> {
    constant(class, FRAME, 120 * MBIT, class as u64, seconds * SECOND)
}

fn mbit(outcome: &Outcome, packets: &[Packet], class: usize, seconds: u64) -> f64 {
    outcome.rate(packets, class, SECOND, seconds * SECOND) / 1e6
}

#[test]
fn t_all_greedy_get_what_is_guaranteed() {
    let packets = merge([1, 2, 3].map(|class| greedy(class, 6)));
    let outcome = serve(&htb_tree(|_| 100 * MBIT), &packets);
    for (class, want) in [(1, 1.0), (2, 10.0), (3, 89.0)] {
        assert_near("Mbit/s", mbit(&outcome, &packets, class, 6), want, 0.03);
    }
}

/// The shipped profiles are those of the experiments.
#[test]
fn shipped_profiles_have_these_servers() {
    let plan = |name: &str| {
        let all = emud::profile::shipped::SHIPPED;
        let shipped = all.iter().find(|shipped| shipped.name == name).unwrap();
        let profile = emud::profile::shipped::find(shipped.name).unwrap();
        assert_eq!(profile.bottlenecks.len(), 1, "{name}");
        profile.bottlenecks[0].plan()
    };
    // By name: far, near, rest.
    let class = |rate| Class {
        rate: Some(rate * MBIT),
        ceil: Some(100 * MBIT),
        limits: packets_limit(1000),
        ..Class::default()
    };
    assert_eq!(plan("tiainen-tree").classes, [10, 1, 89].map(class));
    let class = |priority| Class {
        priority,
        ..Class::default()
    };
    let wanted = two(Schedule::Priority, [1, 5].map(class));
    assert_eq!(plan("diffserv-priority"), wanted);
    let class = |weight| Class {
        weight,
        ..Class::default()
    };
    assert_eq!(
        plan("diffserv-weights"),
        two(Schedule::Drr, [800, 200].map(class))
    );
    assert_eq!(plan("diffserv-fair"), two(Schedule::Drr, [1, 1].map(class)));
    assert_eq!(plan("diffserv-tbf"), two(Schedule::Htb, shaped_and_other()));
}

#[test]
fn t_one_alone_borrows_all() {
    let packets = greedy(1, 4);
    let outcome = serve(&htb_tree(|_| 100 * MBIT), &packets);
    assert_near("Mbit/s", mbit(&outcome, &packets, 1, 4), 100.0, 0.03);
}

#[test]
fn t_a_ceil_at_the_rate_lends_nothing() {
    let packets = greedy(1, 11);
    let outcome = serve(&htb_tree(|rate| rate), &packets);
    assert_near("Mbit/s", mbit(&outcome, &packets, 1, 11), 1.0, 0.03);
}

/// 1 Mbit/s with a ceil of 1.1, beside classes of 0.1: 0.1375 MB/s.
#[test]
fn t_a_class_at_its_ceil() {
    let class = |rate, ceil| Class {
        rate: Some(rate),
        ceil: Some(ceil),
        ..Class::default()
    };
    let mut classes = vec![class(MBIT, 11 * MBIT / 10)];
    classes.extend([class(MBIT / 10, MBIT / 10); 4]);
    let plan = with(
        Plan {
            rate: 2 * MBIT,
            schedule: Schedule::Htb,
            seed: 0,
            classes,
        },
        50,
    );
    let packets = merge((0..5).map(|class| constant(class, FRAME, 2 * MBIT, 0, 31 * SECOND)));
    let outcome = serve(&plan, &packets);
    assert_near("MB/s", mbit(&outcome, &packets, 0, 31) / 8.0, 0.1375, 0.03);
    for small in 1..5 {
        assert_near("Mbit/s", mbit(&outcome, &packets, small, 31), 0.1, 0.03);
    }
}

/// C: two senders of 14,267 datagrams behind 10 Mbit/s.
const DATAGRAMS: usize = 14_267;
const OFFERED: u64 = 7_340_000;
const PILOT: u64 = 10 * MBIT;

fn pilot() -> Vec<Packet> {
    // By their data: 1470 bytes at 7.34 Mbit/s.
    let wire = OFFERED * u64::from(FRAME) / 1470;
    let sender = |class| {
        let mut packets = constant(class, FRAME, wire, class as u64 * 500_000, 60 * SECOND);
        packets.truncate(DATAGRAMS);
        packets
    };
    merge([sender(0), sender(1)])
}

fn two(schedule: Schedule, classes: [Class; 2]) -> Plan {
    with(
        Plan {
            rate: PILOT,
            schedule,
            seed: 0,
            classes: classes.to_vec(),
        },
        50,
    )
}

/// While both send.
fn both(outcome: &Outcome, packets: &[Packet]) -> [f64; 2] {
    let end = packets.iter().map(|p| p.at).max().unwrap();
    [0, 1].map(|class| outcome.rate(packets, class, SECOND, end))
}

const OFFERED_WIRE: f64 = OFFERED as f64 * FRAME as f64 / 1470.0;

#[test]
fn c_two_fifos_share_alike() {
    let packets = pilot();
    let outcome = serve(&two(Schedule::Drr, [Class::default(); 2]), &packets);
    for rate in both(&outcome, &packets) {
        assert_near("bit/s", rate, PILOT as f64 / 2.0, 0.03);
    }
}

/// The winner loses nothing, and the other one has what it leaves within 1 %: priorities 1 and 5,
/// strict queues 1 and 2, and reversed.
#[test]
fn c_priority_takes_all_it_offers() {
    for (priorities, winner) in [([1, 5], 0), ([1, 2], 0), ([5, 1], 1)] {
        let class = |priority| Class {
            priority,
            ..Class::default()
        };
        let plan = two(Schedule::Priority, priorities.map(class));
        let packets = pilot();
        let outcome = serve(&plan, &packets);
        let rates = both(&outcome, &packets);
        assert_near("winner", rates[winner], OFFERED_WIRE, 0.01);
        assert_near(
            "loser",
            rates[1 - winner],
            PILOT as f64 - rates[winner],
            0.01,
        );
        assert_eq!(outcome.lost(winner), 0);
        // What does not fit; they lost 9,876 and 9,829.
        let lost = DATAGRAMS as f64 * (1.0 - (PILOT as f64 - OFFERED_WIRE) / OFFERED_WIRE);
        assert_near("lost", outcome.lost(1 - winner) as f64, lost - 50.0, 0.03);
    }
}

/// The first could have 8 Mbit/s; its load is lower.
#[test]
fn c_weights_of_800_and_200() {
    let class = |weight| Class {
        weight,
        ..Class::default()
    };
    let packets = pilot();
    let outcome = serve(&two(Schedule::Drr, [800, 200].map(class)), &packets);
    let rates = both(&outcome, &packets);
    assert_near("first", rates[0], OFFERED_WIRE, 0.03);
    assert_near("second", rates[1], PILOT as f64 - OFFERED_WIRE, 0.03);

    // Greedy, they have what the weights say.
    let greedy = [0, 1].map(|class| constant(class, FRAME, PILOT, class as u64, 11 * SECOND));
    let packets = merge(greedy);
    let outcome = serve(&two(Schedule::Drr, [800, 200].map(class)), &packets);
    let rates = both(&outcome, &packets);
    assert_near("first", rates[0], 8e6, 0.01);
    assert_near("second", rates[1], 2e6, 0.01);
}

fn shaped_and_other() -> [Class; 2] {
    let shaped = Class {
        rate: Some(3 * MBIT / 2),
        ceil: Some(3 * MBIT / 2),
        ..Class::default()
    };
    let other = Class {
        rate: Some(17 * MBIT / 2),
        ..Class::default()
    };
    [shaped, other]
}

/// A token bucket of 1.5 Mbit/s with one frame beside a FIFO.
#[test]
fn c_a_token_bucket_beside_a_fifo() {
    let packets = pilot();
    let outcome = serve(&two(Schedule::Htb, shaped_and_other()), &packets);
    let rates = both(&outcome, &packets);
    assert_near("shaped", rates[0], 1.5e6, 0.01);
    assert_near("other", rates[1], OFFERED_WIRE, 0.01);
    assert_eq!(outcome.lost(1), 0);
}

/// C, simulated: 1000-byte packets into a buffer of 200. The share that is lost.
fn lost_of(offered: &[u64], rate: u64) -> f64 {
    let class = Class {
        limits: packets_limit(200),
        ..Class::default()
    };
    let plan = Plan {
        rate: rate * MBIT,
        schedule: Schedule::Fifo,
        seed: 0,
        classes: vec![class],
    };
    let flows = (0..)
        .zip(offered)
        .map(|(flow, mbit)| constant(0, 1000, mbit * MBIT, 137 * flow, 100 * SECOND));
    let packets = merge(flows);
    serve(&plan, &packets).dropped.len() as f64 / packets.len() as f64
}

#[test]
fn c_simulated_losses() {
    assert_eq!(lost_of(&[2], 3), 0.0);
    assert_near("2 + 4 into 3", lost_of(&[2, 4], 3), 0.5, 0.03);
    assert_near("2 + 4 + 8 into 12", lost_of(&[2, 4, 8], 12), 0.143, 0.03);
}

/// docs/queues.md, and the control beside stock htb: a class that borrows up to its ceil cannot make up for
/// what it waits beyond a packet, 0.5 ms of each 7.56.
#[test]
fn borrowing_up_to_a_ceil_is_a_little_slower() {
    let class = |rate, priority, ceil| Class {
        rate: Some(rate * MBIT),
        priority,
        ceil,
        ..Class::default()
    };
    let classes = vec![
        class(1, 0, Some(MBIT * 16 / 10)),
        class(3, 1, None),
        class(5, 1, None),
        class(1, 0, None),
    ];
    let plan = Plan {
        rate: 10 * MBIT,
        schedule: Schedule::Htb,
        seed: 0,
        classes,
    };
    let load = |class| constant(class, FRAME, 10 * MBIT, class as u64, 11 * SECOND);
    let packets = merge([0, 1, 2].map(load));
    let outcome = serve(&with(plan, 50), &packets);
    for (class, want) in [(0, 1.5), (1, 3.1875), (2, 5.3125)] {
        assert_near("Mbit/s", mbit(&outcome, &packets, class, 11), want, 0.005);
    }
}
