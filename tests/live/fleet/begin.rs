// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::Duration;

use emud::datapath::change::begin_at;
use emud::datapath::ending::end_after;
use emud_monitor::log::mono_ns;
use support::full;
use support::host::{ip, on_a_host};
use support::lab::{emud, sh};
use support::runs::rtt_ms;
use support::site::unique;

/// The unit of all times: beside other jobs, a pause of the machine must fit between two of them.
fn unit_ns() -> u64 {
    if full() { 1_000_000_000 } else { 4_000_000_000 }
}

/// The first phase lasts until a time after the start that is written in advance, not until a time
/// after the link was attached.
pub fn at_a_time_ahead() {
    on_a_host(|| {
        // All tests of the machine see its name.
        let netns = unique("begin");
        ip(&format!("netns add {netns}"));
        let done = std::panic::catch_unwind(|| {
            ip(&format!("link add v0 type veth peer name v1 netns {netns}"));
            ip("addr add 192.0.2.1/24 dev v0");
            ip("link set v0 up");
            ip(&format!("-n {netns} addr add 192.0.2.2/24 dev v1"));
            ip(&format!("-n {netns} link set v1 up"));
            let profile =
                std::env::temp_dir().join(format!("emud-begin-{}.toml", std::process::id()));
            let unit = unit_ns();
            let ms = unit * 3 / 10_000_000;
            let text = format!("[[phase]]\nfor = \"{ms}ms\"\n[[phase]]\nup.delay = \"80ms\"\n");
            std::fs::write(&profile, text).unwrap();
            emud(&["attach", "v0", "--profile", &profile.to_string_lossy()]).expect(0);
            let _ = std::fs::remove_file(profile);
            let at = mono_ns() + unit;
            begin_at("v0", at).unwrap();
            end_after("v0", Duration::from_nanos(at + unit - mono_ns())).unwrap();
            // Counters count since attach.
            let shown = emud(&["show", "v0", "--json"]).expect(0).json();
            let attached = &shown["interfaces"][0]["attached_s"];
            assert!(attached.as_f64().unwrap() > 0.0, "{attached}");
            // The shortest: a pause of the machine may hold back one.
            let rtt = || rtt_ms(&sh("ping -n -c 3 -i 0.01 192.0.2.2"))[0];
            let until =
                |ns: u64| std::thread::sleep(Duration::from_nanos(ns.saturating_sub(mono_ns())));
            // The second phase would have begun three tenths of a unit after attach.
            until(at - unit * 2 / 5);
            let before = rtt();
            assert!(
                mono_ns() < at + unit * 3 / 10 - unit / 10,
                "this machine is too slow"
            );
            until(at + unit * 2 / 5);
            let after = rtt();
            println!("    {before} ms before, {after} ms after");
            assert!(before < 60.0 && after >= 80.0, "{before} {after}");
            until(at + unit);
            let ended = rtt();
            assert!(ended < 60.0, "{ended}");
            emud(&["detach", "v0"]).expect(0);
            ip("link del v0");
        });
        ip(&format!("netns del {netns}"));
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
}
