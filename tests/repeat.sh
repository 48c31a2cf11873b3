#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run the usual tests many times over and count each test's passes and failures. What is flaky shows.
#
# usage: repeat.sh N [--busy] [--resume]
#   --busy    beside two processes that spin
#   --resume  the runs that this commit has had before count, whatever they said: only the rest of N follows
#
# Logs: target/repeat/COMMIT/RUN.log, of a tree with changes target/repeat/changed/RUN.log.
# exit status: 0 when no test failed in any run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

usage() { echo "usage: repeat.sh N [--busy] [--resume]" >&2; exit 64; }
case ${1-} in '' | *[!0-9]*) usage ;; esac
runs=$1
shift
busy=
resume=
for option in "$@"; do
    case $option in --busy) busy=-busy ;; --resume) resume=yes ;; *) usage ;; esac
done
# What is not committed could be something else the next time.
of=changed
commit=$(git rev-parse HEAD) || exit
[ -n "$(git status --porcelain)" ] || of=$commit
if [ "$of$resume" = changedyes ]; then
    echo "repeat.sh: --resume needs a tree without changes: commit or stash them" >&2
    exit 64
fi
out=target/repeat/$of$busy
[ -n "$resume" ] || rm -rf "$out"
mkdir -p "$out"
spinners=()
# shellcheck disable=SC2317 # called by the trap
cleanup() { [ ${#spinners[@]} -eq 0 ] || kill "${spinners[@]}" 2>/dev/null; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if [ -n "$busy" ]; then
    for _ in 1 2; do
        sh -c 'while :; do :; done' &
        spinners+=($!)
    done
fi

logs=()
for run in $(seq "$runs"); do
    began=$SECONDS
    logs+=("$out/$run.log")
    if [ -e "$out/$run.log" ]; then
        echo "run $run, $(date -r "$out/$run.log" '+%F %R'): $(tail -n 1 "$out/$run.log")"
        continue
    fi
    status=0
    tests/run.sh >"$out/$run.new" 2>&1 || status=$?
    # A run that a signal ended is none.
    [ "$status" -lt 128 ] || exit "$status"
    # A run that broke off may say nothing of it.
    [ "$status" -eq 0 ] || echo "run.sh: exit status $status" >>"$out/$run.new"
    mv "$out/$run.new" "$out/$run.log"
    echo "run $run: $(tail -n 1 "$out/$run.log"), $((SECONDS - began)) s"
done

# A test that prints has its result on a separate line, after its name and its output.
awk '
    FNR == 1 { job = name = "" }
    /^=== [^:]*$/ { job = $2 }
    /^test [^ ]/ && !/^test result: / { name = $0; sub(/^test /, "", name); sub(/ +\.\.\..*/, "", name) }
    /(^| )ok( in [0-9. s]+)?$/ && name != "" { passed[job " " name]++; name = "" }
    /(^| )FAILED$/ && name != "" { failed[job " " name]++; name = "" }
    /^=== .*: [0-9]+ passed, [0-9]+ failed/ { all += $3; bad += $5 }
    END {
        for (test in passed) print passed[test] + 0, failed[test] + 0, test
        for (test in failed) if (!(test in passed)) print 0, failed[test], test
        print all, bad, "ALL" > "/dev/stderr"
    }' "${logs[@]}" 2>"$out/all" | sort -k3 >"$out/tests"
printf '%6s %6s  %s\n' passed failed test
awk '{ printf "%6d %6d  %s\n", $1, $2, substr($0, index($0, $3)) }' "$out/tests"
read -r all bad _ <"$out/all"
broken=$(grep -l '^run.sh: exit status' "${logs[@]}" | wc -l)
echo "$runs runs, $broken of them with a failure: $all passed, $bad failed"
awk '$2 > 0 { print "flaky or broken: " substr($0, index($0, $3)) ": " $2 " of " $1 + $2 }' "$out/tests"
[ "$bad" -eq 0 ] && [ "$broken" -eq 0 ]
