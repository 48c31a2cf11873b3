// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pairs of addresses with separate figures, in the kernel.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::os::fd::AsFd;

use aya::maps::{Map, MapData};

use super::{DatapathError, Maps, at, batch, grace_period, of_size};
use crate::abi;
use crate::datapath::stage::fixed::probability;
use crate::datapath::stage::rate::ns_per_byte;
use crate::profile::{Pair, Profile};

/// The result of `emud apply`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// Number of pairs given.
    pub pairs: usize,
    /// Number of those that did not exist before.
    pub new: usize,
    /// The most pairs that the maps have room for.
    pub capacity: u32,
}

/// The number of existing pairs and of those that could be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// Number of pairs that are missing.
    pub new: usize,
    /// Number of pairs that could be added.
    pub room: usize,
    /// The most pairs that the maps have room for.
    pub capacity: u32,
}

/// The two maps of pairs, for operations that aya's maps do not support.
pub(crate) struct Pairs {
    numbers: MapData,
    values: MapData,
    capacity: u32,
}

impl Pairs {
    /// Wraps the maps.
    pub(crate) fn new(numbers: Map, values: Map) -> Result<Self, DatapathError> {
        let (Map::HashMap(numbers), Map::Array(values)) = (numbers, values) else {
            return Err(DatapathError::Missing("emud_pairs"));
        };
        let key = size_of::<abi::emud_pair_key>();
        of_size("emud_pair_index", &numbers, key, size_of::<u32>())?;
        of_size(
            "emud_pairs",
            &values,
            size_of::<u32>(),
            size_of::<abi::emud_pair>(),
        )?;
        let capacity = values.info().map_err(at("emud_pairs"))?.max_entries();
        Ok(Self {
            numbers,
            values,
            capacity,
        })
    }

    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }
}

impl Maps {
    /// Writes the pairs of a profile.
    pub(crate) fn start_pairs(&mut self, profile: &Profile) -> Result<(), DatapathError> {
        let Some(matrix) = &profile.matrix else {
            return Ok(());
        };
        // Their number is within the capacity: the profile's reader has checked it.
        self.apply_pairs(&matrix.pairs, true).map(|_| ())
    }

    /// Writes pairs into the inactive half, switches the control word, and waits until no packet
    /// still uses the other half.
    ///
    /// # Errors
    /// A map cannot be read or written; the active half stays. Inner error: there is no room for
    /// the new pairs.
    pub fn apply_pairs(
        &mut self,
        pairs: &[Pair],
        replace: bool,
    ) -> Result<Result<Applied, Full>, DatapathError> {
        self.settle()?;
        let control = self.control()?;
        let (now, next) = halves(control);
        let mut all = self.read_pairs()?;
        let mut numbers = Numbers::new(&all, now, pairs);
        let room = numbers.room();
        for pair in all.iter_mut().take(numbers.before) {
            pair.half[next] = match replace {
                true => abi::emud_overlay::default(),
                false => pair.half[now],
            };
        }
        for pair in pairs {
            let key = key(pair);
            if let Some(number) = numbers.of(key) {
                all[number].key = key;
                all[number].half[next] = overlay(pair);
            }
        }
        let new = numbers.new;
        if numbers.lacking > 0 {
            return Ok(Err(Full {
                new: new + numbers.lacking,
                room,
                capacity: all.len() as u32,
            }));
        }
        self.write_pairs(&all, &numbers)?;
        self.turn_to(control.generation ^ abi::EMUD_PAIRS_GENERATION)?;
        Ok(Ok(Applied {
            pairs: pairs.len(),
            new,
            capacity: all.len() as u32,
        }))
    }

    /// Values first: a number that a packet finds must have a value. All keys: an apply that was killed behind the
    /// values has left pairs that no packet finds.
    fn write_pairs(
        &mut self,
        all: &[abi::emud_pair],
        numbers: &Numbers,
    ) -> Result<(), DatapathError> {
        if !numbers.gone.is_empty() {
            let (again, keys): (Vec<_>, Vec<_>) = numbers.gone.iter().copied().unzip();
            let map = self.pairs.numbers.fd().as_fd();
            batch::delete_all(map, &keys).map_err(at("emud_pair_index"))?;
            // No packet uses one of those numbers any more.
            grace_period()?;
            for number in again {
                self.clear_state_of_pair(number as u32)?;
            }
        }
        let map = self.pairs.values.fd().as_fd();
        batch::write_all(map, 0, &all[..numbers.used]).map_err(at("emud_pairs"))?;
        let keys: Vec<_> = all[..numbers.used].iter().map(|pair| pair.key).collect();
        let of_keys: Vec<_> = (0..keys.len() as u32).collect();
        let map = self.pairs.numbers.fd().as_fd();
        batch::insert_all(map, &keys, &of_keys).map_err(at("emud_pair_index"))
    }

    fn read_pairs(&self) -> Result<Vec<abi::emud_pair>, DatapathError> {
        let map = self.pairs.values.fd().as_fd();
        batch::read_all(map, self.pairs.capacity).map_err(at("emud_pairs"))
    }

    /// Returns the pairs that differ from the base link.
    pub fn pairs_in_force(&self) -> Result<Vec<Pair>, DatapathError> {
        let (now, _) = halves(self.control()?);
        let all = self.read_pairs()?;
        let used = all.iter().take_while(|pair| in_use(pair));
        Ok(used
            .filter_map(|pair| shown(&pair.key, &pair.half[now]))
            .collect())
    }

    /// Returns the maximum number of pairs.
    pub fn pairs_capacity(&self) -> u32 {
        self.pairs.capacity
    }
}

/// Returns the active half and the other one.
fn halves(control: abi::emud_control) -> (usize, usize) {
    match control.generation & abi::EMUD_PAIRS_GENERATION {
        0 => (0, 1),
        _ => (1, 0),
    }
}

type Key = ([u64; 2], [u64; 2]);

/// Which numbers belong to pairs, and which are free.
struct Numbers {
    known: HashMap<Key, usize>,
    /// Number of pairs with a number before.
    before: usize,
    /// Numbers from 0 on that belong to a pair now.
    used: usize,
    capacity: usize,
    /// Numbers of pairs that returned to the base link: reused when no unused number is left.
    idle: Vec<(usize, abi::emud_pair_key)>,
    /// Number of pairs that had no number.
    new: usize,
    /// Reused numbers, and the pairs that had them.
    gone: Vec<(usize, abi::emud_pair_key)>,
    /// Number of pairs without a number.
    lacking: usize,
}

impl Numbers {
    fn new(all: &[abi::emud_pair], now: usize, pairs: &[Pair]) -> Self {
        let there = || (0..).zip(all).take_while(|(_, pair)| in_use(pair));
        let known: HashMap<Key, usize> = there()
            .map(|(number, pair)| (key_of(&pair.key), number))
            .collect();
        let given: HashSet<Key> = pairs.iter().map(|pair| key_of(&key(pair))).collect();
        let idle = there()
            .filter(|(_, pair)| pair.half[now].set & abi::EMUD_SET_PAIR == 0)
            .filter(|(_, pair)| !given.contains(&key_of(&pair.key)))
            .map(|(number, pair)| (number, pair.key))
            .collect();
        Self {
            before: known.len(),
            used: known.len(),
            known,
            capacity: all.len(),
            idle,
            new: 0,
            gone: Vec::new(),
            lacking: 0,
        }
    }

    /// Returns how many new pairs can have a number.
    fn room(&self) -> usize {
        self.capacity - self.used + self.idle.len()
    }

    /// Returns the number of a pair, a new one if it has none yet.
    fn of(&mut self, key: abi::emud_pair_key) -> Option<usize> {
        if let Some(number) = self.known.get(&key_of(&key)) {
            return Some(*number);
        }
        let number = if self.used < self.capacity {
            self.used += 1;
            self.used - 1
        } else if let Some(idle) = self.idle.pop() {
            self.gone.push(idle);
            idle.0
        } else {
            self.lacking += 1;
            return None;
        };
        self.known.insert(key_of(&key), number);
        self.new += 1;
        Some(number)
    }
}

fn key_of(key: &abi::emud_pair_key) -> Key {
    (key.source, key.destination)
}

fn in_use(pair: &abi::emud_pair) -> bool {
    key_of(&pair.key) != Key::default()
}

fn key(pair: &Pair) -> abi::emud_pair_key {
    let words = |address: IpAddr| {
        let bytes = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        abi::address_words(bytes)
    };
    abi::emud_pair_key {
        source: words(pair.source),
        destination: words(pair.destination),
    }
}

fn overlay(pair: &Pair) -> abi::emud_overlay {
    let mut out = abi::emud_overlay {
        set: abi::EMUD_SET_PAIR,
        ..abi::emud_overlay::default()
    };
    if let Some(rate) = pair.rate {
        (out.rate_mult, out.rate_shift) = ns_per_byte(rate);
        out.set |= abi::EMUD_SET_RATE;
    }
    if let Some(delay_ns) = pair.delay_ns {
        out.delay_ns = delay_ns;
        out.set |= abi::EMUD_SET_DELAY;
    }
    if let Some(loss) = pair.loss {
        out.loss = probability(loss);
        out.set |= abi::EMUD_SET_LOSS;
    }
    out
}

/// Returns `None` for a pair that has returned to the base link.
fn shown(key: &abi::emud_pair_key, half: &abi::emud_overlay) -> Option<Pair> {
    let address = |words: [u64; 2]| IpAddr::from(abi::address_bytes(words)).to_canonical();
    let set = |which: abi::emud_set| half.set & which != 0;
    set(abi::EMUD_SET_PAIR).then(|| Pair {
        source: address(key.source),
        destination: address(key.destination),
        rate: set(abi::EMUD_SET_RATE).then(|| {
            let per_byte = half.rate_mult as f64 / 2f64.powi(half.rate_shift as i32);
            (8e9 / per_byte).round() as u64
        }),
        delay_ns: set(abi::EMUD_SET_DELAY).then_some(half.delay_ns),
        // Rounded to the digits that people write: the bound is off by up to 2^-64.
        loss: set(abi::EMUD_SET_LOSS)
            .then(|| (half.loss as f64 / 2f64.powi(64) * 1e15).round() / 1e15),
    })
}
