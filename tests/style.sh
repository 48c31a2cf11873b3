#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Check spelling (codespell) and wording (tests/style-words.txt) of what people read. A hit is
# "FILE:LINE: TEXT: what to write instead".
#
# usage: style.sh [--count] [FILE|FOLDER]...
#   --count    print the number of hits for each entry of the list, most first
#
# Without a path: the documents and the source code. In source files, comments and string literals
# are checked; in Markdown, everything but inline code and blocks of output; in templates, what a
# browser shows or reads out; in YAML, all of it.
#
# exit status: 0 without a hit, 1 with one, 69 without codespell.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

count=
if [ "${1-}" = --count ]; then count=1; shift; fi
if [ $# -eq 0 ]; then
    set -- README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs bpf monitor src tests benches kubernetes build.rs \
        profiles scenarios templates packaging contrib Makefile action.yml
fi
command -v codespell >/dev/null || { echo "style.sh: codespell is missing (tests/setup.sh check)" >&2; exit 69; }

mapfile -t files < <(git ls-files --cached --others --exclude-standard -- "$@" |
    grep -E '\.(md|rs|c|h|toml|sh|html|ya?ml)$|(^|/)Makefile$' | grep -v '^docs/benchmarks.json$')
[ ${#files[@]} -gt 0 ] || { echo "style.sh: no files in $*" >&2; exit 1; }
prose=$(mktemp -d)
trap 'rm -rf "$prose"' EXIT
for file in "${files[@]}"; do
    [ -e "$file" ] || continue
    case $file in
    *.md) kind='md' ;;
    *.rs | *.[ch]) kind='code' ;;
    *.html) kind='html' ;;
    *.yml | *.yaml) kind='text' ;;
    *) kind='hash' ;;
    esac
    mkdir -p "$prose/$(dirname "$file")"
    awk -v kind="$kind" -f tests/prose.awk "$file" >"$prose/$file"
done
cd "$prose"

hits=0
regex=
# judge REGEX INSTEAD EXCEPTION...
judge() {
    local regex=$1 instead=$2 found exception
    shift 2
    found=$(grep -rnHiE -- "$regex" . || true)
    for exception; do
        found=$(awk -v e="$exception" '{ t = $0; sub(/^[^:]*:[0-9]+:/, "", t) } tolower(t) !~ e' <<<"$found")
    done
    [ -n "$found" ] || return 0
    if [ -n "$count" ]; then
        echo "$(wc -l <<<"$found") $regex"
    else
        local line
        while IFS= read -r line; do
            local where=${line%%:*} number=${line#*:} text
            number=${number%%:*}
            text=${line#*:*:}
            echo "${where#./}:$number: $(grep -oiE -m1 -- "$regex" <<<"$text" | head -n 1): $instead"
        done <<<"$found"
    fi
}

report=$(
    exceptions=()
    instead=
    while IFS= read -r line; do
        case $line in
        '#'* | '') ;;
        '  except '*) exceptions+=("${line#  except }") ;;
        *)
            [ -z "$regex" ] || judge "$regex" "$instead" "${exceptions[@]}"
            regex=${line%% => *}
            instead=${line#* => }
            exceptions=()
            ;;
        esac
    done <"$OLDPWD/tests/style-words.txt"
    judge "$regex" "$instead" "${exceptions[@]}"
    # crate: a Rust package; ECT: ECN-capable transport; inflight: a file of sysfs; the others are misspelt on purpose, in tests.
    codespell --ignore-words-list crate,crates,ect,bandwith,betwen,comand,fro,inflight,lenght,probabilty,sorce,treshold . |
        sed 's,^\./,,; s/: \([^ ]*\) ==> /: \1: /' || [ $? -eq 65 ]
)
if [ -n "$report" ]; then
    hits=$(wc -l <<<"$report")
    if [ -n "$count" ]; then sort -rn <<<"$report"; else sort -t: -k1,1 -k2,2n <<<"$report"; fi
fi
if [ "$hits" -gt 0 ]; then
    [ -n "$count" ] || echo "style.sh: $hits hits in ${#files[@]} files" >&2
    exit 1
fi
echo "${#files[@]} files"
