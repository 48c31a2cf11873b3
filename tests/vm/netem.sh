#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# emud beside stock netem in guest kernels (tests/netem).
#
# usage: netem.sh [SERIES]... [-- ARGUMENT]...   (default: 7.2; netem takes a seed since 6.6)
#
# EMUD_BIN and EMUD_NETEM name the programs to run, else cargo builds them.
# exit status: 0 when all tests passed on all kernels, 1 otherwise.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
. "$here/common.sh"

timeout_s=${EMUD_NETEM_TIMEOUT:-${EMUD_TEST_FULL:+7200}}

series=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    series="$series $1"
    shift
done
[ $# -eq 0 ] || shift

need cargo
tests=${EMUD_NETEM:-$(built netem netem)}
emud=${EMUD_BIN:-$(built netem emud)}
executable "$tests" "$emud"

# One CPU, whose clock counts instructions: what the load of this machine does to a timing is nothing.
failed=0
for kernel in ${series:-7.2}; do
    "$here/kernels.sh" "$kernel"
    status=0
    "$here/run.sh" --icount-shift 0 --memory 1536 --timeout "${timeout_s:-1800}" \
        --file "$emud:/usr/bin/emud" --file "$tests:/root/netem" "$kernel" -- \
        env EMUD_BIN=/usr/bin/emud EMUD_EXPECT=netem ${EMUD_TEST_FULL:+EMUD_TEST_FULL=1} \
        ${EMUD_NETEM_COUNT:+EMUD_NETEM_COUNT="$EMUD_NETEM_COUNT"} RUST_BACKTRACE=0 \
        ./netem "$@" || status=$?
    [ "$status" -eq 0 ] || { note "$kernel: FAILED ($status)"; failed=1; }
done
exit "$failed"
