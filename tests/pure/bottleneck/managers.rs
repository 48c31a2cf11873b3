// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers of the queues of classes.

use std::collections::VecDeque;

use emud::abi::mix;
use emud::bottleneck::aqm::{
    Aqm, AqmVerdict, AredFigures, AverageFigures, Choice, CoDelFigures, Gains, Packet as Judged,
    PiFigures, PieFigures, RedFigures, RemFigures, RioFigures, pie_gain, probability,
};
use emud::bottleneck::{Cause, Class, Decision, Limits, Plan, Schedule, Server, Signals};

use super::traffic::{Packet, Random, SECOND, constant, decisions, merge};

const RATE: u64 = 10_000_000;
const MS: u64 = 1_000_000;

/// Quick ones, for queues of some 20 packets.
fn choices() -> [Choice; 7] {
    let red = |share| RedFigures {
        min: 5_000,
        max: 25_000,
        probability: probability(share),
        average: AverageFigures {
            weight: probability(0.05),
            packet_ns: MS,
        },
    };
    [
        Choice::Red(red(0.2)),
        Choice::Ared(AredFigures {
            red: red(0.1),
            interval_ns: 100 * MS,
            alpha: probability(0.01),
            beta: probability(0.9),
        }),
        Choice::Rio(RioFigures {
            best_effort: red(0.3),
            assured: red(0.02),
            codes: 1 << 10,
        }),
        Choice::CoDel(CoDelFigures {
            target_ns: 5 * MS,
            interval_ns: 50 * MS,
            packet: 1514,
        }),
        Choice::Pie(PieFigures {
            target_ns: 5 * MS,
            tupdate_ns: 5 * MS,
            alpha: pie_gain(1.0),
            beta: pie_gain(5.0),
            packets: 2048,
            unit_ns: 800 << 32,
        }),
        Choice::Pi(PiFigures {
            target: 10_000,
            tupdate_ns: 2 * MS,
            gains: Gains::of([1e-7, 1e-6]),
        }),
        Choice::Rem(RemFigures {
            target: 10_000,
            tupdate_ns: 2 * MS,
            capacity: 2_500,
            gains: Gains::of([1e-7, 1e-6]),
        }),
    ]
}

/// Gives every class a manager, a threshold, or neither.
pub fn manage(random: &mut Random, plan: &mut Plan) {
    for class in &mut plan.classes {
        let marks = random.one_in(2);
        class.signals = match random.below(9) {
            7 => Signals::MarkAbove(random.below(20 * MS)),
            8 => Signals::None,
            n => Signals::Managed {
                by: choices()[n as usize],
                marks,
            },
        };
    }
}

/// What becomes of a packet: start and mark, or why it is dropped.
type Fate = Result<(u64, bool), Cause>;

/// One queue and one manager, written once more.
struct Model {
    plan: Plan,
    manager: Box<dyn Aqm>,
    marks: bool,
    queue: VecDeque<usize>,
    marked: Vec<bool>,
    /// The wire is free then, times rate.
    free: u128,
    idle_until: u64,
}

impl Model {
    fn backlog(&self, packets: &[Packet], at: u64) -> u64 {
        let waiting: u64 = self
            .queue
            .iter()
            .map(|i| u64::from(packets[*i].bytes))
            .sum();
        let until = u128::from(at) * u128::from(self.plan.rate);
        let left = match self.free / u128::from(self.plan.rate) > at.into() {
            true => (self.free - until).div_ceil(8 * u128::from(SECOND)),
            false => 0,
        };
        waiting + left as u64
    }

    fn known(&self, packets: &[Packet], index: usize, now_ns: u64) -> Judged {
        let arrival = packets[index].arrival(index);
        Judged {
            now_ns,
            size: arrival.bytes.into(),
            dscp: arrival.ds >> 2,
            capable: self.marks && arrival.ds & 3 != 0,
            ..Judged::default()
        }
    }

    fn catch_up(&mut self, packets: &[Packet], now: u64) {
        while let Some(due) = self.manager.due_ns().filter(|due| *due <= now) {
            let backlog = self.backlog(packets, due);
            self.manager.update(backlog);
        }
    }

    fn arrive(&mut self, packets: &[Packet], index: usize) -> Result<(), Cause> {
        let now = packets[index].at;
        self.catch_up(packets, now);
        let backlog = self.backlog(packets, now);
        let free = (self.free / u128::from(self.plan.rate)) as u64;
        let limit = self.plan.classes[0].limits.packets.unwrap() as usize;
        let full = self.queue.len() + usize::from(free > now) >= limit;
        let class_seed = mix(self.plan.seed ^ mix(1));
        let packet = Judged {
            full,
            idle_ns: match backlog {
                0 => now - free.max(self.idle_until),
                _ => 0,
            },
            draw: mix(class_seed ^ mix(index as u64 + 1)),
            ..self.known(packets, index, now)
        };
        self.idle_until = now;
        let verdict = self.manager.arrive(&packet, backlog);
        match (full, verdict) {
            (true, _) => return Err(Cause::Full),
            (false, AqmVerdict::Drop) => return Err(Cause::Managed),
            (false, verdict) => self.marked[index] = verdict == AqmVerdict::Mark,
        }
        self.queue.push_back(index);
        Ok(())
    }

    fn depart(&mut self, packets: &[Packet], now: u64) -> (usize, Fate) {
        self.catch_up(packets, now);
        let index = self.queue.pop_front().unwrap();
        let packet = Judged {
            sojourn_ns: now - packets[index].at,
            ..self.known(packets, index, now)
        };
        let backlog = self
            .queue
            .iter()
            .map(|i| u64::from(packets[*i].bytes))
            .sum();
        match self.manager.depart(&packet, backlog) {
            AqmVerdict::Drop => return (index, Err(Cause::Managed)),
            AqmVerdict::Mark => self.marked[index] = true,
            AqmVerdict::Pass => {}
        }
        let rate = u128::from(self.plan.rate);
        if self.free / rate < now.into() {
            self.free = u128::from(now) * rate;
        }
        self.free += u128::from(packets[index].bytes) * 8 * u128::from(SECOND);
        (index, Ok((now, self.marked[index])))
    }

    fn run(plan: &Plan, packets: &[Packet]) -> Vec<(usize, Fate)> {
        let Signals::Managed { by, marks } = plan.classes[0].signals else {
            panic!("a manager");
        };
        let mut model = Self {
            plan: plan.clone(),
            manager: Box::new(by.start(packets[0].at)),
            marks,
            queue: VecDeque::new(),
            marked: vec![false; packets.len()],
            free: 0,
            idle_until: 0,
        };
        let mut out = Vec::new();
        let mut arrived = 0;
        let mut now = 0;
        loop {
            let free = (model.free / u128::from(plan.rate)) as u64;
            let next = packets.get(arrived).map(|packet| packet.at);
            let send = (!model.queue.is_empty()).then_some(free.max(now));
            if let Some(at) = next.filter(|at| send.is_none_or(|send| *at <= send)) {
                now = at;
                if let Err(cause) = model.arrive(packets, arrived) {
                    out.push((arrived, Err(cause)));
                }
                arrived += 1;
            } else if let Some(at) = send {
                now = at;
                out.push(model.depart(packets, at));
            } else {
                return out;
            }
        }
    }
}

fn fate(decision: &Decision<usize>) -> (usize, Fate) {
    match decision {
        Decision::Served(s) => (s.token, Ok((s.start_ns, s.marked))),
        Decision::Dropped(d) => (d.token, Err(d.cause)),
    }
}

fn managed(by: Choice, marks: bool, seed: u64) -> Plan {
    let class = Class {
        limits: Limits {
            packets: Some(60),
            ..Limits::default()
        },
        signals: Signals::Managed { by, marks },
        ..Class::default()
    };
    Plan {
        rate: RATE,
        schedule: Schedule::Fifo,
        seed,
        classes: vec![class],
    }
}

#[test]
fn managers_judge_as_in_front_of_one_wire() {
    let mut random = Random(21);
    for (by, marks) in choices()
        .into_iter()
        .flat_map(|by| [(by, true), (by, false)])
    {
        let (mut drops, mut marked) = (0, 0);
        for _ in 0..10 {
            let plan = managed(by, marks, random.next());
            let packets = super::random::packets(&mut random, &plan, 2_000);
            let got: Vec<_> = decisions(&plan, &packets).iter().map(fate).collect();
            let want = Model::run(&plan, &packets);
            let differs = got.iter().zip(&want).position(|(a, b)| a != b);
            if let Some(at) = differs {
                panic!("{by:?}, {at}: {:?}, model {:?}", got[at], want[at]);
            }
            assert_eq!(got.len(), packets.len());
            assert_eq!(want.len(), packets.len());
            drops += (got.iter()).filter(|f| f.1 == Err(Cause::Managed)).count();
            marked += got.iter().filter(|f| f.1.is_ok_and(|sent| sent.1)).count();
        }
        assert!(drops > 100, "{by:?}: {drops} drops");
        // PIE marks only while it has little to signal.
        assert_eq!(marked > 5, marks, "{by:?}: {marked} marks");
    }
}

/// RIO: of a class above its share, the packets of the assured code points stay.
#[test]
fn rio_spares_the_assured() {
    let plan = managed(choices()[2], false, 3);
    let packets = constant(0, 1_000, RATE * 6 / 5, 0, 20 * SECOND);
    let mut lost = [0.0; 2];
    for (index, fate) in decisions(&plan, &packets).iter().map(fate) {
        lost[usize::from(index % 5 == 0)] += f64::from(u8::from(fate.is_err()));
    }
    let shares = [lost[0] / 0.8, lost[1] / 0.2].map(|lost| lost / packets.len() as f64);
    assert!(shares[0] > 0.15 && shares[1] < 0.02, "{shares:?}");
}

#[test]
fn a_threshold_marks_what_waited_longer() {
    let mut plan = managed(choices()[0], true, 0);
    plan.classes[0].signals = Signals::MarkAbove(10 * MS);
    let packets = constant(0, 1_000, RATE * 6 / 5, 0, SECOND);
    let mut marked = 0;
    for decision in decisions(&plan, &packets) {
        if let Decision::Served(s) = decision {
            let long = s.start_ns - s.arrival_ns > 10 * MS;
            assert_eq!(s.marked, long && s.token % 3 == 0, "{s:?}");
            marked += u32::from(s.marked);
        }
    }
    assert!(marked > 100, "{marked}");
}

/// A manager of one class takes nothing from the others, and drops do not cost its share.
#[test]
fn a_class_keeps_its_share_whatever_its_manager_drops() {
    // REM drops until senders slow down, and these do not.
    for by in choices()
        .into_iter()
        .filter(|by| !matches!(by, Choice::Rem(_)))
    {
        let mut plan = managed(by, false, 5);
        plan.schedule = Schedule::Drr;
        plan.classes.push(Class {
            signals: Signals::None,
            weight: 3,
            ..plan.classes[0]
        });
        let packets =
            merge([0, 1].map(|class| constant(class, 1_000, 2 * RATE, class as u64, 20 * SECOND)));
        let mut sent = [0u64; 2];
        for decision in decisions(&plan, &packets) {
            match decision {
                Decision::Served(s) if s.start_ns < 20 * SECOND => sent[s.class] += 1,
                Decision::Served(_) => {}
                Decision::Dropped(d) => assert!(d.class == 0 || d.cause == Cause::Full),
            }
        }
        let share = sent[0] as f64 / (sent[0] + sent[1]) as f64;
        assert!((share - 0.25).abs() < 0.01, "{by:?}: {share}");
    }
}

/// Other figures of a manager do not restart it; another manager does.
#[test]
fn a_change_keeps_what_a_manager_knows() {
    let packets = constant(0, 1_000, RATE * 3 / 2, 0, 4 * SECOND);
    let drops = |plans: [&Plan; 2]| {
        let mut server = Server::new(plans[0]);
        for (index, packet) in packets.iter().enumerate() {
            server.arrive(packet.arrival(index), index);
        }
        while server.decide(2 * SECOND).is_some() {}
        let before = server.count(0).managed;
        server.change(plans[1], 2 * SECOND);
        while server.decide(2 * SECOND + 20 * MS).is_some() {}
        server.count(0).managed - before
    };
    let choices = choices();
    let [pi, rem] = [5, 6].map(|n| managed(choices[n], false, 1));
    let mut other = pi.clone();
    if let Signals::Managed {
        by: Choice::Pi(pi), ..
    } = &mut other.classes[0].signals
    {
        pi.target += 1;
    }
    let went_on = drops([&pi, &pi]);
    assert!(went_on > 3, "{went_on}");
    assert!(drops([&pi, &other]).abs_diff(went_on) <= 1);
    assert!(drops([&pi, &rem]) < went_on);
    let mut none = pi.clone();
    none.classes[0].signals = Signals::None;
    assert_eq!(drops([&pi, &none]), 0);
}
