// SPDX-License-Identifier: MIT OR Apache-2.0

use emud::datapath::doctor::{Check, Examination, Support, examine};

use super::Failure;
use super::failure::EX_UNAVAILABLE;

/// Report what this kernel supports, and how to fix what is missing
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  emud doctor
  emud doctor --json | jq '.checks[] | select(.verdict != \"yes\")'

Exit code 0 if some engine works, 69 if none does.")]
pub struct Args {
    /// Print JSON (docs/json.md)
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let report = examine();
    let text = if args.json {
        super::json(&report)?
    } else {
        as_text(&report)
    };
    super::out(&text)?;
    if report.engines.is_empty() {
        return Err(Failure::new(EX_UNAVAILABLE, "no engine works here"));
    }
    Ok(())
}

fn as_text(report: &Examination) -> String {
    let engines: Vec<_> = report.engines.iter().map(ToString::to_string).collect();
    let engines = match engines.as_slice() {
        [] => "none".to_owned(),
        some => some.join(", "),
    };
    let checks: String = report.checks.iter().map(check).collect();
    let auto = report.auto.as_ref().map_or_else(String::new, |auto| {
        format!("engine auto takes {}: {}\n", auto.engine, auto.reason)
    });
    format!(
        "kernel {}\n{checks}engines: {engines}\n{auto}",
        report.kernel
    )
}

fn check(check: &Check) -> String {
    let verdict = match check.verdict {
        Support::Yes => "yes",
        Support::No => "NO ",
    };
    let mut out = format!("{verdict}  {:<28} {}\n", check.feature, check.tested);
    if let Some(answer) = &check.answer {
        out += &format!("     {answer}\n");
    }
    if let Some(remedy) = check.remedy {
        out += &format!("     -> {remedy}\n");
    }
    out
}
