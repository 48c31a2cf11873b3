// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `emud` command: parse, dispatch, exit code.

// It panics if the reader has closed the pipe: text::to_stderr.
#![warn(clippy::print_stderr)]

mod cli;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};

use cli::{Cli, Failure};
use emud::text::{printable, to_stderr};

/// EX_USAGE of sysexits.h, instead of clap's 2.
const EX_USAGE: u8 = 64;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            let e = without_internal(e);
            let _ = e.print();
            return if e.use_stderr() {
                EX_USAGE.into()
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match cli.run() {
        Ok(code) => code.into(),
        Err(Failure { code, message }) => {
            to_stderr(format_args!("emud: {}", printable(&message)));
            code.into()
        }
    }
}

/// clap also suggests verbs that only emud itself starts.
fn without_internal(mut error: clap::Error) -> clap::Error {
    let kind = ContextKind::SuggestedSubcommand;
    if let Some(ContextValue::Strings(mut verbs)) = error.remove(kind) {
        let emud = Cli::command();
        let is_internal = |verb: &str| emud.find_subcommand(verb).is_some_and(|v| v.is_hide_set());
        verbs.retain(|verb| !is_internal(verb));
        if !verbs.is_empty() {
            error.insert(kind, ContextValue::Strings(verbs));
        }
    }
    error
}
