// SPDX-License-Identifier: MIT OR Apache-2.0
//! Backoffs that are counted down.
//!
//! Stations that hear the same begin their gap at the same instant, so they are counted as a group:
//! a carrier takes the same number of slots from all of them, and the first access is that of
//! the least number left.

use crate::medium::set::{Set, members};

/// Stations that count slots since the same instant.
#[derive(Debug)]
struct Group {
    from_ns: u64,
    members: Set,
    /// The least slots left, and the first station with them, if they are known.
    first: Option<(u16, u16)>,
}

impl Group {
    fn new(stations: usize) -> Self {
        Self {
            from_ns: 0,
            members: Set::new(stations),
            first: None,
        }
    }
}

/// Backoffs of all stations in one access category.
#[derive(Debug)]
pub(super) struct Countdown {
    slot_ns: u64,
    /// A station whose slot begins sooner than this after a carrier has not sensed it.
    cca_ns: u64,
    /// Slots left by station.
    left: Vec<u16>,
    /// Stations with a backoff; the others may send as soon as the medium is idle for a gap.
    pub drawn: Set,
    /// Stations whose slots are being counted.
    pub counting: Set,
    groups: Vec<Group>,
    /// Unused groups, kept so that their memory is reused.
    spare: Vec<Group>,
}

/// For eight bits eight lanes of ones.
static LANES: [[u16; 8]; 256] = lanes();

const fn lanes() -> [[u16; 8]; 256] {
    let mut lanes = [[0; 8]; 256];
    let mut n = 0;
    while n < 8 * 256 {
        if ((n / 8) >> (n % 8)) & 1 == 1 {
            lanes[n / 8][n % 8] = u16::MAX;
        }
        n += 1;
    }
    lanes
}

/// Returns the slots and the lanes of eight stations each, of 64 stations of a set.
fn octets(left: &mut [u16], word: u64) -> impl Iterator<Item = (&mut [u16; 8], &'static [u16; 8])> {
    let (octets, _) = left.as_chunks_mut::<8>();
    let octets = octets.iter_mut().zip(word.to_le_bytes());
    octets.map(|(left, byte)| (left, &LANES[usize::from(byte)]))
}

impl Countdown {
    pub fn new(stations: usize, slot_ns: u64, cca_ns: u64) -> Self {
        Self {
            slot_ns,
            cca_ns,
            left: vec![0; stations.next_multiple_of(64)],
            drawn: Set::new(stations),
            counting: Set::new(stations),
            groups: Vec::with_capacity(stations),
            // At most one for each station: a rare crowd of them allocates nothing later.
            spare: (0..stations).map(|_| Group::new(stations)).collect(),
        }
    }

    pub fn draw(&mut self, station: usize, slots: u32) {
        self.left[station] = u16::try_from(slots).unwrap_or(u16::MAX);
        self.drawn.insert(station);
    }

    /// Counts the slots of a station from an instant on. An access that would be over is due now.
    pub fn start(&mut self, station: usize, from_ns: u64, now_ns: u64) {
        let left = &mut self.left[station];
        let due_ns = from_ns + u64::from(*left) * self.slot_ns;
        let from_ns = match due_ns < now_ns {
            true => {
                *left = 0;
                now_ns
            }
            false => from_ns,
        };
        let new = (*left, station as u16);
        let group = self.group(from_ns);
        let empty = group.members.is_empty();
        group.members.insert(station);
        group.first = match group.first {
            Some(first) => Some(first.min(new)),
            None => empty.then_some(new),
        };
        self.counting.insert(station);
    }

    /// Starts to count the slots of stations that have backoffs, from now or later on.
    pub fn start_all(&mut self, stations: &Set, from_ns: u64) {
        if stations.is_empty() {
            return;
        }
        let group = self.group(from_ns);
        group.members.unite(stations);
        group.first = None;
        self.counting.unite(stations);
    }

    fn group(&mut self, from_ns: u64) -> &mut Group {
        let found = self.groups.iter().position(|g| g.from_ns == from_ns);
        let n = found.unwrap_or_else(|| {
            let stations = self.left.len();
            let fresh = || Group::new(stations);
            let mut group = self.spare.pop().unwrap_or_else(fresh);
            group.from_ns = from_ns;
            group.first = None;
            self.groups.push(group);
            self.groups.len() - 1
        });
        &mut self.groups[n]
    }

    /// Stops the countdown at a carrier that these stations sense: those that sense it in time keep the slots left.
    pub fn freeze(&mut self, senses: &Set, now_ns: u64) {
        let mut n = 0;
        while n < self.groups.len() {
            self.freeze_group(n, senses, now_ns);
            n += 1 - self.recycle(n);
        }
    }

    fn freeze_group(&mut self, n: usize, senses: &Set, now_ns: u64) {
        let (slot_ns, cca_ns) = (self.slot_ns, self.cca_ns);
        let group = &mut self.groups[n];
        let counted = counted(group.from_ns, now_ns, slot_ns);
        // Those with fewer slots are due too soon.
        let horizon_ns = now_ns.saturating_add(cca_ns).saturating_sub(group.from_ns);
        let least = horizon_ns.div_ceil(slot_ns).min(1 << 16);
        let none_near = group
            .first
            .is_some_and(|(left, _)| u64::from(left) >= least);
        let words = group.members.words_mut().iter_mut().zip(senses.words());
        for (n, (word, senses)) in words.enumerate() {
            let mut met = *word & senses;
            if met == 0 {
                continue;
            }
            let left = &mut self.left[n * 64..n * 64 + 64];
            if !none_near && u64::from(smallest(left, met)) < least {
                for station in members(0, met) {
                    let near = u64::from(left[station]) < least;
                    met &= !(u64::from(near) << station);
                }
            }
            for (left, lanes) in octets(left, met) {
                for (left, lane) in left.iter_mut().zip(lanes) {
                    *left = left.saturating_sub(counted & lane);
                }
            }
            *word &= !met;
            self.counting.words_mut()[n] &= !met;
        }
        let members = &group.members;
        group.first = group
            .first
            .filter(|(_, first)| members.contains(usize::from(*first)));
    }

    /// Stops the countdown of a station, which keeps `least` slots: whether none was left.
    pub fn suspend(&mut self, station: usize, least: u16, now_ns: u64) -> bool {
        let Some(from_ns) = self.take(station) else {
            return false;
        };
        let counted = counted(from_ns, now_ns, self.slot_ns);
        let left = self.left[station].saturating_sub(counted);
        self.left[station] = left.max(least);
        left == 0
    }

    /// Removes a station that sends, with its backoff.
    pub fn access(&mut self, station: usize) {
        self.take(station);
        self.drawn.remove(station);
    }

    /// Takes a station out of its group: since when its slots were counted.
    fn take(&mut self, station: usize) -> Option<u64> {
        if !self.counting.contains(station) {
            return None;
        }
        let n = self
            .groups
            .iter()
            .position(|group| group.members.contains(station))?;
        let group = &mut self.groups[n];
        let from_ns = group.from_ns;
        group.members.remove(station);
        group.first = group
            .first
            .filter(|(_, first)| usize::from(*first) != station);
        self.counting.remove(station);
        self.recycle(n);
        Some(from_ns)
    }

    /// Removes a group without members: how many.
    fn recycle(&mut self, n: usize) -> usize {
        let empty = self.groups[n].members.is_empty();
        if empty {
            let group = self.groups.swap_remove(n);
            self.spare.push(group);
        }
        usize::from(empty)
    }

    /// Returns the next access: when, and of which station; of equal ones that of the first station.
    pub fn first(&mut self) -> Option<(u64, usize)> {
        for n in 0..self.groups.len() {
            if self.groups[n].first.is_none() {
                self.groups[n].first = self.search(n);
            }
        }
        let slot_ns = self.slot_ns;
        let due = |group: &Group| {
            let (left, station) = group.first?;
            let at_ns = group.from_ns + u64::from(left) * slot_ns;
            Some((at_ns, usize::from(station)))
        };
        self.groups.iter().filter_map(due).min()
    }

    fn search(&mut self, n: usize) -> Option<(u16, u16)> {
        let mut best = None;
        for (n, word) in self.groups[n].members.words().iter().enumerate() {
            if *word == 0 {
                continue;
            }
            let left = &mut self.left[n * 64..n * 64 + 64];
            let least = smallest(left, *word);
            if best.is_none_or(|(before, _)| least < before) {
                let first = members(n, *word).find(|station| left[station % 64] == least);
                best = first.map(|station| (least, station as u16));
            }
        }
        best
    }
}

/// Returns the full slots of a time; a backoff is below 2^32 ns, and a division of 32 bits a third of one of 64.
fn counted(from_ns: u64, now_ns: u64, slot_ns: u64) -> u16 {
    let counted_ns = now_ns.saturating_sub(from_ns).min(u64::from(u32::MAX));
    let counted = counted_ns as u32 / slot_ns as u32;
    u16::try_from(counted).unwrap_or(u16::MAX)
}

/// Returns the least of 64 slots, of the members of a set among them.
fn smallest(left: &mut [u16], word: u64) -> u16 {
    let mut least = [u16::MAX; 8];
    for (left, lanes) in octets(left, word) {
        for n in 0..8 {
            least[n] = least[n].min(left[n] | !lanes[n]);
        }
    }
    least.into_iter().fold(u16::MAX, u16::min)
}
