// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree of classes: which of them is next.
//!
//! Node 0 is the wire, node n + 1 is class n. What a node has to know of those below it is kept
//! in order, and a change walks up as far as it changes anything: so a packet costs a few
//! operations on sorted sets for each level.
//!
//! Longer than 400 lines: every operation changes the nodes on a way up, under one borrow.

use super::clock::{Clock, duration};
use super::plan::{Plan, QUANTUM, Schedule};
use super::sorted::Sorted;

/// Guarantees below a class may exceed its own one, which is then used up ahead of time: at most for so long,
/// as HTB's (`HTB_MBUFFER`, net/sched/sch_htb.c).
const LONGEST_DEBT_NS: u64 = 60_000_000_000;

/// Index of the wire, which is above all classes.
pub(super) const ROOT: usize = 0;

/// A class that is within its guarantee; the least is the lender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    /// 0: with no guarantee below it; then the deepest first.
    level: usize,
    priority: u8,
    /// When the first packet would end if it began with the guarantee, at its rate, ns; above other
    /// classes a full packet.
    deadline: u64,
    node: usize,
}

/// The first packet of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub number: u64,
    pub bytes: u64,
}

/// The position of a class among those beside it: priority, then the order of the round.
type Position = (u8, u64);

#[derive(Debug, Default)]
struct Node {
    parent: usize,
    is_leaf: bool,
    level: usize,
    priority: u8,
    quantum: u64,
    rate: Option<u64>,
    ceil: Option<u64>,

    /// The guarantee is used up until then.
    guarantee: Clock,
    /// The ceil is used up until then.
    ceiling: Clock,
    /// Bytes left in this round, or owed to the next ones; the latter also while nothing waits.
    deficit: i64,
    /// Leaves with packets, this one or below.
    filled: usize,
    /// The first packet, of a leaf.
    head: Option<Head>,
    /// Ready classes directly below.
    round: Sorted<(Position, usize)>,
    /// The best of each class directly below.
    due: Sorted<Due>,

    /// Position in the parent's round, kept while the class is closed: its quantum is not used up.
    position: Option<Position>,
    /// Since the class was closed with a part of its quantum left: positions given by then.
    waits_since: Option<u64>,
    /// Own entries in the parent's `round` and `due`, and in the timers.
    is_ready: bool,
    offered: Option<Due>,
    timer: Option<u64>,
}

impl Node {
    fn is_open(&self, now: u64) -> bool {
        self.ceiling.at_ns <= now
    }

    fn has_work(&self) -> bool {
        match self.is_leaf {
            true => self.head.is_some(),
            false => !self.round.is_empty(),
        }
    }

    /// Returns the bytes of the packet that is sent next, as far as is known.
    fn first_bytes(&self) -> u64 {
        self.head.map_or(QUANTUM, |head| head.bytes)
    }

    /// Gives up its position in the round.
    fn give_up(&mut self) {
        self.position = None;
        self.waits_since = None;
    }

    /// Returns when, after now, its state changes by itself.
    fn next_change(&self, now: u64) -> Option<u64> {
        let open = self.is_open(now);
        let next = match open {
            false => Some(self.ceiling.at_ns),
            true => self.rate.map(|_| self.guarantee.at_ns),
        };
        next.filter(|at| *at > now && self.has_work())
    }
}

#[derive(Debug)]
pub(super) struct Tree {
    schedule: Schedule,
    wire_rate: u64,
    leaves: u64,
    nodes: Vec<Node>,
    timers: Sorted<(u64, usize)>,
    /// Number of the next position in a round.
    tickets: u64,
    /// Bytes of the longest packet so far.
    longest: u64,
}

impl Tree {
    pub fn new(plan: &Plan) -> Self {
        let mut nodes: Vec<Node> = (0..=plan.classes.len()).map(|_| Node::default()).collect();
        for (index, class) in plan.classes.iter().enumerate() {
            nodes[index + 1].is_leaf = plan.is_leaf(index);
            nodes[index + 1].parent = class.parent.map_or(ROOT, |parent| parent + 1);
        }
        let leaves = nodes.iter().filter(|node| node.is_leaf).count() as u64;
        let mut tree = Self {
            schedule: plan.schedule,
            wire_rate: plan.rate,
            leaves,
            nodes,
            timers: Sorted::default(),
            tickets: 0,
            longest: 0,
        };
        tree.apply(plan, 0);
        tree
    }

    fn apply(&mut self, plan: &Plan, at: u64) {
        for (index, class) in plan.classes.iter().enumerate() {
            let node = &mut self.nodes[index + 1];
            node.level = plan.level(index);
            node.priority = plan.priority(class);
            node.quantum = plan.quantum(class);
            let (rate, ceil) = (plan.guarantee(class), plan.ceil(class));
            for (clock, before, after) in [
                (&mut node.guarantee, &mut node.rate, rate),
                (&mut node.ceiling, &mut node.ceil, ceil),
            ] {
                if std::mem::replace(before, after) != after {
                    // What is used up ahead was at the former rate: at most one packet counts.
                    clock.drop_rest();
                    clock.lower(at + after.map_or(0, |rate| duration(self.longest, rate)));
                }
            }
        }
        (self.schedule, self.wire_rate) = (plan.schedule, plan.rate);
    }

    /// Changes the figures of the same tree, for what is decided from `now` on. Classes keep their turns: changes,
    /// however often one comes, do not decide which is next. Only from the order of arrival to turns, and
    /// back, there are none to keep. A class that its ceil has closed does not open before `at`, when the
    /// change comes: what waited would have been sent already.
    pub fn change(&mut self, plan: &Plan, now: u64, at: u64) {
        let begins = (self.schedule == Schedule::Fifo) != (plan.schedule == Schedule::Fifo);
        self.apply(plan, at);
        for node in 1..self.nodes.len() {
            let this = &mut self.nodes[node];
            this.deficit = this.deficit.min(this.quantum as i64);
            let (priority, position) = (this.priority, this.position);
            if begins {
                self.leave(node);
            } else if let Some((_, order)) = position.filter(|(p, _)| *p != priority) {
                self.leave_round(node);
                self.nodes[node].position = Some((priority, order));
            }
            self.refresh(node, now);
        }
    }

    /// Sets the first packet of a leaf; `None`: its queue is empty.
    pub fn head(&mut self, leaf: usize, head: Option<Head>, now: u64) {
        let before = std::mem::replace(&mut self.nodes[leaf].head, head);
        match (before, head) {
            (None, Some(_)) => self.fill(leaf, now),
            (Some(_), None) => self.drain(leaf),
            _ => {}
        }
        if self.schedule == Schedule::Fifo && before != head {
            self.leave(leaf);
        }
        self.refresh(leaf, now);
    }

    /// Starts the guarantees of a leaf that has packets again: time without packets earns none.
    fn fill(&mut self, leaf: usize, now: u64) {
        let mut node = leaf;
        while node != ROOT {
            let this = &mut self.nodes[node];
            if this.filled == 0 {
                this.guarantee.raise(now);
            }
            this.filled += 1;
            node = this.parent;
        }
    }

    fn drain(&mut self, leaf: usize) {
        let mut node = leaf;
        while node != ROOT {
            self.nodes[node].filled -= 1;
            node = self.nodes[node].parent;
        }
    }

    /// Returns whether anything can be sent.
    pub fn is_ready(&self) -> bool {
        !self.nodes[ROOT].round.is_empty()
    }

    /// Returns when the state of a class changes by itself.
    pub fn next_timer(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Carries out the first of these changes.
    pub fn fire(&mut self) {
        if let Some(&(at, node)) = self.timers.first() {
            self.refresh(node, at);
        }
    }

    /// Returns the leaf that is next, and its lender.
    pub fn choose(&mut self) -> Option<(usize, usize)> {
        if !self.is_ready() {
            return None;
        }
        let lender = self.nodes[ROOT].due.first().map_or(ROOT, |due| due.node);
        let mut node = lender;
        while node == ROOT || !self.nodes[node].is_leaf {
            let (_, child) = *self.nodes[node].round.first()?;
            if self.nodes[child].deficit > 0 {
                node = child;
            } else {
                self.next_round(child);
            }
        }
        Some((node, lender))
    }

    /// Bytes of the leaf begin at `now`.
    pub fn charge(&mut self, leaf: usize, lender: usize, bytes: u64, now: u64) {
        self.longest = self.longest.max(bytes);
        let on_the_wire = duration(self.longest, self.wire_rate);
        let (mut node, mut lent) = (leaf, false);
        while node != ROOT {
            lent |= node == lender;
            if let Some(rate) = self.nodes[node].rate.filter(|_| lent) {
                // Behind by a packet of every other class, at worst: then it catches up.
                let behind = (self.leaves + 1) * duration(self.longest, rate.min(self.wire_rate));
                let earliest = now.saturating_sub(behind);
                if self.nodes[node].guarantee.at_ns < earliest {
                    self.forget(node, earliest, now);
                }
                let this = &mut self.nodes[node];
                this.guarantee.raise(earliest);
                this.guarantee.add(bytes, rate);
                this.guarantee.lower(now + LONGEST_DEBT_NS);
            }
            let this = &mut self.nodes[node];
            if let Some(ceil) = this.ceil {
                // Behind by the packet that was on the wire: more would exceed it by more than one.
                this.ceiling.raise(now.saturating_sub(on_the_wire));
                this.ceiling.add(bytes, ceil);
            }
            if !lent && self.schedule != Schedule::Fifo {
                this.deficit -= bytes as i64;
            }
            node = this.parent;
        }
    }

    /// Guarantees have promised more than the server has, or than a ceil lets pass, if each of those below it that
    /// compete with that of `node` is behind, by more than a packet of the server: what all lack is forgotten, so that
    /// their order stays. The server counts first: who is in time below it is not in competition with `node`.
    fn forget(&mut self, node: usize, earliest: u64, now: u64) {
        let bounds = self
            .above(node)
            .filter(|n| *n == ROOT || self.nodes[*n].ceil.is_some());
        let bounds: Vec<usize> = bounds.collect();
        let group = |node: &Node| (node.level, node.priority);
        let packet = duration(self.longest, self.wire_rate);
        for bound in bounds.into_iter().rev() {
            if self.nodes[node].guarantee.at_ns >= earliest {
                return;
            }
            let competes = |n: &usize| {
                let this = &self.nodes[*n];
                this.filled > 0
                    && this.rate.is_some()
                    && group(this) == group(&self.nodes[node])
                    && self.above(*n).any(|above| above == bound)
            };
            let all: Vec<usize> = (1..self.nodes.len()).filter(competes).collect();
            let latest = all.iter().map(|n| self.nodes[*n].guarantee.at_ns);
            let lack = now.saturating_sub(latest.max().unwrap_or(now) + packet);
            for node in all.into_iter().filter(|_| lack > 0) {
                self.nodes[node].guarantee.at_ns += lack;
                self.refresh(node, now);
            }
        }
    }

    /// Returns the nodes above a node, from its parent to the wire.
    fn above(&self, node: usize) -> impl Iterator<Item = usize> {
        let parent = |node: &usize| (*node != ROOT).then(|| self.nodes[*node].parent);
        std::iter::successors(parent(&node), parent)
    }

    /// Updates the state of a node and of those above it from its queue, its clocks and the time.
    fn refresh(&mut self, mut node: usize, now: u64) {
        while node != ROOT {
            let this = &self.nodes[node];
            let (open, parent) = (this.is_open(now), this.parent);
            let ready = open && this.has_work();
            let rate = this.rate.filter(|_| ready && this.guarantee.at_ns <= now);
            let own = rate.map(|rate| Due {
                level: this.level,
                priority: this.priority,
                deadline: this.guarantee.at_ns + duration(this.first_bytes(), rate),
                node,
            });
            let below = this.due.first().copied();
            let best = own.into_iter().chain(below).min().filter(|_| open);
            let timer = this.next_change(now);

            self.set_timer(node, timer);
            let this = &mut self.nodes[node];
            // Closed, or all that is filled below it.
            if this.is_ready && !ready && this.filled > 0 {
                if this.deficit <= 0 {
                    // While it is closed the others have their turns.
                    self.next_round(node);
                } else {
                    this.waits_since.get_or_insert(self.tickets);
                }
            }
            match ready {
                true => self.join_round(node),
                false => self.leave_round(node),
            }
            if self.nodes[node].filled == 0 {
                self.nodes[node].give_up();
            }
            if best != self.nodes[node].offered {
                let offered = std::mem::replace(&mut self.nodes[node].offered, best);
                let due = &mut self.nodes[parent].due;
                if let Some(old) = offered {
                    due.remove(&old);
                }
                if let Some(best) = best {
                    due.insert(best);
                }
            }
            node = parent;
        }
    }

    fn set_timer(&mut self, node: usize, at: Option<u64>) {
        let before = std::mem::replace(&mut self.nodes[node].timer, at);
        if before != at {
            if let Some(before) = before {
                self.timers.remove(&(before, node));
            }
            if let Some(at) = at {
                self.timers.insert((at, node));
            }
        }
    }

    /// Puts a class at its position, or last with a quantum, less what it owes from its last turn: `htb_deactivate()`
    /// and `fq_codel_dequeue()` do not cancel it, either, when a queue gets empty.
    fn join_round(&mut self, node: usize) {
        let this = &mut self.nodes[node];
        if std::mem::replace(&mut this.is_ready, true) {
            return;
        }
        let position = *this.position.get_or_insert_with(|| {
            self.tickets += 1;
            this.deficit = this.deficit.min(0) + this.quantum as i64;
            let order = match self.schedule {
                Schedule::Fifo => this.head.map_or(self.tickets, |head| head.number),
                _ => self.tickets,
            };
            (this.priority, order)
        });
        let parent = this.parent;
        self.nodes[parent].round.insert((position, node));
    }

    fn leave_round(&mut self, node: usize) {
        let this = &mut self.nodes[node];
        if let Some(position) = this.position.filter(|_| this.is_ready) {
            this.is_ready = false;
            let parent = this.parent;
            self.nodes[parent].round.remove(&(position, node));
        }
    }

    /// Moves a class after all others of its priority, with a quantum more; it stays if all of them have had
    /// a turn while it was closed.
    fn next_round(&mut self, node: usize) {
        self.leave_round(node);
        let tickets = self.tickets;
        let this = &self.nodes[node];
        let mut beside = self.nodes[this.parent].round.iter();
        let next = beside.find(|((priority, _), _)| *priority == this.priority);
        let next = next.map_or(u64::MAX, |((_, order), _)| *order);
        let this = &mut self.nodes[node];
        match this.waits_since.filter(|since| next > *since) {
            Some(_) => {
                this.waits_since = Some(tickets);
                this.deficit += this.quantum as i64;
            }
            None => this.give_up(),
        }
        self.join_round(node);
    }

    /// Takes a class out of the parent's round, for a new position.
    fn leave(&mut self, node: usize) {
        self.leave_round(node);
        self.nodes[node].give_up();
    }
}
