// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stands for the object file in emud without the feature `qdisc`, which has nothing to load one.

use std::ffi::CStr;

use aya::maps::MapData;

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
    pub const fn new(
        _packets: u32,
        _classes: u32,
        _directions: [bool; 2],
    ) -> Result<Self, QdiscError> {
        Err(QdiscError)
    }

    /// Returns nothing: there is no value.
    pub const fn kind(&self) -> &CStr {
        match *self {}
    }

    /// Returns nothing: there is no value.
    ///
    /// # Errors
    /// Never.
    pub const fn shared(&self) -> Result<Vec<(String, MapData)>, QdiscError> {
        match *self {}
    }
}
