// SPDX-License-Identifier: GPL-2.0-only

use anyhow::Result;

#[derive(clap::Args)]
pub struct Report {}

#[derive(clap::Args)]
pub struct Check {}

impl Report {
    pub fn run(&self) -> Result<()> {
        Ok(())
    }
}

impl Check {
    pub fn run(&self) -> Result<()> {
        Ok(())
    }
}
