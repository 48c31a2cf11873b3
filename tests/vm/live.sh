#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The live tests in guest kernels, where both engines and netem are there.
#
# usage: live.sh [--engine fq|hold] [SERIES]... [-- ARGUMENT]...
#                                            (default: both, all kernels, all tests)
#
# EMUD_BIN and EMUD_LIVE name the programs to run, else cargo builds them.
# exit status: 0 when all tests passed on all kernels, 1 otherwise.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

# A packet costs a guest about 10 times what it costs this machine.
scale=${EMUD_LIVE_SCALE:-0.3}
packets_per_s=${EMUD_LIVE_PPS_MAX:-11000}
timeout_s=${EMUD_LIVE_TIMEOUT:-2400}

engine=both
if [ "${1-}" = --engine ]; then
    case ${2-} in fq | hold) engine=$2 ;; *) die 64 "--engine fq|hold, not '${2-}'" ;; esac
    shift 2
fi
series=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    series="$series $1"
    shift
done
selected=no
if [ $# -gt 0 ]; then
    selected=yes
    shift
fi

need cargo
live=${EMUD_LIVE:-$(built live live)}
emud=${EMUD_BIN:-$(built live emud)}
executable "$live" "$emud"

# What the usual run leaves to another kernel, as it is the classifier's or the holder's part and no
# kernel's: an attach takes 5 s in a guest. EMUD_TEST_FULL tries all of it on each.
elsewhere() {
    case $1/$2 in
        # This machine's own kernel has tried them.
        hold/*)
            names='models:: ecn:: alter:: loss:: rate:: timing:: time:: change::directions'
            [ "$2" != 7.2 ] || names="$names _killed frames::"
            ;;
        fq/7.2) names='rate::udp rate::queue change::directions frames::other_frames _killed' ;;
        fq/*) names='models:: ecn:: alter:: loss::' ;;
    esac
    for name in $names; do
        printf -- '--skip %s ' "$name"
    done
}

# A guest for each engine: each is one CPU, whose clock counts instructions, so neither they nor the
# load of this machine disturb one another's timing.
# 1 ns an instruction, for engine hold to have the packets of 100 Mbit/s on one CPU.
guest() {
    which=$1
    shift
    # What concerns both engines goes with fq.
    case $which in fq) skip='hold::' ;; hold) skip='fq:: --skip both::' ;; esac
    [ "$selected${EMUD_TEST_FULL-}" != no ] || skip="$skip $(elsewhere "$which" "$kernel")"
    # shellcheck disable=SC2086 # several options
    exec "$here/run.sh" --icount-shift 0 --memory 2048 --timeout "$timeout_s" \
        --file "$emud:/usr/bin/emud" --file "$live:/root/live" "$kernel" -- \
        env EMUD_BIN=/usr/bin/emud EMUD_EXPECT_ENGINES='fq hold' EMUD_EXPECT=netem \
        EMUD_LIVE_SCALE="$scale" EMUD_LIVE_PPS_MAX="$packets_per_s" RUST_BACKTRACE=0 \
        ./live --skip $skip "$@"
}

output=$(mktemp)
first=
# shellcheck disable=SC2317 # called by the trap
cleanup() {
    [ -z "$first" ] || kill "$first" 2>/dev/null || true
    rm -f "$output"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
failed=0
for kernel in ${series:-$all_series}; do
    "$here/kernels.sh" "$kernel"
    status=0
    if [ "$engine" != both ]; then
        (guest "$engine" "$@") || status=$?
    else
        guest fq "$@" >"$output" 2>&1 &
        first=$!
        (guest hold "$@") || status=$?
        wait "$first" || status=$?
        first=
        cat "$output"
    fi
    [ "$status" -eq 0 ] || { note "$kernel: FAILED ($status)"; failed=1; }
done
exit "$failed"
