// SPDX-License-Identifier: MIT OR Apache-2.0
//! `emud verify` on live links, in separate network namespaces. Needs root, and python3-jsonschema,
//! Debian's validator.
//!
//! One measurement per test agrees with the active profile; a changed link is detected without
//! another machine: it is judged against its former profile.

mod shipped;
mod space;

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use emud::netlink;
use emud::verify::{Request, verify};
use serde_json::Value;
use space::Space;

/// Profiles of other shapes: in order and normal with a rate; uniform with a loss.
const SHIPPED: [&str; 3] = ["adsl24", "hsdpa", "tiainen-mobile"];

/// Checks of that verdict, as "up delay_mean".
fn with_verdict(answer: &Value, verdict: &str) -> Vec<String> {
    let checks = answer["checks"].as_array().unwrap().iter();
    checks
        .filter(|c| c["verdict"] == verdict)
        .map(|c| {
            format!(
                "{} {}",
                c["direction"].as_str().unwrap(),
                c["what"].as_str().unwrap()
            )
        })
        .collect()
}

#[test]
#[ignore = "timing: a machine without other load"]
fn shipped_links_agree() {
    // At the same time: each has a separate veth, and they mostly wait.
    std::thread::scope(|scope| {
        for profile in SHIPPED {
            scope.spawn(move || {
                let space = Space::new();
                space.attach(profile);
                let (code, answer) = space.verify(&["--peer-netns", &space.b]);
                assert_eq!(
                    with_verdict(&answer, "disagrees"),
                    [""; 0],
                    "{profile}: {answer:#}"
                );
                assert_eq!(code, 0, "{profile}: {answer:#}");
                assert_eq!(answer["verdict"], "agrees");
                let rate = with_verdict(&answer, "agrees").contains(&"up rate".to_owned());
                assert_eq!(rate, profile != "tiainen-mobile", "{profile}");
                space::assert_valid(&answer);
            });
        }
    });
}

/// Changes one direction of a link, and returns which checks must fail.
fn found_out(profile: &str, change: &str, tells: &[&str]) {
    let space = Space::new();
    space.attach(profile);
    space.emud(&["set", "va", change]);
    let (code, answer) = space.verify(&["--peer-netns", &space.b, "--against", profile]);
    let wrong = with_verdict(&answer, "disagrees");
    assert_eq!(code, 1, "{profile} {change}: {answer:#}");
    assert!(
        wrong.iter().any(|w| tells.contains(&w.as_str())),
        "{profile} {change}: {wrong:?}"
    );
    // The other direction has not changed.
    assert_eq!(
        wrong.iter().filter(|w| w.starts_with("up")).count(),
        0,
        "{profile} {change}: {wrong:?}"
    );
    space::assert_valid(&answer);
}

/// All at the same time: they mostly wait, and none is judged to the millisecond.
#[test]
#[ignore = "timing: a machine without other load"]
fn what_was_changed_is_found() {
    let (rate, loss) = ("down rate", "down loss");
    let jitter = ["down delay_sd", "down delay_distribution"];
    let changes: [(&str, &str, &[&str]); 8] = [
        ("hsdpa", "down.rate=192kbit", &[rate]),
        ("adsl24", "down.rate=12Mbit", &[rate]),
        ("adsl24", "down.loss=1%", &[loss]),
        ("hsdpa", "down.loss=1%", &[loss]),
        ("tiainen-mobile", "down.loss=1.5%", &[loss]),
        ("adsl24", "down.delay.sd=12.728ms", &jitter),
        ("hsdpa", "down.delay.sd=138.592ms", &jitter),
        ("tiainen-mobile", "down.delay.jitter=100ms", &jitter),
    ];
    std::thread::scope(|scope| {
        for (profile, change, tells) in changes {
            scope.spawn(move || found_out(profile, change, tells));
        }
    });
}

#[test]
#[ignore = "timing: a machine without other load"]
fn a_round_trip_by_echo_is_judged_as_one() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let space = Space::new();
            space.attach("tiainen-mobile");
            let (code, answer) = space.verify(&["--peer", Space::B4]);
            assert_eq!(code, 0, "{answer:#}");
            assert_eq!(answer["method"], "round_trip");
            let loss = answer["checks"].as_array().unwrap().iter();
            let loss = loss.filter(|c| c["what"] == "loss").collect::<Vec<_>>();
            assert_eq!(loss.len(), 1);
            assert!((loss[0]["asked"].as_f64().unwrap() - 0.009_975).abs() < 1e-6);
            space::assert_valid(&answer);
        });
        scope.spawn(|| {
            let space = Space::new();
            space.attach("tiainen-mobile");
            space.emud(&["set", "va", "loss=2%"]);
            let asked = ["--peer", Space::B4, "--against", "tiainen-mobile"];
            let (code, answer) = space.verify(&asked);
            assert_eq!(code, 1);
            assert_eq!(
                with_verdict(&answer, "disagrees"),
                ["both loss"],
                "{answer:#}"
            );
        });
    });
}

/// Judged by losses: the resolution exceeds the delay that any machine adds.
#[test]
#[ignore = "timing: a machine without other load"]
fn a_link_as_asked_agrees_and_a_changed_one_does_not() {
    let space = Space::new();
    let profile = "[link]\ndelay = \"20ms\"\nloss = \"2%\"\n";
    space.attach_text(profile);
    let short = ["--duration", "1s", "--resolution", "200ms"];
    let (code, answer) = space.verify(&[&["--peer-netns", &space.b], &short[..]].concat());
    assert_eq!(
        (code, &answer["verdict"]),
        (0, &Value::from("agrees")),
        "{answer:#}"
    );
    space::assert_valid(&answer);
    space.emud(&["set", "va", "down.loss=30%"]);
    let file = space.file("profile.toml");
    let against = ["--peer", Space::B4, "--against", &file];
    let (code, answer) = space.verify(&[&against, &short[..]].concat());
    assert_eq!(code, 1, "{answer:#}");
    assert_eq!(
        with_verdict(&answer, "disagrees"),
        ["both loss"],
        "{answer:#}"
    );
    assert_eq!(answer["method"], "round_trip");
}

/// Measures for a second; delays below 200 ms are those of a machine with other load.
fn briefly(space: &Space) -> [&str; 6] {
    [
        "--peer-netns",
        &space.b,
        "--duration",
        "1s",
        "--resolution",
        "200ms",
    ]
}

#[test]
fn what_cannot_be_measured_is_not_passed() {
    let space = Space::new();
    // More than any machine can send packet by packet.
    space.attach_text("[link]\ndelay = \"5ms\"\nrate = \"900Gbit\"\n");
    let (code, answer) = space.verify(&briefly(&space));
    // On a machine that is busy with other tests, more checks may be unmeasurable, or late.
    let unmeasured = with_verdict(&answer, "not_measured");
    for check in ["up rate", "down rate"] {
        assert!(unmeasured.iter().any(|one| one == check), "{answer:#}");
    }
    assert_ne!(
        (code, &answer["verdict"]),
        (0, &Value::from("agrees")),
        "{answer:#}"
    );
    if with_verdict(&answer, "disagrees").is_empty() {
        let expected = (2, &Value::from("not_measured"));
        assert_eq!((code, &answer["verdict"]), expected, "{answer:#}");
    }
    space::assert_valid(&answer);
}

/// A trace up, bursts of losses down: the remaining checks are judged.
#[test]
#[ignore = "timing: a machine without other load"]
fn what_has_no_theory_is_named_and_the_rest_is_judged() {
    let space = Space::new();
    let profile = |down: &str| {
        format!(
            "[up]\ntrace = {{ rows = \"time_s,delay_ms;0,5;0.5,20\" }}\n\
             [down]\ndelay = \"{down}\"\n\
             loss = {{ model = \"gilbert-elliott\", p = \"5%\", r = \"50%\" }}\n"
        )
    };
    space.attach_text(&profile("5ms"));
    let peer = ["--peer-netns", &space.b];
    let short = [&peer[..], &["--duration", "1s", "--resolution", "200ms"]].concat();
    let (code, answer) = space.verify(&short);
    let delay = |direction: &str| {
        ["delay_mean", "delay_sd", "delay_distribution"].map(|what| format!("{direction} {what}"))
    };
    let judged = [
        &delay("down")[..],
        &["down duplicates".into(), "down overtaken".into()],
    ];
    let judged = [
        &["up duplicates".to_owned(), "up overtaken".into()],
        &judged.concat()[..],
    ];
    assert_eq!(
        with_verdict(&answer, "agrees"),
        judged.concat(),
        "{answer:#}"
    );
    let not = [&delay("up")[..], &["up loss".into(), "down loss".into()]].concat();
    assert_eq!(with_verdict(&answer, "not_judged"), not, "{answer:#}");
    assert_eq!((code, &answer["verdict"]), (2, &Value::from("not_judged")));
    space::assert_valid(&answer);
    let checks = answer["checks"].as_array().unwrap();
    let loss = checks.iter().rfind(|c| c["what"] == "loss").unwrap();
    assert_eq!(loss["why"], "the link has losses that are not independent");
    // p / (p + r)
    assert!(
        (loss["asked"].as_f64().unwrap() - 1.0 / 11.0).abs() < 1e-6,
        "{loss}"
    );
    // The other checks have a verdict: a different delay is detected.
    let file = space.file("other.toml");
    std::fs::write(&file, profile("500ms")).unwrap();
    let (code, answer) = space.verify(&[&short[..], &["--against", &file]].concat());
    assert_eq!(code, 1, "{answer:#}");
    assert!(with_verdict(&answer, "disagrees").contains(&"down delay_mean".to_owned()));
}

#[test]
#[ignore = "timing: a machine without other load"]
fn a_direction_without_theory_is_left_out_and_a_link_without_any_refused() {
    let space = Space::new();
    let phase = "[[phase]]\nfor = \"1s\"\nloss = \"1%\"\n[[phase]]\nfor = \"1s\"\n";
    space.attach_text(&format!("[link]\ndelay = \"5ms\"\n{phase}"));
    let peer = ["verify", "va", "--peer-netns", &space.b, "--duration", "1s"];
    let out = space.try_emud(&peer);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(69), "{said}");
    assert!(
        said.contains("no property of this link can be judged"),
        "{said}"
    );
    space.emud(&["detach", "va"]);
    space.attach_text("[up]\ncorrupt = \"1%\"\n[down]\ndelay = \"5ms\"\n");
    let more = ["--resolution", "200ms"];
    let (code, answer) = space.verify(&[&peer[2..], &more].concat());
    assert_eq!((code, &answer["verdict"]), (2, &Value::from("not_judged")));
    let note = "up: not judged: it has corruption";
    assert!(
        answer["notes"].as_array().unwrap().contains(&note.into()),
        "{answer:#}"
    );
    let directions = answer["checks"].as_array().unwrap().iter();
    assert!(directions.into_iter().all(|c| c["direction"] == "down"));
}

/// One direction has no theory, so the round trip has none, which would take 30 s.
#[test]
fn a_round_trip_without_theory_sends_nothing() {
    let space = Space::new();
    space.attach_text("[up]\ncorrupt = \"1%\"\n[down]\ndelay = \"5ms\"\n");
    let begin = Instant::now();
    let out = space.try_emud(&["verify", "va", "--peer", Space::B4]);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(69), "{said}");
    assert!(
        said.contains("no property of this link can be judged: it has corruption"),
        "{said}"
    );
    assert!(begin.elapsed() < Duration::from_secs(20));
}

/// What a server that is otherwise idle does to a class, and of what else it does no rate is passed over: also
/// without one of the link itself, of which there would be a line.
#[test]
fn a_class_is_judged_or_not_passed_over() {
    let space = Space::new();
    space.attach_text(
        "[up]\nclass = \"b.c\"\n[down]\ndelay = \"5ms\"\n\
         [bottleneck.b]\nrate = \"1Mbit\"\nschedule = \"drr\"\n[bottleneck.b.class.c]\n",
    );
    let (_, answer) = space.verify(&briefly(&space));
    assert_eq!(with_verdict(&answer, "not_judged"), [""; 0], "{answer:#}");
    let checks = answer["checks"].as_array().unwrap();
    let rate = checks.iter().find(|c| c["what"] == "rate");
    assert_eq!(rate.map(|c| &c["asked"]), Some(&Value::from(1e6)));
    space.emud(&["set", "va", "bottleneck.b.class.c.ceil=500kbit"]);
    let (code, answer) = space.verify(&briefly(&space));
    assert_eq!(code, 2, "{answer:#}");
    let note = "up: packets may wait in a class with a `ceil` below the rate of its bottleneck: its rate and its queue \
                are not judged";
    assert!(
        answer["notes"].as_array().unwrap().contains(&note.into()),
        "{answer:#}"
    );
    for what in ["up delay_mean", "up loss"] {
        assert!(
            with_verdict(&answer, "not_judged").contains(&what.to_owned()),
            "{answer:#}"
        );
    }
}

/// What is measured is then neither the one nor the other link.
#[test]
fn a_link_that_ends_or_changes_meanwhile_is_not_judged() {
    let space = Space::new();
    let measure = [&["verify", "va"], &briefly(&space)[..]].concat();
    let failed = |args: &[&str], code: i32, why: &str| {
        let out = space.try_emud(args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    };
    // The probes of 200 ms take more than 2 s.
    space.attach_text("[link]\ndelay = \"200ms\"\n");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Again and again, so that one of them is within the measurement.
        scope.spawn(|| {
            for ms in (150..200).cycle() {
                if done.load(Ordering::Acquire) {
                    break;
                }
                space.try_emud(&["set", "va", &format!("up.delay={ms}ms")]);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let out = space.try_emud(&measure);
        done.store(true, Ordering::Release);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(75), "{said}");
        assert!(said.contains("was changed while it was measured"), "{said}");
    });
    space.emud(&["set", "va", "--for", "20s"]);
    let long = ["verify", "va", "--peer-netns", &space.b];
    failed(&long, 66, "before it is measured");
    // Shorter than the lease of a process, so it is not known at the start that this is the end.
    space.emud(&["set", "va", "--for", "2s"]);
    failed(&measure, 66, "ended");
}

/// All that is judged has been measured before.
#[test]
fn a_link_that_goes_while_it_is_judged_was_measured() {
    let space = Space::new();
    space.attach_text("[link]\ndelay = \"5ms\"\n");
    let request = Request {
        interface: "va".to_owned(),
        peer_netns: Some(space.b.clone()),
        peer: None,
        against: None,
        duration_ns: 1_000_000_000,
        resolution_ns: 200_000_000,
    };
    let detach = |step: &'static str| {
        if step == "judging" {
            space.emud(&["detach", "va"]);
        }
    };
    let outcome = std::thread::scope(|scope| {
        let judged = scope.spawn(|| {
            netlink::enter(&space.a).unwrap();
            verify(&request, &detach)
        });
        judged.join().unwrap()
    });
    assert!(!outcome.unwrap().checks.is_empty());
    assert_eq!(space.try_emud(&["detach", "va"]).status.code(), Some(66));
}

/// Packets that wait already are part of what is measured, and named: of a link, or of a class.
#[test]
fn a_queue_that_was_not_empty_is_reported() {
    std::thread::scope(|scope| {
        for (name, profile) in [
            ("up", "[up]\nrate = \"100kbit\"\nqueue = \"200p\"\n"),
            (
                "b",
                "[up]\nclass = \"b\"\n[bottleneck.b]\nrate = \"100kbit\"\nqueue = \"200p\"\n",
            ),
        ] {
            scope.spawn(move || not_empty(name, profile));
        }
    });
}

fn not_empty(name: &str, profile: &str) {
    let space = Space::new();
    space.attach_text(profile);
    // The kernel's own packets (multicast reports, solicitations) take 7 ms each at this rate.
    let measure = briefly(&space);
    let of_queue = |answer: &Value| {
        let notes = answer["notes"].as_array().unwrap().iter();
        let notes = notes.filter_map(Value::as_str);
        let begin = format!("{name}: the queue held");
        notes.filter(|note| note.starts_with(&begin)).count()
    };
    assert_eq!(of_queue(&space.verify(&measure).1), 0);
    // The train has left nothing behind when verify ends; 60 packets take 6.9 s.
    space::sh(&format!(
        "ip netns exec {} ping -q -c 60 -i 0.002 -s 1400 -W 1 {} || true",
        space.a,
        Space::B4
    ));
    let answer = space.verify(&measure).1;
    // "the holder did not answer": a process ahead of it kept its CPU.
    let shown = space.try_emud(&["show", "va"]).stdout;
    let shown = String::from_utf8_lossy(&shown);
    assert_eq!(of_queue(&answer), 1, "{}\n{shown}", answer["notes"]);
}

#[test]
fn mistakes_have_their_codes() {
    let space = Space::new();
    let code = |args: &[&str]| space.try_emud(args).status.code();
    assert_eq!(code(&["verify", "va"]), Some(64), "no peer");
    assert_eq!(
        code(&["verify", "va", "--peer-netns", &space.b]),
        Some(66),
        "not attached"
    );
    space.attach("hsdpa");
    let own = [
        "verify",
        "va",
        "--peer-netns",
        &space.a,
        "--peer",
        "10.77.0.1",
    ];
    assert_eq!(code(&own), Some(66), "that would be looped back");
    let other = Space::new();
    space::sh(&format!("ip -n {} addr flush dev vb", other.b));
    let empty = ["verify", "va", "--peer-netns", &other.b];
    assert_eq!(code(&empty), Some(66), "no peer's address there");
    let short = [
        "verify",
        "va",
        "--peer-netns",
        &space.b,
        "--duration",
        "10ms",
    ];
    assert_eq!(code(&short), Some(64), "too short");
    let unknown = [
        "verify",
        "va",
        "--peer-netns",
        &space.b,
        "--against",
        "hsdpaa",
    ];
    assert_eq!(code(&unknown), Some(66), "no such profile");
    let silent = ["verify", "va", "--peer", "10.77.0.99", "--duration", "1s"];
    assert_eq!(code(&silent), Some(69), "nobody answers");
    space::sh(&format!("ip -n {} link set vb mtu 200", space.b));
    let narrow = ["verify", "va", "--peer-netns", &space.b, "--duration", "1s"];
    assert_eq!(code(&narrow), Some(69), "the peer's MTU is too small");
}

/// Addresses with labels, and an alternative name of more than 15 bytes.
#[test]
fn the_peer_is_found_under_other_names() {
    let space = Space::new();
    let other = "emud-an-alternative-name";
    space::sh(&format!(
        "ip -n {a} addr del 10.77.0.1/24 dev va; ip -n {b} addr del {b4}/24 dev vb
         ip -n {a} addr add 10.77.0.1/24 dev va label va:1
         ip -n {b} addr add {b4}/24 dev vb label vb:1
         ip -n {a} link property add dev va altname {other}",
        a = space.a,
        b = space.b,
        b4 = Space::B4,
    ));
    space.attach_text("[link]\ndelay = \"5ms\"\nrate = \"10Mbit\"\n");
    for peer in [["--peer-netns", &space.b], ["--peer", Space::B4]] {
        let verify = ["verify", other, "--json", "--duration", "1s"];
        let out = space.try_emud(&[&verify[..], &peer].concat());
        let said = String::from_utf8_lossy(&out.stderr);
        let answer: Value =
            serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{peer:?}: {e}: {said}"));
        assert_eq!(answer["interface"], "va");
        assert_eq!(answer["peer"], Space::B4);
        let loss = answer["checks"].as_array().unwrap().iter();
        let loss: Vec<_> = loss.filter(|check| check["what"] == "loss").collect();
        let arrive = |check: &&Value| check["measured"].as_f64().is_some_and(|m| m < 0.5);
        assert!(!loss.is_empty() && loss.iter().all(arrive), "{answer:#}");
    }
    space::sh(&format!("ip -n {} link set vb mtu 200", space.b));
    let netns = ["--peer-netns", &space.b, "--duration", "1s"];
    let out = space.try_emud(&[&["verify", other], &netns[..]].concat());
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(69), "{said}");
}

/// It is not the peer that is silent.
#[test]
fn a_link_that_loses_everything_disagrees() {
    let space = Space::new();
    space.attach_text("[link]\ndelay = \"5ms\"\n");
    space.emud(&["set", "va", "up.loss=100%"]);
    let file = space.file("profile.toml");
    let peer = ["--peer", Space::B4, "--against", &file, "--duration", "1s"];
    let (code, answer) = space.verify(&peer);
    assert_eq!(code, 1, "{answer:#}");
    assert_eq!(
        with_verdict(&answer, "disagrees"),
        ["both loss"],
        "{answer:#}"
    );
}

#[test]
#[ignore = "timing: a machine without other load"]
fn plots_are_drawn() {
    let space = Space::new();
    let file = space.file("plot.svg");
    let plot = |args: &[&str]| {
        let _ = std::fs::remove_file(&file);
        let code = space.try_emud(args).status.code();
        let svg = std::fs::read_to_string(&file).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        (code, svg)
    };
    for profile in SHIPPED {
        let (code, svg) = plot(&["profile", "plot", profile, "-o", &file]);
        assert_eq!(code, Some(0));
        assert!(
            svg.contains(&format!("{profile} up"))
                && svg.contains("no loss") != svg.contains("loss 0.5%")
        );
        // Two curves, of hundreds of points.
        let longest = svg
            .split("points=\"")
            .skip(1)
            .map(|p| p.split('"').next().unwrap());
        let longest = longest.map(|p| p.split(' ').count()).max();
        assert!(longest > Some(500), "{profile}: {longest:?}");
    }
    space.attach_text("[up]\ndelay = \"5ms\"\n");
    let netns = [
        "--peer-netns",
        &space.b,
        "--duration",
        "1s",
        "--resolution",
        "20ms",
    ];
    let (code, svg) = plot(&[&["verify", "va", "--plot", &file], &netns[..]].concat());
    assert_eq!(code, Some(0), "{svg}");
    assert!(svg.contains("measured") && svg.contains("requested"));
}

/// stderr of emud at a terminal, and in a pipe.
fn at_a_terminal_and_not(space: &Space, arguments: &str) -> [String; 2] {
    let emud = support::emud_path();
    let line = format!("{} --netns {} {arguments}", emud.display(), space.a);
    let run = |command: &mut Command| {
        let out = command.stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
    };
    [
        // Without a name, a terminal counts as one without cursor movement.
        run(Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("TERM", "xterm")),
        run(Command::new("sh").args(["-c", &line])),
    ]
}

#[test]
fn a_terminal_shows_how_far_it_is() {
    let space = Space::new();
    space.attach_text("[link]\ndelay = \"1ms\"\n");
    let verify = format!(
        "verify va --peer-netns {} --duration 1s --resolution 1s",
        space.b
    );
    let [shown, piped] = at_a_terminal_and_not(&space, &verify);
    assert!(shown.contains(" of about 1s] small probes"), "{shown}");
    assert!(!piped.contains("small probes"), "{piped}");
    let record = "monitor record -o /dev/null --duration 1s";
    let [shown, piped] = at_a_terminal_and_not(&space, record);
    assert!(shown.contains(" of 1s] recording: "), "{shown}");
    assert!(!piped.contains("recording: "), "{piped}");
}

#[test]
fn what_show_counts_it_explains() {
    let space = Space::new();
    space.attach_text("[link]\ndelay = \"10.5ms\"\n");
    let ping = format!(
        "ip netns exec {} ping -q -c 5 -i 0.05 {}",
        space.a,
        Space::B4
    );
    space::sh(&ping);
    let shown = space.try_emud(&["show", "va"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        !shown.contains("clamped") && !shown.contains("inactive"),
        "{shown}"
    );
    let not_emulated = "packets not emulated: ARP, neighbour discovery or PTP";
    assert!(shown.contains(not_emulated), "{shown}");
    let given = "delay given: mean 10.5ms, p50 10.5ms, p99 10.5ms, none above 11.01ms";
    assert!(shown.contains(given), "{shown}");
}
