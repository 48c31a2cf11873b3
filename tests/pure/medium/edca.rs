// SPDX-License-Identifier: MIT OR Apache-2.0
//! EDCA, against a reference that steps from slot to slot as the standard has it (IEEE 802.11-2020,
//! 10.23.2.4), and against arithmetic.

use emud::abi::mix;
use emud::medium::air::{Air, Discipline, Fate, Frame, Outcome, Plan, To};
use emud::medium::phy::Matrix;
use support::full;

use super::traffic::{MS, S, megabits, near, plan};

/// DS fields of voice (EF), video (CS5), best effort, and background (CS1).
const FIELDS: [u8; 4] = [0xb8, 0xa0, 0x00, 0x20];
const NAMES: [&str; 4] = ["voice", "video", "best effort", "background"];
const BYTES: u32 = 1500;

/// 802.11g at 54 Mbit/s in us: 1538 octets in 57 symbols, an ACK at 24 in two, at 6 in six.
const SLOT: u64 = 9;
const SIFS: u64 = 10;
const DATA: u64 = 20 + 4 * 58 + 6;
const ACK: u64 = 34;
const LOWEST_ACK: u64 = 50;
const AIFSN: [u64; 4] = [2, 2, 3, 7];
const WINDOWS: [(u64, u64); 4] = [(3, 7), (7, 15), (15, 1023), (15, 1023)];
const TXOP: [u64; 4] = [1504, 3008, 0, 0];
const ATTEMPTS: u32 = 7;

fn edca(seed: u64) -> Plan {
    let plan = plan("802.11g", seed);
    Plan {
        discipline: Discipline::Edca,
        timing: plan.timing.with_qos(),
        ..plan
    }
}

/// Packets of each category of all stations, and internal collisions, per second.
type PerSecond = ([f64; 4], f64);

/// What stations did of which number n + 1 always has packets of these categories for station 0.
fn measured(plan: Plan, stations: &[&[usize]], seconds: u64) -> PerSecond {
    let count = stations.len() + 1;
    let mode = plan.timing.mode(54_000).unwrap();
    let mut air = Air::new(plan, Matrix::full(count).into(), &vec![mode; count]);
    let frame = |category: usize| Frame {
        to: To::Station(0),
        bytes: BYTES,
        token: category,
    };
    for (n, categories) in stations.iter().enumerate() {
        for category in categories.iter().flat_map(|c| [*c; 20]) {
            air.arrive_with(0, n + 1, frame(category), FIELDS[category]);
        }
    }
    let mut packets = [0_u64; 4];
    while let Some(outcome) = air.next(seconds * S) {
        match outcome {
            Outcome::Delivered { token, .. } => packets[token] += 1,
            Outcome::Finished {
                at_ns,
                station,
                token,
                ..
            } => {
                air.arrive_with(at_ns, station, frame(token), FIELDS[token]);
            }
        }
    }
    let internal: u64 = (0..count).map(|n| air.count(n).internal).sum();
    per_second(packets, internal, seconds)
}

fn per_second(packets: [u64; 4], internal: u64, seconds: u64) -> PerSecond {
    let rate = |count| count as f64 / seconds as f64;
    (packets.map(rate), rate(internal))
}

/// A category of a station in the reference.
struct Function {
    station: usize,
    category: usize,
    counter: u64,
    window: u64,
    tries: u32,
}

struct Reference {
    functions: Vec<Function>,
    drawn: u64,
}

impl Reference {
    fn new(stations: &[&[usize]]) -> Self {
        let mut reference = Self {
            functions: Vec::new(),
            drawn: 0,
        };
        for (station, categories) in stations.iter().enumerate() {
            for category in categories.iter().copied() {
                reference.functions.push(Function {
                    station,
                    category,
                    counter: 0,
                    window: WINDOWS[category].0,
                    tries: 0,
                });
                reference.draw(reference.functions.len() - 1);
            }
        }
        reference
    }

    fn draw(&mut self, n: usize) {
        self.drawn += 1;
        let function = &mut self.functions[n];
        function.counter = mix(self.drawn ^ 77 << 32) % (function.window + 1);
    }

    fn fails(&mut self, n: usize) {
        let function = &mut self.functions[n];
        let (first, last) = WINDOWS[function.category];
        function.tries += 1;
        function.window = (2 * function.window + 1).min(last);
        if function.tries == ATTEMPTS {
            (function.tries, function.window) = (0, first);
        }
        self.draw(n);
    }

    fn succeeds(&mut self, n: usize) {
        let function = &mut self.functions[n];
        (function.tries, function.window) = (0, WINDOWS[function.category].0);
        self.draw(n);
    }

    fn run(mut self, seconds: u64) -> PerSecond {
        let (mut now, mut packets, mut internal) = (0, [0_u64; 4], 0);
        while now < seconds * 1_000_000 {
            // Boundaries of slots behind SIFS of an idle medium.
            let mut slot = 1;
            let ready = loop {
                slot += 1;
                let mut ready = Vec::new();
                for (n, function) in self.functions.iter_mut().enumerate() {
                    if AIFSN[function.category] > slot {
                        continue;
                    }
                    match function.counter {
                        0 => ready.push(n),
                        _ => function.counter -= 1,
                    }
                }
                if !ready.is_empty() {
                    break ready;
                }
            };
            now += SIFS + slot * SLOT;
            let rank = |n: &usize| (self.functions[*n].station, self.functions[*n].category);
            let mut sending = ready.clone();
            sending.sort_by_key(rank);
            sending.dedup_by_key(|n| self.functions[*n].station);
            for n in ready.iter().filter(|n| !sending.contains(n)) {
                internal += 1;
                self.fails(*n);
            }
            match sending[..] {
                [one] => {
                    let category = self.functions[one].category;
                    let exchange = DATA + SIFS + ACK;
                    let more = TXOP[category].saturating_sub(exchange) / (exchange + SIFS);
                    now += exchange + more * (exchange + SIFS);
                    packets[category] += 1 + more;
                    self.succeeds(one);
                }
                _ => {
                    now += DATA + SIFS + LOWEST_ACK;
                    sending.iter().for_each(|n| self.fails(*n));
                }
            }
        }
        per_second(packets, internal, seconds)
    }
}

#[test]
fn categories_share_the_air_as_in_the_reference() {
    let all: &[&[usize]] = &[&[0, 1, 2, 3][..]; 4];
    let mixed: &[&[usize]] = &[&[0], &[1], &[1, 2], &[2], &[2, 3], &[3]];
    let equal: &[&[usize]] = &[&[2][..]; 8];
    let low: &[&[usize]] = &[&[2], &[2], &[3], &[3], &[2, 3]];
    // The tolerances are three standard errors of the counts in 20 s.
    let seconds = if full() { 600 } else { 8 };
    let scale = (20.0 / seconds as f64).sqrt();
    for (what, stations) in [
        ("all", all),
        ("mixed", mixed),
        ("equal", equal),
        ("low", low),
    ] {
        let (expected, collided) = Reference::new(stations).run(seconds);
        let (found, internal) = measured(edca(1), stations, seconds);
        // Four standard errors of the difference of two counts.
        let bound = 4.0 * (2.0 * collided / seconds as f64).sqrt();
        println!("{what}: internal {internal:.2}, expected {collided:.2} +- {bound:.2}");
        assert!((internal - collided).abs() <= bound, "{what}");
        let total: f64 = expected.iter().sum();
        near(what, found.iter().sum(), total, 0.01 * scale);
        for category in 0..4 {
            let (found, expected) = (found[category], expected[category]);
            let what = format!("{what}: {}", NAMES[category]);
            match expected / total {
                0.2.. => near(&what, found, expected, 0.03 * scale),
                0.05.. => near(&what, found, expected, 0.05 * scale),
                _ => {
                    println!("{what}: {found:.2}, expected {expected:.2}");
                    assert!((found - expected).abs() < 0.002 * scale * total, "{what}");
                }
            }
        }
    }
}

/// The slots of one station that is alone: AIFS, half the window, the exchanges of a TXOP.
#[test]
fn one_sender_of_each_category() {
    for category in 0..4 {
        let (found, _) = measured(edca(2), &[&[category]], 10);
        let exchange = (DATA + SIFS + ACK) as f64;
        let packets = match category {
            0 => 4.0,
            1 => 9.0,
            _ => 1.0,
        };
        let txop = packets * exchange + (packets - 1.0) * SIFS as f64;
        assert!(TXOP[category] == 0 || txop <= TXOP[category] as f64);
        let idle = AIFSN[category] as f64 + WINDOWS[category].0 as f64 / 2.0;
        let cycle = SIFS as f64 + idle * SLOT as f64 + txop;
        near(
            NAMES[category],
            found[category],
            packets * 1e6 / cycle,
            0.005,
        );
    }
}

/// The longest time that a station with voice packets has the medium, us: without a carrier there
/// are only gaps of SIFS in it.
fn longest_us(rts_bytes: Option<u32>, kbit: u32, bytes: u32) -> u64 {
    let plan = Plan {
        discipline: Discipline::Edca,
        rts_bytes,
        aggregate: 64,
        queue_packets: 200,
        ..plan("802.11n", 4)
    };
    let mode = plan.timing.mode(kbit).unwrap();
    let mut air = Air::new(plan, Matrix::full(2).into(), &[mode; 2]);
    let to = To::Station(0);
    let frame = Frame {
        to,
        bytes,
        token: (),
    };
    (0..200).for_each(|_| assert!(air.arrive_with(0, 1, frame, FIELDS[0])));
    let (mut longest, mut begin, mut end) = (0, 0, 0);
    let mut busy_ns = 0;
    // All durations are whole microseconds.
    for us in 1..100_000 {
        while let Some(outcome) = air.next(us * 1_000) {
            if let Outcome::Finished { at_ns, .. } = outcome {
                air.arrive_with(at_ns, 1, frame, FIELDS[0]);
            }
        }
        let so_far_ns = air.count(0).busy_ns;
        if so_far_ns > busy_ns {
            if us - 1 - end > SIFS {
                begin = us - 1;
            }
            end = us;
            longest = longest.max(end - begin);
        }
        busy_ns = so_far_ns;
    }
    longest
}

/// RTS and CTS are within the TXOP. One more packet would not be, with an answer at the lowest basic rate,
/// which lasts up to 36 us longer.
#[test]
fn a_txop_includes_its_rts() {
    for (kbit, bytes, packet) in [(65_000, 1500, 190), (65_000, 200, 31), (6_500, 40, 109)] {
        for rts_bytes in [None, Some(0), Some(1_000)] {
            let longest = longest_us(rts_bytes, kbit, bytes);
            println!("{kbit} kbit/s, {bytes} bytes, RTS from {rts_bytes:?}: {longest} us");
            assert!((TXOP[0] - packet - 36..=TXOP[0]).contains(&longest));
        }
    }
    // Too few bytes for an RTS leave its time to the data.
    let without = longest_us(None, 65_000, 1500);
    assert_eq!(longest_us(Some(12_000), 65_000, 1500), without);
}

/// A voice packet beside saturated best effort waits for one exchange at most, most of the time.
#[test]
fn voice_beside_data() {
    let mean_ms = |field: u8| {
        let plan = edca(3);
        let mode = plan.timing.mode(54_000).unwrap();
        let mut air = Air::new(plan, Matrix::full(7).into(), &[mode; 7]);
        let bulk = Frame {
            to: To::Station(0),
            bytes: BYTES,
            token: u64::MAX,
        };
        for station in 1..6 {
            (0..5).for_each(|_| assert!(air.arrive_with(0, station, bulk, 0)));
        }
        for n in 0..1000 {
            let voice = Frame {
                bytes: 200,
                token: n * 20 * MS,
                ..bulk
            };
            air.arrive_with(voice.token, 6, voice, field);
        }
        let (mut waited, mut packets) = (0, 0);
        while let Some(outcome) = air.next(20 * S) {
            match outcome {
                Outcome::Delivered { at_ns, token, .. } if token != u64::MAX => {
                    waited += at_ns - token;
                    packets += 1;
                }
                Outcome::Finished {
                    at_ns,
                    station,
                    token: u64::MAX,
                    ..
                } => {
                    air.arrive_with(at_ns, station, bulk, 0);
                }
                _ => {}
            }
        }
        assert!(packets > 990, "{packets}");
        waited as f64 / f64::from(packets) / 1e6
    };
    let (voice, data) = (mean_ms(FIELDS[0]), mean_ms(FIELDS[2]));
    println!("voice {voice:.3} ms, the same as best effort {data:.3} ms");
    assert!(voice < 0.6 && data > 2.0 * voice, "{voice} {data}");
}

/// Each category has the whole limit; what is full in one says nothing about the others.
#[test]
fn each_category_has_a_queue() {
    let plan = Plan {
        queue_packets: 2,
        ..edca(1)
    };
    let mut air = Air::new(plan, Matrix::full(2).into(), &[]);
    for (token, category) in [2, 2, 2, 0, 1, 3, 0, 0].into_iter().enumerate() {
        let to = To::Station(0);
        let bytes = 1000;
        let frame = Frame { to, bytes, token };
        assert!(air.arrive_with(1, 1, frame, FIELDS[category]));
    }
    let (mut order, mut dropped) = (Vec::new(), Vec::new());
    while let Some(outcome) = air.next(S) {
        match outcome {
            Outcome::Delivered { token, .. } => order.push(token),
            Outcome::Finished {
                token,
                fate: Fate::QueueFull,
                ..
            } => dropped.push(token),
            Outcome::Finished { .. } => {}
        }
    }
    assert_eq!(dropped, [2, 7]);
    assert_eq!(order.len(), 6);
    assert_eq!(air.count(1).full, 2);
    assert!(megabits(air.count(0).received_bytes, S) > 0.0);
}
