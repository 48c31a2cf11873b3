// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands on links whose packets do not matter.

use aya::programs::loaded_programs;
use emud::abi;
use emud::datapath::maps::Maps;
use emud::datapath::stage::compile::{PacketTarget, compile};
use emud::datapath::stage::features;
use emud::netlink::{Hook, Netlink};
use emud::profile::Profile;
use serde_json::Value;
use support::lab::{Engine, Lab, emud, inside};

use crate::classifier::fitted::memory;

/// It would be accepted and do nothing.
#[test]
fn a_direction_that_is_not_emulated_cannot_be_set() {
    let lab = Lab::new();
    let profile = "[link]\ndelay = \"1ms\"\n[links.far]\ndelay = \"2ms\"\n";
    lab.attach(Engine::Hold, profile, &["--direction", "up"]);
    let before = lab.show();
    for of_down in [
        "down.delay=5ms",
        " down . delay=5ms",
        "links.far.down.delay=5ms",
    ] {
        let said = lab.emud(&["set", "va", "up.loss=1%", of_down]).expect(64);
        assert!(said.err.contains("down is not emulated"), "{}", said.err);
    }
    assert_eq!(lab.show()["up"]["loss"], before["up"]["loss"]);
    lab.emud(&["set", "va", "links.far.up.delay=5ms", "loss=1%"])
        .expect(0);
    assert_eq!(lab.show()["links"][0]["up"]["delay"]["mean_ns"], 5_000_000);
}

/// A device without an Ethernet header has no segmenter, which would compute the checksum before the damage.
#[test]
fn damage_that_no_receiver_would_notice_is_noted() {
    let lab = Lab::new();
    lab.in_a("ip tuntap add ta mode tun; ip link set ta up");
    let noted = |what: &str| {
        let mut shown = lab.emud(&["show", "ta", "--json"]).expect(0).json();
        let notes = shown["interfaces"][0]["notes"].take();
        println!("{what}: {notes}");
        let of_sctp = |note: &&Value| note.as_str().unwrap().contains("SCTP");
        notes.as_array().unwrap().iter().filter(of_sctp).count()
    };
    let attach = |device: &str, profile: &str| {
        let profile = lab.profile(profile);
        let args = ["attach", device, "--engine", "hold", "-p", &profile];
        lab.emud(&args).expect(0).out
    };
    for (checksum, notes) in [("keep", 1), ("mend", 0)] {
        let corrupt = format!("{{ probability = \"1%\", checksum = \"{checksum}\" }}");
        attach("ta", &format!("[up]\ncorrupt = {corrupt}\n"));
        assert_eq!(noted(checksum), notes);
        lab.emud(&["detach", "ta"]).expect(0);
    }
    let said = attach("va", "[link]\ncorrupt = \"1%\"\n");
    assert!(!said.contains("note: corrupt: "), "{said}");
    attach("ta", "[up]\ndelay = \"1ms\"\n");
    // What a change adds is printed once.
    for (change, printed, notes) in [
        ("up.delay=2ms", false, 0),
        ("up.corrupt=1%", true, 1),
        ("up.corrupt=2%", false, 1),
        ("up.corrupt.checksum=mend", false, 0),
    ] {
        let said = lab.emud(&["set", "ta", change]).expect(0).out;
        assert_eq!(said.contains("ta: note: corrupt: "), printed, "{said}");
        assert_eq!(noted(change), notes);
    }
}

/// Not with the largest one, which does everything.
#[test]
fn attach_takes_the_classifier_that_the_link_needs() {
    const DELAY: &str = "[link]\ndelay = \"5ms\"\n";
    let lab = Lab::new();
    lab.attach(Engine::Hold, DELAY, &[]);
    let program = inside(&lab.a, || {
        let mut nl = Netlink::open().unwrap();
        let va = nl.link("va").unwrap().index;
        let filters = nl.filters(va, Hook::Egress).unwrap();
        filters[0].bpf.as_ref().expect("of BPF").program_id
    });
    let program = program.join().unwrap();
    let profile = Profile::parse(DELAY, "delay").unwrap();
    let place = PacketTarget {
        release: abi::EMUD_RELEASE_HOLD,
        ifindex: 1,
        l3: false,
    };
    let both = [(&profile.up, abi::EMUD_UP), (&profile.down, abi::EMUD_DOWN)];
    let [up, down] = both.map(|(link, d)| [compile(link, 42, d, 0, place).unwrap()]);
    let control = Maps::of_program(program).unwrap().control().unwrap();
    assert_eq!(control.features, features::of([&up, &down]));
    let mut programs = loaded_programs().flatten();
    let program = programs.find(|info| info.id() == program).unwrap();
    let bytes = memory(&program);
    assert!(bytes < 1 << 20, "{bytes}");
}

/// The first line has no figures of an interval, but what is wrong.
#[test]
fn every_line_of_top_was_checked_and_has_the_time_of_its_reading() {
    let lab = Lab::new();
    lab.attach(
        Engine::Hold,
        "[link]\ndelay = \"1ms\"\n",
        &["--direction", "up"],
    );
    lab.in_a("tc qdisc del dev va clsact");
    let said = emud(&["top", "--json", "--count", "2", "--every", "100ms"]).expect(0);
    let lines: Vec<Value> = (said.out.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for line in &lines {
        let mut rows = line["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["netns"] == lab.a).unwrap();
        assert_eq!(row["trouble"], serde_json::json!(["TAMPERED"]), "{row}");
    }
    let [first, second] = [0, 1].map(|n: usize| lines[n]["mono_ns"].as_u64().unwrap());
    let interval_s = lines[1]["interval_s"].as_f64().unwrap();
    assert_eq!((second - first) as f64 / 1e9, interval_s);
}

#[test]
fn pairs_are_applied_and_printed() {
    let lab = Lab::new();
    let profile = "[link]\ndelay = \"5ms\"\n[matrix]\ncapacity = 4\n";
    lab.attach(Engine::Hold, profile, &[]);
    let pairs = lab.profile("source,destination,delay\n10.0.0.1,10.0.0.2,50ms\n");
    lab.emud(&["apply", &pairs, "va"]).expect(0);
    let shown = lab.emud(&["show", "--matrix", "va"]).expect(0).out;
    assert!(shown.contains("10.0.0.1,10.0.0.2,,50ms,"), "{shown}");
}

#[test]
fn reverse_exchanges_the_directions() {
    let lab = Lab::new();
    let profile = "[up]\ndelay = \"20ms\"\n[down]\ndelay = \"60ms\"\n";
    lab.attach(Engine::Hold, profile, &["--reverse"]);
    let shown = lab.show();
    let mean = |direction: &str| shown[direction]["delay"]["mean_ns"].as_u64();
    let expected = [60_000_000, 20_000_000].map(Some);
    assert_eq!(["up", "down"].map(mean), expected);
}
