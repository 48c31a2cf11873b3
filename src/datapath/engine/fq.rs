// SPDX-License-Identifier: MIT OR Apache-2.0
//! Engine `fq`: packets wait in sch_fq, which schedules by the departure time in skb->tstamp.
//!
//! Longer than 400 lines: the limits of sch_fq, and the probe that measures whether it keeps to them.

use std::fmt;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::abi;
use crate::datapath::maps::{Loaded, Program};
use crate::datapath::stage::alter;
use crate::datapath::stage::compile::Compiled;
use crate::datapath::stage::queueing::wire_bytes;
use crate::datapath::stage::sizes::Sizes;
use crate::host::in_namespace;
use crate::netlink::{
    BpfFilter, FqOptions, Hook, IfbOptions, Link, Netlink, NetlinkError, ROOT, classid,
};
use crate::profile::Pair;

/// Handle of emud's root qdisc, by which detach identifies it.
pub const ROOT_HANDLE: u32 = 0xe3d0_0000;

/// Packets/s to reserve space for on a link without a rate: the maximum of one CPU.
pub(super) const PACKETS_PER_S_MAX: f64 = 2e6;
/// The shortest frame, bytes: UDP without data over IPv4, on a veth. Only a NIC makes it longer.
pub(super) const FRAME_MIN: f64 = 42.0;
/// The longest frame, for a queue in packets, bytes.
const FRAME_MAX: f64 = 1538.0;
/// Any user can hold packets back for up to 10 s (SO_TXTIME), 277 in the usual send buffer: with 10,000 some 40
/// sockets made fq drop packets of others. fq allocates nothing for it.
const LIMIT_MIN: f64 = 1_000_000.0;
const LIMIT_MAX: f64 = 16_000_000.0;
/// fq's timer uses the late end of this range (default 10 us): with 1 us the median packet left
/// that much later.
const TIMER_SLACK_NS: u32 = 0;
/// The kernel's default of ce_threshold.
const NO_MARKS: u32 = u32::MAX;
/// fq sends a packet that is due later at this distance already, so it is the longest one, 71 min: how
/// long packets may wait depends on their lengths, and a queue of 1000 jumbo frames is six times as
/// long as one of 1000 usual ones. The classifier leaves no stamp that is not a departure time.
const HORIZON_US: u32 = u32::MAX;

/// A datagram over lo takes microseconds if it arrives at all, and one that an ifb drops is counted.
const PROBE_WAIT: Duration = Duration::from_millis(200);
/// The kernel rounds it up to a tick.
const PROBE_STEP: Duration = Duration::from_millis(1);

/// ifb stops its queue at this number of packets that are due and not yet put back; Debian's
/// kernels reject 32768.
const IFB_TXQLEN: u32 = 16_384;

/// Returns options for an fq that never drops a packet of these links: emud limits the queue.
///
/// `instances` is the maximum number of instances of links with `per`, `pairs` are those of the
/// matrix.
pub fn options(links: &[Compiled], instances: u32, pairs: &[Pair]) -> FqOptions {
    let (held, _) = waiting(links, instances, pairs);
    let limit = (2.0 * held).clamp(LIMIT_MIN, LIMIT_MAX) as u32;
    FqOptions {
        limit,
        flow_limit: limit,
        timer_slack_ns: TIMER_SLACK_NS,
        horizon_us: HORIZON_US,
        horizon_drop: false,
        orphan_mask: Some(abi::EMUD_FQ_FLOWS - 1),
        buckets_log: None,
        pacing: Some(false),
        ce_threshold_us: Some(NO_MARKS),
    }
}

/// Returns how many packets of these links may wait, and for how long in s; see [`options`].
pub(super) fn waiting(links: &[Compiled], instances: u32, pairs: &[Pair]) -> (f64, f64) {
    let own = links.iter().map(holds);
    let own = own.map(|(held, longest_s)| (held * f64::from(instances.max(1)), longest_s));
    own.chain(hold_pairs(links, pairs))
        .fold((0.0, 0.0f64), |(all, longest), (held, longest_s)| {
            (all + held, longest.max(longest_s))
        })
}

/// Returns for how many ns a packet of these links may wait; see [`options`].
pub fn longest_ns(links: &[Compiled], instances: u32, pairs: &[Pair]) -> u64 {
    (waiting(links, instances, pairs).1 * 1e9) as u64
}

/// How the sentence of [`too_long`] begins.
pub const TOO_LONG: &str = "fq sends each packet after 4294 s at the latest";

/// Returns a sentence if packets may wait longer than fq holds any.
pub fn too_long(longest_ns: u64) -> Option<String> {
    let is_longer = longest_ns > u64::from(HORIZON_US) * 1_000;
    let longest_s = longest_ns / 1_000_000_000;
    is_longer.then(|| format!("{TOO_LONG}, and those of this link may have to wait {longest_s} s"))
}

/// Returns how many packets of a link may wait, with their copies, and for how long in s.
fn holds(link: &Compiled) -> (f64, f64) {
    let (packets, longest_s) = holds_originals(link);
    let (duplicate, ..) = alter::decode(&link.link);
    (packets * (1.0 + duplicate.probability), longest_s)
}

fn holds_originals(link: &Compiled) -> (f64, f64) {
    let delay_s = link.longest_delay_ns() as f64 / 1e9 + slots_s(&link.link);
    if let Some(rows) = link.timeline.as_ref().filter(|rows| rows.max_rate > 0) {
        let packets_per_s = rows.max_rate as f64 / 8.0 / FRAME_MIN;
        let longest_s = delay_s + rows.longest_wait_ns as f64 / 1e9;
        return (longest_s * packets_per_s.min(PACKETS_PER_S_MAX), longest_s);
    }
    let (queue_s, packets_per_s) = match byte_s(&link.link) {
        Some(byte_s) => (queue_s(&link.link, byte_s), 1.0 / (byte_s * FRAME_MIN)),
        None => (0.0, PACKETS_PER_S_MAX),
    };
    let longest_s = delay_s + queue_s;
    (longest_s * packets_per_s.min(PACKETS_PER_S_MAX), longest_s)
}

/// Returns the bytes that a link with a rate may have in its queue and in flight, and the delay of any link in s, up to
/// one packet in a million.
pub fn promised(link: &Compiled) -> (Option<f64>, f64) {
    let delay_s = link.millionth_delay_ns() as f64 / 1e9 + slots_s(&link.link);
    let traced = link.timeline.as_ref().map(|rows| rows.max_rate);
    let bytes_per_s = match traced.filter(|rate| *rate > 0) {
        Some(rate) => Some(rate as f64 / 8.0),
        None => byte_s(&link.link).map(f64::recip),
    };
    let bytes = bytes_per_s.map(|rate| delay_s * rate + queue_bytes(&link.link, rate));
    (bytes, delay_s)
}

/// Returns the longest queue at this rate; 0 without a limit, for which no space is reserved.
fn queue_bytes(link: &abi::emud_link, bytes_per_s: f64) -> f64 {
    let limits = [
        (link.queue_packets > 0).then(|| f64::from(link.queue_packets) * FRAME_MAX),
        (link.queue_bytes > 0).then(|| f64::from(link.queue_bytes)),
        (link.queue_wait_ns < u64::MAX).then(|| link.queue_wait_ns as f64 / 1e9 * bytes_per_s),
    ];
    limits.into_iter().flatten().reduce(f64::min).unwrap_or(0.0)
}

/// Returns the longest wait for a slot: for one with room, and for its beginning.
fn slots_s(link: &abi::emud_link) -> f64 {
    if link.tdma.span_ns == 0 {
        return 0.0;
    }
    let furthest_ns = (link.tdma.min_ns + link.tdma.span_ns) as f64;
    let full_s = match link.tdma.wait_ns {
        u64::MAX => 0.0,
        wait_ns => wait_ns as f64 / 1e9,
    };
    full_s + furthest_ns / 1e9
}

/// Returns the same for pairs of addresses, each with a separate queue on the base link.
fn hold_pairs<'a>(
    links: &'a [Compiled],
    pairs: &'a [Pair],
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let base = links
        .first()
        .and_then(|own| links.get(own.link.matrix_link as usize));
    base.into_iter()
        .flat_map(move |base| pairs.iter().map(move |pair| hold_pair(base, pair)))
}

fn hold_pair(base: &Compiled, pair: &Pair) -> (f64, f64) {
    let mean = base.link.delay_ns;
    // The base link's jitter varies around the pair's mean.
    let beyond = base.longest_delay_ns().saturating_sub(mean);
    let delay_s = (pair.delay_ns.unwrap_or(mean) + beyond) as f64 / 1e9;
    let byte_s = pair
        .rate
        .map(|rate| 8.0 / rate as f64)
        .or(byte_s(&base.link));
    let Some(byte_s) = byte_s else {
        return (delay_s * PACKETS_PER_S_MAX, delay_s);
    };
    let bytes_s = match base.link.pair_bytes {
        0 => f64::INFINITY,
        bytes => f64::from(bytes) * byte_s,
    };
    let packets_s = match base.link.pair_packets {
        0 => f64::INFINITY,
        n => f64::from(n) * wire_bytes(&base.link, FRAME_MAX) * byte_s,
    };
    let wait_s = base.link.queue_wait_ns as f64 / 1e9;
    let longest_s = delay_s + packets_s.min(bytes_s).min(wait_s);
    let packets_per_s = 1.0 / (byte_s * FRAME_MIN);
    (longest_s * packets_per_s.min(PACKETS_PER_S_MAX), longest_s)
}

fn byte_s(link: &abi::emud_link) -> Option<f64> {
    (link.rate_mult != 0).then(|| link.rate_mult as f64 / 2f64.powi(link.rate_shift as i32) / 1e9)
}

fn queue_s(link: &abi::emud_link, byte_s: f64) -> f64 {
    let packets_s = match link.queue_packets {
        0 => f64::INFINITY,
        n => f64::from(n) * wire_bytes(link, FRAME_MAX) * byte_s,
    };
    packets_s.min(link.queue_wait_ns.min(link.queue_busy_ns) as f64 / 1e9)
}

/// Returns whether packets of at least one link must stay in order: in queues that are not synchronised
/// they overtake. Links that let packets overtake work with one queue, too.
pub fn in_order(links: &[Compiled]) -> bool {
    let drawn = abi::EMUD_F_PER_PACKET | abi::EMUD_F_SHARE | abi::EMUD_F_REORDER;
    links.iter().any(|link| link.link.flags & drawn == 0)
}

/// Start of the note of [`overtakes`].
pub const OVERTAKES: &str = "up: packets overtake one another between the transmit queues";

/// Returns a note if links in order wait in several queues, which attach made for others.
pub fn overtakes(several_queues: bool, links: &[Compiled]) -> Option<String> {
    (several_queues && in_order(links)).then(|| {
        format!(
            "{OVERTAKES}: no link was in order at attach, so each queue has an fq; attach again for one \
             fq"
        )
    })
}

/// Adds fq to the root of a device with the kernel's default root: a single fq if a link is in order,
/// otherwise one under every class of mq if the device has several transmit queues.
pub fn install(
    nl: &mut Netlink,
    link: &Link,
    options: &FqOptions,
    in_order: bool,
) -> Result<(), NetlinkError> {
    if link.num_tx_queues <= 1 || in_order {
        return nl.add_fq(link.index, ROOT, ROOT_HANDLE, options);
    }
    nl.add_mq(link.index, ROOT_HANDLE)?;
    for class in classes(link.num_tx_queues) {
        nl.add_fq(link.index, class, 0, options)?;
    }
    Ok(())
}

/// Changes the limits of the qdiscs that attach created, unless another process has replaced them. Returns whether each
/// transmit queue has one.
pub fn resize(nl: &mut Netlink, link: &Link, options: &FqOptions) -> Result<bool, NetlinkError> {
    let root = nl.root_by_hand(link.index)?;
    let root = root.filter(|root| root.handle == ROOT_HANDLE);
    match root.as_ref().map(|root| &*root.kind) {
        Some("mq") => {}
        Some("fq") => {
            nl.change_fq(link.index, ROOT, options)?;
            return Ok(false);
        }
        _ => return Ok(false),
    }
    for class in classes(link.num_tx_queues) {
        nl.change_fq(link.index, class, options)?;
    }
    Ok(true)
}

/// Returns whether another process changed an fq that had room for `room` packets: it would send packets
/// early, drop or mark some.
pub(crate) fn is_altered(now: &FqOptions, room: u32) -> bool {
    let kept = FqOptions {
        limit: room,
        flow_limit: room,
        timer_slack_ns: TIMER_SLACK_NS,
        horizon_us: HORIZON_US,
        horizon_drop: false,
        pacing: Some(false),
        ce_threshold_us: Some(NO_MARKS),
        ..*now
    };
    // More room is made before it is recorded.
    let same_room = FqOptions {
        limit: now.limit.min(room),
        flow_limit: now.flow_limit.min(room),
        ..*now
    };
    same_room != kept
}

/// Returns the classes of emud's mq, each of which has an fq.
pub(crate) fn classes(queues: u32) -> impl Iterator<Item = u32> {
    (1..=queues)
        .filter_map(|n| u16::try_from(n).ok())
        .map(|n| classid(ROOT_HANDLE, n))
}

/// A device with an MTU below 68 has no IPv4 (inetdev_event()), and below 1280 no IPv6: no user can bind a socket to
/// an ifb and fill its queue. Packets that are redirected to it may be longer.
pub(crate) const IFB_MTU: u32 = 67;

/// Creates emud's ifb, still down, and returns its index.
///
/// # Errors
/// The kernel returns an error; the ifb is deleted then.
pub fn add_ifb(nl: &mut Netlink, name: &str, device: &Link) -> Result<u32, NetlinkError> {
    let ifb = IfbOptions {
        mtu: device.mtu,
        txqlen: IFB_TXQLEN,
        gso: None,
    };
    nl.add_ifb(name, &ifb)
}

/// Creates an ifb for a test of the kernel, in a network namespace that ends with the thread.
pub(crate) fn add_trial_ifb(nl: &mut Netlink) -> Result<u32, NetlinkError> {
    let ifb = IfbOptions {
        mtu: 1500,
        txqlen: 32,
        gso: None,
    };
    nl.add_ifb("emud-probe", &ifb)
}

/// How a received packet reaches the ifb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToIfb {
    /// The classifier redirects it.
    Redirect,
    /// A mirred filter after the classifier redirects it: this kernel's ifb drops packets that a
    /// BPF program redirects.
    Mirred,
}

impl fmt::Display for ToIfb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Redirect => "ingress by bpf_redirect to an ifb",
            Self::Mirred => {
                "ingress by mirred to an ifb: this kernel's ifb drops packets redirected by BPF"
            }
        })
    }
}

/// Tests whether this kernel supports the engine, in a network namespace that ends with the thread.
///
/// # Errors
/// A sentence about the missing feature.
pub fn probe() -> Result<ToIfb, String> {
    in_namespace(|| {
        let mut nl = Netlink::open().map_err(text)?;
        let ifb = add_trial_ifb(&mut nl).map_err(|e| lacks("ifb", e))?;
        nl.add_fq(ifb, ROOT, ROOT_HANDLE, &PROBE_FQ)
            .map_err(|e| lacks("sch_fq", e))?;
        nl.set_up(ifb, true).map_err(text)?;
        try_redirect(&mut nl, ifb)
    })
}

fn lacks(module: &str, e: NetlinkError) -> String {
    match e {
        NetlinkError::Unavailable(_) => format!("this kernel has no {module}"),
        other => other.to_string(),
    }
}

fn text(e: impl fmt::Display) -> String {
    e.to_string()
}

const PROBE_FQ: FqOptions = FqOptions {
    limit: 100,
    flow_limit: 100,
    timer_slack_ns: TIMER_SLACK_NS,
    horizon_us: 10_000_000,
    horizon_drop: false,
    orphan_mask: None,
    buckets_log: None,
    pacing: Some(false),
    ce_threshold_us: None,
};

/// Sends a datagram over lo, whose ingress a BPF program redirects to the ifb. The program is the
/// TAP's, as short as one can be.
fn try_redirect(nl: &mut Netlink, ifb: u32) -> Result<ToIfb, String> {
    let program = Program::TapUp;
    let mut loaded = Loaded::load(&[program], &Sizes::default(), 0).map_err(text)?;
    let lo = nl.link("lo").map_err(text)?.index;
    nl.set_up(lo, true).map_err(text)?;
    loaded
        .maps()
        .and_then(|mut maps| maps.init(ifb, 0))
        .map_err(text)?;
    let filter = BpfFilter {
        hook: Hook::Ingress,
        pref: 1,
        handle: 1,
        program: loaded.program_fd(program).map_err(text)?,
        name: program.name(),
        classid: 0,
        chain: 0,
    };
    nl.attach_bpf_filter(lo, &filter).map_err(text)?;
    let socket = UdpSocket::bind(("127.0.0.1", 0)).map_err(text)?;
    socket.set_read_timeout(Some(PROBE_STEP)).map_err(text)?;
    let address = socket.local_addr().map_err(text)?;
    socket.send_to(b"emud", address).map_err(text)?;
    let sent = Instant::now();
    loop {
        match socket.recv(&mut [0; 8]) {
            Ok(_) => return Ok(ToIfb::Redirect),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let [dropped, _] = nl.device_dropped(ifb).map_err(text)?;
                if dropped > 0 || sent.elapsed() > PROBE_WAIT {
                    return Ok(ToIfb::Mirred);
                }
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(text(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::stage::compile::{PacketTarget, compile};
    use crate::profile::Profile;

    #[test]
    fn an_fq_that_sends_early_drops_or_marks_is_altered() {
        let made = options(&[], 1, &[]);
        let altered = |now: FqOptions| is_altered(&now, made.limit);
        assert!(!altered(made));
        // As the kernel reports what emud did not set, and more room.
        assert!(!altered(FqOptions {
            limit: 2 * made.limit,
            buckets_log: Some(10),
            ..made
        }));
        for now in [
            FqOptions { limit: 100, ..made },
            FqOptions {
                flow_limit: 100,
                ..made
            },
            FqOptions {
                horizon_us: 1000,
                ..made
            },
            FqOptions {
                horizon_drop: true,
                ..made
            },
            FqOptions {
                timer_slack_ns: 1_000_000,
                ..made
            },
            FqOptions {
                pacing: Some(true),
                ..made
            },
            FqOptions {
                ce_threshold_us: Some(1),
                ..made
            },
        ] {
            assert!(altered(now), "{now:?}");
        }
    }

    /// In several queues, packets of one flow overtake each other.
    #[test]
    fn only_links_that_let_packets_overtake_have_several_queues() {
        let compiled = |delay: &str| {
            let text = format!("[up]\ndelay = {delay}\n");
            let profile = Profile::parse(&text, "x").unwrap_or_else(|e| panic!("{e}"));
            let place = PacketTarget {
                release: abi::EMUD_RELEASE_STAMP,
                ifindex: 0,
                l3: false,
            };
            compile(&profile.up, 42, abi::EMUD_UP, 0, place).unwrap()
        };
        let constant = "\"30ms\"";
        let ordered = "{ mean = \"30ms\", sd = \"1ms\" }";
        for (delay, stays) in [
            (constant, true),
            (ordered, true),
            (
                "{ mean = \"30ms\", sd = \"1ms\", reorder = \"jitter\" }",
                false,
            ),
            ("{ mean = \"30ms\", share = \"10%\" }", false),
            ("\"30ms\"\nreorder = \"1%\"", false),
        ] {
            let one = [compiled(delay)];
            assert_eq!(in_order(&one), stays, "{delay}");
            assert_eq!(overtakes(true, &one).is_some(), stays, "{delay}");
            assert_eq!(overtakes(false, &one), None, "{delay}");
            let twice = [compiled(delay), compiled(delay)];
            assert_eq!(in_order(&twice), stays, "twice: {delay}");
            let [first, last] = [[ordered, delay], [delay, ordered]].map(|two| two.map(compiled));
            assert!(in_order(&first) && in_order(&last), "one is in order");
        }
    }
}
