// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP of another host, forwarded by the one with the link: a packet that GRO merged on ingress is
//! many wire packets to the link.

use std::time::Duration;

use support::bulk::{Bulk, SEGMENT};
use support::lab::{Engine, Lab, Verdict, inside, scaled_s, sh};
use support::runs::rtt_ms;

const LOSS: f64 = 0.002;

/// Segments on their way, times the root of the loss: sqrt(3 / 2) (Mathis et al. 1997). Delayed
/// acknowledgements do not lessen it: Linux counts the segments that they acknowledge.
const MATHIS: f64 = 1.224_745;

/// Standard deviation of a mean window over so many losses that it is 1 for one loss: a window that
/// grows by one a round trip and is halved by a loss, in a simulation of packets lost by themselves.
const SD_OF_ONE: f64 = 0.54;

/// A sender, behind the router that `lab.a` is.
struct Sender {
    lab: Lab,
    flows: u8,
}

impl Sender {
    const ADDRESS: &'static str = "10.79.0.1";

    /// Its device sends wire packets, a burst at a time, which the router merges: a veth does that
    /// only if its other end segments.
    fn new(router: &Lab, flows: u8) -> Self {
        let lab = Lab::empty();
        let (s, r, b) = (&lab.a, &router.a, &router.b);
        sh(&format!(
            "ip link add vs netns {s} type veth peer name vr netns {r}
             for at in {s}:vs {r}:vr; do
                 file=/proc/sys/net/ipv6/conf/${{at#*:}}/disable_ipv6
                 ip netns exec ${{at%:*}} sh -c \"echo 1 >$file\"
             done
             ip -n {s} addr add {own}/24 dev vs
             ip -n {r} addr add 10.79.0.2/24 dev vr
             ip -n {s} link set dev vs up
             ip -n {r} link set dev vr up
             ip netns exec {s} ethtool -K vs tso off >/dev/null
             ip netns exec {r} ethtool -K vr gro on >/dev/null
             ip netns exec {r} sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
             ip netns exec {s} sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
             ip -n {s} route add default via 10.79.0.2
             ip -n {b} route add 10.79.0.0/24 via {a4}",
            own = Self::ADDRESS,
            a4 = Lab::A4,
        ));
        for flow in 0..flows {
            let address = Self::to(flow);
            sh(&format!("ip -n {b} addr add {address}/24 dev vb"));
        }
        Self { lab, flows }
    }

    /// Destination of a flow.
    fn to(flow: u8) -> String {
        format!("10.77.0.{}", 10 + flow)
    }

    /// Of all flows at a time: payload bit/s of each, and their round trip, s.
    fn run(&self, router: &Lab, duration: Duration) -> (Vec<f64>, f64) {
        let warm_up = Duration::from_secs(4);
        let flows: Vec<Bulk> = (0..self.flows)
            .map(|flow| Bulk {
                from: self.lab.a.clone(),
                to: router.b.clone(),
                address: Self::to(flow).parse().expect("an address"),
                warm_up,
                duration,
                window: None,
            })
            .collect();
        let count = (duration.as_secs_f64() / 0.1).ceil();
        let pings = inside(&self.lab.a, move || {
            std::thread::sleep(warm_up);
            let b4 = Lab::B4;
            sh(&format!("LC_ALL=C ping -n -q -c {count} -i 0.1 {b4}"))
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

/// The goodput of TCP (Reno) under loss is what theory gives for packets lost by themselves. With
/// `offload = "keep"` merged packets have the same fate, and the goodput is far higher.
pub fn mathis(engine: Engine) {
    const FLOWS: u8 = 4;
    let duration = scaled_s(60.0, 12.0);
    let mut verdict = Verdict::default();
    for offload in ["auto", "keep"] {
        let lab = Lab::new();
        let sender = Sender::new(&lab, FLOWS);
        let profile = format!(
            "offload = \"{offload}\"\n[link]\ndelay = \"10ms\"\n[up]\nloss = \"{}%\"\n",
            LOSS * 100.0
        );
        lab.attach(engine, &profile, &["--seed", "1"]);
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
            "    {offload}: {packets} packets, {supers} super-packets, {lost} lost; round trip \
             {:.2} ms; Mbit/s {:.1?}, {:.2} of Mathis",
            rtt_s * 1e3,
            goodput.iter().map(|g| g / 1e6).collect::<Vec<_>>(),
            mean / theory
        );
        let name = format!("{offload}: Mbit/s");
        if offload == "auto" {
            verdict.same("super-packets", 0, supers);
            verdict.near(&name, theory, mean, 3.0 * error);
        } else {
            verdict.at_least(&name, theory + 6.0 * error, mean);
        }
    }
    verdict.end();
}
