// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an experiment's log to its figures, a comparison and a page, with generated logs. Needs
//! python3-jsonschema, Debian's validator.

mod compared;
mod fleet;
mod made_up;
mod page;
mod reading;
mod watched;
