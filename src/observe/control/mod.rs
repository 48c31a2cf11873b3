// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control socket: programs report their own contention, root resets the limits.

mod place;
mod protocol;
mod server;

pub use place::{FOLDER, Place, place, sockets};
pub use server::serve;
