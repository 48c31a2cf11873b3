// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metrics that a run serves.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use support::host::soon;
use support::runs::{Folder, log};

/// The body of an answer; `None`: nothing listens there.
fn get(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer.split_once("\r\n\r\n")?.1.to_owned())
}

fn value(text: &str, parts: &[&str]) -> Option<f64> {
    let found = (text.lines())
        .find(|line| !line.starts_with('#') && parts.iter().all(|part| line.contains(part)))?;
    found.rsplit(' ').next()?.parse().ok()
}

/// The link of the run, in a namespace without a name, and the resources of the host, until the run
/// ends.
pub fn of_the_run() {
    const PORT: u16 = 39_132;
    let folder = Folder::new();
    folder.file("p.toml", "[link]\ndelay = \"5ms\"\nrate = \"8Mbit\"\n");
    // It ends when the test has read the metrics.
    let script =
        "ping -n -q -c 7 -i 0.01 $EMUD_HOST; : >pinged; until [ -e read ]; do sleep 0.05; done";
    let words = format!("--profile ./p.toml --seed 7 --metrics 127.0.0.1:{PORT}");
    let mut run = folder.command(&words, &["sh", "-c", script]);
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    soon("a ping", || folder.0.join("pinged").exists());
    let text = get(PORT, "/metrics").unwrap();
    assert_eq!(get(PORT, "/healthz").as_deref(), Some("ok\n"));
    folder.file("read", "");
    let ran = folder.ran(&run.wait_with_output().unwrap());
    ran.done();
    // The links of other tests on this host are there, too.
    let mut lines = text.lines();
    let info = lines.find(|line| line.starts_with("emud_link_info") && line.contains("seed=\"7\""));
    let info = info.unwrap_or_else(|| panic!("{text}"));
    let netns = info
        .split(['{', ',', '}'])
        .find(|label| label.starts_with("netns=\"/proc/"));
    let netns = netns.unwrap_or_else(|| panic!("{info}"));
    assert_eq!(value(info, &[netns]), Some(1.0), "{info}");
    // Seven requests, and the neighbours.
    let arrived = "emud_link_arrived_packets_total";
    let arrived = value(&text, &[arrived, netns, "direction=\"up\""]);
    let arrived = arrived.unwrap_or_else(|| panic!("{text}"));
    assert!((7.0..=11.0).contains(&arrived), "{arrived}");
    let rate = "emud_link_rate_bytes_per_second";
    let rate = value(&text, &[rate, netns, "direction=\"up\""]);
    assert_eq!(rate, Some(1e6));
    let watched = value(&text, &["emud_watched", "resource=\"cpu\"", "state=\"no\""]);
    assert_eq!(watched, Some(1.0), "{text}");
    assert_eq!(get(PORT, "/healthz"), None, "the server outlives the run");
    assert_eq!(log(&folder.path("run.log"))[0]["type"], "start");
}
