// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures of the analyses of 802.11 through TAPs and programs, which the core meets in virtual time
//! (tests/pure/medium). Ignored with the usual tests: they need a quiet machine.

use std::collections::BTreeSet;

use serde_json::Value;
use support::runs::{Folder, Ran, rtt_ms};

use super::medium::{mbit, near, scripts, shares};

/// Runs a scenario, of which `folder` has the files.
pub(super) fn run(folder: &Folder, text: &str) -> Ran {
    let scenario = folder.file("s.toml", text);
    folder.run(&format!("--sample 500ms --scenario {scenario}"), &[])
}

/// What `emud traffic` has counted as `kind`.
pub(super) fn counted(ran: &Ran, kind: &str) -> Value {
    let texts = ran.of("output").filter_map(|line| line["text"].as_str());
    let mut counts = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let count = counts.find_map(|count| count.get(kind).cloned());
    count.unwrap_or_else(|| panic!("{kind}: {}{}", ran.out, ran.err))
}

/// Acknowledged data of `emud traffic transfer`, Mbit/s.
pub(super) fn transferred(ran: &Ran) -> f64 {
    let count = counted(ran, "transferred");
    let of = |key: &str| count[key].as_f64().unwrap();
    of("bytes") * 8e3 / of("duration_ns")
}

/// n1 receives for eight seconds from the others, each of which sends twice its share.
fn saturated(radio: &str, rows: [(u32, f64); 3]) {
    for (n, expected) in rows {
        let folder = Folder::new();
        let (sender, receiver) = scripts(&folder);
        let rate = 2.0 * expected / f64::from(n);
        // All of them run after two seconds. 200 packets last for 0.4 s and more without their program.
        let text = format!(
            "[topology]\nkind = \"mesh\"\nnodes = {}\nmedium = \"wlan0\"\n\
             [medium.wlan0]\nradio = \"{radio}\"\nqueue = 200\n\
             [node.\"n*\"]\nprepare = \"ping -q -c 1 n1\"\ncommand = \"{sender} n1 12 {rate}\"\n\
             [node.n1]\ncommand = \"{receiver} 8 2\"\n",
            n + 1
        );
        let ran = run(&folder, &text);
        assert_eq!(shares(&ran).len(), n as usize, "{}", ran.out);
        // At least four standard errors: with twenty stations of 802.11b 1 %.
        let what = format!("{radio}, {n} stations");
        near(&what, mbit(&ran), expected, 0.04);
    }
}

/// Bianchi and Tinnirello 2005.
pub fn saturated_802_11b() {
    saturated("802.11b", [(5, 6.360), (10, 5.986), (20, 5.509)]);
}

pub fn saturated_802_11g() {
    saturated("802.11g", [(5, 28.990), (10, 26.867), (20, 24.470)]);
}

/// Heusse 2003: of two stations at 11 and at 1 Mbit/s each has 0.771. The losses between three cells choose the
/// rates: the slow station sends at 1 Mbit/s only, and decodes what the others send. At the receiver it is 7.5 dB
/// weaker, so neither captures.
pub fn a_slow_station_slows_the_other() {
    let folder = Folder::new();
    let (sender, receiver) = scripts(&folder);
    folder.file(
        "loss.asc",
        "ncols 3\nnrows 1\nxllcorner 0\nyllcorner 0\ncellsize 10\n\
         sender 5 5\n40 100 100\nsender 15 5\n104.5 40 100\nsender 25 5\n112 100 40\n",
    );
    let text = format!(
        "[medium.wlan0]\nrate = \"ideal\"\npropagation = {{ model = \"grid\", file = \"loss.asc\" }}\n\
         [node.\"s*\"]\nprepare = \"ping -q -c 1 middle\"\ncommand = \"{sender} middle 23 4\"\n\
         [node.middle]\nat = [5, 5]\ncommand = \"{receiver} 20\"\n\
         [node.s1]\nat = [15, 5]\n[node.s2]\nat = [25, 5]\n"
    );
    let ran = run(&folder, &text);
    let shares = shares(&ran);
    assert_eq!(shares.len(), 2, "{}", ran.out);
    // Four standard errors of the sum are 4 %, and those of the fast station's share twice as many.
    near("both", shares.iter().sum(), 2.0 * 0.771, 0.04);
    for share in shares {
        near("each", share, 0.771, 0.08);
    }
}

/// With an acknowledgement for every second segment (tests/pure/medium/tcp.rs).
pub fn one_tcp_flow() {
    for (radio, expected) in [("802.11b", 5.116), ("802.11g", 24.26)] {
        let folder = Folder::new();
        // The windows are smaller than the queue.
        let text = format!(
            "[medium.wlan0]\nradio = \"{radio}\"\nqueue = 400\n\
             [node.a]\ncommand = \"$EMUD traffic transfer b:6001 --for 10s\"\n\
             [node.b]\ncommand = \"exec $EMUD traffic receive --tcp 6001\"\nservice = true\n\
             ready = \"grep -q ':1771 .* 0A ' /proc/net/tcp\"\n"
        );
        let ran = run(&folder, &text);
        near(&format!("TCP, {radio}"), transferred(&ran), expected, 0.04);
    }
}

/// Hops of 200 m on one channel: shares of one hop's 6.227 Mbit/s.
pub fn relays_share_the_channel() {
    for (relays, share) in [(1, 0.49), (3, 0.24)] {
        let folder = Folder::new();
        let (sender, receiver) = scripts(&folder);
        let text = format!(
            "[topology]\nkind = \"chain\"\nrouters = {relays}\nmedium = \"wlan0\"\nspacing = 200\n\
             [medium.wlan0]\n\
             [node.client]\nprepare = \"ping -q -c 1 server\"\ncommand = \"{sender} server 14 9\"\n\
             [node.server]\ncommand = \"{receiver} 10 2\"\n"
        );
        let ran = run(&folder, &text);
        // Three standard errors of some 1,250 packets over four hops, and 2 % for two decimals.
        let what = format!("{} hops", relays + 1);
        near(&what, mbit(&ran), share * 6.227, 0.08);
    }
}

/// A node on two media, and a gateway to a wire: two hops on two channels are as fast as one.
pub fn a_node_on_two_media() {
    let folder = Folder::new();
    let (sender, receiver) = scripts(&folder);
    let text = format!(
        "[medium.west]\nnodes = [\"client\", \"both\"]\n[medium.east]\nnodes = [\"both\", \"gateway\"]\n\
         [link.wire]\nbetween = [\"gateway\", \"server\"]\n\
         [node.client]\ncommand = \"ping -q -c 20 -i 0.05 server && {sender} server 7 9\"\n\
         [node.both]\n[node.gateway]\n\
         [node.server]\ncommand = \"{receiver} 5\"\n"
    );
    let ran = run(&folder, &text);
    assert!(ran.out.contains("20 received"), "{}{}", ran.out, ran.err);
    near("two media and a wire", mbit(&ran), 6.227, 0.04);
}

/// RED of 30, 90 and 100 kB with ten TCP flows, as the wireless pilot had: the queue is between the first two on
/// average. A ping waits in it, and its answer in that of the acknowledgements, which is at times as long.
pub fn red_with_ten_flows() {
    let folder = Folder::new();
    let text = "[medium.wlan0]\n\
                queue = { limit = 67, kind = \"red\", min = \"30kB\", max = \"90kB\", probability = \"10%\" }\n\
                [node.a]\n\
                command = \"iperf3 -c b -P 10 -t 14 & sleep 3; ping -q -c 50 -i 0.2 b; wait $!\"\n\
                [node.b]\ncommand = \"iperf3 -s\"\nservice = true\n\
                ready = \"cat /proc/net/tcp* | grep -q ':1451 .* 0A '\"\n";
    let ran = run(&folder, text);
    let [_, mean, ..] = rtt_ms(&ran.out);
    let lines = |node: &'static str| ran.of("station").filter(move |line| line["node"] == node);
    let sum = |node, key: &str| -> u64 {
        // While it pings.
        let pinged = lines(node).skip(6).take(20);
        pinged.map(|line| line[key].as_u64().unwrap()).sum()
    };
    let queue = sum("a", "backlog_packets") as f64 / 20.0;
    let wait_ms = |node| {
        let seconds = sum(node, "interval_ns") as f64 / 1e9;
        let rate = sum(node, "sent_packets") as f64 / seconds;
        1e3 * sum(node, "backlog_packets") as f64 / 20.0 / rate
    };
    let waits = wait_ms("a") + wait_ms("b");
    let of = |line: &Value| line["dropped_aqm"].as_u64().unwrap();
    let dropped: u64 = lines("a").map(of).sum();
    println!("    {queue} packets, {mean} ms, by the queues {waits:.0}; {dropped} dropped by RED");
    // Of 1500 bytes.
    assert!((20.0..60.0).contains(&queue), "{queue} packets");
    // Four standard errors: 5 ms of the pings, and 3 and 5 packets of 20 samples of the queues.
    assert!((mean - waits).abs() < 68.0, "{mean} ms, not {waits} ms");
    assert!(mean > 45.0, "{mean} ms");
    assert!(dropped > 50, "{dropped}");
}

/// Every line of forty stations has the energy of its times, and every station has been on air.
pub fn energy_of_forty_stations() {
    let folder = Folder::new();
    let text = "[topology]\nkind = \"mesh\"\nnodes = 40\nmedium = \"wlan0\"\nspacing = \"150m\"\n\
                [medium.wlan0]\nradio = { watts = { send = 1.35, receive = 0.9, idle = 0.74 } }\n\
                [node.\"n*\"]\n\
                command = \"ping -q -c 30 -i 0.1 n$((EMUD_INDEX % EMUD_COUNT + 1))\"\n";
    let ran = run(&folder, text);
    let mut sent = BTreeSet::new();
    for line in ran.of("station") {
        let of = |key: &str| line[key].as_f64().unwrap();
        let (air, busy, time) = (of("air_ns"), of("busy_ns"), of("interval_ns"));
        let joules = (1.35 * air + 0.9 * (busy - air) + 0.74 * (time - busy)) / 1e9;
        assert!((of("energy_j") - joules).abs() < 1e-6, "{joules}: {line}");
        if air > 0.0 {
            sent.insert(line["node"].as_str().unwrap());
        }
    }
    assert_eq!(sent.len(), 40, "{sent:?}");
}

/// 1,000 at 50 Hz through nine hops without a MAC, of which each takes 61 us, and is 30 us late.
pub fn pings_without_access_control() {
    let folder = Folder::new();
    let text = "[topology]\nkind = \"chain\"\nrouters = 8\nmedium = \"wlan0\"\nspacing = 200\n\
                [medium.wlan0]\naccess = \"none\"\n\
                [node.client]\nprepare = \"ping -q -c 1 server\"\n\
                command = \"ping -q -c 1000 -i 0.02 server\"\n";
    let ran = run(&folder, text);
    assert!(ran.out.contains("1000 received"), "{}{}", ran.out, ran.err);
    let [least, mean, ..] = rtt_ms(&ran.out);
    println!("    {least} ms, mean {mean} ms");
    assert!((1.6..5.0).contains(&least), "{least} ms");
}
