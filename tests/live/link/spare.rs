// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--spare`: traffic that passes untouched.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;

use support::lab::{Engine, Lab, emud_path, inside, run, sh};

const NOTHING: &str = "[link]\nloss = \"100%\"\n";

/// An SSH session, by its server's process: a shell of this name with a connection.
const SESSION: &str = "exec 3<>/dev/tcp/10.77.0.2/7722
\"$EMUD\" attach va --engine \"$ENGINE\" -p \"$PROFILE\" --spare ssh >&2
echo through >&3
read -t 20 -r answer <&3
echo \"$answer\"";

pub fn networks(engine: Engine) {
    let lab = Lab::new();
    let lost = |lab: &Lab| {
        lab.ping("-q -c 2 -i 0.1 -W 1")
            .contains(" 100% packet loss")
    };
    lab.attach(
        engine,
        NOTHING,
        &["--spare", "10.99.0.0/16", "--spare", "fd00::/8"],
    );
    assert!(lost(&lab), "another network is spared");
    lab.detach();
    // The far end, and that of the interface, as of a router or of the host's end of a veth.
    for end in ["10.77.0.2", "10.77.0.1"] {
        lab.attach(engine, NOTHING, &["--spare", end]);
        assert!(!lost(&lab), "{end} is not spared");
        let rules = "rule=[{match={protocol=\"udp\"},link=\"none\"}]";
        for set in [rules, "rule=none"] {
            lab.emud(&["set", "va", set]).expect(0);
            assert!(!lost(&lab), "{end} is not spared after {set}");
        }
        lab.detach();
    }
    let said = lab
        .try_attach(engine, NOTHING, &["--spare", "10.77"])
        .expect(64);
    assert!(said.err.contains("neither `ssh` nor"), "{}", said.err);
}

pub fn session(engine: Engine) {
    let lab = Lab::new();
    let profile = lab.profile(NOTHING);
    let emud = |variable: Option<&str>| {
        let mut command = Command::new(emud_path());
        command.args([
            "--netns", &lab.a, "attach", "va", "-p", &profile, "--spare", "ssh",
        ]);
        command.env_remove("SSH_CONNECTION");
        if let Some(variable) = variable {
            command.env("SSH_CONNECTION", variable);
        }
        run(&mut command)
    };
    let gone = emud(Some("10.0.0.9 1 10.0.0.1 22")).expect(66);
    assert!(gone.err.contains("no longer exists"), "{}", gone.err);

    let server = inside(&lab.b, || {
        let listener = TcpListener::bind("10.77.0.2:7722").expect("bind");
        let (mut stream, _) = listener.accept().expect("accept");
        let mut line = String::new();
        let reader = stream.try_clone().expect("clone");
        BufReader::new(reader).read_line(&mut line).expect("read");
        stream
            .write_all(format!("{}and back\n", line.replace('\n', " ")).as_bytes())
            .expect("write");
    });
    let folder = std::path::Path::new(&profile).parent().unwrap();
    let sshd = folder.join("sshd").display().to_string();
    sh(&format!("cp \"$(command -v bash)\" {sshd}"));
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.a, &sshd, "-c", SESSION]);
    command
        .env("EMUD", emud_path())
        .env("ENGINE", engine.name())
        .env("PROFILE", &profile);
    command.env_remove("SSH_CONNECTION");
    let said = run(&mut command);
    assert_eq!(
        (said.code, &*said.out),
        (0, "through and back\n"),
        "{}",
        said.err
    );
    server.join().expect("server");
    assert!(
        lab.ping("-q -c 2 -i 0.1 -W 1")
            .contains(" 100% packet loss")
    );
    lab.detach();
}
