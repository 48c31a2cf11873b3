// SPDX-License-Identifier: GPL-2.0-only
//! The control socket: programs report their own contention, root resets the limits.

mod place;
mod protocol;
mod server;

pub use place::{FOLDER, Place, place, sockets};
pub use server::serve;
