#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Execute the README's blocks in order, as a user would who follows it from the top, in a separate
# namespace with emud on PATH: ```sh blocks, and the commands of ```console blocks. `make` is left
# out: it builds and tests what this script has. A busy host may be contended: 3 and 4 are valid exit
# codes of `run` and `monitor`, and 1 to 2 of `verify`; any other ends the test.
#
# usage: readme.sh EMUD
set -euo pipefail

emud=$(realpath -- "${1:?usage: readme.sh EMUD}")
readme=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../README.md")

if [ -z "${EMUD_README_INSIDE-}" ]; then
    # Everything that the blocks make ends with these namespaces.
    EMUD_README_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child -- "$0" "$emud"
fi
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
ip link set lo up
mount -t sysfs sysfs /sys
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$emud" "$scratch/bin/emud"
export PATH=$scratch/bin:$PATH
cd "$scratch"

awk '/^```(sh|console)$/ { block++; kind = $0; next }
    /^```$/ { kind = "" }
    kind == "```console" && !sub(/^# /, "") { next }
    kind != "" && !/^make / { print > sprintf("block%02d", block) }' "$readme"
{
    cat <<'END'
emud() {
    local status=0
    command emud "$@" || status=$?
    case "${1-} $status" in
    *" 0" | "run "[34] | "monitor 3" | "verify "[12]) return 0 ;;
    *) echo "emud $*: exit $status" >&2; return "$status" ;;
    esac
}
END
    for block in block??; do
        echo "echo '--- $block'"
        cat "$block"
    done
} >all
blocks=$(find . -name 'block??' | wc -l)
[ "$blocks" -ge 8 ] || { echo "readme.sh: only $blocks blocks: where is the README?" >&2; exit 1; }
bash -euo pipefail all </dev/null
# The files that a reader would open afterwards.
[ "$(jq -r 'select(.type == "end") | .verdict' dsl.log)" != null ]
for file in netem.toml measured.toml phone.toml phone.svg dsl.html d.html host.json; do
    [ -s "$file" ] || { echo "readme.sh: no $file" >&2; exit 1; }
done
attached=$(command emud list)
[ -z "$attached" ] || { echo "readme.sh: something is still attached" >&2; exit 1; }
echo "$blocks blocks"
