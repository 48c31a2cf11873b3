// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far apart the hosts act, by one capture on the network between them.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::hosts::Hosts;

/// Two nodes on two hosts send to a third host as fast as they can, some 20,000 packets a second;
/// the name of the sender is in the payload. What a link lets pass is seen on the bridge.
fn scenario(seconds: u32, link: &str) -> String {
    let sender = |name: &str, host: &str| {
        format!(
            "[node.{name}]\nhost = \"{host}\"\ncommand = '''exec python3 -c '\n\
             import socket, time\n\
             s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             s.connect((\"sink\", 9))\n\
             end = time.monotonic() + {seconds}\n\
             while time.monotonic() < end:\n\
             \x20   try: s.send(b\"emud-skew-{name}\")\n\
             \x20   except OSError: pass\n\
             \x20   time.sleep(0.00002)\n\
             ''''\n"
        )
    };
    format!(
        "{}{}[node.sink]\nhost = \"b\"\n[link.left]\nbetween = [\"one\", \"sink\"]\n{}\n\
         [link.right]\nbetween = [\"three\", \"sink\"]\n{}\n",
        sender("one", "a"),
        sender("three", "c"),
        link.replace("LINK", "left"),
        link.replace("LINK", "right"),
    )
}

/// Prints the kernel's time of each packet's arrival on the bridge: sender, ns.
const CAPTURE: &str = "\
import socket, struct, time
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
s.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS
s.setsockopt(263, 23, 1)  # PACKET_IGNORE_OUTGOING
print('ready', flush=True)
s.settimeout(1)
quiet = time.monotonic() + 30
while time.monotonic() < quiet:
    try: data, more, _, _ = s.recvmsg(2048, 64)
    except socket.timeout: continue
    at = data.find(b'emud-skew-')
    # VXLAN (UDP, port 4789), without the errors that the third host, 192.0.2.2, returns.
    if at < 0 or data[23] != 17 or data[36:38] != b'\\x12\\xb5' or data[29] == 2: continue
    seconds, ns = struct.unpack('qq', more[0][2][:16])
    print('three' if data[at + 10:at + 15] == b'three' else 'one', seconds * 10**9 + ns)
    quiet = time.monotonic() + 2
";

struct Capture {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Capture {
    fn new(hosts: &Hosts) -> Self {
        let mut child = Command::new("ip")
            .args(["netns", "exec", &hosts.netns("s"), "python3", "-c", CAPTURE])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        lines.read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        Self { child, lines }
    }

    /// Times in ns of each sender's packets: of one and of three.
    fn times(self) -> [Vec<u64>; 2] {
        let mut all = [vec![], vec![]];
        for line in self.lines.lines() {
            let line = line.unwrap();
            let (name, ns) = line.split_once(' ').unwrap();
            all[usize::from(name == "three")].push(ns.parse().unwrap());
        }
        let mut child = self.child;
        child.wait().unwrap();
        all
    }
}

/// Between the last packet of before and the first one after.
fn report(what: &str, mut skews: Vec<f64>) {
    skews.sort_by(f64::total_cmp);
    println!("    {what}: {skews:.3?} ms");
    let worst = skews.last().unwrap();
    assert!(*worst <= 1.0, "{what}: {skews:?} ms");
}

const RUNS: usize = 5;

/// All packets are lost until 1 s after the start: the first ones that pass.
pub fn of_the_start() {
    let hosts = Hosts::new(1).agents(&[]);
    let link = "profile.link.delay = \"5ms\"\n[[link.LINK.profile.phase]]\nfor = \"1s\"\nup.loss = \"100%\"\n\
                [[link.LINK.profile.phase]]\nup.loss = \"0%\"\n";
    let mut skews = vec![];
    for _ in 0..RUNS {
        let capture = Capture::new(&hosts);
        let (code, said) = hosts.run(&scenario(3, link), &[]);
        assert!([0, 3, 4].contains(&code), "{said}");
        let [one, three] = capture.times().map(|times| times[0] as f64 / 1e6);
        skews.push((one - three).abs());
    }
    report("start", skews);
}

/// `fleet set` brings the packets down to none: the last ones that pass.
pub fn of_a_change() {
    let hosts = Hosts::new(1).agents(&[]);
    let link = "profile.link.delay = \"5ms\"\n";
    let mut skews = vec![];
    for _ in 0..RUNS {
        let capture = Capture::new(&hosts);
        let mut run = hosts.start(&scenario(8, link));
        let done = hosts.emud(&["set", "left,right", "up.loss=100%"]);
        assert!(done.starts_with("in effect at "), "{done}");
        run.wait().unwrap();
        let last = capture
            .times()
            .map(|times| *times.last().unwrap() as f64 / 1e6);
        skews.push((last[0] - last[1]).abs());
    }
    report("change", skews);
}
