// SPDX-License-Identifier: MIT OR Apache-2.0
//! The network an experiment runs in: nodes, wires between them, and the outside.
//!
//! A node is a process (`node-run`) in separate network, mount and process namespaces without a
//! name. It ends with emud, in whatever way emud ends, and the kernel then removes everything in
//! the node: processes, interfaces, emulated links. Three things on the host change, and are
//! restored when the [`Lab`] is dropped: its end of a wire, a table of nf_tables, forwarding on the
//! device of its default route.
//!
//! Settings of a node's network are the kernel's defaults, or the host's for TCP's congestion
//! control and buffers, which Linux copies.
//!
//! Wires carry IPv4 only: interfaces with IPv6 send packets by themselves, which would appear in a
//! link's counters. ARP is not changed, and emud passes it without emulation.
//!
//! Longer than 400 lines: all that the host loses or gets back is in one type.

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

use super::scenario::{Bridge, PlannedEnd, Route, Tunnel, Wire};
use crate::netlink::{Gso, Netlink, Vxlan, WireEnd, setting};
use control::Order;
use node::{Node, View};
use outside::Uplink;

pub use error::LabError;
pub use forwarding::keep as keep_forwarding;
pub use free::{Reserved, free_interface, free_network, reserve_first, this_network};
pub use init::run as run_node;
pub use outside::Outside;
pub use resolver::resolver;

/// Files that a node sees instead of the host's.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Files {
    /// Content of /etc/resolv.conf; `None`: the host's.
    pub resolv_conf: Option<String>,
    /// Content of /etc/hosts.
    pub hosts: String,
    /// Folder on which the node mounts a separate tmpfs, if any.
    pub scratch: Option<String>,
}

/// All nodes and wires. Dropping it removes everything; [`Lab::close`] also returns errors.
pub struct Lab {
    /// The network namespace in which the lab was created: the host.
    host: Netlink,
    nodes: Vec<Node>,
    /// Indices of the host's ends of wires.
    host_ends: Vec<u32>,
    uplinks: Vec<Uplink>,
    /// Of wires; `None`: the kernel's default.
    mtu: Option<u32>,
}

impl Lab {
    /// Creates a lab without nodes. The network namespace of the calling thread is the host; do not
    /// leave it.
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
            mtu: None,
        })
    }

    /// Sets the MTU of wires that are added later; `None`: the kernel's default.
    pub fn set_mtu(&mut self, mtu: Option<u32>) {
        self.mtu = mtu;
    }

    /// Adds a node with separate network, mount and process namespaces. Only lo is up.
    ///
    /// # Errors
    /// [`LabError::Taken`]; [`LabError::Lacking`] if the kernel does not support such namespaces;
    /// [`LabError::Node`] if a file system could not be mounted.
    pub fn add_node(&mut self, name: &str, files: &Files) -> Result<(), LabError> {
        if self.node(name).is_ok() {
            return Err(LabError::Taken(name.to_owned()));
        }
        let node = Node::start(name, files)?;
        self.nodes.push(node);
        Ok(())
    }

    /// Adds a veth pair with both ends up, with addresses and without IPv6. An end without a node
    /// is on the host.
    ///
    /// # Errors
    /// The kernel returns an error; no wire exists then.
    pub fn wire(&mut self, wire: &Wire) -> Result<(), LabError> {
        let [near, far] = &wire.ends;
        let (near_end, far_end) = (wire_end(&self.nodes, near)?, wire_end(&self.nodes, far)?);
        self.host.add_veth(&near_end, &far_end)?;
        let done = wire.ends.iter().try_for_each(|end| self.connect(end));
        if done.is_err() {
            // Deletes the other end, too. If it is already gone, the failure has the same cause.
            if let Ok(netlink) = self.netlink(near.node.as_deref())
                && let Ok(link) = netlink.link(&near.interface)
            {
                let _ = netlink.delete_link(link.index);
                self.host_ends.retain(|&index| index != link.index);
            }
        }
        done
    }

    /// Lets the two nodes of a wire know each other's link-layer address, so that neither uses ARP. A
    /// port of a bridge has no address, and the host's programs may change that of its end.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn introduce(&mut self, wire: &Wire) -> Result<(), LabError> {
        let [near, far] = &wire.ends;
        for (end, other) in [(near, far), (far, near)] {
            let (Some(own), Some(peer)) = (&end.node, &other.node) else {
                continue;
            };
            let (Some(_), Some(address)) = (end.address, other.address) else {
                continue;
            };
            let found = self.node_mut(peer)?.netlink.link(&other.interface)?;
            let netlink = &mut self.node_mut(own)?.netlink;
            let index = netlink.link(&end.interface)?.index;
            netlink.add_neighbour(index, address.addr(), &found.mac)?;
        }
        Ok(())
    }

    /// Adds the end of a tunnel to another host, up, with its address and without IPv6. Its packets
    /// leave from the host's own network. Senders segment before it: what the tunnel carries has
    /// the length that the link counts.
    ///
    /// # Errors
    /// The kernel returns an error; no tunnel exists then.
    pub fn tunnel(&mut self, end: &PlannedEnd, tunnel: Tunnel) -> Result<(), LabError> {
        let own = wire_end(&self.nodes, end)?;
        let vxlan = Vxlan {
            vni: tunnel.vni,
            local: tunnel.local,
            remote: tunnel.remote,
            port: tunnel.port,
            mtu: tunnel.mtu,
        };
        self.host.add_vxlan(&own, &vxlan)?;
        let netlink = self.netlink(end.node.as_deref())?;
        let link = netlink.link(&end.interface)?;
        let gso = Gso {
            max_segs: 1,
            ..link.gso
        };
        let done = netlink.set_gso(link.index, &gso).map_err(LabError::from);
        let done = done.and_then(|()| self.connect(end));
        if done.is_err()
            && let Ok(netlink) = self.netlink(end.node.as_deref())
        {
            // The earlier error is returned.
            let _ = netlink.delete_link(link.index);
        }
        done
    }

    /// Returns whether a node exists.
    pub fn has(&self, node: &str) -> bool {
        self.node(node).is_ok()
    }

    /// Adds a bridge of interfaces that are already in the node, and brings it up.
    ///
    /// # Errors
    /// The kernel returns an error; no bridge exists then.
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

    /// Adds a route.
    pub fn route(&mut self, node: &str, route: &Route) -> Result<(), LabError> {
        let netlink = &mut self.node_mut(node)?.netlink;
        let index = netlink.link(&route.interface)?.index;
        Ok(netlink.add_route(route.to, route.via, index)?)
    }

    /// Makes the node forward packets of others, without a check of the return path. No node sends
    /// ICMP redirects about shorter routes.
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

    /// Connects `node` through the wire to the host, which forwards the node's packets with the
    /// host's address; and the packets of nodes behind it, if it forwards. The caller adds the
    /// routes.
    ///
    /// # Errors
    /// The kernel returns an error; the host is restored then. A missing feature of the host is not
    /// an error, but reported in the notes.
    pub fn outside(
        &mut self,
        node: &str,
        ours: &PlannedEnd,
        theirs: &PlannedEnd,
    ) -> Result<Outside, LabError> {
        let address = ours.address.ok_or_else(|| LabError::NoAddress {
            attempted: format!("connect node {node} to the outside"),
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

    /// Runs `work` in a separate thread in the network of the node. Files and processes are the
    /// host's, also for programs that `work` starts.
    ///
    /// # Errors
    /// [`LabError::NoNode`]; [`LabError::System`] if the kernel returns an error.
    pub fn within<T: Send>(
        &self,
        node: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LabError> {
        self.node(node)?.inside(View::Emud, work)
    }

    /// Starts a command as a program of the node, in a separate process group. It is a child of
    /// this process, which has to wait for it before [`Lab::close`].
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

    /// Sends SIGKILL to every process of the node except the first one, including holders of
    /// emulated links. This process has to wait for those that it started.
    ///
    /// # Errors
    /// [`LabError::NoNode`], [`LabError::Node`].
    pub fn end_all(&self, node: &str) -> Result<(), LabError> {
        self.node(node)?.order(&Order::EndAll)
    }

    /// Removes everything and waits until the host is restored. Remaining children of this process
    /// in a node are ended and reaped.
    ///
    /// # Errors
    /// The first failure; the rest is restored nevertheless.
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
            // It may be deleted already, with the node of its other end.
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

    /// Returns the netlink socket of a node, or of the host.
    fn netlink(&mut self, node: Option<&str>) -> Result<&mut Netlink, LabError> {
        match node {
            Some(name) => Ok(&mut self.node_mut(name)?.netlink),
            None => Ok(&mut self.host),
        }
    }

    /// Adds the address of one end of a wire and brings it up.
    fn connect(&mut self, end: &PlannedEnd) -> Result<(), LabError> {
        let mtu = self.mtu;
        let netlink = self.netlink(end.node.as_deref())?;
        let index = netlink.link(&end.interface)?.index;
        if let Some(mtu) = mtu {
            netlink.set_mtu(index, mtu)?;
        }
        if end.node.is_none() {
            let failed = |e| LabError::system(format!("disable IPv6 on {}", end.interface), e);
            setting::disable_ipv6(&end.interface).map_err(failed)?;
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

fn wire_end<'a>(nodes: &'a [Node], end: &'a PlannedEnd) -> Result<WireEnd<'a>, LabError> {
    let node = end.node.as_deref().map(|name| find(nodes, name));
    Ok(WireEnd {
        name: &end.interface,
        netns: node.transpose()?.map(Node::netns),
    })
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Dropping cannot return an error; close() does.
        let _ = self.take_away();
    }
}
