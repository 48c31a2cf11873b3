// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packets of a file of tcpdump, dumpcap or Wireshark (pcap, pcapng).

use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use etherparse::{LaxIpSlice, ip_number};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

const SECOND_NS: u64 = 1_000_000_000;
/// The largest record: tcpdump writes up to 256 KiB of a packet.
const BUFFER: usize = 1 << 20;
/// As many bytes of a packet identify it: a million packets take half a GB.
const CONTENT: usize = 512;
/// EtherTypes of VLAN tags: 802.1Q, 802.1ad, and the one before it.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// A file of packets that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It has another format, or is damaged.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what helps.
        what: String,
    },
}

impl CaptureError {
    /// Returns the exit code (sysexits.h).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } => 66,
            Self::Format { .. } => 65,
        }
    }
}

/// An IP packet in a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// When, ns since 1970.
    pub time_ns: u64,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol number after the extension headers.
    pub protocol: u8,
    /// Ports of TCP, UDP, UDP-Lite and SCTP; `None`: of another protocol, or a fragment.
    pub ports: Option<[u16; 2]>,
    /// Length of the IP packet.
    pub bytes: u32,
    /// The first captured bytes without those that a hop or a device may change.
    pub(super) content: Vec<u8>,
}

/// Addresses, protocol and ports.
pub(super) type Flow = (IpAddr, IpAddr, u8, Option<[u16; 2]>);

impl Seen {
    pub(super) const fn flow(&self) -> Flow {
        (self.source, self.destination, self.protocol, self.ports)
    }
}

/// The packets of a file, in the order of their times.
#[derive(Debug, Default)]
pub struct Capture {
    /// IP packets.
    pub packets: Vec<Seen>,
    /// Frames of other protocols.
    pub not_ip: u64,
    /// Whether the last packet in the file is incomplete, and left out.
    pub ends_within: bool,
    /// The shortest content of a packet that was cut (`tcpdump -s`).
    pub(super) cut: Option<usize>,
}

/// What a record says of the interface on which its packet was captured.
struct Interface {
    link: Linktype,
    ticks_per_s: u64,
    offset_s: i64,
}

/// One record of a file.
struct Frame<'a> {
    ticks: u64,
    bytes: &'a [u8],
    /// Before it was cut.
    len: u32,
}

/// Reads all packets of a file.
///
/// # Errors
/// The file cannot be read, or has another format.
pub fn read(path: &Path) -> Result<Capture, CaptureError> {
    let file = File::open(path).map_err(|source| CaptureError::Read {
        path: path.to_owned(),
        source,
    })?;
    let failed = |what: &str| CaptureError::Format {
        path: path.to_owned(),
        what: what.to_owned(),
    };
    let mut reader = create_reader(BUFFER, file).map_err(|e| failed(reason(&e)))?;
    let mut capture = Capture::default();
    let mut interfaces = vec![];
    loop {
        match reader.next() {
            Ok((used, block)) => {
                capture.add(&mut interfaces, &block).map_err(failed)?;
                reader.consume(used);
            }
            Err(PcapError::Eof) => break,
            Err(PcapError::Incomplete(_)) => reader.refill().map_err(|e| failed(reason(&e)))?,
            Err(PcapError::UnexpectedEof) => {
                capture.ends_within = true;
                break;
            }
            Err(e) => return Err(failed(reason(&e))),
        }
    }
    // tcpdump writes in the order in which it reads from each CPU.
    capture.packets.sort_by_key(|seen| seen.time_ns);
    Ok(capture)
}

fn reason(e: &PcapError<&[u8]>) -> &'static str {
    match e {
        PcapError::HeaderNotRecognized | PcapError::Eof | PcapError::Incomplete(_) => {
            "not a capture: write one with tcpdump -w FILE"
        }
        PcapError::BufferTooSmall => "has a packet of more than 1 MiB",
        PcapError::ReadError => "cannot be read",
        _ => "is damaged: write it again",
    }
}

impl Capture {
    fn add(
        &mut self,
        interfaces: &mut Vec<Interface>,
        block: &PcapBlockOwned<'_>,
    ) -> Result<(), &'static str> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => interfaces.push(Interface {
                link: header.network,
                ticks_per_s: match header.is_nanosecond_precision() {
                    true => SECOND_NS,
                    false => 1_000_000,
                },
                offset_s: 0,
            }),
            PcapBlockOwned::Legacy(record) => {
                let interface = interfaces.first().ok_or("has no header")?;
                let ticks = u64::from(record.ts_sec) * interface.ticks_per_s;
                let frame = Frame {
                    ticks: ticks + u64::from(record.ts_usec),
                    bytes: record.data,
                    len: record.origlen,
                };
                self.add_frame(interface, &frame)?;
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                let ticks_per_s = ticks_per_s(described.if_tsresol);
                interfaces.push(Interface {
                    link: described.linktype,
                    ticks_per_s: ticks_per_s.ok_or("has times of an unknown unit")?,
                    offset_s: described.ts_offset(),
                });
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(record)) => {
                let interface = interfaces.get(record.if_id as usize);
                let bytes = record.data.get(..record.caplen as usize);
                let frame = Frame {
                    ticks: u64::from(record.ts_high) << 32 | u64::from(record.ts_low),
                    bytes: bytes.ok_or("is damaged: write it again")?,
                    len: record.origlen,
                };
                self.add_frame(interface.ok_or("has a packet of no interface")?, &frame)?;
            }
            PcapBlockOwned::NG(Block::SimplePacket(_)) => return Err("has packets without times"),
            PcapBlockOwned::NG(_) => {}
        }
        Ok(())
    }

    fn add_frame(&mut self, interface: &Interface, frame: &Frame<'_>) -> Result<(), &'static str> {
        let ticks_per_s = u128::from(interface.ticks_per_s);
        let ns = u128::from(frame.ticks) * u128::from(SECOND_NS) / ticks_per_s;
        let ns = ns as i128 + i128::from(interface.offset_s) * i128::from(SECOND_NS);
        let time_ns = u64::try_from(ns).map_err(|_| "has a time outside of 1970 to 2554")?;
        let is_cut = frame.bytes.len() < frame.len as usize;
        let seen = match ip_in(interface.link, frame.bytes)? {
            Some(ip) => seen(
                ip,
                time_ns,
                frame.len - (frame.bytes.len() - ip.len()) as u32,
            ),
            None => None,
        };
        let Some(seen) = seen else {
            self.not_ip += 1;
            return Ok(());
        };
        if is_cut && seen.content.len() < CONTENT.min(seen.bytes as usize) {
            let least = self.cut.unwrap_or(usize::MAX);
            self.cut = Some(least.min(seen.content.len()));
        }
        self.packets.push(seen);
        Ok(())
    }
}

/// Reads the option `if_tsresol`: a negative power of 10, or of 2 with the highest bit.
fn ticks_per_s(unit: u8) -> Option<u64> {
    match unit & 0x80 {
        0 => 10u64.checked_pow(unit.into()),
        _ => 1u64.checked_shl((unit & 0x7f).into()),
    }
}

/// Returns what follows the header of the link, if that is to be an IP packet.
fn ip_in(link: Linktype, frame: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    let short = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let (mut kind, mut at) = match link {
        Linktype::ETHERNET => (short(12), 14),
        Linktype::LINUX_SLL => (short(14), 16),
        Linktype::LINUX_SLL2 => (short(0), 20),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => return Ok(Some(frame)),
        _ => return Err("is of a kind of interface that emud does not know: capture on Ethernet"),
    };
    while kind.is_some_and(|kind| TAGS.contains(&kind)) {
        (kind, at) = (short(at + 2), at + 4);
    }
    let is_ip = matches!(kind, Some(0x0800 | 0x86dd));
    Ok(frame.get(at..).filter(|_| is_ip))
}

/// Reads an IP packet, which may be cut and padded. `len`: its length in a frame that is not cut.
fn seen(ip: &[u8], time_ns: u64, len: u32) -> Option<Seen> {
    let (slice, _) = LaxIpSlice::from_slice(ip).ok()?;
    let given = match &slice {
        LaxIpSlice::Ipv4(v4) => u32::from(v4.header().total_len()),
        LaxIpSlice::Ipv6(v6) => match v6.header().payload_length() {
            0 => 0,
            payload => u32::from(payload) + 40,
        },
    };
    // 0: a super-packet of more than 64 KiB.
    let bytes = if given == 0 { len } else { given.min(len) };
    let payload = slice.payload();
    let (protocol, is_part) = (payload.ip_number, payload.fragmented);
    let l4 = payload.payload.as_ptr() as usize - ip.as_ptr() as usize;
    let mut content = ip[..ip.len().min(bytes as usize).min(CONTENT)].to_vec();
    // Routers count the hops, links mark congestion, and devices compute the checksums of their host.
    match slice {
        LaxIpSlice::Ipv4(_) => clear(&mut content, &[1, 8, 10, 11]),
        LaxIpSlice::Ipv6(_) => {
            content[0] &= 0xf0;
            content[1] &= 0x0f;
            clear(&mut content, &[7]);
        }
    }
    let has_ports = [
        ip_number::TCP,
        ip_number::UDP,
        ip_number::UDP_LITE,
        ip_number::SCTP,
    ];
    let mut ports = None;
    if !is_part {
        match protocol {
            ip_number::TCP => clear(&mut content, &[l4 + 16, l4 + 17]),
            ip_number::UDP => clear(&mut content, &[l4 + 6, l4 + 7]),
            ip_number::SCTP => clear(&mut content, &[l4 + 8, l4 + 9, l4 + 10, l4 + 11]),
            _ => {}
        }
        if has_ports.contains(&protocol) && payload.payload.len() >= 4 {
            let port =
                |at: usize| u16::from_be_bytes([payload.payload[at], payload.payload[at + 1]]);
            ports = Some([port(0), port(2)]);
        }
    }
    Some(Seen {
        time_ns,
        source: slice.source_addr(),
        destination: slice.destination_addr(),
        protocol: protocol.0,
        ports,
        bytes,
        content,
    })
}

fn clear(content: &mut [u8], at: &[usize]) {
    for &at in at {
        if let Some(byte) = content.get_mut(at) {
            *byte = 0;
        }
    }
}
