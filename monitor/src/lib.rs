// SPDX-License-Identifier: GPL-2.0-only
//! The contention monitor: criteria judged inside the kernel at the event.
//!
//! Nothing is in here yet; the crate exists so that the workspace has the
//! shape of docs/design.md from the first commit.
