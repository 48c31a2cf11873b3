// SPDX-License-Identifier: MIT OR Apache-2.0
//! External validators: JSON Schema and HTML by Python's modules.

use std::collections::HashSet;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// Prints a line for each problem of the schemas named. Done once for each of them: for a large one it
/// takes longer than the rest of a check.
const SCHEMAS: &str = r#"
import json, sys
from jsonschema import Draft202012Validator
meta = Draft202012Validator(Draft202012Validator.META_SCHEMA)
for name in sys.argv[1:]:
    for e in meta.iter_errors(json.load(open(name))):
        print(name, e.json_path, e.message)
"#;

/// Of an array of documents: an array with the first mistake of each, "" for none.
const ALL: &str = r#"
import json, sys
from jsonschema import Draft202012Validator
check = Draft202012Validator(json.load(open(sys.argv[1])))
wrong = lambda one: next((e.json_path + " " + e.message for e in check.iter_errors(one)), "")
print(json.dumps([wrong(one) for one in json.load(sys.stdin)]))
"#;

/// Of an array of lines: an array with the first mistake of each, "" for none.
const LINES: &str = r##"
import json, sys
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
root = Draft202012Validator(schema)
types = [one["$ref"].split("/")[-1] for one in schema["oneOf"]]
# Only the definition of its type can accept a line, and says more than "none of them".
for name in types:
    definition = schema["$defs"][name]
    assert definition["properties"]["type"]["const"] == name and "type" in definition["required"], name
of = {name: Draft202012Validator({"$ref": "#/$defs/" + name, "$defs": schema["$defs"]}) for name in types}
accepted = set()
def wrong(line):
    name = line["type"]
    found = next((e.json_path + " " + e.message for e in of[name].iter_errors(line)), "")
    # The root tries all definitions: once for each type.
    if not found and name not in accepted:
        accepted.add(name)
        if not root.is_valid(line):
            return "the root and the definition differ"
    return found
print(json.dumps([wrong(line) for line in json.load(sys.stdin)]))
"##;

/// Checks that every element is closed in the right position; nothing is loaded or run.
const HTML: &str = r#"
import sys
from html.parser import HTMLParser
VOID = {"meta", "br", "hr", "link", "img", "input"}
class Checker(HTMLParser):
    open = []
    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") or name.startswith("on"):
                print(self.getpos(), tag, name, value)
        if tag in ("script", "iframe", "object", "link", "img"):
            print(self.getpos(), "has", tag)
        if tag not in VOID:
            self.open.append(tag)
    def handle_startendtag(self, tag, attributes):
        pass
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            print(self.getpos(), "closes", tag)
text = sys.stdin.read()
checker = Checker()
checker.feed(text)
checker.close()
for tag in checker.open:
    print("open at the end:", tag)
if any(ord(c) < 32 and c not in "\n\t" for c in text):
    print("a control character")
"#;

/// Returns what makes a file no JSON Schema, of all of them.
pub fn schema_mistakes(files: &[String]) -> String {
    let files = files.iter().map(String::as_str);
    python(
        &[&["-c", SCHEMAS], files.collect::<Vec<_>>().as_slice()].concat(),
        "",
    )
}

/// Returns the first mistake according to docs/VERB.schema.json, "" for none.
pub fn json_mistakes(verb: &str, document: &str) -> String {
    all_mistakes(verb, &[serde_json::from_str(document).unwrap()]).remove(0)
}

/// The same for each of many documents, in one go.
pub fn all_mistakes(verb: &str, documents: &[Value]) -> Vec<String> {
    let text = serde_json::to_string(documents).unwrap();
    let said = python(&["-c", ALL, &schema(verb)], &text);
    serde_json::from_str(&said).unwrap()
}

/// Returns the document with one mistake each: a value of another type, a key removed, a key added,
/// everywhere below `place`. Keys of the objects in `maps` are free, so they are not removed.
pub fn spoilt(document: &Value, place: &str, maps: &[&str]) -> Vec<(String, Value)> {
    let mut wrong = Vec::new();
    for at in places(document.pointer(place).unwrap(), place.to_owned()) {
        let mut spoil = |what: &str, change: &dyn Fn(&mut Value)| {
            let mut document = document.clone();
            change(document.pointer_mut(&at).unwrap());
            wrong.push((format!("{at} {what}"), document));
        };
        let another = match document.pointer(&at).unwrap() {
            Value::String(_) => json!(0.5),
            Value::Null => json!({ "wrong": [] }),
            _ => json!("wrong"),
        };
        spoil("of another type", &|value| *value = another.clone());
        if let Some(Value::Object(object)) = document.pointer(&at) {
            spoil("with more", &|value| value["more"] = json!({ "wrong": [] }));
            let is_map = maps.iter().any(|map| at.ends_with(&format!("/{map}")));
            for key in object.keys().filter(|_| !is_map) {
                spoil(&format!("without {key}"), &|value| {
                    value.as_object_mut().unwrap().remove(key);
                });
            }
        }
    }
    wrong
}

/// Pointers to all values in a value; of an array's items with the same keys and types, to those in the first.
fn places(value: &Value, at: String) -> Vec<String> {
    let below = |(key, value): (String, &Value)| places(value, format!("{at}/{key}"));
    let inner: Vec<_> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, v)| (key.clone(), v))
            .flat_map(below)
            .collect(),
        Value::Array(all) => {
            let mut shapes = HashSet::new();
            (0..)
                .map(|n: usize| n.to_string())
                .zip(all)
                .filter(|(_, item)| shapes.insert(shape(item)))
                .flat_map(below)
                .collect()
        }
        _ => vec![],
    };
    [vec![at], inner].concat()
}

/// Returns a value with each number, string and truth replaced by one of its type.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => (map.iter().map(|(key, v)| (key.clone(), shape(v)))).collect(),
        Value::Array(all) => all.iter().map(shape).collect(),
        Value::String(_) => json!(""),
        Value::Number(_) => json!(0),
        Value::Bool(_) => json!(false),
        Value::Null => json!(null),
    }
}

/// Checks that docs/VERB.schema.json rejects each of the documents.
pub fn assert_refused(verb: &str, wrong: Vec<(String, Value)>) {
    let (what, documents): (Vec<_>, Vec<_>) = wrong.into_iter().unzip();
    for (what, mistakes) in what.iter().zip(all_mistakes(verb, &documents)) {
        assert_ne!(mistakes, "", "{verb} {what}");
    }
}

/// Checks that the document matches docs/VERB.schema.json.
pub fn assert_valid(verb: &str, document: &Value) {
    let mistakes = all_mistakes(verb, std::slice::from_ref(document));
    assert_eq!(mistakes, [""], "{document:#}");
}

/// Returns the first mistake of each line of a log according to docs/log.schema.json, "" for none.
pub fn log_mistakes(lines: &[Value]) -> Vec<String> {
    let text = serde_json::to_string(lines).unwrap();
    let said = python(&["-c", LINES, &schema("log")], &text);
    serde_json::from_str(&said).unwrap()
}

/// Checks that every line matches docs/log.schema.json.
pub fn assert_valid_log(lines: &[Value]) {
    for (line, wrong) in lines.iter().zip(log_mistakes(lines)) {
        assert_eq!(wrong, "", "{line:#}");
    }
}

fn schema(verb: &str) -> String {
    let file = crate::root().join(format!("docs/{verb}.schema.json"));
    file.to_str().unwrap().to_owned()
}

pub fn html_mistakes(page: &str) -> String {
    python(&["-c", HTML], page)
}

/// Parsed as XML.
pub fn svg_mistakes(svg: &str) -> String {
    let program = "import sys, xml.dom.minidom as m\n\
                   try: m.parseString(sys.stdin.buffer.read())\n\
                   except Exception as e: print(e)";
    python(&["-c", program], svg)
}

fn python(arguments: &[&str], input: &str) -> String {
    // Debian's own Python: a different one on PATH does not see Debian's packages.
    let mut python = Command::new("/usr/bin/python3")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = python.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let out = python.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "the checker failed: {err}");
    String::from_utf8(out.stdout).unwrap()
}
