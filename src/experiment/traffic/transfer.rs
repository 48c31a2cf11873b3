// SPDX-License-Identifier: MIT OR Apache-2.0
//! One greedy TCP flow, observed by its sender.

use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_congestion};

use super::{Times, TrafficError, Transferred, failed};

/// Interval of the samples.
const SAMPLE: Duration = Duration::from_millis(10);
/// The one of the published experiments, and the only one that every kernel has.
const CONGESTION: &str = "reno";

/// What to transfer.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// HOST:PORT.
    pub to: String,
    /// How long to send.
    pub duration: Duration,
    /// Data in flight at most, bytes.
    pub window: usize,
}

/// Sends for this time with TCP Reno.
///
/// # Errors
/// No connection, or the kernel returns an error.
pub fn transfer(transfer: &Transfer) -> Result<Transferred, TrafficError> {
    let to = &transfer.to;
    let mut stream = TcpStream::connect(to).map_err(failed(to))?;
    let port = stream.peer_addr().map_err(failed(to))?.port();
    set_tcp_congestion(&stream, CONGESTION).map_err(|e| failed(CONGESTION)(e.into()))?;
    set_socket_send_buffer_size(&stream, transfer.window)
        .map_err(|e| failed("the send buffer")(e.into()))?;
    stream.set_nonblocking(true).map_err(failed("a socket"))?;
    let start = Instant::now();
    let mut rtt = Times::default();
    let mut next = SAMPLE;
    let data = vec![0; 16 << 10];
    let mut info = tcp_info(&stream).map_err(failed("TCP_INFO"))?;
    while start.elapsed() < transfer.duration {
        loop {
            match stream.write(&data) {
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(to)(e)),
            }
            if start.elapsed() >= next {
                break;
            }
        }
        if let Some(rest) = next.checked_sub(start.elapsed()) {
            thread::sleep(rest.min(SAMPLE / 10));
            continue;
        }
        next += SAMPLE;
        info = tcp_info(&stream).map_err(failed("TCP_INFO"))?;
        rtt.add(u64::from(info.tcpi_rtt) * 1_000);
    }
    let duration_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    // What is in flight is not transferred any more.
    let _ = stream.shutdown(Shutdown::Both);
    Ok(Transferred {
        port,
        bytes: info.tcpi_bytes_acked,
        duration_ns,
        rtt_ns: rtt.figures(),
        retransmissions: info.tcpi_total_retrans.into(),
    })
}

/// The first fields of the kernel's `struct tcp_info`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct TcpInfo {
    bytes: [u8; 8],
    before: [u32; 15],
    tcpi_rtt: u32,
    between: [u32; 7],
    tcpi_total_retrans: u32,
    rates: [u64; 2],
    tcpi_bytes_acked: u64,
}

fn tcp_info(stream: &TcpStream) -> io::Result<TcpInfo> {
    // SAFETY: integers only, for which zero is valid.
    let mut info: TcpInfo = unsafe { std::mem::zeroed() };
    let mut len = size_of::<TcpInfo>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes into `info`.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            std::ptr::from_mut(&mut info).cast(),
            &mut len,
        )
    };
    match done {
        0 => Ok(info),
        _ => Err(io::Error::last_os_error()),
    }
}
