// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `emud_saved` map, whose single value of 1 MiB is too long for a stack.
//!
//! aya passes a value as a Rust value, which is on the stack in between; here it stays on the heap.

use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd};

use aya::maps::{Map, MapData};

use super::syscall::bpf;
use super::{DatapathError, at, of_size};
use crate::abi;

const NAME: &str = "emud_saved";
/// enum bpf_cmd (include/uapi/linux/bpf.h).
const BPF_MAP_LOOKUP_ELEM: libc::c_int = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;

const LEN: usize = size_of::<abi::emud_restore>();
/// Offset of the bytes, after their number.
const BYTES: usize = offset_of!(abi::emud_restore, bytes);

/// The part of union bpf_attr that these two calls use.
#[repr(C)]
struct ElemAttr {
    map_fd: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// The record that attach saves for show, set and detach.
pub(crate) struct Record {
    map: MapData,
}

impl Record {
    /// Wraps the map.
    pub(crate) fn new(map: Map) -> Result<Self, DatapathError> {
        let Map::Array(map) = map else {
            return Err(DatapathError::Missing(NAME));
        };
        of_size(NAME, &map, size_of::<u32>(), LEN)?;
        Ok(Self { map })
    }

    /// Returns the bytes of the last write.
    pub(crate) fn read(&self) -> Result<Vec<u8>, DatapathError> {
        let value = self.call(BPF_MAP_LOOKUP_ELEM, "bpf_map_lookup_elem", Vec::new())?;
        let (len, bytes) = value.split_at(BYTES);
        let len = len.first_chunk().map_or(0, |len| u32::from_ne_bytes(*len));
        let len = (len as usize).min(bytes.len());
        Ok(bytes[..len].to_vec())
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// There are too many bytes, or the map cannot be written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), DatapathError> {
        if bytes.len() > LEN - BYTES {
            return Err(DatapathError::TooLong(bytes.len()));
        }
        let mut value = Vec::with_capacity(LEN);
        value.extend_from_slice(&(bytes.len() as u32).to_ne_bytes());
        value.extend_from_slice(bytes);
        self.call(BPF_MAP_UPDATE_ELEM, "bpf_map_update_elem", value)?;
        Ok(())
    }

    /// Returns `value`, extended to the map's length, as the kernel changed it.
    fn call(
        &self,
        command: libc::c_int,
        name: &'static str,
        mut value: Vec<u8>,
    ) -> Result<Vec<u8>, DatapathError> {
        value.resize(LEN, 0);
        let mut key = 0u32;
        let mut attr = ElemAttr {
            map_fd: self.map.fd().as_fd().as_raw_fd().cast_unsigned(),
            pad: 0,
            key: (&raw mut key).addr() as u64,
            value: value.as_mut_ptr().addr() as u64,
            flags: 0,
        };
        // SAFETY: the map's key is a u32 and its value has LEN bytes (checked by `new`), which fit
        // into `key` and `value`; both and `attr` outlive the call.
        unsafe { bpf(command, name, &mut attr) }.map_err(|e| at(NAME)(e.into()))?;
        Ok(value)
    }
}
