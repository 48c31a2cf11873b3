// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Arc;

use netlink_bindings::tc::{self, IterableAttrs, PushAttrs, TcPrioQopt, Tcmsg};
use netlink_bindings::traits::Pusher;

use super::{Netlink, NetlinkError, Result, attr, signed};

/// The parent of a root qdisc.
pub const ROOT: u32 = 0xffff_ffff;
/// First letters of the kind of emud's BPF qdiscs.
pub const OWN_KIND: &str = "emud";
/// The parent of clsact and ingress, and of their filters' hooks.
pub(super) const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
pub(super) const MAJOR: u32 = 0xffff_0000;

const FQ_BANDS: u32 = 3;
const TC_PRIO_MAX: usize = 15;

/// Returns the ID of a class of qdisc `handle`, such as the n-th queue of mq (counted from 1).
pub fn classid(handle: u32, minor: u16) -> u32 {
    (handle & MAJOR) | u32::from(minor)
}

/// Formats a handle like tc: "1:", "1:2", "root", "none".
pub fn show_handle(handle: u32) -> String {
    match (handle, handle >> 16, handle & 0xffff) {
        (ROOT, ..) => "root".into(),
        (0, ..) => "none".into(),
        (_, major, 0) => format!("{major:x}:"),
        (_, 0, minor) => format!(":{minor:x}"),
        (_, major, minor) => format!("{major:x}:{minor:x}"),
    }
}

/// A qdisc, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// Kind, such as "fq".
    pub kind: String,
    /// Major number in the upper half; 0 if the kernel installed it by default.
    pub handle: u32,
    /// [`ROOT`], or the parent class.
    pub parent: u32,
    /// TCA_OPTIONS as the kernel sent it.
    pub options: Option<Vec<u8>>,
    /// TCA_STAB as the kernel sent it.
    pub stab: Option<Vec<u8>>,
    /// Number of the shared block of its ingress filters.
    pub ingress_block: Option<u32>,
    /// Number of the shared block of its egress filters.
    pub egress_block: Option<u32>,
    /// Whether it has a rate estimator.
    pub estimator: bool,
    /// Number of waiting packets.
    pub qlen: u32,
    /// Number of packets dropped so far.
    pub drops: u32,
}

impl Qdisc {
    /// Returns whether a user configured it, as opposed to the kernel's default.
    pub fn by_hand(&self) -> bool {
        self.handle & MAJOR != 0
    }

    /// Returns the parameters of an fq, if the kernel reports all of them.
    pub fn fq_options(&self) -> Option<FqOptions> {
        let fq = tc::FqAttrs::new(self.options.as_deref()?);
        Some(FqOptions {
            limit: fq.get_plimit().ok()?,
            flow_limit: fq.get_flow_plimit().ok()?,
            timer_slack_ns: fq.get_timer_slack().ok()?,
            horizon_us: fq.get_horizon().ok()?,
            horizon_drop: fq.get_horizon_drop().ok()? != 0,
            orphan_mask: Some(fq.get_orphan_mask().ok()?),
            buckets_log: Some(fq.get_buckets_log().ok()?),
            pacing: Some(fq.get_rate_enable().ok()? != 0),
            ce_threshold_us: Some(fq.get_ce_threshold().ok()?),
        })
    }

    /// Returns whether it is the root of its interface.
    pub fn is_root(&self) -> bool {
        self.parent == ROOT
    }
}

/// The qdisc that holds the ingress filters of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngressQdisc {
    /// No such qdisc.
    None,
    /// The older `ingress`: excludes clsact, has no egress side.
    Ingress,
    /// clsact: it holds filters of both directions.
    Clsact,
}

/// Parameters of fq; `None` keeps the kernel's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FqOptions {
    /// Maximum number of packets in total.
    pub limit: u32,
    /// Maximum number of packets of one flow.
    pub flow_limit: u32,
    /// Permitted lateness of the timer in ns (Linux 4.20).
    pub timer_slack_ns: u32,
    /// Horizon of departure times in microseconds.
    pub horizon_us: u32,
    /// Beyond the horizon: drop (true), or send at the horizon (false).
    pub horizon_drop: bool,
    /// Flows of packets without a socket: hash & mask.
    pub orphan_mask: Option<u32>,
    /// log2 of the number of hash buckets.
    pub buckets_log: Option<u32>,
    /// fq's pacing of sockets; packets with a departure time are not paced.
    pub pacing: Option<bool>,
    /// ECN packets that leave this much after their departure time are marked; `u32::MAX`: none.
    pub ce_threshold_us: Option<u32>,
}

/// Reads the attributes of a dumped qdisc or class except kind and options.
fn parse(header: &Tcmsg, attrs: &IterableAttrs<'_>) -> Qdisc {
    let raw = attrs.get_buf();
    let stats = attrs.get_stats2().ok();
    let queue = stats.as_ref().and_then(|s| s.get_queue().ok());
    Qdisc {
        kind: kind(attrs),
        handle: header.handle,
        parent: header.parent,
        options: attr::find(raw, libc::TCA_OPTIONS).map(<[u8]>::to_vec),
        stab: attr::find(raw, libc::TCA_STAB).map(<[u8]>::to_vec),
        ingress_block: attrs.get_ingress_block().ok(),
        egress_block: attrs.get_egress_block().ok(),
        estimator: stats.as_ref().is_some_and(|s| s.get_rate_est().is_ok()),
        qlen: queue.as_ref().map_or(0, |q| q.qlen),
        drops: queue.as_ref().map_or(0, |q| q.drops),
    }
}

pub(super) fn kind(attrs: &IterableAttrs<'_>) -> String {
    attrs
        .get_kind()
        .map(|k| k.to_string_lossy().into_owned())
        .unwrap_or_default()
}

pub(super) fn tcmsg(ifindex: u32, parent: u32, handle: u32) -> Tcmsg {
    Tcmsg {
        ifindex: signed(ifindex),
        parent,
        handle,
        ..Default::default()
    }
}

/// Every visible qdisc of a namespace, by interface.
pub type Qdiscs = HashMap<u32, Vec<Qdisc>>;

impl Netlink {
    /// Returns every visible qdisc of the namespace: as much work for the kernel as
    /// [`Self::qdiscs`] of one interface, which it answers with all of them.
    pub fn all_qdiscs(&mut self) -> Result<Qdiscs> {
        let request = tc::Request::new().op_getqdisc_dump(&tcmsg(0, 0, 0));
        let mut found = Qdiscs::new();
        self.exchange(
            &request,
            || "list qdiscs".into(),
            |(header, attrs)| {
                let of = found.entry(header.ifindex.cast_unsigned()).or_default();
                of.push(parse(&header, &attrs));
            },
        )?;
        Ok(found)
    }

    /// Answers [`Self::qdiscs`] from one list during `work`.
    pub fn with_one_list<T, E: From<NetlinkError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        if self.qdiscs.is_some() {
            return work(self);
        }
        self.qdiscs = Some(Arc::new(self.all_qdiscs()?));
        let done = work(self);
        self.qdiscs = None;
        done
    }

    /// Answers [`Self::qdiscs`] from a list from now on.
    pub fn use_qdiscs(&mut self, list: Arc<Qdiscs>) {
        self.qdiscs = Some(list);
    }

    /// Returns every visible qdisc of the interface, including clsact.
    pub fn qdiscs(&mut self, ifindex: u32) -> Result<Vec<Qdisc>> {
        if let Some(list) = &self.qdiscs {
            return Ok(list.get(&ifindex).cloned().unwrap_or_default());
        }
        let request = tc::Request::new().op_getqdisc_dump(&tcmsg(ifindex, 0, 0));
        let what = || format!("list the qdiscs of interface {ifindex}");
        let mut found = Vec::new();
        self.exchange(&request, what, |(header, attrs)| {
            // Without strict checking the kernel dumps every interface.
            if header.ifindex == signed(ifindex) {
                found.push(parse(&header, &attrs));
            }
        })?;
        Ok(found)
    }

    /// Passes the interface, the kind and the drops of every qdisc of the namespace.
    pub(super) fn each_qdisc(&mut self, mut each: impl FnMut(u32, &str, u64)) -> Result<()> {
        let request = tc::Request::new().op_getqdisc_dump(&tcmsg(0, 0, 0));
        let what = || "list qdiscs".into();
        self.exchange(&request, what, |(header, attrs)| {
            let queue = attrs.get_stats2().and_then(|stats| stats.get_queue());
            let drops = queue.map_or(0, |queue| u64::from(queue.drops));
            each(header.ifindex.cast_unsigned(), &kind(&attrs), drops);
        })
    }

    /// Returns the root qdisc if a user configured it.
    pub fn root_by_hand(&mut self, ifindex: u32) -> Result<Option<Qdisc>> {
        Ok(self
            .qdiscs(ifindex)?
            .into_iter()
            .find(|q| q.is_root() && q.by_hand()))
    }

    /// Returns which qdisc holds the filters at the hooks.
    pub fn ingress_qdisc(&mut self, ifindex: u32) -> Result<IngressQdisc> {
        let qdiscs = self.qdiscs(ifindex)?;
        Ok(
            match qdiscs
                .iter()
                .find(|q| q.parent == CLSACT)
                .map(|q| q.kind.as_str())
            {
                None => IngressQdisc::None,
                Some("clsact") => IngressQdisc::Clsact,
                Some(_) => IngressQdisc::Ingress,
            },
        )
    }

    /// Deletes a root qdisc that a user configured, which restores the kernel's default. Returns
    /// false if there was none.
    pub fn delete_root(&mut self, ifindex: u32) -> Result<bool> {
        let Some(root) = self.root_by_hand(ifindex)? else {
            return Ok(false);
        };
        let request = tc::Request::new().op_delqdisc_do(&tcmsg(ifindex, ROOT, root.handle));
        let name = self.name_of(ifindex);
        self.ack(&request, || {
            format!("delete root qdisc {} of {name}", root.kind)
        })?;
        Ok(true)
    }

    /// Adds fq at [`ROOT`] or under a class of mq, every priority in one band.
    ///
    /// # Errors
    /// [`NetlinkError::Unavailable`] if the kernel has no sch_fq.
    pub fn add_fq(
        &mut self,
        ifindex: u32,
        parent: u32,
        handle: u32,
        options: &FqOptions,
    ) -> Result<()> {
        let mut request = new_qdisc(ifindex, parent, handle);
        encode_fq(request.encode(), options);
        self.add(&request, "fq", ifindex, parent)
    }

    /// Changes the parameters of an existing fq; its packets stay.
    ///
    /// # Errors
    /// The kernel returns an error, for example if the qdisc is not an fq.
    pub fn change_fq(&mut self, ifindex: u32, parent: u32, options: &FqOptions) -> Result<()> {
        let mut request = tc::Request::new().op_newqdisc_do(&tcmsg(ifindex, parent, 0));
        encode_fq(request.encode(), options);
        let name = self.name_of(ifindex);
        self.ack(&request, || {
            format!("change fq at {} of {name}", show_handle(parent))
        })
    }

    /// Adds mq at the root of a device with several transmit queues.
    pub fn add_mq(&mut self, ifindex: u32, handle: u32) -> Result<()> {
        let mut request = new_qdisc(ifindex, ROOT, handle);
        request.encode().push_kind(c"mq");
        self.add(&request, "mq", ifindex, ROOT)
    }

    /// Adds a qdisc without options.
    ///
    /// # Errors
    /// [`NetlinkError::Unavailable`] if the kernel has none of this kind.
    pub fn add_qdisc(&mut self, ifindex: u32, parent: u32, handle: u32, kind: &CStr) -> Result<()> {
        let mut request = new_qdisc(ifindex, parent, handle);
        request.encode().push_kind(kind);
        self.add(&request, &kind.to_string_lossy(), ifindex, parent)
    }

    /// Deletes clsact with every filter in it.
    pub fn delete_clsact(&mut self, ifindex: u32) -> Result<()> {
        let request = tc::Request::new().op_delqdisc_do(&tcmsg(ifindex, CLSACT, CLSACT_HANDLE));
        let name = self.name_of(ifindex);
        self.ack(&request, || format!("delete qdisc clsact of {name}"))
    }

    pub(super) fn add(
        &mut self,
        request: &tc::OpNewqdiscDo<'_>,
        kind: &str,
        ifindex: u32,
        parent: u32,
    ) -> Result<()> {
        let what = format!(
            "add qdisc {kind} at {} of interface {ifindex}",
            show_handle(parent)
        );
        match self.ack(request, || what.clone()) {
            Ok(()) => Ok(()),
            Err(err) if err.errno() == libc::ENODEV => {
                Err(NetlinkError::NoInterface(format!("with index {ifindex}")))
            }
            // At the root no parent can be missing.
            Err(err) => Err(err.kind_missing(parent == ROOT)),
        }
    }
}

fn encode_fq<P: Pusher>(attrs: PushAttrs<P>, options: &FqOptions) {
    // Before Linux 6.7 there is one band and the kernel ignores the map.
    let one_band = TcPrioQopt {
        bands: FQ_BANDS,
        priomap: [0; TC_PRIO_MAX + 1],
    };
    let mut fq = attrs
        .nested_options_fq()
        .push_plimit(options.limit)
        .push_flow_plimit(options.flow_limit)
        .push_timer_slack(options.timer_slack_ns)
        .push_horizon(options.horizon_us)
        .push_horizon_drop(u8::from(options.horizon_drop))
        .push_priomap(one_band);
    if let Some(mask) = options.orphan_mask {
        fq = fq.push_orphan_mask(mask);
    }
    if let Some(log) = options.buckets_log {
        fq = fq.push_buckets_log(log);
    }
    if let Some(pacing) = options.pacing {
        fq = fq.push_rate_enable(u32::from(pacing));
    }
    if let Some(us) = options.ce_threshold_us {
        fq = fq.push_ce_threshold(us);
    }
    fq.end_nested().end_nested();
}

pub(super) fn new_qdisc(ifindex: u32, parent: u32, handle: u32) -> tc::OpNewqdiscDo<'static> {
    tc::Request::new()
        .set_create()
        .set_excl()
        .op_newqdisc_do(&tcmsg(ifindex, parent, handle))
}

pub(super) fn clsact_request<'a>(request: tc::Request<'a>, ifindex: u32) -> tc::OpNewqdiscDo<'a> {
    request
        .set_create()
        .set_excl()
        .op_newqdisc_do(&tcmsg(ifindex, CLSACT, CLSACT_HANDLE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_bindings::traits::NetlinkRequest;
    use netlink_bindings::utils::IterableChunks;

    #[test]
    fn handles_read_as_tc_writes_them() {
        assert_eq!(show_handle(ROOT), "root");
        assert_eq!(show_handle(0x8001_0000), "8001:");
        assert_eq!(show_handle(0x1_0010), "1:10");
        assert_eq!(classid(0x1_0000, 3), 0x1_0003);
    }

    /// The kernel accepts a priomap of exactly 20 bytes with bands == 3.
    #[test]
    fn the_priomap_is_a_tc_prio_qopt() {
        let map = TcPrioQopt {
            bands: FQ_BANDS,
            priomap: [0; TC_PRIO_MAX + 1],
        };
        let mut expected = vec![0; 20];
        expected[..4].copy_from_slice(&3i32.to_ne_bytes());
        assert_eq!(map.as_slice(), expected);
    }

    #[test]
    fn a_qdisc_request_names_its_kind_first() {
        let mut request = new_qdisc(7, ROOT, 0x1_0000);
        request.encode().push_kind(c"mq");
        let payload = request.payload();
        let (header, attrs) = tc::OpNewqdiscDo::decode_request(payload);
        assert_eq!(
            (header.ifindex, header.parent, header.handle),
            (7, ROOT, 0x1_0000)
        );
        let kinds: Vec<u16> = IterableChunks::new(attrs.get_buf())
            .map(|(h, _)| h.r#type)
            .collect();
        assert_eq!(kinds, [libc::TCA_KIND]);
    }
}
