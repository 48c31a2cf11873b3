// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::PathBuf;

use emud::monitor::session::client::report;
use serde_json::{Value, json};

use super::Failure;
use super::failure::EX_USAGE;

/// Report a figure that a program measured to the log of the run
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud metric page-load=1.84s
  emud metric stalls=3 \"mean bitrate=4.2 Mbit/s\"
  emud metric \"$EMUD_NODE rtt=12.5ms\"

`emud report`, `emud compare` and the summary of repeats print the mean of each figure over the
run. A unit is text without a meaning for emud: always report a figure in the same one.

Exit codes: 0 the monitor accepted it, 64 it rejected it, 66 no monitor runs, 74 the connection to it
broke, 77 this user may not report.")]
pub struct Args {
    /// Name and value of the figure; a unit may follow the number
    #[arg(value_name = "NAME=VALUE", required = true)]
    figures: Vec<String>,

    /// The monitor's socket [default: that of the run, outside a run all monitors that run without
    /// --socket]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    // All are right before the first is reported.
    let figures: Vec<Value> = (args.figures.iter())
        .map(|figure| message(figure))
        .collect::<Result<_, _>>()
        .map_err(|e| Failure::new(EX_USAGE, e))?;
    for figure in figures {
        report(args.socket.as_deref(), &figure)?;
    }
    Ok(())
}

fn message(text: &str) -> Result<Value, String> {
    let wrong = || format!("\"{text}\" is not NAME=VALUE, such as page-load=1.84s");
    let (name, value) = text.rsplit_once('=').ok_or_else(wrong)?;
    let value = value.trim();
    // The longest beginning that is a number: "1e3", but "1" of "1e".
    let ends = (1..=value.len())
        .rev()
        .filter(|end| value.is_char_boundary(*end));
    let number = ends
        .map(|end| value.split_at(end))
        .find_map(|(number, unit)| {
            let plain = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let read: f64 = number.parse().ok()?;
            number.chars().all(plain).then_some((read, unit.trim()))
        });
    // "1e999" is infinite, not 1e99 of the unit "9".
    let number = number.filter(|(number, _)| number.is_finite());
    // "1,84s" and "1 500ms" are not 1 of the units ",84s" and "500ms".
    let is_unit =
        |unit: &str| !unit.starts_with(|c: char| c.is_ascii_digit() || ",.:;'_+-/".contains(c));
    let (number, unit) = (number.filter(|(_, unit)| is_unit(unit))).ok_or_else(wrong)?;
    let unit = Some(unit).filter(|unit| !unit.is_empty());
    Ok(json!({"type": "metric", "name": name.trim(), "value": number, "unit": unit}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_follows_the_number() {
        let read = |text| message(text).map(|m| (m["value"].as_f64().unwrap(), m["unit"].clone()));
        assert_eq!(read("a=1.84s"), Ok((1.84, json!("s"))));
        assert_eq!(read("a b=-3"), Ok((-3.0, Value::Null)));
        assert_eq!(read("a=1e3 Mbit/s"), Ok((1000.0, json!("Mbit/s"))));
        assert_eq!(read("a=1 e"), Ok((1.0, json!("e"))));
        assert_eq!(message("a=b=2").unwrap()["name"], "a=b");
        for wrong in [
            "a",
            "a=",
            "a=x",
            "a=inf",
            "a=NaN",
            "a=1e999",
            "a=1,84s",
            "a=1'000",
            "a=1.2.3",
            "a=1 500ms",
            "a=1\u{202f}500",
            "a=5-10ms",
            "a=3/4",
        ] {
            assert!(
                message(wrong).unwrap_err().contains("NAME=VALUE"),
                "{wrong}"
            );
        }
    }
}
