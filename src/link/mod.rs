// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel runs, made from a profile.

pub mod quantile;
