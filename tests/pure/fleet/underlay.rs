// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::fleet::underlay::{Added, change, reduce};
use emud::profile::Profile;
use emud::profile::quantile::delay_table;
use proptest::prelude::*;
use support::chance::same_cases;

fn profile(link: &str) -> Profile {
    Profile::parse(&format!("[link]\n{link}\n"), "t").unwrap_or_else(|e| panic!("{e}"))
}

fn reduced(link: &str, own_ns: u64, tolerance_ns: u64) -> Result<(Profile, Vec<String>), String> {
    let added = Added {
        own_ns,
        ..Added::default()
    };
    let mut notes = Vec::new();
    let profile = reduce(&profile(link), &added, tolerance_ns, &mut notes)?;
    Ok((profile, notes))
}

proptest! {
    #![proptest_config(same_cases(256))]

    #[test]
    fn the_sum_is_what_was_asked_for(asked_us in 1_u64..1_000_000, part in 0.0_f64..1.0) {
        let added = (asked_us as f64 * 1e3 * part) as u64;
        let (profile, notes) = reduced(&format!("delay = \"{asked_us}us\""), added, 0).unwrap();
        prop_assert_eq!(profile.up.delay.mean_ns + added, asked_us * 1000);
        prop_assert_eq!(profile.down.delay.mean_ns + added, asked_us * 1000);
        prop_assert!(notes.is_empty());
    }
}

#[test]
fn all_but_the_delay_is_kept() {
    let text = "rate = \"10Mbit\"\nqueue = \"50ms\"\nloss = \"1%\"\ndelay = \"20ms\"";
    let asked = profile(text);
    let (mut given, _) = reduced(text, 1_000_000, 0).unwrap();
    for link in [&mut given.up, &mut given.down] {
        link.delay.mean_ns += 1_000_000;
    }
    assert_eq!(given, asked);
}

#[test]
fn jitter_stays_about_the_mean() {
    let text =
        "delay = { mean = \"20ms\", sd = \"2ms\", distribution = \"normal\", max = \"40ms\" }";
    let (given, _) = reduced(text, 1_000_000, 0).unwrap();
    let delay = given.up.delay;
    assert_eq!(delay.mean_ns, 19_000_000);
    assert_eq!(delay.max_ns, Some(39_000_000));
    assert_eq!(delay.jitter.unwrap().sd_ns, 2e6);
}

#[test]
fn a_little_too_slow_is_noted() {
    let (given, notes) = reduced("delay = \"30us\"", 50_000, 100_000).unwrap();
    assert_eq!(given.up.delay.mean_ns, 0);
    assert!(
        notes[0].contains("30us") && notes[0].contains("50us"),
        "{notes:?}"
    );
}

#[test]
fn every_phase_is_reduced() {
    let text = "[[phase]]\nfor = \"1s\"\ndelay = \"5ms\"\n[[phase]]\nup.delay = \"9ms\"\ndown.delay = \"3ms\"\n";
    let asked = Profile::parse(text, "t").unwrap_or_else(|e| panic!("{e}"));
    let added = Added {
        own_ns: 1_000_000,
        ..Added::default()
    };
    let given = reduce(&asked, &added, 0, &mut vec![]).unwrap();
    let ms = |phase: &emud::profile::Phase| {
        [&phase.up, &phase.down].map(|l| l.delay.mean_ns / 1_000_000)
    };
    assert_eq!(
        given.phases.list.iter().map(ms).collect::<Vec<_>>(),
        [[4, 4], [8, 2]]
    );
}

#[test]
fn much_too_slow_is_refused() {
    let why = reduced("delay = \"1ms\"", 1_200_000, 100_000).unwrap_err();
    assert!(why.contains("1ms") && why.contains("1.2ms"), "{why}");
}

#[test]
fn what_cannot_be_shifted_is_refused() {
    for (link, why) in [
        ("delay = { mean = \"20ms\", share = \"50%\" }", "share"),
        ("delay = \"20ms\"\nreorder = \"5%\"", "without delay"),
        ("trace = { rows = \"time_s,delay_ms;0,5;1,9\" }", "trace"),
    ] {
        let text = reduced(link, 50_000, 100_000).unwrap_err();
        assert!(text.contains(why), "{text}");
    }
}

/// What is below the network's delay would be cut off, and the rest changed for the mean.
#[test]
fn a_jitter_that_no_longer_fits_is_refused() {
    // At x = -3: uniform, normal, lognormal, and uniform again.
    for (jitter, shortest_us) in [
        ("mean = \"2ms\", jitter = \"2ms\"", 5),
        ("mean = \"20ms\", sd = \"2ms\"", 14_000),
        (
            "mean = \"20ms\", sd = \"2ms\", distribution = \"lognormal\"",
            14_754,
        ),
        ("mean = \"20ms\", jitter = \"5ms\", max = \"22ms\"", 15_013),
    ] {
        let link = format!("delay = {{ {jitter} }}");
        let why = reduced(&link, (shortest_us + 102) * 1000, 100_000).unwrap_err();
        assert!(why.contains("the shortest delay"), "{why}");
        let (_, notes) = reduced(&link, (shortest_us + 98) * 1000, 100_000).unwrap();
        assert_eq!(notes.len(), 2, "{notes:?}");
        let (_, notes) = reduced(&link, (shortest_us - 2) * 1000, 0).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
    }
    let rows = "delay = \"5ms\"\ntrace = { rows = \"time_s,jitter_ms;0,1;1,4.5\" }";
    assert!(reduced(rows, 400_000, 0).is_ok());
    assert!(reduced(rows, 600_000, 0).is_err());
}

/// The same delays, and the network's; also after a change of something else.
#[test]
fn a_lognormal_delay_keeps_its_shape() {
    let text = "delay = { mean = \"20ms\", sd = \"5ms\", distribution = \"lognormal\" }";
    let whole = delay_table(&profile(text).up.delay).unwrap();
    let (given, _) = reduced(text, 5_000_000, 0).unwrap();
    let added = Added {
        own_ns: 5_000_000,
        ..Added::default()
    };
    let again = change(&given, &added, 0, &["rate=1Mbit".to_owned()]).unwrap();
    for given in [given, again] {
        let delays = delay_table(&given.up.delay).unwrap();
        // x = -3..4.
        for at in 1280..3072 {
            let off = (delays[at] + 5_000_000).abs_diff(whole[at]);
            assert!(off < 500, "{off} ns at {at}");
        }
    }
}

/// The profile that a running link has, 50 us shorter, after a change of it.
fn changed(link: &str, changes: &[&str]) -> Result<Profile, String> {
    let (running, _) = reduced(link, 50_000, 100_000).unwrap();
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    let added = Added {
        own_ns: 50_000,
        ..Added::default()
    };
    change(&running, &added, 100_000, &changes).map_err(|e| e.to_string())
}

#[test]
fn a_change_means_the_link_with_the_underlay() {
    let link = "delay = { mean = \"5ms\", sd = \"1ms\", max = \"9ms\" }";
    // The same as when the scenario says so.
    for (change, asked) in [
        ("delay.mean=7ms", link.replace("5ms", "7ms")),
        ("delay.mean=4950us", link.replace("5ms", "4950us")),
        ("delay.max=6ms", link.replace("9ms", "6ms")),
        ("delay=none", "loss = \"0%\"".to_owned()),
        ("loss=1%", format!("{link}\nloss = \"1%\"")),
    ] {
        let given = changed(link, &[change]).map(|given| given.up);
        let asked = reduced(&asked, 50_000, 0).map(|(asked, _)| asked.up);
        match asked {
            Ok(asked) => assert_eq!(given, Ok(asked), "{change}"),
            Err(_) => assert!(given.is_err(), "{change}"),
        }
    }
    let one = changed("delay = \"5ms\"", &["up.delay=7ms"]).unwrap();
    assert_eq!(one.up.delay.mean_ns, 6_950_000);
    assert_eq!(one.down.delay.mean_ns, 4_950_000);
}

#[test]
fn a_change_to_less_than_the_underlay_is_refused() {
    for change in ["delay=49us", "down.delay=49us"] {
        let why = changed("delay = \"5ms\"", &[change]).unwrap_err();
        assert!(
            why.contains("49us") && why.contains("smallest possible one, 50us"),
            "{why}"
        );
    }
    let why = changed("delay = \"5ms\"", &["delay=none"]).unwrap_err();
    assert!(why.contains("50us"), "{why}");
    let why = changed("delay = \"5ms\"", &["delay.share=50%"]).unwrap_err();
    assert!(why.contains("share"), "{why}");
    // Within the tolerance at the start: it stays as it is.
    let given = changed("delay = \"20us\"", &["loss=1%"]).unwrap();
    assert_eq!(given.up.delay.mean_ns, 0);
}

const STAR: &str = "
[links.far]
delay = \"20ms\"
[links.near]
delay = \"5ms\"
[[rule]]
match = { source = \"10.77.1.0/24\" }
link = \"far\"
direction = \"up\"
per = \"source\"
[[rule]]
match = { destination = \"10.77.1.0/24\" }
link = \"far\"
direction = \"down\"
per = \"destination\"
[[rule]]
match = { source = \"10.77.2.0/24\" }
link = \"near\"
direction = \"up\"
per = \"source\"
[[rule]]
link = \"none\"
";

/// A star with peers of two classes on one other host, and of one on another.
fn star(text: &str) -> (Profile, Profile, Added) {
    let asked = Profile::parse(text, "t").unwrap_or_else(|e| panic!("{e}"));
    let net = |text: &str| text.parse().unwrap();
    let b = (1_000_000, vec![net("10.77.1.2/32"), net("10.77.2.1/32")]);
    let c = (3_000_000, vec![net("10.77.1.3/32")]);
    let added = Added {
        own_ns: 0,
        peers: [("b".to_owned(), b), ("c".to_owned(), c)].into(),
    };
    let running = reduce(&asked, &added, 0, &mut vec![]).unwrap();
    (asked, running, added)
}

/// All peers of a class have the new delay, each less what the way to its host takes; also after a
/// second change.
#[test]
fn a_change_of_a_star_reaches_peers_on_all_hosts() {
    let (asked, mut running, added) = star(STAR);
    assert_eq!(running.links.len(), 5);
    let changes = ["links.far.delay=30ms", "links.near.rate=2Mbit"].map(str::to_owned);
    for change_now in &changes {
        let now = std::slice::from_ref(change_now);
        running = change(&running, &added, 0, now).unwrap_or_else(|e| panic!("{e}"));
    }
    let asked = asked.with_changes(&changes).unwrap();
    assert_eq!(running, reduce(&asked, &added, 0, &mut vec![]).unwrap());
    let of = |name: &str| running.links.iter().find(|link| link.name == name).unwrap();
    let delay = |name: &str| [&of(name).up, &of(name).down].map(|l| l.delay.mean_ns / 1_000_000);
    let given = ["far", "h0-far", "h1-far", "h0-near"].map(delay);
    assert_eq!(given, [[30, 30], [29, 29], [27, 27], [4, 4]]);
    assert_eq!(of("h0-near").up.rate, of("near").up.rate);
    assert!(of("near").up.rate.is_some());
}

#[test]
fn a_change_of_a_star_to_less_than_the_underlay_is_refused() {
    let (_, running, added) = star(STAR);
    let why = |text: &str| {
        let changed = change(&running, &added, 100_000, &[text.to_owned()]);
        changed.expect_err(text).to_string()
    };
    let short = why("links.far.delay=2ms");
    assert!(
        short.contains("2ms") && short.contains("3ms") && short.contains("same `host`"),
        "{short}"
    );
    assert!(why("links.far.delay.share=50%").contains("share"));
    // As at the start, up to the tolerance.
    assert!(
        change(
            &running,
            &added,
            100_000,
            &["links.far.delay=2950us".to_owned()]
        )
        .is_ok()
    );
}

/// A class may have a name like those of separate links.
#[test]
fn a_class_keeps_its_name_in_a_change_of_a_star() {
    let (asked, running, added) = star(&STAR.replace("near", "h0-near"));
    let changed = change(&running, &added, 0, &["links.h0-near.delay=7ms".to_owned()]);
    let asked = asked.with_changes(&["links.h0-near.delay=7ms".to_owned()]);
    assert_eq!(
        changed.unwrap_or_else(|e| panic!("{e}")),
        reduce(&asked.unwrap(), &added, 0, &mut vec![]).unwrap()
    );
}
