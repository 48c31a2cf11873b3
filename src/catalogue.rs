// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists of what comes with emud: profiles and scenarios.

use schemars::JsonSchema;
use serde::Serialize;

use crate::text::columns;

/// The number increases when a key is removed or changes its meaning.
pub const CATALOGUE_SCHEMA: &str = "emud-catalogue/1";

/// Shipped profiles or scenarios.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Catalogue {
    /// Version of the format.
    #[schemars(extend("const" = CATALOGUE_SCHEMA))]
    schema: &'static str,
    /// In the order of the text.
    shipped: Vec<Listed>,
}

/// A shipped profile or scenario.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    /// Name for `--profile` or `--scenario`.
    #[schemars(length(min = 1))]
    pub name: &'static str,
    /// One sentence.
    pub description: String,
    /// Source of its figures; null: none is stated.
    pub source: Option<String>,
}

impl Catalogue {
    /// Returns the list as text for people or as JSON.
    ///
    /// # Errors
    /// None in practice.
    pub fn text(shipped: Vec<Listed>, json: bool) -> serde_json::Result<String> {
        if !json {
            return Ok(columns(
                (shipped.into_iter()).map(|one| [one.name.to_owned(), one.description]),
            ));
        }
        let schema = CATALOGUE_SCHEMA;
        let list = serde_json::to_value(Self { schema, shipped })?;
        Ok(format!("{list:#}\n"))
    }
}
