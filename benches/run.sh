#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The benchmark suite: sections in guest kernels, two guests at a time, then what this machine's own
# clock measures, one after the other, then the report. All of it lands in target/bench.
#
# usage: run.sh [--full] [SECTION]...     all sections, or only these
#
# EMUD_BIN and EMUD_SUITE name the programs to run, else cargo builds them.
# exit status: 0 when all sections ran, 1 otherwise.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tests/sweep.sh

full=
if [ "${1-}" = --full ]; then
    full=--full
    shift
fi

# Guests whose clock counts instructions do not disturb one another. The longest first.
guests=("7.2 links" "7.2 tcp" "7.2 cost" "6.1 cost" "7.2 accuracy" "7.2 hold" "7.2 attach" "7.2 verifier" "6.1 verifier")
# The kernel between the oldest and the newest, and TCP and an attach on those without engine qdisc.
[ -z "$full" ] || guests+=("6.12 cost" "6.1 tcp" "6.12 tcp" "6.1 attach")
# Two CPUs cannot have such a clock.
parallel=("7.2 cpus")
host=(hold classes monitor verifier)
# only LIST SECTION...: what else is in the list does not run.
only() {
    local -n jobs=$1
    shift
    mapfile -t jobs < <(printf '%s\n' "${jobs[@]}" | grep -wF -e "$(printf '%s\n' "$@")")
}
if [ $# -gt 0 ]; then
    for list in guests parallel host; do only "$list" "$@"; done
    [ $((${#guests[@]} + ${#parallel[@]} + ${#host[@]})) -gt 0 ] || { echo "run.sh: no section $*" >&2; exit 64; }
fi

[ "$(id -u)" = 0 ] || { echo "run.sh: wants to be root" >&2; exit 77; }
# Of others, whom what is measured here has to bear.
load=$(cut -d ' ' -f 1 /proc/loadavg)
out=target/bench
# What another run left is no result of this one.
rm -rf "$out"
mkdir -p "$out/log"
pool=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "$pool" ] || end_group "$pool"
    sweep
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

program() {
    cargo build --locked --release -p emud -p emud-benches --bin suite --bin emud --message-format=json 2>/dev/null |
        jq -r --arg name "$1" 'select(.target.name? == $name and .executable).executable'
}
began=$SECONDS
if [ -z "${EMUD_SUITE-}" ] || [ -z "${EMUD_BIN-}" ]; then
    cargo build --locked --release -p emud -p emud-benches --bin suite --bin emud || exit
    EMUD_SUITE=$(program suite)
    EMUD_BIN=$(program emud)
fi
export EMUD_SUITE EMUD_BIN out full
[ $((${#guests[@]} + ${#parallel[@]})) -eq 0 ] || tests/vm/kernels.sh ${full:+6.12} 6.1 7.2 || exit
echo "built in $((SECONDS - began)) s"

# timed NAME COMMAND...: says how it went and how long it took.
timed() {
    local name=$1 began=$SECONDS log=$out/log/${1// /-}.log said='done'
    shift
    if ! "$@" >"$log" 2>&1 </dev/null; then
        said="FAILED, see $log"
        local why
        why=$(grep -m 1 -A 1 'panicked at' "$log" | tail -n 1)
        echo "$name: failed: ${why:-$(tail -n 1 "$log")}" >>"$out/failed"
    fi
    echo "$name: $said, $((SECONDS - began)) s"
}
# shellcheck disable=SC2086 # none, or several
guest() { timed "guest $*" tests/vm/bench.sh $full "$@"; }
export -f timed guest

# A separate group, so that its processes end with it.
# shellcheck disable=SC2016 # for the shells that xargs starts
printf '%s\n' "${guests[@]}" | grep . | setsid xargs -r -P 2 -d '\n' -I JOB bash -c 'guest JOB' &
pool=$!
wait "$pool"
pool=
for job in "${parallel[@]}"; do
    # shellcheck disable=SC2086
    timed "guest $job" tests/vm/bench.sh $full --parallel $job
done
place="this machine, $(nproc) CPUs (load average $load before)"
for section in "${host[@]}"; do
    # shellcheck disable=SC2086
    timed "host $section" "$EMUD_SUITE" run "$section" $full --place "$place" --out "$out/$section-host.json"
done

"$EMUD_SUITE" report --dir "$out" || exit
echo "total $((SECONDS / 60)) min $((SECONDS % 60)) s"
[ -z "$full" ] || echo "to commit the figures: make bench-docs${1:+ OPTIONS=--keep}"
[ ! -e "$out/failed" ]
