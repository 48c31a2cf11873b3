// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schemas of docs/, derived from the types that are printed.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::catalogue::{CATALOGUE_SCHEMA, Catalogue};
use crate::datapath::doctor::{DOCTOR_SCHEMA, Examination};
use crate::datapath::show::list::{LIST_SCHEMA, List};
use crate::datapath::show::report::{SHOW_SCHEMA, Show};
use crate::experiment::reproduce::{REPRODUCE_SCHEMA, Reproduction};
use crate::experiment::results::{COMPARE_SCHEMA, Comparison, GROUPS_SCHEMA, Groups};
use crate::experiment::scenario;
use crate::fleet::status::{FLEET_SCHEMA, Status};
use crate::monitor::calibration::{CALIBRATE_SCHEMA, Calibration};
use crate::top::{TOP_SCHEMA, TopLine};
use crate::verify::{Outcome, VERIFY_SCHEMA};

/// Returns the schemas (JSON Schema, draft 2020-12), each with its name in docs/.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        (
            "log",
            of::<emud_monitor::log::Line>(
                emud_monitor::log::SCHEMA,
                "emud monitor, emud run: a line of the log",
            ),
        ),
        ("show", of::<Show>(SHOW_SCHEMA, "emud show --json")),
        ("list", of::<List>(LIST_SCHEMA, "emud list --json")),
        (
            "catalogue",
            of::<Catalogue>(
                CATALOGUE_SCHEMA,
                "emud profile list --json, emud scenario list --json",
            ),
        ),
        (
            "doctor",
            of::<Examination>(DOCTOR_SCHEMA, "emud doctor --json"),
        ),
        ("top", of::<TopLine>(TOP_SCHEMA, "emud top --json: a line")),
        ("verify", of::<Outcome>(VERIFY_SCHEMA, "emud verify --json")),
        (
            "compare",
            of::<Comparison>(COMPARE_SCHEMA, "emud compare --json"),
        ),
        (
            "compare-groups",
            of::<Groups>(
                GROUPS_SCHEMA,
                "emud compare --json with three or more experiments",
            ),
        ),
        (
            "reproduce",
            of::<Reproduction>(REPRODUCE_SCHEMA, "emud reproduce --json"),
        ),
        (
            "fleet",
            of::<Status>(FLEET_SCHEMA, "emud fleet status --json"),
        ),
        (
            "calibrate",
            of::<Calibration>(CALIBRATE_SCHEMA, "emud monitor calibrate --json"),
        ),
    ]
}

/// Returns the tables of keys in docs/ that follow from the code: the page, the name of the table
/// there, and its text in Markdown.
pub fn key_tables() -> Vec<(&'static str, &'static str, String)> {
    let table = |(name, rows): (&'static str, Vec<[String; 3]>)| {
        let rows = rows.iter().map(|row| format!("| {} |\n", row.join(" | ")));
        let head = "| key | value | default |\n|---|---|---|\n";
        (
            "scenario.md",
            name,
            head.to_owned() + &rows.collect::<String>(),
        )
    };
    scenario::key_tables().map(table).into()
}

/// `version`: such as "emud-log/2".
fn of<T: JsonSchema>(version: &str, title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(close));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert(
        "$id".into(),
        format!("urn:{}", version.replace(['-', '/'], ":")).into(),
    );
    schema.insert("title".into(), title.into());
    schema
}

/// Makes a schema as exact as its type: it rejects other keys and larger numbers. Defaults are only
/// for readers, and the lines of a description are those of the source.
fn close(schema: &mut Schema) {
    let is_object = match schema.get("type") {
        Some(Value::Array(types)) => types.contains(&"object".into()),
        of => of == Some(&"object".into()),
    };
    if is_object && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".into(), false.into());
    }
    schema.remove("default");
    let most = match schema.get("format").and_then(Value::as_str) {
        Some("uint64") => Some(u64::MAX),
        Some("uint32") => Some(u32::MAX.into()),
        _ => None,
    };
    if let (Some(most), None) = (most, schema.get("maximum")) {
        schema.insert("maximum".into(), most.into());
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}
