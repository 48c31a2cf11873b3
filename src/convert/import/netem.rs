// SPDX-License-Identifier: MIT OR Apache-2.0
//! netem's options as iproute2 reads them (tc/q_netem.c of iproute2 6.9 and later).

use super::tc_command::{Made, Word, Words, begins};
use super::tc_shaper::Shaper;
use super::tc_units::{is_bare, percent, rate_bits, size, time_ns, whole};
use crate::text::{At, Located, Mistake, clipped};

/// A netem command; options that were not given are `None` or netem's default.
#[derive(Debug, Default)]
pub(crate) struct Netem {
    pub(crate) device: Option<String>,
    pub(crate) under: Under,
    /// The rate limiter beside it, if any.
    pub(crate) shaper: Option<Shaper>,
    /// Whether tc printed it.
    pub(crate) shown: bool,
    pub(crate) text: String,
    /// Maximum number of packets in netem, including those in flight; 1000 if not given.
    pub(crate) limit: Option<Located<u32>>,
    pub(crate) latency_ns: u64,
    pub(crate) jitter_ns: u64,
    pub(crate) delay_correlation: f64,
    pub(crate) distribution: Option<Located<String>>,
    pub(crate) loss: Option<LossOption>,
    pub(crate) ecn: bool,
    pub(crate) corrupt: Option<Chance>,
    pub(crate) duplicate: Option<Chance>,
    pub(crate) reorder: Option<Chance>,
    pub(crate) gap: Option<Located<u32>>,
    pub(crate) rate: Option<RateOption>,
    pub(crate) slot: Option<SlotOption>,
    pub(crate) seed: Option<u64>,
    /// Whether a time was given without a unit.
    pub(crate) bare_time: bool,
    delay_at: Option<At>,
    delay_correlation_at: Option<At>,
    /// Options with their values, as written.
    spans: Vec<(&'static str, At)>,
}

/// Which packets it receives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Under {
    /// All packets of the device.
    #[default]
    Nothing,
    /// Packets that no filter matches.
    Default,
    /// The first class of a qdisc that is not in the text.
    FirstOf(String),
    /// Packets classified into it.
    Class(String),
}

/// A probability and its correlation, 0.0..=1.0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Chance {
    pub probability: f64,
    pub correlation: f64,
}

/// Probabilities of netem's loss models, 0.0..=1.0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LossOption {
    Random(Chance),
    /// The four-state chain: 1 good, 2 good in a burst, 3 lost in a burst, 4 lost alone.
    State {
        p13: f64,
        p31: f64,
        p32: f64,
        p23: f64,
        p14: f64,
    },
    /// `bad` is 1-h, `good` 1-k: the loss probability in either state.
    Gemodel {
        p: f64,
        r: f64,
        bad: f64,
        good: f64,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RateOption {
    /// Before netem rounds it to whole bytes.
    pub bits: f64,
    pub packet_overhead: i32,
    /// 0: no cells.
    pub cell_size: u32,
    pub cell_overhead: i32,
    pub(crate) at: At,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotOption {
    /// Text as written.
    pub text: String,
    /// Minimum and maximum distance in ns; `None` for a distribution.
    pub distances_ns: Option<(u64, u64)>,
    /// Packets per slot; 0: any.
    pub packets: u32,
    pub bytes: u32,
    /// Whether a time was given without a unit.
    pub bare_time: bool,
}

/// In the order in which tc compares: an abbreviation stands for the first match.
const OPTIONS: [&str; 14] = [
    "limit",
    "latency",
    "delay",
    "loss",
    "drop",
    "seed",
    "ecn",
    "reorder",
    "corrupt",
    "gap",
    "duplicate",
    "distribution",
    "rate",
    "slot",
];

impl Netem {
    /// Reads the options of a netem in `text`.
    pub(crate) fn parse(
        text: &str,
        made: &mut Made,
        under: Under,
        shaper: Option<Shaper>,
    ) -> Result<Self, Mistake> {
        let words = &mut made.options;
        words.check()?;
        let mut netem = Self {
            device: made.device.map(str::to_owned),
            under,
            shaper,
            shown: made.shown,
            ..Self::default()
        };
        while let Some(word) = words.next() {
            let option = netem.option(&word, words)?;
            let span = word.at.span.start..words.read_up_to();
            netem.spans.push((option, At { source: 0, span }));
        }
        let whole = made.kind.at.span.start..words.read_up_to().max(made.kind.at.span.end);
        let all = text[whole].split_whitespace().filter(|word| *word != "\\");
        netem.text = all.collect::<Vec<_>>().join(" ");
        if netem.shown {
            // The kernel's seed, which was random.
            netem.seed = None;
        }
        netem.check()?;
        netem.check_correlation()?;
        Ok(netem)
    }

    /// Returns the position of the last of these options, or the line's start.
    pub(crate) fn place_of(&self, options: &[&str]) -> At {
        let mut spans = self.spans.iter().rev();
        let found = spans.find(|(option, _)| options.contains(option));
        let start = At {
            source: 0,
            span: 0..0,
        };
        found.map_or(start, |(_, at)| at.clone())
    }

    /// Returns the position of its first option.
    pub(crate) fn start(&self) -> At {
        let first = self.spans.first().map(|(_, at)| at.clone());
        first.unwrap_or(At {
            source: 0,
            span: 0..0,
        })
    }

    fn option(&mut self, word: &Word, words: &mut Words) -> Result<&'static str, Mistake> {
        let Some(option) = OPTIONS.iter().find(|option| begins(word.value, option)) else {
            return Err(unknown(word));
        };
        match *option {
            "limit" => {
                let value = words.argument("limit", "1000")?;
                let (value, at) = (size(&value)?, value.at);
                self.limit = Some(Located { value, at });
            }
            "latency" | "delay" => self.delay(word, words)?,
            "loss" | "drop" => self.loss(word, words)?,
            "seed" => {
                let value = words.argument("seed", "42")?;
                self.seed = Some(value.value.parse().map_err(|_| {
                    let title = format!("`{}` is not a seed", value.value);
                    Mistake::new(&value.at, title, "write a whole number, such as seed 42")
                })?);
            }
            "ecn" => self.ecn = true,
            "reorder" => self.reorder = Some(chance(words, "reorder", "25% 50%")?),
            "corrupt" => self.corrupt = Some(chance(words, "corrupt", "0.1%")?),
            "duplicate" => self.duplicate = Some(chance(words, "duplicate", "1%")?),
            "gap" => {
                let value = words.argument("gap", "5")?;
                let gap = whole(&value, 0..=u32::MAX.into())?;
                let (value, at) = (gap as u32, value.at);
                self.gap = Some(Located { value, at });
            }
            "distribution" => {
                let name = words.argument("distribution", "normal")?;
                let (value, at) = (name.value.to_owned(), name.at);
                self.distribution = Some(Located { value, at });
            }
            "rate" => self.rate = Some(rate(words)?),
            _ => self.slot = Some(slot(word, words)?),
        }
        Ok(option)
    }

    /// `delay TIME [JITTER [CORRELATION]]`.
    fn delay(&mut self, word: &Word, words: &mut Words) -> Result<(), Mistake> {
        let latency = words.argument(word.value, "100ms")?;
        self.delay_at = Some(latency.at.clone());
        self.bare_time |= is_bare(&latency);
        self.latency_ns = time_ns(&latency)?;
        // If this option has no jitter, an earlier option's jitter stays, as in tc.
        let Some(jitter) = words.number() else {
            return Ok(());
        };
        self.bare_time |= is_bare(&jitter);
        self.jitter_ns = time_ns(&jitter)?;
        if let Some(correlation) = words.number() {
            self.delay_correlation = percent(&correlation)?;
            self.delay_correlation_at = Some(correlation.at);
        }
        Ok(())
    }

    fn loss(&mut self, word: &Word, words: &mut Words) -> Result<(), Mistake> {
        let no_loss = Chance {
            probability: 0.0,
            correlation: 0.0,
        };
        let before = self.loss.take();
        if before.is_some_and(
            |loss| !matches!(loss, LossOption::Random(c) if c.probability == no_loss.probability),
        ) {
            let help = "keep one of them: netem has one loss model";
            return Err(Mistake::new(&word.at, "`loss` is given twice", help));
        }
        let model = match words.peek() {
            // The name of the model is optional.
            Some(next) if next.starts_with(|c: char| c.is_ascii_digit()) => None,
            _ => Some(words.argument(word.value, "1% or loss gemodel 1% 10%")?),
        };
        self.loss = Some(match model.as_ref().map(|model| model.value) {
            None | Some("random") => LossOption::Random(chance(words, "loss random", "1%")?),
            Some("state") => four_states(words)?,
            Some("gemodel") => gilbert_elliott(words)?,
            Some(other) if other.starts_with('.') => {
                let at = model.map_or_else(|| word.at.clone(), |model| model.at);
                return Err(no_digit(&at, other));
            }
            Some(other) => {
                let at = model.map_or_else(|| word.at.clone(), |model| model.at);
                let help = "the models are random, state and gemodel: loss random 1%, \
                            loss state 1% 10%, loss gemodel 1% 10%";
                let title = format!("`{other}` is not a loss model");
                return Err(Mistake::new(&at, title, help));
            }
        });
        Ok(())
    }

    /// Without jitter a correlation has no effect.
    fn check_correlation(&self) -> Result<(), Mistake> {
        match &self.delay_correlation_at {
            Some(at) if self.delay_correlation == 1.0 && self.jitter_ns > 0 => Err(one_for_all(at)),
            _ => Ok(()),
        }
    }

    /// Rejects what tc rejects at the end of the line.
    fn check(&self) -> Result<(), Mistake> {
        let start = At {
            source: 0,
            span: 0..0,
        };
        let delay_at = self.delay_at.as_ref().unwrap_or(&start);
        let reorders = self
            .reorder
            .is_some_and(|reorder| reorder.probability > 0.0);
        if reorders && self.latency_ns == 0 {
            let help = "packets that are not reordered need a delay: add delay 10ms";
            return Err(Mistake::new(delay_at, "`reorder` without `delay`", help));
        }
        if let (Some(gap), false) = (&self.gap, reorders)
            && gap.value > 0
        {
            let help = "tc also rejects this, although its manual shows it: for every n-th packet \
                        write reorder 100% gap n";
            return Err(Mistake::new(&gap.at, "`gap` without `reorder`", help));
        }
        let loses = match self.loss {
            Some(LossOption::Random(chance)) => chance.probability > 0.0,
            other => other.is_some(),
        };
        if self.ecn && !loses {
            let help = "netem marks packets instead of losing them: add loss 1%, or leave ecn out";
            return Err(Mistake::new(&start, "`ecn` without `loss`", help));
        }
        if let (Some(name), true) = (
            &self.distribution,
            self.latency_ns == 0 || self.jitter_ns == 0,
        ) {
            let help = "it applies to the jitter: write delay 100ms 10ms distribution normal";
            let title = "`distribution` without a delay and a jitter";
            return Err(Mistake::new(&name.at, title, help));
        }
        Ok(())
    }
}

/// `PERCENT [CORRELATION]`.
fn chance(words: &mut Words, option: &str, example: &str) -> Result<Chance, Mistake> {
    let probability = percent(&words.argument(option, example)?)?;
    let correlation = match words.number() {
        None => 0.0,
        Some(word) => match percent(&word)? {
            // Never or always, whatever the previous draw.
            1.0 if probability == 0.0 || probability == 1.0 => 0.0,
            1.0 => return Err(one_for_all(&word.at)),
            correlation => correlation,
        },
    };
    Ok(Chance {
        probability,
        correlation,
    })
}

/// With rho = 1 the kernel's get_crandom() repeats its first number forever.
fn one_for_all(at: &At) -> Mistake {
    let title = "a correlation of 100 %: netem draws once for all packets";
    Mistake::new(
        at,
        title,
        "write less than 100%, or leave it out for independent packets",
    )
}

/// `state P13 [P31 [P32 [P23 [P14]]]]`.
fn four_states(words: &mut Words) -> Result<LossOption, Mistake> {
    words.skip("p13");
    let first = words.argument("loss state", "1% 10%")?;
    let p13 = percent(&first)?;
    let mut p = [1.0 - p13, 0.0, 1.0, 0.0];
    let mut at = first.at;
    for (p, name) in p.iter_mut().zip(["p31", "p32", "p23", "p14"]) {
        // tc prints the names.
        words.skip(name);
        let Some(word) = words.number() else { break };
        *p = percent(&word)?;
        at = word.at;
    }
    let [p31, p32, p23, p14] = p;
    for (sum, names) in [(p13 + p14, "p13 and p14"), (p31 + p32, "p31 and p32")] {
        // 1 - p13 may be off by one ulp; a profile accepts no more.
        if sum > 1.0 + 1e-12 {
            let title = format!("{names} add up to more than 100 %");
            let help = "they are the transitions out of one state: lower one of them";
            return Err(Mistake::new(&at, title, help));
        }
    }
    Ok(LossOption::State {
        p13,
        p31,
        p32,
        p23,
        p14,
    })
}

/// `gemodel P [R [1-H [1-K]]]`.
fn gilbert_elliott(words: &mut Words) -> Result<LossOption, Mistake> {
    words.skip("p");
    let p = percent(&words.argument("loss gemodel", "1% 10%")?)?;
    let mut rest = [1.0 - p, 1.0, 0.0];
    for (value, name) in rest.iter_mut().zip(["r", "1-h", "1-k"]) {
        // tc prints the names.
        words.skip(name);
        let Some(word) = words.number() else { break };
        *value = percent(&word)?;
    }
    let [r, bad, good] = rest;
    Ok(LossOption::Gemodel { p, r, bad, good })
}

/// `rate RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`.
fn rate(words: &mut Words) -> Result<RateOption, Mistake> {
    const BYTES: std::ops::RangeInclusive<i64> = -64..=4096;
    let word = words.argument("rate", "1mbit")?;
    let bits = rate_bits(&word)?;
    let mut option = RateOption {
        bits,
        packet_overhead: 0,
        cell_size: 0,
        cell_overhead: 0,
        at: word.at,
    };
    // tc prints the names.
    words.skip("packetoverhead");
    if let Some(word) = words.signed_number() {
        option.packet_overhead = whole(&word, BYTES)? as i32;
    }
    words.skip("cellsize");
    if let Some(word) = words.number() {
        option.cell_size = whole(&word, 0..=65535)? as u32;
    }
    words.skip("celloverhead");
    if let Some(word) = words.signed_number() {
        option.cell_overhead = whole(&word, -65535..=255)? as i32;
    }
    Ok(option)
}

/// `slot MIN [MAX]` or `slot distribution NAME DELAY JITTER`, then `[packets N] [bytes N]`.
fn slot(word: &Word, words: &mut Words) -> Result<SlotOption, Mistake> {
    let mut text = word.value.to_owned();
    let mut distances_ns = None;
    let mut bare_time = false;
    let mut limits = [0; 2];
    let mut take = |word: &Word| {
        text.push(' ');
        text.push_str(word.value);
    };
    if let Some(least) = words.number() {
        take(&least);
        bare_time |= is_bare(&least);
        let least = time_ns(&least)?;
        distances_ns = Some((least, least));
        if let Some(most) = words.number() {
            take(&most);
            bare_time |= is_bare(&most);
            let greatest = time_ns(&most)?;
            distances_ns = Some((least, greatest));
            if greatest < least {
                let help = "write the shorter one first: slot 5ms 10ms";
                return Err(Mistake::new(
                    &most.at,
                    "the maximum slot is below the minimum",
                    help,
                ));
            }
        }
    } else {
        let kind = words.argument("slot", "800us")?;
        take(&kind);
        if kind.value != "distribution" {
            let title = format!("`{}` is not a slot", kind.value);
            let help = "write slot 5ms 10ms or slot distribution normal 10ms 1ms";
            return Err(Mistake::new(&kind.at, title, help));
        }
        take(&words.argument("distribution", "normal 10ms 1ms")?);
        for _ in 0..2 {
            let time = words.argument("slot distribution", "normal 10ms 1ms")?;
            take(&time);
            time_ns(&time)?;
        }
    }
    for (option, limit) in ["packets", "bytes"].into_iter().zip(&mut limits) {
        if words.peek().is_some_and(|word| begins(word, option)) {
            if let Some(word) = words.next() {
                take(&word);
            }
            let value = words.argument(option, "5")?;
            take(&value);
            *limit = match option {
                // tc reads this one with a sign, and without suffixes.
                "packets" => whole(&value, 0..=i32::MAX.into())? as u32,
                _ => size(&value)?,
            };
        }
    }
    let [packets, bytes] = limits;
    Ok(SlotOption {
        text,
        distances_ns,
        packets,
        bytes,
        bare_time,
    })
}

fn unknown(word: &Word) -> Mistake {
    if word.value.starts_with('.') {
        return no_digit(&word.at, word.value);
    }
    let near = crate::text::closest(word.value, OPTIONS)
        .map(|near| format!("did you mean `{near}`? "))
        .unwrap_or_default();
    let help = format!("{near}netem's options are {}", OPTIONS.join(", "));
    let title = format!("netem has no option `{}`", clipped(word.value));
    Mistake::new(&word.at, title, help)
}

/// A number that tc does not accept as one.
fn no_digit(at: &At, word: &str) -> Mistake {
    let title = format!("tc does not read `{}` as a number", clipped(word));
    let help = format!(
        "write 0{}: a number of tc begins with a digit",
        clipped(word)
    );
    Mistake::new(at, title, help)
}
