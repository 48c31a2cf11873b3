// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw attributes, for messages that are copied without decoding.

use netlink_bindings::utils::{IterableChunks, align, find_attr, push_header_type};

/// Appends one attribute.
pub(super) fn push(buf: &mut Vec<u8>, kind: u16, nested: bool, payload: &[u8]) {
    // An attribute from the kernel has a 16-bit length and only changes by a few bytes here.
    let len = u16::try_from(payload.len()).unwrap_or(u16::MAX - 4);
    push_header_type(buf, kind, len, nested);
    buf.extend_from_slice(payload);
    align(buf);
}

/// Returns a copy of `attrs` in which `edit` may change a payload in place or, by returning false,
/// remove an attribute.
pub(super) fn rebuild(attrs: &[u8], mut edit: impl FnMut(u16, &mut Vec<u8>) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(attrs.len());
    for (header, payload) in IterableChunks::new(attrs) {
        let mut payload = payload.to_vec();
        if edit(header.r#type, &mut payload) {
            push(&mut out, header.r#type, header.is_nested, &payload);
        }
    }
    out
}

pub(super) fn find(attrs: &[u8], kind: u16) -> Option<&[u8]> {
    find_attr(attrs, kind)
}

pub(super) fn u32_at(buf: &[u8], offset: usize) -> Option<u32> {
    buf.get(offset..offset + 4)?
        .try_into()
        .ok()
        .map(u32::from_ne_bytes)
}

pub(super) fn u64_at(buf: &[u8], offset: usize) -> Option<u64> {
    buf.get(offset..offset + 8)?
        .try_into()
        .ok()
        .map(u64::from_ne_bytes)
}

/// Overwrites four bytes; bytes outside `buf` are skipped.
pub(super) fn put_u32(buf: &mut [u8], offset: usize, value: u32) {
    if let Some(slot) = buf.get_mut(offset..offset + 4) {
        slot.copy_from_slice(&value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebuild_keeps_order_padding_and_the_nested_bit() {
        let mut raw = Vec::new();
        push(&mut raw, 1, false, b"abc");
        push(&mut raw, 2, true, &[1, 2, 3, 4]);
        push(&mut raw, 3, false, &[]);
        assert_eq!(rebuild(&raw, |_, _| true), raw);
        let without = rebuild(&raw, |kind, _| kind != 2);
        assert_eq!(find(&without, 1), Some(&b"abc"[..]));
        assert_eq!(find(&without, 2), None);
        assert_eq!(find(&without, 3), Some(&[][..]));
    }
}
