#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The live tests (tests/live) in guest kernels, which have engines fq and hold, 7.2 also qdisc, and netem.
#
# usage: live.sh SERIES [ARGUMENT]...     arguments of the test program (default: its usual tests)
#
# One CPU, whose clock counts instructions: the load of this machine does nothing to a timing. With EMUD_LIVE_CPUS=2
# two at once, whose clock is this machine's; only one is online until a test sets the other.
# EMUD_BIN and EMUD_LIVE name the programs to run; else cargo builds them. EMUD_TEST_FULL: all tests, with
# EMUD_TEST_HERE=no without those that are the same on every kernel.
# exit status: that of the tests, or that of run.sh.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

# A packet costs a guest about 10 times what it costs this machine.
scale=${EMUD_LIVE_SCALE:-$([ -n "${EMUD_TEST_FULL-}" ] && echo 0.3 || echo 0.1)}
packets_per_s=${EMUD_LIVE_PPS_MAX:-11000}
rate=${EMUD_MONITOR_RATE:-0.2}
# Seconds of the guest.
timeout_s=${EMUD_LIVE_TIMEOUT:-$([ -n "${EMUD_TEST_FULL-}" ] && echo 7200 || echo 900)}
# Only for a guest that hangs: one of the full run has the time that nothing else takes.
host_timeout_s=$((timeout_s > 900 ? 20000 : 5400))

[ $# -ge 1 ] || die 64 "usage: live.sh SERIES [ARGUMENT]..."
series=$1
shift
live=${EMUD_LIVE:-$(built live live)}
emud=${EMUD_BIN:-$(built live emud)}
executable "$live" "$emud"
"$here/kernels.sh" "$series"
engines='fq hold'
case $series in 7.2*) engines="$engines qdisc" ;; esac
# 1 ns an instruction, for engine hold to have the packets of 100 Mbit/s on one CPU.
clock='--icount-shift 0'
expect='netem esp sctp'
if [ -n "${EMUD_LIVE_CPUS-}" ]; then
    clock="--cpus $EMUD_LIVE_CPUS --parallel"
    expect="$expect cpus"
fi
# shellcheck disable=SC2086 # several options
exec "$here/run.sh" $clock --memory 2048 --timeout "$timeout_s" --host-timeout "$host_timeout_s" \
    --file "$emud:/usr/bin/emud" --file "$live:/root/live" "$series" -- \
    env EMUD_BIN=/usr/bin/emud EMUD_GUEST=1 EMUD_EXPECT_ENGINES="$engines" EMUD_EXPECT="$expect" \
    EMUD_LIVE_SCALE="$scale" EMUD_LIVE_PPS_MAX="$packets_per_s" EMUD_MONITOR_RATE="$rate" \
    EMUD_MONITOR_TRIALS="${EMUD_MONITOR_TRIALS:-$([ -n "${EMUD_TEST_FULL-}" ] && echo 100 || echo 20)}" \
    ${EMUD_TEST_FULL:+EMUD_TEST_FULL=1} ${EMUD_TEST_HERE:+EMUD_TEST_HERE="$EMUD_TEST_HERE"} \
    ${EMUD_NETEM_COUNT:+EMUD_NETEM_COUNT="$EMUD_NETEM_COUNT"} \
    RUST_BACKTRACE=0 ./live "$@"
