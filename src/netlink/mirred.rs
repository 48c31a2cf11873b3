// SPDX-License-Identifier: MIT OR Apache-2.0
//! A filter that sends every packet to another device: engine fq needs it on kernels whose ifb
//! drops packets that a BPF program redirects.

use netlink_bindings::tc::PushAttrs;
use netlink_bindings::traits::Pusher;

use super::attr;

const TC_ACT_STOLEN: i32 = 4;
const TCA_EGRESS_REDIR: i32 = 1;
const TCA_MATCHALL_ACT: u16 = 2;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_MIRRED_PARMS: u16 = 2;

/// Returns a struct tc_mirred: index, capab, action, refcnt, bindcnt, eaction, ifindex.
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

pub(super) fn encode<P: Pusher>(attrs: PushAttrs<P>, to: u32) {
    attrs
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
}

/// Returns the interface to which a matchall filter with these options redirects, if that is its first
/// action.
pub(super) fn target(options: &[u8]) -> Option<u32> {
    let first = attr::find(attr::find(options, TCA_MATCHALL_ACT)?, 1)?;
    let parms = attr::find(attr::find(first, TCA_ACT_OPTIONS)?, TCA_MIRRED_PARMS)?;
    let redirects = attr::find(first, TCA_ACT_KIND)? == b"mirred\0"
        && attr::u32_at(parms, 20)? == TCA_EGRESS_REDIR.cast_unsigned();
    redirects.then(|| attr::u32_at(parms, 24)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::Hook;
    use super::super::filter::filter_msg;
    use super::*;
    use netlink_bindings::tc;
    use netlink_bindings::traits::NetlinkRequest;

    #[test]
    fn the_target_of_a_redirect_is_read_back() {
        let header = filter_msg(7, Hook::Ingress, 2, 1, 3);
        let mut request = tc::Request::new().op_newtfilter_do(&header);
        encode(request.encode(), 9);
        let (_, attrs) = tc::OpNewtfilterDo::decode_request(request.payload());
        let options = attr::find(attrs.get_buf(), libc::TCA_OPTIONS).unwrap();
        assert_eq!(target(options), Some(9));
        // The same action that mirrors, of another kind, and no action.
        let at = |bytes: &[u8]| {
            let found = options.windows(bytes.len()).position(|here| here == bytes);
            found.unwrap()
        };
        let mut mirrors = options.to_vec();
        mirrors[at(&parms(9)) + 20] = 2;
        assert_eq!(target(&mirrors), None);
        let mut drops = options.to_vec();
        drops[at(b"mirred\0")..][..7].copy_from_slice(b"police\0");
        assert_eq!(target(&drops), None);
        assert_eq!(target(&[]), None);
    }
}
