// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulated links that the monitor finds, from outside their namespaces.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use emud::abi::{EMUD_DOWN, EMUD_UP};
use emud::datapath::emulated::{Emulated, Found, Search};
use emud::datapath::engine;
use emud::datapath::maps::DatapathError;
use emud::host::runtime;
use emud::host::runtime::ROOT_FOLDER;
use serde_json::{Value, json};

use support::lab::{Engine, Lab, wait_until};

fn search(search: &mut Search) -> Found {
    let found = search.run().unwrap();
    let of_another = |(_, error): &(u32, DatapathError)| {
        // Links of other versions of emud on this machine.
        matches!(
            error,
            DatapathError::Abi { .. } | DatapathError::OtherVersion(_)
        )
    };
    let others = found.unreadable.iter().all(of_another);
    assert!(others, "{:?}", found.unreadable);
    found
}

/// The links of this laboratory; there may be others on the machine.
fn of(lab: &Lab) -> Vec<Emulated> {
    among(lab, search(&mut Search::default()))
}

fn among(lab: &Lab, found: Found) -> Vec<Emulated> {
    let netns = std::fs::metadata(format!("/run/netns/{}", lab.a)).unwrap();
    let mut links = found.links;
    links.retain(|link| u64::from(link.netns) == netns.ino());
    links.sort_by_key(|link| link.direction);
    links
}

fn index(lab: &Lab, device: &str) -> u32 {
    let shown = lab.in_a(&format!("ip -o link show dev {device}"));
    shown.split(':').next().unwrap().parse().unwrap()
}

/// Each attached direction, the device where its packets wait, and nothing after detach.
pub fn found(engine: Engine) {
    let lab = Lab::new();
    let mut again = Search::default();
    assert_eq!(among(&lab, search(&mut again)), []);
    let va = index(&lab, "va");
    let devices = match engine {
        Engine::Fq | Engine::Qdisc => ["va".to_owned(), format!("emud-ifb-{va}")],
        Engine::Hold => [format!("emud-up-{va}"), format!("emud-down-{va}")],
    };
    let link = |lab: &Lab, direction: u32| Emulated {
        netns: of(lab)[0].netns,
        interface: va,
        direction,
        engine: match engine {
            Engine::Fq => engine::Engine::Fq,
            Engine::Hold => engine::Engine::Hold,
            Engine::Qdisc => engine::Engine::Qdisc,
        },
        waits_at: index(lab, &devices[direction as usize]),
    };
    for (more, directions) in [
        ("both", &[EMUD_UP, EMUD_DOWN][..]),
        ("up", &[EMUD_UP]),
        ("down", &[EMUD_DOWN]),
    ] {
        lab.attach(engine, "hsdpa", &["--direction", more]);
        let expected: Vec<_> = directions.iter().map(|d| link(&lab, *d)).collect();
        assert_eq!(of(&lab), expected, "{more}");
        assert_eq!(among(&lab, search(&mut again)), expected, "{more}");
        assert_eq!(among(&lab, search(&mut again)), expected, "{more}");
        let by_kernel = search(&mut again).released_by_kernel();
        let ours = by_kernel.iter().filter(|e| e.netns == expected[0].netns);
        let in_fq = if engine.is_stamped() {
            expected.len()
        } else {
            0
        };
        assert_eq!(ours.count(), in_fq, "{more}");
        lab.emud(&["set", "va", "loss=1%"]).expect(0);
        assert_eq!(of(&lab), expected, "{more}, after set");
        lab.detach();
        assert_eq!(of(&lab), [], "{more}, after detach");
        // The kernel frees a program some time after the last filter is gone; beside other jobs
        // that took over 5 s.
        let begin = Instant::now();
        while !among(&lab, search(&mut again)).is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{more}, known");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A stopped holder releases its frames late, and reports this to a monitor.
pub fn holder_tells_monitors() {
    let lab = Lab::new();
    runtime::folder(Path::new(ROOT_FOLDER), 0o700).unwrap();
    let path = format!("{ROOT_FOLDER}/monitor-test-{}.sock", std::process::id());
    let listener = UnixListener::bind(&path).unwrap();
    let netns = std::fs::metadata(format!("/run/netns/{}", lab.a)).unwrap();
    let netns = format!("\"netns\":{}", netns.ino());
    let told = std::thread::spawn(move || {
        // A monitor that starts elsewhere on this machine checks by a connection which sockets are
        // alive, and every holder reports to every monitor.
        let mut lines = listener.incoming().map(|stream| {
            let mut line = String::new();
            BufReader::new(stream.unwrap())
                .read_line(&mut line)
                .unwrap();
            line
        });
        let own = |line: &String| line.contains(&netns);
        lines.find(own).unwrap()
    });
    lab.attach(Engine::Hold, "[up]\ndelay = \"1s\"\n", &[]);
    lab.hold_late();
    let line: Value = serde_json::from_str(&told.join().unwrap()).unwrap();
    // Such a monitor may have removed it already.
    let _ = std::fs::remove_file(&path);
    println!("    {line}");
    let link = of(&lab)[0];
    assert_eq!(
        (&line["type"], &line["failure"]),
        (&json!("emulator"), &json!("late"))
    );
    assert_eq!(line["name"], "va");
    assert_eq!(line["ifindex"], link.interface);
    assert_eq!(line["netns"], link.netns);
    let number = |key: &str| line[key].as_u64().unwrap();
    let late_ns = number("mono_ns") - number("since_mono_ns");
    assert!(number("value") > number("threshold"), "{line}");
    assert!(late_ns >= number("value"), "{line}");
    // The holder's own account follows with its next report.
    wait_until("shown as late", Duration::from_secs(2), || {
        lab.shown("/up/holder/late") >= 1
    });
}
