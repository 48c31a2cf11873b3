// SPDX-License-Identifier: MIT OR Apache-2.0
//! Delays from files, shares of packets, and reordering.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use emud::profile::quantile::{Table, delay_table, moments_of, normal_cdf};
use emud::profile::{
    Distribution, Profile, ProfileError, Reorder, Reordering, Shape, TextError, shipped,
};

use super::{parse, set};

const MS: u64 = 1_000_000;

/// A folder with a profile `p.toml` and other files, deleted at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("emud-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        Self(folder)
    }

    fn load(&self, profile: &str) -> Result<Profile, ProfileError> {
        let path = self.0.join("p.toml");
        fs::write(&path, profile).unwrap();
        Profile::load(&path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Skewed, in tc-netem's form.
fn dist() -> String {
    let mut text = String::from("# a table\n");
    for k in 0..1024 {
        let u = (f64::from(k) + 0.5) / 1024.0;
        let end = if k % 8 == 7 { '\n' } else { ' ' };
        let _ = write!(
            text,
            "{}{end}",
            ((-(1.0 - u).ln() - 1.0) * 8192.0 * 0.5).round()
        );
    }
    text
}

/// 20 ms and more, in the second column, with a header.
fn csv() -> (String, Vec<f64>) {
    let values: Vec<f64> = (0..500)
        .map(|k| 20.0 + f64::from(k * k % 499) / 100.0)
        .collect();
    let mut text = String::from("time,rtt_ms\n");
    for (k, value) in values.iter().enumerate() {
        let _ = writeln!(text, "{k},{value}");
    }
    (text, values.iter().map(|v| v * 1e6).collect())
}

fn table(shape: &Shape) -> &Table {
    match shape {
        Shape::Table(table) => table,
        other => panic!("{other:?}"),
    }
}

/// The profile is equal after reading its own text, in any folder, and after a change.
fn round_trip(profile: &Profile) {
    let text = profile.to_toml();
    assert_eq!(
        Profile::parse(&text, "canonical").unwrap(),
        *profile,
        "{text}"
    );
    assert!(text.len() < 100_000, "{}", text.len());
    assert_eq!(
        set(profile, &["loss=1%"]).unwrap().up.delay,
        profile.up.delay
    );
}

#[test]
fn a_netem_table_means_what_it_means_to_netem() {
    let folder = Folder::new("dist", &[("my.dist", &dist())]);
    let file = "distribution = { file = \"my.dist\" }";
    let profile = folder
        .load(&format!(
            "[link]\ndelay = {{ mean = \"50ms\", jitter = \"10ms\", {file} }}"
        ))
        .unwrap();
    let values: Vec<f64> = dist()
        .lines()
        .skip(1)
        .flat_map(str::split_whitespace)
        .map(|v| 50e6 + v.parse::<f64>().unwrap() * 10e6 / 8192.0)
        .collect();
    let (mean, sd) = moments_of(&values);
    let jitter = profile.up.delay.jitter.as_ref().unwrap();
    assert!((jitter.sd_ns / sd - 1.0).abs() < 1e-4);
    let offset = table(&jitter.distribution).mean() / table(&jitter.distribution).sd();
    assert!((50e6 + jitter.sd_ns * offset - mean).abs() < 1e-4 * sd);
    round_trip(&profile);
    // With `sd` the deviation is the configured one.
    let profile = folder
        .load(&format!(
            "[link]\ndelay = {{ mean = \"50ms\", sd = \"10ms\", {file} }}"
        ))
        .unwrap();
    assert_eq!(profile.up.delay.jitter.as_ref().unwrap().sd_ns, 10e6);
    round_trip(&profile);
    let wider = set(
        &profile,
        &[
            "delay.sd=12ms",
            "delay.reorder=jitter",
            "delay.correlation=25%",
        ],
    )
    .unwrap();
    let jitter = wider.up.delay.jitter.as_ref().unwrap();
    assert_eq!(
        (jitter.sd_ns, jitter.reorder, jitter.correlation),
        (12e6, Reorder::Jitter, 0.25)
    );
    assert_eq!(
        jitter.distribution,
        profile.up.delay.jitter.unwrap().distribution
    );
}

#[test]
fn samples_are_the_delay() {
    let (text, values) = csv();
    let folder = Folder::new("samples", &[("rtt.csv", &text)]);
    let load = |more: &str| {
        let samples =
            format!("samples = {{ file = \"rtt.csv\", column = 2, unit = \"ms\"{more} }}");
        folder
            .load(&format!("[link]\ndelay = {{ {samples} }}"))
            .unwrap()
    };
    let (mean, sd) = moments_of(&values);
    let profile = load("");
    let delay = &profile.up.delay;
    assert_eq!(delay.mean_ns, mean.round() as u64);
    assert!((delay.jitter.as_ref().unwrap().sd_ns / sd - 1.0).abs() < 1e-9);
    round_trip(&profile);
    // The table follows the samples: the right number of them is below each of its points.
    let compiled = delay_table(delay).unwrap();
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    for (i, point) in compiled.iter().enumerate().step_by(16) {
        let p = normal_cdf(-8.0 + i as f64 / 256.0);
        let at = |ns: f64| sorted.partition_point(|v| *v <= *point as f64 + ns) as f64 / 500.0;
        // Half a sample, and the shift by the corrected deviation.
        assert!(
            at(-20e3) - 0.002 <= p && p <= at(20e3) + 0.002,
            "{point} at {p}"
        );
    }
    let half = load(", half = true");
    assert_eq!(half.up.delay.mean_ns, (mean / 2.0).round() as u64);
    // Shifted and scaled, in the same table or by a later one.
    let moved = set(&profile, &["delay.mean=40ms", "delay.sd=3ms"]).unwrap();
    let jitter = moved.up.delay.jitter.as_ref().unwrap();
    assert_eq!((moved.up.delay.mean_ns, jitter.sd_ns), (40 * MS, 3e6));
    assert_eq!(
        jitter.distribution,
        delay.jitter.as_ref().unwrap().distribution
    );
}

#[test]
fn columns_by_name_and_other_separators() {
    let (text, values) = csv();
    let (mean, _) = moments_of(&values);
    let semicolons = text.replace(',', ";").replace("rtt_ms", "\"rtt ms\"");
    let plain: String = values.iter().map(|v| format!("{}\n", v / 1e9)).collect();
    let folder = Folder::new(
        "columns",
        &[
            ("a.csv", &text),
            ("b.csv", &semicolons),
            ("c.txt", &format!("\u{feff}# s\n\n{plain}")),
        ],
    );
    for samples in [
        "file = \"a.csv\", column = \"rtt_ms\", unit = \"ms\"",
        "file = \"b.csv\", column = \"rtt ms\", unit = \"ms\"",
        "file = \"c.txt\", unit = \"s\"",
    ] {
        let profile = folder
            .load(&format!("[up]\ndelay = {{ samples = {{ {samples} }} }}"))
            .unwrap();
        assert_eq!(profile.up.delay.mean_ns, mean.round() as u64, "{samples}");
    }
}

#[test]
fn samples_that_are_mostly_the_least_are_taken() {
    for (values, mean_ms) in [
        ("0 0 0 0 0 0 10 10 10 10", 4.0),
        ("0 0 0 0 0 0 0 0 0 100", 10.0),
        ("1 1 1 1 1 1 1 1 1 200", 20.9),
    ] {
        let text =
            format!("[link]\ndelay = {{ samples = {{ values = \"{values}\", unit = \"ms\" }} }}\n");
        let profile = Profile::parse(&text, "x.toml").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(profile.up.delay.mean_ns, (mean_ms * 1e6) as u64);
        let again = Profile::parse(&profile.to_toml(), "x.toml");
        assert_eq!(again.unwrap_or_else(|e| panic!("{e}")), profile);
    }
}

#[test]
fn samples_that_do_not_vary_are_a_constant() {
    let folder = Folder::new("constant", &[("x", &"7\n".repeat(20))]);
    let profile = folder
        .load("[up]\ndelay = { samples = { file = \"x\", unit = \"ms\" } }")
        .unwrap();
    assert_eq!(profile.up.delay.mean_ns, 7 * MS);
    assert_eq!(profile.up.delay.jitter, None);
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let few = "5\n6\n7\n";
    let folder = Folder::new(
        "wrong",
        &[
            ("few", few),
            ("text", &format!("{}oops\n8\n", "1\n2\n".repeat(10))),
            ("negative", &format!("{}-3\n", "1\n2\n".repeat(10))),
            ("nan", &format!("{}NaN\n", "1\n2\n".repeat(10))),
            ("wide", &format!("{}\n40000\n", "1 2 3 4 5 6 ".repeat(4))),
            ("flat", &"9 ".repeat(30)),
            ("short", "a,b\n1,2\n3\n"),
            ("quoted", "a,b\n1,2\n\"x,7\",3\n"),
        ],
    );
    fs::write(folder.0.join("bytes"), b"1\n2\n\xff\n").unwrap();
    let samples = |file: &str| format!("samples = {{ file = \"{file}\", unit = \"ms\" }}");
    let dist = |file: &str| {
        format!("mean = \"9ms\", jitter = \"1ms\", distribution = {{ file = \"{file}\" }}")
    };
    #[rustfmt::skip]
    let cases = [
        (samples("few"), "\"few\"", "few has only 3 values", "10 at least"),
        (samples("text"), "\"text\"", "text, line 21: `oops` is not a number", "mend or remove"),
        (samples("negative"), "\"negative\"", "negative, line 21: -3 is not a delay", "`unit`"),
        (samples("nan"), "\"nan\"", "nan, line 21: `NaN` is not a number", "mend or remove"),
        (samples("bytes"), "\"bytes\"", "bytes, line 3: not UTF-8", "UTF-8"),
        (samples("none"), "\"none\"", "cannot read", "profile's folder"),
        (samples("."), "\".\"", "cannot read", "profile's folder"),
        (dist("wide"), "\"wide\"", "wide, line 2: 40000 is out of range", "8192"),
        (dist("flat"), "\"flat\"", "flat: all values are the same", "constant"),
        (dist("text"), "\"text\"", "text, line 21: `oops` is not a number", "mend or remove"),
        ("samples = { file = \"short\", column = 2, unit = \"ms\" }".into(), "\"short\"", "short, line 3: there is no column 2", "commas"),
        ("samples = { file = \"quoted\", column = 2, unit = \"ms\" }".into(), "\"quoted\"", "quoted, line 3: a separator between quotes", "take"),
        ("samples = { file = \"short\", column = \"c\", unit = \"ms\" }".into(), "\"short\"", "short, line 1: there is no column `c`", "commas"),
    ];
    for (delay, underlined, title, help) in cases {
        let error = folder
            .load(&format!("[link]\n\ndelay = {{ {delay} }}\n"))
            .unwrap_err();
        assert_mistake(&error, (3, underlined, title, help));
        assert!(error.to_string().contains("p.toml:3:"), "{error}");
    }
}

fn assert_mistake(
    error: &ProfileError,
    (line, underlined, title, help): (usize, &str, &str, &str),
) {
    let ProfileError::Text(TextError::Mistakes(mistakes)) = error else {
        panic!("{error}")
    };
    let found = mistakes.iter().any(|m| {
        mistakes.line(m) == line
            && mistakes.underlined(m).contains(underlined)
            && m.title.contains(title)
            && m.help.contains(help)
    });
    assert!(
        found,
        "{title:?} ({help:?}) at {underlined:?} in line {line}:\n{error}"
    );
}

#[test]
fn what_is_wrong_with_the_keys() {
    let jitter = "mean = \"9ms\", jitter = \"1ms\"";
    #[rustfmt::skip]
    let cases = [
        (format!("delay = {{ {jitter}, correlation = \"25%\" }}"), "\"25%\"", "`correlation` of a delay that keeps the order", "reorder = \"jitter\""),
        (format!("delay = {{ {jitter}, reorder = \"jitter\", correlation = \"100%\" }}"), "\"100%\"", "a correlation is below 100 %", "25%"),
        (format!("delay = {{ {jitter}, max = \"8ms\" }}"), "\"8ms\"", "`max` of 8ms is below the mean", "longer"),
        ("delay = { mean = \"9ms\", max = \"10ms\" }".into(), "\"10ms\"", "`max` without `jitter`", "leave it out"),
        (format!("delay = {{ {jitter}, max = \"0ms\" }}"), "\"0ms\"", "`max` is zero", "leave it out"),
        (format!("delay = {{ {jitter}, max = \"20ms\" }}\ntrace = {{ rows = \"time_s,delay_ms;0,5\", period = \"1s\" }}"), "\"20ms\"", "`max` of a delay that a trace gives", "leave `max` out"),
        (format!("delay = {{ {jitter}, share = 5 }}"), "5", "no percent sign", "5%"),
        ("delay = { share = \"5%\" }".into(), "share", "without `mean`", "mean = "),
        ("delay = { mean = \"9ms\", correlation = \"5%\" }".into(), "\"5%\"", "`correlation` without `jitter`", "leave it out"),
        (format!("delay = {{ {jitter}, distribution = {{ }} }}"), "{ }", "one file", "my.dist"),
        (format!("delay = {{ {jitter}, distribution = {{ path = \"x\" }} }}"), "path", "no key `path`", "file = "),
        (format!("delay = {{ {jitter}, distribution = {{ table = \"1 2 3\" }} }}"), "\"1 2 3\"", "not a table", "give that file"),
        (format!("delay = {{ {jitter}, distribution = {{ table = \"0 -1x4096\" }} }}"), "-1x", "not a table", "give that file"),
        (format!("delay = {{ {jitter}, distribution = {{ table = \"0 0x4096\" }} }}"), "0x", "same", "give that file"),
        ("delay = { samples = \"x.csv\" }".into(), "\"x.csv\"", "cannot be text", "file = "),
        ("delay = { samples = { file = \"x\" } }".into(), "file", "samples without `unit`", "unit = "),
        ("delay = { samples = { values = \"1 2 x\", unit = \"ms\" } }".into(), "\"1 2 x\"", "`values`, number 3: `x` is not a number", ""),
        ("delay = { samples = { values = \"1 2 -3\", unit = \"ms\" } }".into(), "\"1 2 -3\"", "`values`, number 3: -3 is not a delay", "`unit`"),
        ("delay = { samples = { values = \"1 2\", unit = \"ms\" } }".into(), "\"1 2\"", "only 2 values", "10 at least"),
        ("delay = { samples = { values = \"1 2\", file = \"x\", unit = \"ms\" } }".into(), "file", "both `values` and `file`", "keep one"),
        ("delay = { samples = { unit = \"ms\" } }".into(), "unit", "samples without `file`", "file = "),
        ("delay = { samples = { file = \"x\", unit = \"m\" } }".into(), "\"m\"", "cannot be `m`", "\"ms\""),
        ("delay = { samples = { file = \"x\", unit = \"ms\", column = 0 } }".into(), "0", "not a column", "from 1"),
        ("delay = { samples = { file = \"x\", unit = \"ms\", half = 1 } }".into(), "1", "true or false", "half = true"),
        ("delay = { samples = { file = \"x\", unit = \"ms\", rows = 1 } }".into(), "rows", "no key `rows`", "column"),
        ("delay = { samples = { file = \"x\", unit = \"ms\" }, distribution = \"normal\" }".into(), "distribution", "both", "keep one"),
        ("delay = { mean = \"1ms\", sd = \"4ms\", distribution = \"lognormal\" }".into(), "\"4ms\"", "too skewed", "at most \"3ms\""),
        ("reorder = \"jitter\"".into(), "\"jitter\"", "cannot be `jitter`", "inside `delay`"),
        ("reorder = { gap = 5 }".into(), "{ gap = 5 }", "without `probability`", "100%"),
        ("reorder = { probability = \"1%\", gap = 0 }".into(), "0", "`gap` of 0 is out of range", "from 1"),
        ("reorder = { probability = \"1%\", gaps = 5 }".into(), "gaps", "no key `gaps`", "did you mean `gap`"),
        ("reorder = \"101%\"".into(), "\"101%\"", "more than 100", "100%"),
    ];
    for (text, underlined, title, help) in cases {
        let error = Profile::parse(&format!("[link]\n{text}\n"), "x.toml").unwrap_err();
        assert_mistake(&error, (2, underlined, title, help));
    }
}

#[test]
fn lognormal_share_and_reorder_arrive() {
    let profile = parse(
        r#"
        [link]
        delay = { mean = "50ms", sd = "20ms", distribution = "lognormal", reorder = "jitter", correlation = "30%", share = "5%" }
        reorder = { probability = "2%", correlation = "50%", gap = 5 }
        [down]
        delay = { share = "100%", correlation = "none" }
        reorder = { gap = "none" }
        "#,
    );
    let jitter = profile.up.delay.jitter.as_ref().unwrap();
    assert_eq!(
        (&jitter.distribution, jitter.correlation),
        (&Shape::LogNormal, 0.3)
    );
    assert_eq!(
        (profile.up.delay.share, profile.down.delay.share),
        (Some(0.05), None)
    );
    assert_eq!(profile.down.delay.jitter.as_ref().unwrap().correlation, 0.0);
    let asked = Reordering {
        probability: 0.02,
        correlation: 0.5,
        gap: 5,
    };
    assert_eq!(profile.up.reorder, Some(asked));
    assert_eq!(profile.down.reorder, Some(Reordering { gap: 1, ..asked }));
    round_trip(&profile);
    let none = set(&profile, &["reorder=none", "delay.share=none"]).unwrap();
    assert_eq!((none.up.reorder, none.up.delay.share), (None, None));
    let short = set(&none, &["reorder=3%", "up.reorder.gap=4"]).unwrap();
    assert_eq!(
        short.up.reorder,
        Some(Reordering {
            probability: 0.03,
            correlation: 0.0,
            gap: 4
        })
    );
    assert_eq!(set(&short, &["reorder=0%"]).unwrap().up.reorder, None);
    let constant = parse("[up]\ndelay = { mean = \"9ms\", share = \"25%\" }");
    assert_eq!(
        (constant.up.delay.mean_ns, constant.up.delay.share),
        (9 * MS, Some(0.25))
    );
    round_trip(&constant);
}

#[test]
fn badnet_latency_is_the_sources() {
    let profile = shipped::find("badnet-latency").unwrap();
    let delay = &profile.up.delay;
    let jitter = delay.jitter.as_ref().unwrap();
    assert_eq!((delay.mean_ns, delay.share), (10 * MS, Some(0.05)));
    assert_eq!(jitter.sd_ns, 5e6);
    assert_eq!(jitter.distribution, Distribution::Normal.into());
    assert_eq!(jitter.reorder, Reorder::Jitter);
    assert_eq!(profile.up, profile.down);
    // As the comment in the file states.
    assert_eq!(
        set(&profile, &["delay.share=20%"]).unwrap().up.delay.share,
        Some(0.2)
    );
    let literal = set(&profile, &["delay.sd=2.24ms"]).unwrap();
    assert_eq!(literal.up.delay.jitter.as_ref().unwrap().sd_ns, 2.24e6);
}

#[test]
fn a_delay_that_is_set_to_zero_reads_back() {
    for (delay, change, expected) in [
        (
            "{ mean = \"20ms\", jitter = \"5ms\", max = \"50ms\" }",
            "delay.jitter=0ms",
            "\"20ms\"",
        ),
        (
            "{ mean = \"10ms\", share = \"50%\" }",
            "delay.mean=0ms",
            "{ mean = \"0ms\", share = \"50%\" }",
        ),
    ] {
        let profile = set(&parse(&format!("[link]\ndelay = {delay}\n")), &[change]).unwrap();
        let text = profile.to_toml();
        assert!(text.contains(&format!("delay = {expected}\n")), "{text}");
        round_trip(&profile);
    }
}

#[test]
fn a_path_starts_at_the_profile_or_the_root() {
    let folder = Folder::new("paths", &[("my.dist", &dist())]);
    let absolute = folder.0.join("my.dist");
    let delay = |path: &Path| {
        let path = path.display();
        format!("delay={{mean=\"9ms\",jitter=\"1ms\",distribution={{file=\"{path}\"}}}}")
    };
    let profile = parse("[link]");
    assert!(set(&profile, &[&delay(&absolute)]).is_ok());
    let error = set(&profile, &[&delay(Path::new("emud-no-such.dist"))]).unwrap_err();
    assert_mistake(
        &error,
        (1, "emud-no-such.dist", "cannot read", "`emud set`"),
    );
}

/// 300 km at 2/3 of 299792458 m/s are 1.501038 ms; radio to a geostationary satellite, 35786 km above the
/// equator, takes 119.369 ms.
#[test]
fn a_distance_is_the_mean() {
    let delay = |text: &str| parse(text).up.delay;
    assert_eq!(
        delay("[link]\ndelay = { distance = \"300km\" }"),
        delay("[link]\ndelay = \"1501038ns\"")
    );
    let satellite = "[link.delay]\ndistance = { length = \"35786km\", velocity-factor = \"100%\" }";
    assert_eq!(delay(satellite).mean_ns, 119_369_247);
    assert_eq!(delay("[link]\ndelay = { distance = \"50m\" }").mean_ns, 250);
    // Each replaces the other; the jitter stays.
    let profile = parse(
        "[link]\ndelay = { mean = \"5ms\", jitter = \"1ms\" }\n[up]\ndelay = { distance = \"300km\" }",
    );
    assert_eq!(
        (profile.up.delay.mean_ns, profile.down.delay.mean_ns),
        (1_501_038, 5 * MS)
    );
    assert_eq!(profile.up.delay.jitter, profile.down.delay.jitter);
    round_trip(&profile);
    let changed = set(
        &profile,
        &["up.delay.mean=7ms", "down.delay.distance=600km"],
    )
    .unwrap();
    assert_eq!(
        (changed.up.delay.mean_ns, changed.down.delay.mean_ns),
        (7 * MS, 3_002_077)
    );
    assert!(
        changed.to_toml().contains("mean = \"3.002077ms\""),
        "{}",
        changed.to_toml()
    );
    let none = set(&profile, &["delay.jitter=none", "delay.distance=none"]);
    assert!(none.is_err_and(|e| e.to_string().contains("without `mean`")));
}
