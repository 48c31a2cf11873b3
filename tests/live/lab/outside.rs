// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::experiment::lab::{Lab, free_interface, free_network, resolver};
use emud::experiment::scenario::{PlannedEnd, Wire};
use netlink_bindings::nftables::{Nfgenmsg, Request};
use netlink_socket2::NetlinkSocket;

use super::bench::{end, lab, ping, read, route, shell, wire};
use support::host::{interfaces, ip};
use support::nobody::Nobody;

fn forwarding(interface: &str) -> String {
    read(&format!("/proc/sys/net/ipv4/conf/{interface}/forwarding"))
}

/// No table, and no forwarding.
pub fn as_before(uplink: &str) {
    assert_eq!(forwarding(uplink), "0");
    assert_eq!(tables(), [""; 0]);
}

/// The tables of nf_tables in this network namespace, of any family.
fn tables() -> Vec<String> {
    let mut sock = NetlinkSocket::new();
    let request = Request::new().op_gettable_dump(&Nfgenmsg::new());
    let mut answers = sock.request(&request).unwrap();
    let mut names = vec![];
    while let Some(answer) = answers.recv() {
        let name = answer.unwrap().1.get_name().unwrap();
        names.push(name.to_string_lossy().into_owned());
    }
    names
}

/// A node without a route back to the networks of other nodes.
pub fn internet() -> Lab {
    let mut internet = lab(&["internet"]);
    let (near, far) = (":uplink 198.51.100.2/24", "internet:eth0 198.51.100.1/24");
    internet.wire(&wire(near, far)).unwrap();
    ip("route add default via 198.51.100.1");
    internet
}

/// The two ends of a wire to the host, at unused addresses.
pub fn wire_out(lab: &mut Lab, node: &str) -> [PlannedEnd; 2] {
    let network = free_network(30).unwrap().network;
    let mut hosts = network.hosts();
    let mut end = |node: Option<&str>, interface: String| PlannedEnd {
        node: node.map(str::to_owned),
        interface,
        address: hosts
            .next()
            .map(|host| ipnet::Ipv4Net::new(host, 30).unwrap()),
    };
    let ends = [
        end(None, free_interface().unwrap()),
        end(Some(node), "eth0".into()),
    ];
    lab.wire(&Wire {
        ends: ends.clone(),
        tunnel: None,
    })
    .unwrap();
    let host = ends[0].address.unwrap().addr().to_string();
    lab.route(node, &route("0.0.0.0/0", &host, "eth0")).unwrap();
    ends
}

pub fn reached() {
    let internet = internet();
    let mut lab = lab(&["a"]);
    let [ours, theirs] = wire_out(&mut lab, "a");
    assert!(ours.interface.starts_with("emud-"));
    assert!(!ping(&lab, "a", "198.51.100.1"), "not requested yet");
    let outside = lab.outside("a", &ours, &theirs).unwrap();
    assert!(outside.reachable && outside.notes.is_empty(), "{outside:?}");
    assert_eq!(forwarding("uplink"), "1");
    // There is no route back to the node's address.
    assert!(ping(&lab, "a", "198.51.100.1"));
    assert!(ping(&lab, "a", &ours.address.unwrap().addr().to_string()));
    let sources = "cat /proc/net/arp";
    assert!(shell(&internet, "internet", sources).contains("198.51.100.2 "));
    lab.close().unwrap();
    as_before("uplink");
    assert_eq!(interfaces(), ["lo", "uplink"]);
    internet.close().unwrap();
}

/// Nodes behind the one that is wired to the host.
pub fn reached_through() {
    let internet = internet();
    for forward_first in [true, false] {
        let mut lab = lab(&["gate", "b"]);
        lab.wire(&wire("gate:inner 10.0.0.1/24", "b:eth0 10.0.0.2/24"))
            .unwrap();
        lab.route("b", &route("0.0.0.0/0", "10.0.0.1", "eth0"))
            .unwrap();
        if forward_first {
            lab.forward("gate").unwrap();
        }
        let [ours, theirs] = wire_out(&mut lab, "gate");
        assert!(lab.outside("gate", &ours, &theirs).unwrap().reachable);
        lab.forward("gate").unwrap();
        assert!(ping(&lab, "b", "198.51.100.1"));
        lab.close().unwrap();
    }
    internet.close().unwrap();
}

/// The first lab's end does not affect the second.
pub fn one_after_the_other() {
    let internet = internet();
    let [mut first, mut second] = [lab(&["a"]), lab(&["a"])];
    let [ours, theirs] = wire_out(&mut first, "a");
    first.outside("a", &ours, &theirs).unwrap();
    let [ours, theirs] = wire_out(&mut second, "a");
    second.outside("a", &ours, &theirs).unwrap();
    first.close().unwrap();
    assert!(ping(&second, "a", "198.51.100.1"));
    second.close().unwrap();
    support::host::soon("forwarding is off", || forwarding("uplink") == "0");
    internet.close().unwrap();
    reap_keeper();
}

/// Both labs found forwarding disabled, as those of two emud processes that start at the same time.
pub fn at_the_same_time() {
    let internet = internet();
    let [mut first, mut second] = [lab(&["a"]), lab(&["a"])];
    for lab in [&mut first, &mut second] {
        std::fs::write("/proc/sys/net/ipv4/conf/uplink/forwarding", "0").unwrap();
        let [ours, theirs] = wire_out(lab, "a");
        lab.outside("a", &ours, &theirs).unwrap();
    }
    first.close().unwrap();
    assert!(ping(&second, "a", "198.51.100.1"));
    second.close().unwrap();
    support::host::soon("forwarding is off", || forwarding("uplink") == "0");
    as_before("uplink");
    internet.close().unwrap();
    reap_keeper();
}

/// No other user can block a lab, reserve its networks, or leave forwarding enabled.
pub fn hostile_user() {
    let internet = internet();
    let _nobody = Nobody::does(
        "\
import fcntl, socket
setting = open('/proc/sys/net/ipv4/conf/uplink/forwarding')
fcntl.flock(setting, fcntl.LOCK_EX)
taken = []
for n in range(256):
    for base in (0x64400000, 0xc6120000):
        address = base + (n << 2)
        text = '.'.join(str(address >> shift & 255) for shift in (24, 16, 8, 0))
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.bind(f'\\0emud-network-{text}/30')
        taken.append(s)
",
    );
    let mut lab = lab(&["a"]);
    let [ours, theirs] = wire_out(&mut lab, "a");
    lab.outside("a", &ours, &theirs).unwrap();
    assert!(ping(&lab, "a", "198.51.100.1"));
    lab.close().unwrap();
    as_before("uplink");
    internet.close().unwrap();
}

/// A keeper had to outlive its lab, and this process continues.
fn reap_keeper() {
    let own = std::process::id();
    let left = support::host::pids(|pid| support::host::parent(pid) == Some(own));
    for pid in left {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed());
        rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()).unwrap();
    }
}

pub fn none() {
    let mut lab = lab(&["a"]);
    let [ours, theirs] = wire_out(&mut lab, "a");
    let outside = lab.outside("a", &ours, &theirs).unwrap();
    assert!(!outside.reachable);
    assert!(outside.notes[0].contains("no default route"), "{outside:?}");
    assert!(ping(&lab, "a", &ours.address.unwrap().addr().to_string()));
    let bare = end("a:eth0");
    assert!(lab.outside("a", &bare, &theirs).is_err());
    lab.close().unwrap();
    // Whatever this machine has: the two never contradict each other.
    let (text, notes) = resolver();
    assert!(text.is_some() || !notes.is_empty());
}

pub fn says_what_a_firewall_does() {
    let internet = internet();
    let firewall = firewall::drop_forwarded();
    let mut lab = lab(&["a"]);
    let [ours, theirs] = wire_out(&mut lab, "a");
    let outside = lab.outside("a", &ours, &theirs).unwrap();
    assert!(
        outside
            .notes
            .iter()
            .any(|note| note.contains("table fire, chain forward")),
        "{outside:?}"
    );
    assert!(
        !ping(&lab, "a", "198.51.100.1"),
        "the firewall is unchanged"
    );
    drop(firewall);
    assert!(ping(&lab, "a", "198.51.100.1"));
    lab.close().unwrap();
    internet.close().unwrap();
}

/// `nft add chain inet fire forward { type filter hook forward priority 0; policy drop; }`
mod firewall {
    use netlink_bindings::nftables::{Chained, Nfgenmsg, TableFlags};
    use netlink_socket2::NetlinkSocket;

    pub fn drop_forwarded() -> NetlinkSocket {
        let mut sock = NetlinkSocket::new();
        let mut batch = Nfgenmsg::new();
        batch.set_res_id(10);
        let inet = Nfgenmsg {
            nfgen_family: libc::NFPROTO_INET as u8,
            ..Default::default()
        };
        let mut chain = Chained::new(sock.reserve_seq(8));
        chain.request().op_batch_begin_do(&batch);
        chain
            .request()
            .set_create()
            .op_newtable_do(&inet)
            .encode()
            .push_name(c"fire")
            .push_flags(TableFlags::Owner as u32);
        chain
            .request()
            .set_create()
            .op_newchain_do(&inet)
            .encode()
            .push_table(c"fire")
            .push_name(c"forward")
            .nested_hook()
            .push_num(2)
            .push_priority(0)
            .end_nested()
            .push_policy(0)
            .push_type(c"filter");
        chain.request().op_batch_end_do(&batch);
        sock.request_chained(&chain.finalize())
            .unwrap()
            .recv_all()
            .unwrap();
        sock
    }
}
