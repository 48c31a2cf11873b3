// SPDX-License-Identifier: MIT OR Apache-2.0

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use emud::fleet::FleetError;
use emud::fleet::controller::block_on;
use emud::fleet::etcd::{Access, Client};
use support::etcd::{Answer, answering};

/// A member of etcd that carries out every transaction, but answers only from a number of them on; and
/// how many requests it has.
fn member(first: usize) -> (String, Arc<AtomicUsize>) {
    answering(move |n, _| (n >= first).then_some(DONE))
}

const DONE: Answer = ("200 OK", "{\"succeeded\":true}");

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
        let (url, _) = answering(move |_, _| Some(("400 Bad Request", text)));
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
        let (url, requests) = answering(move |n, _| answers.get(n).copied());
        let access = Access {
            urls: vec![url],
            user: Some(("emud".to_owned(), "second".to_owned())),
            ..Access::default()
        };
        assert!(block_on(Client::new(&access).unwrap().txn(&[], &[])).unwrap());
        assert_eq!(requests.load(Ordering::SeqCst), 4);
    }
}
