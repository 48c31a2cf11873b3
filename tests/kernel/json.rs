// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of `--json`, against the schemas in docs/. Needs root and python3-jsonschema,
//! Debian's validator.

use std::process::{Command, Output};

use serde_json::{Value, json};
use support::site::unique;
use support::validator::{assert_refused, assert_valid, spoilt};

fn emud(arguments: &[&str]) -> Output {
    Command::new(support::emud_path())
        .args(arguments)
        .output()
        .unwrap()
}

fn succeed(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {err}");
    String::from_utf8(out.stdout).unwrap()
}

fn doctor() -> Value {
    serde_json::from_slice(&emud(&["doctor", "--json"]).stdout).unwrap()
}

/// A network namespace with a veth, v0 and v1. Nothing sends on it: no addresses, also none of IPv6.
struct Space(String);

impl Space {
    fn new() -> Self {
        let space = Self(unique("json"));
        succeed(Command::new("ip").args(["netns", "add", &space.0]));
        for command in [
            "link add v0 type veth peer name v1",
            "link set v1 addrgenmode none up",
            "link set v0 addrgenmode none up",
        ] {
            let mut ip = Command::new("ip");
            ip.args(["-n", &space.0]).args(command.split(' '));
            succeed(&mut ip);
        }
        space
    }

    fn emud(&self, arguments: &str) -> String {
        let mut command = Command::new(support::emud_path());
        command.args(["--netns", &self.0]);
        succeed(command.args(arguments.split(' ')))
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.emud(arguments)).unwrap()
    }

    /// `show` of a link with these keys instead of the profile's.
    fn show_with(&self, changes: &str) -> Value {
        self.emud(&format!("set v0 {changes}"));
        let shown = self.json("show v0 --json");
        assert_valid("show", &shown);
        shown["interfaces"][0].clone()
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // The holder ends with its TAP; no link may be attached any more.
        emud(&["detach", "v0", "--netns", &self.0]);
        succeed(Command::new("ip").args(["netns", "del", &self.0]));
    }
}

#[test]
fn doctor_is_as_described() {
    let doctor = doctor();
    assert_valid("doctor", &doctor);
    // tcx came with Linux 6.6.
    let checks = doctor["checks"].as_array().unwrap();
    let tcx = checks
        .iter()
        .find(|check| check["feature"] == "tcx")
        .unwrap();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release
        .split('.')
        .take(2)
        .map(|n| n.parse().unwrap())
        .collect();
    assert!(
        tcx["verdict"] != "yes" || numbers >= vec![6, 6],
        "{release}: {tcx}"
    );
}

#[test]
fn calibrated_recordings_are_as_described() {
    let file = std::env::temp_dir().join(format!("json-{}.rec", std::process::id()));
    let path = file.to_str().unwrap();
    let verb = ["monitor", "record", "--duration", "300ms", "-o", path];
    succeed(Command::new(support::emud_path()).args(verb));
    for contended in [&[][..], &["--contended", path]] {
        let verb = ["monitor", "calibrate", "--json", path];
        let mut calibrate = Command::new(support::emud_path());
        calibrate.args(verb).args(contended);
        let document: Value = serde_json::from_str(&succeed(&mut calibrate)).unwrap();
        // 0.3 s without one busy interval, some of which the recording itself causes, is a fault.
        assert_ne!(document["criteria"]["cpu"]["good"]["count"], 0);
        assert_valid("calibrate", &document);
        if contended.is_empty() {
            let maps = ["criteria", "members", "lost", "watched"];
            assert_refused("calibrate", spoilt(&document, "", &maps));
        }
    }
    let emud = support::emud_path();
    let emud = emud.display();
    let line = format!("{emud} monitor calibrate {path} --contended {path}");
    let shown = support::at_terminal(80, &line);
    assert!(shown.contains("\nsuggested theta\n"), "{shown}");
    let is_wide = |line: &&str| line.chars().count() > 80 && !line.starts_with('!');
    assert_eq!(shown.lines().find(is_wide), None, "{shown}");
    std::fs::remove_file(file).unwrap();
}

/// Of one that runs in virtual time; the others have a test of their figures.
#[test]
fn reproduced_experiments_are_as_described() {
    let verb = ["reproduce", "--quick", "--json", "c-aqm"];
    let mut reproduce = Command::new(support::emud_path());
    let document: Value = serde_json::from_str(&succeed(reproduce.args(verb))).unwrap();
    assert_eq!(document["verdict"], "explained");
    assert_valid("reproduce", &document);
    assert_refused("reproduce", spoilt(&document, "", &["tolerance"]));
}

/// Each of the others is still carried out.
#[test]
fn an_experiment_without_its_program_is_not_measured() {
    let names = ["s-window", "t-links", "t-p2p", "t-star"];
    let mut reproduce = Command::new(support::emud_path());
    reproduce.args(["reproduce", "--json"]).args(names);
    let output = reproduce.env("PATH", "/nonexistent").output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("reproduce", &document);
    for (n, name) in names.iter().enumerate() {
        let [figure] = &document["experiments"][n]["figures"].as_array().unwrap()[..] else {
            panic!("{name}: {document}")
        };
        assert_eq!(figure["verdict"], "not measured", "{name}");
        let explanation = figure["explanation"].as_str().unwrap();
        assert!(
            explanation.contains("install the Debian package"),
            "{explanation}"
        );
    }
}

#[test]
fn catalogues_are_as_described() {
    for (kind, folder) in [("profile", "profiles"), ("scenario", "scenarios")] {
        let text = succeed(Command::new(support::emud_path()).args([kind, "list", "--json"]));
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_valid("catalogue", &document);
        assert_refused("catalogue", spoilt(&document, "", &[]));
        let named = text.matches("\"name\":").count();
        let files = std::fs::read_dir(support::root().join(folder)).unwrap();
        let shipped = files.filter(|file| {
            let path = file.as_ref().unwrap().path();
            path.extension().is_some_and(|kind| kind == "toml")
        });
        assert_eq!(named, shipped.count(), "{kind}");
    }
}

#[test]
fn nothing_attached_is_as_described() {
    let space = Space::new();
    for verb in ["show", "list"] {
        let document = space.json(&format!("{verb} --json"));
        assert_eq!(document["interfaces"], json!([]));
        assert_valid(verb, &document);
    }
}

#[test]
fn every_engine_is_as_described() {
    let engines = doctor()["engines"].clone();
    assert_ne!(engines, json!([]), "no engine works here");
    for engine in engines.as_array().unwrap() {
        let space = Space::new();
        let name = engine.as_str().unwrap();
        space.emud(&format!("attach v0 --profile adsl24 --engine {name}"));
        let (shown, listed) = (space.json("show v0 --json"), space.json("list --json"));
        assert_eq!(shown["interfaces"][0]["engine"], *engine);
        assert_eq!(listed["interfaces"][0]["engine"], *engine);
        assert_eq!(
            shown["interfaces"][0]["up"]["holder"] != Value::Null,
            name == "hold"
        );
        assert_valid("show", &shown);
        assert_valid("list", &listed);
    }
}

#[test]
fn every_kind_of_link_is_as_described() {
    let space = Space::new();
    space.emud("attach v0 --profile tiainen-mobile --direction down --reverse");
    let shown = space.json("show v0 --json");
    assert_valid("show", &shown);
    assert_valid("list", &space.json("list --json"));
    assert_eq!(shown["interfaces"][0]["up"], Value::Null);

    let down = |changes: &str| space.show_with(changes)["down"].clone();
    let packets = down("rate=8Mbit queue=7p overhead=-14 neighbours=emulate");
    assert_eq!(packets["queue"], json!({"packets": 7}));
    assert_eq!(packets["neighbours"], "emulate");
    assert_eq!(down("queue=64KiB")["queue"], json!({"bytes": 65536}));
    assert_eq!(
        down("queue=200ms")["queue"],
        json!({"time_ns": 200_000_000})
    );
    assert_eq!(down("rate=none")["queue"], "none");
    let constant = down("delay=20ms loss=100%");
    assert_eq!(constant["delay"]["mean_ns"], json!(20_000_000));
    assert_eq!(constant["delay"]["distribution"], Value::Null);
    for distribution in ["uniform", "normal", "pareto", "paretonormal", "lognormal"] {
        let delay = format!(r#"delay={{mean="20ms",jitter="5ms",distribution="{distribution}"}}"#);
        assert_eq!(down(&delay)["delay"]["distribution"], distribution);
        assert_eq!(
            down("delay.reorder=jitter")["delay"]["coherence_ns"],
            Value::Null
        );
    }
    let table = format!(
        "{}/dist-{}",
        std::env::temp_dir().display(),
        std::process::id()
    );
    std::fs::write(&table, "-8000 -5000 -3000 -1000 0 1000 2000 3000 5000 6000").unwrap();
    let delay = format!(r#"delay={{mean="20ms",sd="5ms",distribution={{file="{table}"}}}}"#);
    assert_eq!(down(&delay)["delay"]["distribution"], "table");
    // The profile in force does without the file.
    std::fs::remove_file(&table).unwrap();
    let some = down("delay.reorder=jitter delay.correlation=25% delay.share=50% reorder=25%");
    assert_eq!(some["delay"]["correlation"], 0.25);
    assert_eq!(some["delay"]["share"], 0.5);
    assert_eq!(some["delay"]["distribution"], "table");
    let sd = some["delay"]["sd_ns"].as_f64().unwrap();
    assert!((sd / 5e6 - 1.0).abs() < 0.001, "{sd}");
    assert_eq!(
        some["reorder"],
        json!({"probability": 0.25, "correlation": 0.0, "gap": 1})
    );
}

/// Read back from the kernel: the configured link, in figures with an error up to 10^-9.
#[test]
fn what_loses_copies_and_damages_is_as_described() {
    let space = Space::new();
    space.emud("attach v0 --profile hsdpa --direction down");
    let down = |changes: &str| space.show_with(changes)["down"].clone();
    #[rustfmt::skip]
    let models = [
        ("bernoulli", r#"probability="1%",correlation="25%""#, 0.01, "correlation", 0.25),
        ("gilbert-elliott", r#"p="1%",r="9%""#, 0.1, "r", 0.09),
        ("four-state", r#"p13="10%""#, 0.1, "p23", 1.0),
        ("every", "n=8,offset=3", 0.125, "offset", 3.0),
        ("pattern", r#"pattern="0001",loop=true"#, 0.25, "length", 4.0),
        ("burst", r#"probability="50%",length=3"#, 0.75, "length", 3.0),
    ];
    for (model, keys, share, key, value) in models {
        let shown = down(&format!(
            r#"loss={{model="{model}",{keys},stage="before-queue"}}"#
        ));
        assert!(
            (shown["loss"].as_f64().unwrap() - share).abs() < 1e-9,
            "{shown:#}"
        );
        let loss = &shown["loss_model"];
        assert_eq!(
            (&loss["model"], &loss["stage"]),
            (&json!(model), &json!("before-queue"))
        );
        let got = loss["parameters"][key].as_f64().unwrap();
        assert!((got - value).abs() < 1e-9, "{loss:#}");
    }
    let errors = down(r#"loss={model="bit-error",ber=1e-6}"#);
    assert_eq!(errors["loss"], Value::Null);
    let ber = errors["loss_model"]["parameters"]["ber"].as_f64().unwrap();
    assert!((ber / 1e-6 - 1.0).abs() < 1e-9, "{ber}");

    let altered = down(
        r#"loss=none duplicate=1% corrupt={probability="2%",bits=3,from=20,to=60,checksum="mend"} state=down"#,
    );
    assert_eq!(
        (&altered["loss"], &altered["loss_model"]),
        (&json!(0.0), &Value::Null)
    );
    assert!((altered["duplicate"]["probability"].as_f64().unwrap() - 0.01).abs() < 1e-9);
    let corrupt = &altered["corrupt"];
    assert_eq!(
        (&corrupt["bits"], &corrupt["to_bytes"]),
        (&json!(3), &json!(60))
    );
    assert_eq!(
        (&corrupt["checksum"], &altered["state"]),
        (&json!("mend"), &json!("down"))
    );
}

#[test]
fn every_kind_of_queue_is_as_described() {
    let space = Space::new();
    space.emud("attach v0 --profile hsdpa");
    let down = |changes: &str| space.show_with(changes)["down"].clone();
    let wire = down(r#"rate={rate="8Mbit",burst="32kB",mpu=64,cell={size=100,overhead=-3}}"#);
    assert_eq!(
        wire["wire"],
        json!({"burst_bytes": 32_000, "mpu_bytes": 64,
               "cell": {"size_bytes": 100, "overhead_bytes": -3, "padded": true}})
    );
    assert_eq!(
        down("rate.cell=ptm")["wire"]["cell"]["padded"],
        json!(false)
    );
    let limits = down(r#"queue={limit="9p",bytes="64KiB",time="5ms",ecn="20ms"}"#);
    assert_eq!(
        (&limits["queue"], &limits["ecn_above_ns"], &limits["aqm"]),
        (
            &json!({"packets": 9, "bytes": 65_536, "time_ns": 5_000_000}),
            &json!(20_000_000),
            &Value::Null
        )
    );
    let codel = down(r#"queue={aqm="codel",ecn=true}"#)["aqm"].clone();
    assert_eq!(
        codel,
        json!({"name": "codel", "target_ns": 5_000_000, "interval_ns": 100_000_000, "ecn": true})
    );
    // 30 kB take 30 ms.
    let red = down(r#"queue={aqm="red",min="30kB",max="90kB",weight=0.5}"#)["aqm"].clone();
    assert_eq!(
        (&red["name"], &red["min_ns"]),
        (&json!("red"), &json!(30_000_000))
    );
    assert_eq!((&red["weight"], &red["ecn"]), (&json!(0.5), &json!(false)));
    let pie = down(r#"queue={aqm="pie",target="20ms"}"#)["aqm"].clone();
    assert_eq!(
        (&pie["name"], &pie["target_ns"]),
        (&json!("pie"), &json!(20_000_000))
    );
    assert!((pie["alpha"].as_f64().unwrap() - 0.125).abs() < 1e-6);

    let close = |value: &Value, want: f64| (value.as_f64().unwrap() / want - 1.0).abs() < 1e-5;
    let ared = down(r#"queue={aqm="ared",target="40ms"}"#)["aqm"].clone();
    assert_eq!(
        (&ared["name"], &ared["min_ns"], &ared["max_ns"]),
        (&json!("ared"), &json!(20_000_000), &json!(60_000_000))
    );
    assert!(close(&ared["alpha"], 0.01) && close(&ared["beta"], 0.9));
    let rio = down(
        r#"queue={aqm="rio",min="5ms",max="9ms",assured-min="6ms",assured-max="10ms",assured=[46,0]}"#,
    )["aqm"]
        .clone();
    assert_eq!(
        (&rio["name"], &rio["assured_max_ns"], &rio["assured"]),
        (&json!("rio"), &json!(10_000_000), &json!([0, 46]))
    );
    let pi = down(r#"queue={aqm="pi",target="40ms",ecn=true}"#)["aqm"].clone();
    assert_eq!(
        (&pi["name"], &pi["target_ns"], &pi["ecn"]),
        (&json!("pi"), &json!(40_000_000), &json!(true))
    );
    assert!(close(&pi["a"], 1.822e-5) && close(&pi["b"], 1.816e-5));
    let rem = down(r#"queue={aqm="rem",phi=1.5}"#)["aqm"].clone();
    assert!(close(&rem["gamma"], 0.001 * 1.5f64.ln()) && close(&rem["alpha"], 0.1));
}

/// A link by time, a named one of each kind, and a queue of two.
const MANY_LINKS: &str = r#"
[link]
rate = "8Mbit"
shared = "uplink"
loss = { probability = "1%", ecn = true }
[links.far]
delay = "100ms"
shared = "uplink"
[links.cell]
loss = "9%"
trace = { rows = "time_s,rate_Mbit,delay_ms,jitter_ms,loss_%;0,0,1,0,2;3600,8,3000,100,0" }
[links.off]
state = "down"
duplicate = "3%"
slot = "10ms"
"#;

const PHASES: &str = r#"
[link]
[links.slow]
rate = "1Mbit"
delay = "80ms"
[[phase]]
for = "3600s"
link = "slow"
loss = "4%"
[[phase]]
"#;

fn attach(space: &Space, profile: &str) {
    let path = std::env::temp_dir().join(format!("{}.toml", space.0));
    std::fs::write(&path, profile).unwrap();
    space.emud(&format!("attach v0 --profile {}", path.display()));
    std::fs::remove_file(path).unwrap();
}

#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(
        text.lines().any(|l| l.trim() == line),
        "no {line} in:\n{text}"
    );
}

#[test]
fn named_links_are_as_described() {
    let space = Space::new();
    attach(&space, MANY_LINKS);
    let shown = space.json("show v0 --json");
    assert_valid("show", &shown);
    let shown = &shown["interfaces"][0];
    assert_eq!(shown["up"]["shared"], "uplink");
    assert_eq!(shown["up"]["loss_model"]["ecn"], true);
    let links = shown["links"].as_array().unwrap();
    let named = |name: &str| links.iter().find(|l| l["name"] == name).unwrap();
    let far = &named("far")["down"];
    assert_eq!(
        (&far["shared"], &far["holder"]),
        (&json!("uplink"), &Value::Null)
    );
    assert_eq!(far["delay"]["mean_ns"], json!(100_000_000));
    assert_eq!(far["queue"], json!({"packets": 1000}));
    let cell = &named("cell")["up"];
    assert_eq!(
        (&cell["rate_bit_s"], &cell["shared"]),
        (&json!(0.0), &Value::Null)
    );
    assert_eq!(cell["delay"]["mean_ns"], json!(1_000_000));
    assert_eq!(cell["timeline"]["phase"], Value::Null);
    assert_eq!(named("off")["up"]["state"], "down");

    let text = space.emud("show v0");
    for line in [
        "up: rate 8Mbit, queue 1000p (backlog 0ms), shared uplink, delay 0ms, loss 1% ecn true",
        "link far down: rate 8Mbit, queue 1000p (backlog 0ms), shared uplink, delay 100ms, loss 0%",
        "link cell up: rate 0bit (outage), queue 1000p (backlog 0ms), delay 1ms, loss 2%",
        "link off up: delay 0ms, loss 0%, duplicate 3%, slot min 10ms max 10ms, state down",
    ] {
        assert_line(&text, line);
    }
}

#[test]
fn phases_are_as_described() {
    let space = Space::new();
    attach(&space, PHASES);
    let first = json!({"number": 1, "of": 2, "name": "slow"});
    // The active profile has the name, not the source.
    let up = space.show_with("trace.restart")["up"].clone();
    assert_eq!(up["timeline"]["phase"], first);
    assert_eq!(up["delay"]["mean_ns"], json!(80_000_000));
    let text = space.emud("show v0");
    assert_line(
        &text,
        "up: rate 1Mbit, queue 1000p (backlog 0ms), delay 80ms, loss 4%",
    );
    let by_time = "by time (rates): phase 1 of 2 (slow), row 1 of 2 at ";
    assert!(text.contains(by_time), "{text}");
}

/// By name, the first of [`MANY_LINKS`].
const CELL: &str = "/interfaces/0/links/0/up";

/// A schema that accepts anything would pass all of the above.
#[test]
fn the_schemas_refuse_what_is_not_described() {
    let space = Space::new();
    attach(&space, MANY_LINKS);
    let shown = space.json("show --json");
    let mut shallow = shown.clone();
    shallow["interfaces"][0]["links"] = json!([]);
    shallow["interfaces"][0]["down"] = Value::Null;
    for (verb, document, place) in [
        ("doctor", doctor(), ""),
        ("list", space.json("list --json"), ""),
        ("show", shallow, ""),
        ("show", shown, CELL),
    ] {
        assert_refused(verb, spoilt(&document, place, &["parameters"]));
    }
}

/// A shipped tree, and a bottleneck without classes.
#[test]
fn bottlenecks_are_as_described() {
    let space = Space::new();
    space.emud("attach v0 --profile tiainen-tree");
    let shown = space.json("show v0 --json");
    assert_valid("show", &shown);
    let shown = &shown["interfaces"][0];
    assert_eq!(shown["engine"], "hold");
    assert_eq!(shown["up"]["class"], "tree.rest");
    assert_eq!(shown["down"]["class"], Value::Null);
    let tree = &shown["bottlenecks"][0];
    assert_eq!(
        (&tree["schedule"], &tree["rate_bit_s"]),
        (&json!("htb"), &json!(100_000_000))
    );
    let class = &tree["classes"][1];
    assert_eq!(
        (&class["name"], &class["rate_bit_s"]),
        (&json!("near"), &json!(1_000_000))
    );
    assert_eq!(
        (&class["sent_packets"], &class["mean_wait_ns"]),
        (&json!(0), &Value::Null)
    );
    let text = space.emud("show v0");
    for line in [
        "up: class tree.rest, delay 0ms, loss 0%",
        "rule 1: destination 10.0.1.0/24 -> near (up only) in tree.near: 0 packets",
        "bottleneck tree: rate 100Mbit, htb",
        "class near: priority 0, rate 1Mbit, ceil 100Mbit",
        "sent 0 packets (0 bytes), 0bit on average since attach, 0 marked",
        "dropped 0 (queue full), 0 (waited too long), 0 (aqm); backlog 0 packets (0 bytes)",
    ] {
        assert!(text.contains(line), "{line:?} in:\n{text}");
    }
    space.emud("detach v0");

    attach(
        &space,
        "[link]\nclass = \"b\"\n[bottleneck.b]\nrate = \"1Mbit\"\n",
    );
    let shown = space.json("show v0 --json");
    assert_valid("show", &shown);
    let alone = &shown["interfaces"][0]["bottlenecks"][0]["classes"][0];
    assert_eq!(alone["name"], Value::Null);
    assert_eq!(alone["queue"], "1000p");
}
