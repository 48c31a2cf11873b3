// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `emud` command: parse, dispatch, exit code.

// It panics if the reader has closed the pipe: text::to_stderr.
#![warn(clippy::print_stderr)]

mod cli;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Failure};
use emud::text::{printable, to_stderr};

/// EX_USAGE of sysexits.h, instead of clap's 2.
const EX_USAGE: u8 = 64;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
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
