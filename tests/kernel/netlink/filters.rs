// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters of clsact, and tcx.

use std::fs::File;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use emud::netlink::*;
use support::guest;

use super::{Space, index, shell};

const SYS_BPF_PROG_LOAD: i64 = 5;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const TC_ACT_OK: i32 = 0;
const TC_ACT_STOLEN: i32 = 4;
const TC_ACT_UNSPEC: i32 = -1;

fn bpf(command: i64, attr: &[u8]) -> i64 {
    // SAFETY: attr is a bpf_attr of its length; what it points to outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_ptr(), attr.len()) };
    assert!(
        fd >= 0,
        "bpf({command}): {}",
        std::io::Error::last_os_error()
    );
    fd
}

/// A classifier that returns `code`.
fn program(code: i32) -> OwnedFd {
    let mut insns = vec![0xb7, 0, 0, 0];
    insns.extend(code.to_ne_bytes());
    insns.extend([0x95, 0, 0, 0, 0, 0, 0, 0]);
    let license = c"GPL";
    let mut attr = Vec::new();
    attr.extend(BPF_PROG_TYPE_SCHED_CLS.to_ne_bytes());
    attr.extend(2u32.to_ne_bytes());
    attr.extend((insns.as_ptr() as u64).to_ne_bytes());
    attr.extend((license.as_ptr() as u64).to_ne_bytes());
    attr.resize(72, 0);
    let fd = bpf(SYS_BPF_PROG_LOAD, &attr);
    // SAFETY: a new descriptor without another owner.
    unsafe { OwnedFd::from_raw_fd(fd.try_into().unwrap()) }
}

fn filter<'a>(program: &'a OwnedFd, pref: u16, handle: u32, name: &'a str) -> BpfFilter<'a> {
    BpfFilter {
        hook: Hook::Egress,
        pref,
        handle,
        program: program.as_fd(),
        name,
        classid: 0,
        chain: 0,
    }
}

#[test]
fn a_filter_has_its_classid() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let pass = program(TC_ACT_UNSPEC);
    let filter = BpfFilter {
        classid: 2,
        chain: 0,
        ..filter(&pass, 7, 1, "emud_two")
    };
    nl.attach_bpf_filter(v0, &filter).unwrap();
    let text = shell("tc filter show dev v0 egress");
    assert!(text.contains("flowid :2 emud_two"), "{text}");
}

#[test]
fn the_first_filter_brings_its_clsact() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let pass = program(TC_ACT_UNSPEC);
    assert!(nl.filters(v0, Hook::Egress).unwrap().is_empty());
    assert!(
        nl.attach_bpf_filter(v0, &filter(&pass, 7, 1, "emud_egress"))
            .unwrap()
    );
    assert!(
        !nl.attach_bpf_filter(v0, &filter(&pass, 8, 2, "emud_again"))
            .unwrap()
    );
    let there = nl.filters(v0, Hook::Egress).unwrap();
    let seen: Vec<_> = there
        .iter()
        .map(|f| (f.pref, f.handle, f.protocol, f.chain))
        .collect();
    assert_eq!(seen, [(7, 1, 3, 0), (8, 2, 3, 0)]);
    let bpf = there[0].bpf.clone().unwrap();
    assert_eq!(
        (bpf.name.as_str(), bpf.direct_action),
        ("emud_egress", true)
    );
    let text = shell("tc filter show dev v0 egress");
    let id = format!("id {} ", bpf.program_id);
    let tag: String = bpf.tag.iter().map(|b| format!("{b:02x}")).collect();
    assert!(text.contains(&id) && text.contains(&tag), "{text}");
    assert!(
        text.contains("pref 7 bpf chain 0 handle 0x1 emud_egress direct-action"),
        "{text}"
    );
    assert!(nl.filters(v0, Hook::Ingress).unwrap().is_empty());
    let other = program(TC_ACT_OK);
    nl.replace_bpf_filter(v0, &filter(&other, 7, 1, "emud_other"))
        .unwrap();
    let now = nl.filters(v0, Hook::Egress).unwrap();
    assert_eq!(now.len(), 2);
    assert_ne!(now[0].bpf.as_ref().unwrap().program_id, bpf.program_id);
    nl.delete_filter(v0, Hook::Egress, c"bpf", 7, 1).unwrap();
    assert_eq!(nl.filters(v0, Hook::Egress).unwrap().len(), 1);
}

/// The kernel has one of both, and clsact instead of it would remove the filters of another.
#[test]
fn a_qdisc_ingress_stays() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    shell("tc qdisc add dev v0 ingress");
    let pass = program(TC_ACT_UNSPEC);
    let failed = nl.attach_bpf_filter(v0, &filter(&pass, 7, 1, "emud_egress"));
    let Err(NetlinkError::Exists(failure)) = failed else {
        panic!("{failed:?}");
    };
    assert!(failure.message.contains("excludes clsact"), "{failure}");
    assert!(shell("tc qdisc show dev v0").contains("qdisc ingress ffff:"));
}

#[test]
fn a_clsact_without_its_filter_does_not_stay() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let not_a_program: OwnedFd = File::open("/dev/null").unwrap().into();
    let err = nl
        .attach_bpf_filter(v0, &filter(&not_a_program, 1, 1, "emud"))
        .unwrap_err();
    assert!(
        err.to_string().contains("attach emud to the egress of v0"),
        "{err}"
    );
    assert_eq!(nl.ingress_qdisc(v0).unwrap(), IngressQdisc::None);
}

#[test]
fn places_hold_in_the_kernel() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let pass = program(TC_ACT_UNSPEC);
    nl.attach_bpf_filter(v0, &filter(&pass, 1, 1, "theirs"))
        .unwrap();
    shell(
        "tc filter add dev v0 egress pref 40 protocol ip u32 match u32 0 0 \
            action mirred egress mirror dev lo",
    );
    assert_eq!(
        nl.free_pref(v0, Hook::Egress, FilterOrder::First).unwrap(),
        Some(1)
    );
    assert_eq!(
        nl.free_pref(v0, Hook::Egress, FilterOrder::Last).unwrap(),
        Some(41)
    );
    nl.replace_bpf_filter(v0, &filter(&pass, 1, 0xe4d, "first"))
        .unwrap();
    nl.replace_bpf_filter(v0, &filter(&pass, 41, 0xe4d, "last"))
        .unwrap();
    let order: Vec<_> = nl.filters(v0, Hook::Egress).unwrap();
    let order: Vec<_> = order
        .iter()
        .map(|f| f.bpf.as_ref().map_or("u32", |b| &b.name))
        .collect();
    // u32 also lists its table.
    assert_eq!(order, ["first", "theirs", "u32", "u32", "last"]);
    // Replacing one keeps its position.
    let steal = program(TC_ACT_STOLEN);
    nl.replace_bpf_filter(v0, &filter(&steal, 1, 1, "theirs"))
        .unwrap();
    let order = nl.filters(v0, Hook::Egress).unwrap();
    assert_eq!(order[0].bpf.as_ref().unwrap().name, "first");
}

#[test]
fn where_a_filter_redirects_to_is_read() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let [v0, v1] = ["v0", "v1"].map(|name| index(&mut nl, name));
    shell("tc qdisc add dev v0 clsact");
    match nl.add_redirect(v0, Hook::Ingress, 2, 1, v1) {
        // Guests have it.
        Err(NetlinkError::Unavailable(_)) if !guest() => return,
        added => added.unwrap(),
    }
    let mut target = || {
        let filters = nl.filters(v0, Hook::Ingress).unwrap();
        filters.iter().map(|f| f.redirects_to).collect::<Vec<_>>()
    };
    assert_eq!(target(), [Some(v1)]);
    // mall_change() replaces none.
    shell(
        "tc filter del dev v0 ingress pref 2
         tc filter add dev v0 ingress pref 2 protocol all handle 1 matchall action drop",
    );
    assert_eq!(target(), [None]);
}

/// Not only in the listing: the first one determines the result.
#[test]
fn the_newest_at_a_pref_decides() {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    shell("ip addr add 10.9.0.1/24 dev v0; ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:09 dev v0");
    let sent = || {
        let packets = || -> u64 {
            let line = shell("grep v1: /proc/thread-self/net/dev");
            line.split_whitespace().nth(2).unwrap().parse().unwrap()
        };
        let before = packets();
        let ping = "-c 2 -i 0.01 -W 0.1 10.9.0.2";
        Command::new("ping").args(ping.split(' ')).output().unwrap();
        packets() - before
    };
    let (pass, steal) = (program(TC_ACT_OK), program(TC_ACT_STOLEN));
    nl.attach_bpf_filter(v0, &filter(&pass, 1, 1, "theirs"))
        .unwrap();
    assert_eq!(sent(), 2);
    nl.replace_bpf_filter(v0, &filter(&steal, 1, 0xe4d, "first"))
        .unwrap();
    assert_eq!(sent(), 0);
}

fn kernel_release() -> (u32, u32) {
    let release = shell("uname -r");
    let mut numbers = release.split(['.', '-']).map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn a_tcx_program_is_attached_replaced_and_detached() {
    for (hook, other) in [(Hook::Egress, Hook::Ingress), (Hook::Ingress, Hook::Egress)] {
        comes_and_goes(hook, other);
    }
}

fn comes_and_goes(hook: Hook, other: Hook) {
    let _space = Space::new();
    let mut nl = Netlink::open().unwrap();
    let v0 = index(&mut nl, "v0");
    let there = |hook| -> Vec<u32> {
        let programs = tcx_programs(v0, hook).unwrap();
        programs.iter().map(|program| program.id).collect()
    };
    assert!(there(hook).is_empty());
    let [first, second, third] = [TC_ACT_UNSPEC, TC_ACT_OK, TC_ACT_STOLEN].map(program);
    let attached = attach_tcx(v0, hook, first.as_fd());
    if kernel_release() < (6, 6) {
        assert!(attached.is_err(), "tcx came with Linux 6.6");
        return;
    }
    attached.unwrap();
    let [of_first] = there(hook)[..] else {
        panic!("not one program");
    };
    assert!(there(other).is_empty());
    attach_tcx(v0, hook, second.as_fd()).unwrap();
    // It runs before the first one.
    let now = there(hook);
    assert_eq!((now.len(), now[1]), (2, of_first));
    replace_tcx(v0, hook, of_first, third.as_fd()).unwrap();
    let replaced = there(hook);
    assert_eq!((replaced.len(), replaced[0]), (2, now[0]));
    assert_ne!(replaced[1], of_first);
    assert!(replace_tcx(v0, hook, of_first, first.as_fd()).is_err());
    detach_tcx(v0, hook, now[0]).unwrap();
    assert_eq!(there(hook), replaced[1..]);
    assert!(detach_tcx(v0, hook, now[0]).is_err());
    // A device that is not there.
    assert_eq!(tcx_programs(u32::MAX, hook).unwrap(), []);
}

/// aya lists by name: the list is that of the device, whatever its name is by then, or whose it was.
#[test]
fn a_device_that_is_renamed_keeps_its_programs() {
    let _space = Space::new();
    let v0 = index(&mut Netlink::open().unwrap(), "v0");
    shell("ip link set v0 down; ip link add other type veth peer name o2");
    let program = program(TC_ACT_UNSPEC);
    if attach_tcx(v0, Hook::Egress, program.as_fd()).is_err() {
        assert!(kernel_release() < (6, 6), "tcx came with Linux 6.6");
        return;
    }
    let done = AtomicBool::new(false);
    let (mut listed, mut wrong) = (0, Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..25 {
                shell(
                    "ip -b - <<E\nlink set v0 name v2\nlink set other name v0\nlink set v0 name other\n\
                     link set v2 name v0\nE",
                );
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let found = tcx_programs(v0, Hook::Egress);
            listed += 1;
            if !matches!(&found, Ok(programs) if programs.len() == 1) {
                wrong.push(found);
            }
        }
    });
    assert!(
        wrong.is_empty(),
        "{} of {listed}: {:?}",
        wrong.len(),
        wrong[0]
    );
}
