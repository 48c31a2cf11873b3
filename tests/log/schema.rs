// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/log.schema.json, and what it finds wrong.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Of an array of lines: an array with what is wrong with each, "" for nothing.
const VALIDATOR: &str = r##"
import json, sys
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
def wrong(line):
    # The definition of its type says more than "none of them".
    one = {"$ref": "#/$defs/" + line["type"], "$defs": schema["$defs"]}
    found = list(Draft202012Validator(one).iter_errors(line))
    if bool(found) == Draft202012Validator(schema).is_valid(line):
        return "the root and the definition differ"
    return "; ".join(e.json_path + " " + e.message for e in found)
print(json.dumps([wrong(line) for line in json.load(sys.stdin)]))
"##;

/// What is wrong with each line.
pub fn mistakes(lines: &[Value]) -> Vec<String> {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/log.schema.json");
    // Debian's own Python: another one on PATH does not see Debian's packages.
    let mut python = Command::new("/usr/bin/python3")
        .args(["-c", VALIDATOR, schema])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = serde_json::to_vec(lines).unwrap();
    python.stdin.take().unwrap().write_all(&text).unwrap();
    let out = python.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "the validator failed: {err}");
    serde_json::from_slice(&out.stdout).unwrap()
}

pub fn assert_valid(lines: &[Value]) {
    for (line, wrong) in lines.iter().zip(mistakes(lines)) {
        assert_eq!(wrong, "", "{line:#}");
    }
}
