// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows the progress of a long command: a line at the bottom of a terminal; nothing without a
//! terminal.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that is removed when dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// Shows the progress; `of` is the total duration, if known.
    pub fn start(of: Option<&str>) -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr_with_hz(4),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
        if let Ok(style) = ProgressStyle::with_template(&format!("[{{elapsed}}{of}] {{msg}}")) {
            bar.set_style(style);
        }
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(250));
        }
        Self(bar)
    }

    pub fn show(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
