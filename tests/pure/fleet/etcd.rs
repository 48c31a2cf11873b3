// SPDX-License-Identifier: MIT OR Apache-2.0

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use emud::fleet::FleetError;
use emud::fleet::controller::block_on;
use emud::fleet::etcd::{Access, Client};

/// A member of etcd that carries out every transaction, but answers only from a number of them on; and
/// how many requests it has.
fn member(first: usize) -> (String, Arc<AtomicUsize>) {
    answering(move |n| (n >= first).then_some(DONE))
}

/// Status and body.
type Answer = (&'static str, &'static str);

const DONE: Answer = ("200 OK", "{\"succeeded\":true}");

/// A member with an answer for each request by its number, and how many it has had.
fn answering(
    answer: impl Fn(usize) -> Option<Answer> + Send + 'static,
) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            read(&stream);
            if let Some((status, text)) = answer(count.fetch_add(1, Ordering::SeqCst)) {
                let len = text.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\n\r\n");
                stream.write_all((head + text).as_bytes()).unwrap();
            }
        }
    });
    (url, requests)
}

/// A request with its body.
fn read(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut bytes = 0;
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
}

/// The start of a run has to be a later one when the next member is requested to write it.
#[test]
fn what_is_soon_out_of_date_goes_to_one_member() {
    let ((silent, lost), (other, done)) = (member(9), member(0));
    let access = Access {
        urls: vec![silent, other],
        ..Access::default()
    };
    let counts = || [&lost, &done].map(|count| count.load(Ordering::SeqCst));
    let client = Client::new(&access).unwrap();
    let once = || block_on(client.txn_once(&[], &[]));
    assert!(matches!(once(), Err(FleetError::Unreachable(_))));
    assert_eq!(counts(), [1, 0]);
    assert!(once().unwrap());
    assert_eq!(counts(), [1, 1]);
    // Any other request goes on.
    let client = Client::new(&access).unwrap();
    assert!(block_on(client.txn(&[], &[])).unwrap());
    assert_eq!(counts(), [2, 2]);
}

/// Neither of two members answers while they elect a leader. One member alone elects none.
#[test]
fn an_election_is_no_failure() {
    let (url, requests) = member(2);
    let access = |urls: &[&String]| Access {
        urls: urls.iter().map(|url| (*url).clone()).collect(),
        ..Access::default()
    };
    let client = Client::new(&access(&[&url])).unwrap();
    assert!(block_on(client.txn(&[], &[])).is_err());
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    let (other, _) = member(2);
    let client = Client::new(&access(&[&url, &other])).unwrap();
    assert!(block_on(client.txn(&[], &[])).unwrap());
}

/// As etcd 3.4 answers without a user, and with a wrong password.
#[test]
fn who_has_no_user_may_do_nothing() {
    for text in [
        "{\"error\":\"etcdserver: user name is empty\",\"code\":3}",
        "{\"error\":\"etcdserver: authentication failed, invalid user ID or password\",\"code\":3}",
    ] {
        let (url, _) = answering(move |_| Some(("400 Bad Request", text)));
        let access = Access {
            urls: vec![url],
            ..Access::default()
        };
        let error = block_on(Client::new(&access).unwrap().txn(&[], &[])).unwrap_err();
        assert_eq!(error.exit_code(), 77, "{error}");
        assert!(error.to_string().contains("--etcd-user"), "{error}");
    }
}

/// A member that begins again forgets who has logged in; and with tokens that are signed, a change of any
/// user makes them old.
#[test]
fn who_was_forgotten_logs_in_again() {
    for (status, text) in [
        (
            "401 Unauthorized",
            "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}",
        ),
        (
            "400 Bad Request",
            "{\"error\":\"etcdserver: revision of auth store is old\",\"code\":3}",
        ),
    ] {
        let token = ("200 OK", "{\"token\":\"t\"}");
        let answers = [token, (status, text), token, DONE];
        let (url, requests) = answering(move |n| answers.get(n).copied());
        let access = Access {
            urls: vec![url],
            user: Some(("emud".to_owned(), "second".to_owned())),
            ..Access::default()
        };
        assert!(block_on(Client::new(&access).unwrap().txn(&[], &[])).unwrap());
        assert_eq!(requests.load(Ordering::SeqCst), 4);
    }
}
