// SPDX-License-Identifier: MIT OR Apache-2.0
//! Valid and invalid combinations with traces, phases and slots; each conflict has one message.

use emud::datapath::engine::fq;
use emud::datapath::stage::compile::{Compiled, PacketTarget, compile};
use emud::datapath::stage::timeline;
use emud::profile::{Link, Profile, ProfileError, TextError};

use super::{parse, set};

const MS: u64 = 1_000_000;

/// Checks that exactly this mistake is found, here.
fn only(found: Result<Profile, ProfileError>, place: &str, title: &str, help: &str) {
    let Err(ProfileError::Text(TextError::Mistakes(mistakes))) = found else {
        panic!("{title}: {found:?}");
    };
    let shown = mistakes.to_string();
    assert_eq!(mistakes.iter().count(), 1, "{title}: {shown}");
    for part in [place, title, help] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

const RATES: &str = "trace = { rows = \"time_s,rate_mbit;0,1;1,2\" }";
const DELAYS: &str = "trace = { rows = \"time_s,delay_ms;0,1;1,2\" }";

#[test]
fn a_shared_queue_has_one_rate_at_all_times() {
    let traced = "`shared` on a link whose trace has rates";
    for (text, place, title) in [
        (
            format!("[link]\nshared = \"u\"\n{RATES}\n[links.far]\nshared = \"u\"\n"),
            "x.toml:2:10",
            traced,
        ),
        (
            format!("[link]\nshared = \"u\"\n[links.far.up]\nshared = \"u\"\n{RATES}\n"),
            "x.toml:4:10",
            traced,
        ),
        (
            "[link]\n[links.a]\nshared = \"u\"\ntrace = { opportunities = \"1 2\" }\n".to_owned(),
            "x.toml:3:10",
            traced,
        ),
        (
            "[link]\nshared = \"u\"\n[[phase]]\nfor = \"1s\"\n[[phase]]\nrate = \"1Mbit\"\n"
                .to_owned(),
            "x.toml:2:10",
            "`shared` on the profile's own link beside phases",
        ),
        (
            "[link]\n[[phase]]\nfor = \"1s\"\nshared = \"u\"\n".to_owned(),
            "x.toml:4:10",
            "a phase cannot have `shared`",
        ),
        (
            "[link]\n[links.a]\nshared = \"u\"\n[[phase]]\nlink = \"a\"\n".to_owned(),
            "x.toml:3:10",
            "a phase cannot have `shared`",
        ),
    ] {
        only(Profile::parse(&text, "x.toml"), place, title, "shared");
    }
    let profile = parse("[link]\n[links.a]\nrate = \"1Mbit\"\nshared = \"u\"\n");
    let rows = "links.a.up.trace.rows=time_s,rate_mbit;0,1;1,2";
    only(set(&profile, &[rows]), "argument 1:1:", traced, "alone");
    let phases = parse("[link]\n[[phase]]\n");
    let own = "`shared` on the profile's own link";
    only(set(&phases, &["shared=u"]), "argument 1:1:", own, "phases");
    // A key that does not change the rate applies to the link itself, and a phase differs from what
    // its link shares.
    let delays = format!("[link]\nrate = \"1Mbit\"\nshared = \"u\"\n{DELAYS}\n");
    assert!(parse(&delays).up.trace.is_some());
    let alone =
        parse("[link]\n[links.a]\nshared = \"u\"\n[[phase]]\nlink = \"a\"\nshared = \"none\"\n");
    assert_eq!(alone.phases.list[0].up.shared, None);
    assert_eq!(alone.links[0].up.shared.as_deref(), Some("u"));
    assert_eq!(parse(&alone.to_toml()), alone);
}

#[test]
fn pairs_have_their_figures_at_all_times() {
    let trace = "a matrix on a link with a trace";
    for (text, place, title) in [
        (
            format!("[link]\n{DELAYS}\n[matrix]\ncapacity = 4\n"),
            "x.toml:3:",
            trace,
        ),
        (
            format!("[link]\n[links.a.down]\n{RATES}\n[matrix]\nlink = \"a\"\ncapacity = 4\n"),
            "x.toml:5:",
            trace,
        ),
        (
            format!("[up]\n{RATES}\n[links.a]\n[matrix]\nlink = \"a\"\ncapacity = 4\n"),
            "x.toml:5:",
            trace,
        ),
        (
            "[link]\n[matrix]\ncapacity = 4\n[[phase]]\n".to_owned(),
            "x.toml:2:",
            "a matrix beside phases",
        ),
    ] {
        only(Profile::parse(&text, "x.toml"), place, title, "rules");
    }
    let other = format!("[link]\n[links.a]\n{RATES}\n[matrix]\ncapacity = 4\n");
    let profile = parse(&other);
    let rows = "up.trace.rows=time_s,delay_ms;0,1;1,2";
    only(set(&profile, &[rows]), "argument 1:1:", trace, "rules");
}

#[test]
fn phases_end_within_a_century() {
    let phases = "[[phase]]\nfor = \"53000000min\"\n".repeat(7);
    let error = Profile::parse(&format!("[link]\n{phases}"), "x.toml");
    only(
        error,
        "x.toml:3:7",
        "more than 100 years",
        "make this one shorter",
    );
    let phases = "[[phase]]\nfor = \"27000000min\"\n".repeat(2);
    let error = Profile::parse(
        &format!("phases = {{ loop = true }}\n[link]\n{phases}"),
        "x.toml",
    );
    only(error, "x.toml:6:7", "more than 100 years", "without `for`");
    // 100 years of 365.25 days.
    let whole = parse("phases = { loop = true }\n[link]\n[[phase]]\nfor = \"52596000min\"\n");
    assert_eq!(timeline::rows_of(&whole), 4);
    let (points, end_s) = timeline::rates(&whole, 0);
    assert_eq!((points.len(), end_s), (1, 52_596_000.0 * 60.0));
}

/// The `[up]` of a profile, for engine fq.
fn compiled(up: &str) -> Compiled {
    compiled_link(&parse(&format!("[up]\n{up}\n")).up)
}

fn compiled_link(link: &Link) -> Compiled {
    let place = PacketTarget {
        release: emud::abi::EMUD_RELEASE_STAMP,
        ifindex: 0,
        l3: false,
    };
    compile(link, 1, emud::abi::EMUD_UP, 0, place).unwrap()
}

fn longest_wait_ns(up: &str) -> u64 {
    compiled(up).timeline.unwrap().longest_wait_ns
}

#[test]
fn a_queue_may_outlast_64_bits_of_ns() {
    // 65536 packets take 33,000 rounds of 50 days.
    let rounds = "queue = \"65536p\"\ntrace = { opportunities = \"1 4294967295\" }";
    assert_eq!(longest_wait_ns(rounds), u64::MAX);
}

#[test]
fn a_queue_may_be_full_at_the_end_of_a_trace() {
    const S: u64 = 1_000_000_000;
    // 1538 bytes at 64 kbit/s, from then on.
    let slow = 1000 * 1538 * 8 * S / 64_000;
    let rows = "trace = { rows = \"time_s,rate_kbit;0,10000;10,64\", loop = false }";
    let wait_ns = longest_wait_ns(rows);
    assert!((slow..=slow + 10 * S).contains(&wait_ns), "{wait_ns}");
    // The queue has room for more packets than will be sent.
    let opportunities = "trace = { opportunities = \"5000 10000 60000\", loop = false }";
    assert_eq!(longest_wait_ns(opportunities), 60 * S);
}

/// The queue of a phase may be longer than that of the profile's own link.
#[test]
fn a_queue_may_be_full_before_the_slowest_phase() {
    let phases = "[link]\nrate = \"10Mbit\"\nqueue = \"10p\"\n[[phase]]\nfor = \"10s\"\n\
                  queue = \"1000p\"\n[[phase]]\nfor = \"100s\"\nrate = \"64kbit\"\n";
    let slow = 1000 * 1538 * 8 * 1_000_000_000 / 64_000;
    let profile = parse(phases);
    let mut links: Vec<_> = (profile.links_of(emud::abi::EMUD_UP))
        .map(compiled_link)
        .collect();
    timeline::phases(&profile, emud::abi::EMUD_UP, &mut links, 0, 0);
    let wait_ns = links[0].timeline.as_ref().unwrap().longest_wait_ns;
    assert!((slow..=slow + slow / 10).contains(&wait_ns), "{wait_ns}");
}

/// fq sends what is due beyond its horizon too early: here 1000 frames that the limit of a queue in
/// packets permits, each of the longest MTU.
#[test]
fn fqs_horizon_is_beyond_a_queue_of_long_frames() {
    let link = compiled("rate = \"1Mbit\"");
    let fq = fq::options(&[link], 1, &[]);
    assert!(u64::from(fq.horizon_us) > 1000 * 65_550 * 8);
}

#[test]
fn a_long_ramp_has_no_more_than_10000_rows() {
    let ramp = |time: &str| {
        let text = format!("[link]\n[[phase]]\nfor = \"{time}\"\nramp = true\ndelay = \"9ms\"\n");
        // The last row stays, with an end row after it; in two directions.
        timeline::rows_of(&parse(&text)) / 2 - 2
    };
    for (time, rows) in [
        ("3ns", 3),
        ("500ms", 100),
        ("99s", 9_900),
        ("1440min", 10_000),
        ("99360min", 10_000),
    ] {
        assert_eq!(ramp(time), rows, "{time}");
    }
}

#[test]
fn an_outage_is_the_link_of_the_phase_before() {
    let text = |top: &str, first: &str| {
        format!(
            "{top}[link]\ndelay = \"1ms\"\n[[phase]]\n{first}for = \"1s\"\nstate = \"down\"\n\
             [[phase]]\nfor = \"1s\"\nrate = \"5Mbit\"\n[[phase]]\nfor = \"2s\"\nstate = \"down\"\n\
             [[phase]]\nfor = \"2s\"\nstate = \"down\"\n"
        )
    };
    let rates = |text: &str| -> Vec<_> {
        let profile = parse(text);
        assert_eq!(parse(&profile.to_toml()), profile);
        let down = |p: &emud::profile::Phase| p.up.state == emud::profile::LinkState::Down;
        let downs: Vec<_> = profile.phases.list.iter().map(down).collect();
        assert_eq!(downs, [true, false, true, true]);
        profile.phases.list.iter().map(|p| p.down.rate).collect()
    };
    let five = Some(5_000_000);
    assert_eq!(rates(&text("", "")), [None, five, five, five]);
    let round = "phases = { loop = true }\n";
    assert_eq!(rates(&text(round, "")), [five; 4]);
    // A message with more than one sentence.
    assert_eq!(
        rates(&text(round, "delay = \"3ms\"\n")),
        [None, five, five, five]
    );
}

#[test]
fn rows_of_jitter_in_force_stay_about_their_delay() {
    let rows: Vec<_> = (0..4_000).map(|i| format!("{i},{}", i % 7)).collect();
    let text = |delay: &str| {
        format!(
            "[up]\n{delay}trace = {{ rows = \"time_s,jitter_ms;{}\" }}\n",
            rows.join(";")
        )
    };
    let narrow = timeline::kept(&parse(&text("delay = \"20ms\"\n")));
    let wide = timeline::kept(&parse(&text("delay = \"3ms\"\n")));
    for kept in [&narrow, &wide] {
        assert_eq!(&parse(&kept.to_toml()), kept);
        assert!(set(kept, &["up.loss=1%"]).is_ok());
    }
    assert!(set(&narrow, &["up.delay=30ms"]).is_ok());
    for (kept, delay) in [(&narrow, "up.delay=5ms"), (&wide, "up.delay=30ms")] {
        let title = "rows of jitter in force have a different mean delay";
        only(set(kept, &[delay]), "argument 1:1:", title, "trace.file=");
        let period = ["up.trace.period=9000s"];
        let title = "`period` of rows that the classifier alone has";
        only(
            set(kept, &period),
            "argument 1:1:",
            title,
            "give their file",
        );
    }
}

/// The backlog is counted in 64 bits, with fewer for the fraction of a byte if the queue is longer.
#[test]
fn rows_in_force_count_the_queue_that_they_were_made_for() {
    let compiled = |profile: &Profile| {
        let place = PacketTarget {
            release: 0,
            ifindex: 0,
            l3: false,
        };
        compile(&profile.up, 1, 0, 0, place).unwrap()
    };
    let wait_s = |profile: &Profile| fq::longest_ns(&[compiled(profile)], 1, &[]) as f64 / 1e9;
    let rows: Vec<_> = (0..3_000).map(|ms| format!("{ms},10")).collect();
    let rows = format!("rows = \"time_ms,rate_Mbit;{}\"", rows.join(";"));
    for repeat in [true, false] {
        let text = format!("[up]\ntrace = {{ {rows}, loop = {repeat} }}\n");
        let kept = timeline::kept(&parse(&text));
        assert_eq!(parse(&kept.to_toml()), kept);
        let title = "rows in force count at most 4194303 bytes in the queue";
        let queue = "up.queue=20MB";
        only(set(&kept, &[queue]), "argument 1:1:", title, "trace.file=");
        let again = format!("up.trace={{ {rows} }}");
        let again = set(&kept, &[queue, &again]).unwrap();
        // 20 MB take 16 s, 4 MB take 3.2 s; the bound is at most the period of 3 s above.
        let longest = wait_s(&again);
        assert!((16.0..19.1).contains(&longest), "{longest}");
        let longest = wait_s(&set(&kept, &["up.queue=4MB"]).unwrap());
        assert!((3.2..6.3).contains(&longest), "{longest}");
    }
    // Rows that the kernel has are those of the new queue, or they are written again.
    let content = |queue: &str| {
        let text = "trace = { rows = \"time_s,rate_Mbit;0,1\", period = \"1s\", loop = false }";
        let profile = parse(&format!("[up]\nqueue = \"{queue}\"\n{text}\n"));
        compiled(&profile).link.timeline.content
    };
    assert_eq!(content("1MB"), content("2MB"));
    assert_ne!(content("1MB"), content("20MB"));
}

#[test]
fn an_outage_in_a_trace_is_a_rate() {
    let trace = |cell: &str| {
        let text = format!("[up]\ntrace = {{ rows = \"time,rate;0s,{cell};1s,2Mbit\" }}\n");
        Profile::parse(&text, "x.toml")
    };
    for cell in ["0", "0.0", "0Mbit", "0 kbit", "0e3bit"] {
        assert!(trace(cell).is_ok(), "{cell}");
    }
    for cell in ["0 apples", "0ms", "0mbps", "0 %"] {
        let found = trace(cell).unwrap_err().to_string();
        assert!(
            found.contains("x.toml:2:") && found.contains("line 2"),
            "{found}"
        );
    }
    only(trace("0ms"), "line 2", "`0ms` is not a rate", "0Mbit");
}

/// A file with a byte order mark, as some editors write it.
fn marked(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("emud-bom-{}-{name}", std::process::id()));
    std::fs::write(&path, format!("\u{feff}{text}")).unwrap();
    path.display().to_string()
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let json = r#"[{"time":"0s","rate":"1Mbit"},{"time":"1s","rate":"2Mbit"}]"#;
    for (name, text, key) in [
        ("a.csv", "time_s,rate_mbit\n0,1\n1,2\n", "trace = { file = "),
        ("a.json", json, "trace = { file = "),
        ("a.up", "1\n2\n", "trace = { mahimahi = "),
        ("a.loss", "0010\n", "loss = { model = \"pattern\", file = "),
        (
            "a.txt",
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n",
            "delay = { samples = { unit = \"ms\", file = ",
        ),
    ] {
        let path = marked(name, text);
        let ends = if key.starts_with("delay") {
            " } }"
        } else {
            " }"
        };
        let read = Profile::parse(&format!("[up]\n{key}\"{path}\"{ends}\n"), "x.toml");
        std::fs::remove_file(&path).unwrap();
        if let Err(error) = read {
            panic!("{name}: {error}");
        }
    }
}

#[test]
fn the_true_mistake_alone_is_told() {
    for (text, place, title, help) in [
        (
            "delay = { samples = { values = \"1 x\", unit = \"ms\" } }",
            "x.toml:2:",
            "`x` is not a number",
            "remove",
        ),
        (
            "slot = { min = \"2h\" }",
            "x.toml:2:16",
            "`h` is not a unit",
            "",
        ),
        (
            "slot = { min = \"10\" }",
            "x.toml:2:16",
            "has no unit",
            "10ms",
        ),
        (
            "slot = { min = \"1ms\", packets = 0 }",
            "x.toml:2:33",
            "a slot of 0 packets",
            "packets = 1",
        ),
        (
            "slot = { min = \"1ms\", bytes = 1500 }",
            "x.toml:2:31",
            "`1500` has no unit",
            "\"1500B\"",
        ),
        (
            "slot = { min = \"1ms\", bytes = \"0B\" }",
            "x.toml:2:31",
            "`bytes` is 0 bytes",
            "64kB",
        ),
        (
            "queue = { aqm = \"red\", min = 3000, max = \"9kB\" }",
            "x.toml:2:30",
            "`3000` has no unit",
            "\"3000B\"",
        ),
        (
            "rate = { rate = \"1Mbit\", burst = \"0B\" }",
            "x.toml:2:34",
            "`burst` is 0 bytes",
            "32kB",
        ),
        (
            "corrupt = { probability = \"1%\", bits = 32, from = 40, to = 41 }",
            "x.toml:2:40",
            "32 bits of 1 bytes",
            "there are 8",
        ),
    ] {
        let found = Profile::parse(&format!("[link]\n{text}\n"), "x.toml");
        only(found, place, title, help);
    }
    let exact = "[link]\ncorrupt = { probability = \"1%\", bits = 32, from = 40, to = 44 }\n";
    assert_eq!(parse(exact).up.corrupt.bits, 32);
}

#[test]
fn a_slots_end_that_nobody_gave_moves_along() {
    let profile = parse(
        "[link]\nslot = { min = \"10ms\", max = \"30ms\", packets = 2 }\n[up]\nslot = \"10ms\"\n",
    );
    let bounds = |p: &Profile| {
        [&p.up, &p.down].map(|l| l.slot.map_or((0, 0), |s| (s.min_ns / MS, s.max_ns / MS)))
    };
    assert_eq!(bounds(&profile), [(10, 10), (10, 30)]);
    assert_eq!(parse(&profile.to_toml()), profile);
    let moved = set(&profile, &["slot.min=20ms"]).unwrap();
    assert_eq!(bounds(&moved), [(20, 20), (20, 30)]);
    let beyond = set(&profile, &["slot.min=40ms"]);
    only(
        beyond,
        "the profile in force",
        "`max` is below `min`",
        "above 0",
    );
}

#[test]
fn a_restart_is_of_the_whole_interface() {
    let profile = parse(&format!("[link]\n{RATES}\n"));
    for text in ["up.trace.restart", "links.a.trace.restart"] {
        let title = "one link cannot restart alone";
        only(
            set(&profile, &[text]),
            "argument 1:1:1",
            title,
            "IFACE trace.restart",
        );
    }
}
