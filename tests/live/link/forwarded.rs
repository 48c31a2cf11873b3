// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP whose packets another device has made long: merged by GRO and forwarded, of a VLAN on the
//! interface, of another port of its bridge, or of a virtual machine. Each is many wire packets to the
//! link.

use std::time::Duration;

use support::bulk::{Bulk, SEGMENT};
use support::guest;
use support::lab::{Engine, Lab, Verdict, inside, scaled_s, sh};
use support::runs::rtt_ms;

use super::frames::{IPV4, Raw};
use super::senders::has_vlan;

const LOSS: f64 = 0.002;

/// Segments on their way, times the root of the loss. sqrt(3 / 2) of Mathis et al. (1997) is for a loss at
/// regular intervals. This is for packets lost by themselves, from a simulation with LOSS: 10^6 round trips, after
/// each of which the window is halved by a loss, the same during the recovery that follows, or one larger. Delayed
/// acknowledgements do not lessen it: Linux counts the segments that they acknowledge.
const MATHIS: f64 = 1.253;

/// Standard deviation of a mean window, scaled to one loss: a window that
/// grows by one a round trip and is halved by a loss, in a simulation of packets lost by themselves.
const SD_OF_ONE: f64 = 0.54;

/// How packets come to the interface of the link.
#[derive(Clone, Copy)]
enum Way {
    /// From another host, which sends wire packets, a burst at a time; GRO merges them.
    Router,
    /// From a VLAN on the interface: its sockets know the limits of the VLAN device only.
    Vlan,
    /// From another port of a bridge, whose host sends super-packets.
    Bridge,
}

/// A sender whose packets pass the link of `lab.a`.
struct Sender {
    way: Way,
    /// With its namespace; a VLAN's is that of the link.
    lab: Option<Lab>,
    flows: u8,
}

impl Sender {
    fn new(way: Way, link: &Lab, flows: u8) -> Self {
        let lab = match way {
            Way::Router => Some(behind_router(link)),
            Way::Vlan => None,
            Way::Bridge => Some(behind_bridge(link)),
        };
        let device = match way {
            Way::Vlan => {
                add_vlan(link);
                "vb.9"
            }
            Way::Router | Way::Bridge => "vb",
        };
        let sender = Self { way, lab, flows };
        sh(&format!(
            "ip netns exec {} sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'",
            sender.netns(link)
        ));
        for flow in 0..flows {
            let address = sender.to(flow);
            sh(&format!(
                "ip -n {} addr add {address}/24 dev {device}",
                link.b
            ));
        }
        sender
    }

    fn netns(&self, link: &Lab) -> String {
        self.lab.as_ref().unwrap_or(link).a.clone()
    }

    /// Destination of a flow.
    fn to(&self, flow: u8) -> String {
        let net = match self.way {
            Way::Router | Way::Bridge => "10.77.0",
            Way::Vlan => "10.79.0",
        };
        format!("{net}.{}", 10 + flow)
    }

    /// Of all flows at a time: payload bit/s of each, and their round trip, s.
    fn run(&self, link: &Lab, duration: Duration) -> (Vec<f64>, f64) {
        let warm_up = Duration::from_secs(4);
        let flows: Vec<Bulk> = (0..self.flows)
            .map(|flow| Bulk {
                from: self.netns(link),
                to: link.b.clone(),
                address: self.to(flow).parse().expect("an address"),
                warm_up,
                duration,
                window: None,
            })
            .collect();
        let count = (duration.as_secs_f64() / 0.1).ceil();
        let to = self.to(0);
        let pings = inside(&self.netns(link), move || {
            std::thread::sleep(warm_up);
            sh(&format!("LC_ALL=C ping -n -q -c {count} -i 0.1 {to}"))
        });
        let goodput = std::thread::scope(|threads| {
            let running = flows.iter().map(|f| threads.spawn(|| f.goodput_bit_s()));
            let running: Vec<_> = running.collect();
            let done = running.into_iter().map(|flow| flow.join().expect("a flow"));
            done.collect()
        });
        let [_, mean_ms, ..] = rtt_ms(&pings.join().expect("pings"));
        (goodput, mean_ms / 1e3)
    }
}

/// A host behind the router that `lab.a` is. A veth merges only what its other end segments.
fn behind_router(link: &Lab) -> Lab {
    let lab = connected(link);
    let (s, r, b) = (&lab.a, &link.a, &link.b);
    sh(&format!(
        "ip -n {s} addr add 10.79.0.1/24 dev vs
         ip -n {r} addr add 10.79.0.2/24 dev vr
         ip netns exec {s} ethtool -K vs tso off >/dev/null
         ip netns exec {r} ethtool -K vr gro on >/dev/null
         ip netns exec {r} sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
         ip -n {s} route add default via 10.79.0.2
         ip -n {b} route add 10.79.0.0/24 via {}",
        Lab::A4,
    ));
    lab
}

/// A host at another port of a bridge with the interface of the link.
fn behind_bridge(link: &Lab) -> Lab {
    let lab = connected(link);
    let (s, r) = (&lab.a, &link.a);
    sh(&format!(
        "ip -n {s} addr add 10.77.0.100/24 dev vs
         ip -n {r} link add br0 type bridge
         ip -n {r} link set dev va master br0
         ip -n {r} link set dev vr master br0
         ip -n {r} link set dev br0 up"
    ));
    lab
}

/// A namespace with an interface `vs`, whose other end `vr` is in that of the link.
fn connected(link: &Lab) -> Lab {
    let lab = Lab::empty();
    let (s, r) = (&lab.a, &link.a);
    sh(&format!(
        "ip link add vs netns {s} type veth peer name vr netns {r}
         for at in {s}:vs {r}:vr; do
             file=/proc/sys/net/ipv6/conf/${{at#*:}}/disable_ipv6
             ip netns exec ${{at%:*}} sh -c \"echo 1 >$file\"
         done
         ip -n {s} link set dev vs up
         ip -n {r} link set dev vr up"
    ));
    lab
}

fn add_vlan(link: &Lab) {
    for (netns, device) in [(&link.a, "va"), (&link.b, "vb")] {
        sh(&format!(
            "ip -n {netns} link add link {device} name {device}.9 type vlan id 9
             ip -n {netns} link set dev {device}.9 up"
        ));
    }
    sh(&format!("ip -n {} addr add 10.79.0.1/24 dev va.9", link.a));
}

/// The goodput of TCP (Reno) under loss is what theory gives for packets lost by themselves. With
/// `offload = "keep"` merged packets have the same fate, and the goodput is far higher.
fn mathis(engine: Engine, way: Way) {
    if matches!(way, Way::Vlan) && !guest() && !has_vlan(&Lab::new()) {
        return println!("    not measured: this kernel has no VLANs");
    }
    const FLOWS: u8 = 4;
    // One of three was 3.3 standard errors off: 1.07, 1.01 and 1.00 of theory.
    const SEEDS: u32 = 3;
    let duration = scaled_s(60.0, 12.0);
    let mut verdict = Verdict::default();
    // Of each seed: off by how many standard errors.
    let mut off = vec![];
    let auto = (1..=SEEDS).map(|seed| ("auto", seed));
    for (offload, seed) in auto.chain([("keep", 1)]) {
        let lab = Lab::new();
        let sender = Sender::new(way, &lab, FLOWS);
        let profile = format!(
            "offload = \"{offload}\"\n[link]\ndelay = \"10ms\"\n[up]\nloss = \"{}%\"\n",
            LOSS * 100.0
        );
        lab.attach(engine, &profile, &["--seed", &seed.to_string()]);
        let (goodput, rtt_s) = sender.run(&lab, duration);
        let supers = lab.shown("/up/counters/super_packets");
        let packets = lab.shown("/up/counters/packets");
        let lost = lab.shown("/up/counters/lost");
        let mean = goodput.iter().sum::<f64>() / f64::from(FLOWS) / 1e6;
        let theory = SEGMENT * 8.0 / rtt_s * MATHIS / LOSS.sqrt() / 1e6;
        let segments = theory * 1e6 * duration.as_secs_f64() / (SEGMENT * 8.0);
        let losses = f64::from(FLOWS) * segments * LOSS;
        let error = theory * SD_OF_ONE / losses.sqrt();
        println!(
            "    {offload}, seed {seed}: {packets} packets, {supers} super-packets, {lost} lost; round trip \
             {:.2} ms; Mbit/s {:.1?}, {:.2} of Mathis",
            rtt_s * 1e3,
            goodput.iter().map(|g| g / 1e6).collect::<Vec<_>>(),
            mean / theory
        );
        if offload == "auto" {
            verdict.same("super-packets", 0, supers);
            off.push((mean - theory) / error);
        } else {
            verdict.at_least("keep: super-packets", 1.0, supers as f64);
            verdict.at_least("keep: Mbit/s", theory + 6.0 * error, mean);
        }
    }
    // The standard error of the mean is smaller by the root of their number.
    let all = off.iter().sum::<f64>() / f64::from(SEEDS).sqrt();
    verdict.near("auto: standard errors from theory", 0.0, all, 3.0);
    verdict.end();
}

pub fn mathis_forwarded(engine: Engine) {
    mathis(engine, Way::Router);
}

pub fn mathis_of_vlan(engine: Engine) {
    mathis(engine, Way::Vlan);
}

pub fn mathis_bridged(engine: Engine) {
    mathis(engine, Way::Bridge);
}

/// Each packet of what a virtual machine sends has its own fate: the kernel does not know their number
/// (gso_segs is 0), as it does not trust the sender.
pub fn of_a_virtual_machine(engine: Engine) {
    const TRAINS: u32 = 10;
    const PACKETS: u32 = 14;
    const PAYLOAD: usize = 100;
    const HEADERS: usize = 14 + 20 + 20;
    let mut verdict = Verdict::default();
    let lab = Lab::new();
    let tenth = "[up]\nloss = { model = \"every\", n = 10 }\ndelay = \"20ms\"\n";
    lab.attach(engine, tenth, &[]);
    let arrivals = inside(&lab.b, || Raw::open("vb", IPV4)).join().unwrap();
    let send = inside(&lab.a, || {
        let socket = Raw::open("va", IPV4);
        socket.enable(libc::PACKET_VNET_HDR);
        for train in 0..TRAINS {
            // A struct virtio_net_hdr: a checksum to be computed, TCP over IPv4.
            let mut frame = vec![1, 1];
            for number in [HEADERS as u16, PAYLOAD as u16, 34, 16] {
                frame.extend(number.to_ne_bytes());
            }
            // To nobody: no kernel answers.
            frame.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0]);
            let length = HEADERS - 14 + PAYLOAD * PACKETS as usize;
            frame.extend((length as u16).to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
            frame.extend([
                0, 7, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 1, 0, 0, 0, 0, 0,
            ]);
            for packet in 0..PACKETS {
                let mut payload = [0; PAYLOAD];
                payload[..4].copy_from_slice(&u32::to_ne_bytes(train * PACKETS + packet));
                frame.extend(payload);
            }
            socket.send(&frame);
        }
    });
    send.join().expect("the sender");
    let frames = std::iter::from_fn(|| arrivals.receive()).map(|(frame, _)| frame);
    let ours = frames.filter(|frame| frame.len() >= HEADERS + PAYLOAD && frame[23] == 6);
    let number = |frame: Vec<u8>| u32::from_ne_bytes(frame[HEADERS..][..4].try_into().unwrap());
    let numbers: Vec<u32> = ours.map(number).collect();
    let nine: Vec<u32> = (0..TRAINS * PACKETS).filter(|n| n % 10 != 9).collect();
    verdict.same("what arrives", nine, numbers);
    let supers = lab.shown("/up/counters/super_packets");
    verdict.same("that shared a fate", 0, supers);
    lab.detach();
    verdict.end();
}
