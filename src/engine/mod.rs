// SPDX-License-Identifier: GPL-2.0-only
//! Where a packet waits for its departure time.

pub mod hold;
