// SPDX-License-Identifier: GPL-2.0-only
//! Pairs of addresses with figures of their own.
