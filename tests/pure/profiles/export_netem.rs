// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles as netem commands.

use emud::convert::export::{ExportDirection, ExportError, nearest_netem, netem};
use emud::profile::{Profile, shipped};

use super::import_netem::{EXAMPLES, import, names_a_file};
use super::parse;

fn export(link: &str) -> Result<String, ExportError> {
    let profile = parse(&format!("[link]\n{link}"));
    netem(&profile, ExportDirection::Up, None).map(|exported| exported.command)
}

#[test]
#[rustfmt::skip]
fn what_netem_can_do() {
    for (link, want) in [
        ("", "netem"),
        ("loss = \"1%\"", "netem loss random 1%"),
        ("loss = { model = \"bernoulli\", probability = \"1%\" }", "netem loss random 1%"),
        ("loss = { model = \"gilbert-elliott\", p = \"1%\", bad = \"70%\" }", "netem loss gemodel 1% 99% 70% 0%"),
        ("loss = { model = \"four-state\", p13 = \"1%\", p31 = \"20%\", p32 = \"5%\", p23 = \"30%\", p14 = \"1%\" }",
            "netem loss state 1% 20% 5% 30% 1%"),
        ("rate = \"1Mbit\"", "netem rate 1000000bit"),
        ("rate = \"1Mbit\"\noverhead = -14\nqueue = \"50p\"", "netem rate 1000000bit -14 limit 50"),
        ("rate = \"1Mbit\"\nqueue = { limit = \"50p\" }", "netem rate 1000000bit limit 50"),
        ("rate = { rate = \"1Mbit\", overhead = 8, cell = \"atm\" }", "netem rate 1000000bit 8 48 5"),
        ("rate = { rate = \"1Mbit\", cell = { size = 100, overhead = 5 } }", "netem rate 1000000bit 0 100 5"),
        // 8 Mbit/s are 10^6 bytes/s: 100,000 bytes in 100 ms, 67 frames.
        ("rate = \"8Mbit\"\ndelay = \"100ms\"", "netem rate 8000000bit delay 100ms limit 1067"),
        ("delay = \"100ms\"", "netem delay 100ms limit 1000000"),
        ("delay = { mean = \"100ms\", jitter = \"10ms\", reorder = \"jitter\" }",
            "netem delay 100ms 10ms limit 1000000"),
        ("delay = { mean = \"100ms\", sd = \"10ms\", reorder = \"jitter\" }",
            "netem delay 100ms 10ms distribution normal limit 1000000"),
        // sqrt(3) of the standard deviation.
        ("delay = { mean = \"100ms\", sd = \"10ms\", distribution = \"uniform\", reorder = \"jitter\" }",
            "netem delay 100ms 17.320508ms limit 1000000"),
        // Without a rate emud's queue drops nothing, so netem's limit must not.
        ("delay = \"200ms\"\nqueue = \"100p\"", "netem delay 200ms limit 1000000"),
        ("queue = \"100p\"", "netem"),
        ("delay = \"5ms\"\nreorder = { probability = \"25%\", gap = 5 }", "netem delay 5ms reorder 25% gap 5 limit 1000000"),
        ("duplicate = \"1%\"\ncorrupt = { probability = \"2%\", bits = 1, from = 0, checksum = \"keep\" }",
            "netem duplicate 1% corrupt 2%"),
        ("loss = { model = \"bernoulli\", probability = \"1%\", stage = \"before-queue\" }\nrate = \"1Mbit\"",
            "netem rate 1000000bit loss random 1%"),
        ("state = \"down\"\ndelay = \"5ms\"", "netem delay 5ms limit 0"),
        ("loss = { model = \"bernoulli\", probability = \"1%\", ecn = true }", "netem loss random 1% ecn"),
        // tc rejects ecn without a loss.
        ("loss = { model = \"bernoulli\", probability = \"0%\", ecn = true }", "netem"),
        ("loss = { model = \"gilbert-elliott\", p = \"1%\", r = \"10%\", ecn = true }",
            "netem loss gemodel 1% 10% 100% 0% ecn"),
    ] {
        let got = export(link).unwrap_or_else(|error| panic!("{link}\n{error}"));
        assert_eq!(got, want, "{link}");
    }
}

#[test]
#[rustfmt::skip]
fn what_netem_cannot_do_is_listed() {
    for (link, said) in [
        ("rate = \"1Mbit\"\nloss = \"1%\"", "loss after a rate"),
        ("rate = \"1001bit\"", "whole bytes"),
        ("rate = { rate = \"1Mbit\", burst = \"32kB\" }", "`rate.burst`"),
        ("rate = { rate = \"1Mbit\", mpu = 64 }", "`rate.mpu`"),
        ("rate = { rate = \"1Mbit\", cell = \"ptm\" }", "cell"),
        ("rate = \"1Mbit\"\nqueue = \"256KiB\"", "not in packets"),
        ("rate = \"1Mbit\"\nqueue = { limit = \"100p\", aqm = \"codel\" }", "`queue.aqm`"),
        ("rate = \"1Mbit\"\nqueue = { time = \"100ms\" }", "`queue.time`"),
        ("delay = { mean = \"50ms\", jitter = \"5ms\" }", "keeps packets in order"),
        ("rate = \"1Mbit\"\ndelay = { mean = \"50ms\", jitter = \"5ms\", reorder = \"jitter\" }", "jitter after a rate"),
        ("delay = { mean = \"50ms\", sd = \"20ms\", reorder = \"jitter\" }", "end at zero"),
        ("delay = { mean = \"50ms\", sd = \"20ms\", distribution = \"lognormal\", reorder = \"jitter\" }", "lognormal"),
        ("delay = { mean = \"50ms\", jitter = \"5ms\", reorder = \"jitter\", correlation = \"25%\" }", "`delay.correlation`"),
        ("delay = { mean = \"50ms\", share = \"5%\" }", "`delay.share`"),
        ("delay = { mean = \"50ms\", sd = \"0.4ns\", reorder = \"jitter\" }", "less than a nanosecond"),
        ("loss = \"1e-8%\"", "`loss`: netem rounds 0.00000001% to 0"),
        ("loss = { model = \"gilbert-elliott\", p = \"1e-9%\", r = \"10%\" }", "`loss`: netem rounds"),
        ("duplicate = \"1e-9%\"", "`duplicate`: netem rounds"),
        ("delay = { samples = { values = \"1 2 3 4 5 6 7 8 9 10\", unit = \"ms\" }, reorder = \"jitter\" }", "from a file"),
        ("rate = \"1Tbit\"\ndelay = \"1s\"\nqueue = \"1p\"\nshared = \"x\"", "`shared`"),
        ("rate = \"1Tbit\"\ndelay = \"60min\"", "netem's maximum limit is 4294967295"),
        ("delay = { mean = \"9s\", jitter = \"3s\", reorder = \"jitter\" }", "2.147483647 s"),
        ("loss = { model = \"bernoulli\", probability = \"1%\", correlation = \"25%\" }", "`loss.correlation`"),
        ("loss = { model = \"bit-error\", ber = 1e-6 }", "bit-error"),
        ("loss = { model = \"every\", n = 100 }", "every"),
        ("duplicate = { probability = \"1%\", correlation = \"5%\" }", "`duplicate.correlation`"),
        ("corrupt = { probability = \"1%\", bits = 3 }", "`corrupt.bits`"),
        ("corrupt = { probability = \"1%\", to = 40 }", "`corrupt.to`"),
        ("corrupt = { probability = \"1%\", checksum = \"mend\" }", "`corrupt.checksum`"),
        ("reorder = { probability = \"1%\" }", "without a delay"),
        ("trace = { rows = \"time_s,rate_Mbit;0,1;1,2\" }", "`trace`"),
        ("slot = \"10ms\"", "follow one another by the clock"),
    ] {
        let Err(error @ ExportError::Cannot(_)) = export(link) else {
            panic!("{link}: {:?}", export(link))
        };
        assert_eq!(error.exit_code(), 65);
        assert!(error.to_string().contains(said), "{link}: {said}\n{error}");
    }
    // All of them are reported, not only the first.
    let Err(ExportError::Cannot(all)) = netem(&shipped::find("hsdpa").unwrap(), ExportDirection::Up, None) else {
        panic!()
    };
    assert_eq!(all.len(), 2, "{all:?}");
}

#[test]
fn directions_and_devices() {
    let text = "[up]\nloss = \"1%\"\n[down]\nloss = \"2%\"";
    let profile = parse(text);
    let down = netem(&profile, ExportDirection::Down, Some("ifb0")).unwrap();
    assert_eq!(
        down.command,
        "tc qdisc add dev ifb0 root netem loss random 2%"
    );
    assert!(
        down.notes.iter().any(|note| note.contains("only `down`")),
        "{down:?}"
    );
    let both = netem(&parse("[link]\nloss = \"1%\""), ExportDirection::Up, None).unwrap();
    assert_eq!(both.command, "netem loss random 1%");
    // emud leaves ARP alone by default.
    assert_eq!(both.notes.len(), 1, "{both:?}");
    assert!(both.notes[0].contains("ARP"));
}

#[test]
fn what_is_beside_the_link_is_refused() {
    // A matrix and phases exclude each other.
    for (beside, part) in [
        ("[matrix]\ncapacity = 4\n", "`[matrix]`"),
        ("[[phase]]\ndelay = \"1ms\"\n", "`[[phase]]`"),
    ] {
        let text = format!(
            "seed = 1\ninstances = 8\n[link]\nrate = \"1001bit\"\n[links.lte]\ndelay = \"5ms\"\n\
             [links.dsl]\ndelay = \"9ms\"\n[[rule]]\nlink = \"lte\"\n{beside}"
        );
        for profile in [parse(&text), parse(&parse(&text).to_toml())] {
            let Err(ExportError::Cannot(all)) = netem(&profile, ExportDirection::Up, None) else {
                panic!()
            };
            for part in [
                "`[links.lte]`",
                "`[links.dsl]`",
                "`[[rule]]`",
                part,
                "whole bytes",
            ] {
                let said = all.iter().filter(|reason| reason.contains(part)).count();
                assert_eq!(said, 1, "{part}: {all:?}");
            }
            assert_eq!(all.len(), 5, "{all:?}");
        }
    }
}

#[test]
fn every_seed_is_exported() {
    for seed in [0, u64::MAX] {
        let profile = parse(&format!("seed = {seed}\n[link]\nloss = \"1%\""));
        let exported = netem(&profile, ExportDirection::Up, None).unwrap();
        assert_eq!(
            exported.command,
            format!("netem loss random 1% seed {seed}")
        );
    }
}

#[test]
fn copies_at_a_rate_differ() {
    let note = |link: &str, said: &str| {
        let text = format!("[link]\nduplicate = \"1%\"\n{link}");
        let exported = nearest_netem(&parse(&text), ExportDirection::Up, None);
        exported.notes.iter().any(|note| note.contains(said))
    };
    assert!(note("rate = \"1Mbit\"", "takes time of the rate"));
    assert!(!note("", "takes time of the rate"));
    assert!(note("loss = \"1%\"", "loses copies, too"));
}

/// Import, export and another import give the same keys, for every property that netem implements
/// as documented.
#[test]
fn import_and_export_are_inverse() {
    let keys = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with("source"))
            .map(str::to_owned)
            .collect()
    };
    let mut same = 0;
    for (command, of) in EXAMPLES.iter().filter(|(_, keys)| !names_a_file(keys)) {
        let imported = import(command).toml;
        match netem(&parse(&imported), ExportDirection::Up, Some("eth0")) {
            Ok(exported) => {
                let again = import(&exported.command).toml;
                assert_eq!(keys(&again), keys(&imported), "{}", exported.command);
                same += 1;
            }
            // netem's correlations, and its jitter before a rate.
            Err(ExportError::Cannot(reasons)) => assert!(
                ["25%", "50%", "10%", "20%", "rate 1mbit delay"]
                    .iter()
                    .any(|cause| command.contains(cause)),
                "{command} {of:?}: {reasons:?}"
            ),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(same >= 35, "{same}");
}

/// netem's limit includes packets in flight, emud's queue does not: the limits grew with every
/// conversion.
#[test]
fn a_limit_stays_what_it_is() {
    let mut profile = shipped::find("geo").unwrap();
    let first = netem(&profile, ExportDirection::Up, None).unwrap().command;
    for _ in 0..3 {
        let command = netem(&profile, ExportDirection::Up, None).unwrap().command;
        assert_eq!(command, first);
        let up = parse(&import(&command).toml).up;
        assert_eq!(up.queue, profile.up.queue);
        profile.up = up;
    }
}

/// Every shipped profile has a nearest netem, which the tc reader accepts, and the differences are
/// listed.
#[test]
fn nearest() {
    let mut exact = 0;
    for shipped in shipped::SHIPPED {
        let profile = shipped::find(shipped.name).unwrap();
        for direction in [ExportDirection::Up, ExportDirection::Down] {
            let nearest = nearest_netem(&profile, direction, None);
            match netem(&profile, direction, None) {
                Ok(same) => {
                    exact += 1;
                    assert_eq!(same, nearest);
                }
                Err(ExportError::Cannot(all)) => assert_eq!(all, nearest.differences),
                Err(other) => panic!("{other}"),
            }
            let link = match direction {
                ExportDirection::Up => &profile.up,
                ExportDirection::Down => &profile.down,
            };
            let back = parse(&import(&nearest.command).toml).up;
            let name = shipped.name;
            assert_eq!(back.delay.mean_ns, link.delay.mean_ns, "{name}");
            let bits = |rate: Option<u64>| rate.map(|bits| bits / 8);
            assert_eq!(bits(back.rate), bits(link.rate), "{name}");
            let (lost, want) = (back.loss.share_of(1514), link.loss.share_of(1514));
            assert!((lost - want).abs() < 1e-4, "{name}: {lost} {want}");
        }
    }
    assert!((15..2 * shipped::SHIPPED.len()).contains(&exact), "{exact}");
}

#[test]
#[rustfmt::skip]
fn nearest_to_what_netem_cannot_do() {
    let near = |text: &str| nearest_netem(&parse(text), ExportDirection::Up, None);
    for (link, command, differences) in [
        ("rate = \"1001bit\"", "netem rate 1000bit", 1),
        ("rate = { rate = \"1Mbit\", burst = \"32kB\", mpu = 64, cell = \"ptm\" }", "netem rate 1000000bit", 3),
        // 2 frames of 1514 bytes; 100 ms at 1 Mbit/s are 12,500 bytes, 8 frames; the least of both.
        ("rate = \"1Mbit\"\nqueue = { bytes = \"3028B\", time = \"100ms\" }", "netem rate 1000000bit limit 2", 2),
        ("rate = \"1Mbit\"\nqueue = { time = \"100ms\", ecn = \"9ms\" }", "netem rate 1000000bit limit 8", 2),
        ("delay = { mean = \"50ms\", jitter = \"5ms\" }", "netem delay 50ms 5ms limit 1000000", 1),
        ("delay = { mean = \"50ms\", sd = \"5ms\", distribution = \"lognormal\" }", "netem delay 50ms 5ms distribution paretonormal limit 1000000", 2),
        ("rate = \"1Mbit\"\nloss = \"1%\"", "netem rate 1000000bit loss random 1%", 1),
        ("loss = { model = \"every\", n = 100 }", "netem loss random 1%", 1),
        ("loss = { model = \"burst\", probability = \"1%\", length = 4 }", "netem loss gemodel 1% 25% 100% 0%", 1),
        ("loss = { model = \"bernoulli\", probability = \"1%\", correlation = \"25%\" }", "netem loss random 1%", 1),
        ("reorder = \"1%\"", "netem", 1),
        ("slot = { min = \"1ms\", max = \"2ms\", packets = 3 }", "netem slot 1ms 2ms packets 3", 1),
        // 1 s of 1 Mbit/s and 5 ms, 3 s of 5 Mbit/s and 9 ms: 32 Mbit/s * ms / 1514 bytes are 3 frames.
        ("trace = { rows = \"time_s,rate_Mbit,delay_ms;0,1,5;1,5,9\", period = \"4s\" }", "netem rate 4000000bit delay 8ms limit 1003", 1),
        ("trace = { opportunities = \"1 2 3 4\" }", "netem rate 12000000bit", 1),
        ("delay = { mean = \"1ms\", share = \"50%\" }\ntrace = { rows = \"time_s,delay_ms;0,5;1,9\" }", "netem delay 7ms limit 1000000", 2),
        // Every second packet of the first row is lost; the second row has no loss.
        ("rate = \"1Mbit\"\nloss = { probability = 0, stage = \"before-queue\", max-run = 1 }\ntrace = { rows = \"time_s,loss_%;0,100;1,0\" }", "netem rate 1000000bit loss random 25%", 2),
        ("delay = \"1ms\"\n[[phase]]\nfor = \"1s\"\ndelay = \"7ms\"\n[[phase]]\ndelay = \"9ms\"", "netem delay 7ms limit 1000000", 1),
    ] {
        let exported = near(&format!("[link]\n{link}"));
        assert_eq!(exported.command, command, "{link}");
        assert_eq!(exported.differences.len(), differences, "{link}: {:?}", exported.differences);
    }
}

/// A queue without effect does not cause losses.
#[test]
fn a_queue_without_a_rate_is_noted() {
    let profile: Profile = parse("[up]\ndelay = \"200ms\"\nqueue = \"100p\"");
    let exported = netem(&profile, ExportDirection::Up, None).unwrap();
    let said = exported.notes.iter().any(|n| n.contains("no effect"));
    assert!(said, "{:?}", exported.notes);
}

/// 100 of 10,000 rows lose everything: 1 %, however many points a plot has.
#[test]
fn the_mean_of_a_trace_is_that_of_all_rows() {
    let rows: String = (0..10_000)
        .map(|row| (row * 125, if row % 100 == 0 { "100%,5" } else { "0%,0" }))
        .map(|(ms, lost)| format!(";{ms},{lost}"))
        .collect();
    let trace = format!("trace = {{ rows = \"time_ms,loss,delay_ms{rows}\", period = \"1250s\" }}");
    let exported = nearest_netem(
        &parse(&format!("[link]\n{trace}")),
        ExportDirection::Up,
        None,
    );
    let want = "netem delay 50us loss random 1% limit 1000000";
    assert_eq!(exported.command, want);
}
