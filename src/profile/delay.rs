// SPDX-License-Identifier: MIT OR Apache-2.0
//! `delay` of a link: its mean, how it varies, and whether that goes together.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::kinds::{Correlation, Duration, OneOf, Share, SomeTime};
use super::{Distribution, Reorder, Shape, file};
use crate::text::{Located, Nanoseconds, Time, braced, table};

table! {
    /// One-way propagation delay.
    #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
    pub struct Delay {
        /// Mean in ns, up to one hour; of the delayed packets.
        mean_ns: u64 = 0, "mean" as Duration;
        /// Share of the packets that are delayed; null: all.
        #[schemars(range(min = 0, max = 1))]
        share: Option<f64> = None, "share" as Share;
        /// Longest delay in ns, null: not limited; longer ones of the distribution become this one, so that `mean_ns`
        /// and the standard deviation are those of the distribution before. At least `mean_ns`.
        #[schemars(range(min = 1))]
        max_ns: Option<u64> = None, "max" as SomeTime;
    }
    beside {
        #[serde(flatten, serialize_with = "with_or_without")]
        #[schemars(with = "JitterKeys<'static>")]
        jitter: Option<Jitter> = None;
    }
    struct DelayDraft {
        jitter: JitterDraft;
    }
}

table! {
    /// How the delay varies about its mean.
    #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
    pub struct Jitter {
        /// "never" keeps the order of packets, "jitter" does not.
        reorder: Reorder = Reorder::Never, "reorder" as OneOf<Reorder>;
        /// Time between two independent delays in ns; null: derived from the spread of the
        /// distribution, and where packets overtake there is none.
        #[schemars(range(min = 1))]
        coherence_ns: Option<u64> = None, "coherence" as Duration;
        /// Correlation of the delays of successive packets of a flow; 0 if packets stay in order.
        #[schemars(range(min = 0, max = 1))]
        correlation: f64 = 0.0, "correlation" as Correlation;
    }
    beside {
        #[schemars(range(min = 0))]
        // 0 where only rows of a trace have jitter.
        /// Standard deviation in ns (for `uniform` the half-width is sqrt(3) of it).
        sd_ns: f64 = 0.0;
        #[serde(skip)]
        distribution: Shape = Shape::default();
    }
    struct JitterDraft {
        spread: Option<Located<Spread>>;
        distribution: Option<Located<Shape>>;
        samples: Option<Located<file::Measured>>;
    }
}

/// A jitter in JSON.
#[derive(Serialize, JsonSchema)]
struct JitterKeys<'a> {
    #[serde(flatten)]
    jitter: &'a Jitter,
    /// Distribution; null: constant.
    #[schemars(extend("enum" = ["uniform", "normal", "pareto", "paretonormal", "lognormal", "table", null]))]
    distribution: Option<&'static str>,
}

/// Serialises all keys, also of a delay without jitter.
fn with_or_without<S: Serializer>(jitter: &Option<Jitter>, to: S) -> Result<S::Ok, S::Error> {
    let none = Jitter::default();
    let keys = JitterKeys {
        jitter: jitter.as_ref().unwrap_or(&none),
        distribution: jitter.as_ref().map(|jitter| jitter.distribution.word()),
    };
    keys.serialize(to)
}

/// The keys of `delay` that the tables do not read.
pub(super) const OTHER_KEYS: &[&str] = &["distance", "jitter", "sd", "distribution", "samples"];

/// The two keys for the variation of the delay; each replaces the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spread {
    /// Half-width of a uniform distribution, standard deviation of the others; ns.
    Jitter(f64),
    /// Standard deviation in ns.
    Sd(f64),
}

impl Delay {
    /// Returns the keys besides mean and deviation as text, such as ` normal coherence 20ms`.
    pub fn details(&self) -> String {
        let jitter = self.jitter.as_ref().map(|jitter| {
            let distribution = jitter.distribution.word();
            format!(" {distribution}{}", jitter.plain_text(&[]))
        });
        jitter.unwrap_or_default() + &self.plain_text(&["mean"])
    }
}

impl Delay {
    /// As the value of the key: the short form where it says all.
    pub(super) fn text(&self) -> String {
        let mut keys = self.keys_text();
        if let Some(jitter) = &self.jitter {
            keys.push(spread_text(jitter));
            keys.push(format!(
                "distribution = {}",
                shape_text(&jitter.distribution)
            ));
            keys.extend(jitter.keys_text());
        }
        if self.mean_ns == 0 {
            // The default, but no table is without.
            keys.insert(0, format!("mean = \"{}\"", Time(0)));
        }
        braced(&keys, "mean")
    }
}

/// Returns a distribution as text. A table is written out: its file may be gone when this is read.
fn shape_text(shape: &Shape) -> String {
    match shape {
        Shape::Table(table) => format!("{{ table = \"{}\" }}", table.to_text()),
        named => format!("\"{}\"", named.word()),
    }
}

/// Returns the half-width that a uniform distribution was written with, if it was; else `sd`.
fn spread_text(jitter: &Jitter) -> String {
    let half = (jitter.sd_ns * 3f64.sqrt()).round();
    let uniform = jitter.distribution == Distribution::Uniform.into();
    if uniform && half / 3f64.sqrt() == jitter.sd_ns {
        return format!("jitter = \"{}\"", Nanoseconds(half));
    }
    format!("sd = \"{}\"", Nanoseconds(jitter.sd_ns))
}
