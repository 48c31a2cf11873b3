// SPDX-License-Identifier: MIT OR Apache-2.0
//! Families of metrics with label sets that borrow.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use crate::text::printable;

/// The label that is left out without a value: most links are in no container.
pub const CONTAINER: &str = "container";

/// A label set that borrows.
#[derive(Clone, Copy)]
pub struct Labels<'a, const N: usize>(pub [(&'static str, &'a str); N]);

impl<const N: usize> EncodeLabelSet for Labels<'_, N> {
    fn encode(&self, encoder: &mut LabelSetEncoder) -> fmt::Result {
        let given = |(name, value): &&(&str, &str)| *name != CONTAINER || !value.is_empty();
        for (name, value) in self.0.iter().filter(given) {
            // Any process can choose a name, and the formats have no escape for control characters.
            (*name, &*printable(value)).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

/// Adds a label; `M` is `N` + 1.
pub fn with<'a, const N: usize, const M: usize>(
    Labels(more): Labels<'a, N>,
    name: &'static str,
    value: &'a str,
) -> Labels<'a, M> {
    let mut labels = [(name, value); M];
    labels[..N].copy_from_slice(&more);
    Labels(labels)
}

/// Writes families.
pub struct Families<'a, 'b>(pub &'a mut DescriptorEncoder<'b>);

impl Families<'_, '_> {
    /// Begins a family.
    pub fn family<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        unit: Option<&'s Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit, kind)
    }

    /// Writes counters of events.
    pub fn counters<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels<'a, N>, u64)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, value) in values {
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// Writes a counter of an amount.
    pub fn totals<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        unit: Unit,
        values: impl IntoIterator<Item = (Labels<'a, N>, f64)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, Some(&unit), MetricType::Counter)?;
        for (labels, value) in values {
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, f64>(&value, None)?;
        }
        Ok(())
    }

    /// Writes gauges.
    pub fn gauges<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        values: impl IntoIterator<Item = (Labels<'a, N>, f64)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, unit.as_ref(), MetricType::Gauge)?;
        for (labels, value) in values {
            match N {
                0 => family.encode_gauge(&value)?,
                _ => family.encode_family(&labels)?.encode_gauge(&value)?,
            }
        }
        Ok(())
    }
}
