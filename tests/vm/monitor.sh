#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The tests of the monitor in guest kernels, where null_blk, dummy and cgroup v2 are there and the
# clock is exact.
#
# usage: monitor.sh [SERIES]... [-- ARGUMENT]...     (default: all kernels, all tests)
#
# EMUD_BIN and EMUD_MONITOR name the programs to run, else cargo builds them.
# exit status: 0 when all tests passed on all kernels, 1 otherwise.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

# A packet costs a guest about 10 times what it costs this machine, and a start of the monitor 5 s.
rate=${EMUD_MONITOR_RATE:-0.2}
trials=${EMUD_MONITOR_TRIALS:-${EMUD_TEST_FULL:+100}}
timeout_s=${EMUD_MONITOR_TIMEOUT:-1800}

series=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    series="$series $1"
    shift
done
if [ $# -gt 0 ]; then
    shift
elif [ -z "${EMUD_TEST_FULL-}" ]; then
    # What happens to an alarm in user space is the same on every kernel.
    set -- --skip alarms::application --skip alarms::limit --skip alarms::metrics \
        --skip alarms::on_alarm --skip alarms::stop_after
fi

need cargo
tests=${EMUD_MONITOR:-$(built monitor monitor)}
emud=${EMUD_BIN:-$(built monitor emud)}
executable "$tests" "$emud"

# One CPU, whose clock counts instructions: what the load of this machine does to a timing is nothing.
failed=0
for kernel in ${series:-$all_series}; do
    "$here/kernels.sh" "$kernel"
    status=0
    "$here/run.sh" --icount --memory 1536 --timeout "$timeout_s" \
        --file "$emud:/usr/bin/emud" --file "$tests:/root/monitor" "$kernel" -- \
        env EMUD_BIN=/usr/bin/emud EMUD_MONITOR_GUEST=1 EMUD_MONITOR_RATE="$rate" \
        EMUD_MONITOR_TRIALS="${trials:-20}" ${EMUD_TEST_FULL:+EMUD_TEST_FULL=1} RUST_BACKTRACE=0 \
        ./monitor "$@" || status=$?
    [ "$status" -eq 0 ] || { note "$kernel: FAILED ($status)"; failed=1; }
done
exit "$failed"
