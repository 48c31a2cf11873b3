// SPDX-License-Identifier: GPL-2.0-only
//! Makes a real network interface behave like a described link.

pub mod netlink;
pub mod profile;
