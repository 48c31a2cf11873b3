// SPDX-License-Identifier: MIT OR Apache-2.0
//! How figures are computed from what was measured.

use crate::pktgen::{self, Sent};

const PKTGEN: &str = "\
Params: count 5000  min_pkt_size: 200  max_pkt_size: 200
     frags: 0  delay: 0  clone_skb: 0  ifname: va@0
Current:
     pkts-sofar: 5000  errors: 3
     started: 93421021us  stopped: 93462418us idle: 12us
Result: OK: 41397(c41385+d12) usec, 5000 (200byte,0frags)
  120781pps 193Mb/sec (193249600bps) errors: 3
";

#[test]
fn the_time_of_pktgen_is_that_of_its_result() {
    let sent = Sent {
        took_us: 41_397,
        refused: 3,
    };
    assert_eq!(pktgen::result(PKTGEN, 5000), Some(sent));
    assert_eq!(pktgen::result(PKTGEN, 50), None);
    let running = PKTGEN.replace("Result: OK", "Result: Starting");
    assert_eq!(pktgen::result(&running, 5000), None);
}
