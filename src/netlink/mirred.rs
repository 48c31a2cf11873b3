// SPDX-License-Identifier: MIT OR Apache-2.0
//! A filter that sends every packet to another device: engine fq needs it on kernels whose ifb
//! drops packets that a BPF program redirects.

use netlink_bindings::tc;

use super::filter::filter_msg;
use super::{Hook, Netlink, Result};

const TC_ACT_STOLEN: i32 = 4;
const TCA_EGRESS_REDIR: i32 = 1;
const ETH_P_ALL: u16 = 3;

/// struct tc_mirred: index, capab, action, refcnt, bindcnt, eaction, ifindex.
fn parms(ifindex: u32) -> Vec<u8> {
    let words = [
        0,
        0,
        TC_ACT_STOLEN,
        0,
        0,
        TCA_EGRESS_REDIR,
        ifindex.cast_signed(),
    ];
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Netlink {
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
        request
            .encode()
            .nested_options_matchall()
            .array_act()
            // The kernel counts actions from 1, the crate from 0.
            .entry_nested()
            .end_nested()
            .entry_nested()
            .nested_options_mirred()
            .push_parms(&parms(to))
            .end_nested()
            .end_nested()
            .end_array()
            .end_nested()
            .end_nested();
        let name = self.name_of(ifindex);
        self.ack(&request, || {
            format!("redirect the {} of {name} to interface {to}", hook.name())
        })
        .map_err(|e| e.kind_missing(true))
    }
}
