// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up links, for the tests of what shows them.

use super::{DirectionSample, LinkSample, Snapshot, StreamSample};
use crate::abi;
use crate::datapath::engine::Engine;
use crate::datapath::show::counters::counters;
use crate::datapath::show::report::Holder;
use crate::histogram;

/// Packets of one delay, with counts of the rest.
fn stream(class: &str, packets: u64, delay_ns: u64, lost: u64) -> StreamSample {
    let mut counted = Box::<abi::emud_counters>::default();
    counted.packets = packets;
    counted.bytes = packets * 1000;
    counted.sent_bytes = (packets - lost) * 1000;
    counted.lost = lost;
    counted.delay_hist[histogram::number(delay_ns) as usize] = packets - lost;
    counted.delay_ns = (packets - lost) * delay_ns;
    StreamSample {
        class: class.to_owned(),
        counters: counters(&counted, &abi::emud_served::default()),
        recent: histogram::Delays::default(),
        rate_bit_s: Some(10e6),
        backlog_ns: Some(1_234_567),
        backlog_bytes: Some(1543),
        down: false,
    }
}

fn holder(alive: bool, late: u64) -> Holder {
    Holder {
        pid: 77,
        alive,
        released: 0,
        dropped: 0,
        late,
        worst_late_ns: 0,
        waiting: 0,
        disordered: 0,
        cpu: Some(1),
        realtime: true,
        locked: true,
    }
}

fn link(
    netns: &str,
    interface: &str,
    profile: &str,
    directions: Vec<DirectionSample>,
) -> LinkSample {
    LinkSample {
        netns: netns.to_owned(),
        container: String::new(),
        interface: interface.to_owned(),
        ifindex: 2,
        id: interface.bytes().map(u32::from).sum(),
        profile: profile.to_owned(),
        engine: Engine::Hold,
        seed: 42,
        reversed: false,
        irreplaceable: None,
        attached_s: 10.0,
        ends_in_s: None,
        tampered: Some(vec![]),
        checked_s: Some(0.5),
        directions,
        bottlenecks: vec![],
    }
}

fn direction(name: &'static str, late: u64, streams: Vec<StreamSample>) -> DirectionSample {
    DirectionSample {
        name,
        holder: Some(holder(true, late)),
        engine_dropped: Some(0),
        streams,
    }
}

/// Returns a snapshot of three links, `packets` after attach.
pub fn snapshot(mono_ns: u64, packets: u64) -> Snapshot {
    let up = |late| {
        direction(
            "up",
            late,
            vec![stream("", packets, 20_000_000, packets / 10)],
        )
    };
    let mut silent = stream("", 0, 0, 0);
    silent.rate_bit_s = None;
    (silent.backlog_ns, silent.backlog_bytes) = (Some(0), None);
    let mut voice = stream("voice", packets, 5_000_000, 0);
    (voice.backlog_ns, voice.backlog_bytes) = (None, None);
    let mut down = direction("down", 0, vec![silent, voice]);
    down.streams[0].down = true;
    let mut tampered = link(
        "a-namespace-with-a-long-name",
        "eth0",
        "hsdpa",
        vec![up(packets / 100)],
    );
    tampered.tampered = Some(vec!["the egress filter was deleted".to_owned()]);
    let mut fq = link("client", "eth1\u{1b}[2J", "dsl", vec![up(0)]);
    fq.engine = Engine::Fq;
    fq.directions[0].holder = None;
    Snapshot {
        mono_ns,
        links: vec![link("", "v0", "lte", vec![up(0), down]), tampered, fq],
        unreadable: vec![],
    }
}
