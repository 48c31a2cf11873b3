// SPDX-License-Identifier: MIT OR Apache-2.0
//! Address translation by nf_tables, and the firewall's policy for forwarded packets.

use std::fmt;

use ipnet::Ipv4Net;
use netlink_bindings::nftables::{
    Chained, CmpOps, MetaKeys, Nfgenmsg, PayloadBase, PushExprListAttrs as Expressions, Registers,
    Request, TableFlags,
};
use netlink_bindings::traits::Pusher;
use netlink_socket2::NetlinkSocket;

use super::{Netlink, NetlinkError, Result};

const NF_INET_FORWARD: u32 = 2;
const NF_INET_POST_ROUTING: u32 = 4;
const NF_IP_PRI_NAT_SRC: i32 = 100;
const NF_DROP: u32 = 0;
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const SOURCE_ADDRESS: u32 = 12;
const REGISTER: u32 = Registers::Reg1 as u32;

/// The packets whose source address is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Translated<'a> {
    /// Packets from this network.
    From(Ipv4Net),
    /// Packets that leave by this interface.
    By(&'a str),
}

impl fmt::Display for Translated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(network) => write!(f, "packets from {network}"),
            Self::By(interface) => write!(f, "packets that leave by {interface}"),
        }
    }
}

/// A table that gives packets the address of the device by which they leave. It belongs to its
/// socket: the kernel deletes it when this value is dropped or the process ends in any way.
pub struct Masquerade {
    _sock: NetlinkSocket,
}

fn header() -> Nfgenmsg {
    Nfgenmsg {
        nfgen_family: libc::AF_INET as u8,
        ..Default::default()
    }
}

fn batch() -> Nfgenmsg {
    let mut header = Nfgenmsg::new();
    header.set_res_id(NFNL_SUBSYS_NFTABLES);
    header
}

impl Masquerade {
    /// Creates the table `name` in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`NetlinkError::Unavailable`] if the kernel has no nf_tables, no NAT, or (before Linux 5.12)
    /// no tables that belong to a process.
    pub fn add(name: &str, which: Translated<'_>) -> Result<Self> {
        let mut sock = NetlinkSocket::new();
        let mut chain = Chained::new(sock.reserve_seq(8));
        chain.request().op_batch_begin_do(&batch());
        chain
            .request()
            .set_create()
            .set_excl()
            .op_newtable_do(&header())
            .encode()
            .push_name_bytes(name.as_bytes())
            .push_flags(TableFlags::Owner as u32);
        chain
            .request()
            .set_create()
            .op_newchain_do(&header())
            .encode()
            .push_table_bytes(name.as_bytes())
            .push_name(c"postrouting")
            .nested_hook()
            .push_num(NF_INET_POST_ROUTING)
            .push_priority(NF_IP_PRI_NAT_SRC)
            .end_nested()
            .push_type(c"nat");
        push_rule(&mut chain, name, which);
        chain.request().op_batch_end_do(&batch());
        let chain = chain.finalize();
        let attempted = || format!("masquerade {which} by table {name}");
        let mut reply = sock
            .request_chained(&chain)
            .map_err(|e| NetlinkError::io(attempted(), &e).kind_missing(true))?;
        reply
            .recv_all()
            .map_err(|e| NetlinkError::reply(attempted(), &e).kind_missing(true))?;
        Ok(Self { _sock: sock })
    }
}

/// Adds `ip saddr NETWORK masquerade` or `oifname INTERFACE masquerade`.
fn push_rule(chain: &mut Chained<'_>, table: &str, which: Translated<'_>) {
    let mut request = chain
        .request()
        .set_create()
        .set_append()
        .op_newrule_do(&header());
    let rule = request
        .encode()
        .push_table_bytes(table.as_bytes())
        .push_chain(c"postrouting")
        .nested_expressions();
    let matched = match which {
        Translated::From(network) => push_source(rule, network),
        Translated::By(interface) => push_interface(rule, interface),
    };
    matched
        .nested_elem()
        .push_name(c"masq")
        .end_nested()
        .end_nested();
}

fn push_source<P: Pusher>(rule: Expressions<P>, network: Ipv4Net) -> Expressions<P> {
    let masked = rule
        .nested_elem()
        .nested_data_payload()
        .push_dreg(REGISTER)
        .push_base(PayloadBase::NetworkHeader as u32)
        .push_offset(SOURCE_ADDRESS)
        .push_len(4)
        .end_nested()
        .end_nested()
        .nested_elem()
        .nested_data_bitwise()
        .push_sreg(REGISTER)
        .push_dreg(REGISTER)
        .push_len(4)
        .nested_mask()
        .push_value(&network.netmask().octets())
        .end_nested()
        .nested_xor()
        .push_value(&[0; 4])
        .end_nested()
        .end_nested()
        .end_nested();
    push_equal(masked, &network.network().octets())
}

fn push_interface<P: Pusher>(rule: Expressions<P>, name: &str) -> Expressions<P> {
    let loaded = rule
        .nested_elem()
        .nested_data_meta()
        .push_key(MetaKeys::Oifname as u32)
        .push_dreg(REGISTER)
        .end_nested()
        .end_nested();
    // The register holds the name padded with NUL.
    let mut padded = name.as_bytes().to_vec();
    padded.resize(libc::IFNAMSIZ, 0);
    push_equal(loaded, &padded)
}

fn push_equal<P: Pusher>(rule: Expressions<P>, value: &[u8]) -> Expressions<P> {
    rule.nested_elem()
        .nested_data_cmp()
        .push_sreg(REGISTER)
        .push_op(CmpOps::Eq as u32)
        .nested_data()
        .push_value(value)
        .end_nested()
        .end_nested()
        .end_nested()
}

/// A chain of the host that drops forwarded packets which no rule accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardDrop {
    /// Name of its table.
    pub table: String,
    /// Name of the chain.
    pub chain: String,
}

impl Netlink {
    /// Returns the chains of nf_tables that drop forwarded IPv4 packets unless one of their rules
    /// accepts them.
    ///
    /// # Errors
    /// [`NetlinkError::Unavailable`] if the kernel has no nf_tables.
    pub fn forward_drops(&mut self) -> Result<Vec<ForwardDrop>> {
        let request = Request::new().op_getchain_dump(&Nfgenmsg::new());
        let mut found = Vec::new();
        let what = || "list the chains of nf_tables".to_string();
        self.exchange(&request, what, |(header, attrs)| {
            let family = i32::from(header.nfgen_family);
            let forwards = attrs.get_hook().and_then(|hook| hook.get_num()) == Ok(NF_INET_FORWARD);
            if [libc::AF_INET, libc::NFPROTO_INET].contains(&family)
                && forwards
                && attrs.get_policy() == Ok(NF_DROP)
            {
                let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
                found.push(ForwardDrop {
                    table: attrs.get_table().map(text).unwrap_or_default(),
                    chain: attrs.get_name().map(text).unwrap_or_default(),
                });
            }
        })?;
        Ok(found)
    }
}
