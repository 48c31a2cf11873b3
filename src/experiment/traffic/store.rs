// SPDX-License-Identifier: MIT OR Apache-2.0
//! A receiver of one TCP connection that stores its data, and passes it on: a node of a pipeline. Data
//! that has arrived and is not yet in the file waits in a queue; while that is full, nothing is read, so
//! the sender waits, too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::receive::WINDOW;
use super::transfer::connect;
use super::{Stored, TrafficError, failed};
use crate::host::now_ns;

/// Longest time until the next node of a pipeline listens.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// A receiver that stores its data in a file.
#[derive(Debug, Clone)]
pub struct Store {
    /// TCP port, on all IPv4 addresses.
    pub port: u16,
    /// File to create.
    pub file: PathBuf,
    /// HOST:PORT that receives the same data; `None`: it is only stored.
    pub to: Option<String>,
    /// Send buffer of that connection, bytes.
    pub window: usize,
    /// Size of the queue, bytes.
    pub memory: usize,
    /// Data of a write, bytes.
    pub block: usize,
    /// Number of concurrent writers.
    pub writers: usize,
    /// Whether a write ends only when the disk has it (O_DSYNC).
    pub sync: bool,
    /// Whether the file loses its name at once, so that it ends with the process.
    pub unnamed: bool,
    /// Highest rate of the writes, bit/s; `None`: as fast as possible.
    pub rate: Option<u64>,
}

/// A block of the file.
struct Block {
    /// Position in the file.
    at: u64,
    /// When the first byte of the file arrived.
    begin_ns: u64,
    data: Vec<u8>,
}

impl Store {
    /// Stores the data of the first connection until its sender closes it.
    ///
    /// # Errors
    /// The queue is smaller than a block, the file exists, a port is taken, or the kernel returns an
    /// error.
    pub fn run(&self) -> Result<Stored, TrafficError> {
        if self.block == 0 || self.writers == 0 || self.memory < self.block {
            return Err(TrafficError::Usage(format!(
                "a queue of {} bytes for blocks of {} bytes and {} writers: use one writer and one block at least",
                self.memory, self.block, self.writers
            )));
        }
        let path = self.file.display().to_string();
        let mut open = OpenOptions::new();
        open.write(true).create_new(true);
        open.custom_flags(if self.sync { libc::O_DSYNC } else { 0 });
        let file = open.open(&self.file).map_err(failed(&path))?;
        if self.unnamed {
            fs::remove_file(&self.file).map_err(failed(&path))?;
        }
        let port = format!("TCP port {}", self.port);
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, self.port));
        let listener = listener.map_err(failed(&port))?;
        set_socket_recv_buffer_size(&listener, WINDOW)
            .map_err(|e| failed("the receive buffer")(e.into()))?;
        let next = self.to.as_deref().map(|to| self.next(to)).transpose()?;
        let (stream, _) = listener.accept().map_err(failed(&port))?;
        self.pass(&file, stream, next)
    }

    /// Stores the data of a connection in this file.
    fn pass(
        &self,
        file: &File,
        stream: TcpStream,
        next: Option<TcpStream>,
    ) -> Result<Stored, TrafficError> {
        let (queue, blocks) = sync_channel(self.memory / self.block);
        // It ends with the writers: the reader does not wait for one that has failed.
        let blocks = Arc::new(Mutex::new(blocks));
        thread::scope(|scope| {
            let writers: Vec<_> = std::iter::repeat_n(blocks, self.writers)
                .map(|blocks| scope.spawn(move || self.write(file, &blocks)))
                .collect();
            let received = self.receive(stream, next, queue);
            for writer in writers {
                let written = (writer.join()).unwrap_or_else(|_| Err(ErrorKind::Other.into()));
                written.map_err(failed(self.file.display().to_string()))?;
            }
            let mut stored = received.map_err(failed(format!("TCP port {}", self.port)))?;
            stored.stored_ns = now_ns();
            Ok(stored)
        })
    }

    /// Connects to a receiver that may start a little later.
    fn next(&self, to: &str) -> Result<TcpStream, TrafficError> {
        let start = Instant::now();
        loop {
            match connect(to, self.window) {
                Err(TrafficError::System { error, .. })
                    if error.kind() == ErrorKind::ConnectionRefused
                        && start.elapsed() < STARTS_WITHIN =>
                {
                    thread::sleep(STARTS_WITHIN / 500);
                }
                connected => return connected,
            }
        }
    }

    /// Ends without an error when a writer has failed: that one has the reason.
    fn receive(
        &self,
        mut stream: TcpStream,
        mut next: Option<TcpStream>,
        queue: SyncSender<Block>,
    ) -> io::Result<Stored> {
        let mut stored = Stored {
            port: self.port,
            memory: (self.memory / self.block * self.block) as u64,
            ..Stored::default()
        };
        let mut data = Vec::with_capacity(self.block);
        loop {
            let have = data.len();
            data.resize(self.block, 0);
            let read = match stream.read(&mut data[have..]) {
                Err(e) if e.kind() == ErrorKind::Interrupted => 0,
                Ok(0) => {
                    data.truncate(have);
                    break;
                }
                read => read?,
            };
            data.truncate(have + read);
            stored.last_ns = now_ns();
            if stored.bytes == 0 {
                stored.first_ns = stored.last_ns;
            }
            if let Some(next) = &mut next {
                next.write_all(&data[have..])?;
            }
            stored.bytes += read as u64;
            if data.len() == self.block && !self.push(&mut data, &mut stored, &queue) {
                break;
            }
        }
        self.push(&mut data, &mut stored, &queue);
        Ok(stored)
    }

    /// Returns whether a writer will take it.
    fn push(&self, data: &mut Vec<u8>, stored: &mut Stored, queue: &SyncSender<Block>) -> bool {
        let block = Block {
            at: stored.bytes - data.len() as u64,
            begin_ns: stored.first_ns,
            data: std::mem::replace(data, Vec::with_capacity(self.block)),
        };
        match queue.try_send(block) {
            Ok(()) => true,
            Err(TrySendError::Disconnected(_)) => false,
            Err(TrySendError::Full(block)) => {
                if stored.full_ns.is_none() {
                    (stored.full_ns, stored.full_bytes) = (Some(now_ns()), stored.bytes);
                }
                queue.send(block).is_ok()
            }
        }
    }

    fn write(&self, file: &File, blocks: &Mutex<Receiver<Block>>) -> io::Result<()> {
        loop {
            let next = blocks.lock().map(|blocks| blocks.recv());
            let Ok(Ok(block)) = next else {
                return Ok(());
            };
            if let Some(rate) = self.rate {
                let after = u128::from(block.at) * 8_000_000_000 / u128::from(rate.max(1));
                let due = u128::from(block.begin_ns) + after;
                let wait = due.saturating_sub(now_ns().into());
                thread::sleep(Duration::from_nanos(u64::try_from(wait).unwrap_or(0)));
            }
            file.write_all_at(&block.data, block.at)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Data, Transfer, transfer};
    use super::*;
    use crate::host::random;

    fn free_port() -> u16 {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    }

    /// A folder of a test; deleted with the value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("emud-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn store(&self, name: &str) -> Store {
            Store {
                port: free_port(),
                file: self.0.join(name),
                to: None,
                window: 32_768,
                memory: 1 << 20,
                block: 10_000,
                writers: 1,
                sync: false,
                unnamed: false,
                rate: None,
            }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Sends the file to the first of them, when all of them listen.
    fn pass(file: PathBuf, stores: Vec<Store>) -> Vec<Stored> {
        let to = format!("127.0.0.1:{}", stores[0].port);
        let ports: Vec<u16> = stores.iter().map(|store| store.port).collect();
        let threads: Vec<_> = (stores.into_iter())
            .map(|store| thread::spawn(move || store.run().unwrap()))
            .collect();
        let listens = |port: &u16| {
            let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
            sockets.contains(&format!(":{port:04X} 00000000:0000 0A"))
        };
        while !ports.iter().all(listens) {
            thread::sleep(Duration::from_millis(5));
        }
        let sent = transfer(&Transfer {
            to,
            data: Data::File(file),
            window: 131_072,
        });
        let sent = sent.unwrap();
        let stored: Vec<_> = (threads.into_iter())
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(stored.iter().all(|stored| stored.bytes == sent.bytes));
        stored
    }

    #[test]
    fn a_pipeline_stores_the_file_at_each_node() {
        let folder = Folder::new("pipeline");
        let data: Vec<u8> = (0..8).flat_map(|_| random::<9001>().unwrap()).collect();
        let file = folder.0.join("file");
        fs::write(&file, &data).unwrap();
        let last = Store {
            writers: 3,
            ..folder.store("last")
        };
        let first = Store {
            to: Some(format!("127.0.0.1:{}", last.port)),
            ..folder.store("first")
        };
        for (stored, name) in pass(file, vec![first, last]).iter().zip(["first", "last"]) {
            assert_eq!(stored.bytes, data.len() as u64);
            assert_eq!(stored.full_ns, None);
            assert!(stored.first_ns <= stored.last_ns && stored.last_ns <= stored.stored_ns);
            assert!(fs::read(folder.0.join(name)).unwrap() == data, "{name}");
        }
    }

    /// 300 kB wait for a writer of 1 MB/s and 100 kB of memory: full at once, and 300 ms in all.
    #[test]
    fn a_full_queue_stops_the_sender() {
        let folder = Folder::new("full");
        let file = folder.0.join("file");
        fs::write(&file, vec![7; 300_000]).unwrap();
        let store = Store {
            memory: 105_000,
            rate: Some(8_000_000),
            unnamed: true,
            ..folder.store("copy")
        };
        let stored = pass(file, vec![store]).remove(0);
        assert!(!folder.0.join("copy").exists());
        assert_eq!(stored.memory, 100_000);
        let full = stored.full_ns.unwrap();
        // The queue, a block at the writer and one that waits for room.
        assert!(
            (110_000..=300_000).contains(&stored.full_bytes),
            "{stored:?}"
        );
        assert!(full >= stored.first_ns && full <= stored.last_ns);
        let span = stored.stored_ns - stored.first_ns;
        assert!(span >= 290_000_000, "{span}");
    }

    /// As with a full disk: the data is more than the queue takes.
    #[test]
    fn a_failed_write_ends_the_transfer() {
        let folder = Folder::new("unwritable");
        let store = Store {
            memory: 20_000,
            ..folder.store("copy")
        };
        fs::write(&store.file, "").unwrap();
        let file = File::open(&store.file).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        // It has an error, too, when the receiver gives up.
        thread::spawn(move || sender.write_all(&vec![7; 500_000]));
        let (done, ended) = std::sync::mpsc::channel();
        thread::spawn(move || done.send(store.pass(&file, stream, None)));
        let stored = ended.recv_timeout(Duration::from_secs(60));
        let error = stored.expect("it waits for a writer that is no more");
        let error = error.unwrap_err().to_string();
        assert!(error.contains("copy: Bad file descriptor"), "{error}");
    }

    #[test]
    fn what_cannot_be_is_said() {
        let folder = Folder::new("store-rejected");
        let small = Store {
            memory: 9_999,
            ..folder.store("small")
        };
        assert_eq!(small.run().unwrap_err().exit_code(), 64);
        fs::write(folder.0.join("there"), "x").unwrap();
        let error = folder.store("there").run().unwrap_err().to_string();
        assert!(error.contains("there: File exists"), "{error}");
    }
}
