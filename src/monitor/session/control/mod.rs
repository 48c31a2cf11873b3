// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control socket: programs report their contention, root resets the limits. Holders of
//! emulated links have a separate socket to which only root can connect, so that no other user can
//! use up its connections.

mod location;
mod protocol;
mod reporters;
mod server;

pub use location::{BoundSocket, is_apart, place, root_place, sockets};
pub use reporters::Allowed;
pub use server::serve;
