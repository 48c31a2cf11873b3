// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts what the kernel dumps to what a request needs to create the same object.
//!
//! For most kinds the two are the same attributes. This module has the differences, and the kinds
//! with state that no dump shows, which are rejected. Counters are removed, so that two results can
//! be compared.

use super::attr::{find, put_u32, rebuild, u32_at, u64_at};

/// Why an object cannot be restored.
pub(super) type Refusal = String;

const NSEC_PER_SEC: u64 = 1_000_000_000;
/// The kernel's tick of the traffic control interface is 64 ns.
const PSCHED_SHIFT: u32 = 6;
const TC_LINKLAYER_ATM: u8 = 2;

const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_OFFLOAD: u16 = 9;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;

const NETEM_QOPT_LEN: usize = 24;
const NETEM_JITTER_OFFSET: usize = 20;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_SLOT: u16 = 12;
/// struct tc_netem_slot: min_delay, max_delay, max_packets, max_bytes, dist_delay.
const NETEM_SLOT_DIST_JITTER: usize = 32;

/// Returns the TCA_OPTIONS of a request for the same qdisc.
pub(super) fn qdisc_options(kind: &str, dumped: Option<&[u8]>) -> Result<Option<Vec<u8>>, Refusal> {
    let options = match (kind, dumped) {
        ("mq" | "noqueue" | "pfifo_fast" | "drr", _) | (_, None) => None,
        ("htb", Some(raw)) => Some(htb(raw)?),
        ("tbf", Some(raw)) => Some(tbf(raw)?),
        ("netem", Some(raw)) => Some(netem(raw)?),
        ("sfq", Some(raw)) => Some(sfq(raw)),
        ("codel", Some(raw)) => Some(codel(raw, &[1, 3, 5])),
        ("fq_codel", Some(raw)) => Some(codel(raw, &[1, 3, 7])),
        ("pfifo" | "bfifo" | "pfifo_head_drop" | "prio" | "fq" | "cake", Some(raw)) => {
            Some(raw.to_vec())
        }
        _ => {
            return Err(format!(
                "qdisc {kind} is not of a kind known to be restorable"
            ));
        }
    };
    Ok(options)
}

/// Returns the TCA_OPTIONS of a class of htb without its level, which the kernel raises with its first child.
pub(super) fn without_level(options: &[u8]) -> Vec<u8> {
    // struct tc_htb_opt: rate, ceil, buffer, cbuffer, quantum, level, prio.
    const LEVEL: usize = 36;
    rebuild(options, |kind, payload| {
        if kind == TCA_HTB_PARMS {
            put_u32(payload, LEVEL, 0);
        }
        true
    })
}

/// Returns whether the user creates the classes of this kind (others are created with the qdisc).
pub(super) fn has_own_classes(kind: &str) -> bool {
    matches!(kind, "htb" | "drr")
}

/// Returns a stab that can be restored: the kernel does not dump its size table, so one without (overhead only).
pub(super) fn stab(dumped: &[u8]) -> Result<Vec<u8>, Refusal> {
    const TCA_STAB_BASE: u16 = 1;
    /// struct tc_sizespec: 2 log bytes, cell_align, overhead, linklayer, mpu, mtu, tsize.
    const TSIZE: usize = 20;
    match find(dumped, TCA_STAB_BASE).and_then(|base| u32_at(base, TSIZE)) {
        Some(0) => Ok(dumped.to_vec()),
        _ => Err("its stab has a size table, which the kernel does not dump".into()),
    }
}

fn htb(raw: &[u8]) -> Result<Vec<u8>, Refusal> {
    // struct tc_htb_glob: version, rate2quantum, defcls, debug, direct_pkts.
    const DIRECT_PKTS: usize = 16;
    if find(raw, TCA_HTB_OFFLOAD).is_some() {
        return Err("htb is offloaded to the device".into());
    }
    Ok(rebuild(raw, |kind, payload| {
        if kind == TCA_HTB_INIT {
            // Dumped as 0x30011, expected as 3; identified by its upper half.
            if let Some(version) = u32_at(payload, 0).filter(|v| v >> 16 != 0) {
                put_u32(payload, 0, version >> 16);
            }
            put_u32(payload, DIRECT_PKTS, 0);
        }
        true
    }))
}

/// A rate as the kernel uses it to convert lengths to times.
struct Rate {
    mult: u64,
    shift: u32,
    overhead: u64,
    atm: bool,
}

impl Rate {
    /// Reads a rate; `spec` is a struct tc_ratespec.
    fn of(spec: &[u8], rate64: Option<u64>) -> Option<Self> {
        let bytes_per_second = rate64
            .or(u32_at(spec, 8).map(u64::from))
            .filter(|&r| r > 0)?;
        let overhead = u16::from_ne_bytes([*spec.get(2)?, *spec.get(3)?]);
        let atm = spec.get(1)? & 0xf == TC_LINKLAYER_ATM;
        // The largest factor for which mult still fits into 32 bits.
        let (mut factor, mut shift) = (NSEC_PER_SEC, 0);
        while (factor / bytes_per_second) & (1 << 31) == 0 && factor & (1 << 63) == 0 {
            factor <<= 1;
            shift += 1;
        }
        let mult = u64::from((factor / bytes_per_second) as u32);
        Some(Self {
            mult,
            shift,
            overhead: overhead.into(),
            atm,
        })
    }

    /// Returns the number of ticks that `len` bytes take.
    fn ticks(&self, len: u32) -> u128 {
        let mut len = u128::from(len) + u128::from(self.overhead);
        if self.atm {
            len = len.div_ceil(48) * 53;
        }
        ((len * u128::from(self.mult)) >> self.shift) >> PSCHED_SHIFT
    }

    /// Returns the largest number of bytes that take exactly `ticks`, if any do.
    fn longest(&self, ticks: u32) -> Option<u32> {
        let (mut fits, mut too_long) = (0u32, u32::MAX);
        while too_long - fits > 1 {
            let middle = fits + (too_long - fits) / 2;
            if self.ticks(middle) <= u128::from(ticks) {
                fits = middle
            } else {
                too_long = middle
            }
        }
        (fits > 0 && self.ticks(fits) == u128::from(ticks)).then_some(fits)
    }
}

/// Converts a tbf. The burst is dumped as a time, rounded down to 64 ns; restored from that, a burst of exactly one
/// packet would be too small for it. So it is passed in bytes: the largest number that is dumped as
/// the same time.
fn tbf(raw: &[u8]) -> Result<Vec<u8>, Refusal> {
    // struct tc_tbf_qopt: rate (12 bytes), peakrate (12), limit, buffer, mtu.
    const PEAK: usize = 12;
    const BUFFER: usize = 28;
    const MTU: usize = 32;
    let parms = find(raw, TCA_TBF_PARMS).ok_or("tbf is dumped without its parameters")?;
    let burst = |spec: &[u8], rate64: u16, ticks: usize| {
        let rate = Rate::of(spec, find(raw, rate64).and_then(|r| u64_at(r, 0)))?;
        rate.longest(u32_at(parms, ticks)?)
    };
    let mut out = rebuild(raw, |kind, _| {
        !matches!(kind, TCA_TBF_BURST | TCA_TBF_PBURST)
    });
    if let Some(bytes) = burst(parms, TCA_TBF_RATE64, BUFFER) {
        super::attr::push(&mut out, TCA_TBF_BURST, false, &bytes.to_ne_bytes());
    }
    if let Some(bytes) = parms
        .get(PEAK..)
        .and_then(|peak| burst(peak, TCA_TBF_PRATE64, MTU))
    {
        super::attr::push(&mut out, TCA_TBF_PBURST, false, &bytes.to_ne_bytes());
    }
    Ok(out)
}

/// Converts an sfq: struct tc_sfq_qopt_v1 ends in counters.
fn sfq(raw: &[u8]) -> Vec<u8> {
    const STATS: usize = 48;
    let settings = raw.get(..STATS).unwrap_or(raw);
    let mut out = settings.to_vec();
    out.resize(raw.len(), 0);
    out
}

/// Converts a codel. Target, interval and ce_threshold are stored in units of 1024 ns: rounded down to the unit, and
/// again to microseconds when dumped. One microsecond more rounds down to the same unit; the dumped
/// value may not.
fn codel(raw: &[u8], times: &[u16]) -> Vec<u8> {
    rebuild(raw, |attr, payload| {
        if let Some(us) = u32_at(payload, 0).filter(|_| times.contains(&attr)) {
            put_u32(payload, 0, us.saturating_add(1));
        }
        true
    })
}

/// Converts a netem. Neither the table of a delay distribution nor its existence is dumped.
fn netem(raw: &[u8]) -> Result<Vec<u8>, Refusal> {
    let attrs = raw
        .get(NETEM_QOPT_LEN..)
        .ok_or("netem is dumped without its parameters")?;
    let jitter = match find(attrs, TCA_NETEM_JITTER64).and_then(|a| u64_at(a, 0)) {
        Some(ns) => ns,
        None => u32_at(raw, NETEM_JITTER_OFFSET).unwrap_or(0).into(),
    };
    if jitter != 0 {
        return Err("netem has jitter, whose distribution the kernel does not dump".into());
    }
    let slot = find(attrs, TCA_NETEM_SLOT).and_then(|a| u64_at(a, NETEM_SLOT_DIST_JITTER));
    if slot.unwrap_or(0) != 0 {
        return Err("netem has slots with a distribution that the kernel does not dump".into());
    }
    Ok(raw.to_vec())
}

/// The relevant attribute numbers of a kind of filter.
struct FilterAttrs {
    actions: u16,
    flags: Option<u16>,
    /// Hit counters, removed.
    counters: Option<u16>,
    /// Old-style policing, rejected.
    police: Option<u16>,
}

fn filter_attrs(kind: &str) -> Option<FilterAttrs> {
    let numbers = |actions, flags, counters, police| FilterAttrs {
        actions,
        flags,
        counters,
        police,
    };
    Some(match kind {
        "u32" => numbers(7, Some(11), Some(9), Some(6)),
        "matchall" => numbers(2, Some(3), Some(4), None),
        "flower" => numbers(3, Some(22), None, None),
        "fw" => numbers(4, None, None, Some(2)),
        _ => return None,
    })
}

const TCA_U32_MARK: u16 = 10;

/// Returns the TCA_OPTIONS of a request for the same filter.
pub(super) fn filter_options(kind: &str, dumped: &[u8]) -> Result<Vec<u8>, Refusal> {
    /// The filter flags that the user sets: skip_hw, skip_sw, verbose.
    const FLAGS_OF_USER: u32 = 0x13;
    let Some(numbers) = filter_attrs(kind) else {
        return Err(match kind {
            "bpf" => "it has a bpf filter, whose program would be lost".into(),
            _ => format!("filter {kind} is not of a kind known to be restorable"),
        });
    };
    if numbers
        .police
        .is_some_and(|number| find(dumped, number).is_some())
    {
        return Err(format!("a {kind} filter has old-style policing"));
    }
    let mut refused = None;
    let options = rebuild(dumped, |attr, payload| {
        if Some(attr) == numbers.counters {
            return false;
        }
        if Some(attr) == numbers.flags {
            let flags = u32_at(payload, 0).unwrap_or(0);
            put_u32(payload, 0, flags & FLAGS_OF_USER);
        }
        if kind == "u32" && attr == TCA_U32_MARK {
            put_u32(payload, 8, 0); // struct tc_u32_mark: val, mask, success
        }
        if attr == numbers.actions {
            match actions(payload) {
                Ok(made) => *payload = made,
                Err(why) => refused = Some(why),
            }
        }
        true
    });
    refused.map_or(Ok(options), Err)
}

/// Returns whether a filter refers to another interface, directly or by an action.
pub(super) fn names_interfaces(kind: &str, options: &[u8]) -> bool {
    const INDEV: [(&str, u16); 3] = [("u32", 8), ("flower", 2), ("fw", 3)];
    let indev = INDEV
        .iter()
        .any(|&(k, attr)| k == kind && find(options, attr).is_some());
    indev || filter_attrs(kind).is_some_and(|n| find(options, n.actions).is_some())
}

/// Returns the list of actions of a filter.
fn actions(list: &[u8]) -> Result<Vec<u8>, Refusal> {
    const TCA_ACT_KIND: u16 = 1;
    const TCA_ACT_OPTIONS: u16 = 2;
    const TCA_ACT_COOKIE: u16 = 6;
    const TCA_ACT_FLAGS: u16 = 7;
    const TCA_ACT_HW_STATS: u16 = 8;
    let mut refused = None;
    let made = rebuild(list, |_, action| {
        let name = find(action, TCA_ACT_KIND).unwrap_or(&[]);
        let name = String::from_utf8_lossy(name.strip_suffix(b"\0").unwrap_or(name)).into_owned();
        if !matches!(name.as_str(), "gact" | "mirred" | "skbedit") {
            refused = Some(format!(
                "action {name} is not of a kind known to be restorable"
            ));
        }
        *action = rebuild(action, |attr, payload| {
            if attr == TCA_ACT_OPTIONS {
                *payload = action_options(payload);
            }
            matches!(
                attr,
                TCA_ACT_KIND | TCA_ACT_OPTIONS | TCA_ACT_COOKIE | TCA_ACT_FLAGS | TCA_ACT_HW_STATS
            )
        });
        true
    });
    refused.map_or(Ok(made), Err)
}

/// Options of gact, mirred, skbedit without times of use and reference counts. The index stays: two
/// filters that share an action share it again after restoring.
fn action_options(raw: &[u8]) -> Vec<u8> {
    const TM: u16 = 1;
    const PARMS: u16 = 2;
    rebuild(raw, |attr, payload| {
        if attr == PARMS {
            put_u32(payload, 12, 0); // struct tc_gen: index, capab, action, refcnt,
            put_u32(payload, 16, 0); // bindcnt
        }
        attr != TM
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn ethernet(bytes_per_second: u32, overhead: u16) -> Vec<u8> {
        let mut spec = vec![0; 12];
        spec[1] = 1;
        spec[2..4].copy_from_slice(&overhead.to_ne_bytes());
        spec[8..].copy_from_slice(&bytes_per_second.to_ne_bytes());
        spec
    }

    #[test]
    fn a_burst_survives_its_dump() {
        for bytes_per_second in [1_000, 125_000, 12_500_000, 125_000_000, 1_250_000_000] {
            let rate = Rate::of(&ethernet(bytes_per_second, 4), None).unwrap();
            for burst in [1, 64, 1500, 1514, 1600, 10_000, 1 << 20] {
                let Ok(ticks) = u32::try_from(rate.ticks(burst)) else {
                    continue;
                };
                let again = rate.longest(ticks).unwrap();
                assert!(
                    again >= burst,
                    "{burst} became {again} at {bytes_per_second}"
                );
                assert_eq!(rate.ticks(again), u128::from(ticks));
            }
        }
    }

    #[test]
    fn a_time_that_no_length_takes_is_left_alone() {
        // 1000 bytes/s: a byte takes 15,625 ticks.
        let rate = Rate::of(&ethernet(1_000, 0), None).unwrap();
        assert_eq!(rate.longest(15_625), Some(1));
        assert_eq!(rate.longest(15_700), None);
    }

    #[test]
    fn a_codel_time_survives_its_dump() {
        let kept = |us: u64| (us * 1000) >> 10;
        let dumped = |units: u64| (units << 10) / 1000;
        for us in (0..3_000).chain([100_000, 999_999, 4_000_000]) {
            let mut raw = Vec::new();
            let shown = dumped(kept(us)) as u32;
            super::super::attr::push(&mut raw, 3, false, &shown.to_ne_bytes());
            let again = codel(&raw, &[1, 3, 5]);
            let again = find(&again, 3).and_then(|a| u32_at(a, 0)).unwrap();
            assert_eq!(kept(again.into()), kept(us), "{us} us");
        }
    }

    #[test]
    fn netem_with_jitter_is_refused() {
        let mut raw = vec![0; NETEM_QOPT_LEN];
        assert!(netem(&raw).is_ok());
        raw[NETEM_JITTER_OFFSET] = 1;
        assert!(netem(&raw).unwrap_err().contains("distribution"));
    }

    #[test]
    fn unknown_kinds_are_refused_by_name() {
        assert!(
            qdisc_options("taprio", Some(&[]))
                .unwrap_err()
                .contains("taprio")
        );
        assert!(
            filter_options("cgroup", &[])
                .unwrap_err()
                .contains("cgroup")
        );
        assert!(filter_options("bpf", &[]).unwrap_err().contains("program"));
    }
}
