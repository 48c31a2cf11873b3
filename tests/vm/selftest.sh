#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Boot each kernel, check that what the guest tests build on works, print a table of measurements.
#
# usage: selftest.sh [--icount] [SERIES]...     (default: all kernels)
#
# exit status: 0 when every check held on every kernel, 1 otherwise.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

mode=
[ "${1-}" = --icount ] && { mode=--icount; shift; }
# shellcheck disable=SC2086 # a list of names
[ $# -gt 0 ] || set -- $all_series
"$here/kernels.sh" "$@"
results=$(mktemp -d "$vm_dir/selftest.XXXXXX")
trap 'rm -rf "$results"' EXIT
failed=0

fail() {
    note "FAILED: $*"
    failed=1
}

# The test bed's own promises: statuses, results, and failures that must not look like success.
expect() {
    wanted=$1
    shift
    got=0
    "$here/run.sh" --timeout 60 "$@" >"$results/stdout" 2>"$results/stderr" || got=$?
    [ "$got" -eq "$wanted" ] && return
    cat "$results/stderr" >&2
    fail "run.sh $* ended with $got, not $wanted"
}

check_harness() {
    # Every byte must survive the way out.
    # shellcheck disable=SC2016 # expanded in the guest
    expect 255 --file "$here/run.sh" --out /root/copy:"$results/copy" --out /tmp/folder:"$results/folder" \
        "$1" -- sh -c 'cp run.sh copy; mkdir /tmp/folder; awk "BEGIN { for (i = 0; i < 300000; i++) printf \"%c\", i % 256 }" >/tmp/folder/binary; echo "it'"'"'s $1"; exit 255' - 'two  words'
    cmp "$here/run.sh" "$results/copy" || fail "$1: a file came back changed"
    [ "$(wc -c <"$results/folder/binary")" -ge 300000 ] || fail "$1: a binary file came back short"
    [ "$(cat "$results/stdout")" = "it's two  words" ] || fail "$1: output or argument changed: $(cat "$results/stdout")"
    expect 205 --out /none:"$results/none" "$1" -- true
    expect 202 "$1" -- sh -c 'echo c >/proc/sysrq-trigger; sleep 9'
    expect 204 "$1" -- sh -c 'poweroff -f; sleep 9'
    expect 203 "$1" -- sh -c 'echo "<4>WARNING: CPU: 0 PID: 1 at self-test" >/dev/kmsg'
    expect 201 --timeout 8 "$1" -- sleep 60
}

# value NAME: from the lines the guest printed.
value() { sed -n "s/^$1=//p" "$results/stdout"; }

row() {
    started=$(date +%s)
    # shellcheck disable=SC2086 # an option or nothing
    "$here/run.sh" $mode --timeout 240 --file "$here/guest-selftest.sh" "$1" -- ./guest-selftest.sh \
        >"$results/stdout" 2>"$results/stderr" || fail "$1: run.sh ended with $?"
    cat "$results/stderr" >&2
    boot_s=$(sed -n 's/.*booted in \([0-9.]*\) s.*/\1/p' "$results/stderr")
    [ "$(value features)" = ok ] || { sed 's/^/  /' "$results/stdout" >&2; fail "$1: incomplete"; }
    # netem must delay by the configured time: less would mean the clock or the timer is wrong.
    awk -v got="$(value netem_min_ms)" 'BEGIN { exit !(got >= 50) }' || fail "$1: netem below 50 ms"
    printf '%-24s %-6s %6s %8s %8s %8s %8s %8s %8s %7s\n' "$(value release)" "$(value clocksource)" \
        "$boot_s" "$(value bare_mean_ms)" "$(value bare_sd_ms)" "$(value netem_mean_ms)" \
        "$(value netem_sd_ms)" "$(value bare_mbit_s)" "$(value netem_mbit_s)" \
        "$(($(date +%s) - started))" >>"$results/table"
}

printf '%-24s %-6s %6s %8s %8s %8s %8s %8s %8s %7s\n' kernel clock boot/s bare/ms sd/ms netem/ms sd/ms \
    TCP/Mb/s netem50 total/s >"$results/table"
check_harness "$1" # the scripts are the same for every kernel
for series; do
    row "$series"
done
cat "$results/table"
exit "$failed"
