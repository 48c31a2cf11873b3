// SPDX-License-Identifier: MIT OR Apache-2.0
//! The netlink socket of interfaces, routes and qdiscs. That of the crate netlink_socket2 has room for 8 KiB, and panics
//! at a longer message: of an interface with many alternative names, or a filter with many actions.

use std::io;
use std::os::fd::OwnedFd;

use netlink_bindings::traits::{NetlinkChained, NetlinkRequest};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{connect, recv, send, socket_with};

use super::attr;
use crate::socket_option;

/// An attribute has up to 64 KiB, and no message has many of that size. Memory is used as far as it is filled.
const BUFFER_LEN: usize = 128 << 10;
/// struct nlmsghdr.
pub(super) const HEADER_LEN: usize = 16;
/// The number after the header of NLMSG_ERROR and NLMSG_DONE.
const CODE_LEN: usize = 4;
const NLMSGERR_ATTR_MSG: u16 = 1;
/// How often a dump is tried that the kernel marks as interrupted: something changed in between, and an entry may
/// be missing.
const DUMPS: usize = 10;
/// struct tcmsg without what changes: family, interface, handle and parent.
const QDISC_LEN: usize = 16;

/// A socket of NETLINK_ROUTE.
pub(super) struct Socket {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// The kernel rejected a request.
pub(super) struct Refused {
    pub cause: io::Error,
    /// Text of the kernel (extended ACK), if it sent any.
    pub message: Option<String>,
}

impl From<io::Error> for Refused {
    fn from(cause: io::Error) -> Self {
        Self {
            cause,
            message: None,
        }
    }
}

impl Socket {
    /// Opens a socket in the network namespace of the calling thread.
    pub fn open() -> io::Result<Self> {
        let protocol = None; // NETLINK_ROUTE is 0.
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        // Explanations of errors, without a copy of the request.
        for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
            let on: libc::c_int = 1;
            socket_option::set(&socket, libc::SOL_NETLINK, option, &on)?;
        }
        // Then only the kernel can send to it, and not a process with CAP_NET_ADMIN in the namespace.
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 1,
            buffer: vec![0; BUFFER_LEN],
        })
    }

    /// Returns the first of `count` sequence numbers that no other request has.
    pub fn reserve(&mut self, count: u32) -> u32 {
        let first = self.sequence;
        self.sequence = first.wrapping_add(count);
        first
    }

    /// Sends a request of this type, and passes every answer to `each`.
    ///
    /// # Errors
    /// The kernel rejects it, or a dump was interrupted each time.
    pub fn request<R: NetlinkRequest>(
        &mut self,
        request: &R,
        kind: u16,
        mut each: impl FnMut(R::ReplyType<'_>),
    ) -> Result<(), Refused> {
        let mut before = None;
        for _ in 0..DUMPS {
            let mut answers = vec![];
            let answer = |body: &[u8]| answers.push(body.to_vec());
            let ended = self.once(request, kind, answer)?;
            if ended.interrupted {
                continue;
            }
            // tc_dump_qdisc() goes on at a number, and marks no interruption: a device that is deleted between two
            // parts hides another one.
            if kind == libc::RTM_GETQDISC && ended.parts > 1 {
                let of = |body: &Vec<u8>| body.get(..QDISC_LEN).unwrap_or(body).to_vec();
                let now: Vec<_> = answers.iter().map(of).collect();
                if before.as_ref() != Some(&now) {
                    before = Some(now);
                    continue;
                }
            }
            answers.iter().for_each(|body| each(R::decode_reply(body)));
            return Ok(());
        }
        let why = format!("the kernel's list changed during each of {DUMPS} readings");
        Err(io::Error::new(io::ErrorKind::Interrupted, why).into())
    }

    fn once<R: NetlinkRequest>(
        &mut self,
        request: &R,
        kind: u16,
        each: impl FnMut(&[u8]),
    ) -> Result<Ended, Refused> {
        let sequence = self.reserve(1);
        let payload = request.payload();
        let flags = request.flags() | (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut message = Vec::with_capacity(HEADER_LEN + payload.len());
        message.extend(((HEADER_LEN + payload.len()) as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(sequence.to_ne_bytes());
        message.extend([0; 4]);
        message.extend(payload);
        let is_ours = |number| number == sequence;
        let mut ended = self.exchange(&message, 1, is_ours, each)?;
        match ended.refused.pop() {
            Some(refused) => Err(refused),
            None => Ok(ended),
        }
    }

    /// Sends several requests at once, of which the kernel handles each. Returns those that it rejected.
    pub fn chain(&mut self, chain: &impl NetlinkChained) -> io::Result<Vec<Refused>> {
        let is_ours = |number| chain.get_index(number).is_some();
        let ended = self.exchange(chain.payload(), chain.chain_len(), is_ours, |_| ())?;
        Ok(ended.refused)
    }

    /// Sends requests and reads until all have ended: the unread rest of a dump would keep the socket busy.
    fn exchange(
        &mut self,
        requests: &[u8],
        count: usize,
        is_ours: impl Fn(u32) -> bool,
        mut each: impl FnMut(&[u8]),
    ) -> io::Result<Ended> {
        send(&self.socket, requests, SendFlags::empty())?;
        let mut ended = 0;
        let mut out = Ended::default();
        while ended < count {
            let len = receive(&self.socket, &mut self.buffer)?;
            let mut rest = &self.buffer[..len];
            let mut has_answers = false;
            while !rest.is_empty() {
                let message = Message::first(rest).ok_or(io::ErrorKind::InvalidData)?;
                rest = rest.get(message.len..).unwrap_or_default();
                if !is_ours(message.sequence) {
                    continue;
                }
                out.interrupted |= message.flags & libc::NLM_F_DUMP_INTR as u16 != 0;
                match i32::from(message.kind) {
                    libc::NLMSG_DONE | libc::NLMSG_ERROR => {
                        ended += 1;
                        out.refused.extend(message.refused());
                    }
                    libc::NLMSG_NOOP => {}
                    libc::NLMSG_OVERRUN => return Err(Errno::OVERFLOW.into()),
                    _ => {
                        has_answers = true;
                        each(message.body);
                    }
                }
            }
            out.parts += usize::from(has_answers);
        }
        Ok(out)
    }
}

/// How requests ended.
#[derive(Default)]
struct Ended {
    refused: Vec<Refused>,
    /// A dump is incomplete.
    interrupted: bool,
    /// Receptions with answers.
    parts: usize,
}

/// Receives what the kernel sends at once.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match recv(socket, &mut *buffer, RecvFlags::TRUNC) {
            Ok((_, sent)) if sent > buffer.len() => return Err(Errno::MSGSIZE.into()),
            Ok((len, _)) => return Ok(len),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

pub(super) struct Message<'a> {
    /// With the padding behind it.
    pub len: usize,
    pub kind: u16,
    flags: u16,
    sequence: u32,
    /// Behind the header.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the first of several messages; `None`: it is incomplete.
    pub fn first(messages: &'a [u8]) -> Option<Self> {
        let len = attr::u32_at(messages, 0)? as usize;
        let half = |at: usize| {
            let bytes = messages.get(at..at + 2)?;
            Some(u16::from_ne_bytes(bytes.try_into().ok()?))
        };
        Some(Self {
            len: len.next_multiple_of(4),
            kind: half(4)?,
            flags: half(6)?,
            sequence: attr::u32_at(messages, 8)?,
            body: messages.get(HEADER_LEN..len)?,
        })
    }

    /// Reads the end of a request; `None`: the kernel has done it.
    fn refused(&self) -> Option<Refused> {
        let code = attr::u32_at(self.body, 0).unwrap_or(0).cast_signed();
        if code == 0 {
            return None;
        }
        // An error has the header of the request before its attributes.
        let before = match i32::from(self.kind) {
            libc::NLMSG_ERROR => CODE_LEN + HEADER_LEN,
            _ => CODE_LEN,
        };
        let attrs = match self.flags & libc::NLM_F_ACK_TLVS as u16 {
            0 => &[],
            _ => self.body.get(before..).unwrap_or_default(),
        };
        let message = attr::find(attrs, NLMSGERR_ATTR_MSG).map(|text| {
            let text = String::from_utf8_lossy(text);
            text.trim_end_matches('\0').trim_end().to_owned()
        });
        Some(Refused {
            cause: io::Error::from_raw_os_error(-code),
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use netlink_bindings::traits::Protocol;
    use rustix::net::socketpair;

    use super::*;

    fn message(kind: i32, flags: i32, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut out = ((HEADER_LEN + body.len()) as u32).to_ne_bytes().to_vec();
        out.extend((kind as u16).to_ne_bytes());
        out.extend((flags as u16).to_ne_bytes());
        out.extend(sequence.to_ne_bytes());
        out.extend([0; 4]);
        out.extend(body);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    #[test]
    fn messages_follow_one_another() {
        let mut both = message(16, 0, 7, b"abcde");
        both.extend(message(libc::NLMSG_DONE, 0, 8, &[0; 4]));
        let first = Message::first(&both).unwrap();
        assert_eq!(
            (first.kind, first.sequence, first.body),
            (16, 7, &b"abcde"[..])
        );
        let second = Message::first(&both[first.len..]).unwrap();
        assert_eq!((second.sequence, second.len), (8, 20));
        assert!(second.refused().is_none());
        // Of none a part is read.
        for len in 0..21 {
            assert!(Message::first(&both[..len]).is_none(), "{len}");
        }
        let mut short = both.clone();
        short[..4].copy_from_slice(&8_u32.to_ne_bytes());
        assert!(Message::first(&short).is_none());
    }

    /// A dump of the names of interfaces.
    struct Dump;

    impl NetlinkRequest for Dump {
        type ReplyType<'b> = Vec<u8>;

        fn protocol(&self) -> Protocol {
            Protocol::Raw {
                protonum: libc::NETLINK_ROUTE as u16,
                request_type: libc::RTM_GETLINK,
            }
        }

        fn flags(&self) -> u16 {
            libc::NLM_F_DUMP as u16
        }

        fn payload(&self) -> &[u8] {
            &[0; 16]
        }

        fn decode_reply(reply: &[u8]) -> Vec<u8> {
            reply.to_vec()
        }
    }

    /// Returns how a dump ended, its entries, and how many requests there were; what that sends is of the number and the
    /// sequence of each request, one message at a time.
    fn dumped(
        kind: u16,
        answers: impl Fn(usize, u32) -> Vec<Vec<u8>> + Send + 'static,
    ) -> (Result<(), Refused>, Vec<Vec<u8>>, usize) {
        let flags = SocketFlags::CLOEXEC;
        let (socket, kernel) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let thread = std::thread::spawn(move || {
            let mut request = [0; 256];
            let mut n = 0;
            loop {
                let (len, _) = recv(&kernel, &mut request[..], RecvFlags::empty()).unwrap();
                let Some(asked) = Message::first(&request[..len]) else {
                    return n;
                };
                for one in answers(n, asked.sequence) {
                    send(&kernel, &one, SendFlags::empty()).unwrap();
                }
                n += 1;
            }
        });
        let mut socket = Socket {
            socket,
            sequence: 1,
            buffer: vec![0; BUFFER_LEN],
        };
        let mut names = vec![];
        let done = socket.request(&Dump, kind, |name| names.push(name));
        drop(socket);
        (done, names, thread.join().unwrap())
    }

    /// A kernel whose first dumps are interrupted, in their entries or only at their end.
    fn dump(
        interrupted: usize,
        flags_of: fn(bool) -> [i32; 2],
    ) -> (Result<(), Refused>, Vec<Vec<u8>>) {
        let answers = move |n, sequence| {
            let [entry, end] = flags_of(n < interrupted);
            let names = [&b"va"[..], b"vb"];
            let sent = names.into_iter().skip(usize::from(n < interrupted));
            let sent =
                sent.map(|name| message(i32::from(libc::RTM_NEWLINK), entry, sequence, name));
            sent.chain([message(libc::NLMSG_DONE, end, sequence, &[0; 4])])
                .collect()
        };
        let (done, names, _) = dumped(libc::RTM_GETLINK, answers);
        (done, names)
    }

    /// Answers each request with the next list.
    fn lists(kind: u16, lists: &'static [&'static [&'static str]]) -> (Vec<String>, usize) {
        let answers = |n: usize, sequence| {
            let names = lists[n].iter().map(|name| name.as_bytes());
            let sent = names.map(|name| message(i32::from(libc::RTM_NEWQDISC), 0, sequence, name));
            sent.chain([message(libc::NLMSG_DONE, 0, sequence, &[0; 4])])
                .collect()
        };
        let (done, names, asked) = dumped(kind, answers);
        assert!(done.is_ok());
        let text = |name| String::from_utf8(name).unwrap();
        (names.into_iter().map(text).collect(), asked)
    }

    /// A device was deleted meanwhile, and the next one is missing in the first list.
    #[test]
    fn a_list_of_qdiscs_in_parts_is_read_until_it_stays() {
        const ALL: &[&str] = &[
            "the qdisc of va 1",
            "the qdisc of vb 1",
            "the qdisc of vc 1",
        ];
        const LATER: &[&str] = &[
            "the qdisc of va 2",
            "the qdisc of vb 2",
            "the qdisc of vc 2",
        ];
        const TWO: &[&str] = &["the qdisc of va 1", "the qdisc of vc 1"];
        let of = |list: &[&str]| {
            list.iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        // Their counts are behind the part that is compared.
        let read = lists(libc::RTM_GETQDISC, &[TWO, ALL, LATER, TWO]);
        assert_eq!(read, (of(LATER), 3));
        // What comes at once is one state, and other lists are marked.
        assert_eq!(lists(libc::RTM_GETQDISC, &[&["one qdisc alone"], ALL]).1, 1);
        assert_eq!(lists(libc::RTM_GETLINK, &[TWO, ALL]), (of(TWO), 1));
    }

    #[test]
    fn an_interrupted_dump_is_repeated() {
        let in_entries = |yes| [if yes { libc::NLM_F_DUMP_INTR } else { 0 }, 0];
        let at_end = |yes| [0, if yes { libc::NLM_F_DUMP_INTR } else { 0 }];
        for flags in [in_entries, at_end] {
            for interrupted in [0, 1, DUMPS - 1] {
                let (done, names) = dump(interrupted, flags);
                assert!(done.is_ok());
                assert_eq!(names, [b"va", b"vb"]);
            }
            let (done, names) = dump(DUMPS, flags);
            let cause = done.unwrap_err().cause;
            assert_eq!(cause.kind(), io::ErrorKind::Interrupted);
            assert!(names.is_empty());
        }
    }

    #[test]
    fn errors_are_explained() {
        let mut text = vec![];
        attr::push(&mut text, NLMSGERR_ATTR_MSG, false, b"no such thing\0");
        for (kind, header) in [(libc::NLMSG_ERROR, HEADER_LEN), (libc::NLMSG_DONE, 0)] {
            let mut body = (-libc::ENOENT).to_ne_bytes().to_vec();
            body.extend(vec![0; header]);
            let plain = message(kind, 0, 1, &body);
            let plain = Message::first(&plain).unwrap().refused().unwrap();
            assert_eq!(
                (plain.cause.raw_os_error(), plain.message),
                (Some(libc::ENOENT), None)
            );
            body.extend(&text);
            let explained = message(kind, libc::NLM_F_ACK_TLVS, 1, &body);
            let explained = Message::first(&explained).unwrap().refused().unwrap();
            assert_eq!(explained.message.as_deref(), Some("no such thing"));
        }
    }
}
