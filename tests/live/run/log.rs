// SPDX-License-Identifier: MIT OR Apache-2.0
//! One log, in order, of which every line matches docs/log.schema.json.

use emud_monitor::log::HostSample;
use serde_json::Value;

use support::emud_path;
use support::runs::{Folder, Ran};
use support::validator::assert_valid_log;

pub fn has_everything_in_order() {
    let folder = Folder::new();
    folder.file(
        "p.toml",
        "name = \"mine\"\n[link]\ndelay = \"5ms\"\nloss = \"1%\"\n[up]\nrate = \"2Mbit\"\n",
    );
    let script = "echo begin; ping -n -q -c 30 -i 0.02 $EMUD_HOST; echo end >&2";
    let ran = folder.run(
        "--profile ./p.toml --sample 100ms --seed 7",
        &["sh", "-c", script],
    );
    let times: Vec<u64> = ran
        .log
        .iter()
        .map(|line| line["mono_ns"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted());
    has_the_host(&ran);
    assert_eq!(ran.log[0]["type"], "start");
    assert_eq!(ran.log.last().unwrap()["type"], "end");
    let run = ran.one("run");
    assert_eq!(
        (&run["name"], &run["seed"], &run["sample_ns"]),
        (&"mine".into(), &7.into(), &100_000_000.into())
    );
    let link = &run["links"][0];
    assert!(link["toml"].as_str().unwrap().contains("2Mbit"), "{link}");
    assert_eq!(
        (&link["up"]["rate_bit_s"], &link["down"]["rate_bit_s"]),
        (&2_000_000.into(), &Value::Null)
    );
    assert_eq!(
        (&link["up"]["delay_ns"], &link["up"]["loss"]),
        (&5_000_000.into(), &0.01.into())
    );
    let phases: Vec<&Value> = ran.of("phase").map(|line| &line["phase"]).collect();
    assert_eq!(phases, ["preparation", "measurement", "clean-up"]);
    let events: Vec<&Value> = ran.of("link").map(|line| &line["event"]).collect();
    assert_eq!(events, ["attached", "detached"]);
    let end = ran.one("end");
    let measured = end["measured_mono_ns"].as_array().unwrap();
    let from = measured[0].as_u64().unwrap();
    // The clock is read twice.
    assert!(from.abs_diff(ran.phase("measurement")) < 500_000_000);
    // Each line of output has the time at which it was written.
    let line = |text: &str| {
        let found = ran.of("output").find(|line| line["text"] == *text).unwrap();
        found["mono_ns"].as_u64().unwrap()
    };
    let between = line("end") - line("begin");
    assert!((580_000_000..3_000_000_000).contains(&between), "{between}");
}

/// The state of the host is beside the samples, with values that can be.
fn has_the_host(ran: &Ran) {
    let lines: Vec<HostSample> = ran
        .of("host")
        .map(|line| serde_json::from_value(line.clone()).unwrap())
        .collect();
    assert!(!lines.is_empty());
    let share = |value: f64| assert!((0.0..=1.0).contains(&value), "{value}");
    for line in &lines {
        assert!(line.interval_ns >= 50_000_000, "{line:?}");
        let memory = line.memory.unwrap();
        assert!(0 < memory.available_bytes && memory.available_bytes <= memory.total_bytes);
        assert!(line.swap.is_some(), "{line:?}");
        let disks = line.disks.iter().flatten();
        disks.filter_map(|disk| disk.busy).for_each(share);
        // Null if a counter went back.
        let Some(cpu) = &line.cpu else { continue };
        let shares = [cpu.busy, cpu.user, cpu.system, cpu.steal];
        shares.into_iter().chain(cpu.iowait).for_each(share);
        let parts = cpu.user + cpu.system + cpu.steal;
        assert!((cpu.busy - parts).abs() < 1e-9, "{line:?}");
        if let Some(busiest) = &cpu.busiest {
            share(busiest.busy);
        }
    }
    assert!(lines.iter().any(|line| line.cpu.is_some()), "{lines:?}");
}

/// Sum over the samples of a direction.
fn sum(ran: &Ran, direction: &str, key: &str) -> u64 {
    let samples = ran
        .of("sample")
        .filter(|line| line["direction"] == *direction);
    samples.map(|line| line[key].as_u64().unwrap()).sum()
}

pub fn samples_add_up() {
    let folder = Folder::new();
    folder.file(
        "p.toml",
        "[link]\ndelay = \"5ms\"\n[up]\nloss = { model = \"every\", n = 10 }\n",
    );
    let script = "ping -n -q -c 200 -i 0.005 -W 1 $EMUD_HOST; :";
    let ran = folder
        .run("--profile ./p.toml --sample 100ms", &["sh", "-c", script])
        .expect(0);
    // 20 bytes of IP, 64 of ICMP, 14 of Ethernet.
    let each = 98;
    assert_eq!(sum(&ran, "up", "lost"), 20);
    assert_eq!(sum(&ran, "up", "passed_packets"), 180);
    assert_eq!(sum(&ran, "up", "passed_bytes"), 180 * each);
    assert_eq!(sum(&ran, "down", "passed_packets"), 180);
    // Received packets include ARP, which passes without emulation.
    let [packets, bytes] = ["packets", "bytes"].map(|key| sum(&ran, "up", key));
    assert!((200..=204).contains(&packets), "{packets}");
    assert!(
        (200 * each..=200 * each + 4 * 42).contains(&bytes),
        "{bytes}"
    );
    let delays = ran.of("sample").filter(|line| !line["delay"].is_null());
    let means: Vec<u64> = delays
        .map(|line| line["delay"]["mean_ns"].as_u64().unwrap())
        .collect();
    assert!(
        means.len() > 8 && means.iter().all(|mean| *mean == 5_000_000),
        "{means:?}"
    );
}

/// The mean of a trace over the samples, whatever its phase at the first one.
pub fn capacity_is_the_traces() {
    let folder = Folder::new();
    for (name, csv, mean) in [
        ("two rates", "time_ms,rate_Mbit\n0,8\n100,2\n", 5e6),
        ("one rate", "time_ms,rate_Mbit\n0,3\n", 3e6),
    ] {
        folder.file("t.csv", csv);
        folder.file(
            "p.toml",
            "[link]\ntrace = { file = \"t.csv\", period = \"200ms\" }\n",
        );
        let ran = folder
            .run("--profile ./p.toml --sample 200ms", &["sleep", "2.1"])
            .expect(0);
        let samples = ran.of("sample").filter(|line| line["direction"] == "up");
        let (mut bits, mut seconds) = (0.0, 0.0);
        for sample in samples {
            let interval_s = sample["interval_ns"].as_f64().unwrap() / 1e9;
            bits += sample["capacity_bit_s"].as_f64().unwrap() * interval_s;
            seconds += interval_s;
        }
        assert!(seconds > 1.5, "{name}: {seconds} s");
        // Less than a period is not whole: 100 ms of 3 Mbit/s more or less than the mean.
        let off = (bits / seconds - mean).abs() * seconds;
        assert!(off < 3e6 * 0.15, "{name}: {} bit/s", bits / seconds);
    }
}

/// Requests of 20 packets a second into a class that sends 10, with room for two.
pub fn classes_add_up() {
    let folder = Folder::new();
    folder.file(
        "p.toml",
        "[up]\nclass = \"hub.slow\"\n[bottleneck.hub]\nrate = \"1Mbit\"\nschedule = \"drr\"\n\
         [bottleneck.hub.class.slow]\nceil = \"7840bit\"\nqueue = \"2p\"\n\
         [bottleneck.hub.class.idle]\n",
    );
    // The last packets are sent, and the holder's account is up to date.
    let script = "ping -n -q -c 60 -i 0.05 -W 1 $EMUD_HOST; sleep 0.3; :";
    let ran = folder
        .run("--profile ./p.toml --sample 100ms", &["sh", "-c", script])
        .expect(0);
    let of = |class: &str, key: &str| -> u64 {
        let lines = ran.of("class").filter(|line| line["class"] == *class);
        lines.map(|line| line[key].as_u64().unwrap()).sum()
    };
    let [sent, bytes, full] = ["sent_packets", "sent_bytes", "dropped_full"].map(|k| of("slow", k));
    // ARP passes without emulation.
    assert_eq!((sent + full, bytes), (60, 98 * sent));
    // "time 2951ms": a busy machine takes longer for the requests. Two wait at the end.
    let time = ran
        .out
        .split("time ")
        .nth(1)
        .and_then(|rest| rest.split("ms").next());
    let ms: u64 = time.and_then(|ms| ms.parse().ok()).expect("ping's time");
    assert!((28..=ms / 100 + 4).contains(&sent), "{sent} in {ms} ms");
    let mean = of("slow", "wait_ns") / sent;
    // One or two are before it, of 100 ms each.
    assert!((50_000_000..250_000_000).contains(&mean), "{mean}");
    assert_eq!(of("idle", "sent_packets"), 0);
    assert!(ran.of("class").any(|line| line["class"] == "idle"));
    let page = folder.path("run.html");
    let status = std::process::Command::new(emud_path())
        .args(["report", &folder.path("run.log"), "-o", &page])
        .status();
    assert!(status.unwrap().success());
    assert!(std::fs::read_to_string(page).unwrap().contains("hub.slow"));
}

/// Another process changes the link during the run.
pub fn follows_changes() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let emud = emud_path();
    let set = format!(
        "sleep 0.3; {} set link0 delay=9ms; sleep 0.5",
        emud.display()
    );
    let ran = folder
        .run("--profile ./p.toml --sample 100ms", &["sh", "-c", &set])
        .expect(0);
    let changed = ran
        .of("link")
        .find(|line| line["event"] == "changed")
        .expect("a change");
    assert!(
        changed["toml"].as_str().unwrap().contains("9ms"),
        "{changed}"
    );
}

/// Programs of the preparation may change a link, too.
pub fn follows_changes_of_the_preparation() {
    let folder = Folder::new();
    let emud = emud_path();
    let emud = emud.display();
    for (prepare, code) in [
        (format!("{emud} set w delay=9ms"), 0),
        (
            format!("{emud} detach w && {emud} attach w --profile lte"),
            4,
        ),
    ] {
        let text = format!(
            "[node.a]\nprepare = [\"{prepare}\"]\ncommand = \"sleep 0.3\"\n[node.b]\n\
             [link.w]\nbetween = [\"a\", \"b\"]\nprofile = {{ link = {{ delay = \"5ms\" }} }}\n"
        );
        let scenario = folder.file("s.toml", &text);
        let ran = folder
            .run(&format!("--scenario {scenario} --root"), &[])
            .expect(code);
        let changed = ran.of("link").find(|line| line["event"] == "changed");
        match code {
            0 => assert!(
                changed.expect("a change")["toml"]
                    .as_str()
                    .unwrap()
                    .contains("9ms")
            ),
            _ => assert!(
                ran.err.contains("removed and attached again"),
                "{}",
                ran.err
            ),
        }
    }
}

/// Its counters begin at 0, and packets passed without emulation meanwhile.
pub fn a_link_that_comes_back_is_another() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let emud = emud_path();
    let emud = emud.display();
    let again = format!(
        "ping -n -q -c 20 -i 0.01 $EMUD_HOST; {emud} detach link0 && \
         {emud} attach link0 --profile ./p.toml; sleep 0.5"
    );
    let words = "--profile ./p.toml --root --sample 200ms";
    let ran = folder.run(words, &["sh", "-c", &again]).expect(4);
    // A sample between the two finds no link.
    let said = [
        "link0: the link was removed and attached again",
        "nothing is attached to link0",
    ];
    assert!(
        said.iter().any(|said| ran.err.contains(said)),
        "{}",
        ran.err
    );
    let delays = ran
        .of("sample")
        .filter_map(|line| line["delay"]["mean_ns"].as_u64());
    let longest = delays.max().expect("samples of the first link");
    assert!(longest < 100_000_000, "{longest}");
}

/// Behind the end packets pass without emulation, and nothing counts them.
pub fn a_link_that_ends_is_missed() {
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\n");
    let emud = emud_path();
    let end = format!("{} set link0 --for 1ms; sleep 0.5", emud.display());
    let ran = folder
        .run("--profile ./p.toml --root", &["sh", "-c", &end])
        .expect(4);
    let said = "link0: the link has ended by itself";
    assert!(ran.err.contains(said), "{}", ran.err);
}

/// Every line of a run in which there is one of each kind.
pub fn needs_python_to_check_its_schema() {
    let folder = Folder::new();
    let scenario = folder.file(
        "s.toml",
        r#"
        [node.a]
        command = "ping -n -q -c 20 -i 0.05 b"
        artefacts = ["s.toml", "missing"]
        [node.b]
        [link.w]
        between = ["a", "b"]
        [link.w.profile]
        phases = { loop = true }
        link.loss = { model = "bit-error", ber = 1e-6 }
        [[link.w.profile.phase]]
        for = "200ms"
        delay = "5ms"
        [[link.w.profile.phase]]
        for = "200ms"
        rate = "1Mbit"
        "#,
    );
    let words = format!("--scenario {scenario} --sample 50ms");
    let ran = folder.run(&words, &[]).expect(0);
    let kinds: std::collections::BTreeSet<&str> = (ran.log.iter())
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    let all = "artefact end exit host link output phase run sample start";
    assert_eq!(kinds.into_iter().collect::<Vec<_>>().join(" "), all);
    let mut changes = ran.of("link").filter(|line| line["event"] == "changed");
    assert!(changes.any(|line| line["phase"] == "2"), "{:?}", ran.log);
    assert_valid_log(&ran.log);
}
