// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[[state]]`: links that follow each other at random, a Markov chain in continuous time. Rate, delay
//! and loss go bad together and stay so for a while, which a model of losses alone cannot say.

use std::collections::HashSet;

use super::kinds::Share;
use super::phase::Phases;
use super::phase_read::{PhaseDraft, PhasesDraft, mistake};
use crate::abi::{self, mix};
use crate::text::{Entry, Kind, Located, Mistake, Percent, Reader, Span, Value, closest, quantity};

/// Number of states after which the chain begins again.
pub const STATES_IN_A_ROUND: usize = 1 << 16;
/// States in a plot.
const STATES_SHOWN: usize = 100;
/// So that a round has a length in ns of 64 bits.
const DWELL_NS_MAX: u64 = 24 * 3_600_000_000_000;

/// Which state follows which.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// By state: the probability of each state to be the next one, 0 for itself; 1 together.
    pub next: Vec<Vec<f64>>,
}

/// What is written of the states that follow one: their names, each with its probability.
pub(super) type NextDraft = Option<Located<Vec<(Located<String>, f64)>>>;

impl Phases {
    /// Returns the phases in the order in which they come, each with its duration in ns (0: for ever). States
    /// are random: exponential times with each one's mean, and the next one from the chain.
    pub fn sequence(&self, seed: u64) -> Vec<(usize, u64)> {
        let durations: Vec<u64> = (self.list.iter())
            .map(|phase| phase.for_ns.unwrap_or(0))
            .collect();
        let Some(chain) = &self.chain else {
            return durations.into_iter().enumerate().collect();
        };
        let uniform = |i: u64| abi::uniform(mix(mix(seed) ^ mix(i)));
        let mut state = 0;
        let one = |i: u64| {
            let here = state;
            // Above 0, so that the logarithm is finite, and at least 1 ns.
            let dwell_ns = -(1.0 - uniform(2 * i)).ln() * durations[here] as f64;
            let mut left = uniform(2 * i + 1);
            let next = chain.next[here].iter().position(|share| {
                left -= share;
                left < 0.0
            });
            // Rounding may leave a remainder: then it is the last one that can be.
            state = next.unwrap_or_else(|| last_possible(&chain.next[here]));
            (here, (dwell_ns as u64).max(1))
        };
        (0..STATES_IN_A_ROUND as u64).map(one).collect()
    }

    /// As much of the sequence as can be drawn.
    pub fn shown(&self, seed: u64) -> Vec<(usize, u64)> {
        let mut sequence = self.sequence(seed);
        if self.chain.is_some() {
            sequence.truncate(STATES_SHOWN);
        }
        sequence
    }

    /// Returns how many phases there are in a sequence.
    pub fn turns(&self) -> usize {
        match self.chain {
            Some(_) => STATES_IN_A_ROUND,
            None => self.list.len(),
        }
    }

    /// Returns `next` of a state as TOML.
    pub(super) fn next_text(&self, state: usize) -> Option<String> {
        let next = &self.chain.as_ref()?.next[state];
        let named = self
            .list
            .iter()
            .zip(next)
            .filter(|(_, share)| **share > 0.0);
        // A key cannot be text of several lines, in which a value may have its quotation marks.
        let keys = named.map(|(phase, share)| {
            let name = phase.name.clone().unwrap_or_default();
            (name, Percent(*share).to_string().into())
        });
        Some(toml::Value::Table(keys.collect()).to_string())
    }
}

fn last_possible(next: &[f64]) -> usize {
    next.iter().rposition(|share| *share > 0.0).unwrap_or(0)
}

/// Reads `next = { bad = "80%", worse = "20%" }`.
pub(super) fn read_next(reader: &mut Reader, entry: &Entry) -> NextDraft {
    let Value::Table(entries) = &entry.value.value else {
        let title = format!("`next` cannot be {}", entry.value.value.kind());
        let help = "name the states that may follow: next = { bad = \"80%\", worse = \"20%\" }";
        (reader.mistakes).push(Mistake::new(&entry.value.at, title, help));
        return None;
    };
    let mut next = Vec::new();
    for entry in entries {
        let share = reader.read(&entry.value, |v| Share::read(v, &entry.key.value))?;
        next.push((entry.key.clone(), share.value));
    }
    Some(Located {
        value: next,
        at: entry.value.at.clone(),
    })
}

/// Reads a mean duration above 0, in ns.
pub(super) fn dwell(value: &Located<Value>) -> Result<u64, Mistake> {
    match quantity(value, "dwell", "\"10s\"")? {
        Span(ns) if (1..=DWELL_NS_MAX).contains(&ns) => Ok(ns),
        Span(_) => {
            let help = "write the mean time in the state, up to 24 hours: dwell = \"10s\"";
            Err(Mistake::new(&value.at, "`dwell` is out of range", help))
        }
    }
}

impl PhasesDraft {
    /// Returns the chain; meaningless if that adds a mistake.
    pub(super) fn finish_chain(&self, reader: &mut Reader) -> Option<Chain> {
        if !self.states {
            return None;
        }
        let states = &self.list;
        if let [only] = &states[..] {
            let help = "write a second [[state]], or [link] for a link that does not change";
            mistake(reader, &only.at, "a single state", help);
            return None;
        }
        for state in states {
            if state.for_ns.is_none() {
                let help = "write the mean time in the state: dwell = \"10s\"";
                mistake(reader, &state.at, "a state without `dwell`", help);
            }
            if state.name.is_none() {
                let help = "write name = \"bad\": `next` of other states and `emud show` use it";
                mistake(reader, &state.at, "a state without `name`", help);
            }
        }
        let mut names = HashSet::new();
        for state in states {
            let name = state.name.as_ref().map(|name| name.value.as_str());
            if let Some(name) = name.filter(|name| !names.insert(*name)) {
                let title = format!("two states are called `{name}`");
                let help = "give one of them another `name`: `next` could lead to the first only";
                mistake(reader, &state.at, &title, help);
            }
        }
        let rows = states.iter().enumerate();
        let next = rows.map(|(i, state)| self.row(reader, i, state)).collect();
        Some(Chain { next })
    }

    fn row(&self, reader: &mut Reader, own: usize, state: &PhaseDraft) -> Vec<f64> {
        let count = self.list.len();
        let Some(next) = &state.next else {
            let share = 1.0 / (count as f64 - 1.0);
            return (0..count)
                .map(|i| if i == own { 0.0 } else { share })
                .collect();
        };
        let name = |state: &PhaseDraft| state.name.as_ref().map(|name| name.value.clone());
        let names: Vec<_> = self
            .list
            .iter()
            .map(|s| name(s).unwrap_or_default())
            .collect();
        let mut row = vec![0.0; count];
        for (to, share) in &next.value {
            match names.iter().position(|name| *name == to.value) {
                Some(i) if i == own => {
                    let help = "leave it out, and make `dwell` longer if it shall stay";
                    let title = "a state that follows itself";
                    reader.mistake(&to.at, title, help);
                }
                Some(i) => row[i] = *share,
                None => {
                    let near = closest(&to.value, names.iter().map(String::as_str));
                    let help = match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("states are `{}`", names.join("`, `")),
                    };
                    let title = format!("there is no state `{}`", to.value);
                    reader.mistake(&to.at, title, help);
                }
            }
        }
        let sum: f64 = row.iter().sum();
        // Room for a sum of rounded numbers.
        if (sum - 1.0).abs() > 1e-9 && reader.mistakes.is_empty() {
            let title = format!("`next` is {} together", Percent((sum * 1e9).round() / 1e9));
            let help = "one of the states follows: 100% together";
            reader.mistake(&next.at, title, help);
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::{LinkState, Profile};

    const THREE: &str = "
        [link]
        delay = \"20ms\"
        [[state]]
        name = \"good\"
        dwell = \"10s\"
        next = { bad = \"75%\", gone = \"25%\" }
        [[state]]
        name = \"bad\"
        dwell = \"2s\"
        delay = \"200ms\"
        loss = \"10%\"
        next = { good = \"100%\" }
        [[state]]
        name = \"gone\"
        dwell = \"500ms\"
        state = \"down\"
    ";

    /// Times are exponential about their means, and states follow as often as the chain says; bounds
    /// are 4 standard errors.
    #[test]
    fn the_sequence_is_the_chain() {
        let phases = Profile::parse(THREE, "test").expect("a profile").phases;
        let sequence = phases.sequence(7);
        assert_eq!(sequence.len(), phases.turns());
        assert_eq!(sequence[0].0, 0, "it begins in the first state");
        for (state, mean_ns) in [10e9, 2e9, 0.5e9].into_iter().enumerate() {
            let here = sequence.iter().filter(|(s, _)| *s == state);
            let dwells: Vec<f64> = here.map(|(_, ns)| *ns as f64).collect();
            let n = dwells.len() as f64;
            let mean = dwells.iter().sum::<f64>() / n;
            assert!(
                (mean / mean_ns - 1.0).abs() < 4.0 / n.sqrt(),
                "{state}: {mean}"
            );
            let beyond = dwells.iter().filter(|ns| **ns > mean_ns).count() as f64 / n;
            let expected = (-1f64).exp();
            let error = (expected * (1.0 - expected) / n).sqrt();
            assert!((beyond - expected).abs() < 4.0 * error, "{state}: {beyond}");
        }
        let follows = |from: usize, to: usize| {
            let pairs = sequence.windows(2).filter(|pair| pair[0].0 == from);
            let all = pairs.clone().count() as f64;
            (
                pairs.filter(|pair| pair[1].0 == to).count() as f64 / all,
                all,
            )
        };
        for (from, to, expected) in [(0, 1, 0.75f64), (0, 2, 0.25), (1, 0, 1.0), (2, 0, 0.5)] {
            let (share, all) = follows(from, to);
            let error = (expected * (1.0 - expected) / all).sqrt();
            assert!(
                (share - expected).abs() <= 4.0 * error,
                "{from} {to}: {share}"
            );
        }
        assert_eq!(
            sequence,
            phases.sequence(7),
            "the same seed, the same states"
        );
        assert_ne!(sequence, phases.sequence(8));
    }

    /// Random outages are two states: of 62 s the link is down for 2 s. The share of a sum of exponential
    /// times has a relative error of sqrt(2 / n), of which the bound is 4.
    #[test]
    fn two_states_are_an_on_off_process() {
        let text = "[link]\ndelay = \"30ms\"\n[[state]]\nname = \"on\"\ndwell = \"60s\"\n\
                    [[state]]\nname = \"off\"\ndwell = \"2s\"\nstate = \"down\"\n";
        let profile = Profile::parse(text, "test").expect("a profile");
        let states: Vec<LinkState> = profile.phases.list.iter().map(|p| p.up.state).collect();
        assert_eq!(states, [LinkState::Up, LinkState::Down]);
        let sequence = profile.phases.sequence(7);
        assert!(
            sequence.windows(2).all(|pair| pair[0].0 != pair[1].0),
            "they alternate"
        );
        let time = |of: Option<usize>| {
            let here = sequence
                .iter()
                .filter(|(state, _)| of.is_none_or(|of| of == *state));
            here.map(|(_, ns)| *ns as f64).sum::<f64>()
        };
        let share = time(Some(1)) / time(None);
        let error = (2.0 / (sequence.len() as f64 / 2.0)).sqrt();
        assert!((share / (2.0 / 62.0) - 1.0).abs() < 4.0 * error, "{share}");
    }

    #[test]
    fn states_read_back() {
        let profile = Profile::parse(THREE, "test").expect("a profile");
        let text = profile.to_toml();
        assert!(
            text.contains("next = { bad = \"75%\", gone = \"25%\" }"),
            "{text}"
        );
        assert_eq!(Profile::parse(&text, "canonical").expect(&text), profile);
        for name in ["it's \\\"bad\\\"", "bad.1", "b\\\\d #", "b\u{e4}d = 1"] {
            let named = THREE.replace("bad =", &format!("\"{name}\" ="));
            let named = named.replace("\"bad\"", &format!("\"{name}\""));
            let profile = Profile::parse(&named, "test").expect(name);
            let text = profile.to_toml();
            assert_eq!(Profile::parse(&text, "canonical").expect(&text), profile);
        }
    }

    #[test]
    fn what_is_no_chain_is_a_mistake() {
        let mistake = |states: &str| {
            let text = format!("[link]\n{states}");
            Profile::parse(&text, "test").expect_err(states).to_string()
        };
        let state = |keys: &str| format!("[[state]]\n{keys}\n");
        let good = state("name = \"good\"\ndwell = \"1s\"");
        for (states, expected) in [
            (good.clone(), "a single state"),
            (good.clone() + &state("name = \"bad\""), "without `dwell`"),
            (good.clone() + &state("dwell = \"1s\""), "without `name`"),
            (
                good.clone() + &state("name = \"bad\"\ndwell = \"1s\"\nnext = { god = \"100%\" }"),
                "did you mean `good`?",
            ),
            (
                good.clone() + &state("name = \"bad\"\ndwell = \"1s\"\nnext = { bad = \"100%\" }"),
                "follows itself",
            ),
            (
                good.clone() + &state("name = \"bad\"\ndwell = \"1s\"\nnext = { good = \"90%\" }"),
                "90% together",
            ),
            (
                good.clone() + &state("name = \"bad\"\ndwell = \"0s\""),
                "out of range",
            ),
            (
                good.clone() + &state("name = \"bad\"\nfor = \"1s\""),
                "`for`",
            ),
            (
                good.clone() + &state("names = \"bad\""),
                "did you mean `name`? (the keys are dwell,",
            ),
            (good.clone() + &good, "two states are called `good`"),
            (good.clone() + "[[phase]]\nfor = \"1s\"\n", "[[state]]"),
            (format!("phases = {{ loop = true }}\n{good}"), "mistake"),
        ] {
            let text = mistake(&states);
            assert!(
                text.contains(expected) || expected == "mistake",
                "{states}\n{text}"
            );
        }
    }
}
