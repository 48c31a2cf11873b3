// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network an experiment runs in: nodes, wires between them, and the outside.
//!
//! A node is a process (`node-run`) in network, mount and process namespaces of
//! its own, which have no name anywhere. It ends with emud, in whatever way emud
//! ends, and the kernel then takes everything of the node away: processes,
//! interfaces, emulated links. Of the host three things change, each put back
//! when the [`Lab`] goes: its end of a wire, a table of nf_tables, forwarding
//! on the device of its default route.
//!
//! Settings of a node's network are the kernel's defaults or, of some, the
//! host's: Linux copies those of TCP's congestion control and buffers.
//!
//! Wires carry IPv4 only: interfaces with IPv6 send of their own accord, which
//! a link's counters would show. ARP is left as it is, and emud passes it untouched.

mod control;
mod error;
mod forwarding;
mod free;
mod init;
mod mounts;
mod node;
mod outside;
mod reap;
mod resolver;

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::scenario::{Bridge, End, Route, Wire};
use crate::netlink::{Netlink, WireEnd};
use control::Order;
use node::{Node, View};
use outside::Uplink;

pub use error::LabError;
pub use forwarding::keep as keep_forwarding;
pub use free::{Reserved, free_interface, free_network};
pub use init::run as run_node;
pub use outside::Outside;
pub use resolver::resolver;

/// What a node sees instead of the host's files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Files {
    /// Content of /etc/resolv.conf; none: the host's.
    pub resolv_conf: Option<String>,
    /// Content of /etc/hosts.
    pub hosts: String,
    /// A folder over which the node has a tmpfs of its own; none: it has none.
    pub scratch: Option<String>,
}

/// All nodes and wires. Dropping it takes all away; [`Lab::close`] says what could not be.
pub struct Lab {
    /// Of the network namespace in which the lab was made: the host.
    host: Netlink,
    nodes: Vec<Node>,
    /// Indices of the host's ends of wires.
    host_ends: Vec<u32>,
    uplinks: Vec<Uplink>,
}

impl Lab {
    /// A lab without nodes. The network namespace of the calling thread is the
    /// host; stay in it.
    ///
    /// # Errors
    /// [`LabError::NotRoot`].
    pub fn new() -> Result<Self, LabError> {
        if !geteuid().is_root() {
            return Err(LabError::NotRoot);
        }
        Ok(Self {
            host: Netlink::open()?,
            nodes: Vec::new(),
            host_ends: Vec::new(),
            uplinks: Vec::new(),
        })
    }

    /// A namespace of its own: network, mounts, processes. Only lo is up.
    ///
    /// # Errors
    /// [`LabError::Taken`]; [`LabError::Lacking`] if the kernel has no such
    /// namespaces; [`LabError::Node`] if a file system could not be mounted.
    pub fn add_node(&mut self, name: &str, files: &Files) -> Result<(), LabError> {
        if self.node(name).is_ok() {
            return Err(LabError::Taken(name.to_owned()));
        }
        let node = Node::start(name, files)?;
        self.nodes.push(node);
        Ok(())
    }

    /// A veth pair, both ends up, with addresses and without IPv6. An end
    /// without node lies on the host.
    ///
    /// # Errors
    /// The kernel's; there is no wire then.
    pub fn wire(&mut self, wire: &Wire) -> Result<(), LabError> {
        let [near, far] = &wire.ends;
        let (near_end, far_end) = (wire_end(&self.nodes, near)?, wire_end(&self.nodes, far)?);
        self.host.add_veth(&near_end, &far_end)?;
        let done = wire.ends.iter().try_for_each(|end| self.connect(end));
        if done.is_err() {
            // The other end goes with it. Where it has gone already, so has the failure's cause.
            if let Ok(netlink) = self.netlink(near.node.as_deref())
                && let Ok(link) = netlink.link(&near.interface)
            {
                let _ = netlink.delete_link(link.index);
                self.host_ends.retain(|&index| index != link.index);
            }
        }
        done
    }

    /// A bridge of interfaces that are in the node already; up.
    ///
    /// # Errors
    /// The kernel's; there is no bridge then.
    pub fn bridge(&mut self, node: &str, bridge: &Bridge) -> Result<(), LabError> {
        let netlink = &mut self.node_mut(node)?.netlink;
        netlink.add_bridge(&bridge.interface)?;
        let index = netlink.link(&bridge.interface)?.index;
        let mut join = || {
            for port in &bridge.ports {
                let port = netlink.link(port)?.index;
                netlink.set_master(port, index)?;
            }
            if let Some(address) = bridge.address {
                netlink.add_address(index, address)?;
            }
            netlink.set_up(index, true)
        };
        let joined = join();
        if joined.is_err() {
            let _ = netlink.delete_link(index);
        }
        Ok(joined?)
    }

    /// # Errors
    /// The kernel's.
    pub fn route(&mut self, node: &str, route: &Route) -> Result<(), LabError> {
        let netlink = &mut self.node_mut(node)?.netlink;
        let index = netlink.link(&route.interface)?.index;
        Ok(netlink.add_route(route.to, route.via, index)?)
    }

    /// Lets the node pass on packets of others, whichever way they come back.
    /// No node tells senders of shorter ways (ICMP redirects).
    ///
    /// # Errors
    /// [`LabError::System`] if a setting could not be written.
    pub fn forward(&mut self, node: &str) -> Result<(), LabError> {
        let node = self.node_mut(node)?;
        let loose = [("ipv4/ip_forward", "1"), ("ipv4/conf/all/rp_filter", "2")];
        node.inside(View::Emud, || node::set(&loose))??;
        node.forwards = true;
        node.translate()
    }

    /// Opens the way from `node` through the wire to the host, which passes its packets on
    /// under an address of its own; and those of nodes behind it, if it forwards. The routes
    /// that lead there are the caller's.
    ///
    /// # Errors
    /// The kernel's; the host is as before then. What the host does not have
    /// is no error, but said in the notes.
    pub fn outside(&mut self, node: &str, ours: &End, theirs: &End) -> Result<Outside, LabError> {
        let address = ours.address.ok_or_else(|| LabError::NoAddress {
            attempted: format!("lead node {node} to the outside"),
            interface: ours.interface.clone(),
        })?;
        let (uplink, outside) = outside::open(&mut self.host, &ours.interface, address.trunc())?;
        self.uplinks.extend(uplink);
        if !outside.reachable {
            return Ok(outside);
        }
        let node = self.node_mut(node)?;
        node.way_out = Some(theirs.interface.clone());
        let translated = node.translate();
        if translated.is_err()
            && let Some(uplink) = self.uplinks.pop()
        {
            uplink.restore()?;
        }
        translated.map(|()| outside)
    }

    /// Runs `work` in a thread of its own in the network of the node. Files and processes are
    /// the host's, also for what `work` starts.
    ///
    /// # Errors
    /// [`LabError::NoNode`]; [`LabError::System`] if the kernel refuses.
    pub fn within<T: Send>(
        &self,
        node: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LabError> {
        self.node(node)?.inside(View::Emud, work)
    }

    /// Starts a command as a program of the node, in a process group of its
    /// own. It is a child of this process, which has to wait for it before
    /// [`Lab::close`].
    ///
    /// # Errors
    /// [`LabError::NoNode`]; [`LabError::System`] if it cannot be started.
    pub fn spawn(&self, node: &str, command: &mut Command) -> Result<Child, LabError> {
        self.spawn_foreground(node, command.process_group(0))
    }

    /// As [`Lab::spawn`], but in the process group of this process: it may read
    /// the terminal, and Ctrl-C reaches both.
    ///
    /// # Errors
    /// As [`Lab::spawn`].
    pub fn spawn_foreground(&self, node: &str, command: &mut Command) -> Result<Child, LabError> {
        let attempted = format!("start {:?} in node {node}", command.get_program());
        self.node(node)?
            .inside(View::Node, || command.spawn())?
            .map_err(|e| LabError::system(attempted, e))
    }

    /// SIGKILL to every process of the node but its first: holders of emulated
    /// links, too. Those started by this process have to be waited for by it.
    ///
    /// # Errors
    /// [`LabError::NoNode`], [`LabError::Node`].
    pub fn end_all(&self, node: &str) -> Result<(), LabError> {
        self.node(node)?.order(&Order::EndAll)
    }

    /// Takes everything away and waits until the host is as before. All
    /// children of this process that are left in a node are ended and reaped.
    ///
    /// # Errors
    /// The first of what could not be put back; the rest is, all the same.
    pub fn close(mut self) -> Result<(), LabError> {
        self.take_away()
    }

    fn take_away(&mut self) -> Result<(), LabError> {
        for node in &mut self.nodes {
            node.kill();
        }
        let mut results = Vec::new();
        for uplink in self.uplinks.drain(..) {
            results.push(uplink.restore());
        }
        for index in self.host_ends.drain(..) {
            // It may have gone with the node in which its other end was.
            if self.host.link_by_index(index).is_ok() {
                let deleted = self.host.delete_link(index);
                let gone = self.host.link_by_index(index).is_err();
                results.push(if gone {
                    Ok(())
                } else {
                    deleted.map_err(Into::into)
                });
            }
        }
        for mut node in self.nodes.drain(..) {
            results.push(node.wait());
        }
        results.into_iter().collect()
    }

    fn node(&self, name: &str) -> Result<&Node, LabError> {
        find(&self.nodes, name)
    }

    fn node_mut(&mut self, name: &str) -> Result<&mut Node, LabError> {
        let found = self.nodes.iter_mut().find(|node| node.name == name);
        found.ok_or_else(|| LabError::NoNode(name.to_owned()))
    }

    /// Of a node; of the host without.
    fn netlink(&mut self, node: Option<&str>) -> Result<&mut Netlink, LabError> {
        match node {
            Some(name) => Ok(&mut self.node_mut(name)?.netlink),
            None => Ok(&mut self.host),
        }
    }

    /// Addresses one end of a wire and brings it up.
    fn connect(&mut self, end: &End) -> Result<(), LabError> {
        let netlink = self.netlink(end.node.as_deref())?;
        let index = netlink.link(&end.interface)?.index;
        if end.node.is_none() {
            netlink.disable_ipv6(&end.interface)?;
        }
        if let Some(address) = end.address {
            netlink.add_address(index, address)?;
        }
        netlink.set_up(index, true)?;
        if end.node.is_none() {
            self.host_ends.push(index);
        }
        Ok(())
    }
}

fn find<'a>(nodes: &'a [Node], name: &str) -> Result<&'a Node, LabError> {
    let found = nodes.iter().find(|node| node.name == name);
    found.ok_or_else(|| LabError::NoNode(name.to_owned()))
}

fn wire_end<'a>(nodes: &'a [Node], end: &'a End) -> Result<WireEnd<'a>, LabError> {
    let node = end.node.as_deref().map(|name| find(nodes, name));
    Ok(WireEnd {
        name: &end.interface,
        netns: node.transpose()?.map(Node::netns),
    })
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Nobody to tell; close() tells.
        let _ = self.take_away();
    }
}
