# SPDX-License-Identifier: MIT OR Apache-2.0
# Blanks what is not prose and keeps the line numbers: of Markdown inline code and the blocks of
# output stay out, of Rust and C only comments and string literals stay in, of TOML, shell and make
# only comments, of HTML text and labels. Usage: awk -v kind=md|code|hash|html|text -f prose.awk FILE
BEGIN { raw = -1 }
kind == "md" {
    if ($0 ~ /^ *```/) { fenced = !fenced; shown = $0 ~ /```(sh|toml)$/; print ""; next }
    if (fenced && !shown) { print ""; next }
    if (fenced) { if (match($0, /(^|[ \t])#/)) print substr($0, RSTART); else print ""; next }
    if ($0 ~ /<!-- tables: begin -->/) generated = 1
    if ($0 ~ /<!-- tables: end -->/) generated = 0
    if (generated) { print ""; next }
    gsub(/`[^`]*`/, "`")
    gsub(/\]\([^)]*\)/, "]")
    print
    next
}
kind == "text" { print; next }
kind == "html" {
    # What the template engine puts in, and its instructions.
    gsub(/\{\{[^}]*\}\}|\{%[^%]*%\}/, "{}")
    while (match($0, /<[^>]*>/)) {
        tag = substr($0, RSTART, RLENGTH)
        before = substr($0, 1, RSTART - 1)
        after = substr($0, RSTART + RLENGTH)
        label = match(tag, /aria-label="[^"]*"/) ? substr(tag, RSTART + 12, RLENGTH - 13) : ""
        $0 = before " " label " " after
    }
    print
    next
}
kind == "hash" { if (match($0, /(^|[ \t])#/)) print substr($0, RSTART); else print ""; next }
{
    # The key of an object in JSON.
    gsub(/\["[a-z_-]+"\]/, "[]")
    gsub(/"[a-z_-]+": /, "")
    out = ""
    for (i = 1; i <= length($0); i++) {
        c = substr($0, i, 1)
        two = substr($0, i, 2)
        if (state == "block") {
            if (two == "*/") { state = ""; i++ } else out = out c
        } else if (state == "string") {
            if (c == "\\" && hashes == -1) { out = out " "; i++ }
            else if (c == "\"" && (hashes < 1 || substr($0, i + 1, hashes) == substr("######", 1, hashes))) {
                state = ""; out = out " "; if (hashes > 0) i += hashes
            } else out = out c
        } else if (two == "//") { out = out " " substr($0, i + 2); break }
        else if (two == "/*") { state = "block"; i++ }
        else if (c == "'" && substr($0, i, 3) ~ /^'[^\\]'$/) i += 2
        else if (c == "'" && two == "'\\") i += 3
        else if (c == "\"") { state = "string"; hashes = raw; out = out " " }
        raw = -1
        if (state == "" && c == "r" && match(substr($0, i), /^r#*"/)) { raw = RLENGTH - 2; i += raw }
    }
    # Inline code, and the name of an argument of format!().
    gsub(/`[^`]*`/, "`", out)
    gsub(/\{[A-Za-z_][A-Za-z_0-9]*(:[^{}]*)?\}/, "{}", out)
    print out
}
