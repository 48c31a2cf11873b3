// SPDX-License-Identifier: MIT OR Apache-2.0
//! The object file of emud's qdisc in the kernel. aya does not load programs of this kind; libbpf
//! does.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use aya::maps::MapData;
use libbpf_sys as bpf;

use crate::abi;
use crate::abi::QDISC_OBJECTS;
use crate::host::random;
use crate::netlink::OWN_KIND;

/// Names that are tried before the kernel's answer that one exists counts as an error.
const NAMES: u32 = 8;

/// Offset of the name in struct Qdisc_ops of bpf/kernel.h: after five pointers.
const ID_AT: usize = 5 * size_of::<usize>();

/// Maps of the qdisc and the classifier (bpf/shared.h).
const SHARED: [&CStr; 4] = [
    c"emud_classes",
    c"emud_control",
    c"emud_holders",
    c"emud_plans",
];

/// Why emud's qdisc could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum QdiscError {
    /// The kernel or libbpf returned an error.
    #[error("cannot load emud's qdisc: {step}: {source}")]
    Load {
        /// The step that failed.
        step: &'static str,
        /// Error of the kernel or of libbpf.
        source: io::Error,
    },
    /// The object file lacks a map of this name.
    #[error("cannot load emud's qdisc: its object has no {0}")]
    Lacks(&'static str),
}

/// emud's qdisc, which the kernel lists by its name as long as this value lives. Qdiscs that were
/// added by then keep their programs and maps.
#[derive(Debug)]
pub struct Registered {
    // Dropped in this order.
    _link: Link,
    object: Object,
    kind: CString,
}

impl Registered {
    /// Loads the object with room for `packets` that wait in each of `directions`, some of them in one of `classes`,
    /// and registers it.
    ///
    /// # Errors
    /// The kernel returns an error; nothing remains in it.
    pub fn new(packets: u32, classes: u32, directions: [bool; 2]) -> Result<Self, QdiscError> {
        let mut attempt = 1;
        loop {
            match Self::with_kind(random_kind(), packets, classes, directions) {
                Err(QdiscError::Load { source, .. })
                    if source.raw_os_error() == Some(libc::EEXIST) && attempt < NAMES =>
                {
                    attempt += 1;
                }
                done => return done,
            }
        }
    }

    /// Returns the name of the qdisc, its kind for the kernel.
    pub fn kind(&self) -> &CStr {
        &self.kind
    }

    /// Returns the maps that it shares with the classifier if it has classes, by name.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn shared(&self) -> Result<Vec<(String, MapData)>, QdiscError> {
        let one = |name: &'static CStr| {
            let map = self.object.map(name)?;
            // SAFETY: a map of the object, which lives and is loaded.
            let fd = unsafe { BorrowedFd::borrow_raw(bpf::bpf_map__fd(map.as_ptr())) };
            let failed = |source| QdiscError::Load {
                step: "share its map",
                source,
            };
            let own = fd.try_clone_to_owned().map_err(failed)?;
            let data = MapData::from_fd(own).map_err(|e| failed(io::Error::other(e)))?;
            Ok((name.to_string_lossy().into_owned(), data))
        };
        SHARED.into_iter().map(one).collect()
    }

    fn with_kind(
        kind: CString,
        packets: u32,
        classes: u32,
        [up, down]: [bool; 2],
    ) -> Result<Self, QdiscError> {
        let object = Object::open(classes > 0)?;
        let room = abi::emud_qdisc_room {
            packets,
            down_from: if up { packets } else { 0 },
        };
        let all = (u32::from(up) + u32::from(down)) * packets;
        object.resize(c"emud_waiting", all)?;
        if classes > 0 {
            object.resize(c"emud_customers", all)?;
            object.resize(c"emud_classes", classes)?;
            object.resize(c"emud_tokens", abi::EMUD_TOKENS)?;
        }
        let bytes = [room.packets, room.down_from]
            .map(u32::to_ne_bytes)
            .concat();
        object.write(c".rodata.room", 0, &bytes)?;
        object.write(c"emud_qdisc", ID_AT, kind.as_bytes_with_nul())?;
        // SAFETY: an object that lives.
        check("load", unsafe { bpf::bpf_object__load(object.0.as_ptr()) })?;
        let operations = object.map(c"emud_qdisc")?;
        // SAFETY: a map of `object`, which lives.
        let link = unsafe { bpf::bpf_map__attach_struct_ops(operations.as_ptr()) };
        let link = NonNull::new(link).ok_or_else(|| last("register"))?;
        Ok(Self {
            _link: Link(link),
            object,
            kind,
        })
    }
}

/// Returns `emud` and ten random digits: names are those of the host, not of a network namespace.
fn random_kind() -> CString {
    // Without random numbers, a name that exists is an error below.
    let bytes: [u8; 5] = random().unwrap_or_default();
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    CString::new(format!("{OWN_KIND}{digits}")).unwrap_or_default()
}

#[derive(Debug)]
struct Object(NonNull<bpf::bpf_object>);

impl Object {
    /// Opens the object with or without classes.
    fn open(classes: bool) -> Result<Self, QdiscError> {
        let file = QDISC_OBJECTS[usize::from(classes)];
        // Its messages would go to standard error.
        // SAFETY: no callback.
        unsafe { bpf::libbpf_set_print(None) };
        let options = bpf::bpf_object_open_opts {
            sz: size_of::<bpf::bpf_object_open_opts>() as bpf::size_t,
            object_name: c"emud_qdisc".as_ptr(),
            ..Default::default()
        };
        // SAFETY: the bytes and the options outlive the call; libbpf copies what it keeps.
        let object = unsafe {
            bpf::bpf_object__open_mem(
                file.as_ptr().cast(),
                file.len() as bpf::size_t,
                &raw const options,
            )
        };
        NonNull::new(object).map(Self).ok_or_else(|| last("open"))
    }

    fn map(&self, name: &'static CStr) -> Result<NonNull<bpf::bpf_map>, QdiscError> {
        // SAFETY: an object that lives, a string that ends.
        let map = unsafe { bpf::bpf_object__find_map_by_name(self.0.as_ptr(), name.as_ptr()) };
        let name = name.to_str().unwrap_or_default();
        NonNull::new(map).ok_or(QdiscError::Lacks(name))
    }

    /// Sets the number of a map's values, before it is loaded.
    fn resize(&self, name: &'static CStr, values: u32) -> Result<(), QdiscError> {
        let map = self.map(name)?;
        // SAFETY: a map of an object that lives.
        let done = unsafe { bpf::bpf_map__set_max_entries(map.as_ptr(), values) };
        check("size of its map", done)
    }

    /// Writes into what a map holds when it is loaded.
    fn write(&self, name: &'static CStr, at: usize, bytes: &[u8]) -> Result<(), QdiscError> {
        let map = self.map(name)?;
        let mut len: bpf::size_t = 0;
        // SAFETY: a map of an object that lives.
        let value = unsafe { bpf::bpf_map__initial_value(map.as_ptr(), &raw mut len) };
        let value = NonNull::new(value.cast::<u8>());
        match value.filter(|_| at + bytes.len() <= len as usize) {
            Some(value) => {
                // SAFETY: `value` has `len` bytes, which `at + bytes.len()` does not exceed, and
                // belongs to the object until it is loaded.
                unsafe {
                    let to = value.as_ptr().add(at);
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                }
                Ok(())
            }
            None => Err(QdiscError::Lacks(name.to_str().unwrap_or_default())),
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once.
        unsafe { bpf::bpf_object__close(self.0.as_ptr()) };
    }
}

#[derive(Debug)]
struct Link(NonNull<bpf::bpf_link>);

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once. Closing its descriptor cannot fail in a way that
        // matters here.
        let _ = unsafe { bpf::bpf_link__destroy(self.0.as_ptr()) };
    }
}

/// Converts a result of libbpf, a negative errno if it failed.
fn check(step: &'static str, result: i32) -> Result<(), QdiscError> {
    match result {
        0.. => Ok(()),
        errno => Err(QdiscError::Load {
            step,
            source: io::Error::from_raw_os_error(-errno),
        }),
    }
}

fn last(step: &'static str) -> QdiscError {
    QdiscError::Load {
        step,
        source: io::Error::last_os_error(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_and_differs() {
        let [one, other] = [random_kind(), random_kind()];
        assert!(one.as_bytes_with_nul().len() <= abi::EMUD_QDISC_ID_LEN as usize);
        assert_ne!(one, other);
    }
}
