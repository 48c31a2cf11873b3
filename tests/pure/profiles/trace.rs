// SPDX-License-Identifier: MIT OR Apache-2.0
//! The meaning of traces, phases and slots, and the messages for meaningless ones.

use emud::datapath::stage::compile::{PacketTarget, compile};
use emud::datapath::stage::timeline::{self, kept};
use emud::profile::{Link, Phase, Phases, Profile, Slot, Trace, TraceRow, TraceSource};
use emud::verify::What;
use proptest::prelude::*;

use super::{parse, set};

const MS: u64 = 1_000_000;
const DAY_NS: u64 = 86_400_000_000_000;

pub fn traces() -> impl Strategy<Value = Trace> {
    let figures = (
        any::<[bool; 4]>(),
        prop::collection::vec(
            (
                1..=DAY_NS,
                prop_oneof![Just(0), 1..=1_000_000_000_000u64],
                0..=3_600_000_000_000u64,
                0..=3_600_000_000_000u64,
                0.0..=1.0f64,
            ),
            1..20,
        ),
        1..=DAY_NS,
    );
    let rows = figures.prop_map(|(columns, rows, end)| {
        let mut at_ns = 0;
        let mut all = Vec::new();
        for (i, (step, rate, delay, jitter, loss)) in rows.into_iter().enumerate() {
            // At least one column, and a value that changes.
            all.push(TraceRow {
                at_ns,
                rate: columns[0].then_some(if i == 0 { rate.max(1) } else { rate }),
                delay_ns: (columns[1] || !columns[0]).then_some(delay),
                jitter_ns: columns[2].then_some(jitter),
                loss: columns[3].then_some(loss),
            });
            at_ns += step;
        }
        TraceSource::Rows {
            period_ns: all.last().map_or(0, |row| row.at_ns) + end,
            rows: all.into(),
        }
    });
    let stamps = prop::collection::vec(0..3u32, 1..200).prop_map(|steps| {
        let mut at = 0;
        let mut all: Vec<u32> = steps
            .into_iter()
            .map(|step| {
                at += step;
                at
            })
            .collect();
        all.push(at + 1);
        TraceSource::Mahimahi(all.into())
    });
    let source = prop_oneof![rows, stamps];
    (source, any::<bool>(), prop_oneof![Just(0), 0..=DAY_NS]).prop_map(
        |(source, repeat, offset_ns)| Trace {
            source,
            repeat,
            offset_ns,
        },
    )
}

pub fn slots() -> impl Strategy<Value = Slot> {
    (
        1..=1_000 * MS,
        0..=1_000 * MS,
        prop::option::of(1..=65_536u32),
        prop::option::of(1..=u32::MAX),
    )
        .prop_map(|(min_ns, more, packets, bytes)| Slot {
            min_ns,
            max_ns: min_ns + more,
            packets,
            bytes,
        })
}

pub fn phases(links: BoxedStrategy<Link>) -> impl Strategy<Value = Phases> {
    let phase = (links.clone(), links, 1..=DAY_NS);
    let list = prop::collection::vec(phase, 0..3);
    (list, any::<bool>(), any::<bool>(), 0..=DAY_NS).prop_map(|(list, repeat, ends, offset_ns)| {
        let count = list.len();
        let one = |(i, (up, down, ns)): (usize, (Link, Link, u64))| Phase {
            for_ns: (repeat || ends || i + 1 < count).then_some(ns),
            ramp: false,
            name: (i > 0).then(|| format!("phase \"{i}\"")),
            up,
            down,
        };
        match count {
            0 => Phases::default(),
            _ => Phases {
                list: list.into_iter().enumerate().map(one).collect(),
                chain: None,
                repeat,
                offset_ns,
            },
        }
    })
}

fn rows(profile: &Profile) -> (Vec<TraceRow>, u64) {
    match &profile.up.trace.as_ref().unwrap().source {
        TraceSource::Rows { rows, period_ns } => (rows.to_vec(), *period_ns),
        other => panic!("{other:?}"),
    }
}

fn file(name: &str, text: &str) -> String {
    let path = std::env::temp_dir().join(format!("emud-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn traced(name: &str, text: &str) -> Result<Profile, String> {
    let path = file(name, text);
    let toml = format!("[up]\ntrace = {{ file = \"{path}\" }}\n");
    let read = Profile::parse(&toml, "x.toml").map_err(|e| e.to_string());
    std::fs::remove_file(path).unwrap();
    read
}

#[test]
fn columns_in_any_order_with_units_in_cells_or_names() {
    let want =
        [(0, 1_500_000, 20, 0.0), (2_000, 0, 40, 0.015)].map(|(ms, rate, delay, loss)| TraceRow {
            at_ns: ms * MS,
            rate: Some(rate),
            delay_ns: Some(delay * MS),
            jitter_ns: None,
            loss: Some(loss),
        });
    for (name, text) in [
        (
            "a.csv",
            "rate,time,loss,delay\n1.5Mbit,0s,0%,20ms\n# outage\n0,2s,1.5%,40ms\n",
        ),
        (
            "b.csv",
            "time_s,delay_ms,loss_%,rate_mbit\n1700000000.5,20,0,1.5\n1700000002.5,40,1.5,0\n",
        ),
        (
            "c.json",
            r#"[{"time":"0s","rate_kbit":1500,"delay":"20ms","loss_%":0},
                       {"delay":"40ms","time":"2000ms","rate_kbit":0,"loss_%":1.5}]"#,
        ),
    ] {
        let profile = traced(name, text).unwrap_or_else(|e| panic!("{name}: {e}"));
        // The last row is as long as the previous one.
        assert_eq!(rows(&profile), (want.to_vec(), 4_000 * MS), "{name}");
    }
}

/// Whole numbers have a separate fast path.
#[test]
fn every_unit_of_a_column_is_that_unit_whole_or_with_a_point() {
    let times = [("ns", 1), ("us", 1_000), ("ms", MS), ("s", 1_000 * MS)];
    let rates = [
        ("bit", 1),
        ("kbit", 1_000),
        ("Mbit", MS),
        ("Gbit", 1_000 * MS),
    ];
    for ((time, ns), (rate, bits)) in times.into_iter().zip(rates) {
        for figure in ["40", "40.0"] {
            let text = format!(
                "time_{time},delay_{time},jitter_{time},rate_{rate}\n0,0,0,1\n\
                 {figure},{figure},{figure},{figure}\n"
            );
            let (rows, _) = rows(&traced("units.csv", &text).unwrap());
            let want = TraceRow {
                at_ns: 40 * ns,
                rate: Some(40 * bits),
                delay_ns: Some(40 * ns),
                jitter_ns: Some(40 * ns),
                loss: None,
            };
            assert_eq!(rows[1], want, "{text}");
        }
    }
}

/// As in a capture that was cut to the part behind a mark.
#[test]
fn time_counts_from_the_first_row() {
    let early = traced("early.csv", "time_s,rate_mbit\n-1,1\n0,2\n").unwrap();
    let (rows, period_ns) = rows(&early);
    let times: Vec<_> = rows.iter().map(|row| row.at_ns).collect();
    assert_eq!((times, period_ns), (vec![0, 1_000 * MS], 2_000 * MS));
}

#[test]
fn mistakes_in_a_trace_name_the_line() {
    for (text, place, what) in [
        (
            "time_s,rate_mbit\n0,1\n0,2\n",
            "line 3",
            "time does not go on",
        ),
        ("time,speed\n0s,1\n", "line 1", "no column `speed`"),
        // Behind what the reader counts as the record's.
        ("time_s,rate_bit\r\n0,1\r\n1,x\r\n", "line 3", "`x`"),
        ("time_s,rate_bit\n0,1\n# tunnel\n1,x\n", "line 4", "`x`"),
        ("time_s,rate_bit\n\n0,1\n\n1\n", "line 5", "1 cells under 2"),
        (
            "time_s,rate_bit\r\n0,1\r\n0,2\r\n",
            "line 3",
            "does not go on",
        ),
        (
            "# run 3\r\n\r\ntime,speed\r\n0s,1\r\n",
            "line 3",
            "no column `speed`",
        ),
        ("\ntime_s,rate,rate\n0,1,2\n", "line 2", "the same figure"),
        ("rate\n1Mbit\n", "line 1", "no column `time`"),
        ("time_s,rate\n0,5\n", "line 2", "has no unit"),
        ("time_h,rate\n0,5Mbit\n", "line 1", "`h` is not a unit"),
        ("time_s,loss\n0,120%\n", "line 2", "120%"),
        (
            "time_s,rate_bit\n0,1,2\n",
            "line 2",
            "3 cells under 2 columns",
        ),
        (
            "time_s,rate_bit\n0,1\n1\n",
            "line 3",
            "1 cells under 2 columns",
        ),
        ("time_s,rate_bit\n", "", "without rows"),
        ("time_s\n0\n1\n", "", "times alone"),
        (
            "time_s,delay_ms\n0,10\n1700000000,20\n",
            "",
            "a trace of more than 100 years",
        ),
        (
            "[{\"time\": \"0s\", \"rate\": true}]",
            "row 1",
            "not a figure",
        ),
        (
            "[{\"time\": \"0s\", \"rate\": \"1Mbit\"}, {\"time\": \"1s\"}]",
            "row 2",
            "missing",
        ),
        ("time_s,rate_bit\n0,0\n1,0\n", "", "never sends a packet"),
    ] {
        let error = traced("wrong.csv", text).unwrap_err();
        assert!(error.contains("x.toml:2:"), "{error}");
        assert!(
            error.contains(place) && error.contains(what),
            "{text}: {error}"
        );
    }
}

#[test]
fn mistakes_in_mahimahis_format() {
    for (text, what) in [
        ("1\n2\n1\n", "line 3: 1 is before"),
        ("1\nx\n", "line 2: `x` is not a time"),
        ("0\n0\n", "all opportunities are at 0"),
        ("", "no delivery opportunity"),
        ("-1\n", "line 1: `-1`"),
    ] {
        let path = file("wrong.trace", text);
        let toml = format!("[down]\ntrace = {{ mahimahi = \"{path}\" }}\n");
        let error = Profile::parse(&toml, "x.toml").unwrap_err().to_string();
        assert!(error.contains(what), "{text}: {error}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn mistakes_in_the_keys() {
    for (text, what) in [
        ("trace = {}", "a trace without rows"),
        ("trace = \"up.trace\"", "`trace` cannot be text"),
        (
            "trace = { file = \"/none/such.csv\" }",
            "cannot read /none/such.csv",
        ),
        (
            "trace = { rows = \"time_s,rate_bit;0,1\" }",
            "one row without `period`",
        ),
        (
            "trace = { rows = \"time_s,rate_bit;0,1;2,1\", period = \"1s\" }",
            "beyond its `period`",
        ),
        (
            "trace = { rows = \"x\", opportunities = \"1\" }",
            "from two sources",
        ),
        (
            "trace = { opportunities = \"1\", period = \"1s\" }",
            "`period` of a trace that has a period",
        ),
        (
            "trace = { opportunities = \"1\", lop = true }",
            "did you mean `loop`",
        ),
        (
            "trace = { opportunities = \"1\", restart = true }",
            "`restart` has no value",
        ),
        ("trace = { in-force = \"nonsense\" }", "no rows in force"),
        ("slot = { max = \"1ms\" }", "slots without `min`"),
        (
            "slot = { min = \"2ms\", max = \"1ms\" }",
            "`max` is below `min`",
        ),
        ("slot = \"0s\"", "slots no time apart"),
    ] {
        let error = Profile::parse(&format!("[link]\n{text}\n"), "x.toml");
        let error = error.unwrap_err().to_string();
        assert!(error.contains(what), "{text}: {error}");
        assert!(error.contains("x.toml:2:"), "{text}: {error}");
    }
    for (text, what) in [
        ("[[phase]]\n[[phase]]\nfor=\"1s\"", "a phase without an end"),
        (
            "phases = {loop=true}\n[[phase]]\nfor=\"1s\"\n[[phase]]",
            "a phase without an end",
        ),
        ("[[phase]]\nlink=\"lte\"", "there is no link `lte`"),
        ("[[phase]]\nfor=\"0s\"", "a phase with duration 0"),
        ("[[phase]]\nname=\"\"", "this is not a name"),
        (
            "[[phase]]\nfor=\"1s\"\nramp=true\nrate=\"1Mbit\"",
            "a ramp between a rate and none",
        ),
        (
            "[[phase]]\nfor=\"1s\"\nramp=true\nloss={model=\"every\",n=3}",
            "two models of loss",
        ),
        (
            "[[phase]]\ntrace={opportunities=\"1\"}",
            "a trace beside phases",
        ),
        ("[[phase]]\nfro=\"1s\"", "did you mean `for`"),
        ("[phase]\nfor=\"1s\"", "`phase` cannot be a table"),
    ] {
        let (top, rest) = match text.strip_prefix("phases = {loop=true}\n") {
            Some(rest) => ("phases = {loop=true}\n", rest),
            None => ("", text),
        };
        let toml = format!("{top}[link]\n{rest}\n");
        let error = Profile::parse(&toml, "x.toml").unwrap_err().to_string();
        assert!(error.contains(what), "{toml}: {error}");
    }
}

#[test]
fn a_long_trace_stays_in_the_kernel() {
    let many: Vec<String> = (0..100_000)
        .map(|i| format!("{},{}", i, 1_000 + i))
        .collect();
    let text = format!("time_ms,rate_kbit\n{}\n", many.join("\n"));
    let profile = traced("long.csv", &text).unwrap();
    let kept = kept(&profile);
    let text = kept.to_toml();
    assert!(text.len() < 1000, "{text}");
    let back = parse(&text);
    assert_eq!(back, kept);
    let Some(Trace {
        source: TraceSource::InForce(summary),
        ..
    }) = back.up.trace
    else {
        panic!("{text}")
    };
    assert_eq!((summary.rows, summary.max_rate), (100_000, 100_999_000));
    // Everything except the rows can be changed.
    let changed = set(&back, &["up.delay=5ms", "up.trace.offset=7s"]).unwrap();
    let trace = changed.up.trace.unwrap();
    assert_eq!(trace.offset_ns, 7_000 * MS);
    assert_eq!(trace.source, TraceSource::InForce(summary));
    // Short ones are kept unchanged.
    let short = traced("short.csv", "time_s,rate_mbit\n0,1\n1,2\n").unwrap();
    assert_eq!(timeline::kept(&short), short);
}

#[test]
fn what_changes_with_time_is_not_verified() {
    for link in ["trace = { opportunities = \"1\" }", "slot = \"10ms\""] {
        let profile = parse(&format!("[link]\n{link}\n"));
        let asked = emud::verify::compiled(&profile, 0, 1514).unwrap();
        let why = asked.unjudged(What::Rate).unwrap();
        assert!(why.contains("trace") || why.contains("slot"), "{why}");
        assert_eq!(asked.unjudged(What::Duplicates), None);
    }
    let phases = "[link]\n[[phase]]\nfor = \"1s\"\nloss = \"1%\"\n[[phase]]\nfor = \"1s\"\n";
    let asked = emud::verify::compiled(&parse(phases), 0, 1514).unwrap();
    assert!(asked.nothing_judged());
}

#[test]
fn two_mahimahi_traces_become_a_profile_that_names_them() {
    let (up, down) = (file("im.up", "1\n2\n2\n"), file("im.down", "5\n"));
    let (up, down) = (std::path::Path::new(&up), std::path::Path::new(&down));
    let folder = std::env::temp_dir();
    let near = emud::convert::import::mahimahi(up, down, Some(&folder))
        .unwrap()
        .toml;
    let name = up.file_name().unwrap().to_str().unwrap();
    assert!(near.contains(&format!("mahimahi = \"{name}\"")), "{near}");
    let far = emud::convert::import::mahimahi(up, down, None)
        .unwrap()
        .toml;
    assert!(
        far.contains(&format!("mahimahi = \"{}\"", up.display())),
        "{far}"
    );
    for profile in [
        parse(&far),
        Profile::from_text(&near, "x", &folder).unwrap(),
    ] {
        let source = |link: &Link| link.trace.clone().unwrap().source;
        assert_eq!(source(&profile.up), TraceSource::Mahimahi([1, 2, 2].into()));
        assert_eq!(source(&profile.down), TraceSource::Mahimahi([5].into()));
        assert_eq!(profile.up.overhead, -14);
    }
    std::fs::write(down, "5\n4\n").unwrap();
    let error = emud::convert::import::mahimahi(up, down, None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("4 is before the line above"), "{error}");
    assert!(
        error.contains(&format!("--> {}:2:1", down.display())),
        "{error}"
    );
    // emud writes three rows of one time in a form that a file cannot have.
    std::fs::write(down, "1\n2x3\n").unwrap();
    let error = emud::convert::import::mahimahi(up, down, None)
        .unwrap_err()
        .to_string();
    assert!(error.contains("`2x3` is not a time"), "{error}");
    let error = Profile::from_text(&near, "x", &folder)
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2: `2x3` is not a time"), "{error}");
    // A file of another kind is not repeated on the screen.
    std::fs::write(down, format!("[{}]", "1234567,".repeat(100_000))).unwrap();
    let error = emud::convert::import::mahimahi(up, down, None)
        .unwrap_err()
        .to_string();
    assert!(error.len() < 2000, "{}", error.len());
    for path in [up, down] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn netem_has_no_time() {
    for (link, what) in [
        ("trace = { opportunities = \"1\" }", "`trace`"),
        ("slot = \"10ms\"", "`slot`"),
        ("[[phase]]", "`[[phase]]`"),
    ] {
        let profile = parse(&format!("[link]\n{link}\n"));
        let error = emud::convert::export::netem(
            &profile,
            emud::convert::export::ExportDirection::Up,
            None,
        );
        let error = error.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_named_link_may_begin_with_another_profile() {
    let profile = parse(
        "[link]\n[links.x]\nprofile = \"lte\"\ndelay = \"1ms\"\n[links.x.up]\nloss = \"1%\"\n",
    );
    let lte = emud::profile::shipped::find("lte").unwrap();
    let x = &profile.links[0];
    assert_eq!((x.up.rate, x.down.rate), (lte.up.rate, lte.down.rate));
    assert_eq!((x.up.delay.mean_ns, x.down.delay.mean_ns), (MS, MS));
    assert_eq!((&x.up.loss, &x.down.loss), (&0.01.into(), &lte.down.loss));
    assert_eq!(parse(&profile.to_toml()), profile);
    for (name, what) in [("ltee", "did you mean `lte`"), ("./none.toml", "none.toml")] {
        let toml = format!("[link]\n[links.x]\nprofile = \"{name}\"\n");
        let error = Profile::parse(&toml, "x.toml").unwrap_err().to_string();
        assert!(
            error.contains("x.toml:3:") && error.contains(what),
            "{error}"
        );
    }
    let path = file("self.toml", "[link]\n[links.x]\nprofile = \"lte\"\n");
    let toml = format!("[link]\n[links.x]\nprofile = \"{path}\"\n");
    let error = Profile::parse(&toml, "x.toml").unwrap_err().to_string();
    assert!(error.contains("it has `links`"), "{error}");
    std::fs::write(&path, "[link]\n[matrix]\ncapacity = 9\n").unwrap();
    let error = Profile::parse(&toml, "x.toml").unwrap_err().to_string();
    assert!(error.contains("it has `matrix`"), "{error}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn set_merges_a_trace_key_by_key() {
    let profile = parse("[link]\ntrace = { opportunities = \"1 2x3\" }\n");
    let changed = set(&profile, &["trace.loop=false", "up.trace.offset=1s"]).unwrap();
    let up = changed.up.trace.unwrap();
    assert_eq!((up.repeat, up.offset_ns, up.len()), (false, 1_000 * MS, 4));
    let down = changed.down.trace.unwrap();
    assert_eq!((down.repeat, down.offset_ns), (false, 0));
    assert_eq!(set(&profile, &["trace=none"]).unwrap().up.trace, None);
    let slotted = set(&profile, &["slot=10ms", "slot.packets=32"]).unwrap();
    assert_eq!(
        slotted.up.slot,
        Some(Slot {
            min_ns: 10 * MS,
            max_ns: 10 * MS,
            packets: Some(32),
            bytes: None
        })
    );
    let error = set(&profile, &["phase=3"]).unwrap_err().to_string();
    assert!(error.contains("fixed at attach"), "{error}");
}

#[test]
fn a_phase_is_its_link_and_its_own_keys_on_top() {
    let profile = parse(
        r#"
        [link]
        delay = "10ms"
        rate = "1Mbit"
        [links.lte]
        delay = "30ms"
        [[phase]]
        for = "30s"
        loss = "1%"
        [phase.down]
        rate = "2Mbit"
        [[phase]]
        link = "lte"
        delay = "40ms"
        "#,
    );
    let [first, second] = &profile.phases.list[..] else {
        panic!()
    };
    assert_eq!(first.for_ns, Some(30_000 * MS));
    assert_eq!(
        (first.up.rate, first.down.rate),
        (Some(1_000_000), Some(2_000_000))
    );
    assert_eq!(first.up.delay.mean_ns, 10 * MS);
    assert_eq!(first.up.loss, 0.01.into());
    assert_eq!((second.for_ns, second.up.rate), (None, None));
    assert_eq!(second.down.delay.mean_ns, 40 * MS);
    assert_eq!(parse(&profile.to_toml()), profile);
}

/// 12 Mbit/s are an opportunity of 1500 bytes per millisecond.
#[test]
fn the_rate_of_opportunities_is_right_to_the_end() {
    for (last, every) in [
        (3, 1),
        (99, 1),
        (100, 1),
        (150, 1),
        (60_000, 1),
        (400_000, 4),
    ] {
        let of_one = (every..=last).step_by(every as usize);
        let times: String = of_one
            .map(|ms| format!("{ms}{} ", if every > 1 { "x4" } else { "" }))
            .collect();
        let text = format!("[link]\ntrace = {{ opportunities = \"{times}\" }}\n");
        let (steps, end_s) = timeline::rates(&super::parse(&text), 0);
        assert_eq!(end_s, f64::from(last) / 1e3);
        assert!(steps.len() <= 2000, "{}", steps.len());
        for (at, rate) in steps {
            assert!((rate - 12e6).abs() < 1e-3, "{last}: {at} s {rate}");
        }
    }
}

/// A plot has fewer points than these have rows; the border of a bin may be below itself, rounded.
#[test]
fn a_rate_that_stays_is_one_rate_in_any_number_of_rows() {
    let rows = || (60_000..=120_000).step_by(20);
    let rows: String = rows().map(|ms| format!(";{ms},10")).collect();
    let trace = format!("trace = {{ rows = \"time_ms,rate_Mbit;0,10{rows}\" }}");
    let traced = parse(&format!("[link]\n{trace}\n"));
    let (steps, _) = timeline::rates(&traced, 0);
    assert_eq!(steps.len(), 2000);
    for (at, rate) in steps {
        assert!((rate - 10e6).abs() < 1e-3, "{at} s {rate}");
    }
    let up = emud::convert::export::ExportDirection::Up;
    let exported = emud::convert::export::nearest_netem(&traced, up, None);
    assert_eq!(exported.command, "netem rate 10000000bit");
    // 6000 rows without a limit, and one with a rate.
    let phases = parse(
        "[link]\n[[phase]]\nfor = \"60s\"\nramp = true\ndelay = \"9ms\"\n\
         [[phase]]\nfor = \"60s\"\nrate = \"1Mbit\"\n",
    );
    let (steps, _) = timeline::rates(&phases, 0);
    assert_eq!(steps.len(), 2000);
    for (at, rate) in steps {
        let right = match at < 60.0 {
            true => rate == f64::INFINITY,
            false => (rate - 1e6).abs() < 1e-3,
        };
        assert!(right, "{at} s {rate}");
    }
}

#[test]
fn a_mahimahi_trace_that_is_not_there_is_named() {
    let ok = file("im.ok", "1\n2\n");
    let ok = std::path::Path::new(&ok);
    let missing = std::path::Path::new("/nowhere/nosuch");
    for (up, down) in [(missing, ok), (ok, missing)] {
        let error = emud::convert::import::mahimahi(up, down, None).unwrap_err();
        assert_eq!(error.exit_code(), 66);
        let said = error.to_string();
        assert!(said.starts_with("/nowhere/nosuch: "), "{said}");
    }
    std::fs::remove_file(ok).unwrap();
}

/// What the rows do not have of a jitter is the link's, as all that `emud set` may do with it.
#[test]
fn jitter_of_rows_is_described_by_the_link() {
    let rows = "trace = { rows = \"time_s,jitter_ms;0,5;1,2\" }";
    for keys in [
        "mean = \"50ms\", distribution = \"normal\", reorder = \"jitter\"",
        "mean = \"50ms\", jitter = \"0ms\", distribution = \"normal\", reorder = \"jitter\"",
        "distribution = \"lognormal\", coherence = \"1s\"",
        "mean = \"50ms\"",
    ] {
        let profile = parse(&format!("[link]\ndelay = {{ {keys} }}\n{rows}\n"));
        let jitter = profile.up.delay.jitter.as_ref();
        assert_eq!(
            jitter.map(|jitter| jitter.distribution.word()),
            ["lognormal", "normal"]
                .into_iter()
                .find(|word| keys.contains(word)),
        );
        assert!(jitter.is_none_or(|jitter| jitter.sd_ns == 0.0));
        let text = profile.to_toml();
        assert_eq!(
            Profile::parse(&text, "x").unwrap().up.delay,
            profile.up.delay,
            "{text}"
        );
        let loss = set(&profile, &["loss=1%"]).unwrap();
        assert_eq!(loss.up.delay, profile.up.delay);
    }
    // Without rows of jitter it says nothing.
    let text = "[link]\ndelay = { mean = \"50ms\", distribution = \"normal\" }\n";
    assert!(Profile::parse(text, "x").is_err());
}

#[test]
fn rates_of_rows_have_a_wire() {
    let text = "[link]\nrate = { burst = \"5kB\", mpu = 64 }\n\
                trace = { rows = \"time_s,rate_mbit;0,8;1,8\" }\n";
    let profile = parse(text);
    assert_eq!((profile.up.rate, profile.up.wire.mpu), (None, 64));
    let written = profile.to_toml();
    assert_eq!(
        Profile::parse(&written, "x").unwrap().up.wire,
        profile.up.wire,
        "{written}"
    );
    // 5000 bytes at the mean rate.
    let compiled = compile(
        &profile.up,
        1,
        0,
        0,
        PacketTarget {
            release: 0,
            ifindex: 0,
            l3: false,
        },
    );
    assert_eq!(compiled.unwrap().link.queueing.burst_ns, 5 * MS);
}
