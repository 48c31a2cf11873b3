#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Execute the commands of docs/ci.md and the steps of its workflow in order, in separate namespaces, and check the
# files that they write. A busy host may be contended: 3 and 4 are valid exit codes of `run`, and 3 of `compare`.
#
# usage: ci.sh EMUD
set -euo pipefail

emud=$(realpath -- "${1:?usage: ci.sh EMUD}")
root=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/..")

if [ -z "${EMUD_CI_INSIDE-}" ]; then
    EMUD_CI_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child -- "$0" "$emud"
fi
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
ip link set lo up
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$emud" "$scratch/bin/emud"
export PATH=$scratch/bin:$PATH
unset GITHUB_ACTIONS SUDO_UID
cd "$scratch"
# A program that only the PATH of who calls sudo has, as cargo.
echo '#!/bin/sh' >bin/of-the-runner
# shellcheck disable=SC2016 # of the run
printf '#!/bin/sh\nof-the-runner && "$EMUD" metric pings=5\n' >test.sh
chmod +x bin/of-the-runner test.sh
# That of Ubuntu has its own PATH, also with -E.
# shellcheck disable=SC2317 # the steps call it
sudo() {
    [ "$1" != -E ] || shift
    env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
export -f sudo

executed=0
while IFS= read -r command; do
    echo "# $command"
    status=0
    bash -c "$command" </dev/null >>out 2>>err || status=$?
    case "$command $status" in
    *" 0" | *"emud run"*" "[34] | *"emud compare"*" 3") ;;
    *) cat out err; echo "ci.sh: exit $status" >&2; exit 1 ;;
    esac
    executed=$((executed + 1))
done < <(awk '/^```(console|yaml)$/ { on = 1; next } /^```$/ { on = 0 } on && (sub(/^[#$] /, "") || sub(/^ *- run: /, ""))' \
    "$root/docs/ci.md")
[ "$executed" -ge 8 ] || { echo "ci.sh: only $executed commands: where is the page?" >&2; exit 1; }

grep -q '<testsuite name="lte" tests="2"' lte.xml
grep -q '<testcase classname="lte" name="verdict"' lte.xml
grep -q 'name="lte 1 of 3"' many.xml
grep -q 'Figures of the programs' lte.html
[ "$(jq -r 'select(.type == "metric") | "\(.name)=\(.value)\(.unit)"' a.2.log)" = $'page-load=1.84s\nstalls=3null' ]
emud compare --json a.1.log a.2.log --against b.1.log b.2.log >compare.json || true
[ "$(jq '[.. | objects | select(.quantity? == "metric") | .link] | unique | length' compare.json)" = 2 ]
# A failed program, and its annotation.
status=0
GITHUB_ACTIONS=true emud run --profile lte --monitor shared --junit f.xml -- sh -c 'exit 7' 2>f.err || status=$?
[ "$status" = 7 ]
grep -q '^::error title=emud run%3A lte::client: exit code 7' f.err
grep -q '<failure type="program" message="client: exit code 7">' f.xml
# What the action calls; another file, another name in the cache.
mkdir -p action/target
# named RELEASE: by its first step, as on this release of Ubuntu.
named() {
    : >name
    awk '/^      run: \|$/ { on = 1; next } /^    - / && on { exit } on { print substr($0, 9) }' "$root/action.yml" |
        sed "s,^\. /etc/os-release\$,VERSION_ID=$1," | ACTION=$PWD/action GITHUB_OUTPUT=$PWD/name bash -s
}
named 24.04
first=$(cat name)
echo built >action/target/file
named 24.04
[ "$(cat name)" = "$first" ]
echo source >action/file
named 24.04
[ "$(cat name)" != "$first" ]
if named 22.04 >/dev/null; then exit 1; fi
step=$(grep 'sudo .*tests/setup.sh build' "$root/action.yml")
(cd "$root" && eval "$step")
grep -q '^install:' "$root/Makefile"
echo "$executed commands"
