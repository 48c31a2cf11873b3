// SPDX-License-Identifier: MIT OR Apache-2.0
//! Filters of clsact.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_bindings::tc::{self, IterableAttrs, OptionsMsg, PushAttrs, Tcmsg};
use netlink_bindings::traits::Pusher;

use super::qdisc::{self, tcmsg};
use super::{IngressQdisc, Netlink, NetlinkError, OsFailure, Result, attr, mirred};

const CLSACT_INGRESS: u32 = 0xffff_fff2;
const CLSACT_EGRESS: u32 = 0xffff_fff3;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
const ETH_P_ALL: u16 = 3;

/// The direction of packets that a filter of clsact sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hook {
    /// Packets that the interface sends.
    Egress,
    /// Packets that the interface receives.
    Ingress,
}

impl Hook {
    fn parent(self) -> u32 {
        match self {
            Self::Egress => CLSACT_EGRESS,
            Self::Ingress => CLSACT_INGRESS,
        }
    }

    /// Returns the name as tc prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Egress => "egress",
            Self::Ingress => "ingress",
        }
    }
}

/// The program of a bpf filter, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterBpf {
    /// Id of the program.
    pub program_id: u32,
    /// Name of the filter.
    pub name: String,
    /// Hash of the instructions.
    pub tag: Vec<u8>,
    /// Whether the return value of the program is the action.
    pub direct_action: bool,
}

/// A filter, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Kind, such as "bpf" or "u32".
    pub kind: String,
    /// 1 runs first.
    pub pref: u16,
    /// Number of the filter among those of the same `pref`.
    pub handle: u32,
    /// Number of the chain.
    pub chain: u32,
    /// ETH_P_*, 3 is all.
    pub protocol: u16,
    /// `None` for other kinds, and for classic BPF.
    pub bpf: Option<FilterBpf>,
    /// The interface to which all packets are redirected.
    pub redirects_to: Option<u32>,
}

/// The position of a new filter among the existing ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterOrder {
    /// Sees every packet before any other filter.
    First,
    /// Sees what the others let through.
    Last,
}

/// A direct-action bpf filter for every protocol.
#[derive(Debug, Clone, Copy)]
pub struct BpfFilter<'a> {
    /// Egress or ingress of the device.
    pub hook: Hook,
    /// Priority; 1 runs first.
    pub pref: u16,
    /// Not 0. A filter with the same hook, pref and handle is replaced.
    pub handle: u32,
    /// The loaded program.
    pub program: BorrowedFd<'a>,
    /// Name of the filter.
    pub name: &'a str,
    /// Value that the program reads as tc_classid; 0: none.
    pub classid: u32,
    /// Packets only pass chain 0; a filter in a different chain keeps its program loaded.
    pub chain: u32,
}

fn parse(header: &Tcmsg, attrs: &IterableAttrs<'_>) -> Filter {
    let info = header.info;
    let bpf = match attrs.get_options() {
        Ok(OptionsMsg::Bpf(options)) => options.get_id().ok().map(|program_id| FilterBpf {
            program_id,
            name: options
                .get_name()
                .map(|n| n.to_string_lossy().into())
                .unwrap_or_default(),
            tag: options.get_tag().map(<[u8]>::to_vec).unwrap_or_default(),
            direct_action: options.get_flags().unwrap_or(0) & TCA_BPF_FLAG_ACT_DIRECT != 0,
        }),
        _ => None,
    };
    let kind = qdisc::kind(attrs);
    let options = attr::find(attrs.get_buf(), libc::TCA_OPTIONS).filter(|_| kind == "matchall");
    Filter {
        redirects_to: options.and_then(mirred::target),
        kind,
        pref: (info >> 16) as u16,
        handle: header.handle,
        chain: attrs.get_chain().unwrap_or(0),
        protocol: u16::from_be(info as u16),
        bpf,
    }
}

pub(super) fn filter_msg(ifindex: u32, hook: Hook, pref: u16, handle: u32, protocol: u16) -> Tcmsg {
    Tcmsg {
        info: (u32::from(pref) << 16) | u32::from(protocol.to_be()),
        ..tcmsg(ifindex, hook.parent(), handle)
    }
}

fn encode<P: Pusher>(attrs: PushAttrs<P>, filter: &BpfFilter<'_>) {
    let attrs = match filter.chain {
        0 => attrs,
        chain => attrs.push_chain(chain),
    };
    let options = attrs.nested_options_bpf();
    let options = match filter.classid {
        0 => options,
        classid => options.push_classid(classid),
    };
    options
        .push_fd(filter.program.as_raw_fd().cast_unsigned())
        .push_name_bytes(filter.name.as_bytes())
        .push_flags(TCA_BPF_FLAG_ACT_DIRECT)
        .end_nested()
        .end_nested();
}

impl BpfFilter<'_> {
    fn attempted(&self, ifname: &str) -> String {
        let (hook, name) = (self.hook.name(), self.name);
        format!(
            "attach {name} to the {hook} of {ifname} at pref {}",
            self.pref
        )
    }

    fn check(&self, ifname: &str) -> Result<()> {
        if self.pref != 0 && self.handle != 0 && !self.name.contains('\0') {
            return Ok(());
        }
        Err(NetlinkError::Os(OsFailure {
            attempted: self.attempted(ifname),
            errno: libc::EINVAL,
            message: "pref and handle must not be 0, nor the name contain NUL".into(),
        }))
    }
}

impl Netlink {
    /// Returns the filters at one hook of clsact in their order of execution; empty without clsact.
    pub fn filters(&mut self, ifindex: u32, hook: Hook) -> Result<Vec<Filter>> {
        match (self.ingress_qdisc(ifindex)?, hook) {
            (IngressQdisc::None, _) | (IngressQdisc::Ingress, Hook::Egress) => {
                return Ok(Vec::new());
            }
            (IngressQdisc::Ingress | IngressQdisc::Clsact, _) => {}
        }
        let request = tc::Request::new().op_gettfilter_dump(&tcmsg(ifindex, hook.parent(), 0));
        let what = || format!("list the {} filters of interface {ifindex}", hook.name());
        let mut found = Vec::new();
        self.exchange(&request, what, |(header, attrs)| {
            // Each priority starts with an entry for the priority itself, without a handle.
            if header.handle != 0 {
                found.push(parse(&header, &attrs));
            }
        })?;
        Ok(found)
    }

    /// Returns the pref for a new bpf filter at this position; `None` if there is no free one. At a
    /// pref shared with other bpf filters the newest runs first.
    pub fn free_pref(
        &mut self,
        ifindex: u32,
        hook: Hook,
        place: FilterOrder,
    ) -> Result<Option<u16>> {
        Ok(pref_for(&self.filters(ifindex, hook)?, place))
    }

    /// Attaches or replaces a filter; clsact must exist. A replacement is atomic: every packet sees
    /// the old or the new program.
    pub fn replace_bpf_filter(&mut self, ifindex: u32, filter: &BpfFilter<'_>) -> Result<()> {
        let name = self.name_of(ifindex);
        filter.check(&name)?;
        let header = filter_msg(ifindex, filter.hook, filter.pref, filter.handle, ETH_P_ALL);
        let mut request = tc::Request::new().set_change().op_newtfilter_do(&header);
        encode(request.encode(), filter);
        self.ack(&request, || filter.attempted(&name))
    }

    /// Attaches a filter and creates clsact if necessary, both in one system call: a process that
    /// is killed cannot leave a clsact without a filter, whose owner would be unknown. Returns true
    /// if clsact was created.
    pub fn attach_bpf_filter(&mut self, ifindex: u32, filter: &BpfFilter<'_>) -> Result<bool> {
        let name = self.name_of(ifindex);
        filter.check(&name)?;
        match self.ingress_qdisc(ifindex)? {
            IngressQdisc::Clsact => {
                self.replace_bpf_filter(ifindex, filter)?;
                return Ok(false);
            }
            IngressQdisc::Ingress => {
                return Err(NetlinkError::Exists(OsFailure {
                    attempted: filter.attempted(&name),
                    errno: libc::EEXIST,
                    message: "the interface has a qdisc ingress, which excludes clsact".into(),
                }));
            }
            IngressQdisc::None => {}
        }
        let mut chain = tc::Chained::new(self.route.reserve(2));
        qdisc::clsact_request(chain.request(), ifindex)
            .encode()
            .push_kind(c"clsact");
        let header = filter_msg(ifindex, filter.hook, filter.pref, filter.handle, ETH_P_ALL);
        let mut second = chain
            .request()
            .set_create()
            .set_excl()
            .op_newtfilter_do(&header);
        encode(second.encode(), filter);
        drop(second);
        let chain = chain.finalize();
        // In order, and both: the kernel continues after an error.
        let refused = self
            .route
            .chain(&chain)
            .map_err(|e| NetlinkError::io(filter.attempted(&name), &e))?;
        let mut failed = (refused.into_iter())
            .map(|e| NetlinkError::refused(filter.attempted(&name), e).kind_missing(true));
        match failed.next() {
            None => Ok(true),
            // Another process has created clsact in between: it owns it.
            Some(NetlinkError::Exists(_)) => {
                self.replace_bpf_filter(ifindex, filter)?;
                Ok(false)
            }
            Some(err) => {
                if self.ingress_qdisc(ifindex)? == IngressQdisc::Clsact {
                    self.delete_clsact(ifindex)?;
                }
                Err(err)
            }
        }
    }

    /// Adds a matchall filter with the action mirred egress redirect.
    ///
    /// # Errors
    /// The kernel returns an error; `Unavailable` without cls_matchall or act_mirred.
    pub fn add_redirect(
        &mut self,
        ifindex: u32,
        hook: Hook,
        pref: u16,
        handle: u32,
        to: u32,
    ) -> Result<()> {
        let header = filter_msg(ifindex, hook, pref, handle, ETH_P_ALL);
        let mut request = tc::Request::new()
            .set_create()
            .set_excl()
            .op_newtfilter_do(&header);
        mirred::encode(request.encode(), to);
        let name = self.name_of(ifindex);
        self.ack(&request, || {
            format!("redirect the {} of {name} to interface {to}", hook.name())
        })
        .map_err(|e| e.kind_missing(true))
    }

    /// Deletes one filter of clsact of a kind.
    ///
    /// # Errors
    /// The kernel returns an error, for example if there is no such filter.
    pub fn delete_filter(
        &mut self,
        ifindex: u32,
        hook: Hook,
        kind: &CStr,
        pref: u16,
        handle: u32,
    ) -> Result<()> {
        let header = filter_msg(ifindex, hook, pref, handle, ETH_P_ALL);
        let mut request = tc::Request::new().op_deltfilter_do(&header);
        request.encode().push_kind(kind);
        let name = self.name_of(ifindex);
        let hook = hook.name();
        self.ack(&request, || {
            format!("delete filter {handle:#x} at pref {pref}, {hook} of {name}")
        })
    }
}

fn pref_for(filters: &[Filter], place: FilterOrder) -> Option<u16> {
    let prefs = || filters.iter().filter(|f| f.chain == 0).map(|f| f.pref);
    match place {
        FilterOrder::First => match prefs().min() {
            None => Some(1),
            Some(lowest) if lowest > 1 => Some(1),
            // cls_bpf inserts a new filter at the head of its pref.
            Some(_) => {
                let ours = |f: &Filter| f.kind == "bpf" && f.protocol == ETH_P_ALL;
                filters
                    .iter()
                    .filter(|f| f.chain == 0 && f.pref == 1)
                    .all(ours)
                    .then_some(1)
            }
        },
        FilterOrder::Last => prefs().max().unwrap_or(0).checked_add(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pref: u16, kind: &str, protocol: u16, chain: u32) -> Filter {
        Filter {
            kind: kind.into(),
            pref,
            handle: 1,
            chain,
            protocol,
            bpf: None,
            redirects_to: None,
        }
    }

    #[test]
    fn places() {
        assert_eq!(pref_for(&[], FilterOrder::First), Some(1));
        assert_eq!(pref_for(&[], FilterOrder::Last), Some(1));
        let free = [at(5, "u32", 0x0800, 0), at(9, "bpf", 3, 0)];
        assert_eq!(pref_for(&free, FilterOrder::First), Some(1));
        assert_eq!(pref_for(&free, FilterOrder::Last), Some(10));
        assert_eq!(pref_for(&[at(1, "bpf", 3, 0)], FilterOrder::First), Some(1));
        assert_eq!(
            pref_for(&[at(1, "bpf", 0x0800, 0)], FilterOrder::First),
            None
        );
        assert_eq!(pref_for(&[at(1, "flower", 3, 0)], FilterOrder::First), None);
        assert_eq!(
            pref_for(&[at(u16::MAX, "bpf", 3, 0)], FilterOrder::Last),
            None
        );
        assert_eq!(
            pref_for(&[at(1, "flower", 3, 7)], FilterOrder::First),
            Some(1)
        );
    }
}
