// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two network namespaces, `a` with `va` and `b` with `vb`, joined by a veth.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::site::unique;

pub struct Space {
    pub a: String,
    pub b: String,
}

impl Space {
    pub const B4: &str = "10.77.0.2";

    pub fn new() -> Self {
        let space = Self {
            a: unique("a"),
            b: unique("b"),
        };
        sh(&format!(
            "ip netns add {a}; ip netns add {b}
             ip link add va netns {a} type veth peer name vb netns {b}
             ip -n {a} addr add 10.77.0.1/24 dev va
             ip -n {b} addr add {b4}/24 dev vb
             ip -n {a} link set va up; ip -n {b} link set vb up",
            a = space.a,
            b = space.b,
            b4 = Self::B4,
        ));
        space
    }

    /// Runs emud in namespace `a` and returns the result.
    pub fn try_emud(&self, args: &[&str]) -> Output {
        let mut command = Command::new(support::emud_path());
        command.args(["--netns", &self.a]).args(args);
        command.stdin(Stdio::null()).output().unwrap()
    }

    pub fn emud(&self, args: &[&str]) {
        let out = self.try_emud(args);
        let err = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{args:?}: {err}");
    }

    pub fn attach(&self, profile: &str) {
        self.emud(&["attach", "va", "--profile", profile]);
    }

    pub fn attach_text(&self, profile: &str) {
        let file = self.file("profile.toml");
        std::fs::write(&file, profile).unwrap();
        self.attach(&file);
    }

    /// Returns the exit code, and the output of `--json`.
    pub fn verify(&self, args: &[&str]) -> (i32, Value) {
        let out = self.try_emud(&[&["verify", "va", "--json"], args].concat());
        let err = String::from_utf8_lossy(&out.stderr);
        let answer = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {err}"));
        (out.status.code().unwrap(), answer)
    }

    /// Returns a path that is deleted with the namespaces.
    pub fn file(&self, name: &str) -> String {
        let folder = std::env::temp_dir().join(&self.a);
        std::fs::create_dir_all(&folder).unwrap();
        folder.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // The holder ends with its TAP; no link may be attached any more.
        self.try_emud(&["detach", "va"]);
        for space in [&self.a, &self.b] {
            let _ = Command::new("ip").args(["netns", "del", space]).status();
        }
        let _ = std::fs::remove_dir_all(std::env::temp_dir().join(&self.a));
    }
}

pub fn sh(script: &str) {
    let status = Command::new("sh").args(["-ec", script]).status().unwrap();
    assert!(status.success(), "{script}");
}

/// Checks the answer against docs/verify.schema.json.
pub fn assert_valid(answer: &Value) {
    support::validator::assert_valid("verify", answer);
}
