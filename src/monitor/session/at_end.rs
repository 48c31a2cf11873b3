// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment requests of its monitor at the end.

use super::judge::{Facts, OwnLinks};

/// The request for a verdict at the end.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) facts: Facts,
    pub(crate) measured: Measured,
    /// Links whose failures count; `None`: all.
    pub(crate) own: Option<OwnLinks>,
}

/// The measured phase, ns of CLOCK_MONOTONIC.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) began: Option<u64>,
    pub(crate) ended: Option<u64>,
}

impl Measured {
    /// Returns its start and its end, or `end` if it has not ended.
    pub(crate) fn until(&self, end: u64) -> Option<[u64; 2]> {
        let began = self.began?;
        Some([began, self.ended.unwrap_or(end).max(began)])
    }
}
