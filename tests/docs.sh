#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Check the examples of docs/*.md: each ```toml block is a profile, a scenario or a configuration of
# the monitor; each ```sh block runs without root and without traffic, page by page, in an empty
# folder; of each `emud` command in a ```console block, verb and options exist; each link between
# pages has a target; the source code has each message that docs/README.md quotes. Commands of ```console
# blocks are not executed: they need root, an interface or a log. The README's blocks are executed by
# readme.sh.
#
# usage: docs.sh EMUD
set -euo pipefail

emud=$(realpath -- "${1:?usage: docs.sh EMUD}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$emud" "$scratch/bin/emud"
export PATH=$scratch/bin:$PATH
failed=0
checked=0
commands=0
profiles=0
scenarios=0
quotes=0

# fail WHERE WHAT OUTPUT
fail() {
    echo "$1: $2"
    printf '    %s\n' "${3//$'\n'/$'\n    '}"
    failed=$((failed + 1))
}

# check WHERE COMMAND...
check() {
    local where=$1 output
    shift
    checked=$((checked + 1))
    output=$("$@" 2>&1) || fail "$where" "$*" "$output"
}

# The files that examples name.
fixtures() {
    printf 'source,destination,delay\n10.0.0.1,10.0.0.2,5ms\n' >pairs.csv
    printf 'time_s,rate_Mbit\n0,5\n1,9\n' >cell.csv
    printf '1\n5\n9\n' >down.trace
    seq 0 19 | awk '{ print $1 "," 20 + $1 % 7 }' >rtt.csv
    grep -v '^#' "$root/tests/pure/medium/house.asc" >house.asc
    seq -128 127 | awk '{ print $1 * 128 }' >my.dist
}

# blocks KIND PAGE: KIND/LINE for each block of that kind, named by the line at which it begins.
blocks() {
    mkdir -p "$1"
    awk -v kind="$1" '
        $0 == "```" kind { file = kind "/" NR; next }
        /^```$/ { if (file != "") close(file); file = "" }
        file != "" { print > file }' "$2"
    find "$1" -type f -printf '%f\n' | sort -n
}

# A block without tables shows keys of a link, each line alone.
profile() {
    local page=$1 line=$2 key
    profiles=$((profiles + 1))
    if ! grep -q '^\[' "toml/$line"; then
        while IFS= read -r key; do
            [ -n "$key" ] || continue
            printf '[link]\n%s\n' "$key" >example.toml
            check "$page:$line" emud profile check ./example.toml
        done <"toml/$line"
        return
    fi
    cp "toml/$line" example.toml
    grep -qE '^\[(link|up|down|matrix)\]|^\[\[' example.toml || echo '[link]' >>example.toml
    check "$page:$line" emud profile check ./example.toml
}

# A part of a scenario gets what it lacks: a client with a command, a server, and links to it.
scenario() {
    local page=$1 line=$2 node
    cp "toml/$line" example.toml
    ! grep -q '^command' example.toml || ! grep -qE '^\[(topology|link\.)' example.toml || scenarios=$((scenarios + 1))
    if ! grep -qE '^\[topology' example.toml; then
        for node in client server $(grep '^between' example.toml | grep -oE '"[a-z0-9]+"' | tr -d '"'); do
            grep -q "^\[node.$node\]" example.toml && continue
            printf '[node.%s]\n' "$node" >>example.toml
            [ "$node" != client ] || echo 'command = "true"' >>example.toml
        done
        while IFS=. read -r _ node; do
            [ "$node" = server ] || printf '[link.x-%s]\nbetween = ["%s", "server"]\n' "$node" "$node"
        done < <(grep -oE '^\[node\.[a-z0-9]+' example.toml) >links.toml
        cat links.toml >>example.toml
    fi
    check "$page:$line" emud scenario check ./example.toml
}

# Verb and options of a command that is not executed.
options() {
    local where=$1 help option
    shift
    local verb=("$2")
    case $2 in
    import | export | profile | scenario | traffic | load | fleet) verb+=("$3") ;;
    monitor) case ${3-} in record | calibrate | reset) verb+=("$3") ;; esac ;;
    esac
    help=$(emud "${verb[@]}" --help 2>&1) || { fail "$where" "emud ${verb[*]}" "no such verb"; return; }
    for option in "${@:3}"; do
        case $option in
        --) break ;;
        --[a-z]*) grep -qE -- "${option%%=*}([^a-z-]|$)" <<<"$help" || fail "$where" "emud ${verb[*]}" "no option $option" ;;
        esac
    done
    commands=$((commands + 1))
}

for page in docs/*.md; do
    name=$(basename "$page" .md)
    mkdir "$scratch/$name"
    cd "$scratch/$name"
    fixtures
    for line in $(blocks toml "$root/$page"); do
        case $name in
        monitor) check "$page:$line" emud monitor --config "toml/$line" --print-config ;;
        scenario | medium | fleet) scenario "$page" "$line" ;;
        *) profile "$page" "$line" ;;
        esac
    done
    for line in $(blocks sh "$root/$page"); do
        check "$page:$line" bash -euo pipefail "sh/$line"
    done
    for line in $(blocks console "$root/$page"); do
        while IFS= read -r command; do
            read -ra words <<<"$command"
            options "$page:$line" "${words[@]}"
        done < <(sed -nE 's/^[#$] (emud) /\1 /p' "console/$line" | sed -E 's/ +#.*//; s/[|;>].*//')
    done
    cd "$root"
done

# anchors PAGE: the names that headings have on the repository's host.
anchors() {
    awk '/^```/ { code = !code } !code && /^#+ / { sub(/^#+ /, ""); print }' "$1" |
        tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for page in *.md docs/*.md tests/vm/*.md; do
    while IFS=: read -r line link; do
        checked=$((checked + 1))
        file=${link%%#*}
        target=$(realpath -m -- "$(dirname "$page")/$file")
        [ -n "$file" ] || target=$page
        [ -e "$target" ] || { fail "$page:$line" "$link" "no such file"; continue; }
        case $link in
        *.md#* | '#'*) grep -qx -- "${link#*#}" <<<"$(anchors "$target")" || fail "$page:$line" "$link" "no such heading" ;;
        esac
    done < <(grep -noE '\]\([^):]+\)' "$page" | sed -E 's/\]\(//; s/\)$//')
done

# The screen of top.md is the one that a unit test of emud top draws.
checked=$((checked + 1))
awk '/^```text$/ { on = 1; next } /^```$/ { on = 0 } on' docs/top.md | cmp -s - src/top/pictures/80x24.txt ||
    fail docs/top.md "its screen" "differs from src/top/pictures/80x24.txt"

# A message that a question quotes is one of emud; "..." is a figure in it.
while IFS=: read -r line message; do
    checked=$((checked + 1))
    quotes=$((quotes + 1))
    while read -r part; do
        grep -rqF -- "$part" src monitor/src || fail "docs/README.md:$line" "$message" "emud has no such message"
    done <<<"${message//.../$'\n'}"
done < <(grep -noE 'reports "[^"]+"' docs/README.md | sed -E 's/reports "(.*)"/\1/')

# Blocks that are not found are no mistakes.
if [ "$profiles" -le 15 ] || [ "$scenarios" -lt 3 ] || [ "$commands" -lt 100 ] || [ "$quotes" -lt 3 ]; then
    fail docs "$profiles profiles, $scenarios whole scenarios, $commands commands and $quotes quoted messages" "too few"
fi
echo "$checked examples and links checked, $profiles profiles, $scenarios whole scenarios, $commands commands with their options, $failed wrong"
[ "$failed" -eq 0 ]
