// SPDX-License-Identifier: MIT OR Apache-2.0
//! In place of the loader, in a build without the feature `qdisc`: the static binary, for which there
//! is no libelf.

use std::ffi::CStr;

/// Why emud's qdisc could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum QdiscError {
    /// It never can.
    #[error("this emud was built without engine qdisc")]
    Absent,
}

/// emud's qdisc, of which there is none.
#[derive(Debug)]
pub enum Registered {}

impl Registered {
    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn new(_packets: u32, _directions: [bool; 2]) -> Result<Self, QdiscError> {
        Err(QdiscError::Absent)
    }

    /// Returns the name of the qdisc.
    pub fn kind(&self) -> &CStr {
        match *self {}
    }
}
