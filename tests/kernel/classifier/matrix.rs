// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of addresses with separate figures.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use aya::maps::{HashMap, Map, MapData};
use emud::profile::Pair;

use super::rules::{bench, send};
use super::*;

/// [`udp4`] of 1000 bytes between two addresses.
fn between(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let mut f = udp4(1000, 1000);
    f[26..30].copy_from_slice(&source);
    f[30..34].copy_from_slice(&destination);
    f
}

fn pair(source: [u8; 4], destination: [u8; 4]) -> Pair {
    Pair {
        source: IpAddr::from(source),
        destination: IpAddr::from(destination),
        rate: None,
        delay_ns: None,
        loss: None,
    }
}

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const C: [u8; 4] = [10, 0, 0, 3];

fn apply(b: &mut Bench, pairs: &[Pair], replace: bool) {
    b.maps.apply_pairs(pairs, replace).unwrap().unwrap();
}

#[test]
fn a_pair_has_its_own_figures_and_queue() {
    let mut b = bench("[link]\ndelay = \"1ms\"\n[matrix]\ncapacity = 8\n");
    apply(
        &mut b,
        &[
            Pair {
                rate: Some(8_000_000),
                delay_ns: Some(10 * MS),
                ..pair(A, B)
            },
            Pair {
                rate: Some(80_000_000),
                ..pair(B, A)
            },
            Pair {
                delay_ns: Some(30 * MS),
                ..pair(A, C)
            },
            Pair {
                loss: Some(1.0),
                ..pair(C, A)
            },
        ],
        false,
    );
    let sent = |from, to| b.send(&between(from, to), 0);
    assert_eq!(sent(A, B).departure, 11 * MS);
    assert_eq!(sent(A, B).departure, 12 * MS, "behind the first");
    assert_eq!(sent(B, A).departure, MS + MS / 10, "the base link's delay");
    assert_eq!(sent(A, C).departure, 30 * MS, "no rate");
    assert_eq!(sent(C, A).verdict, TC_ACT_STOLEN);
    assert_eq!(sent(C, B).departure, MS, "no such pair");
    assert_eq!(b.counters().packets, 6, "the base link counts");
    // In either direction of the interface.
    let down = send(&b, abi::EMUD_DOWN, &between(A, C), 0, 0);
    assert_eq!(down.departure, 30 * MS);
}

#[test]
fn ip6_pairs_are_pairs() {
    let mut b = bench("[link]\n[matrix]\ncapacity = 2\n");
    let frame = ip6(17, 0);
    let address = |at: usize| IpAddr::from(<[u8; 16]>::try_from(&frame[at..at + 16]).unwrap());
    let known = Pair {
        source: address(22),
        destination: address(38),
        delay_ns: Some(5 * MS),
        ..pair(A, B)
    };
    apply(&mut b, &[known], false);
    assert_eq!(b.send(&frame, 0).departure, 5 * MS);
    assert_eq!(b.maps.pairs_in_force().unwrap(), [known]);
}

#[test]
fn rules_come_before_pairs_and_pairs_may_be_based_on_a_named_link() {
    let mut b = bench(
        "[link]\ndelay = \"1ms\"\n[links.a]\ndelay = \"20ms\"\nloss = \"100%\"\n\
         [[rule]]\nmatch = { source-port = 7 }\nlink = \"link\"\n\
         [matrix]\nlink = \"a\"\ncapacity = 2\n",
    );
    apply(
        &mut b,
        &[
            Pair {
                loss: Some(0.0),
                ..pair(A, B)
            },
            pair(B, A),
        ],
        false,
    );
    assert_eq!(b.send(&between(A, B), 0).departure, 20 * MS);
    assert_eq!(b.send(&between(B, A), 0).verdict, TC_ACT_STOLEN, "a's loss");
    assert_eq!(b.maps.counters_of(1, abi::EMUD_UP).unwrap().packets, 2);
    let mut ruled = between(A, B);
    ruled[34..36].copy_from_slice(&7u16.to_be_bytes());
    assert_eq!(b.send(&ruled, 0).departure, MS);
}

#[test]
fn limits_hold_at_a_pairs_rate() {
    let limited = |queue: &str, rate: u64| {
        let mut b = bench(&format!(
            "[link]\nrate = \"1Mbit\"\nqueue = {queue}\n[matrix]\ncapacity = 2\n"
        ));
        apply(
            &mut b,
            &[Pair {
                rate: Some(rate),
                ..pair(A, B)
            }],
            false,
        );
        let sent = |_: &u64| b.send(&between(A, B), 0).verdict == TC_ACT_UNSPEC;
        (0..300).filter(sent).count()
    };
    // In bytes whatever the rate, the slowest and the fastest included.
    for rate in [
        1_000_000,
        8_000_000,
        384_000,
        999_999_999,
        1_000_000_000_000,
    ] {
        assert_eq!(limited("\"10kB\"", rate), 10, "{rate}");
        // A byte at the fastest rate takes less than the clock's ns.
        let bytes = if rate < 1_000_000_000 { 10_999 } else { 10_800 };
        assert_eq!(limited(&format!("\"{bytes}B\""), rate), 10, "{rate}");
    }
    assert_eq!(limited("\"5ms\"", 8_000_000), 6, "waits of 0 .. 5 ms");
    for packets in [1, 7, 64, 200, 256] {
        assert_eq!(limited(&format!("\"{packets}p\""), 8_000_000), packets);
    }
    // A base link without a rate has its queue for the pairs.
    let mut b = bench("[link]\nqueue = \"3p\"\n[matrix]\ncapacity = 1\n");
    apply(
        &mut b,
        &[Pair {
            rate: Some(8_000_000),
            ..pair(A, B)
        }],
        false,
    );
    let fits = (0..9).filter(|_| b.send(&between(A, B), 0).verdict == TC_ACT_UNSPEC);
    assert_eq!(fits.count(), 3);
}

#[test]
fn apply_leaves_other_pairs_and_replace_does_not() {
    let mut b = bench("[link]\ndelay = \"1ms\"\n[matrix]\ncapacity = 2\n");
    let of = |from, to, ms: u64| Pair {
        delay_ns: Some(ms * MS),
        ..pair(from, to)
    };
    apply(&mut b, &[of(A, B, 10)], false);
    apply(&mut b, &[of(B, A, 20)], false);
    apply(&mut b, &[of(B, A, 30)], false);
    assert_eq!(b.send(&between(A, B), 0).departure, 10 * MS);
    assert_eq!(b.send(&between(B, A), 0).departure, 30 * MS);
    let full = b
        .maps
        .apply_pairs(&[of(A, B, 99), of(A, C, 99)], false)
        .unwrap()
        .unwrap_err();
    assert_eq!((full.new, full.room, full.capacity), (1, 0, 2));
    assert_eq!(
        b.maps.pairs_in_force().unwrap(),
        [of(A, B, 10), of(B, A, 30)],
        "nothing changed"
    );
    apply(&mut b, &[of(B, A, 40)], true);
    assert_eq!(b.maps.pairs_in_force().unwrap(), [of(B, A, 40)]);
    assert_eq!(
        b.send(&between(A, B), 200 * MS).departure,
        201 * MS,
        "the base link's"
    );
    // It returns with the same queue.
    apply(&mut b, &[of(A, B, 50)], false);
    assert_eq!(b.send(&between(A, B), 200 * MS).departure, 250 * MS);
}

#[test]
fn a_pair_that_has_gone_leaves_its_room_and_nothing_else() {
    let mut b = bench("[link]\ndelay = \"1ms\"\n[matrix]\ncapacity = 1\n");
    let of = |from, to, ms: u64| Pair {
        rate: Some(8_000_000),
        delay_ns: Some(ms * MS),
        ..pair(from, to)
    };
    apply(&mut b, &[of(A, B, 100)], false);
    assert_eq!(b.send(&between(A, B), 0).departure, 101 * MS);
    // There is no room until it is removed.
    let full = b.maps.apply_pairs(&[of(A, C, 5)], true).unwrap();
    assert_eq!(full.unwrap_err().room, 0);
    apply(&mut b, &[], true);
    apply(&mut b, &[of(A, C, 5)], false);
    assert_eq!(b.maps.pairs_in_force().unwrap(), [of(A, C, 5)]);
    assert_eq!(
        b.send(&between(A, C), 0).departure,
        6 * MS,
        "no queue of others"
    );
    assert_eq!(b.send(&between(A, B), 10 * MS).departure, 11 * MS);
    // The same again, with its old name.
    apply(&mut b, &[], true);
    apply(&mut b, &[of(A, C, 7)], false);
    assert_eq!(b.send(&between(A, C), 20 * MS).departure, 28 * MS);
}

/// One that was killed behind the values, before the keys.
#[test]
fn apply_completes_an_interrupted_one() {
    let mut b = bench("[link]\ndelay = \"1ms\"\n[matrix]\ncapacity = 2\n");
    let ab = Pair {
        delay_ns: Some(10 * MS),
        ..pair(A, B)
    };
    apply(&mut b, &[ab], false);
    let program = b.loaded.program(Program::Classify).unwrap();
    let ids = program
        .info()
        .unwrap()
        .map_ids()
        .unwrap()
        .expect("ids of maps");
    let maps = ids.into_iter().map(|id| MapData::from_id(id).unwrap());
    let is_index = |map: &MapData| map.info().unwrap().name_as_str() == Some("emud_pair_index");
    let index = maps
        .into_iter()
        .find(is_index)
        .expect("the numbers of pairs");
    let mut index: HashMap<_, [u8; 32], u32> = Map::HashMap(index).try_into().unwrap();
    let [key] = index.keys().map(|key| key.unwrap()).collect::<Vec<_>>()[..] else {
        panic!("one pair");
    };
    index.remove(&key).unwrap();
    assert_eq!(b.send(&between(A, B), 0).departure, MS);
    apply(&mut b, &[ab], false);
    assert_eq!(b.send(&between(A, B), 20 * MS).departure, 30 * MS);
}

/// Pairs from this many hosts to B.
fn hosts(n: u32) -> impl Iterator<Item = [u8; 4]> {
    (0..n).map(|host| (0x0b00_0000 + host).to_be_bytes())
}

#[test]
fn a_packet_meets_all_of_one_change() {
    const HOSTS: u32 = 4096;
    let mut b = bench(&format!("[link]\n[matrix]\ncapacity = {HOSTS}\n"));
    // 1000 bytes: 1 ms and 100 ms, or 2 ms and 200 ms.
    let all = |n: u64| -> Vec<Pair> {
        let of = |host| Pair {
            rate: Some(8_000_000 / n),
            delay_ns: Some(n * 100 * MS),
            ..pair(host, B)
        };
        hosts(HOSTS).map(of).collect()
    };
    let changes = [all(1), all(2)];
    apply(&mut b, &changes[0], false);
    let done = AtomicBool::new(false);
    let Bench {
        loaded,
        maps,
        start,
        ..
    } = b;
    let sender = || {
        let mut seen = [0u64; 2];
        // A pair is idle when its next packet arrives: neither queue nor order delays it.
        for at in (0..20).map(|n| n * 300 * MS) {
            for host in hosts(HOSTS) {
                let fate = departure(&loaded, start + at, &between(host, B)) - start - at;
                match fate {
                    d if d == 101 * MS => seen[0] += 1,
                    d if d == 202 * MS => seen[1] += 1,
                    d => panic!("half of each: {d}"),
                }
            }
        }
        done.store(true, Ordering::Relaxed);
        seen
    };
    let mut maps = maps;
    let mut turns = 0;
    let seen = std::thread::scope(|scope| {
        let sender = scope.spawn(sender);
        while !done.load(Ordering::Relaxed) && !sender.is_finished() {
            turns += 1;
            let change = &changes[turns % 2];
            maps.apply_pairs(change, false).unwrap().unwrap();
        }
        sender.join().unwrap()
    });
    println!("{turns} changes, packets of each: {seen:?}");
    assert!(turns > 3 && seen[0] > 0 && seen[1] > 0, "{turns} {seen:?}");
}

fn departure(loaded: &Loaded, arrival: u64, frame: &[u8]) -> u64 {
    run(loaded, frame, &arriving(arrival)).departure()
}

/// ns per packet, with frames in turn, so that no pair is in the cache because it was the last one:
/// the median excludes other load.
fn cost(b: &Bench, frames: &[Vec<u8>]) -> f64 {
    const RUNS: usize = 20_000;
    let mut all: Vec<u128> = Vec::new();
    for frame in frames.iter().cycle().take(RUNS) {
        let mut data = [0u8; 2048];
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut data),
            ..TestRunOptions::new()
        };
        let program = b.loaded.program(Program::Classify).unwrap();
        all.push(program.test_run(options).unwrap().duration.as_nanos());
    }
    all.sort_unstable();
    all[RUNS / 2] as f64
}

/// This thread's time on a CPU, the kernel's included.
fn cpu_s() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

/// ns per packet if only these pairs are in use: repeated, the minimum of several runs.
fn cost_in_use(b: &Bench, frames: &[Vec<u8>]) -> f64 {
    const REPEAT: u32 = 20_000;
    let program = b.loaded.program(Program::Classify).unwrap();
    let of = |frame: &Vec<u8>| {
        let once = || {
            let mut data = [0u8; 2048];
            let options = TestRunOptions {
                data_in: Some(frame),
                data_out: Some(&mut data),
                repeat: REPEAT,
                ..TestRunOptions::new()
            };
            program.test_run(options).unwrap().duration.as_nanos() as f64
        };
        (0..5).map(|_| once()).fold(f64::INFINITY, f64::min)
    };
    frames.iter().map(of).sum::<f64>() / frames.len() as f64
}

/// The cost of a packet does not depend on the number of pairs. The effect of caches when all of
/// the pairs are in use is separate: the test below prints it.
#[test]
#[ignore = "timing"]
fn a_pair_of_65536_costs_what_one_of_16_does() {
    let loaded = [16u32, 65_536].map(|pairs| {
        let mut b = bench(&format!("[link]\n[matrix]\ncapacity = {pairs}\n"));
        let of = |host| Pair {
            rate: Some(1_000_000_000),
            delay_ns: Some(MS),
            loss: Some(0.01),
            ..pair(host, B)
        };
        apply(&mut b, &hosts(pairs).map(of).collect::<Vec<_>>(), false);
        let step = pairs as usize / 16;
        let some = hosts(pairs).step_by(step);
        let frames: Vec<_> = some.map(|host| between(host, B)).collect();
        (b, frames)
    });
    let [few, many] = [0, 1].map(|i| {
        let (b, frames) = &loaded[i];
        cost_in_use(b, frames)
    });
    println!("16 pairs {few:.1} ns, 65536 pairs {many:.1} ns a packet");
    assert!(many < 1.1 * few, "{many} for {few}");
}

/// Run manually on a quiet machine: prints figures.
#[test]
#[ignore = "timing"]
fn cost_does_not_grow_with_pairs_or_rules() {
    let mut costs = Vec::new();
    for pairs in [16u32, 65_536] {
        let mut b = bench(&format!("[link]\n[matrix]\ncapacity = {pairs}\n"));
        let of = |host| Pair {
            delay_ns: Some(MS),
            ..pair(host, B)
        };
        let all: Vec<Pair> = hosts(pairs).map(of).collect();
        for what in ["new pairs", "pairs again"] {
            let (begun, cpu) = (Instant::now(), cpu_s());
            apply(&mut b, &all, false);
            let cpu = cpu_s() - cpu;
            println!(
                "apply of {pairs} {what}: {:?}, CPU {cpu:.3} s",
                begun.elapsed()
            );
            // Excludes other load of the machine.
            assert!(cpu < 1.0);
        }
        let frames: Vec<_> = hosts(pairs).map(|host| between(host, B)).collect();
        let ns = cost(&b, &frames);
        println!("{pairs} pairs: {ns:.1} ns a packet");
        costs.push(ns);
    }
    println!("pairs: {:+.1} %", 100.0 * (costs[1] / costs[0] - 1.0));
    for rules in [0, 4, 4000] {
        let rule = |n: u32| {
            format!(
                "[[rule]]\nmatch = {{ source = \"{}\", protocol = \"udp\" }}\nlink = \"a\"\n",
                std::net::Ipv4Addr::from(0x0b00_0000 + n)
            )
        };
        let text: String = (0..rules).map(rule).collect();
        let b = bench(&format!("[link]\n[links.a]\n{text}"));
        let frames: Vec<_> = hosts(rules.max(1)).map(|h| between(h, B)).collect();
        println!(
            "{rules} rules of one mask: {:.1} ns a packet",
            cost(&b, &frames)
        );
    }
    for masks in [1u32, 8, 32] {
        // None of them is for this packet.
        let rule = |n: u32| {
            format!("[[rule]]\nmatch = {{ source = \"0.0.0.0/{n}\", vlan = 1 }}\nlink = \"link\"\n")
        };
        let text: String = (1..=masks).map(rule).collect();
        let b = bench(&format!("[link]\n{text}"));
        println!(
            "{masks} masks: {:.1} ns a packet",
            cost(&b, &[between(A, B)])
        );
    }
}

#[test]
fn a_pairs_delay_moves_the_base_links_jitter_along() {
    // Drawn for each packet, by its number in its flow: the same draws in each run.
    let delays = |pair_ms: Option<u64>| -> Vec<u64> {
        let mut b = bench(
            "[link]\ndelay = { mean = \"10ms\", jitter = \"3ms\", reorder = \"jitter\" }\n\
             [matrix]\ncapacity = 1\n",
        );
        let pairs = pair_ms.map(|ms| Pair {
            delay_ns: Some(ms * MS),
            ..pair(A, B)
        });
        apply(&mut b, pairs.as_slice(), false);
        let send = |n: u64| b.send(&between(A, B), n * MS).departure - n * MS;
        (0..300).map(send).collect()
    };
    let (own, far, near) = (delays(None), delays(Some(50)), delays(Some(2)));
    assert!(own.iter().any(|d| *d < 8 * MS), "some would be below zero");
    for ((own, far), near) in own.iter().zip(&far).zip(&near) {
        assert_eq!(far - own, 40 * MS);
        assert_eq!(*near, own.saturating_sub(8 * MS), "never below zero");
    }
}
