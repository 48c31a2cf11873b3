// SPDX-License-Identifier: MIT OR Apache-2.0
//! The connection of the SSH session in which this process was started.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Servers of SSH, by the names of their processes.
const SERVERS: [&str; 3] = ["sshd", "sshd-session", "dropbear"];
/// TCP_ESTABLISHED in /proc/net/tcp.
const ESTABLISHED: &str = "01";
/// SSH_CONNECTION; sudo removes it.
const VARIABLE: &str = "SSH_CONNECTION";

/// The ends of a TCP connection: this host, the other one.
pub type Ends = (SocketAddr, SocketAddr);

/// Returns the connection of the SSH session: that of the server among the ancestors of this
/// process, otherwise that of SSH_CONNECTION, if it still exists.
///
/// # Errors
/// `NotFound`: there is no session.
pub fn session() -> io::Result<Ends> {
    let mut pid = std::process::id();
    while pid > 1 {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (name, parent) = of_stat(&stat).ok_or(ErrorKind::InvalidData)?;
        if SERVERS.contains(&name)
            && let Some(found) = of_process(pid)?
        {
            return Ok(found);
        }
        pid = parent;
    }
    let none = "this process was not started in an SSH session";
    let Ok(variable) = std::env::var(VARIABLE) else {
        let message = format!("{none}: no ancestor is sshd, and {VARIABLE} is not set");
        return Err(io::Error::new(ErrorKind::NotFound, message));
    };
    let ends = of_variable(&variable).ok_or_else(|| {
        let message = format!("{VARIABLE} is not valid: \"{variable}\"");
        io::Error::new(ErrorKind::NotFound, message)
    })?;
    // The caller is where the session is; this process may have entered another network.
    let there = established(std::os::unix::process::parent_id())?;
    match there.iter().any(|(found, _)| *found == ends) {
        true => Ok(ends),
        false => Err(io::Error::new(
            ErrorKind::NotFound,
            format!("{none}: the connection of {VARIABLE} ({variable}) no longer exists"),
        )),
    }
}

/// Returns the first established connection that a process opened: that of its session. Those after it are what
/// the session forwards (`ssh -L`), which may be the traffic of an experiment.
fn of_process(pid: u32) -> io::Result<Option<Ends>> {
    let mut sockets: Vec<(u32, u64)> = fs::read_dir(format!("/proc/{pid}/fd"))?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let number = entry.file_name().to_str()?.parse().ok()?;
            let target = fs::read_link(entry.path()).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?;
            Some((number, inode.strip_suffix(']')?.parse().ok()?))
        })
        .collect();
    sockets.sort_unstable();
    let all = established(pid)?;
    let mut ours = sockets
        .iter()
        .filter_map(|(_, socket)| all.iter().find(|(_, inode)| inode == socket));
    Ok(ours.next().map(|(ends, _)| *ends))
}

/// Returns all established TCP connections in the network of a process, with the inodes of their sockets.
fn established(pid: u32) -> io::Result<Vec<(Ends, u64)>> {
    let mut all = vec![];
    for file in ["tcp", "tcp6"] {
        match fs::read_to_string(format!("/proc/{pid}/net/{file}")) {
            Ok(text) => all.extend(text.lines().filter_map(of_line)),
            // A kernel without IPv6.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(all)
}

/// Reads a line of /proc/net/tcp or tcp6.
fn of_line(line: &str) -> Option<(Ends, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if *fields.get(3)? != ESTABLISHED {
        return None;
    }
    let ends = (address(fields[1])?, address(fields[2])?);
    Some((ends, fields.get(9)?.parse().ok()?))
}

/// Reads an address and a port: hexadecimal, the address in units of 32 bits in this machine's byte order.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(8 * at..8 * at + 8)?, 16).ok();
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(word(0)?.to_ne_bytes()).into(),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
                to.copy_from_slice(&word.to_ne_bytes());
            }
            // An IPv4 connection to a socket of IPv6 has IPv4 packets.
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Reads SSH_CONNECTION: address and port of the client, then of the server.
fn of_variable(text: &str) -> Option<Ends> {
    let fields: Vec<&str> = text.split(' ').collect();
    let [client, client_port, server, server_port] = fields[..] else {
        return None;
    };
    // Link-local ones have a zone.
    let ip = |text: &str| text.split('%').next()?.parse::<IpAddr>().ok();
    let end = |ip: IpAddr, port: &str| Some(SocketAddr::new(ip.to_canonical(), port.parse().ok()?));
    Some((
        end(ip(server)?, server_port)?,
        end(ip(client)?, client_port)?,
    ))
}

/// Returns the name of a process and its parent; the name may contain any character.
fn of_stat(stat: &str) -> Option<(&str, u32)> {
    let (_, rest) = stat.split_once('(')?;
    let (name, rest) = rest.rsplit_once(") ")?;
    Some((name, rest.split(' ').nth(1)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn what_a_session_forwards_is_not_the_session() {
        let listeners = [0, 1].map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let [session, forwarded] = listeners.each_ref().map(|l| l.local_addr().unwrap());
        let connect = |to: SocketAddr| std::net::TcpStream::connect(to).unwrap();
        let session = (connect(session), session);
        let forwarded = (connect(forwarded), forwarded);
        let mut server = std::process::Command::new("sleep");
        server.arg("60").stdin(OwnedFd::from(session.0));
        let mut server = server.stdout(OwnedFd::from(forwarded.0)).spawn().unwrap();
        let found = of_process(server.id());
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(found.unwrap().unwrap().1, session.1);
    }

    #[test]
    fn lines_of_the_kernel() {
        let v4 = "   1: 0100007F:0016 0900000A:C350 01 00000000:00000000 02:000AF 00000000  0 0 4711 2 0";
        let expected = (("127.0.0.1:22", "10.0.0.9:50000"), 4711);
        let read = |line| of_line(line).map(|((a, b), i)| ((a.to_string(), b.to_string()), i));
        let ((local, remote), inode) = read(v4).unwrap();
        assert_eq!(((&*local, &*remote), inode), expected);
        let v6 = v4
            .replace("0100007F", "0000000000000000FFFF00000100007F")
            .replace("0900000A", "B80D0120000000000000000007000000");
        let ((local, remote), _) = read(&v6).unwrap();
        assert_eq!((&*local, &*remote), ("127.0.0.1:22", "[2001:db8::7]:50000"));
        assert_eq!(of_line(&v4.replace(" 01 ", " 0A ")), None);
        assert_eq!(of_stat("17 (a) b (c) S 4 17"), Some(("a) b (c", 4)));
        let ends = of_variable("10.0.0.9 50000 10.0.0.1 22").unwrap();
        assert_eq!(ends.0.to_string(), "10.0.0.1:22");
        assert_eq!(of_variable("10.0.0.9 50000 10.0.0.1"), None);
    }
}
