// SPDX-License-Identifier: GPL-2.0-only
//! Rules and packets of chance against a plain implementation of "the first wins".
