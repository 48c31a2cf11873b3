// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a run that statistics are made of.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ClassTrack, Metric, Quantity, Run, StationTrack, Track, Unit};

/// Link, direction, class, quantity and unit of a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FigureName {
    /// Name of the link or medium; for a figure that programs reported its name and unit.
    pub link: String,
    /// "up" is what the interface sends, "down" what it receives; "bottleneck": the class of one, whose
    /// delay is the wait until transmission; "station": what a station of a medium sent, whose loss is
    /// the share of packets given up; "metric": a figure that programs reported.
    pub direction: String,
    /// Named link to which rules of the profile send packets, the bottleneck and its class, or the
    /// node of the station; null: the link itself, without packets of named links.
    pub class: Option<String>,
    /// The measured quantity.
    pub quantity: Quantity,
    /// Unit of the values.
    pub unit: Unit,
}

/// A figure of one direction or class over the measured phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Link, direction, quantity and unit.
    pub name: FigureName,
    /// Value in the unit of its name.
    pub value: f64,
}

impl FigureName {
    /// Returns it as text, such as "access down class mobile delay mean".
    pub fn text(&self) -> String {
        if self.quantity == Quantity::Metric {
            return self.link.clone();
        }
        let word = if self.direction == "station" {
            ""
        } else {
            "class "
        };
        let class = self.class.iter().map(|class| format!(" {word}{class}"));
        let class: String = class.collect();
        let name = self.quantity.name();
        format!("{} {}{class} {name}", self.link, self.direction)
    }
}

/// Returns the figures that the run has.
pub fn figures(run: &Run) -> Vec<Figure> {
    let classes = run.classes.iter().flat_map(of_class);
    let stations = run.stations.iter().flat_map(of_station);
    let metrics = run.metrics.items.iter().map(of_metric);
    run.tracks
        .iter()
        .flat_map(of)
        .chain(classes)
        .chain(stations)
        .chain(metrics)
        .collect()
}

fn of_metric(metric: &Metric) -> Figure {
    let quantity = Quantity::Metric;
    Figure {
        name: FigureName {
            link: match &metric.unit {
                Some(unit) => format!("{} ({unit})", metric.name),
                None => metric.name.clone(),
            },
            direction: "metric".to_owned(),
            class: None,
            quantity,
            unit: quantity.unit(),
        },
        value: metric.mean(),
    }
}

fn of_class(class: &ClassTrack) -> Vec<Figure> {
    let all = [
        (Quantity::Throughput, class.throughput_bit_s()),
        (Quantity::DelayMean, class.mean_wait_ns()),
        (Quantity::Drops, class.drop_share()),
    ];
    let figure = |(quantity, value): (Quantity, Option<f64>)| {
        Some(Figure {
            name: FigureName {
                link: class.link.clone(),
                direction: "bottleneck".to_owned(),
                class: Some(class.name()),
                quantity,
                unit: quantity.unit(),
            },
            value: value?,
        })
    };
    all.into_iter().filter_map(figure).collect()
}

fn of_station(station: &StationTrack) -> Vec<Figure> {
    let all = [
        (Quantity::Throughput, station.sent_bit_s()),
        (Quantity::Loss, station.loss_share()),
        (Quantity::Drops, station.drop_share()),
    ];
    let figure = |(quantity, value): (Quantity, Option<f64>)| {
        Some(Figure {
            name: FigureName {
                link: station.medium.clone(),
                direction: "station".to_owned(),
                class: Some(station.node.clone()),
                quantity,
                unit: quantity.unit(),
            },
            value: value?,
        })
    };
    all.into_iter().filter_map(figure).collect()
}

fn of(track: &Track) -> Vec<Figure> {
    let tally = &track.measured;
    let delays = &tally.delays;
    let all = [
        (Quantity::Throughput, tally.throughput_bit_s()),
        (Quantity::DelayMean, delays.mean_ns()),
        (Quantity::DelayP50, delays.quantile_ns(0.5)),
        (Quantity::DelayP99, delays.quantile_ns(0.99)),
        (Quantity::Loss, tally.loss_share()),
        (Quantity::Drops, tally.drop_share()),
    ];
    let figure = |(quantity, value): (Quantity, Option<f64>)| {
        Some(Figure {
            name: FigureName {
                link: track.link.clone(),
                direction: track.direction.clone(),
                class: track.class.clone(),
                quantity,
                unit: quantity.unit(),
            },
            value: value?,
        })
    };
    all.into_iter().filter_map(figure).collect()
}
