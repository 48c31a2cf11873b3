// SPDX-License-Identifier: MIT OR Apache-2.0
//! What ran: how programs ended, what they said, which files were kept.

use std::fmt::Write;

use emud_monitor::log::{ArtefactLine, ExitLine, OutputLine, OutputStream, PhaseName};

use super::escape::Escaped;
use super::{at, left_out};
use crate::experiment::results::{Run, Tail, count, time};

pub fn write(out: &mut String, run: &Run) {
    out.push_str("<h2>Programs</h2>\n");
    if run.exits.items.is_empty() {
        out.push_str("<p>The log has no program that ended.</p>\n");
    } else {
        out.push_str(
            "<div class=\"wide\"><table>\n<thead><tr><th>node</th><th>command</th><th>phase</th>\
             <th>started, s</th><th>took</th><th>ended</th></tr></thead>\n<tbody>\n",
        );
        for exit in &run.exits.items {
            row(out, run, exit);
        }
        out.push_str("</tbody></table></div>\n");
        left_out(out, run.exits.left_out, "commands");
    }
    for (node, output) in &run.outputs {
        said(out, run, node, output);
    }
    artefacts(out, &run.artefacts.items);
    left_out(out, run.artefacts.left_out, "files");
}

fn row(out: &mut String, run: &Run, exit: &ExitLine) {
    let phase = match exit.phase {
        PhaseName::Preparation => "preparation",
        PhaseName::Measurement => "measurement",
        PhaseName::CleanUp => "clean-up",
    };
    let took = exit.mono_ns.saturating_sub(exit.started_mono_ns);
    let _ = writeln!(
        out,
        "<tr><td>{}</td><td class=\"text\"><code>{}</code></td><td>{phase}</td>\
         <td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>",
        Escaped(&exit.node),
        Escaped(exit.command.join(" ")),
        at(run, exit.started_mono_ns),
        time(took as f64),
        exit.status(),
    );
}

fn said(out: &mut String, run: &Run, node: &str, output: &Tail<OutputLine>) {
    let lines = count(output.count());
    let node = Escaped(node);
    let _ = write!(
        out,
        "<details><summary>output of {node}: {lines} lines</summary>\n<pre>"
    );
    let line = |out: &mut String, line: &OutputLine| {
        let (at, text) = (at(run, line.mono_ns), Escaped(&line.text));
        let _ = match line.stream {
            OutputStream::Stderr => writeln!(out, "{at:>9} <span class=\"stderr\">! {text}</span>"),
            _ => writeln!(out, "{at:>9}   {text}"),
        };
    };
    output.first.iter().for_each(|l| line(out, l));
    if output.left_out > 0 {
        let n = count(output.left_out);
        let _ = writeln!(
            out,
            "      ... {n} lines are left out here, the log has them ..."
        );
    }
    output.last.iter().for_each(|l| line(out, l));
    out.push_str("</pre>\n<p class=\"soft\">Seconds, and ! for standard error.</p></details>\n");
}

fn artefacts(out: &mut String, files: &[ArtefactLine]) {
    if files.is_empty() {
        return;
    }
    out.push_str(
        "<h2>Files</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>node</th><th>path</th>\
         <th>kept as</th><th>bytes</th></tr></thead>\n<tbody>\n",
    );
    for file in files {
        let kept = match (&file.stored, &file.error) {
            (Some(stored), _) => stored.clone(),
            (None, Some(error)) => format!("not kept: {error}"),
            (None, None) => "not kept".to_owned(),
        };
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td>\
             <td class=\"n\">{}</td></tr>",
            Escaped(&file.node),
            Escaped(&file.path),
            Escaped(kept),
            count(file.bytes),
        );
    }
    out.push_str("</tbody></table></div>\n");
}
