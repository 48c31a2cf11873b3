// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stations hear: carriers, interference, the frame each is receiving, their NAVs.
//!
//! A transmission changes something at every station in its reach, and where all hear each other
//! that is the whole medium, four times an exchange. What all of them have in common is therefore
//! one bit in a set, and the rest an array: a step over 256 stations is a few instructions.
//!
//! Longer than 400 lines: one set of arrays, which each transmission changes under one borrow.

use std::sync::Arc;

use super::To;
use super::station::Transmission;
use crate::medium::phy::{Matrix, Row, exceeds};
use crate::medium::set::{Set, members};

/// How strong a signal must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threshold {
    pub capture: u64,
    pub noise: u64,
}

impl Threshold {
    fn clears(&self, signal: u64, others: u64) -> bool {
        exceeds(signal, others + self.noise, self.capture)
    }
}

/// A transmission, with the geometry at its start.
#[derive(Debug)]
struct OnAir {
    from: usize,
    matrix: Arc<Matrix>,
}

impl OnAir {
    fn row(&self) -> &Row {
        self.matrix.signal(self.from)
    }
}

#[derive(Debug)]
pub(super) struct Ears {
    threshold: Threshold,
    /// In the order of their begins.
    on_air: Vec<OnAir>,
    /// Stations that send, and stations that sense a carrier, their own included.
    pub sends: Set,
    pub busy: Set,
    /// Stations that could not decode the last frame that they sensed.
    pub garbled: Set,
    /// These receive something: the set of its sender in `locked`; those of them at which it has
    /// been strong enough so far are in `intact`, too.
    receiving: Set,
    locked: Vec<Set>,
    intact: Vec<Set>,
    /// The sum over all that is on air, aW; only if `summed`.
    power: Vec<u64>,
    summed: bool,
    /// The transmissions of these ended at `silent_ns`.
    silent: Set,
    silent_ns: u64,
    idle_since_ns: Vec<u64>,
    /// Time without a carrier, until the last carrier began.
    idle_ns: Vec<u64>,
    /// Stations that became idle and busy together so far have these instead, and in addition:
    /// where all hear each other, these are all stations, for ever.
    together: Set,
    together_since_ns: u64,
    together_idle_ns: u64,
    /// Others have reserved the medium until then, from `held` at least until `held_until_ns`.
    nav_ns: Vec<u64>,
    held: Set,
    held_until_ns: u64,
    /// The last of these.
    last_nav_ns: u64,
    /// Stations that became busy when the last transmission began.
    newly: Set,
    /// Those that have become idle by the last end, those that it reserves the medium from, and
    /// until when; only if nothing was reserved before: `plain`.
    idled: Set,
    reserved: Set,
    reserved_until_ns: u64,
    plain: bool,
}

/// Stations that become idle together, and wait for one of two times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Idled<'a> {
    pub all: &'a Set,
    /// Of these, reserved until a time.
    pub reserved: &'a Set,
    pub until_ns: u64,
}

impl Ears {
    pub fn new(stations: usize, threshold: Threshold) -> Self {
        let empty = Set::new(stations);
        let times = || vec![0; stations];
        Self {
            threshold,
            on_air: Vec::with_capacity(stations),
            sends: empty.clone(),
            busy: empty.clone(),
            garbled: empty.clone(),
            receiving: empty.clone(),
            locked: vec![empty.clone(); stations],
            intact: vec![empty.clone(); stations],
            power: times(),
            summed: false,
            silent: empty.clone(),
            silent_ns: 0,
            idle_since_ns: times(),
            idle_ns: times(),
            together: empty.clone(),
            together_since_ns: 0,
            together_idle_ns: 0,
            nav_ns: times(),
            held: empty.clone(),
            held_until_ns: 0,
            last_nav_ns: 0,
            newly: empty.clone(),
            idled: empty.clone(),
            reserved: empty,
            reserved_until_ns: 0,
            plain: false,
        }
    }

    /// Returns until when others have reserved the medium.
    pub fn nav_ns(&self, station: usize) -> u64 {
        match self.held.contains(station) {
            true => self.nav_ns[station].max(self.held_until_ns),
            false => self.nav_ns[station],
        }
    }

    /// Returns since when an idle station senses no carrier.
    pub fn idle_since_ns(&self, station: usize) -> u64 {
        match self.together.contains(station) {
            true => self.together_since_ns,
            false => self.idle_since_ns[station],
        }
    }

    pub fn is_reserved(&self, station: usize, now_ns: u64) -> bool {
        self.nav_ns(station) > now_ns
    }

    /// Others have reserved the medium until a time, or it counts as if.
    pub fn reserve(&mut self, station: usize, until_ns: u64) {
        let nav_ns = &mut self.nav_ns[station];
        *nav_ns = (*nav_ns).max(until_ns);
        self.last_nav_ns = self.last_nav_ns.max(until_ns);
    }

    /// Returns the stations that became idle by the last end, which is now, if all wait from now on, or for the
    /// reservation of that frame.
    pub fn idled(&self) -> Option<Idled<'_>> {
        self.plain.then_some(Idled {
            all: &self.idled,
            reserved: &self.reserved,
            until_ns: self.reserved_until_ns,
        })
    }

    /// Returns the time with a carrier so far in ns.
    pub fn busy_ns(&self, station: usize, now_ns: u64) -> u64 {
        let together = self.together.contains(station);
        let idle_ns = [
            self.idle_ns[station],
            if together { self.together_idle_ns } else { 0 },
            match self.busy.contains(station) {
                true => 0,
                false => now_ns - self.idle_since_ns(station),
            },
        ];
        now_ns - idle_ns.into_iter().sum::<u64>()
    }

    /// Begins a transmission. Its sender is half duplex and stops receiving. At the other stations it
    /// disturbs frames in reception. A silent station receives it if it receives no frame, or one that
    /// is weaker by the capture ratio.
    pub fn begin(&mut self, from: usize, mode: usize, matrix: &Arc<Matrix>, now_ns: u64) {
        let row = matrix.signal(from);
        if self.receiving.contains(from) {
            self.receiving.remove(from);
            for other in &self.on_air {
                self.locked[other.from].remove(from);
            }
        }
        self.sends.insert(from);
        self.locked[from].clear();
        self.intact[from].clear();
        let alone = self.on_air.is_empty();
        let level = row.level.filter(|level| {
            let of_others = |other: &OnAir| other.row().level == Some(*level);
            !exceeds(*level, *level, self.threshold.capture) && self.on_air.iter().all(of_others)
        });
        match level {
            // Any two destroy each other wherever they meet.
            Some(level) => {
                self.summed = false;
                self.lock(from, row, mode, self.threshold.clears(level, 0));
                for other in &self.on_air {
                    self.intact[other.from].subtract(&row.strong);
                    self.intact[from].subtract(&other.row().strong);
                }
            }
            None if alone && self.threshold.noise == 0 => {
                self.summed = false;
                self.lock(from, row, mode, true);
            }
            None => {
                self.sum(row);
                self.disturb(from, row, mode);
                self.lock_by_power(from, row, mode);
            }
        }
        self.carrier_begins(row, now_ns);
        let matrix = Arc::clone(matrix);
        self.on_air.push(OnAir { from, matrix });
    }

    /// Brings the sums up to date with a transmission that begins.
    fn sum(&mut self, row: &Row) {
        if !self.summed {
            self.power.fill(0);
            for other in &self.on_air {
                add(&mut self.power, other.row());
            }
            self.summed = true;
        }
        add(&mut self.power, row);
    }

    /// Locks the stations that receive nothing on to a frame.
    fn lock(&mut self, from: usize, row: &Row, mode: usize, intact: bool) {
        let Some(decodes) = row.decodes(mode) else {
            return;
        };
        let sends = self.sends.words();
        let receiving = self.receiving.words_mut();
        let locked = self.locked[from].words_mut();
        let clear = self.intact[from].words_mut();
        for (n, decodes) in decodes.words().iter().enumerate() {
            let free = decodes & !sends[n] & !receiving[n];
            receiving[n] |= free;
            locked[n] |= free;
            clear[n] |= if intact { free } else { 0 };
        }
    }

    /// Does the same, with the interference at each of them.
    fn lock_by_power(&mut self, from: usize, row: &Row, mode: usize) {
        let Some(decodes) = row.decodes(mode) else {
            return;
        };
        for (n, decodes) in decodes.words().iter().enumerate() {
            let free = decodes & !self.sends.words()[n] & !self.receiving.words()[n];
            self.receiving.words_mut()[n] |= free;
            self.locked[from].words_mut()[n] |= free;
            for station in members(n, free) {
                let power = row.power(station);
                if self.threshold.clears(power, self.power[station] - power) {
                    self.intact[from].insert(station);
                }
            }
        }
    }

    /// Disturbs the frames in reception by a new one.
    fn disturb(&mut self, from: usize, row: &Row, mode: usize) {
        for other in &self.on_air {
            let of_other = other.row();
            for (n, reached) in row.reached.words().iter().enumerate() {
                let met = reached & self.locked[other.from].words()[n];
                for station in members(n, met) {
                    let (new, old) = (row.power(station), of_other.power(station));
                    let sum = self.power[station];
                    if !self.threshold.clears(old, sum - old) {
                        self.intact[other.from].remove(station);
                    }
                    let decodes = row.decodes(mode).is_some_and(|set| set.contains(station));
                    if decodes && exceeds(new, old, self.threshold.capture) {
                        self.locked[other.from].remove(station);
                        self.locked[from].insert(station);
                        let clears = self.threshold.clears(new, sum - new);
                        self.intact[from].put(station, clears);
                    }
                }
            }
        }
    }

    /// Ends a transmission, and puts the stations that have received it without interference into
    /// `received`. Returns its geometry.
    pub fn end(&mut self, from: usize, received: &mut Set, now_ns: u64) -> Option<Arc<Matrix>> {
        let at = self.on_air.iter().position(|on_air| on_air.from == from)?;
        let OnAir { matrix, .. } = self.on_air.remove(at);
        let row = matrix.signal(from);
        // A single one needs no sum, and two are added up sooner than one is taken away.
        self.summed &= self.on_air.len() > 1;
        if self.summed {
            subtract(&mut self.power, row);
        }
        if self.silent_ns != now_ns {
            self.silent.clear();
            self.silent_ns = now_ns;
        }
        self.silent.insert(from);
        self.sends.remove(from);
        self.garbled.remove(from);
        let (locked, intact) = (self.locked[from].words(), self.intact[from].words());
        let receiving = self.receiving.words_mut();
        for (n, received) in received.words_mut().iter_mut().enumerate() {
            receiving[n] &= !locked[n];
            *received = locked[n] & intact[n];
        }
        self.carriers_end(now_ns);
        Some(matrix)
    }

    fn carrier_begins(&mut self, row: &Row, now_ns: u64) {
        let (sends, senses) = (self.sends.words(), row.senses.words());
        let (busy, newly) = (self.busy.words_mut(), self.newly.words_mut());
        for n in 0..busy.len() {
            newly[n] = (senses[n] | sends[n]) & !busy[n];
            busy[n] |= newly[n];
        }
        if self.newly == self.together {
            self.together_idle_ns += now_ns - self.together_since_ns;
        } else if !self.newly.is_empty() {
            self.part();
            let (newly, idle_ns) = (&self.newly, &mut self.idle_ns);
            newly.for_each(|i| idle_ns[i] += now_ns - self.idle_since_ns[i]);
        }
    }

    fn carriers_end(&mut self, now_ns: u64) {
        let sends = self.sends.words();
        let (busy, idled) = (self.busy.words_mut(), self.idled.words_mut());
        for n in 0..busy.len() {
            let senses = |on_air: &OnAir| on_air.row().senses.words()[n];
            let still = self.on_air.iter().map(senses).fold(sends[n], |a, b| a | b);
            idled[n] = busy[n] & !still;
            busy[n] &= still;
        }
        if self.idled.is_empty() {
            return;
        }
        if self.idled != self.together {
            self.part();
            self.together.copy(&self.idled);
        }
        self.together_since_ns = now_ns;
    }

    /// Gives stations that were together their own times.
    fn part(&mut self) {
        let (since_ns, idle_ns) = (self.together_since_ns, self.together_idle_ns);
        let (idle_since, idle) = (&mut self.idle_since_ns, &mut self.idle_ns);
        self.together.for_each(|i| {
            idle_since[i] = since_ns;
            idle[i] += idle_ns;
        });
        self.together.clear();
        self.together_idle_ns = 0;
    }

    /// Applies the end of a frame to its listeners. A station that sensed and did not decode it waits for EIFS,
    /// unless it was sending itself until then: of two that collide in frames of equal length, neither waits for
    /// longer. A frame that it decodes and that is for another station reserves the medium.
    pub fn heard(&mut self, row: &Row, decoded: &Set, what: &Transmission, now_ns: u64) {
        let addressee = match what.to {
            To::Station(to) => Some((usize::from(to) / 64, 1 << (to % 64))),
            To::All => None,
        };
        let until_ns = now_ns + what.reserves_ns;
        self.plain = self.last_nav_ns <= now_ns;
        self.reserved_until_ns = until_ns;
        for (n, decoded) in decoded.words().iter().enumerate() {
            let senses = row.senses.words()[n];
            let sensed = senses & !self.sends.words()[n] & !self.silent.words()[n];
            let garbled = &mut self.garbled.words_mut()[n];
            *garbled = *garbled & !sensed | sensed & !decoded;
            // One until now has an effect only at those that do not become idle now.
            let mut reserved = match what.reserves_ns {
                0 => decoded & !senses,
                _ => *decoded,
            };
            if let Some((word, bit)) = addressee
                && word == n
            {
                reserved &= !bit;
            }
            self.reserved.words_mut()[n] = reserved;
        }
        if !self.reserved.is_empty() {
            self.hold(until_ns);
        }
    }

    /// Keeps a reservation. What it does not outlast of the one before is noted station by station.
    fn hold(&mut self, until_ns: u64) {
        let before_ns = self.held_until_ns;
        if before_ns <= until_ns {
            self.held.subtract(&self.reserved);
        }
        let nav_ns = &mut self.nav_ns;
        self.held.for_each(|i| nav_ns[i] = nav_ns[i].max(before_ns));
        self.held.copy(&self.reserved);
        self.held_until_ns = until_ns;
        self.last_nav_ns = self.last_nav_ns.max(until_ns);
    }
}

fn add(power: &mut [u64], row: &Row) {
    match row.level {
        Some(level) => row
            .strong
            .iter()
            .for_each(|station| power[station] += level),
        None => power
            .iter_mut()
            .zip(&row.powers)
            .for_each(|(sum, power)| *sum += power),
    }
}

fn subtract(power: &mut [u64], row: &Row) {
    match row.level {
        Some(level) => row
            .strong
            .iter()
            .for_each(|station| power[station] -= level),
        None => power
            .iter_mut()
            .zip(&row.powers)
            .for_each(|(sum, power)| *sum -= power),
    }
}
