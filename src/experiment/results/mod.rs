// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment measured, read from its log: figures and series for each link and
//! direction, verdicts, statistics over repeats, one experiment beside another (docs/report.md).
//!
//! A log is read line by line and only once; what is kept of it has a bounded size.

mod anova;
mod class;
mod compare;
mod compare_text;
mod difference;
mod end;
mod error;
mod estimate;
mod fairness;
mod figure;
mod fleet;
mod follow;
mod groups;
mod groups_text;
mod host;
mod kept;
mod line;
mod lines;
mod logged;
mod losses;
mod quantity;
mod read;
mod run;
mod series;
mod station;
mod summary;
mod tally;
mod totals;

pub use anova::{Anova, Pairwise, anova};
pub use class::ClassTrack;
pub use compare::{COMPARE_SCHEMA, Compared, Comparison, Side, compare};
pub use difference::Difference;
pub use end::Ending;
pub use error::ResultsError;
pub use estimate::{CONFIDENCE, Estimate, MANY, TTest, bonferroni, paired, welch, z};
pub use fairness::jain;
pub use figure::{Figure, FigureName, figures};
pub use fleet::{Fleet, FleetClock, FleetHost, FleetLine};
pub use follow::{Follow, FollowedMedium, FollowedStation};
pub use groups::{GROUPS_SCHEMA, Group, Grouped, Groups, MOST_GROUPS, compare_groups};
pub use host::{HostFigure, HostTally, HostTrack};
pub use kept::{Kept, Tail};
pub use line::Alarm;
pub use logged::Logged;
pub use losses::{Losses, Same, losses};
pub use quantity::{Quantity, Unit};
pub use run::{Change, InFleet, Metric, Run, Track, resource_name, verdict_word};
pub use series::{Point, Series};
pub use station::{Places, StationPosition, StationTrack};
pub use summary::{Row, RunEntry, Summary, VerdictMark, summarise};
pub use tally::{Share, Tally};

pub(crate) use quantity::{count, number, rate, share, time};
