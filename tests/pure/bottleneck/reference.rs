// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of src/bottleneck written once more, slow and plain: each event checks every class,
//! lists are searched from the front, and clocks are fractions.

use emud::bottleneck::{Class, Plan, QUANTUM, Schedule};

use super::traffic::Packet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Start and finish.
    Sent(u64, u64),
    Full,
    Expired,
}

/// `numerator / rate` ns.
#[derive(Clone, Copy)]
struct Fraction {
    numerator: u128,
    rate: u128,
}

impl Fraction {
    fn new(rate: u64) -> Self {
        Self {
            numerator: 0,
            rate: rate.into(),
        }
    }

    fn floor(self) -> u64 {
        (self.numerator / self.rate) as u64
    }

    fn after(self, earliest: u64, bytes: u32) -> Self {
        let begin = match self.floor() < earliest {
            true => u128::from(earliest) * self.rate,
            false => self.numerator,
        };
        Self {
            numerator: begin + u128::from(bytes) * 8_000_000_000,
            ..self
        }
    }
}

struct Reference<'a> {
    plan: &'a Plan,
    packets: &'a [Packet],
    /// Indices of packets, of each class.
    queues: Vec<Vec<usize>>,
    guarantees: Vec<Fraction>,
    ceilings: Vec<Fraction>,
    deficits: Vec<i128>,
    /// Classes with packets below the wire (last) and below each class, as they got ready.
    rounds: Vec<Vec<usize>>,
    /// Which of them are ready.
    served: Vec<bool>,
    /// Positions given out so far, the one of each class, and how many there were when a class was
    /// closed with a part of its quantum left.
    turns: u64,
    placed_at: Vec<u64>,
    closed_at: Vec<Option<u64>>,
    wire: Fraction,
    on_wire: Option<usize>,
    now: u64,
    longest: u32,
}

/// What becomes of each packet, in the order of decisions.
pub fn run(plan: &Plan, packets: &[Packet]) -> Vec<(usize, Fate)> {
    let n = plan.classes.len();
    let clocks = |rate: fn(&Class) -> Option<u64>| {
        plan.classes
            .iter()
            .map(|c| Fraction::new(rate(c).unwrap_or(1)))
            .collect()
    };
    let mut state = Reference {
        plan,
        packets,
        queues: vec![Vec::new(); n],
        guarantees: clocks(|class| class.rate),
        ceilings: clocks(|class| class.ceil),
        deficits: vec![0; n],
        rounds: vec![Vec::new(); n + 1],
        served: vec![false; n],
        turns: 0,
        placed_at: vec![0; n],
        closed_at: vec![None; n],
        wire: Fraction::new(plan.rate),
        on_wire: None,
        now: 0,
        longest: 0,
    };
    let mut out = Vec::new();
    let mut arrived = 0;
    let mut clocks_until = 0;
    loop {
        let expiry = (0..n).filter_map(|c| Some((state.expiry(c)?, c))).min();
        let clock = state.next_clock(clocks_until);
        let arrival = packets.get(arrived).map(|packet| packet.at);
        let send = (0..n).any(|c| plan.classes[c].parent.is_none() && state.ready(c));
        let send = send.then(|| state.wire.floor().max(state.now));
        let first = [expiry.map(|(at, _)| at), clock, arrival, send];
        let Some(at) = first.into_iter().flatten().min() else {
            return out;
        };
        state.now = at;
        if expiry.is_some_and(|(expires, _)| expires == at) {
            let (_, class) = expiry.unwrap();
            out.push((state.queues[class].remove(0), Fate::Expired));
            state.settle(class);
        } else if clock == Some(at) {
            clocks_until = at;
            for class in 0..n {
                if state.ceilings[class].floor() == at || state.guarantees[class].floor() == at {
                    state.settle(class);
                }
            }
        } else if arrival == Some(at) {
            if state.full(arrived) {
                out.push((arrived, Fate::Full));
            } else {
                state.arrive(arrived);
            }
            arrived += 1;
        } else {
            out.push(state.send());
        }
    }
}

impl Reference<'_> {
    fn htb(&self) -> bool {
        self.plan.schedule == Schedule::Htb
    }

    fn children(&self, class: usize) -> Vec<usize> {
        let all = 0..self.plan.classes.len();
        all.filter(|c| self.plan.classes[*c].parent == Some(class))
            .collect()
    }

    fn above(&self, class: usize) -> Vec<usize> {
        let mut path = vec![class];
        while let Some(parent) = self.plan.classes[path[path.len() - 1]].parent {
            path.push(parent);
        }
        path
    }

    fn open(&self, class: usize) -> bool {
        self.plan.schedule == Schedule::Fifo
            || self.plan.classes[class].ceil.is_none()
            || self.ceilings[class].floor() <= self.now
    }

    fn ready(&self, class: usize) -> bool {
        let children = self.children(class);
        self.open(class)
            && (!self.queues[class].is_empty() || children.iter().any(|c| self.ready(*c)))
    }

    fn busy(&self, class: usize) -> bool {
        let children = self.children(class);
        !self.queues[class].is_empty() || children.iter().any(|c| self.busy(*c))
    }

    fn expiry(&self, class: usize) -> Option<u64> {
        let head = *self.queues[class].first()?;
        Some(self.packets[head].at + self.plan.classes[class].limits.time_ns? + 1)
    }

    fn next_clock(&self, after: u64) -> Option<u64> {
        let clocks = self.ceilings.iter().chain(&self.guarantees);
        clocks
            .map(|clock| clock.floor())
            .filter(|at| *at > after && *at >= self.now)
            .min()
    }

    fn full(&self, index: usize) -> bool {
        let Packet { class, bytes, .. } = self.packets[index];
        let limits = self.plan.classes[class].limits;
        let busy = self.wire.floor() > self.now;
        let own = busy && self.on_wire == Some(class);
        let waiting = &self.queues[class];
        let left = match own {
            true => self.wire.numerator - u128::from(self.now) * u128::from(self.plan.rate),
            false => 0,
        };
        let bits: u128 = waiting
            .iter()
            .map(|w| u128::from(self.packets[*w].bytes))
            .sum();
        let work = left + (bits + u128::from(bytes)) * 8_000_000_000;
        let room = limits.bytes.map(|limit| u128::from(limit) * 8_000_000_000);
        limits
            .packets
            .is_some_and(|limit| waiting.len() + usize::from(own) + 1 > limit as usize)
            || room.is_some_and(|room| work > room)
    }

    fn arrive(&mut self, index: usize) {
        let class = self.packets[index].class;
        for above in self.above(class) {
            let guarantee = self.guarantees[above];
            if !self.busy(above) && guarantee.floor() < self.now {
                self.guarantees[above].numerator = u128::from(self.now) * guarantee.rate;
            }
        }
        self.queues[class].push(index);
        self.settle(class);
    }

    fn quantum(&self, class: usize) -> i128 {
        let share = |c: &Class| match c.rate {
            Some(rate) if self.htb() => u128::from(rate),
            _ => u128::from(c.weight),
        };
        let own = &self.plan.classes[class];
        let level = self.plan.classes.iter().filter(|c| {
            c.parent == own.parent && (self.plan.priority_counts() <= (c.priority == own.priority))
        });
        let least = level.map(share).min().unwrap();
        (u128::from(QUANTUM) * share(own) / least) as i128
    }

    /// A class and those above it enter or leave the round that they are in.
    fn settle(&mut self, class: usize) {
        for class in self.above(class) {
            let parent = self.plan.classes[class]
                .parent
                .unwrap_or(self.plan.classes.len());
            let listed = self.rounds[parent].contains(&class);
            let mut below = self.rounds[class].iter();
            let work = !self.queues[class].is_empty() || below.any(|c| self.served[*c]);
            let was_served = self.served[class];
            self.served[class] = work && self.open(class);
            if was_served && !self.served[class] && self.busy(class) {
                match self.deficits[class] <= 0 {
                    true => self.end_turn(parent, class),
                    false if self.closed_at[class].is_none() => {
                        self.closed_at[class] = Some(self.turns);
                    }
                    false => {}
                }
            }
            if listed && !self.busy(class) {
                self.rounds[parent].retain(|c| *c != class);
                self.closed_at[class] = None;
            }
            if !listed && self.served[class] {
                self.deficits[class] = self.deficits[class].min(0) + self.quantum(class);
                self.put_last(parent, class);
            }
        }
    }

    fn put_last(&mut self, list: usize, class: usize) {
        self.turns += 1;
        self.placed_at[class] = self.turns;
        self.closed_at[class] = None;
        self.rounds[list].retain(|c| *c != class);
        self.rounds[list].push(class);
    }

    /// Its quantum is used up. If it was closed while each of the others had a turn, it has another
    /// one where it is.
    fn end_turn(&mut self, list: usize, class: usize) {
        self.deficits[class] += self.quantum(class);
        let same = |c: &usize| {
            let [a, b] = [*c, class].map(|c| self.plan.classes[c].priority);
            *c != class && self.served[*c] && (!self.plan.priority_counts() || a == b)
        };
        let mut others = self.rounds[list].iter().copied().filter(same);
        let had_turns = |since: u64| others.all(|c| self.placed_at[c] > since);
        match self.closed_at[class].is_some_and(had_turns) {
            true => self.closed_at[class] = Some(self.turns),
            false => self.put_last(list, class),
        }
    }

    /// Of a class with guarantees below it.
    fn depth(&self, class: usize) -> Option<usize> {
        let mut below = self.children(class).into_iter();
        let guaranteed = below.any(|c| self.plan.classes[c].rate.is_some());
        guaranteed.then(|| self.above(class).len())
    }

    /// The class with the best claim to a guarantee.
    fn lender(&self) -> Option<usize> {
        let all = 0..self.plan.classes.len();
        let due = all.filter(|c| {
            self.htb()
                && self.plan.classes[*c].rate.is_some()
                && self.ready(*c)
                && self.guarantees[*c].floor() <= self.now
                && self.above(*c).iter().all(|above| self.open(*above))
        });
        due.min_by_key(|c| {
            let depth = self.depth(*c).unwrap_or(usize::MAX);
            let class = &self.plan.classes[*c];
            let first = self.queues[*c].first();
            let bytes = first.map_or(QUANTUM, |first| self.packets[*first].bytes.into());
            let turn = bytes * 8_000_000_000 / class.rate.unwrap();
            let due = self.guarantees[*c].floor() + turn;
            (usize::MAX - depth, class.priority, due, *c)
        })
    }

    fn first_of(&mut self, list: usize) -> usize {
        let plan = self.plan;
        let priority = |c: &usize| match plan.priority_counts() {
            true => plan.classes[*c].priority,
            false => 0,
        };
        let ready = |c: &&usize| self.served[**c];
        let best = self.rounds[list].iter().filter(ready).map(priority).min();
        let best = best.unwrap();
        loop {
            let first = |c: &usize| self.served[*c] && priority(c) == best;
            let at = self.rounds[list].iter().position(first);
            let at = at.unwrap();
            let class = self.rounds[list][at];
            if self.deficits[class] > 0 {
                return class;
            }
            self.end_turn(list, class);
        }
    }

    /// What all guarantees that compete with that of a class lack is no claim of any, but for a packet: of the
    /// whole server, then of each smaller part that a ceil limits, while the class is behind by too much.
    fn forget(&mut self, class: usize, sends: usize, packet: u64, earliest: u64) {
        let group = |class: usize| (self.depth(class), self.plan.classes[class].priority);
        let sends = self.above(sends);
        let waits = |c: &usize| {
            self.plan.classes[*c].rate.is_some() && (sends.contains(c) || self.busy(*c))
        };
        let all = (0..self.plan.classes.len()).filter(waits);
        let same: Vec<usize> = all.filter(|c| group(*c) == group(class)).collect();
        let mut parts = vec![same.clone()];
        for above in self.above(class).into_iter().skip(1).rev() {
            if self.plan.classes[above].ceil.is_some() {
                let within = |c: &&usize| self.above(**c)[1..].contains(&above);
                parts.push(same.iter().filter(within).copied().collect());
            }
        }
        for part in parts {
            if self.guarantees[class].floor() >= earliest {
                break;
            }
            let behind = |c: &usize| self.now.saturating_sub(self.guarantees[*c].floor());
            let least = part.iter().map(behind).min().unwrap();
            for class in part {
                let clock = &mut self.guarantees[class];
                clock.numerator += u128::from(least.saturating_sub(packet)) * clock.rate;
            }
        }
    }

    fn send(&mut self) -> (usize, Fate) {
        let n = self.plan.classes.len();
        let mut path = Vec::new();
        let lender = self.lender();
        let leaf = if self.plan.schedule == Schedule::Fifo {
            let heads = (0..n).filter_map(|c| Some((*self.queues[c].first()?, c)));
            heads.min().unwrap().1
        } else {
            let mut class = lender;
            while class.is_none_or(|class| !self.children(class).is_empty()) {
                class = Some(self.first_of(class.unwrap_or(n)));
                path.extend(class);
            }
            class.unwrap()
        };
        let index = self.queues[leaf].remove(0);
        let bytes = self.packets[index].bytes;
        self.longest = self.longest.max(bytes);
        let longest = u64::from(self.longest) * 8_000_000_000;
        let leaves = (0..n).filter(|c| self.children(*c).is_empty()).count() as u64;
        self.wire = self.wire.after(self.now, bytes);
        self.on_wire = Some(leaf);
        for class in path {
            self.deficits[class] -= i128::from(bytes);
        }
        let mut lent = false;
        for class in self.above(leaf) {
            lent |= Some(class) == lender;
            let rate = self.plan.classes[class].rate;
            if let Some(rate) = rate.filter(|_| lent && self.htb()) {
                let rate = rate.min(self.plan.rate);
                let earliest = self.now.saturating_sub((leaves + 1) * (longest / rate));
                if self.guarantees[class].floor() < earliest {
                    self.forget(class, leaf, longest / self.plan.rate, earliest);
                }
                self.guarantees[class] = self.guarantees[class].after(earliest, bytes);
            }
            let earliest = self.now.saturating_sub(longest / self.plan.rate);
            self.ceilings[class] = self.ceilings[class].after(earliest, bytes);
        }
        self.settle(leaf);
        (index, Fate::Sent(self.now, self.wire.floor()))
    }
}

trait PriorityCounts {
    fn priority_counts(&self) -> bool;
}

impl PriorityCounts for Plan {
    fn priority_counts(&self) -> bool {
        matches!(self.schedule, Schedule::Priority | Schedule::Htb)
    }
}
