// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links that change with time, on a live interface: phases by the clock, delivery opportunities.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use aya::programs::loaded_programs;
use emud::host::now_ns;
use emud::netlink::{Hook, Netlink, tcx_programs};

use support::guest;
use support::lab::{Engine, Lab, Verdict, inside};
use support::probe::{Arrival, HEADERS, Probe};

const MS: u64 = 1_000_000;

/// Restarts the time. Returns the time before and after that.
fn restart(lab: &Lab) -> RangeInclusive<u64> {
    let before = now_ns();
    lab.emud(&["set", "va", "trace.restart"]).expect(0);
    before..=now_ns()
}

/// The fate of a packet this many ns after the restart.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Lost,
    Delayed(f64),
}

fn of_phase(ns: u64) -> Fate {
    match ns / MS {
        0..1000 => Fate::Delayed(10.0),
        1000..1500 => Fate::Lost,
        _ => Fate::Delayed(60.0),
    }
}

/// A hand-over with an outage, restarted under traffic.
pub fn phases(engine: Engine) {
    const COUNT: u32 = 600;
    const INTERVAL_NS: u64 = 5 * MS;
    let lab = Lab::new();
    lab.attach(
        engine,
        "[link]\ndelay = \"10ms\"\n[[phase]]\nfor = \"1s\"\n[[phase]]\nfor = \"500ms\"\n\
         state = \"down\"\n[[phase]]\ndelay = \"60ms\"\n",
        &["--direction", "up"],
    );
    let first = restart(&lab);
    let mut again = first.clone();
    let arrivals = Probe::new(&lab, COUNT, INTERVAL_NS).run_while(|_| {
        std::thread::sleep(Duration::from_millis(2200));
        again = restart(&lab);
    });

    // `None`: the phase is unknown, or earlier packets are still waiting.
    let asked = |sent_ns: u64| {
        let began = match sent_ns {
            at if at < *again.start() => &first,
            at if at < again.end() + 60 * MS => return None,
            _ => &again,
        };
        let fates = [began.start(), began.end()].map(|began| of_phase(sent_ns - began));
        (fates[0] == fates[1]).then_some(fates[0])
    };
    let each = arrivals.of_each_ms(COUNT);
    let start_ns = arrivals.0[0].sent_ns - u64::from(arrivals.0[0].number) * INTERVAL_NS;
    let mut verdict = Verdict::default();
    let (mut wrong, mut met) = (0, vec![]);
    let mut late = 0;
    for (number, delays) in (0u64..).zip(&each) {
        // The transmission time of a lost packet depends on the sender's punctuality.
        let Some(fate) = asked(start_ns + number * INTERVAL_NS) else {
            continue;
        };
        if !met.contains(&fate) {
            met.push(fate);
        }
        match (fate, delays.first()) {
            (Fate::Lost, None) => {}
            (Fate::Delayed(ms), Some(got)) if *got >= ms - 0.001 => {
                late += u32::from(*got > ms + 4.0)
            }
            _ => wrong += 1,
        }
    }
    verdict.same("phases met", 3, met.len());
    // One on each side of the five boundaries, if the sender was late at that moment.
    verdict.at_most("packets of another phase", 10.0, f64::from(wrong));
    verdict.at_most(
        "more than 4 ms late",
        0.05 * f64::from(COUNT),
        f64::from(late),
    );
    verdict.same(
        "lost by emud's count",
        each.iter().filter(|delays| delays.is_empty()).count() as u64,
        lab.shown("/up/counters/down"),
    );
    verdict.end();
}

/// One packet, three, one; repeated, as long as more than that are waiting.
pub fn opportunities(engine: Engine) {
    const PERIOD_MS: f64 = 50.0;
    const AT_MS: [(f64, usize); 3] = [(0.0, 3), (30.0, 1), (40.0, 1)];
    let lab = Lab::new();
    lab.attach(
        engine,
        "[up]\ntrace = { opportunities = \"10 20x3 50\" }\nqueue = \"20p\"\n",
        &["--direction", "up"],
    );
    let probe = Probe {
        payload_len: 1500 - HEADERS,
        ..Probe::new(&lab, 300, 5 * MS)
    };
    let arrivals = probe.run();
    let at_ms: Vec<f64> = arrivals
        .0
        .iter()
        .map(|a| a.arrived_ns as f64 / 1e6)
        .collect();
    // From the first three together on.
    let near = |a: f64, b: f64| (a - b).abs() < 4.0;
    let begin = at_ms.windows(3).position(|three| near(three[0], three[2]));
    let begin = begin.expect("three together");
    let begin_ms = at_ms[begin];
    let mut verdict = Verdict::default();
    let rounds = ((at_ms[at_ms.len() - 1] - begin_ms) / PERIOD_MS).floor();
    verdict.at_least("rounds", 20.0, rounds);
    let mut elsewhere = 0;
    let mut counts = [0; AT_MS.len()];
    for ms in at_ms[begin..].iter().map(|ms| ms - begin_ms) {
        if ms >= rounds * PERIOD_MS - 4.0 {
            break;
        }
        let phase = (ms + 4.0) % PERIOD_MS - 4.0;
        match AT_MS.iter().position(|(at, _)| near(phase, *at)) {
            Some(place) => counts[place] += 1,
            None => elsewhere += 1,
        }
    }
    // Packets that the machine released late; they miss no opportunity because of that.
    verdict.at_most(
        "at another time",
        0.05 * at_ms.len() as f64,
        f64::from(elsewhere),
    );
    for ((at, of), got) in AT_MS.iter().zip(counts) {
        let asked = *of as f64 * rounds;
        verdict.near(
            &format!("packets at {at} ms"),
            asked,
            f64::from(got),
            0.05 * asked,
        );
    }
    verdict.end();
}

/// Slots of three packets at equal distances, and no others.
pub fn slots(engine: Engine) {
    const SLOT_MS: f64 = 20.0;
    let lab = Lab::new();
    lab.attach(
        engine,
        "[up]\nslot = { min = \"20ms\", packets = 3 }\n",
        &["--direction", "up"],
    );
    // Two per slot, so that all leave in the next one.
    let arrivals = Probe::new(&lab, 200, 10 * MS).run();
    let mut verdict = Verdict::default();
    verdict.same("arrived", 200, arrivals.0.len());
    let delays = arrivals.delays_ms();
    let beyond = delays.iter().filter(|ms| **ms > SLOT_MS + 4.0);
    verdict.at_most("later than the next slot", 10.0, beyond.count() as f64);
    let first = arrivals.0[0].arrived_ns;
    let off_ms = |ns: u64| {
        let ms = (ns - first) as f64 / 1e6;
        ms - SLOT_MS * (ms / SLOT_MS).round()
    };
    let off = arrivals.0.iter().map(|a| off_ms(a.arrived_ns).abs());
    let off = off.filter(|ms| *ms > 4.0).count();
    verdict.at_most("in no slot", 10.0, off as f64);
    verdict.end();
}

/// Packets of one slot leave at the same time, and in order, also if packets of a longer link are sent in
/// between. The longer slots are three rounds of the wheel of engine qdisc.
pub fn slots_keep_order(engine: Engine) {
    let mut verdict = Verdict::default();
    for (slot_ms, interval_ns) in [(20, 0), (400, 18 * MS)] {
        let lab = Lab::new();
        let far_ms = 5 * slot_ms;
        lab.attach(
            engine,
            &format!(
                "[up]\nslot = {{ min = \"{slot_ms}ms\", packets = 100 }}\n[links.far]\n\
                 delay = \"{far_ms}ms\"\n[[rule]]\nmatch = {{ tos = 4 }}\nlink = \"far\"\n"
            ),
            &["--direction", "up"],
        );
        let in_turn = Probe {
            dscps: 2,
            ..Probe::new(&lab, 20, interval_ns)
        };
        // Each begins when no packet waits.
        for burst in 0..3 {
            let numbers = in_turn.run().0.into_iter().map(|a| a.number);
            let of_slots = numbers.filter(|n| n % 2 == 0).collect();
            let sent: Vec<u32> = (0..20).step_by(2).collect();
            verdict.same::<Vec<u32>>(&format!("{slot_ms} ms, burst {burst}"), sent, of_slots);
        }
    }
    verdict.end();
}

/// A rate from a file, and the link set down, with the queue kept.
pub fn rows(engine: Engine) {
    const RATES: [f64; 2] = [1e6, 4e6];
    let lab = Lab::new();
    let csv = lab.profile("time_s,rate_Mbit,delay_ms\n0,1,5\n1,4,5\n");
    lab.attach(
        engine,
        &format!("[up]\ntrace = {{ file = \"{csv}\", loop = false }}\nqueue = \"1000p\"\n"),
        &["--direction", "up"],
    );
    let probe = Probe {
        payload_len: 1250 - HEADERS,
        ..Probe::new(&lab, 260, 0)
    };
    let began = restart(&lab);
    let arrivals = probe.run();
    let mut verdict = Verdict::default();
    verdict.same("arrived", 260, arrivals.0.len());
    // After the change like before it, until a packet at the other rate.
    let change = began.start() + 1_005 * MS..=began.end() + 1_005 * MS + 10 * MS;
    for (rate, first) in RATES.iter().zip([true, false]) {
        let of_rate = |at: u64| match first {
            true => at < *change.start(),
            false => at > *change.end(),
        };
        let at: Vec<u64> = arrivals.0.iter().map(|a| a.arrived_ns).collect();
        let at: Vec<u64> = at.into_iter().filter(|at| of_rate(*at)).collect();
        let (count, span_ns) = (at.len() as f64 - 1.0, (at[at.len() - 1] - at[0]) as f64);
        let got = count * 1250.0 * 8.0 / (span_ns / 1e9);
        // 4 ms of lateness of the machine at either end of half a second.
        verdict.near(&format!("bit/s at {rate}"), *rate, got, 0.02 * rate);
    }
    lab.emud(&["set", "va", "state=down"]).expect(0);
    let lost = Probe::new(&lab, 20, MS).run();
    verdict.same("arrived while down", 0, lost.0.len());
    lab.emud(&["set", "va", "state=up"]).expect(0);
    let back = Probe::new(&lab, 20, MS).run();
    verdict.same("arrived afterwards", 20, back.0.len());
    verdict.end();
    drop(std::fs::remove_file(csv));
}

/// The id of the classifier at the egress of `va`.
fn egress_program(lab: &Lab, engine: Engine) -> Option<u32> {
    if engine == Engine::Qdisc {
        let programs = || tcx_programs(Netlink::open()?.link("va")?.index, Hook::Egress);
        let programs = inside(&lab.a, programs).join().expect("a thread");
        return Some(programs.ok()?.first()?.id);
    }
    let filter = lab.in_a("tc filter show dev va egress");
    filter.split(" id ").nth(1)?.split(' ').next()?.parse().ok()
}

/// A long trace begins when the link is attached, not when its rows are written, which takes longest.
pub fn begins_with_the_link(engine: Engine) {
    /// Writing the rows takes several times as long.
    const SOON_MS: f64 = 20.0;
    const DELAY_MS: f64 = 100.0;
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    // A guest's CPU has 10^9 instructions a second.
    let count = if guest() { 20_000 } else { 200_000 };
    let rows: String = (0..count).fold("time_ms,rate_kbit\n".to_owned(), |text, row| {
        text + &format!("{row},{}\n", 1_000 + row % 7)
    });
    let trace = lab.profile(&rows);
    let profile = format!("[up]\ndelay = \"{DELAY_MS}ms\"\ntrace = {{ file = \"{trace}\" }}\n");
    let mut least_ms = f64::INFINITY;
    // The machine may do something else meanwhile.
    for _ in 0..3 {
        let arrivals = Probe::new(&lab, 4_000, 2 * MS).run_while(|_| {
            lab.attach(engine, &profile, &[]);
        });
        let shown = lab.show();
        let at_s = shown["up"]["timeline"]["at_s"].as_f64().expect("a trace");
        let shown_ns = shown["mono_ns"].as_u64().expect("a time");
        let since = now_ns() - shown_ns;
        let began = SystemTime::now() - Duration::from_secs_f64(at_s) - Duration::from_nanos(since);
        // The rows are written after the classifier is loaded.
        let id = egress_program(&lab, engine).expect("a classifier");
        let loaded = loaded_programs()
            .filter_map(Result::ok)
            .find(|program| program.id() == id);
        let loaded = loaded
            .and_then(|program| program.loaded_at())
            .expect("its time");
        println!(
            "    {:?} after the classifier was loaded",
            began.duration_since(loaded)
        );
        verdict.same("the trace begins after that", true, began > loaded);
        lab.detach();
        // Before it is attached, packets have no delay.
        let is_delayed = |packet: &&Arrival| packet.delay_ms() > DELAY_MS / 2.0;
        let first = arrivals.0.iter().find(is_delayed);
        let first = first.expect("a packet of the link");
        let ms = first.sent_ns as f64 / 1e6 - (shown_ns as f64 / 1e6 - at_s * 1e3);
        println!("    the first packet with a delay was sent {ms:.3} ms after the start");
        least_ms = least_ms.min(ms);
        if least_ms <= SOON_MS {
            break;
        }
    }
    verdict.at_most("ms from its start to the link", SOON_MS, least_ms);
    verdict.end();
}
