// SPDX-License-Identifier: MIT OR Apache-2.0
//! A member of etcd that answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Status and body.
pub type Answer = (&'static str, &'static str);

/// A member with an answer for each request by its number and first line, and how many it has had.
/// Without an answer the connection ends.
pub fn answering(
    mut answer: impl FnMut(usize, &str) -> Option<Answer> + Send + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let first = read(&stream);
            if let Some((status, text)) = answer(count.fetch_add(1, Ordering::SeqCst), &first) {
                let len = text.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\n\r\n");
                stream.write_all((head + text).as_bytes()).unwrap();
            }
        }
    });
    (url, requests)
}

/// Reads a request with its body. Returns its first line.
fn read(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut bytes = 0;
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(len) = line.to_lowercase().strip_prefix("content-length:") {
            bytes = len.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; bytes]).unwrap();
    first
}
