// SPDX-License-Identifier: MIT OR Apache-2.0
//! Complete messages, as shown on a terminal. Read them here again after a change.

use std::process::{Command, Stdio};

use emud::convert::import;
use emud::convert::import::Header;
use emud::profile::{Profile, TextError};
use support::site::unique;

#[rustfmt::skip]
const PROFILES: &[(&str, &str)] = &[
    ("[link]\nrate = \"1,5Mbit\"\n",
r#"error: `1,5Mbit` has a comma
 --> x.toml:2:8
  |
2 | rate = "1,5Mbit"
  |        ^^^^^^^^^
  |
  = help: did you mean "1.5Mbit"?"#),
    ("[link]\nrate = \"1,500Mbit\"\n",
r#"error: `1,500Mbit` has a comma
 --> x.toml:2:8
  |
2 | rate = "1,500Mbit"
  |        ^^^^^^^^^^^
  |
  = help: write "1.500Mbit", or "1500Mbit" for thousands"#),
    ("[link]\nloss = \"0,5%\"\n",
r#"error: `0,5%` has a comma
 --> x.toml:2:8
  |
2 | loss = "0,5%"
  |        ^^^^^^
  |
  = help: did you mean "0.5%"?"#),
    ("[link]\ndelay = \"50ms +- 5ms\"\n",
r#"error: `50ms +- 5ms` is two durations
 --> x.toml:2:9
  |
2 | delay = "50ms +- 5ms"
  |         ^^^^^^^^^^^^^
  |
  = help: write them as a table: delay = { mean = "50ms", jitter = "5ms" }"#),
    ("[link]\nrate = \"0\"\n",
r#"error: a rate of `0` lets nothing through
 --> x.toml:2:8
  |
2 | rate = "0"
  |        ^^^
  |
  = help: for an outage write state = "down"; without the key there is no limit; the slowest rate is "1bit"; rates look like "384kbit", "1.5Mbit", "10Gbit""#),
    ("[link]\nrate = \"10MB/s\"\n",
r#"error: `MB/s` is not a unit of a rate
 --> x.toml:2:8
  |
2 | rate = "10MB/s"
  |        ^^^^^^^^
  |
  = help: write "80Mbit", which is the same rate; rates look like "384kbit", "1.5Mbit", "10Gbit""#),
    ("[link]\nrate = \"5Mb/s\"\n",
r#"error: `Mb/s` is not a unit of a rate
 --> x.toml:2:8
  |
2 | rate = "5Mb/s"
  |        ^^^^^^^
  |
  = help: write "5Mbit"; rates look like "384kbit", "1.5Mbit", "10Gbit""#),
    ("[link]\n[[phase]]\nduration = \"5s\"\n",
r#"error: there is no key `duration` of a phase
 --> x.toml:3:1
  |
3 | duration = "5s"
  | ^^^^^^^^
  |
  = help: did you mean `for`? (the keys are for, link, name, ramp, whole, up, down)"#),
    ("[link]\nloss = { probability = \"1%\", burst = 3 }\n",
r#"error: there is no key `burst` of a loss
 --> x.toml:2:30
  |
2 | loss = { probability = "1%", burst = 3 }
  |                              ^^^^^
  |
  = help: loss in bursts is a model: loss = { model = "burst", probability = "0.1%", length = 3 }"#),
    ("link:\n  rate: 5Mbit\n  delay: 20ms\n",
r#"error: this is YAML
 --> x.toml:1:1
  |
1 | link:
  | ^^^^^
  |
  = help: write TOML: a [header] on a separate line, below it lines such as delay = "50ms""#),
    ("{\"link\": {\"rate\": \"5Mbit\"}}\n",
r#"error: this is JSON
 --> x.toml:1:1
  |
1 | {"link": {"rate": "5Mbit"}}
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: write TOML: a [header] on a separate line, below it lines such as delay = "50ms""#),
    ("[links.lte]\nrate = \"5Mbit\"\n",
r#"error: the profile uses none of its links
 --> x.toml:1:2
  |
1 | [links.lte]
  |  ^^^^^
  |
  = help: a [links.NAME] is used where a [[rule]] or a [[phase]] has link = "lte"; for all packets write [link] in place of [links.lte]"#),
    ("[link]\nprofile = \"lte\"\n",
r#"error: there is no key `profile` of a link
 --> x.toml:2:1
  |
2 | profile = "lte"
  | ^^^^^^^
  |
  = help: a named link may begin with a profile: [links.x] with profile = "lte", to which link = "x" of a [[rule]] or [[phase]] refers; to use a profile as it is: --profile lte"#),
];

#[rustfmt::skip]
const COMMANDS: &[(&str, &str)] = &[
    ("",
r#"error: there is no command
 --> command:1:1
  |
1 |
  | ^
  |
  = help: only netem is imported, with or without a tbf or htb: write dev eth0 root netem ..., or the part from netem on"#),
    ("netem loss .1%",
r#"error: tc does not read `.1%` as a number
 --> command:1:12
  |
1 | netem loss .1%
  |            ^^^
  |
  = help: write 0.1%: a number of tc begins with a digit"#),
    ("tc qdisc show dev eth0",
r#"error: this command does not create a netem
 --> command:1:4
  |
1 | tc qdisc show dev eth0
  |    ^^^^^
  |
  = help: write tc qdisc add dev eth0 root netem ..., the part from netem on, or what tc qdisc show prints"#),
    ("tc qdisc add dev eth0 root tbf rate 1mbit burst 32k latency 400ms",
r#"error: `tbf` is not netem
 --> command:1:28
  |
1 | tc qdisc add dev eth0 root tbf rate 1mbit burst 32k latency 400ms
  |                            ^^^
  |
  = help: only netem is imported, with or without a tbf or htb: write dev eth0 root netem ..., or the part from netem on"#),
    ("tc qdisc add dev eth0 root netem delay ${DELAY}ms",
r#"error: `${DELAY}ms` has a variable of the shell
 --> command:1:40
  |
1 | tc qdisc add dev eth0 root netem delay ${DELAY}ms
  |                                        ^^^^^^^^^^
  |
  = help: write its value, or set it in the text: NAME=VALUE"#),
    ("tc qdisc add dev eth0 root netem delay 5ms\ntc qdisc add dev eth1 root netem loss 1%",
r#"error: netems on eth0, eth1
 --> command:2:34
  |
2 | tc qdisc add dev eth1 root netem loss 1%
  |                                  ^^^^^^^
  |
  = help: import the commands of one device, or of a device and its ifb"#),
];

fn same(text: &str, want: &str, shown: String) {
    assert_eq!(shown, want, "\nof {text}\n{shown}\n");
}

#[test]
fn of_profiles() {
    for (text, want) in PROFILES {
        let error = Profile::parse(text, "x.toml").unwrap_err();
        same(text, want, error.to_string());
    }
}

#[test]
fn of_commands() {
    for (text, want) in COMMANDS {
        let error = import::netem(text, Header::Up, &|_| None).unwrap_err();
        same(text, want, error.to_string());
    }
}

/// A file of another kind must not fill the screen.
#[test]
fn long_lines_are_clipped() {
    let long = "x".repeat(1_000_000);
    let ping = import::ping(
        &format!("64 bytes from b: icmp_seq=1 ttl=1 time=fast {long}"),
        "log",
    );
    let netem = import::netem(&format!("netem {long}"), Header::Up, &|_| None);
    let profile = Profile::parse(&format!("[link]\n# {long}\nrate = 5"), "x.toml");
    for shown in [
        ping.unwrap_err().to_string(),
        netem.unwrap_err().to_string(),
        profile.unwrap_err().to_string(),
    ] {
        assert!(shown.len() < 2000, "{} bytes", shown.len());
    }
}

fn emud(arguments: &[&str]) -> (Option<i32>, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_emud"))
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code(), said)
}

#[test]
fn exit_codes_of_import_and_export() {
    let name = format!("emud-codes-{}.log", std::process::id());
    let log = std::env::temp_dir().join(name);
    std::fs::write(&log, "1\n2\n").unwrap();
    let log = log.to_str().unwrap();
    let nowhere = "/nonexistent/x";
    for (arguments, code, part) in [
        (
            &["mahimahi", log, log, "-o", nowhere] as &[&str],
            74,
            nowhere,
        ),
        (
            &["csv", log, "--every", "1s", "--rate", "1", "-o", nowhere],
            74,
            nowhere,
        ),
        (
            &["csv", nowhere, "--every", "1s", "--rate", "1"],
            66,
            nowhere,
        ),
        (&["csv", log, "--rate", "1"], 64, "--time"),
        (
            &["csv", log, "--every", "1s", "--rate", "1", "--unit", "Mbti"],
            64,
            "Mbit",
        ),
        (&["ping", nowhere], 66, nowhere),
        (&["ping", log], 65, "no replies"),
        (&["mahimahi", "/dev/zero", log], 65, "268435456 bytes"),
        (&["ping", "/dev/zero"], 65, "268435456 bytes"),
        (
            &["csv", "/dev/zero", "--every", "1s", "--rate", "1"],
            65,
            "268435456 bytes",
        ),
        (&["netem", ""], 65, "there is no command"),
    ] {
        let arguments = [&["import"], arguments].concat();
        let (status, said) = emud(&arguments);
        assert_eq!(status, Some(code), "{arguments:?}: {said}");
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    std::fs::remove_file(log).unwrap();
    let (status, said) = emud(&["export", "netem", "hsdpa"]);
    assert_eq!(status, Some(65), "{said}");
    assert!(said.contains("--nearest"), "{said}");
    let (status, said) = emud(&["export", "netem", "hsdpa", "--nearest"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("warning: not exported: jitter"), "{said}");
    let error = std::io::ErrorKind::PermissionDenied.into();
    let path = log.into();
    assert_eq!(TextError::Unreadable { path, error }.exit_code(), 77);
}

/// The rows of `NAME.toml` go into `NAME.csv`, which may be the log, and its only copy.
#[test]
fn an_import_does_not_overwrite_what_it_reads() {
    let folder = std::env::temp_dir().join(unique("import"));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let [long, short, link] = ["long.csv", "short.csv", "link.csv"].map(file);
    let rows = |count: usize| {
        (0..count)
            .map(|n| format!("{n},{}\n", n % 7 + 1))
            .collect::<String>()
    };
    std::fs::write(&long, rows(30_000)).unwrap();
    std::fs::write(&short, rows(10)).unwrap();
    std::os::unix::fs::symlink(&long, &link).unwrap();
    let import = |log: &str, output: &str| {
        emud(&[
            "import",
            "csv",
            log,
            "--time",
            "1",
            "--rate",
            "2",
            "-o",
            &file(output),
        ])
    };
    for (log, output, part) in [
        (&long, "long.toml", "long.csv would be overwritten"),
        (&long, "link.toml", "link.csv would be overwritten"),
        (&long, "other.csv", "use -o NAME.toml"),
        (&short, "short.csv", "short.csv would be overwritten"),
    ] {
        let (status, said) = import(log, output);
        assert_eq!(status, Some(64), "{output}: {said}");
        assert!(said.contains(part), "{output}: {said}");
    }
    assert!(std::fs::read_to_string(&long).unwrap() == rows(30_000));
    assert_eq!(std::fs::read_to_string(&short).unwrap(), rows(10));
    // No rows go into a file of a short log, nor into the log of a profile with another name.
    for (log, output) in [(&short, "short.toml"), (&long, "other.toml")] {
        let (status, said) = import(log, output);
        assert_eq!(status, Some(0), "{output}: {said}");
    }
    assert!(folder.join("other.csv").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

/// All links of the host, running experiments included, are not those of a namespace. There is none of
/// this name, so that nothing is detached in any case.
#[test]
fn all_namespaces_are_not_one() {
    for verb in ["list", "detach"] {
        for one in [["--netns", "emud-none"], ["--container", "emud-none"]] {
            let (status, said) = emud(&[&one[..], &[verb, "--all"]].concat());
            assert_eq!(status, Some(64), "{verb}: {said}");
            assert!(said.contains("all network namespaces"), "{verb}: {said}");
        }
    }
}

/// A port of 0 would be any, whose counts nobody finds; `--each` lists datagrams.
#[test]
fn a_receiver_has_a_port() {
    for arguments in [&["0"] as &[&str], &["--tcp", "6001", "--each"]] {
        let (status, said) = emud(&[&["traffic", "receive"], arguments].concat());
        assert_eq!(status, Some(64), "{said}");
    }
}

/// Before anything is written or read.
#[test]
fn what_cannot_be_written_has_its_code() {
    for (arguments, code) in [
        (&["man", "/nonexistent"] as &[&str], 73),
        (
            &[
                "report",
                "a.log",
                "b.log",
                "-o",
                "-",
                "--svg",
                "/nonexistent/x",
            ],
            64,
        ),
    ] {
        let (status, said) = emud(arguments);
        assert_eq!(status, Some(code), "{arguments:?}: {said}");
    }
}

/// `emud ... 2>&1 | head`
#[test]
fn a_reader_that_has_gone_changes_no_exit_code() {
    let (reader, gone) = std::io::pipe().unwrap();
    drop(reader);
    for (arguments, code) in [
        (["import", "netem", "delay 2h"], 65),
        (["import", "netem", "delay 2"], 0),
    ] {
        let mut emud = Command::new(env!("CARGO_BIN_EXE_emud"));
        emud.args(arguments).stdout(Stdio::null());
        let status = emud.stderr(gone.try_clone().unwrap()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}
