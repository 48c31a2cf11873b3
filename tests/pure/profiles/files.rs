// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shipped profiles and files.

use std::path::Path;

use emud::profile::quantile::{delay_table, density};
use emud::profile::shipped::{self, SHIPPED};
use emud::profile::{MAX_BYTES, Profile};

/// The figures of the literature, computed independently.
fn share(link: &emud::profile::Link) -> f64 {
    link.loss.share().expect("independent of the length")
}

#[test]
fn shipped_profiles_say_what_their_sources_say() {
    let root2 = 2f64.sqrt();
    // Round trip: mean, sd in ms, loss in percent.
    for (name, rtt, sd, loss, up, down) in [
        ("hsdpa", 396.0, 98.0, 0.0, Some(384_000), Some(384_000)),
        ("adsl24", 25.0, 9.0, 0.0, Some(2_000_000), Some(24_000_000)),
        ("pinger-europe", 37.72, 22.42, 1.11, None, None),
        ("pinger-north-america", 59.38, 41.30, 0.17, None, None),
        ("pinger-na-eu", 174.19, 28.43, 0.91, None, None),
        ("pinger-eu-na", 150.91, 29.57, 0.38, None, None),
        (
            "tiainen-mobile",
            400.0,
            50.0 * (2f64 / 3.0).sqrt(),
            0.9975,
            None,
            None,
        ),
        (
            "tiainen-landline",
            40.0,
            13.0 * (2f64 / 3.0).sqrt(),
            0.1999,
            None,
            None,
        ),
        ("badnet-loss", 0.0, 0.0, 1.99, None, None),
    ] {
        let profile = shipped::find(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name, name);
        assert!(!profile.source.is_empty() && !profile.description.is_empty());
        assert_eq!((profile.up.rate, profile.down.rate), (up, down), "{name}");
        assert_eq!(profile.up.delay, profile.down.delay);
        // The files have at least four digits.
        let near = |got: f64, want: f64| {
            assert!((got - want).abs() <= 1e-4 * want, "{name}: {got} {want}")
        };
        near(2.0 * profile.up.delay.mean_ns as f64 / 1e6, rtt);
        near(
            profile.up.delay.jitter.as_ref().map_or(0.0, |j| j.sd_ns) * root2 / 1e6,
            sd,
        );
        near(
            100.0 * (1.0 - (1.0 - share(&profile.up)) * (1.0 - share(&profile.down))),
            loss,
        );
        let table = delay_table(&profile.up.delay).unwrap_or_else(|error| panic!("{error}"));
        let x = |i: usize| -8.0 + i as f64 / 256.0;
        let mean: f64 = (0..4097)
            .map(|i| density(x(i)) / 256.0 * table[i] as f64)
            .sum();
        near(2.0 * mean / 1e6, rtt);
    }
}

#[test]
fn every_file_in_profiles_is_shipped() {
    let mut files: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut shipped: Vec<_> = SHIPPED.iter().map(|s| format!("{}.toml", s.name)).collect();
    shipped.sort();
    assert_eq!(files, shipped);
}

#[test]
fn names_and_files() {
    let unknown = shipped::find("hsdap").unwrap_err();
    assert_eq!(unknown.exit_code(), 66);
    let text = unknown.to_string();
    assert!(
        text.contains("did you mean `hsdpa`?") && text.contains("tiainen-mobile"),
        "{text}"
    );

    let folder = std::env::temp_dir().join(format!("emud-profiles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let unnamed = shipped::find(&file("mine.toml", b"[up]\nloss = \"1%\"")).unwrap();
    assert_eq!(
        (unnamed.name.as_str(), unnamed.up.loss.clone()),
        ("mine", 0.01.into())
    );
    let bad = shipped::find(&file("bad.toml", b"[up]\nloss = 1")).unwrap_err();
    assert_eq!(bad.exit_code(), 65);
    assert!(bad.to_string().contains("bad.toml:2:8"), "{bad}");
    let binary = shipped::find(&file("binary", b"name = \"a\"\n# \xff\xfe\n")).unwrap_err();
    assert_eq!(binary.exit_code(), 65);
    let binary = binary.to_string();
    assert!(
        binary.contains("binary:2:3") && binary.contains("not UTF-8 text: 0xff"),
        "{binary}"
    );
    let large = shipped::find(&file("large", &vec![b'\n'; MAX_BYTES + 1])).unwrap_err();
    assert_eq!(large.exit_code(), 65);
    assert!(large.to_string().contains("1048576 bytes"), "{large}");
    let mut full = b"[link]".to_vec();
    full.resize(MAX_BYTES, b'\n');
    assert!(shipped::find(&file("full", &full)).is_ok());
    file(
        "pairs.csv",
        b"10.0.0.1,10.0.0.2,,20ms\n10.0.0.2,10.0.0.1,,1ms\n",
    );
    let short =
        b"[link]\ndelay = { mean = \"50ms\", jitter = \"10ms\" }\n[matrix]\nfile = \"pairs.csv\"\n";
    let short = shipped::find(&file("short.toml", short))
        .unwrap_err()
        .to_string();
    assert!(
        short.contains("10.0.0.2 to 10.0.0.1 is shorter") && short.contains("short.toml:4:"),
        "{short}"
    );
    // A file is that of the profile which names it, also if that is the base of a link.
    std::fs::create_dir_all(folder.join("base")).unwrap();
    file("p.txt", b"01\n");
    file("base/p.txt", b"0111\n");
    let lossy = "loss = { model = \"pattern\", file = \"p.txt\" }\n";
    file("base/lte.toml", format!("[link]\n{lossy}").as_bytes());
    let text = format!("[link]\n{lossy}[links.a]\nprofile = \"base/lte.toml\"\n");
    let based = shipped::find(&file("based.toml", text.as_bytes())).unwrap();
    let shares = [&based.up, &based.links[0].up].map(share);
    assert_eq!(shares, [0.5, 0.75]);
    let missing = Profile::load(Path::new("./there/is/no.toml")).unwrap_err();
    assert_eq!(missing.exit_code(), 66);
    assert!(
        missing
            .to_string()
            .contains("./there/is/no.toml: No such file"),
        "{missing}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
