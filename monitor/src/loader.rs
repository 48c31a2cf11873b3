// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loader of BPF objects.

use std::thread;

use aya::{Btf, EbpfLoader};
use rustix::process::chroot;
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Returns a loader that relocates by these types of the kernel, or not at all.
///
/// aya 0.14 builds all types of the kernel in `EbpfLoader::new()`, before it learns whether any are
/// needed: 0.1 s of a guest's 0.5 s of an attach, for each object. (0.15 does not, but requires Rust
/// 1.98.) So it is called where it finds no such file: in a thread with a separate root folder. Where that is
/// not permitted, it takes the time.
pub fn loader(types: Option<&Btf>) -> EbpfLoader<'_> {
    let without_types = thread::Builder::new().name("loader".into()).spawn(|| {
        // SAFETY: only CLONE_FS; nothing in this thread relies on a path.
        let own = unsafe { unshare_unsafe(UnshareFlags::FS) };
        let _ = own.and_then(|()| chroot("/proc/self/fdinfo"));
        EbpfLoader::new()
    });
    let mut loader = match without_types.map(|thread| thread.join()) {
        Ok(Ok(loader)) => loader,
        _ => EbpfLoader::new(),
    };
    loader.btf(types);
    loader
}
