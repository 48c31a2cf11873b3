// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two text formats. prometheus-client writes OpenMetrics 1.0; the text format of Prometheus
//! has the same samples under other descriptions.

use std::fmt::{self, Write};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Version 0.0.4 of the text format of Prometheus.
    Prometheus,
}

const OPENMETRICS: &str = "application/openmetrics-text";

impl Format {
    /// Returns the media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Returns the format for an `Accept` header: OpenMetrics if it is named and nothing else is
/// preferred, as the libraries of Prometheus choose.
pub fn accepted(header: &str) -> Format {
    let (mut openmetrics, mut text) = (0.0f64, 0.0f64);
    for range in header.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
        let weight = weight.unwrap_or(1.0);
        match kind.as_str() {
            OPENMETRICS => openmetrics = openmetrics.max(weight),
            "text/plain" => text = text.max(weight),
            _ => {}
        }
    }
    match openmetrics > 0.0 && openmetrics >= text {
        true => Format::OpenMetrics,
        false => Format::Prometheus,
    }
}

/// Returns a registry whose only metric is the version of emud.
pub fn registry() -> Registry {
    let mut registry = Registry::with_prefix("emud");
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "Version of the running emud", version);
    registry
}

/// Returns all metrics as text.
///
/// # Errors
/// A collector failed.
pub fn exposition(registry: &Registry, format: Format) -> Result<String, fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    match format {
        Format::OpenMetrics => Ok(text),
        Format::Prometheus => as_prometheus(&text),
    }
}

/// Translates the descriptions; samples are copied.
fn as_prometheus(text: &str) -> Result<String, fmt::Error> {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let Some(help) = line.strip_prefix("# HELP ") else {
            if line.starts_with('#') {
                // `# UNIT`, `# EOF`: comments there.
                continue;
            }
            out.push_str(line);
            continue;
        };
        // prometheus-client writes the type after the help.
        let kind = lines.next().unwrap_or_default();
        let kind = kind.trim_end().rsplit(' ').next().unwrap_or_default();
        let (name, help) = help.split_once(' ').unwrap_or((help.trim_end(), "\n"));
        let (suffix, kind) = match kind {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            "unknown" => ("", "untyped"),
            kind => ("", kind),
        };
        write!(out, "# HELP {name}{suffix} {help}")?;
        writeln!(out, "# TYPE {name}{suffix} {kind}")?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_the_preferred_one() {
        let openmetrics = [
            "application/openmetrics-text",
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text; version=0.0.1; q=0.75, text/plain; q=0.5",
        ];
        let prometheus = [
            "",
            "*/*",
            "text/plain;version=0.0.4",
            "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",
            "application/openmetrics-text;q=0.2,text/plain;q=0.9",
            "application/openmetrics-text;q=0",
        ];
        for header in openmetrics {
            assert_eq!(accepted(header), Format::OpenMetrics, "{header}");
        }
        for header in prometheus {
            assert_eq!(accepted(header), Format::Prometheus, "{header}");
        }
    }

    #[test]
    fn descriptions_are_translated() {
        let openmetrics = "# HELP a_seconds Time.\n# TYPE a_seconds counter\n\
                           # UNIT a_seconds seconds\na_seconds_total 1\n\
                           # HELP b Build.\n# TYPE b info\nb_info{version=\"# HELP\"} 1\n\
                           # HELP c Gauge.\n# TYPE c gauge\nc 3\n# EOF\n";
        let prometheus = "# HELP a_seconds_total Time.\n# TYPE a_seconds_total counter\n\
                          a_seconds_total 1\n\
                          # HELP b_info Build.\n# TYPE b_info gauge\nb_info{version=\"# HELP\"} 1\n\
                          # HELP c Gauge.\n# TYPE c gauge\nc 3\n";
        assert_eq!(as_prometheus(openmetrics).unwrap(), prometheus);
    }
}
