// SPDX-License-Identifier: MIT OR Apache-2.0
//! emud's qdisc, compiled for this machine.

use crate::program::finds_nothing;

#[test]
fn no_packet_waits_without_a_timer() {
    finds_nothing("qdisc", &[]);
}
