// SPDX-License-Identifier: MIT OR Apache-2.0
//! Man pages: of the commands from the definition of the command line, of the files from the pages of
//! docs/ and the schema of the log.

use std::io;

use clap::Command;
use clap_mangen::Man;
use emud::schema::schemas;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use serde_json::Value;

/// File, what it is about, and its pages.
const PAGES: [(&str, &str, &[&str]); 3] = [
    (
        "emud-profile",
        "describes an emulated link",
        &[
            include_str!("../../docs/profile.md"),
            include_str!("../../docs/models.md"),
            include_str!("../../docs/many-links.md"),
            include_str!("../../docs/queues.md"),
            include_str!("../../docs/time.md"),
        ],
    ),
    (
        "emud-scenario",
        "describes an experiment with several nodes",
        &[
            include_str!("../../docs/scenario.md"),
            include_str!("../../docs/medium.md"),
        ],
    ),
    (
        "emud-log",
        "log of emud monitor and emud run",
        &[include_str!("../../docs/log-format.md")],
    ),
];

/// Footer of the pages.
const SOURCE: &str = concat!("emud ", env!("CARGO_PKG_VERSION"));

/// Returns file and text of the page of each command, that of emud itself first.
///
/// # Errors
/// None in fact: it writes to memory.
pub fn section_1(command: Command) -> io::Result<Vec<(String, String)>> {
    fn add(command: &Command, pages: &mut Vec<(String, String)>) -> io::Result<()> {
        // Verbs have no version.
        let page = Man::new(command.clone()).source(SOURCE);
        let mut text = Vec::new();
        page.render(&mut text)?;
        let text = with_examples(&String::from_utf8_lossy(&text));
        pages.push((page.get_filename(), text));
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        shown.into_iter().try_for_each(|verb| add(verb, pages))
    }
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = vec![];
    add(&command, &mut pages)?;
    Ok(pages)
}

/// Keeps the lines of the examples; clap_mangen fills them as if they were one paragraph.
fn with_examples(page: &str) -> String {
    let (mut out, mut is_extra, mut is_kept) = (String::new(), false, false);
    for line in page.lines() {
        let is_heading = line.starts_with(".SH ");
        if is_heading {
            is_extra = line == ".SH EXTRA";
        }
        let keep = is_extra && !is_heading && line.starts_with(' ');
        match (is_kept, keep) {
            (false, true) => out += ".nf\n",
            (true, false) => out += ".fi\n",
            _ => {}
        }
        is_kept = keep;
        let line = match line {
            ".SH EXTRA" => ".SH EXAMPLES AND NOTES",
            "" if is_extra => ".PP",
            line => line,
        };
        out += line;
        out.push('\n');
    }
    if is_kept {
        out += ".fi\n";
    }
    out
}

/// Returns file and text of each page.
pub fn section_5() -> Vec<(String, String)> {
    let page = |(name, about, sources): (&str, &str, &[&str])| {
        let mut page = Roff::new(name, about);
        for source in sources {
            page.markdown(source);
        }
        if name == "emud-log" {
            log_keys(&mut page);
        }
        page.out += ".SH SEE ALSO\n\\fBemud\\fR(1)";
        for (other, ..) in PAGES.iter().filter(|(other, ..)| *other != name) {
            page.out += &format!(", \\fB{}\\fR(5)", escaped(other));
        }
        (format!("{name}.5"), page.out + "\n")
    };
    PAGES.map(page).into()
}

/// Writes every key of every type of line.
fn log_keys(page: &mut Roff) {
    let log = schemas().into_iter().find(|(name, _)| *name == "log");
    let schema = log.map(|(_, schema)| schema.to_value()).unwrap_or_default();
    let definitions = schema["$defs"].as_object();
    page.out += ".SH ALL KEYS\n";
    for (name, definition) in definitions.into_iter().flatten() {
        let Some(keys) = definition["properties"].as_object() else {
            continue;
        };
        page.out += &format!(".SS {}\n", escaped(name));
        for (key, value) in keys {
            let meaning = value["description"].as_str().unwrap_or_default();
            let of = kind(value).map_or(String::new(), |kind| format!(" \\fI{kind}\\fR"));
            page.out += &format!(".TP\n\\fB{}\\fR{of}\n", escaped(key));
            page.text(meaning);
            page.line();
        }
    }
}

/// Returns the type of a value, or the name of its definition.
fn kind(value: &Value) -> Option<String> {
    if let Some(of) = value["$ref"].as_str() {
        return Some(escaped(of.rsplit('/').next()?));
    }
    match &value["type"] {
        Value::String(one) => Some(escaped(one)),
        Value::Array(all) => {
            let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
            Some(escaped(&all.join(" or ")))
        }
        _ => None,
    }
}

/// A page in the macros of man(7).
struct Roff {
    out: String,
    /// The next number of each list around the text; `None`: it has none.
    lists: Vec<Option<u64>>,
    table: Option<Table>,
    /// Start of the text that a heading or a cell collects.
    from: usize,
    links: Vec<String>,
}

#[derive(Default)]
struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Roff {
    fn new(name: &str, about: &str) -> Self {
        let title = escaped(&name.to_uppercase());
        Self {
            // No justified lines, and no hyphens in keys.
            out: format!(
                ".TH {title} 5 \"\" \"{SOURCE}\"\n.ad l\n.nh\n.SH NAME\n{} \\- {about}\n",
                escaped(name)
            ),
            lists: vec![],
            table: None,
            from: 0,
            links: vec![],
        }
    }

    fn markdown(&mut self, source: &str) {
        for event in Parser::new_ext(source, Options::ENABLE_TABLES) {
            match event {
                Event::Start(tag) => self.start(tag),
                Event::End(tag) => self.end(tag),
                Event::Text(text) => self.text(&text),
                Event::Code(code) => {
                    self.out += "\\fB";
                    self.text(&code);
                    self.out += "\\fR";
                }
                Event::SoftBreak => self.out.push(' '),
                Event::HardBreak => self.out += "\n.br\n",
                _ => {}
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } | Tag::TableCell => self.from = self.out.len(),
            Tag::Paragraph if self.lists.is_empty() => self.macro_line(".PP"),
            Tag::CodeBlock(_) => self.macro_line(".PP\n.nf\n.RS 4"),
            Tag::List(first) => self.lists.push(first),
            Tag::Item => match self.lists.last_mut() {
                Some(Some(number)) => {
                    let line = format!(".IP {number}. 4");
                    *number += 1;
                    self.macro_line(&line);
                }
                _ => self.macro_line(".IP \\[u2022] 2"),
            },
            Tag::Emphasis => self.out += "\\fI",
            Tag::Strong => self.out += "\\fB",
            Tag::Link { dest_url, .. } => self.links.push(dest_url.into_string()),
            Tag::Table(_) => self.table = Some(Table::default()),
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(vec![]);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => {
                let title = self.taken();
                let section = if level == HeadingLevel::H1 {
                    "SH"
                } else {
                    "SS"
                };
                self.macro_line(&format!(".{section} {title}"));
            }
            TagEnd::Paragraph => self.line(),
            TagEnd::CodeBlock => self.macro_line(".RE\n.fi"),
            TagEnd::List(_) => {
                self.lists.pop();
                self.line();
            }
            TagEnd::Emphasis | TagEnd::Strong => self.out += "\\fR",
            TagEnd::Link => {
                let link = self.links.pop().unwrap_or_default();
                // Others lead to pages, of which most are in this one.
                if link.contains("://") && !self.out.ends_with(&escaped(&link)) {
                    self.text(&format!(" <{link}>"));
                }
            }
            TagEnd::TableCell => {
                let cell = self.taken();
                let row = self.table.as_mut().and_then(|table| table.rows.last_mut());
                row.into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::TableHead => {
                if let Some(table) = &mut self.table {
                    table.head = table.rows.pop().unwrap_or_default();
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.definitions(&table);
                }
            }
            _ => {}
        }
    }

    /// Writes a table as a list of definitions: a terminal of 80 columns is too narrow for most.
    fn definitions(&mut self, table: &Table) {
        // An empty first cell continues that of the row above.
        let two = table
            .rows
            .iter()
            .any(|row| row.first().is_some_and(String::is_empty));
        let mut first = String::new();
        for row in &table.rows {
            let mut cells = row.iter().zip(&table.head);
            let tag = match cells.next() {
                Some((cell, _)) if !cell.is_empty() => cell.clone(),
                _ => first.clone(),
            };
            first.clone_from(&tag);
            let second = cells.next().filter(|_| two);
            let more = second.map_or(String::new(), |(cell, _)| format!(" {cell}"));
            self.macro_line(&format!(".TP\n\\&{tag}{more}"));
            let rest: Vec<_> = match two {
                true => row.iter().zip(&table.head).skip(2).collect(),
                false => row.iter().zip(&table.head).skip(1).collect(),
            };
            let mut before = "\\&";
            for (n, (cell, head)) in rest.into_iter().enumerate() {
                match (n, cell.is_empty()) {
                    (_, true) => continue,
                    (0, _) => self.out += &format!("{before}{cell}"),
                    _ => self.out += &format!("{before}{head}: {cell}"),
                }
                before = ". ";
            }
            self.line();
        }
        self.macro_line(".PP");
    }

    /// Takes the text written since a heading or a cell began.
    fn taken(&mut self) -> String {
        self.out.split_off(self.from)
    }

    fn text(&mut self, text: &str) {
        for line in text.split_inclusive('\n') {
            // A control line otherwise.
            if self.out.ends_with('\n') && line.starts_with(['.', '\'']) {
                self.out += "\\&";
            }
            self.out += &escaped(line);
        }
    }

    fn line(&mut self) {
        if !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    fn macro_line(&mut self, line: &str) {
        self.line();
        self.out += line;
        self.out.push('\n');
    }
}

/// Escapes text for roff, with minus signs: a hyphen cannot be copied.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn markdown_becomes_roff() {
        let mut page = Roff::new("emud-x", "is a test");
        let before = page.out.len();
        page.markdown(
            "# A page\n\n<!-- hidden -->\nWith `a-key` and\n.a point, [a page](x.md).\n\n- one\n- **two**\n\n\
             ```toml\n.x = \"\\\\\"\n```\n\n## Keys\n\n| key | value | default |\n|---|---|---|\n\
             | `a` | text | `1` |\n| `b` | more | |\n| `c` | | 2 |\n\n| m | k | v |\n|---|---|---|\n| x | p | 1 |\n| | q | 2 |\n",
        );
        assert_eq!(
            &page.out[before..],
            ".SH A page\n.PP\nWith \\fBa\\-key\\fR and .a point, a page.\n.IP \\[u2022] 2\none\n\
             .IP \\[u2022] 2\n\\fBtwo\\fR\n.PP\n.nf\n.RS 4\n\\&.x = \"\\e\\e\"\n.RE\n.fi\n.SS Keys\n\
             .TP\n\\&\\fBa\\fR\n\\&text. default: \\fB1\\fR\n.TP\n\\&\\fBb\\fR\n\\&more\n\
             .TP\n\\&\\fBc\\fR\n\\&default: 2\n.PP\n\
             .TP\n\\&x p\n\\&1\n.TP\n\\&x q\n\\&2\n.PP\n"
        );
    }

    #[test]
    fn examples_keep_their_lines() {
        let page = ".SH NAME\nemud\n\n.SH EXTRA\nExamples:\n  emud a    b\n  emud c\n\nNotes of\ntwo lines.\n";
        let kept = ".SH NAME\nemud\n\n.SH EXAMPLES AND NOTES\nExamples:\n.nf\n  emud a    b\n  emud c\n\
                    .fi\n.PP\nNotes of\ntwo lines.\n";
        assert_eq!(with_examples(page), kept);
    }

    #[test]
    fn the_footer_of_every_page_has_the_version() {
        let pages = section_1(crate::cli::Cli::command()).unwrap();
        assert!(pages.iter().any(|(file, _)| file == "emud-run.1"));
        let version = format!("\"{SOURCE}\"");
        for (file, page) in pages.into_iter().chain(section_5()) {
            let head = page.lines().find(|line| line.starts_with(".TH "));
            assert!(head.unwrap().contains(&version), "{file}: {head:?}");
        }
    }

    #[test]
    fn every_key_of_the_pages_and_of_the_log_is_there() {
        let pages = section_5();
        let page = |name: &str| {
            let found = pages.iter().find(|(file, _)| file == name);
            &found.unwrap().1
        };
        for (name, keys) in [
            (
                "emud-profile.5",
                &["rate", "mpu", "coherence", "max\\-run", "instances"][..],
            ),
            (
                "emud-scenario.5",
                &["waits\\-for", "clean\\-up\\-within", "promiscuous"],
            ),
            (
                "emud-log.5",
                &["since_mono_ns", "realtime_minus_mono_ns", "capacity_bit_s"],
            ),
        ] {
            for key in keys {
                assert!(
                    page(name).contains(&format!("\\fB{key}\\fR")),
                    "{name}: {key}"
                );
            }
        }
    }
}
