// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far apart the hosts act, by one capture on the network between them.
//!
//! EMUD_FLEET_STARTS: the number of starts, and of changes.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::hosts::Hosts;

/// Two nodes on two hosts send to a third host, some 4,000 packets a second, with the name of the sender and a
/// number. Their priority is that of engine hold's threads: at a lower one they wait for CPUs and show less, at a
/// higher one the threads wait for them. The links duplicate each packet from some time on: the bridge sees the
/// last packet of before and the first of after.
fn scenario(seconds: u32, link: &str) -> String {
    let sender = |name: &str, host: &str| {
        format!(
            "[node.{name}]\nhost = \"{host}\"\ncommand = '''exec chrt -f 1 python3 -c '\n\
             import socket, time\n\
             s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
             s.connect((\"sink\", 9))\n\
             end = time.monotonic() + {seconds}\n\
             n = 0\n\
             while time.monotonic() < end:\n\
             \x20   try: s.send(b\"emud-skew {name} %d \" % n)\n\
             \x20   except OSError: pass\n\
             \x20   n += 1\n\
             \x20   time.sleep(0.0002)\n\
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

/// Prints the kernel's time of each packet's arrival on the bridge: sender, number, ns.
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
    at = data.find(b'emud-skew ')
    # VXLAN (UDP, port 4789), without the errors that the third host, 192.0.2.2, returns.
    if at < 0 or data[23] != 17 or data[36:38] != b'\\x12\\xb5' or data[29] == 2: continue
    seconds, ns = struct.unpack('qq', more[0][2][:16])
    _, name, number, *_ = data[at:].split(b' ')
    print(name.decode(), int(number), seconds * 10**9 + ns)
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

    /// When the link of each sender turned: after the first time in ms, before the second one.
    fn turns(self) -> [[f64; 2]; 2] {
        // Number and time of each packet, of one and of three.
        let mut all = [vec![], vec![]];
        for line in self.lines.lines() {
            let line = line.unwrap();
            let [name, number, ns] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let packet: (u64, u64) = (number.parse().unwrap(), ns.parse().unwrap());
            all[usize::from(name == "three")].push(packet);
        }
        let mut child = self.child;
        child.wait().unwrap();
        all.map(|packets| {
            let twice = packets.windows(2).position(|two| two[0].0 == two[1].0);
            let first = twice.expect("a packet that came twice");
            assert!(first > 0, "from the first packet on");
            [packets[first - 1].1, packets[first].1].map(|ns| ns as f64 / 1e6)
        })
    }
}

/// The turns of two links must be within 1 ms of each other as far as the packets show. A sender that
/// waits for a CPU shows less.
#[derive(Default)]
struct Skews(Vec<[f64; 2]>);

impl Skews {
    /// The least and the most that it can be.
    fn add(&mut self, [one, three]: [[f64; 2]; 2]) {
        let least = (one[0] - three[1]).max(three[0] - one[1]).max(0.0);
        let most = (one[1] - three[0]).max(three[1] - one[0]);
        println!("    between {least:.3} and {most:.3} ms");
        self.0.push([least, most]);
    }

    /// At most one of a hundred is further apart than 1 ms.
    fn judge(self) {
        let [least, most] = [0, 1].map(|bound| {
            let mut all: Vec<f64> = self.0.iter().map(|both| both[bound]).collect();
            all.sort_by(f64::total_cmp);
            all
        });
        let p99 = least.len() - 1 - least.len() / 100;
        if least.len() >= 100 {
            println!("    99 % between {:.3} and {:.3} ms", least[p99], most[p99]);
        }
        assert!(least[p99] <= 1.0, "{least:?}");
        // Of fewer runs the most is what a sender waited at worst.
        let certain = if most.len() >= 100 {
            p99
        } else {
            most.len() / 2
        };
        assert!(most[certain] <= 1.0, "{most:?}");
    }
}

fn runs() -> usize {
    std::env::var("EMUD_FLEET_STARTS").map_or(5, |n| n.parse().expect("a number"))
}

pub fn of_the_start() {
    let hosts = Hosts::new(1).agents(&["--allow-root"]);
    let link = "profile.link.delay = \"5ms\"\n[[link.LINK.profile.phase]]\nfor = \"2s\"\n\
                [[link.LINK.profile.phase]]\nup.duplicate = \"100%\"\n";
    let mut skews = Skews::default();
    for _ in 0..runs() {
        let capture = Capture::new(&hosts);
        let (code, said) = hosts.run(&scenario(4, link), &[]);
        assert!([0, 3, 4].contains(&code), "{said}");
        skews.add(capture.turns());
    }
    skews.judge();
}

pub fn of_a_change() {
    let hosts = Hosts::new(1).agents(&["--allow-root"]);
    let link = "profile.link.delay = \"5ms\"\n";
    let mut skews = Skews::default();
    for _ in 0..runs() {
        let capture = Capture::new(&hosts);
        let mut run = hosts.start(&scenario(8, link));
        let done = hosts.emud(&["set", "left,right", "up.duplicate=100%"]);
        assert!(done.starts_with("in effect at "), "{done}");
        run.wait().unwrap();
        skews.add(capture.turns());
    }
    skews.judge();
}
