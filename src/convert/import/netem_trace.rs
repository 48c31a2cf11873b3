// SPDX-License-Identifier: MIT OR Apache-2.0
//! Models of a bandwidth of netem-trace, which Rattan reads, as rows with a duration and a rate.

use serde_json::{Value, json};

use crate::profile::MAX_ROWS;
use crate::text::{At, Mistake, Span, clipped};

/// Returns the rows, with the keys `duration` and `bw`, if the document is such a model or the pattern of
/// a TraceBwConfig.
pub(super) fn rows(document: &Value) -> Result<Option<Vec<Value>>, Mistake> {
    let mut out = Vec::new();
    match model(document) {
        Some((name, fields)) => append(name, fields, &mut out)?,
        None if is_pattern(document) => append("TraceBwConfig", document, &mut out)?,
        None => return Ok(None),
    }
    Ok(Some(out))
}

/// Returns its name and its fields.
fn model(value: &Value) -> Option<(&str, &Value)> {
    let map = value.as_object().filter(|map| map.len() == 1)?;
    let (name, fields) = map.iter().next()?;
    let is_known = name.ends_with("BwConfig") || name == "RepeatedBwPatternConfig";
    is_known.then_some((name, fields))
}

/// Returns whether these are durations with a unit, each with a list of rates.
fn is_pattern(value: &Value) -> bool {
    let lasts = |value: &Value| match value.as_str() {
        Some(text) => text.parse::<Span>().is_ok(),
        None => value.is_object(),
    };
    let is_step = |step: &Value| {
        step.as_array()
            .is_some_and(|step| matches!(&step[..], [time, Value::Array(_)] if lasts(time)))
    };
    value
        .as_array()
        .is_some_and(|steps| !steps.is_empty() && steps.iter().all(is_step))
}

fn append(name: &str, fields: &Value, out: &mut Vec<Value>) -> Result<(), Mistake> {
    let wrong = |title: String, help: &str| {
        let start = At {
            source: 0,
            span: 0..0,
        };
        Mistake::new(&start, title, help)
    };
    // An old TraceBwConfig is its pattern.
    let pattern = fields.get("pattern").unwrap_or(fields);
    let pattern = pattern.as_array().map_or(&[][..], |all| &all[..]);
    match name {
        "StaticBwConfig" => {
            // What build() takes for a field that is missing.
            let field = |key: &str, default: &str| match fields.get(key) {
                None | Some(Value::Null) => json!(default),
                Some(value) => value.clone(),
            };
            out.push(json!({"duration": field("duration", "1s"), "bw": field("bw", "12Mbps")}));
        }
        "TraceBwConfig" => {
            for (n, step) in (1..).zip(pattern) {
                let Some([duration, Value::Array(rates)]) = step.as_array().map(|step| &step[..])
                else {
                    let title = format!("step {n} of a TraceBwConfig is not [duration, [rates]]");
                    return Err(wrong(title, "write for example [\"1ms\", [\"2Mbps\"]]"));
                };
                // Each of the rates lasts for this duration.
                out.extend(rates.iter().map(
                    |bw| json!({"duration": with_unit(duration, "ms"), "bw": with_unit(bw, "Mbps")}),
                ));
            }
        }
        "RepeatedBwPatternConfig" => {
            for value in pattern {
                let Some((name, fields)) = model(value) else {
                    let title = format!(
                        "`{}` is not a model of a bandwidth",
                        clipped(&value.to_string())
                    );
                    return Err(wrong(title, "write StaticBwConfig or TraceBwConfig"));
                };
                let mut inner = Vec::new();
                append(name, fields, &mut inner)?;
                let times = match (name, fields.get("count").and_then(Value::as_u64)) {
                    ("RepeatedBwPatternConfig", Some(0) | None) if pattern.len() > 1 => {
                        let title = "a RepeatedBwPatternConfig without end beside other models";
                        return Err(wrong(
                            title.to_owned(),
                            "write the `count` of the inner one",
                        ));
                    }
                    ("RepeatedBwPatternConfig", Some(count @ 1..)) => count,
                    _ => 1,
                };
                for _ in 0..times {
                    // The reader of the rows has the message about too many.
                    if inner.is_empty() || out.len() > MAX_ROWS {
                        break;
                    }
                    out.extend_from_slice(&inner);
                }
            }
        }
        _ => {
            let title = format!("a {} has no list of rates", clipped(name));
            let help =
                "only StaticBwConfig, TraceBwConfig and RepeatedBwPatternConfig are imported";
            return Err(wrong(title, help));
        }
    }
    Ok(())
}

/// Numbers have the units of netem-trace's `trace_serde`.
fn with_unit(value: &Value, unit: &str) -> Value {
    match value {
        Value::Number(number) => json!(format!("{number}{unit}")),
        other => other.clone(),
    }
}
