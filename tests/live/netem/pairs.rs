// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two pairs of namespaces side by side: stock netem on one, emud under fq on the other.

use std::process::Command;
use std::sync::OnceLock;

use netlink_bindings::tc::{self, Tcmsg};
use netlink_bindings::traits::Pusher;
use netlink_bindings::utils::{align, find_attr, push_header_type};
use netlink_socket2::NetlinkSocket;

use emud::netlink::{Netlink, ROOT};

use super::examples::INTERVAL_NS;
use support::lab::{Engine, Lab, emud, inside, run, sh};
use support::probe::{Arrivals, Probe};
use support::site::unique;
use support::stats::quantile;

pub struct Pairs {
    netem: Lab,
    emud: Lab,
    machine: OnceLock<Machine>,
}

/// Time that the machine adds to a packet's delay, ms.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// On average, to one that waits: with netem, with emud.
    pub added_ms: [f64; 2],
    /// How far 998 of 1000 packets are apart at most, waiting ones (for a timer), others,
    /// and copies, which are made one after the other.
    pub spread_ms: [f64; 2],
    /// 98 of 100, while the sender sends on, on the worse of the two.
    pub busy_ms: f64,
}

impl Pairs {
    pub fn new() -> Self {
        let pairs = Self {
            netem: Lab::new(),
            emud: Lab::new(),
            machine: OnceLock::new(),
        };
        for lab in [&pairs.netem, &pairs.emud] {
            settle(lab);
        }
        pairs
    }

    /// The same packets through both, with this command on one and emud's import of it on the
    /// other.
    pub fn run(&self, command: &str, probe: impl Fn(&Lab) -> Probe) -> [Arrivals; 2] {
        let profile = import(command);
        install(&self.netem, command);
        let stock = probe(&self.netem).run();
        sh(&format!("tc -n {} qdisc del dev va root", self.netem.a));
        let options = ["--direction", "up", "--seed", "1"];
        self.emud.attach(Engine::Fq, &profile, &options);
        let emulated = probe(&self.emud).run();
        let dropped = self.emud.shown("/up/engine_dropped");
        self.emud.detach();
        assert_eq!(dropped, 0, "dropped by fq");
        [stock, emulated]
    }

    pub fn machine(&self) -> Machine {
        *self.machine.get_or_init(|| {
            const DELAY_MS: f64 = 5.0;
            let probe = |lab: &Lab, interval_ns| Probe {
                copies: 2,
                ..Probe::new(lab, 1000, interval_ns)
            };
            let added = |command, delay_ms: f64, interval_ns| {
                self.run(command, |lab| probe(lab, interval_ns))
                    .map(|arrivals| -> Vec<f64> {
                        let delays = arrivals.delays_ms();
                        delays.iter().map(|delay| delay - delay_ms).collect()
                    })
            };
            let waiting = added("netem delay 5ms", DELAY_MS, INTERVAL_NS);
            let others = added("netem duplicate 100%", 0.0, INTERVAL_NS);
            let busy = added("netem delay 5ms", DELAY_MS, 0);
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let spread =
                |values: &[f64], tail: f64| quantile(values, 1.0 - tail) - quantile(values, tail);
            let machine = Machine {
                added_ms: [0, 1].map(|who| mean(&waiting[who])),
                spread_ms: [0, 1]
                    .map(|who| spread(&[&waiting[who][..], &others[who]].concat(), 0.001)),
                busy_ms: spread(&busy[0], 0.01).max(spread(&busy[1], 0.01)),
            };
            println!("    {machine:?}");
            machine
        })
    }
}

/// Only probes pass, so that each packet is the n-th whenever it is sent; and checksums are real,
/// so that damage is detected.
fn settle(lab: &Lab) {
    for (space, device) in [(&lab.a, "va"), (&lab.b, "vb")] {
        sh(&format!(
            "ip netns exec {space} ethtool -K {device} tx off >/dev/null"
        ));
    }
    lab.know_each_other();
}

/// Returns the part of a command after `netem`.
fn options(command: &str) -> &str {
    let (_, options) = command.split_once("netem").expect("a netem command");
    options
}

/// What `emud import netem` prints.
pub fn import(command: &str) -> String {
    emud(&["import", "netem", command]).expect(0).out
}

/// Whether this kernel and tc have netem.
pub fn has_netem() -> bool {
    let space = unique("netem");
    sh(&format!("ip netns add {space}"));
    let added = run(Command::new("tc")
        .args(["-n", &space])
        .args(["qdisc", "add", "dev", "lo", "root", "netem"]));
    sh(&format!("ip netns del {space}"));
    added.code == 0
}

/// Stock tc, then the same options once more with a seed, which tc has an option for since
/// iproute2 6.6 only.
fn install(lab: &Lab, command: &str) {
    let options = options(command);
    sh(&format!(
        "tc -n {} qdisc add dev va root netem {options}",
        lab.a
    ));
    inside(&lab.a, || set_seed("va", 1)).join().expect("a seed");
}

/// TCA_NETEM_PRNG_SEED behind struct tc_netem_qopt.
const QOPT_LEN: usize = 24;
const PRNG_SEED: u16 = 14;

fn set_seed(device: &str, seed: u64) {
    let mut netlink = Netlink::open().expect("netlink");
    let index = netlink.link(device).expect("the device").index;
    let root = netlink.root_by_hand(index).expect("the qdiscs");
    let root = root.expect("netem");
    let mut options = root.options.expect("netem's options");
    let slot = find_attr(&options[QOPT_LEN..], PRNG_SEED).expect("a kernel that seeds netem (6.6)");
    let at = slot.as_ptr() as usize - options.as_ptr() as usize;
    options[at..at + 8].copy_from_slice(&seed.to_ne_bytes());

    let header = Tcmsg {
        ifindex: i32::try_from(index).expect("an index"),
        parent: ROOT,
        handle: root.handle,
        ..Default::default()
    };
    let mut request = tc::Request::new().op_newqdisc_do(&header);
    let mut attributes = request.encode().push_kind(c"netem");
    let message = attributes.as_vec_mut();
    let len = u16::try_from(options.len()).expect("a length");
    push_header_type(message, libc::TCA_OPTIONS, len, false);
    message.extend_from_slice(&options);
    align(message);
    drop(attributes);
    let mut socket = NetlinkSocket::new();
    let mut reply = socket.request(&request).expect("a request");
    while let Some(answer) = reply.recv() {
        answer.expect("a seed for netem");
    }
}
