// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may do what.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use support::host::soon;
use support::runs::log;

use super::clean::ended;
use super::hosts::{HOSTS, Hosts, Setup, completed};

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
    completed(code, &text);
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

/// A user of etcd may use the keys of one fleet only; nobody else may use any.
pub fn only_as_a_user() {
    let mut hosts = Hosts::new(1);
    soon("etcd answers", || hosts.etcdctl("endpoint health").0);
    let etcdctl = |words: &str| {
        let (done, text) = hosts.etcdctl(words);
        assert!(done, "{words}: {text}");
    };
    for words in [
        "user add root:first",
        "user grant-role root root",
        "role add fleet",
        "role grant-permission fleet --prefix=true readwrite /emud/default/",
        "user add emud:second",
        "user grant-role emud fleet",
        "auth enable",
    ] {
        etcdctl(words);
    }
    let [right, wrong] =
        ["second", "first"].map(|password| hosts.folder.file(password, &format!("{password}\n")));
    let of = |file: &str| ["--etcd-user", "emud", "--etcd-password", file].map(str::to_owned);
    // Neither without a user nor with the password of another one.
    let scenario = hosts.folder.file("scenario.toml", PROGRAM);
    for more in [vec![], of(&wrong).to_vec()] {
        hosts.more = more;
        for words in [&["status"][..], &["run", &scenario], &["stop"]] {
            let output = hosts.fleet(words).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(77), "{words:?}: {said}");
        }
    }
    hosts.more = of(&right).to_vec();
    let other = hosts
        .fleet(&["status", "--fleet", "other"])
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(77));
    let hosts = hosts.agents(&[]);
    let (code, text) = hosts.run(PROGRAM, &[]);
    completed(code, &text);
    // In the middle of a run etcd forgets who has logged in, as a member does that begins again.
    let long = PROGRAM.replace("id -u;", "sleep 12;")
        + "[node.three]\nhost = \"b\"\n[link.m]\nbetween = [\"two\", \"three\"]\n\
           profile.link.delay = \"5ms\"\n";
    let mut run = hosts.start(&long);
    for words in ["--user root:first auth disable", "auth enable"] {
        let (done, text) = hosts.etcdctl(words);
        assert!(done, "{words}: {text}");
    }
    let (code, text) = ended(&hosts, &mut run);
    completed(code, &text);
    hosts.all_clean(&HOSTS);
}

pub fn programs_are_not_root() {
    for (arguments, root) in [(&[][..], false), (&["--allow-root"][..], true)] {
        let hosts = Hosts::new(1).agents(arguments);
        let (code, text) = hosts.run(PROGRAM, &[]);
        completed(code, &text);
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

/// As the programs, all commands of a node run as nobody.
pub fn other_commands_are_not_root() {
    let hosts = Hosts::new(1).agents(&[]);
    let files = ["prepare", "ready", "clean-up"].map(|name| {
        let path = hosts.folder.file(name, "");
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        path
    });
    let [prepare, ready, clean_up] = &files;
    let text = format!(
        "[node.one]\nhost = \"a\"\nservice = true\ncommand = \"sleep 60\"\n\
         prepare = \"id -u >>{prepare}\"\nready = \"id -u >>{ready}\"\nclean-up = \"id -u >>{clean_up}\"\n\
         [node.two]\nhost = \"c\"\ncommand = \"true\"\n[link.l]\nbetween = [\"one\", \"two\"]\n\
         profile.link.delay = \"5ms\"\n"
    );
    let (code, said) = hosts.run(&text, &[]);
    completed(code, &said);
    for path in files {
        let users = fs::read_to_string(&path).unwrap();
        assert!(!users.is_empty(), "{path}");
        assert!(users.lines().all(|user| user == "65534"), "{path}: {users}");
    }
    hosts.all_clean(&HOSTS);
}
