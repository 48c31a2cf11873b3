// SPDX-License-Identifier: MIT OR Apache-2.0
//! The link that `emud show` reports: compared with the configured one, and the fate of packets.

use super::*;
use emud::datapath::compiled::{compile_rules, matching};
use emud::datapath::engine::Engine;
use emud::datapath::saved::Saved;
use emud::datapath::show::link::LinkReport;
use emud::datapath::show::report::{Report, report};
use emud::datapath::show::time::PhaseReport;
use emud::datapath::stage::compile::of_number;
use emud::datapath::stage::timeline;
use emud::profile::{LinkState, Loss, Model, Profile};

/// Upwards, as attach leaves it.
struct Shown {
    bench: Bench,
    saved: Saved,
}

impl Shown {
    fn new(text: &str) -> Self {
        let profile = Profile::parse(text, "shown").unwrap_or_else(|e| panic!("{e}"));
        let sizes = Sizes::of(&profile);
        let mut bench = Bench::empty(&sizes);
        let mut links: Vec<_> = (0..)
            .zip(profile.links_of(abi::EMUD_UP))
            .map(|(n, link)| bench.compile(link, of_number(42, n), abi::EMUD_UP, stamp_place()))
            .collect();
        matching(&profile, abi::EMUD_UP, &mut links);
        timeline::phases(&profile, abi::EMUD_UP, &mut links, 1, bench.start);
        let rules = compile_rules(&profile).unwrap();
        bench.apply_with([&links, &[]], &rules).unwrap();
        let saved = saved(&profile, sizes, bench.start);
        Self { bench, saved }
    }

    /// Returns the report `ms` after the start.
    fn at(&self, ms: u64) -> Report {
        let now = self.bench.start + ms * MS;
        report("v0", 1, &self.bench.maps, &self.saved, now).unwrap()
    }

    fn own(&self, ms: u64) -> LinkReport {
        self.at(ms).up.unwrap().link
    }

    fn named(&self, ms: u64, name: &str) -> LinkReport {
        let links = self.at(ms).matching.links.into_iter();
        let mut named = links.filter(|link| link.name == name);
        let link = named.next().unwrap();
        assert!(link.down.is_none(), "not emulated");
        link.up.unwrap()
    }

    fn departure(&self, bytes: usize, at_ms: u64) -> u64 {
        let sent = self.bench.send(&udp4(bytes, 1), at_ms * MS);
        assert_eq!(sent.verdict, TC_ACT_UNSPEC);
        sent.departure - at_ms * MS
    }
}

fn saved(profile: &Profile, sizes: Sizes, epoch_ns: u64) -> Saved {
    Saved {
        outlives: true,
        bottlenecks: Default::default(),
        profile: timeline::kept(profile).to_toml(),
        seed: 42,
        engine: Engine::Fq,
        reason: String::new(),
        directions: [true, false],
        sizes,
        reversed: false,
        notes: Vec::new(),
        epoch_ns,
        attached_ns: None,
        restarted_ns: None,
        l3: false,
        mtu: None,
        txqlen_zero: false,
        clsact_created: false,
        devices: [None, None],
        mirred_pref: None,
        ahead: Default::default(),
        hold_limits: [0; 2],
        root_taken: false,
        root: None,
        gso: None,
        offloads: None,
        lro_below: vec![],
        fq_room: Default::default(),
        qdisc_room: 0,
        segmenter: None,
    }
}

/// Fixed-point figures are a part in 10^12 off, those of a table a part in 10^3.
#[track_caller]
fn near(got: f64, want: f64, part: f64) {
    assert!((got - want).abs() <= part * want.abs(), "{got} for {want}");
}

#[track_caller]
fn rate(link: &LinkReport, want: Option<f64>) {
    assert_eq!(link.rate_bit_s.is_some(), want.is_some());
    near(
        link.rate_bit_s.unwrap_or(0.0),
        want.unwrap_or(0.0),
        1.0 / 1e11,
    );
}

#[track_caller]
fn delay(link: &LinkReport, mean_ms: f64, sd_ms: f64) {
    // A constant is exact.
    let part = if sd_ms == 0.0 { 0.0 } else { 1e-3 };
    near(link.delay.mean_ns as f64, (mean_ms * 1e6).round(), part);
    let jitter = link.delay.jitter.as_ref();
    near(jitter.map_or(0.0, |jitter| jitter.sd_ns), sd_ms * 1e6, part);
    let jittered = (sd_ms > 0.0).then_some("uniform");
    assert_eq!(jitter.map(|jitter| jitter.distribution.word()), jittered);
}

fn phase(link: &LinkReport) -> (u32, u32, Option<&str>) {
    let timeline = link.timeline.as_ref().unwrap();
    let PhaseReport { number, of, name } = timeline.phase.as_ref().unwrap();
    (*number, *of, name.as_deref())
}

/// Since attach, from which its bytes count, also if traces and phases begin later.
#[test]
fn the_rate_of_a_class_is_a_mean_since_attach() {
    let mut shown = Shown::new("[link]\nclass = \"b\"\n[bottleneck.b]\nrate = \"9Mbit\"\n");
    let sent = abi::emud_class {
        sent_packets: 2_000,
        sent_bytes: 2_000_000,
        ..Default::default()
    };
    shown.bench.maps.set_class(1, &sent).unwrap();
    let rate = |shown: &Shown| shown.at(4_000).bottlenecks[0].classes[0].mean_rate_bit_s;
    assert_eq!(rate(&shown), 4_000_000);
    shown.saved.attached_ns = Some(shown.bench.start);
    shown.saved.epoch_ns = shown.bench.start + 3_000 * MS;
    assert_eq!(rate(&shown), 4_000_000);
    let text = shown.at(4_000).bottlenecks[0].text();
    assert!(text.contains("4Mbit on average since attach"), "{text}");
}

#[test]
fn the_phases_link_is_in_force() {
    let shown = Shown::new(
        r#"
        phases = { loop = true }
        [link]
        delay = "1ms"
        [links.slow]
        rate = "1Mbit"
        queue = "20kB"
        delay = "80ms"
        loss = { model = "burst", probability = "1%", length = 3 }
        [links.fast]
        rate = "8Mbit"
        delay = { mean = "20ms", jitter = "3ms" }
        loss = "5%"
        [[phase]]
        for = "300ms"
        link = "slow"
        [[phase]]
        for = "100ms"
        state = "down"
        [[phase]]
        for = "300ms"
        link = "fast"
        loss = "0%"
        [[phase]]
        for = "300ms"
        name = "own link"
        "#,
    );
    for ms in [0, 299, 1000] {
        let slow = shown.own(ms);
        assert_eq!(phase(&slow), (1, 4, Some("slow")), "{ms} ms");
        rate(&slow, Some(1e6));
        delay(&slow, 80.0, 0.0);
        near(slow.loss.unwrap(), 0.03 / 1.02, 1e-9);
        assert_eq!(slow.loss_model.unwrap().model.name(), Model::Burst);
        let queue = serde_json::to_value(slow.queue).unwrap();
        assert_eq!(queue, serde_json::json!({ "bytes": 20_000 }));
        assert_eq!(slow.state, LinkState::Up);
    }
    let down = shown.own(300);
    assert_eq!(phase(&down), (2, 4, None));
    assert_eq!(down.state, LinkState::Down);
    // What was sent before goes on as it did.
    rate(&down, Some(1e6));
    let fast = shown.own(400);
    assert_eq!(phase(&fast), (3, 4, Some("fast")));
    rate(&fast, Some(8e6));
    delay(&fast, 20.0, 3.0 / 3f64.sqrt());
    // The phase's own, not its link's.
    assert_eq!(fast.loss, Some(0.0));
    let own = shown.own(999);
    assert_eq!(phase(&own), (4, 4, Some("own link")));
    rate(&own, None);
    delay(&own, 1.0, 0.0);
    assert_eq!(own.delay.mean_ns, shown.departure(100, 999));
    // And the link itself is what it was.
    let fast = shown.named(0, "fast");
    assert!(fast.timeline.is_none());
    assert_eq!(fast.loss_model.unwrap().model.name(), Model::Bernoulli);
    near(fast.loss.unwrap(), 0.05, 1e-9);
}

/// `emud set state=down` changes the link itself, not its phases.
#[test]
fn a_link_that_is_down_is_shown_so_in_all_phases() {
    let shown =
        Shown::new("[link]\nstate = \"down\"\n[[phase]]\nstate = \"up\"\ndelay = \"1ms\"\n");
    assert_eq!(shown.own(0).state, LinkState::Down);
}

#[test]
fn a_ramps_row_is_in_force() {
    let shown = Shown::new(
        r#"
        [link]
        rate = "1Mbit"
        delay = "10ms"
        loss = "0%"
        [[phase]]
        for = "1s"
        [[phase]]
        for = "4s"
        ramp = true
        rate = "9Mbit"
        delay = "50ms"
        loss = "40%"
        [[phase]]
        rate = "9Mbit"
        "#,
    );
    // The middle of the 201st of 400 rows.
    let half = shown.own(3_005);
    let part = 200.5 / 400.0;
    assert_eq!(phase(&half), (2, 3, None));
    assert_eq!(half.timeline.as_ref().unwrap().row, 1 + 200);
    rate(&half, Some(1e6 + 8e6 * part));
    delay(&half, 10.0 + 40.0 * part, 0.0);
    near(half.loss.unwrap(), 0.4 * part, 1e-9);
    assert_eq!(phase(&shown.own(9_000)), (3, 3, None));
}

#[test]
fn the_traces_row_is_in_force() {
    let shown = Shown::new(
        r#"
        [link]
        queue = "30kB"
        loss = { probability = "7%", correlation = "50%" }
        trace = { rows = "time_ms,rate_Mbit,delay_ms,jitter_ms,loss_%;0,8,1,0.1,0;100,0,30,0,2;200,2,5,10,100", period = "300ms" }
        "#,
    );
    let first = shown.own(0);
    rate(&first, Some(8e6));
    delay(&first, 1.0, 0.1 / 3f64.sqrt());
    assert_eq!(first.loss, Some(0.0));
    assert!(first.loss_model.is_none());
    assert!(first.timeline.as_ref().unwrap().phase.is_none());
    let second = shown.own(199);
    rate(&second, Some(0.0));
    delay(&second, 30.0, 0.0);
    near(second.loss.unwrap(), 0.02, 1e-9);
    let third = shown.own(500);
    rate(&third, Some(2e6));
    // 5 ms, 10 ms up and down, cut off at 0: 0.75 of it uniform up to 15 ms.
    let (mean, square) = (0.75 * 7.5, 0.75 * 75.0);
    delay(&third, mean, (square - mean * mean).sqrt());
    assert_eq!(third.loss, Some(1.0));
    assert_eq!(third.loss_model, Some(Loss::from(1.0)));
    // Bytes are bytes, whatever the rate.
    let queue = serde_json::to_value(third.queue).unwrap();
    assert_eq!(queue, serde_json::json!({ "bytes": 30_000 }));
}

/// The content of the queue, whatever the rate is or becomes.
#[test]
fn a_backlog_has_its_bytes() {
    let shown = Shown::new(
        "[link]\nqueue = \"1MB\"\n\
         trace = { rows = \"time_ms,rate_Mbit;0,8;100,0;200,2\", period = \"10s\" }\n",
    );
    // 100 of them are sent until 100 ms, the others from 200 ms on in 4 ms each.
    assert_eq!(shown.departure(1000, 0), MS);
    (1..150).for_each(|_| assert!(shown.departure(1000, 0) > 0));
    for (ms, bytes) in [
        (0, 150_000),
        (50, 100_000),
        (150, 50_000),
        (300, 25_000),
        (500, 0),
    ] {
        let left = shown.own(ms).backlog_bytes.unwrap();
        assert!(left.abs_diff(bytes) <= 1, "{ms} ms: {left}");
    }
    // 6,250 bytes of them in the first phase.
    let shown = Shown::new(HALVES);
    (0..20).for_each(|_| assert!(shown.departure(1000, 0) > 0));
    assert_eq!(shown.own(50).backlog_bytes, Some(13_750));
    assert_eq!(shown.own(9_000).backlog_bytes, Some(0));
    let shown = Shown::new("[link]\nrate = \"8Mbit\"\n");
    (0..20).for_each(|_| assert!(shown.departure(1000, 0) > 0));
    assert_eq!(shown.own(5).backlog_bytes, Some(15_000));
    assert_eq!(
        Shown::new("[link]\ndelay = \"1ms\"\n").own(0).backlog_bytes,
        None
    );
}

const HALVES: &str = "[link]\nrate = \"1Mbit\"\n[links.fast]\nrate = \"10Mbit\"\n[[phase]]\nfor = \"100ms\"\n\
                      [[phase]]\nlink = \"fast\"\n";

#[test]
fn rows_of_one_figure_leave_the_others_to_the_link() {
    let shown = Shown::new(
        r#"
        [link]
        rate = "8Mbit"
        delay = "20ms"
        loss = "3%"
        [links.far]
        rate = "4Mbit"
        trace = { rows = "time_ms,delay_ms;0,1;100,3600" }
        [links.shaky]
        delay = "20ms"
        trace = { rows = "time_ms,jitter_ms;0,2;100,12" }
        [links.mahimahi]
        delay = "7ms"
        trace = { opportunities = "1 2x3 6" }
        [[rule]]
        match = { protocol = "udp" }
        link = "far"
        "#,
    );
    let far = shown.named(50, "far");
    rate(&far, Some(4e6));
    delay(&far, 1.0, 0.0);
    assert_eq!(shown.departure(1000, 50), 2 * MS + far.delay.mean_ns);
    delay(&shown.named(150, "far"), 3600.0, 0.0);
    let shaky = shown.named(0, "shaky");
    delay(&shaky, 20.0, 2.0 / 3f64.sqrt());
    assert_eq!(shaky.delay.jitter.unwrap().reorder, Reorder::Never);
    let mahimahi = shown.named(0, "mahimahi");
    // 5 of 1500 bytes in 6 ms.
    rate(&mahimahi, Some(10e6));
    delay(&mahimahi, 7.0, 0.0);
    let own = shown.own(50);
    assert!(own.timeline.is_none());
    near(own.loss.unwrap(), 0.03, 1e-9);
    delay(&own, 20.0, 0.0);
}

#[test]
fn a_named_link_has_all_that_the_own_one_has() {
    let shown = Shown::new(
        r#"
        [link]
        rate = "8Mbit"
        queue = "50p"
        shared = "uplink"
        [links.far]
        delay = "100ms"
        shared = "uplink"
        loss = { probability = "2%", ecn = true }
        duplicate = "1%"
        slot = "10ms"
        [links.off]
        state = "down"
        corrupt = "3%"
        queue = { limit = "9p", aqm = "codel" }
        rate = "1Mbit"
        [[rule]]
        match = { destination-port = 9 }
        link = "off"
        "#,
    );
    let far = shown.named(0, "far");
    // Written with the profile's own link.
    rate(&far, Some(8e6));
    assert_eq!(far.shared.as_deref(), Some("uplink"));
    assert_eq!(shown.own(0).shared.as_deref(), Some("uplink"));
    delay(&far, 100.0, 0.0);
    assert!(far.loss_model.unwrap().ecn);
    near(far.duplicate.unwrap().probability, 0.01, 1e-9);
    assert_eq!(far.slot.unwrap().min_ns, 10 * MS);
    let sent = shown.bench.send(&udp4(1000, 1), 0);
    assert_eq!(sent.verdict, TC_ACT_STOLEN);
    let off = shown.named(0, "off");
    assert_eq!((off.counters.packets, off.counters.down), (1, 1));
    assert_eq!((off.state, off.shared), (LinkState::Down, None));
    assert!(off.aqm.is_some() && off.corrupt.is_some());
    let queue = serde_json::to_value(off.queue).unwrap();
    assert_eq!(queue, serde_json::json!({ "packets": 9 }));
    // Not the rule's: 10 packets of 1 ms in the queue of both.
    let mut other = udp4(1000, 1);
    other[37] = 10;
    for _ in 0..10 {
        shown.bench.send(&other, 0);
    }
    let backlogs = [shown.own(0), shown.named(0, "far"), shown.named(0, "off")];
    assert_eq!(
        backlogs.map(|l| l.backlog_ns),
        [Some(10 * MS), Some(10 * MS), Some(0)]
    );
}

/// Packets of instances and of pairs wait in their own.
#[test]
fn a_backlog_in_several_queues_is_unknown() {
    let shown = Shown::new(
        r#"
        [link]
        rate = "8Mbit"
        [links.other]
        rate = "8Mbit"
        [[rule]]
        match = { protocol = "tcp" }
        link = "other"
        per = "flow"
        direction = "up"
        "#,
    );
    shown.departure(1000, 0);
    let [own, other] = [shown.own(0), shown.named(0, "other")];
    assert_eq!((own.backlog_ns, own.backlog_bytes), (Some(MS), Some(1000)));
    assert_eq!((other.backlog_ns, other.backlog_bytes), (None, None));
    let shown = Shown::new(
        "[link]\nrate = \"8Mbit\"\n[links.far]\nrate = \"8Mbit\"\n[matrix]\nlink = \"far\"\ncapacity = 1\n",
    );
    let backlogs = [shown.own(0), shown.named(0, "far")].map(|l| l.backlog_ns);
    assert_eq!(backlogs, [Some(0), None]);
}

#[test]
fn what_was_sent_is_counted_with_its_delay() {
    let shown = Shown::new(
        r#"
        [up]
        delay = "30ms"
        loss = { model = "every", n = 2 }
        "#,
    );
    for _ in 0..4 {
        shown.bench.send(&udp4(1000, 1), 0);
    }
    let counters = shown.own(0).counters;
    let each = counters.bytes / 4;
    assert_eq!((counters.packets, counters.lost), (4, 2));
    assert_eq!(counters.sent_bytes, 2 * each);
    assert_eq!(counters.delay_ns, 2 * 30 * MS);
}
