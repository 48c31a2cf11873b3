// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values that have been written, with their positions.

use crate::text::{At, Located};

pub(super) fn value<T: Copy>(slot: &Option<Located<T>>) -> Option<T> {
    slot.as_ref().map(|located| located.value)
}

/// Returns the last of the positions that contradict each other: that one was meant as the change.
pub(super) fn latest<'a, const N: usize>(first: &'a At, others: [Option<&'a At>; N]) -> &'a At {
    others
        .into_iter()
        .flatten()
        .fold(first, |a, b| if b.source > a.source { b } else { a })
}
