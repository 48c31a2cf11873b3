// SPDX-License-Identifier: MIT OR Apache-2.0
//! Managers against their papers.

mod managers;
pub(crate) mod newreno;

use super::*;
