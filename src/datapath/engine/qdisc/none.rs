// SPDX-License-Identifier: MIT OR Apache-2.0
//! In the place of the object file: emud without the feature `qdisc`, which has nothing to load one.

use std::ffi::CStr;

/// Why emud's qdisc could not be loaded.
#[derive(Debug, thiserror::Error)]
#[error("this emud was built without engine qdisc")]
pub struct QdiscError;

/// emud's qdisc in the kernel's list: never.
#[derive(Debug)]
pub enum Registered {}

impl Registered {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub const fn new(_packets: u32, _directions: [bool; 2]) -> Result<Self, QdiscError> {
        Err(QdiscError)
    }

    /// Returns nothing: there is no value.
    pub const fn kind(&self) -> &CStr {
        match *self {}
    }
}
