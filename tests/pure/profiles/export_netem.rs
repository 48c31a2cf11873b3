// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles as netem commands.

use emud::export::{Direction, ExportError, Exported, netem, netem_from_toml};
use emud::profile::shipped;

use super::import_netem::{EXAMPLES, import, names_a_file};
use super::parse;

fn export(link: &str) -> Result<String, ExportError> {
    let text = format!("[link]\n{link}");
    netem_from_toml(&text, Direction::Up, None).map(|exported| exported.command)
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
        ("delay = { mean = \"100ms\", jitter = \"10ms\", reorder = \"jitter\" }\nqueue = \"5p\"",
            "netem delay 100ms 10ms limit 5"),
        ("delay = { mean = \"100ms\", sd = \"10ms\", reorder = \"jitter\" }\nqueue = \"5p\"",
            "netem delay 100ms 10ms distribution normal limit 5"),
        // sqrt(3) of the standard deviation.
        ("delay = { mean = \"100ms\", sd = \"10ms\", distribution = \"uniform\", reorder = \"jitter\" }\nqueue = \"5p\"",
            "netem delay 100ms 17.320508ms limit 5"),
        ("delay = \"5ms\"\nqueue = \"5p\"\nreorder = { probability = \"25%\", gap = 5 }", "netem delay 5ms reorder 25% gap 5 limit 5"),
        ("duplicate = \"1%\"\ncorrupt = { probability = \"2%\", bits = 1, from = 0, checksum = \"keep\" }",
            "netem duplicate 1% corrupt 2%"),
        ("loss = { model = \"bernoulli\", probability = \"1%\", stage = \"before-queue\" }\nrate = \"1Mbit\"",
            "netem rate 1000000bit loss random 1%"),
        ("state = \"down\"\ndelay = \"5ms\"", "netem delay 5ms limit 0"),
        ("loss = { model = \"bernoulli\", probability = \"1%\", ecn = true }", "netem loss random 1% ecn"),
        // tc refuses ecn without a loss.
        ("loss = { model = \"bernoulli\", probability = \"0%\", ecn = true }", "netem loss random 0%"),
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
        ("rate = \"1Mbit\"\nloss = \"1%\"", "loss behind a rate"),
        ("rate = \"1001bit\"", "whole bytes"),
        ("rate = { rate = \"1Mbit\", burst = \"32kB\" }", "`rate.burst`"),
        ("rate = { rate = \"1Mbit\", mpu = 64 }", "`rate.mpu`"),
        ("rate = { rate = \"1Mbit\", cell = \"ptm\" }", "cell"),
        ("queue = \"256KiB\"", "not in packets"),
        ("queue = { limit = \"100p\", aqm = \"codel\" }", "`queue.aqm`"),
        ("queue = { time = \"100ms\" }", "`queue.time`"),
        ("delay = { mean = \"50ms\", jitter = \"5ms\" }", "keeps packets in order"),
        ("rate = \"1Mbit\"\ndelay = { mean = \"50ms\", jitter = \"5ms\", reorder = \"jitter\" }", "jitter behind a rate"),
        ("delay = { mean = \"50ms\", sd = \"20ms\", reorder = \"jitter\" }", "end at zero"),
        ("delay = { mean = \"50ms\", sd = \"20ms\", distribution = \"lognormal\", reorder = \"jitter\" }", "lognormal"),
        ("delay = { mean = \"50ms\", jitter = \"5ms\", reorder = \"jitter\", correlation = \"25%\" }", "`delay.correlation`"),
        ("delay = { mean = \"50ms\", share = \"5%\" }", "`delay.share`"),
        ("delay = { mean = \"50ms\", sd = \"5ms\", samples = { values = \"1\" } }", "`delay.samples`"),
        ("delay = { mean = \"50ms\", sd = \"5ms\", distribution = { table = \"\" }, reorder = \"jitter\" }", "from a file"),
        ("delay = { mean = \"9s\", jitter = \"3s\", reorder = \"jitter\" }", "2.147483647 s"),
        ("loss = { model = \"bernoulli\", probability = \"1%\", correlation = \"25%\" }", "`loss.correlation`"),
        ("loss = { model = \"bit-error\", ber = 1e-6 }", "bit-error"),
        ("loss = { model = \"every\", n = 100 }", "every"),
        ("duplicate = { probability = \"1%\", correlation = \"5%\" }", "`duplicate.correlation`"),
        ("corrupt = { probability = \"1%\", bits = 3 }", "`corrupt.bits`"),
        ("corrupt = { probability = \"1%\", to = 40 }", "`corrupt.to`"),
        ("corrupt = { probability = \"1%\", checksum = \"mend\" }", "`corrupt.checksum`"),
        ("reorder = { probability = \"1%\" }", "without a delay"),
        ("trace = \"x\"", "`trace`"),
        ("slot = \"10ms\"", "follow one another by the clock"),
    ] {
        let Err(error @ ExportError::Cannot(_)) = export(link) else {
            panic!("{link}: {:?}", export(link))
        };
        assert_eq!(error.exit_code(), 65);
        assert!(error.to_string().contains(said), "{link}: {said}\n{error}");
    }
    // All of them, not only the first.
    let Err(ExportError::Cannot(all)) = netem(&shipped::find("hsdpa").unwrap(), Direction::Up, None) else {
        panic!()
    };
    assert_eq!(all.len(), 2, "{all:?}");
}

#[test]
fn directions_and_devices() {
    let text = "[up]\nloss = \"1%\"\n[down]\nloss = \"2%\"";
    let profile = parse(text);
    let down = netem(&profile, Direction::Down, Some("ifb0")).unwrap();
    assert_eq!(
        down.command,
        "tc qdisc add dev ifb0 root netem loss random 2%"
    );
    assert!(
        down.notes.iter().any(|note| note.contains("`down` alone")),
        "{down:?}"
    );
    let both = netem(&parse("[link]\nloss = \"1%\""), Direction::Up, None).unwrap();
    assert_eq!(both.command, "netem loss random 1%");
    // emud leaves ARP alone by default.
    assert_eq!(both.notes.len(), 1, "{both:?}");
    assert!(both.notes[0].contains("ARP"));
}

#[test]
fn what_is_beside_the_link_is_refused() {
    // A matrix and phases do not go together.
    for (beside, part) in [
        ("[matrix]\ncapacity = 4\n", "`[matrix]`"),
        ("[[phase]]\nloss = \"1%\"\n", "`[[phase]]`"),
    ] {
        let text = format!(
            "seed = 1\ninstances = 8\n[link]\nrate = \"1001bit\"\n[links.lte]\ndelay = \"5ms\"\n\
             [links.dsl]\ndelay = \"9ms\"\n[[rule]]\nlink = \"lte\"\n{beside}"
        );
        for profile in [parse(&text), parse(&parse(&text).to_toml())] {
            let Err(ExportError::Cannot(all)) = netem(&profile, Direction::Up, None) else {
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
    // Whatever else a profile may have one day.
    let Err(error) = netem_from_toml("novelty = 1\n[link]\n", Direction::Up, None) else {
        panic!()
    };
    assert!(error.to_string().contains("`novelty`"), "{error}");
}

#[test]
fn every_seed_is_exported() {
    for seed in [0, u64::MAX] {
        let profile = parse(&format!("seed = {seed}\n[link]\nloss = \"1%\""));
        let exported = netem(&profile, Direction::Up, None).unwrap();
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
        let exported = netem_from_toml(&text, Direction::Up, None).unwrap();
        exported.notes.iter().any(|note| note.contains(said))
    };
    assert!(note("rate = \"1Mbit\"", "takes its turn at the rate"));
    assert!(!note("", "takes its turn at the rate"));
    assert!(note("loss = \"1%\"", "loses copies too"));
}

/// The way out and back: import, export, import again gives the same keys, for all that netem
/// does as it says. The limit is not compared: netem's counts packets on their way, emud's not.
#[test]
fn import_and_export_are_inverse() {
    let without_limit = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| !line.starts_with('#') && !line.starts_with("source"))
            .filter(|line| !line.starts_with("queue"))
            .map(str::to_owned)
            .collect()
    };
    let mut same = 0;
    for (command, keys) in EXAMPLES {
        let imported = import(command).toml;
        if !names_a_file(keys) {
            // As a profile is read and printed, not only as it was written.
            let command = |result: Result<Exported, ExportError>| result.ok().map(|e| e.command);
            let canonical = netem(&parse(&imported), Direction::Up, Some("eth0"));
            let written = netem_from_toml(&imported, Direction::Up, Some("eth0"));
            assert_eq!(command(canonical), command(written), "{imported}");
        }
        match netem_from_toml(&imported, Direction::Up, Some("eth0")) {
            Ok(exported) => {
                let again = import(&exported.command).toml;
                assert_eq!(
                    without_limit(&again),
                    without_limit(&imported),
                    "{command}\n{}",
                    exported.command
                );
                same += 1;
            }
            // netem's correlations, its jitter in front of a rate, tables by name.
            Err(ExportError::Cannot(reasons)) => assert!(
                ["25%", "50%", "10%", "20%", "rate 1mbit delay", "mine"]
                    .iter()
                    .any(|cause| command.contains(cause)),
                "{command}: {reasons:?}"
            ),
            Err(other) => panic!("{command}: {other}"),
        }
    }
    assert!(same >= 35, "{same}");
}
