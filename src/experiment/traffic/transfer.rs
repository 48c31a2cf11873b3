// SPDX-License-Identifier: MIT OR Apache-2.0
//! One greedy TCP flow, observed by its sender.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_congestion};

use super::{Times, TrafficError, Transferred, failed};
use crate::host::nanoseconds;

/// Interval of the samples.
const SAMPLE: Duration = Duration::from_millis(10);
/// The one of the published experiments, and the only one that every kernel has.
const CONGESTION: &str = "reno";

/// A transfer over TCP.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// HOST:PORT of the receiver.
    pub to: String,
    /// Data to send: zeros for a time, or a file.
    pub data: Data,
    /// Data in flight at most, bytes.
    pub window: usize,
}

/// The data of a transfer.
#[derive(Debug, Clone)]
pub enum Data {
    /// Zeros, for this time.
    For(Duration),
    /// A file; the transfer ends when the receiver closes the connection.
    File(PathBuf),
}

/// Connects with TCP Reno and this send buffer.
pub(super) fn connect(to: &str, window: usize) -> Result<TcpStream, TrafficError> {
    let stream = TcpStream::connect(to).map_err(failed(to))?;
    set_tcp_congestion(&stream, CONGESTION).map_err(|e| failed(CONGESTION)(e.into()))?;
    set_socket_send_buffer_size(&stream, window)
        .map_err(|e| failed("the send buffer")(e.into()))?;
    Ok(stream)
}

/// Sends with TCP Reno.
///
/// # Errors
/// No connection, the file cannot be read, or the kernel returns an error.
pub fn transfer(transfer: &Transfer) -> Result<Transferred, TrafficError> {
    let to = &transfer.to;
    let mut source = Source::open(&transfer.data)?;
    let mut stream = connect(to, transfer.window)?;
    let port = stream.peer_addr().map_err(failed(to))?.port();
    stream.set_nonblocking(true).map_err(failed("a socket"))?;
    let start = Instant::now();
    let mut rtt = Times::default();
    let mut next = SAMPLE;
    let info = |stream: &TcpStream| tcp_info(stream).map_err(failed("TCP_INFO"));
    // The SYN is acknowledged as a byte.
    let before = info(&stream)?.tcpi_bytes_acked;
    while !source.is_over(&mut stream, start).map_err(failed(to))? {
        loop {
            let data = source.data()?;
            if data.is_empty() {
                break;
            }
            match stream.write(data) {
                Ok(sent) => source.begin += sent,
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
        rtt.add(info(&stream)?.rtt_ns());
    }
    let duration_ns = nanoseconds(start.elapsed());
    // One that is shorter than an interval has no other.
    let end = info(&stream)?;
    rtt.add(end.rtt_ns());
    // What is in flight is not transferred any more.
    let _ = stream.shutdown(Shutdown::Both);
    let figures = rtt.figures();
    let baseline = end.min_rtt_ns();
    let delay = (figures.zip(baseline)).map(|([_, mean, _], least)| buffer_delay(mean, least));
    Ok(Transferred {
        port,
        bytes: (source.file_bytes()).unwrap_or(end.tcpi_bytes_acked.saturating_sub(before)),
        duration_ns,
        rtt_ns: figures,
        retransmissions: end.tcpi_total_retrans.into(),
        baseline_rtt_ns: baseline,
        buffer_delay_percent: delay,
        efficiency_percent: efficiency(end.tcpi_bytes_sent, end.tcpi_bytes_retrans),
    })
}

/// Returns the buffer delay in % (RFC 6349, section 4.3). The mean is of smoothed round trips, so it may be below the
/// baseline by rounding.
fn buffer_delay(mean_ns: u64, baseline_ns: u64) -> f64 {
    100.0 * mean_ns.saturating_sub(baseline_ns) as f64 / baseline_ns as f64
}

/// Returns the TCP efficiency in % (RFC 6349, section 4.2); `None`: nothing was sent, or the kernel does not count it.
fn efficiency(sent: u64, again: u64) -> Option<f64> {
    (sent > 0).then(|| 100.0 * sent.saturating_sub(again) as f64 / sent as f64)
}

/// Where the data comes from.
struct Source {
    /// `None`: zeros.
    file: Option<File>,
    duration: Duration,
    data: Vec<u8>,
    /// Range of `data` that is not sent yet.
    begin: usize,
    end: usize,
    /// Read from the file.
    total: u64,
    /// The end of the file was read.
    ended: bool,
    /// The receiver knows that.
    shut: bool,
}

impl Source {
    fn open(data: &Data) -> Result<Self, TrafficError> {
        let what = |path: &Path| failed(path.display().to_string());
        let (file, duration) = match data {
            Data::For(duration) => (None, *duration),
            Data::File(path) => (Some(File::open(path).map_err(what(path))?), Duration::ZERO),
        };
        Ok(Self {
            file,
            duration,
            data: vec![0; 16 << 10],
            begin: 0,
            end: 0,
            total: 0,
            ended: false,
            shut: false,
        })
    }

    /// Returns what is to be sent next; nothing at the end of the file.
    fn data(&mut self) -> Result<&[u8], TrafficError> {
        let Some(file) = &mut self.file else {
            return Ok(&self.data);
        };
        if self.begin == self.end && !self.ended {
            (self.begin, self.end) = (0, file.read(&mut self.data).map_err(failed("the file"))?);
            self.total += self.end as u64;
            self.ended = self.end == 0;
        }
        Ok(&self.data[self.begin..self.end])
    }

    /// Returns whether the time is over, or the receiver has the whole file.
    fn is_over(&mut self, stream: &mut TcpStream, start: Instant) -> io::Result<bool> {
        if self.file.is_none() {
            return Ok(start.elapsed() >= self.duration);
        }
        if self.ended && !self.shut {
            self.shut = true;
            stream.shutdown(Shutdown::Write)?;
        }
        match stream.read(&mut [0]) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
            Ok(_) if !self.ended => Err(ErrorKind::ConnectionAborted.into()),
            read => read.map(|_| true),
        }
    }

    fn file_bytes(&self) -> Option<u64> {
        self.file.is_some().then_some(self.total)
    }
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
    tcpi_bytes_received: u64,
    segments: [u32; 3],
    tcpi_min_rtt: u32,
    data_segments: [u32; 2],
    delivery: [u64; 4],
    delivered: [u32; 2],
    tcpi_bytes_sent: u64,
    tcpi_bytes_retrans: u64,
}

impl TcpInfo {
    /// Returns the shortest round trip in ns; `None`: the kernel has not measured any.
    fn min_rtt_ns(&self) -> Option<u64> {
        let known = !matches!(self.tcpi_min_rtt, 0 | u32::MAX);
        known.then_some(u64::from(self.tcpi_min_rtt) * 1_000)
    }

    fn rtt_ns(&self) -> u64 {
        u64::from(self.tcpi_rtt) * 1_000
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Offsets of include/uapi/linux/tcp.h.
    #[test]
    fn fields_are_where_the_kernel_writes_them() {
        let at = [
            offset_of!(TcpInfo, tcpi_rtt),
            offset_of!(TcpInfo, tcpi_total_retrans),
            offset_of!(TcpInfo, tcpi_bytes_acked),
            offset_of!(TcpInfo, tcpi_min_rtt),
            offset_of!(TcpInfo, tcpi_bytes_sent),
            offset_of!(TcpInfo, tcpi_bytes_retrans),
        ];
        assert_eq!(at, [68, 100, 120, 148, 200, 208]);
    }

    /// The examples of sections 4.2 and 4.3: 100,000 bytes of which 2,000 are sent again; 25 ms that become 32.
    #[test]
    fn figures_are_those_of_the_rfc() {
        assert_eq!(
            efficiency(102_000, 2_000).map(|share| share.round()),
            Some(98.0)
        );
        assert_eq!(efficiency(0, 0), None);
        assert_eq!(buffer_delay(32_000_000, 25_000_000), 28.0);
        assert_eq!(buffer_delay(24_000_000, 25_000_000), 0.0);
    }
}
