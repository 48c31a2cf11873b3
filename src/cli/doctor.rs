// SPDX-License-Identifier: GPL-2.0-only

use emud::doctor::{Check, Verdict, examine};
use serde_json::json;

use super::Failure;
use super::failure::EX_UNAVAILABLE;

/// Say what this kernel can do, how that was tested, and what to do about a no
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
    if args.json {
        println!(
            "{:#}",
            json!({
                "schema": "emud-doctor/1",
                "kernel": report.kernel,
                "engines": report.engines,
                "checks": report.checks,
            })
        );
    } else {
        println!("kernel {}", report.kernel);
        for check in &report.checks {
            print_check(check);
        }
        println!(
            "engines: {}",
            match report.engines.as_slice() {
                [] => "none".to_owned(),
                some => some.join(", "),
            }
        );
    }
    if report.engines.is_empty() {
        return Err(Failure::new(EX_UNAVAILABLE, "no engine works here"));
    }
    Ok(())
}

fn print_check(check: &Check) {
    let verdict = match check.verdict {
        Verdict::Yes => "yes",
        Verdict::No => "NO ",
    };
    println!("{verdict}  {:<28} {}", check.feature, check.tested);
    if let Some(answer) = &check.answer {
        println!("     {answer}");
    }
    if let Some(remedy) = check.remedy {
        println!("     -> {remedy}");
    }
}
