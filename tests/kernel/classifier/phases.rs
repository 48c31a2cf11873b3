// SPDX-License-Identifier: MIT OR Apache-2.0
//! Phases: one link after another, and ramps between them.

use super::*;
use emud::datapath::stage::timeline;
use emud::profile::Profile;

/// The links of a profile, up, with its phases.
fn phased(text: &str) -> Bench {
    of_profile(&Profile::parse(text, "phases").unwrap_or_else(|e| panic!("{e}")))
}

fn of_profile(profile: &Profile) -> Bench {
    let mut b = Bench::empty(&Sizes::of(profile));
    apply(&mut b, profile);
    b
}

fn apply(b: &mut Bench, profile: &Profile) {
    let mut links: Vec<_> = profile
        .links_of(abi::EMUD_UP)
        .map(|link| b.compile(link, 42, abi::EMUD_UP, stamp_place()))
        .collect();
    timeline::phases(profile, abi::EMUD_UP, &mut links, 1, b.start);
    b.apply([&links, &[]]).unwrap();
}

const HAND_OVER: &str = r#"
    phases = { loop = true }
    [link]
    queue = "1000p"
    [links.slow]
    rate = "1Mbit"
    delay = "80ms"
    [links.fast]
    rate = "8Mbit"
    delay = "20ms"
    [[phase]]
    for = "300ms"
    link = "slow"
    [[phase]]
    for = "100ms"
    state = "down"
    [[phase]]
    for = "600ms"
    link = "fast"
    loss = "0%"
"#;

#[test]
fn phases_follow_one_another_at_their_times() {
    let b = phased(HAND_OVER);
    let send = |bytes, at: u64| b.send(&udp4(bytes, 1), at).departure;
    assert_eq!(send(1000, 0), 88 * MS);
    // In transmission when the outage begins: it continues over the slow link.
    assert_eq!(
        send(1000, 296 * MS),
        384 * MS,
        "500 bytes of it in the outage"
    );
    assert_eq!(b.send(&udp4(1000, 1), 350 * MS).verdict, TC_ACT_STOLEN);
    assert_eq!(b.counters().down, 1);
    assert_eq!(send(1000, 400 * MS), 421 * MS);
    assert_eq!(send(1000, 1_000 * MS), 1_088 * MS, "again");
}

/// While detach removes what holds packets, also after changes, when both generations have links.
#[test]
fn before_the_end_all_phases_pass_everything() {
    let profile = Profile::parse(HAND_OVER, "phases").unwrap();
    let mut b = of_profile(&profile);
    apply(&mut b, &profile);
    b.maps.pass_everything().unwrap();
    for at in [0, 350 * MS, 500 * MS] {
        let fate = b.send(&udp4(1000, 1), at);
        assert_eq!((fate.verdict, fate.departure), (TC_ACT_UNSPEC, at));
    }
    let counters = b.counters();
    assert_eq!(counters.passed[abi::EMUD_PASS_INACTIVE as usize], 3);
    assert_eq!((counters.down, counters.packets), (0, 3));
}

#[test]
fn a_hand_over_reorders_nothing() {
    let b = phased(HAND_OVER);
    let frame = udp4(100, 1);
    let mut last = 0;
    for at in (0..2_000).map(|i| i * 500_000) {
        let fate = b.send(&frame, at);
        if fate.verdict == TC_ACT_UNSPEC {
            assert!(
                fate.departure >= last,
                "{at}: {} after {last}",
                fate.departure
            );
            last = fate.departure;
        }
    }
    let c = b.counters();
    assert_eq!((c.packets, c.reordered, c.down), (2_000, 0, 200));
}

#[test]
fn the_queue_stays_when_the_link_is_another() {
    let b = phased(
        r#"
        [link]
        rate = "1Mbit"
        [[phase]]
        for = "100ms"
        [[phase]]
        rate = "10Mbit"
        "#,
    );
    // 10 packets of 1000 bytes: 12,500 bytes until 100 ms, then 1250 a ms.
    let frame = udp4(1000, 1);
    let sent: Vec<u64> = (0..20).map(|_| b.send(&frame, 0).departure).collect();
    assert_eq!(sent[11], 96 * MS);
    assert_eq!(sent[12], 100 * MS + 400_000, "500 bytes of it before");
    assert_eq!(sent[13], 101 * MS + 200_000);
    assert_eq!(
        b.send(&frame, 8_000 * MS).departure,
        8_000 * MS + 800_000,
        "for ever"
    );
}

/// Before the queue a packet meets the phase of its arrival, behind it that in which its last bit is sent.
#[test]
fn losses_before_and_behind_the_queue_are_of_their_own_phases() {
    let lost = |first: &str, then: &str| {
        let b = phased(&format!(
            "[link]\nrate = \"1Mbit\"\n[[phase]]\nfor = \"100ms\"\n{first}\n[[phase]]\n{then}\n"
        ));
        // 12.5 of them are sent in the first phase.
        for _ in 0..20 {
            b.send(&udp4(1000, 1), 0);
        }
        b.counters().lost
    };
    let all = "loss = \"100%\"";
    let all_before =
        "loss = { model = \"bernoulli\", probability = \"100%\", stage = \"before-queue\" }";
    let none = "loss = \"0%\"";
    let none_before =
        "loss = { model = \"bernoulli\", probability = \"0%\", stage = \"before-queue\" }";
    assert_eq!(lost(none_before, all), 8);
    assert_eq!(lost(none, all_before), 0);
    assert_eq!(lost(all_before, none), 20);
    assert_eq!(lost(all, none_before), 12);
}

#[test]
fn a_ramp_is_the_straight_line() {
    let b = phased(
        r#"
        [link]
        rate = "1Mbit"
        delay = "10ms"
        loss = "0%"
        [[phase]]
        for = "1s"
        [[phase]]
        for = "4s"
        ramp = true
        rate = "9Mbit"
        delay = "50ms"
        [[phase]]
        rate = "9Mbit"
        delay = "50ms"
        "#,
    );
    // By (t - 1 s) after the first second 1 Mbit/s * t + 1 Mbit/s^2 * t^2 are sent: the integral
    // of 1 + 2t Mbit/s. A row is 10 ms long, so its rate is off by 10 kbit/s at most, its delay
    // by 50 us; over whole rows it is exact.
    let frame = udp4(1250, 1);
    for i in 1..40u64 {
        let at = 1_000 * MS + i * 100 * MS;
        let t = i as f64 / 10.0;
        let bits = 10_000.0;
        // The integral from t to t + x: (1 + 2t) x + x^2, in Mbit.
        let r = 1.0 + 2.0 * t;
        let x = (-r + (r * r + 4.0 * bits / 1e6).sqrt()) / 2.0;
        let serialised = x * 1e9;
        let delay = (10.0 + 10.0 * (t + x)) * 1e6;
        let want = serialised + delay;
        let got = (b.send(&frame, at).departure - at) as f64;
        let bound = serialised * 0.01 / r + 50_000.0 + 2.0;
        assert!((got - want).abs() <= bound, "{t} s: {got} for {want}");
    }
    let end = b.send(&frame, 5_500 * MS).departure - 5_500 * MS;
    assert_eq!(end, 51_111_111);
}

/// What waits for a phase without a rate leaves at its start, and is in the queue until then.
#[test]
fn a_limit_in_bytes_counts_what_waits_for_a_phase_without_a_rate() {
    let b = phased(
        r#"
        phases = { loop = true }
        [link]
        queue = "20kB"
        [[phase]]
        for = "100ms"
        rate = "8Mbit"
        [[phase]]
        for = "100ms"
        "#,
    );
    let admitted = |at: u64| {
        let fates: Vec<_> = (0..400).map(|_| b.send(&udp4(1000, 1), at)).collect();
        let admitted = fates.iter().filter(|fate| fate.verdict == TC_ACT_UNSPEC);
        admitted.map(|fate| fate.departure).collect::<Vec<_>>()
    };
    for round in [0, 200 * MS] {
        let left = admitted(round + 90 * MS);
        assert_eq!(left.len(), 20, "{left:?}");
        assert_eq!(left[19], round + 100 * MS);
        assert_eq!(admitted(round + 100 * MS).len(), 400);
    }
}

#[test]
fn limits_and_delays_without_a_rate_take_turns() {
    let b = phased(
        r#"
        phases = { loop = true, offset = "150ms" }
        [link]
        delay = "5ms"
        [[phase]]
        for = "100ms"
        [[phase]]
        for = "100ms"
        delay = "15ms"
        "#,
    );
    let send = |at: u64| b.send(&udp4(100, 1), at * MS).departure / MS - at;
    assert_eq!(
        [send(0), send(49), send(60), send(149), send(150)],
        [15, 15, 5, 5, 15]
    );
}

#[test]
fn the_end_of_a_ramp_leaves_nothing_behind() {
    let b = phased(
        r#"
        [link]
        rate = "1Mbit"
        delay = "10ms"
        loss = "0%"
        [[phase]]
        for = "1s"
        ramp = true
        loss = "2%"
        delay = "20ms"
        [[phase]]
        rate = "1Mbit"
        delay = "300ms"
        loss = "100%"
        "#,
    );
    // 10 ms each: the first two are sent in the ramp, the others after it.
    let frame = udp4(1250, 1);
    let fates: Vec<_> = (0..5).map(|_| b.send(&frame, 975 * MS).verdict).collect();
    let all_gone = [
        TC_ACT_UNSPEC,
        TC_ACT_UNSPEC,
        TC_ACT_STOLEN,
        TC_ACT_STOLEN,
        TC_ACT_STOLEN,
    ];
    assert_eq!(fates, all_gone);
}

#[test]
fn a_link_that_is_down_is_so_in_all_phases() {
    let profile = Profile::parse(
        "[link]\ndelay = \"5ms\"\nstate = \"down\"\n[[phase]]\nstate = \"up\"\ndelay = \"1ms\"\n",
        "phases",
    );
    let b = of_profile(&profile.unwrap());
    assert_eq!(b.send(&udp4(100, 1), MS).verdict, TC_ACT_STOLEN);
    assert_eq!(b.counters().down, 1);
}

#[test]
fn what_came_before_an_outage_goes_on_as_it_did() {
    let b = phased(
        r#"
        phases = { loop = true, offset = "50ms" }
        [link]
        rate = "1Mbit"
        [[phase]]
        for = "50ms"
        state = "down"
        [[phase]]
        for = "50ms"
        rate = "8Mbit"
        "#,
    );
    // 60 packets of 1 ms from 0 on, of which the last 10 are sent in the outage; later packets are
    // lost and take no time.
    let frame = udp4(1000, 1);
    let sent: Vec<u64> = (0..60).map(|_| b.send(&frame, 0).departure).collect();
    assert!((1..=60).map(|ms| ms * MS).eq(sent));
    assert_eq!(b.send(&frame, 55 * MS).verdict, TC_ACT_STOLEN);
    assert_eq!(b.counters().down, 1);
    assert_eq!(b.send(&frame, 100 * MS).departure, 101 * MS);
}

#[test]
fn a_long_ramp_is_longer_rows() {
    let b = phased(
        r#"
        phases = { offset = "500s" }
        [link]
        [[phase]]
        for = "1000s"
        ramp = true
        delay = "100ms"
        "#,
    );
    let send = |at: u64| b.send(&udp4(100, 1), at).departure - at;
    // 10,000 rows of 100 ms, each with the figure of its middle.
    assert_eq!([send(0), send(99 * MS)], [50_005_000; 2]);
    assert_eq!(send(100 * MS), 50_015_000);
}

#[test]
fn a_ramps_loss_marks_where_the_link_says() {
    let b = phased(
        r#"
        [link]
        loss = { probability = "100%", ecn = true }
        [[phase]]
        for = "10ms"
        [[phase]]
        for = "10ms"
        ramp = true
        loss = { probability = 0, ecn = true }
        "#,
    );
    let mut frame = udp4(1000, 1);
    frame[15] = 1;
    for i in 0..200 {
        let fate = b.send(&frame, 10 * MS + i * 50_000);
        assert_eq!(fate.verdict, TC_ACT_UNSPEC, "{i}");
    }
    // A half on average; the sum of p (1 - p) is 33.
    let c = b.counters();
    assert_eq!(c.lost, 0);
    assert!((77..=123).contains(&c.marked), "{}", c.marked);
}

/// Packets meet the state that the sequence says, also in its second round, and both directions the
/// same one.
#[test]
fn states_follow_one_another_as_drawn() {
    let profile = Profile::parse(
        "[link]\ndelay = \"10ms\"\n[[state]]\nname = \"good\"\ndwell = \"5ms\"\n[[state]]\nname = \"bad\"\n\
         dwell = \"2ms\"\ndelay = \"70ms\"\n[[state]]\nname = \"gone\"\ndwell = \"1ms\"\nloss = \"100%\"",
        "states",
    );
    let profile = profile.unwrap_or_else(|e| panic!("{e}"));
    let b = of_profile(&profile);
    let sequence = profile.phases.sequence(1);
    let all_ns: u64 = sequence.iter().map(|(_, ns)| ns).sum();
    for round_ns in [0, all_ns] {
        let mut at = round_ns;
        let mut met = [0; 3];
        let mut last = 0;
        for (state, for_ns) in sequence.iter().take(300) {
            // At the first and the last ns of it.
            for at in [at, at + for_ns - 1] {
                let fate = b.send(&udp4(100, 1), at);
                match state {
                    2 => assert_eq!(fate.verdict, TC_ACT_STOLEN, "{at}"),
                    state => {
                        // What leaves a bad state is in front of what comes behind it.
                        last = last.max(at + [10, 70][*state] * MS);
                        assert_eq!(fate.departure, last, "{at}");
                    }
                }
            }
            met[*state] += 1;
            at += for_ns;
        }
        assert!(met.iter().all(|times| *times > 50), "{met:?}");
    }
    let mut down: Vec<_> = (profile.links_of(abi::EMUD_DOWN))
        .map(|link| b.compile(link, 42, abi::EMUD_DOWN, stamp_place()))
        .collect();
    timeline::phases(&profile, abi::EMUD_DOWN, &mut down, 1, b.start);
    let rows = &down[0].timeline.as_ref().expect("rows").rows;
    let begins = sequence.iter().scan(0, |at, (state, for_ns)| {
        *at += for_ns;
        Some((*at - for_ns, 1 + *state as u32))
    });
    for (row, begin) in rows.iter().zip(begins) {
        assert_eq!((row.at_ns, row.number), begin);
    }
}
