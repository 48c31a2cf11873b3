// SPDX-License-Identifier: MIT OR Apache-2.0
//! CoDel.

use schemars::JsonSchema;
use serde::Serialize;

use crate::profile::kinds::SomeTime;
use crate::text::table;

table! {
    /// CoDel as in RFC 8289.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(inline)]
    pub struct CoDel {
        /// Sojourn time to stay below, ns.
        target_ns: u64 = 5_000_000, "target" as SomeTime;
        /// Time it may be above that, ns.
        interval_ns: u64 = 100_000_000, "interval" as SomeTime;
    }
    beside {
        ecn: bool = false;
    }
    struct CoDelDraft {}
}
