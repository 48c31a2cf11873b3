// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may do what.

use std::fs;
use std::process::Command;

use support::runs::log;

use super::hosts::{HOSTS, Hosts, Setup};

const PROGRAM: &str = "[node.one]\nhost = \"a\"\ncommand = \"id -u; cat /proc/self/status | grep CapEff\"\n\
                       [node.two]\nhost = \"c\"\n[link.l]\nbetween = [\"one\", \"two\"]\n\
                       profile.link.delay = \"5ms\"\n";

fn openssl(folder: &str, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .output();
    let output = output.expect("openssl");
    assert!(
        output.status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// An authority, and a certificate for a name and an address.
fn certificates(folder: &str) {
    openssl(
        folder,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=ca \
         -keyout ca.key -out ca.pem",
    );
    fs::write(
        format!("{folder}/ext"),
        "subjectAltName=IP:192.0.2.101\nbasicConstraints=CA:FALSE\n",
    )
    .unwrap();
    for name in ["server", "client"] {
        openssl(
            folder,
            &format!(
                "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN={name} \
                 -keyout {name}.key -out {name}.csr"
            ),
        );
        openssl(
            folder,
            &format!(
                "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext \
                 -out {name}.pem"
            ),
        );
    }
}

pub fn only_with_a_certificate() {
    let folder = support::runs::Folder::new();
    let path = |name: &str| folder.path(name);
    certificates(&path(""));
    let etcd = [
        "--client-cert-auth".to_owned(),
        format!("--trusted-ca-file={}", path("ca.pem")),
        format!("--cert-file={}", path("server.pem")),
        format!("--key-file={}", path("server.key")),
    ];
    let mut hosts = Hosts::with(&Setup {
        etcd: &etcd,
        scheme: "https",
        ..Setup::default()
    });
    let ca = ["--ca".to_owned(), path("ca.pem")];
    let own = ["--cert", &path("client.pem"), "--key", &path("client.key")].map(str::to_owned);
    hosts.more = [&ca[..], &own[..]].concat();
    let mut hosts = hosts.agents(&[]);
    let (code, text) = hosts.run(PROGRAM, &[]);
    assert!([0, 3].contains(&code), "{text}");
    // Without a certificate neither the status can be read nor a plan be written.
    hosts.more = ca.to_vec();
    for words in [
        &["status"][..],
        &["run", &hosts.folder.path("scenario.toml")],
        &["stop"],
    ] {
        let output = hosts.fleet(words).output().unwrap();
        assert_eq!(output.status.code(), Some(69), "{words:?}");
    }
    let mut agent = hosts.agent_at("a", "d", &[]);
    std::thread::sleep(std::time::Duration::from_secs(3));
    agent.kill().unwrap();
    agent.wait().unwrap();
    hosts.more = [&ca[..], &own[..]].concat();
    let status = hosts.emud(&["status"]);
    assert!(!status.contains("\nd "), "{status}");
    // Of another authority.
    let other = support::runs::Folder::new();
    certificates(&other.path(""));
    hosts.more = [
        "--ca",
        &path("ca.pem"),
        "--cert",
        &other.path("client.pem"),
        "--key",
        &other.path("client.key"),
    ]
    .map(str::to_owned)
    .to_vec();
    let output = hosts.fleet(&["status"]).output().unwrap();
    assert_eq!(output.status.code(), Some(69));
}

pub fn programs_are_not_root() {
    for (arguments, root) in [(&[][..], false), (&["--allow-root"][..], true)] {
        let hosts = Hosts::new(1).agents(arguments);
        let (code, text) = hosts.run(PROGRAM, &[]);
        assert!([0, 3].contains(&code), "{text}");
        let lines = log(&hosts.folder.path("fleet.log"));
        let printed: Vec<_> = lines
            .iter()
            .filter_map(|line| line["text"].as_str())
            .collect();
        assert_eq!(printed.contains(&"0"), root, "{printed:?}");
        let none = printed.contains(&"CapEff:\t0000000000000000");
        assert_eq!(none, !root, "{printed:?}");
        hosts.all_clean(&HOSTS);
    }
}
