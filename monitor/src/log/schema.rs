// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a derive cannot describe of the lines.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::Judgement;
use crate::event::Resource;

pub(super) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// Returns a schema that allows each of these lines. Each type has a definition with its name.
pub(super) fn one_of(generator: &mut SchemaGenerator, lines: &[(&str, Describe)]) -> Schema {
    let one = |(name, describe): &(&str, Describe)| {
        let mut schema = describe(generator);
        if let Some(of_type) = schema.pointer_mut("/properties/type") {
            *of_type = json!({ "const": name });
        }
        let definitions = generator.definitions_mut();
        definitions.insert((*name).to_owned(), schema.into());
        Schema::new_ref(format!("#/$defs/{name}"))
    };
    let lines: Vec<_> = lines.iter().map(one).collect();
    json_schema!({ "oneOf": lines })
}

/// Describes a map that has a value for each resource.
pub(super) struct ForEach<T>(PhantomData<T>);

impl<T: JsonSchema> JsonSchema for ForEach<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ForEach_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of = generator.subschema_for::<T>();
        let names = Resource::ALL.map(Resource::name);
        let properties: BTreeMap<_, _> = names.iter().map(|name| (name, &of)).collect();
        json_schema!({ "type": "object", "properties": properties, "required": names })
    }
}

/// Describes the keys of a judgement, each of which can be null.
pub(super) struct JudgementOrNulls;

impl JudgementOrNulls {
    pub const KEYS: &[&str] = &[
        "verdict",
        "contention",
        "contended_seconds",
        "invalid",
        "exit_code",
        "measured_mono_ns",
    ];
    /// Keys that an experiment always has.
    pub const NEVER_NULL: &[&str] = Self::KEYS.split_at(5).0;
}

impl JsonSchema for JudgementOrNulls {
    fn schema_name() -> Cow<'static, str> {
        "JudgementOrNulls".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Judgement::json_schema(generator);
        if let Some(Value::Object(keys)) = schema.get_mut("properties") {
            for key in keys.values_mut() {
                let description = key
                    .as_object_mut()
                    .and_then(|key| key.remove("description"));
                *key = json!({ "description": description, "anyOf": [key, { "type": "null" }] });
            }
        }
        schema
    }
}

/// Describes the same of several keys.
pub(super) fn all(keys: &[&str], schema: &Value) -> Value {
    json!({ "properties": keys.iter().map(|key| (*key, schema)).collect::<BTreeMap<_, _>>() })
}
