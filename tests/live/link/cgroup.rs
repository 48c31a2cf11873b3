// SPDX-License-Identifier: MIT OR Apache-2.0
//! `match.cgroup`: one application takes its link, in both directions.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::lab::{Engine, Lab, Verdict, emud_path, inside, wait_until};
use support::site::Group;

use super::matching::{fastest, takes};

const LINKS: &str = "[link]\ndelay = \"5ms\"\n[links.far]\ndelay = \"40ms\"\n\
                     [links.mid]\ndelay = \"20ms\"\n";
const SERVED: u16 = 7040;
const CLOSED: u16 = 7041;

fn rule(path: &str, link: &str) -> String {
    format!("[[rule]]\nmatch = {{ cgroup = \"{path}\" }}\nlink = \"{link}\"\n")
}

/// Starts a program in a namespace and a group.
fn start(group: Option<&Group>, netns: &str, program: &str) -> Child {
    let enter = group.map(Group::enter).unwrap_or_default();
    Command::new("bash")
        .args([
            "-ec",
            &format!("{enter}exec ip netns exec {netns} {program}"),
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash")
}

fn ended(program: Child) -> String {
    let output = program.wait_with_output().expect("its output");
    String::from_utf8(output.stdout).expect("text")
}

/// Fastest of some connections, ms: the machine only adds to it.
fn connects(from: &str, to: SocketAddr) -> f64 {
    let connect = move || {
        let begin = Instant::now();
        drop(TcpStream::connect_timeout(&to, Duration::from_secs(5)));
        begin.elapsed().as_secs_f64() * 1e3
    };
    let all = inside(from, move || (0..5).map(|_| connect()).collect::<Vec<_>>());
    let all = all.join().expect("connections");
    all.into_iter().fold(f64::INFINITY, f64::min)
}

/// Pings and connections of two groups, one below the other's sibling, and of none, at once.
pub fn applications(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let (app, other) = (Group::new("app"), Group::new("other"));
    let below = app.below("worker");
    let text = format!(
        "{LINKS}{}{}",
        rule(&format!("/{}", app.name), "far"),
        rule(&format!("/{}", other.name), "mid")
    );
    let said = lab
        .try_attach(engine, &text, &["--direction", "down"])
        .expect(64);
    assert!(
        said.err.contains("attach without --direction down"),
        "{}",
        said.err
    );
    let missing = format!("{LINKS}{}", rule("/no/such/group", "far"));
    let said = lab.try_attach(engine, &missing, &[]).expect(66);
    assert!(
        said.err
            .contains("cannot open control group \"/no/such/group\""),
        "{}",
        said.err
    );
    lab.attach(engine, &text, &[]);

    let ping = |id| format!("ping -q -c 5 -i 0.2 -e {id} {}", Lab::B4);
    let groups = [
        ("app", Some(&app), 80.0),
        ("below", Some(&below), 80.0),
        ("other", Some(&other), 40.0),
        ("none", None, 10.0),
    ];
    let pings = (101..)
        .zip(groups)
        .map(|(id, (_, group, _))| start(group, &lab.a, &ping(id)));
    let pings: Vec<Child> = pings.collect();
    for ((what, _, asked), ping) in groups.into_iter().zip(pings) {
        takes(&mut verdict, what, asked, fastest(&ended(ping)));
    }
    // The identifier of a ping of another group: its echoes belong to this one now.
    takes(
        &mut verdict,
        "taken over",
        10.0,
        fastest(&ended(start(None, &lab.a, &ping(101)))),
    );

    // A handshake, by TCP's own estimate.
    let to = SocketAddr::new(Lab::B4.parse().expect("an address"), SERVED);
    let listener = inside(&lab.b, move || TcpListener::bind(to).expect("bind"));
    let listener = listener.join().expect("a listener");
    for (what, group, asked) in groups {
        let script = format!(
            "bash -c 'for n in 1 2 3; do b=$EPOCHREALTIME; exec 3<>/dev/tcp/{}/{SERVED}; e=$EPOCHREALTIME; \
             echo $((${{e/./}} - ${{b/./}})); exec 3>&-; done'",
            Lab::B4
        );
        let us = ended(start(group, &lab.a, &script));
        let us = us.lines().map(|us| us.parse::<u32>().expect("us"));
        takes(
            &mut verdict,
            &format!("TCP, {what}"),
            asked,
            f64::from(us.min().expect("one")) / 1e3,
        );
    }
    drop(listener);
    verdict.same("forgotten", 0, lab.shown("/cgroups/forgotten"));
    drop(below);
    lab.emud(&["show", "va"]).expect(0);
    verdict.same(
        "gone",
        false,
        lab.show()["cgroups"]["groups"][1]["gone"].as_bool() == Some(true),
    );
    drop(other);
    verdict.same(
        "gone",
        true,
        lab.show()["cgroups"]["groups"][1]["gone"].as_bool() == Some(true),
    );
    let shown = lab.emud(&["show", "va"]).expect(0).out;
    assert!(shown.contains(" was removed: "), "{shown}");
    verdict.end();
}

/// A server is known with its answer to the first packet. Resets of the kernel belong to nobody,
/// although the namespace was created by a process below the root.
pub fn kernel_and_servers(engine: Engine) {
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let app = Group::new("server");
    lab.attach(engine, &format!("{LINKS}{}", rule("/", "far")), &[]);
    let program = format!("{} traffic receive --tcp {SERVED}", emud_path().display());
    let mut server = start(Some(&app), &lab.a, &program);
    let listens = format!("grep :{SERVED:04X} /proc/net/tcp || :");
    wait_until("a server", Duration::from_secs(20), || {
        !lab.in_a(&listens).is_empty()
    });
    let at = |port| SocketAddr::new(Lab::A4.parse().expect("an address"), port);
    takes(
        &mut verdict,
        "first in, answer out",
        45.0,
        connects(&lab.b, at(SERVED)),
    );
    let before = lab.shown("/cgroups/unattributed");
    takes(&mut verdict, "resets", 10.0, connects(&lab.b, at(CLOSED)));
    verdict.at_least(
        "unattributed",
        5.0,
        (lab.shown("/cgroups/unattributed") - before) as f64,
    );
    server.kill().expect("kill");
    server.wait().expect("its end");
    verdict.end();
}
