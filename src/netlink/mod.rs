// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads, changes and restores the configuration of an interface.
//!
//! Everything acts in the network namespace of the calling thread and uses netlink, except
//! `/proc/sys/net` for settings that netlink does not have. A sysfs that others mounted is never read,
//! because it shows the namespace that mounted it.

#![deny(missing_docs)]

mod address;
mod attr;
mod drops;
mod error;
mod filter;
mod link;
mod link_change;
mod mirred;
mod namespaces;
mod nat;
mod neighbour;
mod netns;
mod notices;
mod offload;
mod qdisc;
mod rebuild;
mod rehearse;
mod restorable;
mod route;
pub(crate) mod setting;
mod snapshot;
mod socket;
mod tcx;
mod vxlan;
mod wire;

use std::sync::Arc;

use netlink_bindings::traits::{NetlinkRequest, Protocol};
use netlink_socket2::NetlinkSocket;

use socket::Socket;

pub use drops::Dropped;
pub use error::{NetlinkError, OsFailure, Result};
pub use filter::{BpfFilter, Filter, FilterBpf, FilterOrder, Hook};
pub use link::{Gso, Link, Peer};
pub use link_change::IfbOptions;
pub use namespaces::Namespace;
pub use nat::{ForwardDrop, Masquerade, Translated};
pub use netns::{NetnsId, enter, identity, identity_of, inside};
pub use notices::{Changes, Notices};
pub use offload::{Offloads, RECEIVE_MERGING, is_segmentation};
pub use qdisc::{FqOptions, IngressQdisc, OWN_KIND, Qdisc, Qdiscs, ROOT, classid, show_handle};
pub use route::RouteEntry;
pub use setting::steers_flows;
pub use snapshot::{RootSnapshot, Standing};
pub use tcx::{TcxProgram, attach_tcx, detach_tcx, replace_tcx, tcx_is_known, tcx_programs};
pub use vxlan::{OVERHEAD_IPV4, OVERHEAD_IPV6, Vxlan};
pub use wire::WireEnd;

/// Blocking netlink sockets of one network namespace. Each request fails with the answer of the
/// kernel.
pub struct Netlink {
    route: Socket,
    /// For other protocols, whose answers are short. It makes its sockets with the first request.
    others: NetlinkSocket,
    /// List from which [`Self::qdiscs`] answers, if it need not be the present state.
    qdiscs: Option<Arc<Qdiscs>>,
}

impl Netlink {
    /// Opens netlink in the network namespace of the calling thread; to use a different one, call
    /// [`enter`] first.
    pub fn open() -> Result<Self> {
        Ok(Self {
            route: Socket::open().map_err(|e| NetlinkError::io("open netlink", &e))?,
            others: NetlinkSocket::new(),
            qdiscs: None,
        })
    }

    /// Sends `request`, passes every reply to `each` and waits for the kernel's acknowledgement.
    fn exchange<R: NetlinkRequest>(
        &mut self,
        request: &R,
        attempted: impl Fn() -> String,
        mut each: impl FnMut(R::ReplyType<'_>),
    ) -> Result<()> {
        if let Protocol::Raw {
            protonum,
            request_type,
        } = request.protocol()
            && i32::from(protonum) == libc::NETLINK_ROUTE
        {
            let done = self.route.request(request, request_type, each);
            return done.map_err(|e| NetlinkError::refused(attempted(), e));
        }
        let mut reply = match self.others.request(request) {
            Ok(reply) => reply,
            Err(err) => return Err(NetlinkError::io(attempted(), &err)),
        };
        while let Some(answer) = reply.recv() {
            match answer {
                Ok(parts) => each(parts),
                Err(err) => return Err(NetlinkError::reply(attempted(), &err)),
            }
        }
        Ok(())
    }

    fn ack<R: NetlinkRequest>(
        &mut self,
        request: &R,
        attempted: impl Fn() -> String,
    ) -> Result<()> {
        self.exchange(request, attempted, |_| ())
    }

    /// Returns the name of an interface for messages, or its index if it no longer exists.
    fn name_of(&mut self, ifindex: u32) -> String {
        match self.link_by_index(ifindex) {
            Ok(link) => link.name,
            Err(_) => format!("interface {ifindex}"),
        }
    }
}

/// Converts to the kernel's type. An interface index never exceeds i32::MAX, and 0 matches no
/// interface.
fn signed(ifindex: u32) -> i32 {
    i32::try_from(ifindex).unwrap_or(0)
}
